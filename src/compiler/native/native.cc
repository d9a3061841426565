#include "compiler/native/native.h"

#include <ATen/Context.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "compiler/backends/check.h"
#include "compiler/backends/differentiated.h"
#include "compiler/native/inspection.h"
#include "compiler/native/cuda_call.h"
#include "compiler/native/cuda_graph.h"
#include "compiler/native/kernel_call.h"
#include "compiler/native/pool.h"
#include "compiler/native/sized.h"
#include "compiler/native/toolchain.h"
#include "compiler/native/watch.h"
#include "core/base/text.h"
#include "core/capabilities/switches.h"
#include "core/debug/events.h"
#include "core/debug/process.h"
#include "core/exec/interpreter.h"
#include "core/ir/text.h"
#include "core/script/script.h"

namespace cutaway::native {
namespace {

using backends::CompiledGraph;
using base::Error;
using base::Result;

/// Which parts of the compiler may do how much. Both halves of a differentiated graph use it up together.
struct Switches {
  int64_t rewrites = INT64_MAX, fusions = INT64_MAX, kernels = INT64_MAX;
  std::set<std::string, std::less<>> without;   ///< "part:name"
  std::string log;                              ///< a file that every application is added to
  std::string code, write_code, profile;        ///< InspectionOptions; a second half of a graph writes to "k_2.cpp"
  int written = 0;
  int64_t used[3] = {0, 0, 0};
};

/// What the debugger asks for, as this compiler has it.
Result<Switches> read_switches(const capabilities::Switches& asked) {
  Switches s;
  const auto limit_of = [&](std::string_view part) { return part == "rewrites" ? &s.rewrites : part == "fusions" ? &s.fusions : part == "kernels" ? &s.kernels : nullptr; };
  const auto unknown = [](const std::string& part) { return Error{.what = "the backend native has no part " + base::quote(part), .hint = "rewrites, fusions or kernels"}; };
  for (const auto& [part, n] : asked.limits) {
    if (!limit_of(part)) return unknown(part);
    *limit_of(part) = n;
  }
  for (const std::string& word : asked.without) {
    const std::string part = word.substr(0, word.find(':'));
    if (!limit_of(part)) return unknown(part);
    if (word == part) *limit_of(part) = 0;
    else s.without.insert(word);
  }
  s.log = asked.log;
  s.code = asked.code;
  s.write_code = asked.write_code;
  s.profile = asked.profile;
  if (!s.profile.empty()) start_profile();
  return s;
}

struct Choices {
  bool wait = false, products = true, plan = true, graphs = true, freeze = false;
  InspectionOptions look;
  int64_t kernels = INT64_MAX, fusions = INT64_MAX, rewrites = INT64_MAX, lanes = processor_lanes();
};

}  // namespace

Result<exec::BoundCalls> bind_kernels(const codegen::Program& program, const std::function<Loaded(size_t text)>& find, const CudaLibraries& cards, bool freeze) {
  std::set<ir::ValueId> parameters;
  for (const ir::Input& i : program.graph.inputs)
    if (i.kind == ir::InputKind::parameter || i.kind == ir::InputKind::buffer) parameters.insert(i.value);
  std::unordered_map<std::string, const codegen::Generated*> loops;
  std::unordered_map<std::string, const codegen::Product*> products;
  for (const codegen::Generated& k : program.kernels) loops["native." + k.kernel.name] = &k;
  for (const codegen::Product& p : program.products) products["native." + p.name] = &p;
  std::unordered_map<std::string, const codegen::Scatter*> scatters;
  for (const codegen::Scatter& s : program.scatters) scatters["native." + s.name] = &s;
  std::unordered_map<std::string, const codegen::Draw*> draws;
  for (const codegen::Draw& d : program.draws) draws["native." + d.name] = &d;
  std::unordered_map<std::string, const codegen::ConvGradient*> conv_gradients;
  for (const codegen::ConvGradient& c : program.conv_gradients) conv_gradients["native." + c.name] = &c;
  std::unordered_map<std::string, const codegen::AttentionCall*> attentions;
  for (const codegen::AttentionCall& a : program.attentions) attentions["native." + a.name] = &a;
  exec::BoundCalls calls;
  for (const ir::Node& n : program.graph.body.nodes) {
    if (n.kind != ir::Node::Kind::call) continue;
    if (const auto p = products.find(n.target); p != products.end()) {
      EpilogueFunction epilogue = nullptr;
      std::shared_ptr<Library> library;
      if (p->second->epilogue) {
        const std::string& name = program.texts[*p->second->epilogue].function;
        Loaded loaded = find(*p->second->epilogue);
        library = std::move(loaded.library);
        epilogue = reinterpret_cast<EpilogueFunction>(loaded.function);
        if (!epilogue) return Error{.what = "the compiled code has no function " + name};
      }
      const auto own = loops.find(n.target);   // the epilogue's loop, by the product's name
      auto call = std::make_shared<KernelCall>(product_body(*p->second, library, epilogue), program, n, p->second->buffers, std::vector<int64_t>{}, own == loops.end() ? std::vector<int64_t>{} : own->second->sizes);
      if (freeze && parameters.contains(p->second->buffers[p->second->b.buffer].value))
        if (auto weight = frozen_weight(*p->second)) call->freeze(p->second->b.buffer, std::move(weight));
      calls[n.target] = std::move(call);
    } else if (const auto s = scatters.find(n.target); s != scatters.end()) {
      calls[n.target] = std::make_shared<KernelCall>(scatter_body(*s->second), program, n, s->second->buffers, std::vector<int64_t>{}, std::vector<int64_t>{}, true);
    } else if (const auto c = conv_gradients.find(n.target); c != conv_gradients.end()) {
      calls[n.target] = std::make_shared<KernelCall>(conv_gradient_body(*c->second), program, n, c->second->buffers);
    } else if (const auto a = attentions.find(n.target); a != attentions.end()) {
      calls[n.target] = std::make_shared<KernelCall>(attention_body(*a->second), program, n, a->second->buffers, std::vector<int64_t>{}, std::vector<int64_t>{}, true);
    } else if (const auto d = draws.find(n.target); d != draws.end()) {
      if (draws_are_eagers()) calls[n.target] = std::make_shared<KernelCall>(draw_body(*d->second), program, n, d->second->buffers);
    } else if (const auto k = loops.find(n.target); k != loops.end()) {
      const codegen::Text& text = program.texts[k->second->text];
      if (text.cuda) {
        const int device = k->second->kernel.device.index;
        calls[n.target] = std::make_shared<KernelCall>(cuda_body(cards.at(device), text.function, *text.cuda, device), program, n, k->second->kernel.buffers, text.cuda->alignment);
        continue;
      }
      Loaded loaded = find(k->second->text);
      auto* function = reinterpret_cast<void (*)(void* const*, int64_t, int64_t)>(loaded.function);
      if (!function) return Error{.what = "the compiled code has no function " + text.function};
      calls[n.target] = std::make_shared<KernelCall>(loop_body(std::move(loaded.library), function, k->second->work), program, n, k->second->kernel.buffers, std::vector<int64_t>(), k->second->sizes, k->second->kernel.checks_indices());
    }
  }
  return calls;
}

namespace {

bool is_on_cards(const ir::Graph& g) {
  return std::ranges::any_of(g.values, [](const ir::Value& v) { return v.type.is_tensor() && v.type.tensor.device.type == "cuda"; });
}

/// Runs by operators until its kernels are there.
class NativeGraph final : public CompiledGraph {
 public:
  /// `hidden`: how many of the last outputs the backward half alone sees; none: no CUDA graphs are recorded.
  NativeGraph(exec::Program operators, codegen::Program program, std::optional<size_t> hidden, bool freeze, const InspectionOptions& look, int lanes, debug::Sink* sink)
      : operators_(std::move(operators)), program_(std::move(program)), tells_(look.observes), inspection_(look, program_, operators_.graph(), lanes, sink), hidden_(hidden), freeze_(freeze) {}
  const Inspection& inspection() const { return inspection_; }
  ~NativeGraph() override {
    if (worker_.joinable()) worker_.join();
  }

  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override {
    if (const exec::Program* fast = ready_.load(std::memory_order_acquire)) {
      const Arena arena(&program_, program_.memory.bytes);
      if (inspection_.is_needed()) return inspection_.run(*fast, inputs);
      return recorder_ ? recorder_->run(*fast, inputs) : fast->run(inputs);
    }
    return operators_.run(inputs);
  }
  bool tells_values() const override { return tells_; }
  std::vector<c10::IValue> run_observed(std::vector<c10::IValue>& inputs, const backends::ValueObserver& observer) override {
    const exec::Program* fast = ready_.load(std::memory_order_acquire);
    const Arena arena(&program_, program_.memory.bytes);
    return inspection_.run_telling(fast ? *fast : operators_, inputs, observer);
  }
  std::vector<backends::Kernel> kernels() const override { return kernels_of(program_); }
  int64_t new_kernels() const override { return new_kernels_; }
  bool is_for_cards_alone() const { return program_.has_cuda_texts() && !program_.has_cpu_texts(); }

