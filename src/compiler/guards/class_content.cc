#include "compiler/guards/class_content.h"

#include <unordered_map>

// The version of a dictionary is deprecated from 3.12 on, and there in 3.11 and 3.12, which are those we run on.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace cutaway::guards {
namespace {

using bytecode::ObjectRef;

PyObject* dict_of(PyTypeObject* t) { return PyType_HasFeature(t, Py_TPFLAGS_HEAPTYPE) ? t->tp_dict : nullptr; }
uint64_t version_of(PyObject* dict) { return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag; }

bool same_items(PyObject* was, PyObject* is, const std::vector<PyObject*>& left_out) {
  const auto is_left_out = [&](PyObject* key) {
    for (PyObject* name : left_out) if (key == name || (PyUnicode_Check(key) && PyUnicode_Compare(key, name) == 0)) return true;
    return false;
  };
  Py_ssize_t more = PyDict_GET_SIZE(is) - PyDict_GET_SIZE(was);
  for (PyObject* name : left_out) more -= PyDict_Contains(is, name) - PyDict_Contains(was, name);
  if (more != 0) return false;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(was, &at, &key, &value)) {
    if (!left_out.empty() && is_left_out(key)) continue;
    PyObject* now = PyDict_GetItemWithError(is, key);
    if (!now) PyErr_Clear();
    if (now != value) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const ClassContent::Items> ClassContent::items_of(PyTypeObject* t) {
  PyObject* dict = dict_of(t);
  if (!dict) return nullptr;
  static auto* known = new std::unordered_map<PyTypeObject*, std::weak_ptr<const Items>>;
  auto& weak = (*known)[t];
  if (auto items = weak.lock(); items && items->version == version_of(dict)) return items;
  if (known->size() > 4096) std::erase_if(*known, [&](const auto& row) { return row.first != t && row.second.expired(); });
  auto made = std::make_shared<Items>();
  made->version = version_of(dict);
  made->copy = ObjectRef::steal(PyDict_Copy(dict));
  if (!made->copy) { PyErr_Clear(); return nullptr; }
  (*known)[t] = made;
  return made;
}

std::shared_ptr<ClassContent> ClassContent::of(PyTypeObject* t, const Data& data) {
  auto out = std::make_shared<ClassContent>();
  for (const auto& [type, name] : data)
    if (PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(type.get()))) out->left_out_.emplace_back(type, name);
  out->version_ = t->tp_version_tag;
  out->mro_ = ObjectRef::borrow(t->tp_mro);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i) out->items_.push_back(items_of(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(t->tp_mro, i))));
  return out;
}

bool ClassContent::is_same(PyTypeObject* t) {
  if (PyType_HasFeature(t, Py_TPFLAGS_VALID_VERSION_TAG) && t->tp_version_tag == version_) return true;
  if (t->tp_mro != mro_.get()) return false;
  for (size_t i = 0; i < items_.size(); ++i) {
    PyObject* dict = dict_of(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro_.get(), static_cast<Py_ssize_t>(i))));
    if (!dict != !items_[i]) return false;
    if (!dict || version_of(dict) == items_[i]->version) continue;
    std::vector<PyObject*> names;
    for (const auto& [type, name] : left_out_) if (type.get() == PyTuple_GET_ITEM(mro_.get(), static_cast<Py_ssize_t>(i))) names.push_back(name.get());
    if (!same_items(items_[i]->copy.get(), dict, names)) return false;
  }
  static PyObject* name = PyUnicode_InternFromString("__class__");
  _PyType_Lookup(t, name);   // gives the type a version where it has none
  if (!PyType_HasFeature(t, Py_TPFLAGS_VALID_VERSION_TAG)) return true;
  version_ = t->tp_version_tag;
  return true;
}

}  // namespace cutaway::guards
