// Several recordings into one graph: everything but numbers must be equal. Integers become expressions, floating-point numbers become nodes that
// compute them from one.
#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/symbolic/float_expressions.h"
#include "core/symbolic/search.h"
#include "core/symbolic/size_expressions.h"

namespace cutaway::symbolic {
namespace {

using base::Error;
using ir::Argument;
using ir::Dim;

class Unifier {
 public:
  Unifier(const Samples& s, std::vector<int64_t> steps) : samples_(s), expressions_(s.symbols, s.values, std::move(steps)), values_(s.recordings.size()),
        numbers_([this](const std::vector<int64_t>& values) { return expressions_.find(values); }) {}

  base::Result<Unified> run() {
    result_.graph = first();
    bool good = constants() && signature() && computations() && numbers() && types() && block(result_.graph.body, [&](size_t k) { return &graph(k).body; }) && conditions();
    if (!good) return error_;
    for (const auto& r : expressions_.requests()) result_.requests.push_back({r.symbol, r.value});
    result_.is_guessed = expressions_.is_guessed();
    result_.numbers = std::move(numbers_.program());
    return std::move(result_);
  }

 private:
  const ir::Graph& graph(size_t k) const { return samples_.recordings[k]->graph; }
  const ir::Graph& first() const { return graph(0); }
  size_t count() const { return samples_.recordings.size(); }

  bool fail(std::string what, std::string because = {}) {
    error_ = Error{.what = std::move(what), .place = first().name, .because = std::move(because)};
    return false;
  }
  std::string at(size_t k) const {
    std::string text;
    for (size_t i = 0; i < samples_.symbols.size(); ++i) text += (i ? ", " : "") + samples_.symbols[i] + "=" + std::to_string(samples_.values[k][i]);
    return text;
  }
  std::string named(const ir::Node& n) const { return n.kind == ir::Node::Kind::scope ? "a scope" : n.target; }
  std::string seen() const {
    std::string text;
    for (size_t k = 0; k < count(); ++k) text += (k ? ", " : "") + std::to_string(values_[k]) + " at " + at(k);
    return text;
  }

  /// The integer that each recording has in `values_`; false when nothing explains it.
  bool integer(Dim& out, const std::string& place) {
    auto found = expressions_.find(values_);
    if (!found) return fail("no expression over the sizes explains " + place, seen());
    out = std::move(*found);
    return true;
  }

  bool constants() {
    const auto& mine = samples_.recordings[0]->constants;
    for (size_t k = 1; k < count(); ++k) {
      const auto& other = samples_.recordings[k]->constants;
      if (other.size() != mine.size()) return fail("the program meets other constants at other sizes", std::to_string(mine.size()) + " at " + at(0) + ", " + std::to_string(other.size()) + " at " + at(k));
      for (size_t i = 0; i < mine.size(); ++i)
        if (mine[i] != other[i]) return fail("the value of a constant depends on the sizes", "constant " + std::to_string(i) + " differs between " + at(0) + " and " + at(k));
    }
    return true;
  }

  bool signature() {
    for (size_t k = 1; k < count(); ++k) {
      const auto& g = graph(k);
      if (g.inputs != first().inputs) return fail("the program has other inputs at other sizes");
      // Other operators first: they say more than the types that follow from them.
      const auto &mine = first().body.nodes, &theirs = g.body.nodes;
      for (size_t n = 0; n < std::max(mine.size(), theirs.size()); ++n)
        if (n >= mine.size() || n >= theirs.size() || mine[n].target != theirs[n].target)
          return fail("the program runs other operators at other sizes",
                      (n < mine.size() ? named(mine[n]) : "nothing") + " at " + at(0) + " where " + at(k) + " has " + (n < theirs.size() ? named(theirs[n]) : "nothing"));
      if (g.values.size() != first().values.size()) return fail("the program runs other operators at other sizes", "as " + at(k) + " shows");
    }
    return true;
  }

