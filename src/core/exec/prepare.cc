// Graph -> Plan: resolves operators, converts literals, unfolds regions, finds last uses.
#include <ATen/Context.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "core/exec/node_place.h"
#include "core/exec/plan.h"

namespace cutaway::exec {
namespace {

using base::Error;
using base::Result;
using base::Status;
using c10::IValue;

/// "aten.add.Tensr" -> what the operator does have; empty when nothing is near.
std::string suggest(const ir::OpName& name) {
  std::string overloads;
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames())
    if (known.name == name.name) overloads += (overloads.empty() ? "" : ", ") + ir::join_op_name(known.name, known.overload_name);
  if (!overloads.empty()) return overloads;
  // The nearest name of the same length or so: one or two letters off.
  auto distance = [](const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= b.size(); ++j) {
        const size_t up = row[j];
        row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
        diagonal = up;
      }
    }
    return row[b.size()];
  };
  size_t best = 3;
  std::string nearest;
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames()) {
    const size_t longer = std::max(known.name.size(), name.name.size()), shorter = std::min(known.name.size(), name.name.size());
    if (longer - shorter >= best) continue;
    const size_t d = distance(known.name, name.name);
    const std::string text = ir::join_op_name(known.name, known.overload_name);
    if (d < best || (d == best && d < 3 && text < nearest)) {
      best = d;
      nearest = text;
    }
  }
  return nearest;
}

class Preparer {
 public:
  explicit Preparer(Program::Plan& plan) : plan_(plan), graph_(plan.graph), bound_(graph_.values.size()) {}

  Status run() {
    for (const ir::Input& input : graph_.inputs) {
      if (input.value >= graph_.values.size()) return Error{.what = "an input of the graph is not one of its values"};
      plan_.input_slots.push_back(new_slot(input.value));
    }
    CUTAWAY_TRY(block(graph_.body));
    for (const ir::Argument& a : graph_.body.outputs) {
      auto operand = output(a);
      if (!operand.ok()) {
        Error e = std::move(operand).error();
        e.what = "the graph's return value: " + e.what;
        return e;
      }
      plan_.outputs.push_back(*operand);
    }
    mark_last_uses();
    CUTAWAY_TRY_ASSIGN(plan_.symbols, SymbolSources::find(graph_, dims_));
    for (const ir::Dim& d : dims_) plan_.dims.push_back(*symbolic::Expression::make(d, plan_.symbols.names()));   // all of whose symbols were found
    return {};
  }

 private:
  /// What a value is in the plan: a slot, or (a literal that a region yields) an argument.
  struct Binding { uint32_t slot = Program::Plan::kDropped; const ir::Argument* literal = nullptr; bool known() const { return literal || slot != Program::Plan::kDropped; } };

  uint32_t new_slot(ir::ValueId id) {
    bound_[id] = {plan_.slot_count, nullptr};
    return plan_.slot_count++;
  }

  Status block(const ir::Block& b) {
    for (const ir::Node& n : b.nodes)
      if (Status s = node(n); !s.ok()) return at_node(std::move(s).error(), graph_, n);
    return {};
  }

  Status node(const ir::Node& n) {
    for (ir::ValueId id : n.results)
      if (id >= graph_.values.size() || bound_[id].known()) return Error{.what = "a result of this node is defined twice, or is not a value of the graph"};
    if (n.kind == ir::Node::Kind::op) return op(n);
    if (const auto bound = plan_.calls.find(n.target); n.kind == ir::Node::Kind::call && bound != plan_.calls.end()) return call(n, *bound->second);
    return region(n);
  }

  /// One instruction for the whole region. Positions count its operators all the same.
  Status call(const ir::Node& n, const BoundCall& bound) {
    Instruction ins;
    ins.kind = Instruction::Kind::call;
    ins.call = &bound;
    ins.node = &n;
    ins.position = next_position_;
    for (const ir::Block& b : n.regions) ir::for_each_node(b, [&](const ir::Node& inner) { next_position_ += inner.kind == ir::Node::Kind::op; });
    std::vector<Operand> operands;
    for (const ir::Argument& a : n.args) {
      CUTAWAY_TRY_ASSIGN(Operand o, output(a));
      operands.push_back(o);
    }
    append(ins, operands);
    ins.first_result = static_cast<uint32_t>(plan_.results.size());
    ins.result_count = static_cast<uint32_t>(n.results.size());
    for (ir::ValueId id : n.results) plan_.results.push_back(new_slot(id));
    plan_.max_stack = std::max({plan_.max_stack, ins.operand_count, ins.result_count});
    plan_.instructions.push_back(std::move(ins));
    return {};
  }

