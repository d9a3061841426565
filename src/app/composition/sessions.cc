#include "app/composition/sessions.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "app/casters/errors.h"
#include "app/composition/graph_compilers.h"
#include "app/composition/process_recorder.h"
#include "compiler/backends/backend.h"
#include "compiler/capture/capture.h"
#include "compiler/replay/frame_replay.h"
#include "core/capabilities/capabilities.h"

namespace nb = nanobind;

namespace cutaway::composition {

using bytecode::ObjectRef;
using casters::unwrap;

std::shared_ptr<frames::Session> make_session(std::string name, nb::object backend, nb::object compile, bool fullgraph, std::optional<bool> dynamic, bool shared,
                                              std::optional<int64_t> observe_limit) {
  static auto* known = new std::vector<std::weak_ptr<frames::Session>>;
  std::erase_if(*known, [](const auto& w) { return w.expired(); });
  if (shared)
    for (const auto& weak : *known)
      if (auto s = weak.lock(); s && s->backend_name == name && s->backend.get() == backend.ptr() && s->fullgraph == fullgraph && s->dynamic == dynamic) return s;
  auto s = std::make_shared<frames::Session>();
  if (shared) known->push_back(s);
  s->backend_name = std::move(name);
  s->backend = ObjectRef::borrow(backend.ptr());
  s->fullgraph = fullgraph;
  s->dynamic = dynamic;
  s->observe_limit = observe_limit;
  s->capture = [](const guards::FrameView& f, const bytecode::Code& c, const frames::CaptureOptions& o, const frames::Compile& compile) { return capture::capture_frame(f, c, o, compile); };
  s->record = [](const frames::FailedFrame& f) -> base::Result<std::string> {
    auto path = replay::write_frame(f, {.folder = records_folder().string(), .versions = {{"cutaway", CUTAWAY_VERSION}}});
    if (path.ok()) nb::module_::import_("cutaway._replay").attr("_written").attr("add")(*path);
    return path;
  };
  s->with_backend = [fullgraph, dynamic](PyObject* other) -> std::shared_ptr<frames::Session> {
    try {
      return nb::cast<std::shared_ptr<frames::Session>>(nb::module_::import_("cutaway._compile").attr("_session")(nb::borrow(other), fullgraph, dynamic, nb::none(), nb::none()));
    } catch (nb::python_error& e) {
      e.restore();
      return nullptr;
    }
  };
  if (!compile.is_none()) s->compile = compile_by(ObjectRef::borrow(compile.ptr()));
  else if (capabilities::row_of(s->backend_name).last_stage == capabilities::Stage::capture) s->compile = &compile_program;
  else {
    unwrap(backends::find_backend(s->backend_name));   // a setting that it does not have is said now, not left to a fall-back
    s->compile = compile_by_table(s->backend_name);
  }
  s->compile = [inner = std::move(s->compile)](frames::CapturedGraph g) {
    keep_graph_files(g);
    return inner(std::move(g));
  };
  return s;
}

}  // namespace cutaway::composition
