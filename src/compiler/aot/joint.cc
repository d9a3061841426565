#include "compiler/aot/joint.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>

#include "compiler/aot/captured_facts.h"
#include "compiler/aot/joint_recording.h"
#include "compiler/aot/random_order.h"
#include "compiler/aot/simplify.h"
#include "core/exec/node_place.h"
#include "core/exec/region_state.h"
#include "core/trace/fake_tensor.h"

namespace cutaway::aot {
namespace {

// A graph does not depend on the autocast in which it happens to be compiled: what it needs is in its scopes.
exec::StateSetting without_autocast() {
  exec::StateSetting off;
  for (const auto device : {c10::kCPU, c10::kCUDA, c10::kXPU})
    if (at::autocast::is_autocast_enabled(device)) off.autocast.push_back({device, false, at::autocast::get_autocast_dtype(device), true});
  return off;
}

}  // namespace

Result<Joint> JointRecording::run(const std::set<size_t>& merged, std::set<size_t>& again) {
  if (examples_.size() != captured_.inputs.size())
    return Error{.what = std::to_string(examples_.size()) + " example inputs for a graph that has " + std::to_string(captured_.inputs.size()), .place = captured_.name};
  if (std::string why = why_writes_would_be_lost(captured_); !why.empty()) return Error{.what = "the program writes in place, which is refused", .place = captured_.name, .because = std::move(why)};
  if (!options_.program) {
    CUTAWAY_TRY_ASSIGN(program_, prepare());
  }
  CUTAWAY_TRY(make_primals(merged));
  try {
    return record(again);
  } catch (const c10::Error& e) {
    return refusal(e.what_without_backtrace());
  } catch (const std::exception& e) {   // of Python: a kernel of the program's, on fakes
    if (options_.program) throw;   // the program itself raised
    return refusal(e.what());
  }
}

Result<Joint> JointRecording::record(std::set<size_t>& again) {
  const debug::Phase phase(options_.sink, "aot", "joint");
  struct End {
    const std::function<void()>& end;
    ~End() { if (end) end(); }
  } const end{options_.program_end};
  const exec::StateScope autocast(without_autocast());
  struct WithoutAnomalyMode {   // it looks for NaN, and a failure would be printed as the program's
    bool on = torch::autograd::AnomalyMode::is_enabled(), nan = torch::autograd::AnomalyMode::should_check_nan();
    WithoutAnomalyMode() { torch::autograd::AnomalyMode::set_enabled(false); }
    ~WithoutAnomalyMode() { torch::autograd::AnomalyMode::set_enabled(on, nan); }
  } const anomaly;
  const trace::FakeMode fakes;
  check_writes();
  trace::RecordOptions record;
  record.where = trace::Where::below_autograd;
  record.graph_name = options_.name;
  std::optional<trace::Recorder> recorder;
  record.location = [this] { return here(); };
  if (!options_.program)
    record.place = [this, &recorder] {
      if (!in_derivative_) sums_.insert(recorder->node_count());
      return uint64_t{line()} + 1;
    };
  record.sink = options_.sink;
  std::vector<IValue> given;
  for (size_t p = 0; p < wrapped_.size(); ++p) {
    const ir::Input& input = captured_.inputs[joint_.primals[p].inputs.front()];
    std::string name = captured_.value(input.value).name;
    if (joint_.primals[p].is_base) name += "_base";
    record.input_names.push_back({std::move(name), input.kind, input.qualified_name});
    given.emplace_back(wrapped_[p].fake);
  }
  recorder.emplace(std::move(given), std::move(record));
  std::vector<IValue> written;
  size_t first_of_backward = 0;
  {
    const Functionalized functional;
    wrap_primals();
    std::vector<IValue> outputs = run_forward();
    CUTAWAY_TRY(check_leaves());
    CUTAWAY_TRY(read_mutations(again));
    if (!again.empty()) return Joint{};
    CUTAWAY_TRY(read_outputs(outputs));
    for (const auto& value : result_values_) written.emplace_back(value);
    first_of_backward = recorder->node_count();
    CUTAWAY_TRY(run_backward(*recorder, written));
  }
  CUTAWAY_TRY_ASSIGN(joint_.graph, recorder->finish(written));
  in_derivative_ = true;
  for (const size_t n : sums_)
    if (n < joint_.graph.body.nodes.size())
      for (const ir::ValueId r : joint_.graph.body.nodes[n].results)
        if (r != ir::kNoValue) joint_.sums.insert(joint_.graph.value(r).name);
  CUTAWAY_TRY(check_randomness(first_of_backward));
  joint_.constants = recorder->constants();
  if (options_.program) {
    CUTAWAY_TRY(check_constants());
  }
  recorder.reset();
  for (const auto& [output, steps] : views_) {
    const OutputRule& rule = joint_.outputs[output];
    const at::Tensor base = rule.through ? inner_of(output_wrappers_[*rule.through]) : rule.from == OutputRule::From::view_of_primal ? wrapped_[rule.index].fake : bases_.at(rule.index);
    CUTAWAY_TRY_ASSIGN(joint_.outputs[output].view, record_view(base, steps, options_.name + "_view_" + std::to_string(output)));
  }
  std::stable_partition(joint_.graph.inputs.begin() + static_cast<std::ptrdiff_t>(wrapped_.size()), joint_.graph.inputs.end(),
                        [](const ir::Input& i) { return i.kind == ir::InputKind::constant; });
  CUTAWAY_TRY(keep_memory_order(joint_.graph));
  simplify(joint_.graph);
  CUTAWAY_TRY(check_functional());
  return std::move(joint_);
}

base::Status JointRecording::check_functional() {
  for (const ir::Node& n : joint_.graph.body.nodes) {
    const auto* schema = exec::dispatcher_schemas().find(n.target);
    if (schema && std::any_of(schema->args.begin(), schema->args.end(), [](const ir::Schema::Arg& a) { return a.is_written; }))
      return exec::at_node(Error{.what = n.target + " writes to an argument and has no functional form that torch knows: refused"}, joint_.graph, n);
  }
  return {};
}

Error JointRecording::refusal(const std::string& because) const {
  if (!program_) return {.what = "the program cannot be differentiated ahead of time", .place = captured_.name, .because = because};
  const int64_t position = exec::Program::error_position();
  const ir::Node* node = position < 0 ? nullptr : exec::op_at(program_->graph(), static_cast<size_t>(position));
  Error e{.what = node ? node->target + " cannot be differentiated ahead of time" : "the backward of this graph cannot be recorded", .place = captured_.name, .because = because};
  return node ? exec::at_node(std::move(e), program_->graph(), *node) : e;
}

std::vector<size_t> order_views(const std::vector<OutputRule>& rules) {
  std::vector<size_t> order;
  std::vector<bool> done(rules.size(), false);
  const std::function<void(size_t)> add = [&](size_t o) {
    if (done[o] || !rules[o].view) return;
    done[o] = true;
    if (rules[o].through) add(*rules[o].through);
    order.push_back(o);
  };
  for (size_t o = 0; o < rules.size(); ++o) add(o);
  return order;
}

base::Result<Joint> record_joint(const ir::Graph& captured, const std::vector<IValue>& examples, const JointOptions& options) {
  std::set<size_t> merged, again;
  CUTAWAY_TRY_ASSIGN(Joint joint, JointRecording(captured, examples, options).run(merged, again));
  while (!again.empty()) {   // inputs that share a storage are written to: once more, with one base for them
    if (std::includes(merged.begin(), merged.end(), again.begin(), again.end())) return Error{.what = "inputs that share a storage cannot be told apart", .place = captured.name};
    merged.insert(again.begin(), again.end());
    again.clear();
    CUTAWAY_TRY_ASSIGN(joint, JointRecording(captured, examples, options).run(merged, again));
  }
  return joint;
}

}  // namespace cutaway::aot
