// Classes that the captured code writes to (class_stores.cc) or makes (class_definitions.cc).
#pragma once
#include <Python.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Classes : protected Owners {
 public:
  explicit Classes(const Owners& owners) : Owners(owners) {}
  ~Classes();
  Classes(const Classes&) = delete;
  Classes& operator=(const Classes&) = delete;

  struct FoundOnClass { PyObject* object = nullptr; Value* stored = nullptr; };   ///< what a class has under a name: as it is guarded with the class, or data
  FoundOnClass find_on_class(PyTypeObject* t, PyObject* name);
  FoundOnClass find_on_base(PyTypeObject* base, PyObject* name);
  bool is_data_descriptor_value(const FoundOnClass& found);
  Value* apply_found(const FoundOnClass& found, Value* instance, Value* owner, PyObject* name, Value** self);
  bool set_class_attribute(Value* klass, PyObject* name, Value* x);   ///< past the metaclass; x null: deleted
  Value* class_proxy(PyTypeObject* t);
  Value* make_proxy(Value* dict);                      ///< types.MappingProxyType(dict)
  Value* behind_proxy(Value* v) { auto it = proxies_.find(v); return it == proxies_.end() ? v : it->second; }
  Value* build_class(const Args& args);
  Value* make_class(PyTypeObject* meta, const Args& args);   ///< type.__new__(meta, name, bases, namespace, …)
  bool has_made_classes() const { return !made_classes_.empty(); }
  void note_proxy(Value* proxy, Value* dict) { proxies_[proxy] = dict; }
  bool is_made_class(PyObject* o) const { return o && made_classes_.contains(o); }
  std::optional<uint64_t> listed_class() const;        ///< the step of a class that is made below one that exists, which lists it as long as the frame has it
  std::optional<uint64_t> made_class_at(PyObject* o) const { auto it = made_classes_.find(o); return it == made_classes_.end() ? std::nullopt : std::optional<uint64_t>(it->second); }
  bool holds_made_class(PyObject* o) const;            ///< it, or a stand-in, or something made of them
  PyObject* stand_in_for_function(Value* f);
  Value* member_of(PyObject* o);                       ///< of a stand-in other than a function; else null

 private:
  Value* class_dict(PyTypeObject* t);
  PyObject* stand_in_for_member(Value* v, PyObject* name);   ///< what the class that the trace makes has in the place of the value
  bool set_made_attribute(PyTypeObject* t, PyObject* name, Value* x);

  std::unordered_map<PyObject*, uint64_t> made_classes_;   ///< stand-ins for classes that the captured code made, and the steps that made them
  std::unordered_map<Value*, Value*> proxies_;         ///< of dicts of the program
};

}  // namespace cutaway::capture