  /// Compiles and swaps. An Error leaves the operators in place.
  base::Status compile(debug::Sink* sink) {
    const bool has_cards = is_on_cards(program_.graph);
    if (program_.kernels.empty() && program_.products.empty() && program_.draws.empty() && program_.scatters.empty() && program_.conv_gradients.empty() && program_.attentions.empty() && !has_cards) return {};
    std::shared_ptr<Library> library;
    int64_t anew = 0;
    if (program_.has_cpu_texts()) {
      CUTAWAY_TRY_ASSIGN(library, inspection_.load(sink));
      if (!library->came_from_cache()) anew += std::ranges::count_if(program_.texts, [](const codegen::Text& t) { return !t.cuda; });
    }
    CudaLibraries cards;
    for (const codegen::Generated& k : program_.kernels) {
      if (k.kernel.device.type != "cuda" || cards.contains(k.kernel.device.index)) continue;
      CUTAWAY_TRY_ASSIGN(cards[k.kernel.device.index], CudaLibrary::load(program_, k.kernel.device.index, sink));
      anew += cards[k.kernel.device.index]->compiled_anew();
    }
    new_kernels_ = anew;
    CUTAWAY_TRY_ASSIGN(exec::BoundCalls calls, bind_kernels(program_, [&](size_t text) { return Loaded{library, library->find(program_.texts[text].function)}; }, cards, freeze_));
    if (inspection_.is_needed()) calls = watched(std::move(calls), program_.graph);
    CUTAWAY_TRY_ASSIGN(exec::Program fast, exec::Program::prepare(program_.graph, std::move(calls)));
    fast_.emplace(std::move(fast));
    if (hidden_ && has_cards && cuda_driver().ok()) recorder_ = std::make_unique<GraphRunner>(program_.graph, *hidden_, sink);
    ready_.store(&*fast_, std::memory_order_release);
    return {};
  }
  void compile_beside() {
    worker_ = std::thread([this] {
      debug::Sink* sink = debug::process_sink();   // the caller's may be gone by then
      if (base::Status s = compile(sink); !s.ok()) debug::say(sink, "native", debug::Level::warning, s.error().text());
    });
  }

