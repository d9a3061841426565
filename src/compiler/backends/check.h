// CUTAWAY_CHECK: a compiled graph is compared with its own operators while the program runs. A backend tells what it computed and from what; who compares is set
// from outside, because the compiler does not know how numbers are compared.
#pragma once
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::backends {

/// 0 off, 1 outputs, 2 each kernel, 3 each value inside of kernels: what the variable CUTAWAY_CHECK says now. The Error names it.
base::Result<int> check_level();

/// What was computed, and what the same operators would have to give. Lives for the time of the call.
struct CheckPoint {
  std::string backend;                          ///< as a bundle names it
  std::string kernel;                           ///< empty: the outputs of the whole graph
  std::vector<std::string> names;               ///< of the results, as the program has them; empty: as `operators` has them
  const ir::Graph& operators;                   ///< the operators of the kernel, or the graph; outputs stand in the order of the program
  const std::vector<c10::IValue>& inputs;       ///< of `operators`, as they were before
  const std::vector<c10::IValue>& results;      ///< what the compiled code made of them
  const std::map<std::string, std::string>& generators;         ///< states of random generators before, as a bundle has them
  const ir::Graph& whole;                       ///< the graph as it was compiled
  const std::vector<c10::IValue>& whole_inputs;
  const std::map<std::string, std::string>& whole_generators;
};
/// Throws where they differ.
using Checker = std::function<void(const CheckPoint&)>;
void set_checker(Checker);
/// Empty: nobody compares.
Checker checker();

/// How a difference is raised: Python's side makes it an exception of its own. The text is all that there is to say.
void set_check_failure(std::function<void(const std::string& text)> raise);
[[noreturn]] void raise_check_failure(const std::string& text);

}  // namespace cutaway::backends
