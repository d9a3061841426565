// Records of frames that could not be captured: reading them as data, capturing one again.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "compiler/replay/frame_replay.h"
#include "core/debug/process.h"
#include "core/record/frame_record.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace cutaway::bindings {
namespace {

nb::object failure_dict(const record::Failure& f) {
  nb::dict d;
  d["kind"] = f.kind;
  d["id"] = f.id;
  d["what"] = f.what;
  d["hint"] = f.hint;
  d["instruction"] = f.instruction;
  nb::list stack;
  for (const record::StackFrame& s : f.stack) stack.append(nb::make_tuple(s.file, s.line, s.function, s.text));
  d["stack"] = stack;
  return d;
}

}  // namespace

void bind_replay(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("replay", "Records of frames that could not be captured.");
  m.def("summary", [](const std::string& path) { return record::summary(unwrap(record::read_record(path))); }, "path"_a, "What a record holds, for people. Executes nothing.");
  m.def("modules", [](const std::string& path) { return record::imported_modules(unwrap(record::read_record(path))); }, "path"_a, "Modules that replaying it imports.");
  m.def("run", [](const std::string& path) {
    const replay::Replayed r = unwrap(replay::replay_frame(path, debug::process_sink()));
    nb::dict d;
    d["recorded"] = failure_dict(r.recorded);
    d["now"] = r.is_captured ? nb::object(nb::none()) : failure_dict(r.now);
    d["same"] = r.is_same;
    d["plan"] = r.plan;
    return d;
  }, "path"_a, "Makes the record's objects, which runs its code, and captures its frame.");
}

}  // namespace cutaway::bindings