 private:
  exec::Program operators_;
  codegen::Program program_;
  const bool tells_;
  Inspection inspection_;
  std::optional<exec::Program> fast_;
  std::optional<size_t> hidden_;
  const bool freeze_;
  std::unique_ptr<GraphRunner> recorder_;   ///< made before `ready_` is set
  std::atomic<const exec::Program*> ready_{nullptr};
  std::atomic<int64_t> new_kernels_{0};
  std::thread worker_;
};

std::string decisions_text(const codegen::Program& p) {
  std::string out;
  for (const codegen::Rewritten& r : p.rewrites) out += "rewrite  " + std::string(r.row) + "  %" + r.value + "\n";
  for (const codegen::Decision& d : p.decisions) out += d.action + (d.done ? "  " : "  not ") + d.identity + (d.reason.empty() ? "" : ": " + d.reason) + "\n";
  return out;
}

/// The graph as it is fused, to run with torch alone.
std::string as_script(const ir::Graph& graph) {
  const auto inputs = script::inputs_from_types(graph, 0);
  const auto text = inputs.ok() ? script::to_python(graph, *inputs) : Result<std::string>(inputs.error());
  return text.ok() ? *text : "# This graph has no form as a script: " + text.error().what + "\n";
}

void keep_files(const codegen::Program& p, const ir::Graph& graph, debug::Sink* sink) {
  const std::string name = graph.name.empty() ? "graph" : graph.name;
  debug::keep_artifact(sink, "native", name, "ir_pre_fusion.cut", [&] { return ir::print(p.rewritten, {.header = true}); });
  debug::keep_artifact(sink, "native", name, "ir_post_fusion.cut", [&] { return ir::print(p.graph, {.header = true}); });
  debug::keep_artifact(sink, "native", name, "fx_graph_transformed.py", [&] { return as_script(p.rewritten); });
  debug::keep_artifact(sink, "native", name, "fusion.txt", [&] { return decisions_text(p); });
  debug::keep_artifact(sink, "native", name, "memory_plan.txt", [&] { return p.memory.text(p.graph); });
  if (p.has_cuda_texts()) debug::keep_artifact(sink, "native", name, "output_code.cu", [&] { return "// nvcc -arch=native -fmad=false -cubin output_code.cu\n" + p.cuda_source(); });
}

std::string place_of_value(const ir::Graph& g, const std::string& value) {
  for (const ir::Node& n : g.body.nodes)
    for (ir::ValueId r : n.results)
      if (g.value(r).name == value && n.location != ir::kNoLocation) return g.locations[n.location].file + ":" + std::to_string(g.locations[n.location].line);
  return {};
}

/// What was applied counts for the halves that follow, and goes to the debugger's log: an event each.
void take_note(const codegen::Program& p, const ir::Graph& graph, Switches& switches) {
  std::unique_ptr<debug::Sink> log;   // a file that cannot be opened is missed by whoever reads it
  if (!switches.log.empty())
    if (auto opened = debug::open_event_file(switches.log); opened.ok()) log = *std::move(opened);
  const auto add = [&](const char* part, int64_t& used, const std::string& name, std::string value) {
    const int64_t number = used++;
    if (!log) return;
    if (value.starts_with("%")) value = value.substr(1, value.find(' ') - 1);
    const std::string place = place_of_value(p.rewritten, value);
    debug::decide(log.get(), "backend", "applied", "", {{"part", part}, {"name", name}, {"number", number}, {"node", value}, {"graph", graph.name}, {"place", place}});
  };
  for (const codegen::Rewritten& r : p.rewrites) add("rewrites", switches.used[0], std::string(r.row), r.value);
  for (const codegen::Decision& d : p.decisions) {
    if (!d.done) continue;
    if (d.action == "fuse" || d.action == "merge") add("fusions", switches.used[1], d.name, d.identity);
    if (d.action == "kernel") add("kernels", switches.used[2], d.name, d.identity);
  }
}

/// Torch raises where its old and new settings are mixed.
bool has_tf32_convolutions() {
  try {
    return at::globalContext().allowTF32CuDNN();
  } catch (const std::exception&) {
    return false;
  }
}

Result<std::unique_ptr<CompiledGraph>> compile_functional(const ir::Graph& graph, const std::vector<c10::IValue>& examples, const Choices& choices, Switches& switches, debug::Sink* sink) {
  codegen::Options options;
  options.lanes = static_cast<int>(choices.lanes);
  options.kernels = std::min(choices.kernels, switches.kernels - switches.used[2]);
  options.products = choices.products;
  options.stores_all = choices.look.observes || choices.look.check >= 3;
  options.plan = choices.plan && !options.stores_all;
  options.fuel.fusions = std::min(choices.fusions, switches.fusions - switches.used[1]);
  options.rewrites.has_tf32_convolutions = has_tf32_convolutions();
  options.rewrites.fuel = std::min(choices.rewrites, switches.rewrites - switches.used[0]);
  for (const std::string& w : switches.without) {
    const std::string name = w.substr(w.find(':') + 1);
    (w.starts_with("rewrites:") ? options.rewrites.off : w.starts_with("fusions:") ? options.fuel.without : options.without).insert(name);
  }
  if (const char* planted = std::getenv("CUTAWAY_PLANT_NATIVE_FAULT")) options.planted = planted;
  const auto& t = toolchain();
  const auto say_no_compiler = [&](const Error& e) {
    static std::atomic<bool> was_said{false};   // once is enough: every graph has the same cause
    debug::say(sink, "native", was_said.exchange(true) ? debug::Level::debug : debug::Level::warning, e.text());
  };
  InspectionOptions look = choices.look;
  look.code = switches.code;
  look.write_code = switches.write_code;
  look.profile = switches.profile;
  if (const std::filesystem::path p = look.write_code; !p.empty() && switches.written++) look.write_code = std::filesystem::path(p).replace_filename(p.stem().string() + "_" + std::to_string(switches.written) + p.extension().string()).string();
  if (!is_on_cards(graph) && !symbols_of(graph).empty()) {
    if (!t.ok()) say_no_compiler(t.error());
    const auto first = [&](const codegen::Program& program) {
      keep_files(program, graph, sink);
      take_note(program, graph, switches);
    };
    auto sized = SizedGraph::make(graph, {options, choices.wait, t.ok(), look}, examples, first, sink);
    if (!sized.ok()) return std::move(sized).error();
    return std::unique_ptr<CompiledGraph>(std::move(*sized));
  }
  CUTAWAY_TRY_ASSIGN(exec::Program operators, exec::Program::prepare(graph));
  codegen::Program program = codegen::generate(graph, options, sink);
  keep_files(program, graph, sink);
  take_note(program, graph, switches);
  auto compiled = std::make_unique<NativeGraph>(std::move(operators), std::move(program), choices.graphs ? std::optional<size_t>(aot::hidden_outputs()) : std::nullopt, choices.freeze, look, options.lanes, sink);
  CUTAWAY_TRY(compiled->inspection().write());
  if (!t.ok() && !compiled->is_for_cards_alone()) {
    say_no_compiler(t.error());
    return std::unique_ptr<CompiledGraph>(std::move(compiled));
  }
  if (choices.wait) {
    if (base::Status s = compiled->compile(sink); !s.ok() && !look.code.empty()) return s.error();   // who gave the code wants to know
    else if (!s.ok()) debug::say(sink, "native", debug::Level::warning, s.error().text());
  } else {
    compiled->compile_beside();
  }
  return std::unique_ptr<CompiledGraph>(std::move(compiled));
}

struct Native final : backends::Backend {
  Choices choices;
  backends::Settings settings;
  void configure(const backends::Settings& s) override { settings = s; }

