#include "diagnosis/oracle/worker_oracle.h"

#include <algorithm>

#include "core/ir/text.h"
#include "diagnosis/oracle/signature.h"

namespace cutaway::oracle {

TrialResult result_of(const worker::Response& response) {
  TrialResult r;
  const auto failure = [&](std::string kind) {
    // A fault of ours while comparing is no fault of the backend's, and neither is one while loading.
    const bool in_eager = response.phase == "eager", in_backend = response.phase == "backend";
    r.outcome = in_backend ? TrialResult::Outcome::failure : in_eager ? TrialResult::Outcome::eager_fails : TrialResult::Outcome::invalid;
    r.signature.kind = std::move(kind);
    if (in_backend) r.signature.stage = "backend";
    r.message = response.output;
    if (!in_backend && !in_eager && r.message.empty())
      r.message = "the trial ended by a " + r.signature.kind + (response.phase.empty() ? " before it began" : " while doing: " + response.phase);
  };
  switch (response.ending) {
    case worker::Ending::answered: {
      auto parsed = result_from_json(response.body);
      if (parsed.ok()) return std::move(parsed).value();
      r.message = parsed.error().text();
      return r;
    }
    case worker::Ending::crash:
      failure("crash");
      r.signature.signal = response.signal;
      break;
    case worker::Ending::hang: failure("hang"); break;
    case worker::Ending::memory: failure("memory"); break;
    case worker::Ending::lost:
      // Somebody called exit: a crash of its own kind, told apart by the code.
      failure("crash");
      r.signature.signal = "exit " + std::to_string(response.exit_code);
      break;
  }
  return r;
}

minify::Answer WorkerOracle::answer(const TrialResult& r, bool alone) const {
  minify::Answer a;
  a.reason = r.message.substr(0, 2000);
  a.signature = r.signature;
  switch (r.outcome) {
    case TrialResult::Outcome::pass: a.kind = minify::Answer::Kind::passes; break;
    case TrialResult::Outcome::failure:
      a.kind = is_same_failure(options_.wanted, r.signature, r.message, options_.match) ? minify::Answer::Kind::same_failure : minify::Answer::Kind::other_failure;
      a.is_certain = alone || r.signature.kind != "hang";
      break;
    case TrialResult::Outcome::eager_fails:
    case TrialResult::Outcome::invalid:
    case TrialResult::Outcome::done: a.kind = minify::Answer::Kind::invalid; break;
  }
  return a;
}

// Of a hang every candidate that still hangs costs the whole limit.
int64_t WorkerOracle::timeout_ms() const {
  constexpr double kMargin = 20;
  if (options_.least_timeout_ms <= 0 || longest_pass_ms_ <= 0) return options_.timeout_ms;
  return std::min(options_.timeout_ms, std::max(options_.least_timeout_ms, static_cast<int64_t>(kMargin * longest_pass_ms_)));
}

std::vector<minify::Answer> WorkerOracle::ask(std::span<const minify::Case* const> cases) {
  std::vector<worker::Request> requests;
  for (const minify::Case* c : cases) {
    Trial t = options_.pattern;
    t.subject = *c;
    requests.push_back({trial_to_json(t), timeout_ms(), options_.max_bytes});
  }
  std::vector<minify::Answer> answers(cases.size());
  if (broken_) return answers;
  auto responses = client_.ask(requests, options_.jobs);
  if (!responses.ok()) {
    broken_ = responses.error();
    return answers;
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    TrialResult r = result_of((*responses)[i]);
    new_kernels_ += r.new_kernels;
    if (r.outcome == TrialResult::Outcome::pass) longest_pass_ms_ = std::max(longest_pass_ms_, (*responses)[i].ms - (*responses)[i].waited_ms);
    answers[i] = answer(r, cases.size() == 1);
    if (answers[i].kind == minify::Answer::Kind::same_failure) last_failure_ = std::move(r);
  }
  return answers;
}

base::Result<ir::Graph> WorkerTyper::retype(const ir::Graph& graph) {
  Trial t;
  t.task = Trial::Task::retype;
  t.subject.graph = graph;
  const std::string key = ir::print(graph);
  if (auto it = memo_.find(key); it != memo_.end()) {
    if (it->second) return *it->second;
    return base::Error{"the shapes do not fit", "", "", "", ""};
  }
  const worker::Request request{trial_to_json(t), 60'000, 0};
  CUTAWAY_TRY_ASSIGN(std::vector<worker::Response> responses, client_.ask({&request, 1}, 1));
  TrialResult r = result_of(responses.front());
  std::optional<ir::Graph>& slot = memo_[key];
  if (r.outcome != TrialResult::Outcome::done) return base::Error{"the shapes do not fit", "", r.message, "", ""};
  CUTAWAY_TRY_ASSIGN(ir::Graph typed, ir::parse(r.graph, "retype"));
  slot = typed;
  return typed;
}

}  // namespace cutaway::oracle