  // Integers that the program computed are exactly these, whatever else fits the numbers.
  bool computations() {
    const auto& mine = samples_.recordings[0]->computations;
    for (size_t k = 1; k < count(); ++k) {
      const auto& other = samples_.recordings[k]->computations;
      if (other.size() != mine.size()) return fail("the program takes another way at other sizes", "as " + at(k) + " shows");
      for (size_t i = 0; i < mine.size(); ++i)
        if (other[i].kind != mine[i].kind) return fail("the program takes another way at other sizes", "as " + at(k) + " shows");
    }
    for (size_t i = 0; i < mine.size(); ++i) {
      const auto number = [&](Dim& out, int64_t Computation::* part) {
        for (size_t k = 0; k < count(); ++k) values_[k] = samples_.recordings[k]->computations[i].*part;
        return integer(out, "a number that the program computes with");
      };
      Dim left, right;
      if (!number(left, &Computation::left) || !number(right, &Computation::right)) return false;
      if (!left.is_symbolic() && !right.is_symbolic()) continue;
      using Kind = ir::SymExpr::Kind;
      Dim l = left, r = right;
      if (mine[i].kind == Computation::Kind::sub) r = right.is_symbolic() || right.value() == INT64_MIN ? compose(Kind::mul, {right, Dim(-1)}) : Dim(-right.value());
      if (!left.is_symbolic() && (mine[i].kind == Computation::Kind::add || mine[i].kind == Computation::Kind::mul || mine[i].kind >= Computation::Kind::min)) std::swap(l, r);   // the number last, as elsewhere
      static constexpr Kind kKinds[] = {Kind::add, Kind::add, Kind::mul, Kind::floor_div, Kind::mod, Kind::min, Kind::max};
      const Dim computed = compose(kKinds[static_cast<size_t>(mine[i].kind)], {l, r});
      for (size_t k = 0; k < count(); ++k) values_[k] = samples_.recordings[k]->computations[i].result;
      if (auto other = expressions_.define(values_, computed)) result_.guards.push_back({Condition::Kind::equal, computed, *other, "the program computes it"});
    }
    return true;
  }

  bool types() {
    for (ir::ValueId id = 0; id < first().values.size(); ++id) {
      auto& v = result_.graph.values[id];
      for (size_t k = 1; k < count(); ++k) {
        const auto& other = graph(k).values[id];
        const auto &a = v.type.tensor, &b = other.type.tensor;
        if (other.name != v.name || other.type.kind != v.type.kind || a.sizes.size() != b.sizes.size() || a.dtype != b.dtype || a.device != b.device || a.layout != b.layout ||
            a.requires_grad != b.requires_grad || a.strides.size() != b.strides.size())
          return fail("the program gives values of other types at other sizes", "%" + v.name + ": " + v.type.text() + " at " + at(0) + ", %" + other.name + ": " + other.type.text() + " at " + at(k));
      }
      if (!v.type.is_tensor()) continue;
      auto& t = v.type.tensor;
      if (is_the_same_everywhere(id)) continue;
      bool contiguous = true;
      for (size_t k = 0; k < count() && contiguous; ++k) contiguous = graph(k).values[id].type.tensor.is_contiguous();
      for (size_t d = 0; d < t.sizes.size(); ++d) {
        if (bool same = false; follows_from_data(id, d, &same)) {
          if (!same) return fail("size " + std::to_string(d) + " of %" + v.name + " follows from data, and from the sizes");
          continue;
        }
        for (size_t k = 0; k < count(); ++k) values_[k] = graph(k).values[id].type.tensor.sizes[d].value();
        if (!integer(t.sizes[d], "size " + std::to_string(d) + " of %" + v.name)) return false;
      }
      if (contiguous) {   // written as the text form expects, so that it says nothing about strides
        t.strides = ir::contiguous_strides(t.sizes);
        continue;
      }
      for (size_t d = 0; d < t.strides.size(); ++d) {
        bool is_known = true;
        for (size_t k = 0; k < count(); ++k) is_known = is_known && !graph(k).values[id].type.tensor.strides[d].is_symbolic();
        if (!is_known) continue;   // behind a size that follows from data
        for (size_t k = 0; k < count(); ++k) values_[k] = graph(k).values[id].type.tensor.strides[d].value();
        if (!integer(t.strides[d], "stride " + std::to_string(d) + " of %" + v.name)) return false;
      }
    }
    return true;
  }
  /// A size that has a name in the recordings already: only data knows it.
  bool follows_from_data(ir::ValueId id, size_t d, bool* same) const {
    bool found = false;
    *same = true;
    for (size_t k = 0; k < count(); ++k) {
      const Dim& size = graph(k).values[id].type.tensor.sizes[d];
      found = found || size.is_symbolic();
      *same = *same && size == first().values[id].type.tensor.sizes[d];
    }
    return found;
  }
  bool is_the_same_everywhere(ir::ValueId id) const {
    const auto& t = first().values[id].type.tensor;
    for (size_t k = 1; k < count(); ++k) {
      const auto& o = graph(k).values[id].type.tensor;
      if (o.sizes != t.sizes || o.strides != t.strides) return false;
    }
    return true;
  }

