// Calls of torch: one node of the graph each. The rule, not a list: functions of torch, torch.nn.functional and torch.ops and methods of
// Tensor run for real on fake tensors, and the recorder puts what they did into a captured call. What they give without tensors (sizes,
// dtypes, modes) is a constant of the trace.
#include <cstdint>
#include <cstring>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/torch/torch_warnings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/call_log.h"
#include "compiler/frames/marks.h"
#include "compiler/frames/size_log.h"
#include "core/exec/process_state.h"
#include "core/trace/unknown_number.h"

namespace cutaway::capture {
namespace {

std::string text_attribute(PyObject* o, const char* name) {
  PyObject* a = PyObject_GetAttrString(o, name);
  std::string text;
  if (a && PyUnicode_Check(a)) text = PyUnicode_AsUTF8(a);
  Py_XDECREF(a);
  PyErr_Clear();
  return text;
}

PyObject* attribute_of(const char* module, const char* name) {
  PyObject* m = PyImport_ImportModule(module);
  PyObject* a = m ? PyObject_GetAttrString(m, name) : nullptr;
  Py_XDECREF(m);
  PyErr_Clear();
  return a;   // kept for ever
}

struct LeafInfo { Leaves::Leaf leaf = Leaves::Leaf::no; std::string name; PyObject* constant = nullptr; bool is_compiling = false, is_for_tensors = false; };

bool starts_with(const std::string& s, const char* prefix) { return s.rfind(prefix, 0) == 0; }

// The public name of a C function of torch's.
std::string public_name(PyObject* f, const std::string& module, const std::string& name) {
  struct Row { const char *inner, *prefix, *outer; };
  static constexpr Row rows[] = {{"torch._C._nn", "", "torch.nn.functional"}, {"torch._C._special", "special_", "torch.special"},
                                 {"torch._C._fft", "fft_", "torch.fft"}, {"torch._C._linalg", "linalg_", "torch.linalg"}};
  for (const Row& r : rows) {
    if (module != r.inner) continue;
    const std::string last = starts_with(name, r.prefix) ? name.substr(std::strlen(r.prefix)) : name;
    PyObject* same = attribute_of(r.outer, last.c_str());
    const bool found = same == f;
    Py_XDECREF(same);
    if (found) return std::string(r.outer) + "." + last;
  }
  if (module.empty() || module == "torch._C._VariableFunctions" || module == "torch.functional" || module == "torch._C") {
    PyObject* same = attribute_of("torch", name.c_str());
    const bool found = same == f;
    Py_XDECREF(same);
    if (found) return "torch." + name;
  }
  return (module.empty() ? "torch" : module) + "." + name;
}

// Functions of C that set state of the process, not of the trace: they would act now.
bool changes_process(const std::string& name) {
  static const std::unordered_set<std::string> allowed = {"_set_grad_enabled", "set_autocast_enabled", "set_autocast_dtype", "set_autocast_cpu_enabled", "set_autocast_cpu_dtype",
      "set_autocast_gpu_dtype", "set_autocast_cache_enabled", "autocast_increment_nesting", "autocast_decrement_nesting", "clear_autocast_cache", "set_conj", "set_neg",
      "_cuda_getDeviceCount", "_cuda_isInBadFork"};   // what the machine has does not change under the process
  static const std::unordered_set<std::string> refused = {"manual_seed", "seed", "initial_seed", "get_rng_state", "from_numpy", "from_file", "frombuffer", "_log_api_usage_once_", "init_num_threads",
      "get_num_threads", "get_num_interop_threads", "is_anomaly_enabled", "is_anomaly_check_nan_enabled", "_get_warnAlways", "_is_multithreading_enabled", "_unsafe_set_version_counter"};
  if (allowed.contains(name)) return false;
  for (const char* prefix : {"_push_", "_pop_", "_enter_", "_exit_", "_swap_", "_unset_"})   // stacks of modes, which breaks would leave as they are then
    if (starts_with(name, prefix)) return true;
  return starts_with(name, "set_") || starts_with(name, "_set_") || refused.contains(name) || starts_with(name, "_jit_") || starts_with(name, "_cuda_");
}

// These make a tensor of numbers, or of what they find in tensors.
bool makes_of_data(std::string_view last) {
  static const std::unordered_set<std::string_view> names = {"tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor", "from_numpy"};
  return names.contains(last);
}

// Transforms of torch.func push and pop levels of the process; only its questions may be asked now.
bool moves_transform_levels(const std::string& name) {
  static const std::string module = "torch._C._functorch.";
  if (!starts_with(name, module.c_str())) return false;
  const std::string last = name.substr(module.size());
  return !(starts_with(last, "is_") || starts_with(last, "maybe_") || starts_with(last, "peek_"));
}

LeafInfo classify(PyObject* f) {
  LeafInfo info;
  const KnownTypes& k = known();
  PyTypeObject* t = Py_TYPE(f);
  const std::string name = text_attribute(f, "__name__");
  if (t == &PyFunction_Type) {
    const std::string module = text_attribute(f, "__module__");
    if (!starts_with(module, "torch")) return info;
    const std::string qualified = text_attribute(f, "__qualname__");
    static const std::unordered_map<std::string, PyObject*> answers = {
        {"torch.compiler.is_compiling", Py_True}, {"torch.compiler.is_dynamo_compiling", Py_True}, {"torch.compiler.is_exporting", Py_False},
        {"torch._dynamo.external_utils.is_compiling", Py_True}, {"torch._utils_internal.justknobs_check", Py_True},
        {"torch.jit._script.is_scripting", Py_False}, {"torch._jit_internal.is_scripting", Py_False}, {"torch.jit._trace.is_tracing", Py_False},
        {"torch._dynamo.eval_frame.is_dynamo_supported", Py_True},
        // Once Dynamo has run, every module that is built tells it so; a module that it was not told of is the same to it.
        {"torch._dynamo.mutation_guard.GenerationTracker.tag", Py_None}, {"torch._dynamo.decorators.mark_static", Py_None}};
    if (auto a = answers.find(module + "." + qualified); a != answers.end()) {
      info.leaf = Leaves::Leaf::constant;
      info.constant = a->second;
      info.is_compiling = name == "is_compiling";
      info.is_for_tensors = name == "mark_static";   // a hint to torch's own compiler; it also marks classes
      return info;
    }
    static const std::unordered_set<std::string> leaf_modules = {"torch.nn.functional", "torch.functional", "torch._tensor", "torch._linalg_utils", "torch._lowrank", "torch.special", "torch.fft", "torch.linalg", "torch.nn.init"};
    if (leaf_modules.contains(module)) {
      static const std::unordered_set<std::string> inlined = {"torch.functional.broadcast_shapes", "torch.nn.functional.handle_torch_function",
                                                                "torch.nn.init.trunc_normal_", "torch.nn.init._no_grad_trunc_normal_"}   /* they read numbers out of tensors */;
      info.name = public_name(f, module, name);
      if (inlined.contains(info.name) || qualified.find('<') != std::string::npos) return info;
      info.leaf = Leaves::Leaf::graph;
    }
    return info;
  }
  if (t == &PyCFunction_Type || PyType_IsSubtype(t, &PyCFunction_Type)) {
    std::string module = text_attribute(f, "__module__");
    PyObject* self = PyCFunction_GET_SELF(f);
    if (module.empty() && self && !PyModule_Check(self)) {
      const std::string owner = text_attribute(PyType_Check(self) ? self : reinterpret_cast<PyObject*>(Py_TYPE(self)), "__name__");
      if (owner.find("VariableFunctions") == std::string::npos) return info;
      module = "torch._C._VariableFunctions";
    }
    if (module == "_operator" || module == "operator") {
      info.leaf = Leaves::Leaf::state;   // arithmetic: a node where a tensor is among the arguments
      info.name = "operator." + name;
      return info;
    }
    if (!starts_with(module, "torch")) return info;
    const bool by_pybind = self && (PyCapsule_CheckExact(self) || std::string_view(Py_TYPE(self)->tp_name).find("pybind11") != std::string_view::npos);
    if (self && !by_pybind && !PyModule_Check(self) && !PyType_Check(self)) return info;   // a bound method of an object of C
    info.name = public_name(f, module, name);
    info.leaf = Leaves::Leaf::graph;
    return info;
  }
  if (t == k.op_overload || t == k.op_overload_packet) {
    info.leaf = Leaves::Leaf::graph;
    PyObject* s = PyObject_Str(f);
    info.name = "torch.ops." + (s ? std::string(PyUnicode_AsUTF8(s)) : name);
    Py_XDECREF(s);
    return info;
  }
  return info;
}

const LeafInfo& info_of(PyObject* f) {
  static auto* cache = new std::unordered_map<PyObject*, LeafInfo>;
  auto it = cache->find(f);
  if (it == cache->end()) {
    LeafInfo info = classify(f);
    // Not held: closures and methods that are bound come and go.
    const bool is_bound = PyCFunction_Check(f) && PyCFunction_GET_SELF(f) && !PyModule_Check(PyCFunction_GET_SELF(f));
    if (info.leaf == Leaves::Leaf::no && (Py_TYPE(f) == &PyFunction_Type || is_bound)) {
      static const LeafInfo no;
      return no;
    }
    if (info.leaf == Leaves::Leaf::graph) info.name = frames::name_callable(std::move(info.name), f);
    Py_INCREF(f);
    it = cache->emplace(f, std::move(info)).first;
  }
  return it->second;
}

}  // namespace

Leaves::Leaf Leaves::leaf_of(PyObject* f) {
  if (Py_TYPE(f) == &PyFunction_Type) {
    // Most functions are not torch's: their globals tell, without asking for attributes.
    static std::unordered_map<PyObject*, bool> by_globals;
    PyObject* globals = PyFunction_GET_GLOBALS(f);
    auto it = by_globals.find(globals);
    if (it == by_globals.end()) {
      PyObject* name = PyDict_GetItem(globals, names().__name__);
      const bool torch = name && PyUnicode_Check(name) && std::string_view(PyUnicode_AsUTF8(name)).substr(0, 5) == "torch";
      if (torch) Py_INCREF(globals);
      if (!torch) {
        if (name && PyUnicode_CompareWithASCIIString(name, "logging") == 0) {
          static const std::unordered_set<std::string_view> queued = {"Logger.debug", "Logger.info", "Logger.warning", "Logger.warn", "Logger.error", "Logger.critical", "Logger.log", "Logger.exception"};
          if (queued.contains(PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(f)->func_qualname))) return Leaf::queued;
        }
        return Leaf::no;
      }
      it = by_globals.emplace(globals, torch).first;
    }
    if (!it->second) return Leaf::no;
  }
  return info_of(f).leaf;
}

