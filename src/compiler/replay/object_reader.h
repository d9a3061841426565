// A record's objects as Python objects again. This imports modules and makes classes of the record, whose code may then run: only for a
// record that the user trusts. Containers that may hold themselves are made empty and filled afterwards.
#pragma once
#include <Python.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bytecode/object_ref.h"
#include "core/record/frame_record.h"
#include "core/store/store.h"

namespace cutaway::replay {

class ObjectReader {
 public:
  ObjectReader(const record::FrameRecord& record, const store::Store& blobs) : record_(record), blobs_(blobs) {}
  /// Makes every object. An Error names the first that could not be made.
  base::Status make_all();
  PyObject* at(record::ObjectId id) const { return id == record::kAbsent ? nullptr : made_[static_cast<size_t>(id)].get(); }   ///< borrowed

 private:
  PyObject* make(record::ObjectId id);   // borrowed; null: an error is noted
  bytecode::ObjectRef build(record::ObjectId id, const record::Object& o);
  bytecode::ObjectRef build_plain(const record::Object& o);
  bytecode::ObjectRef build_class(record::ObjectId id, const record::Object& o);
  bytecode::ObjectRef build_instance(const record::Object& o);
  bytecode::ObjectRef build_function(const record::Object& o);
  bytecode::ObjectRef build_tensor(const record::Object& o);
  bytecode::ObjectRef tuple_of(const std::vector<record::ObjectId>& items, size_t from = 0);
  bool fill(record::ObjectId id, const record::Object& o);
  bool fill_class(PyObject* made, const record::Object& o);
  std::nullptr_t fail(std::string what);
  const record::Object& object(record::ObjectId id) const { return record_.objects[static_cast<size_t>(id)]; }

  const record::FrameRecord& record_;
  const store::Store& blobs_;
  std::vector<bytecode::ObjectRef> made_, tensors_;
  std::vector<bool> making_;
  std::vector<record::ObjectId> to_fill_;
  int depth_ = 0;
  std::string failed_;
};

/// The placeholder's type: an object that could not be recorded stands as one.
PyTypeObject* unrecorded_type();

}  // namespace cutaway::replay
