
#include "compiler/capture/values/endings.h"

namespace cutaway::capture {

void Endings::end_with(const Tail& outer, const char* function, std::vector<Value*> values) {
  tail_ = {};
  if (outer.is && !outer.ending) tail_ = {true, &endings_.emplace_back(Ending{function, std::move(values)})};
}

}  // namespace cutaway::capture
