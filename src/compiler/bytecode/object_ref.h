// An owned reference to a Python object. The GIL is held wherever one is copied or destroyed.
#pragma once
#include <Python.h>

#include <utility>

namespace cutaway::bytecode {

class ObjectRef {
 public:
  ObjectRef() = default;
  /// Takes over a reference that the caller owns; null stays null.
  static ObjectRef steal(PyObject* o) { return ObjectRef(o); }
  /// Adds a reference to one that somebody else owns.
  static ObjectRef borrow(PyObject* o) { return ObjectRef(Py_XNewRef(o)); }
  ObjectRef(const ObjectRef& other) : object_(Py_XNewRef(other.object_)) {}
  ObjectRef(ObjectRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ObjectRef& operator=(ObjectRef other) noexcept { std::swap(object_, other.object_); return *this; }
  ~ObjectRef() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// Gives the reference to the caller.
  PyObject* release() { return std::exchange(object_, nullptr); }
  bool operator==(const ObjectRef& other) const { return object_ == other.object_; }

 private:
  explicit ObjectRef(PyObject* o) : object_(o) {}
  PyObject* object_ = nullptr;
};

}  // namespace cutaway::bytecode
