// Passes that take nodes and outputs away.
#include <numeric>

#include "core/ir/edit.h"
#include "diagnosis/minify/pass_list.h"
#include "diagnosis/minify/prune.h"

namespace cutaway::minify {

void drop_suffix(Chooser& chooser, Case& c, const PassContext& context) {
  const size_t n = c.graph.body.nodes.size();
  std::vector<bool> removed(n, false);
  bool stop = false;
  for (size_t i = n; i-- > 1;) {   // the first node stays: an empty graph fails in no interesting way
    stop |= chooser.keep();
    removed[i] = !stop;
  }
  if (n > 1 && removed[n - 1]) remove_nodes(c, std::move(removed), context);
}

void drop_node_blocks(Chooser& chooser, Case& c, const PassContext& context) {
  const size_t n = c.graph.body.nodes.size();
  std::vector<bool> removed(n, false);
  bool any = false;
  for (size_t i = n; i-- > 0;) any |= removed[i] = !chooser.keep();
  if (any) remove_nodes(c, std::move(removed), context);
}

void drop_outputs(Chooser& chooser, Case& c, const PassContext& context) {
  const size_t n = c.graph.body.outputs.size();
  std::vector<size_t> kept;
  for (size_t i = 0; i < n; ++i)
    if (chooser.keep()) kept.push_back(i);
  if (kept.empty() || kept.size() == n) return;
  ir::keep_outputs(c.graph, kept);
  prune(c, context);
}

void drop_dead_code(Chooser& chooser, Case& c, const PassContext& context) {
  if (!chooser.keep()) prune(c, context);
}

void bypass_operators(Chooser& chooser, Case& c, const PassContext& context) {
  ir::Graph& g = c.graph;
  struct Bypass { ir::ValueId result, instead; };
  std::vector<Bypass> possible;
  for (size_t i = g.body.nodes.size(); i-- > 0;) {
    const ir::Node& n = g.body.nodes[i];
    if (n.results.size() != 1 || !g.value(n.results[0]).type.is_tensor()) continue;
    const ir::TensorType& wanted = g.value(n.results[0]).type.tensor;
    ir::ValueId instead = ir::kNoValue;
    ir::for_each_use(n, [&](ir::ValueId v) {
      const ir::Type& t = g.value(v).type;
      if (instead == ir::kNoValue && t.is_tensor() && t.tensor.dtype == wanted.dtype && t.tensor.sizes == wanted.sizes && t.tensor.strides == wanted.strides) instead = v;
    });
    if (instead != ir::kNoValue) possible.push_back({n.results[0], instead});
  }
  bool any = false;
  std::vector<bool> chosen;
  for (size_t i = 0; i < possible.size(); ++i) { chosen.push_back(!chooser.keep()); any |= chosen.back(); }
  if (!any) return;
  for (size_t i = 0; i < possible.size(); ++i)   // last node first, so that a chain collapses onto its beginning
    if (chosen[i]) ir::replace_uses(g, possible[i].result, possible[i].instead);
  // An output that is an input as it came in says nothing.
  std::vector<size_t> kept;
  for (size_t i = 0; i < g.body.outputs.size(); ++i) {
    bool is_input = false;
    if (auto* r = g.body.outputs[i].as<ir::ValueRef>())
      for (const ir::Input& in : g.inputs) is_input |= in.value == r->id;
    if (!is_input) kept.push_back(i);
  }
  if (!kept.empty()) ir::keep_outputs(g, kept);
  prune(c, context);
}

}  // namespace cutaway::minify