namespace {
// A module with hooks that are called whatever happens: compiled, torch leaves them out where forward raises.
bool has_hooks_for_errors(const Owners& t, const Frame* frame) {
  if (!frame || frame->code->qualified_name() != "Module._call_impl" || !frame->code->file().ends_with("/torch/nn/modules/module.py")) return false;
  const auto is_there = [&](Value* owner, const char* name) { Value* hooks = owner ? t.attributes.getattr(owner, name) : nullptr; return hooks && t.subscripts.truth(hooks) == 1; };
  static PyObject* module = nullptr;   // not initialized here: two threads may come to it
  if (!module) module = PyImport_ImportModule("torch.nn.modules.module");
  if (!module) { PyErr_Clear(); return false; }
  if (is_there(t.values.wrap_constant_object(module), "_global_forward_hooks_always_called")) return true;
  for (size_t i = 0; i < frame->locals.size(); ++i)
    if (frame->code->slot_name(static_cast<int>(i)) == "self" && frame->locals[i]) {
      Value* self = frame->locals[i];
      if (self->kind == Kind::cell) self = t.values.cell_contents(self);
      return is_there(self, "_forward_hooks_always_called");
    }
  return false;
}
}  // namespace

Value* Leaves::call_known_function(Value* f, Leaf leaf, const Args& args) {
  if (leaf == Leaf::queued) return effects.queue_call(f, args);
  if (leaf == Leaf::constant) {
    if (info_of(f->real).is_for_tensors && (!args.count || values.kind(args[0]) != Kind::tensor)) stop("torch-machinery", values.describe(f) + " is called with something that is not a tensor");
    // Torch's optimisers take another way where they are compiled, which rounds otherwise than eager does, and its encoder gives padded places other numbers.
    // How optimisers group tensors gives the same numbers.
    const auto asks = [&](const char* file) { return frame_stack.innermost() && frame_stack.innermost()->code->file().find(file) != std::string::npos; };
    const bool as_eager = info_of(f->real).is_compiling && !options.fullgraph && (asks("/torch/optim/") || asks("/torch/nn/modules/transformer.py")) &&
                          frame_stack.innermost()->code->qualified_name() != "Optimizer._group_tensors_by_device_and_dtype";
    return values.constant(as_eager || (info_of(f->real).is_compiling && has_hooks_for_errors(*this, frame_stack.innermost())) ? Py_False : info_of(f->real).constant);
  }
  const LeafInfo& info = info_of(f->real);
  if (args.count && values.kind(args[0]) == Kind::tensor && starts_with(info.name, "torch._tensor."))   // Tensor.split(x, 2): a method all the same
    return call_tensor_method(args[0], values.keep(PyUnicode_InternFromString(info.name.c_str() + std::strlen("torch._tensor."))), args);
  return call_leaf(f->real, nullptr, args);
}

