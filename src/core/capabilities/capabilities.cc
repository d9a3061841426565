#include "core/capabilities/capabilities.h"

#include <algorithm>

#include "core/base/text.h"

namespace cutaway::capabilities {
namespace {

std::vector<Row> make_rows() {
  const std::vector<std::string> any = {"cpu", "cuda"};
  std::vector<Row> rows = {
      {.name = "eager", .summary = "runs the graph as it is, by torch's dispatcher", .lives = Lives::cpp, .differentiates = true, .needs_trust = false, .is_torchs = true,
       .takes_captured_graphs = true, .runs_operators = true, .last_stage = Stage::capture, .randomness = Randomness::as_eager, .devices = any},
      // Torch has one of this name too. Workers put that one into the table, for graphs that torch captured.
      {.name = "aot_eager", .parameters = "[:save_all]", .summary = "differentiated ahead of time, then operator by operator; save_all keeps all that backward uses",
       .lives = Lives::python, .differentiates = true, .needs_trust = false, .has_aot_stage = true, .is_torchs = true, .takes_captured_graphs = true, .runs_operators = true,
       .last_stage = Stage::aot, .randomness = Randomness::as_eager, .of_ours = "own_aot_eager", .devices = any},
      {.name = "own_aot_eager", .parameters = "[:save_all]", .summary = "our own aot_eager, in C++, also where torch's is registered under that name", .lives = Lives::cpp,
       .differentiates = true, .needs_trust = false, .has_aot_stage = true, .takes_captured_graphs = true, .runs_operators = true, .last_stage = Stage::aot, .randomness = Randomness::as_eager,
       .devices = any},
      {.name = "native", .parameters = "[:wait]", .summary = "fused kernels in C++, compiled by this machine's compiler; wait compiles before the first run", .lives = Lives::cpp,
       .parts = Parts::native, .observes = true, .differentiates = true, .needs_trust = false, .has_aot_stage = true, .takes_captured_graphs = true, .needs_compiler = true,
       .has_code = true, .freezes = true, .randomness = Randomness::as_eager, .devices = any},
      {.name = "cutaway", .parameters = "[:wait]", .summary = "native, by the name that torch.compile knows it by where cutaway is installed", .lives = Lives::cpp,
       .parts = Parts::native, .observes = true, .differentiates = true, .needs_trust = false, .has_aot_stage = true, .takes_captured_graphs = true, .needs_compiler = true,
       .has_code = true, .freezes = true, .randomness = Randomness::as_eager, .devices = any},
      {.name = "inductor", .summary = "torch's Inductor: compile_fx after capture, compile_fx_inner after aot", .lives = Lives::python, .parts = Parts::inductor, .observes = true,
       .differentiates = true, .needs_trust = false, .has_aot_stage = true, .is_torchs = true, .needs_compiler = true, .is_inductor = true, .randomness = Randomness::own,
       .option_for_eager_random = "fallback_random", .devices = any},
      {.name = "fault", .parameters = ":KIND:OPERATOR", .summary = "eager with planted faults, for tests", .lives = Lives::cpp, .differentiates = true, .needs_trust = false,
       .takes_captured_graphs = true, .randomness = Randomness::as_eager, .devices = any},
      {.name = "command", .parameters = ":PROGRAM {bundle}", .summary = "another program (docs/formats/command_backend.md)", .lives = Lives::program, .devices = any},
      {.name = "python", .parameters = ":MODULE:FUNCTION", .summary = "any function with torch's backend contract", .parts = Parts::inductor, .differentiates = true, .is_torchs = true, .devices = any},
      {.name = "source", .parameters = ":FUNCTION", .summary = "a backend that the program defined; its source text is in the bundle", .parts = Parts::inductor, .differentiates = true,
       .is_torchs = true, .devices = any},
      {.name = "live", .parameters = ":NAME", .summary = "a backend that lives in the program's own process", .parts = Parts::inductor, .differentiates = true, .is_torchs = true, .devices = any},
  };
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
  return rows;
}

}  // namespace

const std::vector<Row>& rows() {
  static const std::vector<Row> table = make_rows();
  return table;
}

std::string_view name_of(std::string_view backend) { return backend.substr(0, backend.find(':')); }

const Row* find(std::string_view backend) {
  const std::string_view name = name_of(backend);
  const auto at = std::lower_bound(rows().begin(), rows().end(), name, [](const Row& r, std::string_view n) { return r.name < n; });
  return at != rows().end() && at->name == name ? &*at : nullptr;
}

Row row_of(std::string_view backend) {
  if (const Row* row = find(backend)) return *row;
  Row row = *find("python");   // whoever registered it with torch, it has torch's contract
  row.name = name_of(backend);
  row.parameters.clear();
  row.summary = "a backend that torch has registered";
  row.has_aot_stage = row.name.starts_with("aot_");   // torch's own names
  return row;
}

const std::string& up_to(Stage stage) {
  const auto found = std::find_if(rows().begin(), rows().end(), [&](const Row& r) { return r.last_stage == stage; });
  return found->name;   // each stage has a row: a test looks
}

std::string nearest(std::string_view backend) {
  std::vector<std::string> names;
  for (const Row& row : rows())
    if (!row.needs_trust) names.push_back(row.name);
  return find(backend) ? "" : base::did_you_mean(name_of(backend), names);
}

std::string_view word(Lives l) { return l == Lives::cpp ? "C++" : l == Lives::python ? "Python" : "program"; }
std::string_view word(Parts p) { return p == Parts::none ? "none" : p == Parts::native ? "native" : "inductor"; }
std::string_view word(Randomness r) { return r == Randomness::as_eager ? "as eager" : r == Randomness::own ? "its own" : "unknown"; }

std::string_view word(Stage s) { return s == Stage::capture ? "capture" : s == Stage::aot ? "aot" : "backend"; }

std::string missing_in(const Row& row) {
  if (row.name.empty()) return "it has no name";
  if (row.summary.empty()) return "it has no summary";
  if (row.devices.empty()) return "it names no device";
  if (!row.of_ours.empty() && !find(row.of_ours)) return "its of_ours is no row";
  if (!row.needs_trust && row.randomness == Randomness::unknown) return "nothing is said of its random numbers";
  if (!row.option_for_eager_random.empty() && row.randomness != Randomness::own) return "an option for eager's random numbers, where they are not its own";
  return "";
}

}  // namespace cutaway::capabilities
