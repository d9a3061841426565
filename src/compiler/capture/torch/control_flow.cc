// torch.cond, while_loop, scan and map. Each function is interpreted under a recorder of its own and becomes a graph; tensors from outside are its inputs. The program's
// graph has one operator, which runs whichever is needed (core/exec/control_flow.h), and a Python backend gets torch's own higher-order operator over the same
// graphs. What these operators do not allow (effects, other results, aliases) ends the graph, and torch says what it has to say.
//
// The Python of torch's around some of them is inlined, from the call to the end or not at all (call_whole): what it calls means something else outside of a compiler.
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

// What the body of a scan is given of a tensor, and what its results become.
at::Tensor row_of(const at::Tensor& t) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(trace::kAboveKey);
  return t.detach().select(0, 0);
}
at::Tensor rows_like(const at::Tensor& t, int64_t count) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(trace::kAboveKey);
  std::vector<int64_t> sizes = t.sizes().vec();
  sizes.insert(sizes.begin(), count);
  return at::empty(sizes, t.options().requires_grad(false));
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
    case Kind::constant: return v->real == Py_None || PyLong_Check(v->real) || PyFloat_CheckExact(v->real);   // it has no place among the tensors
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
  if (form->kind == Kind::constant) return form;
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
  if (a->kind == Kind::constant) return PyObject_RichCompareBool(a->real, b->real, Py_EQ) == 1;
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
  if (!flatten(branch->result, branch->flat)) refuse("gives something that is neither a tensor nor a number, or tuples, lists and dicts of them");
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

void TorchCalls::arrange_inputs(Branch& b, const std::vector<at::Tensor>& first) {
  std::vector<ir::Input> rest;
  std::vector<at::Tensor> outside;
  const std::vector<ir::Input> had = std::move(b.graph.inputs);
  b.graph.inputs.clear();
  std::vector<std::optional<ir::Input>> of_first(first.size());
  for (size_t i = 0; i < had.size(); ++i) {
    size_t which = 0;
    while (which < first.size() && !first[which].is_same(b.outside[i])) ++which;
    if (which < first.size()) of_first[which] = had[i];
    else { rest.push_back(had[i]); outside.push_back(b.outside[i]); }
  }
  for (size_t i = 0; i < first.size(); ++i) {
    if (of_first[i]) b.graph.inputs.push_back(*of_first[i]);
    else b.graph.add_input("unused" + std::to_string(i), ir::Type::of(tensor::type_of(first[i])));
  }
  for (const ir::Input& i : rest) b.graph.inputs.push_back(i);
  b.outside = std::move(outside);
}

