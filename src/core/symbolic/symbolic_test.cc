// core/symbolic without libtorch: arithmetic, expressions, guards, unification of recordings that are made up as text.
#include <doctest/doctest.h>

#include <map>

#include "core/ir/text.h"
#include "core/symbolic/guard.h"
#include "core/symbolic/number_run.h"
#include "core/symbolic/search.h"

namespace symbolic_test {

using namespace cutaway;
using ir::Dim;
using Kind = ir::SymExpr::Kind;
using symbolic::compose;
using symbolic::SymbolValues;

namespace {

Dim sym(const char* name) { return Dim::symbol(name); }

std::optional<int64_t> at(const Dim& d, const SymbolValues& values) {
  const auto n = symbolic::evaluate(d, values);
  return n.ok() ? std::optional(*n) : std::nullopt;
}

std::string refusal(const Dim& d, const SymbolValues& values) {
  const auto n = symbolic::evaluate(d, values);
  return n.ok() ? "" : n.error().what;
}

/// The size of the input in a graph of that text.
Dim parsed(const std::string& size) {
  const auto g = ir::parse("graph g(%x: f32[" + size + "]) {\n  return (%x)\n}\n");
  REQUIRE_MESSAGE(g.ok(), size);
  return g->value(g->inputs[0].value).type.tensor.sizes[0];
}

}  // namespace

TEST_CASE("symbolic: quotients round down and remainders have the divisor's sign, as in Python") {
  struct Row { int64_t a, b, quotient, remainder; };
  for (const Row& r : {Row{7, 2, 3, 1}, Row{-7, 2, -4, 1}, Row{7, -2, -4, -1}, Row{-7, -2, 3, -1}, Row{6, 3, 2, 0}, Row{-6, 3, -2, 0}, Row{6, -3, -2, 0}, Row{-6, -3, 2, 0},
                       Row{0, 5, 0, 0}, Row{0, -5, 0, 0}, Row{1, 5, 0, 1}, Row{-1, 5, -1, 4}, Row{1, -5, -1, -4}, Row{INT64_MIN, 2, INT64_MIN / 2, 0},
                       Row{INT64_MAX, -1, -INT64_MAX, 0}, Row{INT64_MIN, INT64_MAX, -2, INT64_MAX - 1}}) {
    CAPTURE(r.a);
    CAPTURE(r.b);
    CHECK(symbolic::floor_div(r.a, r.b) == r.quotient);
    CHECK(symbolic::modulo(r.a, r.b) == r.remainder);
    const SymbolValues values{{"a", r.a}, {"b", r.b}};
    CHECK(at(compose(Kind::floor_div, {sym("a"), sym("b")}), values) == r.quotient);
    CHECK(at(compose(Kind::mod, {sym("a"), sym("b")}), values) == r.remainder);
  }
  CHECK_FALSE(symbolic::floor_div(1, 0));
  CHECK_FALSE(symbolic::modulo(1, 0));
  CHECK_FALSE(symbolic::floor_div(INT64_MIN, -1));   // 2**63
  CHECK(symbolic::modulo(INT64_MIN, -1) == 0);
}

TEST_CASE("symbolic: what does not fit into 64 bits has no value") {
  const SymbolValues values{{"s", INT64_MAX}, {"t", INT64_MIN}, {"u", 3}};
  CHECK(refusal(compose(Kind::add, {sym("s"), Dim(1)}), values) == "the size s + 1 divides by zero or does not fit into 64 bits");
  CHECK_FALSE(at(compose(Kind::add, {sym("t"), Dim(-1)}), values));
  CHECK_FALSE(at(compose(Kind::mul, {sym("s"), sym("u")}), values));
  CHECK_FALSE(at(compose(Kind::mul, {sym("t"), Dim(-1)}), values));
  CHECK_FALSE(at(compose(Kind::floor_div, {sym("t"), Dim(-1)}), values));
  CHECK_FALSE(at(compose(Kind::mod, {sym("u"), Dim(0)}), values));
  CHECK(at(compose(Kind::add, {sym("s"), sym("t")}), values) == -1);
  // Inside of another expression, too.
  CHECK_FALSE(at(compose(Kind::min, {compose(Kind::add, {sym("s"), Dim(1)}), Dim(1)}), values));
}

TEST_CASE("symbolic: minima, maxima and sums of several; an unknown symbol is named") {
  const SymbolValues values{{"a", 5}, {"b", -2}, {"c", 9}};
  CHECK(at(compose(Kind::min, {sym("a"), sym("b"), sym("c")}), values) == -2);
  CHECK(at(compose(Kind::max, {sym("a"), sym("b"), sym("c")}), values) == 9);
  CHECK(at(compose(Kind::add, {sym("a"), sym("b"), sym("c"), Dim(100)}), values) == 112);
  CHECK(at(compose(Kind::mul, {sym("a"), sym("b"), Dim(3)}), values) == -30);
  CHECK(at(Dim(7), values) == 7);
  CHECK(at(sym("c"), values) == 9);
  CHECK(refusal(sym("d"), values) == "the symbol d has no value");
  CHECK(refusal(compose(Kind::add, {sym("a"), compose(Kind::mul, {sym("lost"), Dim(2)})}), values) == "the symbol lost has no value");
  CHECK_FALSE(symbolic::Expression::make(sym("a"), {}));
}

TEST_CASE("symbolic: an expression of any depth") {
  Dim d = sym("s");
  for (int i = 0; i < 100; ++i) d = compose(Kind::add, {Dim(1), d});   // each operand waits for the next
  CHECK(at(d, {{"s", 5}}) == 105);
}

TEST_CASE("symbolic: the text of an expression reads back, and comes to the same") {
  const SymbolValues values{{"s0", 11}, {"s1", 4}};
  for (const auto& [text, number] : std::map<std::string, int64_t>{{"s0", 11}, {"s0*2 + 1", 23}, {"(s0 + 1)//2", 6}, {"mod(s0, 8)", 3}, {"max(s0, 4)", 11}, {"min(s0, s1)", 4}, {"s0*((s1 + 1)//2)*8", 176},
                                                                   {"(s0 + s1)//(s1 + -1)", 5}, {"mod(s0*-1, 4)", 1}, {"(s0*-1)//4", -3}}) {
    const Dim d = parsed(text);
    CHECK(d.text() == text);
    CHECK(parsed(d.text()) == d);
    CHECK(at(d, values) == number);
  }
}

TEST_CASE("symbolic: numbers by slot") {
  SymbolValues values{{"b", 2}, {"a", 1}};
  values.set("c", 3);
  values.set("b", 20);
  CHECK(values.find("a") == 1);
  CHECK(values.find("b") == 20);
  CHECK_FALSE(values.find("d"));
  CHECK(values == SymbolValues{{"b", 20}, {"a", 1}, {"c", 3}});
  const SymbolValues other = values.with({7, 8, 9});
  CHECK(other.find("c") == 9);
  CHECK(values.find("c") == 3);
  const auto e = symbolic::Expression::make(compose(Kind::mul, {sym("c"), sym("a")}), values.names());
  REQUIRE(e);
  CHECK(e->at(values.numbers()) == 3);
  CHECK(e->at(other.numbers()) == 72);
}

TEST_CASE("symbolic: a graph at its sizes") {
  const auto g = ir::parse("graph g(%x: f32[s0, s1*2]) {\n  %v: f32[s0*2, s1] = aten.view(%x, [sym(s0*2), sym((s1*2)//2)])\n  return (%v, s0)\n}\n");
  REQUIRE(g.ok());
  const auto made = symbolic::at_sizes(*g, {{"s0", 3}, {"s1", 4}});
  REQUIRE(made.ok());
  CHECK(ir::print(*made) == "graph g(%x: f32[3, 8]) {\n  %v: f32[6, 4] = aten.view(%x, [6, 4])\n  return (%v, 3)\n}\n");
  const auto unknown = symbolic::at_sizes(*g, {{"s0", 3}});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().what == "the symbol s1 has no value");
}

