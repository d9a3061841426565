// Reads the text of a graph from standard input, prints how many nodes it has, and the text again. No libtorch.
#include <cstdio>
#include <iostream>
#include <iterator>

#include "core/ir/graph.h"
#include "core/ir/text.h"

int main() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const auto graph = cutaway::ir::parse(text, "standard input");
  if (!graph.ok()) {
    std::fprintf(stderr, "%s\n", graph.error().text().c_str());
    return 2;
  }
  std::printf("%zu nodes\n%s", cutaway::ir::count_nodes(*graph), cutaway::ir::print(*graph).c_str());
}
