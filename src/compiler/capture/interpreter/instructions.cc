// The instruction loop. One handler serves all versions of CPython: bytecode::Code has normalised the arguments.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/interpreter/namespaces.h"
#include "compiler/capture/interpreter/tracebacks.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
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

Interpreter::Interpreter(const Owners& owners, const bytecode::Code& code, const Stop* stop)
    : Owners(owners), outer_code_(code), stop_(stop), tells_instructions_(debug::wants(options.sink, "instructions", debug::Level::debug)) {}

Value* Interpreter::run_outermost() {
  Value* f = values.wrap(reinterpret_cast<PyObject*>(view.function), guards.sources().function());
  f->kind = Kind::function;
  f->type = &PyFunction_Type;
  Function& fn = values.give<Function>(f);
  fn.code = view.code;
  fn.decoded = &outer_code_;
  fn.globals_real = view.function->func_globals;
  fn.builtins_real = view.function->func_builtins;
  fn.name = view.function->func_name;
  fn.qualname = view.function->func_qualname;
  if (view.function->func_closure)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(view.function->func_closure); ++i) {
      const int slot = view.code->co_nlocalsplus - view.code->co_nfreevars + static_cast<int>(i);
      fn.closure.push_back(values.wrap(PyTuple_GET_ITEM(view.function->func_closure, i), guards.sources().closure(static_cast<int>(i), outer_code_.slot_name(slot))));
    }
  frame_stack.label_stack(f, nullptr);
  // Defaults have been bound already; whoever calls the function again from inside finds them by the function's own source.
  if (view.function->func_defaults) fn.defaults = values.wrap(view.function->func_defaults, guards.sources().of(f->source, SourceKind::function_defaults));
  if (view.function->func_kwdefaults) fn.keyword_defaults = values.wrap(view.function->func_kwdefaults, guards.sources().of(f->source, SourceKind::function_kwdefaults));
  Frame* frame = frame_stack.make_frame(f);
  for (int i = 0; i < view.slot_count; ++i)
    if (PyObject* o = view.slots[i]) frame->locals[static_cast<size_t>(i)] = values.wrap(o, guards.sources().local(i, outer_code_.slot_name(i)));
  frame_stack.set_outermost(frame);
  try {
    return run(frame);
  } catch (const Stopped&) {
    return nullptr;
  }
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

