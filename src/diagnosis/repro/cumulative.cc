#include "diagnosis/repro/cumulative.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_map>

#include "diagnosis/compare/same_values.h"
#include "diagnosis/oracle/fx_name.h"

namespace cutaway::repro {
namespace {

constexpr int64_t kCopyBytes = int64_t{256} << 20;   // of returned values in one copy, in their own precision; fp64 and the result come on top
constexpr int64_t kUnknownBytes = int64_t{1} << 20;  // assumed of a value with symbolic sizes

struct Returned {
  size_t node;
  ir::ValueId value;
};

int64_t bytes_of(const ir::TensorType& t) {
  const auto n = t.numel();
  return n ? *n * ir::dtype_bytes(t.dtype) : kUnknownBytes;
}

/// Values of `returned` that the compiled graph holds, in their order; empty slots for others. Nothing when the backend does not tell.
std::optional<Values> observe(const ir::Graph& graph, const Values& inputs, Meter& meter, const std::vector<Returned>& returned, const Values& eager, std::optional<Values>& outputs, std::vector<std::string>& remarks) {
  if (!meter.may_observe()) return std::nullopt;
  std::unordered_map<std::string, size_t> wanted;
  for (size_t k = 0; k < returned.size(); ++k) wanted.emplace(oracle::fx_name(graph.value(returned[k].value).name), k);
  Values found(returned.size());
  try {
    outputs = meter.observe(graph, inputs, [&](const std::string& name, const at::Tensor& t) {
      const auto it = wanted.find(name);
      if (it == wanted.end() || !eager[it->second].isTensor()) return;
      const at::Tensor& same = eager[it->second].toTensor();
      // A compiler may keep a value in another shape; one with other elements is not this value.
      if (t.numel() != same.numel() || t.scalar_type() != same.scalar_type() || t.device() != same.device()) return;
      found[it->second] = t.detach().clone().reshape(same.sizes());
    });
    if (!outputs) return std::nullopt;
  } catch (...) {
    const ExceptionFacts f = describe_exception(std::current_exception());
    remarks.push_back("the compiled graph could not be observed: " + f.type + ": " + f.message.substr(0, f.message.find('\n')));
    return std::nullopt;
  }
  return found;
}

}  // namespace

Cumulative measure_cumulative(const oracle::Trial& trial, const ir::Graph& graph, const Values& inputs, Meter& meter, std::vector<std::string>& remarks) {
  Cumulative found;
  found.nodes.resize(graph.body.nodes.size());
  std::vector<std::vector<Returned>> copies(1);
  int64_t bytes = 0;
  for (size_t i = 0; i < graph.body.nodes.size(); ++i)
    for (ir::ValueId id : graph.body.nodes[i].results) {
      if (!graph.value(id).type.is_tensor()) continue;
      const int64_t more = bytes_of(graph.value(id).type.tensor);
      if (bytes + more > kCopyBytes && !copies.back().empty()) {
        copies.emplace_back();
        bytes = 0;
      }
      bytes += more;
      copies.back().push_back({i, id});
    }
  compare::Options rules;
  rules.rules = compare::Rules::cutaway;
  rules.tol = trial.tolerance;
  rules.ignore_non_fp = trial.accuracy == "accuracy";   // a mask may flip where its input is off by a rounding
  for (const std::vector<Returned>& returned : copies) {
    ir::Graph copy = graph;
    copy.body.outputs.clear();
    for (const Returned& r : returned) copy.body.outputs.emplace_back(ir::ValueRef{r.value});
    const Reference reference = meter.reference(copy, inputs, Passes::forward);
    if (!reference.problem.empty()) {
      remarks.push_back("errors along the graph are not known: eager cannot run it with every value returned: " + reference.problem);
      return found;
    }
    const Values& eager = reference.judge->eager().outputs;
    std::optional<Values> observed = observe(graph, inputs, meter, returned, eager, found.outputs, remarks);
    Look look;
    if (observed) look.results.outputs = *std::move(observed);
    else look = meter.look(copy, inputs, reference, Meter::Compile::once, Passes::forward);
    const Values& results = look.results.outputs;
    if (observed && found.materialised < 0) found.materialised = 0;
    if (look.exception || !look.problem.empty()) {
      remarks.push_back("errors along the graph are not known: the backend cannot run it with every value returned: " + (look.exception ? look.verdict.reason : look.problem));
      return found;
    }
    const exec::RunResults* wide = reference.judge->fp64();
    for (size_t k = 0; k < returned.size() && k < results.size(); ++k) {
      if (results[k].isNone()) continue;
      if (observed) ++found.materialised;
      const Values fp64 = wide && k < wide->outputs.size() ? Values{wide->outputs[k]} : Values{};
      compare::Verdict v = compare::same_values({eager[k]}, {results[k]}, fp64, rules, {graph.value(returned[k].value).name});
      std::optional<compare::Verdict>& slot = found.nodes[returned[k].node];
      if (!slot || v.outcome > slot->outcome) slot = std::move(v);
    }
  }
  return found;
}

}  // namespace cutaway::repro
