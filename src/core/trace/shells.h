// Tensors of classes with __torch_dispatch__ in a recording above autograd: they are no values of it.
#pragma once

namespace cutaway::trace {

/// From here on, on this thread, operators on such tensors are handed on to their class, and what it calls is recorded; until it is switched off.
void expect_shells(bool on);

}  // namespace cutaway::trace
