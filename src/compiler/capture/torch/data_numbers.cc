// Numbers that only the data knows: what item() gives, sizes of nonzero(). With fullgraph=True they are values of the graph. What is computed with them is a
// node, torch takes them as arguments, and they leave the graph as numbers; whatever asks for their value ends the graph.
#include <cstring>
#include <string_view>

#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "core/exec/scalar_ops.h"
#include "core/trace/unknown_number.h"

namespace cutaway::capture {

Value* Leaves::number_from(PyObject* symbolic) {
  const c10::IValue value = unwrap_symbolic(symbolic);
  const auto* unknown = trace::UnknownNumber::of(value);
  if (!unknown) stop("opaque-result", "a torch function returns a symbolic number that capture does not know");
  using Kind = trace::UnknownNumber::Kind;
  Value* v = values.new_value(capture::Kind::opaque, unknown->kind == Kind::integer ? &PyLong_Type : unknown->kind == Kind::floating ? &PyFloat_Type : &PyBool_Type);
  values.give<Number>(v).symbolic = values.keep(Py_NewRef(symbolic));
  return v;
}

Value* Leaves::compute_number(const char* target, const std::vector<Value*>& operands) {
  std::vector<c10::IValue> args;
  for (Value* v : operands) {
    values.force(v);
    if (const Number* n = number_of(v)) { args.push_back(unwrap_symbolic(n->symbolic)); continue; }
    PyObject* c = v->kind == Kind::constant ? v->real : nullptr;
    if (c && PyBool_Check(c)) { args.emplace_back(c == Py_True); continue; }
    if (c && PyFloat_CheckExact(c)) { args.emplace_back(PyFloat_AS_DOUBLE(c)); continue; }
    int overflow = 0;
    const long long n = c && PyLong_CheckExact(c) ? PyLong_AsLongLongAndOverflow(c, &overflow) : (overflow = 1, 0);
    if (overflow) return nullptr;
    args.emplace_back(static_cast<int64_t>(n));
  }
  // Errors of Python's (a division by zero, a result of more than 64 bits) are found when the graph runs; the frame then runs again by CPython.
  real_errors.note_raising(target);
  const exec::ScalarOp* op = exec::find_scalar_op(target);
  try {
    const c10::IValue value = tensors.recorder().add_number(target, args, [&](const std::vector<c10::IValue>& given) { return op->run(given.data(), given.size()); });
    return number_from(values.keep(wrap_symbolic(value)));
  } catch (const c10::Error& e) {
    stop("data-dependent-operator", e.what_without_backtrace());
  }
}

Value* Leaves::binary_with_number(size_t index, const char* reflected, Value* a, Value* b) {
  if (b->kind == Kind::tensor) return call_tensor_method(b, values.keep(PyUnicode_InternFromString(reflected)), {b, a});   // a number does not know tensors
  static constexpr const char* kTargets[] = {"sym.add", "sym.and", "sym.floordiv", "sym.lshift", nullptr, "sym.mul", "sym.mod", "sym.or", "sym.pow", "sym.rshift", "sym.sub", "sym.truediv", "sym.xor"};
  static constexpr const char* kNames[] = {"add", "and_", "floordiv", "lshift", "matmul", "mul", "mod", "or_", "pow", "rshift", "sub", "truediv", "xor"};
  static PyObject* const module = PyImport_ImportModule("operator");
  if (a->kind == Kind::tensor) return call_leaf(values.keep(PyObject_GetAttrString(module, kNames[index])), nullptr, {a, b});
  // A power may be a float or an integer by its exponent, and where it is too large Python raises.
  const bool is_square = index == 8 && b->kind == Kind::constant && PyLong_CheckExact(b->real) && _PyLong_Sign(b->real) >= 0 && a->type != &PyFloat_Type;
  Value* r = kTargets[index] && (index != 8 || is_square) ? compute_number(kTargets[index], {a, b}) : nullptr;
  if (!r) stop("data-dependent-operator", "an operator is applied to " + values.describe(a) + " and " + values.describe(b));
  return r;
}

Value* Leaves::compare_with_number(int op, Value* a, Value* b) {
  static constexpr const char* kTargets[] = {"sym.lt", "sym.le", "sym.eq", "sym.ne", "sym.gt", "sym.ge"};
  static constexpr const char* kNames[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  static constexpr const char* kTurned[] = {"__gt__", "__ge__", "__eq__", "__ne__", "__lt__", "__le__"};
  static PyObject* const module = PyImport_ImportModule("operator");
  if (a->kind == Kind::tensor) return call_leaf(values.keep(PyObject_GetAttrString(module, kNames[op])), nullptr, {a, b});
  if (b->kind == Kind::tensor) return call_tensor_method(b, values.keep(PyUnicode_InternFromString(kTurned[op])), {b, a});
  if ((op == Py_EQ || op == Py_NE) && (values.is_constant(a, Py_None) || values.is_constant(b, Py_None))) return values.boolean(op == Py_NE);
  Value* r = compute_number(kTargets[op], {a, b});
  if (!r) stop("data-dependent-operator", values.describe(a) + " and " + values.describe(b) + " are compared");
  return r;
}

Value* Leaves::call_with_number(PyObject* f, const Args& args) {
  Value* v = values.force(args[0]);
  static PyObject* const torch = PyImport_ImportModule("torch");
  static PyObject* const tensor = PyObject_GetAttrString(torch, "tensor");
  if (f == tensor) {   // it would ask for the number: a call that fills a tensor does not
    const std::vector<Keyword> keywords(args.keywords, args.keywords + args.keyword_count);
    const auto fill = [&](Value* n) { return call_leaf(values.keep(PyObject_GetAttrString(torch, "full")), nullptr, Args({values.make_tuple({}), n}, keywords)); };
    if (number_of(v)) return fill(v);
    if (v->kind != Kind::list && v->kind != Kind::tuple) return nullptr;
    const std::vector<Value*> items = values.items(v);
    bool has_number = false;
    for (Value* i : items) has_number = has_number || number_of(values.force(i));
    if (!has_number) return nullptr;
    std::vector<Value*> all;
    for (Value* i : items) {
      if (i->type != items.front()->type) stop("item", "torch.tensor() is called with numbers of several types, some of which were read from tensors");
      all.push_back(fill(i));
      if (!all.back()) return nullptr;
    }
    return call_leaf(values.keep(PyObject_GetAttrString(torch, "stack")), nullptr, {values.make_list(std::move(all))});
  }
  if (f == reinterpret_cast<PyObject*>(&PyLong_Type)) return v->type == &PyLong_Type ? v : compute_number("sym.int", {v});
  if (f == reinterpret_cast<PyObject*>(&PyFloat_Type)) return v->type == &PyFloat_Type ? v : compute_number("sym.float", {v});
  if (!PyCFunction_Check(f)) return nullptr;
  static PyObject* const math = PyImport_ImportModule("math");
  if (PyCFunction_GET_SELF(f) != math) return nullptr;
  struct Row { const char *name, *target; };
  static constexpr Row rows[] = {{"sqrt", "sym.sqrt"}, {"floor", "sym.floor"}, {"ceil", "sym.ceil"}, {"trunc", "sym.trunc"}, {"tanh", "sym.tanh"}};
  for (const Row& r : rows)
    if (!std::strcmp(reinterpret_cast<PyCFunctionObject*>(f)->m_ml->ml_name, r.name)) return compute_number(r.target, {v});
  return nullptr;
}

Value* Leaves::read_list(Value* tensor, size_t* left) {
  const at::Tensor& fake = unwrap_tensor(body<Tensor>(tensor).fake);
  if (fake.dim() == 0) return *left ? --*left, call_tensor_method(tensor, values.keep(PyUnicode_InternFromString("item")), {tensor}) : nullptr;
  const auto size = fake.sym_size(0).maybe_as_int();
  if (!size) return nullptr;
  std::vector<Value*> all;
  PyObject* select = values.keep(PyUnicode_InternFromString("select"));
  for (int64_t i = 0; i < *size; ++i) {
    Value* row = call_tensor_method(tensor, select, {tensor, values.integer(0), values.integer(i)});
    Value* item = row ? read_list(row, left) : nullptr;
    if (!item) return nullptr;
    all.push_back(item);
  }
  return values.make_list(std::move(all));
}

Value* Leaves::read_number(const std::string& method, Value* tensor) {
  const at::Tensor& fake = unwrap_tensor(body<Tensor>(tensor).fake);
  if (method == "__len__" && fake.dim() > 0 && fake.sym_size(0).is_symbolic()) {
    PyErr_Clear();
    return call_tensor_method(tensor, values.keep(PyUnicode_InternFromString("size")), {tensor, values.integer(0)});
  }
  static constexpr int64_t kMost = 256;   // items of a list: each is a node
  const auto numel = fake.sym_numel().maybe_as_int();
  if (!numel || *numel > kMost || fake.is_complex()) return nullptr;
  const bool is_list = method == "tolist";
  const char* target = method == "__int__" ? "sym.int" : method == "__float__" ? "sym.float" : method == "__bool__" ? "sym.bool" : nullptr;
  if (!is_list && ((!target && method != "__index__") || *numel != 1)) return nullptr;
  PyErr_Clear();
  size_t left = kMost;
  if (is_list) return read_list(tensor, &left);
  Value* number = call_tensor_method(tensor, values.keep(PyUnicode_InternFromString("item")), {tensor});
  if (!number) return nullptr;
  if (!target) target = number->type == &PyBool_Type ? "sym.int" : nullptr;
  if (!target && number->type == &PyFloat_Type) stop("item", "a number is read from a tensor of floats by __index__()");
  const PyTypeObject* wanted = !target ? nullptr : !std::strcmp(target, "sym.int") ? &PyLong_Type : !std::strcmp(target, "sym.float") ? &PyFloat_Type : &PyBool_Type;
  return !wanted || number->type == wanted ? number : compute_number(target, {number});
}

bool Leaves::call_check(Value* f, const Args& args, Value** result) {
  const auto number = [&](size_t i) -> Value* { return i < args.count && number_of(values.force(args[i])) ? args[i] : nullptr; };
  if (!number(0) && !number(1)) return false;
  static PyObject* const torch = PyImport_ImportModule("torch");
  const auto is = [&](const char* name) {
    PyObject* found = PyDict_GetItemString(PyModule_GetDict(torch), name);
    return found && found == f->real;
  };
  Value* cond = nullptr;
  if (is("_check_with") && number(1)) cond = args[1];
  else if (is("_check_is_size") && number(0)) cond = compare_with_number(Py_GE, args[0], values.integer(0));
  else return false;
  const auto check = [&](Value* c) {
    if (c->type != &PyBool_Type) stop("data-dependent-operator", "a number that was read from a tensor is checked, and is no bool");
    real_errors.note_raising("torch._check");
    try {
      tensors.recorder().add_check(unwrap_symbolic(number_of(c)->symbolic), "a check of the program's failed");   // the frame then runs again, and raises in the program's words
    } catch (const c10::Error& e) {
      stop("data-dependent-operator", e.what_without_backtrace());
    }
  };
  check(cond);
  for (size_t i = 0; i < args.keyword_count; ++i)
    if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "max") == 0 && !values.is_constant(args.keywords[i].second, Py_None)) check(compare_with_number(Py_LE, args[0], values.force(args.keywords[i].second)));
  *result = values.none();
  return true;
}

}  // namespace cutaway::capture
