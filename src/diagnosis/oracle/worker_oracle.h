// The Oracle, Typer and RecordedValues that ask worker processes.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "diagnosis/oracle/trial.h"
#include "diagnosis/worker/client.h"

namespace cutaway::oracle {

/// What one trial came to, whatever became of the child: a crash, a hang and a lack of memory are failures with a signature too, when
/// they happened in the backend. In eager they are `eager_fails`, before it `invalid`.
TrialResult result_of(const worker::Response&);

struct OracleOptions {
  bundle::FailureSignature wanted;
  std::string match;               ///< --match
  Trial pattern;                   ///< task, store, accuracy, … for every question; `subject` is replaced
  int64_t timeout_ms = 60'000;
  uint64_t max_bytes = 0;
  int jobs = 1;
  int64_t least_timeout_ms = 0;    ///< above 0: the limit goes down, not below this, to a multiple of what passing candidates take
};

class WorkerOracle final : public minify::Oracle {
 public:
  WorkerOracle(worker::Client& client, OracleOptions options) : client_(client), options_(std::move(options)) {}
  std::vector<minify::Answer> ask(std::span<const minify::Case* const>) override;
  /// An Error of the worker itself; the engine sees `invalid` then, and the caller looks here.
  const std::optional<base::Error>& broken() const { return broken_; }
  /// What a result means for this question. `alone`: nothing else ran meanwhile, so that a time-out counts.
  minify::Answer answer(const TrialResult&, bool alone) const;
  /// What the next question is given.
  int64_t timeout_ms() const;
  int64_t new_kernels() const { return new_kernels_; }
  /// The result behind the newest `same_failure`.
  const TrialResult& last_failure() const { return last_failure_; }

 private:
  worker::Client& client_;
  OracleOptions options_;
  std::optional<base::Error> broken_;
  int64_t new_kernels_ = 0;
  double longest_pass_ms_ = 0;
  TrialResult last_failure_;
};

class WorkerTyper final : public minify::Typer {
 public:
  explicit WorkerTyper(worker::Client& client) : client_(client) {}
  base::Result<ir::Graph> retype(const ir::Graph&) override;

 private:
  worker::Client& client_;
  std::map<std::string, std::optional<ir::Graph>> memo_;   // by text: sweeps ask for the same graphs again
};

/// Values that a `record` trial left in the store.
class StoredValues final : public minify::RecordedValues {
 public:
  explicit StoredValues(std::map<std::string, bundle::InputRef> values) : values_(std::move(values)) {}
  std::optional<bundle::InputRef> find(std::string_view name) override {
    auto it = values_.find(std::string(name));
    return it == values_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  std::map<std::string, bundle::InputRef> values_;
};

}  // namespace cutaway::oracle
