#include "core/trace/recorder/recorder_state.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>

#include "core/ir/edit.h"
#include "core/tensor/convert.h"
#include "core/trace/autograd_function.h"
#include "core/trace/dispatch_keys.h"
#include "core/trace/fakes/fake_impl.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/kernel_errors.h"
#include "core/trace/recorder/call_memo.h"
#include "core/trace/value_checks.h"

namespace cutaway::trace {
namespace {

// While the recorder itself asks something of a tensor, nobody records and nothing is fake.
struct Unobserved {
  c10::impl::ExcludeDispatchKeyGuard keys{c10::DispatchKeySet(kAboveKey).add(kBelowKey)};
};

bool same_metadata(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

// A Python number that an operator took for a tensor.
std::optional<ir::Argument> wrapped_number(const at::Tensor& t) {
  if (!t.unsafeGetTensorImpl()->is_wrapped_number() || t.dim() != 0 || fake_impl(t) || t.is_meta()) return std::nullopt;
  const Unobserved quiet;
  const c10::Scalar s = t.item();
  if (s.isBoolean()) return s.toBool();
  if (s.isIntegral(false)) return s.toLong();
  if (s.isFloatingPoint()) return s.toDouble();
  const auto c = s.toComplexDouble();
  return std::complex<double>(c.real(), c.imag());
}

c10::Storage storage_of(const at::Tensor& t) { return t.has_storage() ? t.storage() : c10::Storage(); }

NodePointer history_of(const at::Tensor& t) {
  const auto* meta = static_cast<torch::autograd::AutogradMeta*>(t.unsafeGetTensorImpl()->autograd_meta());
  if (!meta) return {};
  if (!t.is_view()) return meta->grad_fn_;
  try {
    return t.grad_fn();   // of a view it is made anew after a write to its base
  } catch (const c10::Error&) {
    return meta->grad_fn_;   // the base was written to in a way that forbids it; the operator that uses the view says so
  }
}

ir::List to_list(at::IntArrayRef v) {
  ir::List list;
  for (const auto x : v) list.items.emplace_back(x);
  return list;
}

}  // namespace

Recorder::State::State(RecordOptions o)
    : options(std::move(o)), grad_at_start(c10::GradMode::is_enabled()), inference_at_start(c10::InferenceMode::is_enabled()) {
  for (const auto type : kAutocastDevices)
    if (at::autocast::is_autocast_enabled(type)) autocast_at_start |= 1u << static_cast<unsigned>(type);
  graph.name = options.graph_name;
  // A model has hundreds of values: growing in small steps would move them all several times. Not more: the C library tidies up all of
  // its free memory whenever a piece of 64 KB comes back.
  graph.values.reserve(128);
  frames.emplace_back();
  frames.back().nodes.reserve(64);
  writer.tensor = [this](const at::Tensor& t) { return argument_for(t); };
  writer.symbolic = [this](const c10::IValue& v) { return number_argument(v); };
  // A device's own generator goes by the device's name, any other by its order of appearance.
  writer.generator = [this](const at::Generator& g) -> ir::Argument {
    if (g == at::globalContext().defaultGenerator(g.device())) return ir::GeneratorName{g.device().str()};
    auto it = std::find(generators.begin(), generators.end(), g);
    if (it == generators.end()) it = generators.insert(generators.end(), g);
    return ir::GeneratorName{"generator" + std::to_string(it - generators.begin())};
  };
}
Recorder::State::~State() = default;

void Recorder::State::add_input(const at::Tensor& t, InputName name) {
  TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == at::kStrided, "an input of layout ", t.layout(), " cannot be recorded: only strided tensors can");
  const auto id = graph.add_input(std::move(name.name), ir::Type::of(tensor::type_of(t)), name.kind, std::move(name.qualified_name));
  home.resize(graph.values.size(), 0);
  from_inputs.resize(graph.values.size(), true);
  inputs.push_back(t);
  if (!tensors.find(t)) bind(t, id);   // a tensor given twice: the first stands for both
}

ir::ValueId Recorder::State::bind(const at::Tensor& t, ir::ValueId id, bool is_derived) {
  if (frames.size() > 1) {
    const auto* before = tensors.find(t);
    frames.back().rebound.emplace_back(t, before ? before->id : ir::kNoValue);
  }
  tensors.put({t, id, is_derived, options.where == Where::above_autograd && !is_derived ? history_of(t) : NodePointer(), storage_of(t)});
  return id;
}

ir::ValueId Recorder::State::new_value(std::string_view name, const c10::IValue& v) {
  using Kind = ir::Type::Kind;
  ir::Type type = ir::Type::of(Kind::opaque);
  if (v.isTensor()) type = v.toTensor().defined() ? ir::Type::of(tensor::type_of(v.toTensor())) : ir::Type::of(Kind::none);
  if (type.is_tensor() && options.keeps_numbers) name_unknown_sizes(type.tensor, v.toTensor());
  if (v.isTensor()) {}
  else if (v.isNone()) type = ir::Type::of(Kind::none);
  else if (v.isInt() || v.isSymInt()) type = ir::Type::of(Kind::integer);
  else if (v.isDouble() || v.isSymFloat()) type = ir::Type::of(Kind::floating);
  else if (v.isBool() || v.isSymBool()) type = ir::Type::of(Kind::boolean);
  else if (v.isComplexDouble()) type = ir::Type::of(Kind::complex);
  else if (v.isString()) type = ir::Type::of(Kind::string);
  else if (v.isDevice()) type = ir::Type::of(Kind::device);
  const auto id = graph.add_value(std::string(name), std::move(type));
  home.resize(graph.values.size(), frames.back().region);
  from_inputs.resize(graph.values.size(), true);
  return id;
}

std::vector<ir::Node>& Recorder::State::nodes_of(uint32_t region) {
  if (regions[region].is_open)
    for (auto& f : frames)
      if (f.region == region) return f.nodes;
  return node_of(region).regions.front().nodes;
}
ir::Node& Recorder::State::node_of(uint32_t region) { return nodes_of(regions[region].parent)[regions[region].position]; }

ir::ValueId Recorder::State::visible(ir::ValueId id) {
  while (!regions[home[id]].is_open) {
    const uint32_t region = home[id];
    if (regions[region].is_call) return ir::kNoValue;   // its results are the call's: nothing can be added to them
    auto& node = node_of(region);
    auto& outputs = node.regions.front().outputs;
    ir::ValueId outside = ir::kNoValue;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].as<ir::ValueRef>()->id == id) outside = node.results[i];
    if (outside == ir::kNoValue) {
      outputs.emplace_back(ir::ValueRef{id});
      outside = graph.add_value(graph.values[id].name, graph.values[id].type);
      node.results.push_back(outside);
      node.returns.push_back(ir::Node::kSingle);
      home.push_back(regions[region].parent);
      from_inputs.push_back(from_inputs[id]);
    }
    id = outside;
  }
  return id;
}

