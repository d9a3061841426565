// Frames that go on behind a break: their variables, their stacks, and the iterators of their loops at the places where they stand.
#include "compiler/bytecode/resume.h"
#include "compiler/bytecode/stack_use.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/plan/plan_builder.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/break_code.h"
#include "compiler/frames/session.h"

namespace cutaway::capture {

using frames::kNull;
using frames::Recipe;
using frames::RecipeId;
using guards::ObjectRef;

namespace {

PyObject* after_rounds(ObjectRef it, PyObject* rounds) {
  for (Py_ssize_t i = PyLong_AsSsize_t(rounds); it && i > 0; --i) {
    ObjectRef item = ObjectRef::steal(PyIter_Next(it.get()));
    if (!item) return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_SystemError, "cutaway: a dictionary or set has fewer items than its loop has done");
  }
  return it ? it.release() : nullptr;
}

// An iterator as it stands after some rounds. None of these runs code of the user's: the C type's own methods are called, whatever a subclass says.
PyObject* sequence_at(PyObject*, PyObject* const* args, Py_ssize_t) {   // list, tuple, text or bytes, position
  PyObject* sequence = args[0];
  PyTypeObject* type = PyList_Check(sequence) ? &PyList_Type : PyTuple_Check(sequence) ? &PyTuple_Type : Py_TYPE(sequence);
  ObjectRef it = ObjectRef::steal(type->tp_iter(sequence));
  ObjectRef done = it ? ObjectRef::steal(PyObject_CallMethod(it.get(), "__setstate__", "O", args[1])) : ObjectRef();
  return done ? it.release() : nullptr;
}
PyObject* reversed_at(PyObject*, PyObject* const* args, Py_ssize_t) {   // list or tuple, index of the next item
  ObjectRef it = ObjectRef::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyReversed_Type), args[0]));
  ObjectRef done = it ? ObjectRef::steal(PyObject_CallMethod(it.get(), "__setstate__", "O", args[1])) : ObjectRef();
  return done ? it.release() : nullptr;
}
PyObject* mapping_at(PyObject*, PyObject* const* args, Py_ssize_t) {   // dict, "keys" or "values" or "items", rounds, is it backward
  PyObject* type = reinterpret_cast<PyObject*>(PyODict_Check(args[0]) ? &PyODict_Type : &PyDict_Type);
  ObjectRef view = ObjectRef::steal(PyObject_CallMethodOneArg(type, args[1], args[0]));
  if (!view) return nullptr;
  return after_rounds(ObjectRef::steal(args[3] == Py_True ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyReversed_Type), view.get()) : PyObject_GetIter(view.get())), args[2]);
}
PyObject* getitem_at(PyObject*, PyObject* const* args, Py_ssize_t) {   // an object with __getitem__ alone, position
  ObjectRef it = ObjectRef::steal(PySeqIter_New(args[0]));
  ObjectRef done = it ? ObjectRef::steal(PyObject_CallMethod(it.get(), "__setstate__", "O", args[1])) : ObjectRef();
  return done ? it.release() : nullptr;
}
PyObject* set_at(PyObject*, PyObject* const* args, Py_ssize_t) {   // set, rounds: a loop over it notices that its size changes
  return after_rounds(ObjectRef::steal(PyObject_GetIter(args[0])), args[1]);
}

PyObject* missing() {   // stands for an unbound variable and for a NULL on the stack
  static PyObject* const object = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return object;
}
// Code of make_generator_code, the original's code, globals, is it started (or None: it has ended), slots, stack.
PyObject* generator_at(PyObject*, PyObject* const* args, Py_ssize_t) {
  auto original = bytecode::decode_code(reinterpret_cast<PyCodeObject*>(args[1]));
  if (!original.ok()) return PyErr_Format(PyExc_SystemError, "cutaway: %s", original.error().text().c_str());
  std::vector<PyObject*> parts[2], arguments;
  for (int p = 0; p < 2; ++p)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[4 + p]); ++i) {
      PyObject* o = PyTuple_GET_ITEM(args[4 + p], i);
      parts[p].push_back(o == missing() ? nullptr : o);
    }
  ObjectRef function = bytecode::bind_made_code(**original, args[0], args[2], nullptr, parts[0], parts[1], arguments);
  ObjectRef generator = function ? ObjectRef::steal(PyObject_Vectorcall(function.get(), arguments.data(), arguments.size(), nullptr)) : ObjectRef();
  if (!generator) return nullptr;
  if (args[3] == Py_True) {
    ObjectRef nothing = ObjectRef::steal(PyIter_Next(generator.get()));   // up to where it is suspended
    if (!nothing) return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_SystemError, "cutaway: a generator ended before it went on");
  } else if (args[3] == Py_None) {
    ObjectRef done = ObjectRef::steal(PyObject_CallMethod(generator.get(), "close", nullptr));
    if (!done) return nullptr;
  }
  return generator.release();
}

