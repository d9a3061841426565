// Functions that the user marked: allow_in_graph and assume_constant_result.
//
// A function that is allowed in graphs is one node, and nothing else than its node calls it. So it must do what its node shows: take tensors and plain values, give tensors, write
// to tensors. It is interpreted to find its results, as any other function; where that shows that it does more, the graph ends before it and Python makes the call.
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/call_log.h"
#include "compiler/frames/marks.h"
#include "core/trace/dispatch_keys.h"

namespace cutaway::capture {

// The node's function is given the very same: an fx graph writes such a value as it is.
bool TorchCalls::has_exact_form(Value* v, int depth) {
  values.force(v);
  if (depth > 4) return false;
  const auto all = [&](const std::vector<Value*>& items) {
    for (Value* i : items) if (!has_exact_form(i, depth + 1)) return false;
    return true;
  };
  switch (v->kind) {
    case Kind::tensor: return v->type == known().tensor || v->type == known().parameter;
    case Kind::constant: {
      PyObject* o = v->real;
      const bool is_number = PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o);
      const bool is_word = o == Py_None || PyUnicode_CheckExact(o) || v->type == known().dtype || v->type == known().device;
      return (is_number || is_word) && literal_of(o);
    }
    case Kind::tuple: return v->type == &PyTuple_Type && all(values.items(v));
    case Kind::list: return v->type == &PyList_Type && all(values.items(v));
    default: return false;
  }
}

Value* TorchCalls::call_allowed(Value* f, const Args& args) {
  const Tail tail = endings.take_tail();   // handed on where it is not a node: a graph does not end inside one
  if (f->kind != Kind::function) {
    if (leaves.leaf_of(f->real) == Leaves::Leaf::no) stop("unknown-callable", values.describe(f) + " is allowed in graphs, but is not a function written in Python", "mark a function that calls it");
    return leaves.call_leaf(f->real, nullptr, args);
  }
  bool is_exact = leaves.has_tensor(args) && !is_transformed(args) && !in_mode() && !has_subclasses_;
  for (size_t i = 0; i < args.count; ++i) is_exact = is_exact && has_exact_form(args[i]);
  for (size_t i = 0; i < args.keyword_count; ++i) is_exact = is_exact && has_exact_form(args.keywords[i].second);
  is_exact = is_exact && !effects.may_be_read_by(f->real);
  if (!is_exact) {   // not a node: what it does is captured as that of any function
    endings.hand_on(tail);
    return calls.call_python(f, args);
  }
  std::vector<ir::Argument> arguments;
  std::vector<std::pair<std::string, ir::Argument>> named;
  for (size_t i = 0; i < args.count; ++i) arguments.push_back(leaves.to_argument(args[i]));
  for (size_t i = 0; i < args.keyword_count; ++i) named.emplace_back(PyUnicode_AsUTF8(args.keywords[i].first), leaves.to_argument(args.keywords[i].second));

  const std::string shown = values.describe(f);
  const auto refuse = [&](const std::string& why) { stop("allowed-function", shown + " is allowed in graphs, but " + why); };
  auto& recorder = tensors.recorder();
  const size_t writes_before = effects.outside_count() + effects.watched_writes();
  const WatchWrites watch(effects, values);
  recorder.begin_call(leaves.name_callable(shown, f->real), std::move(arguments), std::move(named), frame_stack.location());
  Value* r = calls.call_python(f, args);
  if (!r) refuse("it raises an exception");
  if (effects.outside_count() + effects.watched_writes() != writes_before) refuse("it changes something besides tensors");
  values.force(r);
  if (!leaves.contains_tensor(r)) {
    if (recorder.call_has_effects()) recorder.end_call({}, {});
    else recorder.cancel_call();
    return r;
  }
  std::vector<c10::IValue> results;
  std::vector<int32_t> returns;
  const auto add = [&](Value* v) {
    if (values.kind(v) != Kind::tensor) refuse("it gives something that is neither a tensor nor a list or tuple of tensors");
    results.emplace_back(unwrap_tensor(body<Tensor>(v).fake));
    returns.push_back(ir::Node::kSingle);
  };
  if (r->kind == Kind::tensor) add(r);
  else if ((r->kind == Kind::tuple && r->type == &PyTuple_Type) || (r->kind == Kind::list && !r->real)) for (Value* v : values.items(r)) add(v);
  else refuse("it gives something that is neither a tensor nor a list or tuple of tensors");
  if (r->kind != Kind::tensor) returns = {static_cast<int32_t>(results.size())};
  recorder.end_call(results, returns);
  return r;
}

