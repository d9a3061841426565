// Runs a Plan. Written for graphs of thousands of tiny operators: per operator it copies or moves its arguments onto one stack that is
// allocated once, calls the dispatcher, and moves the results into their slots.
#include <ATen/core/LegacyTypeDispatch.h>
#include <cstdint>

#include "core/exec/interpreter.h"

#include "core/exec/plan.h"

namespace cutaway::exec {
namespace {

using c10::IValue;
using Stack = std::vector<IValue>;

thread_local int64_t last_error_position = -1;

/// Scopes that are open; closes those left, innermost first, when an exception passes.
class OpenScopes {
 public:
  ~OpenScopes() { while (!scopes_.empty()) scopes_.pop_back(); }
  void enter(const StateSetting& setting) { scopes_.push_back(std::make_unique<StateScope>(setting)); }
  void leave() { scopes_.pop_back(); }

 private:
  std::vector<std::unique_ptr<StateScope>> scopes_;
};

class Run {
 public:
  Run(const Program::Plan& plan, const RunOptions& options) : plan_(plan), options_(options), slots_(plan.slot_count) { stack_.reserve(plan.max_stack); }

  std::vector<IValue> operator()(std::vector<IValue>& inputs) {
    TORCH_CHECK_VALUE(inputs.size() == plan_.input_slots.size(), "the graph takes ", plan_.input_slots.size(), " inputs, not ", inputs.size());
    if (!plan_.dims.empty()) {
      const std::vector<int64_t> symbols = plan_.symbols.read(inputs);
      dims_.reserve(plan_.dims.size());
      for (const symbolic::Expression& d : plan_.dims) {
        const auto number = d.at(symbols);
        TORCH_CHECK_VALUE(number, "a symbolic size of ", plan_.graph.name, " divides by zero or does not fit into 64 bits");
        dims_.push_back(*number);
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (plan_.input_slots[i] != Program::Plan::kDropped) slots_[plan_.input_slots[i]] = std::move(inputs[i]);
    inputs.clear();
    const size_t count = plan_.instructions.size();
    size_t at = 0;
    try {
      if (options_.hooks) for (; at < count; ++at) execute<true>(plan_.instructions[at]);
      else for (; at < count; ++at) execute<false>(plan_.instructions[at]);
    } catch (...) {
      last_error_position = plan_.instructions[at].position;
      throw;
    }
    std::vector<IValue> outputs;
    outputs.reserve(plan_.outputs.size());
    for (const Operand& o : plan_.outputs) outputs.push_back(none_if_undefined(take(o)));
    return outputs;
  }

 private:
  template <bool kHooks> void execute(const Instruction& ins) {
    switch (ins.kind) {
      case Instruction::Kind::enter: scopes_.enter(plan_.states[ins.state]); return;
      case Instruction::Kind::leave: scopes_.leave(); return;
      default: break;
    }
    const Operand* operand = plan_.operands.data() + ins.first_operand;
    for (const Operand* end = operand + ins.operand_count; operand != end; ++operand) push(*operand);
    if (ins.kind == Instruction::Kind::call) {
      ins.call->run(stack_);
      keep_results(ins);
      return;
    }
    if constexpr (kHooks) {
      if (options_.hooks->before) options_.hooks->before(ins.position, *ins.node, stack_);
    }
    if (ins.makes_anew) {   // as torch.zeros() and its like do
      const at::AutoDispatchBelowADInplaceOrView quiet;
      ins.op->callBoxed(&stack_);
    } else if (ins.kind == Instruction::Kind::op) {
      ins.op->callBoxed(&stack_);
    } else {
      IValue result = ins.scalar_op->run(stack_.data(), stack_.size());
      stack_.clear();
      stack_.push_back(std::move(result));
    }
    if (ins.has_lists) flatten(*ins.node);
    if constexpr (kHooks) {
      if (options_.hooks->after) {
        stack_.resize(ins.result_count);   // results that the node does not name are nobody's
        options_.hooks->after(ins.position, *ins.node, stack_);
        TORCH_CHECK_VALUE(stack_.size() == ins.result_count, "a hook gave ", stack_.size(), " results for ", ins.node->target, ", which has ", ins.result_count);
      }
    }
    keep_results(ins);
  }

  void keep_results(const Instruction& ins) {
    const uint32_t* result = plan_.results.data() + ins.first_result;
    for (uint32_t i = 0; i < ins.result_count; ++i)
      if (result[i] != Program::Plan::kDropped) slots_[result[i]] = std::move(stack_[i]);
    stack_.clear();
  }

  void push(const Operand& o) {
    // The two common cases first: a tensor from a slot, and a literal.
    if (o.kind == Operand::Kind::slot) {
      IValue& v = slots_[o.index];
      if (C10_LIKELY((v.isTensor() && o.expect == Expect::tensor) || o.expect == Expect::as_is)) {
        if (o.is_last_use && options_.free_early) stack_.push_back(std::move(v));
        else stack_.push_back(v);
        return;
      }
    } else if (o.kind == Operand::Kind::constant) {
      stack_.push_back(plan_.constants[o.index]);
      return;
    }
    stack_.push_back(take(o));
  }

  IValue take(const Operand& o) {
    switch (o.kind) {
      case Operand::Kind::constant: return plan_.constants[o.index];
      case Operand::Kind::slot: {
        IValue& v = slots_[o.index];
        return bring(o.is_last_use && options_.free_early ? std::move(v) : v, o.expect);
      }
      case Operand::Kind::dim: return bring(dims_[o.index], o.expect);
      case Operand::Kind::generator: return generator(plan_.generators[o.index]);
      case Operand::Kind::composite: return composite(plan_.composites[o.index]);
    }
    TORCH_INTERNAL_ASSERT(false, "an operand of no kind");
  }

  IValue composite(const Composite& c) {
    if (c.kind == Composite::Kind::typed_list) {
      c10::impl::GenericList list(c.element_type);
      list.reserve(c.items.size());
      for (const Operand& o : c.items) list.push_back(take(o));
      return IValue(std::move(list));
    }
    std::vector<IValue> items;
    items.reserve(c.items.size());
    for (const Operand& o : c.items) items.push_back(none_if_undefined(take(o)));
    if (c.kind == Composite::Kind::tuple) return c10::ivalue::Tuple::create(std::move(items));
    if (c.kind == Composite::Kind::list) return list_of(std::move(items));
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (size_t i = 0; i < items.size(); ++i) dict.insert(c.keys[i], std::move(items[i]));
    return IValue(std::move(dict));
  }

  IValue generator(const std::string& name) const {
    if (options_.generators)
      if (auto it = options_.generators->find(name); it != options_.generators->end()) return it->second;
    TORCH_CHECK_VALUE(false, "the graph draws from the random state '", name, "', which this run was not given");
  }

  /// Lists that the node takes apart are replaced by their items.
  void flatten(const ir::Node& node) {
    Stack flat;
    flat.reserve(node.results.size());
    for (size_t i = 0; i < node.returns.size(); ++i) {
      if (node.returns[i] == ir::Node::kSingle) {
        flat.push_back(std::move(stack_[i]));
        continue;
      }
      const auto items = stack_[i].toListRef();
      TORCH_CHECK_VALUE(items.size() == static_cast<size_t>(node.returns[i]), node.target, " gave a list of ", items.size(), " where the graph has ", node.returns[i]);
      for (const IValue& v : items) flat.push_back(v);
    }
    stack_ = std::move(flat);
  }

  static IValue none_if_undefined(IValue v) { return v.isTensor() && !v.toTensor().defined() ? IValue() : std::move(v); }

  const Program::Plan& plan_;
  const RunOptions& options_;
  OpenScopes scopes_;
  std::vector<IValue> slots_;
  Stack stack_;
  std::vector<int64_t> dims_;   ///< what the plan's expressions come to
};

}  // namespace

Program::Program(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

std::vector<IValue> Program::run(std::vector<IValue>& inputs, const RunOptions& options) const {
  last_error_position = -1;
  const std::shared_ptr<const Plan> keep = plan_;   // a hook may replace the program that runs
  debug::Phase phase(options.sink, "exec", "run");
  return Run(*keep, options)(inputs);
}

int64_t Program::error_position() { return last_error_position; }
const ir::Graph& Program::graph() const { return plan_->graph; }

}  // namespace cutaway::exec
