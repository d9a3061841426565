// Calls: arguments bound as Python binds them, functions inlined, classes instantiated, generators suspended and resumed.
#include "compiler/capture/protocols/calls.h"

#include <cstdint>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/protocols/argument_counts.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/call_log.h"
#include "compiler/frames/compiled_function.h"
#include "compiler/frames/marks.h"
#include "compiler/frames/session.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {

namespace {

// What the user said about a function comes before everything that is known of it.
bool call_marked(const Owners& t, Value* f, const Args& args, const Tail& tail, Value*& result) {
  const frames::Mark mark = frames::mark_of(f->real);
  PyObject* target = frames::compiled_target(f->real);
  const bool disabled = !target && frames::is_disabled_function(f->real);
  if (mark == frames::Mark::none && !target && !disabled) return false;
  // What Dynamo says about torch's own optimisers, once it has run, is about how it captures them.
  const auto is_of_optimiser = [](PyObject* o) {
    const char* file = o && PyFunction_Check(o) ? PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(o))->co_filename) : nullptr;
    if (!file) PyErr_Clear();
    return file && std::string_view(file).find("/torch/optim/") != std::string_view::npos;
  };
  if (mark == frames::Mark::graph_break && PyFunction_Check(f->real)) {
    if (is_of_optimiser(f->real)) return false;
    PyObject* own = reinterpret_cast<PyFunctionObject*>(f->real)->func_dict;
    if (PyObject* inside = own ? PyDict_GetItemString(own, "_torchdynamo_orig_callable") : nullptr; is_of_optimiser(inside)) {
      if (f->source) t.guards.add(f->source, GuardKind::id, f->real);
      t.endings.hand_on(tail);
      result = t.calls.call(t.values.wrap_constant_object(inside), args);
      return true;
    }
  }
  if (f->source) t.guards.add(f->source, GuardKind::id, f->real);
  if (target) { result = t.calls.call(t.values.wrap_constant_object(target), args); return true; }   // compiled inside compiled: one region
  if (disabled) stop("disabled-function", t.values.describe(f) + " is called, which is marked with disable()", "");
  switch (mark) {
    case frames::Mark::graph_break:
      // Optimisers ask Dynamo to split around a step: nothing in it needs that.
      if (t.values.describe(f) == "torch._dynamo.decorators.graph_break" && t.frame_stack.innermost() && t.frame_stack.innermost()->code->file().find("/torch/optim/") != std::string::npos) {
        result = t.values.none();
        return true;
      }
      stop("asked-for", t.values.describe(f) + " is called, which ends the graph as the program asked", "");
    case frames::Mark::allow_in_graph:
      t.endings.hand_on(tail);
      result = t.torch_calls.call_allowed(f, args);
      return true;
    case frames::Mark::reorderable: result = t.effects.queue_call(f, args); return true;
    case frames::Mark::constant_result: result = t.torch_calls.call_constant(f, args); return true;
    case frames::Mark::none: break;
  }
  return false;
}

}  // namespace

