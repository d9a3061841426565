#include "compiler/frames/dynamic_capture.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/frames/float_samples.h"
#include "compiler/frames/plan_symbols.h"
#include "compiler/frames/report.h"
#include "compiler/frames/same_plan.h"
#include "compiler/frames/size_log.h"
#include "compiler/guards/tensor_object.h"
#include "core/ir/expressions.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/symbolic.h"

namespace cutaway::frames {
namespace {

/// One capture whose graph is kept, not compiled.
struct Sample {
  SizeLog log;
  std::optional<CapturedGraph> graph;
  CaptureResult result = Skip{};
  Plan* plan() { return std::get_if<Plan>(&result); }
};

struct KeptGraph final : GraphFunction {
  bool run(PyObject* const*, size_t, std::vector<ObjectRef>&) override {
    PyErr_SetString(PyExc_SystemError, "cutaway: a graph that was recorded for its sizes was run");
    return false;
  }
};

/// The work of recording at other sizes. A loop that runs a size's square times at every sample may take longer than all that a dynamic
/// graph could save. Counted, not timed: on every machine the same program is captured in the same way.
class Budget {
 public:
  bool is_spent() const { return left_ == 0; }
  void spend(const Sample& s) {
    uint64_t nodes = 0;
    if (s.graph) ir::for_each_node(s.graph->graph.body, [&](const ir::Node&) { ++nodes; });
    const uint64_t work = s.log.instructions + nodes * kInstructionsOfNode;
    left_ -= std::min(left_, work);
  }

 private:
  static constexpr uint64_t kInstructionsOfNode = 10;   // about what one costs against the other
  uint64_t left_ = 5'000'000;                            // a few seconds of interpreting
};

std::vector<at::Tensor> constants_of(const CapturedGraph& g) {
  std::vector<at::Tensor> out;
  for (size_t i = 0; i < g.graph.inputs.size(); ++i)
    if (g.graph.inputs[i].kind == ir::InputKind::constant) out.push_back(guards::unwrap_tensor(g.example_inputs[i].get()));
  return out;
}

bool names_symbol(const ir::Graph& g, const std::string& symbol) {
  bool found = false;
  const auto look = [&](const ir::SymExpr& e) { found = found || (e.kind == ir::SymExpr::Kind::symbol && e.symbol == symbol); };
  for (const ir::Value& v : g.values) {
    if (!v.type.is_tensor()) continue;
    for (const auto* dims : {&v.type.tensor.sizes, &v.type.tensor.strides})
      for (const ir::Dim& d : *dims) ir::for_each_expression(d, look);
  }
  ir::for_each_node(g.body, [&](const ir::Node& n) {
    for (const ir::Argument& a : n.args) ir::for_each_expression(a, look);
    for (const auto& [name, a] : n.kwargs) ir::for_each_expression(a, look);
  });
  return found;
}

bool uses_value(const ir::Graph& g, ir::ValueId id) {
  bool found = false;
  const auto look = [&](ir::ValueId v) { found = found || v == id; };
  for (const ir::Argument& a : g.body.outputs) ir::for_each_value(a, look);
  ir::for_each_node(g.body, [&](const ir::Node& n) {
    ir::for_each_use(n, look);
    for (const ir::Block& b : n.regions) for (const ir::Argument& a : b.outputs) ir::for_each_value(a, look);
  });
  return found;
}

/// Layouts that are not contiguous would need a relation between strides and sizes.
bool is_contiguous(const Plan& plan, const SizeLog::Size& s) {
  for (const guards::Guard& g : plan.guards)
    if (g.kind == guards::GuardKind::tensor && g.source->identity() == s.source) {
      int64_t expected = 1;
      for (size_t i = g.tensor->sizes.size(); i-- > 0;) {
        if (g.tensor->strides.size() <= i || g.tensor->strides[i] != expected) return false;
        expected *= std::max<int64_t>(g.tensor->sizes[i], 1);
      }
      return true;
    }
  return false;
}

/// capture_sizes(), step by step. A step that returns false leaves the reason in `why_`.
class SizeCapture {
 public:
  SizeCapture(const Session& session, const FrameView& frame, const bytecode::Code& code, const CaptureOptions& options, const Compile& compile, std::string& why)
      : session_(session), frame_(frame), code_(code), options_(options), compile_(compile), why_(why) {}

