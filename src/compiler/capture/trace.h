// One attempt to capture a frame: the values it met, the guards it needs, the graph it records, the effects it must replay.
// The protocols of Python (attribute, call, iteration, operators) are methods named after CPython's slots, one file a group:
// values.cc, mappings.cc, attributes.cc, calls.cc, operators.cc, subscripts.cc, text.cc, iteration.cc, builtins.cc, slots.cc, containers.cc,
// torch_leaves.cc, tensor_members.cc, interpreter.cc.
//
// A method that gives a Value* gives null when the program raised: the exception is then in raised(). What cannot be captured throws
// Break (end the graph before this instruction) or Skip (run this frame as it is). Nothing real is written to.
#pragma once
#include <Python.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/bytecode/code.h"
#include "compiler/capture/values/value.h"
#include "compiler/frames/plan.h"
#include "compiler/guards/guard.h"

namespace cutaway::capture {

class TensorTrace;
class TorchCalls;
using frames::FrameView;
using guards::GuardKind;
using guards::SourceKind;

/// Where an attempt before this one found that the graph must end: an instruction by count of steps.
struct Stop { uint64_t step = 0; };

/// The graph must end before the current instruction.
struct Break {
  std::string id;     ///< stable: "print", "data_dependent_branch", "unknown_c_function", …
  std::string what;   ///< one sentence
  std::string hint;
};
/// The place of the stop is reached; the trace is whole.
struct Stopped {};
/// The frame cannot be captured at all.
struct Skip {
  std::string id, what, hint;
};

/// Attributes of classes that the captured code writes to; kept from one attempt to the next.
struct ClassData {
  std::vector<std::pair<guards::ObjectRef, guards::ObjectRef>> all;   ///< class, name
  bool contains(PyTypeObject* t, PyObject* name) const;
  bool hooks_by_number = false;   ///< see hook_numbers.cc
  /// Handles of hooks are numbered by their class, whoever registers one: the captured code makes some.
  bool has_handles() const { return contains(handle_class(), handle_number()); }
  static PyTypeObject* handle_class();
  static PyObject* handle_number();   ///< the name of the attribute that counts them
};
/// One level deeper, for as long as it lives.
class Depth {
 public:
  explicit Depth(int& depth) : depth_(++depth) {}
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  int& depth_;
};
/// The trace found such an attribute, and looked at the class before: the next attempt knows it.
struct StartOver {};

using Keyword = std::pair<PyObject*, Value*>;
/// Arguments of a call, borrowed from the caller for its duration.
struct Args {
  Value* const* positional = nullptr;
  size_t count = 0;
  const Keyword* keywords = nullptr;
  size_t keyword_count = 0;
  Args() = default;
  Args(Value* const* p, size_t n, const Keyword* k = nullptr, size_t m = 0) : positional(p), count(n), keywords(k), keyword_count(m) {}
  Args(std::initializer_list<Value*> l) : count(l.size()) { positional = l.begin(); }   // alive as long as the call: g++ warns of the initializer
  explicit Args(const std::vector<Value*>& p) : positional(p.data()), count(p.size()) {}
  Args(const std::vector<Value*>& p, const std::vector<Keyword>& k) : positional(p.data()), count(p.size()), keywords(k.data()), keyword_count(k.size()) {}
  Value* operator[](size_t i) const { return positional[i]; }
  Args rest(size_t from) const { return {positional + from, count - from, keywords, keyword_count}; }
};

/// A call that runs after the graph, in order: a logger's, a warning's.
struct QueuedCall {
  Value* function;
  std::vector<Value*> args;
  std::vector<Keyword> keywords;
  size_t before_node;
  struct Place { PyCodeObject* code; int line; PyObject* globals; };
  std::vector<Place> places;   ///< outermost first: what the call's stack would show
};

/// What C code does with the value that a Python function gives to it, as a function of _polyfills/endings.py: its `_rest()` stands for that function,
/// its arguments are `values`. Behind a break it is a frame of its own between the two; tracebacks do not show it.
struct Ending {
  const char* function = nullptr;
  std::vector<Value*> values;
};
/// Whether what the next call gives is what the current instruction gives, and by which ending.
struct Tail {
  bool is = false;
  const Ending* ending = nullptr;   ///< null: the value is used as it is
};

/// An interpreted frame. Kept by the arena, since a generator's outlives its call.
struct Frame {
  Value* function = nullptr;
  const bytecode::Code* code = nullptr;
  std::vector<Value*> locals;        ///< localsplus: locals, cells, free variables; null: unbound
  std::vector<Value*> stack;
  uint32_t pc = 0;                   ///< index of the instruction
  PyObject* keyword_names = nullptr; ///< KW_NAMES for the next CALL
  Frame* caller = nullptr;
  Value* yielded = nullptr;
  Value* names = nullptr;            ///< the namespace of a class body or of text; null for functions
  Value* shown_locals = nullptr;     ///< what locals() gave
  int depth = 0;
  uint64_t step = 0;                 ///< number of its current instruction among all
  /// What it returns is what the instruction in its caller gives, by `ending`: it can go on after a break.
  bool is_direct = false;
  const Ending* ending = nullptr;
};

class Trace {
 public:
  Trace(const frames::CaptureOptions&, const FrameView&, const bytecode::Code&, const Stop* stop, ClassData& class_data);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Interprets the outermost frame to its end or to the stop. Null when the program raises out of it.
  Value* run_outermost();
  bool has_stopped() const { return stopped_; }
  bool is_handling() const { return stopped_in_ ? stopped_handling_ : handled() != nullptr; }   ///< inside an except block

