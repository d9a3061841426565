#include "app/flows/shrink_first.h"

#include "core/base/text.h"
#include "core/ir/verify.h"
#include "diagnosis/minify/sizes.h"

namespace cutaway::flows {
namespace {

using minify::Case;
using minify::Part;

constexpr uint64_t kSmallEnough = uint64_t{1} << 20;   // bytes at which this ends: an analysis of a hundred elements tells more than one of a single one

struct NoValues final : minify::RecordedValues {
  std::optional<bundle::InputRef> find(std::string_view) override { return std::nullopt; }
};

class Shrinking {
 public:
  Shrinking(const Case& start, worker::Client& backend, worker::Client& helper, const ShrinkOptions& options)
      : start_(start), helper_(helper), options_(options), oracle_(backend, one_at_a_time(options.oracle)), typer_(helper) {}

  base::Result<std::optional<Shrunk>> run() {
    Shrunk found;
    found.bytes_before = minify::bytes_shown(start_);
    if (found.bytes_before <= kLargeInputs || options_.oracle.wanted.kind.empty() || options_.oracle.wanted.kind == "hang") return std::optional<Shrunk>();   // each hang costs the whole limit
    if (options_.on_step) options_.on_step("its inputs take " + base::human_bytes(found.bytes_before) + ": looking for smaller ones that fail as well");
    std::optional<Case> smaller = guess();
    if (!smaller && !oracle_.broken()) {
      CUTAWAY_TRY_ASSIGN(smaller, halve());
    }
    if (oracle_.broken()) return *oracle_.broken();
    if (!smaller) return std::optional<Shrunk>();
    found.smaller = std::move(*smaller);
    found.failure = oracle_.last_failure();
    found.bytes_after = minify::bytes_shown(found.smaller);
    found.candidates = asked_;
    CUTAWAY_TRY(store_what_is_left(found.smaller));
    return std::optional<Shrunk>(std::move(found));
  }

 private:
  static oracle::OracleOptions one_at_a_time(oracle::OracleOptions o) {
    o.jobs = 1;
    return o;
  }
  bool fails(Case& c) {
    if (minify::bytes_shown(c) * 2 > minify::bytes_shown(start_) || oracle_.broken()) return false;
    auto typed = typer_.retype(c.graph);
    if (!typed.ok()) return false;   // these sizes do not go together
    c.graph = std::move(typed).value();
    if (!ir::verify(c.graph).empty()) return false;
    ++asked_;
    const Case* question = &c;
    return oracle_.ask({&question, 1}).front().kind == minify::Answer::Kind::same_failure;
  }

  /// Straight to something small; most failures do not care.
  std::optional<Case> guess() {
    for (int64_t most : {16, 128, 1024})
      for (Part part : {Part::begin, Part::end}) {
        Case c = start_;
        minify::cap_sizes(c, most, part);
        if (fails(c)) return c;
      }
    for (int64_t factor : {1024, 128, 16})
      for (Part part : {Part::begin, Part::end}) {
        Case c = start_;
        minify::divide_sizes(c, factor, part);
        if (fails(c)) return c;
      }
    return std::nullopt;
  }

  /// Half by half towards the place that fails, as long as there is time.
  base::Result<std::optional<Case>> halve() {
    minify::Options engine;
    engine.only_passes = {"shrink_dims_by_half", "shrink_dims_by_half_keep_end", "shrink_input_dims_by_half"};
    engine.time_budget_s = options_.time_budget_s;
    const uint64_t before = minify::bytes_shown(start_), elements = minify::score(start_).elements;
    engine.on_progress = [&](const minify::Progress& p) { return static_cast<double>(p.best.elements) * static_cast<double>(before) / static_cast<double>(elements) > static_cast<double>(kSmallEnough); };
    minify::Answer known;
    known.kind = minify::Answer::Kind::same_failure;
    known.signature = options_.oracle.wanted;
    engine.known.emplace_back(minify::digest(start_), known);
    NoValues none;
    CUTAWAY_TRY_ASSIGN(minify::Outcome out, minify::minify(start_, {}, oracle_, typer_, none, nullptr, engine));
    asked_ += out.candidates;
    if (minify::bytes_shown(out.smallest) >= before) return std::optional<Case>();
    return std::optional<Case>(std::move(out.smallest));
  }

  /// Views of the large storages become storages of their own: no later trial reads those again.
  base::Status store_what_is_left(Case& c) {
    oracle::Trial t = options_.oracle.pattern;
    t.task = oracle::Trial::Task::compact;
    t.subject = c;
    const worker::Request request{oracle::trial_to_json(t), 0, 0};
    CUTAWAY_TRY_ASSIGN(std::vector<worker::Response> responses, helper_.ask({&request, 1}, 1));
    oracle::TrialResult r = oracle::result_of(responses.front());
    if (r.outcome != oracle::TrialResult::Outcome::done) return base::Error{"cannot store the smaller inputs", "", r.message, "", ""};
    if (!r.inputs.empty()) c.manifest.inputs = std::move(r.inputs);
    return {};
  }

  const Case& start_;
  worker::Client& helper_;
  const ShrinkOptions& options_;
  oracle::WorkerOracle oracle_;
  oracle::WorkerTyper typer_;
  uint64_t asked_ = 0;
};

}  // namespace

std::string Shrunk::text() const {
  return "inputs of " + base::human_bytes(bytes_before) + " were cut to " + base::human_bytes(bytes_after) + ", and it still fails the same way";
}

base::Result<std::optional<Shrunk>> shrink_first(const Case& start, worker::Client& backend, worker::Client& helper, const ShrinkOptions& options) {
  return Shrinking(start, backend, helper, options).run();
}

}  // namespace cutaway::flows