// Programs and, for a backend of Python's, the graphs as text for its modules. `used` is all that goes in: where one of it requires grad, all results do that can.
Value* TorchCalls::finish_control_flow(const char* name, const char* maker, const std::vector<const Branch*>& branches, Value* form, std::vector<ir::Argument> arguments,
                                       const std::function<void(const std::vector<std::string>&)>& call, const std::vector<at::Tensor>& like, std::vector<at::Tensor> used) {
  std::vector<std::string> programs;
  PyObject* texts = values.keep(PyTuple_New(static_cast<Py_ssize_t>(branches.size())));
  for (size_t i = 0; i < branches.size(); ++i) {
    auto program = exec::Program::prepare(branches[i]->graph);
    if (!program.ok()) stop("control-flow", std::string(name) + " is called, and one of its graphs is refused: " + program.error().what);
    programs.push_back(exec::keep_program(std::move(program).value()));
    PyTuple_SET_ITEM(texts, static_cast<Py_ssize_t>(i), PyUnicode_FromString(ir::print(branches[i]->graph).c_str()));
    used.insert(used.end(), branches[i]->outside.begin(), branches[i]->outside.end());
  }
  PyObject* callable = nullptr;
  if (options.runs_python) {
    PyObject* make = polyfill_named(maker);
    callable = PyObject_CallFunction(make, "Oi", texts, static_cast<int>(c10::GradMode::is_enabled()));
    if (!callable) throw std::runtime_error(std::string("the graphs of ") + name + " cannot be modules");
    values.keep(callable);
  }
  bool needs_grad = false;
  for (const at::Tensor& t : used) needs_grad = needs_grad || t.requires_grad();
  std::vector<bool> grad;
  for (const at::Tensor& t : like) grad.push_back(needs_grad && (at::isFloatingType(t.scalar_type()) || at::isComplexType(t.scalar_type())));
  size_t next = 0;
  return rebuild(form, finish_results(callable ? leaves.name_callable(name, callable) : std::string(name), std::move(arguments), [&] { call(programs); }, like, grad, used), next);
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
  if (PyObject* known = values.as_constant(given[0]); known && (PyLong_Check(known) || PyFloat_CheckExact(known))) {   // Python chooses
    std::vector<Value*> operands;
    if (given[3] && values.kind(given[3]) != Kind::tuple && values.kind(given[3]) != Kind::list) refuse("is called with operands that are neither a tuple nor a list");
    if (given[3]) operands = values.items(given[3]);
    return calls.call(given[PyObject_IsTrue(known) ? 1 : 2], Args(operands));
  }
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
  if (!same_form(if_true->result, if_false->result)) refuse("has branches whose results differ in structure, or in numbers");
  std::vector<at::Tensor> like;
  for (size_t i = 0; i < if_true->flat.size(); ++i) {
    const at::Tensor &a = unwrap_tensor(body<Tensor>(if_true->flat[i]).fake), &b = unwrap_tensor(body<Tensor>(if_false->flat[i]).fake);
    if (!same_kind(a, b)) refuse("has branches whose tensors differ in size, dtype or device");
    like.push_back(a);
  }
  if (like.empty()) refuse("has branches that return no tensors");
  auto& recorder = tensors.recorder();
  const auto tuple = [&](const std::vector<at::Tensor>& all) { ir::Tuple l; for (const at::Tensor& t : all) l.items.push_back(recorder.argument(t)); return ir::Argument(std::move(l)); };
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cutaway::cond", "").typed<std::vector<at::Tensor>(const at::Tensor&, std::string_view, std::string_view, at::TensorList, at::TensorList)>();
  return finish_control_flow("torch.cond", "cond_of", {if_true.get(), if_false.get()}, if_true->result, {recorder.argument(predicate), tuple(if_true->outside), tuple(if_false->outside)},
                             [&](const auto& programs) { op.call(predicate, programs[0], programs[1], if_true->outside, if_false->outside); }, like, {});
}

Value* TorchCalls::while_loop(Value*, const Args& args) {
  const auto refuse = [&](const std::string& why) { stop("control-flow", "while_loop " + why); };
  std::vector<Value*> given(3, nullptr);
  if (!arrange_arguments(args, {"cond_fn", "body_fn", "carried_inputs"}, given) || !given[0] || !given[1] || !given[2] || in_transform()) refuse("is called with arguments that it does not take, or inside a function transform");
  if (values.kind(given[2]) != Kind::tuple && values.kind(given[2]) != Kind::list) refuse("carries something that is neither a tuple nor a list");
  std::vector<at::Tensor> carried, inside;
  std::vector<Value*> inner;
  for (Value* v : values.items(given[2])) {
    if (values.kind(v) != Kind::tensor) refuse("carries something that is not a tensor");
    carried.push_back(unwrap_tensor(body<Tensor>(v).fake));
    inside.push_back(another(carried.back()));   // not the one that a closure may have, too
    inner.push_back(values.make_tensor(values.keep(wrap_tensor(inside.back()))));
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
    if (!same_kind(t, carried[i])) refuse("has a body whose tensors differ in size, dtype or device from its arguments");
  }
  arrange_inputs(*condition, inside);
  arrange_inputs(*turn, inside);
  auto& recorder = tensors.recorder();
  const auto tuple = [&](const std::vector<at::Tensor>& all) { ir::Tuple l; for (const at::Tensor& t : all) l.items.push_back(recorder.argument(t)); return ir::Argument(std::move(l)); };
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cutaway::while_loop", "").typed<std::vector<at::Tensor>(std::string_view, std::string_view, at::TensorList, at::TensorList, at::TensorList)>();
  return finish_control_flow("torch.while_loop", "while_loop_of", {condition.get(), turn.get()}, turn->result, {tuple(carried), tuple(condition->outside), tuple(turn->outside)},
                             [&](const auto& programs) { op.call(programs[0], programs[1], carried, condition->outside, turn->outside); }, carried, carried);
}