  // --- values.cc, mappings.cc ---
  Value* constant(PyObject* o);                       ///< keeps a reference
  Value* constant_steal(PyObject* o);                 ///< null (a Python error is set) becomes raised()
  Value* wrap(PyObject* o, SourceRef source);         ///< of something outside: lazy
  Value* wrap_constant_object(PyObject* o);           ///< any object that the trace may reach by identity: its source is the object itself
  Value* force(Value* v) { return v->kind == Kind::lazy ? force_slow(v) : v; }
  Kind kind(Value* v) { return force(v)->kind; }
  PyTypeObject* type_of(Value* v) { return force(v)->type; }
  /// The value as a real immutable object (borrowed), or null when it is not one: containers of constants count.
  PyObject* as_constant(Value* v);
  bool is_constant(Value* v, PyObject* o) { return kind(v) == Kind::constant && v->real == o; }
  Value* none() { return none_; }
  Value* boolean(bool b) { return b ? true_ : false_; }
  Value* integer(long long i);
  Value* text(std::string_view s);
  Value* make_tuple(std::vector<Value*> items, PyTypeObject* type = &PyTuple_Type);
  Value* make_list(std::vector<Value*> items);
  Value* make_dict();
  Value* make_set();
  Value* make_slice(Value* start, Value* stop, Value* step);
  Value* make_cell(Value* contents);
  Value* make_method(Value* function, Value* self);
  Value* bind_c_method(PyObject* descriptor, Value* self);   ///< what [].append is
  Value* make_object(PyTypeObject* type);
  Value* make_iterator(Iterator::What, Value* base);
  Value* make_function();
  Value* make_view(View::What, Value* dict);
  Value* make_super(Value* type, Value* self, PyTypeObject* start);
  Value* checked_super(Value* type, Value* self);      ///< super(type, self)
  Value* make_partial(Value* function, const Args& bound);
  Value* make_generator(Frame* frame);
  Value* make_tensor(PyObject* fake);                 ///< the same fake gives the same value
  void bind_fake(Value* v, PyObject* fake);
  Frame* make_frame(Value* function);
  Value* null() { return null_; }
  PyObject* keep(PyObject* o) { keep_.push_back(o); return o; }   ///< takes the reference, until the trace ends
  void load(Value* sequence);                          ///< wraps the items of a real tuple or list
  std::vector<Value*>& items(Value* sequence) { if (!body<Sequence>(sequence).is_loaded) load(sequence); return body<Sequence>(sequence).items; }
  Function& function(Value* f) { if (!body<Function>(f).is_loaded) load_function(f); return body<Function>(f); }
  Value* cell_contents(Value* cell);                   ///< null without raising when empty
  void set_cell(Value* cell, Value* contents);
  /// A key for Mapping: the constant itself or a stand-in for the identity. Raises TypeError for what cannot be hashed.
  PyObject* key_of(Value* v);
  PyObject* key_to_find(Value* v);                     ///< for looking into a set: a set, which has no hash, stands for the frozen one
  Value* value_of_key(PyObject* key);
  PyObject* key_of_method(Value* v);                   ///< methods of one object and function are equal
  PyObject* hashed_key(Value* v);                      ///< for an instance of a class with its own __hash__
  bool has_plain_keys(PyObject* real);                 ///< of a real dict or set: looking into it runs nothing of the program's
  void note_key_change(Value* v);                      ///< ends the graph where a key is written to whose class says what its hash is
  static bool keys_were_compared();                    ///< since it was asked last: of two classes, one of which has its own hash
  void check_keys();                                   ///< ends the graph where a dict or set would have asked the class of a key for more than was foreseen
  bool has_own_hash(PyObject* key);
  void guard_key(PyObject* key);                       ///< an object that is looked for by identity in something real
  // Mapping as a dict. Values are null when the key is not there.
  Value* dict_get(Value* dict, PyObject* key);
  void dict_set(Value* dict, PyObject* key, Value* v);
  bool dict_delete(Value* dict, PyObject* key);
  SourceRef item_source(Value* dict, PyObject* key);
  void set_load(Value* set);
  void dict_load(Value* dict);                         ///< wraps every item; guards the keys
  size_t dict_size(Value* dict) { dict_load(dict); return static_cast<size_t>(PyDict_GET_SIZE(body<Mapping>(dict).items)); }
  void set_add(Value* set, PyObject* key);
  bool set_discard(Value* set, PyObject* key);
  std::vector<PyObject*> keys_of(Value* mapping);      ///< in order; borrowed
  void mark_changed(Value* v);
  std::vector<Value*> met_with_identity(PyTypeObject* t);   ///< real objects of the type that the trace looked at
  bool same_identity(Value* a, Value* b);              ///< `a is b`
  std::string describe(Value* v);                      ///< for sentences: "a list of 3 items"