template <class F> PyCFunction as_method(F f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)); }
PyObject* maker(int which) {
  static PyMethodDef methods[] = {{"sequence_at", as_method(sequence_at), METH_FASTCALL, nullptr}, {"reversed_at", as_method(reversed_at), METH_FASTCALL, nullptr},
                                  {"mapping_at", as_method(mapping_at), METH_FASTCALL, nullptr}, {"getitem_at", as_method(getitem_at), METH_FASTCALL, nullptr},
                                  {"generator_at", as_method(generator_at), METH_FASTCALL, nullptr}, {"set_at", as_method(set_at), METH_FASTCALL, nullptr}};
  static PyObject* const made[] = {PyCFunction_New(&methods[0], nullptr), PyCFunction_New(&methods[1], nullptr), PyCFunction_New(&methods[2], nullptr), PyCFunction_New(&methods[3], nullptr), PyCFunction_New(&methods[4], nullptr), PyCFunction_New(&methods[5], nullptr)};
  return made[which];
}
/// Whether the set that will be made holds its items in the order in which a loop met them.
bool is_in_order(const Owners& trace, Value* set, const std::vector<Value*>& met) {
  ObjectRef made = ObjectRef::steal(PySet_New(nullptr));
  for (PyObject* k : trace.mappings.keys_of(set)) PySet_Add(made.get(), k);
  ObjectRef in_order = ObjectRef::steal(PySequence_Tuple(made.get()));
  bool same = !PyErr_Occurred() && in_order && PyTuple_GET_SIZE(in_order.get()) == static_cast<Py_ssize_t>(met.size());
  for (size_t i = 0; same && i < met.size(); ++i) same = PyTuple_GET_ITEM(in_order.get(), static_cast<Py_ssize_t>(i)) == trace.mappings.key_of(met[i]);
  PyErr_Clear();
  return same;
}
/// What an iterator over text or bytes goes over, in one piece; null for other iterators.
ObjectRef text_gone_over(const Value* v, const std::vector<Value*>& items) {
  const std::string_view type = v->type->tp_name;
  const bool is_text = type == "str_iterator" || type == "str_ascii_iterator";
  if (!is_text && type != "bytes_iterator") return {};
  ObjectRef all = ObjectRef::steal(PyList_New(0));
  for (const Value* x : items) PyList_Append(all.get(), x->real);
  if (!is_text) return ObjectRef::steal(PyBytes_FromObject(all.get()));
  ObjectRef nothing = ObjectRef::steal(PyUnicode_FromString(""));
  return ObjectRef::steal(PyUnicode_Join(nothing.get(), all.get()));
}
PyObject* builtin_iter() {
  static PyObject* const iter = [] { PyObject* b = PyImport_ImportModule("builtins"); PyObject* f = PyObject_GetAttrString(b, "iter"); Py_DECREF(b); return f; }();
  return iter;
}

}  // namespace

