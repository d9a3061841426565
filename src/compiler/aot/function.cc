#include "compiler/aot/function.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "compiler/aot/backward_node.h"
#include "compiler/aot/captured_facts.h"
#include "compiler/aot/function_state.h"
#include "compiler/aot/symbolic_joint.h"
#include "core/base/bits.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "core/tensor/convert.h"
#include "core/trace/node_pointer.h"

namespace cutaway::aot {
namespace {

using base::Result;
using c10::IValue;

Function::State::Shape shape_from(const ir::TensorType& t, const symbolic::SymbolValues& symbols) {
  Function::State::Shape s;
  s.dtype = tensor::to_aten(t.dtype);
  s.device = tensor::to_aten(t.device);
  for (const ir::Dim& d : t.sizes) s.sizes.push_back(exec::evaluate(d, symbols));
  for (const ir::Dim& d : t.strides) s.strides.push_back(exec::evaluate(d, symbols));
  const auto is_symbolic = [](const ir::Dim& d) { return d.is_symbolic(); };
  if (std::any_of(t.sizes.begin(), t.sizes.end(), is_symbolic) || std::any_of(t.strides.begin(), t.strides.end(), is_symbolic)) {
    const auto prepared = [&](const std::vector<ir::Dim>& dims) {
      std::vector<symbolic::Expression> list;
      for (const ir::Dim& d : dims) list.push_back(*symbolic::Expression::make(d, symbols.names()));   // evaluated above: the symbols are known
      return list;
    };
    s.symbolic_sizes = prepared(t.sizes);
    s.symbolic_strides = prepared(t.strides);
  }
  s.requires_grad = t.requires_grad;
  return s;
}

struct Interpreted final : exec::CompiledGraph {
  exec::Program program;
  explicit Interpreted(exec::Program p) : program(std::move(p)) {}
  std::vector<IValue> run(std::vector<IValue>& inputs) override { return program.run(inputs); }
};
Result<std::shared_ptr<exec::CompiledGraph>> interpret(const ir::Graph& graph, const std::vector<IValue>&, debug::Sink*) {
  CUTAWAY_TRY_ASSIGN(exec::Program program, exec::Program::prepare(graph));
  return std::shared_ptr<exec::CompiledGraph>(std::make_shared<Interpreted>(std::move(program)));
}

bool is_plain(const std::vector<ir::Argument>& form) {
  for (size_t i = 0; i < form.size(); ++i)
    if (const auto* ref = form[i].as<ir::ValueRef>(); !ref || ref->id != i) return false;
  return true;
}

bool checks_offsets(const ir::Graph& captured, const Joint& joint) {
  return uses_offsets(captured) || std::any_of(joint.primals.begin(), joint.primals.end(), [](const Primal& p) { return p.is_base || p.writes_metadata; });
}

bool gives_the_same_again(const ir::Graph& captured) {
  bool same = true;
  ir::for_each_node(captured.body, [&](const ir::Node& n) {
    const auto* schema = exec::dispatcher_schemas().find(n.target);
    same = same && !n.target.starts_with("cutaway.") && !(n.kind == ir::Node::Kind::op && (!schema || schema->is_random));
  });
  return same;
}

/// One value for each input of the forward graph.
std::vector<IValue> forward_examples(const Joint& joint, const std::vector<IValue>& examples) {
  std::vector<IValue> list;
  for (const Primal& p : joint.primals) {
    const at::Tensor& t = examples[p.inputs.front()].toTensor();
    const BelowAutograd below;
    list.emplace_back(p.is_base ? t.as_strided({static_cast<int64_t>(t.storage().nbytes() / t.itemsize())}, {1}, 0) : t);
  }
  for (const at::Tensor& c : joint.constants) list.emplace_back(c);
  return list;
}

/// One run: from inputs to outputs.
class Call {
 public:
  Call(const std::shared_ptr<Function::State>& state, std::vector<IValue>& inputs) : state_(state), s_(*state), inputs_(inputs) {}

  /// The numbers of the symbols.
  std::vector<int64_t> check_inputs() const {
    TORCH_CHECK_VALUE(inputs_.size() == s_.inputs.size(), s_.graphs.forward.name, " takes ", s_.inputs.size(), " inputs, not ", inputs_.size());
    TORCH_CHECK_VALUE(s_.is_for_grad_mode || !at::GradMode::is_enabled(), s_.graphs.forward.name, " was recorded with grad mode off and has no backward");
    std::vector<int64_t> numbers;
    if (const auto refused = s_.mismatch(inputs_, numbers)) {
      const size_t i = refused->input;
      TORCH_CHECK_VALUE(refused->why != Mismatch::Why::guard, s_.graphs.forward.name, ": the inputs have sizes that the graph was not recorded for");
      TORCH_CHECK_VALUE(refused->why != Mismatch::Why::value, s_.graphs.forward.name, ": input ", i, " is ", inputs_[i], ", and the graph was recorded for ", s_.joint.frozen_inputs[i]);
      TORCH_CHECK_VALUE(inputs_[i].isTensor() && inputs_[i].toTensor().defined(), s_.graphs.forward.name, ": input ", i, " must be a tensor");
      TORCH_CHECK_VALUE(refused->why != Mismatch::Why::type, s_.graphs.forward.name, ": input ", i, " is ", ir::Type::of(tensor::type_of(inputs_[i].toTensor())).text(), ", and the graph was recorded for ", s_.joint.input_types[i].text());
      TORCH_CHECK_VALUE(refused->why != Mismatch::Why::offset, s_.graphs.forward.name, ": input ", i, " begins at element ", inputs_[i].toTensor().storage_offset(), " of its storage, and the graph was recorded for ", s_.inputs[i]->offset);
      TORCH_CHECK_NOT_IMPLEMENTED(false, s_.graphs.forward.name, ": input ", i, " shares its storage with other inputs in another way than when the graph was recorded, and one of them is written to or given twice");
    }
    return numbers;
  }