  // --- exceptions.cc ---
  std::nullptr_t raise_empty_cell(const Frame* frame, int slot);   ///< a variable that inner functions use has no value
  Value* raised() const { return raised_; }
  Value* take_raised();                                ///< it counts as handled; ends the graph where only eager knows whether it is raised
  /// What was raised just now comes from torch on fake tensors: it is the program's only if eager raises it, too (real_errors.cc). Null.
  std::nullptr_t doubt(std::string by);
  const std::string* doubted(Value* exception) const;  ///< the name of the operator that raised it; null: the program raises it
  std::string text_of_error(Value* exception);         ///< for sentences: "ValueError: words"
  std::nullptr_t raise(Value* exception) { raised_ = exception; return nullptr; }
  std::nullptr_t raise(PyObject* type, std::string_view message);
  /// What was raised just now comes from a call with stand-ins, or from a rule of C that capture knows in part: it is doubted as well, unless there must be one graph.
  std::nullptr_t doubt_own();
  std::nullptr_t raise_unproven();                     ///< the Python error that is set now, which such a call raised
  std::nullptr_t raise_unproven(PyObject* type, std::string_view message);
  std::string doubt_text(const std::string& by, Value* exception);
  std::nullptr_t raise_python();                       ///< the Python error that is set now
  Value* make_exception(PyObject* type, std::vector<Value*> args);
  bool matches(Value* exception, Value* type_or_tuple);
  bool raised_is(PyObject* type);

  // --- hook_numbers.cc ---
  bool is_hook_table(Value* dict);
  void load_hooks(Value* dict);
  void check_hook_number(Value* mapping, PyObject* key);
  [[noreturn]] void start_over_by_number();
  Value* number_without_value(PyObject* number);       ///< equal to it, and good for being looked for

  // --- tracebacks.cc ---
  /// An entry of a traceback, that of the outer frame first.
  struct TracebackEntry { Frame* frame; uint32_t pc; TracebackEntry* next; Value* shown; };
  void note_traceback(Value* exception, Frame* frame);
  Value* show_traceback(TracebackEntry* entry);
  Value* traceback_of(Value* exception);               ///< what __traceback__ gives
  bool set_traceback(Value* exception, Value* traceback);
  bool is_traceback(const Value* v) const { return v->kind == Kind::object && !v->real && (v->type == &PyTraceBack_Type || v->type == &PyFrame_Type); }   ///< or a frame of one
  Value* traceback_attribute(Value* v, PyObject* name);
  Value* clear_frame(Value* v);

  // --- attributes.cc, attribute_stores.cc, instance_checks.cc ---
  Value* getattr(Value* v, PyObject* name);
  Value* getattr(Value* v, const char* name);
  Value* load_method(Value* v, PyObject* name, Value** self);   ///< as getattr; a function found on the type comes unbound with *self set
  bool setattr(Value* v, PyObject* name, Value* x);
  bool delattr(Value* v, PyObject* name);
  Value* instance_dict(Value* v);                      ///< null when it has none
  PyObject* lookup_type(PyTypeObject* t, PyObject* name);   ///< borrowed, null without error; guards the type's version
  /// What a class says itself under a special name: a function, or a method of C that it took from elsewhere; called with the instance first. Null
  /// where it says nothing, so that C's own holds. Breaks where it is neither (None, a number, an object that can be called): Python knows what that means.
  PyObject* own_method(PyTypeObject* t, PyObject* name);
  bool has_c_base(Value* v);                           ///< an instance of a class that inherits from C what the trace does not model
  Value* special(Value* v, PyObject* name);            ///< bound dunder found on the type, or null without raising
  bool isinstance(Value* v, Value* type, bool* result);
  bool subclass_of(PyTypeObject* t, Value* type, bool* result);
  bool ask_metaclass(Value* type, PyObject* name, Value* v, bool* result, bool* failed);
  std::nullptr_t raise_no_attribute(Value* v, PyObject* name);
  std::nullptr_t raise_no_place(Value* v, PyObject* name);
  std::nullptr_t raise_empty_slot(Value* v, PyObject* name);
  Value* apply_descriptor(PyObject* found, Value* instance, Value* owner, PyObject* name, Value** self);
  Value* getset_attribute(PyObject* found, Value* v, PyObject* name);
  Value* constant_or_wrap(PyObject* o);
  Value* instance_attribute(Value* v, PyObject* name, Value** self);
  Value* generic_attribute(Value* v, PyObject* name, Value** self);
  Value* module_member(Value* v, PyObject* name);
  Value* module_attribute(Value* v, PyObject* name);
  Value* module_dict(Value* v);
  Value* class_attribute(Value* v, PyObject* name, Value** self);
  Value* function_attribute(Value* v, PyObject* name);
  Value* super_attribute(Value* v, PyObject* name, Value** self);
  bool set_plain_module_attribute(Value* v, PyObject* name, Value* x);
  bool generic_setattr(Value* v, PyObject* name, Value* x);
  bool generic_delattr(Value* v, PyObject* name);
  bool issubclass(Value* v, Value* type, bool* result);

