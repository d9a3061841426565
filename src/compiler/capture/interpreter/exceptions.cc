#include <cstdint>

#include "compiler/capture/trace.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"

namespace cutaway::capture {

Value* Trace::make_exception(PyObject* type, std::vector<Value*> args) {
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  Value* v = new_value(Kind::object, t);
  guard_type_version(t);
  if (PyType_IsSubtype(t, known().exception_group)) {   // it checks what it is made of, and keeps it
    Value* all = args.size() == 2 ? force(args[1]) : nullptr;
    PyObject* message = all ? as_constant(args[0]) : nullptr;
    if (!message || !PyUnicode_Check(message) || (all->kind != Kind::list && all->kind != Kind::tuple) || items(all).empty()) stop("exception-group", "an exception group is created from something other than a message and exceptions");
    bool ordinary = true;
    for (Value* e : items(all)) {
      if (kind(e) != Kind::object || !PyType_IsSubtype(e->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) stop("exception-group", "an exception group is created from something that is not an exception");
      ordinary = ordinary && PyType_IsSubtype(e->type, reinterpret_cast<PyTypeObject*>(PyExc_Exception));
    }
    static auto* const group = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(PyImport_ImportModule("builtins"), "ExceptionGroup"));
    if (!ordinary && PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(PyExc_Exception))) stop("exception-group", "an ExceptionGroup holds an exception that is not derived from Exception");
    if (t == known().exception_group && ordinary) v->type = group;
    Object& o = give_body(v, object_bodies_);
    o.slots.emplace_back(keep(PyUnicode_InternFromString("message")), args[0]);
    o.slots.emplace_back(keep(PyUnicode_InternFromString("exceptions")), make_tuple(items(all)));
    o.arguments = make_tuple(std::move(args));
    return v;
  }
  give_body(v, object_bodies_).arguments = make_tuple(std::move(args));
  return v;
}

std::nullptr_t Trace::raise(PyObject* type, std::string_view message) { return raise(make_exception(type, {text(message)})); }

std::nullptr_t Trace::raise_unproven() {
  raise_python();
  return doubt_own();
}
std::nullptr_t Trace::raise_unproven(PyObject* type, std::string_view message) {
  raise(type, message);
  return doubt_own();
}
std::nullptr_t Trace::doubt_own() { return options.fullgraph ? nullptr : doubt(""); }

std::nullptr_t Trace::raise_python() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  if (!type) throw std::runtime_error("a C function failed without an exception");
  PyErr_NormalizeException(&type, &value, &trace);
  keep(type);
  if (trace) Py_DECREF(trace);
  std::vector<Value*> args;
  if (value) {
    keep(value);
    PyObject* tuple = PyObject_GetAttr(value, names().args);
    if (tuple && PyTuple_Check(tuple)) {
      keep(tuple);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
        PyObject* a = PyTuple_GET_ITEM(tuple, i);
        args.push_back(kind_of_type(Py_TYPE(a), a) == Kind::constant ? constant(a) : new_value(Kind::opaque, Py_TYPE(a)));
      }
    } else {
      PyErr_Clear();
    }
  }
  return raise(make_exception(type, std::move(args)));
}

std::nullptr_t Trace::doubt(std::string by) {
  doubted_.emplace(raised_, std::move(by));
  return nullptr;
}
const std::string* Trace::doubted(Value* exception) const {
  const auto it = doubted_.find(exception);
  return it == doubted_.end() ? nullptr : &it->second;
}

Value* Trace::take_raised() {
  Value* exception = std::exchange(raised_, nullptr);
  if (const std::string* by = doubted(exception)) stop("raises-while-traced", doubt_text(*by, exception) + ", which Python would take for an answer");
  return exception;
}

std::string Trace::doubt_text(const std::string& by, Value* exception) {
  return by.empty() ? "as far as capture knows this raises " + text_of_error(exception) : by + " raised " + text_of_error(exception) + " while it was traced";
}

std::string Trace::text_of_error(Value* exception) {
  std::string text = exception && exception->type ? exception->type->tp_name : "an exception";
  Value* given = exception && exception->kind == Kind::object ? body<Object>(exception).arguments : nullptr;
  if (!given || items(given).size() != 1 || items(given)[0]->kind != Kind::constant || !PyUnicode_Check(items(given)[0]->real)) return text;
  const char* words = PyUnicode_AsUTF8(items(given)[0]->real);
  if (!words) { PyErr_Clear(); return text; }
  const std::string_view all = words;
  return text + ": " + std::string(all.substr(0, all.find('\n')));
}

bool Trace::matches(Value* exception, Value* type) {
  force(exception);
  const auto check = [&](Value* t) {   // Python looks at all of them before it looks for one; a tuple in a tuple is none
    if (kind(t) != Kind::klass || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(t->real), reinterpret_cast<PyTypeObject*>(PyExc_BaseException)))
      stop("except-clause", "an except clause names something that is not an exception class");
  };
  if (kind(type) == Kind::tuple) {
    for (Value* t : items(type)) check(t);
    for (Value* t : items(type))
      if (matches(exception, t)) return true;
    return false;
  }
  check(type);
  return PyType_IsSubtype(exception->type, reinterpret_cast<PyTypeObject*>(type->real));
}

bool Trace::raised_is(PyObject* type) { return raised_ && PyType_IsSubtype(raised_->type, reinterpret_cast<PyTypeObject*>(type)); }

}  // namespace cutaway::capture
