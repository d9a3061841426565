#include "compiler/guards/source.h"

#include <functional>
#include <optional>

#include "compiler/guards/tensor_object.h"

namespace cutaway::guards {
namespace {

std::string name_text(PyObject* name) {
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (!text) { PyErr_Clear(); return "?"; }
  return text;
}

// Keys of dictionaries: numbers and text as written, objects by their type, as a repr may be the user's code.
std::string key_text(PyObject* key) {
  if (PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyFloat_CheckExact(key) || PyBool_Check(key) || key == Py_None || PyBytes_CheckExact(key)) {
    ObjectRef text = ObjectRef::steal(PyObject_Repr(key));
    if (text && PyUnicode_AsUTF8(text.get())) return PyUnicode_AsUTF8(text.get());
    PyErr_Clear();
  }
  return std::string("<") + Py_TYPE(key)->tp_name + ">";
}

bool same_key(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b) || !(PyUnicode_CheckExact(a) || PyLong_CheckExact(a))) return false;
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

size_t key_hash(PyObject* key) {
  if (!key) return 0;
  if (PyUnicode_CheckExact(key) || PyLong_CheckExact(key)) return static_cast<size_t>(PyObject_Hash(key));
  return std::hash<void*>()(key);
}

}  // namespace

std::string Source::spell(bool by_label) const {
  if (by_label && !label.empty()) return label;
  const auto of = [&] {
    const std::string text = base->spell(by_label);
    return text.find(" at line ") == std::string::npos ? text : "(" + text + ")";   // a phrase, where a variable has no name
  };
  switch (kind) {
    case SourceKind::local: case SourceKind::closure: return name.empty() ? "<argument " + std::to_string(index) + ">" : name;
    case SourceKind::global: case SourceKind::builtin: return name_text(key.get());
    case SourceKind::constant: return !name.empty() ? name : key ? key_text(key.get()) : "what is gone";
    case SourceKind::function: return "<function>";
    case SourceKind::handled_exception: return "sys.exception()";
    case SourceKind::cell_contents: return of();
    case SourceKind::attr: case SourceKind::type_attr: return of() + "." + name_text(key.get());
    case SourceKind::instance_dict: return of() + ".__dict__";
    case SourceKind::type: return "type(" + of() + ")";
    case SourceKind::tuple_item: case SourceKind::list_item: return of() + "[" + std::to_string(index) + "]";
    case SourceKind::dict_item:
      if (PyUnicode_CheckExact(key.get())) {
        // What modules and instances keep in dictionaries is an attribute to the user.
        if (base->kind == SourceKind::instance_dict || (base->kind == SourceKind::constant && !base->name.empty()))
          return (base->kind == SourceKind::constant ? base : base->base)->spell(by_label) + "." + name_text(key.get());
        const Source* owner = base->kind == SourceKind::dict_item && base->base->kind == SourceKind::instance_dict ? base->base->base : nullptr;
        const std::string container = owner ? name_text(base->key.get()) : "";
        if (container == "_parameters" || container == "_buffers" || container == "_modules") {
          const std::string item = name_text(key.get());
          const bool number = !item.empty() && item.find_first_not_of("0123456789") == std::string::npos;
          return owner->spell(by_label) + (number ? "[" + item + "]" : "." + item);
        }
        if (base->kind == SourceKind::function_globals) return name_text(key.get());
      }
      return of() + "[" + key_text(key.get()) + "]";
    case SourceKind::dict_key: return "list(" + of() + ")[" + std::to_string(index) + "]";
    case SourceKind::dict_value: return "list(" + of() + ".values())[" + std::to_string(index) + "]";
    case SourceKind::behind_view: return of() + ".mapping";
    case SourceKind::function_code: return of() + ".__code__";
    case SourceKind::function_globals: return by_label && base->kind == SourceKind::function ? "globals()" : of() + ".__globals__";
    case SourceKind::function_defaults: return of() + ".__defaults__";
    case SourceKind::function_kwdefaults: return of() + ".__kwdefaults__";
    case SourceKind::function_closure: return of() + ".__closure__";
    case SourceKind::method_self: return of() + ".__self__";
    case SourceKind::method_function: return of() + ".__func__";
    case SourceKind::weakref_target: return of() + "()";
    case SourceKind::remembered: return of() + "(" + key_text(key.get()) + ")";
    case SourceKind::context_value: return of() + ".get()";
    case SourceKind::array_tensor: return "torch.from_numpy(" + of() + ")";
    case SourceKind::tensor_size: return of() + ".shape[" + std::to_string(index) + "]";
    case SourceKind::tensor_stride: return of() + ".stride(" + std::to_string(index) + ")";
    case SourceKind::tensor_storage_offset: return of() + ".storage_offset()";
    case SourceKind::tensor_is_leaf: return of() + ".is_leaf";
    case SourceKind::tensor_is_view: return of() + "._is_view()";
    case SourceKind::tensor_has_hooks: return of() + " has hooks";
  }
  return "?";
}

