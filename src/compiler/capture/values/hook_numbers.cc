// Tables of a module's hooks: the keys are numbers that count every hook of the process, and a forward pass only compares them with each other. So equal modules
// would need a graph each. Here a table is known by how many hooks it has, and by each hook at its place; its keys are numbers that nothing may be done with but looking
// for them in tables that are empty. Whoever does more starts the trace over, and then the numbers count.
#include <string_view>

#include "compiler/capture/protocols/library.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

bool Mappings::is_hook_table(Value* dict) {
  if (class_data.hooks_by_number || !dict->real || !dict->source || dict->source->kind != SourceKind::dict_item || !dict->source->base || dict->source->base->kind != SourceKind::instance_dict) return false;
  PyObject* name = dict->source->key.get();
  if (!name || !PyUnicode_Check(name)) return false;
  static constexpr std::string_view tables[] = {"_forward_hooks", "_forward_pre_hooks"};
  const std::string_view text = PyUnicode_AsUTF8(name);
  bool is_one = false;
  for (std::string_view t : tables) is_one |= t == text;
  if (!is_one || (dict->type != &PyDict_Type && dict->type != known().ordered_dict) || !PyDict_GET_SIZE(dict->real) || PyDict_GET_SIZE(body<Mapping>(dict).items)) return false;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict->real, &position, &key, &value))
    if (!PyLong_CheckExact(key)) return false;
  return true;
}

void Mappings::load_hooks(Value* dict) {
  Mapping& m = body<Mapping>(dict);
  m.is_loaded = true;
  m.has_free_numbers = true;
  PyObject* keys = values.keep(guards::keys_in_order(dict->real));
  const Py_ssize_t count = PyTuple_GET_SIZE(keys);
  guards.add(dict->source, GuardKind::length, nullptr, count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = PyDict_GetItemWithError(dict->real, PyTuple_GET_ITEM(keys, i));
    Value* number = library.number_without_value(PyTuple_GET_ITEM(keys, i));
    PyObject* key = number->real;
    by_stand_in_[key] = number;
    hook_numbers_.emplace(key, dict);
    PyObject* place = PyLong_FromVoidPtr(values.wrap(value, guards.sources().of(dict->source, SourceKind::dict_value, nullptr, i)));
    PyDict_SetItem(m.items, key, place);
    Py_DECREF(place);
  }
}

void Mappings::start_over_by_number() {
  class_data.hooks_by_number = true;
  throw StartOver{};
}

/// A key is looked for in a mapping, and one of the two has to do with such numbers.
void Mappings::check_hook_number(Value* mapping, PyObject* key) {
  const auto of = hook_numbers_.find(key);
  if (body<Mapping>(mapping).has_free_numbers) {
    if (of == hook_numbers_.end() || of->second != mapping) start_over_by_number();
    return;
  }
  if (of == hook_numbers_.end()) return;
  mapping->kind == Kind::set ? set_load(mapping) : dict_load(mapping);   // an empty one has no numbers to compare with
  if (PyDict_GET_SIZE(body<Mapping>(mapping).items)) start_over_by_number();
}

}  // namespace cutaway::capture
