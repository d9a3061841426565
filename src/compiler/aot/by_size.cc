#include "compiler/aot/by_size.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace cutaway::aot {
namespace {

using Values = std::vector<c10::IValue>;
constexpr size_t kMostSymbolic = 4, kMostBySize = 64;

template <class T> void add(std::string& key, const T& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); }
void add_value(std::string& key, const c10::IValue& v) {
  if (v.isTensor()) {
    const at::Tensor& t = v.toTensor();
    key += 't';
    add(key, t.dim());
    for (const int64_t n : t.sizes()) add(key, n);
    for (const int64_t n : t.strides()) add(key, n);
  } else if (v.isInt()) {
    key += 'i';
    add(key, v.toInt());
  } else if (v.isDouble()) {
    key += 'd';
    add(key, v.toDouble());
  } else if (v.isBool()) {
    key += v.toBool() ? 'y' : 'n';
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(v.isNone(), "a graph of sizes takes tensors and numbers, not a ", v.tagKind());
    key += '-';
  }
}

/// What the graph's inputs are: the user's tensors, and what was lifted.
Values inputs_of(const BySize::Recorded& recorded, const Values& tensors) {
  Values out;
  size_t user = 0, lifted = 0;
  for (const ir::Input& input : recorded.graph.inputs) {
    const bool is_user = input.kind == ir::InputKind::user;
    const Values& from = is_user ? tensors : recorded.lifted;
    size_t& at = is_user ? user : lifted;
    TORCH_INTERNAL_ASSERT(at < from.size(), "a recording has other inputs than its program");
    out.push_back(from[at++]);
  }
  return out;
}

}  // namespace

BySize::BySize(Program program, FunctionOptions options) : program_(std::move(program)), options_(std::move(options)), static_because_(program_.static_because) {}

std::string BySize::static_because() const {
  const std::lock_guard lock(mutex_);
  return static_because_;
}
std::vector<std::shared_ptr<Specialized>> BySize::symbolic() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Specialized>> out;
  for (const auto& e : symbolic_) out.push_back(e->function);
  return out;
}
size_t BySize::count_by_size() const {
  const std::lock_guard lock(mutex_);
  return by_size_.size();
}

std::shared_ptr<const BySize::Entry> BySize::make_entry(Recorded recorded, std::string kind, std::vector<int64_t> numbers) const {
  auto function = std::make_shared<Specialized>(recorded.graph, options_);
  return std::make_shared<const Entry>(Entry{std::move(recorded), std::move(function), std::move(kind), std::move(numbers)});
}

std::shared_ptr<const BySize::Entry> BySize::find_symbolic(const Values& inputs, const Values& tensors, const std::string& kind) {
  std::vector<int64_t> numbers;
  for (const Symbol& s : program_.symbols) numbers.push_back(inputs.at(s.input).toTensor().size(static_cast<int64_t>(s.dimension)));
  std::vector<std::shared_ptr<const Entry>> known;
  {
    const std::lock_guard lock(mutex_);
    if (!static_because_.empty()) return nullptr;
    known = symbolic_;
  }
  for (const auto& e : known) {
    const auto stays = [&](size_t s) { return e->numbers[s] == numbers[s]; };
    if (e->kind == kind && std::ranges::all_of(e->recorded.statics, stays) && e->recorded.guards->check(inputs_of(e->recorded, tensors)).empty()) return e;
  }
  if (known.size() >= kMostSymbolic) return nullptr;
  auto recorded = program_.record_symbolic(inputs, numbers);
  if (!recorded.ok()) {
    const std::lock_guard lock(mutex_);
    static_because_ = recorded.error().text();
    return nullptr;
  }
  const auto made = make_entry(std::move(recorded).value(), kind, std::move(numbers));
  const std::lock_guard lock(mutex_);
  symbolic_.push_back(made);
  return made;
}

std::shared_ptr<const BySize::Entry> BySize::find(const Values& inputs, const Values& tensors) {
  std::string kind(1, at::GradMode::is_enabled() ? 'g' : '-');
  for (const c10::IValue& t : tensors) kind += t.toTensor().requires_grad() ? 'g' : '-';
  for (const size_t i : program_.read) add_value(kind, inputs.at(i));
  if (auto found = find_symbolic(inputs, tensors, kind)) return found;
  std::string key = kind;
  for (const c10::IValue& v : inputs) add_value(key, v);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = by_size_.find(key); known != by_size_.end()) return known->second;
    if (by_size_.size() >= kMostBySize) return nullptr;
  }
  auto recorded = program_.record(inputs);
  TORCH_CHECK_NOT_IMPLEMENTED(recorded.ok(), recorded.error().text());
  const auto made = make_entry(std::move(recorded).value(), std::move(kind), {});
  const std::lock_guard lock(mutex_);
  return by_size_.try_emplace(std::move(key), made).first->second;
}

std::optional<Values> BySize::run(Values& given) {
  Values inputs = given;
  for (const size_t i : program_.read) inputs.at(i) = inputs[i].toTensor().item<double>();
  Values tensors;
  for (const c10::IValue& v : inputs)
    if (v.isTensor()) tensors.push_back(v);
  const auto found = find(inputs, tensors);
  if (!found) return std::nullopt;
  Values values = inputs_of(found->recorded, tensors);
  given.clear();   // the run holds the only references
  inputs.clear();
  tensors.clear();
  return found->function->run(values);
}

}  // namespace cutaway::aot
