// Logs, compile times, debug directory and event streams for Python; python/cutaway/_logs.py gives them their public form.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "app/composition/process_recorder.h"
#include "core/base/text.h"
#include "core/debug/process.h"
#include "core/debug/topics.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace cutaway::bindings {
namespace {

debug::Recorder& recorder() { return composition::process_recorder(); }

debug::Level to_level(const std::string& name) {
  for (debug::Level l : {debug::Level::error, debug::Level::warning, debug::Level::info, debug::Level::debug})
    if (name == debug::level_name(l)) return l;
  throw ErrorException({.what = "unknown level " + base::quote(name) + base::did_you_mean(name, {"error", "warning", "info", "debug"}), .place = "", .because = "", .hint = "one of error, warning, info, debug", .excerpt = ""});
}

// str(value), also where it holds half a surrogate pair, which UTF-8 has no form for.
std::string to_text(nb::handle value) {
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(nb::str(value).ptr(), "utf-8", "replace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

debug::FieldValue to_field(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (int64_t number = 0; nb::isinstance<nb::int_>(value) && nb::try_cast(value, number)) return number;
  return to_text(value);
}
nb::object from_field(const debug::FieldValue& value) {
  return std::visit([](const auto& v) { return nb::cast(v); }, value);
}

// Copies, so that the interpreter's lock can be released while sinks write.
class Fields {
 public:
  explicit Fields(const nb::dict& dict) {
    for (const auto& [key, value] : dict) stored_.emplace_back(to_text(key), to_field(value));
    for (const auto& [key, value] : stored_) views_.push_back({key, value});
  }
  debug::FieldList list() const { return debug::FieldList(std::span<const debug::Field>(views_)); }

 private:
  std::vector<std::pair<std::string, debug::FieldValue>> stored_;
  std::vector<debug::Field> views_;
};

// A phase that is open between __enter__ and __exit__.
class PythonPhase {
 public:
  /// Without a sink it belongs to the process's stream.
  PythonPhase(std::string topic, std::string name, nb::dict fields, const std::string& level, std::shared_ptr<debug::Sink> sink = nullptr)
      : topic_(std::move(topic)), name_(std::move(name)), fields_(fields), level_(to_level(level)), sink_(std::move(sink)) {}
  void enter() {
    const nb::gil_scoped_release release;
    phase_ = std::make_unique<debug::Phase>(sink_ ? sink_.get() : debug::process_sink(), topic_, name_, fields_.list(), level_);
  }
  void exit(nb::object type, nb::object value) {
    if (phase_ && !type.is_none()) phase_->fail(to_text(type.attr("__name__")) + ": " + to_text(value));
    const nb::gil_scoped_release release;
    phase_.reset();
  }
  void note(const std::string& key, nb::object value) {
    if (phase_) phase_->note(key, to_field(value));
  }

 private:
  std::string topic_, name_;
  Fields fields_;
  debug::Level level_;
  std::shared_ptr<debug::Sink> sink_;
  std::unique_ptr<debug::Phase> phase_;
};

// A file of events beside the process's stream: it holds what its owner says and nothing else.
class EventFile {
 public:
  explicit EventFile(const std::string& path) : sink_(std::make_shared<Quietable>()) {
    debug::EventFileOptions options;
    options.on_error = [sink = sink_.get()](const base::Error& e) { sink->problem = e.text(); };
    sink_->file = unwrap(debug::open_event_file(path, std::move(options)));
  }
  /// Python owns it.
  PythonPhase* phase(std::string topic, std::string name, nb::dict fields) const { return new PythonPhase(std::move(topic), std::move(name), fields, "info", sink_); }
  void decide(const std::string& topic, const std::string& name, const std::string& reason, const nb::dict& fields) const {
    const Fields stored(fields);
    const nb::gil_scoped_release release;
    debug::decide(sink_.get(), topic, name, reason, stored.list());
  }
  /// Nothing is written any more, not even the ends of phases that are open.
  void silence() { sink_->is_silent = true; }
  const std::string& problem() const { return sink_->problem; }

 private:
  struct Quietable final : debug::Sink {
    std::unique_ptr<debug::Sink> file;
    std::atomic<bool> is_silent = false;
    std::string problem;   // why writing failed; empty: it did not
    bool wants(std::string_view topic, debug::Level level) const override { return !is_silent && file->wants(topic, level); }
    void write(const debug::Event& e) override { if (!is_silent) file->write(e); }
  };
  std::shared_ptr<Quietable> sink_;
};

// A file of events that the recorder writes to until it is closed.
class EventStream {
 public:
  EventStream(const std::string& path, bool append) {
    debug::EventFileOptions options;
    options.existing = append ? debug::EventFileOptions::Existing::append : debug::EventFileOptions::Existing::replace;
    options.on_error = [](const base::Error& e) { recorder().tell(e.text()); };
    file_ = unwrap(debug::open_event_file(path, std::move(options)));
    recorder().attach(file_);
  }
  ~EventStream() { close(); }
  EventStream(const EventStream&) = delete;
  void close() {
    if (file_) recorder().detach(file_.get());
    file_.reset();
  }

 private:
  std::shared_ptr<debug::Sink> file_;
};

nb::dict to_dict(const debug::StoredEvent& e) {
  nb::dict d, fields;
  for (const auto& [key, value] : e.fields) fields[nb::cast(key)] = from_field(value);
  d["kind"] = e.kind;
  d["topic"] = e.topic;
  d["name"] = e.name;
  d["level"] = e.level;
  d["time_us"] = e.time_us;
  d["phase"] = e.phase;
  d["outer"] = e.outer;
  d["pid"] = e.pid;
  d["thread"] = e.thread;
  d["fields"] = fields;
  return d;
}

}  // namespace

void bind_debug(nb::module_& module) {
  nb::module_ m = module.def_submodule("debug", "Events and their views: logs, compile times, the debug directory.");
  recorder();

  module.def("run_folder", [] { return composition::run_folder().string(); }, "Where this process leaves bundles and records, unless it is told another place.");
  m.def("apply_environment", [] { unwrap(recorder().apply(unwrap(debug::from_environment(&debug::process_environment)))); });
  m.def("set_logs", [](const std::string& words) { recorder().set_logs(unwrap(debug::parse_logs(words, "set_logs"))); }, "words"_a);
  m.def("logs", [] { return recorder().logs().text(); });
  m.def("topics_text", &debug::topics_text);

  m.def("compile_times_text", [] { return recorder().timings().text(); });
  m.def("compile_times_rows", [] {
    nb::list rows;
    for (const debug::TimingRow& r : recorder().timings().rows()) rows.append(nb::make_tuple(r.phase, r.function, r.seconds));
    return rows;
  });
  m.def("reset_compile_times", [] { recorder().timings().reset(); });

  m.def("debug_dir", []() -> std::optional<std::string> {
    std::string path = recorder().directory_path();
    if (path.empty()) return std::nullopt;
    return path;
  });
  m.def("set_debug_dir", [](int level, const std::string& root, const std::string& files) {
    if (level < 0 || level > 5) throw nb::value_error("level must be 0 (off) to 5 (everything)");
    recorder().set_directory(root, unwrap(debug::FileChoice::parse(static_cast<debug::Ladder>(level), files, "set_debug_dir")));
  }, "level"_a, "root"_a, "files"_a);

  nb::class_<EventStream>(m, "EventStream")
      .def(nb::init<const std::string&, bool>(), "path"_a, "append"_a)
      .def("close", &EventStream::close);
  m.def("read_events", [](const std::string& path) {
    nb::list events;
    for (const debug::StoredEvent& e : unwrap(debug::read_events(path))) events.append(to_dict(e));
    return events;
  }, "path"_a);
  m.def("last_unfinished_phase", [](const std::string& path) { return debug::last_unfinished_phase(unwrap(debug::read_events(path))); }, "path"_a);
  m.def("failing_phase", [](const std::string& path) { return debug::failing_phase(unwrap(debug::read_events(path))); }, "path"_a);

  nb::class_<EventFile>(m, "EventFile", "A file of events that holds what its owner says and nothing else.")
      .def(nb::init<const std::string&>(), "path"_a)
      .def("phase", &EventFile::phase, "topic"_a, "name"_a, "fields"_a = nb::dict(), nb::rv_policy::take_ownership)
      .def("decide", &EventFile::decide, "topic"_a, "name"_a, "reason"_a = "", "fields"_a = nb::dict())
      .def("silence", &EventFile::silence, "From now on this process writes nothing to it.")
      .def_prop_ro("problem", &EventFile::problem, "Why the last write failed; empty: it did not.");

  nb::class_<PythonPhase>(m, "Phase", "with Phase(topic, name, {...}): a phase of the process's stream.")
      .def(nb::init<std::string, std::string, nb::dict, const std::string&>(), "topic"_a, "name"_a, "fields"_a = nb::dict(), "level"_a = "info")
      .def("__enter__", [](nb::object self) { nb::cast<PythonPhase&>(self).enter(); return self; })
      .def("__exit__", [](PythonPhase& p, nb::object type, nb::object value, nb::object) { p.exit(type, value); }, nb::arg().none(), nb::arg().none(), nb::arg().none())
      .def("note", &PythonPhase::note, "key"_a, "value"_a);
  m.def("say", [](const std::string& topic, const std::string& level, const std::string& text) {
    const debug::Level l = to_level(level);
    const nb::gil_scoped_release release;
    debug::say(debug::process_sink(), topic, l, text);
  }, "topic"_a, "level"_a, "text"_a);
  m.def("decide", [](const std::string& topic, const std::string& name, const std::string& reason, const nb::dict& fields, const std::string& level) {
    const debug::Level l = to_level(level);
    if (!debug::wants(debug::process_sink(), topic, l)) return;
    const Fields stored(fields);
    const nb::gil_scoped_release release;
    debug::decide(debug::process_sink(), topic, name, reason, stored.list(), l);
  }, "topic"_a, "name"_a, "reason"_a, "fields"_a = nb::dict(), "level"_a = "info");
  m.def("count", [](const std::string& topic, const std::string& name, int64_t delta) { debug::count(debug::process_sink(), topic, name, delta); }, "topic"_a, "name"_a, "delta"_a = 1);
  m.def("wants", [](const std::string& topic, const std::string& level) { return debug::wants(debug::process_sink(), topic, to_level(level)); }, "topic"_a, "level"_a);
  m.def("keeps_file", [](const std::string& file) { return recorder().keeps_file(file); }, "file"_a);
  m.def("keep_artifact", [](const std::string& component, const std::string& graph, const std::string& file, const std::string& text) {
    const nb::gil_scoped_release release;
    debug::keep_artifact(debug::process_sink(), component, graph, file, [&]() -> const std::string& { return text; });
  }, "component"_a, "graph"_a, "file"_a, "text"_a);
}

}  // namespace cutaway::bindings
