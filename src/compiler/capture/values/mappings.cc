// Dictionaries and sets: keys, what was read from a real one, what the trace wrote.
#include "compiler/capture/values/mappings.h"

#include <algorithm>
#include <cstdint>

#include "compiler/bytecode/set_entries.h"
#include "compiler/bytecode/stored_hash.h"
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {

namespace {
// A key whose class says what it is equal to. Python's dictionaries ask for hash and equality, and both have been interpreted before:
// values of one group are equal.
struct HashedKey {
  PyObject_HEAD
  Py_hash_t hash;
  size_t group;
  bool by_identity;   // the class says so itself: what is written to it changes nothing
  bool* asked_across; // of the Mappings that made it; null when that is gone
};
PyTypeObject* hashed_key_type() {
  static auto* const type = [] {
    static PyType_Slot slots[] = {
        {Py_tp_hash, reinterpret_cast<void*>(+[](PyObject* self) { return reinterpret_cast<HashedKey*>(self)->hash; })},
        {Py_tp_richcompare, reinterpret_cast<void*>(+[](PyObject* a, PyObject* b, int op) -> PyObject* {
           if (bool* asked = reinterpret_cast<HashedKey*>(a)->asked_across; asked && Py_TYPE(a) != Py_TYPE(b)) *asked = true;
           if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) return Py_NewRef(Py_NotImplemented);
           return PyBool_FromLong((reinterpret_cast<HashedKey*>(a)->group == reinterpret_cast<HashedKey*>(b)->group) == (op == Py_EQ));
         })},
        {0, nullptr}};
    static PyType_Spec spec = {"cutaway.HashedKey", sizeof(HashedKey), 0, Py_TPFLAGS_DEFAULT, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }();
  return type;
}
bool is_hashed_key(PyObject* key) { return Py_TYPE(key) == hashed_key_type(); }
}  // namespace

Py_hash_t hash_of_number(PyObject* number) {
  Py_hash_t h = PyLong_AsSsize_t(number);
  if (h == -1 && PyErr_Occurred()) {   // too long for one
    PyErr_Clear();
    h = PyLong_Type.tp_hash(number);
  }
  return h == -1 ? -2 : h;
}

void Mappings::note_key_change(Value* v) {
  if (hashed_.empty()) return;
  Value* key = v->kind == Kind::dict && body<Mapping>(v).owner ? body<Mapping>(v).owner : v;
  const auto it = stand_ins_.find(key);
  if (it == stand_ins_.end() || !it->second || !is_hashed_key(it->second) || reinterpret_cast<HashedKey*>(it->second)->by_identity) return;
  stop("hash-of-a-class", std::string("an instance of ") + key->type->tp_name + " is written to, which is a key somewhere and has its own hash");
}

bool Mappings::has_plain_keys(PyObject* real) {
  PyTypeObject* last = nullptr;
  const auto is_plain = [&](PyObject* key) {
    PyTypeObject* t = Py_TYPE(key);
    if (t == last || !is_user_class(t) || PyType_IsSubtype(t, known().tensor) || PyType_Check(key)) return true;
    last = t;
    static PyObject* const of_modules = _PyType_Lookup(known().module, names().__hash__);
    PyObject *hash = _PyType_Lookup(t, names().__hash__), *eq = _PyType_Lookup(t, names().__eq__);
    const auto is_of_enum = [&](PyObject* f) {
      PyObject* module = is_enum(t) && PyFunction_Check(f) ? PyFunction_GET_MODULE(f) : nullptr;
      return module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "enum") == 0;
    };
    const auto is_c = [&](PyObject* f) { return !f || f == of_modules || Py_TYPE(f) == known().wrapper_descriptor || is_of_enum(f); };
    return is_c(hash) && is_c(eq);
  };
  if (PyAnySet_Check(real)) {
    PyObject* key = nullptr;
    Py_ssize_t position = 0;
    while (bytecode::next_in_set(real, &position, &key)) if (!is_plain(key)) return false;
    return true;
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(real, &position, &key, &value)) if (!is_plain(key)) return false;
  return true;
}

