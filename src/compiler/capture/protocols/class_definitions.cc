// Classes that the captured code makes. The body is interpreted like a function; what it leaves in its namespace becomes a real class whose
// functions are stand-ins that are never called: whatever is found on it is a value of the trace. So lookups, mro and isinstance are Python's own.
// The class lives as long as the trace: where the program keeps it, or an instance of it, the graph ends before the class is made.
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/interpreter/namespaces.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {

// In the place of a value that is neither a constant nor a function: an instance, a tensor, a container.
struct Member {
  PyObject_HEAD
  bool is_abstract;
};
PyObject* nothing(PyObject*, PyObject*, PyObject*) { Py_RETURN_NONE; }
int refuse_set(PyObject*, PyObject*, PyObject*) { return -1; }
PyTypeObject* make_member_type(const char* name, bool sets) {
  static PyMemberDef members[] = {{"__isabstractmethod__", T_BOOL, offsetof(Member, is_abstract), READONLY, nullptr}, {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(nothing)}, {Py_tp_members, members}, {sets ? Py_tp_descr_set : 0, sets ? reinterpret_cast<void*>(refuse_set) : nullptr}, {0, nullptr}};
  PyType_Spec spec = {name, sizeof(Member), 0, Py_TPFLAGS_DEFAULT, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}
PyTypeObject* member_type(bool sets) {
  static PyTypeObject* const plain = make_member_type("cutaway.Member", false);
  static PyTypeObject* const setting = make_member_type("cutaway.SettingMember", true);
  return sets ? setting : plain;
}

bool is_of_library(PyObject* function) {
  PyObject* module = PyFunction_Check(function) ? PyFunction_GET_MODULE(function) : nullptr;
  return module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "typing") == 0;
}

}  // namespace

Classes::~Classes() {
  // Stand-ins for classes are in cycles, as all classes are, and live until the collector comes: their bases must not list them.
  for (auto& [made, step] : made_classes_) {
    PyObject* bases = reinterpret_cast<PyTypeObject*>(made)->tp_bases;
    PyObject* key = PyLong_FromVoidPtr(made);
    for (Py_ssize_t i = 0; bases && key && i < PyTuple_GET_SIZE(bases); ++i) {
      auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i));
      if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) || !base->tp_subclasses) continue;   // of the types of C nobody asks it
      if (PyDict_DelItem(static_cast<PyObject*>(base->tp_subclasses), key) < 0) PyErr_Clear();
    }
    Py_XDECREF(key);
  }
}

bool Classes::holds_made_class(PyObject* o) const {
  if (made_classes_.contains(o)) return true;
  if (PyFunction_Check(o)) {
    const Value* seen = values.met(o);
    return seen && seen->real != o;
  }
  const auto part = [&](const char* name) {
    PyObject* inner = PyObject_GetAttrString(o, name);
    const bool held = inner && holds_made_class(inner);
    Py_XDECREF(inner);
    PyErr_Clear();
    return held;
  };
  if (Py_TYPE(o) == &PyStaticMethod_Type || Py_TYPE(o) == &PyClassMethod_Type) return part("__func__");
  if (Py_TYPE(o) == &PyProperty_Type) return part("fget") || part("fset") || part("fdel");
  if (PyTuple_Check(o))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) if (holds_made_class(PyTuple_GET_ITEM(o, i))) return true;
  return false;
}

Value* Classes::member_of(PyObject* o) {
  if (Py_TYPE(o) != member_type(false) && Py_TYPE(o) != member_type(true)) return nullptr;
  return values.met(o);
}

PyObject* Classes::stand_in_for_function(Value* f) {
  if (f->real) return f->real;
  PyObject* const stand_in = mappings.stand_in_of(f);
  if (stand_in && PyFunction_Check(stand_in)) return stand_in;
  Function& fn = values.function(f);
  PyObject* globals = fn.globals_real ? fn.globals_real : values.keep(PyDict_New());
  PyObject* made = values.keep(PyFunction_NewWithQualName(reinterpret_cast<PyObject*>(fn.code), globals, fn.qualname));
  values.meet(made, f);
  if (!stand_in) mappings.set_stand_in(f, made);
  return made;
}

