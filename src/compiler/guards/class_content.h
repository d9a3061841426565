// What a class and its bases had when capture looked at them. The version of a class tells that somebody wrote to it, not that it is another
// one now: torch's tracers put methods of nn.Module away and back whenever a backend compiles something.
#pragma once
#include <Python.h>

#include <memory>
#include <utility>
#include <vector>

#include "compiler/bytecode/object_ref.h"

namespace cutaway::guards {

class ClassContent {
 public:
  /// As the class is now. `data`: class and name of attributes that are guarded on their own.
  using Data = std::vector<std::pair<bytecode::ObjectRef, bytecode::ObjectRef>>;
  static std::shared_ptr<ClassContent> of(PyTypeObject*, const Data& data = {});
  /// True while everything that lookups on the class find is what it was. Quick while nobody wrote to it.
  bool is_same(PyTypeObject*);

 private:
  struct Items;   // of one class's own dictionary; shared between those that inherit from it
  static std::shared_ptr<const Items> items_of(PyTypeObject*);
  unsigned version_ = 0;
  std::vector<bytecode::Held> mro_;   // weakly, as all that would keep the class alive
  std::vector<std::pair<PyTypeObject*, bytecode::ObjectRef>> left_out_;
  std::vector<std::shared_ptr<const Items>> items_;   // one a class of the mro; null for those that cannot change
};

}  // namespace cutaway::guards
