// match statements: the patterns that look at keys and at attributes.
#include <cstdint>

#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

/// A tuple of the values, or None when a key is missing.
Value* Builtins::match_keys(Value* subject, Value* keys) {
  if (values.kind(subject) != Kind::dict) stop("match-keys", "a pattern with keys is matched against something that is not a dict");
  if (attributes.own_method(subject->type, values.keep(PyUnicode_InternFromString("get")))) stop("match-keys", "a pattern with keys is matched against an instance of " + std::string(subject->type->tp_name) + ", which has its own get");
  std::vector<Value*> found, wanted;
  if (!iteration.unpack(keys, &wanted)) return nullptr;
  for (Value* w : wanted) {
    PyObject* k = mappings.key_of(w);
    if (!k) return nullptr;
    Value* v = mappings.dict_get(subject, k);
    if (!v) return values.none();
    found.push_back(v);
  }
  return values.make_tuple(std::move(found));
}

/// A tuple of what the positions and the names of the pattern stand for, or None.
Value* Builtins::match_class(Value* subject, Value* klass, size_t positions, Value* names_wanted) {
  if (values.kind(klass) != Kind::klass) return exceptions.raise_unproven(PyExc_TypeError, "called match pattern must be a type");   // or "a class": as the version of Python says it
  bool is = false;
  if (!attributes.isinstance(subject, klass, &is)) return nullptr;
  if (!is) return values.none();
  std::vector<Value*> found, keywords;
  if (!iteration.unpack(names_wanted, &keywords)) return nullptr;
  auto* t = reinterpret_cast<PyTypeObject*>(klass->real);
  const auto too_many = [&](size_t allowed) {
    return exceptions.raise(PyExc_TypeError, std::string(t->tp_name) + "() accepts " + std::to_string(allowed) + " positional sub-pattern" + (allowed == 1 ? "" : "s") + " (" + std::to_string(positions) + " given)");
  };
  std::vector<PyObject*> asked;
  if (positions) {
    static PyTypeObject* const whole[] = {&PyBool_Type, &PyByteArray_Type, &PyBytes_Type, &PyDict_Type, &PyFloat_Type, &PyFrozenSet_Type, &PyLong_Type, &PyList_Type, &PySet_Type, &PyUnicode_Type, &PyTuple_Type};
    Value* match_args = attributes.getattr(klass, "__match_args__");
    if (!match_args) {
      if (!exceptions.raised_is(PyExc_AttributeError)) return nullptr;
      exceptions.take_raised();
      bool is_whole = false;
      for (PyTypeObject* w : whole) is_whole |= PyType_IsSubtype(t, w) != 0;
      if (positions > (is_whole ? 1 : 0)) return too_many(is_whole ? 1 : 0);
      found.push_back(subject);
    } else {
      if (values.kind(match_args) != Kind::tuple) return exceptions.raise(PyExc_TypeError, std::string(t->tp_name) + ".__match_args__ must be a tuple (got " + match_args->type->tp_name + ")");
      auto& wanted = values.items(match_args);
      if (wanted.size() < positions) return too_many(wanted.size());
      for (size_t i = 0; i < positions; ++i) {
        PyObject* name = values.as_constant(wanted[i]);
        if (!name || !PyUnicode_Check(name)) return exceptions.raise(PyExc_TypeError, std::string("__match_args__ elements must be strings (got ") + values.type_of(wanted[i])->tp_name + ")");
        asked.push_back(name);
      }
    }
  }
  for (Value* k : keywords) asked.push_back(values.as_constant(k));
  for (size_t i = 0; i < asked.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (PyUnicode_Compare(asked[i], asked[j]) == 0) return exceptions.raise(PyExc_TypeError, std::string(t->tp_name) + "() got multiple sub-patterns for attribute '" + PyUnicode_AsUTF8(asked[i]) + "'");
    Value* v = attributes.getattr(subject, asked[i]);
    if (!v) {
      if (!exceptions.raised_is(PyExc_AttributeError)) return nullptr;
      exceptions.take_raised();
      return values.none();
    }
    found.push_back(v);
  }
  return values.make_tuple(std::move(found));
}

}  // namespace cutaway::capture