  bool block(ir::Block& out, const std::function<const ir::Block*(size_t)>& of) {   // nodes and blocks nest: no templates here
    for (size_t k = 1; k < count(); ++k) {
      if (of(k)->nodes.size() != out.nodes.size()) return fail("the program runs other operators at other sizes", std::to_string(out.nodes.size()) + " at " + at(0) + ", " + std::to_string(of(k)->nodes.size()) + " at " + at(k));
      if (of(k)->outputs.size() != out.outputs.size()) return fail("the program returns another number of values at other sizes");
    }
    std::vector<ir::Node> nodes, around = std::move(computed_);
    std::vector<std::pair<std::vector<double>, ir::ValueId>> floats_around = std::move(floats_);   // values of inner blocks are not seen outside
    std::vector<std::pair<size_t, ir::ValueId>> steps_around = std::move(steps_);
    computed_.clear();
    floats_ = floats_around;
    steps_ = steps_around;
    const auto take_computed = [&] {
      for (ir::Node& n : computed_) nodes.push_back(std::move(n));
      computed_.clear();
    };
    for (size_t n = 0; n < out.nodes.size(); ++n) {
      location_ = out.nodes[n].location;
      if (!node(out.nodes[n], [&](size_t k) { return &of(k)->nodes[n]; })) return false;
      take_computed();
      nodes.push_back(std::move(out.nodes[n]));
    }
    for (size_t i = 0; i < out.outputs.size(); ++i)
      if (!argument(out.outputs[i], "what the program returns", [&](size_t k) { return &of(k)->outputs[i]; })) return false;
    take_computed();
    out.nodes = std::move(nodes);
    computed_ = std::move(around);
    floats_ = std::move(floats_around);
    steps_ = std::move(steps_around);
    return true;
  }

  bool numbers() {
    const auto& mine = *samples_.recordings[0];
    std::vector<const std::vector<NumberStep>*> steps;
    for (size_t k = 0; k < count(); ++k) {
      const auto& other = *samples_.recordings[k];
      if (other.floats.size() != mine.floats.size() || other.float_inputs != mine.float_inputs || other.kept.size() != mine.kept.size()) return fail("the program meets other numbers at other sizes");
      steps.push_back(&other.steps);
    }
    std::vector<double> values(count());
    for (size_t i = 0; i < mine.floats.size(); ++i) {
      for (size_t k = 0; k < count(); ++k) values[k] = samples_.recordings[k]->floats[i];
      numbers_.add_symbol(i, values);
    }
    if (auto added = numbers_.add_steps(steps); !added.ok()) return fail(added.error().what, added.error().because);
    for (size_t i = 0; i < mine.kept.size(); ++i) {
      for (size_t k = 0; k < count(); ++k) values[k] = samples_.recordings[k]->kept[i];
      auto term = numbers_.find(values);
      if (!term) return fail("nothing explains a number that the program returns or keeps");
      numbers_.program().kept.push_back(std::move(*term));
    }
    return true;
  }

  /// The argument that stands for a number: a literal, an input, or the result of nodes that come before the node in hand.
  Argument number(const NumberTerm& t) {
    switch (t.from) {
      case NumberTerm::From::constant: return t.constant.is_float ? Argument(t.constant.floating) : Argument(t.constant.integer);
      case NumberTerm::From::integer: return Argument(t.integer);
      case NumberTerm::From::symbol: return ir::ValueRef{samples_.recordings[0]->float_inputs[t.index]};
      case NumberTerm::From::step: break;
    }
    if (const auto known = std::ranges::find(steps_, t.index, [](const auto& s) { return s.first; }); known != steps_.end()) return ir::ValueRef{known->second};
    static constexpr const char* kTargets[] = {"sym.add", "sym.sub", "sym.mul", "sym.truediv", "sym.floordiv", "sym.mod", "sym.pow", "sym.min", "sym.max", "sym.neg", "sym.abs", "sym.float", "sym.sqrt", "sym.exp", "sym.log", "sym.sin", "sym.cos", "sym.tanh"};
    const NumberProgram::Step step = numbers_.program().steps[t.index];
    std::vector<Argument> args{number(step.left)};
    if (!has_one_operand(step.kind)) args.push_back(number(step.right));
    const ir::ValueId id = compute(kTargets[static_cast<size_t>(step.kind)], std::move(args));
    steps_.emplace_back(t.index, id);
    return ir::ValueRef{id};
  }