ir::Argument Recorder::State::argument_for(const at::Tensor& t) {
  if (auto* known = tensors.find(t)) {
    const auto id = visible(known->id);
    if (id != ir::kNoValue) {
      known->id = id;
      // Python sets the flag without an operator: the graph could not say when.
      if (options.where == Where::above_autograd && !error && t.is_leaf() && t.requires_grad() && !graph.values[id].type.tensor.requires_grad)
        error = base::Error{.what = "requires_grad_ on %" + graph.values[id].name + " inside a recording is refused", .place = options.graph_name, .because = "a graph has no operator for it"};
      if (options.where == Where::above_autograd) check_unchanged(*known);
      return ir::ValueRef{id};
    }
    if (!error)
      error = base::Error{.what = "a tensor made inside the captured call " + regions[home[known->id]].name + " is used outside of it, and is not among its results",
                          .place = options.graph_name};
    return ir::ValueRef{known->id};
  }
  if (options.wrapped_number && t.unsafeGetTensorImpl()->is_wrapped_number())
    if (const c10::IValue number = options.wrapped_number(t); !number.isNone()) {
      took_number = true;
      return number_argument(number);
    }
  if (auto number = wrapped_number(t)) return *number;
  if (auto id = derive(t)) return ir::ValueRef{*id};
  TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == at::kStrided, "a constant of layout ", t.layout(), " cannot be recorded: only strided tensors can");
  const auto id = graph.add_input("constant" + std::to_string(constants.size()), ir::Type::of(tensor::type_of(t)), ir::InputKind::constant);
  home.resize(graph.values.size(), 0);
  from_inputs.resize(graph.values.size(), false);
  constants.push_back(t);
  // Not through bind(): an input stays visible after the call in which it was met.
  tensors.put({t, id, false, history_of(t), storage_of(t)});
  return ir::ValueRef{id};
}

