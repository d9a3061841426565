// Operators that raise only on real data: a matrix that has no inverse, an index out of range. While tracing they do not raise, so a block of
// the program's that handles the error has not run. When a graph raises, the frame is therefore run again, by CPython, from its beginning;
// that is right as long as the graph has changed nothing outside before. Where it would have, and a block may catch the error, the graph ends
// between the two (not where the user asked for one graph); random numbers are put back.
#include <string>
#include <unordered_set>

#include "compiler/capture/tensor_trace.h"
#include "compiler/capture/torch_calls.h"
#include "compiler/capture/trace.h"

namespace cutaway::capture {
namespace {

bool may_raise_on_data(const std::string& last) {
  static const std::unordered_set<std::string> names = {
      "cholesky", "cholesky_solve", "cholesky_inverse", "inverse", "inv", "solve", "lstsq", "svd", "svdvals", "eig", "eigh", "eigvals", "eigvalsh", "lu_factor", "ldl_factor", "pinv",
      "tensorinv", "tensorsolve", "embedding", "embedding_bag", "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "index_select",
      "index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "index_put", "index_put_", "take", "take_along_dim", "put", "put_", "nll_loss", "nll_loss2d",
      "cross_entropy", "binary_cross_entropy", "multi_margin_loss", "multilabel_margin_loss", "ctc_loss", "one_hot", "multinomial", "bernoulli", "bernoulli_", "normal", "normal_",
      "poisson", "binomial", "histc", "_assert_async", "_assert_tensor_metadata", "masked_scatter", "masked_scatter_", "segment_reduce"};
  return names.contains(last);
}

bool is_of_torch(PyTypeObject* t) {
  PyObject* module = t ? PyObject_GetAttrString(reinterpret_cast<PyObject*>(t), "__module__") : nullptr;
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  const bool is = text && std::string_view(text).starts_with("torch.");
  Py_XDECREF(module);
  PyErr_Clear();
  return is;
}

}  // namespace

// Blocks that only pass the exception on do not count: `finally`, modes of torch, and what the compiler itself wraps around things.
bool Trace::in_block() {
  for (const Frame* f = current_; f; f = f->caller) {
    const auto& instructions = f->code->instructions();
    int handler = instructions[f->pc].handler;
    for (int around = 0; handler >= 0 && around < 64; ++around) {
      const bytecode::Handler& h = f->code->handlers()[static_cast<size_t>(handler)];
      bool catches = false;
      for (size_t i = static_cast<size_t>(h.target); i < instructions.size(); ++i) {
        const bytecode::Op op = instructions[i].op;
        if (op == bytecode::Op::RERAISE) break;
        if (op == bytecode::Op::WITH_EXCEPT_START) {
          Value* exit = h.depth >= 1 && static_cast<size_t>(h.depth) <= f->stack.size() ? f->stack[static_cast<size_t>(h.depth) - 1] : nullptr;
          catches = !exit || exit->kind != Kind::method || !is_of_torch(type_of(body<Method>(exit).self));
          break;
        }
        if (op == bytecode::Op::CHECK_EXC_MATCH || op == bytecode::Op::CHECK_EG_MATCH || op == bytecode::Op::RETURN_VALUE || op == bytecode::Op::RETURN_CONST ||
            (op == bytecode::Op::POP_EXCEPT && (i + 1 >= instructions.size() || instructions[i + 1].op != bytecode::Op::RERAISE))) {
          catches = true;
          break;
        }
      }
      if (catches) return true;
      handler = instructions[static_cast<size_t>(h.target)].handler;
    }
  }
  return false;
}

void Trace::note_errors(const std::string& name, const Args& args, bool has_effects) {
  const std::string last = name.substr(name.rfind('.') + 1);
  const bool indexes = last == "__getitem__" || last == "__setitem__" || last == "getitem" || last == "setitem";
  bool may_raise = may_raise_on_data(last);
  if (indexes && args.count > 1) may_raise = contains_tensor(args[1]);
  if (may_raise && !may_raise_in_block && in_block()) {
    if (first_change != SIZE_MAX && !options.fullgraph) stop("may-raise", name + " may raise on real data inside a try or with block, and the graph has changed tensors of the program before");
    may_raise_in_block = true;
  }
  if (!has_effects) return;
  ++effect_nodes;
  const bool writes = last.back() == '_' || last.starts_with("__i") || last == "__setitem__" || last == "setitem" || last.starts_with("iadd") || last.starts_with("imul") || last.starts_with("isub");
  static const std::unordered_set<std::string> draws = {"bernoulli_", "normal_", "uniform_", "exponential_", "random_", "cauchy_", "geometric_", "log_normal_", "rrelu_", "dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"};
  const bool fills = last == "tensor" || last == "as_tensor";   // by hand, and detaches in place
  if ((!writes && !fills) || draws.contains(last)) ++torch_calls_->random_nodes;
  if (!writes && first_random == SIZE_MAX) first_random = node_count();
  if (first_change != SIZE_MAX) return;
  // A write to a tensor that the graph made itself shows nowhere.
  bool outside = false;
  for (Value* v : tensors_->inputs()) {
    const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
    outside = outside || fake.is_inference() || fake._version() > 0;
  }
  if (!outside) return;
  if (may_raise_in_block && !options.fullgraph) stop("may-raise", name + " changes a tensor of the program, and an operator before it may raise on real data inside a try or with block");
  first_change = node_count();
}

}  // namespace cutaway::capture