Value* Calls::call(Value* f, const Args& args) {
  const Tail tail = endings.take_tail();   // handed on where nothing happens behind the next call
  struct Depth { int& n; explicit Depth(int& d) : n(++d) {} ~Depth() { --n; } } const depth{call_depth_};
  if (call_depth_ > 2000) throw frames::Skip{{.id = "deep-recursion", .what = "calls nest too deeply", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::none}};
  values.force(f);
  if (f->real && (f->kind == Kind::function || f->kind == Kind::builtin || f->kind == Kind::object || f->kind == Kind::opaque))
    if (Value* result = nullptr; call_marked(*this, f, args, tail, result)) return result;
  switch (f->kind) {
    case Kind::function: {
      if (f->real) {
        if (f->real == known().function_apply) return leaves.call_function_apply(args);
        static PyObject* const namedtuple = [] { PyObject* m = PyImport_ImportModule("collections"); PyObject* n = PyObject_GetAttrString(m, "namedtuple"); Py_DECREF(m); return n; }();
        if (f->real == namedtuple) return builtins.call_pure(f->real, args);   // makes a class of names alone
        if (Value* replaced = builtins.polyfill(f->real)) { endings.hand_on(tail); return call_python(values.force(replaced), args); }
        if (Value* r = nullptr; torch_calls.call_function(f, args, &r)) return r;
        if (Value* r = nullptr; leaves.call_check(f, args, &r)) return r;
        if (Value* r = nullptr; library.call_dispatch(f, args, &r)) return r;
        if (Value* r = nullptr; leaves.call_inference_mode(f->real, args, &r)) return r;
        if (builtins.is_give_up_function(f->real)) {
          PyObject* why = args.count ? values.as_constant(args[0]) : nullptr;
          stop("object-protocol", why && PyUnicode_Check(why) ? PyUnicode_AsUTF8(why) : "a function written in C is called in a way that capture does not know");
        }
        if (Value* r = nullptr; library.answer_for_arrays(f->real, args, &r) || library.call_on_arrays(f->real, args, &r)) return r;
        if (builtins.is_identity_function(f->real)) return library.identity_number(values.force(args[0]));
        if (builtins.is_held_function(f->real)) return values.boolean(library.is_held(args[0]));
        const Leaves::Leaf leaf = leaves.leaf_of(f->real);
        if (leaf != Leaves::Leaf::no) return leaves.call_known_function(f, leaf, args);
      }
      endings.hand_on(tail);
      return call_python(f, args);
    }
    case Kind::method: {
      Method m = body<Method>(f);
      Value* small[9];
      std::vector<Value*> large;
      Value** all = small;
      if (args.count + 1 > 9) { large.resize(args.count + 1); all = large.data(); }
      all[0] = m.self;
      for (size_t i = 0; i < args.count; ++i) all[i + 1] = args[i];
      const Args with_self(all, args.count + 1, args.keywords, args.keyword_count);
      values.force(m.function);
      endings.hand_on(tail);
      if (m.function->kind == Kind::builtin) return builtins.call_builtin(m.function, with_self);
      return call(m.function, with_self);
    }
    case Kind::builtin: endings.hand_on(tail); return builtins.call_builtin(f, args);
    case Kind::klass: endings.hand_on(tail); return call_class(reinterpret_cast<PyTypeObject*>(f->real), f, args);
    case Kind::partial: {
      Partial& p = body<Partial>(f);
      std::vector<Value*> positional = p.args;
      positional.insert(positional.end(), args.positional, args.positional + args.count);
      std::vector<Keyword> keywords = p.keywords;
      for (size_t i = 0; i < args.keyword_count; ++i) {
        bool replaced = false;
        for (auto& k : keywords)
          if (PyUnicode_Compare(k.first, args.keywords[i].first) == 0) { k.second = args.keywords[i].second; replaced = true; }
        if (!replaced) keywords.push_back(args.keywords[i]);
      }
      endings.hand_on(tail);
      return call(p.function, Args(positional, keywords));
    }
    case Kind::object: case Kind::dict: case Kind::list: case Kind::tuple: case Kind::set: {
      PyObject* found = attributes.lookup_type(f->type, names().__call__);
      if (!found) return exceptions.raise(PyExc_TypeError, std::string("'") + f->type->tp_name + "' object is not callable");
      if (Py_TYPE(found) == &PyWrapperDescr_Type) stop("unknown-callable", values.describe(f) + " is called, which capture does not know");   // its type calls it by C code
      Value* self = nullptr;
      Value* bound = attributes.apply_descriptor(found, f, nullptr, names().__call__, &self);
      if (!bound) return nullptr;
      endings.hand_on(tail);
      if (!self) return call(bound, args);
      std::vector<Value*> all{self};
      all.insert(all.end(), args.positional, args.positional + args.count);
      return call(bound, Args(all.data(), all.size(), args.keywords, args.keyword_count));
    }
    case Kind::constant: {
      if (f->type == known().generic_alias) return call(values.wrap_constant_object(values.keep(PyObject_GetAttrString(f->real, "__origin__"))), args);
      if (f->type == &PyStaticMethod_Type) return call(values.wrap_constant_object(values.keep(PyObject_GetAttr(f->real, names().func_))), args);
      if (PyObject* own = attributes.lookup_type(f->type, names().__call__)) {   // typing.Counter(), a member of an enumeration that can be called
        if (Py_TYPE(own) != &PyFunction_Type) stop("unknown-callable", values.describe(f) + " is called, whose type is written in C");
        std::vector<Value*> all{f};
        all.insert(all.end(), args.positional, args.positional + args.count);
        endings.hand_on(tail);
        return call(values.wrap_constant_object(own), Args(all.data(), all.size(), args.keywords, args.keyword_count));
      }
      return exceptions.raise(PyExc_TypeError, std::string("'") + f->type->tp_name + "' object is not callable");
    }
    case Kind::opaque:
      if (Value* r = nullptr; library.call_numpy(f, args, &r)) return r;
      if (Value* r = nullptr; f->real && library.call_on_arrays(f->real, args, &r)) return r;
      if (f->type == known().weakref && f->real && args.count == 0) {
        PyObject* target = PyWeakref_GET_OBJECT(f->real);
        if (target && target != Py_None) return values.wrap(target, guards.sources().of(f->source, SourceKind::weakref_target));
      }
      stop("unknown-callable", values.describe(f) + " is called, which capture does not know", "");
    default:
      if (f->type && attributes.lookup_type(f->type, names().__call__)) stop("unknown-callable", values.describe(f) + " is called, which capture does not know");
      return exceptions.raise(PyExc_TypeError, std::string("'") + (f->type ? f->type->tp_name : "NoneType") + "' object is not callable");
  }
}