// A custom autograd function runs its forward without gradients, then gives its results a history of its own, and no operator tells. Other new
// histories come from views of what was written to, and are the operators' own.
void Recorder::State::check_unchanged(const KnownTensor& b) {
  if (error) return;
  if (b.tensor.has_storage() && b.tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() != b.storage.unsafeGetStorageImpl()) {
    error = base::Error{.what = "the data of %" + graph.values[b.id].name + " was replaced inside a recording (x.data = …), which is refused", .place = options.graph_name, .because = "a graph has no operator for it"};
    return;
  }
  const auto now = history_of(b.tensor);
  if (!now || now == b.history) return;
  const auto* custom = autograd_function(*now);
  if (!custom && b.tensor.is_view())   // what wrote to its base comes right before
    for (const auto& edge : now->next_edges())
      if (edge.function && !custom) custom = autograd_function(*edge.function);
  if (!custom) return;
  count_refused_above_autograd();
  error = base::Error{.what = "the autograd function " + custom->name() + " has a backward of its own, and is refused above autograd", .place = options.graph_name,
                      .because = "a graph above autograd is differentiated by its operators", .hint = "record below autograd, where the backward runs through the engine"};
}

void Recorder::State::check_inputs() {
  for (const auto& t : inputs)
    if (const auto* known = tensors.find(t)) check_unchanged(*known);
}

// A tensor that torch made from a known one without telling the dispatcher: x.data, a saved variable, a copy of the impl.
std::optional<ir::ValueId> Recorder::State::derive(const at::Tensor& t) {
  if (t.layout() != at::kStrided || !t.has_storage()) return std::nullopt;
  const KnownTensor *same = nullptr, *other = nullptr;
  tensors.for_each_on(t.storage().unsafeGetStorageImpl(), [&](const KnownTensor& known) {
    if (same || visible(known.id) == ir::kNoValue) return;
    if (same_metadata(known.tensor, t)) same = &known;
    if (!other && known.tensor.scalar_type() == t.scalar_type() && !known.tensor.is_conj() && !known.tensor.is_neg()) other = &known;
  });
  if (!same && !other) return std::nullopt;
  if (t.is_conj() || t.is_neg()) other = nullptr;
  if (!same && !other) return std::nullopt;
  const bool above = options.where == Where::above_autograd;
  const at::Tensor base = (same ? same : other)->tensor;
  auto base_id = visible((same ? same : other)->id);
  const bool depends = from_inputs[base_id];
  if (above && base.requires_grad() && !t.requires_grad()) base_id = emit("aten.detach", "detach", {ir::ValueRef{base_id}}, t);
  if (!same) base_id = emit("aten.as_strided", "as_strided", {ir::ValueRef{base_id}, to_list(t.sizes()), to_list(t.strides()), ir::Argument(t.storage_offset())}, t);
  from_inputs[base_id] = depends;
  bind(t, base_id, /*is_derived=*/true);
  if (above) check_unchanged(*tensors.find(t));
  return base_id;
}

ir::ValueId Recorder::State::emit(const char* target, const char* name, std::vector<ir::Argument> args, const at::Tensor& like) {
  ir::Node node;
  node.target = target;
  node.args = std::move(args);
  const auto id = new_value(name, like);
  node.results = {id};
  node.returns = {ir::Node::kSingle};
  push(std::move(node));
  return id;
}

void Recorder::State::push(ir::Node&& node) { frames.back().nodes.push_back(std::move(node)); }

bool Recorder::State::are_known_constants(const OperatorInfo& info, const torch::jit::Stack& stack) {
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i)
    if (stack[i].isTensor() && stack[i].toTensor().defined() && !is_known_constant(stack[i].toTensor())) return false;
  return true;
}

bool Recorder::State::is_known_constant(const at::Tensor& t) {
  if (const auto* known = tensors.find(t)) return !from_inputs[known->id];
  if (auto* fake = fake_impl(t)) return fake->constant().defined();
  return !(t.layout() == at::kStrided && t.has_storage() && tensors.has_storage(t.storage().unsafeGetStorageImpl()));
}

namespace {
std::string described(const ir::Location& where) { return "at " + where.file + ":" + std::to_string(where.line) + (where.function.empty() ? "" : " in " + where.function); }
}  // namespace

