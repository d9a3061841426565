#include "diagnosis/report/layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace layout_test {

using namespace cutaway::report;

namespace {

/// Boxes of a layer do not touch, edges go down, everything lies inside.
void check_sane(const std::vector<Box>& boxes, const Layout& l) {
  REQUIRE(l.centres.size() == boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    CHECK(l.centres[i].x - boxes[i].width / 2 > -0.01);
    CHECK(l.centres[i].x + boxes[i].width / 2 < l.width + 0.01);
    CHECK(l.centres[i].y - boxes[i].height / 2 > -0.01);
    CHECK(l.centres[i].y + boxes[i].height / 2 < l.height + 0.01);
    for (size_t j = 0; j < i; ++j)
      if (l.layers[i] == l.layers[j]) CHECK(std::abs(l.centres[i].x - l.centres[j].x) > (boxes[i].width + boxes[j].width) / 2);
  }
  for (const Layout::Route& r : l.routes) {
    CHECK(l.layers[r.edge.from] < l.layers[r.edge.to]);
    CHECK(r.points.size() % 2 == 0);
    for (size_t k = 1; k < r.points.size(); ++k) {
      CHECK(r.points[k].y >= r.points[k - 1].y);
      if (k % 2 == 0) CHECK(r.points[k].x == r.points[k - 1].x);
    }
  }
}

}  // namespace

TEST_CASE("layout: a chain is a straight line") {
  const std::vector<Box> boxes = {{100, 40}, {60, 40}, {140, 60}};
  const auto l = lay_out(boxes, {{0, 1}, {1, 2}});
  REQUIRE(l);
  check_sane(boxes, *l);
  CHECK(std::abs(l->centres[0].x - l->centres[2].x) < 1);
  CHECK(l->crossings == 0);
  CHECK(l->layers == std::vector<size_t>{0, 1, 2});
}

TEST_CASE("layout: an input stands just above its first user") {
  const std::vector<Box> boxes(5, Box{80, 40});                  // 0: x, 1: w, 2: a(x), 3: b(a), 4: c(b, w)
  const auto l = lay_out(boxes, {{0, 2}, {2, 3}, {3, 4}, {1, 4}});
  REQUIRE(l);
  CHECK(l->layers[1] == 2);
  check_sane(boxes, *l);
}

TEST_CASE("layout: crossings that can be avoided are avoided") {
  const std::vector<Box> boxes(6, Box{80, 40});                  // 0-5, 1-4, 2-3: crossed as given
  const auto l = lay_out(boxes, {{0, 5}, {1, 4}, {2, 3}});
  REQUIRE(l);
  CHECK(l->crossings == 0);
  check_sane(boxes, *l);
}

TEST_CASE("layout: a long edge bends in every layer that it passes, around the boxes") {
  const std::vector<Box> boxes(5, Box{80, 40});
  const auto l = lay_out(boxes, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}, {0, 4}});
  REQUIRE(l);
  check_sane(boxes, *l);
  REQUIRE(l->routes.size() == 5);                                // the second copy of 0-4 is the same edge
  const Layout::Route& longest = l->routes[1];
  REQUIRE(longest.edge == Edge{0, 4});
  CHECK(longest.points.size() == 8);
  for (size_t k = 1; k + 1 < longest.points.size(); ++k)
    for (size_t box : {1, 2, 3})
      if (std::abs(longest.points[k].y - l->centres[box].y) <= 20) CHECK(std::abs(longest.points[k].x - l->centres[box].x) > 40);
}

TEST_CASE("layout: random graphs are placed sanely, and the same way each time") {
  uint32_t state = 7;
  const auto random = [&](uint32_t below) { return (state = state * 1664525u + 1013904223u) / 65536 % below; };
  for (int round = 0; round < 30; ++round) {
    std::vector<Box> boxes;
    std::vector<Edge> edges;
    const size_t n = 2 + random(60);
    for (size_t i = 0; i < n; ++i) {
      boxes.push_back({40.0 + random(200), 30.0 + random(40)});
      for (uint32_t k = 0; i > 0 && k < random(4); ++k) edges.push_back({random(static_cast<uint32_t>(i)), i});
    }
    const auto a = lay_out(boxes, edges), b = lay_out(boxes, edges);
    REQUIRE(a);
    check_sane(boxes, *a);
    for (size_t i = 0; i < n; ++i) CHECK(a->centres[i].x == b->centres[i].x);
  }
}

TEST_CASE("layout: too many bends are refused, nothing is fine") {
  std::vector<Edge> edges;
  for (size_t i = 0; i < 100; ++i)
    for (size_t j = i + 1; j < 100; ++j) edges.push_back({i, j});
  CHECK_FALSE(lay_out(std::vector<Box>(100, Box{10, 10}), edges));
  CHECK(lay_out({}, {}));
}

}  // namespace layout_test
