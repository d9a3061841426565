#include "compiler/frames/report.h"

#include <algorithm>
#include <set>

#include "compiler/frames/run_plan.h"
#include "core/debug/events.h"
#include "core/debug/process.h"
#include "core/ir/text.h"

namespace cutaway::frames {
namespace {

struct Listeners {
  int next = 1;
  std::vector<std::pair<int, CompileListener>> list;
};
Listeners& listeners() {
  static auto* l = new Listeners;
  return *l;
}

std::set<std::string>& places_told() {
  static auto* p = new std::set<std::string>;
  return *p;
}

ObjectRef text_object(const std::string& s) { return ObjectRef::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace")); }

std::string place_of(const CompileRecord& r) { return r.function + " (" + r.file + ":" + std::to_string(r.line) + ")"; }

}  // namespace

int add_listener(CompileListener l) {
  listeners().list.emplace_back(listeners().next, std::move(l));
  return listeners().next++;
}
void remove_listener(int number) {
  std::erase_if(listeners().list, [&](const auto& row) { return row.first == number; });
}

bool somebody_listens() { return !listeners().list.empty(); }

namespace {

using Counts = std::map<std::string, std::map<std::string, int64_t>>;
constexpr const char* kTopic = "frames";
constexpr const char* kOutcomes[] = {"compiled", "skipped", "failed", "limit"};   // names of the events, by CompileRecord::Outcome

/// What one event of that topic adds. `find` returns a field of it, or null.
template <class Find> void add_to(Counts& counts, std::string_view outcome, Find&& find) {
  const auto text = [&](std::string_view key) { const auto* f = find(key); return f ? std::string(debug::FieldView(*f).text()) : std::string(); };
  const bool is_compiled = outcome == kOutcomes[0];
  counts["frames"]["total"]++;
  counts["frames"][is_compiled ? "ok" : std::string(outcome)]++;
  if (outcome == kOutcomes[1]) counts["skips"][text("reason")]++;
  if (!is_compiled) return;
  if (const auto* operators = find("operators")) {   // there is a graph
    counts["stats"]["unique_graphs"]++;
    counts["stats"]["calls_captured"] += debug::FieldView(*operators).integer();
  }
  if (find("recompile")) counts["recompiles"][text("function")]++;
  if (find("id")) counts["graph_break"][text("reason")]++;
}

/// The view of this process: it sees every event of the topic, whatever the log wants.
struct CountingSink final : debug::Sink {
  Counts counts;
  bool wants(std::string_view topic, debug::Level) const override { return topic == kTopic; }
  void write(const debug::Event& e) override { add_to(counts, e.name, [&](std::string_view key) { return e.find(key); }); }
};
CountingSink& counting() {
  static auto* c = new CountingSink;
  return *c;
}

/// The one event of a compilation.
void tell_outcome(debug::Sink* sink, const CompileRecord& r) {
  std::vector<debug::Field> fields = {{"function", r.function}, {"file", r.file}, {"line", r.line}};
  if (r.is_resume) fields.push_back({"is_resume", true});
  if (!r.graph_name.empty()) fields.push_back({"graph", r.graph_name});
  if (r.plan && r.plan->graph) fields.push_back({"operators", r.plan->op_count});
  if (!r.recompile_reason.empty()) fields.push_back({"recompile", r.recompile_reason});
  if (!r.reason.id.empty()) fields.push_back({"id", r.reason.id});
  if (r.seconds > 0) fields.push_back({"seconds", r.seconds});
  if (r.backend_seconds > 0) fields.push_back({"backend_seconds", r.backend_seconds});
  const auto all = debug::tee({&counting(), sink});
  debug::decide(all.get(), kTopic, kOutcomes[static_cast<int>(r.outcome)], r.reason.what, debug::FieldList(fields), debug::Level::debug);
}

}  // namespace

Counts& counters() { return counting().counts; }
Counts count_frames(const std::vector<debug::StoredEvent>& events) {
  Counts counts;
  for (const debug::StoredEvent& e : events)
    if (e.topic == kTopic && e.kind == "decision") add_to(counts, e.name, [&](std::string_view key) { return e.find(key); });
  return counts;
}

std::string reason_text(const BreakReason& r) {
  std::string out = r.what;
  if (r.cause) out += "\n   because the graph had to end: " + reason_line(*r.cause);
  if (!r.stack.empty()) out += "\n   user stack, innermost last:";
  for (const BreakReason::Frame& f : r.stack) {
    out += "\n     " + f.file + ":" + std::to_string(f.line) + " in " + f.function;
    if (!f.text.empty()) out += "\n       " + f.text;
  }
  if (!r.hint.empty()) out += "\n   try: " + r.hint;
  return out;
}

std::string reason_line(const BreakReason& r) {
  std::string out = r.what.substr(0, r.what.find('\n'));
  if (r.cause) return out + ", because the graph had to end: " + reason_line(*r.cause);
  if (r.stack.empty()) return out;
  const BreakReason::Frame& f = r.stack.back();
  out += " (" + f.file + ":" + std::to_string(f.line) + " in " + f.function + (f.text.empty() ? "" : ": " + f.text) + ")";
  return out;
}

void add_source_lines(BreakReason& reason) {
  ObjectRef module = ObjectRef::steal(PyImport_ImportModule("linecache"));
  for (BreakReason::Frame& f : reason.stack) {
    if (!f.text.empty() || !module) continue;
    ObjectRef line = ObjectRef::steal(PyObject_CallMethod(module.get(), "getline", "si", f.file.c_str(), f.line));
    const char* text = line && PyUnicode_Check(line.get()) ? PyUnicode_AsUTF8(line.get()) : nullptr;
    if (!text) continue;
    f.text = text;
    const size_t first = f.text.find_first_not_of(" \t"), last = f.text.find_last_not_of(" \t\n\r");
    f.text = first == std::string::npos ? "" : f.text.substr(first, last - first + 1);
  }
  PyErr_Clear();
}

ObjectRef exception_class(const char* name) {
  const ObjectRef module = ObjectRef::steal(PyImport_ImportModule("cutaway.exc"));
  return module ? ObjectRef::steal(PyObject_GetAttrString(module.get(), name)) : ObjectRef();
}

void raise(const char* type, const std::string& text, const BreakReason* reason) {
  const ObjectRef cls = exception_class(type);
  ObjectRef message = text_object(text);
  ObjectRef error = cls && message ? ObjectRef::steal(PyObject_CallOneArg(cls.get(), message.get())) : ObjectRef();
  if (!error) return;   // the failure to make it is set instead
  if (reason) {
    const auto set = [&](const char* name, ObjectRef value) { if (value && PyObject_SetAttrString(error.get(), name, value.get()) < 0) PyErr_Clear(); };
    set("reason_id", text_object(reason->id));
    set("reason", text_object(reason->what));
    set("hint", text_object(reason->hint));
    if (reason->cause) set("cause", text_object(reason_line(*reason->cause)));
    ObjectRef stack = ObjectRef::steal(PyList_New(0));
    for (const BreakReason::Frame& f : reason->stack) {
      ObjectRef row = ObjectRef::steal(Py_BuildValue("(NiNN)", text_object(f.file).release(), f.line, text_object(f.function).release(), text_object(f.text).release()));
      if (!row || PyList_Append(stack.get(), row.get()) < 0) PyErr_Clear();
    }
    set("user_stack", stack);
  }
  PyErr_SetObject(cls.get(), error.get());
}

void warn(const std::string& topic, const std::string& text) { debug::say(debug::process_sink(), topic, debug::Level::warning, text); }

std::string raised_text() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  ObjectRef text = value ? ObjectRef::steal(PyObject_Str(value)) : ObjectRef();
  std::string out = type ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "no exception";
  const char* data = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (data && *data) out += std::string(": ") + data;
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return out;
}

namespace {
// A warning is one line, once a place: a recompile breaks where it broke before. The whole stack is there for who asks for more.
void tell_break(debug::Sink* sink, const CompileRecord& r) {
  const std::string line = reason_line(r.reason);
  const bool is_new = places_told().insert(place_of(r) + line).second;
  const bool in_full = settings().verbose || debug::wants(sink, "breaks", debug::Level::info);
  debug::decide(sink, "breaks", "graph break", in_full ? reason_text(r.reason) : line, {{"function", r.function}, {"id", r.reason.id}, {"file", r.file}, {"line", r.line}},
                is_new ? debug::Level::warning : debug::Level::info);
}
}  // namespace

void forget_what_was_told() { places_told().clear(); }

void tell(const CompileRecord& r) {
  debug::Sink* sink = debug::process_sink();
  switch (r.outcome) {
    case CompileRecord::Outcome::compiled: {
      if (!r.recompile_reason.empty())
        debug::decide(sink, "recompiles", "recompile", r.recompile_reason, {{"function", r.function}, {"file", r.file}, {"line", r.line}});
      if (debug::wants(sink, "guards", debug::Level::info)) {
        std::string all;
        for (const std::string& g : r.guards) all += "\n  " + g;
        debug::say(sink, "guards", debug::Level::info, place_of(r) + ": " + std::to_string(r.guards.size()) + " guards" + all);
      }
      if (r.plan && r.plan->captured && debug::wants(sink, "graph", debug::Level::info))
        debug::say(sink, "graph", debug::Level::info, place_of(r) + "\n" + ir::print(*r.plan->captured));
      if (r.plan && debug::wants(sink, "bytecode", debug::Level::info)) debug::say(sink, "bytecode", debug::Level::info, place_of(r) + ", compiled:\n" + plan_text(*r.plan));
      if (!r.reason.id.empty()) tell_break(sink, r);
      break;
    }
    case CompileRecord::Outcome::skipped:
      debug::decide(sink, "breaks", "frame skipped", place_of(r) + ": " + reason_text(r.reason), {{"function", r.function}, {"id", r.reason.id}});
      break;
    case CompileRecord::Outcome::failed:
    case CompileRecord::Outcome::limit:
      break;
  }
  tell_outcome(sink, r);
  const auto list = listeners().list;   // a listener may remove itself
  for (const auto& [number, listen] : list) listen(r);
}

}  // namespace cutaway::frames
