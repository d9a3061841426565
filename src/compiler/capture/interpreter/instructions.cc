// The instruction loop. One handler serves all versions of CPython: bytecode::Code has normalised the arguments.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "compiler/capture/trace.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/frames/session.h"

namespace cutaway::capture {

using bytecode::Instruction;
using bytecode::kNullOnTop;
using bytecode::Op;

namespace {
// What ascii() makes of the text that repr() gave.
PyObject* ascii_of(PyObject* words) {
  PyObject* bytes = PyUnicode_AsEncodedString(words, "ascii", "backslashreplace");
  PyObject* text = bytes ? PyUnicode_DecodeASCII(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), nullptr) : nullptr;
  Py_XDECREF(bytes);
  return text;
}

/// For tests of how our own errors are told: docs/env_vars.md, CUTAWAY_PLANT_CAPTURE_FAULT.
void fail_if_planted(Op op) {
  const std::string& planted = frames::settings().planted_fault;
  if (!planted.empty() && planted == bytecode::op_name(op)) throw std::logic_error("a fault was planted in the handler of " + planted);
}
void push_callable(std::vector<Value*>& stack, Value* callable, Value* null) {
  stack.push_back(kNullOnTop ? callable : null);
  stack.push_back(kNullOnTop ? null : callable);
}
constexpr uint64_t kMostSteps = 20'000'000;   // a loop that counts to a billion is not for capture
}

void Trace::stop(std::string id, std::string what, std::string hint) { throw Break{std::move(id), std::move(what), std::move(hint)}; }

Value* Trace::run_outermost() {
  Value* f = wrap(reinterpret_cast<PyObject*>(view.function), sources().function());
  f->kind = Kind::function;
  f->type = &PyFunction_Type;
  Function& fn = give_body(f, function_bodies_);
  fn.code = view.code;
  fn.decoded = &outer_code_;
  fn.globals_real = view.function->func_globals;
  fn.builtins_real = view.function->func_builtins;
  fn.name = view.function->func_name;
  fn.qualname = view.function->func_qualname;
  if (view.function->func_closure)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(view.function->func_closure); ++i) {
      const int slot = view.code->co_nlocalsplus - view.code->co_nfreevars + static_cast<int>(i);
      fn.closure.push_back(wrap(PyTuple_GET_ITEM(view.function->func_closure, i), sources().closure(static_cast<int>(i), outer_code_.slot_name(slot))));
    }
  label_stack(f, nullptr);
  // Defaults have been bound already; whoever calls the function again from inside finds them by the function's own source.
  if (view.function->func_defaults) fn.defaults = wrap(view.function->func_defaults, sources().of(f->source, SourceKind::function_defaults));
  if (view.function->func_kwdefaults) fn.keyword_defaults = wrap(view.function->func_kwdefaults, sources().of(f->source, SourceKind::function_kwdefaults));
  Frame* frame = make_frame(f);
  for (int i = 0; i < view.slot_count; ++i)
    if (PyObject* o = view.slots[i]) frame->locals[static_cast<size_t>(i)] = wrap(o, sources().local(i, outer_code_.slot_name(i)));
  outermost_ = frame;
  try {
    return run(frame);
  } catch (const Stopped&) {
    return nullptr;
  }
}

std::vector<frames::BreakReason::Frame> Trace::user_stack() {
  std::vector<frames::BreakReason::Frame> all;
  for (Frame* f = current_; f; f = f->caller) {
    if (f->caller && stands_for_c(f->function)) continue;
    int line = 0;
    for (int i = static_cast<int>(f->pc); i >= 0 && !line; --i) line = f->code->instructions()[static_cast<size_t>(i)].line;
    all.insert(all.begin(), {f->code->file(), line, f->code->qualified_name(), {}});
  }
  return all;
}

namespace {
// Resume functions of a function have its name and place.
bool is_same_function(const Frame* a, const Frame* b) {
  return a->code->object()->co_firstlineno == b->code->object()->co_firstlineno && a->code->qualified_name() == b->code->qualified_name() && a->code->file() == b->code->file();
}
// A function that calls itself again and again would need other resume functions at each depth, each captured on its own: from the fifth call on Python makes the call.
bool is_deep_recursion(const std::vector<Frame*>& chain, size_t n) {
  constexpr long kMost = 4;
  return std::count_if(chain.begin(), chain.begin() + static_cast<long>(n), [&](const Frame* f) { return is_same_function(f, chain[n]); }) >= kMost;
}
}  // namespace

std::vector<Frame*> Trace::open_frames(Frame* innermost) const {
  std::vector<Frame*> chain;
  for (Frame* f = innermost; f; f = f->caller) chain.insert(chain.begin(), f);
  size_t n = 1;
  while (n < chain.size() && chain[n]->is_direct && (chain[n]->code->object()->co_flags & CO_OPTIMIZED) && !chain[n]->code->looks_at_its_frame() &&
         (body<Function>(chain[n]->function).globals_real == ending_globals() || frames::may_go_on(chain[n]->code->object())) && !is_deep_recursion(chain, n)) ++n;
  chain.resize(std::min(n, chain.size()));
  return chain;
}

// !s, !r and !a of a format: 1, 2, 3.
Value* Trace::convert(Value* v, int conversion) {
  if (conversion == 1) return str(v);
  if (conversion == 2) return repr(v);
  if (conversion != 3) return v;
  v = repr(v);
  return v ? constant_steal(ascii_of(v->real)) : nullptr;
}