RecipeId PlanBuilder::iterator(Value* v) {
  Iterator& it = body<Iterator>(v);
  auto number = [&](size_t n) { return constant(values.keep(PyLong_FromSize_t(n))); };
  auto rest_of = [&](const std::vector<Value*>& all, size_t from) {
    return std::vector<Value*>(all.begin() + static_cast<long>(std::min(from, all.size())), all.end());
  };
  const auto ended = [&] {
    if (it.base && it.base->type == known().deque) refuse(v, "iterates over something that is not a list");
    if (v->type == &PyListIter_Type) return call({constant(builtin_iter()), sequence(Recipe::Kind::list, {})});
    if (v->type == &PyListRevIter_Type) return call({constant(reinterpret_cast<PyObject*>(&PyReversed_Type)), sequence(Recipe::Kind::list, {})});
    if (v->type == &PyReversed_Type) return call({constant(reinterpret_cast<PyObject*>(&PyReversed_Type)), sequence(Recipe::Kind::tuple, {})});
    if (v->type == &PyRangeIter_Type) return call({constant(builtin_iter()), constant(values.keep(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "i", 0)))});
    if (v->type != &PyTupleIter_Type && !interpreter.has_stopped()) refuse(v, "has ended, and its type shows");
    return call({constant(builtin_iter()), sequence(Recipe::Kind::tuple, {})});
  };
  if (it.what == Iterator::What::constants)
    if (ObjectRef text = text_gone_over(v, it.parts)) return call({constant(maker(0)), constant(values.keep(text.release())), number(it.position)});
  if (it.is_done) return ended();
  switch (it.what) {
    case Iterator::What::sequence: case Iterator::What::reversed: {
      Value* base = it.base;
      // CPython cannot put an iterator behind the end of its list, from where it would go on when the list grows. Objects are made before effects happen: a list of the program's is
      // still as long as it was; one that is made here has what it has now.
      if (base->kind == Kind::list) {
        const size_t length = base->real && PyList_Check(base->real) ? static_cast<size_t>(PyList_GET_SIZE(base->real)) : body<Sequence>(base).items.size();
        if (it.position > length) refuse(v, "has passed the end that the list had");
      }
      if (base->type == known().deque || (base->kind != Kind::list && base->kind != Kind::tuple)) refuse(v, "iterates over something that is not a list");
      if (it.what == Iterator::What::sequence) {
        const RecipeId over = recipe(base);
        return call({constant(maker(0)), over, number(it.position)});
      }
      if (base->type != &PyList_Type && base->type != &PyTuple_Type) refuse(v, "iterates backward over an instance of a subclass of list");
      if (it.position == 0) return ended();
      const RecipeId over = recipe(base);
      return call({constant(maker(1)), over, number(it.position - 1)});
    }
    case Iterator::What::constants:
      if (Value* set = it.base; set && set->type == &PySet_Type) {
        if (set->real && set->is_changed) refuse(v, "iterates over a set that has changed");
        if (set->real || is_in_order(*this, set, it.parts)) {
          const RecipeId over = recipe(set);
          return call({constant(maker(5)), over, number(it.position)});
        }
      }
      if (v->type != &PyTupleIter_Type && !interpreter.has_stopped()) refuse(v, "iterates over something that cannot be made again, and its type shows");
      return call({constant(builtin_iter()), sequence(Recipe::Kind::tuple, rest_of(it.parts, it.position))});
    case Iterator::What::real_sequence: {
      PyObject* rest = PySequence_GetSlice(it.base->real, static_cast<Py_ssize_t>(it.position), static_cast<Py_ssize_t>(it.size));
      if (!rest) { PyErr_Clear(); refuse(v, "cannot be sliced"); }
      values.keep(rest);
      return call({constant(builtin_iter()), constant(rest)});
    }
    case Iterator::What::enumerate: return call({constant(reinterpret_cast<PyObject*>(known().enumerate)), recipe(it.base), constant(it.counter)});
    case Iterator::What::zip: case Iterator::What::map: case Iterator::What::filter: {
      std::vector<RecipeId> parts{constant(reinterpret_cast<PyObject*>(v->type))};
      if (it.what != Iterator::What::zip) parts.push_back(recipe(it.base));
      for (Value* p : it.parts) parts.push_back(recipe(p));
      if (!it.is_strict) return call(std::move(parts));
      parts.push_back(constant(Py_True));
      return call(std::move(parts), values.keep(Py_BuildValue("(s)", "strict")));
    }
    case Iterator::What::mapping: {
      // The real dictionary must have, when the iterator is made, the keys that the loop began with; a key that was taken out and put back is
      // stored behind the others, where a loop in CPython meets it again.
      Value* dict = it.base;
      if (!dict->real && asks_keys(dict)) refuse(v, "iterates over a dict whose keys define __hash__");
      const std::vector<PyObject*> now = mappings.keys_of(dict);
      bool same = body<Mapping>(dict).changes == it.changes && now.size() == it.parts.size() && it.size == it.parts.size();
      for (size_t i = 0; same && i < now.size(); ++i) {
        Value* key = mappings.value_of_key(now[i]);   // not by its hash, which may be the class's own
        Value* met = it.parts[it.is_backward ? now.size() - 1 - i : i];
        PyObject* plain = key == met ? nullptr : values.as_constant(key);
        same = key == met || (plain && plain == values.as_constant(met));
      }
      if (same && dict->real && dict->is_changed) {
        PyObject *key = nullptr, *item = nullptr;
        Py_ssize_t position = 0;
        size_t n = 0;
        while (same && PyDict_Next(dict->real, &position, &key, &item)) { same = n < now.size() && PyObject_RichCompareBool(key, now[n], Py_EQ) == 1; ++n; }
        same = same && n == now.size();
      }
      if (!same) refuse(v, "iterates over a dict whose keys have changed");
      if (!PyType_IsSubtype(dict->type, &PyDict_Type)) refuse(v, "iterates over something that is not a dict");
      static PyObject* const names[] = {PyUnicode_InternFromString("keys"), PyUnicode_InternFromString("values"), PyUnicode_InternFromString("items")};
      const RecipeId over = recipe(dict);
      return call({constant(maker(2)), over, constant(names[static_cast<int>(it.shows)]), number(it.position), constant(it.is_backward ? Py_True : Py_False)});
    }
    case Iterator::What::callable: {
      const RecipeId over = recipe(it.base);
      return call({constant(maker(3)), over, number(it.position)});
    }
    default: refuse(v, "is an iterator of a kind that cannot be created anew");
  }
}

