#include "compiler/bytecode/opcode_numbers.h"

#include <Python.h>

#include <iterator>
#include <string>
#include <unordered_map>

#include "compiler/bytecode/object_ref.h"

namespace cutaway::bytecode {
namespace {

// CPython's spellings that stand for another name of ours; every other one stands for itself.
struct Spelling { std::string_view theirs; Op ours; Op second = Op::UNKNOWN; };
constexpr Spelling kSpellings[] = {
    {"LOAD_FAST_LOAD_FAST", Op::LOAD_FAST, Op::LOAD_FAST}, {"STORE_FAST_LOAD_FAST", Op::STORE_FAST, Op::LOAD_FAST}, {"STORE_FAST_STORE_FAST", Op::STORE_FAST, Op::STORE_FAST},
    {"FORMAT_SIMPLE", Op::FORMAT_VALUE}, {"FORMAT_WITH_SPEC", Op::FORMAT_VALUE},
    {"JUMP_FORWARD", Op::JUMP}, {"JUMP_BACKWARD", Op::JUMP}, {"JUMP_BACKWARD_NO_INTERRUPT", Op::JUMP},
    {"POP_JUMP_FORWARD_IF_TRUE", Op::POP_JUMP_IF_TRUE}, {"POP_JUMP_BACKWARD_IF_TRUE", Op::POP_JUMP_IF_TRUE},
    {"POP_JUMP_FORWARD_IF_FALSE", Op::POP_JUMP_IF_FALSE}, {"POP_JUMP_BACKWARD_IF_FALSE", Op::POP_JUMP_IF_FALSE},
    {"POP_JUMP_FORWARD_IF_NONE", Op::POP_JUMP_IF_NONE}, {"POP_JUMP_BACKWARD_IF_NONE", Op::POP_JUMP_IF_NONE},
    {"POP_JUMP_FORWARD_IF_NOT_NONE", Op::POP_JUMP_IF_NOT_NONE}, {"POP_JUMP_BACKWARD_IF_NOT_NONE", Op::POP_JUMP_IF_NOT_NONE},
};

struct Tables {
  std::array<OpcodeRow, 256> rows;
  std::unordered_map<std::string, uint8_t> numbers;
  bool ok = false;
};

Spelling spelling_of(std::string_view name) {
  for (const Spelling& s : kSpellings)
    if (s.theirs == name) return s;
  for (size_t i = 0; i < static_cast<size_t>(Op::UNKNOWN); ++i)
    if (op_name(static_cast<Op>(i)) == name) return {name, static_cast<Op>(i)};
  return {name, Op::UNKNOWN};
}

// A list by number up to 3.12, a dictionary by name after that.
int cache_units(PyObject* caches, long number, PyObject* name) {
  PyObject* units = PyDict_Check(caches) ? PyDict_GetItemWithError(caches, name) : number < PyList_GET_SIZE(caches) ? PyList_GET_ITEM(caches, number) : nullptr;
  return units ? static_cast<int>(PyLong_AsLong(units)) : 0;
}

Tables read_tables() {
  Tables t;
  ObjectRef module = ObjectRef::steal(PyImport_ImportModule("opcode"));
  ObjectRef map = module ? ObjectRef::steal(PyObject_GetAttrString(module.get(), "opmap")) : ObjectRef();
  ObjectRef caches = module ? ObjectRef::steal(PyObject_GetAttrString(module.get(), "_inline_cache_entries")) : ObjectRef();
  ObjectRef jumps = module ? ObjectRef::steal(PyObject_GetAttrString(module.get(), "hasjrel")) : ObjectRef();
  ObjectRef first = module ? ObjectRef::steal(PyObject_GetAttrString(module.get(), "HAVE_ARGUMENT")) : ObjectRef();
  if (!map || !caches || !jumps || !first || !PyDict_Check(map.get()) || !(PyList_Check(caches.get()) || PyDict_Check(caches.get()))) { PyErr_Clear(); return t; }
  const long have_argument = PyLong_AsLong(first.get());
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(map.get(), &position, &key, &value)) {
    const long number = PyLong_AsLong(value);
    const char* text = PyUnicode_AsUTF8(key);
    if (!text || number < 0 || number > 255) { PyErr_Clear(); continue; }
    const std::string name = text;
    t.numbers[name] = static_cast<uint8_t>(number);
    OpcodeRow& row = t.rows[number];
    const Spelling spelling = spelling_of(name);
    row.op = spelling.ours;
    row.second = spelling.second;
    row.takes_argument = number >= have_argument;
    row.left_out = name == "CACHE" || name == "PRECALL" || name == "EXTENDED_ARG";
    row.caches = static_cast<uint8_t>(cache_units(caches.get(), number, key));
    const int relative = PySequence_Contains(jumps.get(), value);
    if (relative > 0) row.jump = name.find("BACKWARD") != std::string::npos ? Direction::backward : Direction::forward;
  }
  PyErr_Clear();
  t.ok = true;
  return t;
}

const Tables& tables() {
  static const Tables t = read_tables();
  return t;
}

}  // namespace

const std::array<OpcodeRow, 256>* opcode_rows() { return tables().ok ? &tables().rows : nullptr; }

std::optional<uint8_t> opcode_number(std::string_view name) {
  const auto found = tables().numbers.find(std::string(name));
  return found == tables().numbers.end() ? std::nullopt : std::optional<uint8_t>(found->second);
}

}  // namespace cutaway::bytecode
