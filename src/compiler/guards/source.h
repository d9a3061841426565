// How a value was reached from a frame, so that it can be reached again at the next call: an argument, an attribute of it, an item of that.
// Main types: Source, an interned node, and SourceTable, which owns the nodes of one trace and later of its plan.
// Reading a source runs no user code: dictionaries, slots and C accessors only. Capture must use `attr` only where the type's own
// attribute of that name is not a descriptor written in Python and its type does not override __getattribute__ in Python.
#pragma once
#include <Python.h>

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/bytecode/object_ref.h"

namespace cutaway::guards {
using bytecode::Held;
using bytecode::ObjectRef;

enum class SourceKind : uint8_t {
  local,               ///< slot `index` of the frame's localsplus as it begins (arguments)
  closure,             ///< cell `index` of the function's closure: the cell object
  global,              ///< `key` in the function's globals
  builtin,             ///< `key` in the function's builtins
  constant,            ///< the object `key`
  function,            ///< the function that the frame runs
  handled_exception,   ///< what the callers of the frame handle in an except block as it begins, or None
  cell_contents,       ///< of a cell
  attr,                ///< `key`, by the generic lookup of instances (slots, instance dictionary, C getters)
  instance_dict,       ///< the __dict__ of an instance, module or class (a class's is its mappingproxy's dictionary)
  type,                ///< the type of an object
  type_attr,           ///< `key` looked up along the mro of a type, no descriptor applied
  tuple_item,          ///< `index`; tuples and their subclasses
  list_item,           ///< `index`; lists and their subclasses, deques
  dict_item,           ///< `key`; dictionaries and their subclasses, no __missing__
  dict_key,            ///< the key at position `index`
  dict_value,          ///< the value at position `index`, an OrderedDict's in its own order
  behind_view,         ///< the dictionary of a view or a mapping proxy
  function_code, function_globals, function_defaults, function_kwdefaults, function_closure,
  method_self, method_function,
  weakref_target,      ///< of a weak reference that is alive
  remembered,          ///< the result that a function with functools.lru_cache has under `key`
  context_value,       ///< of a contextvars.ContextVar: its value now, or its default
  array_tensor,        ///< torch.from_numpy of an array of numpy's: a tensor with its memory, made anew at each reading
  tensor_size,         ///< size of dimension `index` of a tensor: an int
  tensor_stride,
  tensor_storage_offset,
  tensor_is_leaf,      ///< autograd has not computed it: a bool
  tensor_is_view,      ///< autograd knows it as a view of another: a bool
  tensor_has_hooks,    ///< something is called with its gradient, or when that is stored: a bool
};

/// A node of the tree. Two equal ways are the same node of a table, so pointers may be compared.
struct Source {
  SourceKind kind;
  const Source* base = nullptr;   ///< null for the roots
  Held key;                       ///< name, dictionary key or constant
  int64_t index = 0;
  uint32_t id = 0;                ///< 0, 1, 2, … in the table; a base has a smaller one
  /// The way as an expression: `self.layers[0].weight`. Two ways may have one text: a global and a local of one name, two keys of one class.
  std::string text() const { return spell(false); }
  /// Equal for equal ways of any two tables, and for no others. Another process has the same ones, but for objects that have no text.
  std::string identity() const;
  /// The same for a person, by the labels of values that reach code after a break in containers of ours.
  std::string shown() const { return spell(true); }
  std::string name;               ///< of a root: the variable's name
  std::string label;              ///< what the user calls it; empty for most
  std::string spell(bool by_label) const;
};

class SourceTable {
 public:
  SourceTable() = default;
  SourceTable(const SourceTable&) = delete;
  SourceTable& operator=(const SourceTable&) = delete;
  const Source* local(int slot, std::string name);
  const Source* closure(int index, std::string name);
  const Source* global(PyObject* name);
  const Source* builtin(PyObject* name);
  const Source* constant(PyObject* object, std::string name = {});
  const Source* function();
  const Source* handled_exception();
  /// Every other kind: `key` for attr, type_attr and dict_item, else null; `index` for items and sizes.
  const Source* of(const Source* base, SourceKind kind, PyObject* key = nullptr, int64_t index = 0);
  const Source* attr(const Source* base, PyObject* name) { return of(base, SourceKind::attr, name); }
  void label(const Source* s, std::string text) { nodes_[s->id].label = std::move(text); }
  size_t size() const { return nodes_.size(); }
  const Source* at(size_t id) const { return &nodes_[id]; }
  Held& key_of(size_t id) { return nodes_[id].key; }

 private:
  const Source* intern(SourceKind, const Source* base, PyObject* key, int64_t index, std::string name);
  std::deque<Source> nodes_;
  std::unordered_multimap<size_t, uint32_t> index_;
};

/// What sources are read from: a frame that is about to run. Borrowed for the time of a call.
struct FrameView {
  PyFunctionObject* function = nullptr;
  PyCodeObject* code = nullptr;
  PyObject* const* slots = nullptr;   ///< localsplus before the first instruction: arguments, then nothing; cells are not made yet
  int slot_count = 0;                 ///< how many arguments there are
};
/// The value, or an empty reference when the way does not exist now (no such key, index out of range, another kind of object). Sets no exception.
ObjectRef read_source(const Source&, const FrameView&);
/// torch.from_numpy of an array that torch can share memory with, a new reference; null for everything else.
PyObject* tensor_of_array(PyObject* o);
/// The dictionary of a view or of a mapping proxy, borrowed; null for other objects.
PyObject* behind_view(PyObject* o);

}  // namespace cutaway::guards
