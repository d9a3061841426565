#include "diagnosis/minify/minify.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace minify_test {

using namespace cutaway;

namespace {

// An oracle from a predicate over the graph's operators; counts questions and notices repeated ones.
struct PredicateOracle final : minify::Oracle {
  std::function<minify::Answer::Kind(const minify::Case&)> judge;
  uint64_t questions = 0, repeated = 0;
  std::set<base::Digest> seen;
  std::vector<minify::Answer> ask(std::span<const minify::Case* const> cases) override {
    std::vector<minify::Answer> out;
    for (const minify::Case* c : cases) {
      ++questions;
      repeated += !seen.insert(minify::digest(*c)).second;
      CHECK(ir::verify(c->graph).empty());
      CHECK(c->graph.inputs.size() == c->manifest.inputs.size());
      minify::Answer a;
      a.kind = judge(*c);
      if (a.kind == minify::Answer::Kind::other_failure) a.signature.kind = "crash";
      out.push_back(a);
    }
    return out;
  }
};

// Shapes in these tests never change a node's own type, so that types of inputs are enough.
struct SameTyper final : minify::Typer {
  base::Result<ir::Graph> retype(const ir::Graph& g) override { return g; }
};
struct AllValues final : minify::RecordedValues {
  std::optional<bundle::InputRef> find(std::string_view) override {
    bundle::InputRef in;
    in.kind = bundle::InputRef::Kind::seeded;
    in.tensor.sizes = {4};
    in.tensor.strides = {1};
    return in;
  }
};

minify::Case make_case(const std::string& text) {
  auto g = ir::parse(text);
  REQUIRE_MESSAGE(g.ok(), (g.ok() ? "" : g.error().text()));
  minify::Case c;
  c.graph = std::move(*g);
  AllValues values;
  for (size_t i = 0; i < c.graph.inputs.size(); ++i) c.manifest.inputs.push_back(*values.find(""));
  return c;
}

// A random chain-and-join graph: op<i>, each using one or two earlier values.
minify::Case random_case(std::mt19937& rng, int nodes) {
  std::string text = "graph g(%x: f32[4], %y: f32[4]) {\n";
  std::vector<std::string> values = {"x", "y"};
  for (int i = 0; i < nodes; ++i) {
    const auto& a = values[std::uniform_int_distribution<size_t>(values.size() > 6 ? values.size() - 6 : 0, values.size() - 1)(rng)];
    const auto& b = values[std::uniform_int_distribution<size_t>(0, values.size() - 1)(rng)];
    text += "  %v" + std::to_string(i) + ": f32[4] = t.op" + std::to_string(i) + "(%" + a + (rng() % 2 ? ", %" + b : "") + ")\n";
    values.push_back("v" + std::to_string(i));
  }
  return make_case(text + "  return (%v" + std::to_string(nodes - 1) + ", %v" + std::to_string(nodes / 2) + ")\n}\n");
}

std::set<int> ops_of(const minify::Case& c) {
  std::set<int> ops;
  for (const ir::Node& n : c.graph.body.nodes)
    if (n.target.rfind("t.op", 0) == 0) ops.insert(std::stoi(n.target.substr(4)));
  return ops;
}

base::Result<minify::Outcome> run(const minify::Case& start, PredicateOracle& oracle, minify::Options options = {}, const minify::Guesses& guesses = {}) {
  SameTyper typer;
  AllValues values;
  return minify::minify(start, guesses, oracle, typer, values, nullptr, options);
}

}  // namespace

TEST_CASE("one guilty node among 300 is found with few questions") {
  std::mt19937 rng(7);
  const minify::Case start = random_case(rng, 300);
  PredicateOracle oracle;
  oracle.judge = [](const minify::Case& c) { return ops_of(c).count(123) ? minify::Answer::Kind::same_failure : minify::Answer::Kind::passes; };
  auto out = run(start, oracle);
  REQUIRE(out.ok());
  CHECK(out->start_fails);
  CHECK(out->one_minimal);
  CHECK(ops_of(out->smallest) == std::set<int>{123});
  CHECK(out->smallest.graph.body.nodes.size() == 1);
  CHECK(oracle.repeated == 0);
  CHECK(oracle.questions < 80);
}

