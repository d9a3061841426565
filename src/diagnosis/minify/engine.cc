// The engine. Passes say what could go; the engine says which and when.
//
// A reduction is a sequence of accepted steps, each a case with a smaller score that fails the same way. For each pass the engine
// counts the candidates on a dry run, then searches:
//   subset  delta debugging: chunks of all, a half, a quarter, … of the candidates, in order; a chunk whose removal still fails stays
//           removed. Cost: about 2k log(n/k) questions when k of n candidates matter.
//   prefix  bisection over how many leading candidates can go: log n questions when failing is monotone.
// Passes repeat until none makes progress. Then a sweep tries every single candidate of every pass; if one still fails the passes run
// again from there, else the result is one-minimal.
//
// Parallelism does not change the answer: up to `jobs` candidates are asked at once as if all of them failed to reduce; the first success
// in candidate order wins and the answers after it are only remembered.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>

#include "core/ir/edit.h"
#include "core/ir/verify.h"
#include "diagnosis/minify/journal.h"
#include "diagnosis/minify/minify.h"

namespace cutaway::minify {
namespace {

class CountingChooser final : public Chooser {
 public:
  bool keep() override { ++count; return true; }
  size_t count = 0;
};

class SetChooser final : public Chooser {
 public:
  explicit SetChooser(const std::vector<bool>& removed) : removed_(removed) {}
  bool keep() override {
    const size_t i = next_++;
    return i >= removed_.size() || !removed_[i];
  }

 private:
  const std::vector<bool>& removed_;
  size_t next_ = 0;
};

class Engine {
 public:
  Engine(Case start, Oracle& oracle, Typer& typer, const PassContext& context, const Options& options, Journal journal)
      : oracle_(oracle), typer_(typer), context_(context), options_(options), journal_(std::move(journal)), best_(std::move(start)), best_score_(score(best_)), start_score_(best_score_) {}

  base::Result<Outcome> run(const Guesses& guesses);

 private:
  struct Candidate { Case c; base::Digest digest; };
  enum class Ask { accepted, none, stopped };

