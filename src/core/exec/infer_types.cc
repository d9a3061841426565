// Types of a graph's values by running it on fake tensors. The memo by operator and types is the fake tensors' own (core/trace).
#include <cstdint>

#include <ATen/ATen.h>

#include "core/exec/interpreter.h"
#include "core/exec/node_place.h"
#include "core/tensor/convert.h"
#include "core/trace/fake_tensor.h"

namespace cutaway::exec {
namespace {

using base::Error;
using base::Result;
using c10::IValue;
using Kind = ir::Type::Kind;

ir::Type type_of(const IValue& v) {
  if (v.isTensor()) return v.toTensor().defined() ? ir::Type::of(tensor::type_of(v.toTensor())) : ir::Type::of(Kind::none);
  if (v.isNone()) return ir::Type::of(Kind::none);
  if (v.isInt()) return ir::Type::of(Kind::integer);
  if (v.isDouble()) return ir::Type::of(Kind::floating);
  if (v.isBool()) return ir::Type::of(Kind::boolean);
  if (v.isComplexDouble()) return ir::Type::of(Kind::complex);
  if (v.isString()) return ir::Type::of(Kind::string);
  if (v.isDevice()) return ir::Type::of(Kind::device);
  return ir::Type::of(Kind::opaque);
}

ir::Type type_of_literal(const ir::Argument& a) {
  if (a.as<int64_t>() || a.as<ir::Dim>()) return ir::Type::of(Kind::integer);
  if (a.as<double>()) return ir::Type::of(Kind::floating);
  if (a.as<bool>()) return ir::Type::of(Kind::boolean);
  if (a.as<std::complex<double>>()) return ir::Type::of(Kind::complex);
  if (a.as<std::string>()) return ir::Type::of(Kind::string);
  if (a.as<ir::Device>()) return ir::Type::of(Kind::device);
  if (a.as<ir::DType>()) return ir::Type::of(Kind::dtype);
  return ir::Type::of(a.is_none() ? Kind::none : Kind::opaque);
}

Result<IValue> fake_input(const ir::Graph& graph, const ir::Input& input) {
  const ir::Value& v = graph.value(input.value);
  if (v.type.kind == Kind::none) return IValue();
  if (v.type.kind != Kind::tensor)
    return Error{.what = "types cannot be found: the input %" + v.name + " is " + v.type.text(), .because = "the graph does not say its value, and sizes may depend on it"};
  const ir::TensorType& t = v.type.tensor;
  std::vector<int64_t> sizes, strides;
  for (const auto* dims : {&t.sizes, &t.strides})
    for (const ir::Dim& d : *dims) {
      if (d.is_symbolic()) return Error{.what = "types cannot be found: the input %" + v.name + " has the symbolic size " + d.text(), .hint = "give the inputs sizes that are numbers"};
      (dims == &t.sizes ? sizes : strides).push_back(d.value());
    }
  if (t.layout != ir::Layout::strided) return Error{.what = "types cannot be found: the input %" + v.name + " has the layout " + std::string(ir::layout_name(t.layout))};
  try {
    at::Tensor meta = at::empty_strided(sizes, strides, at::TensorOptions().dtype(tensor::to_aten(t.dtype)).device(at::kMeta));
    at::Tensor fake = trace::make_fake(meta, tensor::to_aten(t.device));
    if (t.requires_grad) fake.requires_grad_();
    return IValue(std::move(fake));
  } catch (const c10::Error& e) {
    return Error{.what = "no tensor can have the type of the input %" + v.name + ": " + v.type.text(), .because = e.what_without_backtrace()};
  }
}

/// Results of captured calls and scopes take the types of what their regions yield.
void type_regions(ir::Graph& graph, ir::Block& block) {
  for (ir::Node& n : block.nodes) {
    for (ir::Block& region : n.regions) type_regions(graph, region);
    if (n.kind == ir::Node::Kind::op || n.regions.size() != 1) continue;
    const auto& yielded = n.regions[0].outputs;   // flat: one for each result
    for (size_t i = 0; i < n.results.size() && i < yielded.size(); ++i) {
      const auto* ref = yielded[i].as<ir::ValueRef>();
      graph.value(n.results[i]).type = ref ? graph.value(ref->id).type : type_of_literal(yielded[i]);
    }
  }
}

}  // namespace

Result<ir::Graph> infer_types(const ir::Graph& graph) {
  CUTAWAY_TRY_ASSIGN(Program program, Program::prepare(graph));
  trace::FakeMode mode;
  std::vector<IValue> inputs;
  for (const ir::Input& input : graph.inputs) {
    CUTAWAY_TRY_ASSIGN(IValue fake, fake_input(graph, input));
    inputs.push_back(std::move(fake));
  }
  ir::Graph typed = graph;
  Hooks hooks;
  hooks.after = [&](size_t, const ir::Node& node, std::vector<IValue>& results) {
    for (size_t i = 0; i < results.size(); ++i) typed.value(node.results[i]).type = type_of(results[i]);
  };
  auto refuse = [&](const std::string& because) -> Error {
    const ir::Node* node = Program::error_position() < 0 ? nullptr : op_at(program.graph(), static_cast<size_t>(Program::error_position()));
    Error e{.what = node ? "the types of " + node->target + "'s results cannot be found" : "types cannot be found", .because = because};
    return node ? at_node(std::move(e), program.graph(), *node) : e;
  };
  try {
    program.run(inputs, {.hooks = &hooks});
  } catch (const c10::Error& e) {
    return refuse(e.what_without_backtrace());
  } catch (const std::exception& e) {   // a meta kernel in Python
    return refuse(e.what());
  }
  type_regions(typed, typed.body);
  return typed;
}

}  // namespace cutaway::exec
