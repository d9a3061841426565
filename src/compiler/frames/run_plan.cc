#include "compiler/frames/run_plan.h"

#include <c10/core/GradMode.h>
#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/core/Generator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>

#include "compiler/frames/graph_functions.h"
#include "compiler/frames/python_frame.h"
#include "compiler/guards/guard_tree.h"
#include "compiler/guards/tensor_object.h"
#include "core/exec/process_state.h"

namespace cutaway::frames {
namespace {

PyObject* part(const Made& made, RecipeId id) { return id == kNothing || id == kNull ? nullptr : made.objects[id].get(); }

template <class Fill> ObjectRef filled(PyObject* container, Fill fill) {
  ObjectRef out = ObjectRef::steal(container);
  return out && fill(out.get()) ? out : ObjectRef();
}

ObjectRef make_dict(const Recipe& r, const Made& made) {
  return filled(PyDict_New(), [&](PyObject* d) {
    for (size_t i = 0; i + 1 < r.parts.size(); i += 2)
      if (PyDict_SetItem(d, part(made, r.parts[i]), part(made, r.parts[i + 1])) < 0) return false;
    return true;
  });
}

// The nearest base written in C says how an empty instance comes to be and how it is filled.
PyTypeObject* c_base(PyTypeObject* type) {
  while (type && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE) && type->tp_base) type = type->tp_base;
  return type;
}

ObjectRef make_instance(const Recipe& r, const Made& made) {
  auto* type = reinterpret_cast<PyTypeObject*>(r.object.get());
  if (!type) { PyErr_SetString(PyExc_SystemError, "cutaway: a class is gone although its guards held"); return {}; }
  PyTypeObject* base = c_base(type);
  ObjectRef arguments = ObjectRef::steal(PyTuple_New(0));
  const bool immutable = base == &PyTuple_Type || base == &PyLong_Type || base == &PyFloat_Type || base == &PyUnicode_Type || base == &PyFrozenSet_Type || base == &PyBytes_Type;
  PyObject* content = part(made, r.base);
  if (content && immutable) arguments = ObjectRef::steal(PyTuple_Pack(1, content));
  if (!arguments) return {};
  ObjectRef out = ObjectRef::steal(base->tp_new(type, arguments.get(), nullptr));
  if (!out) return {};
  if (content && PyODict_Check(out.get()) && PyDict_Check(content)) {   // its __init__ would call the user's __setitem__
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(content, &position, &key, &value))
      if (PyODict_SetItem(out.get(), key, value) < 0) return {};
  } else if (content && PyDict_Check(out.get()) && PyDict_Check(content)) {
    if (PyDict_Update(out.get(), content) < 0) return {};
  } else if (content && !immutable && base->tp_init) {
    ObjectRef given = ObjectRef::steal(PyTuple_Pack(1, content));
    if (!given || base->tp_init(out.get(), given.get(), nullptr) < 0) return {};
  }
  for (size_t i = 0; i < r.names.size(); ++i)
    if (PyObject_GenericSetAttr(out.get(), r.names[i].get(), part(made, r.parts[i])) < 0) return {};
  return out;
}

ObjectRef make_function(const Recipe& r, const Made& made) {
  const auto at = [&](size_t i) { return i < r.parts.size() ? part(made, r.parts[i]) : nullptr; };
  ObjectRef f = ObjectRef::steal(r.object ? PyFunction_NewWithQualName(at(0), at(1), r.object.get()) : PyFunction_New(at(0), at(1)));
  if (!f) return {};
  if (at(2) && PyFunction_SetDefaults(f.get(), at(2)) < 0) return {};
  if (at(3) && PyFunction_SetKwDefaults(f.get(), at(3)) < 0) return {};
  if (at(4) && PyFunction_SetClosure(f.get(), at(4)) < 0) return {};
  if (at(5) && PyFunction_SetAnnotations(f.get(), at(5)) < 0) return {};
  return f;
}

ObjectRef call_made(PyObject* callable, const std::vector<RecipeId>& parts, size_t first, PyObject* names, const Made& made) {
  std::vector<PyObject*> arguments;
  for (size_t i = first; i < parts.size(); ++i) arguments.push_back(part(made, parts[i]));
  const size_t keywords = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  return ObjectRef::steal(PyObject_Vectorcall(callable, arguments.data(), arguments.size() - keywords, names));
}

