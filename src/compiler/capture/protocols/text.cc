// Values as text: str, repr, format; and plain objects for C functions that only read them.
#include <algorithm>
#include <cstdint>

#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {

// A real object with the same content as a value made of constants, for C functions that only read it. Kept by the trace; null when it is none.
PyObject* Texts::to_plain(Value* v) {
  values.force(v);
  if (PyObject* c = values.as_constant(v)) {
    if (library.has_identities() && Library::is_identity_number(c)) stop("id-of-a-new-object", "the id of an object that the compiled function created is used in a computation");
    return c;
  }
  if (auto it = std::find_if(plain_open_.begin(), plain_open_.end(), [&](const auto& o) { return o.first == v; }); it != plain_open_.end()) return it->second;   // it contains itself
  struct Open {
    std::vector<std::pair<Value*, PyObject*>>& all;
    Open(std::vector<std::pair<Value*, PyObject*>>& a, Value* v, PyObject* o) : all(a) { all.emplace_back(v, o); }
    ~Open() { all.pop_back(); }
  };
  switch (v->kind) {
    case Kind::list: case Kind::tuple: {
      if (is_user_class(v->type) && !containers.is_deque(v)) return nullptr;
      auto& all = values.items(v);
      PyObject* l = containers.is_deque(v) ? PyObject_CallFunction(reinterpret_cast<PyObject*>(v->type), "()N", body<Sequence>(v).limit < 0 ? Py_NewRef(Py_None) : PyLong_FromSsize_t(body<Sequence>(v).limit)) : PyList_New(0);
      values.keep(l);
      const Open open(plain_open_, v, v->kind == Kind::list ? l : nullptr);
      for (Value* i : all) {
        PyObject* p = to_plain(i);
        if (!p) return nullptr;
        if (containers.is_deque(v)) Py_XDECREF(PyObject_CallMethod(l, "append", "O", p));
        else PyList_Append(l, p);
      }
      return v->kind == Kind::list ? l : values.keep(PyList_AsTuple(l));
    }
    case Kind::dict: {
      if (is_user_class(v->type) || v->type != &PyDict_Type) return nullptr;
      PyObject* d = values.keep(PyDict_New());
      const Open open(plain_open_, v, d);
      for (PyObject* k : mappings.keys_of(v)) {
        PyObject* p = to_plain(mappings.dict_get(v, k));
        if (!p || mappings.stands_for(k)) return nullptr;
        PyDict_SetItem(d, k, p);
      }
      return d;
    }
    case Kind::set:
      for (PyObject* k : mappings.keys_of(v)) if (mappings.stands_for(k)) return nullptr;
      return v->type == &PySet_Type ? body<Mapping>(v).order : nullptr;
    case Kind::object:
      if (Value* plain = plain_of(v); plain && !numbers.has_own(v->type, {"__int__", "__float__", "__index__", "__trunc__", "__round__", "__floor__", "__ceil__", "__str__", "__repr__", "__format__", "__hash__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__abs__", "__complex__", "__bytes__"})) return plain->real;
      return nullptr;
    case Kind::builtin: case Kind::module: return v->real;
    case Kind::view: {
      View& w = body<View>(v);
      PyObject* d = to_plain(w.dict);
      if (!d) return nullptr;
      return values.keep(PyObject_CallMethod(d, w.what == View::What::keys ? "keys" : w.what == View::What::values ? "values" : "items", nullptr));
    }
    default: return nullptr;
  }
}

// What a dunder of the program's gave where Python wants text.
Value* Texts::checked_text(Value* v, const char* dunder_name) {
  if (!v) return nullptr;
  values.force(v);
  const bool is_text = (v->kind == Kind::constant && PyUnicode_Check(v->real)) || (plain_of(v) && PyUnicode_Check(plain_of(v)->real));
  return is_text || v->kind == Kind::opaque ? v : exceptions.raise(PyExc_TypeError, std::string(dunder_name) + " returned non-string (type " + v->type->tp_name + ")");
}

namespace {
void refuse_number(const Owners& t, Value* v) {
  if (number_of(t.values.force(v))) stop("text-of-a-value", "text is made of " + t.values.describe(v));
}
}  // namespace