namespace {
bool collect(PyObject* o, std::vector<c10::IValue>& results, std::vector<int32_t>* returns, int depth) {
  if (is_tensor_object(o)) {
    results.emplace_back(unwrap_tensor(o));
    if (returns) returns->push_back(ir::Node::kSingle);
    return true;
  }
  if (PyTuple_Check(o) || PyList_Check(o)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    bool flat = true;
    for (Py_ssize_t i = 0; i < n; ++i) flat &= is_tensor_object(PySequence_Fast_GET_ITEM(o, i));
    if (flat || depth == 1) {
      if (!flat) return false;
      for (Py_ssize_t i = 0; i < n; ++i) results.emplace_back(unwrap_tensor(PySequence_Fast_GET_ITEM(o, i)));
      returns->push_back(static_cast<int32_t>(n));
      return true;
    }
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!collect(PySequence_Fast_GET_ITEM(o, i), results, returns, depth + 1)) return false;
    return true;
  }
  if (o == Py_None && depth == 1) {
    results.emplace_back();
    returns->push_back(ir::Node::kSingle);
    return true;
  }
  return false;
}
bool any_tensor(PyObject* o, int depth = 0) {
  if (is_tensor_object(o)) return true;
  if (depth < 3 && (PyTuple_Check(o) || PyList_Check(o)))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) if (any_tensor(PySequence_Fast_GET_ITEM(o, i), depth + 1)) return true;
  return false;
}
}  // namespace

