#include "compiler/aot/cut_backward.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/aot/partial_backward.h"
#include "compiler/aot/symbolic_joint.h"

namespace cutaway::aot {
namespace {

using base::Error;
using ir::ValueId;
using Target = BackwardPiece::Target;

class Cutter {
 public:
  Cutter(const Joint& joint, const Split& split, bool in_terms) : joint_(joint), split_(split), in_terms_(in_terms), graph_(split.backward) {}

  base::Result<std::vector<BackwardPiece>> run() {
    CUTAWAY_TRY(separate());
    leave_out_rebuilt();
    find_outputs();
    CUTAWAY_TRY(find_groups());
    CUTAWAY_TRY(order_groups());
    find_needs();
    for (const size_t g : order_) write(g);
    CUTAWAY_TRY(check_order());
    return std::move(pieces_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Output { ValueId value; Target target; };
  struct Group {
    std::vector<size_t> tangents;       // positions in Joint::tangents
    std::vector<size_t> nodes;
    std::set<ValueId> needs;            // of others, and saved ones
    std::vector<ValueId> handed;        // what it gets from other groups
    std::set<size_t> next;
  };

  size_t saved_count() const { return split_.saved.size(); }

  /// The whole gradient of a cut becomes its tangent, and what the graph adds to it becomes outputs.
  base::Status separate() {
    const size_t tangents = joint_.tangents.size() + static_cast<size_t>(std::ranges::count_if(joint_.cuts, &Cut::is_rebuilt));
    graph_.inputs.resize(saved_count() + tangents);   // each piece gets the symbols that it needs
    gradients_ = graph_.body.outputs.size() - joint_.cuts.size();
    std::vector<const ir::Node*> made_by(graph_.values.size(), nullptr);
    for (const ir::Node& n : graph_.body.nodes)
      for (const ValueId r : n.results)
        if (r != ir::kNoValue) made_by[r] = &n;
    std::vector<ValueId> stands_for(graph_.values.size());
    std::iota(stands_for.begin(), stands_for.end(), ValueId{0});
    std::vector<bool> is_sum_of_cut(graph_.values.size(), false);
    std::vector<ir::Argument> outputs(graph_.body.outputs.begin(), graph_.body.outputs.begin() + static_cast<std::ptrdiff_t>(gradients_));
    for (size_t k = 0; k < joint_.cuts.size(); ++k) {
      const ValueId tangent = graph_.inputs[saved_count() + joint_.cuts[k].tangent].value, total = graph_.body.outputs[gradients_ + k].as<ir::ValueRef>()->id;
      std::vector<ir::Argument> terms;
      for (ValueId at = total; at != tangent;) {   // the tangent comes first, then one term after the other
        const ir::Node* n = made_by[at];
        if (!n || !is_sum(*n)) return Error{.what = "the gradient of an output that others are computed from is no plain sum: refused", .place = graph_.name};
        is_sum_of_cut[at] = true;
        terms.push_back(n->args[1]);
        at = n->args[0].as<ir::ValueRef>()->id;
      }
      for (auto t = terms.rbegin(); t != terms.rend(); ++t) {
        outputs.push_back(*t);
        cut_of_.push_back(k);
      }
      stands_for[total] = tangent;
      graph_.values[tangent].type = graph_.values[total].type;
    }
    graph_.body.outputs = std::move(outputs);
    std::erase_if(graph_.body.nodes, [&](const ir::Node& n) { return n.results.size() == 1 && n.results[0] != ir::kNoValue && is_sum_of_cut[n.results[0]]; });
    const auto replace = [&](ValueId& id) { id = stands_for[id]; };
    for (ir::Node& n : graph_.body.nodes) {
      for (ir::Argument& a : n.args) ir::for_each_value(a, replace);
      for (auto& [key, a] : n.kwargs) ir::for_each_value(a, replace);
    }
    for (ir::Argument& a : graph_.body.outputs) ir::for_each_value(a, replace);
    for (size_t i = 0; i < tangents; ++i) tangent_types_.push_back(graph_.value(graph_.inputs[saved_count() + i].value).type);
    return {};
  }

  /// What torch differentiates itself.
  void leave_out_rebuilt() {
    std::vector<bool> given(tangent_types_.size(), true);
    for (const Cut& c : joint_.cuts) given[c.tangent] = !c.is_rebuilt();
    BackwardGraph part = take_part(graph_, saved_count(), given, /*is_symbolic=*/false);
    graph_ = std::move(part.graph);
    saved_ = std::move(part.saved);
    tangents_ = std::move(part.tangents);
  }

  void find_outputs() {
    const std::vector<size_t> belongs = take_sums_apart(graph_, joint_.sums, gradients_);
    for (size_t o = 0; o < belongs.size(); ++o)
      if (const auto* ref = graph_.body.outputs[o].as<ir::ValueRef>()) {
        const bool is_gradient = belongs[o] < gradients_;
        outputs_.push_back({ref->id, {is_gradient ? Target::To::primal : Target::To::cut, is_gradient ? belongs[o] : cut_of_[belongs[o] - gradients_], 0}});
      }
  }

  base::Status find_groups() {
    const auto from = find_origins(graph_, saved_.size(), tangents_.size());
    std::vector<bool> is_cut(tangent_types_.size(), false);
    for (const Cut& c : joint_.cuts) is_cut[c.tangent] = true;
    // Tangents of which a pass may get one and not the other, and that lead to the same cuts, are one: hooks there are called or not.
    std::vector<std::set<size_t>> leads_to(tangent_types_.size());
    for (const Output& o : outputs_) {
      if (from[o.value].empty()) return Error{.what = "a gradient does not follow from that of an output, and some outputs are computed from others: refused", .place = graph_.name};
      if (o.target.to == Target::To::cut)
        for (const size_t t : from[o.value]) leads_to[tangents_[t]].insert(o.target.index);
    }
    std::map<std::set<size_t>, size_t> classes;
    std::vector<size_t> class_of(tangent_types_.size());
    for (size_t t = 0; t < class_of.size(); ++t) class_of[t] = is_cut[t] ? t : classes.try_emplace(leads_to[t], t).first->second;
    std::map<std::set<size_t>, size_t> known;
    const auto group_for = [&](const std::set<size_t>& set) {
      const auto [it, is_new] = known.try_emplace(set, groups_.size());
      if (is_new) groups_.emplace_back();
      return it->second;
    };
    for (size_t t = 0; t < joint_.tangents.size(); ++t) groups_[group_for({class_of[t]})].tangents.push_back(t);
    group_of_.assign(graph_.values.size(), kNone);
    const auto classes_of = [&](ValueId id) {
      std::set<size_t> set;
      for (const size_t t : from[id]) set.insert(class_of[tangents_[t]]);
      return set;
    };
    for (size_t i = 0; i < tangents_.size(); ++i) group_of_[graph_.inputs[saved_.size() + i].value] = group_for({class_of[tangents_[i]]});
    for (size_t n = 0; n < graph_.body.nodes.size(); ++n) {
      const ir::Node& node = graph_.body.nodes[n];
      std::set<size_t> set;
      ir::for_each_use(node, [&](ValueId id) { set.merge(classes_of(id)); });
      node_group_.push_back(set.empty() ? kNone : group_for(set));
      if (set.empty()) continue;
      groups_[node_group_.back()].nodes.push_back(n);
      for (const ValueId r : node.results)
        if (r != ir::kNoValue) group_of_[r] = node_group_.back();
    }
    return {};
  }

  /// Groups come when those that they get something from have run; of several, the one that eager begins first.
  base::Status order_groups() {
    std::vector<size_t> cut_group(joint_.cuts.size(), kNone);
    for (size_t k = 0; k < joint_.cuts.size(); ++k)
      for (size_t g = 0; g < groups_.size() && !joint_.cuts[k].is_rebuilt(); ++g)
        if (std::ranges::find(groups_[g].tangents, joint_.cuts[k].tangent) != groups_[g].tangents.end()) cut_group[k] = g;
    // What is rebuilt hands its gradient to what it is rebuilt from.
    for (size_t k = 0; k < joint_.cuts.size(); ++k) {
      if (joint_.cuts[k].at != Cut::At::output) continue;
      const OutputRule& rule = joint_.outputs[joint_.cuts[k].index];
      for (size_t other = 0; other < joint_.cuts.size(); ++other) {
        const Cut& c = joint_.cuts[other];
        if (c.at != Cut::At::result) continue;
        const ForwardResult& r = joint_.results[c.index];
        const bool is_base = rule.from == OutputRule::From::view_of_result ? c.index == rule.index : r.what == ForwardResult::For::mutated_primal && r.index == rule.index;
        if (is_base) cut_group[k] = cut_group[other];
      }
    }
    for (size_t n = 0; n < graph_.body.nodes.size(); ++n)
      ir::for_each_use(graph_.body.nodes[n], [&](ValueId id) { if (group_of_[id] != kNone && group_of_[id] != node_group_[n]) groups_[group_of_[id]].next.insert(node_group_[n]); });
    for (const Output& o : outputs_)
      if (o.target.to == Target::To::cut && cut_group[o.target.index] != kNone) groups_[group_of_[o.value]].next.insert(cut_group[o.target.index]);
    std::vector<size_t> waits(groups_.size(), 0);
    for (const Group& g : groups_)
      for (const size_t n : g.next) ++waits[n];
    const auto begin = [&](size_t g) { return groups_[g].nodes.empty() ? size_t{0} : groups_[g].nodes.front() + 1; };
    std::set<std::pair<size_t, size_t>> ready;
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!waits[g]) ready.emplace(begin(g), g);
    place_.assign(groups_.size(), kNone);
    while (!ready.empty()) {
      const size_t g = ready.begin()->second;
      ready.erase(ready.begin());
      place_[g] = order_.size();
      order_.push_back(g);
      for (const size_t n : groups_[g].next)
        if (--waits[n] == 0) ready.emplace(begin(n), n);
    }
    if (order_.size() != groups_.size()) return Error{.what = "outputs that are computed from each other cannot be put in an order: refused", .place = graph_.name};
    return {};
  }

  void find_needs() {
    const auto& nodes = graph_.body.nodes;
    for (size_t g = 0; g < groups_.size(); ++g) {
      Group& group = groups_[g];
      const auto need = [&](ValueId id) { if (group_of_[id] != g) group.needs.insert(id); };
      for (const size_t n : group.nodes) ir::for_each_use(nodes[n], need);
      for (size_t n = nodes.size(); n-- > 0;)   // what follows from saved values alone is made in each piece that uses it
        if (node_group_[n] == kNone && std::ranges::any_of(nodes[n].results, [&](ValueId r) { return group.needs.contains(r); })) {
          group.nodes.push_back(n);
          ir::for_each_use(nodes[n], need);
        }
      std::ranges::sort(group.nodes);
      for (const ValueId id : group.needs)
        if (group_of_[id] != kNone) group.handed.push_back(id);
    }
  }

  void write(size_t g) {
    const Group& group = groups_[g];
    BackwardPiece piece;
    ir::Graph& to = piece.graph;
    if (order_.size() > 1) to.name = split_.backward.name + "_piece_" + std::to_string(place_[g]);
    else to.name = split_.backward.name;
    std::vector<ValueId> made(graph_.values.size(), ir::kNoValue);
    const auto input = [&](ValueId id) { made[id] = to.add_input(graph_.value(id).name, graph_.value(id).type); };
    for (size_t i = 0; i < saved_.size(); ++i) {
      if (!group.needs.contains(graph_.inputs[i].value)) continue;
      input(graph_.inputs[i].value);
      piece.saved.push_back(saved_[i]);
    }
    piece.tangents = group.tangents;
    for (const size_t t : group.tangents) {
      const auto at = std::ranges::find(tangents_, t);
      if (at == tangents_.end()) to.add_input("tangent" + std::to_string(t), tangent_types_[t]);   // that nothing follows from
      else input(graph_.inputs[saved_.size() + static_cast<size_t>(at - tangents_.begin())].value);
    }
    piece.handed = group.handed.size();
    for (const ValueId id : group.handed) input(id);
    const auto rename = [&](ValueId& id) { id = made[id]; };
    for (const size_t n : group.nodes) {
      ir::Node copy = graph_.body.nodes[n];
      for (ir::Argument& a : copy.args) ir::for_each_value(a, rename);
      for (auto& [key, a] : copy.kwargs) ir::for_each_value(a, rename);
      for (ValueId& r : copy.results)
        if (r != ir::kNoValue) r = made[r] = to.add_value(graph_.value(r).name, graph_.value(r).type);
      if (copy.location != ir::kNoLocation) copy.location = to.add_location(graph_.locations[copy.location]);
      to.body.nodes.push_back(std::move(copy));
    }
    for (const Output& o : outputs_) {
      if (group_of_[o.value] != g) continue;
      const auto same = in_terms_ ? piece.targets.end() : std::ranges::find(piece.targets, o.target);
      if (same == piece.targets.end()) {
        piece.targets.push_back(o.target);
        to.body.outputs.emplace_back(ir::ValueRef{made[o.value]});
      } else {
        ir::Argument& sum = to.body.outputs[static_cast<size_t>(same - piece.targets.begin())];
        ir::Node add;
        add.target = "aten.add.Tensor";
        add.args = {sum, ir::ValueRef{made[o.value]}};
        add.results = {to.add_value("sum", to.value(sum.as<ir::ValueRef>()->id).type)};
        add.returns = {ir::Node::kSingle};
        sum = ir::ValueRef{add.results[0]};
        to.body.nodes.push_back(std::move(add));
      }
    }
    for (size_t other = 0; other < groups_.size(); ++other)
      for (size_t h = 0; h < groups_[other].handed.size(); ++h)
        if (const ValueId id = groups_[other].handed[h]; group_of_[id] == g) {
          piece.targets.push_back({Target::To::piece, place_[other], groups_[other].tangents.size() + h});
          to.body.outputs.emplace_back(ir::ValueRef{made[id]});
        }
    if (!joint_.symbols.empty()) piece.symbol_inputs = add_symbol_inputs(to);
    pieces_.push_back(std::move(piece));
  }

  /// The engine adds up what pieces give in the order in which they run.
  base::Status check_order() const {
    if (!in_terms_) return {};
    std::map<std::pair<Target::To, size_t>, size_t> latest;
    for (const Output& o : outputs_) {
      size_t& last = latest[{o.target.to, o.target.index}];
      if (place_[group_of_[o.value]] < last) return Error{.what = "gradients would be added up in another order than eager's: refused", .place = graph_.name, .because = "some outputs are computed from others"};
      last = place_[group_of_[o.value]];
    }
    return {};
  }

  const Joint& joint_;
  const Split& split_;
  const bool in_terms_;
  ir::Graph graph_;
  size_t gradients_ = 0;
  std::vector<size_t> cut_of_;              // by term
  std::vector<ir::Type> tangent_types_;     // those of cuts that are rebuilt come last
  std::vector<size_t> saved_, tangents_;    // what the graph takes
  std::vector<Output> outputs_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_, node_group_;   // by value, by node; kNone: follows from saved values alone
  std::vector<size_t> order_, place_;       // groups as they run; by group
  std::vector<BackwardPiece> pieces_;
};

}  // namespace

base::Result<std::vector<BackwardPiece>> cut_backward(const Joint& joint, const Split& split, bool in_terms) {
  if (!joint.cuts.empty()) return Cutter(joint, split, in_terms).run();
  BackwardPiece whole{.graph = split.backward, .symbol_inputs = split.symbol_inputs};
  for (size_t i = 0; i < split.saved.size(); ++i) whole.saved.push_back(i);
  for (size_t i = 0; i < joint.tangents.size(); ++i) whole.tangents.push_back(i);
  std::vector<size_t> gradients(whole.graph.body.outputs.size());
  std::iota(gradients.begin(), gradients.end(), size_t{0});
  if (in_terms) gradients = take_sums_apart(whole.graph, joint.sums, gradients.size());
  for (const size_t g : gradients) whole.targets.push_back({BackwardPiece::Target::To::primal, g, 0});
  std::vector<BackwardPiece> pieces;
  pieces.push_back(std::move(whole));
  return pieces;
}

}  // namespace cutaway::aot