  Status region(const ir::Node& n) {
    if (n.regions.size() != 1)
      return Error{.what = "'" + n.target + "' holds no operators", .because = "a captured call runs by the operators that were recorded inside it"};
    const ir::Block& body = n.regions[0];
    const bool has_state = !n.state.is_default();
    if (has_state) {
      CUTAWAY_TRY_ASSIGN(StateSetting setting, prepare_state(n.state));
      Instruction enter;
      enter.kind = Instruction::Kind::enter;
      enter.state = static_cast<uint32_t>(plan_.states.size());
      enter.position = next_position_;
      plan_.states.push_back(std::move(setting));
      plan_.instructions.push_back(std::move(enter));
    }
    CUTAWAY_TRY(block(body));
    if (has_state) {
      Instruction leave;
      leave.kind = Instruction::Kind::leave;
      leave.position = next_position_;
      plan_.instructions.push_back(std::move(leave));
    }
    return yield(n, body);
  }

  /// What the region yields becomes what the node defines: flat, one for each result.
  Status yield(const ir::Node& n, const ir::Block& body) {
    if (body.outputs.size() != n.results.size())
      return Error{.what = "the region yields " + std::to_string(body.outputs.size()) + " values where " + std::to_string(n.results.size()) + " are defined"};
    for (size_t i = 0; i < n.results.size(); ++i) {
      const ir::Argument& yielded = body.outputs[i];
      if (auto* r = yielded.as<ir::ValueRef>()) {
        CUTAWAY_TRY(check_defined(r->id));
        bound_[n.results[i]] = bound_[r->id];   // the same slot: nothing happens at run time
      } else {
        bound_[n.results[i]].literal = &yielded;
      }
    }
    return {};
  }

  Status op(const ir::Node& n) {
    Instruction ins;
    ins.node = &n;
    ins.position = next_position_++;
    if (const ScalarOp* scalar = find_scalar_op(n.target)) {
      CUTAWAY_TRY(scalar_op(n, *scalar, ins));
    } else {
      CUTAWAY_TRY(torch_op(n, ins));
    }
    plan_.max_stack = std::max({plan_.max_stack, ins.operand_count, static_cast<uint32_t>(n.returns.size())});
    plan_.instructions.push_back(std::move(ins));
    return {};
  }

  static bool takes_no_tensor(const c10::FunctionSchema& schema) {
    const auto has_tensor = [](const c10::Argument& a) { return a.type()->str().find("Tensor") != std::string::npos; };
    return std::none_of(schema.arguments().begin(), schema.arguments().end(), has_tensor) && std::any_of(schema.returns().begin(), schema.returns().end(), has_tensor);
  }

  Status torch_op(const ir::Node& n, Instruction& ins) {
    auto name = ir::split_op_name(n.target);
    if (!name) return Error{.what = "'" + n.target + "' is not the name of an operator", .hint = "write namespace.name or namespace.name.overload"};
    if (name->name.starts_with("higher_order::"))
      return Error{.what = "the operator '" + n.target + "' is not run here", .because = "control-flow and other operators that take functions (cond, while_loop, map, scan, …) are refused"};
    ins.op = c10::Dispatcher::singleton().findSchema({name->name, name->overload});
    if (!ins.op) {
      Error e{.what = "torch has no operator '" + n.target + "'"};
      if (std::string near = suggest(*name); !near.empty()) e.hint = near;
      else e.hint = "load the library that defines it";
      return e;
    }
    const c10::FunctionSchema& schema = ins.op->schema();
    ins.makes_anew = name->name.starts_with("aten::") && takes_no_tensor(schema);
    CUTAWAY_TRY(arguments(n, schema, ins));
    return returns(n, schema, ins);
  }

