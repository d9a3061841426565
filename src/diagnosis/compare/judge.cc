#include "diagnosis/compare/judge.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "core/tensor/make.h"
#include "diagnosis/compare/same_values.h"
#include "diagnosis/compare/wording.h"

namespace cutaway::compare {
namespace {

using c10::IValue;
using exec::RunResults;

/// One value that a run left behind.
struct Leaf {
  IValue value;
  Aspect aspect;
  std::string name;
};

void flatten(const IValue& v, Aspect aspect, const std::string& name, std::vector<Leaf>& out) {
  if (!v.isList() && !v.isTuple()) return out.push_back({v, aspect, name});
  const auto parts = v.isTuple() ? v.toTupleRef().elements().vec() : v.toListRef().vec();
  for (size_t i = 0; i < parts.size(); ++i) flatten(parts[i], aspect, path_item(name, static_cast<int64_t>(i)), out);
}

std::string of_input(size_t i, const std::vector<std::string>& names) { return i < names.size() ? "%" + names[i] : "input " + std::to_string(i); }

/// In a fixed order, which decides what a failure is named after: outputs, gradients, inputs.
std::vector<Leaf> leaves_of(const RunResults& run, const std::vector<std::string>& names) {
  std::vector<Leaf> out;
  for (size_t i = 0; i < run.outputs.size(); ++i) flatten(run.outputs[i], Aspect::values, "output " + std::to_string(i), out);
  for (size_t i = 0; i < run.input_gradients.size(); ++i) out.push_back({run.input_gradients[i], Aspect::gradients, "gradient of " + of_input(run.gradient_of[i], names)});
  for (size_t i = 0; i < run.inputs_after.size(); ++i) out.push_back({run.inputs_after[i], Aspect::inputs, of_input(run.input_of[i], names) + " after the run"});
  return out;
}

std::vector<std::pair<at::Tensor, std::string>> output_tensors(const RunResults& run) {
  std::vector<Leaf> leaves;
  for (size_t i = 0; i < run.outputs.size(); ++i) flatten(run.outputs[i], Aspect::values, "output " + std::to_string(i), leaves);
  std::vector<std::pair<at::Tensor, std::string>> out;
  for (Leaf& l : leaves)
    if (l.value.isTensor() && l.value.toTensor().defined()) out.emplace_back(l.value.toTensor(), std::move(l.name));
  return out;
}

Options options_of(const JudgeRules& rules) {
  Options o;
  o.rules = Rules::cutaway;
  o.tol = rules.tolerance;
  o.ignore_non_fp = rules.ignore_non_fp;
  return o;
}

Verdict wrong(Aspect aspect, std::string path, std::string reason) {
  Verdict v;
  v.outcome = Outcome::wrong;
  v.aspect = aspect;
  v.path = std::move(path);
  v.reason = std::move(reason);
  return v;
}

// --- what is seen of a tensor besides its numbers ---

/// A dimension of one element has any stride.
bool has_same_strides(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0 || a.layout() != at::kStrided || b.layout() != at::kStrided) return true;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
  return true;
}

const void* memory_of(const at::Tensor& t) {
  if (!t.has_storage() || t.numel() == 0 || t.storage().nbytes() == 0) return nullptr;
  return t.storage().unsafeGetStorageImpl();
}

/// "input 0, output 1": what an output shares memory with, of the inputs and of the outputs before it.
std::string shared_with(const RunResults& run, const std::vector<std::pair<at::Tensor, std::string>>& outputs, size_t position, const std::vector<std::string>& names) {
  const void* memory = memory_of(outputs[position].first);
  std::string out;
  const auto add = [&](const std::string& name) { out += (out.empty() ? "" : ", ") + name; };
  if (!memory) return out;
  for (size_t i = 0; i < run.inputs_after.size(); ++i)
    if (memory_of(run.inputs_after[i]) == memory) add(of_input(run.input_of[i], names));
  for (size_t i = 0; i < position; ++i)
    if (memory_of(outputs[i].first) == memory) add(outputs[i].second);
  return out;
}

void compare_layout(const RunResults& reference, const RunResults& result, const std::vector<std::string>& names, Gathering& found) {
  const auto a = output_tensors(reference), b = output_tensors(result);
  if (a.size() != b.size()) return;   // said already
  for (size_t i = 0; i < a.size(); ++i) {
    const auto& [x, name] = a[i];
    const at::Tensor& y = b[i].first;
    if (x.sizes() != y.sizes() || x.scalar_type() != y.scalar_type()) continue;   // said already
    if (!has_same_strides(x, y))
      found.add(wrong(Aspect::strides, name, "other strides: the reference has " + index_text(x.strides().vec()) + ", the result " + index_text(y.strides().vec())));
    if (reference.ran_backward && x.requires_grad() != y.requires_grad())
      found.add(wrong(Aspect::history, name, std::string("the reference requires a gradient") + (x.requires_grad() ? ", the result does not" : " no more than a constant does, the result does")));
    const std::string shared_x = shared_with(reference, a, i, names), shared_y = shared_with(result, b, i, names);
    const auto said = [](const std::string& s) { return s.empty() ? std::string("with nothing") : "with " + s; };
    if (shared_x != shared_y) found.add(wrong(Aspect::aliasing, name, "the reference shares memory " + said(shared_x) + ", the result " + said(shared_y)));
  }
}

/// `fp64` is of use where it has the same leaves.
Verdict compare_leaf(const Leaf& a, const Leaf& b, const std::vector<Leaf>& fp64, size_t i, size_t count, const Options& options) {
  const std::vector<IValue> exact = fp64.size() == count ? std::vector<IValue>{fp64[i].value} : std::vector<IValue>{};
  Verdict v = same_values({a.value}, {b.value}, exact, options, {a.name});
  v.parts.clear();
  v.leaves = 1;
  if (v.aspect == Aspect::values) v.aspect = a.aspect;
  return v;
}

}  // namespace