Mappings::~Mappings() {
  for (auto& [hash, v] : hashed_)
    if (PyObject* key = stand_in_of(v); key && is_hashed_key(key)) reinterpret_cast<HashedKey*>(key)->asked_across = nullptr;
}

bool Mappings::keys_were_compared() { return std::exchange(asked_across_, false); }
void Mappings::check_keys() {
  if (keys_were_compared()) stop("hash-of-a-class", "a key is compared with one of another class, and the hashes of both are the same");
}

bool Mappings::has_own_hash(PyObject* key) { return is_hashed_key(key); }

PyObject* Mappings::hashed_key(Value* v) {
  // How often a dict or a set asks, and what for, depends on how it is stored: only what has no effect may be asked here in its place.
  const auto happened = [&] { return effects.outside_count() + effects.watched_writes() + tensors.node_count(); };
  const WatchWrites watch(effects, values);
  const size_t before = happened();
  Value* h = operators.dunder(v, "__hash__", nullptr);
  if (!h && exceptions.raised()) return nullptr;
  PyObject* number = h ? values.as_constant(h) : nullptr;
  if (number && !PyLong_Check(number)) { exceptions.raise(PyExc_TypeError, "__hash__ method should return an integer"); return nullptr; }
  if (!number) stop("hash-of-a-class", std::string("a key is an instance of ") + v->type->tp_name + ", whose hash is not known while capturing");
  const Py_hash_t hash = hash_of_number(number);
  size_t group = hashed_.size();
  for (size_t i = 0; i < hashed_.size(); ++i)
    if (hashed_[i].first == hash && hashed_[i].second != v) {
      const int same = operators.equal(hashed_[i].second, v);
      if (same < 0) return nullptr;
      if (same) { group = reinterpret_cast<HashedKey*>(stand_ins_[hashed_[i].second])->group; break; }
    }
  if (happened() != before) stop("hash-of-a-class", std::string("a key is an instance of ") + v->type->tp_name + ", whose hash or comparison does more than compute");
  if (PyObject* known_key = stand_ins_[v]) {   // asked again: what it says may have changed
    auto* k = reinterpret_cast<HashedKey*>(known_key);
    const bool alone = group == hashed_.size();
    if (k->hash != hash || (alone ? std::count_if(hashed_.begin(), hashed_.end(), [&](const auto& o) { return reinterpret_cast<HashedKey*>(stand_ins_[o.second])->group == k->group; }) > 1 : group != k->group))
      stop("hash-of-a-class", std::string("a key is an instance of ") + v->type->tp_name + ", whose hash or comparison has changed");
    return known_key;
  }
  hashed_.emplace_back(hash, v);
  auto* made = PyObject_New(HashedKey, hashed_key_type());
  made->hash = hash;
  made->group = group;
  made->asked_across = &asked_across_;
  made->by_identity = Library::is_identity_number(number) || (v->real && PyLong_AsVoidPtr(number) == v->real);
  PyErr_Clear();
  PyObject* o = values.keep(reinterpret_cast<PyObject*>(made));
  stand_ins_[v] = o;
  by_stand_in_[o] = v;
  return o;
}

PyObject* Mappings::key_to_find(Value* v) {
  values.force(v);
  if (v->kind != Kind::set || PyType_IsSubtype(v->type, &PyFrozenSet_Type) || attributes.lookup_type(v->type, names().__hash__) != Py_None) return key_of(v);
  Value* frozen = values.make_set();
  frozen->type = &PyFrozenSet_Type;
  for (PyObject* k : keys_of(v)) set_add(frozen, k);
  return key_of(frozen);
}