  // --- class_stores.cc ---
  struct FoundOnClass { PyObject* object = nullptr; Value* stored = nullptr; };   ///< what a class has under a name: as it is guarded with the class, or data
  FoundOnClass find_on_class(PyTypeObject* t, PyObject* name);
  FoundOnClass find_on_base(PyTypeObject* base, PyObject* name);
  bool is_data_descriptor_value(const FoundOnClass& found);
  Value* apply_found(const FoundOnClass& found, Value* instance, Value* owner, PyObject* name, Value** self);
  bool set_class_attribute(Value* klass, PyObject* name, Value* x);   ///< past the metaclass; x null: deleted
  Value* class_dict(PyTypeObject* t);
  Value* class_proxy(PyTypeObject* t);
  Value* make_proxy(Value* dict);                      ///< types.MappingProxyType(dict)
  Value* behind_proxy(Value* v) { auto it = proxies_.find(v); return it == proxies_.end() ? v : it->second; }

  // --- endings.cc ---
  Tail take_tail() { return std::exchange(tail_, Tail()); }
  void hand_on(const Tail& tail) { tail_ = tail; }
  void begin_tail() { tail_ = {true, nullptr}; }
  /// The next call's value goes through an ending before it is the instruction's. Nothing where `outer` is no tail, or has an ending already.
  void end_with(const Tail& outer, const char* function, std::vector<Value*> values);

  // --- calls.cc, interpreter.cc ---
  Value* call(Value* f, const Args& args);
  Value* call_python(Value* f, const Args& args);      ///< binds the arguments and interprets
  Value* call_class(PyTypeObject* t, Value* klass, const Args& args);
  bool bind(Value* f, const Args& args, std::vector<Value*>& locals);
  Value* run_inlined(Frame* frame);
  Value* resume_generator(Value* generator, Value* sent, Value* thrown);   ///< null with raised() null: it is exhausted (result in last_return())
  Value* last_return() const { return last_return_; }
  bool begin_with(Frame* frame, Value* manager, PyObject* exit_name, PyObject* enter_name, const char* protocol);   ///< pushes the bound exit and what was entered
  uint32_t end_delegation(Frame* frame, const bytecode::Instruction& send);   ///< with what the inner generator returned; gives the place to go on at
  Value* throw_into(Frame* frame, Value* thrown, bool is_started);
  Value* instantiate(PyTypeObject* t, Value* klass, const Args& args);
  Value* new_instance(PyTypeObject* t, const Args& args, bool has_user_init);
  bool init_builtin(Value* v, PyObject* init, const Args& args);
  Value* call_method(Value* v, const char* name, const Args& args);

  // --- operators.cc, subscripts.cc, text.cc ---
  Value* binary(int op, Value* a, Value* b);           ///< NB_ADD …
  Value* set_in_place(size_t index, Value* a, Value* b);   ///< set.__ior__ and its like; the index is that of the plain operator
  Value* unary(int op, Value* v);                      ///< UNARY_NEGATIVE …
  Value* compare(int op, Value* a, Value* b);          ///< Py_LT …
  Value* plain_compare(int op, Value* a, Value* b);    ///< the C types' own, whatever a subclass says; null without raising where they leave it to the other side
  Value* compare_by_classes(int op, Value* a, Value* b, bool user, const Tail& tail);
  bool asks_right_first(Value* a, Value* b, const char* name, const char* reflected);   ///< of an operator
  PyObject* own_operator(PyTypeObject* t, PyObject* name);   ///< own_method, without what the module enum defines: that computes and does nothing else
  int truth(Value* v);                                 ///< -1 when raised
  Value* length(Value* v);
  Value* subscript(Value* v, Value* key);
  bool store_subscript(Value* v, Value* key, Value* x);
  bool delete_subscript(Value* v, Value* key);
  int contains(Value* container, Value* x);
  int equal(Value* a, Value* b);                       ///< identity or ==, as containers compare
  Value* format(Value* v, Value* spec);
  Value* convert(Value* v, int conversion);
  Value* str(Value* v);
  Value* checked_text(Value* v, const char* dunder_name);   ///< text, or raises
  Value* repr(Value* v);
  bool is_plain_operand(Value* v);                     ///< an object of the user's or a number: other operands have protocols of C besides
  Value* dunder(Value* v, const char* name, Value* other);   ///< a dunder written in Python; null without raising when there is none
  PyObject* index_object(Value* v);                    ///< what operator.index gives, borrowed; null when raised
  /// The same as a position. `overflow`: raised where it does not fit, null where the nearest number that fits will do.
  bool index_number(Value* v, Py_ssize_t* n, PyObject* overflow = PyExc_IndexError);
  bool argument_number(Value* v, Py_ssize_t* n);       ///< the same for a method of C, which has other words for what does not fit
  bool ask_length(Value* v);                           ///< as Python asks how long something may be that it will iterate over; false when raised
  bool length_hint(Value* v, Value** hint);            ///< what __length_hint__ says; *hint stays where there is none
  bool slice_range(Value* key, Value* sequence, Py_ssize_t* start, Py_ssize_t* step, Py_ssize_t* count);
  Value* plain_subscript(Value* v, Value* key);        ///< the C type's own, whatever a subclass says
  bool plain_store_subscript(Value* v, Value* key, Value* x);
  bool plain_delete_subscript(Value* v, Value* key);
  int plain_contains(Value* container, Value* x);
  Value* plain_length(Value* v);
  PyObject* to_plain(Value* v);