  Status arguments(const ir::Node& n, const c10::FunctionSchema& schema, Instruction& ins) {
    const auto& formal = schema.arguments();
    auto count = [](size_t k) { return std::to_string(k) + (k == 1 ? " argument" : " arguments"); };
    const size_t positional = std::count_if(formal.begin(), formal.end(), [](const c10::Argument& a) { return !a.kwarg_only(); });
    if (n.args.size() > positional)
      return Error{.what = count(n.args.size()) + " without a name where " + n.target + " takes " + std::to_string(positional), .because = "its schema is " + schema_text(schema)};
    std::vector<const ir::Argument*> actual(formal.size(), nullptr);
    for (size_t i = 0, at = 0; i < formal.size() && at < n.args.size(); ++i)
      if (!formal[i].kwarg_only()) actual[i] = &n.args[at++];
    for (const auto& [key, a] : n.kwargs) {
      auto it = std::find_if(formal.begin(), formal.end(), [&](const c10::Argument& f) { return f.name() == key; });
      if (it == formal.end()) return Error{.what = n.target + " has no argument '" + key + "'", .because = "its schema is " + schema_text(schema)};
      if (actual[it - formal.begin()]) return Error{.what = "the argument '" + key + "' of " + n.target + " is given twice"};
      actual[it - formal.begin()] = &a;
    }
    std::vector<Operand> operands;   // first here: a composite's own operands must not come between
    for (size_t i = 0; i < formal.size(); ++i) {
      const SchemaType type{formal[i].type(), formal[i].real_type(), formal[i].N()};
      if (!actual[i]) {
        if (formal[i].default_value()) operands.push_back(constant(*formal[i].default_value()));
        else return Error{.what = "the argument '" + formal[i].name() + "' of " + n.target + " is missing", .because = "its schema is " + schema_text(schema)};
        continue;
      }
      auto made = operand(*actual[i], type);
      if (!made.ok()) {
        Error e = std::move(made).error();
        e.what = "the argument '" + formal[i].name() + "' of " + n.target + ": " + e.what;
        if (e.because.empty()) e.because = "its schema is " + schema_text(schema);
        return e;
      }
      const Operand& o = *made;
      if (formal[i].alias_info() && formal[i].alias_info()->isWrite() && o.kind == Operand::Kind::constant && plan_.constants[o.index].isTensor() && plan_.constants[o.index].toTensor().defined())
        return Error{.what = "the argument '" + formal[i].name() + "' of " + n.target + " is written to and must be a value, not a number"};
      operands.push_back(o);
    }
    append(ins, operands);
    return {};
  }

  Status returns(const ir::Node& n, const c10::FunctionSchema& schema, Instruction& ins) {
    ins.first_result = static_cast<uint32_t>(plan_.results.size());
    ins.result_count = static_cast<uint32_t>(n.results.size());
    if (n.returns.empty() && n.results.empty()) return {};   // whatever it gives is not wanted
    if (n.returns.size() != schema.returns().size())
      return Error{.what = "the node defines " + std::to_string(n.returns.size()) + " results where " + n.target + " gives " + std::to_string(schema.returns().size()), .because = "its schema is " + schema_text(schema)};
    size_t flat = 0;
    for (size_t i = 0; i < n.returns.size(); ++i) {
      if (n.returns[i] == ir::Node::kSingle) { ++flat; continue; }
      if (n.returns[i] < 0) return Error{.what = "result " + std::to_string(i) + " has no valid form"};
      if (schema.returns()[i].real_type()->kind() != c10::TypeKind::ListType)
        return Error{.what = "result " + std::to_string(i) + " of " + n.target + " is taken as a list and is " + schema.returns()[i].real_type()->str()};
      ins.has_lists = true;
      flat += static_cast<size_t>(n.returns[i]);
    }
    if (flat != n.results.size()) return Error{.what = "the form of the results and their number disagree"};
    for (ir::ValueId id : n.results) plan_.results.push_back(new_slot(id));
    return {};
  }

  Status scalar_op(const ir::Node& n, const ScalarOp& scalar, Instruction& ins) {
    ins.kind = Instruction::Kind::scalar_op;
    ins.scalar_op = &scalar;
    const size_t arity = scalar.arity == ScalarOp::kAnyArity ? 1 : static_cast<size_t>(scalar.arity);
    if (n.args.size() != arity || !n.kwargs.empty()) return Error{.what = n.target + " takes " + std::to_string(arity) + " arguments without names, not " + std::to_string(n.args.size() + n.kwargs.size())};
    if (n.results.size() != 1 || n.returns != std::vector<int32_t>{ir::Node::kSingle}) return Error{.what = n.target + " gives one number"};
    c10::TypePtr type = c10::NumberType::get();
    if (scalar.arity == ScalarOp::kAnyArity) type = c10::ListType::create(type);
    std::vector<Operand> operands;
    for (const ir::Argument& a : n.args) {
      CUTAWAY_TRY_ASSIGN(Operand o, operand(a, {type, type, std::nullopt}));
      operands.push_back(o);
    }
    append(ins, operands);
    ins.first_result = static_cast<uint32_t>(plan_.results.size());
    ins.result_count = 1;
    plan_.results.push_back(new_slot(n.results[0]));
    return {};
  }