  CaptureResult run() {
    capture_as_it_is();
    if (!choose_what_may_change()) return finish_static(base_);
    name_symbols();
    find_floats_that_move();
    if (!find_graph_for_all_sizes()) return finish_static(base_);
    if (!loosen_guards_of_sizes() || !loosen_guards_of_floats()) return capture_again();
    const bool is_guarded = add_relations();
    add_inputs_for_hidden_symbols();
    if (!compile_with_symbols(is_guarded)) return capture_again();
    return std::move(base_.result);
  }

 private:
  Plan& plan() { return *base_.plan(); }

  void take_sample(Sample& s, CaptureOptions options) {
    options.dynamic.clear();
    options.all_dynamic = false;
    struct Scope {
      SizeLog* before;
      explicit Scope(SizeLog* log) : before(std::exchange(size_log(), log)) {}
      ~Scope() { size_log() = before; }
    } scope(&s.log);
    trace::take_asked_values();
    s.result = session_.capture(frame_, code_, options, [&](CapturedGraph g) -> std::shared_ptr<GraphFunction> {
      s.graph.emplace(std::move(g));
      return std::make_shared<KeptGraph>();
    });
    s.log.uses.push_back(static_cast<int64_t>(trace::take_asked_values()));
  }

  CaptureResult finish_static(Sample& s) {
    if (!s.plan() || !s.graph) return std::move(s.result);
    s.plan()->graph = compile_(std::move(*s.graph));
    if (!s.plan()->graph) return BackendRaised{};
    return std::move(s.result);
  }

  /// For the numbers of this call, where the first sample is used up.
  CaptureResult capture_again() {
    Sample again;
    take_sample(again, options_);
    return finish_static(again);
  }

  // --- the steps, in their order ---

  void capture_as_it_is() {
    base_.log.ask_marks = session_.dynamic.value_or(true);
    base_.log.all_dynamic = options_.all_dynamic;
    base_.log.has_dynamic = !options_.dynamic.empty();
    for (const DynamicSize& d : options_.dynamic) base_.log.sizes.push_back({d.source, d.dim});
    take_sample(base_, options_);
  }

  /// False where nothing may.
  bool choose_what_may_change() {
    for (const SizeLog::Size& s : base_.log.sizes)
      if (s.is_met && (s.dim < 0 || s.real >= 2)) sizes_.push_back(s);
    floats_ = base_.log.floats;
    if ((sizes_.empty() && floats_.empty()) || !base_.plan() || !base_.graph || std::holds_alternative<RunEagerly>(plan().ending)) return false;
    for (const SizeLog::Size& s : sizes_)
      if (s.dim >= 0 && !is_contiguous(plan(), s)) why_ = s.text + " is not contiguous";
    if (!why_.empty()) sizes_.clear();
    for (const SizeLog::Float& f : floats_) floats_now_.push_back(f.real);
    // Made-up sizes may well be refused by an operator: such a sample ends the search for a relation, it does not end a graph.
    options_elsewhere_ = options_;
    const Break* ended = std::get_if<Break>(&plan().ending);
    options_elsewhere_.doubts_errors = options_.doubts_errors && ended && ended->reason.id == "raises-while-traced";
    return !sizes_.empty() || !floats_.empty();
  }

  void name_symbols() {
    const auto is_taken = [&](const std::string& name) { return std::ranges::any_of(base_.graph->graph.values, [&](const ir::Value& v) { return v.name == name; }); };
    for (size_t i = 0; i < sizes_.size(); ++i) {
      std::string name = "s" + std::to_string(i);
      while (is_taken(name)) name += "_";
      symbols_.push_back({name, sizes_[i].real, sizes_[i].dim < 0 ? std::min<int64_t>(sizes_[i].real, -70000) : 2});
    }
    farthest_.resize(sizes_.size());
    is_static_.assign(sizes_.size(), true);
  }

