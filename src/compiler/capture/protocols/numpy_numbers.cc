// numpy beside tensors: its numbers and dtypes are constants, and its functions of numbers run now, by numpy itself. Arrays are in numpy_arrays.cc; here is what torch does with them.
#include <cstdint>
#include <string_view>

#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {
namespace {

struct Numpy {
  std::unordered_set<PyTypeObject*> numbers;
  PyTypeObject *ufunc = nullptr, *dispatcher = nullptr, *bool_type = nullptr, *integer = nullptr, *dtype = nullptr;
};
const Numpy& numpy() {
  static const Numpy all = [] {
    Numpy n;
    const auto type = [](const char* name) { return reinterpret_cast<PyTypeObject*>(find_member("numpy", name)); };
    if (!(n.integer = type("integer"))) return n;   // not installed
    for (const char* name : {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "longlong", "ulonglong", "float16", "float32", "float64", "bool_"})
      if (PyTypeObject* t = type(name)) n.numbers.insert(t);
    n.bool_type = type("bool_");
    n.ufunc = type("ufunc");
    n.dtype = type("dtype");
    if (PyObject* sum = find_member("numpy", "sum")) n.dispatcher = Py_TYPE(sum);
    if (n.dispatcher == &PyFunction_Type) n.dispatcher = nullptr;
    return n;
  }();
  return all;
}
std::string numpy_name(PyObject* f) {
  PyObject* n = PyObject_GetAttrString(f, "__name__");
  std::string text = n && PyUnicode_Check(n) ? PyUnicode_AsUTF8(n) : "";
  Py_XDECREF(n);
  PyErr_Clear();
  return text;
}

}  // namespace

bool is_numpy_number(PyTypeObject* t) { return t && !(t->tp_flags & Py_TPFLAGS_HEAPTYPE) && numpy().numbers.contains(t); }

bool is_numpy_dtype(PyTypeObject* t) { return t && numpy().dtype && PyType_IsSubtype(t, numpy().dtype); }

PyObject* number_of_numpy(PyObject* o) {
  if (Py_TYPE(o) == numpy().bool_type) return PyBool_FromLong(PyObject_IsTrue(o));
  return PyType_IsSubtype(Py_TYPE(o), numpy().integer) ? PyNumber_Index(o) : PyNumber_Float(o);
}

// The numbers of numpy among the operands decide; what they do beside a container makes arrays.
bool Library::compute_with_numpy(PyObject* function, std::initializer_list<Value*> operands, Value** result) {
  bool any = false;
  for (Value* v : operands) any |= v->kind == Kind::constant && is_numpy_number(v->type);
  if (!any) return false;
  std::vector<PyObject*> given;
  for (Value* v : operands) {
    if (v->kind == Kind::tensor || v->kind == Kind::object) return false;   // theirs to say
    const bool number = v->kind == Kind::constant && (is_numpy_number(v->type) || PyLong_Check(v->real) || PyFloat_Check(v->real) || PyComplex_Check(v->real) || v->real == Py_None);
    if (!number) stop("numpy", "a numpy number is combined with " + values.describe(v));
    if (frames::SizeLog* log = frames::size_log()) log->used(v->real);
    given.push_back(v->real);
  }
  PyObject* tuple = values.keep(PyTuple_New(static_cast<Py_ssize_t>(given.size())));
  for (size_t i = 0; i < given.size(); ++i) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(given[i]));
  *result = run_numpy(function, tuple, nullptr);
  return true;
}

// What would warn (a division by zero, an overflow) has to do so at every call.
Value* Library::run_numpy(PyObject* function, PyObject* positional, PyObject* keywords) {
  static PyObject* const quietly = polyfill_named("numpy_without_warnings");
  PyObject* r = PyObject_CallFunctionObjArgs(quietly, function, positional, keywords ? keywords : values.keep(PyDict_New()), nullptr);
  if (!r) {
    if (PyErr_ExceptionMatches(PyExc_FloatingPointError) || PyErr_ExceptionMatches(PyExc_Warning)) { PyErr_Clear(); stop("numpy", "a numpy function warns about its numbers"); }
    return exceptions.raise_python();
  }
  values.keep(r);
  const Kind k = kind_of_type(Py_TYPE(r), r);
  return k == Kind::constant ? values.constant(r) : result_of_numpy(r, nullptr);
}

