#include "app/bindings/bindings.h"

namespace cutaway::bindings {
void bind_ir(nanobind::module_&) {}
}  // namespace cutaway::bindings