bool is_own_of_torch(PyObject* o) {
  if (!PyFunction_Check(o)) return !PyMethod_Check(o) && !(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE && !PyType_Check(o) && Py_TYPE(o)->tp_dictoffset);
  PyObject* of = PyDict_GetItemWithError(PyFunction_GET_GLOBALS(o), names().__name__);
  if (!of) PyErr_Clear();
  return of && PyUnicode_Check(of) && std::string_view(PyUnicode_AsUTF8(of)).starts_with("torch");
}

namespace {
/// The tensors' special method that the function of `operator` ends in, when the program has replaced it.
std::string replaced_special(const std::string& name) {
  if (!name.starts_with("operator.") && !name.starts_with("_operator.")) return {};
  std::string last = name.substr(name.find('.') + 1);
  while (last.ends_with('_')) last.pop_back();
  for (const std::string& special : {"__" + last + "__", "__r" + last + "__"}) {
    PyObject* text = PyUnicode_InternFromString(special.c_str());
    PyObject* found = _PyType_Lookup(known().tensor, text);
    Py_DECREF(text);
    if (found && !is_own_of_torch(found)) return special;
  }
  return {};
}
/// A backend of Python's calls functions by their names. Does this one mean the program's own now?
bool is_replaced(const std::string& name, PyObject* callable) {
  if (!name.starts_with("torch.") && !name.starts_with("operator.")) return false;
  size_t dot = name.find('.');
  PyObject* at = Py_XNewRef(PyDict_GetItemString(PyImport_GetModuleDict(), name.substr(0, dot).c_str()));
  while (at && dot != std::string::npos) {
    const size_t end = name.find('.', dot + 1);
    PyObject* next = PyObject_GetAttrString(at, name.substr(dot + 1, end == std::string::npos ? end : end - dot - 1).c_str());
    if (!next) PyErr_Clear();
    Py_SETREF(at, next);
    dot = end;
  }
  const bool is = at && at != callable && PyCallable_Check(at) && !is_own_of_torch(at);
  Py_XDECREF(at);
  return is;
}
}  // namespace

