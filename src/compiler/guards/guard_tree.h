// The guards of one entry as a tree over their sources: each value is read once for all guards below it. Checked before every run.
// After a success the versions of the dictionaries and types that were read are remembered; while a dictionary is unchanged its
// values need not be looked up again, and what depends on an object's identity alone need not be checked again.
#pragma once
#include <Python.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/guards/global_state.h"
#include "compiler/guards/guard.h"
#include "compiler/guards/source.h"

namespace cutaway::guards {

/// Why an entry does not fit.
struct Mismatch {
  std::string text;               ///< "`x.shape[0]` was 2, is 3 (train.py:41)"; empty: everything fits
  const Guard* guard = nullptr;   ///< null: global state
  int dim = -1;                   ///< of the guard's tensor, where a size differs
};

class GuardTree {
 public:
  /// `wanted` are sources whose values a check hands out (the graph's inputs). Keeps a table of its own; sources must outlive it.
  GuardTree(std::vector<Guard>, const GlobalState&, const std::vector<const Source*>& wanted);
  ~GuardTree();
  GuardTree(const GuardTree&) = delete;
  GuardTree& operator=(const GuardTree&) = delete;

  /// Fills `values` with one object a wanted source. Runs no user code and sets no exception. With the GIL.
  bool check(const FrameView&, const GlobalState& now, std::vector<ObjectRef>& values);
  /// The first guard, in the order of the trace, that does not hold.
  Mismatch explain(const FrameView&, const GlobalState& now) const;
  /// Sizes (and integers and floats: dim -1) that are other ones in this frame, whatever else differs.
  struct ChangedSize { const Source* source; int dim; bool is_float = false; std::string item = {}; };   ///< item: of a tuple, "[0]"
  std::vector<ChangedSize> changed_sizes(const FrameView&) const;
  const std::vector<Guard>& guards() const { return guards_; }
  std::string text() const;

 private:
  struct Node;
  struct Walk;
  struct Step;
  struct StepWriter;
  bool run_steps(const FrameView&, std::vector<ObjectRef>& values);
  bool is_unchanged(Node&, PyObject* container);
  bool confirms(Node&, PyObject* value);
  void record_steps();
  Node* node_of(const Source*);
  std::vector<Guard> guards_;
  GlobalState state_;
  std::unique_ptr<Node> root_;
  std::vector<Node*> by_source_;         // id of a source -> its node
  struct Relation { const Guard* guard; std::vector<int32_t> values; };
  std::vector<Relation> relations_;      // guards between several sources, checked last
  size_t wanted_count_ = 0, value_count_ = 0;
  // The short way after successes.
  static constexpr int kMostRecordings = 16;
  std::vector<Step> steps_;
  Node* failed_ = nullptr;
  int recordings_ = 0, walks_ = 0;
};

/// Whether one guard holds for the value of its source. Relations (same_object and its like) are not for this.
bool holds(const Guard&, PyObject* value);
/// The same for relations; `places` says which of the values are its source, `other` and `others`.
bool relation_holds(const Guard&, const std::vector<ObjectRef>& values, const std::vector<int32_t>& places);
/// Why it does not: one sentence without the place.
std::string explain_guard(const Guard&, PyObject* value, int* dim);

}  // namespace cutaway::guards