namespace {
// Nothing else in the process has the tensor or its memory.
bool is_only_ours(const at::Tensor& t) { return t.use_count() == 1 && !t.is_view() && t.has_storage() && t.storage().use_count() == 1; }
}  // namespace

// What nobody else has was made by the call: each run gets one of its own, as each call in eager does. Everything else is the very object.
Value* TorchCalls::constant_result(PyObject* o, bool is_ours) {
  is_ours = is_ours && Py_REFCNT(o) == 1;
  const auto inside = [&](PyObject* item) { return constant_result(item, is_ours); };
  if (is_ours && is_tensor_object(o)) {
    static PyObject* const clone = PyUnicode_InternFromString("clone");
    const at::Tensor& t = unwrap_tensor(o);
    const bool is_plain = Py_TYPE(o) == known().tensor && t.layout() == at::kStrided && t.is_non_overlapping_and_dense() && !t.requires_grad() && !t.is_conj() && !t.is_neg();
    if (!is_plain || !is_only_ours(t))
      stop("constant-result", "a function whose result is assumed to be constant returns a new tensor that is a view, is not dense, requires grad or is of a subclass of Tensor");
    Value* made = values.force(values.wrap_constant_object(o));
    return leaves.call_tensor_method(made, clone, {made});
  }
  if (is_ours && (PyTuple_CheckExact(o) || PyList_CheckExact(o))) {
    std::vector<Value*> all;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      all.push_back(inside(PySequence_Fast_GET_ITEM(o, i)));
      if (!all.back()) return nullptr;
    }
    return PyTuple_CheckExact(o) ? values.make_tuple(std::move(all)) : values.make_list(std::move(all));
  }
  if (is_ours && PyDict_CheckExact(o)) {
    Value* d = values.make_dict();
    PyObject *key, *item;
    for (Py_ssize_t position = 0; PyDict_Next(o, &position, &key, &item);) {
      PyObject* k = mappings.key_of(values.wrap_constant_object(key));
      Value* v = k ? inside(item) : nullptr;
      if (!v) return nullptr;
      mappings.dict_set(d, k, v);
    }
    return d;
  }
  return values.wrap_constant_object(o);
}

Value* TorchCalls::call_constant(Value* f, const Args& args) {
  const std::string name = values.describe(f);
  const auto real = [&](Value* v) {
    PyObject* o = values.as_constant(v);
    if (!o) o = values.force(v)->real;
    if (!o) stop("constant-result", name + " is called, whose result is assumed to be constant, with " + values.describe(v) + " that the captured code made");
    return o;
  };
  PyObject* positional = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  for (size_t i = 0; i < args.count; ++i) PyTuple_SET_ITEM(positional, static_cast<Py_ssize_t>(i), Py_NewRef(real(args[i])));
  PyObject* keywords = values.keep(PyDict_New());
  for (size_t i = 0; i < args.keyword_count; ++i) PyDict_SetItem(keywords, args.keywords[i].first, real(args.keywords[i].second));
  PyObject* value = frames::recorded_result(name);
  if (!value) {
    const c10::impl::ExcludeDispatchKeyGuard aside(c10::DispatchKeySet(trace::kAboveKey).add(trace::kBelowKey));   // it is no part of the graph, and its tensors are real
    value = PyObject_Call(f->real, positional, keywords);
  }
  if (!value) return exceptions.raise_python();
  Value* r = constant_result(value, true);
  frames::keep_result(name, values.keep(value));
  leaves.hold_callable(guards::ObjectRef::borrow(value));   // nobody but the plan may have it
  return r;
}

}  // namespace cutaway::capture
