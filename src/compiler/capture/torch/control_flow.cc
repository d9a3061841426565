// torch.cond and while_loop. Each function is interpreted under a recorder of its own and becomes a graph; tensors from outside are its inputs. The program's
// graph has one operator, which runs whichever is needed (core/exec/control_flow.h), and a Python backend gets torch's own higher-order operator over the same
// graphs. What these operators do not allow (effects, other results, aliases) ends the graph, and torch says what it has to say.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <unordered_set>

#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "core/exec/control_flow.h"
#include "core/ir/text.h"
#include "core/tensor/convert.h"
#include "core/trace/dispatch_keys.h"

namespace cutaway::capture {
namespace {

// A tensor of the same kind that no operator has made.
at::Tensor another(const at::Tensor& t) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(trace::kAboveKey);
  return t.detach();
}

// By position or by name into one row. False: a name that is not there, one that is given twice, too many.
bool arrange_arguments(const Args& args, std::initializer_list<const char*> names, std::vector<Value*>& into) {
  if (args.count > names.size()) return false;
  std::copy_n(args.positional, args.count, into.begin());
  for (size_t i = 0; i < args.keyword_count; ++i) {
    size_t n = 0;
    while (n < names.size() && PyUnicode_CompareWithASCIIString(args.keywords[i].first, names.begin()[n]) != 0) ++n;
    if (n == names.size() || into[n]) return false;
    into[n] = args.keywords[i].second;
  }
  return true;
}

bool same_kind(const at::Tensor& a, const at::Tensor& b) { return a.sizes() == b.sizes() && a.strides() == b.strides() && a.dtype() == b.dtype() && a.device() == b.device(); }

}  // namespace

struct TorchCalls::Branch {
  ir::Graph graph;
  std::vector<at::Tensor> outside;   ///< inputs of the graph
  Value* result = nullptr;
  std::vector<Value*> flat;
};

bool TorchCalls::flatten(Value* v, std::vector<Value*>& into) {
  switch (values.kind(v)) {
    case Kind::tensor: into.push_back(v); return true;
    case Kind::tuple: case Kind::list:
      if (v->type != &PyTuple_Type && v->type != &PyList_Type) return false;
      for (Value* i : values.items(v)) if (!flatten(i, into)) return false;
      return true;
    case Kind::dict:
      if (v->type != &PyDict_Type) return false;
      for (PyObject* k : mappings.keys_of(v)) if (!flatten(mappings.dict_get(v, k), into)) return false;
      return true;
    default: return false;
  }
}
Value* TorchCalls::rebuild(Value* form, const std::vector<Value*>& flat, size_t& next) {
  if (form->kind == Kind::tensor) return flat[next++];
  if (form->kind == Kind::dict) {
    Value* d = values.make_dict();
    for (PyObject* k : mappings.keys_of(form)) mappings.dict_set(d, k, rebuild(mappings.dict_get(form, k), flat, next));
    return d;
  }
  std::vector<Value*> all;
  for (Value* i : values.items(form)) all.push_back(rebuild(i, flat, next));
  return form->kind == Kind::tuple ? values.make_tuple(std::move(all)) : values.make_list(std::move(all));
}
bool TorchCalls::same_form(Value* a, Value* b) {
  if (a->kind != b->kind || a->type != b->type) return false;
  if (a->kind == Kind::tensor) return true;
  if (a->kind == Kind::dict) {
    const auto keys = mappings.keys_of(a), others = mappings.keys_of(b);
    if (keys.size() != others.size()) return false;
    for (size_t i = 0; i < keys.size(); ++i)
      if (PyObject_RichCompareBool(keys[i], others[i], Py_EQ) != 1 || !same_form(mappings.dict_get(a, keys[i]), mappings.dict_get(b, others[i]))) return false;
    return true;
  }
  if (values.items(a).size() != values.items(b).size()) return false;
  for (size_t i = 0; i < values.items(a).size(); ++i) if (!same_form(values.items(a)[i], values.items(b)[i])) return false;
  return true;
}