PyObject* Classes::stand_in_for_member(Value* v, PyObject* name) {
  values.force(v);
  const std::string_view text = PyUnicode_AsUTF8(name);
  const bool hook = text == "__init_subclass__" || text == "__class_getitem__" || text == "__set_name__";   // type.__new__ would call it
  bool is_abstract = false;
  if (v->kind == Kind::function && !v->real)
    if (Value* d = values.function(v).attributes) is_abstract = mappings.dict_get(d, values.keep(PyUnicode_InternFromString("__isabstractmethod__"))) != nullptr;
  if (v->kind == Kind::function && !v->real)   // of C it would be no method
    if (PyObject* globals = values.function(v).globals_real; globals && is_polyfill_module(PyDict_GetItemString(globals, "__name__")))
      stop("class-definition", "a class has a member that is written in C, and for which capture has one in Python");
  if (!hook && !is_abstract) {
    if (v->kind == Kind::function) return stand_in_for_function(v);
    if (v->kind == Kind::constant || v->kind == Kind::klass || v->kind == Kind::builtin || v->kind == Kind::module) return v->real;
    if (PyObject* c = values.as_constant(v)) return c;
  }
  if (is_abstract && v->kind != Kind::function) stop("class-definition", "a class has an abstract member that is not a function");
  const bool sets = v->kind == Kind::object && v->type->tp_descr_set;
  auto* made = PyObject_New(Member, member_type(sets));
  made->is_abstract = is_abstract;
  PyObject* o = values.keep(reinterpret_cast<PyObject*>(made));
  values.meet(o, v);
  return o;
}

std::optional<uint64_t> Classes::listed_class() const {
  std::optional<uint64_t> first;
  for (auto& [made, step] : made_classes_) {
    PyObject* bases = reinterpret_cast<PyTypeObject*>(made)->tp_bases;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); ++i) {
      PyObject* base = PyTuple_GET_ITEM(bases, i);
      const bool is_listed = (reinterpret_cast<PyTypeObject*>(base)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !is_made_class(base);
      if (is_listed && (!first || step < *first)) first = step;
    }
  }
  return first;
}

bool Classes::set_made_attribute(PyTypeObject* t, PyObject* name, Value* x) {
  PyObject* stand_in = x ? stand_in_for_member(x, name) : nullptr;
  if (PyType_Type.tp_setattro(reinterpret_cast<PyObject*>(t), name, stand_in) == 0) return true;
  exceptions.raise_unproven();
  return false;
}