ObjectRef make_size(const SizeRecipe& r, const FrameView& frame) {
  std::vector<int64_t> numbers;
  for (const guards::Source* s : r.sources) {
    ObjectRef number = guards::read_source(*s, frame);
    const auto word = number ? guards::number_word(number.get()) : std::nullopt;
    if (!word) {
      PyErr_Format(PyExc_SystemError, "cutaway: %s is no number although its guards held", s->text().c_str());
      return {};
    }
    numbers.push_back(*word);
  }
  if (r.numbers) {
    if (const auto n = r.numbers->kept(r.kept, numbers)) return ObjectRef::steal(n->is_float ? PyFloat_FromDouble(n->floating) : PyLong_FromLongLong(n->integer));
    PyErr_Format(PyExc_SystemError, "cutaway: %s cannot be computed although its guards held", r.text.c_str());
    return {};
  }
  const auto item = [&](size_t i) -> PyObject* {
    if (const auto n = r.items[i].at(numbers)) return PyLong_FromLongLong(*n);
    PyErr_Format(PyExc_OverflowError, "%s does not fit into 64 bits", r.text.c_str());
    return nullptr;
  };
  if (!r.container) return ObjectRef::steal(item(0));
  ObjectRef items = ObjectRef::steal(PyTuple_New(static_cast<Py_ssize_t>(r.items.size())));
  for (size_t i = 0; items && i < r.items.size(); ++i) {
    PyObject* n = item(i);
    if (!n) return {};
    PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i), n);
  }
  if (!items || r.container.get() == reinterpret_cast<PyObject*>(&PyTuple_Type)) return items;
  return ObjectRef::steal(PyObject_CallOneArg(r.container.get(), items.get()));
}

ObjectRef make_object(const Recipe& r, const FrameView& frame, const std::vector<ObjectRef>& outputs, const Made& made) {
  const auto count = static_cast<Py_ssize_t>(r.parts.size());
  switch (r.kind) {
    case Recipe::Kind::source: {
      ObjectRef value = guards::read_source(*r.source, frame);
      if (!value) PyErr_Format(PyExc_SystemError, "cutaway: %s is gone although its guards held", r.source->text().c_str());
      return value;
    }
    case Recipe::Kind::constant:
      if (!r.object) PyErr_SetString(PyExc_SystemError, "cutaway: an object is gone although its guards held");
      return ObjectRef::borrow(r.object.get());
    case Recipe::Kind::output: return outputs[r.index];
    case Recipe::Kind::tuple:
      return filled(PyTuple_New(count), [&](PyObject* t) { for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(t, i, Py_NewRef(part(made, r.parts[i]))); return true; });
    case Recipe::Kind::list:
      return filled(PyList_New(count), [&](PyObject* l) { for (Py_ssize_t i = 0; i < count; ++i) PyList_SET_ITEM(l, i, Py_NewRef(part(made, r.parts[i]))); return true; });
    case Recipe::Kind::set: case Recipe::Kind::frozenset:
      return filled(r.kind == Recipe::Kind::set ? PySet_New(nullptr) : PyFrozenSet_New(nullptr), [&](PyObject* s) {
        for (RecipeId p : r.parts) if (PySet_Add(s, part(made, p)) < 0) return false;
        return true;
      });
    case Recipe::Kind::dict: return make_dict(r, made);
    case Recipe::Kind::slice: return ObjectRef::steal(PySlice_New(part(made, r.parts[0]), part(made, r.parts[1]), part(made, r.parts[2])));
    case Recipe::Kind::call: return call_made(part(made, r.parts[0]), r.parts, 1, r.object.get(), made);
    case Recipe::Kind::instance: return make_instance(r, made);
    case Recipe::Kind::function: return make_function(r, made);
    case Recipe::Kind::cell: return ObjectRef::steal(PyCell_New(r.parts.empty() ? nullptr : part(made, r.parts[0])));
    case Recipe::Kind::size: return make_size(*r.size, frame);
    case Recipe::Kind::method: {
      PyObject *function = part(made, r.parts[0]), *self = part(made, r.parts[1]);
      // A method of C is bound as its descriptor does it: what that gives has another type than a method of Python's.
      if (Py_TYPE(function) == &PyMethodDescr_Type || Py_TYPE(function) == &PyWrapperDescr_Type)
        return ObjectRef::steal(Py_TYPE(function)->tp_descr_get(function, self, reinterpret_cast<PyObject*>(Py_TYPE(self))));
      return ObjectRef::steal(PyMethod_New(function, self));
    }
  }
  return {};
}

