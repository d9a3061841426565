#include "app/flows/move_device.h"

#include "core/base/text.h"

namespace cutaway::flows {
namespace {

void move(ir::Argument& a, const ir::Device& to) {
  if (auto* d = a.as<ir::Device>()) {
    if (d->type != "meta") *d = to;
  } else if (auto* g = a.as<ir::GeneratorName>()) {
    if (ir::Device::parse(g->name).ok()) g->name = to.text();   // a device's own; others are the program's
  } else if (auto* l = a.as<ir::List>()) {
    for (ir::Argument& x : l->items) move(x, to);
  } else if (auto* t = a.as<ir::Tuple>()) {
    for (ir::Argument& x : t->items) move(x, to);
  } else if (auto* d = a.as<ir::Dict>()) {
    for (auto& [key, x] : d->items) move(x, to);
  }
}

void move(ir::Block& b, const ir::Device& to) {
  for (ir::Node& n : b.nodes) {
    for (ir::Argument& a : n.args) move(a, to);
    for (auto& [key, a] : n.kwargs) move(a, to);
    for (ir::Block& region : n.regions) move(region, to);
  }
}

}  // namespace

base::Status move_to_device(bundle::Bundle& b, std::string_view name) {
  CUTAWAY_TRY_ASSIGN(ir::Device to, ir::Device::parse(name));
  if (to.type != "cpu" && to.type != "cuda") return base::Error{.what = "--device " + std::string(name) + " is not a device that bundles are moved to", .hint = "cpu, cuda or cuda:N"};
  if (to.type == "cuda" && to.index < 0) to.index = 0;
  if (to.type == "cpu") to.index = -1;
  for (ir::Value& v : b.graph.values)
    if (v.type.is_tensor() && v.type.tensor.device.type != "meta") v.type.tensor.device = to;
  move(b.graph.body, to);
  for (bundle::InputRef& in : b.manifest.inputs) {
    if (in.kind != bundle::InputRef::Kind::literal) in.tensor.device = to;
    else move(in.literal, to);
  }
  std::erase_if(b.manifest.generators, [&](const auto& g) { return g.first != to.text(); });
  return {};
}

}  // namespace cutaway::flows
