// One function a bound folder; module.cc calls them in order. They convert and forward: no logic lives here.
#pragma once
#include <nanobind/nanobind.h>

namespace cutaway::casters {}

namespace cutaway::bindings {
using namespace casters;   // every binding converts
void bind_ir(nanobind::module_&);
void bind_store(nanobind::module_&);
void bind_tensor(nanobind::module_&);
void bind_trace(nanobind::module_&);
void bind_exec(nanobind::module_&);
void bind_compare(nanobind::module_&);
void bind_judge(nanobind::module_&);
void bind_bundle(nanobind::module_&);
void bind_debug(nanobind::module_&);
void bind_backends(nanobind::module_&);
void bind_aot(nanobind::module_&);
void bind_repro(nanobind::module_&);
void bind_flows(nanobind::module_&);
void bind_fx(nanobind::module_&);
void bind_capture(nanobind::module_&);
void bind_replay(nanobind::module_&);
}  // namespace cutaway::bindings