void Recorder::State::observe(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack, Runner run) {
  const SizesShown shown;
  try {
    record_call(op, info, stack, run);
  } catch (DataDependentError& e) {
    // Operators within operators come by here too: the innermost names the line.
    if (options.location && e.context().empty())
      if (const auto where = options.location(); where.is_known()) e.add_context(described(where));
    throw;
  } catch (const c10::Error& e) {
    // A kernel above every key that reads memory on its own (tensor_split with a tensor of indices).
    if (options.where == Where::above_autograd && std::string_view(e.what_without_backtrace()).starts_with(kNoData)) refuse_reading(info);
    throw;
  }
}

void Recorder::State::refuse_reading(const OperatorInfo& info) {
  const auto where = options.location ? options.location() : ir::Location{};
  throw_data_dependent(info.full_name + ": its kernel reads the data of a tensor, and a fake tensor has none" + (where.is_known() ? " (" + described(where) + ")" : ""));
}

void Recorder::State::record_call(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack, Runner run) {
  const bool is_question = !info.returns_tensors && !info.is_mutable && info.return_count > 0;
  if (is_question) {
    // A number taken from data would be frozen into the graph: only constants may give one.
    if (info.is_data_dependent && !are_known_constants(info, *stack)) {
      if (options.keeps_numbers && (info.full_name == "aten::item" || info.full_name == "aten::_local_scalar_dense")) return record_number(op, info, stack);
      if (options.where == Where::below_autograd && ValueChecks::is_check_of_backward(info)) return write_closeness(stack);
      if (!ValueChecks::is_question(info, *stack)) throw_data_dependent(info.full_name + ": a recording cannot depend on the value of a tensor that depends on its inputs");
      // Inside an operator that only raises an error. Above autograd the graph has the operator, which asks; here it has the question.
      if (options.where == Where::below_autograd) {
        const auto asking = ValueChecks::asking();
        write_check((*stack)[stack->size() - 2].toTensor(), std::string(asking.substr(asking.find(':') + 2)) + ": an argument has values that it does not take");
      }
      torch::jit::drop(*stack, 2);
      stack->emplace_back(true);
      return;
    }
    return options.keeps_numbers ? run_with_unknowns(op, info, stack, run) : run(op, info, stack);
  }
  if (info.name.name.starts_with("profiler::")) return run(op, info, stack);
  if (options.where == Where::above_autograd) enter_state();
  ir::Node node = start_node(info);
  took_number = false;
  add_arguments(node, op, info, *stack);
  std::vector<at::Tensor> written;
  if (info.is_mutable)
    for (size_t i = 0; i < info.argument_count; ++i) {
      const auto* alias = op.schema().arguments()[i].alias_info();
      const auto& v = (*stack)[stack->size() - info.argument_count + i];
      if (!alias || !alias->isWrite()) continue;
      if (v.isTensor() && v.toTensor().defined()) written.push_back(v.toTensor());
      else if (v.isTensorList()) for (const at::Tensor& t : v.toTensorVector()) written.push_back(t);
    }
  seen.writes |= info.is_mutable;
  seen.draws |= info.is_random;
  if (watches_errors && !seen.may_raise) seen.may_raise = may_raise(op, *stack);
  if (info.full_name == "aten::retain_grad") retained.push_back(written.front().unsafeGetTensorImpl());
  if (options.keeps_numbers) run_with_unknowns(op, info, stack, run);
  else run(op, info, stack);
  if (info.full_name == "aten::set_data")
    if (const KnownTensor* known = tensors.find(written.front())) tensors.put({known->tensor, known->id, known->is_derived, history_of(known->tensor), storage_of(known->tensor)});
  const bool depends = add_results(node, info, *stack);
  seen.updates_statistics |= !info.is_mutable && !info.is_random && !node.results.empty() && ir::has_effects(node);
  push(std::move(node));
  // What shares a storage with a constant that was written to is no constant any more.
  if (depends)
    for (const auto& w : written)
      if (w.layout() == at::kStrided && w.has_storage())
        tensors.for_each_on(w.storage().unsafeGetStorageImpl(), [&](const KnownTensor& known) { from_inputs[known.id] = true; });
}

