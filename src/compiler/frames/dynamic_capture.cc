#include "compiler/frames/dynamic_capture.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include "compiler/frames/float_samples.h"
#include "compiler/frames/number_run.h"
#include "compiler/frames/report.h"
#include "compiler/frames/size_expression.h"
#include "compiler/frames/size_log.h"
#include "compiler/guards/tensor_object.h"
#include "core/ir/expressions.h"
#include "core/exec/size_check.h"
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

void take_sample(Sample& s, const Session& session, const FrameView& frame, const bytecode::Code& code, CaptureOptions options) {
  options.dynamic.clear();
  options.all_dynamic = false;
  struct Scope {
    SizeLog* before;
    explicit Scope(SizeLog* log) : before(std::exchange(size_log(), log)) {}
    ~Scope() { size_log() = before; }
  } scope(&s.log);
  trace::take_asked_values();
  s.result = session.capture(frame, code, options, [&](CapturedGraph g) -> std::shared_ptr<GraphFunction> {
    s.graph.emplace(std::move(g));
    return std::make_shared<KeptGraph>();
  });
  s.log.uses.push_back(static_cast<int64_t>(trace::take_asked_values()));
}

bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (!PyLong_CheckExact(a) && !PyFloat_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyTuple_CheckExact(a) && !PyBytes_CheckExact(a) && !PyBool_Check(a) && !PyRange_Check(a)) return false;
  if (PyTuple_CheckExact(a)) {
    if (Py_SIZE(a) != Py_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < Py_SIZE(a); ++i)
      if (!same_object(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

// Integers that a recipe holds: of a number, or of a tuple of numbers. What differs between sizes in these alone becomes an expression.
std::optional<std::vector<int64_t>> integers_of(const Recipe& r) {
  if (r.kind != Recipe::Kind::constant) return std::nullopt;
  PyObject* o = r.object.get();
  const bool is_tuple = PyTuple_Check(o) && (PyTuple_CheckExact(o) || !std::strcmp(Py_TYPE(o)->tp_name, "torch.Size"));
  if (!is_tuple && !PyLong_CheckExact(o)) return std::nullopt;
  std::vector<int64_t> out;
  for (Py_ssize_t i = 0; i < (is_tuple ? PyTuple_GET_SIZE(o) : 1); ++i) {
    PyObject* item = is_tuple ? PyTuple_GET_ITEM(o, i) : o;
    if (!PyLong_CheckExact(item)) return std::nullopt;
    out.push_back(PyLong_AsLongLong(item));
    if (PyErr_Occurred()) { PyErr_Clear(); return std::nullopt; }
  }
  return out;
}

/// A float that a recipe holds: it must follow from the floats and sizes of inputs, as everything else.
bool is_float(const Recipe& r) { return r.kind == Recipe::Kind::constant && PyFloat_CheckExact(r.object.get()); }

bool same_recipes(const std::vector<Recipe>& a, const std::vector<Recipe>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Recipe &x = a[i], &y = b[i];
    if (x.kind != y.kind || x.index != y.index || x.base != y.base || x.parts != y.parts || x.names.size() != y.names.size()) return false;
    for (size_t n = 0; n < x.names.size(); ++n)
      if (!same_object(x.names[n].get(), y.names[n].get())) return false;
    if ((x.source != nullptr) != (y.source != nullptr) || (x.source && x.source->text() != y.source->text())) return false;
    if (same_object(x.object.get(), y.object.get()) || (is_float(x) && is_float(y))) continue;
    const auto mine = integers_of(x), theirs = integers_of(y);
    if (!mine || !theirs || mine->size() != theirs->size() || Py_TYPE(x.object.get()) != Py_TYPE(y.object.get())) return false;
  }
  return true;
}

bool same_effects(const std::vector<Effect>& a, const std::vector<Effect>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Effect &x = a[i], &y = b[i];
    if (x.kind != y.kind || x.target != y.target || x.key != y.key || x.value != y.value || x.parts != y.parts || x.before_node != y.before_node || !same_object(x.name.get(), y.name.get())) return false;
  }
  return true;
}

bool same_endings(const Ending& a, const Ending& b) {
  if (a.index() != b.index()) return false;
  if (const auto* r = std::get_if<ReturnValue>(&a)) return r->value == std::get<ReturnValue>(b).value;
  if (const auto* r = std::get_if<RaiseValue>(&a)) return r->exception == std::get<RaiseValue>(b).exception;
  if (const auto* x = std::get_if<Break>(&a)) {
    const auto& y = std::get<Break>(b);
    if (x->frames.size() != y.frames.size() || x->reason.id != y.reason.id) return false;
    for (size_t i = 0; i < x->frames.size(); ++i) {
      const OpenFrame &f = x->frames[i], &g = y.frames[i];
      if (f.code.get() != g.code.get() || f.globals.get() != g.globals.get() || f.instruction != g.instruction || f.locals != g.locals || f.stack != g.stack) return false;
    }
    return true;
  }
  return false;
}

bool same_guards(const std::vector<guards::Guard>& a, const std::vector<guards::Guard>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].kind != b[i].kind || a[i].source->text() != b[i].source->text() || !same_object(a[i].operand.get(), b[i].operand.get()) || a[i].number != b[i].number) return false;
  return true;
}

