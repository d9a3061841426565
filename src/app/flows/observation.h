// A user's script under observation: starts `python -m cutaway.observe`, follows its events, and tells how it ended, also when it
// died or hangs. docs/formats/observation.md describes the events.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/flows/script_input.h"
#include "app/flows/workers.h"
#include "core/base/subprocess.h"
#include "core/bundle/bundle.h"
#include "core/debug/stream_reader.h"

namespace cutaway::flows {

/// A line of somebody's source.
struct SourceLine {
  std::string file, function, text;
  int64_t line = 0;
  bool is_known() const { return !file.empty(); }
  /// "train.py:88".
  std::string place() const;
};

struct ObserveOptions {
  std::vector<std::string> script;       ///< its path, or "-m" and a module, and its arguments
  std::filesystem::path folder;          ///< gets events.jsonl, script.log and the bundles
  int level = 2;                         ///< of cutaway.debug
  std::string after = "capture";         ///< or "aot"
  int check_calls = 0;                   ///< level 4: 0 checks all
  int64_t timeout_ms = 300'000;          ///< of one capture, compilation or call without any sign of life
  int64_t quiet_ms = 0;                  ///< of the script's own code: neither an event nor a line of output for so long is a hang; 0: never
  uint64_t max_bytes = 0;                ///< memory that the script may take beyond what Python and torch have; 0: none
  ScriptInput* input = nullptr;          ///< what it reads from standard input; null: nothing
  std::string shown_as;                  ///< its sys.argv[0] where that is not its path: "-"
  std::string backend;                   ///< what cutaway.compile uses instead of what the script says; empty: as it says
  bool draws_as_eager = false;           ///< Inductor draws random numbers in eager's order
  bool is_compile_off = false;           ///< the script as it runs without torch.compile
  std::function<bool()> is_interrupted;  ///< asked now and then; may be null
  std::function<void(const std::string&)> on_step;   ///< once a minute while it runs; may be null
};

struct Observation {
  enum class Ending : uint8_t { finished, failed, died, hung, interrupted };
  Ending ending = Ending::finished;
  int status = 0;                        ///< finished: the script's own exit status
  bool raised = false;                   ///< finished: by an exception that is not the compiler's
  std::string signal;                    ///< died: by this signal, or "exit 3" in the middle of compiled code; empty: a process of the script's, nobody knows how
  std::string threads_left;              ///< finished: it did not end for threads of these names, and was killed
  // What was under way when it failed, died or hung: the innermost phase.
  std::string phase;                     ///< capture, compile, run, write; empty: the script's own code
  std::string graph, backend;
  std::string process;                   ///< whose it is: "rank 1", or what multiprocessing calls it; empty: the script's first
  bool has_aot_stage = false;
  bool is_own = false;                   ///< captured by cutaway.compile, not by torch.compile
  SourceLine call;                       ///< the user's line that called compiled code
  std::string bundle;                    ///< of the failing graph; empty: none was written
  std::string problem;                   ///< why there is no bundle
  std::string copy;                      ///< where a copy of the process waits, from before the failing compilation; empty: there is none
  bundle::FailureSignature signature;    ///< failed: as the observer saw it
  std::string message;
  SourceLine line;                       ///< capture failures: the line that was being captured
  std::string frame_source;              ///< capture failures: the function's source text
  double longest_phase_s = 0;            ///< of those that ended
  int64_t graphs = 0;                    ///< compiled, each once
  int64_t threads = 1;                   ///< of the script
  std::string log_tail;                  ///< the end of what the script printed
  std::vector<std::string> unwatched;    ///< backends that could not be watched, and why
  /// Level 4: a graph that passed and whose verdict somebody should see: ill-conditioned, closer to fp64 than eager is, or not judged at all.
  struct Judged { std::string graph, outcome, reason, bundle; };
  std::vector<Judged> judged;
  std::vector<std::pair<std::string, std::string>> bundles;   ///< graph -> its newest bundle, in the order in which graphs were first written
  double seconds = 0;
};

/// What the events of an observed script say about it.
class EventReader {
 public:
  /// The events that `more` completes. The Error names the line that is not one of ours.
  base::Status read(std::string_view more, std::string_view place);
  /// Fills what is known so far.
  void describe(Observation&) const;
  bool has_failure() const { return failure_.has_value(); }
  bool is_in_phase() const { return !open_.empty(); }
  bool has_started() const { return has_started_; }
  bool has_events() const { return has_events_; }
  bool is_finished() const { return finished_.has_value(); }
  /// A process that ended in the middle of something is looked at by describe(); true: there is one.
  bool note_dead_processes(const std::function<bool(int64_t process)>& is_alive);

 private:
  struct Phase { int64_t process; uint64_t number; std::string what, graph; uint64_t begin_us; };
  using GraphKey = std::pair<int64_t, std::string>;        // process, name
  base::Status take(const debug::StoredEvent&, std::string_view place);
  debug::StreamReader stream_;
  std::vector<Phase> open_;                                // in the order in which they began
  std::optional<Phase> dead_;                              // of a process that is gone
  std::map<GraphKey, Observation> graphs_;                 // backend, call and bundle of each
  std::map<GraphKey, std::string> copies_;                 // where a copy of the process from before its compilation waits
  GraphKey last_graph_;
  std::optional<Observation> failure_;
  std::optional<debug::StoredEvent> finished_;
  int64_t threads_ = 1;
  bool has_events_ = false, has_started_ = false;
  double longest_phase_s_ = 0;
  std::vector<std::string> unwatched_;
  std::vector<Observation::Judged> judged_;
  std::vector<std::pair<std::string, std::string>> bundles_;
};

/// Runs the script to its end, to its first failure, or to the time limit. The Error: it could not be started, or its events not read.
base::Result<Observation> observe(const Programs&, const ObserveOptions&);

}  // namespace cutaway::flows
