// What a compiled frame depends on. Capture appends guards in the order in which it looked at things; the tree (guard_tree.h) is built
// from them once an entry.
#pragma once
#include <Python.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/guards/class_content.h"
#include "compiler/guards/source.h"

namespace cutaway::guards {

enum class GuardKind : uint8_t {
  type,            ///< exactly the type `operand`
  id,              ///< the object `operand` itself. None, True, types, functions
  const_eq,        ///< same type and equal value (int, float with NaN and signed zero, str, bytes, tuples of these, …)
  tensor,          ///< `tensor` below
  length,          ///< `number` items (list, tuple, dict, set, deque)
  dict_keys,       ///< exactly the keys of the tuple `operand`, in that order; or the items of a set. `number` 1: of an OrderedDict, whose order no version shows
  contains,        ///< dictionary or set has the key `operand`
  lacks,           ///< it has not
  no_attr,         ///< neither instance nor type has the attribute `operand`
  no_instance_attr,///< the instance's dictionary lacks `operand` (the type was looked at by a type_attr source)
  code,            ///< a function whose code is `operand`
  iterator_at,     ///< an iterator over list, tuple or range that stands at `number`
  same_object,     ///< the same object as `other`
  different_objects,  ///< `source` and all of `others` are different objects (tensors that were different inputs)
  no_overlap,      ///< the tensors `source` and `others` do not share memory
  alive,           ///< a weak reference whose target lives
  type_version,    ///< the type `operand`, with the attributes that it and its bases had (`content`)
  truth,           ///< bool(source) is `number`, for kinds whose truth runs no user code
  size_equal,      ///< an int source equal to the int source `other`
  size_range,      ///< an int source >= `number` (and <= `most`)
  exists,          ///< the source can be read; whatever else is asked about it implies this
  size_relation,   ///< `relation` holds for the numbers `source` and `others`: ints as they are, floats by their bits
};

/// What an operator can see of a tensor.
struct TensorSpec {
  static constexpr int64_t kAny = -1;   ///< a dynamic size or stride; a dynamic size is still >= 2
  PyTypeObject* python_type = nullptr;  ///< the guard's operand
  uint64_t dispatch_keys = 0;
  int8_t dtype = 0;
  int8_t device_type = 0, device_index = 0;
  int8_t layout = 0;
  bool requires_grad = false;
  bool contiguous = false;              ///< where strides are kAny: must be contiguous
  std::vector<int64_t> sizes, strides;  ///< strides are empty for layouts that have none
};
/// The keys of a dictionary as a new tuple, an OrderedDict's in its own order; runs no code of a subclass.
PyObject* keys_in_order(PyObject* dict);
/// Everything static. `tensor` is a torch.Tensor.
TensorSpec describe_tensor(PyObject* tensor);

/// A place in the user's program: where the trace looked at the value.
struct Place { std::string file; int line = 0; };

struct Guard {
  const Source* source = nullptr;
  GuardKind kind = GuardKind::id;
  Held operand;   ///< an entry does not own what the program has (lifetime.h)
  int64_t number = 0;
  int64_t most = INT64_MAX;
  const Source* other = nullptr;
  std::vector<const Source*> others;
  std::shared_ptr<const TensorSpec> tensor;
  std::shared_ptr<ClassContent> content;   ///< of a type_version
  std::function<bool(const std::vector<int64_t>&)> relation;
  std::string relation_text;
  Place place;
  /// "type(x) is list", "len(x) == 3", "x.shape == [2, 3], …": one line.
  std::string text() const;
};

/// Takes out `exists` of sources that another guard looks at, or a source that is read through them.
void drop_implied(std::vector<Guard>&);

}  // namespace cutaway::guards