Value* Calls::call_method(Value* v, const char* name, const Args& args) {
  Value* m = attributes.getattr(v, name);
  return m ? call(m, args) : nullptr;
}

namespace {
std::string quoted_list(const std::vector<std::string>& all) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i) text += i + 1 == all.size() ? (all.size() > 2 ? ", and " : " and ") : ", ";
    text += "'" + all[i] + "'";
  }
  return text;
}
}  // namespace

bool Calls::bind(Value* f, const Args& args, std::vector<Value*>& locals) {
  Function& fn = values.function(f);
  PyCodeObject* co = fn.code;
  const size_t argcount = static_cast<size_t>(co->co_argcount), kwonly = static_cast<size_t>(co->co_kwonlyargcount), posonly = static_cast<size_t>(co->co_posonlyargcount);
  const size_t total = argcount + kwonly;
  const bool varargs = co->co_flags & CO_VARARGS, varkw = co->co_flags & CO_VARKEYWORDS;
  auto name = [&](size_t i) { return PyTuple_GET_ITEM(co->co_localsplusnames, static_cast<Py_ssize_t>(i)); };
  auto function_name = [&] { return std::string(PyUnicode_AsUTF8(fn.qualname ? fn.qualname : co->co_qualname)); };
  const size_t given = std::min(args.count, argcount);
  for (size_t i = 0; i < given; ++i) locals[i] = args[i];
  if (varargs) locals[total] = values.make_tuple(args.count > argcount ? std::vector<Value*>(args.positional + argcount, args.positional + args.count) : std::vector<Value*>());
  Value* extra = nullptr;
  if (varkw) locals[total + (varargs ? 1 : 0)] = extra = values.make_dict();
  for (size_t k = 0; k < args.keyword_count; ++k) {
    PyObject* key = args.keywords[k].first;
    size_t slot = total;
    for (size_t i = posonly; i < total; ++i)
      if (name(i) == key) { slot = i; break; }
    if (slot == total)
      for (size_t i = posonly; i < total; ++i)
        if (PyUnicode_Compare(name(i), key) == 0) { slot = i; break; }
    if (slot < total) {
      if (locals[slot]) { exceptions.raise(PyExc_TypeError, function_name() + "() got multiple values for argument '" + PyUnicode_AsUTF8(key) + "'"); return false; }
      locals[slot] = args.keywords[k].second;
    } else if (extra) {
      mappings.dict_set(extra, key, args.keywords[k].second);
    } else {
      std::string refused;   // all that are given by name, in the order of the signature
      for (size_t i = 0; i < posonly; ++i)
        for (size_t j = 0; j < args.keyword_count; ++j)
          if (PyUnicode_Compare(name(i), args.keywords[j].first) == 0) refused += (refused.empty() ? "" : ", ") + std::string(PyUnicode_AsUTF8(name(i)));
      if (!refused.empty()) {
        exceptions.raise(PyExc_TypeError, function_name() + "() got some positional-only arguments passed as keyword arguments: '" + refused + "'");
        return false;
      }
      exceptions.raise(PyExc_TypeError, function_name() + "() got an unexpected keyword argument '" + PyUnicode_AsUTF8(key) + "'");
      return false;
    }
  }
  const auto default_count = static_cast<Py_ssize_t>(fn.defaults && !values.is_constant(fn.defaults, Py_None) ? values.items(values.force(fn.defaults)).size() : 0);
  const Py_ssize_t required = static_cast<Py_ssize_t>(argcount) - default_count;   // below zero: more defaults than parameters, of which the last count
  if (args.count > argcount && !varargs) {
    std::string takes = default_count ? "from " + std::to_string(required) + " to " + std::to_string(argcount) : std::to_string(argcount);
    const bool plural = default_count || argcount != 1;
    size_t keyword_only = 0;
    for (size_t i = argcount; i < total; ++i) keyword_only += locals[i] != nullptr;
    std::string extra_given;
    if (keyword_only) extra_given = std::string(" positional argument") + (args.count == 1 ? "" : "s") + " (and " + std::to_string(keyword_only) + " keyword-only argument" + (keyword_only == 1 ? "" : "s") + ")";
    exceptions.raise(PyExc_TypeError, function_name() + "() takes " + takes + " positional argument" + (plural ? "s" : "") + " but " + std::to_string(args.count) + extra_given +
                               (args.count == 1 && !keyword_only ? " was" : " were") + " given");
    return false;
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < argcount; ++i) {
    if (locals[i]) continue;
    if (static_cast<Py_ssize_t>(i) >= required) locals[i] = values.items(fn.defaults)[static_cast<size_t>(static_cast<Py_ssize_t>(i) - required)];
    else missing.emplace_back(PyUnicode_AsUTF8(name(i)));
  }
  if (!missing.empty()) {
    exceptions.raise(PyExc_TypeError, function_name() + "() missing " + std::to_string(missing.size()) + " required positional argument" + (missing.size() == 1 ? "" : "s") + ": " + quoted_list(missing));
    return false;
  }
  for (size_t i = argcount; i < total; ++i) {
    if (locals[i]) continue;
    Value* d = fn.keyword_defaults && !values.is_constant(fn.keyword_defaults, Py_None) ? mappings.dict_get(values.force(fn.keyword_defaults), name(i)) : nullptr;
    if (d) locals[i] = d;
    else missing.emplace_back(PyUnicode_AsUTF8(name(i)));
  }
  if (!missing.empty()) {
    exceptions.raise(PyExc_TypeError, function_name() + "() missing " + std::to_string(missing.size()) + " required keyword-only argument" + (missing.size() == 1 ? "" : "s") + ": " + quoted_list(missing));
    return false;
  }
  return true;
}

