#include "app/bindings/bindings.h"

namespace cutaway::bindings {
void bind_exec(nanobind::module_&) {}
}  // namespace cutaway::bindings