Value* Leaves::call_leaf(PyObject* callable, const char* method, const Args& args) {
  std::string name;
  if (method) {
    name = std::string("Tensor.") + method;
    if (Value* r = nullptr; torch_calls.call_by_subclass(callable, args, &r)) return r;
  } else {
    const LeafInfo& info = info_of(callable);
    name = info.name;
    if (info.leaf == Leaf::no) stop("unknown-c-function", "a C function is called that capture does not know");
    if (Value* r = nullptr; library.call_with_arrays(callable, name, args, &r)) return r;
    if (const std::string special = replaced_special(name); !special.empty() && has_tensor(args)) stop("replaced-function", "Tensor." + special + " is called, which the program has replaced by a function of its own");
    if (options.runs_python && is_replaced(name, callable)) stop("replaced-function", name + " is called by another name, and that name means a function of the program's own now");
    const size_t dot = name.rfind('.');
    if (name.find("has_torch_function") != std::string::npos) torch_calls.refuse_subclasses("torch is asked whether a call is overridden");
    if (Value* r = nullptr; torch_calls.call_transform(name, callable, args, &r)) return r;
    if (Value* r = nullptr; torch_calls.call_mode_stack(name, args, &r)) return r;
    if (name == "torch.is_grad_enabled") torch_calls.note_grad_mode_question();
    if (moves_transform_levels(name)) stop("torch-transform", "a torch.func transform is entered (" + name + ")");
    if (changes_process(name.substr(dot + 1)) && exec::switch_set_by(name.substr(dot + 1)) < 0) stop("torch-state", name + " changes state of torch, or reads state that no guard checks");
    if (Value* r = nullptr; torch_calls.call_by_subclass(callable, args, &r)) return r;
  }
  // torch.tensor(lr) would be a constant of the graph: as a call that fills it may be another number each time.
  if (frames::SizeLog* log = frames::size_log(); log && log->has_dynamic && name == "torch.tensor" && args.count == 1 && !args.keyword_count && values.kind(args[0]) == Kind::constant && PyFloat_CheckExact(args[0]->real)) {
    static PyObject* const full = attribute_of("torch", "full");
    return call_leaf(full, nullptr, {values.make_tuple({}), args[0]});
  }
  if (name == "torch.tensor" && args.count == 1)
    if (Value* r = call_with_number(callable, args)) return r;
  if (Value* r = nullptr; torch_calls.call_with_tensor_factor(name, args, &r)) return r;
  // A tensor that is made to require grad is made first.
  for (size_t i = 0; i < args.keyword_count; ++i)
    if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "requires_grad") == 0 && values.is_constant(args.keywords[i].second, Py_True)) {
      if (torch_calls.in_transform()) stop("requires-grad", name + " is called with requires_grad=True inside a function transform");
      std::vector<Keyword> rest(args.keywords, args.keywords + args.keyword_count);
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      Value* made = call_leaf(callable, method, Args(args.positional, args.count, rest.data(), rest.size()));
      if (!made) return nullptr;
      if (values.kind(made) != Kind::tensor || made->real) stop("requires-grad", name + " is called with requires_grad=True and does not return a new tensor");
      return torch_calls.set_requires_grad(made, true);
    }
  // What a fake cannot know and no guard looks at: where a tensor lies in memory, what it is a view of, who shares it.
  static const std::unordered_set<std::string_view> unseen = {"storage_offset", "_is_view", "is_inference", "is_shared", "is_pinned", "is_set_to", "_is_alias_of", "_typed_storage",
                                                              "__hash__", "__dlpack__", "__dlpack_device__"};
  if (unseen.contains(std::string_view(name).substr(name.rfind('.') + 1))) stop("tensor-attribute", name + "() is called, and only the real tensor knows the answer");
  // These make a tensor of numpy's type, which a number of Python's in the graph would not.
  if (makes_of_data(std::string_view(name).substr(name.rfind('.') + 1)) && library.has_numpy_number(args)) stop("numpy", name + " is given a number of numpy", "give it float(x) or int(x), and a dtype");
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(args.count));
  values.keep(tuple);
  for (size_t i = 0; i < args.count; ++i) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), to_python(args[i]));
  PyObject* keywords = nullptr;
  if (args.keyword_count) {
    keywords = values.keep(PyDict_New());
    for (size_t i = 0; i < args.keyword_count; ++i) {
      PyObject* x = to_python(args.keywords[i].second);
      PyDict_SetItem(keywords, args.keywords[i].first, x);
      Py_DECREF(x);
    }
  }
  if (Value* r = nullptr; torch_calls.call_by_mode(callable, tuple, keywords, args, &r)) return r;
  if (Value* r = nullptr; !method && torch_calls.call_setter(name, callable, tuple, keywords, args, &r)) return r;
  if (torch_calls.is_transformed(args)) return finish_bare(callable, name, tuple, keywords);
  return finish_leaf(callable, std::move(name), tuple, keywords, args);
}