  /// At the sizes of this call.
  void find_floats_that_move() {
    found_floats_.moves.resize(floats_.size());
    if (floats_.empty()) return;
    const auto record = [&](const std::vector<bool>& moves, const std::vector<double>& numbers) { return record_at({}, moves, numbers); };
    found_floats_ = find_floats(record, floats_now_, [&] { return base_.log.calls_python; });
    if (!found_floats_.why.empty()) why_ = found_floats_.why;
    is_refused_ = false;
  }

  /// False where neither sizes nor floats can change.
  bool find_graph_for_all_sizes() {
    const bool has_floats = found_floats_.unified.has_value();
    if (!sizes_.empty()) find_sizes();
    if (!found_ && !has_floats) return false;
    if (!found_) {
      is_static_.assign(sizes_.size(), true);
      found_.emplace();
      found_->graph = std::move(found_floats_.unified->graph);
      found_->numbers = std::move(found_floats_.unified->numbers);
    } else if (has_floats) {   // their range was found before
      using From = symbolic::NumberTerm::From;
      for (const auto& q : found_floats_.unified->numbers.guards)
        if (q.asked.left.from != From::step && q.asked.right.from != From::step) found_->numbers.guards.push_back(q);
    }
    captured_ = *base_.graph;
    captured_.graph = found_->graph;
    return true;
  }

  void find_sizes() {
    uint64_t turn = 1000;
    const auto record = [&](const std::vector<int64_t>& values) -> base::Result<symbolic::Recording> {
      if (is_refused_) return base::Error{.what = why_};
      auto r = record_at(values, found_floats_.moves, turn == 1000 ? floats_now_ : near_numbers(floats_now_, found_floats_.moves, turn));
      ++turn;
      if (!r.ok() && is_refused_) why_ = r.error().what;
      return r;
    };
    auto made = trace::record_symbolic(record, symbols_);
    if (is_refused_) return;
    if (!made.ok()) {
      why_ = made.error().text();
      return;
    }
    is_static_.assign(sizes_.size(), false);
    for (const auto& s : made->statics) {
      why_ += (why_.empty() ? "" : "; ") + s.name + " stays " + std::to_string(s.value) + ": " + s.because;
      for (size_t i = 0; i < symbols_.size(); ++i) if (symbols_[i].name == s.name) is_static_[i] = true;
    }
    if (made->statics.size() < sizes_.size()) found_ = std::move(made).value();
  }

  /// `values`: of the sizes; empty: their own. `is_refused_` where no other numbers would help.
  base::Result<symbolic::Recording> record_at(const std::vector<int64_t>& values, const std::vector<bool>& moves, const std::vector<double>& numbers) {
    if (budget_.is_spent()) {
      is_refused_ = true;
      return base::Error{.what = "recording at other sizes takes too much work", .because = "every recording interprets the frame, and loops over a size are run"};
    }
    Sample other;
    other.log.sizes = sizes_;
    other.log.has_dynamic = base_.log.has_dynamic;
    for (size_t i = 0; i < values.size(); ++i) other.log.sizes[i].said = values[i];
    for (size_t i = 0; i < floats_.size(); ++i)
      if (moves[i]) other.log.floats.push_back({floats_[i].source, 0, numbers[i]});
    take_sample(other, options_elsewhere_);
    budget_.spend(other);
    if (!other.plan() || !other.graph) return base::Error{.what = "the function cannot be captured at these numbers"};
    if (!same_plan(plan(), *other.plan()) || other.log.uses != base_.log.uses) {
      is_refused_ = true;
      return base::Error{.what = "what the function does besides its graph depends on the size or number"};
    }
    symbolic::Recording r;
    r.constants = constants_.of(constants_of(*other.graph));   // before its graph is given away
    r.graph = std::move(other.graph->graph);
    append_integers(*other.plan(), r.graph);
    append_floats(*other.plan(), r.kept);
    r.conditions = std::move(other.log.conditions);
    r.computations = std::move(other.log.computations);
    r.steps = std::move(other.log.steps);
    for (size_t i = 0; i < floats_.size(); ++i) {
      if (!moves[i]) continue;
      r.floats.push_back(numbers[i]);
      r.float_inputs.push_back(r.graph.add_input(floats_[i].text, ir::Type::of(ir::Type::Kind::floating)));
    }
    for (size_t i = 0; i < values.size(); ++i) farthest_[i] = std::max(farthest_[i], values[i]);
    return r;
  }

