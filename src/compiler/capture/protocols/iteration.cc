#include "compiler/capture/protocols/iteration.h"

#include <cstdint>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

Value* Iteration::iterator_of_items(std::vector<Value*> all) {
  Value* v = values.make_iterator(Iterator::What::constants, nullptr);
  body<Iterator>(v).parts = std::move(all);
  return v;
}

Value* Iteration::set_iterator(Value* set, std::vector<Value*> all) {
  Value* it = iterator_of_items(std::move(all));
  it->type = &PySetIter_Type;
  body<Iterator>(it).base = set;   // looked at for its length
  body<Iterator>(it).size = body<Iterator>(it).parts.size();
  return it;
}

Value* Iteration::iter(Value* v) {
  const Tail tail = endings.take_tail();
  if (v->kind == Kind::lazy && v->type->tp_iter == PyObject_SelfIter && !(v->type->tp_flags & Py_TPFLAGS_HEAPTYPE) && v->source) {
    guards.add(v->source, GuardKind::type, reinterpret_cast<PyObject*>(v->type));   // another one at every call: not by identity
    return v;
  }
  values.force(v);
  const bool is_container = v->kind == Kind::list || v->kind == Kind::tuple || v->kind == Kind::dict || v->kind == Kind::set;
  if (!is_container || (attributes.lookup_type(v->type, names().__iter__) != Py_None && !attributes.own_method(v->type, names().__iter__)))
    if (Value* it = plain_iter(v); it || exceptions.raised()) return it;
  PyTypeObject* type = v->kind == Kind::klass ? Py_TYPE(v->real) : v->type;
  if (attributes.lookup_type(type, names().__iter__) == Py_None) return exceptions.raise(PyExc_TypeError, std::string("'") + type->tp_name + "' object is not iterable");
  if (Value* own = attributes.special(v, names().__iter__)) {
    endings.end_with(tail, "after_iter", {});
    Value* it = calls.call(own, {});
    if (!it) return nullptr;
    const Kind k = values.kind(it);
    if (k == Kind::opaque) stop("opaque-iterator", values.describe(it) + " is iterated, which capture does not know");
    if (k != Kind::iterator && k != Kind::generator && !(k == Kind::object && attributes.lookup_type(it->type, names().__next__)))
      return exceptions.raise(PyExc_TypeError, std::string("iter() returned non-iterator of type '") + it->type->tp_name + "'");
    return it;
  }
  if (exceptions.raised()) return nullptr;
  if (attributes.special(v, names().__getitem__)) {   // the old protocol: 0, 1, 2, … until IndexError
    return values.make_iterator(Iterator::What::callable, v);
  }
  if (exceptions.raised()) return nullptr;
  return exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object is not iterable");
}

