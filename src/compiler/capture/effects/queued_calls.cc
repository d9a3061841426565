// Calls that run after the graph: loggers and warnings. They are queued only where no code of the program hears them.
#include <string_view>
#include <unordered_map>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

namespace {

std::string module_of(PyTypeObject* t) {
  PyObject* m = t ? PyObject_GetAttrString(reinterpret_cast<PyObject*>(t), "__module__") : nullptr;
  std::string text = m && PyUnicode_Check(m) ? PyUnicode_AsUTF8(m) : "";
  if (!m) PyErr_Clear();
  Py_XDECREF(m);
  return text;
}

bool is_of_logging(PyTypeObject* t) {
  const std::string module = module_of(t);
  return module == "logging" || module == "logging.handlers";
}

long number(const Owners& t, Value* v) {
  PyObject* o = v ? t.values.as_constant(t.values.force(v)) : nullptr;
  return o && PyLong_Check(o) ? PyLong_AsLong(o) : -1;
}

/// Code of the program's own that a call of a logger runs: it may change what the program looks at next, or raise. Empty: none.
std::string listener_of_logger(const Owners& t, Value* logger, long level) {
  const auto is_empty = [&](Value* list) { return list && t.values.kind(list) == Kind::list && t.values.items(list).empty(); };
  if (Value* manager = t.attributes.getattr(logger, "manager"); level >= 0 && manager && number(t, t.attributes.getattr(manager, "disable")) >= level) return {};
  bool is_level_known = false;
  std::string found;
  for (Value* at = logger; at && t.values.kind(at) == Kind::object;) {
    if (!is_level_known)
      if (const long own = number(t, t.attributes.getattr(at, "level")); own != 0) {
        if (own > 0 && level >= 0 && level < own) return {};   // nobody hears it
        is_level_known = true;
      }
    if (at == logger && !is_of_logging(at->type)) found = "its class is the program's own";
    if (at == logger && !is_empty(t.attributes.getattr(at, "filters"))) found = "it has a filter";
    if (found.empty()) {
      Value* handlers = t.attributes.getattr(at, "handlers");
      if (!handlers || t.values.kind(handlers) != Kind::list) { t.exceptions.take_raised(); return "its handlers are not known"; }
      for (Value* h : t.values.items(handlers)) {
        if (t.values.kind(h) != Kind::object || !is_of_logging(h->type)) { found = "it has a handler of the program's own"; break; }
        if (!is_empty(t.attributes.getattr(h, "filters"))) found = "one of its handlers has a filter";
        if (Value* form = t.attributes.getattr(h, "formatter"); !form || (t.values.kind(form) != Kind::constant && !is_of_logging(form->type) && module_of(form->type).rfind("torch", 0) != 0)) found = "one of its handlers has a formatter of the program's own";
        if (PyObject* stream = h->real && found.empty() ? PyObject_GetAttrString(h->real, "stream") : nullptr) {
          PyObject* write = _PyType_Lookup(Py_TYPE(stream), t.values.keep(PyUnicode_InternFromString("write")));
          if (write && PyFunction_Check(write)) found = "one of its handlers writes to an object of the program's own";
          Py_DECREF(stream);
        } else PyErr_Clear();
      }
    }
    if (!found.empty() && is_level_known) break;
    Value* up = t.attributes.getattr(at, "parent");   // for the level, wherever messages go
    if (found.empty() && t.values.is_constant(t.values.force(t.attributes.getattr(at, "propagate")), Py_False) && is_level_known) break;
    at = up && t.values.kind(up) == Kind::object ? up : nullptr;
  }
  return found;
}

/// The same of warnings.warn().
std::string listener_of_warnings(const Owners& t) {
  PyObject* module = PyImport_ImportModule("warnings");
  if (!module) { PyErr_Clear(); return "the module is gone"; }
  Value* m = t.values.wrap_constant_object(t.values.keep(module));
  const auto same = [&](const char* a, const char* b) { Value *x = t.attributes.getattr(m, a), *y = t.attributes.getattr(m, b); return x && y && t.values.force(x)->real && t.values.force(x)->real == t.values.force(y)->real; };
  if (!same("showwarning", "_showwarning_orig") || !same("formatwarning", "_formatwarning_orig")) return "the program shows warnings itself";
  Value* show = t.attributes.getattr(m, "_showwarnmsg_impl");
  if (!show || t.values.kind(show) != Kind::function || !show->real || PyUnicode_CompareWithASCIIString(t.values.function(show).code->co_name, "_showwarnmsg_impl") != 0) return "warnings are recorded";
  Value* filters = t.attributes.getattr(m, "filters");
  if (!filters || t.values.kind(filters) != Kind::list) return "the filters of warnings are not known";
  for (Value* f : t.values.items(filters)) {
    PyObject* action = t.values.kind(f) == Kind::tuple && !t.values.items(f).empty() ? t.values.as_constant(t.values.force(t.values.items(f)[0])) : nullptr;
    if (!action) action = t.values.kind(f) == Kind::constant && PyTuple_Check(f->real) && PyTuple_GET_SIZE(f->real) ? PyTuple_GET_ITEM(f->real, 0) : nullptr;
    if (!action || !PyUnicode_Check(action) || PyUnicode_CompareWithASCIIString(action, "error") == 0) return "warnings may be raised";
  }
  return {};
}

}  // namespace

