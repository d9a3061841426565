#include "core/ir/diff.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "core/ir/align.h"
#include "core/ir/printer.h"

namespace cutaway::ir {
namespace {

using Kind = Difference::Kind;

/// Things are aligned by their shape: their text with every value written alike. What the values are is compared afterwards,
/// through the match, so that one inserted node does not change everything after it.
class Differ {
 public:
  Differ(const Graph& a, const Graph& b) : a_(a), b_(b), zeros_a_(a.values.size(), 0), zeros_b_(b.values.size(), 0), match_(a.values.size(), kNoValue) {}

  std::vector<Difference> run() {
    if (a_.name != b_.name) report(Kind::name_changed, "graph", "the name \"" + a_.name + "\" became \"" + b_.name + "\"");
    inputs();
    block(a_.body, b_.body, "", "returns");
    return std::move(found_);
  }

 private:
  void report(Kind kind, std::string where, std::string text) { found_.push_back({kind, std::move(where), std::move(text)}); }
  static std::string name(const Graph& g, ValueId id) { return id < g.values.size() ? "%" + g.values[id].name : "a missing value"; }
  void match(ValueId x, ValueId y) { if (x < match_.size()) match_[x] = y; }
  uint32_t number(std::string key) { return keys_.emplace(std::move(key), static_cast<uint32_t>(keys_.size())).first->second; }

  static std::string shape(const Graph& g, const Node& n, const std::vector<ValueId>& zeros) {
    std::string out;
    write_node_head(out, g, n, zeros);
    return out;
  }
  static std::string shape(const Graph& g, const std::vector<Argument>& list, const std::vector<ValueId>& zeros) {
    std::string out;
    write_arguments(out, g, list, zeros);
    return out;
  }
  static std::string shown(const Graph& g, const std::vector<Argument>& list) {
    std::string out;
    for (const Argument& x : list) out += (out.empty() ? "" : ", ") + print_argument(g, x);
    return "(" + out + ")";
  }

  // ---- inputs
  static std::string input_text(const Graph& g, const Input& in) {
    static constexpr std::string_view kinds[] = {"user", "param", "buffer", "const"};
    std::string out = in.value < g.values.size() ? g.values[in.value].type.text() : "missing";
    if (in.kind != InputKind::user || !in.qualified_name.empty()) out += " = " + std::string(kinds[static_cast<size_t>(in.kind)]) + " \"" + in.qualified_name + "\"";
    return out;
  }
  void inputs() {
    std::vector<uint32_t> keys_a, keys_b;
    for (const Input& in : a_.inputs) keys_a.push_back(number(input_text(a_, in)));
    for (const Input& in : b_.inputs) keys_b.push_back(number(input_text(b_, in)));
    size_t i = 0, j = 0;
    const auto gap = [&](size_t to_i, size_t to_j) {
      // Inside a gap the same name, or else the same place, makes a changed input out of one that went and one that came.
      std::vector<bool> taken(to_j - j, false);
      const size_t from_j = j;
      const bool by_place = to_i - i == to_j - j;
      for (size_t at = i; at < to_i; ++at) {
        size_t partner = to_j;
        for (size_t k = from_j; k < to_j && partner == to_j; ++k)
          if (!taken[k - from_j] && name(a_, a_.inputs[at].value) == name(b_, b_.inputs[k].value)) partner = k;
        if (partner == to_j && by_place && !taken[at - i]) partner = from_j + (at - i);
        const std::string where = "input " + name(a_, a_.inputs[at].value);
        if (partner == to_j) {
          report(Kind::input_removed, where, where + ", " + input_text(a_, a_.inputs[at]) + ", is gone");
        } else {
          taken[partner - from_j] = true;
          match(a_.inputs[at].value, b_.inputs[partner].value);
          const std::string was = input_text(a_, a_.inputs[at]), is = input_text(b_, b_.inputs[partner]);
          report(Kind::input_changed, where, where + (was == is ? " has another place among the inputs" : " was " + was + " and is " + is));
        }
      }
      for (size_t k = from_j; k < to_j; ++k)
        if (!taken[k - from_j]) {
          const std::string where = "input " + name(b_, b_.inputs[k].value);
          report(Kind::input_added, where, where + ", " + input_text(b_, b_.inputs[k]) + ", is new");
        }
      i = to_i;
      j = to_j;
    };
    for (auto [x, y] : align(keys_a, keys_b)) {
      gap(x, y);
      match(a_.inputs[x].value, b_.inputs[y].value);
      i = x + 1;
      j = y + 1;
    }
    gap(a_.inputs.size(), b_.inputs.size());
  }

