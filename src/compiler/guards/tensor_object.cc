#include "compiler/guards/tensor_object.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/Formatting.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <new>
#include <sstream>
#include <utility>
#include <vector>

#include "compiler/guards/class_content.h"

namespace cutaway::guards {
namespace {

bool has_strides(const at::Tensor& t) { return t.layout() == at::kStrided; }

// Strides as a new tensor of these sizes has them. is_contiguous() asks for less: strides of dimensions of size 1 may be anything, and a
// program can read them.
bool has_plain_strides(const at::Tensor& t) {
  const at::IntArrayRef sizes = t.sizes(), strides = t.strides();
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (strides[i] != expected) return false;
    expected *= std::max<int64_t>(sizes[i], 1);
  }
  return true;
}

}  // namespace

bool is_tensor(PyObject* o) noexcept {
  if (THPVariable_CheckExact(o)) return true;
  return THPVariableClass && PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(THPVariableClass));   // no __instancecheck__ of anybody's
}
const at::Tensor& unwrap_tensor(PyObject* o) noexcept { return THPVariable_Unpack(o); }
PyObject* wrap_tensor(const at::Tensor& t) { return THPVariable_Wrap(t); }

bool has_gradient_hooks(const at::Tensor& t) noexcept {
  PyObject* o = THPVariable_Wrap(t);
  if (!o) return PyErr_Clear(), true;
  const auto* object = reinterpret_cast<THPVariable*>(o);
  Py_DECREF(o);   // t has it
  for (PyObject* hooks : {object->backward_hooks, object->post_accumulate_grad_hooks})   // one that was removed leaves its dictionary behind
    if (hooks && hooks != Py_None && PyObject_Size(hooks) != 0) return PyErr_Clear(), true;
  const auto* meta = torch::autograd::impl::get_autograd_meta(t);
  if (!meta) return false;
  if (meta->cpp_hooks_list_) return true;
  if (meta->grad_fn_) return false;
  const auto node = torch::autograd::impl::try_get_grad_accumulator(t);
  return node && (!node->pre_hooks().empty() || !node->post_hooks().empty());
}