  /// `numbers`: of the symbols, by slot, as the check of these inputs found them.
  std::vector<IValue> operator()(std::vector<int64_t> numbers, exec::RunFailure* failure = nullptr) {
    if (s_.is_symbolic()) symbols_ = {s_.symbol_names, std::move(numbers)};
    with_grad_ = s_.joint.has_backward && at::GradMode::is_enabled();
    std::vector<BackwardNode::Given> again;
    if (with_grad_ && s_.again)
      for (const IValue& v : inputs_) again.emplace_back(v);
    gather_primals();
    if (with_grad_) make_nodes();
    for (auto& node : nodes_) node->given = again;
    run_forward();
    if (failure) failure->wrote_inputs = true;   // from here on
    count_writes();
    for (size_t i = 0; i < nodes_.size(); ++i) attach(i);
    is_written_back_.assign(s_.joint.primals.size(), false);
    flat_.resize(s_.joint.outputs.size());
    is_made_.assign(s_.joint.outputs.size(), false);
    if (!s_.joint.cuts.empty()) connect();
    for (const size_t p : s_.written) write_back(p);
    for (auto& node : nodes_) save_written(*node);
    return outputs();
  }

 private:
  void gather_primals() {
    const auto& primals = s_.joint.primals;
    kept_.resize(primals.size());
    arguments_.reserve(primals.size() + s_.joint.constants.size());
    for (size_t p = 0; p < primals.size(); ++p) {
      IValue& first = inputs_[primals[p].inputs.front()];
      // The same tensor twice when it was not, or the other way round, changes nothing as long as nobody writes; gradients add up.
      if (primals[p].is_base) kept_[p] = whole_storage(first.toTensor());
      else if (s_.is_used_after[p] || primals[p].requires_grad) kept_[p] = first.toTensor();
      if (kept_[p].defined()) arguments_.emplace_back(kept_[p]);
      else if (primals[p].inputs.size() == 1) arguments_.push_back(std::move(first));
      else arguments_.push_back(first);
    }
    for (const at::Tensor& c : s_.joint.constants) arguments_.emplace_back(c);
    given_ = std::move(inputs_);
    inputs_.clear();
  }

  static at::Tensor whole_storage(const at::Tensor& t) {
    const BelowAutograd below;
    const auto count = static_cast<int64_t>(t.storage().nbytes() / t.itemsize());
    return at::empty({0}, t.options()).set_(t.storage(), 0, {count}, {1});
  }

  void make_nodes() {
    primal_edges_.reserve(s_.differentiated.size());
    for (const size_t p : s_.differentiated) primal_edges_.push_back(torch::autograd::impl::gradient_edge(kept_[p]));
    nodes_.resize(s_.pieces.size());
    for (size_t i = nodes_.size(); i-- > 0;) {   // the engine takes the latest first
      nodes_[i] = trace::make_node<BackwardNode>();
      nodes_[i]->state = state_;
      nodes_[i]->piece = s_.pieces[i].get();
      nodes_[i]->symbols = symbols_;
    }
    if (s_.joint.cuts.empty()) set_edges(*nodes_[0]);
  }

  void set_edges(BackwardNode& node) {
    using To = BackwardPiece::Target::To;
    const Function::State::Piece& piece = *node.piece;
    torch::autograd::edge_list list;
    list.reserve(piece.targets.size() + piece.further.size());
    // No edge to what gets no gradient: its hooks would be called with None.
    for (size_t o = 0; o < piece.targets.size(); ++o) {
      const auto& target = piece.targets[o];
      if (piece.facts.tangents_of[o].empty()) list.emplace_back();
      else if (target.to == To::primal) list.push_back(primal_edges_[target.index]);
      else if (target.to == To::cut) list.push_back(torch::autograd::impl::gradient_edge(tensor_at(s_.joint.cuts[target.index])));
      else list.emplace_back(nodes_[target.index], static_cast<uint32_t>(target.input));
    }
    for (const size_t d : piece.further) list.push_back(primal_edges_[d]);
    const auto takes_none = [](const torch::autograd::Edge& e) { return !e.function || Function::State::takes_none(*e.function); };
    node.passes_none = std::all_of(list.begin(), list.end(), takes_none);
    node.set_next_edges(std::move(list));
  }

  void enter(size_t at) {
    const auto& tangents = nodes_[at]->piece->tangents;
    for (size_t i = 0; i < tangents.size() && tangents.size() > 1; ++i)
      results_[s_.joint.tangents[tangents[i]]].grad_fn()->set_next_edges({torch::autograd::Edge(nodes_[at], static_cast<uint32_t>(i))});
  }

  // A node must have its edges before another one gets an edge to it. What gradients of outputs come by is made on the way.
  void connect() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      set_edges(*nodes_[i]);
      enter(i);
      if (nodes_[i]->given.empty()) continue;
      for (const size_t k : nodes_[i]->piece->cuts) nodes_[i]->cuts.emplace_back(tensor_at(s_.joint.cuts[k]));
    }
  }

  const at::Tensor& tensor_at(const Cut& cut) {
    if (cut.at == Cut::At::output) {
      make_output(cut.index);
      return flat_[cut.index].toTensor();
    }
    const ForwardResult* result = cut.at == Cut::At::result ? &s_.joint.results[cut.index] : nullptr;
    if (result && result->what != ForwardResult::For::mutated_primal) return results_[cut.index];
    const size_t p = result ? result->index : cut.index;
    write_back(p);
    return kept_[p];
  }