  Result<std::unique_ptr<CompiledGraph>> compile(const ir::Graph& graph, const std::vector<c10::IValue>& examples, debug::Sink* sink) override {
    CUTAWAY_TRY_ASSIGN(Switches read, read_switches(settings.switches));
    const auto switches = std::make_shared<Switches>(std::move(read));
    Choices choices = this->choices;
    CUTAWAY_TRY_ASSIGN(choices.look.check, backends::check_level());
    if (settings.is_trial) choices.look.check = 0;   // who asks compares by itself
    choices.look.observes = settings.observe;
    choices.wait = choices.wait || settings.is_trial || settings.is_watched || choices.look.check || is_profiling();   // a trial asks about kernels, not about what runs before them
    // Texts for cards have their sizes as constants, and who looks inside looks at numbers.
    const bool is_looked_at = choices.look.check || choices.look.observes || is_profiling() || !switches->code.empty() || !switches->write_code.empty() || !switches->profile.empty();
    const bool takes_symbols = !is_on_cards(graph) && !is_looked_at;
    if (settings.stage == "aot") {
      if (takes_symbols || examples.size() != graph.inputs.size() || symbols_of(graph).empty()) return compile_functional(graph, examples, choices, *switches, sink);
      CUTAWAY_TRY_ASSIGN(const ir::Graph at_numbers, at_sizes_of(graph, examples));
      return compile_functional(at_numbers, examples, choices, *switches, sink);
    }
    aot::FunctionOptions options;
    options.takes_symbols = takes_symbols;
    options.compile = [choices, switches](const ir::Graph& half, const std::vector<c10::IValue>& given, debug::Sink* to) -> Result<std::shared_ptr<CompiledGraph>> {
      CUTAWAY_TRY_ASSIGN(std::unique_ptr<CompiledGraph> made, compile_functional(half, given, choices, *switches, to));
      return std::shared_ptr<CompiledGraph>(std::move(made));
    };
    return backends::differentiate(graph, examples, std::move(options), sink);
  }
};

const bool is_registered = [] {
  for (const char* name : {"native", "cutaway"}) backends::register_backend(name, make_native);   // the second is torch.compile's name for it
  return true;
}();

}  // namespace

Result<std::unique_ptr<backends::Backend>> make_native(std::string_view parameters) {
  auto backend = std::make_unique<Native>();
  if (!parameters.empty()) backend->choices.look.backend += ":" + std::string(parameters);
  const std::pair<std::string_view, int64_t*> numbers[] = {{"kernels=", &backend->choices.kernels}, {"fusions=", &backend->choices.fusions}, {"rewrites=", &backend->choices.rewrites}, {"lanes=", &backend->choices.lanes}};
  while (!parameters.empty()) {
    const size_t colon = parameters.find(':');
    const std::string_view word = parameters.substr(0, colon);
    parameters = colon == std::string_view::npos ? std::string_view() : parameters.substr(colon + 1);
    if (word == "wait") { backend->choices.wait = true; continue; }
    if (word == "no_plan") { backend->choices.plan = false; continue; }
    if (word == "lines") { backend->choices.look.lines = true; continue; }
    if (word == "torch_products") { backend->choices.products = false; continue; }
    if (word == "freeze") { backend->choices.freeze = true; continue; }
    if (word == "no_graphs") { backend->choices.graphs = false; continue; }
    bool known = false;
    for (const auto& [name, into] : numbers) {
      if (!word.starts_with(name)) continue;
      const std::string_view digits = word.substr(name.size());
      known = std::from_chars(digits.data(), digits.data() + digits.size(), *into).ptr == digits.data() + digits.size() && !digits.empty() && *into >= 0;
    }
    if (const int64_t n = backend->choices.lanes; n > processor_lanes() || (n != 4 && n != 8 && n != 16)) known = false;   // it would not run here
    if (!known) return Error{.what = "the backend native has no setting " + base::quote(word), .hint = "native, native:wait, native:freeze, native:lines, native:torch_products, native:no_plan, native:no_graphs, native:kernels=N, native:fusions=N, native:rewrites=N or native:lanes=4 (8, 16, as the processor has them), joined by ':'"};
  }
  return std::unique_ptr<backends::Backend>(std::move(backend));
}

}  // namespace cutaway::native