  // --- iteration.cc ---
  Value* iter(Value* v);
  Value* plain_iter(Value* v);                         ///< the C type's own; null without raising where it has none
  /// Every item, one by one, as it comes: what is iterated may look at what `take` fills. False when something raised.
  template <class Take> bool for_each(Value* v, Take&& take) {
    take_tail();
    Value* it = iter(v);
    if (!it) return false;
    for (bool done = false;;) {
      Value* x = next(it, &done);
      if (done) return true;
      if (!x || !take(x)) return false;
    }
  }
  bool extend(Value* list, Value* more);               ///< a list or deque
  void append(Value* list, Value* x, bool left = false);   ///< the same
  Value* next(Value* iterator, bool* is_exhausted);
  Value* next_item(Value* iterator, bool* is_exhausted);   ///< the same; what the iterator calls may have raised StopIteration, which is its end, too
  const char* ending_of_items(Value* iterator);        ///< of a loop of C over what breaks; null: it cannot go on
  bool unpack(Value* v, std::vector<Value*>* into, PyTypeObject* as = nullptr, size_t most = SIZE_MAX);   ///< every item, or so many; as: what the instruction then gives, a list or a tuple
  bool unpack_for_targets(Value* v, std::vector<Value*>* into, size_t most = SIZE_MAX);   ///< the same for `a, b = v`, whose error has other words
  bool update_by_keywords(Value* dict, const Args& args);
  bool dict_update(Value* into, Value* from, Value* called = nullptr);   ///< called: with these keywords, of which none may come twice
  Value* iterator_of_items(std::vector<Value*> items);
  Value* set_iterator(Value* set, std::vector<Value*> all);
  Value* iterate_mapping(Value* dict, View::What shows);

  // --- builtins.cc, slots.cc, known_types.cc, argument_counts.cc, library_objects.cc ---
  Value* call_builtin(Value* f, const Args& args);
  Value* call_known_type(PyTypeObject* t, const Args& args, bool* is_known);   ///< int, list, range, super, …
  Value* make_size(std::vector<Value*> items);         ///< torch.Size(items)
  Value* call_method_descriptor(PyObject* descriptor, const Args& args);
  /// The number of arguments and their names are what a function, method or type of C takes; else raises what Python would. Args without self.
  bool takes(PyObject* callable, PyTypeObject* owner, const Args& args);
  Value* call_operator(std::string_view name, const Args& args);
  Value* call_pure(PyObject* f, const Args& args);     ///< runs now: a C function that depends on its arguments alone
  Value* call_pure_slot(PyObject* d, Value* self, const Args& args);
  Value* constant_kind(PyObject* f);
  Value* call_lru_cache(Value* f, const Args& args);
  Value* queue_call(Value* f, const Args& args);
  void refuse_listeners(Value* f, const Args& args);   ///< stops where code of the program's own hears the call
  Value* call_slot(PyObject* d, PyTypeObject* owner, const std::string& name, Value* self, const Args& args);
  // --- deques.cc ---
  Value* call_deque_method(std::string_view name, Value* self, const Args& args);
  Value* deque_binary(int op, Value* a, Value* b, bool* is_known);   ///< + and *, where one side is a deque
  Value* deque_subscript(Value* v, Value* key, Value* x, bool deletes);   ///< x: to be stored
  Value* make_deque(PyTypeObject* t, std::vector<Value*> all, Py_ssize_t limit);
  bool deque_limit(Value* given, Py_ssize_t* limit);   ///< what maxlen= says; given may be null
  bool is_deque(Value* v);
  // --- view_sets.cc, containers.cc, known_types.cc, namespaces.cc ---
  Value* view_binary(int op, Value* a, Value* b, bool* is_known);   ///< & | - ^, where one side is the keys or items of a dict
  Value* set_of_keys(PyObject* real);                  ///< a set of the trace with this content, in this order; steals
  Value* call_list_method(std::string_view name, Value* self, const Args& args, bool* known_method);
  Value* call_dict_method(std::string_view name, Value* self, const Args& args, bool* known_method);
  Value* call_set_method(std::string_view name, Value* self, const Args& args, bool* known_method);
  Value* change_set(std::string_view name, Value* self, const std::vector<PyObject*>& others);   ///< others: real sets, lists or dicts of keys
  bool is_reversed(Value* v, bool* reversed);   // what sort() makes of its reverse=
  bool sort_by_comparisons(std::vector<Value*>& all, const std::vector<Value*>& keys, bool reverse);
  bool sort_values(std::vector<Value*>& all, Value* key, bool reverse, const Tail& tail = {}, Value* target = nullptr);   ///< target: the list that is sorted in place
  Value* polyfill(PyObject* o);                        ///< the function in Python that stands for one of C; null for most
  Value* own_function(const char* name);               ///< a function of the package _polyfills
  Value* polyfill_class_method(PyTypeObject* t, const std::string& name);
  bool is_identity_function(PyObject* f);
  bool is_give_up_function(PyObject* f);
  bool is_held_function(PyObject* f);
  void refuse_stand_in(Value* v);                      ///< it is one in Python for an object of C, and its type shows
  bool stands_for_c(Value* function);                  ///< of the package _polyfills
  size_t node_count();
  Value* make_super_of_frame();
  Value* locals_of_frame();                            ///< what locals() returns
  Value* call_container_method(PyTypeObject* owner, const char* name, Value* self, const Args& args, bool* known);

