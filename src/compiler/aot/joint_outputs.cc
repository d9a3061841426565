#include "compiler/aot/joint_recording.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "compiler/aot/captured_facts.h"
#include "core/trace/autograd_function.h"

namespace cutaway::aot {

size_t JointRecording::add_result(ForwardResult result, const at::Tensor& wrapper, const at::Tensor& inner) {
  if (result.what != ForwardResult::For::mutated_primal && !wrapper.is_inference()) result.write_count = static_cast<uint32_t>(wrapper._version());
  joint_.results.push_back(result);
  result_wrappers_.push_back(wrapper);
  result_values_.push_back(inner);
  return joint_.results.size() - 1;
}

base::Status JointRecording::read_outputs(const std::vector<IValue>& outputs) {
  std::unordered_map<const c10::StorageImpl*, size_t> primals;
  std::unordered_map<const c10::StorageImpl*, std::vector<size_t>> sharing;
  for (size_t p = 0; p < wrapped_.size(); ++p) primals.emplace(storage_of(wrapped_[p].given), p);
  for (size_t o = 0; o < outputs.size(); ++o)
    if (outputs[o].isTensor() && wrapper_of(outputs[o].toTensor())) sharing[storage_of(outputs[o].toTensor())].push_back(o);
  std::unordered_map<const c10::TensorImpl*, size_t> seen;
  std::unordered_map<const c10::StorageImpl*, size_t> base_results;
  // What several outputs are made from is the one that carries gradients, where one does: what was detached from it shares its memory alone.
  std::unordered_map<const c10::StorageImpl*, at::Tensor> bases;
  for (const auto& [storage, which] : sharing)
    for (const size_t o : which)
      if (const at::Tensor& out = outputs[o].toTensor(); out.requires_grad()) bases.try_emplace(storage, out.is_view() ? at::Tensor(out._base()) : out);
  // Without gradients: a view stays a view of its base, since programs ask (_base, versions), and the base among the outputs is the very one.
  std::unordered_map<const c10::TensorImpl*, size_t> plain_bases;
  for (const auto& [storage, which] : sharing)
    if (!any_requires_grad(outputs, which))
      for (const size_t o : which)
        if (const at::Tensor& out = outputs[o].toTensor(); out.is_view()) plain_bases.emplace(out._base().unsafeGetTensorImpl(), o);
  for (size_t o = 0; o < outputs.size(); ++o) {
    OutputRule rule;
    output_wrappers_.push_back(outputs[o].isTensor() ? outputs[o].toTensor() : at::Tensor());
    if (!outputs[o].isTensor() || !outputs[o].toTensor().defined()) {
      rule.from = OutputRule::From::literal;
      rule.literal = outputs[o].isTensor() ? IValue() : outputs[o];
      joint_.outputs.push_back(std::move(rule));
      continue;
    }
    const at::Tensor& out = outputs[o].toTensor();
    rule.requires_grad = out.requires_grad();
    const bool is_plain_view = wrapper_of(out) && out.is_view() && plain_bases.contains(out._base().unsafeGetTensorImpl());
    if (const auto* view = out.is_view() ? torch::autograd::impl::get_view_autograd_meta(out) : nullptr;
        view && view->has_bw_view() && out.requires_grad() && view->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT &&
        view->get_creation_meta() != torch::autograd::CreationMeta::IN_CUSTOM_FUNCTION)
      return Error{.what = "output " + std::to_string(o) + " is one of several views that an operator gave, or a view that was made without gradients: refused", .place = captured_.name,
                   .because = "eager refuses writes to it, and a view that is rebuilt takes them"};
    if (const auto [earlier, fresh] = seen.emplace(out.unsafeGetTensorImpl(), o); !fresh) {
      rule = joint_.outputs[earlier->second];
      if (rule.from != OutputRule::From::primal) rule = {OutputRule::From::output, earlier->second, rule.requires_grad, {}, {}};
    } else if (const auto p = wrapper_of(out) ? primals.find(storage_of(out)) : primals.end(); p != primals.end()) {
      CUTAWAY_TRY(from_primal(rule, o, out, p->second));
    } else if (wrapper_of(out) && sharing.at(storage_of(out)).size() > 1 && takes_data(captured_)) {
      return Error{.what = "output " + std::to_string(o) + " may be x.data of another output: refused", .place = captured_.name, .because = "it has a version of its own, and a view that is rebuilt shares that of x"};
    } else if (wrapper_of(out) && sharing.at(storage_of(out)).size() > 1 && any_requires_grad(outputs, sharing.at(storage_of(out)))) {
      CUTAWAY_TRY(from_shared(rule, o, out, bases.at(storage_of(out)), base_results));
    } else if (wrapper_of(out) && out.requires_grad() && out.is_view() && sharing.at(storage_of(out)).size() == 1 && from_shared(rule, o, out, out, base_results).ok()) {
      // A view of something that does not leave: it stays one, since eager tells (_base, detach_(), writes to it).
    } else if (wrapper_of(out) && (is_plain_view || plain_bases.contains(out.unsafeGetTensorImpl())) && from_shared(rule, o, out, is_plain_view ? at::Tensor(out._base()) : out, base_results).ok()) {
      // The same without gradients.
    } else if (is_plain_view && writes_to_arguments(captured_)) {
      return Error{.what = "output " + std::to_string(o) + " is a view that cannot be rebuilt, in a program that writes to tensors: refused", .place = captured_.name, .because = "it would be no view of what it is a view of in eager"};
    } else {
      const at::Tensor inner = inner_of(out);   // a write to a view of it shows from here on
      if (wrapper_of(out) && (out.is_conj() != inner.is_conj() || out.is_neg() != inner.is_neg()))
        return Error{.what = "output " + std::to_string(o) + " would be conjugated or negated lazily, unlike eager's: refused", .place = captured_.name, .because = "the program wrote to it through a conjugated or negated view"};
      CUTAWAY_TRY(check_layout(o, inner));
      rule.index = add_result({ForwardResult::For::output, o, rule.requires_grad}, out, inner);
    }
    joint_.outputs.push_back(std::move(rule));
  }
  return {};
}

bool JointRecording::any_requires_grad(const std::vector<IValue>& outputs, const std::vector<size_t>& which) {
  return std::any_of(which.begin(), which.end(), [&](size_t o) { return outputs[o].toTensor().requires_grad(); });
}

base::Status JointRecording::from_primal(OutputRule& rule, size_t o, const at::Tensor& out, size_t p) {
  const Primal& primal = joint_.primals[p];
  for (const size_t i : primal.inputs)
    if (out.is_same(given_[i].toTensor())) {
      rule.from = OutputRule::From::primal;
      rule.index = i;
      return {};
    }
  if (takes_data(captured_)) return Error{.what = "output " + std::to_string(o) + " may be x.data of an input: refused", .place = captured_.name, .because = "it has a version of its own, and a view that is rebuilt shares the input's"};
  if (primal.writes_metadata)
    return Error{.what = "output " + std::to_string(o) + " is a view of the input %" + captured_.value(captured_.inputs[primal.inputs.front()].value).name + ", whose shape the program changes in place: refused", .place = captured_.name};
  CUTAWAY_TRY(check_views_alone(o, out, wrapped_[p].given));
  inner_of(out);
  rule.from = OutputRule::From::view_of_primal;
  rule.index = p;
  views_.emplace_back(o, wrapper_of(out)->view_metas());
  return {};
}

// An operator that writes keeps the layout of what it writes to; its functional form may choose another one. A view of the output, or a question about it, would show.
base::Status JointRecording::check_layout(size_t o, const at::Tensor& out) const {
  const auto is_laid_out = [](const ir::TensorType& type, const at::Tensor& t) {
    if (type.strides.size() != static_cast<size_t>(t.dim()) || type.sizes.size() != type.strides.size()) return true;   // not told
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (type.sizes[d].is_symbolic() || type.strides[d].is_symbolic() || type.sizes[d].value() != t.size(d)) return true;
      if (t.size(d) > 1 && type.strides[d].value() != t.stride(d)) return false;
    }
    return true;
  };
  if (options_.program || out.numel() == 0 || !writes_to_arguments(captured_)) return {};
  for (size_t i = 0; i < captured_.inputs.size(); ++i)   // what was captured may be for inputs of another layout
    if (const ir::Type& type = captured_.value(captured_.inputs[i].value).type; type.is_tensor() && examples_[i].isTensor() && !is_laid_out(type.tensor, examples_[i].toTensor())) return {};
  std::vector<ir::ValueId> flat;
  for (const ir::Argument& a : captured_.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { flat.push_back(id); });
  const ir::Type& type = captured_.value(flat[o]).type;
  if (!type.is_tensor() || is_laid_out(type.tensor, out)) return {};
  return Error{.what = "output " + std::to_string(o) + " would be laid out differently from eager's, by the functional form of an operator that writes: refused", .place = captured_.name};
}