  void run_forward() {
    std::vector<IValue> values;
    {
      // In the caller's grad mode: some kernels (attention, mkldnn's LSTM) ask it whether to keep something for backward.
      const BelowAutograd below;
      values = s_.forward->run(arguments_);
      for (size_t r = 0; r < s_.joint.results.size(); ++r)
        if (s_.is_shared_result[r] && values[r].isTensor()) values[r] = at::alias(values[r].toTensor());
    }
    results_.reserve(values.size());
    for (IValue& v : values) results_.push_back(v.isTensor() ? std::move(v).toTensor() : at::Tensor());
  }

  // A new value of an input, without gradients: eager keeps the input itself for backward, and notices a later write to it.
  const at::Tensor* written_input(const Saved& saved) const {
    if (saved.from != Saved::From::result || s_.joint.results[saved.index].what != ForwardResult::For::mutated_primal) return nullptr;
    const Primal& primal = s_.joint.primals[s_.joint.results[saved.index].index];
    return primal.is_base || primal.writes_metadata || primal.requires_grad || primal.requires_grad_after ? nullptr : &kept_[s_.joint.results[saved.index].index];
  }

  void save_written(BackwardNode& node) const {
    for (size_t i = 0; i < node.piece->saved.size(); ++i)
      if (const at::Tensor* input = written_input(s_.graphs.saved[node.piece->saved[i]])) node.saved[i] = torch::autograd::SavedVariable(*input, /*is_output=*/false);
  }

  // Programs ask for versions of what they have made and written to, with gradients or without.
  void count_writes() {
    for (size_t r = 0; r < s_.joint.results.size(); ++r)
      if (s_.joint.results[r].write_count && results_[r].defined() && !results_[r].is_inference()) {
        auto counter = torch::autograd::impl::version_counter(results_[r]);   // shared
        counter.set_version(s_.joint.results[r].write_count);
      }
  }

  void attach(size_t at) {
    BackwardNode& node = *nodes_[at];
    const Function::State::Piece& piece = *node.piece;
    for (const size_t t : piece.tangents) {
      const at::Tensor& result = results_[s_.joint.tangents[t]];
      if (piece.tangents.size() == 1) {
        torch::autograd::set_history(result, nodes_[at]);
        continue;
      }
      node.add_input_metadata(result);
      auto entry = trace::make_node<EntryNode>();
      entry->behind = &node;
      torch::autograd::set_history(result, entry);
    }
    if (s_.joint.cuts.empty()) enter(at);
    for (size_t i = piece.tangents.size(); i < piece.inputs.size(); ++i) {   // from other pieces
      const auto shape = piece.inputs[i].at(symbols_.numbers());
      node.add_input_metadata(at::empty({}, at::TensorOptions().dtype(shape.dtype).device(shape.device)).expand(shape.sizes));
    }
    node.saved.reserve(piece.saved.size());
    for (const size_t which : piece.saved) {
      const Saved& saved = s_.graphs.saved[which];
      const bool is_result = saved.from == Saved::From::result;
      const at::Tensor& t = saved.from == Saved::From::primal     ? kept_[saved.index]
                            : saved.from == Saved::From::constant ? s_.joint.constants[saved.index]
                            : is_result                           ? results_[saved.index]
                                                                  : results_[s_.joint.results.size() + saved.index];
      // Made below autograd, views have a version each: with one for all, a later write by the caller is noticed.
      for (const size_t r : saved.shares_with) {
        auto counter = torch::autograd::impl::version_counter(t);   // which counts the program's own writes to the result as well
        if (!results_[r].is_inference() && !t.is_inference() && results_[r]._version() > t._version()) counter.set_version(results_[r]._version());
        torch::autograd::impl::set_version_counter(results_[r], counter);
      }
      const bool has_history = is_result && s_.joint.results[saved.index].requires_grad;
      const bool is_own = has_history && t.grad_fn().get() == &node;
      if (written_input(saved)) node.saved.emplace_back();   // when it is written
      else if (has_history && !is_own) node.saved.emplace_back(t.tensor_data(), /*is_output=*/false);   // its history may lead here
      else node.saved.emplace_back(t, /*is_output=*/is_own);
    }
  }

  void write_back(size_t p) {
    const Primal& primal = s_.joint.primals[p];
    if (is_written_back_[p] || (!primal.writes_data && !primal.writes_metadata)) return;
    is_written_back_[p] = true;
    at::Tensor& t = kept_[p];
    const bool has_version = !t.is_inference();
    const auto version = has_version ? t._version() : 0;
    // As many versions as eager's writes make: programs compare them, and messages name them.
    const auto count = [&] { if (auto counter = torch::autograd::impl::version_counter(t); has_version) counter.set_version(version + primal.write_count); };
    if (primal.writes_metadata) t.as_strided_(numbers(primal.new_sizes), numbers(primal.new_strides), exec::evaluate(primal.new_offset, symbols_));
    if (!primal.writes_data) return count();
    size_t result = 0;   // mutated primals come first among the results
    while (s_.joint.results[result].index != p) ++result;
    const at::Tensor& value = results_[result];
    if (with_grad_ && primal.requires_grad_after) {
      t.copy_(value);
    } else {
      // Outside of no_grad eager would refuse to write to a leaf that requires grad, and so does this.
      std::optional<at::NoGradGuard> no_grad;
      if (primal.writes_under_no_grad || !primal.requires_grad) no_grad.emplace();
      t.copy_(value);
    }
    count();
    if (!primal.is_base) return;
    std::vector<int64_t> after;   // views of each other count together
    for (const size_t i : primal.inputs) after.push_back(given_[i].toTensor().is_inference() ? 0 : given_[i].toTensor()._version() + primal.write_count);
    for (size_t k = 0; k < after.size(); ++k)
      for (const at::Tensor& given = given_[primal.inputs[k]].toTensor(); !given.is_inference() && given._version() < after[k];) given.unsafeGetTensorImpl()->bump_version();
  }