Value* Iteration::plain_iter(Value* v) {
  switch (v->kind) {
    case Kind::generator: if (v->type == &PyCoro_Type) return exceptions.raise(PyExc_TypeError, "'coroutine' object is not iterable"); return v;
    case Kind::iterator: return v;
    case Kind::list: case Kind::tuple:
      values.items(v);
      {
        Value* it = values.make_iterator(Iterator::What::sequence, v);
        body<Iterator>(it).changes = body<Sequence>(v).changes;
        return it;
      }
    case Kind::dict:
      return iterate_mapping(v, View::What::keys);
    case Kind::view: return iterate_mapping(body<View>(v).dict, body<View>(v).what);
    case Kind::set: {
      if (v->real && v->is_changed && mappings.keys_of(v).size() > 1) stop("set-order", "a set that existed before the call is changed and then iterated over");
      if (v->real && !v->is_changed) {
        mappings.set_load(v);
        PyObject* in_order = values.keep(PySequence_Tuple(values.keep(PySet_Type.tp_iter(v->real))));
        guards.add(v->source, GuardKind::dict_keys, in_order);
        std::vector<Value*> all;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(in_order); ++i) all.push_back(mappings.value_of_key(PyTuple_GET_ITEM(in_order, i)));
        return set_iterator(v, std::move(all));
      }
      std::vector<Value*> all;
      for (PyObject* k : mappings.keys_of(v)) all.push_back(mappings.value_of_key(k));
      return set_iterator(v, std::move(all));
    }
    case Kind::constant: {
      PyObject* o = v->real;
      if (PyTuple_Check(o) || PyUnicode_Check(o) || PyRange_Check(o) || PyBytes_Check(o) || PyFrozenSet_Check(o)) {
        const Py_ssize_t n = PyObject_Size(o);
        if (n > 1'000'000) throw frames::Skip{{.id = "too-long", .what = "a loop has more than a million iterations", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::none}};
        if (PyRange_Check(o)) {
          Value* it = values.make_iterator(Iterator::What::real_sequence, v);
          it->type = &PyRangeIter_Type;
          body<Iterator>(it).size = static_cast<size_t>(n);
          return it;
        }
        std::vector<Value*> all;
        PyObject* iterator = values.keep(PyObject_GetIter(o));
        while (PyObject* item = PyIter_Next(iterator)) all.push_back(values.wrap_constant_object(values.keep(item)));
        Value* it = iterator_of_items(std::move(all));
        it->type = Py_TYPE(iterator);
        return it;
      }
      break;
    }
    case Kind::tensor: {
      if (torch_calls.in_mode()) stop("function-mode", "a tensor is iterated over inside a TorchFunctionMode");
      if (torch_calls.overrides(v) && !torch_calls.overrides_by_default(v)) stop("tensor-class", "a tensor is iterated over, whose class has its own __torch_function__");
      const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
      if (!fake.dim()) return exceptions.raise(PyExc_TypeError, "iteration over a 0-d tensor"), exceptions.doubt("Tensor.__iter__");
      // Autograd lets nobody write to a view that is one of several: eager's rows are such views.
      if ((fake.requires_grad() && at::GradMode::is_enabled()) || torch_calls.overrides(v)) {
        Value* rows = leaves.call_tensor_method(v, values.keep(PyUnicode_InternFromString("unbind")), {v});
        return rows ? iter(rows) : nullptr;
      }
      std::vector<Value*> rows;
      for (int64_t i = 0; i < fake.size(0); ++i) { Value* row = subscripts.subscript(v, values.integer(i)); if (!row) return nullptr; rows.push_back(row); }
      return iter(values.make_tuple(std::move(rows)));   // as that of unbind()
    }
    case Kind::opaque: {
      if (v->type == known().mappingproxy) break;
      stop("opaque-iterator", values.describe(v) + " is iterated over, which capture does not know");
    }
    case Kind::klass:
      if (is_enum(reinterpret_cast<PyTypeObject*>(v->real))) {
        std::vector<Value*> all;
        PyObject* iterator = values.keep(PyObject_GetIter(v->real));
        while (PyObject* item = PyIter_Next(iterator)) all.push_back(values.constant(values.keep(item)));
        return iterator_of_items(std::move(all));
      }
      break;
    default: break;
  }
  return nullptr;
}

Value* Iteration::iterate_mapping(Value* dict, View::What shows) {
  Value* it = values.make_iterator(Iterator::What::mapping, dict);
  Iterator& i = body<Iterator>(it);
  i.shows = shows;
  for (PyObject* k : mappings.keys_of(dict)) i.parts.push_back(mappings.value_of_key(k));
  i.size = i.parts.size();
  i.changes = body<Mapping>(dict).changes;
  it->type = PyType_IsSubtype(dict->type, known().ordered_dict) ? &PyODictIter_Type : shows == View::What::keys ? &PyDictIterKey_Type : shows == View::What::values ? &PyDictIterValue_Type : &PyDictIterItem_Type;
  return it;
}

const char* Iteration::ending_of_items(Value* it) {
  if (it->kind == Kind::generator) return "after_item_of_generator";
  const bool gives_values = it->kind == Kind::object || (it->kind == Kind::iterator && body<Iterator>(it).what == Iterator::What::map);
  return gives_values ? "after_item" : nullptr;
}

