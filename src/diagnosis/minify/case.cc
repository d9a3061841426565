// What "smaller" means, and what "the same case" means.
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "diagnosis/minify/minify.h"

namespace cutaway::minify {
namespace {

uint64_t elements_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t{1}, [](uint64_t a, int64_t b) { return a * static_cast<uint64_t>(b); });
}

bool is_contiguous(const bundle::TensorRecord& t) { return t.type().is_contiguous(); }

// Plainest first: float32 is what readers expect, then the other usual ones.
uint64_t dtype_oddity(ir::DType d) {
  switch (d) {
    case ir::DType::f32: case ir::DType::i64: case ir::DType::boolean: return 0;
    case ir::DType::f64: case ir::DType::i32: return 1;
    default: return 2;
  }
}

uint64_t data_oddity(const bundle::InputRef& in) {
  using Kind = bundle::InputRef::Kind;
  uint64_t base = 0;
  switch (in.kind) {
    case Kind::literal: return 0;
    case Kind::filled: base = in.fill == 0 ? 0 : 1; break;
    case Kind::seeded: base = in.range ? 2 : 3; break;
    case Kind::data: base = 4; break;
  }
  const bool strided = !in.make_contiguous && !is_contiguous(in.tensor);
  return base * 8 + dtype_oddity(in.tensor.dtype) * 2 + (strided ? 1 : 0);
}

}  // namespace

Score score(const Case& c) {
  Score s;
  s.nodes = ir::count_nodes(c.graph);
  s.inputs = c.graph.inputs.size();
  s.outputs = c.graph.body.outputs.size();
  for (const auto& in : c.manifest.inputs) {
    if (in.kind != bundle::InputRef::Kind::literal) s.elements += elements_of(in.tensor.sizes);
    s.data += data_oddity(in);
    s.state += in.kind != bundle::InputRef::Kind::literal && in.tensor.requires_grad;
  }
  s.state += c.manifest.process.size() + c.manifest.generators.size() + c.manifest.backward_state.has_value();
  if (c.manifest.backward_state) s.state += c.manifest.backward_state->autocast.size();
  const ir::RegionState& state = c.manifest.state;
  s.state += state.grad_enabled.has_value() + state.inference_mode.has_value() + state.autocast.size() + c.manifest.options.size() + c.manifest.environment.size() + (c.manifest.tracing_mode == "symbolic");
  ir::for_each_node(c.graph.body, [&](const ir::Node& n) {
    s.text += n.target.size();
    for (const auto& a : n.args) s.text += ir::print_argument(c.graph, a).size();
    for (const auto& [k, a] : n.kwargs) s.text += k.size() + ir::print_argument(c.graph, a).size();
    s.state += n.state.grad_enabled.has_value() + n.state.inference_mode.has_value() + n.state.autocast.size();
  });
  return s;
}

base::Digest digest(const Case& c) {
  base::Hasher h;
  // Each field is tagged and delimited, so that two different cases cannot run together into one text.
  auto field = [&](std::string_view tag, std::string_view text) { h.add(tag).add("=").add(std::to_string(text.size())).add(":").add(text).add("\n"); };
  field("graph", ir::digest(c.graph).hex());
  for (const auto& in : c.manifest.inputs) {
    field("kind", std::to_string(static_cast<int>(in.kind)));
    if (in.kind == bundle::InputRef::Kind::literal) field("literal", ir::print_argument(c.graph, in.literal));
    else field("tensor", in.tensor.to_json());
    field("seed", std::to_string(in.seed));
    if (in.range) field("range", std::to_string(in.range->first) + ".." + std::to_string(in.range->second));
    field("fill", std::to_string(std::bit_cast<uint64_t>(in.fill)));
    field("layout", in.make_contiguous ? "contiguous" : "as stored");
  }
  const auto state = [&](const std::string& when, const ir::RegionState& s) {
    if (s.grad_enabled) field(when + "grad", *s.grad_enabled ? "on" : "off");
    if (s.inference_mode) field(when + "inference", *s.inference_mode ? "on" : "off");
    for (const auto& a : s.autocast) field(when + "autocast", a.device.text() + " " + std::string(ir::dtype_name(a.dtype)) + (a.enabled ? " on" : " off") + (a.cache ? " cached" : ""));
  };
  state("", c.manifest.state);
  if (c.manifest.backward_state) {
    field("backward", "has a state of its own");
    state("backward ", *c.manifest.backward_state);
  }
  for (const auto& [k, v] : c.manifest.process) field("process " + k, v);
  for (const auto& [k, v] : c.manifest.generators) field("generator " + k, v);
  for (const auto& [k, v] : c.manifest.options) field("option " + k, v);
  for (const auto& [k, v] : c.manifest.environment) field("environment " + k, v);
  return h.finish();
}

}  // namespace cutaway::minify