  std::vector<int64_t> numbers(const std::vector<ir::Dim>& dims) const {
    std::vector<int64_t> list;
    for (const ir::Dim& d : dims) list.push_back(exec::evaluate(d, symbols_));
    return list;
  }

  std::vector<IValue> outputs() {
    for (size_t o = 0; o < flat_.size(); ++o) make_output(o);
    if (s_.is_plain_form) return std::move(flat_);
    std::vector<IValue> shaped;
    const auto form = s_.is_symbolic() ? symbolic::at_sizes(s_.joint.output_form, symbols_) : s_.joint.output_form;   // sizes among the outputs are those of this run
    TORCH_CHECK_VALUE(form.ok(), form.error().what);
    for (const ir::Argument& a : *form) {
      auto v = exec::to_ivalue(a, [&](ir::ValueId id) { return flat_[id]; });
      TORCH_CHECK(v.ok(), v.error().text());
      shaped.push_back(std::move(v).value());
    }
    return shaped;
  }

  void make_output(size_t o) {
    if (is_made_[o]) return;
    is_made_[o] = true;
    const OutputRule& rule = s_.joint.outputs[o];
    switch (rule.from) {
      case OutputRule::From::value: flat_[o] = results_[rule.index]; return;
      case OutputRule::From::primal: flat_[o] = given_[rule.index]; return;
      case OutputRule::From::output: flat_[o] = flat_[rule.index]; return;   // an earlier one
      case OutputRule::From::literal: flat_[o] = rule.literal; return;
      case OutputRule::From::view_of_primal: write_back(rule.index); break;
      case OutputRule::From::view_of_result: break;
    }
    if (rule.through) make_output(*rule.through);
    const at::Tensor& base = rule.through ? flat_[*rule.through].toTensor() : rule.from == OutputRule::From::view_of_primal ? kept_[rule.index] : results_[rule.index];
    std::optional<at::NoGradGuard> no_grad;
    if (!rule.requires_grad && base.requires_grad()) no_grad.emplace();   // else it may get gradients later, by a write
    std::vector<IValue> argument{base};
    for (const size_t slot : s_.views[o]->symbol_slots) argument.emplace_back(symbols_.numbers()[slot]);
    flat_[o] = s_.views[o]->program.run(argument).front();
  }

  const std::shared_ptr<Function::State>& state_;
  Function::State& s_;
  std::vector<IValue>& inputs_;
  std::vector<IValue> given_, arguments_;
  std::vector<at::Tensor> kept_;      // by primal; undefined when nothing needs it any more
  std::vector<at::Tensor> results_;   // of the forward graph, extra ones too
  std::vector<decltype(trace::make_node<BackwardNode>())> nodes_;   // by piece; none without gradients
  torch::autograd::edge_list primal_edges_;   // of those that are differentiated, as they were before anything was written
  std::vector<IValue> flat_;          // outputs
  std::vector<bool> is_made_, is_written_back_;
  symbolic::SymbolValues symbols_;    // numbers of this run
  bool with_grad_ = false;
};

thread_local size_t hidden_outputs_now = 0;
struct HiddenOutputs {
  const size_t before = hidden_outputs_now;
  explicit HiddenOutputs(size_t count) { hidden_outputs_now = count; }
  ~HiddenOutputs() { hidden_outputs_now = before; }
};

}  // namespace

bool Function::State::takes_none(torch::autograd::Node& node) {
  if (!node.tensor_pre_hooks().empty() || !node.pre_hooks().empty() || !node.post_hooks().empty() || !node.retains_grad_hooks().empty()) return false;
  if (dynamic_cast<torch::autograd::AccumulateGrad*>(&node)) return true;
  if (const auto* entry = dynamic_cast<EntryNode*>(&node)) return entry->behind->passes_none;
  const auto* own = dynamic_cast<BackwardNode*>(&node);
  return own && own->passes_none;
}

bool Function::State::would_pass_none(const std::vector<IValue>& given) const {
  return std::ranges::any_of(half_reached, [&](size_t p) {
    const at::Tensor& t = given[joint.primals[p].inputs.front()].toTensor();
    if (!t.requires_grad()) return false;
    if (const auto& node = t.grad_fn()) return !takes_none(*node);
    const auto accumulator = torch::autograd::impl::try_get_grad_accumulator(t);
    return !torch::autograd::impl::hooks(t).empty() || (accumulator && !takes_none(*accumulator));
  });
}

bool Function::State::Shape::has_strides_of(const at::Tensor& t) const {
  const auto given = t.strides();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && given[i] != strides[i]) return t.numel() == 0;
  return true;
}

bool Function::State::Shape::has_layout_of(const at::Tensor& t, std::span<const int64_t> numbers) const {
  if (symbolic_sizes.empty()) return t.sizes() == sizes && has_strides_of(t);
  const auto given = t.sizes(), given_strides = t.strides();
  if (given.size() != symbolic_sizes.size()) return false;
  for (size_t i = 0; i < given.size(); ++i)
    if (symbolic_sizes[i].at(numbers) != given[i]) return false;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] != 1 && symbolic_strides[i].at(numbers) != given_strides[i]) return t.numel() == 0;
  return true;
}