// Null: the function raised.
std::unique_ptr<TorchCalls::Branch> TorchCalls::record_branch(const char* what, Value* f, const std::vector<Value*>& args) {
  const auto refuse = [&](const std::string& why) { stop("control-flow", std::string(what) + " is called, and one of its functions " + why); };
  const Watch watch(*this);
  struct Leave { TensorTrace& tensors; ~Leave() { tensors.end_branch(); } } const leave{tensors};
  tensors.begin_branch();
  auto branch = std::make_unique<Branch>();
  branch->result = calls.call(f, Args(args));
  if (!branch->result) return nullptr;
  if (watch.has_changed_something()) refuse("changes something outside");
  if (watch.has_drawn_random() || watch.has_written_tensors()) refuse("writes to tensors from outside or draws random numbers");
  if (!flatten(branch->result, branch->flat)) refuse("gives something that is not a tensor, or tuples, lists and dicts of them");
  std::vector<c10::IValue> outputs;
  for (Value* v : branch->flat) outputs.emplace_back(unwrap_tensor(body<Tensor>(v).fake));
  auto graph = tensors.recorder().finish(outputs);
  if (!graph.ok()) refuse("cannot be recorded: " + graph.error().what);
  branch->graph = std::move(graph).value();
  for (ir::Input& i : branch->graph.inputs) i.kind = ir::InputKind::user;
  branch->outside = tensors.recorder().constants();
  std::unordered_set<const c10::TensorImpl*> seen;
  std::unordered_set<const c10::StorageImpl*> outside;
  for (const at::Tensor& t : branch->outside) if (t.has_storage()) outside.insert(t.storage().unsafeGetStorageImpl());
  for (const c10::IValue& o : outputs) {
    const at::Tensor& t = o.toTensor();
    if (!seen.insert(t.unsafeGetTensorImpl()).second || (t.has_storage() && !outside.insert(t.storage().unsafeGetStorageImpl()).second)) refuse("returns a tensor that shares memory with another one");
  }
  return branch;
}

Value* TorchCalls::gradient_like(Value* tensor) { return values.make_tensor(values.keep(wrap_tensor(another(unwrap_tensor(body<Tensor>(tensor).fake))))); }

void TorchCalls::require_pure(const char* id, const std::string& what, Value* f, const std::vector<Value*>& args) {
  const Watch watch(*this);
  struct Leave { TensorTrace& tensors; ~Leave() { tensors.end_branch(); } } const leave{tensors};
  tensors.begin_branch();
  const bool raises = !calls.call(f, Args(args));
  if (raises || watch.has_changed_something() || watch.has_drawn_random() || watch.has_written_tensors())
    stop(id, what + (raises ? " raises" : " does something besides giving a result") + ", and the backend may call it while it compiles");
}

// Programs and, for a backend of Python's, the graphs as text for its modules.
Value* TorchCalls::finish_control_flow(const char* name, const char* maker, const Branch& first, const Branch& second, Value* form, const std::vector<ir::Argument>& arguments,
                                       const std::function<void(const std::string&, const std::string&)>& call, const std::vector<at::Tensor>& like, const std::vector<bool>& grad) {
  auto one = exec::Program::prepare(first.graph), two = exec::Program::prepare(second.graph);
  if (!one.ok() || !two.ok()) stop("control-flow", std::string(name) + " is called, and one of its graphs is refused: " + (one.ok() ? two : one).error().what);
  const std::string a = exec::keep_program(std::move(one).value()), b = exec::keep_program(std::move(two).value());
  PyObject* callable = nullptr;
  if (options.runs_python) {
    PyObject* make = polyfill_named(maker);
    callable = PyObject_CallFunction(make, "ssi", ir::print(first.graph).c_str(), ir::print(second.graph).c_str(), static_cast<int>(c10::GradMode::is_enabled()));
    if (!callable) throw std::runtime_error(std::string("the graphs of ") + name + " cannot be modules");
    values.keep(callable);
  }
  std::vector<at::Tensor> outside = first.outside;
  outside.insert(outside.end(), second.outside.begin(), second.outside.end());
  size_t next = 0;
  return rebuild(form, finish_results(callable ? leaves.name_callable(name, callable) : std::string(name), arguments, [&] { call(a, b); }, like, grad, outside), next);
}