  // Null: the pass changed nothing, made no smaller case, or the types do not fit.
  std::optional<Candidate> make(const ReductionPass&, const Case& base, const std::vector<bool>& removed);
  base::Result<std::vector<Answer>> ask(const std::vector<const Candidate*>&);
  bool is_doubted(const base::Digest&, const Answer& known);
  base::Result<bool> reduce(const ReductionPass&);
  base::Result<bool> reduce_subset(const ReductionPass&, size_t count);
  base::Result<bool> reduce_prefix(const ReductionPass&, size_t count);
  base::Result<bool> sweep();
  base::Result<bool> try_guesses(const Guesses&);
  // Asks in batches; returns the index of the first candidate that fails the same way, or -1.
  base::Result<int64_t> first_failing(std::vector<Candidate>&);
  void accept(Candidate&&);
  void keep_aside(const Candidate&, const Answer&);
  bool must_stop();
  bool is_wanted(const ReductionPass& p) const {
    return options_.only_passes.empty() || std::find(options_.only_passes.begin(), options_.only_passes.end(), p.name) != options_.only_passes.end();
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  Oracle& oracle_;
  Typer& typer_;
  PassContext context_;
  const Options& options_;
  Journal journal_;
  Case best_;
  Score best_score_, start_score_;
  std::string_view pass_ = "start";
  Outcome out_;
  bool stopped_ = false;
  bool is_sweeping_ = false;
  std::set<base::Digest> doubted_;   // asked again by a sweep
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

bool Engine::must_stop() {
  if (stopped_) return true;
  if (options_.time_budget_s > 0 && seconds() > options_.time_budget_s) stopped_ = true;
  if (options_.on_progress && !options_.on_progress({pass_, start_score_, best_score_, out_.candidates, out_.cached, seconds(), 0})) stopped_ = true;
  return stopped_;
}

std::optional<Engine::Candidate> Engine::make(const ReductionPass& pass, const Case& base, const std::vector<bool>& removed) {
  Candidate c{base, {}};
  SetChooser chooser(removed);
  pass.apply(chooser, c.c, context_);
  if (pass.retypes) {
    auto typed = typer_.retype(c.c.graph);
    if (!typed.ok()) return std::nullopt;
    c.c.graph = std::move(typed).value();
  }
  if (!(score(c.c) < best_score_)) return std::nullopt;
  // A graph that computes nothing is none that a compiler gets. What fails even so is no matter of this graph, and its caller asks that.
  if (c.c.graph.body.nodes.empty() && !best_.graph.body.nodes.empty()) return std::nullopt;
  if (!ir::verify(c.c.graph).empty()) {
    debug::say(options_.sink, "minify", debug::Level::error, "pass " + std::string(pass.name) + " made a malformed graph; candidate left out");
    return std::nullopt;
  }
  c.digest = digest(c.c);
  return c;
}

// The sweep claims that nothing smaller fails. Among many looks at a flaky failure some candidate will have passed by luck: what rests on
// "passes" is looked at again there, once.
bool Engine::is_doubted(const base::Digest& d, const Answer& known) {
  return is_sweeping_ && options_.repeats > 1 && known.kind == Answer::Kind::passes && doubted_.insert(d).second;
}

base::Result<std::vector<Answer>> Engine::ask(const std::vector<const Candidate*>& candidates) {
  std::vector<Answer> answers(candidates.size());
  std::vector<size_t> open, copies;
  std::vector<uint64_t> looks(candidates.size(), std::max<uint64_t>(1, options_.repeats));
  std::set<base::Digest> asked;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Answer* known = journal_.find(candidates[i]->digest);
    if (known && !is_doubted(candidates[i]->digest, *known)) {
      answers[i] = *known;
      ++out_.cached;
    } else {
      // A flaky failure passes now and then: "passes" counts only after `repeats` looks; in a sweep after twice as many, those before it included.
      if (is_sweeping_ && options_.repeats > 1 && !known) looks[i] *= 2;
      (asked.insert(candidates[i]->digest).second ? open : copies).push_back(i);
    }
  }
  for (uint64_t round = 0; !open.empty(); ++round) {
    std::vector<const Case*> questions;
    for (size_t i : open) questions.push_back(&candidates[i]->c);
    std::vector<Answer> got = oracle_.ask(questions);
    out_.candidates += round == 0 ? got.size() : 0;
    std::vector<size_t> again;
    for (size_t k = 0; k < open.size(); ++k) {
      answers[open[k]] = got[k];
      if (got[k].kind == Answer::Kind::passes && round + 1 < looks[open[k]]) again.push_back(open[k]);
    }
    // Uncertain ones (a time-out while others ran) are asked alone.
    for (size_t k = 0; k < open.size(); ++k)
      if (!got[k].is_certain && open.size() > 1) {
        const Case* alone = &candidates[open[k]]->c;
        answers[open[k]] = oracle_.ask({&alone, 1}).front();
      }
    std::vector<size_t> settled;
    for (size_t i : open)
      if (std::find(again.begin(), again.end(), i) == again.end()) settled.push_back(i);
    for (size_t i : settled) CUTAWAY_TRY(journal_.add(candidates[i]->digest, answers[i]));
    open = std::move(again);
  }
  for (size_t i : copies) {   // two removals that leave the same case
    answers[i] = *journal_.find(candidates[i]->digest);
    ++out_.cached;
  }
  return answers;
}

void Engine::keep_aside(const Candidate& c, const Answer& a) {
  for (OtherFailure& o : out_.others)
    if (o.signature == a.signature) {
      ++o.count;
      if (score(c.c) < score(o.example)) o.example = c.c;
      return;
    }
  out_.others.push_back({c.c, a.signature, 1});
}

void Engine::accept(Candidate&& c) {
  best_ = std::move(c.c);
  best_score_ = score(best_);
}

base::Result<int64_t> Engine::first_failing(std::vector<Candidate>& candidates) {
  const size_t jobs = static_cast<size_t>(std::max(1, options_.jobs));
  for (size_t begin = 0; begin < candidates.size(); begin += jobs) {
    if (must_stop()) return int64_t{-1};
    std::vector<const Candidate*> batch;
    for (size_t i = begin; i < std::min(candidates.size(), begin + jobs); ++i) batch.push_back(&candidates[i]);
    CUTAWAY_TRY_ASSIGN(std::vector<Answer> answers, ask(batch));
    for (size_t i = 0; i < batch.size(); ++i) {
      if (answers[i].kind == Answer::Kind::other_failure) keep_aside(*batch[i], answers[i]);
      if (answers[i].kind == Answer::Kind::same_failure) return static_cast<int64_t>(begin + i);
    }
  }
  return int64_t{-1};
}

base::Result<bool> Engine::try_guesses(const Guesses& guesses) {
  pass_ = "guess";
  std::vector<Candidate> candidates;
  for (const Case& g : guesses)
    if (score(g) < best_score_ && ir::verify(g.graph).empty()) candidates.push_back({g, digest(g)});
  CUTAWAY_TRY_ASSIGN(int64_t hit, first_failing(candidates));
  if (hit < 0) return false;
  accept(std::move(candidates[hit]));
  return true;
}

base::Result<bool> Engine::reduce_subset(const ReductionPass& pass, size_t count) {
  const Case base = best_;
  std::vector<bool> removed(count, false);
  bool progress = false;
  const size_t jobs = static_cast<size_t>(std::max(1, options_.jobs));
  for (size_t chunk = count; chunk >= 1; chunk /= 2) {
    size_t at = 0;
    while (at < count) {
      if (must_stop()) return progress;
      // The next `jobs` chunks, each as if the ones before it cannot go.
      std::vector<Candidate> batch;
      std::vector<std::pair<size_t, std::vector<bool>>> plans;
      size_t next = at;
      while (next < count && batch.size() < jobs) {
        const size_t end = std::min(count, next + chunk);
        std::vector<bool> wanted = removed;
        bool changes = false;
        for (size_t i = next; i < end; ++i) { changes |= !wanted[i]; wanted[i] = true; }
        next = end;
        if (!changes) continue;
        if (auto c = make(pass, base, wanted)) {
          batch.push_back(std::move(*c));
          plans.emplace_back(end, std::move(wanted));
        }
      }
      CUTAWAY_TRY_ASSIGN(int64_t hit, first_failing(batch));
      if (hit < 0) { at = next; continue; }
      accept(std::move(batch[hit]));
      at = plans[hit].first;
      removed = std::move(plans[hit].second);
      progress = true;
    }
  }
  return progress;
}

base::Result<bool> Engine::reduce_prefix(const ReductionPass& pass, size_t count) {
  const Case base = best_;
  bool progress = false;
  size_t low = 0, high = count + 1;   // the first `low` can go; the first `high` cannot (or do not exist)
  while (high - low > 1) {
    if (must_stop()) return progress;
    const size_t middle = low == 0 && high == count + 1 ? count / 2 + (count == 1) : low + (high - low) / 2;
    if (middle == 0) break;
    const auto first = [&](size_t n) {
      std::vector<bool> wanted(count, false);
      std::fill(wanted.begin(), wanted.begin() + static_cast<int64_t>(n), true);
      return make(pass, base, wanted);
    };
    auto c = first(middle);
    bool fails = false;
    if (c) {
      // With more than one job the points that may come next are asked too. Their answers are only remembered, so that the way stays the same.
      std::vector<Candidate> ahead;
      if (options_.jobs > 1)
        for (size_t next : {middle + (high - middle) / 2, low + (middle - low) / 2})
          if (next != middle && next > low && next <= count && ahead.size() + 1 < static_cast<size_t>(options_.jobs))
            if (auto later = first(next)) ahead.push_back(std::move(*later));
      if (!ahead.empty() && !journal_.find(c->digest)) {
        std::vector<const Candidate*> batch = {&*c};
        for (const Candidate& a : ahead) batch.push_back(&a);
        CUTAWAY_TRY(ask(batch));
      }
      std::vector<Candidate> one;
      one.push_back(std::move(*c));
      CUTAWAY_TRY_ASSIGN(int64_t hit, first_failing(one));
      if (hit >= 0) { accept(std::move(one[0])); fails = progress = true; }
    }
    (fails ? low : high) = middle;
  }
  return progress;
}

base::Result<bool> Engine::reduce(const ReductionPass& pass) {
  pass_ = pass.name;
  debug::Phase phase(options_.sink, "minify", pass.name);
  CountingChooser counter;
  Case scratch = best_;
  pass.apply(counter, scratch, context_);
  if (counter.count == 0) return false;
  return pass.search == ReductionPass::Search::prefix ? reduce_prefix(pass, counter.count) : reduce_subset(pass, counter.count);
}

base::Result<bool> Engine::sweep() {
  is_sweeping_ = true;
  struct Done { bool& on; ~Done() { on = false; } } const done{is_sweeping_};
  out_.single_removals.clear();
  for (const ReductionPass& pass : passes()) {
    if (!is_wanted(pass)) continue;
    pass_ = pass.name;
    CountingChooser counter;
    Case scratch = best_;
    pass.apply(counter, scratch, context_);
    // In batches: a graph that hardly shrank has thousands of candidates, each a copy.
    uint64_t tried = 0;
    for (size_t at = 0; at < counter.count;) {
      std::vector<Candidate> batch;
      for (; at < counter.count && batch.size() < static_cast<size_t>(std::max(1, options_.jobs)); ++at) {
        std::vector<bool> wanted(counter.count, false);
        if (pass.search == ReductionPass::Search::prefix) std::fill(wanted.begin(), wanted.begin() + static_cast<int64_t>(at) + 1, true);
        else wanted[at] = true;
        if (auto c = make(pass, best_, wanted)) batch.push_back(std::move(*c));
      }
      CUTAWAY_TRY_ASSIGN(int64_t hit, first_failing(batch));
      if (hit >= 0) { accept(std::move(batch[hit])); return true; }
      if (stopped_) return false;
      tried += batch.size();
    }
    out_.single_removals.emplace_back(pass.name, tried);
  }
  return false;
}

base::Result<Outcome> Engine::run(const Guesses& guesses) {
  {
    Candidate start{best_, digest(best_)};
    CUTAWAY_TRY_ASSIGN(std::vector<Answer> answers, ask({&start}));
    out_.start = answers.front();
    out_.start_fails = out_.start.kind == Answer::Kind::same_failure;
  }
  if (out_.start_fails) {
    CUTAWAY_TRY(try_guesses(guesses));
    bool progress = true;
    while (progress && !stopped_) {
      progress = false;
      for (const ReductionPass& pass : passes()) {
        if (!is_wanted(pass)) continue;
        CUTAWAY_TRY_ASSIGN(bool smaller, reduce(pass));
        progress |= smaller;
        if (stopped_) break;
      }
      if (!progress && !stopped_) {
        CUTAWAY_TRY_ASSIGN(progress, sweep());
        out_.one_minimal = !progress && !stopped_;
      }
    }
  }
  out_.stopped_early = stopped_;
  out_.smallest = std::move(best_);
  out_.seconds = seconds();
  return std::move(out_);
}

}  // namespace

base::Result<Outcome> minify(Case start, const Guesses& guesses, Oracle& oracle, Typer& typer, RecordedValues& values, const ir::SchemaTable* schemas, const Options& options) {
  for (const std::string& name : options.only_passes) {
    bool known = false;
    std::string all;
    for (const ReductionPass& p : passes()) { known |= p.name == name; all += (all.empty() ? "" : ", ") + std::string(p.name); }
    if (!known) return base::Error{"unknown pass \"" + name + "\"", "", "", "one of: " + all, ""};
  }
  if (start.graph.inputs.size() != start.manifest.inputs.size())
    return base::Error{"the graph has " + std::to_string(start.graph.inputs.size()) + " inputs and the manifest " + std::to_string(start.manifest.inputs.size()), "", "", "", ""};
  Journal journal;
  if (!options.journal.empty()) { CUTAWAY_TRY_ASSIGN(journal, Journal::open(options.journal, base::Hasher().add(digest(start).hex()).add("\n").add(options.question).finish())); }
  for (const auto& [case_digest, answer] : options.known)
    if (!journal.find(case_digest)) CUTAWAY_TRY(journal.add(case_digest, answer));
  return Engine(std::move(start), oracle, typer, {&values, schemas}, options, std::move(journal)).run(guesses);
}

}  // namespace cutaway::minify
