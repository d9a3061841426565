// Values as text (str, repr, format), and as plain objects for C functions that only read them.
#pragma once
#include <Python.h>

#include <utility>
#include <vector>

#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Texts : protected Owners {
 public:
  explicit Texts(const Owners& owners) : Owners(owners) {}
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  Value* format(Value* v, Value* spec);
  Value* str(Value* v);
  Value* repr(Value* v);
  PyObject* to_plain(Value* v);

 private:
  Value* checked_text(Value* v, const char* dunder_name);   ///< text, or raises

  int text_depth_ = 0;   ///< containers in containers; one that holds itself would never end
  std::vector<std::pair<Value*, PyObject*>> plain_open_;   ///< containers that to_plain is inside of
};

}  // namespace cutaway::capture
