#include "compiler/frames/float_samples.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace cutaway::frames {
namespace {

/// In [0, 1), all bits in use. The same numbers in every process: what is compiled does not depend on luck.
double mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

constexpr double kFar[] = {1013.7, 37.3, 3.71, 1.31};
constexpr double kSpecial[] = {0.0, 1.0, -1.0, 2.0, 0.5, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};

class Attempt {
 public:
  Attempt(const RecordFloats& record, const std::vector<double>& now, std::vector<bool> moves) : record_(record), now_(now), moves_(std::move(moves)) {}
  std::optional<symbolic::Unified> unified;
  std::string why;

  bool run(const std::function<bool()>& asks_python) {
    if (!add(now_) || !add(near_numbers(now_, moves_, 1)) || !add(near_numbers(now_, moves_, 2))) return false;
    if (asks_python())   // each of them alone is no proof that all may be special at once, but what asks about one asks about one
      for (size_t i = 0; i < now_.size(); ++i)
        for (const double special : kSpecial) {
          if (!moves_[i]) continue;
          auto values = near_numbers(now_, moves_, 3 + i);
          values[i] = special;
          if (add(values)) drop();
          else if (!asked_) return false;
        }
    using Kind = symbolic::NumberStep::Kind;
    std::vector<symbolic::NumberProgram::Question> bounds;
    size_t symbol = 0;
    for (size_t i = 0; i < now_.size(); ++i) {
      if (!moves_[i]) continue;
      const size_t before = recordings_.size();
      const Reach up_to = reaches(i, true), down_to = reaches(i, false);
      const bool moved_far = recordings_.size() > before;
      for (const bool up : {true, false}) {
        // Where the program's own questions end the range, they are the guards. Some number far away must have been taken, though: what a float
        // does to sizes shows only there.
        const Reach reach = up ? up_to : down_to;
        if (reach == Reach::all || (reach == Reach::until_asked && moved_far)) continue;
        double end = now_[i];   // nothing is known beyond the recorded ones
        for (const auto& v : values_) end = up ? std::max(end, v[i]) : std::min(end, v[i]);
        const symbolic::NumberTerm is{symbolic::NumberTerm::From::symbol, {}, {}, symbol}, most{symbolic::NumberTerm::From::constant, symbolic::Number::of(end), {}, 0};
        bounds.push_back({up ? symbolic::NumberProgram::Step{Kind::less_equal, is, most} : symbolic::NumberProgram::Step{Kind::less_equal, most, is}, true, why});
      }
      ++symbol;
    }
    if (!compare()) return false;
    for (auto& b : bounds) unified->numbers.guards.push_back(std::move(b));
    return true;
  }

 private:
  /// How far the number may go; what is taken stays among the recordings.
  enum class Reach { all, until_asked, some };
  Reach reaches(size_t i, bool up) {
    Reach reach = Reach::until_asked;
    for (const double far : kFar) {
      auto values = near_numbers(now_, moves_, 100 + i);
      const double x = now_[i];
      if (x == 0) values[i] = up ? far : -far;
      else values[i] = (x > 0) == up ? x * far : x / far;
      values[i] *= 1 + 1e-3 * mixed(i * 2 + up);
      if (!std::isnormal(values[i])) {   // too far for a float: nothing is known of such numbers
        reach = Reach::some;
        continue;
      }
      if (add(values)) return far == kFar[0] ? Reach::all : reach;
      if (!asked_) reach = Reach::some;
    }
    return reach;
  }
  bool add(std::vector<double> values) {
    auto recording = record_(moves_, values);
    asked_ = false;
    if (!recording.ok()) {
      why = recording.error().text();
      return false;
    }
    recordings_.push_back(std::move(recording).value());
    values_.push_back(std::move(values));
    const auto &first = recordings_.front().steps, &last = recordings_.back().steps;
    asked_ = first.size() != last.size() || !std::ranges::equal(first, last, [](const auto& a, const auto& b) { return a.kind == b.kind && a.holds == b.holds; });
    if (recordings_.size() < 2 || compare()) return true;
    drop();
    return false;
  }
  void drop() {
    recordings_.pop_back();
    values_.pop_back();
  }
  bool compare() {
    symbolic::Samples samples;
    samples.values.resize(recordings_.size());
    for (const auto& r : recordings_) samples.recordings.push_back(&r);
    auto made = symbolic::unify(samples);
    if (!made.ok()) {
      why = made.error().what + (made.error().because.empty() ? "" : " (" + made.error().because + ")");
      return false;
    }
    unified = std::move(made).value();
    return true;
  }

  const RecordFloats& record_;
  const std::vector<double>& now_;
  std::vector<bool> moves_;
  std::deque<symbolic::Recording> recordings_;
  std::vector<std::vector<double>> values_;
  bool asked_ = false;   // the last recording answered a question of the program's in another way: a guard will see such numbers
};

}  // namespace

std::vector<double> near_numbers(const std::vector<double>& now, const std::vector<bool>& moves, uint64_t turn) {
  std::vector<double> out = now;
  for (size_t i = 0; i < now.size(); ++i) {
    if (!moves[i]) continue;
    const double by = (mixed(turn * 1009 + i * 2) < 0.5 ? -1 : 1) * (1e-4 + 9e-4 * mixed(turn * 1009 + i * 2 + 1));
    out[i] = now[i] == 0 ? by : now[i] * (1 + by);
  }
  return out;
}

FloatsFound find_floats(const RecordFloats& record, const std::vector<double>& now, const std::function<bool()>& asks_python) {
  FloatsFound out;
  out.moves.resize(now.size());
  const auto moves = [&](std::vector<bool> some) {
    Attempt attempt(record, now, some);
    if (!attempt.run(asks_python)) {
      out.why = attempt.why;
      return false;
    }
    out.moves = std::move(some);
    out.unified = std::move(attempt.unified);
    return true;
  };
  std::vector<bool> all(now.size());
  // Relative steps from a subnormal number may end at the number itself, which proves nothing.
  for (size_t i = 0; i < now.size(); ++i) all[i] = std::isnormal(now[i]) || now[i] == 0;
  if (std::ranges::find(all, true) == all.end()) {
    out.why = "infinity, NaN and subnormal numbers stay numbers";
    return out;
  }
  if (moves(all) || std::ranges::count(all, true) < 2) return out;
  std::vector<bool> good(now.size());
  for (size_t i = 0; i < now.size(); ++i) {
    std::vector<bool> one(now.size());
    one[i] = all[i];
    good[i] = all[i] && moves(one);
  }
  out.moves.assign(now.size(), false);
  out.unified.reset();
  if (std::ranges::find(good, true) != good.end()) moves(good);
  return out;
}

}  // namespace cutaway::frames