Value* TorchCalls::call_whole(Value* f, const Args& args) {
  whole_calls_.push_back(frame_stack.step_now());
  Value* r = calls.call_python(f, args);
  whole_calls_.pop_back();   // not where the graph ends inside: open_since asks
  return r;
}

// torch.ops.higher_order.scan(combine, carried, rows, more), and map_impl(f, rows, more): a scan that carries nothing.
Value* TorchCalls::scan(Value*, const Args& args) { return scan_rows("scan", args, true); }
Value* TorchCalls::map(Value*, const Args& args) { return scan_rows("map", args, false); }

Value* TorchCalls::scan_rows(const char* name, const Args& args, bool carries) {
  const auto refuse = [&](const std::string& why) { stop("control-flow", std::string(name) + " " + why); };
  std::vector<Value*> given(5, nullptr);
  const bool fits = carries ? arrange_arguments(args, {"self", "combine_fn", "init", "xs", "additional_inputs"}, given) : arrange_arguments(args, {"self", "f", "xs", "pos_args"}, given);
  if (!fits || in_transform()) refuse("is called with arguments that it does not take, or inside a function transform");
  const auto take = [&](Value* row, const char* what, std::vector<at::Tensor>& into) {
    if (!row || (values.kind(row) != Kind::tuple && values.kind(row) != Kind::list)) refuse(std::string("is given ") + what + " that are neither a tuple nor a list");
    for (Value* v : values.items(row)) {
      if (values.kind(v) != Kind::tensor) refuse(std::string("is given ") + what + " that are not tensors");
      into.push_back(unwrap_tensor(body<Tensor>(v).fake));
    }
  };
  std::vector<at::Tensor> carried, rows, more, inside;
  if (carries) take(given[2], "values to carry", carried);
  take(given[carries ? 3 : 2], "rows", rows);
  take(given[carries ? 4 : 3], "more arguments", more);
  if (rows.empty()) refuse("is given no rows");
  for (const at::Tensor& t : rows) if (!t.dim() || t.size(0) < 1 || t.size(0) != rows[0].size(0)) refuse("is given tensors of different lengths, or of none");
  for (const at::Tensor& t : carried) inside.push_back(another(t));
  for (const at::Tensor& t : rows) inside.push_back(row_of(t));
  for (const at::Tensor& t : more) inside.push_back(another(t));
  std::vector<Value*> inner;
  for (const at::Tensor& t : inside) inner.push_back(values.make_tensor(values.keep(wrap_tensor(t))));
  auto turn = record_branch(name, given[1], inner);
  if (!turn) return nullptr;
  arrange_inputs(*turn, inside);
  if (turn->flat.size() < carried.size()) refuse("has a function that gives less than it carries");
  std::vector<at::Tensor> like;
  for (size_t i = 0; i < turn->flat.size(); ++i) {
    const at::Tensor& t = unwrap_tensor(body<Tensor>(turn->flat[i]).fake);
    if (i >= carried.size()) like.push_back(rows_like(t, rows[0].size(0)));
    else if (same_kind(t, carried[i])) like.push_back(carried[i]);
    else refuse("has a function that gives tensors that differ in size, dtype or device from what it carries");
  }
  turn->outside.insert(turn->outside.begin(), more.begin(), more.end());
  std::vector<at::Tensor> used = carried;
  used.insert(used.end(), rows.begin(), rows.end());
  auto& recorder = tensors.recorder();
  const auto tuple = [&](const std::vector<at::Tensor>& all) { ir::Tuple l; for (const at::Tensor& t : all) l.items.push_back(recorder.argument(t)); return ir::Argument(std::move(l)); };
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cutaway::scan", "").typed<std::vector<at::Tensor>(std::string_view, at::TensorList, at::TensorList, at::TensorList)>();
  std::vector<ir::Argument> arguments;
  if (carries) arguments.push_back(tuple(carried));
  arguments.push_back(tuple(rows));
  arguments.push_back(tuple(turn->outside));
  return finish_control_flow(carries ? "torch.scan" : "torch.map", carries ? "scan_of" : "map_of", {turn.get()}, turn->result, std::move(arguments),
                             [&](const auto& programs) { op.call(programs[0], carried, rows, turn->outside); }, like, used);
}

}  // namespace cutaway::capture
