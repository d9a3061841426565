#include "compiler/codegen/planted.h"

#include <algorithm>

namespace cutaway::codegen {
namespace {

const std::string& name_of(const ir::Graph& g, size_t node) { return g.value(g.body.nodes[node].results[0]).name; }

/// x*x/2 + 1/2 of a number, x + 1 of an integer, not x of a mask, as terms that stand behind term `of`; the last one is the result.
std::vector<Term> wrong_terms(const Kernel& k, TermId of) {
  const Term& right = k.terms[of];
  const auto term = [&](Op op, std::vector<TermId> operands) {
    Term t;
    t.op = op;
    t.held = right.held;
    t.level = right.level;
    t.operands = std::move(operands);
    return t;
  };
  if (right.held == Held::mask) return {term(Op::logical_not, {of})};
  Term constant;
  constant.held = right.held;
  constant.level = Level::row;
  constant.number = 0.5;
  constant.integer = 1;
  if (right.held == Held::i32 || right.held == Held::i64) return {constant, term(Op::add, {of, of + 1})};
  return {constant, term(Op::mul, {of, of}), term(Op::mul, {of + 2, of + 1}), term(Op::add, {of + 3, of + 1})};
}

}  // namespace

std::set<std::string> planted_values(const std::string& planted, const ir::Graph& graph, const Fusion& fusion, const std::vector<Rewritten>& rewrites, const std::vector<std::string>& names) {
  std::set<std::string> values;
  for (size_t g = 0; g < fusion.groups.size(); ++g) {
    const Group& group = fusion.groups[g];
    if (group.nodes.empty()) continue;
    if (planted == "kernels:" + names[g]) values.insert(name_of(graph, group.nodes.back()));
    for (size_t i : group.nodes)
      if (planted == "rules:" + graph.body.nodes[i].target) values.insert(name_of(graph, i));
  }
  for (const Decision& d : fusion.decisions)
    if (d.done && planted == "fusions:" + d.name && d.identity.starts_with("%")) values.insert(d.identity.substr(1, d.identity.find(' ') - 1));
  for (const Rewritten& r : rewrites) {
    if (planted != "rewrites:" + std::string(r.row)) continue;
    std::string made;   // the value itself, or the last of those that the row made on the way to it
    for (size_t g = 0; g < fusion.groups.size(); ++g)
      for (size_t i : fusion.groups[g].nodes) {
        const std::string& value = name_of(graph, i);
        if (made != r.value && (value == r.value || value.starts_with(r.value + "."))) made = value;
      }
    if (!made.empty()) values.insert(made);
  }
  return values;
}

bool make_wrong(Kernel& k, const std::string& value) {
  auto found = std::ranges::find(k.terms, value, &Term::name);
  if (found == k.terms.end()) {   // another value of the same numbers may have given the term its name
    const auto store = std::ranges::find_if(k.stores, [&](const Store& s) { return k.buffers[s.buffer].name == value; });
    if (store == k.stores.end()) return false;
    found = k.terms.begin() + store->term;
  }
  const auto of = static_cast<TermId>(found - k.terms.begin());
  std::vector<Term> more = wrong_terms(k, of);
  const auto count = static_cast<TermId>(more.size());
  const auto moved = [&](TermId id) { return id >= of ? id + count : id; };   // who used the value uses the wrong one
  for (TermId i = of + 1; i < k.terms.size(); ++i)
    for (TermId& o : k.terms[i].operands) o = moved(o);
  for (Store& s : k.stores) s.term = moved(s.term);
  if (k.terms[of].op != Op::load) std::swap(more.back().name, k.terms[of].name);
  k.terms.insert(k.terms.begin() + of + 1, more.begin(), more.end());
  return true;
}

}  // namespace cutaway::codegen