Verdict compare_runs(const RunResults& reference, const RunResults& result, const RunResults* fp64, const JudgeRules& rules, const std::vector<std::string>& names) {
  const Options options = options_of(rules);
  const std::vector<Leaf> a = leaves_of(reference, names), b = leaves_of(result, names), f = fp64 ? leaves_of(*fp64, names) : std::vector<Leaf>();
  Gathering found;
  const auto number = [](const RunResults& run) { return "outputs: " + std::to_string(run.outputs.size()); };
  if (reference.outputs.size() != result.outputs.size() || a.size() != b.size())
    found.add(wrong(Aspect::structure, "outputs", "another number of values: the reference has " + std::to_string(a.size()) + " (" + number(reference) + "), the result " + std::to_string(b.size()) + " (" + number(result) + ")"));
  else
    for (size_t i = 0; i < a.size(); ++i) found.add(compare_leaf(a[i], b[i], f, i, a.size(), options));
  if (rules.sees_layout) compare_layout(reference, result, names, found);
  return std::move(found).finish("");
}

Judge::Judge(Eager eager, const std::vector<IValue>& inputs, const std::function<RunResults()>& fp64, JudgeRules rules, std::vector<std::string> names)
    : run_(std::move(eager)), inputs_(inputs), rules_(rules), names_(std::move(names)) {
  const auto start = std::chrono::steady_clock::now();
  eager_ = run_(inputs_);
  eager_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!fp64) return;
  try {
    fp64_ = fp64();
  } catch (const std::exception& e) {
    fp64_problem_ = e.what();
  }
}

Verdict Judge::repeat_eager() const { return compare_runs(eager_, run_(inputs_), nullptr, rules_, names_); }

Verdict Judge::judge(const RunResults& result) const {
  Verdict v = compare_runs(eager_, result, fp64(), rules_, names_);
  return rules_.is_strict || is_same(v.outcome) ? v : excuse(std::move(v), result);
}

