// Types of values: TensorType (dtype, sizes, strides, device, requires_grad) and the few types that are not tensors.
// Sizes may be symbolic. Names of dtypes and layouts in the text form are defined here and nowhere else.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace cutaway::ir {

/// Every dtype of torch 2.13. The values are persisted: do not renumber. They equal c10::ScalarType's.
enum class DType : uint8_t {
  u8 = 0, i8 = 1, i16 = 2, i32 = 3, i64 = 4, f16 = 5, f32 = 6, f64 = 7, c32 = 8, c64 = 9, c128 = 10, boolean = 11,
  qi8 = 12, qu8 = 13, qi32 = 14, bf16 = 15, qu4x2 = 16, qu2x4 = 17, bits1x8 = 18, bits2x4 = 19, bits4x2 = 20,
  bits8 = 21, bits16 = 22, f8e5m2 = 23, f8e4m3fn = 24, f8e5m2fnuz = 25, f8e4m3fnuz = 26, u16 = 27, u32 = 28, u64 = 29,
  u1 = 30, u2 = 31, u3 = 32, u4 = 33, u5 = 34, u6 = 35, u7 = 36, i1 = 37, i2 = 38, i3 = 39, i4 = 40, i5 = 41, i6 = 42,
  i7 = 43, f8e8m0fnu = 44, f4e2m1fnx2 = 45,
};
inline constexpr int kDTypeCount = 46;
/// "f32", "bool", "bf16", … as in the text form.
std::string_view dtype_name(DType);
std::optional<DType> dtype_from_name(std::string_view);
/// Bytes of one element in memory.
int64_t dtype_bytes(DType);
bool is_floating(DType);   ///< real floating point, float8 included
bool is_complex(DType);
bool is_quantized(DType);
bool is_integral(DType);   ///< bool not included

/// Values equal c10::Layout's; persisted by name only.
enum class Layout : uint8_t { strided = 0, sparse_coo = 1, sparse_csr = 2, mkldnn = 3, sparse_csc = 4, sparse_bsr = 5, sparse_bsc = 6, jagged = 7 };
std::string_view layout_name(Layout);
std::optional<Layout> layout_from_name(std::string_view);

/// Values equal c10::MemoryFormat's; persisted by name only.
enum class MemoryFormat : uint8_t { contiguous_format = 0, preserve_format = 1, channels_last = 2, channels_last_3d = 3 };
std::string_view memory_format_name(MemoryFormat);
std::optional<MemoryFormat> memory_format_from_name(std::string_view);

/// "cpu", "cuda:0": torch's own names. Index -1 means none was given.
struct Device {
  std::string type = "cpu";
  int index = -1;
  bool operator==(const Device&) const = default;
  /// torch keeps indices in a signed byte.
  static constexpr int kMaxIndex = 127;
  std::string text() const;
  static base::Result<Device> parse(std::string_view);
};

/// An integer expression over named symbols, kept as a small immutable tree.
struct SymExpr {
  enum class Kind : uint8_t { constant, symbol, add, mul, floor_div, mod, min, max };
  Kind kind = Kind::constant;
  int64_t constant = 0;
  std::string symbol;                                      ///< for Kind::symbol: "s0"
  std::vector<std::shared_ptr<const SymExpr>> operands;    ///< two or more for add, mul, min, max; two for the others
};

/// A size, a stride or a symbolic integer argument: a number, or an expression.
class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}
  explicit Dim(std::shared_ptr<const SymExpr> expr);
  static Dim symbol(std::string name);
  bool is_symbolic() const { return expr_ != nullptr; }
  /// Only for a number.
  int64_t value() const { assert(!expr_); return value_; }
  std::optional<int64_t> number() const { return expr_ ? std::nullopt : std::optional(value_); }
  const std::shared_ptr<const SymExpr>& expr() const { return expr_; }
  bool operator==(const Dim&) const;
  /// "64", "s0", "s0*2 + 1", "(s0 + 1)//2", "mod(s0, 8)", "max(s0, 4)". Reads back equal.
  std::string text() const;

 private:
  int64_t value_ = 0;
  std::shared_ptr<const SymExpr> expr_;
};

/// What is known of a tensor without its data. The memory format is implied by the strides.
struct TensorType {
  DType dtype = DType::f32;
  std::vector<Dim> sizes;
  std::vector<Dim> strides;       ///< as many as sizes
  Device device;
  bool requires_grad = false;
  Layout layout = Layout::strided; ///< only `strided` is executed; others can be written down and are refused by name
  bool operator==(const TensorType&) const = default;
  bool is_contiguous() const;      ///< strides are those of contiguous_strides(sizes), torch's rule for sizes 0 and 1 included
  std::optional<int64_t> numel() const;   ///< none when a size is symbolic or the product does not fit
};
/// Row-major strides; a size of 0 counts as 1. With a symbolic size the strides are products, the number last: "s1*4".
std::vector<Dim> contiguous_strides(const std::vector<Dim>& sizes);

/// The type of a value: a tensor, or one of torch's other schema kinds.
struct Type {
  enum class Kind : uint8_t {
    tensor, none, integer, floating, boolean, complex, string, device, dtype,
    opaque   ///< anything else (a generator, a script object): carried by name, never executed
  };
  Kind kind = Kind::tensor;
  TensorType tensor;   ///< for Kind::tensor
  bool operator==(const Type&) const;
  static Type of(TensorType t) { return {Kind::tensor, std::move(t)}; }
  static Type of(Kind kind) { return {kind, {}}; }
  bool is_tensor() const { return kind == Kind::tensor; }
  /// "f32[2, 64]", "f32[2, 64] strides(1, 2) cuda:0 grad", "int", "none".
  std::string text() const;
};
/// "int", "float", "none", … as in the text form; a tensor's text starts with its dtype instead.
std::string_view type_kind_name(Type::Kind);

}  // namespace cutaway::ir
