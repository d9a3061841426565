// Content digests: XXH3-128, written as 32 hexadecimal digits. Detects accidents, not attackers.
// Main types: Digest and Hasher (streaming). Large buffers are digested at memory speed.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace cutaway::base {

/// 128 bits that name a piece of content. Default-constructed means "none".
struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Digest&) const = default;
  bool is_none() const { return high == 0 && low == 0; }
  /// 32 lower-case hexadecimal digits.
  std::string hex() const;
  /// First and last digits for messages: "3f9a…c1".
  std::string short_hex() const;
  static Result<Digest> parse(std::string_view hex);
};

/// Digest of one piece of memory.
Digest digest_bytes(const void* data, size_t bytes);
inline Digest digest_text(std::string_view text) { return digest_bytes(text.data(), text.size()); }

/// Digest of content that arrives in parts: the same as digest_bytes of their concatenation.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  Hasher& add(const void* data, size_t bytes);
  Hasher& add(std::string_view text) { return add(text.data(), text.size()); }
  Digest finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cutaway::base

template <>
struct std::hash<cutaway::base::Digest> {
  size_t operator()(const cutaway::base::Digest& d) const noexcept { return d.low ^ (d.high * 0x9e3779b97f4a7c15ull); }
};