// What a plan does besides its graph must not depend on the sizes, but for integers.
bool same_plan(const Plan& a, const Plan& b) {
  if (a.inputs.size() != b.inputs.size() || a.output_count != b.output_count) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i)
    if (a.inputs[i]->text() != b.inputs[i]->text()) return false;
  return same_recipes(a.recipes, b.recipes) && same_effects(a.effects, b.effects) && same_endings(a.ending, b.ending) && same_guards(a.guards, b.guards);
}

std::vector<at::Tensor> constants_of(const CapturedGraph& g) {
  std::vector<at::Tensor> out;
  for (size_t i = 0; i < g.graph.inputs.size(); ++i)
    if (g.graph.inputs[i].kind == ir::InputKind::constant) out.push_back(guards::unwrap_tensor(g.example_inputs[i].get()));
  return out;
}

CaptureResult finish_static(Sample& base, const Compile& compile) {
  if (!base.plan() || !base.graph) return std::move(base.result);
  base.plan()->graph = compile(std::move(*base.graph));
  if (!base.plan()->graph) return BackendRaised{};
  return std::move(base.result);
}

/// The integers of recipes stand behind the outputs while recordings are compared: so they become expressions as everything else does.
void append_integers(const Plan& plan, ir::Graph& graph) {
  for (const Recipe& r : plan.recipes)
    if (const auto numbers = integers_of(r))
      for (const int64_t n : *numbers) graph.body.outputs.emplace_back(n);
}

void append_floats(const Plan& plan, std::vector<double>& kept) {
  for (const Recipe& r : plan.recipes)
    if (is_float(r)) kept.push_back(PyFloat_AS_DOUBLE(r.object.get()));
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

/// The symbols of one plan: their names, where their numbers are read, how the user knows them. Floats have no name among sizes.
struct Symbols {
  std::vector<std::string> names;
  std::vector<const guards::Source*> sources;
  std::vector<std::string> shown;
  std::vector<size_t> floats;   ///< positions
  std::vector<std::string> float_names() const {
    std::vector<std::string> out;
    for (const size_t f : floats) out.push_back(shown[f]);
    return out;
  }
};

/// A guard over the numbers of all symbols, which `holds` is given in their order.
void add_relation(Plan& plan, const Symbols& symbols, std::string text, decltype(guards::Guard::relation) holds) {
  guards::Guard relation;
  relation.kind = guards::GuardKind::size_relation;
  relation.source = symbols.sources.front();
  relation.others.assign(symbols.sources.begin() + 1, symbols.sources.end());
  relation.relation_text = std::move(text);
  relation.relation = std::move(holds);
  plan.guards.push_back(std::move(relation));
}
/// False where the guard names another symbol.
bool add_relation(Plan& plan, const Symbols& symbols, const symbolic::Guard& g) {
  auto holds = size_test(g, symbols.names);
  if (!holds) return false;
  add_relation(plan, symbols, with_names(g.text(), symbols.names, symbols.shown), std::move(holds));
  return true;
}

/// Sizes behind a rounding or a choice are checked once for each choice of numbers that comes, where that can be done.
void add_size_check(Plan& plan, const Symbols& symbols, const trace::SymbolicGraph& graph, const std::vector<int64_t>& now) {
  std::vector<size_t> integers;
  std::vector<std::string> names;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < symbols.names.size(); ++i) {
    if (symbols.names[i].empty()) continue;   // a float
    integers.push_back(i);
    names.push_back(symbols.names[i]);
    numbers.push_back(now[i]);
  }
  const auto check = std::make_shared<exec::SizeCheck>(graph.graph, std::move(names));
  if (!check->holds(numbers)) return;   // its operators ask for values, or inputs are no tensors
  add_relation(plan, symbols, "the sizes of the graph are those that its operators give", [check, integers = std::move(integers)](const std::vector<int64_t>& words) {
    std::vector<int64_t> numbers;
    for (const size_t i : integers) numbers.push_back(words[i]);
    return check->holds(numbers);
  });
}