// list[:] = …, and the same for the others: the object stays, its contents are new.
bool replace_list(PyObject* list, const Effect& e, const Made& made) {
  ObjectRef fresh = ObjectRef::steal(PyList_New(static_cast<Py_ssize_t>(e.parts.size())));
  if (!fresh) return false;
  for (size_t i = 0; i < e.parts.size(); ++i) PyList_SET_ITEM(fresh.get(), static_cast<Py_ssize_t>(i), Py_NewRef(part(made, e.parts[i])));
  if (!PyList_Check(list)) {   // a deque: its methods are C
    ObjectRef cleared = ObjectRef::steal(PyObject_CallMethod(list, "clear", nullptr));
    return cleared && ObjectRef::steal(PyObject_CallMethod(list, "extend", "O", fresh.get()));
  }
  return PyList_SetSlice(list, 0, PyList_GET_SIZE(list), fresh.get()) == 0;
}
bool replace_dict(PyObject* dict, const Effect& e, const Made& made) {
  // OrderedDict keeps an order of its own, so its own methods are used; they are C.
  if (PyODict_Check(dict)) {
    ObjectRef done = ObjectRef::steal(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyODict_Type), "clear", "O", dict));
    if (!done) return false;
    for (size_t i = 0; i + 1 < e.parts.size(); i += 2)
      if (PyODict_SetItem(dict, part(made, e.parts[i]), part(made, e.parts[i + 1])) < 0) return false;
    return true;
  }
  PyDict_Clear(dict);
  for (size_t i = 0; i + 1 < e.parts.size(); i += 2)
    if (PyDict_SetItem(dict, part(made, e.parts[i]), part(made, e.parts[i + 1])) < 0) return false;
  return true;
}
bool replace_set(PyObject* set, const Effect& e, const Made& made) {
  if (PySet_Clear(set) < 0) return false;
  for (RecipeId p : e.parts)
    if (PySet_Add(set, part(made, p)) < 0) return false;
  return true;
}

bool set_item(PyObject* target, PyObject* key, PyObject* value) {
  if (PyODict_Check(target)) return (value ? PyODict_SetItem(target, key, value) : PyODict_DelItem(target, key)) == 0;
  if (PyDict_Check(target)) return (value ? PyDict_SetItem(target, key, value) : PyDict_DelItem(target, key)) == 0;
  if (PyList_Check(target)) {
    // The list's own slot, also for a subclass with a __setitem__ of its own: capture has interpreted that already.
    return PyList_Type.tp_as_mapping->mp_ass_subscript(target, key, value) == 0;
  }
  return (value ? PyObject_SetItem(target, key, value) : PyObject_DelItem(target, key)) == 0;
}

bool apply(const Effect& e, const FrameView& frame, const Made& made) {
  PyObject* target = part(made, e.target);
  PyObject* value = part(made, e.value);
  switch (e.kind) {
    case Effect::Kind::replace_list: return replace_list(target, e, made);
    case Effect::Kind::replace_dict: return replace_dict(target, e, made);
    case Effect::Kind::replace_set: return replace_set(target, e, made);
    case Effect::Kind::set_item: return set_item(target, part(made, e.key), value);
    case Effect::Kind::delete_item: return set_item(target, part(made, e.key), nullptr);
    case Effect::Kind::set_attr: case Effect::Kind::delete_attr: {
      PyObject* given = e.kind == Effect::Kind::set_attr ? value : nullptr;
      if (PyType_Check(target)) return PyType_Type.tp_setattro(target, e.name.get(), given) == 0;   // forgets cached lookups
      if (std::string_view(Py_TYPE(target)->tp_name) == "_thread._local") return Py_TYPE(target)->tp_setattro(target, e.name.get(), given) == 0;   // its dictionary is the thread's
      if (PyObject_GenericSetAttr(target, e.name.get(), given) == 0) return true;
      if (given || !PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
      PyErr_Clear();   // the program set it and deleted it: before, there was none
      return true;
    }
    case Effect::Kind::store_global: case Effect::Kind::delete_global: {
      PyObject* globals = target && PyFunction_Check(target) ? PyFunction_GET_GLOBALS(target) : target && PyDict_Check(target) ? target : frame.function->func_globals;
      return (e.kind == Effect::Kind::store_global ? PyDict_SetItem(globals, e.name.get(), value) : PyDict_DelItem(globals, e.name.get())) == 0;
    }
    case Effect::Kind::store_cell: return PyCell_Set(target, value) == 0;
    case Effect::Kind::call: return static_cast<bool>(call_made(target, e.parts, 0, e.name.get(), made));
  }
  return false;
}

/// Which recipes need no output of the graph: those can be made after it raised.
std::vector<bool> independent_recipes(const Plan& plan) {
  std::vector<bool> out(plan.recipes.size(), true);
  for (size_t i = 0; i < plan.recipes.size(); ++i) {
    const Recipe& r = plan.recipes[i];
    if (r.kind == Recipe::Kind::output || r.acts) out[i] = false;
    for (RecipeId p : r.parts) if (p < i && !out[p]) out[i] = false;
    if (r.base < i && !out[r.base]) out[i] = false;
  }
  return out;
}

// The graph raised: what the program did before that operation has happened in eager mode, so it happens here too.
void replay_before_failure(const Plan& plan, const FrameView& frame, int64_t failed) {
  if (plan.effects.empty() || failed < 0) return;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const std::vector<bool> usable = independent_recipes(plan);
  Made made;
  made.objects.resize(plan.recipes.size());
  bool ok = true;
  for (size_t i = 0; ok && i < plan.recipes.size(); ++i)
    if (usable[i]) ok = static_cast<bool>(made.objects[i] = make_object(plan.recipes[i], frame, {}, made));
  const auto known = [&](RecipeId id) { return id == kNothing || id == kNull || usable[id]; };
  for (const Effect& e : plan.effects) {
    if (!ok) break;
    if (e.before_node < 0 || e.before_node > failed) continue;
    bool all = known(e.target) && known(e.key) && known(e.value);
    for (RecipeId p : e.parts) all = all && known(p);
    if (all) ok = apply(e, frame, made);
  }
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
}

}  // namespace