TEST_CASE("a start that passes is the answer") {
  std::mt19937 rng(1);
  PredicateOracle oracle;
  oracle.judge = [](const minify::Case&) { return minify::Answer::Kind::passes; };
  auto out = run(random_case(rng, 10), oracle);
  REQUIRE(out.ok());
  CHECK_FALSE(out->start_fails);
  CHECK(oracle.questions == 1);
}

TEST_CASE("random oracles: the result is one-minimal, the same for every number of jobs") {
  for (int seed = 0; seed < 60; ++seed) {
    std::mt19937 rng(seed);
    const int nodes = 3 + static_cast<int>(rng() % 40);
    const minify::Case start = random_case(rng, nodes);
    std::set<int> guilty;
    for (int k = 1 + static_cast<int>(rng() % 4); k > 0; --k) guilty.insert(static_cast<int>(rng() % nodes));
    const uint64_t salt = rng();
    const bool monotone = seed % 2 == 0;
    auto judge = [=](const minify::Case& c) {
      const auto ops = ops_of(c);
      if (!std::includes(ops.begin(), ops.end(), guilty.begin(), guilty.end())) return ops.count(0) && !guilty.count(0) ? minify::Answer::Kind::other_failure : minify::Answer::Kind::passes;
      // Not monotone: some supersets pass, by a hash of the case; the start always fails.
      if (!monotone && static_cast<int>(ops.size()) != nodes && (minify::digest(c).low ^ salt) % 4 == 0) return minify::Answer::Kind::passes;
      return minify::Answer::Kind::same_failure;
    };
    std::string first;
    for (int jobs : {1, 2, 5}) {
      PredicateOracle oracle;
      oracle.judge = judge;
      minify::Options options;
      options.jobs = jobs;
      auto out = run(start, oracle, options);
      REQUIRE(out.ok());
      REQUIRE(out->start_fails);
      CHECK(out->one_minimal);
      CHECK(judge(out->smallest) == minify::Answer::Kind::same_failure);
      CHECK_FALSE(minify::score(start) < minify::score(out->smallest));
      if (monotone) CHECK(ops_of(out->smallest) == guilty);
      const std::string text = ir::print(out->smallest.graph) + minify::digest(out->smallest).hex();
      if (first.empty()) first = text;
      CHECK(text == first);
    }
  }
}

