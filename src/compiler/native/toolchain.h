// The C++ compiler of this machine and the folder where what it made is kept.
// Main functions: toolchain (found once) and Library::load.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/debug/events.h"

namespace cutaway::native {

/// How texts are compiled here.
struct Toolchain {
  std::string compiler;              ///< "g++"
  std::string version;               ///< its first line about itself: part of the cache's key
};
/// What it is told for vectors of so many floats: 16 with AVX-512, 8 with AVX2, 4 otherwise.
std::vector<std::string> flags_for(int lanes);
/// $CUTAWAY_CXX, else g++, else clang++. The Error says what to install or set. Found once a process.
const base::Result<Toolchain>& toolchain();
/// Lanes of this processor, whether or not there is a compiler.
int processor_lanes();
/// $CUTAWAY_CACHE_DIR, else cutaway/ in the user's cache folder.
std::filesystem::path cache_directory();

/// What a file of the cache's folder `native` holds, when its digest is the one beside it.
std::optional<std::string> read_cached(const std::string& name);
/// Puts a text and what was made of it there, whole, under a key. False when the folder cannot be written to.
bool keep_cached(const std::string& key, const std::string& source_suffix, const std::string& source, const std::string& suffix, const std::string& bytes);

/// Compiled text, opened. Stays open while somebody holds it.
class Library {
 public:
  /// From the cache, or compiled now. Many processes may ask for the same text at once: each sees a whole file or none.
  /// `more` are flags besides those of the lanes.
  static base::Result<std::shared_ptr<Library>> load(const std::string& source, int lanes, debug::Sink*, const std::vector<std::string>& more = {});
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  /// Null when there is no such function.
  void* find(const std::string& function) const;
  bool came_from_cache() const { return from_cache_; }

 private:
  Library(void* handle, bool from_cache) : handle_(handle), from_cache_(from_cache) {}
  void* handle_;
  bool from_cache_;
};

}  // namespace cutaway::native