Value* Interpreter::run(Frame* frame) {
  const auto& instructions = frame->code->instructions();
  auto& stack = frame->stack;
  auto& locals = frame->locals;
  Function& fn = body<Function>(frame->function);
  frame->yielded = nullptr;
  Frame* const caller = frame_stack.innermost();
  if (frame != frame_stack.outermost()) frame->caller = caller;
  frame->depth = caller ? caller->depth + 1 : 0;
  if (frame->depth > 400) throw frames::Skip{{.id = "deep-recursion", .what = "calls nest deeper than 400 frames", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::none}};
  const EnteredFrame entered(frame_stack, frame);
  Value* top = nullptr;
  const auto converted = [&](Value* v, int conversion) -> Value* {   // !s, !r and !a of a format
    if (conversion == 1) return texts.str(v);
    if (conversion == 2) return texts.repr(v);
    if (conversion != 3) return v;
    v = texts.repr(v);
    return v ? values.constant_steal(ascii_of(v->real)) : nullptr;
  };

  for (;;) {
    const Instruction& in = instructions[frame->pc];
    if (stop_ && steps_ == stop_->step) {
      stopped_ = true;
      stopped_in_ = frame;
      stopped_handling_ = handled() != nullptr;
      throw Stopped{};   // frames and generators stay as they are
    }
    frame->step = steps_;
    if (frame == frame_stack.outermost() && !stop_ && !options.break_at.empty())
      if (auto said = options.break_at.find(static_cast<int32_t>(frame->pc)); said != options.break_at.end()) stop("other-rank", said->second, "");
    if (tells_instructions_)
      debug::say(options.sink, "instructions", debug::Level::debug, std::string(static_cast<size_t>(frame->depth) * 2, ' ') + frame->code->qualified_name() + " " + frame->code->text(static_cast<int>(frame->pc)));
    if (++steps_ > kMostSteps) throw frames::Skip{{.id = "too-long", .what = "capture has run more than 20 million instructions", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::none}};
    uint32_t next = frame->pc + 1;
    switch (in.op) {
      case Op::NOP: case Op::RESUME: break;
      case Op::POP_TOP: case Op::END_FOR: drop(stack.back()); stack.pop_back(); break;
      case Op::PUSH_NULL: stack.push_back(values.null()); break;
      case Op::COPY: stack.push_back(stack[stack.size() - static_cast<size_t>(in.arg)]); break;
      case Op::SWAP: std::swap(stack.back(), stack[stack.size() - static_cast<size_t>(in.arg)]); break;
      case Op::LOAD_CONST: {
        PyObject* c = frame->code->constant(in.arg);
        stack.push_back(c == Py_None ? values.none() : c == Py_True ? values.boolean(true) : c == Py_False ? values.boolean(false) : values.constant(c));
        break;
      }
      case Op::LOAD_FAST: case Op::LOAD_FAST_CHECK:
        if (!locals[static_cast<size_t>(in.arg)]) {
          exceptions.raise(PyExc_UnboundLocalError, "cannot access local variable '" + frame->code->slot_name(in.arg) + "' where it is not associated with a value");
          goto exception;
        }
        stack.push_back(locals[static_cast<size_t>(in.arg)]);
        break;
      case Op::LOAD_FAST_AND_CLEAR:
        stack.push_back(locals[static_cast<size_t>(in.arg)] ? locals[static_cast<size_t>(in.arg)] : values.null());
        locals[static_cast<size_t>(in.arg)] = nullptr;
        break;
      case Op::STORE_FAST: top = POP(); locals[static_cast<size_t>(in.arg)] = top->kind == Kind::null ? nullptr : top; break;
      case Op::DELETE_FAST:
        if (!locals[static_cast<size_t>(in.arg)]) {
          exceptions.raise(PyExc_UnboundLocalError, "cannot access local variable '" + frame->code->slot_name(in.arg) + "' where it is not associated with a value");
          goto exception;
        }
        locals[static_cast<size_t>(in.arg)] = nullptr;
        break;
      case Op::LOAD_GLOBAL: {
        if (in.flag && !kNullOnTop) stack.push_back(values.null());
        PUSH(namespaces.load_global(fn, frame->code->name(in.arg)));
        if (in.flag && kNullOnTop) stack.push_back(values.null());
        break;
      }
      case Op::LOAD_NAME: PUSH(namespaces.load_name(frame, frame->names, frame->code->name(in.arg))); break;
      case Op::STORE_NAME: top = POP(); MUST(namespaces.store_name(frame, frame->code->name(in.arg), top)); break;
      case Op::DELETE_NAME: MUST(namespaces.store_name(frame, frame->code->name(in.arg), nullptr)); break;
      case Op::LOAD_LOCALS: PUSH(frame->names ? frame->names : exceptions.raise(PyExc_SystemError, "no locals")); break;
      case Op::LOAD_FROM_DICT_OR_GLOBALS: top = POP(); PUSH(namespaces.load_name(frame, top, frame->code->name(in.arg))); break;
      case Op::LOAD_CLASSDEREF: case Op::LOAD_FROM_DICT_OR_DEREF: PUSH(namespaces.load_class_cell(frame, in.op == Op::LOAD_CLASSDEREF ? frame->names : POP(), in.arg)); break;
      case Op::SETUP_ANNOTATIONS: MUST(namespaces.setup_annotations(frame)); break;
      case Op::STORE_GLOBAL: top = POP(); mappings.dict_set(namespaces.globals_of(fn), frame->code->name(in.arg), top); break;
      case Op::DELETE_GLOBAL:
        if (!mappings.dict_delete(namespaces.globals_of(fn), frame->code->name(in.arg))) { exceptions.raise(PyExc_NameError, std::string("name '") + PyUnicode_AsUTF8(frame->code->name(in.arg)) + "' is not defined"); goto exception; }
        break;
      case Op::LOAD_ATTR: top = POP(); endings.begin_tail(); PUSH(attributes.getattr(top, frame->code->name(in.arg))); break;
      case Op::LOAD_METHOD: {
        top = POP();
        Value* self = nullptr;
        endings.begin_tail();
        Value* m = attributes.load_method(top, frame->code->name(in.arg), &self);
        if (!m) goto exception;
        if (self) { stack.push_back(m); stack.push_back(self); }
        // A method of C: CPython keeps it and its object apart, and names its class, not the object's, in errors. The NULL says so (open_frames.cc).
        else push_callable(stack, m, m->kind == Kind::method && m->type == &PyCFunction_Type ? values.new_value(Kind::null, m->type) : values.null());
        break;
      }
      case Op::LOAD_SUPER_ATTR: {
        Value* self = POP();
        Value* klass = POP();
        Value* callee = POP();   // what the name super stands for
        Value* super = nullptr;
        if (callee->real != reinterpret_cast<PyObject*>(&PySuper_Type) || (in.flag & 2)) {
          if (!(super = calls.call(callee, in.flag & 2 ? Args{klass, self} : Args{}))) goto exception;
        } else {
          if (!(super = builtins.checked_super(klass, self))) goto exception;
        }
        if (in.flag & 1) {
          Value* bound = nullptr;
          endings.begin_tail();
          Value* m = attributes.load_method(super, frame->code->name(in.arg), &bound);
          if (!m) goto exception;
          if (bound) { stack.push_back(m); stack.push_back(bound); }
          else push_callable(stack, m, values.null());
        } else {
          endings.begin_tail();
          PUSH(attributes.getattr(super, frame->code->name(in.arg)));
        }
        break;
      }
      case Op::STORE_ATTR: { Value* owner = POP(); Value* v = POP(); endings.begin_tail(); MUST(attributes.setattr(owner, frame->code->name(in.arg), v)); break; }
      case Op::DELETE_ATTR: top = POP(); endings.begin_tail(); MUST(attributes.delattr(top, frame->code->name(in.arg))); break;
      case Op::LOAD_CLOSURE: stack.push_back(locals[static_cast<size_t>(in.arg)]); break;
      case Op::LOAD_DEREF: {
        Value* cell = locals[static_cast<size_t>(in.arg)];
        Value* v = cell ? values.cell_contents(cell) : nullptr;
        if (!v) { namespaces.raise_empty_cell(frame, in.arg); goto exception; }
        // What a break left on the stack of the program: not all of it is looked at.
        if (v->kind == Kind::lazy && frame->code->slot_name(in.arg) == ".stack") values.force_items(v);
        stack.push_back(v);
        break;
      }
      case Op::STORE_DEREF: top = POP(); values.set_cell(locals[static_cast<size_t>(in.arg)], top); break;
      case Op::DELETE_DEREF:
        if (frame->code->slot_name(in.arg) == ".stack") break;   // of a function that goes on behind a break: nobody else has that cell
        if (Value* cell = locals[static_cast<size_t>(in.arg)]; !cell || !values.cell_contents(cell)) { namespaces.raise_empty_cell(frame, in.arg); goto exception; }
        values.set_cell(locals[static_cast<size_t>(in.arg)], nullptr);
        break;
      case Op::MAKE_CELL: locals[static_cast<size_t>(in.arg)] = values.make_cell(locals[static_cast<size_t>(in.arg)]); break;
      case Op::COPY_FREE_VARS: {
        Function& f = values.function(frame->function);
        const size_t first = locals.size() - static_cast<size_t>(in.arg);
        for (size_t i = 0; i < static_cast<size_t>(in.arg); ++i) locals[first + i] = f.closure.at(i);
        break;
      }
      case Op::LOAD_ASSERTION_ERROR: stack.push_back(values.wrap_constant_object(PyExc_AssertionError)); break;
      case Op::IMPORT_NAME: { Value* from = POP(); Value* level = POP(); PUSH(namespaces.import_name(frame, frame->code->name(in.arg), from, level)); break; }
      case Op::IMPORT_FROM: {
        top = attributes.getattr(stack.back(), frame->code->name(in.arg));
        if (!top && exceptions.raised_is(PyExc_AttributeError)) { exceptions.take_raised(); stop("import", std::string("the name ") + PyUnicode_AsUTF8(frame->code->name(in.arg)) + " is imported, which the module does not define"); }
        PUSH(top);
        break;
      }
      case Op::BINARY_OP: { Value* b = POP(); Value* a = POP(); endings.begin_tail(); PUSH(operators.binary(in.arg, a, b)); break; }
      case Op::COMPARE_OP: { Value* b = POP(); Value* a = POP(); endings.begin_tail(); PUSH(operators.compare(in.arg, a, b)); break; }
      case Op::IS_OP: { Value* b = POP(); Value* a = POP(); stack.push_back(values.boolean(values.same_identity(a, b) != (in.arg == 1))); break; }
      case Op::CONTAINS_OP: {
        Value* container = POP();
        Value* x = POP();
        endings.begin_tail();
        const int r = subscripts.contains(container, x);
        MUST(r >= 0);
        stack.push_back(values.boolean((r == 1) != (in.arg == 1)));
        break;
      }
      case Op::UNARY_POSITIVE: top = POP(); endings.begin_tail(); PUSH(operators.unary('+', top)); break;
      case Op::UNARY_NEGATIVE: top = POP(); endings.begin_tail(); PUSH(operators.unary('-', top)); break;
      case Op::UNARY_INVERT: top = POP(); endings.begin_tail(); PUSH(operators.unary('~', top)); break;
      case Op::TO_BOOL: { top = POP(); endings.begin_tail(); const int t = subscripts.truth(top); MUST(t >= 0); stack.push_back(values.boolean(t != 0)); break; }
      case Op::UNARY_NOT: { top = POP(); endings.begin_tail(); const int t = subscripts.truth(top); MUST(t >= 0); stack.push_back(values.boolean(t == 0)); break; }
      case Op::BINARY_SUBSCR: { Value* k = POP(); Value* v = POP(); endings.begin_tail(); PUSH(subscripts.subscript(v, k)); break; }
      case Op::STORE_SUBSCR: { Value* k = POP(); Value* v = POP(); Value* x = POP(); endings.begin_tail(); MUST(subscripts.store_subscript(v, k, x)); break; }
      case Op::DELETE_SUBSCR: { Value* k = POP(); Value* v = POP(); endings.begin_tail(); MUST(subscripts.delete_subscript(v, k)); break; }
      case Op::BINARY_SLICE: { Value* stop_at = POP(); Value* start = POP(); Value* v = POP(); endings.begin_tail(); PUSH(subscripts.subscript(v, values.make_slice(start, stop_at, values.none()))); break; }
      case Op::STORE_SLICE: { Value* stop_at = POP(); Value* start = POP(); Value* v = POP(); Value* x = POP(); endings.begin_tail(); MUST(subscripts.store_subscript(v, values.make_slice(start, stop_at, values.none()), x)); break; }
      case Op::BUILD_TUPLE: case Op::BUILD_LIST: {
        std::vector<Value*> parts(stack.end() - in.arg, stack.end());
        stack.resize(stack.size() - static_cast<size_t>(in.arg));
        stack.push_back(in.op == Op::BUILD_TUPLE ? values.make_tuple(std::move(parts)) : values.make_list(std::move(parts)));
        break;
      }
      case Op::BUILD_SET: {
        Value* s = values.make_set();
        for (size_t i = stack.size() - static_cast<size_t>(in.arg); i < stack.size(); ++i) {
          PyObject* k = mappings.key_of(stack[i]);
          MUST(k);
          mappings.set_add(s, k);
        }
        stack.resize(stack.size() - static_cast<size_t>(in.arg));
        stack.push_back(s);
        break;
      }
      case Op::BUILD_MAP: {
        if (in.arg) fail_if_planted(in.op);   // a dict that the program writes; calls with ** make empty ones
        Value* d = values.make_dict();
        for (size_t i = stack.size() - 2 * static_cast<size_t>(in.arg); i < stack.size(); i += 2) {
          PyObject* k = mappings.key_of(stack[i]);
          MUST(k);
          mappings.dict_set(d, k, stack[i + 1]);
        }
        stack.resize(stack.size() - 2 * static_cast<size_t>(in.arg));
        stack.push_back(d);
        break;
      }
      case Op::BUILD_CONST_KEY_MAP: {
        PyObject* keys = values.as_constant(POP());
        Value* d = values.make_dict();
        const size_t first = stack.size() - static_cast<size_t>(in.arg);
        for (size_t i = 0; i < static_cast<size_t>(in.arg); ++i) mappings.dict_set(d, PyTuple_GET_ITEM(keys, static_cast<Py_ssize_t>(i)), stack[first + i]);
        stack.resize(first);
        stack.push_back(d);
        break;
      }
      case Op::BUILD_SLICE: {
        Value* step = in.arg == 3 ? POP() : values.none();
        Value* stop_at = POP();
        Value* start = POP();
        stack.push_back(values.make_slice(start, stop_at, step));
        break;
      }
      case Op::BUILD_STRING: {
        PyObject* joined = PyUnicode_FromString("");
        const size_t first = stack.size() - static_cast<size_t>(in.arg);
        for (size_t i = first; i < stack.size(); ++i) PyUnicode_Append(&joined, values.as_constant(stack[i]));
        stack.resize(first);
        PUSH(values.constant_steal(joined));
        break;
      }
      case Op::FORMAT_VALUE: {
        Value* spec = (in.arg & 4) ? POP() : nullptr;
        Value* v = converted(POP(), in.arg & 3);
        MUST(v);
        PUSH(texts.format(v, spec));
        break;
      }
      case Op::CONVERT_VALUE: top = POP(); PUSH(converted(top, in.arg)); break;
      // In a frame that goes on after a break the container may be one from outside.
      case Op::LIST_APPEND: { top = POP(); Value* l = values.force(stack[stack.size() - static_cast<size_t>(in.arg)]); values.items(l).push_back(top); effects.mark_changed(l); break; }
      case Op::SET_ADD: { top = POP(); PyObject* k = mappings.key_of(top); MUST(k); mappings.set_add(values.force(stack[stack.size() - static_cast<size_t>(in.arg)]), k); break; }
      case Op::MAP_ADD: {
        Value* v = POP();
        Value* key = POP();
        PyObject* k = mappings.key_of(key);
        MUST(k);
        mappings.dict_set(values.force(stack[stack.size() - static_cast<size_t>(in.arg)]), k, v);
        break;
      }
      case Op::LIST_EXTEND: {
        top = POP();
        if (!iteration.extend(values.force(stack[stack.size() - static_cast<size_t>(in.arg)]), top)) { library.explain_not_iterable(top, nullptr); goto exception; }
        break;
      }
      case Op::SET_UPDATE: {
        top = POP();
        Value* into = values.force(stack[stack.size() - static_cast<size_t>(in.arg)]);
        bool is_known = true;   // as set.update does it: a set of constants is copied as it lies, which shows in the order
        MUST(containers.call_set_method("update", into, {top}, &is_known));
        break;
      }
      case Op::DICT_UPDATE: case Op::DICT_MERGE: {
        top = POP();
        Value* into = values.force(stack[stack.size() - static_cast<size_t>(in.arg)]);
        Value* callable = in.op == Op::DICT_MERGE ? stack[stack.size() - static_cast<size_t>(in.arg) - (kNullOnTop ? 3 : 2)] : nullptr;
        if (library.explain_not_mapping(top, callable)) goto exception;
        MUST(iteration.dict_update(into, top, callable));
        break;
      }
      case Op::LIST_TO_TUPLE: top = values.force(POP()); stack.push_back(values.make_tuple(values.items(top))); break;
      case Op::UNPACK_SEQUENCE: {
        top = POP();
        std::vector<Value*> parts;
        MUST(iteration.unpack_for_targets(top, &parts, static_cast<size_t>(in.arg) + 1));
        if (parts.size() != static_cast<size_t>(in.arg)) {
          if (parts.size() < static_cast<size_t>(in.arg))
            exceptions.raise(PyExc_ValueError, "not enough values to unpack (expected " + std::to_string(in.arg) + ", got " + std::to_string(parts.size()) + ")");
          else
            exceptions.raise(PyExc_ValueError, "too many values to unpack (expected " + std::to_string(in.arg) + ")");
          goto exception;
        }
        for (size_t i = parts.size(); i-- > 0;) stack.push_back(parts[i]);
        break;
      }
      case Op::UNPACK_EX: {
        top = POP();
        std::vector<Value*> parts;
        const size_t before = static_cast<size_t>(in.arg & 0xff), after = static_cast<size_t>(in.arg >> 8);
        MUST(iteration.unpack_for_targets(top, &parts, SIZE_MAX, before));
        if (parts.size() < before + after) {
          exceptions.raise(PyExc_ValueError, "not enough values to unpack (expected at least " + std::to_string(before + after) + ", got " + std::to_string(parts.size()) + ")");
          goto exception;
        }
        for (size_t i = 0; i < after; ++i) stack.push_back(parts[parts.size() - 1 - i]);
        stack.push_back(values.make_list({parts.begin() + static_cast<long>(before), parts.end() - static_cast<long>(after)}));
        for (size_t i = before; i-- > 0;) stack.push_back(parts[i]);
        break;
      }
      case Op::GET_LEN: PUSH(subscripts.length(stack.back())); break;
      case Op::MATCH_SEQUENCE: {
        values.force(stack.back());
        stack.push_back(values.boolean(PyType_HasFeature(stack.back()->type, Py_TPFLAGS_SEQUENCE)));
        break;
      }
      case Op::MATCH_MAPPING: values.force(stack.back()); stack.push_back(values.boolean(PyType_HasFeature(stack.back()->type, Py_TPFLAGS_MAPPING))); break;
      case Op::MATCH_KEYS: PUSH(builtins.match_keys(stack[stack.size() - 2], stack.back())); break;
      case Op::MATCH_CLASS: { Value* keywords = POP(); Value* klass = POP(); Value* subject = POP(); PUSH(builtins.match_class(subject, klass, static_cast<size_t>(in.arg), keywords)); break; }
      case Op::KW_NAMES: frame->keyword_names = frame->code->constant(in.arg); break;
      case Op::CALL: case Op::CALL_KW: {
        const size_t end = stack.size() - (in.op == Op::CALL_KW ? 1 : 0);   // the operands stay until it has returned: a break inside finds the stack as it is
        if (in.op == Op::CALL_KW && !(frame->keyword_names = values.as_constant(stack.back()))) throw std::runtime_error("the names of keywords are not known");
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
        endings.begin_tail();
        Value* r = calls.call(callable, Args(stack.data() + begin, positional, keywords, keyword_count));
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
        if (!iteration.unpack(args, &positional)) { library.explain_not_iterable(args, callable); goto exception; }
        if (kw) {
          Value* d = kw;
          if (values.kind(d) != Kind::dict || is_user_class(d->type)) { d = values.make_dict(); MUST(iteration.dict_update(d, kw, callable)); }
          for (PyObject* k : mappings.keys_of(d)) {
            if (!PyUnicode_Check(k)) { exceptions.raise(PyExc_TypeError, "keywords must be strings"); goto exception; }
            keywords.emplace_back(k, mappings.dict_get(d, k));
          }
        }
        endings.begin_tail();
        Value* r = calls.call(callable, Args(positional, keywords));
        MUST(r);
        stack.resize(size - taken);
        stack.push_back(r);
        break;
      }
      case Op::MAKE_FUNCTION: {
        Value* code = POP();
        Value* f = values.make_function();
        Function& made = body<Function>(f);
        made.code = reinterpret_cast<PyCodeObject*>(values.as_constant(code));
        made.globals_real = fn.globals_real;
        made.globals_made_at = fn.globals_made_at;
        made.globals = fn.globals;
        made.builtins_real = fn.builtins_real;
        made.name = made.code->co_name;
        made.qualname = made.code->co_qualname;
        if (in.arg & 8) made.closure = values.items(POP());
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
        if (in.arg == 8) made.closure = values.items(top);
        else (in.arg == 4 ? made.annotations : in.arg == 2 ? made.keyword_defaults : made.defaults) = top;
        stack.push_back(f);
        break;
      }
      case Op::RETURN_VALUE: top = POP(); return top;
      case Op::RETURN_CONST: return values.constant(frame->code->constant(in.arg));
      case Op::JUMP: next = static_cast<uint32_t>(in.target); break;
      case Op::POP_JUMP_IF_TRUE: { top = POP(); endings.begin_tail(); const int t = branch(top); MUST(t >= 0); if (t) next = static_cast<uint32_t>(in.target); break; }
      case Op::POP_JUMP_IF_FALSE: { top = POP(); endings.begin_tail(); const int t = branch(top); MUST(t >= 0); if (!t) next = static_cast<uint32_t>(in.target); break; }
      case Op::POP_JUMP_IF_NONE: top = POP(); if (values.is_constant(top, Py_None)) next = static_cast<uint32_t>(in.target); break;
      case Op::POP_JUMP_IF_NOT_NONE: top = POP(); if (!values.is_constant(top, Py_None)) next = static_cast<uint32_t>(in.target); break;
      case Op::JUMP_IF_TRUE_OR_POP: { endings.begin_tail(); const int t = branch(stack.back()); MUST(t >= 0); if (t) next = static_cast<uint32_t>(in.target); else stack.pop_back(); break; }
      case Op::JUMP_IF_FALSE_OR_POP: { endings.begin_tail(); const int t = branch(stack.back()); MUST(t >= 0); if (!t) next = static_cast<uint32_t>(in.target); else stack.pop_back(); break; }
      case Op::GET_ITER: top = POP(); endings.begin_tail(); PUSH(iteration.iter(top)); break;
      case Op::FOR_ITER: {
        bool exhausted = false;
        endings.begin_tail();
        Value* v = iteration.next(stack.back(), &exhausted);
        if (exhausted) { stack.pop_back(); next = static_cast<uint32_t>(in.target); break; }
        PUSH(v);
        break;
      }
      case Op::PUSH_EXC_INFO: {
        Value* exc = POP();
        stack.push_back(handled_ ? handled_ : values.none());
        stack.push_back(exc);
        handled_ = exc;
        break;
      }
      case Op::POP_EXCEPT: top = POP(); handled_ = top == values.none() ? nullptr : top; break;
      case Op::CHECK_EXC_MATCH: { Value* t = POP(); stack.push_back(values.boolean(exceptions.matches(stack.back(), t))); break; }
      case Op::RERAISE: {
        Value* exc = POP();
        exceptions.raise(exc);
        reraised_ = true;
        goto exception;
      }
      case Op::RAISE_VARARGS: {
        Value* cause = in.arg == 2 ? POP() : nullptr;
        if (in.arg == 0) {
          if (!handled()) none_handled_outside("an exception is raised again");
          if (!handled()) exceptions.raise(PyExc_RuntimeError, "No active exception to reraise");
          else { exceptions.raise(handled()); reraised_ = true; }
          goto exception;
        }
        Value* exc = POP();
        if (values.kind(exc) == Kind::klass && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(exc->real), reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
          auto* raised_class = reinterpret_cast<PyTypeObject*>(exc->real);
          exc = calls.call(exc, {});
          MUST(exc);
          if (values.kind(exc) != Kind::object || !PyType_IsSubtype(exc->type, raised_class)) stop("except-clause", "the class of an exception returned something else when it was raised");
        }
        if (values.kind(exc) != Kind::object || !PyType_IsSubtype(exc->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
          exceptions.raise(PyExc_TypeError, "exceptions must derive from BaseException");
          goto exception;
        }
        if (cause) {
          if (values.kind(cause) == Kind::klass && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cause->real), reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
            cause = calls.call(cause, {});
            MUST(cause);
            if (values.kind(cause) != Kind::object || !PyType_IsSubtype(cause->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) stop("except-clause", "the class of a cause returned something else when it was raised");
          }
          const bool is_exception = values.kind(cause) == Kind::object && PyType_IsSubtype(cause->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException));
          if (!is_exception && !values.is_constant(cause, Py_None)) { exceptions.raise(PyExc_TypeError, "exception causes must derive from BaseException"); goto exception; }
          MUST(attributes.setattr(exc, names().__cause__, cause));
          MUST(attributes.setattr(exc, names().__suppress_context__, values.boolean(true)));
        }
        exceptions.raise(exc);
        goto exception;
      }
      case Op::BEFORE_WITH: {
        top = POP();
        endings.begin_tail();
        MUST(begin_with(frame, top, names().__exit__, names().__enter__, "context manager"));
        break;
      }
      case Op::WITH_EXCEPT_START: {
        Value* exc = stack.back();
        Value* exit = stack[stack.size() - 4];
        Value* r = calls.call(exit, {values.wrap_constant_object(reinterpret_cast<PyObject*>(exc->type)), exc, tracebacks.traceback_of(exc)});
        PUSH(r);
        break;
      }
      case Op::RETURN_GENERATOR: {
        frame->pc = next;
        if ((fn.code->co_flags & CO_ASYNC_GENERATOR) || (frame == frame_stack.outermost() && (fn.code->co_flags & CO_COROUTINE)))
          throw frames::Skip{{.id = "coroutine", .what = "an asynchronous function is captured only where the compiled function awaits it", .stack = frame_stack.user_stack()}};
        Value* made = make_generator(frame);
        if (fn.code->co_flags & CO_COROUTINE) made->type = &PyCoro_Type;
        return made;
      }
      case Op::YIELD_VALUE:
        frame->yielded = POP();
        frame->pc = next;
        return frame->yielded;
      case Op::GET_AWAITABLE: top = POP(); PUSH(library.awaitable(top)); break;
      case Op::BEFORE_ASYNC_WITH: {
        top = POP();
        MUST(begin_with(frame, top, values.keep(PyUnicode_InternFromString("__aexit__")), values.keep(PyUnicode_InternFromString("__aenter__")), "asynchronous context manager"));
        break;
      }
      case Op::GET_AITER: {
        top = values.force(POP());
        Value* own = attributes.special(top, values.keep(PyUnicode_InternFromString("__aiter__")));
        if (!own) { if (!exceptions.raised()) exceptions.raise(PyExc_TypeError, std::string("'async for' requires an object with __aiter__ method, got ") + top->type->tp_name); goto exception; }
        PUSH(calls.call(own, {}));
        break;
      }
      case Op::GET_ANEXT: {
        Value* own = attributes.special(values.force(stack.back()), values.keep(PyUnicode_InternFromString("__anext__")));
        if (!own) { if (!exceptions.raised()) exceptions.raise(PyExc_TypeError, std::string("'async for' requires an iterator with __anext__ method, got ") + stack.back()->type->tp_name); goto exception; }
        Value* item = calls.call(own, {});
        MUST(item);
        PUSH(library.awaitable(item));
        break;
      }
      case Op::END_ASYNC_FOR: {
        Value* exc = POP();
        if (!PyType_IsSubtype(exc->type, reinterpret_cast<PyTypeObject*>(PyExc_StopAsyncIteration))) { exceptions.raise(exc); goto exception; }
        stack.pop_back();
        break;
      }
      case Op::CLEANUP_THROW: {   // 3.12: receiver, last sent value and the exception; what a generator returned goes on as the value
        Value* exc = POP();
        if (!PyType_IsSubtype(exc->type, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration))) { exceptions.raise(exc); goto exception; }
        stack.pop_back();
        stack.pop_back();
        Value* arguments = body<Object>(exc).arguments;
        stack.push_back(values.none());
        stack.push_back(arguments && !values.items(arguments).empty() ? values.items(arguments)[0] : values.none());
        break;
      }
      case Op::CHECK_EG_MATCH: {
        Value* wanted = POP();
        Value* split = calls.call(builtins.own_function("match_group"), {stack.back(), wanted});
        MUST(split);
        Value *match = values.items(split)[0], *rest = values.items(split)[1];
        if (!values.is_constant(match, Py_None)) { stack.back() = rest; handled_ = match; }
        stack.push_back(match);
        break;
      }
      case Op::PREP_RERAISE_STAR: { Value* all = POP(); top = POP(); PUSH(calls.call(builtins.own_function("raise_again"), {top, all})); break; }
      case Op::GET_YIELD_FROM_ITER: if (values.kind(stack.back()) != Kind::generator) { top = POP(); PUSH(iteration.iter(top)); } break;
      case Op::SEND: {
        Value* sent = POP();
        Value* receiver = stack.back();
        Value* v = nullptr;
        bool exhausted = false;
        if (values.kind(receiver) == Kind::generator) {
          endings.begin_tail();
          v = resume_generator(receiver, sent, nullptr);
          if (!v && !exceptions.raised()) exhausted = true;
        } else if (values.is_constant(sent, Py_None)) {
          last_return_ = values.none();
          v = iteration.next(receiver, &exhausted);   // what an object of a class raises at its end is the value of `yield from`
        } else {
          v = calls.call_method(receiver, "send", {sent});
          if (!v && exceptions.raised_is(PyExc_StopIteration)) {
            Value* given = body<Object>(exceptions.take_raised()).arguments;
            last_return_ = given && !values.items(given).empty() ? values.items(given)[0] : values.none();
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
          stack.back() = exceptions.make_exception(PyExc_RuntimeError, {values.text((fn.code->co_flags & CO_COROUTINE) ? "coroutine raised StopIteration" : "generator raised StopIteration")});
          body<Object>(stack.back()).slots.emplace_back(names().__cause__, cause);
        }
        break;
      }
      case Op::LOAD_BUILD_CLASS: PUSH(namespaces.load_global(fn, values.keep(PyUnicode_InternFromString("__build_class__")))); break;
      default: {
        frames::BreakReason r{.id = "unsupported-instruction", .what = "the instruction " + std::string(bytecode::op_name(in.op)) + " is not captured", .stack = frame_stack.user_stack()};
        throw frames::Skip{std::move(r)};
      }
    }
    frame->pc = next;
    (void)endings.take_tail();
    continue;

  exception:
    (void)endings.take_tail();
    if (!exceptions.raised()) throw std::runtime_error("a value is missing after " + std::string(bytecode::op_name(in.op)) + " without an exception");
    frame->keyword_names = nullptr;
    if (!std::exchange(reraised_, false)) tracebacks.note_traceback(exceptions.raised(), frame);
    if (const std::string* by = exceptions.doubted(exceptions.raised())) real_errors.end_before_doubted(*by);
    if (real_errors.may_raise_in_block() && options.doubts_errors && !real_errors.in_block()) {   // on real data the program may be elsewhere by now
      const std::string what = "the program raises " + exceptions.text_of_error(exceptions.raised()) + ", unless an operator before it raises on real data inside a try or with block";
      exceptions.drop_raised();
      stop("may-raise", what);
    }
    if (in.handler < 0) return nullptr;
    if (!handled()) handling_since_ = frame_stack.open_frames(frame).back()->step;
    const bytecode::Handler& h = frame->code->handlers()[static_cast<size_t>(in.handler)];
    for (size_t i = static_cast<size_t>(h.depth); i < stack.size(); ++i) drop(stack[i]);
    Value* exc = exceptions.drop_raised();
    if (Value* const outer = handled(); outer && outer != exc && exc->kind == Kind::object && !exc->real) {
      bool has = false;
      for (auto& s : body<Object>(exc).slots) has |= s.first == names().__context__;
      if (!has) body<Object>(exc).slots.emplace_back(names().__context__, outer);
    }
    stack.resize(static_cast<size_t>(h.depth));
    if (h.lasti) stack.push_back(values.integer(in.offset / 2));
    stack.push_back(exc);
    frame->pc = static_cast<uint32_t>(h.target);
  }
}

