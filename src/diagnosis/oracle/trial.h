// One question to a worker, and its answer, as data: what the engine and the worker agree on. docs/formats/worker.md is its document.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/bundle/bundle.h"
#include "core/capabilities/switches.h"
#include "diagnosis/minify/minify.h"
#include "diagnosis/oracle/analysis.h"

namespace cutaway::oracle {

struct Trial {
  enum class Task : uint8_t {
    run,       ///< eager, then the backend; compare as `accuracy` says
    record,    ///< eager, keeping every intermediate value in the store
    retype,    ///< shape inference
    compact,   ///< every tensor input loaded and stored again as plain data, small and without what is not used
    analyze,   ///< where in the graph the backend's numbers go wrong
  };
  Task task = Task::run;
  minify::Case subject;
  std::string store;               ///< directory with the blobs; record and compact write there too
  std::string accuracy = "none";   ///< none, accuracy (needs an fp64 reference, floating outputs only), strict (any difference)
  bool only_forward = false;
  bool is_trusted = false;         ///< the caller wrote this bundle itself, or said --trust
  double tolerance = 1e-3;
  int threads = 0;                 ///< 0: as the manifest says, else one
  std::vector<std::string> before;  ///< run: bundles that are compiled and run in this process first, in order; what becomes of them is not told
  capabilities::Switches switches; ///< run: which parts of the compiler are off
  bool every_node = false;         ///< analyze: measure each node, also when the whole is right and however long it takes
  double budget_s = 60;            ///< analyze: how long to measure further nodes once the first wrong one is known
  std::string progress;            ///< analyze: a file that tells what it does (repro/analysis_log.h); empty: none
  int64_t part_timeout_s = 0;      ///< analyze: after which one part counts as hanging; the trial ends by SIGALRM then. 0: never
  std::map<std::string, std::string> dead_parts;   ///< analyze: parts that ended an earlier try, by key, and how: "SIGSEGV", "hang", "memory"
};
std::string trial_to_json(const Trial&);
base::Result<Trial> trial_from_json(std::string_view text);

/// Of the values of a graph that a `record` trial keeps: a graph of hundreds of values of half a gigabyte each would fill the memory and the disk.
inline constexpr uint64_t kMostRecordedBytes = uint64_t{2} << 30;

struct TrialResult {
  enum class Outcome : uint8_t { pass, failure, eager_fails, invalid, done };   ///< done: of the tasks other than run
  Outcome outcome = Outcome::invalid;
  bundle::FailureSignature signature;       ///< of a failure
  std::string message;                      ///< the whole message or the verdict, for people
  std::string verdict;                      ///< JSON of the comparison, when there was one
  std::optional<Analysis> analysis;         ///< analyze
  std::string graph;                        ///< retype: the typed graph as text
  std::vector<bundle::InputRef> inputs;     ///< compact: the inputs now
  std::map<std::string, bundle::InputRef> values;   ///< record: by value name
  std::string user_frame;                   ///< source line of the node that raised
  std::map<std::string, std::string> options;   ///< of the backend, besides the manifest's, under which it fails; JSON text by name
  std::vector<std::string> suspects;        ///< nodes that the failure points to, as fx names them; may be empty
  double eager_ms = 0, compile_ms = 0, run_ms = 0;
  int64_t new_kernels = 0;                  ///< compiled anew, where the backend tells
};
std::string result_to_json(const TrialResult&);
base::Result<TrialResult> result_from_json(std::string_view text);

}  // namespace cutaway::oracle