// A queued call runs after the graph. What the program's own code does in one must be done when the program goes on.
void Effects::refuse_listeners(Value* f, const Args& args) {
  if (options.fullgraph) return;
  std::string found;
  if (args.count && values.force(args[0])->real && PyType_IsSubtype(args[0]->type, known().logger)) {
    static const std::unordered_map<std::string_view, long> levels = {{"debug", 10}, {"info", 20}, {"warning", 30}, {"warn", 30}, {"error", 40}, {"exception", 40}, {"critical", 50}};
    const char* name = f->real && PyFunction_Check(f->real) ? PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(f->real)->func_name) : "";
    const auto level = levels.find(name);
    found = listener_of_logger(*this, args[0], level != levels.end() ? level->second : std::string_view(name) == "log" && args.count > 1 ? number(*this, args[1]) : -1);
  } else if (f->real && PyCFunction_Check(f->real)) {
    found = listener_of_warnings(*this);
  }
  if (!found.empty()) stop("queued-call", values.describe(f) + " is called, and " + found);
}

/// Runs after the graph: only with arguments that will not change meanwhile.
Value* Effects::queue_call(Value* f, const Args& args) {
  refuse_listeners(f, args);
  QueuedCall q{f, {}, {}, 0, {}};
  auto fixed = [&](Value* v) {
    values.force(v);
    if (values.as_constant(v) || (v->kind == Kind::object && v->real && PyType_IsSubtype(v->type, known().logger)) || v->kind == Kind::klass) return true;
    return false;
  };
  for (size_t i = 0; i < args.count; ++i) { if (!fixed(args[i])) stop("queued-call", values.describe(f) + " is called with " + values.describe(args[i])); q.args.push_back(args[i]); }
  for (size_t i = 0; i < args.keyword_count; ++i) { if (!fixed(args.keywords[i].second)) stop("queued-call", values.describe(f) + " is called with " + values.describe(args.keywords[i].second)); q.keywords.push_back(args.keywords[i]); }
  for (Frame* at = frame_stack.innermost(); at; at = at->caller) {
    if (at->caller && values.stands_for_c(at->function)) continue;
    if (!values.function(at->function).globals_real) stop("queued-call", values.describe(f) + " is called by code whose global names are in a dict that the compiled function made");
    int line = 0;
    for (int i = static_cast<int>(at->pc); i >= 0 && !line; --i) line = at->code->instructions()[static_cast<size_t>(i)].line;
    q.places.insert(q.places.begin(), {at->code->object(), line, values.function(at->function).globals_real});
  }
  q.before_node = tensors.node_count();
  add_queued(std::move(q));
  return values.none();
}

}  // namespace cutaway::capture
