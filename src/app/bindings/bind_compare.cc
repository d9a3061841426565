#include "app/bindings/bindings.h"

namespace cutaway::bindings {
void bind_compare(nanobind::module_&) {}
}  // namespace cutaway::bindings
