// What the captured code does to the program besides computing: objects that it wrote to, calls that run after the graph. Nothing real is changed before the plan runs.
#pragma once
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

/// A call that runs after the graph, in order: a logger's, a warning's.
struct QueuedCall {
  Value* function;
  std::vector<Value*> args;
  std::vector<Keyword> keywords;
  size_t before_node;
  struct Place { PyCodeObject* code; int line; PyObject* globals; };
  std::vector<Place> places;   ///< outermost first: what the call's stack would show
};

class Effects : protected Owners {
 public:
  explicit Effects(const Owners& owners) : Owners(owners) {}
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  void mark_changed(Value* v);
  Value* queue_call(Value* f, const Args& args);
  const std::vector<QueuedCall>& queued() const { return queued_; }
  const std::vector<Value*>& changed() const { return changed_; }   ///< real objects that the trace wrote to, in order of first write
  size_t changed_at(Value* v) const { const auto it = changed_at_.find(v); return it == changed_at_.end() ? 0 : it->second; }   ///< of these: how many nodes the graph had at the last write
  size_t effect_count() const { return writes_ + queued_.size(); }        ///< writes to anything, and queued calls
  size_t outside_count() const { return real_writes_ + queued_.size(); }  ///< writes to objects of the program, and queued calls
  size_t changed_count() const { return changed_.size() + queued_.size(); }   ///< objects of the program that were written to, and queued calls
  size_t watched_writes() const { return watched_writes_; }               ///< writes to values that count as outside, see WatchWrites
  size_t effect_nodes() const { return effect_nodes_; }                   ///< nodes that write to tensors or draw random numbers
  void note_outside_write() { ++real_writes_; }
  void note_effect_node() { ++effect_nodes_; }
  void note_watched(const Value* v) { if (v->serial <= watched_) ++watched_writes_; }
  uint32_t watch_up_to(uint32_t serial) { return std::exchange(watched_, serial); }   ///< returns what was watched before
  /// True when a function, a class or an operator with kernels in Python can reach an object that the trace has written to: it would read the old value.
  bool may_be_read_by(PyObject* called);

 private:
  void refuse_listeners(Value* f, const Args& args);   ///< stops where code of the program hears the call
  void add_queued(QueuedCall q) { queued_.push_back(std::move(q)); }

  std::vector<QueuedCall> queued_;
  std::vector<Value*> changed_;
  std::unordered_map<Value*, size_t> changed_at_;
  size_t writes_ = 0, real_writes_ = 0, watched_writes_ = 0, effect_nodes_ = 0;
  uint32_t watched_ = 0;                               ///< values with this number or a smaller one count as outside
};

/// Values that exist when it begins count as outside: writes to them are counted in Effects::watched_writes().
class WatchWrites {
 public:
  WatchWrites(Effects& effects, const Values& values) : effects_(effects), before_(effects.watch_up_to(values.count())) {}
  ~WatchWrites() { effects_.watch_up_to(before_); }
  WatchWrites(const WatchWrites&) = delete;
  WatchWrites& operator=(const WatchWrites&) = delete;

 private:
  Effects& effects_;
  uint32_t before_;
};

}  // namespace cutaway::capture