TEST_CASE("symbolic: guards") {
  using Compare = symbolic::Condition::Kind;
  const std::vector<std::string> names{"s0", "s1"};
  const auto holds = [&](Compare kind, const Dim& left, const Dim& right, std::vector<int64_t> numbers) {
    const auto test = symbolic::GuardTest::make({kind, left, right, ""}, names);
    REQUIRE(test);
    return test->holds(numbers);
  };
  CHECK(holds(Compare::equal, sym("s0"), sym("s1"), {4, 4}));
  CHECK_FALSE(holds(Compare::equal, sym("s0"), sym("s1"), {4, 5}));
  CHECK(holds(Compare::not_equal, sym("s0"), Dim(0), {4, 5}));
  CHECK(holds(Compare::less, sym("s0"), sym("s1"), {4, 5}));
  CHECK_FALSE(holds(Compare::less, sym("s0"), sym("s1"), {5, 5}));
  CHECK(holds(Compare::less_equal, sym("s0"), sym("s1"), {5, 5}));
  CHECK(holds(Compare::equal, compose(Kind::mod, {sym("s0"), Dim(8)}), Dim(0), {16, 0}));
  // What cannot be computed does not hold, whatever is asked.
  for (const auto kind : {Compare::equal, Compare::not_equal, Compare::less, Compare::less_equal}) CHECK_FALSE(holds(kind, compose(Kind::floor_div, {sym("s0"), sym("s1")}), Dim(3), {16, 0}));
  const symbolic::Guard lost{Compare::less, sym("s7"), Dim(3), ""};
  CHECK_FALSE(symbolic::GuardTest::make(lost, names));
  const auto tests = symbolic::make_tests(std::vector{lost}, names);
  REQUIRE_FALSE(tests.ok());
  CHECK(tests.error().what == "the guard s7 < 3 names a symbol that has no value");
}

