// Places the boxes of a small acyclic graph in layers, from top to bottom, with few crossings and straight long edges.
// Knows boxes and edges only; draw_graph.h makes them from a graph. The same input gives the same places.
#pragma once
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace cutaway::report {

struct Box {
  double width = 0, height = 0;
};
struct Point {
  double x = 0, y = 0;
};
/// From box to box; `from` < `to`, so that there are no cycles.
struct Edge {
  size_t from = 0, to = 0;
  auto operator<=>(const Edge&) const = default;
};

struct Layout {
  std::vector<Point> centres;           ///< of the boxes
  struct Route {
    Edge edge;
    std::vector<Point> points;          ///< from the lower side of `from` to the upper side of `to`; an even number, each second stretch vertical
  };
  std::vector<Route> routes;            ///< one for each distinct edge, sorted
  std::vector<size_t> layers;           ///< of the boxes, from 0
  size_t crossings = 0;
  double width = 0, height = 0;
};
/// None when it would take more than `max_bends` bends: an edge has one in every layer that it passes.
std::optional<Layout> lay_out(const std::vector<Box>&, std::vector<Edge>, size_t max_bends = 4000);

}  // namespace cutaway::report