  /// Guards that name a size's number become guards of its type; relations say the rest.
  bool loosen_guards_of_sizes() {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const guards::Source* found = nullptr;
      for (guards::Guard& g : plan().guards) {
        const bool is_integer = sizes_[i].dim < 0;
        if (g.kind != (is_integer ? guards::GuardKind::const_eq : guards::GuardKind::tensor) || g.source->identity() != sizes_[i].source) continue;
        found = is_integer ? g.source : plan().sources->of(g.source, guards::SourceKind::tensor_size, nullptr, sizes_[i].dim);
        if (is_static_[i]) break;
        if (is_integer) {
          g.kind = guards::GuardKind::type;
          g.operand = ObjectRef::borrow(reinterpret_cast<PyObject*>(&PyLong_Type));
          continue;
        }
        auto spec = std::make_shared<guards::TensorSpec>(*g.tensor);
        spec->sizes[sizes_[i].dim] = guards::TensorSpec::kAny;
        spec->strides.assign(spec->strides.size(), guards::TensorSpec::kAny);
        spec->contiguous = true;
        g.tensor = spec;
        break;
      }
      if (!found) {
        why_ = "nothing guards " + sizes_[i].text;
        return false;
      }
      known_.names.push_back(symbols_[i].name);
      known_.sources.push_back(found);
      known_.shown.push_back(found->text());
    }
    return true;
  }

  /// The same for floats. Those that the graph computes with stay its inputs.
  bool loosen_guards_of_floats() {
    size_t input = captured_.graph.inputs.size() - static_cast<size_t>(std::ranges::count(found_floats_.moves, true));
    for (size_t i = 0; i < floats_.size(); ++i) {
      if (!found_floats_.moves[i]) continue;
      const guards::Source* source = nullptr;
      for (guards::Guard& g : plan().guards) {
        if (g.kind != guards::GuardKind::const_eq || g.source->identity() != floats_[i].source) continue;
        source = g.source;
        g.kind = guards::GuardKind::type;
        g.operand = ObjectRef::borrow(reinterpret_cast<PyObject*>(&PyFloat_Type));
      }
      if (!source) {
        why_ = "nothing guards " + floats_[i].text;
        return false;
      }
      known_.floats.push_back(known_.sources.size());
      known_.names.emplace_back();
      known_.sources.push_back(source);
      known_.shown.push_back(source->shown());
      if (uses_value(captured_.graph, captured_.graph.inputs[input].value)) {
        add_input(source, ObjectRef::steal(PyFloat_FromDouble(floats_[i].real)));
        ++input;
      } else {
        captured_.graph.inputs.erase(captured_.graph.inputs.begin() + static_cast<std::ptrdiff_t>(input));
      }
    }
    return true;
  }

