// torch.func: vmap, grad, jvp and what is made of them. Their Python is inlined; the levels that it enters are entered for real, and left when the
// trace ends early. See torch_calls.h.
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/DispatchKeySet.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <string_view>

#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "core/trace/fake_tensor.h"

namespace cutaway::capture {

bool TorchCalls::is_wrapper(const at::Tensor& t) {
  return t.defined() && t.key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper}));
}

bool TorchCalls::in_vmap_alone() const {
  if (levels_.empty()) return false;
  for (const auto& layer : at::functorch::getDynamicLayerStack()) if (layer.key() != at::functorch::TransformType::Vmap) return false;
  for (const Level level : levels_) if (level != Level::layer) return false;
  return true;
}

bool TorchCalls::is_transformed(const Args& args) {
  if (all_bare_) return true;
  if (!met_transforms_ && !met_shells_) return false;
  if (in_transform()) return true;
  const auto wraps = [&](Value* v, const auto& self, int depth) -> bool {
    values.force(v);
    if (v->kind == Kind::tensor) return is_wrapper(unwrap_tensor(body<Tensor>(v).fake)) || is_shell(v);
    if (depth < 3 && (v->kind == Kind::list || v->kind == Kind::tuple))
      for (Value* i : values.items(v)) if (self(i, self, depth + 1)) return true;
    return false;
  };
  for (size_t i = 0; i < args.count; ++i) if (wraps(args[i], wraps, 0)) return true;
  for (size_t i = 0; i < args.keyword_count; ++i) if (wraps(args.keywords[i].second, wraps, 0)) return true;
  return false;
}

bool TorchCalls::may_inline(PyCodeObject* code) {
  const char* name = PyUnicode_AsUTF8(code->co_filename);
  if (!name) { PyErr_Clear(); return false; }
  const std::string_view file = name, function = PyUnicode_AsUTF8(code->co_qualname);
  for (const char* own : {"/torch/_functorch/apis.py", "/torch/_functorch/vmap.py", "/torch/_functorch/eager_transforms.py", "/torch/_functorch/predispatch.py"})
    if (file.ends_with(own)) return true;
  // What torch does around operators that take functions; where the graph would end inside it ends before (call_whole).
  struct Part { const char *file, *function; };   // the function and what is inside it; "" for all
  for (const auto& [own, part] : {Part{"/scan.py", "scan"}, {"/scan.py", "wrap_combine_fn_flat"}, {"/map.py", "map"}, {"/associative_scan.py", ""}, {"/utils.py", "_maybe_compile_and_run_fn"},
                                  {"/flex_attention.py", "sdpa_dense"}, {"/flex_attention.py", "math_attention"}, {"/flex_attention.py", "_math_attention_inner"},
                                  {"/invoke_subgraph.py", "mark_compile_region.<locals>"}, {"/foreach_map.py", "foreach_map"}})
    if (file.ends_with(std::string("/torch/_higher_order_ops") + own) && (function == part || !*part || function.starts_with(std::string(part) + "."))) return true;
  // It only sets a variable, which the trace sees.
  if (file.ends_with("/torch/_dynamo/decorators.py") && (function == "error_on_graph_break" || function.starts_with("ErrorOnGraphBreak"))) return true;
  return file.ends_with("/torch/utils/checkpoint.py") && function.starts_with("checkpoint_sequential");
}

bool TorchCalls::call_transform(const std::string& name, PyObject* callable, const Args& args, Value** result) {
  static const std::string module = "torch._C._functorch.";
  const std::string last = name.substr(name.rfind('.') + 1);
  const bool dual = last == "_enter_dual_level" || last == "_exit_dual_level";
  const bool forward = last == "_make_dual" || last == "_unpack_dual" || last == "_set_fwd_grad_enabled" || last == "_is_fwd_grad_enabled";
  // Outside of a level that the captured code has entered, tensors keep their tangents behind the graph.
  if (!in_transform() && (last == "_make_dual" || last == "_unpack_dual")) stop("torch-transform", "forward-mode differentiation is used directly (" + name + ")", "use torch.func.jvp");
  if (name.compare(0, module.size(), module) != 0 && !dual && !(forward && in_transform())) return false;
  static const std::unordered_set<std::string> known = {"_vmap_increment_nesting", "_vmap_decrement_nesting", "_grad_increment_nesting", "_grad_decrement_nesting", "_jvp_increment_nesting",
      "_jvp_decrement_nesting", "_add_batch_dim", "_remove_batch_dim", "_wrap_for_grad", "_unwrap_for_grad", "_unwrap_batched", "get_inplace_requires_grad_allowed",
      "set_inplace_requires_grad_allowed", "is_batchedtensor", "is_gradtrackingtensor", "is_functorch_wrapped_tensor", "is_legacy_batchedtensor", "get_unwrapped", "maybe_get_bdim",
      "maybe_get_level", "unwrap_if_dead", "maybe_current_level"};
  if (!dual && !forward && !known.contains(last)) return false;
  const bool enters = last == "_enter_dual_level" || last.ends_with("_increment_nesting"), leaves = last == "_exit_dual_level" || last.ends_with("_decrement_nesting");
  const Level level = dual ? Level::dual : Level::layer;
  if (leaves && (levels_.empty() || levels_.back() != level)) return false;
  refuse_subclasses("a transform is entered");
  if (in_checkpoint_ && last == "_grad_increment_nesting") stop("checkpoint", "a gradient transform is entered inside a checkpoint, which torch does not allow");
  *result = run_bare(callable, name, args);
  if (!*result) return true;
  met_transforms_ = true;
  if (enters && levels_.empty()) first_level_at_ = frame_stack.step_now();
  if (enters) levels_.push_back(level);
  if (leaves) levels_.pop_back();
  return true;
}

void TorchCalls::leave_transforms() {
  while (!levels_.empty()) {
    if (levels_.back() == Level::layer) at::functorch::popDynamicLayerAndDeleteMetadata();
    else torch::autograd::ForwardADLevel::release_idx(0);
    levels_.pop_back();
  }
}

Value* TorchCalls::load_decompositions(Value* f, const Args&) {   // what the first vmap of a process registers
  PyObject* r = PyObject_CallNoArgs(f->real);
  if (!r) return leaves.leaf_raised("torch._functorch.predispatch.lazy_load_decompositions");
  Py_DECREF(r);
  return values.none();
}

Value* TorchCalls::run_bare(PyObject* callable, const std::string& name, const Args& args) {
  PyObject* positional = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  for (size_t i = 0; i < args.count; ++i) PyTuple_SET_ITEM(positional, static_cast<Py_ssize_t>(i), leaves.to_python(args[i]));
  PyObject* keywords = args.keyword_count ? values.keep(PyDict_New()) : nullptr;
  for (size_t i = 0; i < args.keyword_count; ++i) {
    PyObject* x = leaves.to_python(args.keywords[i].second);
    PyDict_SetItem(keywords, args.keywords[i].first, x);
    Py_DECREF(x);
  }
  return leaves.finish_bare(callable, name, positional, keywords);
}

}  // namespace cutaway::capture
