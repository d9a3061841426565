// Operators that raise only on real data: a matrix that has no inverse, an index out of range. While tracing they do not raise, so a block of
// the program's that handles the error has not run. When a graph raises, the frame is therefore run again, by CPython, from its beginning;
// that is right as long as the graph has changed nothing outside before. Where it would have, and a block may catch the error, the graph ends
// between the two (not where the user asked for one graph); random numbers are put back.
//
// And operators that raise while tracing, which they may do on fake tensors alone.
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

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

// Whether a handler may end an exception: anything but passing it on. Every way through it is followed, but for exceptions of its own.
static bool may_handle(Trace& t, const Frame& f, const bytecode::Handler& handler) {
  using bytecode::Op;
  const auto& code = f.code->instructions();
  const auto first = static_cast<size_t>(handler.target);
  std::vector<size_t> ways{first};
  std::vector<bool> seen(code.size());
  while (!ways.empty()) {
    size_t i = ways.back();
    ways.pop_back();
    for (; i < code.size() && !seen[i]; ++i) {
      seen[i] = true;
      switch (code[i].op) {
        case Op::RERAISE: case Op::RAISE_VARARGS: i = code.size() - 1; continue;
        case Op::CHECK_EXC_MATCH: case Op::CHECK_EG_MATCH: case Op::RETURN_VALUE: case Op::RETURN_CONST: case Op::YIELD_VALUE: return true;
        case Op::POP_EXCEPT:
          if (i + 1 >= code.size() || code[i + 1].op != Op::RERAISE) return true;
          continue;
        case Op::WITH_EXCEPT_START: {   // modes of torch let it pass
          const size_t depth = static_cast<size_t>(handler.depth);
          Value* exit = i <= first + 1 && depth >= 1 && depth <= f.stack.size() ? f.stack[depth - 1] : nullptr;
          if (!exit || exit->kind != Kind::method || !is_of_torch(t.type_of(body<Method>(exit).self))) return true;
          i = code.size() - 1;
          continue;
        }
        case Op::JUMP: i = static_cast<size_t>(code[i].target) - 1; continue;
        default:
          if (code[i].target >= 0) ways.push_back(static_cast<size_t>(code[i].target));
      }
    }
  }
  return false;
}

// Blocks that only pass the exception on do not count: `finally`, modes of torch, and what the compiler itself wraps around things.
bool Trace::in_block() {
  for (const Frame* f = current_; f; f = f->caller) {
    const auto& instructions = f->code->instructions();
    int handler = instructions[f->pc].handler;
    for (int around = 0; handler >= 0 && around < 64; ++around) {
      const bytecode::Handler& h = f->code->handlers()[static_cast<size_t>(handler)];
      if (may_handle(*this, *f, h)) return true;
      handler = instructions[static_cast<size_t>(h.target)].handler;
    }
  }
  return false;
}

// An error of torch on fake tensors may be one of fake tensors alone. Where a block of the program may handle it, CPython runs the operator, and the block
// sees what comes of that. Where none does the frame runs as it is, and the session looks whether eager raises as well; if not, the next capture ends here, too.
void Trace::end_before_doubted(const std::string& by) {
  const bool handled = in_block();
  if (!handled && !options.doubts_errors) return;
  const std::string what = by + " raised " + text_of_error(raised_) + " while it was traced";
  raised_ = nullptr;
  stop("raises-while-traced", what + (handled ? ", inside a block that may handle it" : ", and eager did not"), handled ? "check the arguments before the call instead of handling what it raises" : "");
}

void Trace::note_errors(const std::string& name, const Args& args, bool has_effects) {
  note_block();
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
  bool has_out = false;
  for (size_t i = 0; i < args.keyword_count; ++i) has_out = has_out || PyUnicode_CompareWithASCIIString(args.keywords[i].first, "out") == 0;
  const bool writes = has_out || last.back() == '_' || last.starts_with("__i") || last == "__setitem__" || last == "setitem" || last.starts_with("iadd") || last.starts_with("imul") || last.starts_with("isub");
  static const std::unordered_set<std::string> draws = {"bernoulli_", "normal_", "uniform_", "exponential_", "random_", "cauchy_", "geometric_", "log_normal_", "rrelu_", "dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"};
  const bool fills = last == "tensor" || last == "as_tensor";   // by hand, and detaches in place
  if ((!writes && !fills) || draws.contains(last)) ++torch_calls_->random_nodes;
  // A write to a tensor that the graph made itself shows nowhere.
  bool is_inference = false, is_written = false;
  for (Value* v : tensors_->inputs()) {
    const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
    is_inference = is_inference || fake.is_inference();
    is_written = is_written || (!fake.is_inference() && fake._version() > 0);
  }
  const bool is_first_write = first_change == SIZE_MAX && is_written;   // elu(x, inplace=True), running statistics: no name says it
  if (!writes && !is_first_write && first_random == SIZE_MAX) first_random = node_count();
  if (first_change != SIZE_MAX || (!is_inference && !is_written)) return;
  if (may_raise_in_block && !options.fullgraph) stop("may-raise", name + " changes a tensor of the program, and an operator before it may raise on real data inside a try or with block");
  first_change = node_count();
}

}  // namespace cutaway::capture
