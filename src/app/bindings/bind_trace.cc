#include "app/bindings/bindings.h"

namespace cutaway::bindings {
void bind_trace(nanobind::module_&) {}
}  // namespace cutaway::bindings