void Judge::Distance::raise_to(const Distance& o) {
  rms = std::max(rms, o.rms);
  largest = std::max(largest, o.largest);
  places = std::max(places, o.places);
}

std::optional<Judge::Distance> Judge::distance(const IValue& from, const IValue& to, const JudgeRules& rules) {
  if (!from.isTensor() || !to.isTensor() || !from.toTensor().defined() || !to.toTensor().defined()) return std::nullopt;
  const at::Tensor& a = from.toTensor();
  const bool has_digits = a.is_floating_point() || a.is_complex();
  const at::Tensor wide = has_digits ? a.detach().to(a.is_complex() ? at::kComplexDouble : at::kDouble) : at::Tensor();   // then its RMSE is the distance
  const Verdict v = same_tensors(a, to.toTensor(), wide, options_of(rules));
  if (!v.stats) return v.outcome == Outcome::equal ? std::optional<Distance>(Distance{}) : std::nullopt;
  if (!has_digits) return Distance{0, 0, v.stats->unequal};
  return Distance{v.stats->rmse_result, v.stats->max_abs, v.stats->other_specials};
}

/// One run at a time, and of each only how far it went: inputs may be half a gigabyte, and a run holds them too.
const std::vector<Judge::Distance>& Judge::moves() const {
  constexpr uint64_t kRuns = 4;
  if (moves_) return *moves_;
  const std::vector<Leaf> a = leaves_of(eager_, names_);
  moves_.emplace(a.size());
  for (uint64_t round = 0; round < kRuns; ++round) try {
      const RunResults moved = run_(tensor::nudge_last_bits(inputs_, round));
      const std::vector<Leaf> c = leaves_of(moved, names_);
      for (size_t i = 0; c.size() == a.size() && i < a.size(); ++i)
        if (auto d = distance(a[i].value, c[i].value, rules_)) (*moves_)[i].raise_to(*d);
    } catch (const std::exception&) {   // then that one says nothing
    }
  return *moves_;
}

Verdict Judge::excuse(Verdict v, const RunResults& result) const {
  constexpr double kSlack = 3, kWorstSlack = 10;   // a compiler rounds at every operator, not at the inputs alone
  const auto is_about_numbers = [](const Verdict& part) { return is_same(part.outcome) || (part.outcome == Outcome::wrong && part.stats); };
  if (!std::all_of(v.parts.begin(), v.parts.end(), is_about_numbers)) return v;
  const std::vector<Leaf> a = leaves_of(eager_, names_), b = leaves_of(result, names_);
  Gathering found;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto part = std::find_if(v.parts.begin(), v.parts.end(), [&](const Verdict& p) { return p.path == a[i].name; });
    if (part == v.parts.end()) {   // equal
      found.add(Verdict{});
      continue;
    }
    if (is_same(part->outcome)) {
      found.add(*part);
      continue;
    }
    const std::optional<Distance> off = distance(a[i].value, b[i].value, rules_);
    const Distance& moves = this->moves()[i];
    if (!off || !(off->rms <= kSlack * moves.rms) || !(off->largest <= kWorstSlack * moves.largest) || off->places > kSlack * static_cast<double>(moves.places)) {
      Verdict unexcused = *part;
      found.add(std::move(unexcused));
      continue;
    }
    Verdict excused = *part;
    excused.outcome = Outcome::ill_conditioned;
    excused.reason += off->places > 0 && off->rms == 0
                          ? "; but the last bits of the inputs decide over " + count_text(moves.places) + " places of the reference itself"
                          : "; but the result is off by " + number_text(off->rms) + " (RMS), and the last bits of the inputs move the reference itself by " + number_text(moves.rms);
    found.add(std::move(excused));
  }
  return std::move(found).finish("");
}

}  // namespace cutaway::compare
