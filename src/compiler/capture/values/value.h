// A value of the program that is being captured: a real Python object with a source, or one that exists only in the trace.
// Values live in the trace's arena and are passed by pointer; the pointer is the identity of everything mutable.
//
// A value read from outside starts `lazy`: it has an object and a source, and no guard. Values::force() looks at it, which is what
// adds the guard and sets the kind; whoever asks for the kind forces first. What is only passed around is never guarded.
#pragma once
#include <Python.h>

#include <cstdint>
#include <vector>

namespace cutaway::guards {
struct Source;
}
namespace cutaway::bytecode {
class Code;
}

namespace cutaway::capture {

using SourceRef = const guards::Source*;

enum class Kind : uint8_t {
  null,        ///< the NULL that calls keep on the stack
  lazy,        ///< not looked at yet
  constant,    ///< an immutable object, equal to the real one: numbers, text, dtypes, tuples of constants, ranges, code
  tensor,
  tuple,       ///< also named tuples and torch.Size
  list,
  dict,        ///< also subclasses: the attributes of the instance are beside its items
  set,
  slice,
  function,    ///< of Python, existing or made by the trace
  method,      ///< function + self
  builtin,     ///< C function, method descriptor, slot wrapper
  klass,       ///< a type
  module,      ///< a Python module
  object,      ///< an instance of a class of Python's
  cell,
  iterator,
  generator,   ///< a suspended frame of the trace
  view,        ///< keys, values or items of a dict
  super,
  partial,
  opaque,      ///< anything else: it can be passed around, and guards compare it by identity; using it breaks
};

struct Value {
  Kind kind = Kind::lazy;
  bool is_changed = false;       ///< it has a real object, and the trace wrote to it
  uint32_t serial = 0;           ///< its number among the values of the trace
  PyTypeObject* type = nullptr;  ///< what type(value) returns
  PyObject* real = nullptr;      ///< the object outside; for a tensor of the program too. Null for what the trace made
  SourceRef source = nullptr;    ///< how to reach it again; null for constants and for what the trace made
  void* body = nullptr;          ///< by kind, see below
};

struct Tensor {
  PyObject* fake = nullptr;      ///< a torch.Tensor without data
  int input = -1;                ///< position among the graph's inputs, -1 for a result
  Value* attributes = nullptr;   ///< __dict__: what the program put on it
  Value* grad = nullptr;         ///< .grad as the program set it
  bool is_seen = false;          ///< code of the program has it, so that it stays what it is: see tensor_subclasses.cc
};
/// Of an opaque value: a number that was read from a tensor, or a size that follows from one. It is a value of the graph, which nobody knows before it runs.
struct Number { PyObject* symbolic = nullptr; /* torch.SymInt, SymFloat or SymBool */ };
struct Sequence {                ///< tuple, list
  std::vector<Value*> items;
  bool is_loaded = true;         ///< false: the items of `real` have not been wrapped yet
  bool is_counted = true;        ///< false: nothing has asked how many there are
  std::vector<Value*> appended;  ///< while not loaded
  PyObject* as_constant = nullptr;   ///< of a tuple: asked once
  Value* attributes = nullptr;   ///< the instance's __dict__, for subclasses
  Py_ssize_t limit = -1;         ///< of a deque: maxlen
  size_t changes = 0;            ///< of a deque: how often it became longer, shorter or was turned; its iterators look at that
};
/// dict and set, and the __dict__ of an object. Keys are Python objects: constants as they are, what has identity by a stand-in. The order
/// and the equality of keys are therefore Python's own.
struct Mapping {
  PyObject* items = nullptr;     ///< key -> PyLong of Value*, for what was read or written; for a set the value is the key's
  PyObject* order = nullptr;     ///< a set's: a real set of the keys, whose order is what eager's would be
  bool is_loaded = true;         ///< false: `items` holds some of what `real` holds
  Value* attributes = nullptr;   ///< the instance's __dict__, for subclasses
  Value* default_factory = nullptr;   ///< of a defaultdict
  PyObject* absent = nullptr;    ///< a set of keys that were looked for and not there; null until one is
  Value* owner = nullptr;        ///< of an instance __dict__: the object
  std::vector<PyObject*> written;   ///< keys written while not loaded
  bool is_globals = false;       ///< of the outermost frame's function
  size_t changes = 0;            ///< how often a key was added or removed
  Value* partial = nullptr;      ///< whose .keywords it is
  bool has_free_numbers = false; ///< a table of hooks, see hook_numbers.cc
  bool has_plain_keys = false;   ///< none of the real one's has a class with a hash or comparison of its own
};
struct Slice { Value *start, *stop, *step; };
struct Cell { Value* contents = nullptr; bool is_loaded = true; };
struct Function {
  PyCodeObject* code = nullptr;
  Value* globals = nullptr;                 ///< dict; made when a global is read
  PyObject* globals_real = nullptr;         ///< null: the captured code made the dict and gave it to exec()
  uint64_t globals_made_at = 0;             ///< then: the step of that call
  PyObject* builtins_real = nullptr;
  const bytecode::Code* decoded = nullptr;
  std::vector<Value*> closure;              ///< cells
  Value* defaults = nullptr;                ///< a tuple, or null
  Value* keyword_defaults = nullptr;        ///< a dict, or null
  PyObject *name = nullptr, *qualname = nullptr;
  Value* annotations = nullptr;
  Value* attributes = nullptr;              ///< __dict__
  bool is_loaded = true;
};
struct Method { Value *function, *self; };
struct Object { Value* plain = nullptr; /* of a class derived from a number or text: that */ Value* dict = nullptr; std::vector<std::pair<PyObject*, Value*>> slots; Value* arguments = nullptr; /* of an exception */ std::vector<PyObject*> written; /* slots */ };
struct View { enum class What : uint8_t { keys, values, items } what; Value* dict; };
struct Super { Value *type, *self; PyTypeObject* start; };
struct Partial { Value* function; std::vector<Value*> args; std::vector<std::pair<PyObject*, Value*>> keywords; Value* shown = nullptr; /* what .keywords returned */ Value* attributes = nullptr; /* __dict__ */ };
struct Iterator {
  enum class What : uint8_t { sequence, constants, zip, enumerate, map, filter, reversed, mapping, callable, sentinel, real_sequence, reversed_callable } what;
  size_t position = 0;
  Value* base = nullptr;                    ///< sequence, or what is called
  std::vector<Value*> parts;                ///< iterators of zip, map, filter; snapshot of keys
  PyObject* counter = nullptr;              ///< enumerate's next number
  bool is_strict = false, is_done = false;
  bool is_backward = false;                 ///< mapping: its parts are in the order in which they come
  View::What shows = View::What::keys;      ///< mapping
  size_t size = 0;                          ///< mapping: its length at the start
  size_t changes = 0;                       ///< mapping, deque: its changes at the start
};
struct Frame;
struct Generator { Frame* frame = nullptr; bool is_running = false, is_done = false, is_started = false, is_kept = false; /* the program has it after the graph */ Value* handled = nullptr; /* by an except block that it is suspended in */ uint64_t made_at = 0; /* step of the call that made it */ };

template <class Body> Body& body(Value* v) { return *static_cast<Body*>(v->body); }
template <class Body> const Body& body(const Value* v) { return *static_cast<const Body*>(v->body); }

/// Null for everything but a number that only the data knows.
inline Number* number_of(const Value* v) { return v->kind == Kind::opaque ? static_cast<Number*>(v->body) : nullptr; }

/// What an instance of a class derived from a number or a text has inside; null for others.
inline Value* plain_of(Value* v) { return v->kind == Kind::object ? body<Object>(v).plain : nullptr; }

}  // namespace cutaway::capture