Value* Iteration::next(Value* v, bool* is_exhausted) {
  Value* item = next_item(v, is_exhausted);
  if (!item && exceptions.raised_is(PyExc_StopIteration)) {   // the function of a map, the iterators of a zip: who asks takes it for the end
    exceptions.take_raised();
    *is_exhausted = true;
  }
  return item;
}

Value* Iteration::next_item(Value* v, bool* is_exhausted) {
  const Tail tail = endings.take_tail();
  *is_exhausted = false;
  values.force(v);
  effects.note_watched(v);
  const bool in_loop = tail.is && !tail.ending && frame_stack.innermost()->code->instructions()[frame_stack.innermost()->pc].op == bytecode::Op::FOR_ITER;
  if (v->kind == Kind::generator) {
    endings.hand_on(tail);
    Value* r = interpreter.resume_generator(v, values.none(), nullptr);
    if (!r && !exceptions.raised()) *is_exhausted = true;
    return r;
  }
  if (v->kind != Kind::iterator) {
    if (v->kind == Kind::opaque || (v->real && is_polyfill_module(bytecode::in_type_dict(v->type, "__module__")))) {   // or one that stood for one of C before a break
      if (frame_stack.innermost() && frame_stack.innermost()->code->instructions()[frame_stack.innermost()->pc].op == bytecode::Op::FOR_ITER)
        stop("opaque-iterator", "a loop asks an iterator of type " + std::string(v->type->tp_name) + " for the next item, which was created by the caller or before an earlier break");
      stop("opaque-iterator", "the next item of " + values.describe(v) + " is taken, which capture does not know");
    }
    Value* own = attributes.special(v, names().__next__);
    if (!own) {
      if (!exceptions.raised()) exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object is not an iterator");
      return nullptr;
    }
    if (in_loop) endings.end_with(tail, "after_next", {});
    else endings.hand_on(tail);
    Value* r = calls.call(own, {});
    if (!r && exceptions.raised_is(PyExc_StopIteration)) {
      Value* e = exceptions.take_raised();
      interpreter.set_last_return(body<Object>(e).arguments && !values.items(body<Object>(e).arguments).empty() ? values.items(body<Object>(e).arguments)[0] : values.none());
      *is_exhausted = true;
    }
    return r;
  }
  Iterator& it = body<Iterator>(v);
  if ((it.what == Iterator::What::sequence || it.what == Iterator::What::reversed) && containers.is_deque(it.base) && body<Sequence>(it.base).changes != it.changes)
    return exceptions.raise(PyExc_RuntimeError, "deque mutated during iteration");
  if (it.is_done) { *is_exhausted = true; return nullptr; }
  auto end = [&]() -> Value* { it.is_done = true; *is_exhausted = true; return nullptr; };
  switch (it.what) {
    case Iterator::What::sequence: {
      auto& all = values.items(it.base);
      if (it.position >= all.size()) return end();
      return all[it.position++];
    }
    case Iterator::What::constants:
      if (it.base && mappings.keys_of(it.base).size() != it.size) return exceptions.raise(PyExc_RuntimeError, "Set changed size during iteration");
      if (it.position >= it.parts.size()) return end();
      return it.parts[it.position++];
    case Iterator::What::real_sequence: {
      if (it.position >= it.size) return end();
      return values.constant_steal(PySequence_GetItem(it.base->real, static_cast<Py_ssize_t>(it.position++)));
    }
    case Iterator::What::mapping: {
      if (PyType_IsSubtype(it.base->type, known().ordered_dict)) {   // it knows when it has given its last item, and looks at nothing then
        if (it.position >= it.parts.size()) return end();
        if (mappings.dict_size(it.base) != it.size) return exceptions.raise(PyExc_RuntimeError, "OrderedDict mutated during iteration");
      }
      if (mappings.dict_size(it.base) != it.size) return exceptions.raise(PyExc_RuntimeError, "dictionary changed size during iteration");
      if (body<Mapping>(it.base).changes != it.changes) stop("dict-changed", "a dict changes its keys while it is iterated over");   // what comes next depends on how it is stored
      if (it.position >= it.parts.size()) return end();
      Value* key = it.parts[it.position++];
      if (it.shows == View::What::keys) return key;
      Value* x = mappings.dict_get(it.base, mappings.key_of(key));
      if (!x) return exceptions.raise(PyExc_RuntimeError, "dictionary keys changed during iteration");
      return it.shows == View::What::values ? x : values.make_tuple({key, x});
    }
    case Iterator::What::enumerate: {
      Value* x = next(it.base, is_exhausted);   // as zip, map and filter it asks again after the end
      if (!x) return nullptr;
      Value* number = values.constant(it.counter);
      static PyObject* const one = PyLong_FromLong(1);
      it.counter = values.keep(PyNumber_Add(it.counter, one));
      return values.make_tuple({number, x});
    }
    case Iterator::What::zip: {
      std::vector<Value*> row;
      for (size_t i = 0; i < it.parts.size(); ++i) {
        Value* x = next(it.parts[i], is_exhausted);
        if (!x) {
          if (!*is_exhausted) return nullptr;
          if (it.is_strict) {
            if (i) {
              *is_exhausted = false;
              return exceptions.raise(PyExc_ValueError, "zip() argument " + std::to_string(i + 1) + " is shorter than argument" + (i == 1 ? " 1" : "s 1-" + std::to_string(i)));
            }
            for (size_t j = 1; j < it.parts.size(); ++j) {
              bool done = false;
              Value* more = next(it.parts[j], &done);
              if (more) {
                *is_exhausted = false;
                return exceptions.raise(PyExc_ValueError, "zip() argument " + std::to_string(j + 1) + " is longer than argument" + (j == 1 ? " 1" : "s 1-" + std::to_string(j)));
              }
              if (!done) { *is_exhausted = false; return nullptr; }
            }
          }
          return nullptr;
        }
        row.push_back(x);
      }
      if (it.parts.empty()) return end();
      return values.make_tuple(std::move(row));
    }
    case Iterator::What::map: {
      std::vector<Value*> row;
      for (Value* p : it.parts) {
        Value* x = next(p, is_exhausted);
        if (!x) return nullptr;
        row.push_back(x);
      }
      if (in_loop) endings.end_with(tail, "after_next", {});
      else endings.hand_on(tail);
      return calls.call(it.base, Args(row));
    }
    case Iterator::What::filter:
      for (;;) {
        Value* x = next(it.parts[0], is_exhausted);
        if (!x) return nullptr;
        Value* answer = x;
        if (in_loop) endings.end_with(tail, "after_filter", {it.base, x, it.parts[0]});
        if (!values.is_constant(it.base, Py_None)) answer = calls.call(it.base, {x});
        endings.take_tail();
        if (!answer) return nullptr;
        const int t = subscripts.truth(answer);
        if (t < 0) return nullptr;
        if (t) return x;
      }
    case Iterator::What::reversed: {
      auto& all = values.items(it.base);
      if (it.position == 0 || it.position > all.size()) return end();
      return all[--it.position];
    }
    case Iterator::What::callable: {
      Value* x = subscripts.subscript(it.base, values.integer(static_cast<long long>(it.position)));
      if (!x) {
        if (exceptions.raised_is(PyExc_IndexError) || exceptions.raised_is(PyExc_StopIteration)) { exceptions.take_raised(); return end(); }
        return nullptr;
      }
      ++it.position;
      return x;
    }
    case Iterator::What::reversed_callable: {
      if (!it.position) return end();
      Value* x = subscripts.subscript(it.base, values.integer(static_cast<long long>(it.position) - 1));
      if (!x) {
        if (exceptions.raised_is(PyExc_IndexError) || exceptions.raised_is(PyExc_StopIteration)) { exceptions.take_raised(); return end(); }
        return nullptr;
      }
      --it.position;
      return x;
    }
    case Iterator::What::sentinel: {
      Value* x = calls.call(it.base, {});
      if (!x && exceptions.raised_is(PyExc_StopIteration)) { exceptions.take_raised(); return end(); }
      if (!x) return nullptr;
      const int same = operators.equal(it.parts[0], x);
      if (same < 0) return nullptr;
      return same ? end() : x;
    }
  }
  return end();
}

