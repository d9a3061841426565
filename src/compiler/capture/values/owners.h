// The owners of the state of one attempt to capture a frame. Each is a class with a header of its own. A class that derives from Owners reaches the
// others by name (values.force(v), calls.call(f, args)), and may use those whose headers its file includes. trace.h makes and frees them all.
//
// A method that returns a Value* returns null when the program raised: the exception is then in exceptions.raised(). What cannot be captured throws EndOfGraph
// (by stop(): the graph ends before this instruction) or frames::Skip (the frame runs as it is). Nothing real is written to.
#pragma once
#include <Python.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "compiler/capture/values/value.h"
#include "compiler/frames/plan.h"
#include "compiler/guards/guard.h"

namespace cutaway::capture {

class Attributes;
class Builtins;
class Calls;
class Classes;
class Containers;
class Effects;
class Endings;
class Exceptions;
class FrameStack;
class GuardLog;
class Interpreter;
class Iteration;
class Leaves;
class Library;
class Mappings;
class Namespaces;
class Numbers;
class Operators;
class RealErrors;
class Subscripts;
class TensorTrace;
class Texts;
class TorchCalls;
class Tracebacks;
class Values;
using frames::FrameView;
using guards::GuardKind;
using guards::SourceKind;

/// The graph must end before the current instruction.
struct EndOfGraph {
  std::string id;     ///< stable: "print", "data_dependent_branch", "unknown_c_function", …
  std::string what;   ///< one sentence
  std::string hint;
};
/// Ends the graph before the current instruction.
[[noreturn]] inline void stop(std::string id, std::string what, std::string hint = {}) { throw EndOfGraph{std::move(id), std::move(what), std::move(hint)}; }

/// Attributes of classes that the captured code writes to; kept from one attempt to the next.
struct ClassData {
  std::vector<std::pair<guards::ObjectRef, guards::ObjectRef>> all;   ///< class, name
  bool contains(PyTypeObject* t, PyObject* name) const;
  bool hooks_by_number = false;   ///< see hook_numbers.cc
  /// Handles of hooks are numbered by their class, whoever registers one: the captured code makes some.
  bool has_handles() const { return contains(handle_class(), handle_number()); }
  static PyTypeObject* handle_class();
  static PyObject* handle_number();   ///< the name of the attribute that counts them
};
/// One level deeper, for as long as it lives.
class Depth {
 public:
  explicit Depth(int& depth) : depth_(++depth) {}
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  int& depth_;
};
/// The trace found such an attribute, and looked at the class before: the next attempt knows it.
struct StartOver {};

using Keyword = std::pair<PyObject*, Value*>;
/// Arguments of a call, borrowed from the caller for its duration.
struct Args {
  Value* const* positional = nullptr;
  size_t count = 0;
  const Keyword* keywords = nullptr;
  size_t keyword_count = 0;
  Args() = default;
  Args(Value* const* p, size_t n, const Keyword* k = nullptr, size_t m = 0) : positional(p), count(n), keywords(k), keyword_count(m) {}
  Args(std::initializer_list<Value*> l) : count(l.size()) { positional = l.begin(); }   // alive as long as the call: g++ warns of the initializer
  explicit Args(const std::vector<Value*>& p) : positional(p.data()), count(p.size()) {}
  Args(const std::vector<Value*>& p, const std::vector<Keyword>& k) : positional(p.data()), count(p.size()), keywords(k.data()), keyword_count(k.size()) {}
  Value* operator[](size_t i) const { return positional[i]; }
  Args rest(size_t from) const { return {positional + from, count - from, keywords, keyword_count}; }
};

struct Owners {
  const frames::CaptureOptions& options;
  const FrameView& view;
  ClassData& class_data;
  Values& values;
  Mappings& mappings;
  GuardLog& guards;
  Exceptions& exceptions;
  FrameStack& frame_stack;
  Endings& endings;
  Interpreter& interpreter;
  Namespaces& namespaces;
  Tracebacks& tracebacks;
  Attributes& attributes;
  Classes& classes;
  Calls& calls;
  Operators& operators;
  Numbers& numbers;
  Subscripts& subscripts;
  Texts& texts;
  Iteration& iteration;
  Containers& containers;
  Builtins& builtins;
  Library& library;
  Leaves& leaves;
  RealErrors& real_errors;
  TorchCalls& torch_calls;
  TensorTrace& tensors;
  Effects& effects;
};

}  // namespace cutaway::capture
