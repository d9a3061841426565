#include "compiler/frames/plan_symbols.h"

#include <algorithm>
#include <cctype>

#include "compiler/frames/same_plan.h"
#include "core/exec/size_check.h"
#include "core/symbolic/number_run.h"

namespace cutaway::frames {

std::vector<std::string> PlanSymbols::float_names() const {
  std::vector<std::string> out;
  for (const size_t f : floats) out.push_back(shown[f]);
  return out;
}

std::string PlanSymbols::as_shown(const std::string& text) const {
  std::string out;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == i) { out += text[i++]; continue; }
    const std::string word = text.substr(i, end - i);
    const auto found = std::find(names.begin(), names.end(), word);
    out += found == names.end() ? word : shown[static_cast<size_t>(found - names.begin())];
    i = end;
  }
  return out;
}

void add_relation(Plan& plan, const PlanSymbols& symbols, std::string text, decltype(guards::Guard::relation) holds) {
  guards::Guard relation;
  relation.kind = guards::GuardKind::size_relation;
  relation.source = symbols.sources.front();
  relation.others.assign(symbols.sources.begin() + 1, symbols.sources.end());
  relation.relation_text = std::move(text);
  relation.relation = std::move(holds);
  plan.guards.push_back(std::move(relation));
}

bool add_relation(Plan& plan, const PlanSymbols& symbols, const symbolic::Guard& g) {
  auto test = symbolic::GuardTest::make(g, symbols.names);
  if (!test) return false;
  add_relation(plan, symbols, symbols.as_shown(g.text()), [test = std::move(*test)](std::span<const int64_t> numbers) { return test.holds(numbers); });
  return true;
}

void add_size_check(Plan& plan, const PlanSymbols& symbols, const ir::Graph& graph, const std::vector<int64_t>& now) {
  std::vector<size_t> integers;
  std::vector<std::string> names;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < symbols.names.size(); ++i) {
    if (symbols.names[i].empty()) continue;   // a float
    integers.push_back(i);
    names.push_back(symbols.names[i]);
    numbers.push_back(now[i]);
  }
  const auto check = std::make_shared<exec::SizeCheck>(graph, std::move(names));
  if (!check->holds(numbers)) return;   // its operators ask for values, or inputs are no tensors
  add_relation(plan, symbols, "the sizes of the graph are those that its operators give", [check, integers = std::move(integers)](std::span<const int64_t> words) {
    std::vector<int64_t> numbers;
    for (const size_t i : integers) numbers.push_back(words[i]);
    return check->holds(numbers);
  });
}

void append_integers(const Plan& plan, ir::Graph& graph) {
  for (const Recipe& r : plan.recipes)
    if (const auto numbers = integers_of(r))
      for (const int64_t n : *numbers) graph.body.outputs.emplace_back(n);
}

void append_floats(const Plan& plan, std::vector<double>& kept) {
  for (const Recipe& r : plan.recipes)
    if (is_float(r)) kept.push_back(PyFloat_AS_DOUBLE(r.object.get()));
}

bool take_integers(Plan& plan, const PlanSymbols& symbols, ir::Graph& graph) {
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
        auto item = symbolic::Expression::make(d ? *d : ir::Dim((*numbers)[i]), symbols.names);
        if (!item) return false;
        size->items.push_back(std::move(*item));
        size->text += (i ? ", " : "") + symbols.as_shown(d ? d->text() : std::to_string((*numbers)[i]));
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

bool take_floats(Plan& plan, const PlanSymbols& symbols, const symbolic::NumberProgram& program) {
  auto run = symbolic::NumberRun::make(program, symbols.names, symbols.floats);
  if (!run) return false;
  const auto numbers = std::make_shared<const symbolic::NumberRun>(std::move(*run));
  const std::vector<std::string> shown = symbols.float_names();
  if (!numbers->always_holds()) {
    std::string text;
    for (const auto& q : program.guards) text += (text.empty() ? "" : " and ") + symbols.as_shown(program.text(q, shown));
    if (text.empty()) text = symbols.as_shown(program.text({symbolic::NumberTerm::From::step, {}, {}, program.steps.size() - 1}, shown)) + " can be computed";
    add_relation(plan, symbols, std::move(text), [numbers](std::span<const int64_t> words) { return numbers->holds(words); });
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
    size->text = symbols.as_shown(program.text(term, shown));
    r = Recipe{};
    r.kind = Recipe::Kind::size;
    r.size = std::move(size);
  }
  return true;
}

}  // namespace cutaway::frames
