#include "compiler/guards/class_content.h"

#include <unordered_map>

#include "compiler/bytecode/dict_version.h"

namespace cutaway::guards {
namespace {

using bytecode::has_version;
using bytecode::Held;
using bytecode::ObjectRef;

PyObject* dict_of(PyTypeObject* t) { return PyType_HasFeature(t, Py_TPFLAGS_HEAPTYPE) ? t->tp_dict : nullptr; }

// What a class has under a name, to be known again. Functions and classes are held weakly: they hold the class, by the cell of super() or as attributes of each
// other. Objects of C that allow no weak references are known by their address and by what they are made of.
struct Item {
  PyObject* value = nullptr;
  std::vector<Held> parts;
};

std::vector<PyObject*> parts_of(PyObject* o) {
  std::vector<const char*> names;
  if (Py_TYPE(o) == &PyProperty_Type) names = {"fget", "fset", "fdel"};
  else if (Py_TYPE(o) == &PyStaticMethod_Type || Py_TYPE(o) == &PyClassMethod_Type) names = {"__func__"};
  std::vector<PyObject*> parts;
  for (const char* name : names) {
    PyObject* part = PyObject_GetAttrString(o, name);   // members of C
    if (!part) PyErr_Clear();
    parts.push_back(part ? part : Py_None);
    Py_XDECREF(part);   // the object has it
  }
  return parts;
}

bool holds_class(PyObject* container, PyTypeObject* t) {
  const auto is = [&](PyObject* o) { return o == reinterpret_cast<PyObject*>(t) || PyType_IsSubtype(Py_TYPE(o), t); };
  if (PyDict_Check(container)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(container, &at, &key, &value);) if (is(key) || is(value)) return true;
  } else if (PyList_Check(container) || PyTuple_Check(container)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i) if (is(PySequence_Fast_GET_ITEM(container, i))) return true;
  }
  return is(container);
}

Item describe(PyObject* value, PyTypeObject* owner) {
  Item item{value, {}};
  const std::vector<PyObject*> parts = parts_of(value);
  for (PyObject* part : parts) item.parts.push_back(Held::weakly(part));
  const PyTypeObject* t = Py_TYPE(value);
  const bool is_descriptor_of_c = t == &PyGetSetDescr_Type || t == &PyMemberDescr_Type || t == &PyWrapperDescr_Type || t == &PyMethodDescr_Type;   // they hold the class
  if (parts.empty() && !is_descriptor_of_c && !holds_class(value, owner)) item.parts.push_back(Held::weakly(value));
  return item;
}

bool content_matches(const Item& was, PyObject* now) {
  if (now != was.value) return false;
  const std::vector<PyObject*> parts = parts_of(now);
  if (parts.empty()) return was.parts.empty() || was.parts.front().get() == now;
  if (parts.size() != was.parts.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) if (was.parts[i].get() != parts[i]) return false;
  return true;
}

}  // namespace

struct ClassContent::Items {
  uint64_t version = 0;
  std::vector<std::pair<ObjectRef, Item>> all;   // by name
  bool are_same(PyObject* dict, const std::vector<PyObject*>& left_out) const {
    const auto is_left_out = [&](PyObject* key) {
      for (PyObject* name : left_out) if (key == name || (PyUnicode_Check(key) && PyUnicode_Compare(key, name) == 0)) return true;
      return false;
    };
    Py_ssize_t more = PyDict_GET_SIZE(dict);
    for (PyObject* name : left_out) more -= PyDict_Contains(dict, name);
    for (const auto& [key, item] : all) {
      if (!left_out.empty() && is_left_out(key.get())) continue;
      PyObject* now = PyDict_GetItemWithError(dict, key.get());
      if (!now) PyErr_Clear();
      if (!now || !content_matches(item, now)) return false;
      --more;
    }
    return more == 0;
  }
};

std::shared_ptr<const ClassContent::Items> ClassContent::items_of(PyTypeObject* t) {
  PyObject* dict = dict_of(t);
  if (!dict) return nullptr;
  static auto* known = new std::unordered_map<PyTypeObject*, std::weak_ptr<const Items>>;
  auto& weak = (*known)[t];
  if (auto items = weak.lock(); items && has_version(dict, items->version)) return items;
  if (known->size() > 4096) std::erase_if(*known, [&](const auto& row) { return row.first != t && row.second.expired(); });
  auto made = std::make_shared<Items>();
  made->version = bytecode::dict_version(dict);
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) made->all.emplace_back(ObjectRef::borrow(key), describe(value, t));
  (*known)[t] = made;
  return made;
}

std::shared_ptr<ClassContent> ClassContent::of(PyTypeObject* t, const Data& data) {
  auto out = std::make_shared<ClassContent>();
  for (const auto& [type, name] : data)
    if (auto* owner = reinterpret_cast<PyTypeObject*>(type.get()); PyType_IsSubtype(t, owner)) out->left_out_.emplace_back(owner, name);
  out->version_ = t->tp_version_tag;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i) {
    PyObject* c = PyTuple_GET_ITEM(t->tp_mro, i);
    out->mro_.push_back(Held::weakly(c));
    out->items_.push_back(items_of(reinterpret_cast<PyTypeObject*>(c)));
  }
  return out;
}

bool ClassContent::is_same(PyTypeObject* t) {
  if (PyType_HasFeature(t, Py_TPFLAGS_VALID_VERSION_TAG) && t->tp_version_tag == version_) return true;
  if (PyTuple_GET_SIZE(t->tp_mro) != static_cast<Py_ssize_t>(mro_.size())) return false;
  for (size_t i = 0; i < items_.size(); ++i) {
    PyObject* c = PyTuple_GET_ITEM(t->tp_mro, static_cast<Py_ssize_t>(i));
    if (c != mro_[i].get()) return false;
    PyObject* dict = dict_of(reinterpret_cast<PyTypeObject*>(c));
    if (!dict != !items_[i]) return false;
    if (!dict || has_version(dict, items_[i]->version)) continue;
    std::vector<PyObject*> names;
    for (const auto& [type, name] : left_out_) if (reinterpret_cast<PyObject*>(type) == c) names.push_back(name.get());
    if (!items_[i]->are_same(dict, names)) return false;
  }
  static PyObject* name = PyUnicode_InternFromString("__class__");
  _PyType_Lookup(t, name);   // gives the type a version where it has none
  if (!PyType_HasFeature(t, Py_TPFLAGS_VALID_VERSION_TAG)) return true;
  version_ = t->tp_version_tag;
  return true;
}

}  // namespace cutaway::guards