bool Library::call_numpy(Value* f, const Args& args, Value** result) {
  if (!f->real) return false;
  const bool is_class = f->kind == Kind::klass && is_numpy_number(reinterpret_cast<PyTypeObject*>(f->real));
  const bool is_ufunc = numpy().ufunc && Py_TYPE(f->real) == numpy().ufunc;
  static const std::unordered_set<std::string> of_numbers = {"prod", "sum", "max", "min", "amax", "amin", "mean", "round", "around", "clip", "median", "std", "var", "ptp", "argmax", "argmin", "any", "all"};
  const bool is_reduction = numpy().dispatcher && Py_TYPE(f->real) == numpy().dispatcher && of_numbers.contains(numpy_name(f->real));
  if (!is_class && !is_ufunc && !is_reduction) return false;
  if (is_ufunc && PyObject_HasAttrString(f->real, "pyfunc")) return false;
  PyObject* tuple = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  for (size_t i = 0; i < args.count; ++i) {
    PyObject* p = texts.to_plain(args[i]);
    // Python's numbers, numpy's, and lists of them: an object with methods of its own would be asked for them.
    if (!p && call_on_arrays(f->real, args, result)) return true;
    if (!p) stop(values.kind(args[i]) == Kind::tensor ? "tensor-in-python-function" : "numpy", values.describe(f) + " is called with " + values.describe(args[i]), "use the torch function of that name");
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(p));
  }
  PyObject* keywords = values.keep(PyDict_New());
  for (size_t i = 0; i < args.keyword_count; ++i) {
    PyObject* p = texts.to_plain(args.keywords[i].second);
    if (!p && call_on_arrays(f->real, args, result)) return true;
    if (!p || PyUnicode_CompareWithASCIIString(args.keywords[i].first, "out") == 0) stop("numpy", values.describe(f) + " is called with " + values.describe(args.keywords[i].second));
    PyDict_SetItem(keywords, args.keywords[i].first, p);
  }
  if (frames::SizeLog* log = frames::size_log())
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
      PyObject* x = PyTuple_GET_ITEM(tuple, i);
      log->used(PyList_Check(x) ? values.keep(PyList_AsTuple(x)) : x);
      log->used_floats(x);
    }
  *result = run_numpy(f->real, tuple, keywords);
  return true;
}

bool Library::call_with_arrays(PyObject* callable, const std::string& name, const Args& args, Value** result) {
  bool any = false;
  for (size_t i = 0; i < args.count && !any; ++i) {
    const Kind k = values.kind(args[i]);
    any = is_array_value(args[i]);
    if (k == Kind::tuple && i == 1)
      for (Value* part : values.items(args[i])) any |= is_array_value(values.force(part));
  }
  if (!any) return false;
  const std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
  const bool is_index = name == "operator.getitem" || name == "operator.setitem";
  const bool makes = name == "torch.from_numpy" || name == "torch.tensor" || name == "torch.as_tensor" || name == "torch.asarray";
  if (!is_index && !makes) return false;
  const auto convert = [&](Value* v) { return is_array_value(values.force(v)) ? tensor_of_array(v) : v; };
  if (is_index) {
    std::vector<Value*> given(args.positional, args.positional + args.count);
    if (given.size() < 2 || is_array_value(values.force(given[0])) || (given.size() > 2 && is_array_value(values.force(given[2])))) return false;
    if (values.kind(given[1]) == Kind::tuple) {
      std::vector<Value*> parts = values.items(given[1]);
      for (Value*& p : parts) p = convert(p);
      given[1] = values.make_tuple(std::move(parts));
    } else {
      given[1] = convert(given[1]);
    }
    *result = leaves.call_leaf(callable, nullptr, Args(given));
    return true;
  }
  if (args.count != 1) return false;
  std::vector<Keyword> wanted;
  for (size_t i = 0; i < args.keyword_count; ++i) {
    if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "dtype") != 0 && PyUnicode_CompareWithASCIIString(args.keywords[i].first, "device") != 0) return false;
    if (!values.is_constant(args.keywords[i].second, Py_None)) wanted.push_back(args.keywords[i]);
  }
  Value* tensor = last == "tensor" ? tensor_of_array(args[0]) : tensor_from_array(args[0]);
  if (!tensor) { *result = nullptr; return true; }
  if (last == "tensor") {   // a copy
    static PyObject* const clone = PyUnicode_InternFromString("clone");
    tensor = leaves.call_tensor_method(tensor, clone, {tensor});
    if (!tensor) { *result = nullptr; return true; }
  }
  static PyObject* const to = PyUnicode_InternFromString("to");
  *result = wanted.empty() ? tensor : leaves.call_tensor_method(tensor, to, Args({tensor}, wanted));
  return true;
}

bool Library::has_numpy_number(const Args& args) {
  const auto has = [&](Value* v, const auto& self, int depth) -> bool {
    values.force(v);
    if (v->kind == Kind::constant) return is_numpy_number(v->type);
    if (depth < 4 && (v->kind == Kind::list || v->kind == Kind::tuple))
      for (Value* i : values.items(v)) if (self(i, self, depth + 1)) return true;
    return false;
  };
  for (size_t i = 0; i < args.count; ++i) if (has(args[i], has, 0)) return true;
  for (size_t i = 0; i < args.keyword_count; ++i) if (has(args.keywords[i].second, has, 0)) return true;
  return false;
}

}  // namespace cutaway::capture
