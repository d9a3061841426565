#include "compiler/backends/fault.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>
#include <random>
#include <set>

#include "core/base/text.h"
#include "core/exec/interpreter.h"
#include "core/ir/op_name.h"

namespace cutaway::backends {
namespace {

struct Fault {
  enum class Kind { exception, crash, hang, memory, wrong, wrong_nan } kind = Kind::exception;
  bool at_compile = false;
  std::string feeder, op;   // feeder empty: any
  int64_t min_numel = 0, max_numel = -1;   // of the first result; -1: any
  double by = 0.1, probability = 1;
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

base::Result<Fault> parse_fault(std::string_view text) {
  const auto bad = [&](std::string what) { return base::Error{"backend fault:" + std::string(text) + ": " + what, "", "", "fault:KIND[@compile|@run]:OPERATOR[>OPERATOR][:numel>=N][:numel<=N][:by=X][:p=P]", ""}; };
  const auto parts = split(text, ':');
  if (parts.size() < 2) return bad("an operator is missing");
  Fault f;
  const std::string_view kind = parts[0].substr(0, parts[0].find('@'));
  static const std::vector<std::string> kinds = {"exception", "crash", "hang", "memory", "wrong", "wrongnan"};
  const auto it = std::find(kinds.begin(), kinds.end(), kind);
  if (it == kinds.end()) return bad("unknown kind " + base::quote(kind) + base::did_you_mean(kind, kinds));
  f.kind = static_cast<Fault::Kind>(it - kinds.begin());
  f.at_compile = f.kind == Fault::Kind::exception;
  if (kind.size() < parts[0].size()) {
    const std::string_view when = parts[0].substr(kind.size() + 1);
    if (when != "compile" && when != "run") return bad("a fault shows @compile or @run");
    f.at_compile = when == "compile";
  }
  if (f.at_compile && f.kind >= Fault::Kind::wrong) return bad("wrong numbers show when the graph runs");
  const size_t arrow = parts[1].find('>');
  f.op = arrow == parts[1].npos ? parts[1] : parts[1].substr(arrow + 1);
  if (arrow != parts[1].npos) f.feeder = parts[1].substr(0, arrow);
  for (size_t i = 2; i < parts.size(); ++i) {
    auto number = [&](std::string_view prefix, auto& value) {
      if (parts[i].substr(0, prefix.size()) != prefix) return false;
      const std::string_view digits = parts[i].substr(prefix.size());
      return std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc();
    };
    if (!number("numel>=", f.min_numel) && !number("numel<=", f.max_numel) && !number("by=", f.by) && !number("p=", f.probability)) return bad("cannot read " + base::quote(parts[i]));
  }
  return f;
}

// Which ops of the graph a fault sits on, by their position among all ops in program order (as exec::Hooks counts).
std::set<size_t> matches(const Fault& f, const ir::Graph& g) {
  std::vector<std::string> maker(g.values.size());
  std::set<size_t> found;
  size_t position = 0;
  ir::for_each_node(g.body, [&](const ir::Node& n) {
    if (n.kind != ir::Node::Kind::op) return;
    const size_t here = position++;
    for (ir::ValueId v : n.results) maker[v] = n.target;
    if (!ir::is_op(f.op, n.target)) return;
    bool fed = f.feeder.empty();
    ir::for_each_use(n, [&](ir::ValueId v) { fed |= !f.feeder.empty() && ir::is_op(f.feeder, maker[v]); });
    std::optional<int64_t> numel;
    if (!n.results.empty() && g.value(n.results[0]).type.is_tensor()) numel = g.value(n.results[0]).type.tensor.numel();
    const bool fits = (f.min_numel == 0 || numel.value_or(-1) >= f.min_numel) && (f.max_numel < 0 || (numel && *numel <= f.max_numel));
    if (fed && fits) found.insert(here);
  });
  return found;
}

[[noreturn]] void eat_memory() {
  std::vector<std::vector<char>> blocks;
  for (;;) blocks.emplace_back(size_t{64} << 20, 'x');
}

void strike(const Fault& f) {
  switch (f.kind) {
    case Fault::Kind::exception: TORCH_CHECK(false, "fault: cannot ", f.at_compile ? "lower " : "run ", f.op, f.feeder.empty() ? "" : " after " + f.feeder);
    case Fault::Kind::crash: std::raise(SIGSEGV); break;
    case Fault::Kind::hang: for (;;) pause();
    case Fault::Kind::memory: eat_memory();
    case Fault::Kind::wrong: case Fault::Kind::wrong_nan: break;
  }
}

void spoil(const Fault& f, std::vector<c10::IValue>& results) {
  auto change = [&](const at::Tensor& t) -> at::Tensor {
    if (!t.defined() || !(t.is_floating_point() || t.is_complex())) return t;
    if (f.kind == Fault::Kind::wrong) return t + f.by;
    at::Tensor out = t.clone();
    if (out.numel()) out.flatten()[0].fill_(std::numeric_limits<double>::quiet_NaN());
    return out;
  };
  for (auto& v : results) {
    if (v.isTensor()) v = change(v.toTensor());
    else if (v.isTensorList()) { auto list = v.toTensorVector(); for (auto& t : list) t = change(t); v = list; }
  }
}

struct Planted { Fault fault; std::set<size_t> positions; };

struct FaultyGraph final : CompiledGraph {
  exec::Program program;
  std::vector<Planted> planted;
  FaultyGraph(exec::Program p, std::vector<Planted> f) : program(std::move(p)), planted(std::move(f)) {}
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override {
    exec::Hooks hooks;
    hooks.after = [&](size_t position, const ir::Node&, std::vector<c10::IValue>& results) {
      for (const Planted& p : planted)
        if (p.positions.count(position)) { strike(p.fault); spoil(p.fault, results); }
    };
    exec::RunOptions options;
    if (!planted.empty()) options.hooks = &hooks;
    return program.run(inputs, options);
  }
};

struct Faulty final : Backend {
  std::vector<Fault> faults;
  base::Result<std::unique_ptr<CompiledGraph>> compile(const ir::Graph& graph, const std::vector<c10::IValue>&, debug::Sink*) override {
    std::random_device dice;
    std::vector<Planted> planted;
    for (const Fault& f : faults) {
      auto positions = matches(f, graph);
      if (positions.empty() || std::uniform_real_distribution<>()(dice) >= f.probability) continue;
      if (f.at_compile) strike(f);
      else planted.push_back({f, std::move(positions)});
    }
    CUTAWAY_TRY_ASSIGN(exec::Program program, exec::Program::prepare(graph));
    return std::unique_ptr<CompiledGraph>(std::make_unique<FaultyGraph>(std::move(program), std::move(planted)));
  }
};

}  // namespace

base::Result<std::unique_ptr<Backend>> make_fault(std::string_view parameters) {
  auto backend = std::make_unique<Faulty>();
  for (std::string_view part : split(parameters, '+')) {
    CUTAWAY_TRY_ASSIGN(Fault f, parse_fault(part));
    backend->faults.push_back(std::move(f));
  }
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace cutaway::backends