// __build_class__(body, name, *bases, metaclass=…, **keywords)
Value* Classes::build_class(const Args& args) {
  if (args.count < 2 || values.kind(args[0]) != Kind::function) stop("class-definition", "__build_class__ is called in a way that capture does not know");
  std::vector<Value*> bases(args.positional + 2, args.positional + args.count), resolved;
  std::vector<Keyword> keywords(args.keywords, args.keywords + args.keyword_count);
  bool replaced = false;
  for (Value* b : bases) {
    if (values.kind(b) == Kind::klass) { resolved.push_back(b); continue; }
    Value* entries = b->kind == Kind::constant ? nullptr : attributes.getattr(b, "__mro_entries__");
    if (!entries) {
      exceptions.take_raised();
      PyObject* own = b->real ? PyObject_GetAttrString(b->real, "__mro_entries__") : nullptr;   // of typing's aliases
      if (!own || b->kind != Kind::constant) { Py_XDECREF(own); PyErr_Clear(); stop("class-definition", "a class is derived from " + values.describe(b)); }
      PyObject* before = PyTuple_New(static_cast<Py_ssize_t>(bases.size()));
      values.keep(before);
      for (size_t i = 0; i < bases.size(); ++i) PyTuple_SET_ITEM(before, static_cast<Py_ssize_t>(i), Py_NewRef(values.force(bases[i])->real ? bases[i]->real : Py_None));
      PyObject* given = PyObject_CallOneArg(own, before);
      Py_DECREF(own);
      if (!given) return exceptions.raise_unproven();
      values.keep(given);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) resolved.push_back(values.wrap_constant_object(PyTuple_GET_ITEM(given, i)));
    } else {
      Value* given = calls.call(entries, {values.make_tuple(bases)});
      if (!given) return nullptr;
      if (values.kind(given) != Kind::tuple) return exceptions.raise(PyExc_TypeError, "__mro_entries__ must return a tuple");
      resolved.insert(resolved.end(), values.items(given).begin(), values.items(given).end());
    }
    replaced = true;
  }
  Value* meta = nullptr;
  for (size_t i = 0; i < keywords.size(); ++i)
    if (PyUnicode_CompareWithASCIIString(keywords[i].first, "metaclass") == 0) { meta = values.force(keywords[i].second); keywords.erase(keywords.begin() + static_cast<long>(i)); break; }
  if (meta && meta->kind != Kind::klass) stop("class-definition", "a metaclass is not a class");
  auto* winner = meta ? reinterpret_cast<PyTypeObject*>(meta->real) : &PyType_Type;
  for (Value* b : resolved) {
    if (values.kind(b) != Kind::klass) stop("class-definition", "a class is derived from " + values.describe(b));
    PyTypeObject* own = Py_TYPE(b->real);
    if (PyType_IsSubtype(winner, own)) continue;
    if (PyType_IsSubtype(own, winner)) { winner = own; continue; }
    return exceptions.raise(PyExc_TypeError, "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass of the metaclasses of all its bases");
  }
  Value* metaclass = values.force(values.wrap_constant_object(reinterpret_cast<PyObject*>(winner)));
  Value* base_tuple = values.make_tuple(resolved);
  Value* space = nullptr;
  static PyObject* const prepare_name = PyUnicode_InternFromString("__prepare__");
  if (winner != &PyType_Type && attributes.lookup_type(winner, prepare_name) != attributes.lookup_type(&PyType_Type, prepare_name)) {
    Value* prepare = attributes.getattr(metaclass, prepare_name);
    space = prepare ? calls.call(prepare, Args({args[1], base_tuple}, keywords)) : nullptr;
    if (!space) return nullptr;
    if (values.kind(space) != Kind::dict) stop("class-definition", "a metaclass prepares a namespace that is not a dict");
  } else {
    space = values.make_dict();
  }
  Frame* frame = frame_stack.make_frame(args[0]);
  frame->names = space;
  Value* cell = interpreter.run_inlined(frame);   // of __class__, where a function in the body speaks of it
  if (!cell) return nullptr;
  if (replaced && !subscripts.store_subscript(space, values.text("__orig_bases__"), values.make_tuple(bases))) return nullptr;
  Value* made = calls.call(metaclass, Args({args[1], base_tuple, space}, keywords));
  if (!made || values.kind(made) != Kind::klass || values.kind(cell) != Kind::cell) return made;
  Value* in_cell = values.cell_contents(cell);
  if (in_cell && values.force(in_cell)->real == made->real) return made;
  PyObject* name = values.as_constant(args[1]);
  if (!name || Py_TYPE(made->real)->tp_repr != PyType_Type.tp_repr || (in_cell && (!in_cell->real || Py_TYPE(in_cell->real)->tp_repr != PyType_Type.tp_repr)))
    stop("class-definition", "the variable __class__ is not the class that is made");
  if (in_cell) PyErr_Format(PyExc_TypeError, "__class__ set to %.200R defining %.200R as %.200R", in_cell->real, name, made->real);
  else PyErr_Format(PyExc_RuntimeError, "__class__ not set defining %.200R as %.200R. Was __classcell__ propagated to type.__new__?", name, made->real);
  return exceptions.raise_python();
}

