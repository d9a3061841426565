// One way of compiling: backend, options, and the functions that capture and compile. Every compiled callable has one; entries of a code
// object belong to the session they were made for.
#pragma once
#include <Python.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frames/failed_frame.h"
#include "compiler/frames/plan.h"

namespace cutaway::frames {

struct Session {
  std::string backend_name;
  ObjectRef backend;                  ///< the callable, where it is one
  bool fullgraph = false;
  std::optional<bool> dynamic;        ///< false: never, true: from the start, absent: what changed before
  std::optional<int64_t> observe_limit;   ///< of a profiler: this many entries instead of cache_size_limit, and every call beyond is reported
  CaptureFrame capture;
  RecordFrame record;                 ///< writes a frame down whose capture failed; may be empty
  Compile compile;
  std::function<std::shared_ptr<Session>(PyObject* backend)> with_backend;   ///< the same options for another backend; null with an exception set. May be empty
  std::pair<ObjectRef, std::shared_ptr<Session>> forced;   ///< what with_backend made last, and of which backend
};

/// Limits and switches of the process; options() of Python changes them. With the GIL.
struct Settings {
  int64_t cache_size_limit = 8;       ///< entries of one code object and session
  std::optional<bool> strict;         ///< our own errors are raised; absent: as CUTAWAY_STRICT says when one happens
  bool automatic_dynamic = true;
  bool suppress = false;              ///< everything runs eagerly
  bool verbose = false;               ///< both full stacks with an error
  bool replay_record_enabled = false; ///< what capture does not support leaves a record too, where it raises
  bool record_errors = true;          ///< errors of our own leave a record
  std::string collective_group;       ///< name of the process group whose ranks agree before they compile; empty: none
  double compiler_collective_timeout = 300;   ///< seconds
  std::string planted_fault;          ///< CUTAWAY_PLANT_CAPTURE_FAULT, for tests: the instruction whose handler fails
  std::string only_function;          ///< CUTAWAY_DEBUG_FUNCTION: every function of another name runs eagerly
};
Settings& settings();
/// Whether an error of our own is raised. The environment is read now: a test or a script may set the variable after the import.
bool is_strict();

/// One look at a frame: what was compiled, or why nothing was. Explain, the profiler and the log are made from these.
struct CompileRecord {
  std::string function, file;
  int line = 0;
  enum class Outcome { compiled, skipped, failed, limit } outcome = Outcome::compiled;
  const Plan* plan = nullptr;               ///< of a compiled one; borrowed for the time of the call
  std::vector<std::string> guards;          ///< texts
  BreakReason reason;                       ///< break, skip or failure; id is empty when there is none
  std::string recompile_reason;             ///< why the entries that there were did not fit; empty for the first
  bool is_resume = false;
  double seconds = 0, backend_seconds = 0;
  std::string graph_name;
};
using CompileListener = std::function<void(const CompileRecord&)>;
/// Adds a listener of this process; returns a number to remove it by.
int add_listener(CompileListener);
void remove_listener(int);

/// group -> name -> count, as torch's counters: frames, graph_break, recompiles, stats, …
std::map<std::string, std::map<std::string, int64_t>>& counters();

/// Calls `callable` with its frames captured for this session.
PyObject* call_compiled(const std::shared_ptr<Session>&, PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames);
/// Installs the frame handler; false when this Python is not one that we know.
bool start();
/// Drops every entry of every code object.
void reset();
/// True while this thread captures, or runs what was captured.
bool is_compiling();
/// While one lives this thread compiles nothing.
class Disabled {
 public:
  Disabled();
  ~Disabled();
  Disabled(const Disabled&) = delete;
  Disabled& operator=(const Disabled&) = delete;

 private:
  void* before_;
};
/// Entries of a code object, newest first, for tests and reports: guard texts of each.
std::vector<std::vector<std::string>> entry_guards(PyCodeObject*);
/// Number of entries of all sessions.
size_t entry_count(PyCodeObject*);
/// Files whose functions are not captured as frames of their own (they are inlined where they are called): prefixes of paths, of which
/// the longest that fits decides. `hidden`: nothing that these functions call is captured either, and capture inlines only those that it knows (function
/// transforms, checkpoints), because they keep state of torch around their callees.
void set_skipped_files(std::vector<std::string> skipped, std::vector<std::string> but_not, std::vector<std::string> hidden);
bool runs_hidden(PyCodeObject*);
/// One of torch's optimisers, the part that reads numbers out of its tensors in eager.
bool reads_optimiser_state(PyCodeObject*);
/// What a code was made of; of an original: itself.
struct OriginalCode {
  PyCodeObject* code = nullptr;
  int prologue = 0;   ///< instructions before the original's
  int call = -1;      ///< the original's instruction that a call in the prologue stands for
};
OriginalCode original_code(PyCodeObject*);
/// True if a frame that runs this code can resume after a break: the user's, and the few of libraries that only call it.
bool may_go_on(PyCodeObject*);
/// The text of a break as a person reads it: reason, user stack with source lines, hint.
std::string reason_text(const BreakReason&);
/// The same in one line: reason and the user's innermost line.
std::string reason_line(const BreakReason&);

}  // namespace cutaway::frames
