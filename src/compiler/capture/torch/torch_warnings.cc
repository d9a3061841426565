#include "compiler/capture/torch/torch_warnings.h"

#include <c10/util/Exception.h>

namespace cutaway::capture {
namespace {

PyObject* texts = nullptr;   // capture is done by one thread at a time

PyObject* match(PyObject*, PyObject* text) {
  if (PyList_Append(texts, text) < 0) return nullptr;
  Py_RETURN_TRUE;
}

// One filter for all warnings: "ignore". Python asks its pattern whether the text matches, and so it is told.
PyObject* watching_filters() {
  static PyMethodDef method = {"match", match, METH_O, nullptr};
  static PyObject* const filters = [] {
    texts = PyList_New(0);
    PyObject* types = PyImport_ImportModule("types");
    PyObject* pattern = PyObject_CallMethod(types, "SimpleNamespace", nullptr);
    PyObject* function = PyCFunction_New(&method, nullptr);
    PyObject_SetAttrString(pattern, "match", function);
    PyObject* made = Py_BuildValue("[(sOOOi)]", "ignore", pattern, PyExc_Warning, Py_None, 0);
    Py_DECREF(function);
    Py_DECREF(pattern);
    Py_DECREF(types);
    return made;
  }();
  return filters;
}

PyObject* warnings_module() {
  static PyObject* const module = PyImport_ImportModule("warnings");
  return module;
}

}  // namespace

// The list is exchanged without telling the module, which would forget what it has shown at each place.
WarningWatch::WarningWatch() {
  PyObject* watching = watching_filters();
  filters_ = PyObject_GetAttrString(warnings_module(), "filters");
  if (!filters_ || filters_ == watching) {   // one around it hears everything
    PyErr_Clear();
    Py_CLEAR(filters_);
    return;
  }
  PyList_SetSlice(texts, 0, PyList_GET_SIZE(texts), nullptr);
  PyObject_SetAttrString(warnings_module(), "filters", watching);
  always_ = c10::WarningUtils::get_warnAlways();
  c10::WarningUtils::set_warnAlways(true);   // else the first time would be this one
}

std::string WarningWatch::end() {
  if (!filters_) return {};
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject_SetAttrString(warnings_module(), "filters", filters_);
  Py_CLEAR(filters_);
  c10::WarningUtils::set_warnAlways(always_);
  std::string first;
  if (PyList_GET_SIZE(texts)) {
    PyObject* text = PyObject_Str(PyList_GET_ITEM(texts, 0));
    if (const char* utf8 = text ? PyUnicode_AsUTF8(text) : nullptr) first = utf8;
    if (first.empty()) first = "a warning without text";
    Py_XDECREF(text);
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
  return first;
}

WarningWatch::~WarningWatch() { end(); }

}  // namespace cutaway::capture
