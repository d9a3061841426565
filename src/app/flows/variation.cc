#include "app/flows/variation.h"

#include <algorithm>

#include "diagnosis/minify/sizes.h"

namespace cutaway::flows {
namespace {

using Kind = bundle::InputRef::Kind;

// Everything that names a dtype among the arguments: a cast to f32 in a graph of f32 is a cast to the dtype of the graph.
void retarget(ir::Argument& a, ir::DType to) {
  if (auto* d = a.as<ir::DType>()) {
    if (ir::is_floating(*d)) *d = to;
  } else if (auto* l = a.as<ir::List>()) {
    for (ir::Argument& x : l->items) retarget(x, to);
  } else if (auto* t = a.as<ir::Tuple>()) {
    for (ir::Argument& x : t->items) retarget(x, to);
  }
}

void change_dtype(minify::Case& c, ir::DType to) {
  for (size_t i = 0; i < c.manifest.inputs.size(); ++i) {
    bundle::InputRef& in = c.manifest.inputs[i];
    if (in.kind == Kind::literal) {
      retarget(in.literal, to);
      continue;
    }
    if (!ir::is_floating(in.tensor.dtype) || in.tensor.dtype == to) continue;
    if (in.kind == Kind::data) minify::make_seeded(in, i, "the sweep runs it in another dtype");
    in.tensor.dtype = to;
    if (ir::Type& type = c.graph.value(c.graph.inputs[i].value).type; type.is_tensor()) type.tensor.dtype = to;
  }
  ir::for_each_node(c.graph.body, [&](ir::Node& n) {
    for (ir::Argument& a : n.args) retarget(a, to);
    for (auto& [key, a] : n.kwargs) retarget(a, to);
  });
}

base::Status change_batch(minify::Case& c, int64_t to) {
  for (const ir::Value& v : c.graph.values)
    if (v.type.is_tensor() && std::any_of(v.type.tensor.sizes.begin(), v.type.tensor.sizes.end(), [](const ir::Dim& d) { return d.is_symbolic(); }))
      return base::Error{.what = "its sizes are symbols already"};
  for (size_t i = 0; i < c.graph.inputs.size(); ++i) {
    const bundle::InputRef& in = c.manifest.inputs[i];
    if (c.graph.inputs[i].kind != ir::InputKind::user || in.kind == Kind::literal || in.tensor.sizes.empty()) continue;
    const int64_t from = in.tensor.sizes.front();
    if (from == to) return {};
    if (from < 2) continue;   // a size of 1 stands in too many places to be followed
    return minify::set_size(c, from, to);
  }
  return base::Error{.what = "no user input has a leading size of 2 or more to vary"};
}

}  // namespace

base::Status vary(minify::Case& c, const Variation& variation) {
  if (variation.batch > 0) CUTAWAY_TRY(change_batch(c, variation.batch));
  if (variation.dtype) change_dtype(c, *variation.dtype);
  return {};
}

}  // namespace cutaway::flows
