// Looking at a compiled graph while it runs: who watches is told of every kernel and every operator, before and after. A graph that nobody may watch has none of
// this in its way.
// Main function: run_watched.
#pragma once
#include <string>
#include <vector>

#include "core/exec/interpreter.h"

namespace cutaway::native {

/// Told of the top-level steps of a fused graph, in order: kernels and products (calls), and operators that stayed torch's.
struct Watcher {
  virtual ~Watcher() = default;
  virtual void before(const ir::Node&, const std::vector<c10::IValue>& /*arguments*/) {}
  virtual void after(const ir::Node&, const std::vector<c10::IValue>& /*results*/) {}
};

/// The same calls, which tell whoever watches this thread's run. `fused` must outlive them.
exec::BoundCalls watched(exec::BoundCalls, const ir::Graph& fused);
/// Runs a program whose calls are watched(). Exceptions pass through, those of the watcher too.
std::vector<c10::IValue> run_watched(const exec::Program&, std::vector<c10::IValue>& inputs, Watcher&);

/// As fx writes a value's name: '_' for '.', and "v" before a digit.
std::string fx_name(std::string);
/// The user's line of a node: "model.py:12 in forward"; empty where it is not known.
std::string place_of(const ir::Graph&, const ir::Node&);

}  // namespace cutaway::native
