#include "compiler/native/sized.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/codegen/line_marks.h"
#include "compiler/native/pool.h"
#include "compiler/native/watch.h"
#include "core/debug/process.h"
#include "core/exec/scalar_ops.h"
#include "core/ir/edit.h"
#include "core/ir/expressions.h"

namespace cutaway::native {
namespace {

using base::Error;
using base::Result;
using base::Status;
using c10::IValue;

constexpr size_t kMostInstances = 64;   ///< sizes whose calls are kept; the one that was used longest ago goes

std::optional<IValue> number_of(const ir::Argument& a) {
  if (const auto* b = a.as<bool>()) return IValue(*b);
  if (const auto* i = a.as<int64_t>()) return IValue(*i);
  if (const auto* d = a.as<double>()) return IValue(*d);
  return std::nullopt;
}

/// Integers that are symbols, and numbers that the graph makes of them, become literals where they are used.
void settle_numbers(ir::Graph& g, const symbolic::SymbolValues& values) {
  std::unordered_map<ir::ValueId, ir::Argument> numbers;
  for (const ir::Input& i : g.inputs)
    if (const ir::Value& v = g.value(i.value); v.type.kind == ir::Type::Kind::integer)
      if (const auto number = values.find(v.name)) numbers.emplace(i.value, *number);
  const auto settle = [&](ir::Argument& a) {
    ir::for_each_leaf(a, [&](ir::Argument& leaf) {
      if (const auto* r = leaf.as<ir::ValueRef>())
        if (const auto it = numbers.find(r->id); it != numbers.end()) leaf = it->second;
    });
  };
  for (ir::Node& n : g.body.nodes) {
    if (!numbers.empty()) {
      for (ir::Argument& a : n.args) settle(a);
      for (auto& [key, a] : n.kwargs) settle(a);
    }
    if (n.kind != ir::Node::Kind::op || n.results.size() != 1 || !n.kwargs.empty()) continue;
    const exec::ScalarOp* op = exec::find_scalar_op(n.target);
    if (!op || op->arity != static_cast<int>(n.args.size())) continue;
    std::vector<IValue> operands;
    for (const ir::Argument& a : n.args)
      if (const auto number = number_of(a)) operands.push_back(*number);
    if (operands.size() != n.args.size()) continue;
    const IValue result = op->run(operands.data(), operands.size());
    if (result.isBool()) numbers.emplace(n.results[0], result.toBool());
    else if (result.isInt()) numbers.emplace(n.results[0], result.toInt());
    else if (result.isDouble()) numbers.emplace(n.results[0], result.toDouble());
  }
  if (numbers.empty()) return;
  for (ir::Argument& a : g.body.outputs) settle(a);
  // The numbers alone: an operator whose result nobody uses is there for the error that it may raise.
  std::erase_if(g.body.nodes, [&](const ir::Node& n) { return n.results.size() == 1 && numbers.contains(n.results[0]); });
}

}  // namespace

std::vector<std::string> symbols_of(const ir::Graph& graph) {
  std::set<std::string> names;
  for (const ir::Value& v : graph.values)
    if (v.type.is_tensor())
      for (const auto* dims : {&v.type.tensor.sizes, &v.type.tensor.strides})
        for (const ir::Dim& d : *dims) ir::collect_symbols(d, names);
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    for (const ir::Argument& a : n.args) ir::collect_symbols(a, names);
    for (const auto& [key, a] : n.kwargs) ir::collect_symbols(a, names);
  });
  for (const ir::Argument& a : graph.body.outputs) ir::collect_symbols(a, names);
  return {names.begin(), names.end()};
}

namespace {

Result<exec::SymbolSources> sources_of(const ir::Graph& graph, const std::vector<std::string>& symbols) {
  std::vector<ir::Dim> dims;
  for (const std::string& name : symbols) dims.push_back(ir::Dim::symbol(name));
  return exec::SymbolSources::find(graph, dims);
}

}  // namespace

Result<ir::Graph> at_sizes_of(const ir::Graph& graph, const std::vector<IValue>& inputs) {
  CUTAWAY_TRY_ASSIGN(const exec::SymbolSources sources, sources_of(graph, symbols_of(graph)));
  try {
    const symbolic::SymbolValues values = sources.values(inputs);
    CUTAWAY_TRY_ASSIGN(ir::Graph g, symbolic::at_sizes(graph, values));
    settle_numbers(g, values);
    return g;
  } catch (const c10::Error& e) {
    return Error{.what = "the inputs have sizes that the graph does not take", .place = graph.name, .because = e.what_without_backtrace()};
  }
}

