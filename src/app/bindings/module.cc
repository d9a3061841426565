#include "app/bindings/bindings.h"
#include "app/casters/errors.h"
#include "app/casters/tensor_caster.h"

namespace nb = nanobind;
using namespace cutaway::bindings;

NB_MODULE(_native, m) {
  m.attr("__version__") = CUTAWAY_VERSION;
  nb::set_leak_warnings(false);   // caches of torch.compile may keep our objects until the process ends; that is not the user's concern
  translate_torch_exceptions();
  nb::exception<ErrorException>(m, "Error");
  bind_ir(m);
  bind_debug(m);
  bind_store(m);
  bind_bundle(m);
  bind_tensor(m);
  bind_trace(m);
  bind_exec(m);
  bind_compare(m);
  bind_judge(m);
  bind_backends(m);
  bind_aot(m);
  bind_repro(m);
  bind_flows(m);
  bind_fx(m);
  bind_capture(m);
  bind_replay(m);
}
