// collections.deque: a list of the trace with a limit, and with its own idea of indices, operators and iteration.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {

bool Containers::is_deque(Value* v) { return v->type == known().deque && v->kind == Kind::list; }

bool Containers::deque_limit(Value* given, Py_ssize_t* limit) {
  if (!given || values.is_constant(given, Py_None)) return true;
  if (PyObject* c = values.as_constant(given); !c || !PyLong_Check(c)) return exceptions.raise(PyExc_TypeError, "an integer is required"), false;
  if (!subscripts.argument_number(given, limit)) return false;
  return *limit >= 0 || (exceptions.raise(PyExc_ValueError, "maxlen must be non-negative"), false);
}

Value* Containers::make_deque(PyTypeObject* t, std::vector<Value*> all, Py_ssize_t limit) {
  if (limit >= 0 && all.size() > static_cast<size_t>(limit)) all.erase(all.begin(), all.end() - limit);
  Value* v = values.make_list(std::move(all));
  v->type = t;
  body<Sequence>(v).limit = limit;
  return v;
}

// What a deque has besides a list's methods, and those that its limit changes. Null without raising: as a list's.
Value* Containers::call_deque_method(std::string_view name, Value* self, const Args& args) {
  auto& all = values.items(self);
  const Py_ssize_t limit = body<Sequence>(self).limit;
  auto done = [&] { ++body<Sequence>(self).changes; effects.mark_changed(self); return values.none(); };
  if (name == "appendleft") { append(self, args[0], true); effects.mark_changed(self); return values.none(); }
  if (name == "extendleft") {
    Value* from = values.force(args[0]) == self ? values.make_list(all) : args[0];
    return iteration.for_each(from, [&](Value* v) { append(self, v, true); effects.mark_changed(self); return true; }) ? values.none() : nullptr;
  }
  if (name == "popleft" || name == "pop") {
    if (all.empty()) return exceptions.raise(PyExc_IndexError, "pop from an empty deque");
    Value* v = name == "pop" ? all.back() : all.front();
    all.erase(name == "pop" ? all.end() - 1 : all.begin());
    done();
    return v;
  }
  if (name == "rotate") {
    Py_ssize_t n = 1;
    if (args.count && !subscripts.argument_number(args[0], &n)) return nullptr;
    if (const auto size = static_cast<Py_ssize_t>(all.size()); size > 1) {
      n = ((n % size) + size) % size;
      std::rotate(all.begin(), all.end() - n, all.end());
    }
    return done();
  }
  if (name == "insert" || name == "clear") ++body<Sequence>(self).changes;
  if (name == "copy" || name == "__copy__") return make_deque(self->type, all, limit);
  if (name == "remove") {
    const size_t changes = body<Sequence>(self).changes;
    for (size_t i = 0; i < all.size(); ++i) {
      const int same = operators.equal(all[i], args[0]);
      if (same < 0) return nullptr;
      if (body<Sequence>(self).changes != changes) stop("container-changed", "a comparison changes the deque whose items it compares");
      if (same) { all.erase(all.begin() + static_cast<Py_ssize_t>(i)); return done(); }
    }
    Value* words = texts.repr(args[0]);
    return words ? exceptions.raise(exceptions.make_exception(PyExc_ValueError, {values.constant_steal(PyUnicode_FromFormat("%U is not in deque", words->real))})) : nullptr;
  }
  return nullptr;
}

Value* Containers::deque_binary(int op, Value* a, Value* b, bool* is_known) {
  const bool in_place = op >= 13;
  const int index = in_place ? op - 13 : op;
  *is_known = true;
  if (index == 0 && is_deque(a)) {
    if (in_place) {
      return iteration.extend(a, b) ? a : nullptr;
    }
    if (is_deque(b)) {
      std::vector<Value*> all = values.items(a);
      all.insert(all.end(), values.items(b).begin(), values.items(b).end());
      return make_deque(a->type, std::move(all), body<Sequence>(a).limit);
    }
    if (b->kind == Kind::object || b->kind == Kind::opaque) { *is_known = false; return nullptr; }   // it may know what to do
    return exceptions.raise(PyExc_TypeError, std::string("can only concatenate deque (not \"") + b->type->tp_name + "\") to deque");
  }
  if (index == 5) {
    Value *deque = is_deque(a) ? a : b, *number = deque == a ? b : a;
    if (PyObject* n = values.as_constant(number); n && PyIndex_Check(n)) {
      if (frames::SizeLog* log = frames::size_log()) log->used(n);
      const Py_ssize_t times = PyNumber_AsSsize_t(n, PyExc_IndexError);
      if (times == -1 && PyErr_Occurred()) return exceptions.raise_python();
      if (times > 1'000'000) stop("long-list", "a deque is repeated more than a million times");
      std::vector<Value*> all;
      for (Py_ssize_t i = 0; i < times; ++i) all.insert(all.end(), values.items(deque).begin(), values.items(deque).end());
      Value* made = make_deque(deque->type, std::move(all), body<Sequence>(deque).limit);
      if (!in_place || deque != a) return made;
      values.items(a) = values.items(made);
      ++body<Sequence>(a).changes;
      effects.mark_changed(a);
      return a;
    }
  }
  *is_known = false;
  return nullptr;
}

Value* Containers::deque_subscript(Value* v, Value* key, Value* x, bool deletes) {
  auto& all = values.items(v);
  const auto size = static_cast<Py_ssize_t>(all.size());
  Py_ssize_t i = 0;
  if (!subscripts.index_number(key, &i)) {
    if (exceptions.raised_is(PyExc_TypeError) && key->kind != Kind::tensor && !attributes.lookup_type(key->type, names().__index__)) { exceptions.take_raised(); exceptions.raise(PyExc_TypeError, std::string("sequence index must be integer, not '") + key->type->tp_name + "'"); }
    return nullptr;
  }
  if (i < 0) i += size;
  if (i < 0 || i >= size) return exceptions.raise(PyExc_IndexError, "deque index out of range");
  if (deletes) { all.erase(all.begin() + i); ++body<Sequence>(v).changes; }
  else if (x) all[static_cast<size_t>(i)] = x;
  else return all[static_cast<size_t>(i)];
  effects.mark_changed(v);
  return values.none();
}

}  // namespace cutaway::capture
