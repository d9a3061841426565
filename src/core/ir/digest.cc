// The digest of a graph is the digest of a text that can be shown: two digests differ by a readable diff.
#include "core/ir/edit.h"
#include "core/ir/printer.h"

namespace cutaway::ir {

std::string canonical_text(const Graph& g) {
  std::vector<ValueId> ordinals(g.values.size(), kNoValue);
  ValueId next = 0;
  const auto number = [&](ValueId id) { if (id < ordinals.size() && ordinals[id] == kNoValue) ordinals[id] = next++; };
  for (const Input& in : g.inputs) number(in.value);
  for_each_node(g.body, [&](const Node& n) { for (ValueId id : n.results) number(id); });
  std::string text;
  text.reserve(128 + 64 * g.values.size());
  print_canonical_to(text, g, ordinals);
  return text;
}

base::Digest digest(const Graph& g) { return base::digest_text(canonical_text(g)); }

}  // namespace cutaway::ir