bool Iteration::unpack(Value* v, std::vector<Value*>* into, PyTypeObject* as, size_t most) {
  const Tail tail = endings.take_tail();
  values.force(v);
  if ((v->kind == Kind::tuple || v->kind == Kind::list) && !(v->type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
    auto& all = values.items(v);
    into->insert(into->end(), all.begin(), all.end());
    return true;
  }
  Value* it = iter(v);
  if (!it) return false;
  if (most == SIZE_MAX && !subscripts.ask_length(v)) return false;
  Value* so_far = nullptr;   // as the frame behind a break has them
  const char* ending = nullptr;
  if (tail.is && as) {
    ending = ending_of_items(it);
    if (ending) so_far = values.make_list({});
  }
  for (;;) {
    bool done = false;
    if (so_far) endings.end_with(tail, ending, {so_far, it->kind == Kind::generator ? values.none() : it, values.wrap_constant_object(reinterpret_cast<PyObject*>(as))});
    Value* x = next(it, &done);
    if (done) return true;
    if (!x) return false;
    into->push_back(x);
    if (into->size() >= most) return true;
    if (so_far) values.items(so_far).push_back(x);
  }
}

bool Iteration::unpack_for_targets(Value* v, std::vector<Value*>* into, size_t most, size_t before) {
  values.force(v);
  if (most == SIZE_MAX && (v->kind == Kind::object || is_user_class(v->type))) {   // a, *b = v: the list is made of the iterator, after a
    Value* it = iter(v);
    for (size_t i = 0; it && i < before; ++i) {
      bool done = false;
      Value* x = next(it, &done);
      if (!x) return done;
      into->push_back(x);
    }
    return it && unpack(it, into);
  }
  if (unpack(v, into, nullptr, most)) return true;
  if (values.kind(v) == Kind::constant && exceptions.raised_is(PyExc_TypeError) && !Py_TYPE(v->real)->tp_iter && !PySequence_Check(v->real)) {
    exceptions.take_raised();
    exceptions.raise(PyExc_TypeError, std::string("cannot unpack non-iterable ") + v->type->tp_name + " object");
  }
  return false;
}

// As Python extends: what is iterated may look at the list, and what came before an error stays.
bool Iteration::extend(Value* list, Value* more) {
  values.force(more);
  if ((!is_user_class(more->type) || containers.is_deque(more)) && (more->kind == Kind::list || more->kind == Kind::tuple)) {   // it may be the same one
    const std::vector<Value*> all = values.items(more);
    for (Value* x : all) containers.append(list, x);
    effects.mark_changed(list);
    return true;
  }
  endings.take_tail();
  Value* it = iter(more);
  if (!it || (!containers.is_deque(list) && !subscripts.ask_length(more))) return false;
  for (bool done = false;;) {
    Value* x = next(it, &done);
    if (done) return true;
    if (!x) return false;
    containers.append(list, x);
    effects.mark_changed(list);
  }
}

bool Iteration::update_by_keywords(Value* dict, const Args& args) {
  if (!args.keyword_count) return true;
  Value* given = values.make_dict();
  for (size_t i = 0; i < args.keyword_count; ++i) mappings.dict_set(given, args.keywords[i].first, args.keywords[i].second);
  return dict_update(dict, given);
}

bool Iteration::dict_update(Value* into, Value* from, Value* called) {
  values.force(from);
  const bool is_ordered = PyType_IsSubtype(into->type, known().ordered_dict) != 0;
  const bool by_own = is_ordered && attributes.own_method(into->type, names().__setitem__);   // OrderedDict asks the class, dict does not
  const auto is_new = [&](PyObject* k) {   // asked before the value is
    if (called && mappings.dict_get(into, k)) exceptions.raise(PyExc_TypeError, library.callable_text(called) + " got multiple values for keyword argument '" + (PyUnicode_Check(k) ? PyUnicode_AsUTF8(k) : "?") + "'");
    return !exceptions.raised();
  };
  auto put = [&](Value* key, PyObject* k, Value* x) {
    if (!is_new(k)) return false;
    if (by_own) return subscripts.store_subscript(into, key ? key : mappings.value_of_key(k), x);
    mappings.dict_set(into, k, x);
    return true;
  };
  // A class below dict is read as a dict unless it iterates in its own way; one below OrderedDict by its methods.
  const bool is_plain = from->kind == Kind::dict && (!is_user_class(from->type) || (!PyType_IsSubtype(from->type, known().ordered_dict) && !attributes.own_method(from->type, names().__iter__)) ||
                                                    !(attributes.own_method(from->type, names().__iter__) || attributes.own_method(from->type, names().keys) || attributes.own_method(from->type, names().__getitem__)));
  if (is_plain) {
    for (PyObject* k : mappings.keys_of(from))
      if (!put(nullptr, k, mappings.dict_get(from, k))) return false;
    return true;
  }
  if (from->kind == Kind::opaque || from->kind == Kind::klass || from->kind == Kind::module) stop("opaque-object", "a dict is updated from " + values.describe(from));
  Value* keys_method = nullptr;
  if (from->kind == Kind::object || is_user_class(from->type)) {
    keys_method = attributes.getattr(from, names().keys);
    if (exceptions.raised_is(PyExc_AttributeError)) exceptions.take_raised();
    if (exceptions.raised()) return false;
  }
  if (keys_method) {
    Value* keys = calls.call(keys_method, {});
    if (!keys) return false;
    if (!is_ordered) {   // dict makes a list of them first, and has its own words for what is none
      Value* it = iter(keys);
      if (!it && exceptions.raised_is(PyExc_TypeError)) {
        exceptions.take_raised();
        exceptions.raise(PyExc_TypeError, std::string(from->type->tp_name) + ".keys() returned a non-iterable (type " + values.type_of(keys)->tp_name + ")");
      }
      std::vector<Value*> all;
      if (!it || !unpack(it, &all)) return false;
      keys = values.make_list(std::move(all));
    }
    return for_each(keys, [&](Value* key) {
      if (PyObject* k = called ? mappings.key_of(key) : nullptr; called && (!k || !is_new(k))) return false;
      Value* x = subscripts.subscript(from, key);
      PyObject* k = x ? mappings.key_of(key) : nullptr;
      return k && put(key, k, x);
    });
  }
  size_t at = 0;
  return for_each(from, [&](Value* p) {
    std::vector<Value*> pair;
    if (!unpack(p, &pair)) {
      if (is_ordered) stop("c-constructor", "an OrderedDict is made of what is no pair");   // with words of its own
      if (exceptions.raised_is(PyExc_TypeError)) { exceptions.take_raised(); exceptions.raise(PyExc_TypeError, "cannot convert dictionary update sequence element #" + std::to_string(at) + " to a sequence"); }
      return false;
    }
    if (pair.size() != 2 && is_ordered) stop("c-constructor", "an OrderedDict is made of what is no pair");
    if (pair.size() != 2) { exceptions.raise(PyExc_ValueError, "dictionary update sequence element #" + std::to_string(at) + " has length " + std::to_string(pair.size()) + "; 2 is required"); return false; }
    ++at;
    PyObject* k = mappings.key_of(pair[0]);
    return k && put(pair[0], k, pair[1]);
  });
}

}  // namespace cutaway::capture