base::Status JointRecording::check_views_alone(size_t o, const at::Tensor& out, const at::Tensor& base) const {
  if (!out.requires_grad() || !trace::has_autograd_function(out, base)) return {};
  return Error{.what = "output " + std::to_string(o) + " shares its storage with an input or another output, and an autograd function with a backward of its own made it: refused", .place = captured_.name, .hint = "clone it before it is returned"};
}

base::Status JointRecording::from_shared(OutputRule& rule, size_t o, const at::Tensor& out, const at::Tensor& shared, std::unordered_map<const c10::StorageImpl*, size_t>& base_results) {
  const at::Tensor base = !out.requires_grad() ? shared : out.is_view() ? at::Tensor(out._base()) : out;
  CUTAWAY_TRY(check_views_alone(o, out, base));
  const auto* wrapper = wrapper_of(base);
  if (!wrapper || storage_of(base) != storage_of(out))
    return Error{.what = "output " + std::to_string(o) + " shares its storage with another output in a way that cannot be rebuilt", .place = captured_.name, .because = "it was made a view outside of autograd"};
  const at::Tensor inner = inner_of(base);
  CUTAWAY_TRY(check_layout(o, inner_of(out)));
  const ViewSteps& whole = wrapper_of(out)->view_metas();
  const ViewSteps& first = wrapper->view_metas();
  if (whole.size() < first.size() || !std::equal(first.begin(), first.end(), whole.begin()))
    return Error{.what = "output " + std::to_string(o) + " shares its storage with another output in a way that cannot be rebuilt", .place = captured_.name};
  const auto [known, fresh] = base_results.emplace(storage_of(out), 0);
  if (fresh) {
    known->second = add_result({ForwardResult::For::base, o, base.requires_grad()}, base, inner);
  } else if (!result_wrappers_[known->second].is_same(base)) {
    return Error{.what = "outputs " + std::to_string(joint_.results[known->second].index) + " and " + std::to_string(o) + " share a storage in a way that cannot be rebuilt", .place = captured_.name,
                 .because = "autograd holds them to be views of different tensors"};
  }
  rule.from = OutputRule::From::view_of_result;
  rule.index = known->second;
  bases_.emplace(known->second, inner);
  views_.emplace_back(o, ViewSteps(whole.begin() + static_cast<std::ptrdiff_t>(first.size()), whole.end()));
  return {};
}

}  // namespace cutaway::aot
