// Python objects as data: what a frame reaches becomes a list of record::Objects. Nothing of the user's runs while that happens: dictionaries,
// slots and C accessors are read, no attribute is looked up through a class of the user's, no repr is asked for.
//
// Installed modules (the standard library, site-packages, torch, Cutaway) are named, not copied: their functions and classes are imports.
// What the user's own files define is copied: code, functions, classes, instances. Of a module of the user's only the names that recorded
// code mentions are kept. What has no form as data becomes an opaque object that says its type and why.
#pragma once
#include <Python.h>

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/bytecode/object_ref.h"
#include "core/record/frame_record.h"
#include "core/store/store.h"

namespace cutaway::replay {

class ObjectWriter {
 public:
  ObjectWriter(record::FrameRecord& into, store::Store& blobs);
  ~ObjectWriter();
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  record::ObjectId add(PyObject*);
  /// The function of the frame: its code is kept even where an installed module has it.
  record::ObjectId add_function(PyObject*);
  /// Writes what was put off: contents, names of modules, tensors. `max_bytes` of tensor data; what is beyond becomes seeded.
  base::Status finish(uint64_t max_bytes);

 private:
  struct Namespace { PyObject* dict; record::ObjectId id; std::unordered_set<std::string> done; };

  record::ObjectId start(PyObject* o, const char* kind);
  record::Object& at(record::ObjectId id) { return record_.objects[static_cast<size_t>(id)]; }
  record::ObjectId opaque(PyObject* o, std::string because);
  record::ObjectId text(std::string_view s);
  record::ObjectId none();
  void describe(PyObject* o, record::ObjectId id);
  bool describe_plain(PyObject* o, record::ObjectId id);
  bool describe_torch(PyObject* o, record::ObjectId id);
  bool describe_container(PyObject* o, record::ObjectId id);
  bool describe_code(PyObject* o, record::ObjectId id);
  bool describe_function(PyObject* o, record::ObjectId id);
  bool describe_class(PyObject* o, record::ObjectId id);
  bool describe_instance(PyObject* o, record::ObjectId id);
  bool describe_import(PyObject* o, record::ObjectId id);
  bool describe_singleton(PyObject* o, record::ObjectId id);
  void make_opaque(record::ObjectId id, PyObject* o, std::string because);
  record::ObjectId scope_of(PyObject* globals);
  record::ObjectId dict_of(PyObject* dict);
  void note_names(PyObject* code);
  bool fill_namespaces();
  bool is_library(const std::string& module);
  bool is_at(PyObject* o, const std::string& module, const std::string& name);

  record::FrameRecord& record_;
  store::Store& blobs_;
  std::unordered_map<PyObject*, record::ObjectId> ids_;
  std::deque<std::pair<PyObject*, record::ObjectId>> waiting_;
  std::vector<bytecode::ObjectRef> kept_;          // what was made on the way, so that identities stay
  std::vector<Namespace> namespaces_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, bool> libraries_;
  std::vector<bytecode::ObjectRef> tensors_;
  std::vector<std::string> prefixes_;
  record::ObjectId none_ = record::kAbsent;
  std::string failed_;                             // the first blob that could not be written
};

}  // namespace cutaway::replay
