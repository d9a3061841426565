#include "compiler/capture/values/exceptions.h"

#include <cstdint>

#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

Value* Exceptions::make_exception(PyObject* type, std::vector<Value*> args) {
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  Value* v = values.new_value(Kind::object, t);
  guards.add_type_version(t);
  if (PyType_IsSubtype(t, known().exception_group)) {   // it checks what it is made of, and keeps it
    Value* all = args.size() == 2 ? values.force(args[1]) : nullptr;
    PyObject* message = all ? values.as_constant(args[0]) : nullptr;
    if (!message || !PyUnicode_Check(message) || (all->kind != Kind::list && all->kind != Kind::tuple) || values.items(all).empty()) stop("exception-group", "an exception group is created from something other than a message and exceptions");
    bool ordinary = true;
    for (Value* e : values.items(all)) {
      if (values.kind(e) != Kind::object || !PyType_IsSubtype(e->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) stop("exception-group", "an exception group is created from something that is not an exception");
      ordinary = ordinary && PyType_IsSubtype(e->type, reinterpret_cast<PyTypeObject*>(PyExc_Exception));
    }
    static auto* const group = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(PyImport_ImportModule("builtins"), "ExceptionGroup"));
    if (!ordinary && PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(PyExc_Exception))) stop("exception-group", "an ExceptionGroup holds an exception that is not derived from Exception");
    if (t == known().exception_group && ordinary) v->type = group;
    Object& o = values.give<Object>(v);
    o.slots.emplace_back(values.keep(PyUnicode_InternFromString("message")), args[0]);
    o.slots.emplace_back(values.keep(PyUnicode_InternFromString("exceptions")), values.make_tuple(values.items(all)));
    o.arguments = values.make_tuple(std::move(args));
    return v;
  }
  values.give<Object>(v).arguments = values.make_tuple(std::move(args));
  return v;
}

std::nullptr_t Exceptions::raise(PyObject* type, std::string_view message) { return raise(make_exception(type, {values.text(message)})); }

std::nullptr_t Exceptions::raise_unproven() {
  raise_python();
  return doubt_own();
}
std::nullptr_t Exceptions::raise_unproven(PyObject* type, std::string_view message) {
  raise(type, message);
  return doubt_own();
}
std::nullptr_t Exceptions::doubt_own() { return options.fullgraph ? nullptr : doubt(""); }

std::nullptr_t Exceptions::raise_python() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  if (!type) throw std::runtime_error("a C function failed without an exception");
  PyErr_NormalizeException(&type, &value, &trace);
  values.keep(type);
  if (trace) Py_DECREF(trace);
  std::vector<Value*> args;
  if (value) {
    values.keep(value);
    PyObject* tuple = PyObject_GetAttr(value, names().args);
    if (tuple && PyTuple_Check(tuple)) {
      values.keep(tuple);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
        PyObject* a = PyTuple_GET_ITEM(tuple, i);
        args.push_back(kind_of_type(Py_TYPE(a), a) == Kind::constant ? values.constant(a) : values.new_value(Kind::opaque, Py_TYPE(a)));
      }
    } else {
      PyErr_Clear();
    }
  }
  return raise(make_exception(type, std::move(args)));
}

std::nullptr_t Exceptions::doubt(std::string by) {
  doubted_.emplace(raised_, std::move(by));
  return nullptr;
}
const std::string* Exceptions::doubted(Value* exception) const {
  const auto it = doubted_.find(exception);
  return it == doubted_.end() ? nullptr : &it->second;
}

Value* Exceptions::take_raised() {
  Value* exception = std::exchange(raised_, nullptr);
  if (const std::string* by = doubted(exception)) stop("raises-while-traced", doubt_text(*by, exception) + ", which Python would take for an answer");
  return exception;
}

std::string Exceptions::doubt_text(const std::string& by, Value* exception) {
  return by.empty() ? "as far as capture knows this raises " + text_of_error(exception) : by + " raised " + text_of_error(exception) + " while it was traced";
}

std::string Exceptions::text_of_error(Value* exception) {
  std::string text = exception && exception->type ? exception->type->tp_name : "an exception";
  Value* given = exception && exception->kind == Kind::object ? body<Object>(exception).arguments : nullptr;
  if (!given || values.items(given).size() != 1 || values.items(given)[0]->kind != Kind::constant || !PyUnicode_Check(values.items(given)[0]->real)) return text;
  const char* words = PyUnicode_AsUTF8(values.items(given)[0]->real);
  if (!words) { PyErr_Clear(); return text; }
  const std::string_view all = words;
  return text + ": " + std::string(all.substr(0, all.find('\n')));
}

bool Exceptions::matches(Value* exception, Value* type) {
  values.force(exception);
  const auto check = [&](Value* t) {   // Python looks at all of them before it looks for one; a tuple in a tuple is none
    if (values.kind(t) != Kind::klass || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(t->real), reinterpret_cast<PyTypeObject*>(PyExc_BaseException)))
      stop("except-clause", "an except clause names something that is not an exception class");
  };
  if (values.kind(type) == Kind::tuple) {
    for (Value* t : values.items(type)) check(t);
    for (Value* t : values.items(type))
      if (matches(exception, t)) return true;
    return false;
  }
  check(type);
  return PyType_IsSubtype(exception->type, reinterpret_cast<PyTypeObject*>(type->real));
}

bool Exceptions::raised_is(PyObject* type) { return raised_ && PyType_IsSubtype(raised_->type, reinterpret_cast<PyTypeObject*>(type)); }

}  // namespace cutaway::capture