RecipeId PlanBuilder::generator(Value* v) {
  if (v->type == &PyCoro_Type) { interpreter.end_earlier(body<Generator>(v).made_at); refuse(v, "is a coroutine"); }
  Generator& g = body<Generator>(v);
  Frame* f = g.frame;
  Function& fn = values.function(f->function);
  const RecipeId globals = globals_of(v, fn);
  interpreter.end_earlier(g.made_at);   // should it be refused
  if (!may_stand_in_ && values.stands_for_c(f->function)) refuse_stand_in(v);
  const frames::OriginalCode made_of = frames::original_code(fn.code);   // of code that was made: what follows is made of the original
  const bytecode::Code* code = f->code;
  std::shared_ptr<const bytecode::Code> decoded;
  if (made_of.code != fn.code) {
    auto d = bytecode::decode_code(made_of.code);
    if (!d.ok() || static_cast<int>(f->pc) < made_of.prologue) refuse(v, "has not started again after a break");
    decoded = *d;
    code = decoded.get();
  }
  if (g.is_running) refuse(v, "is a generator that is running");
  const bool is_started = g.is_started && !g.is_done;
  const auto live = code->live_before(static_cast<int>(f->pc) - made_of.prologue);
  bytecode::FrameShape shape;
  std::vector<RecipeId> slots, stack;
  const RecipeId none = constant(missing());
  for (int i = 0; i < code->slot_count(); ++i) {
    Value* x = f->locals[static_cast<size_t>(i)];
    const bool is_bound = x && !g.is_done && (live[static_cast<size_t>(i)] || code->slot_kind(i) == bytecode::SlotKind::free);
    shape.bound.push_back(is_bound);
    slots.push_back(is_bound ? recipe(x) : none);
  }
  if (is_started)
    for (Value* x : f->stack) {
      shape.stack_null.push_back(x->kind == Kind::null);
      stack.push_back(x->kind == Kind::null ? none : recipe(x));
    }
  int index = static_cast<int>(f->pc) - made_of.prologue;
  if (g.is_done)   // any generator that has ended is like any other
    for (index = 0; index < static_cast<int>(code->instructions().size()) && (index == 0 || code->instructions()[static_cast<size_t>(index) - 1].op != bytecode::Op::RETURN_GENERATOR);) ++index;
  auto made = bytecode::make_generator_code(*code, index, shape, is_started);
  if (!made.ok()) refuse(v, "cannot continue outside of capture");
  interpreter.end_earlier({});
  g.is_kept = true;
  auto tuple = [&](std::vector<RecipeId> parts) {
    Recipe r;
    r.kind = Recipe::Kind::tuple;
    r.parts = std::move(parts);
    return plan_.add(std::move(r));
  };
  const RecipeId slot_tuple = tuple(std::move(slots)), stack_tuple = tuple(std::move(stack));
  return call({constant(maker(4)), constant(made->get()), constant(reinterpret_cast<PyObject*>(made_of.code)), globals,
               constant(g.is_done ? Py_None : is_started ? Py_True : Py_False), slot_tuple, stack_tuple});
}