/// The guard of the floats, and the floats that are computed at each call.
bool take_floats(Plan& plan, const Symbols& symbols, const symbolic::NumberProgram& program) {
  auto run = NumberRun::make(program, symbols.names, symbols.floats);
  if (!run) return false;
  const auto numbers = std::make_shared<const NumberRun>(std::move(*run));
  const std::vector<std::string> shown = symbols.float_names();
  const auto as_shown = [&](const std::string& text) { return with_names(text, symbols.names, symbols.shown); };
  if (!numbers->always_holds()) {
    std::string text;
    for (const auto& q : program.guards) text += (text.empty() ? "" : " and ") + as_shown(program.text(q, shown));
    if (text.empty()) text = as_shown(program.text({symbolic::NumberTerm::From::step, {}, {}, program.steps.size() - 1}, shown)) + " can be computed";
    add_relation(plan, symbols, std::move(text), [numbers](const std::vector<int64_t>& words) { return numbers->holds(words); });
  }
  size_t next = 0;
  for (Recipe& r : plan.recipes) {
    if (!is_float(r)) continue;
    const symbolic::NumberTerm& term = program.kept[next++];
    if (term.from == symbolic::NumberTerm::From::constant) continue;
    auto size = std::make_shared<SizeRecipe>();
    size->sources = symbols.sources;
    size->numbers = numbers;
    size->kept = next - 1;
    size->text = as_shown(program.text(term, shown));
    r = Recipe{};
    r.kind = Recipe::Kind::size;
    r.size = std::move(size);
  }
  return true;
}

/// Takes the integers of the recipes off the outputs again; those that are expressions are computed at each call.
bool take_integers(Plan& plan, const Symbols& symbols, ir::Graph& graph) {
  auto& outputs = graph.body.outputs;
  size_t at = plan.output_count;
  for (Recipe& r : plan.recipes) {
    const auto numbers = integers_of(r);
    if (!numbers) continue;
    const bool is_symbolic = std::any_of(outputs.begin() + static_cast<std::ptrdiff_t>(at), outputs.begin() + static_cast<std::ptrdiff_t>(at + numbers->size()), [](const ir::Argument& a) { return a.as<ir::Dim>() != nullptr; });
    if (is_symbolic) {
      auto size = std::make_shared<SizeRecipe>();
      size->sources = symbols.sources;
      if (PyTuple_Check(r.object.get())) size->container = ObjectRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(r.object.get())));
      for (size_t i = 0; i < numbers->size(); ++i) {
        const ir::Dim* d = outputs[at + i].as<ir::Dim>();
        auto item = SizeExpression::make(d ? *d : ir::Dim((*numbers)[i]), symbols.names);
        if (!item) return false;
        size->items.push_back(std::move(*item));
        size->text += (i ? ", " : "") + with_names(d ? d->text() : std::to_string((*numbers)[i]), symbols.names, symbols.shown);
      }
      r = Recipe{};
      r.kind = Recipe::Kind::size;
      r.size = std::move(size);
    }
    at += numbers->size();
  }
  outputs.resize(plan.output_count);
  return true;
}

}  // namespace

