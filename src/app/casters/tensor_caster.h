// torch.Tensor <-> at::Tensor for nanobind: the same object, the same storage. Includes nothing slow: torch's Python headers
// cost 15 s a file, so they are in tensor_caster.cc alone.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <nanobind/nanobind.h>

namespace cutaway::casters {
bool is_tensor(PyObject*) noexcept;
const at::Tensor& unwrap_tensor(PyObject*) noexcept;
PyObject* wrap_tensor(const at::Tensor&) noexcept;
/// torch.float32 and so on.
nanobind::object wrap_dtype(at::ScalarType);
/// As torch does: types kept (IndexError, NotImplementedError), no C++ backtrace in the text.
void translate_torch_exceptions();
/// The class that a difference found by CUTAWAY_CHECK is raised as.
void raise_checks_as(nanobind::object type);
/// Raises an exception of torch's or of Python's as translate_torch_exceptions would, with a note added to it (PEP 678). Holds the GIL.
[[noreturn]] void raise_with_note(std::exception_ptr, const std::string& note);

/// A Python value that an operator may take or give (tensor, number, string, dtype, device, None, lists and tuples of them).
/// Throws a TypeError that names the Python type for anything else.
c10::IValue to_ivalue(nanobind::handle);
/// The same for each of a sequence.
std::vector<c10::IValue> to_ivalues(nanobind::handle sequence);
/// Lists become Python lists, tuples tuples; undefined tensors become None.
nanobind::object from_ivalue(const c10::IValue&);
/// The Python exception that torch carries through C++ (from a Python autograd function), or nothing for any other exception. With the GIL.
nanobind::object take_torch_python_error(const std::exception_ptr&);
/// The other way: throws a Python exception as torch carries one, so that autograd's engine hands it on whole. With the GIL.
[[noreturn]] void throw_through_torch(nanobind::python_error&);
}  // namespace cutaway::casters

namespace nanobind::detail {
template <> struct type_caster<at::Tensor> {
  NB_TYPE_CASTER(at::Tensor, const_name("torch.Tensor"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    if (!cutaway::casters::is_tensor(src.ptr())) return false;
    value = cutaway::casters::unwrap_tensor(src.ptr());
    return true;
  }
  static handle from_cpp(const at::Tensor& t, rv_policy, cleanup_list*) noexcept { return cutaway::casters::wrap_tensor(t); }
};
}  // namespace nanobind::detail
