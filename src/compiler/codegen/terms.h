// Making terms of a kernel: equal ones are made once, constants are folded where this is exact.
// Main type: Terms.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

/// What a dtype is held in; none where kernels do not take it.
std::optional<Held> held_for(ir::DType);
inline bool is_float(Held h) { return h == Held::f32 || h == Held::f64; }
inline bool is_integer(Held h) { return h == Held::i32 || h == Held::i64; }

class Terms {
 public:
  explicit Terms(std::vector<Term>& into) : terms_(into) {}

  const Term& operator[](TermId id) const { return terms_[id]; }
  /// The level is that of its operands: an element's where one of them is.
  TermId make(Op, Held, std::vector<TermId> operands);
  /// A load of any kind, or a position. The level is the access's, or its operand's where that is an element's.
  TermId access(Op, Held, uint32_t buffer, ir::DType, Access, Level, std::vector<TermId> operands);
  TermId index(TermId of, int64_t size, bool is_wrapped);
  TermId number(double, Held);
  TermId integer(int64_t, Held);
  /// A number that is made of sizes: a constant of its own, which texts that serve every size take as an argument.
  TermId size(double, Held);
  TermId size(int64_t, Held);
  TermId truth(bool value) { return integer(value, Held::mask); }
  /// As ATen converts: a float to an integer is cut off, anything to a mask is "not 0".
  TermId cast(TermId, Held);
  /// To the precision of half or bfloat16; other dtypes give the term itself.
  TermId rounded(TermId, ir::DType);
  TermId reduce(Op, TermId, Level);
  /// Of a result of this dtype.
  TermId scan(Op, TermId, ir::DType);
  void name(TermId id, const std::string& name) { if (terms_[id].name.empty() && terms_[id].op != Op::load && terms_[id].op != Op::constant) terms_[id].name = name; }

 private:
  TermId add(Term);
  using Key = std::tuple<Op, Held, Level, std::vector<TermId>, int64_t, int64_t, ir::DType, uint32_t, std::vector<int64_t>, int64_t, bool>;
  std::vector<Term>& terms_;
  std::map<Key, TermId> known_;
};

}  // namespace cutaway::codegen