  void append(Instruction& ins, const std::vector<Operand>& operands) {
    ins.first_operand = static_cast<uint32_t>(plan_.operands.size());
    ins.operand_count = static_cast<uint32_t>(operands.size());
    plan_.operands.insert(plan_.operands.end(), operands.begin(), operands.end());
  }

  Operand constant(IValue v) {
    plan_.constants.push_back(std::move(v));
    return {Operand::Kind::constant, Expect::as_is, false, static_cast<uint32_t>(plan_.constants.size() - 1)};
  }
  Operand composite(Composite c) {
    plan_.composites.push_back(std::move(c));
    return {Operand::Kind::composite, Expect::as_is, false, static_cast<uint32_t>(plan_.composites.size() - 1)};
  }

  Status check_defined(ir::ValueId id) {
    if (id >= graph_.values.size()) return Error{.what = "a value that the graph does not have is used"};
    if (!bound_[id].known()) return Error{.what = "%" + graph_.value(id).name + " is used before it is defined"};
    return {};
  }
  /// The literal behind a value that a region yields as one, else the argument itself.
  Result<const ir::Argument*> resolve(const ir::Argument& a) {
    const ir::Argument* at = &a;
    while (auto* r = at->as<ir::ValueRef>()) {
      CUTAWAY_TRY(check_defined(r->id));
      if (!bound_[r->id].literal) break;
      at = bound_[r->id].literal;
    }
    return at;
  }

  /// Expressions are worked out once a run; those that share a tree share the number.
  uint32_t dim_index(const ir::Dim& d) {
    const auto [it, is_new] = dim_of_.try_emplace(d.text(), static_cast<uint32_t>(dims_.size()));
    if (is_new) dims_.push_back(d);
    return it->second;
  }

  /// An argument of an operator, brought to the type that its schema says.
  Result<Operand> operand(const ir::Argument& argument, const SchemaType& declared) {
    CUTAWAY_TRY_ASSIGN(const ir::Argument* a, resolve(argument));
    if (auto* r = a->as<ir::ValueRef>()) return Operand{Operand::Kind::slot, expect_for(declared), false, bound_[r->id].slot};
    if (a->is_none() && declared.is_optional()) return constant(IValue());
    const SchemaType type = declared.without_optional();
    if (type.real->kind() == c10::TypeKind::AnyType) return output(*a);
    if (auto* d = a->as<ir::Dim>(); d && d->is_symbolic() && !type.is_list()) {
      return Operand{Operand::Kind::dim, expect_for(declared), false, dim_index(*d)};
    }
    if (auto* g = a->as<ir::GeneratorName>(); g && type.real->kind() == c10::TypeKind::GeneratorType) return generator(*g);
    if (type.is_list()) {
      std::vector<const ir::Argument*> items;
      if (auto* list = a->as<ir::List>()) for (auto& x : list->items) items.push_back(&x);
      else if (auto* tuple = a->as<ir::Tuple>()) for (auto& x : tuple->items) items.push_back(&x);
      else if (type.length) items.assign(static_cast<size_t>(*type.length), a);   // int[2]: one number stands for all
      else return literal_for(*a, type).error();
      return typed_list(items, type.element());
    }
    CUTAWAY_TRY_ASSIGN(IValue v, literal_for(*a, type));
    return constant(std::move(v));
  }

  Result<Operand> typed_list(const std::vector<const ir::Argument*>& items, const SchemaType& element) {
    Composite c{Composite::Kind::typed_list, element.type, {}, {}};
    for (const ir::Argument* item : items) {
      CUTAWAY_TRY_ASSIGN(Operand o, operand(*item, element));
      c.items.push_back(o);
    }
    if (!std::all_of(c.items.begin(), c.items.end(), [](const Operand& o) { return o.kind == Operand::Kind::constant; })) return composite(std::move(c));
    c10::impl::GenericList list(element.type);
    list.reserve(c.items.size());
    for (const Operand& o : c.items) list.push_back(plan_.constants[o.index]);
    return constant(IValue(std::move(list)));
  }

  Result<Operand> generator(const ir::GeneratorName& g) {
    if (g.name == "default" || g.name.empty()) return constant(IValue());   // torch takes the default one of the operator's device
    if (auto device = ir::Device::parse(g.name); device.ok()) {
      try {
        return constant(IValue(at::globalContext().defaultGenerator(at::Device(g.name))));
      } catch (const c10::Error&) {
        // not a device of this build: a name of the caller's
      }
    }
    plan_.generators.push_back(g.name);
    return Operand{Operand::Kind::generator, Expect::as_is, false, static_cast<uint32_t>(plan_.generators.size() - 1)};
  }