Result<std::unique_ptr<SizedGraph>> SizedGraph::make(const ir::Graph& graph, Settings settings, const std::vector<IValue>& examples, const std::function<void(const codegen::Program&)>& first, debug::Sink* sink) {
  CUTAWAY_TRY_ASSIGN(exec::SymbolSources sources, sources_of(graph, symbols_of(graph)));
  CUTAWAY_TRY_ASSIGN(exec::Program operators, exec::Program::prepare(graph));
  std::unique_ptr<SizedGraph> made(new SizedGraph(graph, std::move(sources), std::move(operators), std::move(settings)));
  try {
    if (examples.size() == graph.inputs.size()) made->find(made->sources_.read(examples), &first, sink);
  } catch (const c10::Error&) {
    // Examples that do not tell their sizes: kernels are made for those of the first call.
  }
  if (!made->problem_.ok()) return made->problem_.error();
  return made;
}

SizedGraph::SizedGraph(ir::Graph graph, exec::SymbolSources sources, exec::Program operators, Settings settings)
    : symbolic_(std::move(graph)), sources_(std::move(sources)), operators_(std::move(operators)), settings_(std::move(settings)) {
  settings_.options.symbolic = &symbolic_;
}

SizedGraph::~SizedGraph() {
  {
    const std::lock_guard lock(queue_mutex_);
    is_ending_ = true;
  }
  queue_changed_.notify_all();
  if (!worker_.joinable()) return;
  if (worker_process_ == ::getpid()) worker_.join();
  else worker_.detach();
}

std::vector<IValue> SizedGraph::run(std::vector<IValue>& inputs) {
  const std::shared_ptr<Instance> instance = settings_.compiles ? find(sources_.read(inputs), nullptr, debug::process_sink()) : nullptr;
  if (const exec::Program* fast = instance ? instance->ready.load(std::memory_order_acquire) : nullptr) {
    const Arena arena(&instance->program, instance->program.memory.bytes);
    return instance->inspection && instance->inspection->is_needed() ? instance->inspection->run(*fast, inputs) : fast->run(inputs);
  }
  return operators_.run(inputs);
}

std::vector<IValue> SizedGraph::run_observed(std::vector<IValue>& inputs, const backends::ValueObserver& observer) {
  const std::shared_ptr<Instance> instance = settings_.compiles ? find(sources_.read(inputs), nullptr, debug::process_sink()) : nullptr;
  const exec::Program* fast = instance ? instance->ready.load(std::memory_order_acquire) : nullptr;
  if (!fast || !instance->inspection) return operators_.run(inputs);
  const Arena arena(&instance->program, instance->program.memory.bytes);
  return instance->inspection->run_telling(*fast, inputs, observer);
}

std::shared_ptr<SizedGraph::Instance> SizedGraph::known(const Numbers& numbers) {
  const std::lock_guard lock(instances_mutex_);
  const auto it = std::ranges::find_if(instances_, [&](const auto& i) { return i->numbers == numbers; });
  if (it == instances_.end()) return nullptr;
  if (it != instances_.begin()) instances_.splice(instances_.begin(), instances_, it);
  return instances_.front();
}

/// The calls for these sizes, made now if there are none. Their kernels may still be on their way.
std::shared_ptr<SizedGraph::Instance> SizedGraph::find(const Numbers& numbers, const std::function<void(const codegen::Program&)>* first, debug::Sink* sink) {
  if (auto found = known(numbers)) return found;
  const std::lock_guard lock(making_);
  if (auto found = known(numbers)) return found;   // another thread was faster
  auto made = std::make_shared<Instance>();
  made->numbers = numbers;
  bool is_whole = false;
  Status status;
  const auto say = [&](const std::string& why) { debug::say(sink, "native", debug::Level::warning, symbolic_.name + ": " + why); };   // sizes that the graph does not take: its operators say so
  try {
    const symbolic::SymbolValues values(sources_.names(), numbers);
    auto graph = symbolic::at_sizes(symbolic_, values);
    if (!graph.ok()) {
      say(graph.error().what);
    } else {
      settle_numbers(*graph, values);
      made->program = codegen::generate(*graph, settings_.options, sink);
      made->whole = std::move(graph).value();
      is_whole = true;
    }
  } catch (const c10::Error& e) {
    say(e.what_without_backtrace());
  }
  if (is_whole) {
    if (first) {
      kernels_ = kernels_of(made->program);
      (*first)(made->program);
    }
    // Files are those of the first sizes.
    made->inspection = std::make_unique<Inspection>(settings_.look, made->program, made->whole, settings_.options.lanes, first ? sink : nullptr);
    if (first) problem_ = made->inspection->write();
    if (!made->inspection->is_needed()) made->whole = {};
    if (!settings_.look.lines) made->program.rewritten = {};
    made->program.decisions.clear();
    if (settings_.compiles) {
      const auto wanted = missing(made->program);
      if (wanted.empty()) status = bind(*made);
      else if (!settings_.waits) finish_beside(made);
      else if (status = load(wanted, made->program.rewritten, sink); status.ok()) status = bind(*made);
    }
  }
  if (!status.ok() && first && !settings_.look.code.empty()) problem_ = status;
  else if (!status.ok()) debug::say(sink, "native", debug::Level::warning, status.error().text());
  const std::lock_guard table(instances_mutex_);
  instances_.push_front(made);
  if (instances_.size() > kMostInstances) instances_.pop_back();
  return made;
}