  // --- torch_leaves.cc, tensor_members.cc, tensor_hooks.cc, graph_arguments.cc, autograd_functions.cc ---
  enum class Leaf : uint8_t { no, graph, constant, state, queued };
  Leaf leaf_of(PyObject* callable);
  Value* call_function_apply(const Args& args);        ///< torch.autograd.Function.apply of the class args[0]
  Value* call_known_function(Value* f, Leaf leaf, const Args& args);
  Value* call_leaf(PyObject* callable, const char* method, const Args& args);   ///< one node of the graph
  Value* call_tensor_method(Value* tensor, PyObject* name, const Args& args);
  Value* tensor_attribute(Value* tensor, PyObject* name);
  bool set_tensor_attribute(Value* tensor, PyObject* name, Value* x);
  bool has_tensor(const Args& args);
  int tensor_truth(Value* tensor);
  Value* call_leaf_constant(Value* tensor, const char* method);   ///< a number that metadata or a constant gives
  bool contains_tensor(Value* v, int depth = 0);
  Value* from_result(PyObject* o);                     ///< what a leaf gave: tensors, containers, numbers
  PyObject* to_python(Value* v);                       ///< with fakes in the place of tensors: new reference; throws Break for what has no such form
  ir::Argument to_argument(Value* v);
  ir::Location location();
  Value* finish_leaf(PyObject* callable, std::string name, PyObject* tuple, PyObject* keywords, const Args& args);
  void refuse_warning(const std::string& name, const std::string& text);   ///< stops where a call has warned (torch_warnings.h), so that CPython makes it
  Value* finish_bare(PyObject* callable, const std::string& name, PyObject* tuple, PyObject* keywords);   ///< the same without a node of its own
  bool is_bare = false;                                ///< what is recorded now belongs to no call, and asks for its place
  Value* leaf_raised(const std::string& name, bool tensors = true, bool spelled = true);   ///< a Python error is set: torch's, on fakes
  void refuse_handled_errors(const std::string& name, uint64_t failed_before);   ///< torch went on after an operator raised on fakes
  /// Of a function that the graph calls by name, see marks.h; the plan holds it.
  std::string name_callable(std::string name, PyObject* o, PyObject* key = nullptr);
  std::vector<guards::ObjectRef> callables;
  TensorTrace& tensors() { return *tensors_; }
  TorchCalls& torch_calls() { return *torch_calls_; }
  void end_tensors();                                  ///< torch is as it was before the trace

  // --- scripted_functions.cc ---
  Value* call_scripted(Value* f, const Args& args);

  // --- real_errors.cc ---
  /// Called for every node before it ends. Ends the graph where an error of real data could not be undone inside a block that handles it.
  void note_errors(const std::string& name);
  void end_before_doubted(const std::string& by);      ///< ends the graph where a block may handle what was raised
  void watch_errors();                                 ///< called before the node begins
  void note_raising(const std::string& name);          ///< the node may raise on real data
  void note_change(const std::string& name);           ///< the node changes something of the program's
  bool in_block();                                     ///< an exception raised now may be caught by a try or with block of the captured code
  void note_block() { runs_in_block = runs_in_block || in_block(); }   ///< of every node; note_errors does it
  bool runs_in_block = false;
  size_t first_change = SIZE_MAX, first_random = SIZE_MAX;   ///< number of the first node that writes to a tensor of the program's, that draws random numbers
  bool may_raise_in_block = false;

  // --- torch_modes.cc ---
  /// torch.inference_mode's own __enter__ and __exit__, whose work is done by an object of C. False: another function.
  bool call_inference_mode(PyObject* function, const Args& args, Value** result);
  struct InferenceContext { Value* object; bool mode; bool is_open; std::vector<bool> before; };   ///< before: grad mode, autocast of each device
  std::vector<InferenceContext> inference_contexts;     ///< in the order in which they were entered

  // --- namespaces.cc ---
  Value* load_name(Frame* frame, Value* space, PyObject* name);
  bool store_name(Frame* frame, PyObject* name, Value* v);   ///< v null: deleted
  Value* load_class_cell(Frame* frame, Value* space, int slot);
  bool setup_annotations(Frame* frame);
  Value* run_text(bool is_exec, const Args& args);

  // --- library_objects.cc ---
  Value* call_context_variable(Value* self, const std::string& name, const Args& args);
  std::vector<std::pair<Value*, Value*>> context_values;   ///< variable, what the program set
  bool call_dispatch(Value* f, const Args& args, Value** result);
  struct RememberedCall { Value* function; std::vector<Value*> args; std::vector<Keyword> keywords; Value* result; bool is_replayed; /* else a call around it makes it */ bool raises = false; };
  std::vector<RememberedCall> remembered_calls;        ///< of functions with a cache: replayed, so that the cache knows them
  PyObject* key_in_cache(Value* f, const Args& args);
  void guard_key_in_cache(const Args& args);
  Value* take_remembered(Value* f, PyObject* key, const Args& args);
  bool remember_ahead(Value* f, const Args& args);
  int cache_depth = 0;                                 ///< inside of how many such functions the trace is
  Value* awaitable(Value* v);
  bool is_held(Value* v);
  static bool is_identity_number(PyObject* o);         ///< or a tuple with one
  Value* identity_number(void* of);
  std::string callable_text(Value* callable);
  void explain_not_iterable(Value* v, Value* callable);
  bool explain_not_mapping(Value* v, Value* callable);