  /// A part of what the graph returns: its own form, without a schema.
  Result<Operand> output(const ir::Argument& argument) {
    CUTAWAY_TRY_ASSIGN(const ir::Argument* a, resolve(argument));
    if (auto* r = a->as<ir::ValueRef>()) return Operand{Operand::Kind::slot, Expect::as_is, false, bound_[r->id].slot};
    if (auto* d = a->as<ir::Dim>(); d && d->is_symbolic()) {
      return Operand{Operand::Kind::dim, Expect::as_is, false, dim_index(*d)};
    }
    Composite c;
    auto add = [&](const ir::Argument& x) -> Status {
      CUTAWAY_TRY_ASSIGN(Operand o, output(x));
      c.items.push_back(o);
      return {};
    };
    if (auto* list = a->as<ir::List>()) {
      c.kind = Composite::Kind::list;
      for (auto& x : list->items) CUTAWAY_TRY(add(x));
      return composite(std::move(c));
    }
    if (auto* tuple = a->as<ir::Tuple>()) {
      c.kind = Composite::Kind::tuple;
      for (auto& x : tuple->items) CUTAWAY_TRY(add(x));
      return composite(std::move(c));
    }
    if (auto* dict = a->as<ir::Dict>()) {
      c.kind = Composite::Kind::dict;
      for (auto& [key, x] : dict->items) {
        c.keys.push_back(key);
        CUTAWAY_TRY(add(x));
      }
      return composite(std::move(c));
    }
    CUTAWAY_TRY_ASSIGN(IValue v, to_ivalue(*a, [](ir::ValueId) { return IValue(); }));
    return constant(std::move(v));
  }

  /// From the end: the first use met of a slot is its last. Order within an instruction is that of evaluation.
  void mark_last_uses() {
    std::vector<bool> used(plan_.slot_count, false);
    auto visit = [&](Operand& o, auto& self) -> void {
      if (o.kind == Operand::Kind::composite) {
        auto& items = plan_.composites[o.index].items;
        for (auto it = items.rbegin(); it != items.rend(); ++it) self(*it, self);
      } else if (o.kind == Operand::Kind::slot && !used[o.index]) {
        used[o.index] = true;
        o.is_last_use = true;
      }
    };
    for (auto it = plan_.outputs.rbegin(); it != plan_.outputs.rend(); ++it) visit(*it, visit);
    for (auto ins = plan_.instructions.rbegin(); ins != plan_.instructions.rend(); ++ins) {
      for (uint32_t i = 0; i < ins->result_count; ++i)
        if (uint32_t& slot = plan_.results[ins->first_result + i]; !used[slot]) slot = Program::Plan::kDropped;
      for (uint32_t i = ins->operand_count; i-- > 0;) visit(plan_.operands[ins->first_operand + i], visit);
      if (gives_references(*ins))   // their owners stay in the slots
        for (uint32_t i = 0; i < ins->operand_count; ++i) plan_.operands[ins->first_operand + i].is_last_use = false;
    }
    for (uint32_t& slot : plan_.input_slots)
      if (!used[slot]) slot = Program::Plan::kDropped;
  }

  /// Torch before 2.13 drops the arguments of an operator with several `out` tensors before it reads the results, which refer to them.
  static bool gives_references(const Instruction& ins) {
    if (ins.kind != Instruction::Kind::op) return false;
    const auto& returns = ins.op->schema().returns();
    return returns.size() > 1 && returns[0].alias_info() && returns[0].alias_info()->isWrite();
  }

  static std::string schema_text(const c10::FunctionSchema& schema) { return c10::toString(schema); }

  Program::Plan& plan_;
  const ir::Graph& graph_;
  std::vector<Binding> bound_;
  std::vector<ir::Dim> dims_;   // the plan's expressions
  std::unordered_map<std::string, uint32_t> dim_of_;   // by text: each is computed once a run
  uint32_t next_position_ = 0;
};

}  // namespace

base::Result<Program> Program::prepare(const ir::Graph& graph, BoundCalls calls) {
  auto plan = std::make_shared<Plan>();
  plan->graph = graph;
  plan->calls = std::move(calls);
  CUTAWAY_TRY(Preparer(*plan).run());
  return Program(std::move(plan));
}

}  // namespace cutaway::exec