// One call that holds one operator, whose results the trace knows already.
std::vector<Value*> TorchCalls::finish_results(const std::string& name, std::vector<ir::Argument> arguments, const std::function<void()>& call, const std::vector<at::Tensor>& like,
                                               const std::vector<bool>& grad, const std::vector<at::Tensor>& used) {
  auto& recorder = tensors.recorder();
  std::vector<at::Tensor> results;
  for (const at::Tensor& t : like) results.push_back(another(t));
  real_errors.note_raising(name);
  recorder.begin_call(name, std::move(arguments), {}, frame_stack.location());
  PyObject* objects = values.keep(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i) PyTuple_SET_ITEM(objects, static_cast<Py_ssize_t>(i), wrap_tensor(results[i]));
  {
    const exec::GivenResults given(results);
    call();
  }
  // Fakes that stand for results which require grad get a node of autograd's.
  bool any = false;
  for (const bool g : grad) any = any || g;
  if (any && c10::GradMode::is_enabled()) {
    PyObject* without = values.keep(PyList_New(0));
    for (size_t i = 0; i < grad.size(); ++i) if (!grad[i]) PyList_Append(without, PyTuple_GET_ITEM(objects, static_cast<Py_ssize_t>(i)));
    PyObject* inputs = values.keep(PyList_New(0));
    PyList_Append(inputs, objects);
    PyList_Append(inputs, values.keep(PyList_AsTuple(without)));
    for (const at::Tensor& t : used)
      if (t.requires_grad()) PyList_Append(inputs, values.keep(wrap_tensor(t)));
    static PyObject* const attach = polyfill_named("attach_backward");
    PyObject* attached = PyObject_Call(attach, values.keep(PyList_AsTuple(inputs)), nullptr);
    if (!attached) { PyErr_Clear(); recorder.cancel_call(); stop("torch-argument", name + " returns a tensor that cannot require grad"); }
    Py_DECREF(attached);
  }
  std::vector<int32_t> returns;
  if (!results.empty()) returns.push_back(static_cast<int32_t>(results.size()));
  recorder.end_call({results.begin(), results.end()}, returns);
  std::vector<Value*> flat;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(objects); ++i) flat.push_back(values.make_tensor(PyTuple_GET_ITEM(objects, i)));
  return flat;
}

Value* TorchCalls::cond(Value*, const Args& args) {
  const auto refuse = [&](const std::string& why) { stop("control-flow", "torch.cond " + why); };
  std::vector<Value*> given(4, nullptr);
  if (!arrange_arguments(args, {"pred", "true_fn", "false_fn", "operands"}, given) || !given[0] || !given[1] || !given[2]) refuse("is called with arguments that it does not take");
  if (values.kind(given[0]) != Kind::tensor) refuse("is called with a predicate that is not a tensor");
  if (in_transform()) refuse("is called inside a function transform");
  const at::Tensor predicate = unwrap_tensor(body<Tensor>(given[0]).fake);
  if (predicate.dtype() != at::kBool || predicate.numel() != 1) refuse("is called with a predicate that is not one boolean");
  std::vector<Value*> operands, leaves;
  if (given[3]) {
    if (values.kind(given[3]) != Kind::tuple && values.kind(given[3]) != Kind::list) refuse("is called with operands that are neither a tuple nor a list");
    operands = values.items(given[3]);
    if (!flatten(given[3], leaves)) refuse("is called with operands that are not tensors");
  }
  auto if_true = record_branch("torch.cond", given[1], operands);
  auto if_false = if_true ? record_branch("torch.cond", given[2], operands) : nullptr;
  if (!if_false) return nullptr;
  if (!same_form(if_true->result, if_false->result)) refuse("has branches whose results differ in structure");
  std::vector<at::Tensor> like;
  std::vector<bool> grad;
  for (size_t i = 0; i < if_true->flat.size(); ++i) {
    const at::Tensor &a = unwrap_tensor(body<Tensor>(if_true->flat[i]).fake), &b = unwrap_tensor(body<Tensor>(if_false->flat[i]).fake);
    if (!same_kind(a, b)) refuse("has branches whose tensors differ in size, dtype or device");
    if (a.requires_grad() != b.requires_grad()) refuse("has branches of which only one returns a tensor that requires grad");
    like.push_back(a);
    grad.push_back(a.requires_grad());
  }
  if (like.empty()) refuse("has branches that return no tensors");
  auto& recorder = tensors.recorder();
  const auto tuple = [&](const std::vector<at::Tensor>& all) { ir::Tuple l; for (const at::Tensor& t : all) l.items.push_back(recorder.argument(t)); return ir::Argument(std::move(l)); };
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cutaway::cond", "").typed<std::vector<at::Tensor>(const at::Tensor&, std::string_view, std::string_view, at::TensorList, at::TensorList)>();
  return finish_control_flow("torch.cond", "cond_of", *if_true, *if_false, if_true->result, {recorder.argument(predicate), tuple(if_true->outside), tuple(if_false->outside)},
                             [&](const std::string& a, const std::string& b) { op.call(predicate, a, b, if_true->outside, if_false->outside); }, like, grad);
}

