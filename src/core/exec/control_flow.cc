#include "core/exec/control_flow.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <charconv>
#include <deque>
#include <mutex>
#include <optional>

namespace cutaway::exec {
namespace {

std::mutex& lock() {
  static std::mutex m;
  return m;
}
std::deque<Program>& programs() {   // addresses stay
  static auto* all = new std::deque<Program>;
  return *all;
}
const Program& program(std::string_view name) {
  const std::scoped_lock guard(lock());
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  TORCH_CHECK(error == std::errc() && end == name.data() + name.size() && number < programs().size(), "there is no program ", name, " in this process");
  return programs()[number];
}
std::optional<std::vector<at::Tensor>>& given() {
  static thread_local std::optional<std::vector<at::Tensor>> results;
  return results;
}

std::vector<at::Tensor> run(std::string_view name, at::TensorList first, at::TensorList rest = {}) {
  std::vector<c10::IValue> inputs(first.begin(), first.end());
  inputs.insert(inputs.end(), rest.begin(), rest.end());
  std::vector<at::Tensor> outputs;
  for (const c10::IValue& v : program(name).run(inputs)) outputs.push_back(v.toTensor());
  return outputs;
}

// To autograd torch's operators are one function each: where anything that goes in requires grad, every result does that can, and what had no part in it gets zeros.
struct Whole : torch::autograd::Function<Whole> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx, size_t results, at::TensorList all) {
    torch::autograd::variable_list given, rest;
    for (size_t i = 0; i < all.size(); ++i) (i < results ? given : rest).push_back(all[i].detach());
    ctx->save_for_backward(rest);
    return given;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {
    grads.insert(grads.begin(), at::Tensor());   // the number of results
    for (const at::Tensor& t : ctx->get_saved_variables()) grads.push_back(at::zeros_like(t));
    return grads;
  }
};
std::vector<at::Tensor> as_whole(std::vector<at::Tensor> results, std::initializer_list<at::TensorList> inputs) {
  if (!at::GradMode::is_enabled()) return results;
  const auto can = [](const at::Tensor& t) { return t.is_floating_point() || t.is_complex(); };
  std::vector<at::Tensor> all, needing;
  for (const at::TensorList list : inputs)
    for (const at::Tensor& t : list) if (t.requires_grad()) needing.push_back(t);
  if (needing.empty()) return results;
  for (const at::Tensor& t : results) if (can(t)) all.push_back(t);
  const size_t count = all.size();
  if (!count) return results;
  all.insert(all.end(), needing.begin(), needing.end());
  const auto made = Whole::apply(count, at::TensorList(all));
  size_t next = 0;
  for (at::Tensor& t : results) if (can(t)) t = made[next++];
  return results;
}

std::vector<at::Tensor> cond(const at::Tensor& predicate, std::string_view if_true, std::string_view if_false, at::TensorList for_true, at::TensorList for_false) {
  if (given()) return *given();
  return as_whole(predicate.item<bool>() ? run(if_true, for_true) : run(if_false, for_false), {for_true, for_false});
}

std::vector<at::Tensor> while_loop(std::string_view condition, std::string_view body, at::TensorList first, at::TensorList for_condition, at::TensorList for_body) {
  if (given()) return *given();
  std::vector<at::Tensor> carried = first.vec();
  bool turned = false;
  while (run(condition, carried, for_condition).at(0).item<bool>()) {
    carried = run(body, carried, for_body);
    turned = true;
  }
  if (!turned)   // what it was given is not what it gives
    for (at::Tensor& t : carried) t = t.clone();
  return as_whole(std::move(carried), {first, for_condition, for_body});
}

std::vector<at::Tensor> scan(std::string_view body, at::TensorList first, at::TensorList rows, at::TensorList for_body) {
  if (given()) return *given();
  TORCH_CHECK(!rows.empty() && rows[0].dim() && rows[0].size(0) > 0, "cutaway::scan: there are no rows");
  std::vector<at::Tensor> carried = first.vec();
  std::vector<std::vector<at::Tensor>> made;   // by result
  for (int64_t i = 0; i < rows[0].size(0); ++i) {
    std::vector<at::Tensor> inputs = std::move(carried);
    for (const at::Tensor& t : rows) inputs.push_back(t.select(0, i));
    std::vector<at::Tensor> outputs = run(body, inputs, for_body);
    carried.assign(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(first.size()));
    made.resize(outputs.size() - first.size());
    for (size_t k = 0; k < made.size(); ++k) made[k].push_back(std::move(outputs[first.size() + k]));
  }
  for (const std::vector<at::Tensor>& of_one : made) carried.push_back(at::stack(of_one).contiguous());
  return as_whole(std::move(carried), {first, rows, for_body});
}

NamedCall& named() {
  static NamedCall call = nullptr;
  return call;
}
std::vector<at::Tensor> call_named(std::string_view name, at::TensorList args) {
  if (given()) return *given();
  TORCH_CHECK(named(), "cutaway::call_named: this process has no functions by name (", name, ")");
  return named()(name, args);
}

}  // namespace

void set_named_call(NamedCall call) { named() = call; }

std::string keep_program(Program p) {
  const std::scoped_lock guard(lock());
  programs().push_back(std::move(p));
  return std::to_string(programs().size() - 1);
}

GivenResults::GivenResults(std::vector<at::Tensor> results) { given() = std::move(results); }
GivenResults::~GivenResults() { given().reset(); }

}  // namespace cutaway::exec

TORCH_LIBRARY_FRAGMENT(cutaway, m) {
  m.def("cond(Tensor predicate, str if_true, str if_false, Tensor[] for_true, Tensor[] for_false) -> Tensor[]", &cutaway::exec::cond);
  m.def("while_loop(str condition, str body, Tensor[] carried, Tensor[] for_condition, Tensor[] for_body) -> Tensor[]", &cutaway::exec::while_loop);
  m.def("scan(str body, Tensor[] carried, Tensor[] rows, Tensor[] for_body) -> Tensor[]", &cutaway::exec::scan);
  m.def("call_named(str name, Tensor[] args) -> Tensor[]", &cutaway::exec::call_named);
}
