#include "compiler/backends/backend.h"

#include <doctest/doctest.h>

using namespace cutaway;

TEST_CASE("every backend that is registered has a complete row, and brings it along") {
  size_t made = 0;
  for (const capabilities::Row& row : backends::list_backends()) {
    CHECK_MESSAGE(capabilities::missing_in(row) == "", row.name);
    if (!capabilities::find(row.name)) continue;   // of another test
    auto backend = backends::find_backend(row.name);
    if (!backend.ok()) continue;   // it wants parameters
    ++made;
    CHECK_MESSAGE((*backend)->row == row, row.name);
  }
  CHECK(made >= 5);   // eager, aot_eager, own_aot_eager, native, cutaway
}
