// The sessions of compile(): where capture, replay and a backend are put together. The only place that knows all of them.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "compiler/frames/session.h"

namespace cutaway::composition {

/// The same backend with the same options is the same session as long as anything uses it: what is compiled is shared.
/// `compile`: a Python function (graph, examples, name, sizes), or None for the backend of that name in the C++ table.
std::shared_ptr<frames::Session> make_session(std::string name, nanobind::object backend, nanobind::object compile, bool fullgraph, std::optional<bool> dynamic, bool shared,
                                              std::optional<int64_t> observe_limit);

}  // namespace cutaway::composition