Function::State::Shape Function::State::Shape::at(std::span<const int64_t> numbers) const {
  Shape s = *this;
  const auto number = [&](const symbolic::Expression& e) {
    const auto n = e.at(numbers);
    TORCH_CHECK_VALUE(n, "a size divides by zero or does not fit into 64 bits");
    return *n;
  };
  for (size_t i = 0; i < symbolic_sizes.size(); ++i) {
    s.sizes[i] = number(symbolic_sizes[i]);
    s.strides[i] = number(symbolic_strides[i]);
  }
  return s;
}

std::optional<std::vector<int64_t>> Function::State::read_symbols(const std::vector<IValue>& given) const {
  try {
    auto numbers = symbol_sources.read(given);
    const bool hold = symbolic::all_hold(guard_tests, numbers) && (!joint.size_check || joint.size_check->holds(numbers));
    return hold ? std::optional(std::move(numbers)) : std::nullopt;
  } catch (const c10::Error&) {   // inputs that disagree about a symbol, or are no tensors
    return std::nullopt;
  }
}

namespace {
bool is_same_number(const IValue& a, const IValue& b) {
  if (a.isDouble() && b.isDouble()) return base::same_bits(a.toDouble(), b.toDouble());
  if (a.isComplexDouble() && b.isComplexDouble()) {
    const auto x = a.toComplexDouble(), y = b.toComplexDouble();
    return base::same_bits(x.real(), y.real()) && base::same_bits(x.imag(), y.imag());
  }
  return a == b;
}
}  // namespace

std::optional<Mismatch> Function::State::mismatch(const std::vector<IValue>& given, std::vector<int64_t>& numbers) const {
  const bool grad = at::GradMode::is_enabled();
  if (is_symbolic()) {
    auto read = read_symbols(given);
    if (!read) return Mismatch{0, Mismatch::Why::guard};
    numbers = std::move(*read);
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!inputs[i]) {
      const bool is_none = given[i].isNone() || (given[i].isTensor() && !given[i].toTensor().defined());
      if (joint.frozen_inputs[i].isNone() ? !is_none : given[i].isTensor() || !is_same_number(given[i], joint.frozen_inputs[i])) return Mismatch{i, Mismatch::Why::value};
      continue;
    }
    if (!given[i].isTensor() || !given[i].toTensor().defined()) return Mismatch{i, Mismatch::Why::type};
    const Shape& shape = *inputs[i];
    const at::Tensor& t = given[i].toTensor();
    if (t.layout() != at::kStrided || t.scalar_type() != shape.dtype || t.device() != shape.device || !shape.has_layout_of(t, numbers) ||
        (grad && t.requires_grad() != shape.requires_grad) || t.is_conj() != shape.is_conj || t.is_neg() != shape.is_neg)
      return Mismatch{i, Mismatch::Why::type};
    if (checks_offsets && t.storage_offset() != shape.offset) return Mismatch{i, Mismatch::Why::offset};
  }
  for (const Primal& primal : joint.primals)
    if (!primal.is_base)
      for (const size_t i : primal.inputs)
        if (!given[i].toTensor().is_same(given[primal.inputs.front()].toTensor())) return Mismatch{i, Mismatch::Why::sharing};
  return written.empty() ? std::nullopt : other_sharing(given);
}

// What was recorded is wrong if an input that is written shares its storage with another one and did not then.
std::optional<Mismatch> Function::State::other_sharing(const std::vector<IValue>& given) const {
  const auto storage_of = [&](size_t i) { return given[i].toTensor().unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(); };
  std::vector<std::pair<const c10::StorageImpl*, size_t>> owners;
  for (const size_t p : written) owners.emplace_back(storage_of(joint.primals[p].inputs.front()), p);
  std::sort(owners.begin(), owners.end());
  for (size_t p = 0; p < joint.primals.size(); ++p)
    for (const size_t i : joint.primals[p].inputs) {
      const auto it = std::lower_bound(owners.begin(), owners.end(), std::pair(static_cast<const c10::StorageImpl*>(storage_of(i)), size_t{0}));
      const bool shares = it != owners.end() && it->first == storage_of(i);
      const bool is_alone = !shares || std::next(it) == owners.end() || std::next(it)->first != it->first;
      if (!is_alone || (shares && it->second != p) || (!shares && joint.primals[p].is_base)) return Mismatch{i, Mismatch::Why::sharing};
    }
  return std::nullopt;
}

Function::State::Backward& Function::State::backward_for(Piece& piece, const std::vector<bool>& given) {
  if (std::all_of(given.begin(), given.end(), std::identity())) return piece.whole;
  const std::lock_guard lock(mutex_);
  const auto [it, is_new] = piece.parts.try_emplace(given);
  if (is_new) {
    BackwardGraph part = take_part(piece.whole.graph, piece.saved.size(), given, is_symbolic());
    if (part.graph.body.nodes.size() != piece.whole.graph.body.nodes.size() || part.saved.size() != piece.saved.size()) {
      debug::keep_artifact(options.sink, "aot", part.graph.name, "graph.cut", [&] { return ir::print(part.graph); });
      it->second = std::make_unique<Backward>();
      static_cast<BackwardGraph&>(*it->second) = std::move(part);
      it->second->find_order();
      it->second->symbol_slots = slots_of(it->second->symbol_inputs);
    }
  }
  return it->second ? *it->second : piece.whole;
}

std::vector<size_t> Function::State::slots_of(const std::vector<std::string>& symbols) const {
  std::vector<size_t> slots;
  for (const std::string& name : symbols) slots.push_back(static_cast<size_t>(std::ranges::find(*symbol_names, name) - symbol_names->begin()));
  return slots;
}

