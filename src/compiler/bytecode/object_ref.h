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

/// An object that is owned, or known by a weak reference: then it may be gone.
class Held {
 public:
  Held() = default;
  Held(ObjectRef owned) : reference_(std::move(owned)) {}   // NOLINT: an ObjectRef is one that is owned
  /// By a weak reference, where the object allows that.
  static Held weakly(PyObject* o) {
    Held h(ObjectRef::borrow(o));
    ObjectRef weak = ObjectRef::steal(PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)) ? PyWeakref_NewRef(o, nullptr) : nullptr);
    if (weak) h.let_go(std::move(weak));
    else PyErr_Clear();
    return h;
  }
  /// Borrowed; null: it is gone.
  PyObject* get() const {
    PyObject* o = is_weak_ ? PyWeakref_GET_OBJECT(reference_.get()) : reference_.get();
    return is_weak_ && o == Py_None ? nullptr : o;
  }
  explicit operator bool() const { return get() != nullptr; }
  bool is_weak() const { return is_weak_; }
  void let_go(ObjectRef weak) {
    reference_ = std::move(weak);
    is_weak_ = true;
  }
  bool operator==(const Held& other) const { return get() == other.get(); }

 private:
  ObjectRef reference_;
  bool is_weak_ = false;
};

}  // namespace cutaway::bytecode
