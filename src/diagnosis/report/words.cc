#include "diagnosis/report/words.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/capabilities/parts.h"
#include "core/ir/text.h"
#include "diagnosis/report/html.h"

namespace cutaway::report {
namespace {

/// "aten.add" names "aten.add.Tensor" too.
bool names_operator(const std::string& op, const std::string& target) {
  return !op.empty() && (target == op || (target.starts_with(op) && target[op.size()] == '.'));
}
std::string change(const std::optional<int64_t>& before, const std::optional<int64_t>& after, std::string_view noun) {
  return std::to_string(*before) + " to " + base::count_of(static_cast<uint64_t>(*after), noun);
}

}  // namespace

Marks find_marks(const Subject& s) {
  Marks marks;
  if (s.analysis) {
    if (const AnalysisRow* wrong = first_wrong(*s.analysis)) {
      ir::for_each_node(s.graph.body, [&](const ir::Node& n) {
        for (ir::ValueId id : n.results)
          if (s.graph.value(id).name == wrong->node) marks.nodes.insert(&n);
      });
      marks.label = "first wrong";
    }
  }
  if (marks.nodes.empty()) {
    ir::for_each_node(s.graph.body, [&](const ir::Node& n) {
      if (names_operator(s.manifest.failure.op, n.target)) marks.nodes.insert(&n);
    });
    marks.label = "named by the failure";
  }
  return marks;
}

std::string headline(const Subject& s, const Marks& marks) {
  const bundle::FailureSignature& f = s.manifest.failure;
  if (f.kind.empty()) return "No failure is recorded";
  std::string what = f.kind == "accuracy" ? "Wrong numbers" : f.kind == "hang" ? "Hangs" : f.kind == "memory" ? "Runs out of memory" : f.kind == "crash" ? "Crash" : !f.type.empty() ? f.type : "Exception";
  if (f.kind == "crash" && !f.signal.empty()) what += " (" + f.signal + ")";
  std::string op = f.op;
  if (op.empty() && !marks.nodes.empty()) op = (*marks.nodes.begin())->target;
  if (!op.empty()) return what + " in " + op;
  // Nothing names an operator, but when one is all that is left, it is the one.
  if (s.certificate && s.certificate->one_minimal && ir::count_nodes(s.graph) == 1 && s.graph.body.nodes.size() == 1 && !s.graph.body.nodes[0].target.empty())
    return what + " in a graph of " + s.graph.body.nodes[0].target + " alone";
  return what;
}

std::string setting(const Subject& s) {
  std::string out;
  if (!s.manifest.backend.empty()) out += "with " + s.manifest.backend;
  if (!s.manifest.stage.empty()) out += (out.empty() ? "" : ", ") + std::string("graph taken after ") + s.manifest.stage;
  return out;
}

std::string location_words(const ir::Graph& g, ir::LocationId id) {
  if (id >= g.locations.size()) return "";
  const ir::Location& l = g.locations[id];
  std::string out = l.file;
  if (l.line > 0) out += ":" + std::to_string(l.line);
  if (!l.function.empty()) out += (out.empty() ? "" : " ") + l.function;
  if (!l.module.empty()) out += (out.empty() ? "" : " in ") + l.module;
  return out;
}

std::string source_line(const Subject& s, const Marks& marks) {
  std::string found;
  ir::for_each_node(s.graph.body, [&](const ir::Node& n) {       // in program order: the set is ordered by address
    if (found.empty() && marks.nodes.contains(&n)) found = location_words(s.graph, n.location);
  });
  if (s.analysis)
    if (const AnalysisRow* wrong = first_wrong(*s.analysis); wrong && !wrong->source.empty()) return wrong->source;
  return !s.manifest.failure.user_frame.empty() ? s.manifest.failure.user_frame : found;
}

std::string certificate_warning(const Certificate& c) {
  if (c.verified && !*c.verified) return "Not verified: the result did not fail the same way when it was run from its files in a clean process.";
  if (c.runs && *c.runs > 0 && c.failed_runs && *c.failed_runs == 0) return "Not verified: none of the final runs failed.";
  return "";
}

std::vector<std::string> certificate_words(const Certificate& c) {
  std::vector<std::string> out;
  int64_t steps = 0;
  for (const auto& [pass, n] : c.single_removals) steps += n > INT64_MAX - steps ? 0 : n;
  if (c.one_minimal)
    out.push_back("One-minimal: every single step that could make it smaller or simpler was tried" + (steps > 0 ? " (" + std::to_string(steps) + " in the final sweep)" : std::string()) + ", and after each the failure was gone.");
  else out.push_back(c.stopped_early ? "Stopped early: this is the smallest case found so far, and a smaller one may exist." : "Not known to be minimal: a smaller case may exist.");
  if (c.nodes_before && c.nodes_after)
    out.push_back("Reduced from " + change(c.nodes_before, c.nodes_after, "node") + (c.elements_before && c.elements_after ? ", and from " + change(c.elements_before, c.elements_after, "input element") : "") + ".");
  if (c.runs && c.failed_runs && *c.runs > 0)
    out.push_back("Failed the same way in " + std::to_string(*c.failed_runs) + " of " + base::count_of(static_cast<uint64_t>(*c.runs), "final run") +
                  (c.verified && *c.verified ? ", one of them from its files in a clean process." : "."));
  if (!c.repro.empty()) out.push_back("repro.py, run as a program: " + c.repro + ".");
  if (c.rate_of_the_start)
    out.push_back(*c.rate_of_the_start >= 1 ? "The unreduced case failed every time it was looked at." : "Flaky: the unreduced case failed in " + percent(*c.rate_of_the_start) + " of its runs.");
  if (c.candidates) out.push_back(base::count_of(static_cast<uint64_t>(*c.candidates), "candidate") + " tried" + (c.seconds ? " in " + duration(*c.seconds) : "") +
                                   (c.new_kernels && *c.new_kernels > 0 ? ", " + base::count_of(static_cast<uint64_t>(*c.new_kernels), "kernel") + " built for them" : "") + ".");
  if (c.others.empty()) out.push_back("No other failure was met on the way.");
  for (const Certificate::Other& o : c.others)
    out.push_back("Another failure, met by " + base::count_of(static_cast<uint64_t>(o.candidates), "candidate") + ": " + o.failure + (o.bundle.empty() ? "" : ". Kept in " + o.bundle));
  return out;
}

std::vector<std::string> state_words(const bundle::Manifest& m) {
  std::vector<std::string> out;
  if (m.state.grad_enabled) out.push_back(*m.state.grad_enabled ? "gradients on" : "gradients off");
  if (m.state.inference_mode && *m.state.inference_mode) out.push_back("inference mode");
  for (const auto& a : m.state.autocast)
    out.push_back(a.enabled ? "autocast to " + std::string(ir::dtype_name(a.dtype)) + " on " + a.device.text() + (a.cache ? "" : ", without its cache") : "autocast off on " + a.device.text());
  if (m.random_inputs) out.push_back("random data stands in for recorded data");
  return out;
}

std::string input_words(const ir::Graph& g, const bundle::InputRef& in) {
  std::string out;
  switch (in.kind) {
    case bundle::InputRef::Kind::data: out = "recorded data, " + base::human_bytes(in.tensor.storage_bytes); break;
    case bundle::InputRef::Kind::seeded:
      out = "random, seed " + std::to_string(in.seed);
      if (in.range) out += ", whole numbers from " + std::to_string(in.range->first) + " up to, not including, " + std::to_string(in.range->second);
      break;
    case bundle::InputRef::Kind::filled: out = "every element " + fixed(in.fill, 6); break;
    case bundle::InputRef::Kind::literal: return "the literal " + ir::print_argument(g, in.literal);
  }
  return in.reason.empty() ? out : out + " (" + in.reason + ")";
}

std::vector<Step> next_steps(const Subject& s, bool needs_trust) {
  const std::string at = shell_word(s.name), trust = needs_trust ? " --trust" : "";
  std::vector<Step> out;
  if (s.has_script) out.push_back({"Show the failure with torch alone; this is the file to attach to a bug report", "python " + shell_word(s.name + "/repro.py")});
  out.push_back({"Does it still fail, and in the same way?", "cutaway run " + at + trust});
  if (!s.certificate) out.push_back({"Cut it down to the smallest graph that fails the same way", "cutaway minify " + at + trust});
  else if (s.certificate->stopped_early) out.push_back({"The search was stopped; start it again from here", "cutaway minify " + at + trust});
  if (s.manifest.failure.kind == "accuracy" && !s.analysis) out.push_back({"Find the first operator whose numbers are wrong", "cutaway analyze " + at + trust});
  const capabilities::Row backend = capabilities::row_of(s.manifest.backend);
  if (!backend.needs_trust && backend.parts != capabilities::Parts::none && !s.bisection)
    out.push_back({std::string(capabilities::table_of(backend.parts).question), "cutaway bisect " + at + trust});
  if (!s.manifest.backend.empty() && backend.last_stage != capabilities::Stage::capture)
    out.push_back({"Is the graph sound without the compiler?", "cutaway run " + at + " --backend " + capabilities::up_to(capabilities::Stage::capture) + trust});
  out.push_back({"Read the graph and its inputs; executes nothing", "cutaway show " + at});
  out.push_back({"Make this page again", "cutaway report " + at});
  return out;
}

}  // namespace cutaway::report