namespace {
/// The default generators as they are now.
struct RandomStates {
  std::vector<std::pair<at::Generator, at::Tensor>> all;
  RandomStates() {
    const auto add = [&](at::Generator g) { std::scoped_lock lock(g.mutex()); all.emplace_back(g, g.get_state()); };
    add(at::globalContext().defaultGenerator(at::kCPU));
    if (at::globalContext().hasCUDA() && at::detail::getCUDAHooks().hasPrimaryContext(at::detail::getCUDAHooks().getCurrentDevice())) add(at::globalContext().defaultGenerator(at::kCUDA));
  }
  void put_back() const {
    for (auto [g, state] : all) { std::scoped_lock lock(g.mutex()); g.set_state(state); }
  }
};

/// How often each input of a graph that writes to some was written to. An operator that raises has not counted its own write.
class InputVersions {
 public:
  explicit InputVersions(const std::vector<ObjectRef>& inputs) {
    versions_.reserve(inputs.size());
    for (const ObjectRef& i : inputs)
      if (guards::is_tensor(i.get())) versions_.push_back(version(i));
  }
  bool are_unchanged(const std::vector<ObjectRef>& inputs) const {
    size_t at = 0;
    for (const ObjectRef& i : inputs)
      if (guards::is_tensor(i.get()) && (versions_[at] == kNotCounted || version(i) != versions_[at++])) return false;
    return true;
  }

 private:
  static constexpr uint32_t kNotCounted = UINT32_MAX;   // of an inference tensor
  static uint32_t version(const ObjectRef& o) {
    const at::Tensor& t = guards::unwrap_tensor(o.get());
    return t.is_inference() ? kNotCounted : static_cast<uint32_t>(t._version());
  }
  std::vector<uint32_t> versions_;
};

enum class SavedHooks : uint8_t { none, of_torch, of_program };
// Those of torch itself (checkpoints, save_on_cpu) do not mind which tensors are saved.
SavedHooks saved_hooks() {
  const auto& stack = at::SavedTensorDefaultHooks::get_tls_state().stack;
  if (stack.empty()) return SavedHooks::none;
  PyObject* pack = stack.top().first.ptr(getPyInterpreter());
  PyObject* module = PyFunction_Check(pack) ? PyDict_GetItemString(PyFunction_GET_GLOBALS(pack), "__name__") : nullptr;
  const char* name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  return name && std::string_view(name).starts_with("torch.") ? SavedHooks::of_torch : SavedHooks::of_program;
}

// The graph has raised. Was it the program, and has nothing changed yet?
bool may_run_again(const Plan& plan, const std::vector<ObjectRef>& inputs, const InputVersions* before) {
  if (!PyErr_ExceptionMatches(PyExc_Exception) || saved_hooks() != SavedHooks::none) return false;
  const int64_t failed = plan.graph->failed_node();
  if (plan.graph->is_reference()) {
    if (plan.first_change == SIZE_MAX || (failed >= 0 && static_cast<size_t>(failed) < plan.first_change)) return true;
    return before && failed >= 0 && static_cast<size_t>(failed) == plan.first_change && before->are_unchanged(inputs);   // the one that would have written, or drawn random numbers: it has not
  }
  // A backend may have failed by itself: that is told, not hidden.
  if ((plan.first_change != SIZE_MAX && !plan.graph->left_inputs_alone()) || !plan.captured) return false;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const bool raises = program_raises(*plan.captured, inputs);
  PyErr_Restore(type, value, trace);
  return raises;
}
}  // namespace

