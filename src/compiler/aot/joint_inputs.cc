#include "compiler/aot/joint_recording.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "compiler/aot/captured_facts.h"
#include "core/tensor/convert.h"
#include "core/trace/dispatch_keys.h"
#include "core/trace/fake_tensor.h"

namespace cutaway::aot {
namespace {

// Hands gradients on. Inputs come to the program through it, so that it may write to them: autograd forbids that to a leaf.
struct PassOn final : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override { return std::move(grads); }
  std::string name() const override { return "PassOn"; }
};

}  // namespace

trace::NodePointer pass_on(at::Tensor& given, const at::Tensor& leaf) {
  auto pass = trace::make_node<PassOn>();
  pass->set_next_edges(torch::autograd::collect_next_edges(leaf));
  torch::autograd::set_history(given, pass);
  return pass;
}

at::Tensor fake_like(const at::Tensor& t, at::IntArrayRef sizes, at::IntArrayRef strides) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(c10::DispatchKeySet(c10::DispatchKey::Functionalize).add(trace::kBelowKey));
  return trace::make_fake(at::empty_strided(sizes, strides, at::TensorOptions().dtype(t.scalar_type()).device(at::kMeta)), t.device());
}

base::Status JointRecording::make_primals(const std::set<size_t>& merged) {
  std::vector<at::Tensor> tensors(examples_.size());
  joint_.frozen_inputs.resize(examples_.size());
  primal_of_.assign(examples_.size(), kNone);
  for (size_t i = 0; i < examples_.size(); ++i) {
    ir::Type type = ir::Type::of(ir::Type::Kind::opaque);
    if (examples_[i].isTensor() && examples_[i].toTensor().defined()) {
      tensors[i] = examples_[i].toTensor();
      type = ir::Type::of(tensor::type_of(tensors[i]));
    } else if (examples_[i].isList() || examples_[i].isTuple() || examples_[i].isGenericDict()) {
      return Error{.what = "the input %" + captured_.value(captured_.inputs[i].value).name + " is a list: only tensors and plain values can be inputs", .place = captured_.name};
    } else {
      joint_.frozen_inputs[i] = examples_[i];
    }
    joint_.input_types.push_back(std::move(type));
  }
  std::vector<at::Tensor> fakes, plain(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined()) plain[i] = tensors[i].detach();   // the wrappers will require grad, not the fakes inside
  try {
    fakes = trace::make_fakes(plain);
  } catch (const c10::Error& e) {
    return Error{.what = "an input cannot be traced", .place = captured_.name, .because = e.what_without_backtrace()};
  }
  std::unordered_map<const c10::TensorImpl*, size_t> by_tensor;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    auto& group = sharing_[storage_of(tensors[i])];
    if (auto it = by_tensor.find(tensors[i].unsafeGetTensorImpl()); it != by_tensor.end()) {   // the same tensor twice
      joint_.primals[it->second].inputs.push_back(i);
      primal_of_[i] = it->second;
      continue;
    }
    if (!group.empty() && merged.contains(group.front())) {
      const size_t p = primal_of_[group.front()];
      joint_.primals[p].inputs.push_back(i);
      primal_of_[i] = p;
    } else {
      Primal primal;
      primal.inputs = {i};
      primal.requires_grad = tensors[i].requires_grad() && at::GradMode::is_enabled();
      primal.is_base = merged.contains(i);
      at::Tensor fake = fakes[i];
      if (primal.is_base) {
        const auto count = static_cast<int64_t>(tensors[i].storage().nbytes() / tensors[i].itemsize());
        fake = fake_like(tensors[i], {count}, {1});
      }
      primal_of_[i] = joint_.primals.size();
      joint_.primals.push_back(std::move(primal));
      wrapped_.push_back({.fake = fake});
    }
    by_tensor.emplace(tensors[i].unsafeGetTensorImpl(), primal_of_[i]);
    group.push_back(i);
  }
  shapes_ = std::move(tensors);
  return {};
}

void JointRecording::wrap_primals() {
  const bool may_write = options_.program || writes_to_arguments(captured_);
  for (size_t p = 0; p < wrapped_.size(); ++p) {
    Wrapped& w = wrapped_[p];
    w.leaf = w.given = wrap(w.fake);
    w.version = w.given.is_inference() ? 0 : static_cast<uint32_t>(w.given._version());
    if (!joint_.primals[p].requires_grad) continue;
    w.leaf.set_requires_grad(true);
    if (!may_write) continue;
    w.given = wrap(w.fake);
    w.history = pass_on(w.given, w.leaf);
    w.version = static_cast<uint32_t>(w.given._version());
  }
}

