#include "app/bindings/bindings.h"

namespace cutaway::bindings {
void bind_bundle(nanobind::module_&) {}
}  // namespace cutaway::bindings