std::vector<const codegen::Text*> SizedGraph::missing(const codegen::Program& program) const {
  const std::lock_guard lock(texts_mutex_);
  std::vector<const codegen::Text*> found;
  for (const codegen::Text& t : program.texts)
    if (!texts_.contains(t.key)) found.push_back(&t);
  return found;
}

Status SizedGraph::load(const std::vector<const codegen::Text*>& wanted, const ir::Graph& marks, debug::Sink* sink) {
  if (wanted.empty()) return {};
  const int lanes = settings_.options.lanes;
  const InspectionOptions& look = settings_.look;
  auto library = !look.code.empty() ? Inspection::load_code(look.code, wanted, lanes, sink)
                 : look.lines       ? Library::load(codegen::with_line_marks(codegen::file_of(wanted, lanes), marks, "kernels.cpp"), lanes, sink, {"-g1"})
                                    : Library::load(codegen::file_of(wanted, lanes), lanes, sink);
  if (library.ok() && !(*library)->came_from_cache()) new_kernels_ += static_cast<int64_t>(wanted.size());
  const std::lock_guard lock(texts_mutex_);
  // What cannot be compiled is not tried again at every size.
  for (const codegen::Text* t : wanted) texts_[t->key] = library.ok() ? Loaded{*library, (*library)->find(t->function)} : Loaded{};
  if (!library.ok()) return std::move(library).error();
  return {};
}

Status SizedGraph::bind(Instance& instance) {
  const codegen::Program& program = instance.program;
  if (program.kernels.empty() && program.products.empty() && program.draws.empty() && program.scatters.empty() && program.conv_gradients.empty() && program.attentions.empty()) return {};
  CUTAWAY_TRY_ASSIGN(exec::BoundCalls calls, bind_kernels(program, [&](size_t text) {
    const std::lock_guard lock(texts_mutex_);
    const auto it = texts_.find(program.texts[text].key);
    return it == texts_.end() ? Loaded{} : it->second;
  }));
  if (instance.inspection && instance.inspection->is_needed()) calls = watched(std::move(calls), program.graph);
  CUTAWAY_TRY_ASSIGN(exec::Program fast, exec::Program::prepare(program.graph, std::move(calls)));
  instance.fast.emplace(std::move(fast));
  for (codegen::Text& t : instance.program.texts) t.source = t.key = {};
  instance.ready.store(&*instance.fast, std::memory_order_release);
  return {};
}

void SizedGraph::finish_beside(std::shared_ptr<Instance> instance) {
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(std::move(instance));
    if (worker_process_ != ::getpid()) {
      if (worker_.joinable()) worker_.detach();   // the parent's
      worker_process_ = ::getpid();
      worker_ = std::thread([this] { work(); });
    }
  }
  queue_changed_.notify_one();
}

void SizedGraph::work() {
  for (;;) {
    std::shared_ptr<Instance> next;
    {
      std::unique_lock lock(queue_mutex_);
      queue_changed_.wait(lock, [&] { return is_ending_ || !queue_.empty(); });
      if (is_ending_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    debug::Sink* sink = debug::process_sink();   // the caller's may be gone by then
    Status status = load(missing(next->program), next->program.rewritten, sink);
    if (status.ok()) status = bind(*next);
    if (!status.ok()) debug::say(sink, "native", debug::Level::warning, status.error().text());
  }
}

}  // namespace cutaway::native
