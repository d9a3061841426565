// The loop form: what a fused kernel computes for each element, before it becomes text. Plain data; prints.
// Main type: Kernel, a space of elements, buffers, terms over them and what is stored.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::codegen {

/// What a term computes. `cast` is to the term's own type; everything else takes operands of one type.
enum class Op : uint8_t {
  load, constant, cast, rounded,   // rounded: to the precision of `memory`, as a store and a load would
  position,        // i64, no operand: the access's sum of index times stride plus offset; no memory is read
  index,           // i64, of one i64 operand: the operand where 0 <= operand < `integer`; else 0, and the kernel says that an index is out of range
  index_wrapped,   // the same where -`integer` <= operand < `integer`; `integer` is added to negative ones
  load_if,         // a load where operand 0 (a mask) holds; elsewhere memory is not touched and the value is 0
  load_at,         // a load at the access's place plus operand 0 (i64, in elements; made of `index`, so that it lies inside the buffer)
  add, sub, mul, div, fma, neg, abs, sign, reciprocal, sqrt, rsqrt,
  exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, tanh, erf, erfc, erf_plus_one, sigmoid, pow, atan2,
  floor, ceil, round, trunc,
  minimum, maximum, fmin, fmax,
  eq, ne, lt, le, gt, ge, is_nan,
  logical_and, logical_or, logical_xor, logical_not, bit_and, bit_or, bit_xor, bit_not,
  select,
  scan_sum, scan_prod, scan_logsumexp,   // over the elements of a row up to this one, in order; `memory` is the result's dtype
  sum, prod, max, min, any, all,   // over the inner elements of a row, or over all rows of a column
};
std::string_view op_name(Op);
bool is_reduction(Op);
bool is_scan(Op);
/// Terms with an `access`: position, and what reads memory.
bool has_access(Op);
bool reads_memory(Op);
/// A function that costs tens of operations: computed once where a row is walked over several times.
bool is_costly(Op);

/// In what a term is held while it is computed: f32 stands for half and bfloat16 too.
enum class Held : uint8_t { f32, f64, i32, i64, mask };
std::string_view held_name(Held);

using TermId = uint32_t;
/// How a value varies: over all elements of the space, from row to row, or from column to column.
enum class Level : uint8_t { element, row, column };

/// Where an element of the space lies in a buffer: strides in elements, one a dimension of the space.
struct Access {
  std::vector<int64_t> strides;
  int64_t offset = 0;
  bool operator==(const Access&) const = default;
};

struct Term {
  Op op = Op::constant;
  Held held = Held::f32;
  Level level = Level::element;
  std::vector<TermId> operands;
  double number = 0;               ///< constant, of a floating type
  int64_t integer = 0;             ///< constant, of an integer type or mask; index: how many there are
  bool is_size = false;            ///< constant that is made of sizes: an argument of a text that serves every size
  ir::DType memory = ir::DType::f32;   ///< load: what the buffer holds; rounded: to what
  uint32_t buffer = 0;             ///< what reads memory
  Access access;                   ///< what reads memory, position
  std::string name;                ///< of the graph's value that it is, without "%"; empty for a step on the way
};

struct Store { uint32_t buffer = 0; Access access; TermId term = 0; ir::DType memory = ir::DType::f32; };

/// Memory that a kernel reads or writes. Reads come first.
struct Buffer {
  ir::ValueId value = ir::kNoValue;   ///< of the graph
  std::string name;
  ir::DType dtype = ir::DType::f32;
  bool is_written = false;
};

/// `rows` x `inner` elements. A pointwise kernel reduces nothing; a row kernel reduces over the inner elements of a row, a column kernel over rows.
enum class Form : uint8_t { pointwise, rows, columns };
std::string_view form_name(Form);

struct Kernel {
  std::string name;                 ///< "k3": the call in the fused graph is native.k3
  Form form = Form::pointwise;
  ir::Device device;                ///< of all its buffers
  bool is_epilogue = false;         ///< pointwise, computed tile by tile behind a product: rows and columns are those of its result
  std::vector<int64_t> sizes;       ///< of the space, outermost first
  bool sums_blocks = false;         ///< rows: terms of level column are sums over the rows of a block, which is the last dimension but one. A unit is a block
  int64_t scan_rows = 0;            ///< columns: nothing is reduced, and scans go down so many rows at a time. A unit is some columns of such a piece
  size_t inner_dims = 0;            ///< how many of them, from the end, make up a row's elements; 1 or more
  std::vector<Buffer> buffers;
  std::vector<Term> terms;          ///< operands before users
  std::vector<Store> stores;
  std::vector<std::string> comment; ///< the user's lines and the operators
  bool is_general = false;          ///< its text serves every size: sizes, strides and offsets are arguments
  bool has_fixed_inner = false;     ///< but the innermost size is the same at all of them

  /// Whether it has `index` terms. Then it gets an address behind its buffers and the sizes: of an int that is set to 1 when an index is out of range.
  /// Nothing that it stored counts then; whoever called it runs the operators, which raise what they raise.
  bool checks_indices() const;
  int64_t rows() const;
  int64_t inner() const;
};

/// One line a term: the loop form as people read it.
std::string print(const Kernel&);

}  // namespace cutaway::codegen
