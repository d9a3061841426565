// Which sizes to record at, and what to do where the program does not take them.
#include "core/symbolic/search.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <optional>
#include <ranges>

#include "core/ir/expressions.h"

namespace cutaway::symbolic {
namespace {

using base::Error;
using ir::Dim;
using ConditionKind = Condition::Kind;

constexpr int64_t kSteps[] = {2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 10, 12, 14};   // powers of two first: that is what models divide by
constexpr const char* kRecordedBefore = "recorded before";
constexpr int64_t kFar[] = {65536, 4096, 512, 64, 8};
constexpr int64_t kNearCorner = 16;
constexpr int64_t kFarInLoops = 512;   // of a size that an operator loops over: 65536 steps of an LSTM take seconds to record

/// Symbols that change together, and by how much at least.
struct Moving { std::vector<size_t> symbols; int64_t step = 1; };

/// One search: samples accepted so far for some moving symbols, the others at their own values.
class Search {
 public:
  Search(const RecordAt& record, const std::vector<Symbol>& symbols, const Recording& base, size_t& left) : record_(record), symbols_(symbols), base_(base), left_(left) {}

  std::string reason;            ///< why the last sample was not accepted
  uint64_t work = 0;             ///< operators met by the last one
  std::optional<Unified> unified;

  void start(std::vector<Moving> moving) {
    moving_ = std::move(moving);
    values_.clear();
    own_.clear();
    recordings_.clear();
    unified.reset();
    std::vector<int64_t> own;
    for (const auto& s : symbols_) own.push_back(s.value);
    values_.push_back(own);
    recordings_.push_back(&base_);
  }

  /// Records with group g moved to hint + delta(g), and takes the sample if it unifies with those before.
  template <class Delta> bool add(Delta&& delta) {
    auto values = values_.front();
    for (size_t g = 0; g < moving_.size(); ++g)
      for (const size_t s : moving_[g].symbols) {
        values[s] += delta(g);
        if (values[s] < symbols_[s].min || values[s] > symbols_[s].max) { reason = "outside of what was asked for"; return false; }
      }
    return add_values(std::move(values));
  }
  bool add_values(std::vector<int64_t> values) {
    if (std::find(values_.begin(), values_.end(), values) != values_.end()) { reason = kRecordedBefore; return false; }
    if (left_ == 0) { reason = "too many recordings"; return false; }
    --left_;
    auto recording = record_(values);
    if (!recording.ok()) {
      reason = "the program fails at " + text(values) + ": " + recording.error().what.substr(0, recording.error().what.find('\n'));
      return false;
    }
    work = recording->work;
    own_.push_back(std::move(recording).value());
    recordings_.push_back(&own_.back());
    values_.push_back(std::move(values));
    if (check()) return true;
    own_.pop_back();
    recordings_.pop_back();
    values_.pop_back();
    return false;
  }

  size_t count() const { return values_.size(); }
  int64_t value(size_t sample, size_t symbol) const { return values_[sample][symbol]; }
  const std::vector<Moving>& moving() const { return moving_; }
  size_t group_of(size_t symbol) const {
    for (size_t g = 0; g < moving_.size(); ++g)
      if (std::find(moving_[g].symbols.begin(), moving_[g].symbols.end(), symbol) != moving_[g].symbols.end()) return g;
    return moving_.size();
  }

 private:
  std::string text(const std::vector<int64_t>& values) const {
    std::string t;
    for (const auto& g : moving_)
      for (const size_t s : g.symbols) t += (t.empty() ? "" : ", ") + symbols_[s].name + "=" + std::to_string(values[s]);
    return t;
  }
  bool check() {
    Samples samples;
    for (const auto& g : moving_) {   // symbols of a group are one: it goes by the name of its first
      samples.symbols.push_back(symbols_[g.symbols.front()].name);
      samples.steps.push_back(g.step);
    }
    for (const auto& v : values_) {
      std::vector<int64_t> row;
      for (const auto& g : moving_) row.push_back(v[g.symbols.front()]);
      samples.values.push_back(std::move(row));
    }
    samples.recordings = recordings_;
    auto u = unify(samples);
    if (!u.ok()) {
      reason = u.error().what + (u.error().because.empty() ? "" : " (" + u.error().because + ")");
      return false;
    }
    unified = std::move(u).value();
    return true;
  }

