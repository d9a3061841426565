// What each backend can do, by its name: the one table that flows, trust, scripts, doctor and Python ask. In goes a name, out comes a row;
// knows no backend's code. A new capability is a field here and a column in capabilities.cc, nothing else.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::capabilities {

/// Where a backend's code runs.
enum class Lives { cpp, python, program };   // C++ of ours; a Python process; another program, started by ours
/// Whose parts `cutaway bisect` may switch off.
enum class Parts { none, native, inductor };
/// What its random numbers are beside those of eager with the same seed.
enum class Randomness { as_eager, own, unknown };
/// The last stage of a compiler that a backend's results went through. Where one that stops early fails too, the later stages are not guilty.
enum class Stage { capture, aot, backend };

struct Row {
  std::string name;
  std::string parameters;       ///< what may follow the name: ":KIND:OPERATOR"; empty: nothing
  std::string summary;
  Lives lives = Lives::python;
  Parts parts = Parts::none;
  bool observes = false;        ///< tells the values that a compiled graph holds on the way
  bool differentiates = false;  ///< gradients flow through its results
  bool needs_trust = true;      ///< it may run code that a bundle brings or names
  bool has_aot_stage = false;   ///< it compiles what ahead-of-time autograd made: that graph can be watched
  bool is_torchs = false;       ///< a script with torch alone can ask for it by this name
  bool takes_captured_graphs = false;   ///< cutaway.compile(backend=NAME) hands it graphs without Python between
  bool runs_operators = false;  ///< the graph's own operators run, as they are
  bool needs_compiler = false;  ///< a C++ compiler on the machine where it runs
  Stage last_stage = Stage::backend;
  bool is_inductor = false;     ///< torch's Inductor: compile_fx takes its options and its inner compiler
  bool has_code = false;        ///< what it generates can be written, read back and timed (cutaway run --code, cutaway profile)
  bool freezes = false;         ///< keeps weights as constants when it is asked to (compile(freeze=True))
  Randomness randomness = Randomness::unknown;
  std::string option_for_eager_random;   ///< set to true, its random numbers are eager's; empty: there is none
  std::string of_ours;                   ///< for graphs that we captured the name means this one; empty: itself
  std::vector<std::string> devices;      ///< device types that it is meant for

  friend bool operator==(const Row&, const Row&) = default;
};

/// Every backend that has a name here, sorted by name.
const std::vector<Row>& rows();
/// By "name" or "name:parameters". None: somebody else's, found by Python when it runs.
const Row* find(std::string_view backend);
/// The same, and for a name without a row what holds for any function in Python with torch's contract.
Row row_of(std::string_view backend);
/// The name of the backend that stops after that stage, for a debugger that asks which stage is guilty: the first one by name.
const std::string& up_to(Stage);
/// "fault" of "fault:crash:aten.relu".
std::string_view name_of(std::string_view backend);
/// `; did you mean "inductor"?` for a name without a row that reads like one of those that need no trust; else empty.
std::string nearest(std::string_view backend);

std::string_view word(Lives);
std::string_view word(Parts);
std::string_view word(Randomness);
std::string_view word(Stage);

/// field("name", value) for each, in order: a bool, a text or a list of texts. What shows rows (JSON, Python, doctor) shows a new field by itself.
template <class F> void for_each_field(const Row& r, F&& field) {
  field("name", r.name);
  field("parameters", r.parameters);
  field("summary", r.summary);
  field("lives", std::string(word(r.lives)));
  field("parts", std::string(word(r.parts)));
  field("observes", r.observes);
  field("differentiates", r.differentiates);
  field("needs_trust", r.needs_trust);
  field("has_aot_stage", r.has_aot_stage);
  field("is_torchs", r.is_torchs);
  field("takes_captured_graphs", r.takes_captured_graphs);
  field("runs_operators", r.runs_operators);
  field("needs_compiler", r.needs_compiler);
  field("last_stage", std::string(word(r.last_stage)));
  field("is_inductor", r.is_inductor);
  field("has_code", r.has_code);
  field("freezes", r.freezes);
  field("randomness", std::string(word(r.randomness)));
  field("option_for_eager_random", r.option_for_eager_random);
  field("of_ours", r.of_ours);
  field("devices", r.devices);
}

/// What a row lacks, in words; empty: complete. A test asks this of every row that is registered.
std::string missing_in(const Row&);

}  // namespace cutaway::capabilities
