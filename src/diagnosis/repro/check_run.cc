#include "diagnosis/repro/check_run.h"

#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "compiler/backends/check.h"
#include "core/exec/process_settings.h"
#include "core/tensor/make.h"
#include "diagnosis/compare/judge.h"
#include "diagnosis/repro/reference.h"
#include "diagnosis/repro/write_repro.h"

namespace cutaway::repro {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMostBytes = uint64_t{1} << 30;   // of a bundle's data

/// The number of the output that a part of a verdict is about; -1: none.
int64_t output_of(const compare::Verdict& part) {
  constexpr std::string_view kWord = "output ";
  int64_t n = -1;
  if (std::string_view(part.path).starts_with(kWord)) std::from_chars(part.path.data() + kWord.size(), part.path.data() + part.path.size(), n);
  return n;
}

/// The first wrong output in the order of the program: those behind it may be wrong because of it.
const compare::Verdict& first_wrong(const compare::Verdict& v) {
  const compare::Verdict* first = nullptr;
  for (const compare::Verdict& part : v.parts)
    if (!is_same(part.outcome) && (!first || output_of(part) < output_of(*first))) first = &part;
  return first ? *first : v;
}

/// The node that makes an output of the graph; null: an input is returned, or it is no value.
const ir::Node* maker_of(const ir::Graph& g, int64_t output, std::string& name) {
  if (output < 0 || static_cast<size_t>(output) >= g.body.outputs.size()) return nullptr;
  const auto* ref = g.body.outputs[static_cast<size_t>(output)].as<ir::ValueRef>();
  if (!ref) return nullptr;
  name = g.value(ref->id).name;
  for (const ir::Node& n : g.body.nodes)
    for (ir::ValueId r : n.results)
      if (r == ref->id) return &n;
  return nullptr;
}

std::string write_bundle_of(const backends::CheckPoint& p, bool is_whole, const bundle::FailureSignature& failure) {
  const ir::Graph& graph = is_whole ? p.whole : p.operators;
  bundle::Manifest m;
  m.name = graph.name;
  m.stage = "aot";
  m.backend = p.backend;
  m.accuracy = "accuracy";
  m.state.grad_enabled = false;
  m.process = exec::process_settings_now();
  m.generators = is_whole ? p.whole_generators : p.generators;
  m.failure = failure;
  m.versions["torch"] = TORCH_VERSION;
  std::error_code ec;
  std::string stem = graph.name.empty() ? "graph" : graph.name;
  for (char& c : stem)
    if (c == '/' || c == '\\') c = '_';
  const char* root = std::getenv("CUTAWAY_DEBUG_DIR");
  fs::path path = fs::absolute(root && *root ? root : ".", ec) / "cutaway_check" / stem;
  path = path.lexically_normal();
  for (int i = 2; fs::exists(path, ec); ++i) path.replace_filename(stem + "." + std::to_string(i));
  ir::Graph named = graph;
  std::replace(stem.begin(), stem.end(), '.', '_');
  named.name = m.name = stem;
  const auto written = write_repro(path, named, std::move(m), is_whole ? p.whole_inputs : p.inputs, {}, kMostBytes);
  return written.ok() ? path.string() : "none: " + written.error().text();
}

void check(const backends::CheckPoint& p) {
  const at::NoGradGuard no_grad;
  auto program = exec::Program::prepare(p.operators);
  auto start = exec::random_start(0, p.generators);
  if (!program.ok() || !start.ok()) backends::raise_check_failure("CUTAWAY_CHECK: " + (program.ok() ? start.error() : program.error()).text());
  exec::ForwardBackwardOptions forward;
  forward.only_forward = true;
  const compare::Eager eager = [&](const Values& values) { return exec::run_fwd_maybe_bwd(exec::runnable(*program), values, forward, *start); };
  const auto fp64 = [&] {
    auto wide = exec::Program::prepare(tensor::cast_to_fp64(p.operators));
    TORCH_CHECK_VALUE(wide.ok(), wide.ok() ? "" : wide.error().text());
    exec::StateScope no_autocast(exec::autocast_off());
    return exec::run_fwd_maybe_bwd(exec::runnable(*wide), tensor::cast_to_fp64(p.inputs), forward, *start);
  };
  compare::JudgeRules rules;
  rules.sees_layout = false;
  const compare::Judge judge(eager, p.inputs, fp64, rules);
  const exec::RunResults result = exec::run_fwd_maybe_bwd([&](Values&) { return p.results; }, p.inputs, forward, *start);
  const compare::Verdict verdict = judge.judge(result);
  if (is_same(verdict.outcome)) return;

  const compare::Verdict& first = first_wrong(verdict);
  std::string value;
  const ir::Node* maker = maker_of(p.operators, output_of(first), value);
  if (const int64_t n = output_of(first); maker && n >= 0 && static_cast<size_t>(n) < p.names.size()) value = p.names[static_cast<size_t>(n)];   // regions have names of their own
  bundle::FailureSignature failure = signature_of(first);
  if (maker) failure.op = maker->target;
  std::string place;
  if (maker && maker->location != ir::kNoLocation)
    if (const ir::Location& l = p.operators.locations[maker->location]; l.is_known()) place = l.file + ":" + std::to_string(l.line) + (l.function.empty() ? "" : " in " + l.function);
  const std::string graph = p.whole.name.empty() ? "the graph" : p.whole.name;
  std::string text = "CUTAWAY_CHECK: " + p.backend + ": " + (p.kernel.empty() ? "the outputs of " + graph + " are" : "what kernel " + p.kernel + " of " + graph + " computes is") + " not what the operators give\n";
  const auto line = [&](const char* key, const std::string& said) { if (!said.empty()) text += "   " + std::string(key) + ": " + said + "\n"; };
  line("value", value.empty() ? first.path : "%" + value + (maker ? " = " + maker->target : ""));
  line("at", place);
  line("because", first.reason);
  const std::string whole = write_bundle_of(p, true, failure);
  line("bundle", whole);
  if (!p.kernel.empty()) line("kernel alone", write_bundle_of(p, false, failure));
  text += "   try: cutaway analyze " + whole;
  backends::raise_check_failure(text);
}

const bool is_installed = [] {
  install_checker();
  return true;
}();

}  // namespace

void install_checker() { backends::set_checker(check); }

}  // namespace cutaway::repro