namespace {
/// Sizes of the tensors that out= names, one after the other: shape inference resizes them where kernels would warn or refuse.
std::vector<int64_t> out_sizes(PyObject* keywords) {
  std::vector<int64_t> sizes;
  PyObject* out = keywords ? PyDict_GetItemString(keywords, "out") : nullptr;
  const auto add = [&](PyObject* o) {
    if (!is_tensor_object(o)) return;
    const auto s = unwrap_tensor(o).sizes();
    sizes.push_back(static_cast<int64_t>(s.size()));
    sizes.insert(sizes.end(), s.begin(), s.end());
  };
  if (out && PyTuple_Check(out))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(out); ++i) add(PyTuple_GET_ITEM(out, i));
  else if (out) add(out);
  return sizes;
}
}  // namespace

Value* Leaves::leaf_raised(const std::string& name, bool tensors, bool spelled) {
  const std::string last = name.substr(name.rfind('.') + 1);
  const bool refused = PyErr_ExceptionMatches(PyExc_NotImplementedError);   // what fake tensors and the recorder raise, and kernels that a device lacks
  exceptions.raise_python();
  Value* error = exceptions.drop_raised();
  if (last == "tolist" || (refused && (last == "item" || last == "__int__" || last == "__float__" || last == "__complex__" || last == "__index__")))
    stop("item", "the value of a tensor is read by " + last + "()");
  if (tensors && makes_of_data(last)) stop("item", "the values of tensors are asked for by " + name + "()", "use torch.stack or torch.cat");
  if (refused) {
    const std::string words = exceptions.text_of_error(error);
    const bool is_ours = words.find("a recording cannot depend on") != std::string::npos;   // which says the same in the recorder's words
    stop("data-dependent-operator", name + " depends on the values of tensors" + (is_ours ? "" : " (" + words + ")"));
  }
  if (error->type == reinterpret_cast<PyTypeObject*>(PyExc_TypeError) && !tensors && !spelled) stop("torch-argument", name + " does not take these arguments");
  if (starts_with(name, "torch.ops.") && !starts_with(name, "torch.ops.aten."))   // what an operator of the program's raises on fakes says nothing about the operator
    stop("raises-while-traced", name + " raised " + exceptions.text_of_error(error) + " while it was traced", "register a fake implementation for it that takes these arguments");
  exceptions.raise(error);
  return exceptions.doubt(name);
}

void Leaves::refuse_handled_errors(const std::string& name, uint64_t failed_before) {
  if (trace::failed_operators() != failed_before) stop("raises-while-traced", name + " handles an error that an operator inside it raised while it was traced");
}

namespace {
// What a function in Python asks about its numbers is not seen: only what it does at other ones shows it.
void note_python(PyObject* callable) {
  if (frames::SizeLog* log = frames::size_log(); log && !PyCFunction_Check(callable) && Py_TYPE(callable) != &PyMethodDescr_Type && Py_TYPE(callable) != &PyWrapperDescr_Type) log->calls_python = true;
}
}  // namespace

void Leaves::refuse_warning(const std::string& name, const std::string& text) {
  if (text.empty() || options.fullgraph) return;
  PyErr_Clear();
  stop("torch-warning", name + " warns (" + text.substr(0, text.find('\n')) + ")");
}

Value* Leaves::finish_bare(PyObject* callable, const std::string& name, PyObject* tuple, PyObject* keywords) {
  note_python(callable);
  const uint64_t failed = trace::failed_operators();
  real_errors.watch_errors();
  WarningWatch warnings;
  PyObject* r = nullptr;
  {
    const TorchCalls::ShellCall shells(torch_calls);
    const bool was_bare = std::exchange(is_bare_, true);
    r = PyObject_Call(callable, tuple, keywords);
    is_bare_ = was_bare;
  }
  if (!torch_calls.end_shell_call(r)) return nullptr;
  refuse_warning(name, warnings.end());
  if (!r) return leaf_raised(name);
  values.keep(r);
  torch_calls.refuse_gradients(r);
  refuse_handled_errors(name, failed);
  real_errors.note_errors(name);
  // An operator of the user's without a derivative of its own may differentiate what it runs, which a fake does not show.
  if (starts_with(name, "torch.ops.") && !starts_with(name, "torch.ops.aten.") && torch_calls.all_bare()) stop("autograd-grad", name + " is called beside torch.autograd.grad()");
  return from_result(r);
}

