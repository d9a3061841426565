#include "core/exec/control_flow.h"

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

std::vector<at::Tensor> cond(const at::Tensor& predicate, std::string_view if_true, std::string_view if_false, at::TensorList for_true, at::TensorList for_false) {
  if (given()) return *given();
  return predicate.item<bool>() ? run(if_true, for_true) : run(if_false, for_false);
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
  return carried;
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
  m.def("call_named(str name, Tensor[] args) -> Tensor[]", &cutaway::exec::call_named);
}