frames::OpenFrame PlanBuilder::open_frame(Frame* f, Frame* callee) {
  const bool is_outermost = f == frame_stack.outermost();
  frames::OpenFrame open;
  Function& fn = values.function(f->function);
  open.instruction = static_cast<int32_t>(f->pc);
  if (!is_outermost) {
    if (fn.code != view.code) open.code = ObjectRef::borrow(reinterpret_cast<PyObject*>(fn.code));
    globals_of(f->function, fn);
    if (fn.globals_real != view.function->func_globals) open.globals = ObjectRef::borrow(fn.globals_real);
    open.is_hidden = values.stands_for_c(f->function);
  }
  const bytecode::Instruction& in = f->code->instructions()[f->pc];
  const auto use = bytecode::stack_use(in);
  auto cannot = [&](const std::string& what) { throw frames::Skip{{.id = "cannot-be-resumed", .what = f->code->qualified_name() + " cannot continue after the end of the graph: " + what, .stack = frame_stack.user_stack()}}; };
  if (!use && !callee) cannot(std::string(bytecode::op_name(in.op)) + " cannot run on its own");
  if (!callee && static_cast<size_t>(use->popped) > f->stack.size()) throw std::runtime_error("the stack is shorter than what an instruction takes");
  const auto live = f->code->live_before(open.instruction);
  for (int i = 0; i < f->code->slot_count(); ++i) {
    Value* v = f->locals[static_cast<size_t>(i)];
    // Of the outermost frame the function is there, and with it its closure.
    const bool is_free = f->code->slot_kind(i) == bytecode::SlotKind::free;
    const bool lingers = v && !is_free && ((v->real && v->source && frames::acts_when_freed(v->real)) || (v->kind == Kind::object && !v->real && v->type->tp_finalize));
    open.locals.push_back(!v || (is_free && (is_outermost || f->code->slot_name(i) == ".stack")) || (!is_free && !live[static_cast<size_t>(i)] && !lingers) ? kNull : recipe(v));
  }
  if ((f->code->object()->co_flags & CO_GENERATOR) && in.handler >= 0) cannot("it is a generator inside a block, whose handlers may yield");
  // While a frame inside runs, the operands of a call are still there, those of most other instructions are gone.
  const bool of_generator = callee && !callee->ending && (callee->code->object()->co_flags & CO_GENERATOR);
  if (callee && !bytecode::answer_use(in, open.instruction, of_generator)) cannot(std::string(bytecode::op_name(in.op)) + " does more behind what it calls");
  size_t count = f->stack.size() - (callee ? static_cast<size_t>(bytecode::operands_while_calling(in, of_generator)) : 0);
  if (const auto [original, prologue, stands_for] = frames::original_code(fn.code); callee && open.instruction < prologue && stands_for >= 0) {
    auto decoded = bytecode::decode_code(original);
    if (!decoded.ok()) throw std::runtime_error(decoded.error().text());
    const auto use_there = bytecode::answer_use((*decoded)->instructions()[static_cast<size_t>(stands_for)], stands_for, false);
    if (use_there && use_there->with_null && !bytecode::kNullOnTop && count) --count;   // the NULL that the instruction pushes: it comes again
  }
  // Should the instruction raise, the rest of the function runs in the stub, while the plan still holds what it made: a generator would end too late.
  if (in.handler >= 0)
    for (size_t i = 0; i < count; ++i)
      if (Value* v = f->stack[i]; interpreter.has_open_blocks(v)) {
        if (v->kind == Kind::generator && !v->real) interpreter.end_earlier(body<Generator>(v).made_at);
        cannot("a loop inside which it stands goes over a generator with blocks of its own, and an exception is handled there");
      }
  may_stand_in_ = true;
  for (size_t i = 0; i < count; ++i) {
    const size_t null_at = bytecode::kNullOnTop ? i + 1 : i, method_at = bytecode::kNullOnTop ? i : i + 1;
    if (i + 1 < count && f->stack[i]->kind != Kind::null && Library::is_array_value(f->stack[i + 1]) && values.kind(f->stack[i]) == Kind::function && values.stands_for_c(f->stack[i])) {   // a method of an array: numpy's own
      const RecipeId bound = recipe(values.make_method(f->stack[i], f->stack[i + 1]));
      open.stack.push_back(bytecode::kNullOnTop ? bound : kNull);
      open.stack.push_back(bytecode::kNullOnTop ? kNull : bound);
      ++i;
    } else if (i + 1 < count && f->stack[null_at]->kind == Kind::null && f->stack[null_at]->type && f->stack[method_at]->kind == Kind::method) {   // apart, as CPython has them
      const Method& m = body<Method>(f->stack[method_at]);
      ++i;
      open.stack.push_back(recipe(m.function));
      open.stack.push_back(recipe(m.self));
    } else open.stack.push_back(f->stack[i]->kind == Kind::null ? kNull : recipe(f->stack[i]));
  }
  may_stand_in_ = false;
  return open;
}