  // ---- nodes
  static std::string where(const Graph& g, const Node& n, const std::string& path, size_t position) {
    const std::string place = "node " + path + std::to_string(position);
    if (!n.results.empty()) return name(g, n.results[0]) + " (" + place + ")";
    return (n.target.empty() ? "scope" : n.target) + " (" + place + ")";
  }
  bool corresponds(ValueId x, ValueId y) const { return x < match_.size() && match_[x] == y && y != kNoValue; }
  /// "uses %b where %a was used", or empty.
  template <class Collect> std::string changed_values(Collect&& collect) const {
    std::vector<ValueId> was, is;
    collect(was, is);
    for (size_t k = 0; k < was.size() && k < is.size(); ++k)
      if (!corresponds(was[k], is[k])) return "uses " + name(b_, is[k]) + " where " + name(a_, was[k]) + " was used";
    return {};
  }

  void pair(const Node& x, const Node& y, const std::string& path, size_t position_a, bool same_shape) {
    const std::string at = where(a_, x, path, position_a);
    if (!same_shape) {
      report(Kind::node_changed, at, at + " was `" + print_node(a_, x) + "` and is `" + print_node(b_, y) + "`");
    } else {
      const std::string change = changed_values([&](std::vector<ValueId>& was, std::vector<ValueId>& is) {
        for_each_use(x, [&](ValueId id) { was.push_back(id); });
        for_each_use(y, [&](ValueId id) { is.push_back(id); });
      });
      if (!change.empty()) report(Kind::node_changed, at, at + " " + change);
    }
    if (x.regions.size() == y.regions.size())
      for (size_t r = 0; r < x.regions.size(); ++r) block(x.regions[r], y.regions[r], path + std::to_string(position_a) + ".", at + " yields");
    else if (same_shape)
      report(Kind::node_changed, at, at + " had " + std::to_string(x.regions.size()) + " regions and has " + std::to_string(y.regions.size()));
    for (size_t k = 0; k < x.results.size() && k < y.results.size(); ++k) match(x.results[k], y.results[k]);
  }

  void block(const Block& a, const Block& b, const std::string& path, const std::string& outputs_are) {
    std::vector<uint32_t> keys_a, keys_b;
    for (const Node& n : a.nodes) keys_a.push_back(number(shape(a_, n, zeros_a_)));
    for (const Node& n : b.nodes) keys_b.push_back(number(shape(b_, n, zeros_b_)));
    size_t i = 0, j = 0;
    const auto gap = [&](size_t to_i, size_t to_j) {
      // In order: a node that went and the next one that came with the same target are one node that changed.
      std::unordered_map<std::string_view, std::vector<size_t>> came;
      for (size_t k = to_j; k-- > j;) came[b.nodes[k].target].push_back(k);
      std::vector<bool> taken(to_j - j, false);
      const size_t from_j = j;
      for (; i < to_i; ++i) {
        const Node& x = a.nodes[i];
        std::vector<size_t>& same_target = came[x.target];
        if (same_target.empty()) {
          report(Kind::node_removed, where(a_, x, path, i), where(a_, x, path, i) + " is gone: `" + print_node(a_, x) + "`");
          continue;
        }
        taken[same_target.back() - from_j] = true;
        const Node& y = b.nodes[same_target.back()];
        same_target.pop_back();
        pair(x, y, path, i, shape(a_, x, zeros_a_) == shape(b_, y, zeros_b_));
      }
      for (; j < to_j; ++j)
        if (!taken[j - from_j]) report(Kind::node_added, where(b_, b.nodes[j], path, j), where(b_, b.nodes[j], path, j) + " is new: `" + print_node(b_, b.nodes[j]) + "`");
    };
    for (auto [x, y] : align(keys_a, keys_b)) {
      gap(x, y);
      pair(a.nodes[x], b.nodes[y], path, x, true);
      i = x + 1;
      j = y + 1;
    }
    gap(a.nodes.size(), b.nodes.size());

    bool same = shape(a_, a.outputs, zeros_a_) == shape(b_, b.outputs, zeros_b_);
    if (same)
      same = changed_values([&](std::vector<ValueId>& was, std::vector<ValueId>& is) {
               for (const Argument& x : a.outputs) for_each_value(x, [&](ValueId id) { was.push_back(id); });
               for (const Argument& x : b.outputs) for_each_value(x, [&](ValueId id) { is.push_back(id); });
             }).empty();
    if (!same) report(Kind::outputs_changed, path.empty() ? "outputs" : "outputs of node " + path.substr(0, path.size() - 1),
                      (path.empty() ? "the graph " : "") + outputs_are + " " + shown(b_, b.outputs) + " where it was " + shown(a_, a.outputs));
  }

  const Graph &a_, &b_;
  std::vector<ValueId> zeros_a_, zeros_b_;
  std::vector<ValueId> match_;   // value of a -> value of b
  std::unordered_map<std::string, uint32_t> keys_;
  std::vector<Difference> found_;
};

}  // namespace

std::vector<Difference> diff(const Graph& a, const Graph& b) { return Differ(a, b).run(); }

}  // namespace cutaway::ir
