// Runs the cases of tests/golden/ir and tests/errors/graph. A case is one file: "run: <what>" in its first line, the input, a line
// "----", the expected text; `diff` has two inputs with a line "====" between them. CUTAWAY_UPDATE_GOLDEN=1 rewrites expectations.
#include <doctest/doctest.h>

#include "core/ir/diff.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "tests/support/golden_cases.h"

namespace golden_test {

using namespace cutaway;

namespace {

std::string answer(const std::string& command, const std::string& input) {
  const auto parsed = [](std::string_view text, auto&& use) -> std::string {
    base::Result<ir::Graph> g = ir::parse(text, "input.cut");
    if (!g.ok()) return g.error().text() + "\n";
    return use(*g);
  };
  if (command == "diff") {
    const size_t middle = input.find("====\n");
    REQUIRE(middle != std::string::npos);
    return parsed(std::string_view(input).substr(0, middle), [&](ir::Graph& a) {
      return parsed(std::string_view(input).substr(middle + 5), [&](ir::Graph& b) {
        std::string out;
        for (const ir::Difference& d : ir::diff(a, b)) out += d.text + "\n";
        return out + ir::unified_diff(ir::print(a), ir::print(b), "a.cut", "b.cut", 1);
      });
    });
  }
  return parsed(input, [&](ir::Graph& g) -> std::string {
    if (command == "print") return ir::print(g, {.header = true});
    if (command == "print --short") return ir::print(g, {.types = false, .locations = false, .regions = false});
    if (command == "canonical") return ir::canonical_text(g);
    if (command == "dce") {
      const size_t removed = ir::remove_dead_code(g);
      return std::to_string(removed) + " removed\n" + ir::print(g);
    }
    if (command == "verify") {
      std::string out;
      for (const base::Error& e : ir::verify(g, {.file = "input.cut"})) out += e.text() + "\n";
      return out.empty() ? "verified\n" : out;
    }
    if (command.starts_with("prefix ")) return ir::print(ir::prefix(g, std::stoul(command.substr(7))));
    if (command.starts_with("extract ")) {
      std::vector<size_t> positions;
      for (size_t at = 8; at < command.size(); at = std::min(command.find(' ', at), command.size() - 1) + 1) positions.push_back(std::stoul(command.substr(at)));
      return ir::print(ir::extract_subgraph(g, positions));
    }
    FAIL("unknown command: " << command);
    return {};
  });
}

}  // namespace

TEST_CASE("golden graphs") { CHECK(testing::run_golden_cases("tests/golden/ir", answer) > 0); }
TEST_CASE("messages about graph texts") { CHECK(testing::run_golden_cases("tests/errors/graph", answer) > 0); }

}  // namespace golden_test