void Function::State::find_cut_outputs() {
  for (const Cut& cut : joint.cuts) {
    auto& output = cut_outputs.emplace_back();
    for (size_t o = joint.outputs.size(); o-- > 0;) {
      const OutputRule& rule = joint.outputs[o];
      const bool is_result = cut.at == Cut::At::result && rule.index == cut.index && (rule.from == OutputRule::From::value || (rule.from == OutputRule::From::view_of_result && rule.view->body.nodes.empty()));
      if (is_result || (cut.at == Cut::At::output && cut.index == o)) output = o;
    }
  }
}

base::Status Function::State::make_pieces(bool in_terms) {
  using To = BackwardPiece::Target::To;
  CUTAWAY_TRY_ASSIGN(std::vector<BackwardPiece> made, cut_backward(joint, graphs, in_terms));
  for (BackwardPiece& m : made) {
    auto& piece = *pieces.emplace_back(std::make_unique<Piece>());
    const size_t inputs = m.tangents.size() + m.handed;
    for (size_t i = 0; i < inputs; ++i) piece.inputs.push_back(shape_from(m.graph.value(m.graph.inputs[m.saved.size() + i].value).type.tensor, joint.symbols));
    piece.facts = find_tangent_facts(m.graph, m.saved.size(), inputs);
    piece.saved = std::move(m.saved);
    piece.tangents = std::move(m.tangents);
    piece.targets = std::move(m.targets);
    piece.whole.graph = std::move(m.graph);
    piece.whole.symbol_inputs = std::move(m.symbol_inputs);
    piece.whole.saved.resize(piece.saved.size());
    std::iota(piece.whole.saved.begin(), piece.whole.saved.end(), size_t{0});
    piece.whole.tangents.resize(inputs);
    std::iota(piece.whole.tangents.begin(), piece.whole.tangents.end(), size_t{0});
    piece.whole.find_order();
    piece.whole.symbol_slots = slots_of(piece.whole.symbol_inputs);
  }
  if (pieces.size() == 1) graphs.backward = pieces[0]->whole.graph;
  // What a pass that comes by some of the inputs of a piece leads to, and one that comes by the others does not.
  std::vector<std::vector<std::set<size_t>>> reach(pieces.size());
  std::vector<std::set<size_t>> cuts(pieces.size()), leads_to(pieces.size());
  std::vector<size_t> piece_of(joint.cuts.size(), pieces.size());
  find_cut_outputs();
  std::set<size_t> half;
  for (size_t i = pieces.size(); i-- > 0;) {
    Piece& piece = *pieces[i];
    reach[i].resize(piece.inputs.size());
    std::set<size_t> direct, all, &far = leads_to[i];
    for (size_t k = 0; k < joint.cuts.size(); ++k)
      if (std::ranges::find(piece.tangents, joint.cuts[k].tangent) != piece.tangents.end()) piece_of[k] = i;
    for (size_t o = 0; o < piece.targets.size(); ++o) {
      const auto& target = piece.targets[o];
      if (target.to == To::primal && !piece.facts.tangents_of[o].empty()) direct.insert(target.index);
      if (target.to == To::cut) cuts[i].insert(target.index);
      const size_t other = target.to == To::piece ? target.index : target.to == To::cut && !cut_outputs[target.index] ? piece_of[target.index] : pieces.size();
      if (other < pieces.size()) {
        cuts[i].insert(cuts[other].begin(), cuts[other].end());
        far.insert(leads_to[other].begin(), leads_to[other].end());
      }
      for (const size_t t : piece.facts.tangents_of[o]) {
        if (target.to == To::primal) reach[i][t].insert(target.index);
        if (target.to == To::piece) reach[i][t].insert(reach[target.index][target.input].begin(), reach[target.index][target.input].end());
      }
    }
    for (const auto& r : reach[i]) all.insert(r.begin(), r.end());
    far.insert(direct.begin(), direct.end());
    for (const size_t d : far)
      if (!direct.contains(d)) piece.further.push_back(d);
    for (const size_t d : all) {
      if (std::any_of(reach[i].begin(), reach[i].end(), [&](const auto& r) { return !r.contains(d); })) half.insert(differentiated[d]);
    }
    piece.cuts.assign(cuts[i].begin(), cuts[i].end());
  }
  half_reached.assign(half.begin(), half.end());
  return {};
}

void Function::State::Backward::find_order() {
  std::vector<size_t> first(graph.values.size(), graph.body.nodes.size());
  for (size_t n = graph.body.nodes.size(); n-- > 0;) ir::for_each_use(graph.body.nodes[n], [&](ir::ValueId id) { first[id] = n; });
  unpack_order.resize(saved.size());
  std::iota(unpack_order.begin(), unpack_order.end(), size_t{0});
  std::stable_sort(unpack_order.begin(), unpack_order.end(), [&](size_t a, size_t b) { return first[graph.inputs[a].value] < first[graph.inputs[b].value]; });
}

const exec::Program& Function::State::operators(Piece& piece) {
  const std::lock_guard lock(mutex_);
  if (!piece.operators) {
    ir::Graph graph = *again;
    for (const size_t k : piece.cuts) {
      if (!cut_outputs[k]) continue;
      const ir::ValueId cut = again->body.outputs[*cut_outputs[k]].as<ir::ValueRef>()->id;
      const ir::ValueId input = graph.add_input(graph.value(cut).name, graph.value(cut).type);
      const auto replace = [&](ir::ValueId& id) { if (id == cut) id = input; };
      const auto change = [&](ir::Node& n) {
        for (ir::Argument& a : n.args) ir::for_each_value(a, replace);
        for (auto& [key, a] : n.kwargs) ir::for_each_value(a, replace);
        for (ir::Block& r : n.regions)
          for (ir::Argument& a : r.outputs) ir::for_each_value(a, replace);
      };
      for (size_t n = writes_to_arguments(*again) ? replaceable_from(*again, cut).value_or(graph.body.nodes.size()) : 0; n < graph.body.nodes.size(); ++n) {
        change(graph.body.nodes[n]);
        for (ir::Block& r : graph.body.nodes[n].regions) ir::for_each_node(r, change);
      }
    }
    graph.body.outputs = again->body.outputs;
    auto made = exec::Program::prepare(graph);
    TORCH_CHECK(made.ok(), made.error().text());
    piece.operators = std::move(made).value();
  }
  return *piece.operators;
}