void set_python_error() {
  try {
    throw;
  } catch (python_error& e) {
    e.restore();
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (...) {
    torch::translate_exception_to_python(std::current_exception());
  }
}

WarningScope::WarningScope() {
  static_assert(sizeof(torch::PyWarningHandler) <= sizeof room_ && alignof(torch::PyWarningHandler) <= 8);
  new (room_) torch::PyWarningHandler;
}
bool WarningScope::end() {
  if (!std::exchange(open_, false)) return true;
  try {
    std::launder(reinterpret_cast<torch::PyWarningHandler*>(room_))->~PyWarningHandler();
  } catch (python_error& e) {
    e.restore();
    return false;
  }
  return true;
}
WarningScope::~WarningScope() {
  if (!open_) return;
  // An exception is on its way: what was collected goes with it.
  std::launder(reinterpret_cast<torch::PyWarningHandler*>(room_))->set_in_exception();
  end();
}

uint32_t number_tensor_class() noexcept {
  auto* t = reinterpret_cast<PyTypeObject*>(THPVariableClass);
  static unsigned version = 0;
  static uint32_t number = 0;
  if (!t || (version && PyType_HasFeature(t, Py_TPFLAGS_VALID_VERSION_TAG) && t->tp_version_tag == version)) return number;
  static auto* met = new std::vector<std::shared_ptr<ClassContent>>;
  static PyObject* const name = PyUnicode_InternFromString("__class__");
  _PyType_Lookup(t, name);   // gives the type a version where it has none
  const auto same = std::find_if(met->begin(), met->end(), [&](const auto& content) { return content->is_same(t); });
  number = static_cast<uint32_t>(same - met->begin());
  if (same == met->end()) met->push_back(ClassContent::of(t));
  version = PyType_HasFeature(t, Py_TPFLAGS_VALID_VERSION_TAG) ? t->tp_version_tag : 0;
  return number;
}

GlobalState::Mode describe_function_mode(int64_t position) {
  GlobalState::Mode m;
  PyObject* mode = at::impl::PythonTorchFunctionTLS::get_stack_at(position)->ptr(getPyInterpreter());
  m.object = mode;
  static PyObject* device_class = nullptr;   // not initialized here: two threads may come to it
  if (!device_class) {
    ObjectRef module = ObjectRef::steal(PyImport_ImportModule("torch.utils._device"));
    device_class = module ? PyObject_GetAttrString(module.get(), "DeviceContext") : nullptr;
    if (!device_class) PyErr_Clear();
  }
  if (reinterpret_cast<PyObject*>(Py_TYPE(mode)) != device_class) return m;
  PyObject** place = _PyObject_GetDictPtr(mode);
  PyObject* device = place && *place ? PyDict_GetItemString(*place, "device") : nullptr;
  if (!device || !THPDevice_Check(device)) return m;
  const c10::Device d = reinterpret_cast<THPDevice*>(device)->device;
  m.object = device_class;
  m.device = (static_cast<int32_t>(d.type()) << 8) | (static_cast<uint8_t>(d.index()));
  return m;
}

TensorSpec describe_tensor(PyObject* object) {
  const at::Tensor& t = THPVariable_Unpack(object);
  TensorSpec spec;
  spec.python_type = Py_TYPE(object);
  spec.dispatch_keys = t.key_set().raw_repr();
  spec.dtype = static_cast<int8_t>(t.scalar_type());
  spec.device_type = static_cast<int8_t>(t.device().type());
  spec.device_index = t.device().index();
  spec.layout = static_cast<int8_t>(t.layout());
  spec.requires_grad = t.requires_grad();
  spec.sizes = t.sizes().vec();
  if (has_strides(t)) spec.strides = t.strides().vec();
  return spec;
}

bool matches(const TensorSpec& spec, PyObject* object) noexcept {
  if (Py_TYPE(object) != spec.python_type) return false;
  const at::Tensor& t = THPVariable_Unpack(object);
  if (t.key_set().raw_repr() != spec.dispatch_keys || static_cast<int8_t>(t.scalar_type()) != spec.dtype) return false;
  if (static_cast<int8_t>(t.device().type()) != spec.device_type || t.device().index() != spec.device_index) return false;
  if (t.requires_grad() != spec.requires_grad) return false;
  const at::IntArrayRef sizes = t.sizes();
  if (sizes.size() != spec.sizes.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != spec.sizes[i] && !(spec.sizes[i] == TensorSpec::kAny && sizes[i] >= 2)) return false;
  if (spec.strides.empty()) return true;
  if (spec.contiguous && !has_plain_strides(t)) return false;
  const at::IntArrayRef strides = t.strides();
  for (size_t i = 0; i < strides.size(); ++i)
    if (strides[i] != spec.strides[i] && spec.strides[i] != TensorSpec::kAny) return false;
  return true;
}

std::string difference(const TensorSpec& spec, PyObject* object, const std::string& name, int* dim) {
  const auto says = [](const std::string& what, const auto& was, const auto& is) {
    std::ostringstream out;
    out << std::boolalpha << "`" << what << "` was " << was << ", is " << is;
    return out.str();
  };
  const auto number = [](int64_t n) { return n == TensorSpec::kAny ? std::string("2 or more") : std::to_string(n); };
  if (!is_tensor(object)) return says("type(" + name + ")", spec.python_type->tp_name, Py_TYPE(object)->tp_name);
  if (Py_TYPE(object) != spec.python_type) return says("type(" + name + ")", spec.python_type->tp_name, Py_TYPE(object)->tp_name);
  const at::Tensor& t = THPVariable_Unpack(object);
  if (static_cast<int8_t>(t.scalar_type()) != spec.dtype) return says(name + ".dtype", at::toString(static_cast<at::ScalarType>(spec.dtype)), at::toString(t.scalar_type()));
  const c10::Device device(static_cast<c10::DeviceType>(spec.device_type), spec.device_index);
  if (t.device() != device) return says(name + ".device", device, t.device());
  if (static_cast<int8_t>(t.layout()) != spec.layout) return says(name + ".layout", static_cast<at::Layout>(spec.layout), t.layout());
  if (t.requires_grad() != spec.requires_grad) return says(name + ".requires_grad", spec.requires_grad ? "True" : "False", t.requires_grad() ? "True" : "False");
  if (t.key_set().raw_repr() != spec.dispatch_keys) {
    std::ostringstream out;
    out << "`" << name << "` had dispatch keys " << c10::DispatchKeySet(c10::DispatchKeySet::RAW, spec.dispatch_keys) << ", has " << t.key_set();
    return out.str();
  }
  if (t.dim() != static_cast<int64_t>(spec.sizes.size())) return says(name + ".dim()", spec.sizes.size(), t.dim());
  for (int64_t i = 0; i < t.dim(); ++i)
    if (t.size(i) != spec.sizes[i] && !(spec.sizes[i] == TensorSpec::kAny && t.size(i) >= 2)) {
      if (dim) *dim = static_cast<int>(i);
      return says(name + ".shape[" + std::to_string(i) + "]", number(spec.sizes[i]), t.size(i));
    }
  if (!spec.strides.empty()) {
    if (spec.contiguous && !has_plain_strides(t)) return says(name + ".stride()", "that of a new tensor", t.strides());
    for (int64_t i = 0; i < t.dim(); ++i)
      if (t.stride(i) != spec.strides[i] && spec.strides[i] != TensorSpec::kAny)
        return says(name + ".stride(" + std::to_string(i) + ")", spec.strides[i], t.stride(i));
  }
  return {};
}

}  // namespace cutaway::guards