Value* Texts::str(Value* v) {
  refuse_number(*this, v);
  values.force(v);
  if (v->kind == Kind::constant && PyUnicode_CheckExact(v->real)) return v;
  if (v->kind == Kind::constant && is_user_class(v->type))   // a member of an enumeration whose class says how it looks
    if (Value* own = operators.dunder(v, "__str__", nullptr); own || exceptions.raised()) return checked_text(own, "__str__");
  if (v->kind == Kind::tensor) stop("text-of-a-tensor", "a tensor is converted to text");
  if (v->kind == Kind::object && PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
    Value* own = operators.dunder(v, "__str__", nullptr);
    if (own || exceptions.raised()) return checked_text(own, "__str__");
    if (v->real) stop("exception-attribute", "the text of an exception is read that existed before the call");
    if (PyType_IsSubtype(v->type, known().exception_group) && body<Object>(v).slots.size() >= 2) {
      Value* message = str(body<Object>(v).slots[0].second);
      const size_t n = values.items(body<Object>(v).slots[1].second).size();
      return message ? values.constant_steal(PyUnicode_FromFormat("%U (%zu sub-exception%s)", message->real, n, n == 1 ? "" : "s")) : nullptr;
    }
    if (PyObject* c = attributes.lookup_type(v->type, names().__str__); c != _PyType_Lookup(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), names().__str__) && c != _PyType_Lookup(reinterpret_cast<PyTypeObject*>(PyExc_KeyError), names().__str__) &&
        c != _PyType_Lookup(reinterpret_cast<PyTypeObject*>(PyExc_AttributeError), names().__str__) && c != _PyType_Lookup(reinterpret_cast<PyTypeObject*>(PyExc_NameError), names().__str__))
      stop("exception-attribute", std::string("the text of an exception of type ") + v->type->tp_name + " is asked for");
    auto& args = values.items(body<Object>(v).arguments ? body<Object>(v).arguments : values.make_tuple({}));
    if (args.empty()) return values.text("");
    if (args.size() == 1) return PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_KeyError)) ? repr(args[0]) : str(args[0]);
    return repr(body<Object>(v).arguments);
  }
  if (PyObject* p = to_plain(v)) {
    if (frames::SizeLog* log = frames::size_log()) log->used(p);
    return values.constant_steal(PyObject_Str(p));
  }
  Value* own = operators.dunder(v, "__str__", nullptr);
  if (own || exceptions.raised()) return checked_text(own, "__str__");
  if (!plain_of(v)) {   // object's __str__ asks it, and Python names the former
    own = operators.dunder(v, "__repr__", nullptr);
    if (own || exceptions.raised()) return checked_text(own, "__str__");
  }
  if (plain_of(v) && PyUnicode_Check(plain_of(v)->real)) return plain_of(v);
  return repr(v);
}
Value* Texts::repr(Value* v) {
  refuse_number(*this, v);
  values.force(v);
  if (v->kind == Kind::constant && is_user_class(v->type))
    if (Value* own = operators.dunder(v, "__repr__", nullptr); own || exceptions.raised()) return checked_text(own, "__repr__");
  if (PyObject* p = to_plain(v)) {
    if (frames::SizeLog* log = frames::size_log()) log->used(p);
    return values.constant_steal(PyObject_Repr(p));
  }
  Value* own = operators.dunder(v, "__repr__", nullptr);
  if (own || exceptions.raised()) return checked_text(own, "__repr__");
  if (plain_of(v)) return repr(plain_of(v));
  if (v->type == known().ordered_dict || v->type == known().mappingproxy) {
    Value* plain = values.make_dict();
    if (!iteration.dict_update(plain, v)) return nullptr;
    std::vector<Value*> pairs;
    if (PY_VERSION_HEX < 0x030C0000 && v->type == known().ordered_dict && !iteration.unpack(values.make_view(View::What::items, plain), &pairs)) return nullptr;
    if (v->type == known().ordered_dict && !mappings.dict_size(v)) return values.text("OrderedDict()");
    Value* inner = repr(pairs.empty() ? plain : values.make_list(std::move(pairs)));
    return inner ? values.constant_steal(PyUnicode_FromFormat(v->type == known().ordered_dict ? "OrderedDict(%U)" : "mappingproxy(%U)", inner->real)) : nullptr;
  }
  if (v->type == known().simple_namespace && v->kind == Kind::object) {
    std::string all;
    Value* dict = attributes.instance_dict(v);
    for (PyObject* k : mappings.keys_of(dict)) {
      Value* part = repr(mappings.dict_get(dict, k));
      if (!part) return nullptr;
      all += (all.empty() ? "" : ", ") + std::string(PyUnicode_AsUTF8(k)) + "=" + PyUnicode_AsUTF8(part->real);
    }
    return values.text("namespace(" + all + ")");
  }
  if (v->type == known().defaultdict) {
    Value* factory = body<Mapping>(v).default_factory;
    Value* first = repr(factory ? factory : values.none());
    if (!first) return nullptr;
    Value* plain = values.make_dict();
    if (!iteration.dict_update(plain, v)) return nullptr;
    Value* rest = repr(plain);
    return rest ? values.constant_steal(PyUnicode_FromFormat("defaultdict(%U, %U)", first->real, rest->real)) : nullptr;
  }
  if (containers.is_deque(v)) {
    Value* inner = repr(values.make_list(values.items(v)));
    if (!inner) return nullptr;
    const Py_ssize_t limit = body<Sequence>(v).limit;
    return values.constant_steal(limit < 0 ? PyUnicode_FromFormat("deque(%U)", inner->real) : PyUnicode_FromFormat("deque(%U, maxlen=%zd)", inner->real, limit));
  }
  if (v->type == &PyList_Type || v->type == &PyTuple_Type || v->type == &PyDict_Type) {   // of values that say themselves how they look
    if (text_depth_ > 40) stop("text-of-a-value", "a container that may contain itself is converted to text");
    const Depth depth(text_depth_);
    std::string all;
    const auto add = [&](Value* x) {
      Value* part = repr(x);
      PyObject* words = part ? values.as_constant(part) : nullptr;
      if (part && (!words || !PyUnicode_Check(words))) exceptions.raise(PyExc_TypeError, std::string("__repr__ returned non-string (type ") + values.type_of(part)->tp_name + ")");
      if (exceptions.raised() || !words) return false;
      all += PyUnicode_AsUTF8(words);
      return true;
    };
    if (v->kind == Kind::dict) {
      for (PyObject* k : mappings.keys_of(v)) {
        if (!all.empty()) all += ", ";
        if (!add(mappings.value_of_key(k))) return nullptr;
        all += ": ";
        if (!add(mappings.dict_get(v, k))) return nullptr;
      }
      return values.text("{" + all + "}");
    }
    for (Value* x : values.items(v)) { if (!all.empty()) all += ", "; if (!add(x)) return nullptr; }
    if (v->kind == Kind::list) return values.text("[" + all + "]");
    return values.text("(" + all + (values.items(v).size() == 1 ? ",)" : ")"));
  }
  if (v->kind == Kind::object && PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) && body<Object>(v).arguments && !v->real) {
    auto& args = values.items(body<Object>(v).arguments);
    Value* inner = args.size() == 1 ? repr(args[0]) : repr(body<Object>(v).arguments);
    if (!inner) return nullptr;
    PyObject* name = values.keep(PyObject_GetAttr(reinterpret_cast<PyObject*>(v->type), names().__name__));
    return values.constant_steal(args.size() == 1 ? PyUnicode_FromFormat("%U(%U)", name, inner->real) : PyUnicode_FromFormat("%U%U", name, inner->real));
  }
  builtins.refuse_stand_in(v);
  stop("text-of-a-value", values.describe(v) + " is converted to text");
}
Value* Texts::format(Value* v, Value* spec) {
  refuse_number(*this, v);
  values.force(v);
  PyObject* how = spec ? values.as_constant(spec) : nullptr;
  if (v->kind != Kind::tensor && !(v->kind == Kind::constant && is_user_class(v->type)))
    if (PyObject* p = to_plain(v)) {
      if (frames::SizeLog* log = frames::size_log()) log->used(p);
      return values.constant_steal(PyObject_Format(p, how));
    }
  Value* own = operators.dunder(v, "__format__", spec ? spec : values.text(""));
  if (own && (values.force(own)->kind == Kind::constant ? !PyUnicode_Check(own->real) : own->kind != Kind::object && own->kind != Kind::opaque)) return exceptions.raise(PyExc_TypeError, std::string("__format__ must return a str, not ") + own->type->tp_name);
  if (own || exceptions.raised()) return own;
  if (plain_of(v) && (!how || PyUnicode_GET_LENGTH(how) == 0)) return str(v);
  if (plain_of(v)) return format(plain_of(v), spec);
  if (v->kind == Kind::constant) return values.constant_steal(PyObject_Format(v->real, how));   // a slot of C's
  if (how && PyUnicode_GET_LENGTH(how) > 0) {
    if (v->kind == Kind::tensor) stop("text-of-a-tensor", "a tensor is converted to text");
    return exceptions.raise_unproven(PyExc_TypeError, std::string("unsupported format string passed to ") + v->type->tp_name + ".__format__");
  }
  return str(v);
}

}  // namespace cutaway::capture