namespace {
// In eager it keeps its state in tensors, too, or there must be one graph.
bool is_compiled_optimiser(const Owners& t, const Args& args) {
  if (t.options.fullgraph) return true;
  for (size_t i = 0; i < args.keyword_count; ++i)
    if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "capturable") == 0) return t.values.is_constant(t.values.force(args.keywords[i].second), Py_True);
  return false;
}
}  // namespace

Value* Calls::call_python(Value* f, const Args& args) {
  if (f->real && frames::runs_hidden(values.function(f).code) && !TorchCalls::may_inline(values.function(f).code)) {
    if (!frames::reads_optimiser_state(values.function(f).code)) stop("torch-machinery", values.describe(f) + " is called, which belongs to torch's own compiler machinery");
    if (!is_compiled_optimiser(*this, args)) stop("optimiser-step", values.describe(f) + " is called, which reads numbers out of the state of an optimiser");
  }
  Frame* frame = frame_stack.make_frame(f);
  const Tail tail = endings.take_tail();
  frame->is_direct = tail.is;
  frame->ending = tail.ending;
  if (!bind(f, args, frame->locals)) {
    PyObject* original = std::exchange(replaced_, nullptr);
    if (values.stands_for_c(f) && original && !PyFunction_Check(original)) {   // C has its own words
      std::vector<PyObject*> keywords;
      for (size_t i = 0; i < args.keyword_count; ++i) keywords.push_back(args.keywords[i].first);
      exceptions.take_raised();
      const size_t self = PyUnicode_CompareWithASCIIString(values.function(f).code->co_name, "__init__") == 0 ? 1 : 0;   // of a class that stands for one of C
      if (refuses(original, nullptr, args.count - self, keywords)) return exceptions.raise_python();
    }
    if (values.stands_for_c(f)) { exceptions.take_raised(); stop("unknown-c-function", values.describe(f) + " is called with arguments that it does not take"); }
    return nullptr;
  }
  replaced_ = nullptr;
  return interpreter.run_inlined(frame);
}

// --- generators ---

// --- classes ---

namespace {
bool has_member(PyTypeObject* enumeration, PyObject* value) {
  PyObject* members = bytecode::in_type_dict(enumeration, "_value2member_map_");
  const bool found = members && PyDict_Check(members) && PyDict_GetItemWithError(members, value);
  PyErr_Clear();   // of a value without a hash
  return found;
}
bool has_missing_of_user(PyTypeObject* enumeration) {
  static PyObject* const name = PyUnicode_InternFromString("_missing_");
  PyObject* method = _PyType_Lookup(enumeration, name);
  const auto function = guards::ObjectRef::steal(method ? PyObject_GetAttrString(method, "__func__") : nullptr);
  PyErr_Clear();
  PyObject* home = function && PyFunction_Check(function.get()) ? PyFunction_GET_MODULE(function.get()) : nullptr;
  return !home || !PyUnicode_Check(home) || PyUnicode_CompareWithASCIIString(home, "enum") != 0;
}
}  // namespace