PyObject* Mappings::key_of_method(Value* v) {
  const Method& m = body<Method>(v);
  Value *f = values.force(m.function), *self = values.force(m.self);
  if (f->real && self->real) {   // as a real one, which is equal to those that a dictionary from outside may have
    if (f->kind != Kind::function || self->kind == Kind::constant) stop("hash", "a method written in C is a key, or is hashed");
    for (Value* part : {f, self})
      if (part->source && part->source->kind != SourceKind::constant) guards.add(part->source, GuardKind::id, part->real);
    PyObject* key = values.keep(PyMethod_New(f->real, self->real));
    by_stand_in_[key] = v;
    return key;
  }
  if (self->kind == Kind::constant || f->kind == Kind::opaque) stop("hash", "a method written in C is a key, or is hashed");
  for (const auto& [parts, key] : method_keys_)
    if (values.same_identity(parts.first, f) && values.same_identity(parts.second, self)) return key;
  PyObject* key = values.keep(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
  by_stand_in_[key] = v;
  method_keys_.push_back({{f, self}, key});
  return key;
}

PyObject* Mappings::key_of(Value* v) {
  values.force(v);
  if (v->kind == Kind::method) return key_of_method(v);
  if (v->kind == Kind::constant && is_user_class(v->type) && is_enum(v->type) && (attributes.own_operator(v->type, names().__hash__) || attributes.own_operator(v->type, names().__eq__)))
    stop("hash-of-a-class", std::string("a key is a member of ") + v->type->tp_name + ", which has its own hash or comparison");
  if (PyObject* c = values.as_constant(v)) {
    if (frames::SizeLog* log = frames::size_log()) log->used(c);
    if (PyObject_Hash(c) == -1) { exceptions.raise_python(); return nullptr; }
    if (v->kind == Kind::tuple && v->real == c && v->source && v->source->kind != SourceKind::constant) tuple_keys_.try_emplace(c, v);
    return c;
  }
  if (v->kind == Kind::set && PyType_IsSubtype(v->type, &PyFrozenSet_Type) && !attributes.own_method(v->type, names().__hash__)) {   // of values with identity, or of a class of the program's
    if (attributes.own_method(v->type, names().__eq__)) stop("hash-of-a-class", std::string("a key is an instance of ") + v->type->tp_name + ", which defines its own comparison");
    set_load(v);
    if (PyObject* key = stand_ins_[v]) return key;
    PyObject* frozen = values.keep(PyFrozenSet_New(body<Mapping>(v).order));
    by_stand_in_[frozen] = v;
    stand_ins_[v] = frozen;
    return frozen;
  }
  switch (v->kind) {
    case Kind::list: case Kind::dict: case Kind::set: case Kind::slice:
      if (!(v->type->tp_flags & Py_TPFLAGS_HEAPTYPE) || v->type->tp_hash == PyObject_HashNotImplemented) {
        exceptions.raise(PyExc_TypeError, std::string("unhashable type: '") + v->type->tp_name + "'");
        return nullptr;
      }
      break;
    case Kind::tuple: {   // of values with identity: hashed item by item, which only a tuple of keys can do
      if (attributes.own_method(v->type, names().__hash__) || attributes.own_method(v->type, names().__eq__)) stop("hash-of-a-class", std::string("a key is an instance of ") + v->type->tp_name + ", which has its own hash or comparison");
      std::vector<PyObject*> parts;
      for (Value* i : values.items(v)) {
        PyObject* k = key_of(i);
        if (!k) return nullptr;
        parts.push_back(k);
      }
      PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(parts.size()));
      for (size_t i = 0; i < parts.size(); ++i) PyTuple_SET_ITEM(t, static_cast<Py_ssize_t>(i), Py_NewRef(parts[i]));
      by_stand_in_[values.keep(t)] = v;
      return t;
    }
    default: break;
  }
  if (v->kind == Kind::object || v->kind == Kind::dict || v->kind == Kind::list || v->kind == Kind::set) {
    PyObject* hash = attributes.lookup_type(v->type, names().__hash__);
    if (hash == Py_None) { exceptions.raise(PyExc_TypeError, std::string("unhashable type: '") + v->type->tp_name + "'"); return nullptr; }
    PyObject* own = attributes.own_method(v->type, names().__hash__);
    if (own && Py_TYPE(own) == &PyFunction_Type && own != _PyType_Lookup(known().module, names().__hash__)) return hashed_key(v);
    const bool by_identity = !own ? !attributes.has_c_base(v) : Py_TYPE(own) == &PyFunction_Type || PyDescr_TYPE(own) == &PyBaseObject_Type;
    if (!by_identity) stop("hash-of-a-class", std::string("a key is an instance of ") + v->type->tp_name + ", whose hash is one of C's");
  }
  if (Value* plain = plain_of(v)) {   // equal to the plain one, and itself when it is asked for; comparisons of the class's own are not asked
    if (numbers.has_own(v->type, {"__eq__"})) stop("hash-of-a-class", std::string("a key is an instance of ") + v->type->tp_name + ", which defines its own comparison");
    PyObject*& key = stand_ins_[v];
    if (!key) {
      PyTypeObject* base = Py_TYPE(plain->real);
      PyObject* given = values.keep(PyTuple_Pack(1, plain->real));
      key = v->real ? v->real : values.keep(base->tp_new(v->type, given, nullptr));
      by_stand_in_[key] = v;
    }
    return key;
  }
  if (v->kind == Kind::opaque && v->type && v->type->tp_hash != PyBaseObject_Type.tp_hash && !PyType_IsSubtype(v->type, known().tensor))
    stop("hash-of-a-class", std::string("a key is an instance of ") + v->type->tp_name + ", whose hash is one of C's");
  if (v->real && v->source && (v->kind == Kind::tensor || v->kind == Kind::object || v->kind == Kind::function || v->kind == Kind::builtin || v->kind == Kind::module || v->kind == Kind::opaque)) {
    by_stand_in_[v->real] = v;   // who looks for it in a real dictionary guards that it is this object
    return v->real;
  }
  PyObject*& s = stand_ins_[v];
  if (!s) {
    s = values.keep(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
    by_stand_in_[s] = v;
  }
  return s;
}

Value* Mappings::value_of_key(PyObject* key) {
  if (auto it = by_stand_in_.find(key); it != by_stand_in_.end()) return it->second;
  if (auto it = tuple_keys_.find(key); it != tuple_keys_.end()) return it->second;
  return classes.is_made_class(key) ? values.constant_kind(key) : values.wrap_constant_object(key);
}

namespace {
Value* from_number(PyObject* number) { return static_cast<Value*>(PyLong_AsVoidPtr(number)); }
}  // namespace

SourceRef Mappings::item_source(Value* dict, PyObject* key) {
  if (!dict->source) return nullptr;
  if (body<Mapping>(dict).is_globals) return guards.sources().global(key);
  return guards.sources().of(dict->source, SourceKind::dict_item, key);
}

void Mappings::guard_key(PyObject* key) {
  if (auto it = by_stand_in_.find(key); it != by_stand_in_.end() && it->second->real == key) guards.add(it->second->source, GuardKind::id, key);
}

Value* Mappings::dict_get(Value* dict, PyObject* key) {
  Mapping& m = body<Mapping>(dict);
  if (m.has_free_numbers || (!hook_numbers_.empty() && hook_numbers_.contains(key))) check_hook_number(dict, key);
  if (!m.is_loaded && is_hashed_key(key)) dict_load(dict);   // a real dictionary would ask the user's class
  PyObject* n = PyDict_GetItemWithError(m.items, key);
  check_keys();
  if (n) return from_number(n);
  if (m.is_loaded) return nullptr;
  if (m.absent && PySet_Contains(m.absent, key) == 1) return nullptr;
  if (!m.owner && !m.is_globals && !m.has_plain_keys) {
    if (!has_plain_keys(dict->real)) {
      dict_load(dict);
      return dict_get(dict, key);
    }
    m.has_plain_keys = true;
  }
  guard_key(key);
  PyObject* found = PyDict_GetItemWithError(dict->real, key);
  if (!found) {
    PyErr_Clear();
    guards.add(dict->source, GuardKind::lacks, key);
    if (!m.absent) m.absent = values.keep(PySet_New(nullptr));
    PySet_Add(m.absent, key);
    return nullptr;
  }
  Value* v = values.wrap(found, item_source(dict, key));
  if (v->kind == Kind::lazy && v->source) guards.add({.source = v->source, .kind = GuardKind::exists});   // that it is there was seen, whether or not it is looked at
  PyObject* number = PyLong_FromVoidPtr(v);
  PyDict_SetItem(m.items, key, number);
  Py_DECREF(number);
  return v;
}

void Mappings::dict_load(Value* dict) {
  Mapping& m = body<Mapping>(dict);
  if (m.is_loaded) return;
  if (is_hook_table(dict)) return load_hooks(dict);
  m.is_loaded = true;
  PyObject* all = values.keep(PyDict_New());
  PyObject *key, *value;
  Py_ssize_t position = 0;
  PyObject* keys = values.keep(guards::keys_in_order(dict->real));
  guards.add(dict->source, GuardKind::dict_keys, keys, PyODict_Check(dict->real));
  PyObject* real_values = nullptr;   // not by looking for the keys, which might ask their classes
  if (!m.owner && !m.is_globals && !has_plain_keys(dict->real)) {
    if (PyODict_Check(dict->real)) stop("hash-of-a-class", "an OrderedDict has a key whose class has its own hash or comparison");
    real_values = values.keep(PyTuple_New(PyTuple_GET_SIZE(keys)));
    for (Py_ssize_t i = 0, at = 0; i < PyTuple_GET_SIZE(keys) && PyDict_Next(dict->real, &at, &key, &value); ++i) PyTuple_SET_ITEM(real_values, i, Py_NewRef(value));
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
    key = PyTuple_GET_ITEM(keys, i);
    value = real_values ? PyTuple_GET_ITEM(real_values, i) : PyDict_GetItemWithError(dict->real, key);
    if (!value) { PyErr_Clear(); continue; }
    PyObject* as_key = key;
    if (kind_of_type(Py_TYPE(key), key) != Kind::constant && !PyTuple_Check(key)) {
      Value* k = values.wrap_constant_object(key);
      if (k->source && k->source->kind != SourceKind::constant) guards.add(k->source, GuardKind::id, key);   // the program reached it another way, too
      as_key = key_of(k);
      if (!as_key) { exceptions.take_raised(); stop("hash-of-a-class", "a dict has a key whose hash or comparison raises an exception"); }
      if (!is_hashed_key(as_key)) { as_key = key; by_stand_in_[key] = k; }
      else if (!bytecode::is_stored_under(reinterpret_cast<HashedKey*>(as_key)->hash, dict->real, key)) stop("hash-of-a-class", "a dict has a key whose hash has changed");
    }
    PyObject* number = PyDict_GetItem(m.items, as_key);
    if (number) Py_INCREF(number);
    else number = PyLong_FromVoidPtr(values.wrap(value, item_source(dict, key)));
    PyDict_SetItem(all, as_key, number);
    Py_DECREF(number);
  }
  PyObject* before = m.items;   // what the trace added while the dictionary was not loaded
  position = 0;
  while (PyDict_Next(before, &position, &key, &value))
    if (PyDict_Contains(all, key) != 1) PyDict_SetItem(all, key, value);
  m.items = all;
}

void Mappings::dict_set(Value* dict, PyObject* key, Value* v) {
  // An instance's or a module's dictionary has names that nobody iterates: it need not be loaded to be written to.
  Mapping& m = body<Mapping>(dict);
  if (!m.owner && !m.is_globals) dict_load(dict);
  if (m.has_free_numbers || (!hook_numbers_.empty() && hook_numbers_.contains(key))) start_over_by_number();
  if (m.owner || m.is_globals) {
    if (!m.is_loaded) { m.written.push_back(key); if (m.absent) PySet_Discard(m.absent, key); }
  }
  const Py_ssize_t before = PyDict_GET_SIZE(m.items);
  PyObject* number = PyLong_FromVoidPtr(v);
  PyDict_SetItem(m.items, key, number);
  Py_DECREF(number);
  check_keys();
  m.changes += PyDict_GET_SIZE(m.items) != before;
  effects.mark_changed(dict);
}

bool Mappings::dict_delete(Value* dict, PyObject* key) {
  dict_load(dict);
  Mapping& m = body<Mapping>(dict);
  if (m.has_free_numbers || (!hook_numbers_.empty() && hook_numbers_.contains(key))) start_over_by_number();
  const int there = PyDict_Contains(m.items, key);
  check_keys();
  if (there != 1) { PyErr_Clear(); return false; }
  PyDict_DelItem(m.items, key);
  ++m.changes;
  effects.mark_changed(dict);
  return true;
}

void Mappings::set_load(Value* set) {
  Mapping& m = body<Mapping>(set);
  if (m.is_loaded) return;
  m.is_loaded = true;
  for (PyObject* iterator = values.keep(PySet_Type.tp_iter(set->real));;) {   // not by the __iter__ of a class below
    PyObject* item = PyIter_Next(iterator);
    if (!item) break;
    values.keep(item);
    if (kind_of_type(Py_TYPE(item), item) != Kind::constant && !PyTuple_Check(item) && !PyType_Check(item))
      stop("set-of-objects", "a set from outside is read that holds objects other than numbers and strings");
    PyObject* number = PyLong_FromVoidPtr(values.constant(item));
    PyDict_SetItem(m.items, item, number);
    Py_DECREF(number);
  }
  values.let_go(m.order);
  m.order = values.keep(PySet_New(set->real));
  guards.add(set->source, GuardKind::length, nullptr, PySet_GET_SIZE(set->real));
  PyObject *key, *unused;
  Py_ssize_t position = 0;
  while (PyDict_Next(m.items, &position, &key, &unused)) guards.add(set->source, GuardKind::contains, key);
}

void Mappings::set_add(Value* set, PyObject* key) {
  if (!hook_numbers_.empty() && hook_numbers_.contains(key)) start_over_by_number();
  set_load(set);
  Mapping& m = body<Mapping>(set);
  const int there = PyDict_Contains(m.items, key);
  check_keys();
  if (there == 1) return;
  PyObject* number = PyLong_FromVoidPtr(value_of_key(key));
  PyDict_SetItem(m.items, key, number);
  Py_DECREF(number);
  PySet_Add(m.order, key);
  effects.mark_changed(set);
}
bool Mappings::set_discard(Value* set, PyObject* key) {
  set_load(set);
  Mapping& m = body<Mapping>(set);
  const int there = PyDict_Contains(m.items, key);
  check_keys();
  if (there != 1) return false;
  PyDict_DelItem(m.items, key);
  PySet_Discard(m.order, key);
  effects.mark_changed(set);
  return true;
}

std::vector<PyObject*> Mappings::keys_of(Value* mapping) {
  Mapping& m = body<Mapping>(mapping);
  if (mapping->kind == Kind::set) {
    set_load(mapping);
    std::vector<PyObject*> all;
    PyObject* iterator = values.keep(PyObject_GetIter(m.order));
    while (PyObject* item = PyIter_Next(iterator)) all.push_back(values.keep(item));
    return all;
  }
  dict_load(mapping);
  std::vector<PyObject*> all;
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(m.items, &position, &key, &value)) all.push_back(key);
  return all;
}

}  // namespace cutaway::capture
