#include "app/bindings/bindings.h"

namespace cutaway::bindings {
void bind_debug(nanobind::module_&) {}
}  // namespace cutaway::bindings