TEST_CASE("a journal cut at any entry resumes to the same result and asks nothing twice") {
  std::mt19937 rng(3);
  const minify::Case start = random_case(rng, 40);
  const auto path = (std::filesystem::temp_directory_path() / ("cutaway-journal-test-" + std::to_string(::getpid()))).string();
  std::filesystem::remove(path);
  auto judge = [](const minify::Case& c) { const auto o = ops_of(c); return o.count(11) && o.count(29) ? minify::Answer::Kind::same_failure : minify::Answer::Kind::passes; };
  minify::Options options;
  options.journal = path;
  PredicateOracle whole;
  whole.judge = judge;
  auto complete = run(start, whole, options);
  REQUIRE(complete.ok());
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  size_t cuts = 0;
  for (size_t at = 0; at < text.size(); at += 1 + text.size() / 97, ++cuts) {
    std::ofstream(path, std::ios::trunc) << text.substr(0, at);
    PredicateOracle rest;
    rest.judge = judge;
    auto resumed = run(start, rest, options);
    REQUIRE(resumed.ok());
    CHECK(minify::digest(resumed->smallest) == minify::digest(complete->smallest));
    CHECK(rest.questions + static_cast<uint64_t>(std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n')) <= whole.questions + 1);
  }
  CHECK(cuts > 50);
  PredicateOracle other;
  other.judge = judge;
  CHECK_FALSE(run(random_case(rng, 12), other, options).ok());   // another start is refused
  std::filesystem::remove(path);
}

TEST_CASE("guesses are tried first, other failures are kept aside") {
  std::mt19937 rng(5);
  const minify::Case start = random_case(rng, 200);
  auto judge = [](const minify::Case& c) { const auto o = ops_of(c); return o.count(77) ? minify::Answer::Kind::same_failure : o.count(20) ? minify::Answer::Kind::other_failure : minify::Answer::Kind::passes; };
  minify::Case guess = make_case("graph g(%x: f32[4]) {\n  %v: f32[4] = t.op77(%x)\n  return (%v)\n}\n");
  PredicateOracle guided, plain;
  guided.judge = plain.judge = judge;
  auto with = run(start, guided, {}, {guess});
  auto without = run(start, plain);
  REQUIRE((with.ok() && without.ok()));
  CHECK(ops_of(with->smallest) == ops_of(without->smallest));
  CHECK(guided.questions < plain.questions);
  REQUIRE_FALSE(without->others.empty());
  CHECK(without->others[0].signature.kind == "crash");
}

TEST_CASE("shapes, values and options shrink to what the failure needs") {
  minify::Case start = make_case("graph g(%x: f32[8, 64] grad, %w: f32[64, 64]) {\n  %v: f32[8, 64] = t.op1(%x, %w, 0.25)\n  %u: f32[512] = aten.view(%v, [512])\n  return (%u)\n}\n");
  start.manifest.inputs[0].tensor = {};
  start.manifest.inputs[0].tensor.sizes = {8, 64};
  start.manifest.inputs[0].tensor.strides = {64, 1};
  start.manifest.inputs[0].tensor.requires_grad = true;
  start.manifest.inputs[1].tensor.sizes = {64, 64};
  start.manifest.inputs[1].tensor.strides = {64, 1};
  start.manifest.options = {{"needed", "1"}, {"idle", "2"}};
  PredicateOracle oracle;
  oracle.judge = [](const minify::Case& c) {
    return ops_of(c).count(1) && c.manifest.options.count("needed") && c.manifest.inputs[0].tensor.sizes[0] >= 4 ? minify::Answer::Kind::same_failure : minify::Answer::Kind::passes;
  };
  auto out = run(start, oracle);
  REQUIRE(out.ok());
  const auto& x = out->smallest.manifest.inputs[0];
  CHECK(x.tensor.sizes == std::vector<int64_t>{4, 1});
  CHECK_FALSE(x.tensor.requires_grad);
  CHECK(x.kind == bundle::InputRef::Kind::filled);
  CHECK(out->smallest.manifest.options == std::map<std::string, std::string>{{"needed", "1"}});
  CHECK(out->smallest.graph.body.nodes.size() == 1);
}

TEST_CASE("the smallest size is found between those that were tried, and relations between sizes are kept") {
  using Sizes = std::vector<int64_t>;
  const auto reduced = [](const std::vector<Sizes>& inputs, const std::function<bool(const std::vector<Sizes>&)>& fails, uint64_t& questions) {
    std::string declared, used;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = "%x" + std::to_string(i);
      declared += (i ? ", " : "") + name + ": f32[" + std::to_string(inputs[i][0]) + ", " + std::to_string(inputs[i][1]) + "]";
      used += (i ? ", " : "") + name;
    }
    minify::Case start = make_case("graph g(" + declared + ") {\n  %v: f32[1] = t.op1(" + used + ")\n  return (%v)\n}\n");
    for (size_t i = 0; i < inputs.size(); ++i) {
      start.manifest.inputs[i].tensor.sizes = inputs[i];
      start.manifest.inputs[i].tensor.strides = {inputs[i][1], 1};
    }
    const auto sizes_of = [](const minify::Case& c) {
      std::vector<Sizes> found;
      for (const auto& in : c.manifest.inputs) found.push_back(in.tensor.sizes);
      return found;
    };
    PredicateOracle oracle;
    oracle.judge = [&](const minify::Case& c) { return ops_of(c).count(1) && fails(sizes_of(c)) ? minify::Answer::Kind::same_failure : minify::Answer::Kind::passes; };
    auto out = run(start, oracle);
    REQUIRE(out.ok());
    CHECK(out->one_minimal);
    questions = oracle.questions;
    return sizes_of(out->smallest);
  };
  uint64_t questions = 0;
  CHECK(reduced({{5, 7}}, [](const auto& s) { return s[0][0] >= 3; }, questions) == std::vector<Sizes>{{3, 1}});
  CHECK(reduced({{1000, 2}}, [](const auto& s) { return s[0][0] >= 701; }, questions) == std::vector<Sizes>{{701, 1}});
  CHECK(questions < 80);
  CHECK(reduced({{11, 6}}, [](const auto& s) { return s[0][0] % 2 == 1 && s[0][0] > s[0][1] && s[0][1] >= 3; }, questions) == std::vector<Sizes>{{5, 3}});
  CHECK(reduced({{4, 16}, {48, 16}}, [](const auto& s) { return s[1][0] == 3 * s[0][1] && s[0][1] == s[1][1] && s[0][1] >= 5; }, questions) == std::vector<Sizes>{{1, 5}, {15, 5}});
  CHECK(reduced({{9, 1}, {10, 1}}, [](const auto& s) { return s[1][0] == s[0][0] + 1 && s[0][0] >= 4; }, questions) == std::vector<Sizes>{{4, 1}, {5, 1}});
  CHECK(reduced({{6, 1}, {6, 1}}, [](const auto& s) { return s[0][0] >= 5 && s[1][0] >= 3; }, questions) == std::vector<Sizes>{{5, 1}, {3, 1}});
}

TEST_CASE("minify: symbolic sizes become numbers where the failure does not need them") {
  minify::Case c = make_case("graph g(%x: f32[s0, s1*2]) {\n  %v: f32[s0*2, s1] = aten.view(%x, [sym(s0*2), sym((s1*2)//2)])\n  %y: f32[s0*2, s1] = aten.relu(%v)\n  return (%y, s0)\n}\n");
  c.manifest.inputs[0].tensor.sizes = {3, 8};
  c.manifest.inputs[0].tensor.strides = {8, 1};
  c.manifest.tracing_mode = "symbolic";
  const minify::ReductionPass* pass = nullptr;
  for (const auto& p : minify::passes())
    if (p.name == "fix_symbolic_sizes") pass = &p;
  REQUIRE(pass);
  struct Drop final : minify::Chooser {
    int asked = 0;
    bool keep() override { ++asked; return false; }
  };
  AllValues values;
  Drop unknown;
  minify::Case same = c;
  pass->apply(unknown, same, minify::PassContext{&values, nullptr});   // nobody tells s1
  CHECK(unknown.asked == 0);
  CHECK(same.manifest.tracing_mode == "symbolic");
  c.manifest.extra["symbols"] = "{\"s0\": 7, \"s1\": 4}";   // s0 is 3 by now: the input says so
  Drop drop;
  pass->apply(drop, c, minify::PassContext{&values, nullptr});
  CHECK(drop.asked == 1);
  CHECK(c.manifest.tracing_mode == "real");
  CHECK(c.manifest.extra.empty());
  const std::string text = ir::print(c.graph);
  CHECK_MESSAGE(text.find("%x: f32[3, 8]") != text.npos, text);
  CHECK_MESSAGE(text.find("aten.view(%x, [6, 4])") != text.npos, text);
  CHECK_MESSAGE(text.find("return (%y, 3)") != text.npos, text);
}

}  // namespace minify_test