std::vector<std::shared_ptr<exec::CompiledGraph>> Function::State::all_compiled() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<exec::CompiledGraph>> out{forward};
  const auto add = [&](const Backward& b) {
    if (b.runnable) out.push_back(b.runnable);
    for (const auto& [numbers, made] : b.runnable_at) out.push_back(made);
  };
  for (const auto& piece : pieces) {
    add(piece->whole);
    for (const auto& [given, part] : piece->parts)
      if (part) add(*part);
  }
  return out;
}

exec::CompiledGraph& Function::State::compiled(Backward& b, const std::vector<IValue>& examples, const symbolic::SymbolValues& symbols) {
  if (auto* ready = b.ready.load(std::memory_order_acquire)) return *ready;
  const std::lock_guard lock(mutex_);
  if (!b.runnable) {
    if (const auto known = b.runnable_at.find(symbols.numbers()); known != b.runnable_at.end()) return *known->second;
    auto made = options.compile(b.graph, examples, options.sink);
    if (!made.ok() && is_symbolic())
      if (const auto graph = symbolic::at_sizes(b.graph, symbols); graph.ok())
        if (auto at_numbers = options.compile(*graph, examples, options.sink); at_numbers.ok()) return *(b.runnable_at[symbols.numbers()] = std::move(at_numbers).value());
    TORCH_CHECK(made.ok(), made.error().text());
    b.runnable = std::move(made).value();
    b.ready.store(b.runnable.get(), std::memory_order_release);
    has_compiled_.store(true, std::memory_order_release);
  }
  return *b.runnable;
}

size_t hidden_outputs() { return hidden_outputs_now; }
std::string get_aot_graph_name(const std::string& model, const std::string& kind, uint64_t number) { return model + "__" + kind + "_" + std::to_string(number); }

Result<std::shared_ptr<Function>> Function::make(const ir::Graph& captured, const std::vector<IValue>& examples, FunctionOptions options) {
  static std::atomic<uint64_t> functions{0};
  const uint64_t number = functions.fetch_add(1);
  const bool is_interpreted = !options.compile;
  if (is_interpreted) options.compile = interpret;
  const JointOptions joint_options{get_aot_graph_name(options.name, "joint", number), options.sink, options.program, options.program_end, options.location, options.accumulates};
  if (!has_symbolic_inputs(captured)) {
    CUTAWAY_TRY_ASSIGN(Joint joint, record_joint(captured, examples, joint_options));
    return make(captured, examples, std::move(joint), std::move(options), number, is_interpreted);
  }
  if (options.takes_symbols) {
    CUTAWAY_TRY_ASSIGN(Joint joint, record_symbolic_joint(captured, examples, joint_options));
    const bool is_symbolic = !joint.symbols.empty();
    auto made = make(captured, examples, std::move(joint), options, number, is_interpreted);
    if (made.ok() || !is_symbolic) return made;   // else: a compiler that takes numbers alone
  }
  CUTAWAY_TRY_ASSIGN(Joint joint, record_joint_at_numbers(captured, examples, joint_options));
  return make(captured, examples, std::move(joint), std::move(options), number, is_interpreted);
}

