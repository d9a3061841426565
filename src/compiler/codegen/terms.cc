#include "compiler/codegen/terms.h"

#include <bit>
#include <cmath>

namespace cutaway::codegen {

std::optional<Held> held_for(ir::DType t) {
  using ir::DType;
  switch (t) {
    case DType::f32: case DType::bf16: case DType::f16: return Held::f32;
    case DType::f64: return Held::f64;
    case DType::i64: return Held::i64;
    case DType::i32: case DType::i16: case DType::i8: case DType::u8: return Held::i32;
    case DType::boolean: return Held::mask;
    default: return std::nullopt;
  }
}

TermId Terms::add(Term t) {
  Key key{t.op, t.held, t.level, t.operands, std::bit_cast<int64_t>(t.number), t.integer, t.memory, t.buffer, t.access.strides, t.access.offset, t.is_size};
  const auto [it, is_new] = known_.try_emplace(std::move(key), static_cast<TermId>(terms_.size()));
  if (is_new) terms_.push_back(std::move(t));
  return it->second;
}

namespace {

/// One over a power of two is a number: to multiply by it gives the quotient's bits, and costs less.
bool is_power_of_two(const Term& t) {
  if (t.op != Op::constant || t.is_size || !is_float(t.held)) return false;
  int exponent = 0;
  return std::isfinite(t.number) && std::abs(std::frexp(t.number, &exponent)) == 0.5 && exponent > -125 && exponent < 126;
}

}  // namespace

TermId Terms::make(Op op, Held held, std::vector<TermId> operands) {
  if (op == Op::div && is_power_of_two(terms_[operands[1]])) return make(Op::mul, held, {operands[0], number(1 / terms_[operands[1]].number, held)});
  Term t;
  t.op = op;
  t.held = held;
  t.level = Level::row;   // of constants alone: known once a row, and before
  for (TermId o : operands)
    if (terms_[o].level != Level::row) t.level = terms_[o].level;
  t.operands = std::move(operands);
  return add(std::move(t));
}

TermId Terms::access(Op op, Held held, uint32_t buffer, ir::DType memory, Access access, Level level, std::vector<TermId> operands) {
  Term t;
  t.op = op;
  t.held = held;
  t.level = level;
  for (TermId o : operands)
    if (terms_[o].level != Level::row) t.level = terms_[o].level;
  t.memory = memory;
  t.buffer = buffer;
  t.access = std::move(access);
  t.operands = std::move(operands);
  return add(std::move(t));
}

TermId Terms::index(TermId of, int64_t size, bool is_wrapped) {
  Term t;
  t.op = is_wrapped ? Op::index_wrapped : Op::index;
  t.held = Held::i64;
  t.level = terms_[of].level;
  t.integer = size;
  t.operands = {of};
  return add(std::move(t));
}

TermId Terms::number(double value, Held held) {
  if (!is_float(held)) return integer(static_cast<int64_t>(value), held);
  Term t;
  t.held = held;
  t.level = Level::row;
  t.number = held == Held::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  return add(std::move(t));
}

TermId Terms::integer(int64_t value, Held held) {
  if (is_float(held)) return number(static_cast<double>(value), held);
  Term t;
  t.held = held;
  t.level = Level::row;
  t.integer = held == Held::mask ? value != 0 : held == Held::i32 ? static_cast<int32_t>(value) : value;
  return add(std::move(t));
}

TermId Terms::size(double value, Held held) {
  if (!is_float(held)) return size(static_cast<int64_t>(value), held);
  Term t;
  t.held = held;
  t.level = Level::row;
  t.number = held == Held::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  t.is_size = true;
  return add(std::move(t));
}

TermId Terms::size(int64_t value, Held held) {
  if (is_float(held)) return size(static_cast<double>(value), held);
  if (held == Held::mask) return integer(value, held);
  Term t;
  t.held = held;
  t.level = Level::row;
  t.integer = held == Held::i32 ? static_cast<int32_t>(value) : value;
  t.is_size = true;
  return add(std::move(t));
}

TermId Terms::cast(TermId id, Held held) {
  const Term& from = terms_[id];
  if (from.held == held) return id;
  if (from.op == Op::constant && !from.is_size) {
    if (is_float(from.held)) return held == Held::mask ? truth(from.number != 0) : is_float(held) ? number(from.number, held) : make(Op::cast, held, {id});
    return integer(from.integer, held);
  }
  return make(Op::cast, held, {id});
}

TermId Terms::rounded(TermId id, ir::DType memory) {
  if (memory != ir::DType::bf16 && memory != ir::DType::f16) return id;
  const Term& from = terms_[id];
  if ((from.op == Op::load || from.op == Op::rounded) && from.memory == memory) return id;   // a scan keeps more than its dtype
  Term t;
  t.op = Op::rounded;
  t.held = from.held;
  t.level = from.level;
  t.memory = memory;
  t.operands = {id};
  return add(std::move(t));
}

TermId Terms::scan(Op op, TermId operand, ir::DType memory) {
  Term t;
  t.op = op;
  t.held = terms_[operand].held;
  t.memory = memory;
  t.operands = {operand};
  return add(std::move(t));
}

TermId Terms::reduce(Op op, TermId operand, Level level) {
  Term t;
  t.op = op;
  t.held = terms_[operand].held;
  t.level = level;
  t.operands = {operand};
  return add(std::move(t));
}

}  // namespace cutaway::codegen