frames::Break PlanBuilder::break_here(frames::BreakReason reason) {
  frames::Break b;
  b.reason = std::move(reason);
  std::vector<Frame*> chain;
  for (Frame* f = interpreter.stopped_in(); f; f = f == frame_stack.outermost() ? nullptr : f->caller) chain.insert(chain.begin(), f);
  if (frame_stack.open_frames(interpreter.stopped_in()).size() != chain.size())
    throw frames::Skip{{.id = "trace-differs", .what = "the code ran differently when it was captured a second time", .stack = frame_stack.user_stack()}};
  std::vector<size_t> at;   // by frame of the chain
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i]->ending) b.frames.push_back(ending_frame(*chain[i]->ending));
    b.frames.push_back(open_frame(chain[i], i + 1 < chain.size() ? chain[i + 1] : nullptr));
    at.push_back(b.frames.size() - 1);
  }
  // A generator that is handed on for another reason ends with the frame whose variable has it, not with its last use.
  for (size_t i = 0; i < chain.size(); ++i)
    for (int s = 0; s < chain[i]->code->slot_count(); ++s) {
      Value* v = chain[i]->locals[static_cast<size_t>(s)];
      RecipeId& local = b.frames[at[i]].locals[static_cast<size_t>(s)];
      if (v && v->kind == Kind::generator && !v->real && local == kNull && chain[i]->code->slot_kind(s) != bytecode::SlotKind::free && made_.contains(v)) local = made_.at(v);
    }
  return b;
}

namespace {

/// The call of `_rest()`, which every ending has once.
int place_of_rest(const bytecode::Code& code) {
  bool asked = false;
  for (size_t i = 0; i < code.instructions().size(); ++i) {
    const bytecode::Instruction& in = code.instructions()[i];
    if (in.op == bytecode::Op::LOAD_GLOBAL) asked = PyUnicode_CompareWithASCIIString(code.name(in.arg), "_rest") == 0;
    if (in.op == bytecode::Op::CALL && asked) return static_cast<int>(i);
  }
  throw std::runtime_error(code.qualified_name() + " is no ending: it does not call _rest()");
}

}  // namespace

frames::OpenFrame PlanBuilder::ending_frame(const Ending& ending) {
  PyObject* function = ending_named(ending.function);
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  auto decoded = bytecode::decode_code(code);
  if (!decoded.ok()) throw std::runtime_error(decoded.error().text());
  frames::OpenFrame open;
  open.is_hidden = true;
  open.code = frames::ObjectRef::borrow(reinterpret_cast<PyObject*>(code));
  open.globals = frames::ObjectRef::borrow(ending_globals());
  open.instruction = place_of_rest(**decoded);
  const auto live = (*decoded)->live_before(open.instruction);
  for (int i = 0; i < (*decoded)->slot_count(); ++i) {
    const auto slot = static_cast<size_t>(i);
    open.locals.push_back(slot < ending.values.size() && live[slot] ? recipe(ending.values[slot]) : frames::kNull);
  }
  return open;
}

}  // namespace cutaway::capture
