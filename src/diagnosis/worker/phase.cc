#include "diagnosis/worker/phase.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cutaway::worker {
namespace {
char* current = nullptr;
}  // namespace

PhasePage::PhasePage() {
  void* p = mmap(nullptr, kMaxWord + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  page_ = p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}
PhasePage::~PhasePage() {
  if (page_) munmap(page_, kMaxWord + 1);
}
PhasePage::PhasePage(PhasePage&& o) noexcept : page_(std::exchange(o.page_, nullptr)) {}
PhasePage& PhasePage::operator=(PhasePage&& o) noexcept {
  std::swap(page_, o.page_);
  return *this;
}

std::string PhasePage::read() const { return page_ ? std::string(page_, strnlen(page_, kMaxWord)) : std::string(); }
void PhasePage::adopt() const { current = page_; }

void set_phase(std::string_view word) {
  if (!current) return;
  const size_t n = std::min(word.size(), PhasePage::kMaxWord);
  std::memcpy(current, word.data(), n);
  std::memset(current + n, 0, PhasePage::kMaxWord + 1 - n);
}

}  // namespace cutaway::worker