Value* TorchCalls::while_loop(Value*, const Args& args) {
  const auto refuse = [&](const std::string& why) { stop("control-flow", "while_loop " + why); };
  std::vector<Value*> given(3, nullptr);
  if (!arrange_arguments(args, {"cond_fn", "body_fn", "carried_inputs"}, given) || !given[0] || !given[1] || !given[2] || in_transform()) refuse("is called with arguments that it does not take, or inside a function transform");
  if (values.kind(given[2]) != Kind::tuple && values.kind(given[2]) != Kind::list) refuse("carries something that is neither a tuple nor a list");
  std::vector<at::Tensor> carried, inside;
  std::vector<Value*> inner;
  std::vector<bool> grad;
  for (Value* v : values.items(given[2])) {
    if (values.kind(v) != Kind::tensor) refuse("carries something that is not a tensor");
    carried.push_back(unwrap_tensor(body<Tensor>(v).fake));
    if (carried.back().requires_grad() && c10::GradMode::is_enabled()) refuse("carries a tensor that requires grad");
    inside.push_back(another(carried.back()));   // not the one that a closure may have, too
    inner.push_back(values.make_tensor(values.keep(wrap_tensor(inside.back()))));
    grad.push_back(false);
  }
  if (carried.empty()) refuse("carries nothing");
  auto condition = record_branch("while_loop", given[0], inner);
  auto turn = condition ? record_branch("while_loop", given[1], inner) : nullptr;
  if (!turn) return nullptr;
  if (condition->flat.size() != 1 || condition->result->kind != Kind::tensor) refuse("has a condition that does not return a tensor");
  const at::Tensor& question = unwrap_tensor(body<Tensor>(condition->flat[0]).fake);
  if (question.dtype() != at::kBool || question.numel() != 1) refuse("has a condition that does not return one boolean");
  if (turn->flat.size() != carried.size() || (turn->result->kind != Kind::tuple && turn->result->kind != Kind::list && turn->result->kind != Kind::tensor)) refuse("has a body whose results differ in structure from its arguments");
  for (size_t i = 0; i < carried.size(); ++i) {
    const at::Tensor& t = unwrap_tensor(body<Tensor>(turn->flat[i]).fake);
    if (!same_kind(t, carried[i]) || t.requires_grad()) refuse("has a body whose tensors differ in size, dtype or device from its arguments");
  }
  // Inputs of both graphs: what is carried first, in order, then what is from outside.
  const auto arrange = [&](Branch& b) {
    std::vector<ir::Input> inputs, rest;
    std::vector<at::Tensor> outside;
    const std::vector<ir::Input> had = b.graph.inputs;
    b.graph.inputs.clear();
    std::vector<std::optional<ir::Input>> of_carried(carried.size());
    for (size_t i = 0; i < had.size(); ++i) {
      size_t which = 0;
      while (which < inside.size() && !inside[which].is_same(b.outside[i])) ++which;
      if (which < inside.size()) of_carried[which] = had[i];
      else { rest.push_back(had[i]); outside.push_back(b.outside[i]); }
    }
    for (size_t i = 0; i < carried.size(); ++i) {
      if (of_carried[i]) b.graph.inputs.push_back(*of_carried[i]);
      else b.graph.add_input("unused" + std::to_string(i), ir::Type::of(tensor::type_of(carried[i])));
    }
    for (const ir::Input& i : rest) b.graph.inputs.push_back(i);
    b.outside = std::move(outside);
  };
  arrange(*condition);
  arrange(*turn);
  for (const Branch* b : {condition.get(), turn.get()})
    for (const at::Tensor& t : b->outside) if (t.requires_grad() && c10::GradMode::is_enabled()) refuse("uses a tensor that requires grad");
  auto& recorder = tensors.recorder();
  const auto tuple = [&](const std::vector<at::Tensor>& all) { ir::Tuple l; for (const at::Tensor& t : all) l.items.push_back(recorder.argument(t)); return ir::Argument(std::move(l)); };
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cutaway::while_loop", "").typed<std::vector<at::Tensor>(std::string_view, std::string_view, at::TensorList, at::TensorList, at::TensorList)>();
  return finish_control_flow("torch.while_loop", "while_loop_of", *condition, *turn, turn->result, {tuple(carried), tuple(condition->outside), tuple(turn->outside)},
                             [&](const std::string& a, const std::string& b) { op.call(a, b, carried, condition->outside, turn->outside); }, carried, grad);
}

}  // namespace cutaway::capture