#define POP() (top = stack.back(), stack.pop_back(), top)
#define PUSH(v)                   \
  do {                            \
    Value* pushed = (v);          \
    if (!pushed) goto exception;  \
    stack.push_back(pushed);      \
  } while (0)
#define MUST(ok)          \
  do {                     \
    if (!(ok)) goto exception; \
  } while (0)

Value* Trace::run(Frame* frame) {
  const auto& instructions = frame->code->instructions();
  auto& stack = frame->stack;
  auto& locals = frame->locals;
  Function& fn = body<Function>(frame->function);
  frame->yielded = nullptr;
  Frame* const caller = current_;
  if (frame != outermost_) frame->caller = caller;
  frame->depth = caller ? caller->depth + 1 : 0;
  if (frame->depth > 400) throw frames::Skip{{.id = "deep-recursion", .what = "calls nest deeper than 400 frames", .stack = user_stack()}};
  struct Restore { Trace* t; Frame* f; ~Restore() { if (!std::uncaught_exceptions()) t->current_ = f; } } const restore{this, caller};
  current_ = frame;
  Value* top = nullptr;

  for (;;) {
    const Instruction& in = instructions[frame->pc];
    if (stop_ && steps_ == stop_->step) {
      stopped_ = true;
      stopped_in_ = frame;
      stopped_handling_ = handled() != nullptr;
      throw Stopped{};   // frames and generators stay as they are
    }
    frame->step = steps_;
    if (frame == outermost_ && !stop_ && !options.break_at.empty())
      if (auto said = options.break_at.find(static_cast<int32_t>(frame->pc)); said != options.break_at.end()) stop("other-rank", said->second, "");
    if (tells_instructions_)
      debug::say(options.sink, "instructions", debug::Level::debug, std::string(static_cast<size_t>(frame->depth) * 2, ' ') + frame->code->qualified_name() + " " + frame->code->text(static_cast<int>(frame->pc)));
    if (++steps_ > kMostSteps) throw frames::Skip{{.id = "too-long", .what = "capture has run more than 20 million instructions", .stack = user_stack()}};
    uint32_t next = frame->pc + 1;
    switch (in.op) {
      case Op::NOP: case Op::RESUME: break;
      case Op::POP_TOP: case Op::END_FOR: drop(stack.back()); stack.pop_back(); break;
      case Op::PUSH_NULL: stack.push_back(null_); break;
      case Op::COPY: stack.push_back(stack[stack.size() - static_cast<size_t>(in.arg)]); break;
      case Op::SWAP: std::swap(stack.back(), stack[stack.size() - static_cast<size_t>(in.arg)]); break;
      case Op::LOAD_CONST: {
        PyObject* c = frame->code->constant(in.arg);
        stack.push_back(c == Py_None ? none_ : c == Py_True ? true_ : c == Py_False ? false_ : constant(c));
        break;
      }
      case Op::LOAD_FAST: case Op::LOAD_FAST_CHECK:
        if (!locals[static_cast<size_t>(in.arg)]) {
          raise(PyExc_UnboundLocalError, "cannot access local variable '" + frame->code->slot_name(in.arg) + "' where it is not associated with a value");
          goto exception;
        }
        stack.push_back(locals[static_cast<size_t>(in.arg)]);
        break;
      case Op::LOAD_FAST_AND_CLEAR:
        stack.push_back(locals[static_cast<size_t>(in.arg)] ? locals[static_cast<size_t>(in.arg)] : null_);
        locals[static_cast<size_t>(in.arg)] = nullptr;
        break;
      case Op::STORE_FAST: top = POP(); locals[static_cast<size_t>(in.arg)] = top->kind == Kind::null ? nullptr : top; break;
      case Op::DELETE_FAST:
        if (!locals[static_cast<size_t>(in.arg)]) {
          raise(PyExc_UnboundLocalError, "cannot access local variable '" + frame->code->slot_name(in.arg) + "' where it is not associated with a value");
          goto exception;
        }
        locals[static_cast<size_t>(in.arg)] = nullptr;
        break;
      case Op::LOAD_GLOBAL: {
        if (in.flag && !kNullOnTop) stack.push_back(null_);
        PUSH(load_global(fn, frame->code->name(in.arg)));
        if (in.flag && kNullOnTop) stack.push_back(null_);
        break;
      }
      case Op::LOAD_NAME: PUSH(load_name(frame, frame->names, frame->code->name(in.arg))); break;
      case Op::STORE_NAME: top = POP(); MUST(store_name(frame, frame->code->name(in.arg), top)); break;
      case Op::DELETE_NAME: MUST(store_name(frame, frame->code->name(in.arg), nullptr)); break;
      case Op::LOAD_LOCALS: PUSH(frame->names ? frame->names : raise(PyExc_SystemError, "no locals")); break;
      case Op::LOAD_FROM_DICT_OR_GLOBALS: top = POP(); PUSH(load_name(frame, top, frame->code->name(in.arg))); break;
      case Op::LOAD_CLASSDEREF: case Op::LOAD_FROM_DICT_OR_DEREF: PUSH(load_class_cell(frame, in.op == Op::LOAD_CLASSDEREF ? frame->names : POP(), in.arg)); break;
      case Op::SETUP_ANNOTATIONS: MUST(setup_annotations(frame)); break;
      case Op::STORE_GLOBAL: top = POP(); dict_set(globals_of(fn), frame->code->name(in.arg), top); break;
      case Op::DELETE_GLOBAL:
        if (!dict_delete(globals_of(fn), frame->code->name(in.arg))) { raise(PyExc_NameError, std::string("name '") + PyUnicode_AsUTF8(frame->code->name(in.arg)) + "' is not defined"); goto exception; }
        break;
      case Op::LOAD_ATTR: top = POP(); begin_tail(); PUSH(getattr(top, frame->code->name(in.arg))); break;
      case Op::LOAD_METHOD: {
        top = POP();
        Value* self = nullptr;
        begin_tail();
        Value* m = load_method(top, frame->code->name(in.arg), &self);
        if (!m) goto exception;
        if (self) { stack.push_back(m); stack.push_back(self); }
        // A method of C: CPython keeps it and its object apart, and names its class, not the object's, in errors. The NULL says so (open_frames.cc).
        else push_callable(stack, m, m->kind == Kind::method && m->type == &PyCFunction_Type ? new_value(Kind::null, m->type) : null_);
        break;
      }
      case Op::LOAD_SUPER_ATTR: {
        Value* self = POP();
        Value* klass = POP();
        Value* callee = POP();   // what the name super stands for
        Value* super = nullptr;
        if (callee->real != reinterpret_cast<PyObject*>(&PySuper_Type) || (in.flag & 2)) {
          if (!(super = call(callee, in.flag & 2 ? Args{klass, self} : Args{}))) goto exception;
        } else {
          if (!(super = checked_super(klass, self))) goto exception;
        }
        if (in.flag & 1) {
          Value* bound = nullptr;
          begin_tail();
          Value* m = load_method(super, frame->code->name(in.arg), &bound);
          if (!m) goto exception;
          if (bound) { stack.push_back(m); stack.push_back(bound); }
          else push_callable(stack, m, null_);
        } else {
          begin_tail();
          PUSH(getattr(super, frame->code->name(in.arg)));
        }
        break;
      }
      case Op::STORE_ATTR: { Value* owner = POP(); Value* v = POP(); begin_tail(); MUST(setattr(owner, frame->code->name(in.arg), v)); break; }
      case Op::DELETE_ATTR: top = POP(); begin_tail(); MUST(delattr(top, frame->code->name(in.arg))); break;
      case Op::LOAD_CLOSURE: stack.push_back(locals[static_cast<size_t>(in.arg)]); break;
      case Op::LOAD_DEREF: {
        Value* cell = locals[static_cast<size_t>(in.arg)];
        Value* v = cell ? cell_contents(cell) : nullptr;
        if (!v) { raise_empty_cell(frame, in.arg); goto exception; }
        // What a break left on the stack of the program: not all of it is looked at.
        if (v->kind == Kind::lazy && frame->code->slot_name(in.arg) == ".stack") force_items(v);
        stack.push_back(v);
        break;
      }
      case Op::STORE_DEREF: top = POP(); set_cell(locals[static_cast<size_t>(in.arg)], top); break;
      case Op::DELETE_DEREF:
        if (frame->code->slot_name(in.arg) == ".stack") break;   // of a function that goes on behind a break: nobody else has that cell
        if (Value* cell = locals[static_cast<size_t>(in.arg)]; !cell || !cell_contents(cell)) { raise_empty_cell(frame, in.arg); goto exception; }
        set_cell(locals[static_cast<size_t>(in.arg)], nullptr);
        break;
      case Op::MAKE_CELL: locals[static_cast<size_t>(in.arg)] = make_cell(locals[static_cast<size_t>(in.arg)]); break;
      case Op::COPY_FREE_VARS: {
        Function& f = function(frame->function);
        const size_t first = locals.size() - static_cast<size_t>(in.arg);
        for (size_t i = 0; i < static_cast<size_t>(in.arg); ++i) locals[first + i] = f.closure.at(i);
        break;
      }
      case Op::LOAD_ASSERTION_ERROR: stack.push_back(wrap_constant_object(PyExc_AssertionError)); break;
      case Op::IMPORT_NAME: { Value* from = POP(); Value* level = POP(); PUSH(import_name(frame, frame->code->name(in.arg), from, level)); break; }
      case Op::IMPORT_FROM: {
        top = getattr(stack.back(), frame->code->name(in.arg));
        if (!top && raised_is(PyExc_AttributeError)) { take_raised(); stop("import", std::string("the name ") + PyUnicode_AsUTF8(frame->code->name(in.arg)) + " is imported, which the module does not define"); }
        PUSH(top);
        break;
      }
      case Op::BINARY_OP: { Value* b = POP(); Value* a = POP(); begin_tail(); PUSH(binary(in.arg, a, b)); break; }
      case Op::COMPARE_OP: { Value* b = POP(); Value* a = POP(); begin_tail(); PUSH(compare(in.arg, a, b)); break; }
      case Op::IS_OP: { Value* b = POP(); Value* a = POP(); stack.push_back(boolean(same_identity(a, b) != (in.arg == 1))); break; }
      case Op::CONTAINS_OP: {
        Value* container = POP();
        Value* x = POP();
        begin_tail();
        const int r = contains(container, x);
        MUST(r >= 0);
        stack.push_back(boolean((r == 1) != (in.arg == 1)));
        break;
      }
      case Op::UNARY_POSITIVE: top = POP(); begin_tail(); PUSH(unary('+', top)); break;
      case Op::UNARY_NEGATIVE: top = POP(); begin_tail(); PUSH(unary('-', top)); break;
      case Op::UNARY_INVERT: top = POP(); begin_tail(); PUSH(unary('~', top)); break;
      case Op::TO_BOOL: { top = POP(); begin_tail(); const int t = truth(top); MUST(t >= 0); stack.push_back(boolean(t != 0)); break; }
      case Op::UNARY_NOT: { top = POP(); begin_tail(); const int t = truth(top); MUST(t >= 0); stack.push_back(boolean(t == 0)); break; }
      case Op::BINARY_SUBSCR: { Value* k = POP(); Value* v = POP(); begin_tail(); PUSH(subscript(v, k)); break; }
      case Op::STORE_SUBSCR: { Value* k = POP(); Value* v = POP(); Value* x = POP(); begin_tail(); MUST(store_subscript(v, k, x)); break; }
      case Op::DELETE_SUBSCR: { Value* k = POP(); Value* v = POP(); begin_tail(); MUST(delete_subscript(v, k)); break; }
      case Op::BINARY_SLICE: { Value* stop_at = POP(); Value* start = POP(); Value* v = POP(); begin_tail(); PUSH(subscript(v, make_slice(start, stop_at, none_))); break; }
      case Op::STORE_SLICE: { Value* stop_at = POP(); Value* start = POP(); Value* v = POP(); Value* x = POP(); begin_tail(); MUST(store_subscript(v, make_slice(start, stop_at, none_), x)); break; }
      case Op::BUILD_TUPLE: case Op::BUILD_LIST: {
        std::vector<Value*> parts(stack.end() - in.arg, stack.end());
        stack.resize(stack.size() - static_cast<size_t>(in.arg));
        stack.push_back(in.op == Op::BUILD_TUPLE ? make_tuple(std::move(parts)) : make_list(std::move(parts)));
        break;
      }
      case Op::BUILD_SET: {
        Value* s = make_set();
        for (size_t i = stack.size() - static_cast<size_t>(in.arg); i < stack.size(); ++i) {
          PyObject* k = key_of(stack[i]);
          MUST(k);
          set_add(s, k);
        }
        stack.resize(stack.size() - static_cast<size_t>(in.arg));
        stack.push_back(s);
        break;
      }
      case Op::BUILD_MAP: {
        if (in.arg) fail_if_planted(in.op);   // a dict that the program writes; calls with ** make empty ones
        Value* d = make_dict();
        for (size_t i = stack.size() - 2 * static_cast<size_t>(in.arg); i < stack.size(); i += 2) {
          PyObject* k = key_of(stack[i]);
          MUST(k);
          dict_set(d, k, stack[i + 1]);
        }
        stack.resize(stack.size() - 2 * static_cast<size_t>(in.arg));
        stack.push_back(d);
        break;
      }
      case Op::BUILD_CONST_KEY_MAP: {
        PyObject* keys = as_constant(POP());
        Value* d = make_dict();
        const size_t first = stack.size() - static_cast<size_t>(in.arg);
        for (size_t i = 0; i < static_cast<size_t>(in.arg); ++i) dict_set(d, PyTuple_GET_ITEM(keys, static_cast<Py_ssize_t>(i)), stack[first + i]);
        stack.resize(first);
        stack.push_back(d);
        break;
      }
      case Op::BUILD_SLICE: {
        Value* step = in.arg == 3 ? POP() : none_;
        Value* stop_at = POP();
        Value* start = POP();
        stack.push_back(make_slice(start, stop_at, step));
        break;
      }
      case Op::BUILD_STRING: {
        PyObject* joined = PyUnicode_FromString("");
        const size_t first = stack.size() - static_cast<size_t>(in.arg);
        for (size_t i = first; i < stack.size(); ++i) PyUnicode_Append(&joined, as_constant(stack[i]));
        stack.resize(first);
        PUSH(constant_steal(joined));
        break;
      }
      case Op::FORMAT_VALUE: {
        Value* spec = (in.arg & 4) ? POP() : nullptr;
        Value* v = convert(POP(), in.arg & 3);
        MUST(v);
        PUSH(format(v, spec));
        break;
      }
      case Op::CONVERT_VALUE: top = POP(); PUSH(convert(top, in.arg)); break;
      // In a frame that goes on after a break the container may be one from outside.
      case Op::LIST_APPEND: { top = POP(); Value* l = force(stack[stack.size() - static_cast<size_t>(in.arg)]); items(l).push_back(top); mark_changed(l); break; }
      case Op::SET_ADD: { top = POP(); PyObject* k = key_of(top); MUST(k); set_add(force(stack[stack.size() - static_cast<size_t>(in.arg)]), k); break; }
      case Op::MAP_ADD: {
        Value* v = POP();
        Value* key = POP();
        PyObject* k = key_of(key);
        MUST(k);
        dict_set(force(stack[stack.size() - static_cast<size_t>(in.arg)]), k, v);
        break;
      }
      case Op::LIST_EXTEND: {
        top = POP();
        if (!extend(force(stack[stack.size() - static_cast<size_t>(in.arg)]), top)) { explain_not_iterable(top, nullptr); goto exception; }
        break;
      }
      case Op::SET_UPDATE: {
        top = POP();
        Value* into = force(stack[stack.size() - static_cast<size_t>(in.arg)]);
        bool is_known = true;   // as set.update does it: a set of constants is copied as it lies, which shows in the order
        MUST(call_set_method("update", into, {top}, &is_known));
        break;
      }
      case Op::DICT_UPDATE: case Op::DICT_MERGE: {
        top = POP();
        Value* into = force(stack[stack.size() - static_cast<size_t>(in.arg)]);
        Value* callable = in.op == Op::DICT_MERGE ? stack[stack.size() - static_cast<size_t>(in.arg) - (kNullOnTop ? 3 : 2)] : nullptr;
        if (explain_not_mapping(top, callable)) goto exception;
        MUST(dict_update(into, top, callable));
        break;
      }
      case Op::LIST_TO_TUPLE: top = force(POP()); stack.push_back(make_tuple(items(top))); break;
      case Op::UNPACK_SEQUENCE: {
        top = POP();
        std::vector<Value*> parts;
        MUST(unpack_for_targets(top, &parts, static_cast<size_t>(in.arg) + 1));
        if (parts.size() != static_cast<size_t>(in.arg)) {
          if (parts.size() < static_cast<size_t>(in.arg))
            raise(PyExc_ValueError, "not enough values to unpack (expected " + std::to_string(in.arg) + ", got " + std::to_string(parts.size()) + ")");
          else
            raise(PyExc_ValueError, "too many values to unpack (expected " + std::to_string(in.arg) + ")");
          goto exception;
        }
        for (size_t i = parts.size(); i-- > 0;) stack.push_back(parts[i]);
        break;
      }
      case Op::UNPACK_EX: {
        top = POP();
        std::vector<Value*> parts;
        MUST(unpack_for_targets(top, &parts));
        const size_t before = static_cast<size_t>(in.arg & 0xff), after = static_cast<size_t>(in.arg >> 8);
        if (parts.size() < before + after) {
          raise(PyExc_ValueError, "not enough values to unpack (expected at least " + std::to_string(before + after) + ", got " + std::to_string(parts.size()) + ")");
          goto exception;
        }
        for (size_t i = 0; i < after; ++i) stack.push_back(parts[parts.size() - 1 - i]);
        stack.push_back(make_list({parts.begin() + static_cast<long>(before), parts.end() - static_cast<long>(after)}));
        for (size_t i = before; i-- > 0;) stack.push_back(parts[i]);
        break;
      }
      case Op::GET_LEN: PUSH(length(stack.back())); break;
      case Op::MATCH_SEQUENCE: {
        force(stack.back());
        stack.push_back(boolean(PyType_HasFeature(stack.back()->type, Py_TPFLAGS_SEQUENCE)));
        break;
      }
      case Op::MATCH_MAPPING: force(stack.back()); stack.push_back(boolean(PyType_HasFeature(stack.back()->type, Py_TPFLAGS_MAPPING))); break;
      case Op::MATCH_KEYS: PUSH(match_keys(stack[stack.size() - 2], stack.back())); break;
      case Op::MATCH_CLASS: { Value* keywords = POP(); Value* klass = POP(); Value* subject = POP(); PUSH(match_class(subject, klass, static_cast<size_t>(in.arg), keywords)); break; }
      case Op::KW_NAMES: frame->keyword_names = frame->code->constant(in.arg); break;
      case Op::CALL: case Op::CALL_KW: {
        const size_t end = stack.size() - (in.op == Op::CALL_KW ? 1 : 0);   // the operands stay until it has returned: a break inside finds the stack as it is
        if (in.op == Op::CALL_KW && !(frame->keyword_names = as_constant(stack.back()))) throw std::runtime_error("the names of keywords are not known");
        const size_t first = end - static_cast<size_t>(in.arg);
        Value* callable = stack[first - 2];
        size_t begin = first - 1;
        if (kNullOnTop ? stack[first - 1]->kind == Kind::null : callable->kind == Kind::null) {
          if (!kNullOnTop) callable = stack[first - 1];
          begin = first;
        }
        size_t positional = end - begin;
        Keyword small[8];
        std::vector<Keyword> large;
        Keyword* keywords = small;
        size_t keyword_count = 0;
        if (frame->keyword_names) {
          keyword_count = static_cast<size_t>(PyTuple_GET_SIZE(frame->keyword_names));
          if (keyword_count > 8) { large.resize(keyword_count); keywords = large.data(); }
          positional -= keyword_count;
          for (size_t i = 0; i < keyword_count; ++i) keywords[i] = {PyTuple_GET_ITEM(frame->keyword_names, static_cast<Py_ssize_t>(i)), stack[begin + positional + i]};
          frame->keyword_names = nullptr;
        }
        begin_tail();
        Value* r = call(callable, Args(stack.data() + begin, positional, keywords, keyword_count));
        MUST(r);
        stack.resize(first - 2);
        stack.push_back(r);
        break;
      }
      case Op::CALL_FUNCTION_EX: {
        const size_t size = stack.size(), taken = (in.arg & 1) ? 4 : 3;   // they stay until it has returned: a break inside finds the stack as it is
        Value* kw = (in.arg & 1) ? stack[size - 1] : nullptr;
        Value* args = stack[size - taken + 2];
        Value* callable = stack[size - taken + (kNullOnTop ? 0 : 1)];
        std::vector<Value*> positional;
        std::vector<Keyword> keywords;
        if (!unpack(args, &positional)) { explain_not_iterable(args, callable); goto exception; }
        if (kw) {
          Value* d = kw;
          if (kind(d) != Kind::dict || is_user_class(d->type)) { d = make_dict(); MUST(dict_update(d, kw, callable)); }
          for (PyObject* k : keys_of(d)) {
            if (!PyUnicode_Check(k)) { raise(PyExc_TypeError, "keywords must be strings"); goto exception; }
            keywords.emplace_back(k, dict_get(d, k));
          }
        }
        begin_tail();
        Value* r = call(callable, Args(positional, keywords));
        MUST(r);
        stack.resize(size - taken);
        stack.push_back(r);
        break;
      }
      case Op::MAKE_FUNCTION: {
        Value* code = POP();
        Value* f = make_function();
        Function& made = body<Function>(f);
        made.code = reinterpret_cast<PyCodeObject*>(as_constant(code));
        made.globals_real = fn.globals_real;
        made.globals = fn.globals;
        made.builtins_real = fn.builtins_real;
        made.name = made.code->co_name;
        made.qualname = made.code->co_qualname;
        if (in.arg & 8) made.closure = items(POP());
        if (in.arg & 4) made.annotations = POP();
        if (in.arg & 2) made.keyword_defaults = POP();
        if (in.arg & 1) made.defaults = POP();
        stack.push_back(f);
        break;
      }
      case Op::SET_FUNCTION_ATTRIBUTE: {   // of the one that MAKE_FUNCTION has just made
        Value* f = POP();
        Function& made = body<Function>(f);
        top = POP();
        if (in.arg == 8) made.closure = items(top);
        else (in.arg == 4 ? made.annotations : in.arg == 2 ? made.keyword_defaults : made.defaults) = top;
        stack.push_back(f);
        break;
      }
      case Op::RETURN_VALUE: top = POP(); return top;
      case Op::RETURN_CONST: return constant(frame->code->constant(in.arg));
      case Op::JUMP: next = static_cast<uint32_t>(in.target); break;
      case Op::POP_JUMP_IF_TRUE: { top = POP(); begin_tail(); const int t = branch(top); MUST(t >= 0); if (t) next = static_cast<uint32_t>(in.target); break; }
      case Op::POP_JUMP_IF_FALSE: { top = POP(); begin_tail(); const int t = branch(top); MUST(t >= 0); if (!t) next = static_cast<uint32_t>(in.target); break; }
      case Op::POP_JUMP_IF_NONE: top = POP(); if (is_constant(top, Py_None)) next = static_cast<uint32_t>(in.target); break;
      case Op::POP_JUMP_IF_NOT_NONE: top = POP(); if (!is_constant(top, Py_None)) next = static_cast<uint32_t>(in.target); break;
      case Op::JUMP_IF_TRUE_OR_POP: { begin_tail(); const int t = branch(stack.back()); MUST(t >= 0); if (t) next = static_cast<uint32_t>(in.target); else stack.pop_back(); break; }
      case Op::JUMP_IF_FALSE_OR_POP: { begin_tail(); const int t = branch(stack.back()); MUST(t >= 0); if (!t) next = static_cast<uint32_t>(in.target); else stack.pop_back(); break; }
      case Op::GET_ITER: top = POP(); begin_tail(); PUSH(iter(top)); break;
      case Op::FOR_ITER: {
        bool exhausted = false;
        begin_tail();
        Value* v = this->next(stack.back(), &exhausted);
        if (exhausted) { stack.pop_back(); next = static_cast<uint32_t>(in.target); break; }
        PUSH(v);
        break;
      }
      case Op::PUSH_EXC_INFO: {
        Value* exc = POP();
        stack.push_back(handled_ ? handled_ : none_);
        stack.push_back(exc);
        handled_ = exc;
        break;
      }
      case Op::POP_EXCEPT: top = POP(); handled_ = top == none_ ? nullptr : top; break;
      case Op::CHECK_EXC_MATCH: { Value* t = POP(); stack.push_back(boolean(matches(stack.back(), t))); break; }
      case Op::RERAISE: {
        Value* exc = POP();
        raise(exc);
        reraised_ = true;
        goto exception;
      }
      case Op::RAISE_VARARGS: {
        Value* cause = in.arg == 2 ? POP() : nullptr;
        if (in.arg == 0) {
          if (!handled()) raise(PyExc_RuntimeError, "No active exception to reraise");
          else { raise(handled()); reraised_ = true; }
          goto exception;
        }
        Value* exc = POP();
        if (kind(exc) == Kind::klass && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(exc->real), reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
          auto* raised_class = reinterpret_cast<PyTypeObject*>(exc->real);
          exc = call(exc, {});
          MUST(exc);
          if (kind(exc) != Kind::object || !PyType_IsSubtype(exc->type, raised_class)) stop("except-clause", "the class of an exception returned something else when it was raised");
        }
        if (kind(exc) != Kind::object || !PyType_IsSubtype(exc->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
          raise(PyExc_TypeError, "exceptions must derive from BaseException");
          goto exception;
        }
        if (cause) {
          if (kind(cause) == Kind::klass && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cause->real), reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
            cause = call(cause, {});
            MUST(cause);
            if (kind(cause) != Kind::object || !PyType_IsSubtype(cause->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) stop("except-clause", "the class of a cause returned something else when it was raised");
          }
          const bool is_exception = kind(cause) == Kind::object && PyType_IsSubtype(cause->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException));
          if (!is_exception && !is_constant(cause, Py_None)) { raise(PyExc_TypeError, "exception causes must derive from BaseException"); goto exception; }
          MUST(setattr(exc, names().__cause__, cause));
          MUST(setattr(exc, names().__suppress_context__, boolean(true)));
        }
        raise(exc);
        goto exception;
      }
      case Op::BEFORE_WITH: {
        top = POP();
        begin_tail();
        MUST(begin_with(frame, top, names().__exit__, names().__enter__, "context manager"));
        break;
      }
      case Op::WITH_EXCEPT_START: {
        Value* exc = stack.back();
        Value* exit = stack[stack.size() - 4];
        Value* r = call(exit, {wrap_constant_object(reinterpret_cast<PyObject*>(exc->type)), exc, traceback_of(exc)});
        PUSH(r);
        break;
      }
      case Op::RETURN_GENERATOR: {
        frame->pc = next;
        if ((fn.code->co_flags & CO_ASYNC_GENERATOR) || (frame == outermost_ && (fn.code->co_flags & CO_COROUTINE)))
          throw frames::Skip{{.id = "coroutine", .what = "an asynchronous function is captured only where the compiled function awaits it", .stack = user_stack()}};
        Value* made = make_generator(frame);
        if (fn.code->co_flags & CO_COROUTINE) made->type = &PyCoro_Type;
        return made;
      }
      case Op::YIELD_VALUE:
        frame->yielded = POP();
        frame->pc = next;
        return frame->yielded;
      case Op::GET_AWAITABLE: top = POP(); PUSH(awaitable(top)); break;
      case Op::BEFORE_ASYNC_WITH: {
        top = POP();
        MUST(begin_with(frame, top, keep(PyUnicode_InternFromString("__aexit__")), keep(PyUnicode_InternFromString("__aenter__")), "asynchronous context manager"));
        break;
      }
      case Op::GET_AITER: {
        top = force(POP());
        Value* own = special(top, keep(PyUnicode_InternFromString("__aiter__")));
        if (!own) { if (!raised_) raise(PyExc_TypeError, std::string("'async for' requires an object with __aiter__ method, got ") + top->type->tp_name); goto exception; }
        PUSH(call(own, {}));
        break;
      }
      case Op::GET_ANEXT: {
        Value* own = special(force(stack.back()), keep(PyUnicode_InternFromString("__anext__")));
        if (!own) { if (!raised_) raise(PyExc_TypeError, std::string("'async for' requires an iterator with __anext__ method, got ") + stack.back()->type->tp_name); goto exception; }
        Value* item = call(own, {});
        MUST(item);
        PUSH(awaitable(item));
        break;
      }
      case Op::END_ASYNC_FOR: {
        Value* exc = POP();
        if (!PyType_IsSubtype(exc->type, reinterpret_cast<PyTypeObject*>(PyExc_StopAsyncIteration))) { raise(exc); goto exception; }
        stack.pop_back();
        break;
      }
      case Op::CLEANUP_THROW: {   // 3.12: receiver, last sent value and the exception; what a generator returned goes on as the value
        Value* exc = POP();
        if (!PyType_IsSubtype(exc->type, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration))) { raise(exc); goto exception; }
        stack.pop_back();
        stack.pop_back();
        Value* arguments = body<Object>(exc).arguments;
        stack.push_back(none_);
        stack.push_back(arguments && !items(arguments).empty() ? items(arguments)[0] : none_);
        break;
      }
      case Op::CHECK_EG_MATCH: {
        Value* wanted = POP();
        Value* split = call(own_function("match_group"), {stack.back(), wanted});
        MUST(split);
        Value *match = items(split)[0], *rest = items(split)[1];
        if (!is_constant(match, Py_None)) { stack.back() = rest; handled_ = match; }
        stack.push_back(match);
        break;
      }
      case Op::PREP_RERAISE_STAR: { Value* all = POP(); top = POP(); PUSH(call(own_function("raise_again"), {top, all})); break; }
      case Op::GET_YIELD_FROM_ITER: if (kind(stack.back()) != Kind::generator) { top = POP(); PUSH(iter(top)); } break;
      case Op::SEND: {
        Value* sent = POP();
        Value* receiver = stack.back();
        Value* v = nullptr;
        bool exhausted = false;
        if (kind(receiver) == Kind::generator) {
          begin_tail();
          v = resume_generator(receiver, sent, nullptr);
          if (!v && !raised_) exhausted = true;
        } else if (is_constant(sent, Py_None)) {
          last_return_ = none_;
          v = this->next(receiver, &exhausted);   // what an object of a class raises at its end is the value of `yield from`
        } else {
          v = call_method(receiver, "send", {sent});
          if (!v && raised_is(PyExc_StopIteration)) {
            Value* given = body<Object>(take_raised()).arguments;
            last_return_ = given && !items(given).empty() ? items(given)[0] : none_;
            exhausted = true;
          }
        }
        if (exhausted) {
          next = end_delegation(frame, in);
          break;
        }
        PUSH(v);
        break;
      }
      case Op::END_SEND: top = POP(); stack.pop_back(); stack.push_back(top); break;
      case Op::STOPITERATION_ERROR: {
        if (PyType_IsSubtype(stack.back()->type, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration))) {
          Value* cause = stack.back();
          stack.back() = make_exception(PyExc_RuntimeError, {text((fn.code->co_flags & CO_COROUTINE) ? "coroutine raised StopIteration" : "generator raised StopIteration")});
          body<Object>(stack.back()).slots.emplace_back(names().__cause__, cause);
        }
        break;
      }
      case Op::LOAD_BUILD_CLASS: PUSH(load_global(fn, keep(PyUnicode_InternFromString("__build_class__")))); break;
      default: {
        frames::BreakReason r{.id = "unsupported-instruction", .what = "the instruction " + std::string(bytecode::op_name(in.op)) + " is not captured", .stack = user_stack()};
        throw frames::Skip{std::move(r)};
      }
    }
    frame->pc = next;
    tail_ = {};
    continue;

  exception:
    tail_ = {};
    if (!raised_) throw std::runtime_error("a value is missing after " + std::string(bytecode::op_name(in.op)) + " without an exception");
    frame->keyword_names = nullptr;
    if (!std::exchange(reraised_, false)) note_traceback(raised_, frame);
    if (const std::string* by = doubted(raised_)) end_before_doubted(*by);
    if (may_raise_in_block && options.doubts_errors && !in_block()) {   // on real data the program may be elsewhere by now
      const std::string what = "the program raises " + text_of_error(raised_) + ", unless an operator before it raises on real data inside a try or with block";
      raised_ = nullptr;
      stop("may-raise", what);
    }
    if (in.handler < 0) return nullptr;
    if (!handled()) handling_since_ = open_frames(frame).back()->step;
    const bytecode::Handler& h = frame->code->handlers()[static_cast<size_t>(in.handler)];
    for (size_t i = static_cast<size_t>(h.depth); i < stack.size(); ++i) drop(stack[i]);
    Value* exc = std::exchange(raised_, nullptr);
    if (Value* const outer = handled(); outer && outer != exc && exc->kind == Kind::object && !exc->real) {
      bool has = false;
      for (auto& s : body<Object>(exc).slots) has |= s.first == names().__context__;
      if (!has) body<Object>(exc).slots.emplace_back(names().__context__, outer);
    }
    stack.resize(static_cast<size_t>(h.depth));
    if (h.lasti) stack.push_back(integer(in.offset / 2));
    stack.push_back(exc);
    frame->pc = static_cast<uint32_t>(h.target);
  }
}