CaptureResult capture_sizes(const Session& session, const FrameView& frame, const bytecode::Code& code, const CaptureOptions& options, const Compile& compile, std::string& why) {
  Sample base;
  base.log.ask_marks = session.dynamic.value_or(true);
  base.log.all_dynamic = options.all_dynamic;
  base.log.has_dynamic = !options.dynamic.empty();
  for (const DynamicSize& d : options.dynamic) base.log.sizes.push_back({d.source, d.dim});
  take_sample(base, session, frame, code, options);
  std::vector<SizeLog::Size> sizes;
  for (const SizeLog::Size& s : base.log.sizes)
    if (s.is_met && (s.dim < 0 || s.real >= 2)) sizes.push_back(s);
  Plan* plan = base.plan();
  const std::vector<SizeLog::Float> floats = base.log.floats;
  if ((sizes.empty() && floats.empty()) || !plan || !base.graph) return finish_static(base, compile);
  if (std::holds_alternative<RunEagerly>(plan->ending)) return finish_static(base, compile);

  // Made-up sizes may well be refused by an operator: such a sample ends the search for a relation, it does not end a graph.
  CaptureOptions for_others = options;
  const Break* ended = std::get_if<Break>(&plan->ending);
  for_others.doubts_errors = options.doubts_errors && ended && ended->reason.id == "raises-while-traced";
  const auto capture_again = [&] {   // for the numbers of this call: the first sample is used up
    Sample again;
    take_sample(again, session, frame, code, options);
    return finish_static(again, compile);
  };

  // Layouts that are not contiguous would need a relation between strides and sizes.
  const auto contiguous = [&](const SizeLog::Size& s) {
    for (const guards::Guard& g : plan->guards)
      if (g.kind == guards::GuardKind::tensor && g.source->text() == s.source) {
        int64_t expected = 1;
        for (size_t i = g.tensor->sizes.size(); i-- > 0;) {
          if (g.tensor->strides.size() <= i || g.tensor->strides[i] != expected) return false;
          expected *= std::max<int64_t>(g.tensor->sizes[i], 1);
        }
        return true;
      }
    return false;
  };
  for (const SizeLog::Size& s : sizes)
    if (s.dim >= 0 && !contiguous(s)) why = s.source + " is not contiguous";
  if (!why.empty()) {
    if (floats.empty()) return finish_static(base, compile);
    sizes.clear();
  }

  std::vector<symbolic::Symbol> symbols;
  const auto is_taken = [&](const std::string& name) { return std::ranges::any_of(base.graph->graph.values, [&](const ir::Value& v) { return v.name == name; }); };
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::string name = "s" + std::to_string(i);
    while (is_taken(name)) name += "_";
    symbols.push_back({name, sizes[i].real, sizes[i].dim < 0 ? std::min<int64_t>(sizes[i].real, -70000) : 2});
  }
  bool refused = false;
  std::vector<int64_t> farthest(sizes.size());   // beyond it nothing is known: an operator may cut off there
  // A loop that runs a size's square times at every sample may take longer than all that a dynamic graph could save.
  // Time of this thread's own: on a busy machine the same program must be captured in the same way.
  constexpr int64_t kPatience = 5;
  const auto own_seconds = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<int64_t>(t.tv_sec);
  };
  const int64_t began = own_seconds();
  std::vector<double> now;
  for (const SizeLog::Float& f : floats) now.push_back(f.real);
  const auto record_numbers = [&](const std::vector<int64_t>& values, const std::vector<bool>& moves, const std::vector<double>& numbers) -> base::Result<trace::Recording> {
    if (own_seconds() - began > kPatience) {
      refused = true;
      return base::Error{.what = "recording at other sizes takes too long"};
    }
    Sample other;
    other.log.sizes = sizes;
    other.log.has_dynamic = base.log.has_dynamic;
    for (size_t i = 0; i < values.size(); ++i) other.log.sizes[i].said = values[i];
    for (size_t i = 0; i < floats.size(); ++i)
      if (moves[i]) other.log.floats.push_back({floats[i].source, 0, numbers[i]});
    take_sample(other, session, frame, code, for_others);
    if (!other.plan() || !other.graph) return base::Error{.what = "the function cannot be captured at these numbers"};
    if (!same_plan(*plan, *other.plan()) || other.log.uses != base.log.uses) {
      refused = true;
      return base::Error{.what = "what the function does besides its graph depends on the size or number"};
    }
    trace::Recording r;
    r.constants = constants_of(*other.graph);   // before its graph is given away
    r.graph = std::move(other.graph->graph);
    append_integers(*other.plan(), r.graph);
    append_floats(*other.plan(), r.kept);
    r.conditions = std::move(other.log.conditions);
    r.computations = std::move(other.log.computations);
    r.steps = std::move(other.log.steps);
    for (size_t i = 0; i < floats.size(); ++i) {
      if (!moves[i]) continue;
      r.floats.push_back(numbers[i]);
      r.float_inputs.push_back(r.graph.add_input(floats[i].source, ir::Type::of(ir::Type::Kind::floating)));
    }
    for (size_t i = 0; i < values.size(); ++i) farthest[i] = std::max(farthest[i], values[i]);
    return r;
  };
  // Floats first, at the sizes of this call.
  FloatsFound found_floats;
  found_floats.moves.resize(floats.size());
  if (!floats.empty()) {
    found_floats = find_floats([&](const std::vector<bool>& moves, const std::vector<double>& numbers) { return record_numbers({}, moves, numbers); }, now, [&] { return base.log.calls_python; });
    if (!found_floats.why.empty()) why = found_floats.why;
  }
  const bool has_floats = found_floats.unified.has_value();
  refused = false;
  uint64_t turn = 1000;
  const auto record_at = [&](const std::vector<int64_t>& values) -> base::Result<trace::Recording> {
    if (refused) return base::Error{.what = why};
    auto r = record_numbers(values, found_floats.moves, turn == 1000 ? now : near_numbers(now, found_floats.moves, turn));
    ++turn;
    if (!r.ok() && refused) why = r.error().what;
    return r;
  };
  std::optional<trace::SymbolicGraph> symbolic;
  std::vector<bool> is_static(sizes.size(), true);
  if (!sizes.empty()) {
    auto made = trace::record_symbolic(record_at, symbols);
    if (!made.ok() && !refused) why = made.error().text();
    if (made.ok() && !refused) {
      is_static.assign(sizes.size(), false);
      for (const auto& s : made->statics) {
        why += (why.empty() ? "" : "; ") + s.name + " stays " + std::to_string(s.value) + ": " + s.because;
        for (size_t i = 0; i < symbols.size(); ++i) if (symbols[i].name == s.name) is_static[i] = true;
      }
      if (made->statics.size() < sizes.size()) symbolic = std::move(made).value();
    }
  }
  if (!symbolic) {
    if (!has_floats) return finish_static(base, compile);
    is_static.assign(sizes.size(), true);
    symbolic.emplace();
    symbolic->graph = std::move(found_floats.unified->graph);
    symbolic->numbers = std::move(found_floats.unified->numbers);
  } else if (has_floats) {   // their range was found before
    for (const auto& q : found_floats.unified->numbers.guards)
      if (q.asked.left.from != symbolic::NumberTerm::From::step && q.asked.right.from != symbolic::NumberTerm::From::step) symbolic->numbers.guards.push_back(q);
  }

  CapturedGraph captured = *base.graph;
  captured.graph = symbolic->graph;
  Symbols known;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const guards::Source* found = nullptr;
    for (guards::Guard& g : plan->guards) {
      const bool is_integer = sizes[i].dim < 0;
      if (g.kind != (is_integer ? guards::GuardKind::const_eq : guards::GuardKind::tensor) || g.source->text() != sizes[i].source) continue;
      found = is_integer ? g.source : plan->sources->of(g.source, guards::SourceKind::tensor_size, nullptr, sizes[i].dim);
      if (is_static[i]) break;
      if (is_integer) {   // its value is the relations' matter
        g.kind = guards::GuardKind::type;
        g.operand = ObjectRef::borrow(reinterpret_cast<PyObject*>(&PyLong_Type));
        continue;
      }
      auto spec = std::make_shared<guards::TensorSpec>(*g.tensor);
      spec->sizes[sizes[i].dim] = guards::TensorSpec::kAny;
      spec->strides.assign(spec->strides.size(), guards::TensorSpec::kAny);
      spec->contiguous = true;
      g.tensor = spec;
      break;
    }
    if (!found) {
      why = "nothing guards " + sizes[i].source;
      return capture_again();
    }
    known.names.push_back(symbols[i].name);
    known.sources.push_back(found);
    known.shown.push_back(found->text());
  }
  size_t float_input = captured.graph.inputs.size() - static_cast<size_t>(std::ranges::count(found_floats.moves, true));
  std::vector<ir::ValueId> unused;
  for (size_t i = 0; i < floats.size(); ++i) {
    if (!found_floats.moves[i]) continue;
    const guards::Source* source = nullptr;
    for (guards::Guard& g : plan->guards) {
      if (g.kind != guards::GuardKind::const_eq || g.source->text() != floats[i].source) continue;
      source = g.source;
      g.kind = guards::GuardKind::type;
      g.operand = ObjectRef::borrow(reinterpret_cast<PyObject*>(&PyFloat_Type));
    }
    if (!source) {
      why = "nothing guards " + floats[i].source;
      return capture_again();
    }
    known.floats.push_back(known.sources.size());
    known.names.emplace_back();
    known.sources.push_back(source);
    known.shown.push_back(source->shown());
    if (uses_value(captured.graph, captured.graph.inputs[float_input].value)) {
      captured.input_sources.push_back(source);
      captured.example_inputs.push_back(ObjectRef::steal(PyFloat_FromDouble(floats[i].real)));
      plan->inputs.push_back(source);
      ++float_input;
    } else {
      captured.graph.inputs.erase(captured.graph.inputs.begin() + static_cast<std::ptrdiff_t>(float_input));
    }
  }
  bool good = take_integers(*plan, known, captured.graph) && take_floats(*plan, known, symbolic->numbers);
  for (const auto* list : {&symbolic->guards, &symbolic->together})
    for (const symbolic::Guard& g : *list) good = good && add_relation(*plan, known, g);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!is_static[i]) good = good && add_relation(*plan, known, {symbolic::Condition::Kind::less_equal, ir::Dim::symbol(symbols[i].name), ir::Dim(farthest[i]), "the largest size that was recorded"});
  if (good && symbolic->has_steps) {
    std::vector<int64_t> now;
    for (const SizeLog::Size& s : sizes) now.push_back(s.real);
    add_size_check(*plan, known, *symbolic, now);
  }
  // A symbol that the graph computes with and that no tensor among its inputs shows is an input of its own.
  const auto is_shown = [&](const std::string& name) {
    return std::ranges::any_of(captured.graph.inputs, [&](const ir::Input& input) {
      const ir::Type& t = captured.graph.value(input.value).type;
      return t.is_tensor() && std::ranges::find(t.tensor.sizes, ir::Dim::symbol(name)) != t.tensor.sizes.end();
    });
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (is_static[i] || !names_symbol(captured.graph, symbols[i].name) || is_shown(symbols[i].name)) continue;
    captured.graph.values.push_back({symbols[i].name, ir::Type::of(ir::Type::Kind::integer)});
    captured.graph.inputs.push_back({static_cast<ir::ValueId>(captured.graph.values.size() - 1), ir::InputKind::user, {}});
    captured.input_sources.push_back(known.sources[i]);
    captured.example_inputs.push_back(ObjectRef::steal(PyLong_FromLongLong(sizes[i].real)));
    plan->inputs.push_back(known.sources[i]);
  }
  auto graph = std::make_shared<const ir::Graph>(captured.graph);
  auto compiled = good ? compile(std::move(captured)) : nullptr;
  if (compiled && compiled->size_guards) {
    std::vector<int64_t> words;
    for (const symbolic::Symbol& symbol : symbols) words.push_back(symbol.value);
    words.resize(known.sources.size());
    for (const symbolic::Guard& g : *compiled->size_guards) good = good && add_relation(*plan, known, g) && plan->guards.back().relation(words);
  }
  if (!compiled || !good) {
    // A backend that does not take symbols still takes numbers.
    why = "the backend does not take a graph with symbols" + (PyErr_Occurred() ? ": " + raised_text() : std::string());
    PyErr_Clear();
    return capture_again();
  }
  plan->graph = std::move(compiled);
  plan->captured = graph;
  return std::move(base.result);
}

}  // namespace cutaway::frames