  /// A number that the sizes decide: nodes that compute it come before the node in hand, and `out` refers to the result.
  bool floating(Argument& out, const std::string& place, const std::vector<const Argument*>& all) {
    std::vector<double> numbers;
    for (const Argument* a : all) numbers.push_back(*a->as<double>());
    if (const auto term = numbers_.find(numbers)) {
      out = number(*term);
      return true;
    }
    if (const auto known = std::ranges::find(floats_, numbers, [](const auto& f) { return f.first; }); known != floats_.end()) {
      out = ir::ValueRef{known->second};
      return true;
    }
    using Kind = FloatForm::Kind;
    for (const FloatForm& form : float_forms(numbers)) {
      const auto integer = expressions_.find(form.integers);
      if (!integer || !integer->is_symbolic()) continue;
      if (form.kind == Kind::quotient) add_guard({Condition::Kind::not_equal, *integer, Dim(0), "a number is divided by it"});
      else if (form.kind != Kind::whole) add_guard({Condition::Kind::less, Dim(0), *integer, "its root is taken"});
      ir::ValueId id = ir::kNoValue;
      switch (form.kind) {
        case Kind::whole: id = compute("sym.float", {*integer}); break;
        case Kind::quotient: id = compute("sym.truediv", {form.operand, *integer}); break;
        case Kind::root: id = compute("sym.sqrt", {*integer}); break;
        case Kind::power: id = compute("sym.pow", {*integer, form.operand}); break;
        case Kind::inverse_root: id = compute("sym.truediv", {1.0, ir::ValueRef{compute("sym.sqrt", {*integer})}}); break;
      }
      floats_.emplace_back(std::move(numbers), id);
      out = ir::ValueRef{id};
      return true;
    }
    return fail(place + " is a floating-point number that depends on the sizes", "it is no quotient or root of an integer that they explain");
  }
  ir::ValueId compute(const char* target, std::vector<Argument> args) {
    ir::Node n;
    n.target = target;
    n.args = std::move(args);
    n.results = {result_.graph.add_value("number", ir::Type::of(ir::Type::Kind::floating))};
    n.returns = {ir::Node::kSingle};
    n.location = location_;
    computed_.push_back(std::move(n));
    return computed_.back().results.front();
  }
  void add_guard(Guard g) {
    for (const auto& have : result_.guards)
      if (have.kind == g.kind && have.left == g.left && have.right == g.right) return;
    result_.guards.push_back(std::move(g));
  }

  bool node(ir::Node& out, const std::function<const ir::Node*(size_t)>& of) {
    for (size_t k = 1; k < count(); ++k) {
      const auto& n = *of(k);
      if (n.kind != out.kind || n.target != out.target) return fail("the program runs other operators at other sizes", named(out) + " at " + at(0) + " where " + at(k) + " has " + named(n));
      if (n.results != out.results || n.returns != out.returns || !(n.state == out.state) || n.regions.size() != out.regions.size() || n.args.size() != out.args.size() || n.kwargs.size() != out.kwargs.size())
        return fail("the program calls " + named(out) + " in another form at other sizes", "as " + at(k) + " shows");
    }
    for (size_t i = 0; i < out.args.size(); ++i)
      if (!argument(out.args[i], "an argument of " + named(out), [&](size_t k) { return &of(k)->args[i]; })) return false;
    for (size_t i = 0; i < out.kwargs.size(); ++i) {
      for (size_t k = 1; k < count(); ++k)
        if (of(k)->kwargs[i].first != out.kwargs[i].first) return fail("the program calls " + named(out) + " in another form at other sizes", "as " + at(k) + " shows");
      if (!argument(out.kwargs[i].second, "the argument " + out.kwargs[i].first + " of " + named(out), [&](size_t k) { return &of(k)->kwargs[i].second; })) return false;
    }
    for (size_t r = 0; r < out.regions.size(); ++r)
      if (!block(out.regions[r], [&](size_t k) { return &of(k)->regions[r]; })) return false;
    return true;
  }

