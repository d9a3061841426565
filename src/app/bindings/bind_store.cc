#include "app/bindings/bindings.h"

namespace cutaway::bindings {
void bind_store(nanobind::module_&) {}
}  // namespace cutaway::bindings
