#include "core/debug/process.h"

#include <atomic>

namespace cutaway::debug {
namespace {
std::atomic<Sink*> sink{nullptr};
}

Sink* process_sink() { return sink.load(std::memory_order_acquire); }
void set_process_sink(Sink* s) { sink.store(s, std::memory_order_release); }

}  // namespace cutaway::debug