base::Status JointRecording::check_leaves() const {
  for (size_t p = 0; p < wrapped_.size(); ++p)
    if (joint_.primals[p].requires_grad && wrapped_[p].leaf.grad().defined())
      return Error{.what = "the program runs backward itself, which is refused", .place = captured_.name, .because = "what it adds to the gradients of its inputs would be lost"};
  return {};
}

base::Status JointRecording::check_constants() const {
  bool found = false;
  for (const at::Tensor& c : joint_.constants) {
    if (!c.requires_grad()) continue;
    found = true;
    if (wrapper_of(c.grad()) || trace::is_fake(c.grad())) c.mutable_grad().reset();
  }
  if (!found || !at::GradMode::is_enabled()) return {};
  return Error{.what = "the program uses a tensor that requires grad and is no input of it, which is refused", .place = captured_.name, .because = "its gradient would be lost", .hint = "make it an argument, or a parameter of the module"};
}

base::Status JointRecording::read_mutations(std::set<size_t>& again) {
  for (size_t p = 0; p < wrapped_.size(); ++p) {
    Primal& primal = joint_.primals[p];
    const at::Tensor& given = wrapped_[p].given;
    const at::Tensor now = inner_of(given);
    after_forward_.push_back(now);
    auto* wrapper = wrapper_of(given);
    const std::string name = "%" + captured_.value(captured_.inputs[primal.inputs.front()].value).name;
    if (wrapper->was_storage_changed() || wrapper->was_inductor_storage_resized())
      return Error{.what = "the program gives the input " + name + " another storage (set_, resize_), which is refused", .place = captured_.name};
    primal.writes_data = wrapper->has_data_mutation();
    primal.writes_metadata = wrapper->has_metadata_mutation();
    if (!primal.writes_metadata && (now.sizes() != wrapped_[p].fake.sizes() || now.strides() != wrapped_[p].fake.strides()))
      return Error{.what = "the program resizes the input " + name + ", which is refused", .place = captured_.name};
    if (primal.is_base)
      for (const size_t i : primal.inputs)
        if (wrapper_of(given_[i].toTensor())->has_metadata_mutation())
          return Error{.what = "the program changes the shape of the input " + name + " in place, which is refused", .place = captured_.name, .because = "the input shares its storage with another one"};
    if (!primal.writes_data && !primal.writes_metadata) continue;
    if (primal.writes_data && primal.writes_metadata && !shapes_[primal.inputs.front()].is_contiguous())
      return Error{.what = "the program writes to the input " + name + " and changes its shape, which is refused", .place = captured_.name, .because = "its memory has gaps or another order, which new values do not tell"};
    // Autograd saw none of the writes: grad mode was off, or they went through x.detach(). What it sees gives the input another history.
    primal.writes_under_no_grad = given.grad_fn() == wrapped_[p].history;
    if (!given.is_inference()) primal.write_count = static_cast<uint32_t>(given._version() - wrapped_[p].version);
    for (size_t i = 0; primal.is_base && i < primal.inputs.size(); ++i)   // views of the base, which may count on their own
      if (const at::Tensor& view = given_[primal.inputs[i]].toTensor(); !view.is_inference()) primal.write_count = std::max(primal.write_count, static_cast<uint32_t>(view._version()));
    primal.requires_grad_after = primal.writes_data && given.requires_grad() && !primal.writes_under_no_grad;
    if (primal.writes_metadata) {
      primal.new_sizes.assign(now.sizes().begin(), now.sizes().end());
      primal.new_strides.assign(now.strides().begin(), now.strides().end());
      primal.new_offset = now.storage_offset();
    }
    if (primal.writes_data) add_result({ForwardResult::For::mutated_primal, p, primal.requires_grad_after}, given, now);
    if (primal.is_base && primal.requires_grad_after)
      return Error{.what = "the program writes something that requires grad to the input " + name + ", which shares its storage with another one: refused", .place = captured_.name, .because = "they are one base without gradients"};
    if (primal.is_base) continue;
    const auto& group = sharing_.at(storage_of(shapes_[primal.inputs.front()]));
    if (group.size() < 2) continue;
    for (const size_t i : group) {
      const at::Tensor& t = shapes_[i];
      if (primal.writes_metadata || t.scalar_type() != shapes_[group.front()].scalar_type() || t.is_conj() || t.is_neg() || (t.requires_grad() && at::GradMode::is_enabled()))
        return Error{.what = "the inputs " + name + " and %" + captured_.value(captured_.inputs[i == primal.inputs.front() ? group.front() : i].value).name + " share a storage, and the program writes to it",
                     .place = captured_.name, .because = "this is possible only for inputs of one dtype that need no gradients and keep their shapes", .hint = "clone one of them before the call"};
    }
    again.insert(group.front());
  }
  return {};
}

}  // namespace cutaway::aot
