// torch.fx graphs and exported programs as our Graph. Two kinds of fx graph are read by one walk:
// - operators of the dispatcher with known results (make_fx, torch.export, what ahead-of-time autograd gives to a backend):
//   each node becomes an op, nothing runs;
// - Python functions, methods and modules (Dynamo's graphs, symbolic_trace): every node runs once on fake tensors under the
//   recorder, and becomes a captured call that holds the operators it ran.
#pragma once
#include <nanobind/nanobind.h>

#include "core/ir/graph.h"

namespace cutaway::fx {

/// A graph, and the tensors of its inputs that are not the user's (parameters, buffers, constants), in the order of those inputs.
/// They come first among the graph's inputs, in order of first use.
struct Imported {
  ir::Graph graph;
  nanobind::list lifted;
};

/// Throws ErrorException for what a graph cannot hold: a control-flow operator, an opaque object, a symbolic size in a graph of
/// Python functions. `example_inputs` may be None when the placeholders carry meta["val"].
Imported import_fx(nanobind::handle graph_module, nanobind::handle example_inputs);
/// Placeholders become inputs of the kind that the program's signature says; mutations of buffers and inputs, which an exported
/// program returns, are written back by copy_, so that a run does what the module does. Outputs are the user's outputs, flat.
Imported import_exported_program(nanobind::handle exported_program);

}  // namespace cutaway::fx
