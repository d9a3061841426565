#include "core/trace/fakes/unknowns.h"

#include <c10/core/SymBool.h>
#include <c10/core/SymFloat.h>
#include <c10/core/SymInt.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "core/trace/fake_tensor.h"

namespace cutaway::trace {

void UnknownNumber::refuse() { throw_data_dependent("a number that was read from a tensor, or a size that follows from one, is asked for while it is traced"); }

c10::SymNode UnknownNumber::question(const c10::SymNode& other, bool (*answer)(double, double)) const {
  const auto* o = dynamic_cast<const UnknownNumber*>(other.get());
  if (!o) refuse();
  const auto number = [](const c10::IValue& v) { return v.isBool() ? static_cast<double>(v.toBool()) : v.toScalar().toDouble(); };
  Worlds answers;
  for (size_t w = 0; w < kWorlds; ++w)
    if (!in[w].isNone() && !o->in[w].isNone()) answers[w] = answer(number(in[w]), number(o->in[w]));
  auto asked = c10::make_intrusive<UnknownNumber>(Kind::boolean, std::move(answers));
  if (o == this && kind == Kind::integer) asked->certain = answer(1, 1);   // whatever it is
  return asked;
}
bool UnknownNumber::guard_bool(const char*, int64_t) {
  if (!certain) refuse();
  return *certain;
}
bool UnknownNumber::guard_size_oblivious(const char*, int64_t) {
  std::optional<bool> found;
  for (const size_t w : {0, 1, 4, 6, 7}) {   // where all numbers are 2 or more
    if (in[w].isNone()) continue;
    if (found && *found != in[w].toBool()) refuse();
    found = in[w].toBool();
  }
  if (!found) refuse();
  return *found;
}
c10::SymNode UnknownNumber::clone() { return c10::intrusive_ptr<c10::SymNodeImpl>::reclaim_copy(this); }

namespace {
c10::SymNode constant_node(UnknownNumber::Kind kind, const c10::IValue& v) {
  UnknownNumber::Worlds in;
  in.fill(v);
  return c10::make_intrusive<UnknownNumber>(kind, std::move(in));
}
}  // namespace
// Only ever compared with another; what is computed with such a pair is refused.
c10::SymNode UnknownNumber::wrap_int(int64_t n) { return constant_node(Kind::integer, n); }
c10::SymNode UnknownNumber::wrap_float(double x) { return constant_node(Kind::floating, x); }
c10::SymNode UnknownNumber::wrap_bool(bool b) { return constant_node(Kind::boolean, b); }

namespace {
// Those that live, by address. Torch's bindings put a node of Python's around a float or a bool of ours; that node says what ours says of itself.
std::mutex living_mutex;
std::unordered_set<const UnknownNumber*>& living() {
  static std::unordered_set<const UnknownNumber*> all;
  return all;
}
constexpr std::string_view kAddress = "cutaway::UnknownNumber ";

UnknownNumber* node_of(c10::SymNodeImpl* node) {
  if (auto* own = dynamic_cast<UnknownNumber*>(node)) return own;
  const std::string text = node->_graph_repr();
  if (!text.starts_with(kAddress)) return nullptr;
  auto* found = reinterpret_cast<UnknownNumber*>(std::stoull(text.substr(kAddress.size())));
  const std::scoped_lock lock(living_mutex);
  return living().contains(found) ? found : nullptr;
}
}  // namespace

UnknownNumber::UnknownNumber(Kind kind, Worlds in) : kind(kind), in(std::move(in)) {
  const std::scoped_lock lock(living_mutex);
  living().insert(this);
}
UnknownNumber::~UnknownNumber() {
  const std::scoped_lock lock(living_mutex);
  living().erase(this);
}
std::string UnknownNumber::_graph_repr() { return std::string(kAddress) + std::to_string(reinterpret_cast<uintptr_t>(this)); }

UnknownNumber* UnknownNumber::of(const c10::IValue& v) {
  if (v.isSymInt()) return v.toSymInt().is_symbolic() ? node_of(v.toSymInt().toSymNodeImplUnowned()) : nullptr;
  if (v.isSymFloat()) return v.toSymFloat().is_symbolic() ? node_of(v.toSymFloat().toSymNodeImplUnowned()) : nullptr;
  if (v.isSymBool()) return v.toSymBool().is_heap_allocated() ? node_of(v.toSymBool().toSymNodeImplUnowned()) : nullptr;
  return nullptr;
}

c10::IValue UnknownNumber::as_value(const c10::intrusive_ptr<UnknownNumber>& n) {
  const c10::SymNode node = n;
  switch (n->kind) {
    case Kind::integer: return c10::SymInt(node);
    case Kind::floating: return c10::SymFloat(node);
    case Kind::boolean: return c10::SymBool(node);
  }
  return {};
}

int& SizesShown::depth() {
  static thread_local int depth = 0;
  return depth;
}

namespace {
thread_local WorldRun* current_run = nullptr;
// Small numbers, where all are equal and an operator that needs equal sizes runs; very large and very small ones, where what cuts off does; two where each
// number is another.
int64_t whole(size_t index, size_t world, bool is_size) {
  static constexpr int64_t kFar = 100003;
  const auto i = static_cast<int64_t>(index);
  switch (world) {
    case 0: return 2;
    case 1: return 3;
    case 2: return 0;
    case 3: return 1;
    case 4: return kFar;
    case 5: return is_size ? 11 : -kFar;
    case 6: return 5 + 2 * i;
    default: return 6 + 3 * i;
  }
}
}  // namespace

c10::IValue stand_in(UnknownNumber::Kind kind, size_t index, size_t world) {
  switch (kind) {
    case UnknownNumber::Kind::integer: return whole(index, world, false);
    case UnknownNumber::Kind::floating: return static_cast<double>(whole(index, world, false)) + 0.5;
    case UnknownNumber::Kind::boolean: return world % 2 == 0;
  }
  return {};
}

WorldRun::WorldRun(UnknownCounts& counts, size_t world, std::vector<const c10::TensorImpl*> arguments)
    : counts_(counts), world_(world), arguments_(std::move(arguments)), before_(current_run) { current_run = this; }
WorldRun::~WorldRun() { current_run = before_; }
WorldRun* WorldRun::current() { return current_run; }
int64_t WorldRun::size_by(const at::Tensor& of, bool is_count_of_true) {
  size_t number = counts_.next + met_++;
  // What the operator makes inside is gone after it, and its address may be another's.
  const auto* impl = of.unsafeGetTensorImpl();
  if (is_count_of_true && !of.is_inference() && std::find(arguments_.begin(), arguments_.end(), impl) != arguments_.end()) {
    const auto version = static_cast<uint32_t>(of._version());
    const auto known = counts_.by_tensor.find(impl);
    if (known != counts_.by_tensor.end() && known->second.first == version) number = known->second.second;
    else counts_.by_tensor[impl] = {version, number};
  }
  return whole(number, world_, true);
}

}  // namespace cutaway::trace