Value* Calls::call_class(PyTypeObject* t, Value* klass, const Args& args) {
  const Tail tail = endings.next_tail();
  bool is_known = false;
  if (Value* r = builtins.call_known_type(t, args, &is_known); is_known) return r;
  endings.hand_on(tail);
  PyTypeObject* meta = Py_TYPE(klass->real);
  if (meta != &PyType_Type) {
    PyObject* meta_call = attributes.lookup_type(meta, names().__call__);
    if (is_enum(t)) {
      endings.take_tail();
      if (args.count == 1 && args.keyword_count == 0)
        if (PyObject* c = values.as_constant(args[0])) {
          if (frames::SizeLog* log = frames::size_log()) log->used(c);
          if (!has_member(t, c) && has_missing_of_user(t)) stop("enum-call", std::string("a value is looked up in the enumeration ") + t->tp_name + ", whose _missing_() would run");
          return values.constant_steal(PyObject_CallOneArg(klass->real, c));
        }
      // Enum("Name", "A B") makes a class of names alone.
      PyObject* members = bytecode::in_type_dict(t, "_member_map_");
      PyObject* module = bytecode::in_type_dict(t, "__module__");
      if (args.count == 2 && !args.keyword_count && (!members || (PyDict_Check(members) && !PyDict_GET_SIZE(members))) && module && PyUnicode_Check(module) &&
          PyUnicode_CompareWithASCIIString(module, "enum") == 0 && texts.to_plain(args[0]) && texts.to_plain(args[1]))
        return builtins.call_pure(klass->real, args);
      stop("enum-call", std::string("an enumeration is called with something other than one constant"));
    }
    if (meta_call && PyType_Check(meta_call)) return call(values.wrap_constant_object(meta_call), args);   // TypedDict: a plain dict
    if (PyObject* own = attributes.own_method(meta, names().__call__)) {
      std::vector<Value*> all{klass};
      all.insert(all.end(), args.positional, args.positional + args.count);
      return call(values.wrap_constant_object(own), Args(all.data(), all.size(), args.keywords, args.keyword_count));
    }
  }
  return instantiate(t, klass, args);
}

Value* Calls::instantiate(PyTypeObject* t, Value* klass, const Args& args) {
  const Tail tail = endings.take_tail();
  if (Value* replaced = builtins.polyfill(klass->real)) { note_replaced(klass->real); return call(replaced, args); }
  if (PyType_IsSubtype(t, known().tensor)) {
    const bool is_known = t == known().parameter || t == known().buffer || (t != known().tensor && is_plain_tensor_subclass(t));
    PyObject* own = is_known ? attributes.lookup_type(t, names().__new__) : nullptr;
    // Without a __new__ of its own: torch.Tensor(x) is an alias of x.
    if (own && PyCFunction_Check(own) && args.count == 1 && !args.keyword_count && values.kind(args[0]) == Kind::tensor && args[0]->type == known().tensor && !is_shell_class(t)) {
      Value* made = torch_calls.as_subclass(args[0], t);
      PyObject* first = made ? attributes.own_method(t, names().__init__) : nullptr;
      return !first ? made : calls.call(values.wrap_constant_object(first), {made, args[0]}) ? made : nullptr;
    }
    if (!own || PyCFunction_Check(own)) stop("tensor-class", std::string("an instance of ") + t->tp_name + " is created");
  }
  PyObject* make = attributes.lookup_type(t, names().__new__);
  std::vector<Value*> with_class{klass};
  with_class.insert(with_class.end(), args.positional, args.positional + args.count);
  const Args all(with_class.data(), with_class.size(), args.keywords, args.keyword_count);
  Value* instance = nullptr;
  PyObject* init = attributes.lookup_type(t, names().__init__);
  auto then_init = [&] {   // what is behind __new__
    if (!tail.is) return;
    Value* keywords = values.make_dict();
    for (size_t i = 0; i < args.keyword_count; ++i) mappings.dict_set(keywords, args.keywords[i].first, args.keywords[i].second);
    endings.end_with(tail, "after_new", {klass, values.make_tuple({args.positional, args.positional + args.count}), keywords});
  };
  if (make && Py_TYPE(make) == &PyStaticMethod_Type) {
    then_init();
    instance = call(values.wrap_constant_object(values.keep(PyObject_GetAttr(make, names().func_))), all);
  } else if (make && Py_TYPE(make) == &PyFunction_Type) {
    then_init();
    instance = call(values.wrap_constant_object(make), all);
  } else if (make && !(PyCFunction_Check(make) && PyCFunction_GET_SELF(make) && PyType_Check(PyCFunction_GET_SELF(make)))) {
    stop("special-method", std::string("the class ") + t->tp_name + " has something else than a function as __new__", "define it by def");
  } else {
    const bool user_init = init && Py_TYPE(init) == &PyFunction_Type;
    if (!t->tp_new) return exceptions.raise(PyExc_TypeError, std::string("cannot create '") + t->tp_name + "' instances");
    if (make == known().object_new && (args.count || args.keyword_count) && init == known().object_init)
      return exceptions.raise(PyExc_TypeError, std::string(t->tp_name) + "() takes no arguments");
    instance = new_instance(t, all, user_init);
  }
  if (!instance) return nullptr;
  values.force(instance);
  if (is_polyfill_module(bytecode::in_type_dict(t, "__module__"))) builtins.note_stand_in(instance);
  PyTypeObject* made = instance->kind == Kind::klass ? Py_TYPE(instance->real) : instance->type;
  if (!PyType_IsSubtype(made, t)) return instance;
  if (made != t) init = attributes.lookup_type(made, names().__init__);   // __new__ gave an instance of a class below
  if (!init) return instance;
  if (PyObject* own = attributes.own_method(made, names().__init__)) {
    with_class[0] = instance;
    if (tail.is) endings.end_with(tail, "after_init", {instance});
    Value* r = call(values.wrap_constant_object(own), Args(with_class.data(), with_class.size(), args.keywords, args.keyword_count));
    if (!r) return nullptr;
    if (!values.is_constant(r, Py_None)) return exceptions.raise(PyExc_TypeError, std::string("__init__() should return None, not '") + r->type->tp_name + "'");
    return instance;
  }
  if (!init_builtin(instance, init, args)) return nullptr;
  return instance;
}