// --- recordings that are made up ---
namespace {

using Numbers = std::vector<int64_t>;
using Text = std::function<std::string(const Numbers&)>;

std::string n(int64_t number) { return std::to_string(number); }

symbolic::Recording recording(const std::string& text) {
  symbolic::Recording r;
  auto g = ir::parse(text);
  REQUIRE_MESSAGE(g.ok(), text);
  r.graph = std::move(g).value();
  return r;
}

std::string view_of(int64_t rows, int64_t columns, int64_t to) {
  return "graph g(%x: f32[" + n(rows) + ", " + n(columns) + "]) {\n  %v: f32[" + n(to) + "] = aten.view(%x, [" + n(to) + "])\n  return (%v)\n}\n";
}

base::Result<symbolic::SymbolicGraph> searched(const Text& program, std::vector<symbolic::Symbol> symbols) {
  return symbolic::search([&](const Numbers& v) -> base::Result<symbolic::Recording> {
    const std::string text = program(v);
    if (text.empty()) return base::Error{.what = "no such size"};
    return recording(text);
  }, std::move(symbols));
}

}  // namespace

TEST_CASE("symbolic: recordings at several sizes become one graph") {
  std::vector<symbolic::Recording> made;
  symbolic::Samples samples{{"s0", "s1"}, {{4, 6}, {5, 9}, {2, 3}, {70, 6}, {4, 60}, {9, 17}}, {}, {}};
  for (const auto& v : samples.values) made.push_back(recording(view_of(v[0], v[1], v[0] * v[1])));
  for (const auto& r : made) samples.recordings.push_back(&r);
  const auto u = symbolic::unify(samples);
  REQUIRE_MESSAGE(u.ok(), u.error().text());
  CHECK(ir::print(u->graph) == "graph g(%x: f32[s0, s1]) {\n  %v: f32[s0*s1] = aten.view(%x, [sym(s0*s1)])\n  return (%v)\n}\n");
  CHECK(u->guards.empty());
  CHECK_FALSE(u->is_guessed);
}

TEST_CASE("symbolic: recordings of other operators, constants or ways are refused, with the reason") {
  const auto refused = [](symbolic::Recording a, symbolic::Recording b) {
    symbolic::Recording c = a;
    const symbolic::Samples samples{{"s0"}, {{4}, {5}, {4}}, {&a, &b, &c}, {}};
    const auto u = symbolic::unify(samples);
    return u.ok() ? std::string() : u.error().what;
  };
  const auto of = [](const std::string& op, const std::string& rest = "") { return recording("graph g(%x: f32[4]) {\n  %y: f32[4] = aten." + op + "(%x" + rest + ")\n  return (%y)\n}\n"); };
  CHECK(refused(of("relu"), of("abs")) == "the program runs other operators at other sizes");
  CHECK(refused(of("relu"), of("relu")).empty());
  auto first = of("relu"), second = of("relu");
  first.constants = {0};
  second.constants = {1};
  CHECK(refused(first, second) == "the value of a constant depends on the sizes");
  second.constants = {};
  CHECK(refused(first, second) == "the program meets other constants at other sizes");
  first = of("relu"), second = of("relu");
  first.conditions = {{symbolic::Condition::Kind::less, 4, 5, true, "model.py:3"}};
  second.conditions = {{symbolic::Condition::Kind::less, 5, 5, false, "model.py:3"}};
  CHECK(refused(first, second) == "the program takes another way at other sizes");
  CHECK(refused(of("add.Scalar", ", 0.3"), of("add.Scalar", ", 0.7")) == "an argument of aten.add.Scalar is a floating-point number that depends on the sizes");
}

