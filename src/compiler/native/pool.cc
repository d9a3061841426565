#include "compiler/native/pool.h"

#include <c10/core/impl/alloc_cpu.h>
#include <pthread.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>

namespace cutaway::native {
namespace {

constexpr size_t kHeader = 64;          ///< before each block: keeps what follows aligned
constexpr size_t kSmallest = 1 << 15;   ///< malloc keeps smaller ones itself

struct Header { size_t bytes; };        ///< with the header

/// Eight sizes between a power of two and the next, so that blocks of nearly one size are one.
size_t size_class(size_t n) {
  const size_t step = std::bit_floor(n) / 8;
  return (n + step - 1) / step * step;
}

struct Kept {
  std::mutex mutex;
  std::list<void*> by_age;   ///< the last freed one in front
  std::unordered_map<size_t, std::vector<std::list<void*>::iterator>> by_size;
  size_t bytes = 0, limit = 0;

  Kept() {
    size_t megabytes = 256;
    if (const char* given = std::getenv("CUTAWAY_POOL_MB"); given && *given) megabytes = std::strtoull(given, nullptr, 10);
    limit = megabytes << 20;
  }
  void* take(size_t bytes_wanted) {
    const std::lock_guard lock(mutex);
    const auto it = by_size.find(bytes_wanted);
    if (it == by_size.end() || it->second.empty()) return nullptr;
    const auto at = it->second.back();
    it->second.pop_back();
    void* block = *at;
    by_age.erase(at);
    bytes -= bytes_wanted;
    return block;
  }
  void give(void* block) {
    std::vector<void*> too_many;   // freed without the lock
    {
      const std::lock_guard lock(mutex);
      const size_t size = static_cast<Header*>(block)->bytes;
      by_age.push_front(block);
      by_size[size].push_back(by_age.begin());
      bytes += size;
      while (bytes > limit) {
        void* oldest = by_age.back();
        const size_t its = static_cast<Header*>(oldest)->bytes;
        auto& of_size = by_size[its];
        std::erase(of_size, std::prev(by_age.end()));
        by_age.pop_back();
        bytes -= its;
        too_many.push_back(oldest);
      }
    }
    for (void* b : too_many) c10::free_cpu(b);
  }
};

/// Never destroyed. A fork must not happen while another thread holds the lock: the child could never take it.
Kept& kept() {
  static Kept& k = [&]() -> Kept& {
    Kept& made = *new Kept;
    static Kept* const shared = &made;
    ::pthread_atfork([] { shared->mutex.lock(); }, [] { shared->mutex.unlock(); }, [] { shared->mutex.unlock(); });
    return made;
  }();
  return k;
}

void give_back(void* block) {
  if (block) kept().give(block);
}

class PoolAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    if (n < kSmallest) {
      void* data = c10::alloc_cpu(n);
      return {data, data, &c10::free_cpu, c10::Device(c10::DeviceType::CPU)};
    }
    const size_t bytes = size_class(n + kHeader);
    void* block = kept().take(bytes);
    if (!block) {
      block = c10::alloc_cpu(bytes);
      static_cast<Header*>(block)->bytes = bytes;
    }
    return {static_cast<char*>(block) + kHeader, block, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t n) const override { std::memcpy(to, from, n); }
};

thread_local Arena* innermost = nullptr;

}  // namespace

c10::Allocator& pool() {
  static PoolAllocator& p = *new PoolAllocator;
  return p;
}

int64_t pool_bytes() {
  Kept& k = kept();
  const std::lock_guard lock(k.mutex);
  return static_cast<int64_t>(k.bytes);
}

Arena::Arena(const void* owner, int64_t bytes) : owner_(owner), outer_(innermost) {
  if (bytes > 0) storage_ = c10::Storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes), &pool(), /*resizable=*/false);
  innermost = this;
}
Arena::~Arena() { innermost = outer_; }
const c10::Storage* Arena::of(const void* owner) { return innermost && innermost->owner_ == owner && innermost->storage_ ? &innermost->storage_ : nullptr; }

}  // namespace cutaway::native

/// For bench/native_memory.py, through ctypes.
extern "C" int64_t cutaway_pool_bytes() { return cutaway::native::pool_bytes(); }
