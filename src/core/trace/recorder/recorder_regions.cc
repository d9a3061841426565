// Regions of a recording: captured calls, and the scopes that grad mode, inference mode and autocast make.
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "core/tensor/convert.h"
#include "core/trace/recorder/recorder_state.h"

namespace cutaway::trace {

ir::RegionState Recorder::State::difference() const {
  ir::RegionState s;
  if (const bool grad = c10::GradMode::is_enabled(); grad != grad_at_start) s.grad_enabled = grad;
  if (const bool inference = c10::InferenceMode::is_enabled(); inference != inference_at_start) s.inference_mode = inference;
  for (const auto type : kAutocastDevices)
    if (at::autocast::is_autocast_enabled(type))
      s.autocast.push_back({tensor::from_aten(c10::Device(type)), true, tensor::from_aten(at::autocast::get_autocast_dtype(type)), at::autocast::is_autocast_cache_enabled()});
    else if (autocast_at_start & (1u << static_cast<unsigned>(type)))   // left inside the graph
      s.autocast.push_back({tensor::from_aten(c10::Device(type)), false, tensor::from_aten(at::autocast::get_autocast_dtype(type)), at::autocast::is_autocast_cache_enabled()});
  return s;
}

void Recorder::State::enter_state() {
  // Most operators run in the state at the start, and in no scope.
  if (frames.size() == 1 && c10::GradMode::is_enabled() == grad_at_start && c10::InferenceMode::is_enabled() == inference_at_start && autocast_at_start == 0 &&
      c10::impl::tls_local_dispatch_key_set().excluded_.has_all(c10::autocast_dispatch_keyset))
    return;
  auto state = difference();
  const bool in_scope = frames.size() > 1 && frames.back().node.kind == ir::Node::Kind::scope;
  if (in_scope && frames.back().node.state == state) return;
  close_scope();
  const ir::RegionState* around = frames.size() > 1 ? &frames.back().node.state : nullptr;   // of the call that is open
  if (around ? *around == state : state.is_default()) return;
  if (around && !around->is_default()) {   // absent means "as around": say what the start was
    if (!state.grad_enabled) state.grad_enabled = grad_at_start;
    if (!state.inference_mode && around->inference_mode) state.inference_mode = inference_at_start;
    for (const auto& a : around->autocast)
      if (std::none_of(state.autocast.begin(), state.autocast.end(), [&](const auto& b) { return b.device == a.device; })) {
        state.autocast.push_back(a);
        state.autocast.back().enabled = false;
      }
  }
  Frame frame;
  frame.node.kind = ir::Node::Kind::scope;
  frame.node.state = std::move(state);
  frame.region = static_cast<uint32_t>(regions.size());
  regions.push_back({frames.back().region, 0, true, false, {}});
  frames.push_back(std::move(frame));
}

void Recorder::State::close_scope() {
  if (frames.size() == 1 || frames.back().node.kind != ir::Node::Kind::scope) return;
  Frame frame = std::move(frames.back());
  frames.pop_back();
  frame.node.regions.emplace_back();
  frame.node.regions.front().nodes = std::move(frame.nodes);
  auto& region = regions[frame.region];
  region.is_open = false;
  region.position = frames.back().nodes.size();
  // What a call's frame must undo includes what its scopes did.
  if (frames.size() > 1) frames.back().rebound.insert(frames.back().rebound.end(), frame.rebound.begin(), frame.rebound.end());
  push(std::move(frame.node));
}

void Recorder::State::open_call(ir::Node node) {
  close_scope();
  if (options.where == Where::above_autograd) node.state = difference();   // a Python call says it itself: its region needs no scope
  Frame frame;
  frame.region = static_cast<uint32_t>(regions.size());
  regions.push_back({frames.back().region, 0, true, true, node.target});
  frame.node = std::move(node);
  frames.push_back(std::move(frame));
}

void Recorder::State::drop_call() {
  close_scope();
  TORCH_CHECK(frames.size() > 1, "a call is taken back that was not begun");
  Frame frame = std::move(frames.back());
  frames.pop_back();
  regions[frame.region].is_open = false;
  // Tensors that it met first are unknown again: should the program keep one, a later use derives it or makes it a constant.
  for (auto it = frame.rebound.rbegin(); it != frame.rebound.rend(); ++it) {
    auto* known = tensors.find(it->first);
    if (!known) continue;
    if (it->second != ir::kNoValue) known->id = it->second;
    else tensors.forget(it->first);
  }
}

void Recorder::State::close_call(const std::vector<c10::IValue>& results, const std::vector<int32_t>& returns) {
  close_scope();
  TORCH_CHECK(frames.size() > 1, "end_call without begin_call");
  ir::Block block;
  std::vector<std::pair<c10::IValue, ir::Argument>> yielded;
  for (const auto& r : results) {
    auto argument = write(r);
    yielded.emplace_back(r, argument);
    block.outputs.push_back(std::move(argument));
  }
  Frame frame = std::move(frames.back());
  frames.pop_back();
  block.nodes = std::move(frame.nodes);
  frame.node.regions.push_back(std::move(block));
  frame.node.returns = returns;
  auto& region = regions[frame.region];
  region.is_open = false;
  region.position = frames.back().nodes.size();
  // Tensors that the call changed in place go back to their value from before, which is the same tensor when the graph runs.
  for (auto it = frame.rebound.rbegin(); it != frame.rebound.rend(); ++it) {
    auto* known = tensors.find(it->first);
    if (!known) continue;
    if (it->second != ir::kNoValue) known->id = it->second;
    else if (known->is_derived) tensors.forget(it->first);
  }
  const std::string& target = frame.node.target;   // "torch.nn.functional.gelu" gives %gelu
  const std::string name = target.substr(target.rfind('.') + 1);
  for (const auto& [value, argument] : yielded) {
    const auto id = new_value(name, value);
    if (const auto* ref = argument.as<ir::ValueRef>()) {
      graph.values[id].type = graph.values[ref->id].type;
      from_inputs[id] = from_inputs[ref->id];
    }
    frame.node.results.push_back(id);
    if (value.isTensor() && value.toTensor().defined()) bind(value.toTensor(), id);
    if (const auto* number = UnknownNumber::of(value))
      if (const auto known = numbers.find(number); known != numbers.end()) known->second.second = id;
  }
  push(std::move(frame.node));
}

}  // namespace cutaway::trace