  template <class Of> bool argument(Argument& out, const std::string& place, Of&& of) {
    std::vector<const Argument*> all(count());
    for (size_t k = 0; k < count(); ++k) all[k] = of(k);
    return combine(out, place, all);
  }
  bool combine(Argument& out, const std::string& place, const std::vector<const Argument*>& all) {
    bool equal = true;
    for (size_t k = 1; k < all.size(); ++k) {
      if (all[k]->v.index() != out.v.index()) return fail(place + " is of another kind at other sizes", "as " + at(k) + " shows");
      equal = equal && *all[k] == *all[0];
    }
    if (equal) return true;
    if (out.as<int64_t>()) {
      for (size_t k = 0; k < all.size(); ++k) values_[k] = *all[k]->as<int64_t>();
      Dim d;
      if (!integer(d, place)) return false;
      out = Argument(std::move(d));
      return true;
    }
    const auto items = [&](std::vector<Argument>& list, auto&& items_of) {
      for (size_t k = 1; k < all.size(); ++k)
        if (items_of(*all[k]).size() != list.size()) return fail(place + " has another length at other sizes", "as " + at(k) + " shows");
      for (size_t i = 0; i < list.size(); ++i) {
        std::vector<const Argument*> inner(all.size());
        for (size_t k = 0; k < all.size(); ++k) inner[k] = &items_of(*all[k])[i];
        if (!combine(list[i], place, inner)) return false;
      }
      return true;
    };
    if (auto* l = out.as<ir::List>()) return items(l->items, [](const Argument& a) -> const std::vector<Argument>& { return a.as<ir::List>()->items; });
    if (auto* t = out.as<ir::Tuple>()) return items(t->items, [](const Argument& a) -> const std::vector<Argument>& { return a.as<ir::Tuple>()->items; });
    if (auto* s = out.as<ir::Slice>()) return items(s->parts, [](const Argument& a) -> const std::vector<Argument>& { return a.as<ir::Slice>()->parts; });
    if (auto* d = out.as<ir::Dict>()) {
      for (size_t i = 0; i < d->items.size(); ++i) {
        std::vector<const Argument*> inner(all.size());
        for (size_t k = 0; k < all.size(); ++k) {
          const auto& other = all[k]->as<ir::Dict>()->items;
          if (other.size() != d->items.size() || other[i].first != d->items[i].first) return fail(place + " has other keys at other sizes");
          inner[k] = &other[i].second;
        }
        if (!combine(d->items[i].second, place, inner)) return false;
      }
      return true;
    }
    if (out.as<double>()) return floating(out, place, all);
    return fail(place + " differs at other sizes");
  }

  bool conditions() {
    const auto& mine = samples_.recordings[0]->conditions;
    for (size_t k = 1; k < count(); ++k) {
      const auto& other = samples_.recordings[k]->conditions;
      if (other.size() != mine.size()) return fail("the program takes another way at other sizes", "as " + at(k) + " shows");
      for (size_t i = 0; i < mine.size(); ++i)
        if (other[i].kind != mine[i].kind || other[i].holds != mine[i].holds) return fail("the program takes another way at other sizes", (mine[i].where.empty() ? "a condition" : mine[i].where) + " has another answer at " + at(k));
    }
    for (size_t i = 0; i < mine.size(); ++i) {
      Guard g;
      g.because = mine[i].where.empty() ? "the program asks" : "asked at " + mine[i].where;
      g.kind = mine[i].kind;
      const std::string place = mine[i].where.empty() ? "a number that the program asks about" : "a number asked about at " + mine[i].where;
      for (size_t k = 0; k < count(); ++k) values_[k] = samples_.recordings[k]->conditions[i].left;
      if (!integer(g.left, place)) return false;
      for (size_t k = 0; k < count(); ++k) values_[k] = samples_.recordings[k]->conditions[i].right;
      if (!integer(g.right, place)) return false;
      if (!g.left.is_symbolic() && !g.right.is_symbolic()) continue;
      if (!mine[i].holds) {   // not (a < b) is b <= a
        using Kind = Condition::Kind;
        switch (g.kind) {
          case Kind::equal: g.kind = Kind::not_equal; break;
          case Kind::not_equal: g.kind = Kind::equal; break;
          case Kind::less: g.kind = Kind::less_equal; std::swap(g.left, g.right); break;
          case Kind::less_equal: g.kind = Kind::less; std::swap(g.left, g.right); break;
        }
      }
      add_guard(std::move(g));
    }
    return true;
  }

  const Samples& samples_;
  SizeExpressions expressions_;
  std::vector<int64_t> values_;
  Unified result_;
  std::vector<ir::Node> computed_;                                             // numbers for the node in hand
  std::vector<std::pair<std::vector<double>, ir::ValueId>> floats_;            // by what a number was in each recording
  NumberTable numbers_;
  std::vector<std::pair<size_t, ir::ValueId>> steps_;                          // steps of the numbers that were made nodes
  ir::LocationId location_ = ir::kNoLocation;
  Error error_;
};

}  // namespace

base::Result<Unified> unify(const Samples& samples) {
  auto steps = samples.steps;
  steps.resize(samples.symbols.size(), 1);
  return Unifier(samples, std::move(steps)).run();
}

}  // namespace cutaway::symbolic