  // --- number_classes.cc ---
  static Value* plain_of(Value* v) { return v->kind == Kind::object ? body<Object>(v).plain : nullptr; }
  Value* plain_or_self(Value* v) { force(v); Value* p = plain_of(v); return p ? p : v; }
  Value* plain_number(PyObject* o);                    ///< of an instance that exists
  Value* make_number(PyTypeObject* t, const Args& args);
  bool is_made_number(PyObject* o) const { return made_numbers_.contains(o); }
  bool holds_made_number(PyObject* o) const;           ///< it is one, or a tuple with one
  Value* binary_with_number(int op, Value* a, Value* b);
  Value* compare_with_number(int op, Value* a, Value* b);
  bool has_own(PyTypeObject* t, std::initializer_list<const char*> dunders);   ///< written in Python

  // --- numpy_numbers.cc ---
  bool compute_with_numpy(PyObject* function, std::initializer_list<Value*> operands, Value** result);   ///< false: no number of numpy's is among them, or not its to say
  Value* run_numpy(PyObject* function, PyObject* positional, PyObject* keywords);
  bool call_numpy(Value* f, const Args& args, Value** result);   ///< a function or class of numpy's, on numbers. False: another one
  bool has_numpy_number(const Args& args);
  static bool is_array(Value* v);                      ///< an array from outside
  Value* array_as_tensor(Value* v);                    ///< what torch.from_numpy makes of it; null: torch cannot
  bool call_with_arrays(PyObject* callable, const std::string& name, const Args& args, Value** result);   ///< a torch function that takes arrays. False: none is among them

  // --- patterns.cc ---
  Value* match_keys(Value* subject, Value* keys);
  Value* match_class(Value* subject, Value* klass, size_t positions, Value* names_wanted);

  // --- class_definitions.cc ---
  Value* build_class(const Args& args);
  Value* make_class(PyTypeObject* meta, const Args& args);   ///< type.__new__(meta, name, bases, namespace, …)
  bool is_made_class(PyObject* o) const { return o && made_classes_.contains(o); }
  std::optional<uint64_t> listed_class() const;        ///< the step of a class that is made below one that exists, which lists it as long as the frame has it
  std::optional<uint64_t> made_class_at(PyObject* o) const { auto it = made_classes_.find(o); return it == made_classes_.end() ? std::nullopt : std::optional<uint64_t>(it->second); }
  bool holds_made_class(PyObject* o) const;            ///< it, or a stand-in, or something made of them
  PyObject* stand_in_for_member(Value* v, PyObject* name);   ///< what the class that the trace makes has in the place of the value
  PyObject* stand_in_for_function(Value* f);
  Value* member_of(PyObject* o);                       ///< of a stand-in that is no function; else null
  bool set_made_attribute(PyTypeObject* t, PyObject* name, Value* x);

  // --- interpreter.cc, namespaces.cc ---
  Value* run(Frame* frame);
  int branch(Value* v);
  bool has_open_blocks(Value* v);                      ///< a generator suspended where its end may run code
  void drop(Value* v);                                 ///< it leaves the stack; breaks where the end of a generator from outside would run now
  Value* globals_of(Function& f);
  /// Globals or a module's names as a dictionary, read when asked. No source: held by the plan. No owner: itself.
  Value* namespace_dict(PyObject* real, const guards::Source* source, Value* owner);
  Value* load_global(Function& f, PyObject* name);
  Value* import_name(Frame* frame, PyObject* name, Value* from_list, Value* level);
  [[noreturn]] void stop(std::string id, std::string what, std::string hint = {});
  std::string here();                                  ///< "model.py:12 in forward": innermost user frame

  // --- what the plan is made of ---
  const frames::CaptureOptions& options;
  const FrameView& view;
  std::vector<QueuedCall> queued;
  size_t writes = 0, real_writes = 0;                  ///< to anything, real or not
  uint32_t watched = 0;                                ///< values with this number or a smaller one count as outside, see watched_writes
  size_t watched_writes = 0, effect_nodes = 0;         ///< to values of the trace that are outside; nodes that write to tensors or draw random numbers
  std::vector<Value*> changed;                         ///< real objects that the trace wrote to, in order of first write
  Frame* outermost() { return outermost_; }
  /// Frames that can go on after a break, outermost first: the frame, its inlined call, the call inside that, …
  std::vector<Frame*> open_frames() const { return open_frames(current_); }
  std::vector<Frame*> open_frames(Frame* innermost) const;
  uint64_t step_now() const;                           ///< of the innermost instruction that the graph may end before
  Frame* stopped_in() const { return stopped_in_; }
  /// An earlier place to stop at, where a value that cannot be made again has not been made yet.
  std::optional<uint64_t> earlier_stop;
  uint64_t handling_since() const { return handling_since_; }
  /// Ends the generators that the program left inside try or with, as Python does when it frees them. False when that shows.
  bool close_generators();
  Frame* innermost() { return current_; }
  guards::SourceTable& sources() { return *sources_; }
  void guard(SourceRef source, GuardKind kind, PyObject* operand = nullptr, int64_t number = 0);
  void guard_type_version(PyTypeObject* t);
  std::vector<guards::Guard> guards;
  std::shared_ptr<guards::SourceTable> sources_ = std::make_shared<guards::SourceTable>();
  std::vector<frames::BreakReason::Frame> user_stack();

