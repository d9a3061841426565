#include "compiler/frames/dynamic_capture.h"

#include <optional>

#include "compiler/frames/size_log.h"
#include "compiler/guards/tensor_object.h"
#include "core/exec/symbols.h"
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
  s.result = session.capture(frame, code, options, [&](CapturedGraph g) -> std::shared_ptr<GraphFunction> {
    s.graph.emplace(std::move(g));
    return std::make_shared<KeptGraph>();
  });
}

bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (!PyLong_CheckExact(a) && !PyFloat_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyTuple_CheckExact(a) && !PyBytes_CheckExact(a) && !PyBool_Check(a)) return false;
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

// What a plan does besides its graph must not depend on the sizes.
bool same_plan(const Plan& a, const Plan& b) {
  if (a.recipes.size() != b.recipes.size() || a.effects.size() != b.effects.size() || a.guards.size() != b.guards.size() || a.inputs.size() != b.inputs.size() ||
      a.ending.index() != b.ending.index() || a.output_count != b.output_count) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i)
    if (a.inputs[i]->text() != b.inputs[i]->text()) return false;
  for (size_t i = 0; i < a.recipes.size(); ++i) {
    const Recipe &x = a.recipes[i], &y = b.recipes[i];
    if (x.kind != y.kind || x.index != y.index || x.base != y.base || x.parts != y.parts || x.names.size() != y.names.size() || !same_object(x.object.get(), y.object.get())) return false;
    if ((x.source != nullptr) != (y.source != nullptr) || (x.source && x.source->text() != y.source->text())) return false;
  }
  for (size_t i = 0; i < a.effects.size(); ++i) {
    const Effect &x = a.effects[i], &y = b.effects[i];
    if (x.kind != y.kind || x.target != y.target || x.key != y.key || x.value != y.value || x.parts != y.parts || !same_object(x.name.get(), y.name.get())) return false;
  }
  for (size_t i = 0; i < a.guards.size(); ++i)
    if (a.guards[i].kind != b.guards[i].kind || a.guards[i].source->text() != b.guards[i].source->text() || !same_object(a.guards[i].operand.get(), b.guards[i].operand.get()) ||
        a.guards[i].number != b.guards[i].number) return false;
  return true;
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

bool holds(const trace::Guard& g, const exec::SymbolValues& values) {
  const int64_t l = exec::evaluate(g.left, values), r = exec::evaluate(g.right, values);
  switch (g.kind) {
    case trace::Condition::Kind::equal: return l == r;
    case trace::Condition::Kind::not_equal: return l != r;
    case trace::Condition::Kind::less: return l < r;
    case trace::Condition::Kind::less_equal: return l <= r;
  }
  return false;
}

}  // namespace