bool Interpreter::begin_with(Frame* frame, Value* manager, PyObject* exit_name, PyObject* enter_name, const char* protocol) {
  const Tail tail = endings.take_tail();
  values.force(manager);
  Value* enter = attributes.special(manager, enter_name);
  Value* exit = enter ? attributes.special(manager, exit_name) : nullptr;
  if (!exit) {
    const std::string missed = enter ? std::string(" (missed ") + PyUnicode_AsUTF8(exit_name) + " method)" : "";
    if (!exceptions.raised()) exceptions.raise(PyExc_TypeError, std::string("'") + manager->type->tp_name + "' object does not support the " + protocol + " protocol" + missed);
    return false;
  }
  frame->stack.push_back(exit);   // it is there while the other one runs: a frame that goes on behind a break finds it
  endings.hand_on(tail);
  Value* entered = calls.call(enter, {});
  if (!entered) {
    frame->stack.pop_back();
    return false;
  }
  frame->stack.push_back(entered);
  return true;
}

uint32_t Interpreter::end_delegation(Frame* frame, const Instruction& send) {
#if PY_VERSION_HEX < 0x030C0000
  frame->stack.pop_back();   // later END_SEND does it
#endif
  frame->stack.push_back(last_return_);
  return static_cast<uint32_t>(send.target);
}