 private:
  friend class TorchCalls;
  Value* new_value(Kind, PyTypeObject*);
  Value* force_slow(Value*);
  void force_items(Value* tuple);   ///< guards its length; each item when it is used
  void load_function(Value*);
  void label_stack(Value* f, const char* function);
  template <class Body> Body& give_body(Value* v, std::deque<Body>& home) { v->body = &home.emplace_back(); return *static_cast<Body*>(v->body); }

  std::deque<Value> values_;
  std::deque<Tensor> tensor_bodies_;
  std::deque<Sequence> sequence_bodies_;
  std::deque<Mapping> mapping_bodies_;
  std::deque<Slice> slice_bodies_;
  std::deque<Cell> cell_bodies_;
  std::deque<Function> function_bodies_;
  std::deque<Method> method_bodies_;
  std::deque<Object> object_bodies_;
  std::deque<View> view_bodies_;
  std::deque<Super> super_bodies_;
  std::deque<Partial> partial_bodies_;
  std::deque<Iterator> iterator_bodies_;
  std::deque<Generator> generator_bodies_;
  std::deque<Frame> frame_bodies_;
  std::deque<Ending> endings_;
  std::vector<PyObject*> keep_;
  std::unordered_map<PyObject*, Value*> by_object_;    ///< real objects that have identity
  std::unordered_map<PyObject*, Value*> by_stand_in_, by_fake_;
  std::vector<std::shared_ptr<const bytecode::Code>> codes_;
  std::unordered_map<PyObject*, uint64_t> made_classes_;   ///< stand-ins for classes that the captured code made, and the steps that made them
  std::unordered_set<PyObject*> made_numbers_;         ///< numbers and texts of the program's classes that the captured code made, and that are constants here: each run makes its own
  std::unordered_map<Value*, PyObject*> stand_ins_;
  std::unordered_map<Value*, Value*> proxies_;         ///< of dicts of the program's
  std::vector<std::pair<Py_hash_t, Value*>> hashed_;   ///< keys whose classes have their own hash
  std::unordered_set<PyTypeObject*> guarded_types_;
  struct ContextToken { Value *token, *variable, *before; bool is_used; };
  std::vector<ContextToken> context_tokens_;
  std::unordered_map<Value*, PyObject*> probes;        ///< while torch is asked what __torch_function__ would get: in the place of values
  std::unordered_map<void*, Value*> identities_;
  const bytecode::Code& outer_code_;
  ClassData& class_data_;
  std::vector<Value*> real_values_, generators_;
  Value *none_, *true_, *false_, *null_;
  Value* raised_ = nullptr;
  std::unordered_map<Value*, std::string> doubted_;    ///< exceptions of torch on fakes, and the operators that raised them
  std::vector<std::pair<std::pair<Value*, Value*>, PyObject*>> method_keys_;   ///< function and self, and what stands for the method as a key
  std::unordered_map<PyObject*, Value*> hook_numbers_;  ///< keys, and the tables that have them
  std::deque<TracebackEntry> traceback_entries_;
  std::unordered_map<Value*, TracebackEntry*> tracebacks_, shown_tracebacks_;   ///< of exceptions; of objects that the program has
  std::unordered_map<Frame*, Value*> frames_of_tracebacks_;
  std::unordered_map<Value*, Frame*> shown_frames_;
  Value* last_return_ = nullptr;
  Frame* outermost_ = nullptr;
  Frame* current_ = nullptr;
  const Stop* stop_ = nullptr;
  bool tells_instructions_ = false;                    ///< the log wants every instruction
  uint64_t steps_ = 0;
  Frame* stopped_in_ = nullptr;
  bool stopped_handling_ = false;
  uint64_t handling_since_ = 0;                        ///< where the exception was raised that is being handled
  Tail tail_;                                          ///< of the next call; whoever does something behind that call takes it away first
  Value* handled() const { return handled_ ? handled_ : handled_outside_; }
  Value* handled_ = nullptr;                           ///< the exception that an except block is handling: of the generator that runs, or of the functions outside of any
  Value* handled_outside_ = nullptr;                   ///< the same of whoever resumed the generator that runs
  bool reraised_ = false;
  int call_depth_ = 0;
  int text_depth_ = 0, compare_depth_ = 0, argument_depth_ = 0;   ///< containers in containers; one that holds itself would never end
  PyObject* replaced_ = nullptr;                       ///< what the polyfill that is called next stands for
  std::vector<std::pair<Value*, PyObject*>> plain_open_;   ///< containers that to_plain is inside of
  bool stopped_ = false;
  std::unique_ptr<TensorTrace> tensors_;
  std::unique_ptr<TorchCalls> torch_calls_;
};

}  // namespace cutaway::capture
