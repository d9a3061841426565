// What the attempt has relied on so far: guards, and the sources by which values are reached again.
#pragma once
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"
#include "compiler/guards/guard.h"

namespace cutaway::capture {

class GuardLog : protected Owners {
 public:
  explicit GuardLog(const Owners& owners) : Owners(owners) {}
  GuardLog(const GuardLog&) = delete;
  GuardLog& operator=(const GuardLog&) = delete;

  guards::SourceTable& sources() { return *sources_; }
  void add(SourceRef source, GuardKind kind, PyObject* operand = nullptr, int64_t number = 0);
  void add_type_version(PyTypeObject* t);
  void add(guards::Guard g) { guards_.push_back(std::move(g)); }
  guards::Guard& last() { return guards_.back(); }
  size_t count() const { return guards_.size(); }
  const guards::Guard& at(size_t i) const { return guards_[i]; }
  std::vector<guards::Guard> take() { return std::move(guards_); }
  std::shared_ptr<guards::SourceTable> shared_sources() const { return sources_; }
  void trust_type(PyTypeObject* t) { guarded_types_.insert(t); }   ///< nobody else can write to it: no guard

 private:
  std::vector<guards::Guard> guards_;
  std::shared_ptr<guards::SourceTable> sources_ = std::make_shared<guards::SourceTable>();
  std::unordered_set<PyTypeObject*> guarded_types_;
};

}  // namespace cutaway::capture