namespace {
// Exceptions that do more than keep what they are given: they refuse it, or OSError(1, "text") becomes a PermissionError.
bool checks_its_arguments(PyTypeObject* t, size_t count) {
  const auto is = [&](PyObject* base) { return PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(base)); };
  if (is(PyExc_UnicodeDecodeError) || is(PyExc_UnicodeEncodeError) || is(PyExc_UnicodeTranslateError)) return true;
  return count > 1 && (is(PyExc_OSError) || is(PyExc_SyntaxError));
}
}  // namespace

/// tp_new of a C base for a class that may be the user's: the content is filled by __init__ or by the arguments.
Value* Calls::new_instance(PyTypeObject* t, const Args& args, bool) {
  guards.add_type_version(t);
  if (PyType_IsSubtype(t, &PyType_Type)) return classes.make_class(t, args.rest(1));
  PyTypeObject* of_c = t;
  while ((of_c->tp_flags & Py_TPFLAGS_HEAPTYPE) && of_c->tp_base) of_c = of_c->tp_base;
  if ((t->tp_flags & Py_TPFLAGS_IS_ABSTRACT) && of_c->tp_new == PyBaseObject_Type.tp_new) {   // that of no other type asks whether the class is abstract
    PyObject* abstract = PyObject_GetAttrString(reinterpret_cast<PyObject*>(t), "__abstractmethods__");
    PyObject* sorted = abstract ? values.keep(PySequence_List(abstract)) : nullptr;
    Py_XDECREF(abstract);
    if (!sorted || PyList_Sort(sorted) < 0) return exceptions.raise_python();
    const bool is_311 = PY_VERSION_HEX < 0x030C0000;
    PyObject* listed = values.keep(PyUnicode_Join(values.keep(PyUnicode_FromString(is_311 ? ", " : "', '")), sorted));
    const char* form = is_311 ? "Can't instantiate abstract class %s with abstract method%s %U" : "Can't instantiate abstract class %s without an implementation for abstract method%s '%U'";
    PyObject* words = PyUnicode_FromFormat(form, t->tp_name, PyList_GET_SIZE(sorted) > 1 ? "s" : "", listed);
    return exceptions.raise(exceptions.make_exception(PyExc_TypeError, {values.constant_steal(words)}));
  }
  if (PyObject* del = t->tp_finalize ? attributes.lookup_type(t, values.keep(PyUnicode_InternFromString("__del__"))) : nullptr) {
    const std::string what = std::string("an instance of ") + t->tp_name + " is created, whose class defines __del__";
    if (!PyFunction_Check(del)) stop("finalizer", what);
    // Code of the program shows how long each variable, stack and container keeps the instance: Python runs the whole frame.
    throw frames::Skip{{.id = "finalizer", .what = what, .stack = frame_stack.user_stack()}};
  }
  if (checks_its_arguments(t, args.count - 1)) stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created, whose constructor reads its arguments");
  if (PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) return exceptions.make_exception(reinterpret_cast<PyObject*>(t), {args.positional + 1, args.positional + args.count});
  const Kind k = kind_of_type(t, nullptr);
  if (k == Kind::tuple) {
    const auto refuse = [&](const char* why) { stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created " + why); };
    const auto field_count = [&](const char* name) {
      PyObject* number = bytecode::in_type_dict(t, name);
      return number && PyLong_Check(number) ? PyLong_AsLong(number) : -1;
    };
    // A struct sequence (torch.return_types, os.stat_result) checks what it is given.
    const long visible = field_count("n_sequence_fields");
    if (visible >= 0) {
      if (args.count != 2 || args.keyword_count || (values.kind(args[1]) != Kind::tuple && values.kind(args[1]) != Kind::list) || field_count("n_fields") != visible) refuse("from something else than its fields");
    } else {
      if (of_c != &PyTuple_Type) stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created, whose constructor is written in C");
      std::vector<PyObject*> refused;   // keywords are for an __init__ of the class's own
      for (size_t i = 0; i < args.keyword_count && t->tp_init == PyTuple_Type.tp_init; ++i) refused.push_back(args.keywords[i].first);
      if (refuses(reinterpret_cast<PyObject*>(&PyTuple_Type), nullptr, args.count - 1, refused)) return exceptions.raise_python();
    }
    std::vector<Value*> content;
    if (args.count > 1 && !iteration.unpack(args[1], &content)) return nullptr;
    if (visible >= 0 && content.size() != static_cast<size_t>(visible)) refuse("from another number of fields than it has");
    return values.make_tuple(std::move(content), t);
  }
  if (k == Kind::constant && !is_enum(t)) {   // derived from a number or text: made now, known by identity
    if (args.keyword_count) stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created with keyword arguments");
    std::vector<Value*> rest(args.positional + 1, args.positional + args.count);
    PyObject* plain = PyTuple_New(static_cast<Py_ssize_t>(rest.size()) + 1);
    values.keep(plain);
    PyTuple_SET_ITEM(plain, 0, Py_NewRef(reinterpret_cast<PyObject*>(t)));
    for (size_t i = 0; i < rest.size(); ++i) {
      PyObject* p = values.as_constant(rest[i]);
      if (!p) stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created from values that are not constant");
      PyTuple_SET_ITEM(plain, static_cast<Py_ssize_t>(i) + 1, Py_NewRef(p));
    }
    PyTypeObject* base = t;
    while (base->tp_flags & Py_TPFLAGS_HEAPTYPE) base = base->tp_base;
    PyObject* make = values.keep(PyObject_GetAttr(reinterpret_cast<PyObject*>(base), names().__new__));
    Value* made = values.constant_steal(PyObject_Call(make, plain, nullptr));
    if (made && is_user_class(t)) numbers.note_made_number(made->real);
    return made;
  }
  if (k == Kind::object && is_number_class(t)) return numbers.make_number(t, args.rest(1));
  if (k == Kind::set && of_c == &PyFrozenSet_Type && t != of_c) {   // filled when it is made
    if (args.count > 2 || (args.keyword_count && t->tp_init == PyFrozenSet_Type.tp_init)) stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created from more than it takes");
    Value* made = values.make_object(t);
    bool is_known = true;
    return args.count < 2 || containers.call_set_method("update", made, {args[1]}, &is_known) ? made : nullptr;
  }
  if (k == Kind::object || k == Kind::dict || k == Kind::list || k == Kind::set) {
    // Only where allocation is the ordinary one: a C base with state of its own cannot be modelled.
    PyObject* make = attributes.lookup_type(t, names().__new__);
    auto* maker = make && PyCFunction_Check(make) && PyCFunction_GET_SELF(make) && PyType_Check(PyCFunction_GET_SELF(make)) ? reinterpret_cast<PyTypeObject*>(PyCFunction_GET_SELF(make)) : nullptr;
    PyTypeObject* base = maker && (maker->tp_flags & Py_TPFLAGS_HEAPTYPE) ? nullptr : t;   // a heap type of C, with state of its own
    while (base && (base->tp_flags & Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
    if (base == &PyBaseObject_Type || base == &PyDict_Type || base == &PyList_Type || base == &PySet_Type || base == known().ordered_dict || base == known().defaultdict || base == known().simple_namespace) return values.make_object(t);
  }
  stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created, whose constructor is written in C");
}

bool Calls::init_builtin(Value* v, PyObject* init, const Args& args) {
  if (init == known().object_init) {
    if (!args.count && !args.keyword_count) return true;
    // CPython's rule: extra arguments are an error unless exactly one of __new__ and __init__ is the class's own.
    if (attributes.lookup_type(v->type, names().__init__) != init) { exceptions.raise(PyExc_TypeError, "object.__init__() takes exactly one argument (the instance to initialize)"); return false; }
    if (attributes.lookup_type(v->type, names().__new__) == known().object_new) { exceptions.raise(PyExc_TypeError, std::string(v->type->tp_name) + ".__init__() takes exactly one argument (the instance to initialize)"); return false; }
    return true;
  }
  if (v->kind == Kind::object && PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
    if (v->real) stop("exception-init", "an exception that existed before the call is initialised again");
    if (args.keyword_count) {
      if (Py_TYPE(init) != &PyWrapperDescr_Type || PyDescr_TYPE(init) != reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) stop("exception-init", std::string(v->type->tp_name) + "() is called with keyword arguments");
      exceptions.raise(PyExc_TypeError, std::string(v->type->tp_name) + "() takes no keyword arguments");
      return false;
    }
    body<Object>(v).arguments = values.make_tuple({args.positional, args.positional + args.count});
    return true;
  }
  if (v->kind == Kind::object && v->type == known().simple_namespace && !args.count) {
    for (size_t i = 0; i < args.keyword_count; ++i) mappings.dict_set(attributes.instance_dict(v), args.keywords[i].first, args.keywords[i].second);
    return true;
  }
  if (v->kind == Kind::dict) {
    size_t from = 0;
    if (PyType_IsSubtype(v->type, known().defaultdict) && PyDescr_TYPE(init) == known().defaultdict) {
      body<Mapping>(v).default_factory = values.none();
      if (v->real) stop("c-constructor", "a defaultdict that existed before the call is initialised");
      if (args.count) {
        if (const Kind k = values.kind(args[0]); k == Kind::tensor || ((k == Kind::constant || k == Kind::list || k == Kind::tuple || k == Kind::dict || k == Kind::set) && args[0]->real != Py_None && !attributes.lookup_type(args[0]->type, names().__call__))) {
          exceptions.raise(PyExc_TypeError, "first argument must be callable or None");
          return false;
        }
        body<Mapping>(v).default_factory = args[0];
      }
      from = 1;
    }
    if (args.count > from + 1) {
      PyTypeObject* base = PyType_IsSubtype(v->type, known().ordered_dict) ? known().ordered_dict : from ? known().defaultdict : &PyDict_Type;
      if (refuses(reinterpret_cast<PyObject*>(base), nullptr, args.count, {})) exceptions.raise_python();
      else stop("c-constructor", std::string("the constructor of ") + v->type->tp_name + " is written in C");
      return false;
    }
    if (args.count > from && !iteration.dict_update(v, args[from])) return false;
    return iteration.update_by_keywords(v, args);
  }
  if (v->kind == Kind::list || v->kind == Kind::set) {
    PyTypeObject* base = v->kind == Kind::set ? &PySet_Type : containers.is_deque(v) ? known().deque : &PyList_Type;
    if (base != v->type && (args.count > 1 || args.keyword_count)) stop("c-constructor", std::string("the constructor of ") + base->tp_name + " is called with more than it takes");   // its words name the class
    if (!takes(reinterpret_cast<PyObject*>(base), nullptr, args)) return false;
  }
  if (v->kind == Kind::list) {
    Value *from = args.count ? args[0] : nullptr, *limit = args.count > 1 ? args[1] : nullptr;
    if (containers.is_deque(v)) {
      if (v->real) stop("c-constructor", "a deque that existed before the call is initialised");
      for (size_t i = 0; i < args.keyword_count; ++i) (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "maxlen") == 0 ? limit : from) = args.keywords[i].second;
      Py_ssize_t most = -1;
      if (!containers.deque_limit(limit, &most)) return false;
      body<Sequence>(v).limit = most;
    }
    values.items(v).clear();   // before it is filled: what fills it may look at it
    ++body<Sequence>(v).changes;
    effects.mark_changed(v);
    return !from || iteration.extend(v, from);
  }
  if (v->kind == Kind::klass) {
    if (args.count == 1 && args.keyword_count) return exceptions.raise(PyExc_TypeError, "type.__init__() takes no keyword arguments"), false;
    if (args.count != 1 && args.count != 3) return exceptions.raise(PyExc_TypeError, "type.__init__() takes 1 or 3 arguments"), false;
    return true;
  }
  if (v->kind == Kind::tuple || v->kind == Kind::constant) return true;
  if (v->kind == Kind::set) {
    for (PyObject* k : mappings.keys_of(v)) mappings.set_discard(v, k);
    bool is_known = true;
    return !args.count || containers.call_set_method("update", v, {args[0]}, &is_known);
  }
  stop("c-constructor", std::string("the constructor of ") + v->type->tp_name + " is written in C");
}

}  // namespace cutaway::capture
