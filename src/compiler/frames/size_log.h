// What capture did with sizes while a frame is recorded at several of them, so that one graph may serve all: which sizes inputs are said
// to have, every comparison of integers (it may decide the program's way), and integers used where no expression can follow them.
#pragma once
#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/guards/source.h"
#include "core/symbolic/guard.h"
#include "core/symbolic/number_table.h"

namespace cutaway::frames {

struct SizeLog {
  struct Size {
    std::string source;      ///< guards::Source::identity of the tensor's
    int dim = 0;             ///< -1: the source is an integer itself
    int64_t real = -1;
    bool is_met = false;     ///< an input of this kind was met
    std::optional<int64_t> said;   ///< what the recording takes it for; none: the real one
    std::string text = {};         ///< of the source, once it is met
  };
  struct Float { std::string source; double real = 0; std::optional<double> said; std::string text = {}; };
  std::vector<Float> floats; ///< those of `sizes` that turned out to be floats, in the order in which they were met
  bool has_dynamic = false;  ///< something is to be a symbol: torch calls are recorded in forms that take one
  bool calls_python = false; ///< a function of torch in Python, whose questions nobody sees, was given a float
  std::vector<Size> sizes;
  bool ask_marks = false;    ///< dimensions that the user marked, and with all_dynamic every one, join `sizes`
  bool all_dynamic = false;
  std::vector<symbolic::Condition> conditions;
  std::vector<symbolic::Computation> computations;
  std::vector<symbolic::NumberStep> steps;
  std::vector<int64_t> uses; ///< must be the same in all recordings
  uint64_t instructions = 0; ///< that capture interpreted

  /// The sizes that a fake of this input shall have; empty: its own.
  std::vector<int64_t> sizes_of(const guards::Source&, PyObject* tensor, bool is_parameter);
  /// The number that this integer shall have, where it is one of `sizes`.
  std::optional<int64_t> integer_of(const guards::Source&, PyObject* integer);
  /// The same for a float.
  std::optional<double> float_of(const guards::Source&, double now);
  /// f(x) returned `result`; false where the computation cannot be followed.
  bool applied(symbolic::NumberStep::Kind f, PyObject* x, PyObject* result);
  /// a op b (Py_LT, …) of constants came to `holds`.
  void compared(PyObject* a, PyObject* b, int op, bool holds, const std::string& where);
  /// a op b of constants came to `result`; `op` as capture numbers binary operators.
  void computed(size_t op, PyObject* a, PyObject* b, PyObject* result);
  /// min(a, b) or max(a, b) of constants is `result`; false where no expression says so.
  bool chosen(bool is_max, PyObject* a, PyObject* b, PyObject* result);
  /// Items of this tuple are to be symbols, one by one.
  bool has_items_of(const guards::Source&) const;
  /// An integer, or integers in a tuple, went where an expression cannot.
  void used(PyObject*);
  /// The same for floats alone: an integer that a call of torch takes shows in its result.
  void used_floats(PyObject*);
};
/// Of this thread; null when nobody asks.
SizeLog*& size_log();

}  // namespace cutaway::frames