bool Interpreter::has_open_blocks(Value* v) {
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
void Interpreter::drop(Value* v) {
  if (v->real && v->source && v->source->kind != SourceKind::constant && has_open_blocks(v)) stop("generator-freed", "a generator that was started before the call is dropped inside a try or with block, whose end runs now");
}

// A branch of the program: a tensor's value is not known while tracing.
namespace {
// From here on there is one way, and it ends in a `raise`.
bool only_raises(const std::vector<bytecode::Instruction>& code, size_t at) {
  for (size_t i = at; i < code.size() && i < at + 100; ++i) {
    if (code[i].op == Op::RAISE_VARARGS) return true;
    if (code[i].target >= 0 || code[i].op == Op::RETURN_VALUE || code[i].op == Op::RETURN_CONST || code[i].op == Op::YIELD_VALUE || code[i].op == Op::RERAISE) return false;
  }
  return false;
}

// `if not valid.all(): raise`, `assert (x > 0).all()`: a condition of data where one way does nothing but raise. The graph checks that it goes the other way. Where it does not, the
// frame runs again by CPython, which raises. Gives the answer that is taken for granted; -1: none.
int assume_no_error(const Owners& t, const Frame& f, Value* v) {
  const auto& code = f.code->instructions();
  const bytecode::Instruction& in = code[f.pc];
  if (in.op != Op::POP_JUMP_IF_TRUE && in.op != Op::POP_JUMP_IF_FALSE) return -1;
  const bool raises_there = only_raises(code, static_cast<size_t>(in.target));
  if (raises_there == only_raises(code, f.pc + 1)) return -1;
  if (t.torch_calls.overrides(v) || t.torch_calls.in_transform() || t.torch_calls.all_bare() || t.torch_calls.in_mode() || t.torch_calls.is_shell(v)) return -1;
  if (!t.real_errors.note_assumption()) return -1;
  static PyObject *const check = find_member("torch", "_assert_async"), *const turn = find_member("torch", "logical_not");
  const bool jumps = !raises_there, is = jumps == (in.op == Op::POP_JUMP_IF_TRUE);
  Value* condition = is ? v : t.leaves.call_leaf(turn, nullptr, {v});
  if (!condition || !t.leaves.call_leaf(check, nullptr, {condition})) return -1;
  return is;
}
}  // namespace

int Interpreter::branch(Value* v) {
  if (v->kind == Kind::constant) {
    if (v->real == Py_True) return 1;
    if (v->real == Py_False || v->real == Py_None) return 0;
  }
  if (values.kind(v) != Kind::tensor) return subscripts.truth(v);
  try {
    return subscripts.truth(v);
  } catch (const EndOfGraph& end) {
    const int assumed = end.id == "data-dependent-branch" ? assume_no_error(*this, *frame_stack.innermost(), v) : -1;
    if (assumed < 0) throw;
    return assumed;
  }
}

#undef POP
#undef PUSH
#undef MUST
}  // namespace cutaway::capture