  const RecordAt& record_;
  const std::vector<Symbol>& symbols_;
  const Recording& base_;
  size_t& left_;
  std::vector<Moving> moving_;
  std::vector<std::vector<int64_t>> values_;
  std::deque<Recording> own_;   // addresses stay
  std::vector<const Recording*> recordings_;
};

/// Whether the samples reach as far down and up as is worth asking, and why not.
struct Bounds {
  bool is_low_known = false, is_high_known = false;
  std::string low_because, high_because;
  std::optional<int64_t> lowest;
  int64_t low = 0, high = 0;   ///< what the guards will say
  void limit_low(int64_t to, const std::string& because) {
    is_low_known = false;
    lowest = low = to;
    low_because = because;
  }
  void limit_high(int64_t to, const std::string& because) {
    is_high_known = false;
    high = to;
    high_because = because;
  }
};

/// The least and the greatest number of each group for which the graph is to hold.
void set_limits(const Search& search, const std::vector<Symbol>& symbols, std::vector<Bounds>& bounds) {
  for (size_t g = 0; g < bounds.size(); ++g) {
    auto& b = bounds[g];
    const Symbol& s = symbols[search.moving()[g].symbols.front()];
    b.low = b.high = s.value;
    for (size_t k = 0; k < search.count(); ++k) {
      b.low = std::min(b.low, search.value(k, search.moving()[g].symbols.front()));
      b.high = std::max(b.high, search.value(k, search.moving()[g].symbols.front()));
    }
    if (b.lowest) b.low = std::min(b.low, *b.lowest);
    else if (b.is_low_known && s.value >= 2) b.low = std::max<int64_t>(2, s.min);
  }
}

/// A number that is no size may be too small for something and too large for it (an offset of a diagonal): far away on both sides says nothing
/// of what is between.
void keep_numbers_near(Search& search, const std::vector<Symbol>& symbols, std::vector<Bounds>& bounds) {
  const auto& groups = search.moving();
  for (size_t moved = 0; moved < groups.size(); ++moved) {
    const Symbol& s = symbols[groups[moved].symbols.front()];
    if (s.min >= 2) continue;
    const auto holds = [&](int64_t by) {
      const int64_t to = s.value + by * groups[moved].step;
      if (to < bounds[moved].low || to > bounds[moved].high) return true;
      return search.add([&](size_t g) { return g == moved ? by * groups[g].step : 0; }) || search.reason == kRecordedBefore;
    };
    for (const int64_t by : {1, 2, 3})
      if (!holds(by)) {
        bounds[moved].limit_high(s.value + (by - 1) * groups[moved].step, search.reason);
        break;
      }
    for (const int64_t by : {1, 2, 3})
      if (!holds(-by)) {
        bounds[moved].limit_low(s.value - (by - 1) * groups[moved].step, search.reason);
        break;
      }
  }
}

/// Whether the program computes with more than sums and products of the symbols.
bool has_steps(const Unified& u) {
  using Kind = ir::SymExpr::Kind;
  bool found = false;
  const auto look = [&](const ir::SymExpr& e) { found = found || (e.kind != Kind::constant && e.kind != Kind::symbol && e.kind != Kind::add && e.kind != Kind::mul); };
  for (const ir::Argument& a : u.graph.body.outputs) ir::for_each_expression(a, look);
  ir::for_each_node(u.graph.body, [&](const ir::Node& n) {
    for (const ir::Argument& a : n.args) ir::for_each_expression(a, look);
    for (const auto& [name, a] : n.kwargs) ir::for_each_expression(a, look);
  });
  for (const Guard& g : u.guards)
    for (const Dim* d : {&g.left, &g.right}) ir::for_each_expression(*d, look);
  return found;
}

/// A rounding or a choice that nobody reported must hold at every number near, too. So must what an operator makes of one that was reported: a
/// remainder is the same at all far numbers.
bool holds_near(Search& search, const std::vector<Bounds>& bounds) {
  if (!search.unified->is_guessed && !has_steps(*search.unified)) return true;
  const auto& groups = search.moving();
  for (size_t moved = 0; moved < groups.size(); ++moved)
    for (const int64_t far : {1, 2, 3, 4, 5, 6})
      for (const int64_t by : {far * groups[moved].step, -far * groups[moved].step}) {
        const int64_t to = search.value(0, groups[moved].symbols.front()) + by;
        if (to < bounds[moved].low || to > bounds[moved].high) continue;
        if (!search.add([&](size_t g) { return g == moved ? by : 0; }) && search.reason != kRecordedBefore) return false;
      }
  return true;
}

/// Which groups are at their least (-1), at their own (0) or at their greatest number (1): every corner of a few groups; of more, those of pairs.
std::vector<std::vector<int>> corners_of(size_t groups) {
  std::vector<std::vector<int>> all;
  for (unsigned sides = 0; groups <= 4 && sides < 1u << groups; ++sides) {
    auto& corner = all.emplace_back(groups);
    for (size_t g = 0; g < groups; ++g) corner[g] = sides >> g & 1 ? 1 : -1;
  }
  if (groups <= 4) return all;
  for (size_t low = 0; low < groups; ++low)
    for (size_t high = 0; high < groups; ++high) {
      auto& corner = all.emplace_back(groups);
      corner[high] = 1;
      corner[low] = -1;   // low == high: that one alone
    }
  all.emplace_back(groups, -1);
  all.emplace_back(groups, 1);
  return all;
}

/// Sizes that an operator takes the lesser of (a diagonal's) are a plain symbol wherever that one is the lesser. Where such a choice turns, it
/// parts the corners of the limits from each other: so the expressions must hold there. Limits whose corners are another program end at the
/// numbers for which the graph is wanted.
void keep_corners_that_hold(Search& search, std::vector<Bounds>& bounds) {
  const auto& groups = search.moving();
  const auto own = [&](size_t g) { return search.value(0, groups[g].symbols.front()); };
  const auto holds = [&](const std::vector<int>& corner) {
    // Two that are far away at once make tensors that no program has: such corners are near.
    const bool is_near = std::ranges::count(corner, 1) > 1;
    const auto delta = [&](size_t g) {   // towards its own number where the step does not meet the limit
      const int64_t high = is_near ? std::min(bounds[g].high, own(g) + kNearCorner * groups[g].step) : bounds[g].high;
      const int64_t to = corner[g] < 0 ? bounds[g].low : corner[g] > 0 ? high : own(g);
      return (to - own(g)) / groups[g].step * groups[g].step;
    };
    return search.add(delta) || search.reason == kRecordedBefore;
  };
  const auto shrink = [&](const std::vector<int>& corner) {
    for (size_t g = 0; g < groups.size(); ++g)
      if (corner[g] < 0 && bounds[g].low != own(g)) {
        bounds[g].limit_low(own(g), search.reason);
        return true;
      }
    for (size_t g = 0; g < groups.size(); ++g)
      if (corner[g] > 0 && bounds[g].high != own(g)) {
        bounds[g].limit_high(own(g), search.reason);
        return true;
      }
    return false;   // the first recording itself
  };
  const auto corners = corners_of(groups.size());
  for (size_t i = 0; i < corners.size(); ++i)
    while (!holds(corners[i]) && shrink(corners[i])) i = 0;   // what held before has moved
}

/// A whole search for these groups. Groups move by different amounts, so that none is taken for another.
/// `base_work`: how many operators the first recording met.
bool sample(Search& search, const std::vector<Symbol>& symbols, std::vector<Moving> moving, std::vector<Bounds>& bounds, uint64_t base_work) {
  search.start(std::move(moving));
  const auto& groups = search.moving();
  const auto hint = [&](size_t g) { return symbols[groups[g].symbols.front()].value; };
  const auto is_number = [&](size_t g) { return symbols[groups[g].symbols.front()].min < 2; };   // no size: it may go down as well
  bool has_number = false;
  for (size_t g = 0; g < groups.size(); ++g) has_number |= is_number(g);
  if (!search.add([&](size_t g) { return groups[g].step * static_cast<int64_t>(2 * g + 1); }) &&
      !(has_number && search.add([&](size_t g) { return groups[g].step * static_cast<int64_t>(2 * g + 1) * (is_number(g) ? -1 : 1); })))
    return false;
  const bool loops = base_work > 0 && search.work > base_work;
  // Small: as near to 2 as the steps allow, else part of the way. Each part goes down from its own number.
  bounds.assign(groups.size(), {});
  for (const int64_t part : {0, 4, 2}) {
    const auto down = [&](size_t g) {
      const int64_t least = std::max<int64_t>(2 + static_cast<int64_t>(g), symbols[groups[g].symbols.front()].min);
      const int64_t target = part == 0 ? least : std::max(least, hint(g) * (part - 1) / part);
      return -((hint(g) - std::min(target, hint(g))) / groups[g].step) * groups[g].step;
    };
    if (search.add(down)) {
      for (auto& b : bounds) b.is_low_known = part == 0;
      break;
    }
    if (search.reason != kRecordedBefore)
      for (auto& b : bounds) b.low_because = search.reason;
  }
  // A number that is no size may be small in every way; what it does there is recorded, one number after the other.
  for (size_t moved = 0; moved < groups.size(); ++moved) {
    if (!is_number(moved) || groups[moved].symbols.size() > 1 || groups[moved].step != 1) continue;
    for (const int64_t small : {1, 0, -1, -2, -7, -4097, -65536}) {
      if (small >= hint(moved)) continue;
      if (!search.add([&](size_t g) { return g == moved ? small - hint(g) : 0; }) && search.reason != kRecordedBefore) {
        bounds[moved].low_because = search.reason;
        break;
      }
      bounds[moved].lowest = small;
    }
  }
  // Far: beyond what tables and clamps of the program allow, if they do. One symbol at a time, so that each has a bound of its own.
  for (size_t moved = 0; moved < groups.size(); ++moved) {
    auto& bound = bounds[moved];
    int64_t next_farther = loops ? kFarInLoops : kFar[0];
    const auto room = (symbols[groups[moved].symbols.front()].max - std::max<int64_t>(hint(moved), 0)) / groups[moved].step;
    const auto reaches = [&](int64_t far) {
      return search.add([&](size_t g) { return g == moved ? groups[g].step * std::min(far, room) : 0; });
    };
    // The largest that it takes lies between the one that it took and the one that it did not: a few halvings.
    const auto halve = [&](int64_t good, int64_t bad) {
      for (int i = 0; i < 5 && bad - good > 1; ++i) {
        const int64_t middle = good + (bad - good) / 2;
        if (reaches(middle)) good = middle;
        else {
          bad = middle;
          bound.high_because = search.reason;
        }
      }
    };
    for (const int64_t far : kFar) {
      if (loops && far > kFarInLoops) {
        bound.high_because = "an operator loops over the size";
        continue;
      }
      if (!reaches(far)) {
        bound.high_because = search.reason;
        next_farther = far;
        if (far == kFar[std::size(kFar) - 1] && is_number(moved)) halve(0, far);   // an index ends early
        continue;
      }
      bound.is_high_known = far == kFar[0];
      if (!bound.is_high_known) halve(far, next_farther);
      break;
    }
  }
  // One recording checks what the others fit: four for one symbol, two more for each other.
  for (const int64_t more : {5, 7, 11, 3, 13, 2}) {
    if (search.count() >= 2 * groups.size() + 2) break;
    search.add([&](size_t g) { return groups[g].step * (more + 2 * static_cast<int64_t>(g * g)); });
  }
  if (search.count() < 4) return false;
  // Expressions that still compete: ask where they differ.
  for (int round = 0; round < 10 && search.unified && !search.unified->requests.empty(); ++round) {
    const auto request = search.unified->requests.front();
    std::vector<int64_t> values;
    for (size_t s = 0; s < symbols.size(); ++s) values.push_back(search.group_of(s) == request.symbol ? symbols[s].value + (request.value - hint(request.symbol)) : search.value(0, s));
    if (!search.add_values(std::move(values))) return false;
  }
  if (!search.unified || !search.unified->requests.empty()) return false;
  set_limits(search, symbols, bounds);
  keep_numbers_near(search, symbols, bounds);
  keep_corners_that_hold(search, bounds);
  return holds_near(search, bounds) && search.unified->requests.empty();
}

}  // namespace

base::Result<SymbolicGraph> search(const RecordAt& record, std::vector<Symbol> symbols, size_t most_recordings) {
  if (most_recordings == 0) most_recordings = 20 + 20 * symbols.size();
  SymbolicGraph out;
  std::vector<int64_t> own;
  for (const auto& s : symbols) own.push_back(s.value);
  size_t left = most_recordings - 1;
  auto base = record(own);
  if (!base.ok()) return std::move(base).error();
  const uint64_t base_work = base->work;
  Search search(record, symbols, *base, left);

  const auto make_static = [&](size_t s, std::string because) { out.statics.push_back({symbols[s].name, symbols[s].value, std::move(because)}); };
  std::vector<Moving> moving;
  for (size_t s = 0; s < symbols.size(); ++s) {
    if (symbols[s].value < symbols[s].min) make_static(s, "a size of 0 or 1 means something else to operators that broadcast");
    else moving.push_back({{s}, 1});
  }
  std::vector<Bounds> bounds;
  bool good = !moving.empty() && sample(search, symbols, moving, bounds, base_work);
  if (!good && !moving.empty()) {
    // Which of them move on their own, which only together with an equal one, which only in steps, which not at all?
    std::vector<Moving> kept;
    std::vector<std::pair<size_t, std::string>> stuck;
    const auto moves = [&](Moving m) {
      search.start({m});
      const bool is_number = symbols[m.symbols.front()].min < 2;
      if (!search.add([&](size_t) { return m.step; }) && !(is_number && search.add([&](size_t) { return -m.step; }))) return false;
      kept.push_back(std::move(m));
      return true;
    };
    for (const auto& m : moving)
      if (!moves(m)) stuck.emplace_back(m.symbols.front(), search.reason);
    for (size_t i = 0; i < stuck.size();) {
      Moving together{{stuck[i].first}, 1};
      for (size_t j = i + 1; j < stuck.size(); ++j)
        if (symbols[stuck[j].first].value == symbols[stuck[i].first].value) together.symbols.push_back(stuck[j].first);
      if (together.symbols.size() > 1 && moves(together)) std::erase_if(stuck, [&](const auto& x) { return std::ranges::find(together.symbols, x.first) != together.symbols.end(); });
      else ++i;
    }
    for (const auto& [s, why] : stuck) {
      bool in_steps = false;
      for (const int64_t step : kSteps)
        if ((in_steps = moves({{s}, step}))) break;
      if (!in_steps) make_static(s, why);
    }
    while (!kept.empty() && !(good = sample(search, symbols, kept, bounds, base_work))) {
      for (const size_t s : kept.back().symbols) make_static(s, search.reason);
      kept.pop_back();
    }
  }
  out.recordings = most_recordings - left;
  if (!good) {
    out.graph = std::move(base->graph);
    return out;
  }
  out.has_steps = search.unified->is_guessed || has_steps(*search.unified);
  out.graph = std::move(search.unified->graph);
  for (size_t g = 0; g < search.moving().size(); ++g) {
    const auto& group = search.moving()[g];
    const auto& bound = bounds[g];
    const size_t first = group.symbols.front();
    const Dim symbol = Dim::symbol(symbols[first].name);
    for (const size_t other : group.symbols)
      if (other != first) out.together.push_back({ConditionKind::equal, Dim::symbol(symbols[other].name), symbol, "the program takes them only when they are equal"});
    const bool is_least = bound.is_low_known && !bound.lowest && symbols[first].value >= 2;
    out.guards.push_back({ConditionKind::less_equal, Dim(bound.low), symbol, is_least ? "a size of 0 or 1 means something else to operators that broadcast" : bound.low_because.empty() ? "the smallest number that was recorded" : bound.low_because});
    if (symbols[first].max != INT64_MAX && bound.is_high_known) out.guards.push_back({ConditionKind::less_equal, symbol, Dim(symbols[first].max), "asked for"});
    if (!bound.is_high_known) out.guards.push_back({ConditionKind::less_equal, symbol, Dim(bound.high), bound.high_because.empty() ? "the largest size that was recorded" : bound.high_because});
    if (group.step > 1) out.guards.push_back({ConditionKind::equal, compose(ir::SymExpr::Kind::mod, {symbol, Dim(group.step)}), Dim(*modulo(symbols[first].value, group.step)), "the program fails, or is another, at sizes between"});
  }
  for (auto& g : search.unified->guards) out.guards.push_back(std::move(g));
  out.numbers = std::move(search.unified->numbers);
  return out;
}

}  // namespace cutaway::symbolic
