#include "app/bindings/bindings.h"

namespace cutaway::bindings {
void bind_tensor(nanobind::module_&) {}
}  // namespace cutaway::bindings