using Overriding = at::impl::TorchFunctionDisabledState;
WithoutOverriding::WithoutOverriding(bool is) {
  if (!is) return;
  const Overriding now = at::impl::PythonTorchFunctionTLS::get_disabled_state();
  before_ = static_cast<int>(now);
  if (now == Overriding::ENABLED) at::impl::PythonTorchFunctionTLS::set_disabled_state(Overriding::SUBCLASSES_DISABLED);
}
WithoutOverriding::~WithoutOverriding() {
  if (before_ >= 0) at::impl::PythonTorchFunctionTLS::set_disabled_state(static_cast<Overriding>(before_));
}

bool may_run_now(const Plan& plan, const std::vector<ObjectRef>& inputs) {
  if (!plan.graph) return true;
  const auto has_tangent = [](const ObjectRef& o) {
    if (!guards::is_tensor(o.get())) return false;
    const at::Tensor& t = guards::unwrap_tensor(o.get());
    const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(t.unsafeGetTensorImpl()->autograd_meta());
    return meta && meta->fw_grad_ && t._fw_grad(0).defined();   // hardly one has ever had a tangent; to ask for it takes a lock
  };
  if (!plan.graph->can_run_operators() && std::ranges::any_of(inputs, has_tangent)) return false;
  const SavedHooks hooks = saved_hooks();
  if (hooks == SavedHooks::none) return true;
  if (plan.catches || !plan.effects.empty() || std::ranges::any_of(plan.recipes, &Recipe::acts)) return false;
  return plan.graph->can_run_operators() || (hooks == SavedHooks::of_torch && plan.first_change == SIZE_MAX);
}

bool run_plan(const Plan& plan, const FrameView& frame, const std::vector<ObjectRef>& inputs, Made& made) {
  HookScope hidden(HookScope::Frames::hidden);   // what runs here was captured already
  // A class that is garbage by now may be collected while the graph runs: what the recipes name lives until they are done.
  std::vector<ObjectRef> alive;
  for (const Recipe& r : plan.recipes) {
    if (!r.object.is_weak()) continue;
    PyObject* o = r.object.get();
    if (!o) {   // its entry is about to go, and nothing has happened yet
      PyErr_SetString(PyExc_SystemError, "cutaway: an object is gone although its guards held");
      made.run_again = true;
      return false;
    }
    alive.push_back(ObjectRef::borrow(o));
  }
  std::vector<ObjectRef> outputs;
  if (plan.graph) {
    static_assert(sizeof(ObjectRef) == sizeof(PyObject*));   // an array of the one is an array of the other
    outputs.reserve(plan.output_count);
    const std::optional<RandomStates> random = plan.restore_random || (plan.draws_random && plan.graph->may_leave_inputs_alone()) ? std::optional<RandomStates>(std::in_place) : std::nullopt;
    const WithoutOverriding overriding(plan.runs_without_overriding);
    const std::optional<InputVersions> versions = plan.first_change != SIZE_MAX && plan.graph->is_reference() ? std::optional<InputVersions>(inputs) : std::nullopt;
    const std::optional<exec::SwitchState> switches = plan.restore_switches ? std::optional<exec::SwitchState>(std::in_place) : std::nullopt;
    const bool with_grad = c10::GradMode::is_enabled();
    if (!plan.graph->run(reinterpret_cast<PyObject* const*>(inputs.data()), inputs.size(), outputs)) {
      c10::GradMode::set_enabled(with_grad);   // a graph of Python's that raises leaves it as it was where it raised
      if (switches) switches->put_back();
      made.run_again = may_run_again(plan, inputs, versions ? &*versions : nullptr);
      if (switches) switches->put_back();   // it may have run the graph's operators
      if (made.run_again && random) random->put_back();
      if (!made.run_again) replay_before_failure(plan, frame, plan.graph->failed_node());
      return false;
    }
    if (outputs.size() < plan.output_count) {
      PyErr_Format(PyExc_RuntimeError, "the compiled graph gave %zu outputs, %zu were expected", outputs.size(), plan.output_count);
      return false;
    }
  }
  made.objects.clear();
  made.objects.reserve(plan.recipes.size());
  for (const Recipe& r : plan.recipes) {
    made.objects.push_back(make_object(r, frame, outputs, made));
    if (!made.objects.back()) return false;
  }
  for (const Effect& e : plan.effects)
    if (!apply(e, frame, made)) return false;
  return true;
}

}  // namespace cutaway::frames