  /// What must hold between the numbers, and what recipes make of them. False where an expression names a symbol that nobody knows.
  bool add_relations() {
    if (!take_integers(plan(), known_, captured_.graph) || !take_floats(plan(), known_, found_->numbers)) return false;
    for (const auto* list : {&found_->guards, &found_->together})
      for (const symbolic::Guard& g : *list)
        if (!add_relation(plan(), known_, g)) return false;
    for (size_t i = 0; i < sizes_.size(); ++i)   // beyond it nothing is known: an operator may cut off there
      if (!is_static_[i] && !add_relation(plan(), known_, {symbolic::Condition::Kind::less_equal, ir::Dim::symbol(symbols_[i].name), ir::Dim(farthest_[i]), "the largest size that was recorded"})) return false;
    if (found_->has_steps) {
      std::vector<int64_t> now;
      for (const SizeLog::Size& s : sizes_) now.push_back(s.real);
      add_size_check(plan(), known_, found_->graph, now);
    }
    return true;
  }

  /// A symbol that the graph computes with and that no tensor among its inputs shows is an input of its own.
  void add_inputs_for_hidden_symbols() {
    const auto is_shown = [&](const std::string& name) {
      return std::ranges::any_of(captured_.graph.inputs, [&](const ir::Input& input) {
        const ir::Type& t = captured_.graph.value(input.value).type;
        return t.is_tensor() && std::ranges::find(t.tensor.sizes, ir::Dim::symbol(name)) != t.tensor.sizes.end();
      });
    };
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const std::string& name = symbols_[i].name;
      if (is_static_[i] || !names_symbol(captured_.graph, name) || is_shown(name)) continue;
      captured_.graph.values.push_back({name, ir::Type::of(ir::Type::Kind::integer)});
      captured_.graph.inputs.push_back({static_cast<ir::ValueId>(captured_.graph.values.size() - 1), ir::InputKind::user, {}});
      add_input(known_.sources[i], ObjectRef::steal(PyLong_FromLongLong(sizes_[i].real)));
    }
  }

  /// False where the backend does not take symbols: it still takes numbers.
  bool compile_with_symbols(bool is_guarded) {
    auto graph = std::make_shared<const ir::Graph>(captured_.graph);
    auto compiled = is_guarded ? compile_(std::move(captured_)) : nullptr;
    if (compiled && compiled->size_guards) {
      std::vector<int64_t> words;
      for (const symbolic::Symbol& symbol : symbols_) words.push_back(symbol.value);
      words.resize(known_.sources.size());
      for (const symbolic::Guard& g : *compiled->size_guards) is_guarded = is_guarded && add_relation(plan(), known_, g) && plan().guards.back().relation(words);
    }
    if (!compiled || !is_guarded) {
      why_ = "the backend does not take a graph with symbols" + (PyErr_Occurred() ? ": " + raised_text() : std::string());
      PyErr_Clear();
      return false;
    }
    plan().graph = std::move(compiled);
    plan().captured = std::move(graph);
    return true;
  }

  void add_input(const guards::Source* source, ObjectRef example) {
    captured_.input_sources.push_back(source);
    captured_.example_inputs.push_back(std::move(example));
    plan().inputs.push_back(source);
  }

  const Session& session_;
  const FrameView& frame_;
  const bytecode::Code& code_;
  const CaptureOptions& options_;
  const Compile& compile_;
  std::string& why_;

  Sample base_;                                ///< at the numbers of this call; becomes the result
  std::vector<SizeLog::Size> sizes_;
  std::vector<SizeLog::Float> floats_;
  std::vector<double> floats_now_;
  CaptureOptions options_elsewhere_;           ///< for other numbers
  Budget budget_;
  bool is_refused_ = false;
  trace::ConstantNumbers constants_;
  std::vector<symbolic::Symbol> symbols_;      ///< of the sizes
  std::vector<int64_t> farthest_;              ///< the largest number that each was recorded at
  FloatsFound found_floats_;
  std::optional<symbolic::SymbolicGraph> found_;
  std::vector<bool> is_static_;                ///< by size
  CapturedGraph captured_;                     ///< with symbols, for the backend
  PlanSymbols known_;
};

}  // namespace

CaptureResult capture_sizes(const Session& session, const FrameView& frame, const bytecode::Code& code, const CaptureOptions& options, const Compile& compile, std::string& why) {
  return SizeCapture(session, frame, code, options, compile, why).run();
}

}  // namespace cutaway::frames