Value* Leaves::finish_leaf(PyObject* callable, std::string name, PyObject* tuple, PyObject* keywords, const Args& args) {
  auto& recorder = tensors.recorder();
  std::vector<ir::Argument> arguments;
  std::vector<std::pair<std::string, ir::Argument>> named;
  const bool tensors = has_tensor(args);
  bool spelled = true;
  try {
    for (size_t i = 0; i < args.count; ++i) arguments.push_back(to_argument(args[i]));
    for (size_t i = 0; i < args.keyword_count; ++i) named.emplace_back(PyUnicode_AsUTF8(args.keywords[i].first), to_argument(args.keywords[i].second));
  } catch (const EndOfGraph&) {
    if (tensors) throw;
    spelled = false;   // a question about Python objects: it may still have a constant answer
    arguments.clear();
    named.clear();
  }
  if (starts_with(name, "torch.ops.")) torch_calls.refuse_python_kernels(name, callable, args);
  recorder.begin_call(name, std::move(arguments), std::move(named), frame_stack.location());
  real_errors.watch_errors();
  // A question about torch's state or the machine: a record of this frame has the answer that was given here.
  const std::vector<int64_t> sizes_before = out_sizes(keywords);
  note_python(callable);
  const uint64_t failed = trace::failed_operators();
  PyObject* r = tensors ? nullptr : frames::recorded_result(name);
  WarningWatch warnings;
  if (!r && options.fullgraph && name == "Tensor.item" && args.count == 1 && !keywords) r = item_object(unwrap_tensor(PyTuple_GET_ITEM(tuple, 0)));   // torch's binding takes no float of ours
  if (!r && !PyErr_Occurred()) r = PyObject_Call(callable, tuple, keywords);
  refuse_warning(name, warnings.end());
  if (!r) {
    recorder.cancel_call();
    if (!sizes_before.empty() && PyErr_ExceptionMatches(PyExc_NotImplementedError)) { PyErr_Clear(); stop("out-resized", name + " may resize its out= tensor"); }
    if (options.fullgraph && args.count == 1 && !args.keyword_count && values.kind(args[0]) == Kind::tensor)
      if (Value* number = read_number(name.substr(name.rfind('.') + 1), args[0]); number || exceptions.raised()) return number;
    return leaf_raised(name, tensors, spelled);
  }
  values.keep(r);
  if (trace::failed_operators() != failed) recorder.cancel_call();
  refuse_handled_errors(name, failed);
  if (out_sizes(keywords) != sizes_before) {
    recorder.cancel_call();
    stop("out-resized", name + " resizes its out= tensor");
  }
  if (is_symbolic_object(r)) {   // the number of item(); a size is asked for where it is used
    const c10::IValue number = unwrap_symbolic(r);
    const auto* unknown = trace::UnknownNumber::of(number);
    if (unknown && unknown->is_size) recorder.cancel_call();
    else recorder.end_call({number}, {ir::Node::kSingle});
    return from_result(r);
  }
  if (!any_tensor(r)) {
    if (recorder.call_has_effects()) {
      real_errors.note_errors(name);
      recorder.end_call({}, {});
    } else {
      recorder.cancel_call();
    }
    if (!tensors) frames::keep_result(name, r);
    if (frames::SizeLog* log = frames::size_log()) log->used_floats(tuple), log->used_floats(keywords);
    return from_result(r);
  }
  if (!spelled) { recorder.cancel_call(); stop("torch-argument", name + " is called with an argument that a graph cannot hold"); }
  std::vector<c10::IValue> results;
  std::vector<int32_t> returns;
  if (!collect(r, results, &returns, 0)) {
    recorder.cancel_call();
    stop("mixed-results", name + " returns tensors together with other values");
  }
  real_errors.note_errors(name);
  recorder.end_call(results, returns);
  Value* result = from_result(r);
  if (options.runs_python && starts_with(name, "torch.ops.")) torch_calls.require_pure_operator(name, callable, args, result);
  return result;
}

}  // namespace cutaway::capture
