// Passes that simplify literal arguments, and drop state that the failure does not need.
#include <cmath>
#include <cstdint>

#include "diagnosis/minify/pass_list.h"

namespace cutaway::minify {

void simplify_scalars(Chooser& chooser, Case& c, const PassContext&) {
  auto simplify = [&](ir::Argument& a) {
    if (auto* i = a.as<int64_t>(); i && (*i > 1 || *i < -1)) { if (!chooser.keep()) *i = 1; }
    else if (auto* d = a.as<double>(); d && *d != 0 && *d != 1) { if (!chooser.keep()) *d = 1; }
  };
  ir::for_each_node(c.graph.body, [&](ir::Node& n) {
    for (auto& a : n.args) simplify(a);
    for (auto& [k, a] : n.kwargs) simplify(a);
  });
}

void drop_keywords(Chooser& chooser, Case& c, const PassContext&) {
  ir::for_each_node(c.graph.body, [&](ir::Node& n) {
    std::vector<std::pair<std::string, ir::Argument>> kept;
    for (auto& k : n.kwargs)
      if (chooser.keep()) kept.push_back(std::move(k));
    n.kwargs = std::move(kept);
  });
}

void drop_gradients(Chooser& chooser, Case& c, const PassContext&) {
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i) {
    bundle::InputRef& in = c.manifest.inputs[i];
    if (in.kind == bundle::InputRef::Kind::literal || !in.tensor.requires_grad || chooser.keep()) continue;
    in.tensor.requires_grad = false;
    c.graph.value(c.graph.inputs[i].value).type.tensor.requires_grad = false;
  }
}

void drop_state(Chooser& chooser, Case& c, const PassContext&) {
  auto drop = [&](ir::RegionState& s) {
    if (s.grad_enabled && !chooser.keep()) s.grad_enabled.reset();
    if (s.inference_mode && !chooser.keep()) s.inference_mode.reset();
    std::erase_if(s.autocast, [&](const auto&) { return !chooser.keep(); });
  };
  drop(c.manifest.state);
  if (c.manifest.backward_state && !chooser.keep()) c.manifest.backward_state.reset();
  std::erase_if(c.manifest.process, [&](const auto&) { return !chooser.keep(); });
  std::erase_if(c.manifest.generators, [&](const auto&) { return !chooser.keep(); });
  ir::for_each_node(c.graph.body, [&](ir::Node& n) { drop(n.state); });
  std::erase_if(c.manifest.options, [&](const auto&) { return !chooser.keep(); });
  std::erase_if(c.manifest.environment, [&](const auto&) { return !chooser.keep(); });
}

}  // namespace cutaway::minify