Result<std::shared_ptr<Function>> Function::make(const ir::Graph& captured, const std::vector<IValue>& examples, Joint joint, FunctionOptions options, uint64_t number, bool is_interpreted) {
  auto state = std::make_shared<State>();
  State& s = *state;
  s.joint = std::move(joint);
  if (s.is_symbolic()) {
    std::vector<ir::Dim> dims;
    for (const std::string& name : s.joint.symbols.names()) dims.push_back(ir::Dim::symbol(name));
    CUTAWAY_TRY_ASSIGN(s.symbol_sources, exec::SymbolSources::find(captured, dims));
    s.symbol_names = std::make_shared<const std::vector<std::string>>(s.symbol_sources.names());
    TORCH_INTERNAL_ASSERT(std::ranges::equal(*s.symbol_names, s.joint.symbols.names()), "symbols of a joint graph are sorted");
    CUTAWAY_TRY_ASSIGN(s.guard_tests, symbolic::make_tests(s.joint.guards, *s.symbol_names));
  }
  {
    debug::Phase phase(options.sink, "aot", "split");
    CUTAWAY_TRY_ASSIGN(s.graphs, split(s.joint, options.partition, captured.name));
    phase.note("saved_bytes", s.graphs.saved_bytes);
    phase.note("recomputed", static_cast<int64_t>(s.graphs.recomputed));
    if (!s.joint.static_because.empty()) phase.note("static_because", s.joint.static_because);
  }
  s.graphs.forward.name = get_aot_graph_name(options.name, s.joint.has_backward ? "forward" : "inference", number);
  s.graphs.backward.name = get_aot_graph_name(options.name, "backward", number);
  for (const ir::Graph* g : {&s.joint.graph, &s.graphs.forward}) debug::keep_artifact(options.sink, "aot", g->name, g == &s.joint.graph ? "joint_graph.cut" : "graph.cut", [&] { return ir::print(*g); });
  s.options = std::move(options);
  s.is_for_grad_mode = at::GradMode::is_enabled() || std::none_of(s.joint.input_types.begin(), s.joint.input_types.end(), [](const ir::Type& t) { return t.is_tensor() && t.tensor.requires_grad; });
  for (size_t i = 0; i < examples.size(); ++i) {
    s.inputs.emplace_back();
    if (!s.joint.input_types[i].is_tensor()) continue;
    const at::Tensor& t = examples[i].toTensor();
    auto& shape = s.inputs.back().emplace(shape_from(s.joint.input_types[i].tensor, s.joint.symbols));
    shape.offset = t.storage_offset();
    shape.is_conj = t.is_conj();
    shape.is_neg = t.is_neg();
  }
  s.checks_offsets = s.options.program || checks_offsets(captured, s.joint);
  s.is_used_after.assign(s.joint.primals.size(), false);
  for (size_t p = 0; p < s.joint.primals.size(); ++p) {
    const Primal& primal = s.joint.primals[p];
    if (primal.requires_grad) s.differentiated.push_back(p);
    if (primal.writes_data || primal.writes_metadata) s.written.push_back(p);
    s.is_used_after[p] = primal.writes_data || primal.writes_metadata;
  }
  if (s.joint.has_backward) {
    CUTAWAY_TRY(s.make_pieces(s.options.runs_refused && is_interpreted));
    for (const auto& piece : s.pieces) debug::keep_artifact(s.options.sink, "aot", piece->whole.graph.name, "graph.cut", [&] { return ir::print(piece->whole.graph); });
  }
  for (const Saved& saved : s.graphs.saved)
    if (saved.from == Saved::From::primal) s.is_used_after[saved.index] = true;
  for (const OutputRule& rule : s.joint.outputs) {
    if (rule.from == OutputRule::From::view_of_primal) s.is_used_after[rule.index] = true;
    if (rule.from == OutputRule::From::primal)
      for (size_t p = 0; p < s.joint.primals.size(); ++p)
        if (std::find(s.joint.primals[p].inputs.begin(), s.joint.primals[p].inputs.end(), rule.index) != s.joint.primals[p].inputs.end()) s.is_used_after[p] = true;
    s.views.emplace_back();
    if (!rule.view) continue;
    ir::Graph view = *rule.view;
    const auto symbol_inputs = add_symbol_inputs(view);
    CUTAWAY_TRY_ASSIGN(exec::Program program, exec::Program::prepare(view));
    s.views.back().emplace(State::View{std::move(program), s.slots_of(symbol_inputs)});
  }
  std::vector<bool> returned(s.graphs.forward.values.size(), false);
  for (const ir::Input& i : s.graphs.forward.inputs) returned[i.value] = true;
  for (size_t r = 0; r < s.joint.results.size(); ++r) {
    const auto* ref = s.graphs.forward.body.outputs[r].as<ir::ValueRef>();
    s.is_shared_result.push_back(ref && returned[ref->id]);
    if (ref) returned[ref->id] = true;
  }
  s.is_plain_form = is_plain(s.joint.output_form);
  if (s.joint.has_backward && !s.options.program && s.written.empty() && gives_the_same_again(captured) &&
      std::none_of(s.joint.tangents.begin(), s.joint.tangents.end(), [&](size_t r) { return s.joint.results[r].what == ForwardResult::For::mutated_primal; })) {
    s.again = captured;
    s.again->body.outputs.clear();
    for (ir::Argument a : captured.body.outputs) ir::for_each_value(a, [&](ir::ValueId& id) { s.again->body.outputs.emplace_back(ir::ValueRef{id}); });
    const auto can_be_input = [&](const std::optional<size_t>& output) {
      const auto* cut = output && *output < s.again->body.outputs.size() ? s.again->body.outputs[*output].as<ir::ValueRef>() : nullptr;
      return !output || (cut && replaceable_from(captured, cut->id));
    };
    if (writes_to_arguments(captured) && !std::ranges::all_of(s.cut_outputs, can_be_input)) s.again.reset();
  }
  const HiddenOutputs hidden(s.graphs.forward.body.outputs.size() - s.joint.results.size());
  CUTAWAY_TRY_ASSIGN(s.forward, s.options.compile(s.graphs.forward, forward_examples(s.joint, examples), s.options.sink));
  return std::shared_ptr<Function>(new Function(std::move(state)));
}

Function::Function(std::shared_ptr<State> state) : state_(std::move(state)) {}
std::optional<std::vector<int64_t>> Function::accepts(const std::vector<IValue>& inputs) const {
  if (inputs.size() != state_->inputs.size() || (at::GradMode::is_enabled() && !state_->is_for_grad_mode)) return std::nullopt;
  std::vector<int64_t> numbers;
  return state_->mismatch(inputs, numbers) ? std::nullopt : std::optional(std::move(numbers));
}
std::optional<std::vector<int64_t>> Function::read_symbols(const std::vector<IValue>& inputs) const { return state_->read_symbols(inputs); }
std::vector<IValue> Function::run(std::vector<IValue>& inputs) const {
  Call call(state_, inputs);
  return call(call.check_inputs());
}
std::vector<IValue> Function::run_accepted(std::vector<IValue>& inputs, std::vector<int64_t> numbers, exec::RunFailure* failure) const {
  if (failure) *failure = {.node = -1, .wrote_inputs = false};
  return Call(state_, inputs)(std::move(numbers), failure);
}
std::vector<std::shared_ptr<exec::CompiledGraph>> Function::compiled() const { return state_->all_compiled(); }
bool Function::would_pass_none(const std::vector<IValue>& inputs) const { return at::GradMode::is_enabled() && state_->joint.has_backward && state_->would_pass_none(inputs); }
const Joint& Function::joint() const { return state_->joint; }
const Split& Function::graphs() const { return state_->graphs; }
bool Function::has_compiled_backward() const { return state_->has_backward(); }

}  // namespace cutaway::aot
