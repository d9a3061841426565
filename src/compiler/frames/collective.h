// The compiler collective: ranks of a distributed job tell each other what they saw of a frame before they compile it, and compile the same
// graph. Sizes that differ between ranks become symbols on all of them; where one rank's graph must end, all end theirs.
//
// The exchange goes through the process group's store: each rank puts its part under a key of its own and looks for the others' until a
// time-out, so a rank that died or stalls is named and nobody hangs. docs/notes/collective.md says why not an all-gather.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/frames/session.h"
#include "core/base/result.h"

namespace cutaway::frames {

/// Texts by key, seen by all ranks: what an exchange needs of a store.
struct SharedTexts {
  virtual ~SharedTexts() = default;
  virtual void put(const std::string& key, const std::string& text) = 0;   ///< these may throw what the transport throws
  virtual bool has(const std::string& key) = 0;
  virtual std::string get(const std::string& key) = 0;
  virtual void remove(const std::string& key) = 0;
};

class Collective {
 public:
  Collective(std::unique_ptr<SharedTexts> texts, int rank, int size, std::chrono::milliseconds timeout) : texts_(std::move(texts)), rank_(rank), size_(size), timeout_(timeout) {}
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Puts `mine` and returns every rank's text, in order of ranks. `what` says what is agreed upon, for messages. Without the GIL, but for
  /// `is_interrupted`, which is asked now and then and ends the wait.
  base::Result<std::vector<std::string>> exchange(const std::string& key, const std::string& what, const std::string& mine, const std::function<bool()>& is_interrupted);

 private:
  base::Error missing(const std::string& what, const std::vector<int>& ranks, double seconds);
  std::unique_ptr<SharedTexts> texts_;
  int rank_, size_;
  std::chrono::milliseconds timeout_;
  std::string previous_;   // own key of the exchange before: everybody has read it once this one is complete
};

/// As capture_sizes, after agreeing with the other ranks. An Error (a rank that does not answer) is raised by the caller.
base::Result<CaptureResult> capture_together(Collective&, const Session&, const FrameView&, const bytecode::Code&, CaptureOptions, const Compile&, int64_t nth, std::vector<DynamicSize>& agreed, std::string& why);

/// The collective of the process group that the settings name, or null.
base::Result<std::shared_ptr<Collective>> asked_collective();

}  // namespace cutaway::frames