Value* Classes::make_class(PyTypeObject* meta, const Args& args) {
  const auto refuse = [&](const std::string& why) { stop("class-definition", "a class is defined " + why); };
  if (args.count != 3) return exceptions.raise(PyExc_TypeError, "type.__new__() takes exactly 3 arguments (" + std::to_string(args.count) + " given)");
  PyObject* name = values.as_constant(args[0]);
  if (!name && !is_user_class(values.type_of(args[0]))) return exceptions.raise(PyExc_TypeError, std::string("type.__new__() argument 1 must be str, not ") + args[0]->type->tp_name);
  if (!name) refuse("whose name is " + values.describe(args[0]));
  if (!PyUnicode_Check(name)) return exceptions.raise(PyExc_TypeError, std::string("type.__new__() argument 1 must be str, not ") + args[0]->type->tp_name);
  if (values.kind(args[1]) != Kind::tuple || values.kind(args[2]) != Kind::dict) refuse("of something that is no dictionary");
  auto& bases = values.items(args[1]);
  PyObject* real_bases = values.keep(PyTuple_New(static_cast<Py_ssize_t>(bases.size())));
  for (size_t i = 0; i < bases.size(); ++i) {
    if (values.kind(bases[i]) != Kind::klass) refuse("whose base is " + values.describe(bases[i]));
    auto* base = reinterpret_cast<PyTypeObject*>(bases[i]->real);
    if (PyType_IsSubtype(base, known().tensor) || is_enum(base)) refuse(std::string("that is derived from ") + base->tp_name);
    if (PyType_IsSubtype(base, &PyType_Type))   // Python would ask these of the classes that it makes
      for (const char* asked : {"__getattribute__", "__getattr__", "mro", "__instancecheck__", "__subclasscheck__", "__prepare__", "__setattr__", "__delattr__", "__hash__", "__eq__"})
        if (mappings.dict_get(args[2], values.keep(PyUnicode_InternFromString(asked)))) refuse(std::string("that is a metaclass with ") + asked);
    if (!(base->tp_flags & Py_TPFLAGS_BASETYPE)) return exceptions.raise(PyExc_TypeError, std::string("type '") + base->tp_name + "' is not an acceptable base type");
    static PyObject* const hook = PyUnicode_InternFromString("__init_subclass__");
    PyObject* own = attributes.lookup_type(base, hook);
    if (own && Py_TYPE(own) == &PyClassMethod_Type) {   // type.__new__ calls it
      PyObject* inner = values.keep(PyObject_GetAttr(own, names().func_));
      if (!is_of_library(inner)) refuse(std::string("whose base ") + base->tp_name + " has __init_subclass__");
    }
    PyTuple_SET_ITEM(real_bases, static_cast<Py_ssize_t>(i), Py_NewRef(bases[i]->real));
  }
  if (PyObject* mro = attributes.lookup_type(meta, values.keep(PyUnicode_InternFromString("mro"))); mro && Py_TYPE(mro) != known().method_descriptor) refuse("whose metaclass has a method mro");
  PyObject* space = values.keep(PyDict_New());
  std::vector<std::pair<PyObject*, Value*>> members;
  Value* class_cell = nullptr;
  for (PyObject* key : mappings.keys_of(args[2])) {
    if (!PyUnicode_Check(key)) refuse("with a name that is not a string");
    Value* v = mappings.dict_get(args[2], key);
    if (key == names().__classcell__ || PyUnicode_Compare(key, names().__classcell__) == 0) {
      class_cell = values.force(v);
      if (class_cell->kind == Kind::cell) continue;
      if (!values.as_constant(class_cell)) refuse("with a __classcell__ that is no cell");   // else Python says what is wrong
    }
    PyObject* member = stand_in_for_member(v, key);
    if (PyUnicode_CompareWithASCIIString(key, "__slots__") == 0)
      if (PyObject* plain = texts.to_plain(v)) member = plain;
    PyDict_SetItem(space, key, member);
    members.emplace_back(key, v);
  }
  static PyObject* const module_name = PyUnicode_InternFromString("__module__");
  if (PyDict_Contains(space, module_name) != 1)   // as type.__new__ finds it in the globals of its caller
    if (Value* own = mappings.dict_get(namespaces.globals_of(values.function(frame_stack.innermost()->function)), names().__name__))
      if (PyObject* text = values.as_constant(own)) PyDict_SetItem(space, module_name, text);
  static PyObject* const make = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyType_Type), "__new__");
  PyObject* given = values.keep(PyTuple_Pack(4, reinterpret_cast<PyObject*>(meta), name, real_bases, space));
  PyObject* made = PyObject_Call(make, given, nullptr);
  if (!made) return exceptions.raise_unproven();
  values.keep(made);
  auto* type = reinterpret_cast<PyTypeObject*>(made);
  made_classes_[made] = frame_stack.open_frames(frame_stack.innermost()).back()->step;
  guards.trust_type(type);   // nobody else can write to it
  Value* klass = values.new_value(Kind::klass, meta);
  klass->real = made;
  if (class_cell) values.set_cell(class_cell, klass);
  for (auto& [key, v] : members) {
    if (values.kind(v) != Kind::object) continue;
    PyObject* hook = attributes.lookup_type(v->type, names().__set_name__);
    if (!hook) continue;
    Value* bound = attributes.apply_descriptor(hook, v, nullptr, names().__set_name__, nullptr);
    if (!bound || !calls.call(bound, {klass, values.constant(key)})) { exceptions.drop_raised(); refuse("in which __set_name__ raises"); }   // Python 3.11 wraps what it raises, 3.12 does not
  }
  static PyObject* const hook = PyUnicode_InternFromString("__init_subclass__");
  Value* parent = attributes.super_attribute(values.make_super(klass, klass, type), hook, nullptr);
  if (!parent) return nullptr;
  if (values.kind(parent) == Kind::builtin || (parent->kind == Kind::method && values.kind(body<Method>(parent).function) == Kind::builtin)) {
    if (args.keyword_count) return exceptions.raise(PyExc_TypeError, qualified_name(type) + ".__init_subclass__() takes no keyword arguments");
    return klass;
  }
  if (parent->kind == Kind::method && body<Method>(parent).function->real && is_of_library(body<Method>(parent).function->real)) return klass;   // type.__new__ did it
  return calls.call(parent, Args(nullptr, 0, args.keywords, args.keyword_count)) ? klass : nullptr;
}

}  // namespace cutaway::capture
