#include "diagnosis/repro/cumulative.h"

#include <algorithm>

#include "diagnosis/compare/same_values.h"

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
  compare::Options rules = meter.rules();
  rules.ignore_non_fp = trial.accuracy == "accuracy";   // a mask may flip where its input is off by a rounding
  bool any_bad = false;
  for (const std::vector<Returned>& returned : copies) {
    ir::Graph copy = graph;
    copy.body.outputs.clear();
    for (const Returned& r : returned) copy.body.outputs.emplace_back(ir::ValueRef{r.value});
    const Reference reference = meter.reference(copy, inputs, Meter::Run::forward);
    if (!reference.problem.empty()) {
      remarks.push_back("errors along the graph are not known: eager cannot run it with every value returned: " + reference.problem);
      return found;
    }
    const Look look = meter.look(copy, inputs, reference, Meter::Compile::once, Meter::Run::forward);
    if (look.exception || !look.problem.empty()) {
      remarks.push_back("errors along the graph are not known: the backend cannot run it with every value returned: " + (look.exception ? look.verdict.reason : look.problem));
      return found;
    }
    for (size_t k = 0; k < returned.size() && k < look.results.size(); ++k) {
      const Values fp64 = k < reference.fp64.size() ? Values{reference.fp64[k]} : Values{};
      compare::Verdict v = compare::same_values({reference.eager[k]}, {look.results[k]}, fp64, rules, {graph.value(returned[k].value).name});
      any_bad |= meter.is_bad(v);
      std::optional<compare::Verdict>& slot = found.nodes[returned[k].node];
      if (!slot || v.outcome > slot->outcome) slot = std::move(v);
    }
  }
  if (!any_bad) remarks.push_back("no value of the forward is wrong when every value is returned: the failure needs values that are fused away, is in the gradients, or does not always show");
  return found;
}

}  // namespace cutaway::repro