CaptureResult capture_sizes(const Session& session, const FrameView& frame, const bytecode::Code& code, const CaptureOptions& options, const Compile& compile, std::string& why) {
  Sample base;
  base.log.ask_marks = session.dynamic.value_or(true);
  base.log.all_dynamic = options.all_dynamic;
  for (const DynamicSize& d : options.dynamic) base.log.sizes.push_back({d.source, d.dim});
  take_sample(base, session, frame, code, options);
  std::vector<SizeLog::Size> sizes;
  for (const SizeLog::Size& s : base.log.sizes)
    if (s.real >= 2) sizes.push_back(s);
  Plan* plan = base.plan();
  if (sizes.empty() || !plan || !base.graph) return finish_static(base, compile);
  if (!std::holds_alternative<ReturnValue>(plan->ending)) { why = "the graph breaks"; return finish_static(base, compile); }

  // Layouts that are not contiguous would need a relation between strides and sizes.
  const auto contiguous = [&](const SizeLog::Size& s) {
    for (const guards::Guard& g : plan->guards)
      if (g.kind == guards::GuardKind::tensor && g.source->text() == s.source) {
        int64_t expected = 1;
        for (size_t i = g.tensor->sizes.size(); i-- > 0;) {
          if (g.tensor->sizes[i] != 1 && g.tensor->strides.size() > i && g.tensor->strides[i] != expected) return false;
          expected *= g.tensor->sizes[i];
        }
        return true;
      }
    return false;
  };
  for (const SizeLog::Size& s : sizes)
    if (!contiguous(s)) { why = s.source + " is not contiguous"; return finish_static(base, compile); }

  std::vector<trace::Symbol> symbols;
  for (size_t i = 0; i < sizes.size(); ++i) symbols.push_back({"s" + std::to_string(i), sizes[i].real});
  bool refused = false;
  const auto record_at = [&](const std::vector<int64_t>& values) -> base::Result<trace::Recording> {
    if (refused) return base::Error{.what = why};
    Sample other;
    other.log.sizes = sizes;
    for (size_t i = 0; i < values.size(); ++i) other.log.sizes[i].said = values[i];
    take_sample(other, session, frame, code, options);
    if (!other.plan() || !other.graph) return base::Error{.what = "the function cannot be captured at these sizes"};
    if (!same_plan(*plan, *other.plan()) || other.log.uses != base.log.uses) {
      refused = true;
      why = "what the function does besides its graph depends on the size";
      return base::Error{.what = why};
    }
    trace::Recording r;
    r.graph = std::move(other.graph->graph);
    r.constants = constants_of(*other.graph);
    r.conditions = std::move(other.log.conditions);
    return r;
  };
  auto symbolic = trace::record_symbolic(record_at, symbols);
  if (!symbolic.ok() || refused) {
    if (!refused) why = symbolic.error().text();
    return finish_static(base, compile);
  }
  std::vector<bool> is_static(sizes.size());
  for (const auto& s : symbolic->statics) {
    why += (why.empty() ? "" : "; ") + s.name + " stays " + std::to_string(s.value) + ": " + s.because;
    for (size_t i = 0; i < symbols.size(); ++i) if (symbols[i].name == s.name) is_static[i] = true;
  }
  if (symbolic->statics.size() == sizes.size()) return finish_static(base, compile);

  CapturedGraph captured = *base.graph;
  captured.graph = symbolic->graph;
  std::vector<const guards::Source*> size_sources;
  std::vector<std::string> names;
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (guards::Guard& g : plan->guards) {
      if (g.kind != guards::GuardKind::tensor || g.source->text() != sizes[i].source) continue;
      size_sources.push_back(plan->sources->of(g.source, guards::SourceKind::tensor_size, nullptr, sizes[i].dim));
      names.push_back(symbols[i].name);
      if (is_static[i]) break;
      auto spec = std::make_shared<guards::TensorSpec>(*g.tensor);
      spec->sizes[sizes[i].dim] = guards::TensorSpec::kAny;
      spec->strides.assign(spec->strides.size(), guards::TensorSpec::kAny);
      spec->contiguous = true;
      g.tensor = spec;
      break;
    }
  }
  for (const trace::Guard& g : symbolic->guards) {
    guards::Guard relation;
    relation.kind = guards::GuardKind::size_relation;
    relation.source = size_sources.front();
    relation.others.assign(size_sources.begin() + 1, size_sources.end());
    relation.relation_text = g.text();
    relation.relation = [g, names](const std::vector<int64_t>& values) {
      exec::SymbolValues by_name;
      for (size_t i = 0; i < names.size(); ++i) by_name[names[i]] = values[i];
      try {
        return holds(g, by_name);
      } catch (const c10::Error&) {
        return false;
      }
    };
    plan->guards.push_back(std::move(relation));
  }
  auto graph = std::make_shared<const ir::Graph>(captured.graph);
  auto compiled = compile(std::move(captured));
  if (!compiled) {
    // A backend that does not take symbols still takes numbers.
    PyErr_Clear();
    why = "the backend does not take a graph with symbols";
    Sample again;
    take_sample(again, session, frame, code, options);
    return finish_static(again, compile);
  }
  plan->graph = std::move(compiled);
  plan->captured = graph;
  return std::move(base.result);
}

}  // namespace cutaway::frames