bool Trace::begin_with(Frame* frame, Value* manager, PyObject* exit_name, PyObject* enter_name, const char* protocol) {
  const Tail tail = take_tail();
  force(manager);
  Value* enter = special(manager, enter_name);
  Value* exit = enter ? special(manager, exit_name) : nullptr;
  if (!exit) {
    const std::string missed = enter ? std::string(" (missed ") + PyUnicode_AsUTF8(exit_name) + " method)" : "";
    if (!raised_) raise(PyExc_TypeError, std::string("'") + manager->type->tp_name + "' object does not support the " + protocol + " protocol" + missed);
    return false;
  }
  frame->stack.push_back(exit);   // it is there while the other one runs: a frame that goes on behind a break finds it
  tail_ = tail;
  Value* entered = call(enter, {});
  if (!entered) {
    frame->stack.pop_back();
    return false;
  }
  frame->stack.push_back(entered);
  return true;
}

uint32_t Trace::end_delegation(Frame* frame, const Instruction& send) {
#if PY_VERSION_HEX < 0x030C0000
  frame->stack.pop_back();   // later END_SEND does it
#endif
  frame->stack.push_back(last_return_);
  return static_cast<uint32_t>(send.target);
}

bool Trace::has_open_blocks(Value* v) {
  if (v->kind == Kind::generator && !v->real) {
    const Generator& g = body<Generator>(v);
    return !g.is_done && PyBytes_GET_SIZE(g.frame->code->object()->co_exceptiontable) > 0;
  }
  if (!v->real || !PyGen_CheckExact(v->real)) return false;
  const guards::ObjectRef code = guards::ObjectRef::steal(PyObject_GetAttrString(v->real, "gi_code"));
  PyErr_Clear();
  return code && PyBytes_GET_SIZE(reinterpret_cast<PyCodeObject*>(code.get())->co_exceptiontable) > 0;
}

// A loop over a generator that was begun before is left: CPython frees it, and the blocks that it is suspended in end.
void Trace::drop(Value* v) {
  if (v->real && v->source && v->source->kind != SourceKind::constant && has_open_blocks(v)) stop("generator-freed", "a generator that was started before the call is dropped inside a try or with block, whose end runs now");
}

// A branch of the program: a tensor's value is not known while tracing.
int Trace::branch(Value* v) {
  if (v->kind == Kind::constant) {
    if (v->real == Py_True) return 1;
    if (v->real == Py_False || v->real == Py_None) return 0;
  }
  return truth(v);
}

#undef POP
#undef PUSH
#undef MUST
}  // namespace cutaway::capture