TEST_CASE("symbolic: a search finds products, roundings and limits") {
  const auto product = searched([](const Numbers& v) { return view_of(v[0], 12, v[0] * 12); }, {{"s0", 6}});
  REQUIRE(product.ok());
  CHECK(ir::print(product->graph).find("aten.view(%x, [sym(s0*12)])") != std::string::npos);
  CHECK(product->statics.empty());
  CHECK_FALSE(product->has_steps);
  REQUIRE(product->guards.size() == 1);
  CHECK(product->guards[0].text() == "2 <= s0");

  const auto half = searched([](const Numbers& v) { return view_of(v[0], 2, (v[0] + 1) / 2); }, {{"s0", 6}});
  REQUIRE(half.ok());
  CHECK(ir::print(half->graph).find("(s0 + 1)//2") != std::string::npos);
  CHECK(half->has_steps);

  const auto table = searched([](const Numbers& v) { return v[0] > 512 ? "" : view_of(v[0], 2, v[0] * 2); }, {{"s0", 6}});   // a table that ends
  REQUIRE(table.ok());
  REQUIRE(table->guards.size() == 2);
  int64_t most = table->guards[1].right.value();
  CHECK(most > 256);
  CHECK(most <= 512);
}

TEST_CASE("symbolic: a search gives up a size that the program takes alone, and says so") {
  const auto found = searched([](const Numbers& v) { return v[1] == 6 ? view_of(v[0], v[1], v[0] * 3 + v[1]) : ""; }, {{"s0", 5}, {"s1", 6}});
  REQUIRE(found.ok());
  REQUIRE(found->statics.size() == 1);
  CHECK(found->statics[0].name == "s1");
  CHECK(found->statics[0].value == 6);
  CHECK(found->statics[0].because == "the program fails at s1=7: no such size");
  CHECK(ir::print(found->graph).find("[sym(s0*3 + 6)]") != std::string::npos);
  const auto none = searched([](const Numbers&) { return std::string(); }, {{"s0", 6}});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().what == "no such size");
}

TEST_CASE("symbolic: sizes that only move together are one symbol; work that grows limits how far it looks") {
  const auto square = searched([](const Numbers& v) { return v[0] == v[1] ? view_of(v[0], v[1], v[0] * v[1]) : ""; }, {{"s0", 6}, {"s1", 6}});
  REQUIRE(square.ok());
  REQUIRE(square->together.size() == 1);
  CHECK(square->together[0].text() == "s1 == s0");
  int64_t farthest = 0;
  const auto loop = symbolic::search([&](const Numbers& v) -> base::Result<symbolic::Recording> {
    farthest = std::max(farthest, v[0]);
    auto r = recording(view_of(v[0], 2, v[0] * 2));
    r.work = static_cast<uint64_t>(v[0]) * 10;
    return r;
  }, {{"s0", 6}});
  REQUIRE(loop.ok());
  CHECK(farthest == 6 + 512);
}

TEST_CASE("symbolic: floats that change are computed again at each call") {
  using Step = symbolic::NumberStep::Kind;
  using symbolic::Number;
  using symbolic::NumberTerm;
  symbolic::NumberProgram p;
  p.steps = {{Step::mul, {NumberTerm::From::symbol, {}, {}, 0}, {NumberTerm::From::integer, {}, sym("s0"), 0}}};
  p.guards = {{{Step::less, {NumberTerm::From::step, {}, {}, 0}, {NumberTerm::From::constant, Number::of(10.0), {}, 0}}, true, ""}};
  p.kept = {{NumberTerm::From::step, {}, {}, 0}};
  const std::vector<std::string> names{"s0", ""};
  const auto run = symbolic::NumberRun::make(p, names, {1});
  REQUIRE(run);
  const auto words = [](int64_t size, double x) { return std::vector<int64_t>{size, std::bit_cast<int64_t>(x)}; };
  CHECK(run->holds(words(3, 1.5)));
  CHECK_FALSE(run->holds(words(8, 1.5)));
  CHECK(run->kept(0, words(3, 1.5))->floating == 4.5);
  CHECK_FALSE(run->always_holds());
  CHECK_FALSE(symbolic::NumberRun::make(p, std::vector<std::string>{"t"}, {1}));
}

}  // namespace symbolic_test