std::string Source::identity() const {
  if (kind == SourceKind::local) return name.empty() ? "<argument " + std::to_string(index) + ">" : name;   // slots of one frame: each has its own name
  if (kind == SourceKind::tuple_item || kind == SourceKind::list_item) return base->identity() + "[" + std::to_string(index) + "]";
  std::string out = (base ? base->identity() : "") + "/" + std::to_string(static_cast<int>(kind)) + ":" + std::to_string(index);
  if (PyObject* k = key.get()) {
    out += ":" + key_text(k);
    // An object. A tensor that is a constant may be made anew by every recording (that of `y[0] = 0`); its value is compared elsewhere.
    if (out.back() == '>' && !(kind == SourceKind::constant && is_tensor(k))) out += std::to_string(reinterpret_cast<uintptr_t>(k));
  }
  return out;
}

const Source* SourceTable::intern(SourceKind kind, const Source* base, PyObject* key, int64_t index, std::string name) {
  const size_t hash = (static_cast<size_t>(kind) * 0x9e3779b97f4a7c15ull) ^ (base ? (base->id + 1) * 0xff51afd7ed558ccdull : 0) ^
                      (key_hash(key) * 0xc4ceb9fe1a85ec53ull) ^ (static_cast<size_t>(index) * 0x2545f4914f6cdd1dull);
  for (auto [at, end] = index_.equal_range(hash); at != end; ++at) {
    const Source& s = nodes_[at->second];
    if (s.kind == kind && s.base == base && s.index == index && same_key(s.key.get(), key)) return &s;
  }
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(Source{kind, base, ObjectRef::borrow(key), index, id, std::move(name), {}});
  index_.emplace(hash, id);
  return &nodes_.back();
}

const Source* SourceTable::local(int slot, std::string name) { return intern(SourceKind::local, nullptr, nullptr, slot, std::move(name)); }
const Source* SourceTable::closure(int i, std::string name) { return intern(SourceKind::closure, nullptr, nullptr, i, std::move(name)); }
const Source* SourceTable::global(PyObject* name) { return intern(SourceKind::global, nullptr, name, 0, {}); }
const Source* SourceTable::builtin(PyObject* name) { return intern(SourceKind::builtin, nullptr, name, 0, {}); }
const Source* SourceTable::constant(PyObject* object, std::string name) { return intern(SourceKind::constant, nullptr, object, 0, std::move(name)); }
const Source* SourceTable::function() { return intern(SourceKind::function, nullptr, nullptr, 0, {}); }
const Source* SourceTable::handled_exception() { return intern(SourceKind::handled_exception, nullptr, nullptr, 0, {}); }
const Source* SourceTable::of(const Source* base, SourceKind kind, PyObject* key, int64_t i) { return intern(kind, base, key, i, {}); }

ObjectRef read_source(const Source& s, const FrameView& frame) {
  ObjectRef base;
  if (s.base) {
    base = read_source(*s.base, frame);
    if (!base) return {};
  }
  bool owned = false;
  if (s.key.is_weak() && !s.key) return {};
  PyObject* value = read_step(s.kind, s.key.get(), s.index, base.get(), frame, owned);
  return owned ? ObjectRef::steal(value) : ObjectRef::borrow(value);
}

}  // namespace cutaway::guards
