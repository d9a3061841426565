#include "core/debug/topics.h"

#include <algorithm>

namespace cutaway::debug {
namespace {

using Words = std::string_view;
constexpr Words kCapture[] = {"dynamo"};
constexpr Words kAot[] = {"aot"};
constexpr Words kNative[] = {"inductor"};
constexpr Words kTrace[] = {"fake_tensor", "not_implemented"};
constexpr Words kBreaks[] = {"graph_breaks"};
constexpr Words kRecompiles[] = {"recompiles", "recompiles_verbose"};
constexpr Words kGuards[] = {"guards", "verbose_guards"};
constexpr Words kBytecode[] = {"bytecode"};
constexpr Words kGraph[] = {"graph", "graph_code", "graph_code_verbose", "graph_sizes"};
constexpr Words kInstructions[] = {"trace_source", "trace_call", "trace_bytecode"};
constexpr Words kEffects[] = {"side_effects"};
constexpr Words kShapes[] = {"dynamic", "sym_node", "trace_shape_events"};
constexpr Words kAotGraphs[] = {"aot_graphs", "aot_graphs_effects"};
constexpr Words kJointGraph[] = {"aot_joint_graph"};
constexpr Words kLoweredGraph[] = {"pre_grad_graphs", "post_grad_graphs"};
constexpr Words kIr[] = {"ir_pre_fusion", "ir_post_fusion"};
constexpr Words kFusion[] = {"fusion", "schedule", "loop_ordering", "loop_tiling", "compute_dependencies"};
constexpr Words kOutputCode[] = {"output_code", "kernel_code"};
constexpr Words kCache[] = {"cache"};

constexpr Topic kTopics[] = {
    {"session", "session", {}, "what was asked for, and where things are", false},
    {"capture", "capture", kCapture, "from Python to a graph", true},
    {"aot", "aot", kAot, "ahead-of-time autograd", true},
    {"backend", "backend", {}, "the call of a backend", true},
    {"native", "native", kNative, "fusion and code generation", true},
    {"trace", "trace", kTrace, "recording of operators, fake tensors", true},
    {"exec", "exec", {}, "running a graph", false},
    {"store", "store", {}, "blobs on disk", false},
    {"bundle", "bundle", {}, "saved programs", false},
    {"compare", "compare", {}, "comparing results", false},
    {"minify", "minify", {}, "reducing a failing program", false},
    {"repro", "repro", {}, "checking, dumping and running repros", false},
    {"observe", "observe", {}, "a script that triage runs and watches", false},
    {"worker", "worker", {}, "processes that run candidates", false},
    {"report", "report", {}, "writing reports", false},
    {"frames", "capture", {}, "what became of each frame: compiled, skipped, failed, at its limit", false},
    {"breaks", "capture", kBreaks, "graph breaks, each with its reason", false},
    {"recompiles", "capture", kRecompiles, "why something was compiled again", false},
    {"guards", "capture", kGuards, "what a compiled function depends on", false},
    {"bytecode", "capture", kBytecode, "original and modified bytecode", false},
    {"graph", "capture", kGraph, "the captured graph", false},
    {"instructions", "capture", kInstructions, "every instruction as it is captured", false},
    {"effects", "capture", kEffects, "side effects that are replayed", false},
    {"shapes", "capture", kShapes, "symbolic sizes", false},
    {"aot_graphs", "aot", kAotGraphs, "forward and backward graphs", false},
    {"joint_graph", "aot", kJointGraph, "the graph before it is split into forward and backward", false},
    {"lowered_graph", "native", kLoweredGraph, "the graph as code generation receives it", false},
    {"ir", "native", kIr, "loop form before and after fusion", false},
    {"fusion", "native", kFusion, "what was fused, what was not, and why", false},
    {"output_code", "native", kOutputCode, "generated code", false},
    {"cache", "native", kCache, "compiled code found again", false},
};

struct TorchModule {
  std::string_view prefix, topic;
};
constexpr TorchModule kTorchModules[] = {
    {"torch._dynamo", "capture"}, {"torch._functorch", "aot"}, {"torch._inductor", "native"}, {"torch._subclasses", "trace"},
};

}  // namespace

std::span<const Topic> topics() { return kTopics; }

std::optional<size_t> topic_index(std::string_view name) {
  for (size_t i = 0; i < std::size(kTopics); ++i)
    if (kTopics[i].name == name) return i;
  return std::nullopt;
}

std::optional<size_t> topic_index_of_torch_word(std::string_view word) {
  for (size_t i = 0; i < std::size(kTopics); ++i)
    if (std::ranges::find(kTopics[i].torch, word) != kTopics[i].torch.end()) return i;
  for (const TorchModule& m : kTorchModules)
    if (word == m.prefix || (word.starts_with(m.prefix) && word[m.prefix.size()] == '.')) return topic_index(m.topic);
  return std::nullopt;
}

std::string_view component_of(std::string_view topic) {
  const std::optional<size_t> i = topic_index(topic);
  return i ? kTopics[*i].component : topic;
}

std::string topics_text() {
  std::string out;
  const auto row = [&](const Topic& t, std::string indent) {
    std::string line = indent + std::string(t.name);
    line.resize(std::max<size_t>(line.size() + 1, 18), ' ');
    line += t.summary;
    bool first = true;
    for (std::string_view w : t.torch) {
      if (w == t.name) continue;
      line += (first ? " (torch: " : ", ") + std::string(w);
      first = false;
    }
    if (!first) line += ")";
    out += line + "\n";
  };
  for (const Topic& c : kTopics) {
    if (!c.is_component()) continue;
    row(c, "");
    for (const Topic& d : kTopics)
      if (!d.is_component() && d.component == c.name) row(d, "  ");
  }
  return out;
}

}  // namespace cutaway::debug
