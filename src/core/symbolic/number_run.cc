#include "core/symbolic/number_run.h"

#include <algorithm>
#include <bit>

namespace cutaway::symbolic {

std::optional<NumberRun> NumberRun::make(const NumberProgram& program, const std::vector<std::string>& names, std::vector<size_t> floats) {
  NumberRun out;
  out.floats_ = std::move(floats);
  bool good = true;
  const auto operand = [&](const NumberTerm& t) {
    Operand o{t.from, t.constant, std::nullopt, t.index};
    if (t.from == NumberTerm::From::integer) {
      o.integer = Expression::make(t.integer, names);
      good = good && o.integer.has_value();
    }
    good = good && (t.from != NumberTerm::From::symbol || t.index < out.floats_.size());
    return o;
  };
  const auto step = [&](const NumberProgram::Step& s) { return Step{s.kind, operand(s.left), operand(s.right)}; };
  for (const auto& s : program.steps) out.steps_.push_back(step(s));
  for (const auto& q : program.guards) out.questions_.push_back({step(q.asked), q.holds});
  for (const auto& k : program.kept) out.kept_.push_back(operand(k));
  if (!good) return std::nullopt;
  return out;
}

bool NumberRun::always_holds() const {
  using Kind = NumberStep::Kind;
  const auto is_integer = [](const Operand& o) { return o.from == NumberTerm::From::integer; };
  return questions_.empty() && std::ranges::all_of(steps_, [&](const Step& s) {
    return (s.kind == Kind::add || s.kind == Kind::sub || s.kind == Kind::mul || s.kind == Kind::neg || s.kind == Kind::abs || s.kind == Kind::to_float) && !is_integer(s.left) && !is_integer(s.right);
  });
}

std::optional<Number> NumberRun::value(const Operand& o, std::span<const int64_t> words, const std::vector<Number>& done) const {
  switch (o.from) {
    case NumberTerm::From::constant: return o.constant;
    case NumberTerm::From::symbol: return Number::of(std::bit_cast<double>(words[floats_[o.index]]));
    case NumberTerm::From::step: return done[o.index];
    case NumberTerm::From::integer:
      if (const auto n = o.integer->at(words)) return Number::of(*n);
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::vector<Number>> NumberRun::run(std::span<const int64_t> words) const {
  std::vector<Number> done;
  done.reserve(steps_.size());
  for (const Step& s : steps_) {
    const auto left = value(s.left, words, done), right = value(s.right, words, done);
    if (!left || !right) return std::nullopt;
    const auto r = compute_number(s.kind, *left, *right);
    if (!r) return std::nullopt;
    done.push_back(Number::of(*r));
  }
  return done;
}

bool NumberRun::holds(std::span<const int64_t> words) const {
  const auto done = run(words);
  if (!done) return false;
  for (const Question& q : questions_) {
    const auto left = value(q.asked.left, words, *done), right = value(q.asked.right, words, *done);
    if (!left || !right || answer(q.asked.kind, *left, *right) != q.holds) return false;
  }
  return true;
}

std::optional<Number> NumberRun::kept(size_t index, std::span<const int64_t> words) const {
  const auto done = run(words);
  if (!done) return std::nullopt;
  return value(kept_[index], words, *done);
}

}  // namespace cutaway::symbolic