void Recorder::State::write_closeness(torch::jit::Stack* stack) {
  const auto args = torch::jit::last(*stack, 5);
  active_recording(options.where) = this;   // off while an operator is looked at; these are operators of the graph
  // Not at::isclose, which writes to its own results. What it has more concerns infinities on both sides; here one side is zero.
  const at::Tensor &a = args[0].toTensor(), &b = args[1].toTensor();
  const at::Tensor holds = a.sub(b).abs().le(b.abs().mul(args[2].toDouble()).add(args[3].toDouble())).all();
  active_recording(options.where) = nullptr;
  write_check(holds, "the loss depends on the phases of the singular vectors or eigenvectors, which are not determined: its gradient is ill-defined");
  torch::jit::drop(*stack, 5);
  stack->emplace_back(true);
}

void Recorder::State::write_check(const at::Tensor& condition, std::string message) {
  ir::Node node;
  node.target = "aten._assert_async.msg";
  if (options.location) node.location = here();
  node.args = {argument_for(condition), ir::Argument(std::move(message))};
  push(std::move(node));
}

ir::Node Recorder::State::start_node(const OperatorInfo& info) {
  ir::Node node;
  // torch.tensor(…) makes a tensor anew each time; its constant must survive what the program writes to it.
  node.target = info.full_name == "aten::lift_fresh" ? "aten.lift_fresh_copy" : info.target;
  if (options.location) node.location = here();
  return node;
}

ir::LocationId Recorder::State::here() {
  const uint64_t place = options.place ? options.place() : 0;
  if (place)
    if (const auto it = places.find(place); it != places.end()) return it->second;
  const auto where = options.location();
  const auto id = where.is_known() ? graph.add_location(where) : ir::kNoLocation;
  if (place) places.emplace(place, id);
  return id;
}

void Recorder::State::add_arguments(ir::Node& node, const c10::OperatorHandle& op, const OperatorInfo& info, const torch::jit::Stack& stack) {
  const auto& formal = op.schema().arguments();
  if (!info.has_defaults) {
    for (const auto& a : formal) {
      if (a.default_value()) info.defaults.emplace_back(write(*a.default_value(), a.real_type().get()));
      else info.defaults.emplace_back();
    }
    info.has_defaults = true;
  }
  const size_t first = stack.size() - formal.size();
  const auto is_default = [&](size_t i, const ir::Argument& value) { return info.defaults[i] && *info.defaults[i] == value; };
  node.args.reserve(formal.size());
  for (size_t i = 0; i < formal.size(); ++i) {
    auto value = write(stack[first + i], formal[i].real_type().get());
    if (!formal[i].kwarg_only()) node.args.push_back(std::move(value));   // all of them come before the others
    else if (!is_default(i, value)) node.kwargs.emplace_back(formal[i].name(), std::move(value));
  }
  while (!node.args.empty() && is_default(node.args.size() - 1, node.args.back())) node.args.pop_back();
}

bool Recorder::State::add_results(ir::Node& node, const OperatorInfo& info, const torch::jit::Stack& stack) {
  bool depends = info.is_random;
  ir::for_each_use(node, [&](ir::ValueId id) { depends |= from_inputs[id]; });
  auto add = [&](const c10::IValue& v) {
    const auto id = new_value(info.value_name, v);
    from_inputs[id] = depends;
    node.results.push_back(id);
    if (v.isTensor() && v.toTensor().defined()) bind(v.toTensor(), id);
  };
  for (size_t i = stack.size() - info.return_count; i < stack.size(); ++i) {
    const auto& v = stack[i];
    if (v.isList()) {
      const auto items = v.toListRef();
      node.returns.push_back(static_cast<int32_t>(items.size()));
      for (const c10::IValue& item : items) add(item);
    } else {
      node.returns.push_back(ir::Node::kSingle);
      add(v);
    }
  }
  return depends;
}

const at::Tensor* Recorder::State::hooked_tensor() const {
  const at::Tensor* found = nullptr;
  tensors.for_each([&](const KnownTensor& k) {
    if (fake_impl(k.tensor) && torch::autograd::impl::get_autograd_meta(k.tensor) && (!torch::autograd::impl::hooks(k.tensor).empty() || (k.tensor.retains_grad() && std::find(retained.begin(), retained.end(), k.tensor.unsafeGetTensorImpl()) == retained.end()))) found = &k.tensor;
  });
  return found;
}

}  // namespace cutaway::trace
