// Numbers that only data knows, and tensors whose sizes follow from them, in a recording that keeps them (fakes/unknowns.h).
#include <algorithm>
#include <utility>

#include "core/trace/fake_tensor.h"
#include "core/trace/fakes/fake_impl.h"
#include "core/trace/recorder/recorder_state.h"

namespace cutaway::trace {
namespace {

const UnknownSizes* unknown_sizes(const at::Tensor& t) {
  const FakeImpl* fake = t.defined() ? fake_impl(t) : nullptr;
  return fake ? fake->unknown() : nullptr;
}

at::Tensor tensor_in_world(const at::Tensor& t, size_t world, bool* is_alive) {
  const UnknownSizes* unknown = unknown_sizes(t);
  if (!unknown || world == unknown->own) return t;
  *is_alive = *is_alive && unknown->worlds[world].defined();
  return unknown->worlds[world];
}

template <class F> void for_each_tensor_in(const c10::IValue& v, F&& f) {
  if (v.isTensor()) { if (v.toTensor().defined()) f(v.toTensor()); return; }
  if (!v.isList()) return;
  for (const c10::IValue& item : v.toListRef())
    if (item.isTensor() && item.toTensor().defined()) f(item.toTensor());
}

bool holds_unknown(const c10::IValue& v) {
  if (UnknownNumber::of(v)) return true;
  if (v.isTensor()) return unknown_sizes(v.toTensor()) != nullptr;
  if (!v.isList()) return false;
  return std::ranges::any_of(v.toListRef(), [](const c10::IValue& item) { return holds_unknown(item); });
}

// A number where a tensor's element may be any: results have the same sizes whatever it is.
bool is_value_alone(const OperatorInfo& info, const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (info.value_name.find("arange") != std::string::npos || info.value_name == "range" || info.value_name.find("space") != std::string::npos || !info.name.name.starts_with("aten::")) return false;
  for (size_t i = 0; i < info.argument_count; ++i) {
    const c10::IValue& v = stack[stack.size() - info.argument_count + i];
    if (holds_unknown(v) && (!UnknownNumber::of(v) || op.schema().arguments()[i].real_type()->kind() != c10::TypeKind::NumberType)) return false;
  }
  return true;
}

// split() raises unless its sizes make up the whole, which made-up sizes do not. Each piece is as large as its size says.
bool run_split(const OperatorInfo& info, torch::jit::Stack* stack) {
  if (info.full_name != "aten::split.sizes" && info.full_name != "aten::split_with_sizes") return false;
  const auto args = torch::jit::last(*stack, 3);
  const at::Tensor self = args[0].toTensor();
  std::vector<at::Tensor> pieces;
  for (const int64_t n : args[1].toIntVector()) pieces.push_back(self.narrow(args[2].toInt(), 0, n));
  torch::jit::drop(*stack, 3);
  stack->emplace_back(std::move(pieces));
  return true;
}

UnknownNumber::Kind kind_of(const c10::IValue& v) { return v.isDouble() ? UnknownNumber::Kind::floating : v.isBool() ? UnknownNumber::Kind::boolean : UnknownNumber::Kind::integer; }

}  // namespace

bool Recorder::State::involves_unknowns(const OperatorInfo& info, const torch::jit::Stack& stack) const {
  return unknown_counts.next && std::any_of(stack.end() - static_cast<std::ptrdiff_t>(info.argument_count), stack.end(), [](const c10::IValue& v) { return holds_unknown(v); });
}

ir::Argument Recorder::State::number_argument(const c10::IValue& v) {
  const UnknownNumber* number = UnknownNumber::of(v);
  if (!number) {
    if (v.isSymInt()) return v.toSymInt().guard_int(__FILE__, __LINE__);
    if (v.isSymFloat()) return v.toSymFloat().guard_float(__FILE__, __LINE__);
    return v.toSymBool().guard_bool(__FILE__, __LINE__);
  }
  if (const auto known = numbers.find(number); known != numbers.end())
    if (const auto id = visible(known->second.second); id != ir::kNoValue) return ir::ValueRef{id};
  const auto impl = number->is_size ? number->tensor.lock() : c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>();
  if (!impl) throw_data_dependent("a number that another graph, or the inside of a call, has read from a tensor is used");
  // A size is asked for where it is needed.
  ir::Node node;
  node.target = number->dim < 0 ? "aten.sym_numel" : "aten.sym_size.int";
  if (options.location) node.location = here();
  node.args = {argument_for(at::Tensor(impl))};
  if (number->dim >= 0) node.args.emplace_back(number->dim);
  const auto id = new_value(number->dim < 0 ? "numel" : "size", v);
  node.results = {id};
  node.returns = {ir::Node::kSingle};
  push(std::move(node));
  return ir::ValueRef{id};
}

void Recorder::State::record_number(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack) {
  const at::Tensor& t = stack->back().toTensor();
  if (unknown_sizes(t)) throw_data_dependent("item() is called on a tensor whose sizes follow from data");   // eager raises where it has not one element
  TORCH_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  if (c10::isComplexType(t.scalar_type())) throw_data_dependent(info.full_name + ": a complex number is read");
  const auto kind = c10::isFloatingType(t.scalar_type()) ? UnknownNumber::Kind::floating : t.scalar_type() == at::kBool ? UnknownNumber::Kind::boolean : UnknownNumber::Kind::integer;
  if (options.where == Where::above_autograd) enter_state();
  ir::Node node = start_node(info);
  add_arguments(node, op, info, *stack);
  UnknownNumber::Worlds in;
  for (size_t w = 0; w < kWorlds; ++w) in[w] = stand_in(kind, unknown_counts.next, w);
  ++unknown_counts.next;
  const auto number = c10::make_intrusive<UnknownNumber>(kind, std::move(in));
  const c10::IValue value = UnknownNumber::as_value(number);
  const auto id = new_value(info.value_name, value);
  node.results = {id};
  node.returns = {ir::Node::kSingle};
  push(std::move(node));
  numbers[number.get()] = {number, id};
  torch::jit::drop(*stack, info.argument_count);
  stack->push_back(value);
}

c10::IValue Recorder::State::add_number(std::string target, const std::vector<c10::IValue>& args, const std::function<c10::IValue(const std::vector<c10::IValue>&)>& compute) {
  const SizesShown shown;
  ir::Node node;
  node.target = std::move(target);
  if (options.location) node.location = here();
  for (const c10::IValue& a : args) node.args.push_back(write(a));
  UnknownNumber::Worlds in;
  std::optional<UnknownNumber::Kind> kind;
  for (size_t w = 0; w < kWorlds; ++w) {
    bool is_alive = true;
    std::vector<c10::IValue> given;
    for (const c10::IValue& a : args) given.push_back(in_world(a, w, &is_alive));
    if (!is_alive) continue;
    try {
      in[w] = compute(given);
    } catch (const c10::Error&) {
      continue;   // there it raises
    }
    if (kind && *kind != kind_of(in[w])) throw_data_dependent("the type of a number that is computed from what was read from a tensor depends on its value");
    kind = kind_of(in[w]);
  }
  if (!kind) throw_data_dependent("nothing can be computed from a number that was read from a tensor");
  const auto number = c10::make_intrusive<UnknownNumber>(*kind, std::move(in));
  const c10::IValue value = UnknownNumber::as_value(number);
  const auto id = new_value("number", value);
  node.results = {id};
  node.returns = {ir::Node::kSingle};
  push(std::move(node));
  numbers[number.get()] = {number, id};
  return value;
}

void Recorder::State::add_check(const c10::IValue& number, std::string message) {
  const SizesShown shown;
  ir::Node node;
  node.target = "aten._assert_scalar";
  if (options.location) node.location = here();
  node.args = {write(number), ir::Argument(std::move(message))};
  push(std::move(node));
}

c10::IValue Recorder::State::in_world(const c10::IValue& v, size_t world, bool* is_alive) const {
  if (const UnknownNumber* number = UnknownNumber::of(v)) {
    *is_alive = *is_alive && !number->in[world].isNone();
    return number->in[world];
  }
  if (v.isTensor()) return v.toTensor().defined() ? c10::IValue(tensor_in_world(v.toTensor(), world, is_alive)) : v;
  if (!v.isList() || !holds_unknown(v)) return v;
  const c10::List<c10::IValue> from = v.toList();
  const auto type = from.elementType();
  c10::impl::GenericList list(type->kind() == c10::TypeKind::SymIntType ? c10::IntType::get() : type);
  for (const c10::IValue& item : v.toListRef()) list.push_back(in_world(item, world, is_alive));
  return list;
}

bool Recorder::State::run_once(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack, Runner run) {
  const auto forget_values = [&] {
    for (size_t i = stack->size() - info.return_count; i < stack->size(); ++i) for_each_tensor_in((*stack)[i], [](const at::Tensor& t) { if (auto* fake = fake_impl(t)) fake->forget_constant(); });
  };
  const bool takes_number = std::exchange(took_number, false);
  if (!involves_unknowns(info, *stack)) {
    if (info.is_mutable || !info.returns_tensors || (!info.is_composite && !info.is_data_dependent)) {
      run(op, info, stack);
      if (takes_number) forget_values();
      return true;
    }
    // It may be made of operators whose results have sizes that data decides.
    torch::jit::Stack copy(stack->end() - static_cast<std::ptrdiff_t>(info.argument_count), stack->end());
    try {
      const FailuresUncounted uncounted;
      run(op, info, &copy);
    } catch (const DataDependentError&) {
      return false;
    }
    torch::jit::drop(*stack, info.argument_count);
    stack->insert(stack->end(), copy.begin(), copy.end());
    if (takes_number) forget_values();
    return true;
  }
  if (!is_value_alone(info, op, *stack)) return false;
  bool is_alive = true;
  for (size_t i = stack->size() - info.argument_count; i < stack->size(); ++i) (*stack)[i] = in_world((*stack)[i], 0, &is_alive);
  if (!is_alive) throw_data_dependent(info.full_name + ": nothing is known of a number that it is given");
  run(op, info, stack);
  forget_values();
  return true;
}

void Recorder::State::run_with_unknowns(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack, Runner run) {
  if (run_once(op, info, stack, run)) return;
  const torch::jit::Stack given(stack->end() - static_cast<std::ptrdiff_t>(info.argument_count), stack->end());
  std::vector<at::Tensor> arguments;
  for (const c10::IValue& v : given) for_each_tensor_in(v, [&](const at::Tensor& t) { arguments.push_back(t); });
  std::array<std::optional<torch::jit::Stack>, kWorlds> results;
  size_t alive = 0, met = 0, first = kWorlds;
  std::string refused;
  for (size_t w = 0; w < kWorlds; ++w) {
    bool is_alive = true;
    torch::jit::Stack in;
    std::vector<const c10::TensorImpl*> impls;
    for (const c10::IValue& v : given) in.push_back(in_world(v, w, &is_alive));
    if (!is_alive) continue;
    for (const c10::IValue& v : in) for_each_tensor_in(v, [&](const at::Tensor& t) { impls.push_back(t.unsafeGetTensorImpl()); });
    std::vector<std::vector<int64_t>> sizes;
    if (info.is_mutable) for (const c10::IValue& v : in) for_each_tensor_in(v, [&](const at::Tensor& t) { sizes.push_back(t.sizes().vec()); });
    WorldRun world(unknown_counts, w, std::move(impls));
    try {
      const FailuresUncounted uncounted;
      torch::jit::Stack copy = in;
      if (!run_split(info, &copy)) run(op, info, &copy);
      results[w] = std::move(copy);
      ++alive;
      first = std::min(first, w);
    } catch (const DataDependentError&) {
      throw;
    } catch (const c10::Error& e) {
      if (refused.empty()) refused = e.what_without_backtrace();
    }
    met = std::max(met, world.met());
    size_t n = 0;
    if (info.is_mutable && results[w])
      for (const c10::IValue& v : in) for_each_tensor_in(v, [&](const at::Tensor& t) { if (t.sizes() != at::IntArrayRef(sizes[n++])) throw_data_dependent(info.full_name + " changes the size of a tensor by a number that only data knows"); });
  }
  unknown_counts.next += met;
  if (alive < 2) throw_data_dependent(info.full_name + ": a number that was read from a tensor, or a size that follows from one, decides whether it may be called" + (refused.empty() ? "" : " (" + refused.substr(0, refused.find('\n')) + ")"));
  // Every result is what it is in all worlds.
  torch::jit::Stack merged;
  const auto shape_differs = [&]() { throw_data_dependent(info.full_name + ": what it gives depends on a number that was read from a tensor, or on a size that follows from one"); };
  const auto at_world = [&](size_t w, size_t i) -> const c10::IValue& { return (*results[w])[i]; };
  for (size_t i = 0; i < info.return_count; ++i) {
    const c10::IValue& one = at_world(first, i);
    const auto merge = [&](auto&& item_of) {
      std::array<at::Tensor, kWorlds> all;
      for (size_t w = 0; w < kWorlds; ++w) if (results[w]) all[w] = item_of(at_world(w, i));
      return merge_worlds(info, all, arguments);
    };
    if (one.isTensor()) {
      merged.emplace_back(merge([](const c10::IValue& v) { return v.toTensor(); }));
    } else if (one.isTensorList()) {
      std::vector<at::Tensor> list;
      const size_t n = one.toListRef().size();
      for (size_t w = 0; w < kWorlds; ++w) if (results[w] && at_world(w, i).toListRef().size() != n) shape_differs();
      for (size_t k = 0; k < n; ++k) list.push_back(merge([&](const c10::IValue& v) { return v.toListRef()[k].toTensor(); }));
      merged.emplace_back(std::move(list));
    } else {
      for (size_t w = 0; w < kWorlds; ++w) if (results[w] && !(at_world(w, i) == one)) shape_differs();
      merged.push_back(one);
    }
  }
  torch::jit::drop(*stack, info.argument_count);
  stack->insert(stack->end(), merged.begin(), merged.end());
}

at::Tensor Recorder::State::merge_worlds(const OperatorInfo& info, const std::array<at::Tensor, kWorlds>& all, const std::vector<at::Tensor>& arguments) {
  const at::Tensor* own = nullptr;
  size_t own_world = 0;
  for (size_t w = 0; w < kWorlds && !own; ++w) if (all[w].defined()) { own = &all[w]; own_world = w; }
  if (!own) return {};
  // One of its arguments, in each world its own.
  for (const at::Tensor& a : arguments) {
    bool is_alive = true, same = true;
    for (size_t w = 0; w < kWorlds; ++w) same = same && (!all[w].defined() || all[w].is_same(tensor_in_world(a, w, &is_alive)));
    if (same) return a;
  }
  UnknownSizes unknown;
  unknown.own = own_world;
  const auto dims = static_cast<size_t>(own->dim());
  std::vector<UnknownNumber::Worlds> sizes(dims), strides(dims);
  UnknownNumber::Worlds numel;
  bool differs = false, is_first = true;
  for (size_t w = 0; w < kWorlds; ++w) {
    const at::Tensor& t = all[w];
    if (!t.defined()) continue;
    if (!fake_impl(t) || t.dim() != own->dim() || t.scalar_type() != own->scalar_type() || t.device() != own->device() || t.requires_grad() != own->requires_grad())
      throw_data_dependent(info.full_name + ": what it gives depends on a number that was read from a tensor, or on a size that follows from one");
    differs = differs || t.sizes() != own->sizes() || t.strides() != own->strides();
    for (size_t d = 0; d < dims; ++d) {
      sizes[d][w] = t.sizes()[d];
      strides[d][w] = t.strides()[d];
    }
    numel[w] = t.numel();
    fake_impl(t)->forget_constant();
    if (!is_first) unknown.worlds[w] = t;
    is_first = false;
  }
  if (!differs) return *own;
  const auto number = [&](const UnknownNumber::Worlds& in, int64_t dim, bool is_size) -> c10::SymInt {
    const auto other = std::ranges::find_if(in, [&](const c10::IValue& v) { return !v.isNone() && v.toInt() != in[own_world].toInt(); });
    if (other == in.end()) return in[own_world].toInt();
    auto n = c10::make_intrusive<UnknownNumber>(UnknownNumber::Kind::integer, in);
    n->is_size = is_size;
    n->dim = dim;
    n->tensor = decltype(n->tensor)(own->getIntrusivePtr());
    return c10::SymInt(c10::SymNode(n));
  };
  for (size_t d = 0; d < dims; ++d) {
    unknown.sizes.push_back(number(sizes[d], static_cast<int64_t>(d), true));
    unknown.strides.push_back(number(strides[d], 0, false));
  }
  unknown.numel = number(numel, -1, true);
  fake_impl(*own)->set_unknown(std::make_shared<const UnknownSizes>(std::move(unknown)));
  return *own;
}

void Recorder::State::name_unknown_sizes(ir::TensorType& type, const at::Tensor& t) {
  const UnknownSizes* unknown = unknown_sizes(t);
  if (!unknown) return;
  bool contiguous = type.is_contiguous();
  for (const at::Tensor& w : unknown->worlds) contiguous = contiguous && (!w.defined() || w.is_contiguous());
  const auto name = [&](ir::Dim& dim, const c10::SymInt& size) {
    const UnknownNumber* number = size.is_symbolic() ? UnknownNumber::of(c10::IValue(size)) : nullptr;
    if (!number) return;
    std::vector<int64_t> in;
    for (const c10::IValue& v : number->in) in.push_back(v.isNone() ? INT64_MIN : v.toInt());
    auto [it, is_new] = size_names.try_emplace(std::move(in), "u" + std::to_string(size_names.size()));
    dim = ir::Dim::symbol(it->second);
  };
  for (size_t d = 0; d < type.sizes.size(); ++d) name(type.sizes[d], unknown->sizes[d]);
  if (contiguous) type.strides = ir::contiguous_strides(type.sizes);
  else for (size_t d = 0; d < type.strides.size(); ++d) name(type.strides[d], unknown->strides[d]);
}

}  // namespace cutaway::trace
