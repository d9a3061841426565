// The layered method in its usual four steps: (1) a layer for each box by the longest path from above, sources moved down to their first
// user; (2) a bend for every layer that an edge passes, so that edges join neighbouring layers only; (3) order within the layers by
// sweeps of barycentres, the order with the fewest crossings kept; (4) horizontal places by sweeps that pull each item to the mean of its
// neighbours, exactly solved for one layer at a time (isotonic regression by pooling). Cost: a few dozen passes over edges and bends.
#include "diagnosis/report/layout.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <numeric>

namespace cutaway::report {
namespace {

constexpr double kGapX = 24, kGapY = 40, kBendWidth = 10;
constexpr int kOrderSweeps = 12, kPlaceSweeps = 24;

struct Item {
  size_t layer = 0;
  double width = 0, x = 0;
  bool is_bend = false;
  std::vector<size_t> above, below;   // neighbours, as items
};

struct Drawing {
  std::vector<Item> items;                    // boxes first, then bends
  std::vector<std::vector<size_t>> layers;    // items from left to right
};

std::vector<size_t> choose_layers(size_t n, const std::vector<Edge>& edges) {
  std::vector<size_t> layer(n, 0), first_use(n, SIZE_MAX);
  std::vector<bool> has_source(n, false);
  for (const Edge& e : edges) {                // sorted by `from`, and from < to: every layer is final when it is read
    layer[e.to] = std::max(layer[e.to], layer[e.from] + 1);
    has_source[e.to] = true;
  }
  for (const Edge& e : edges) first_use[e.from] = std::min(first_use[e.from], layer[e.to]);
  for (size_t i = 0; i < n; ++i)
    if (!has_source[i] && first_use[i] != SIZE_MAX) layer[i] = first_use[i] - 1;
  return layer;
}

/// Pairs (a, b) of edges between two neighbouring layers that cross, counted with a Fenwick tree over the lower positions.
size_t count_crossings(const Drawing& d) {
  std::vector<size_t> position(d.items.size(), 0);
  for (const auto& layer : d.layers)
    for (size_t i = 0; i < layer.size(); ++i) position[layer[i]] = i;
  size_t total = 0;
  for (size_t l = 0; l + 1 < d.layers.size(); ++l) {
    std::vector<size_t> tree(d.layers[l + 1].size() + 1, 0);
    size_t seen = 0;
    for (size_t item : d.layers[l]) {
      std::vector<size_t> ends;
      for (size_t b : d.items[item].below) ends.push_back(position[b] + 1);
      for (size_t end : ends) {
        size_t not_right = 0;
        for (size_t i = end; i > 0; i -= i & (~i + 1)) not_right += tree[i];
        total += seen - not_right;
      }
      for (size_t end : ends) {
        for (size_t i = end; i < tree.size(); i += i & (~i + 1)) ++tree[i];
        ++seen;
      }
    }
  }
  return total;
}

void sort_by_neighbours(Drawing& d, size_t l, bool by_above) {
  std::vector<double> position(d.items.size(), 0);
  const size_t other = by_above ? l - 1 : l + 1;
  for (size_t i = 0; i < d.layers[other].size(); ++i) position[d.layers[other][i]] = static_cast<double>(i);
  std::vector<std::pair<double, size_t>> keyed;
  for (size_t i = 0; i < d.layers[l].size(); ++i) {
    const Item& item = d.items[d.layers[l][i]];
    const auto& near = by_above ? item.above : item.below;
    double sum = 0;
    for (size_t n : near) sum += position[n];
    // Without a neighbour there it stays where it is, as a share of the width.
    const double here = d.layers[l].size() > 1 ? static_cast<double>(i) / static_cast<double>(d.layers[l].size() - 1) * static_cast<double>(d.layers[other].size() - 1) : 0;
    keyed.emplace_back(near.empty() ? here : sum / static_cast<double>(near.size()), d.layers[l][i]);
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < keyed.size(); ++i) d.layers[l][i] = keyed[i].second;
}

size_t order_layers(Drawing& d) {
  auto best = d.layers;
  size_t fewest = count_crossings(d);
  for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
    if (sweep % 2 == 0)
      for (size_t l = 1; l < d.layers.size(); ++l) sort_by_neighbours(d, l, true);
    else
      for (size_t l = d.layers.size() - 1; l-- > 0;) sort_by_neighbours(d, l, false);
    if (const size_t now = count_crossings(d); now < fewest) {
      fewest = now;
      best = d.layers;
    }
  }
  d.layers = std::move(best);
  return fewest;
}

double separation(const Item& left, const Item& right) { return (left.width + right.width) / 2 + kGapX; }

/// The places nearest to what each item of the layer wants, weighted, that keep order and separation.
void place_layer(Drawing& d, const std::vector<size_t>& layer, bool by_above, bool by_below) {
  struct Pool { double sum, weight; size_t count; double mean() const { return sum / weight; } };
  std::vector<Pool> pools;
  std::vector<double> offsets;
  double offset = 0;
  for (size_t i = 0; i < layer.size(); ++i) {
    const Item& item = d.items[layer[i]];
    if (i > 0) offset += separation(d.items[layer[i - 1]], item);
    offsets.push_back(offset);
    double sum = 0, weight = 0;
    const auto pull = [&](const std::vector<size_t>& near) {
      for (size_t n : near) {
        const double w = item.is_bend && d.items[n].is_bend ? 4 : 1;   // long edges straight first
        sum += w * d.items[n].x;
        weight += w;
      }
    };
    if (by_above) pull(item.above);
    if (by_below) pull(item.below);
    if (weight == 0) { sum = item.x * 0.1; weight = 0.1; }
    pools.push_back({sum - weight * offset, weight, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().weight += last.weight;
      pools.back().count += last.count;
    }
  }
  size_t i = 0;
  for (const Pool& p : pools)
    for (size_t k = 0; k < p.count; ++k, ++i) d.items[layer[i]].x = p.mean() + offsets[i];
}

void place_items(Drawing& d) {
  for (const auto& layer : d.layers) {
    double x = 0;
    for (size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) x += separation(d.items[layer[i - 1]], d.items[layer[i]]);
      d.items[layer[i]].x = x;
    }
    for (size_t item : layer) d.items[item].x -= x / 2;
  }
  for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
    const bool is_last = sweep + 2 >= kPlaceSweeps;   // at the end both sides count, so that chains come to rest
    if (sweep % 2 == 0)
      for (size_t l = 0; l < d.layers.size(); ++l) place_layer(d, d.layers[l], true, is_last);
    else
      for (size_t l = d.layers.size(); l-- > 0;) place_layer(d, d.layers[l], is_last, true);
  }
}

}  // namespace

std::optional<Layout> lay_out(const std::vector<Box>& boxes, std::vector<Edge> edges, size_t max_bends) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  for ([[maybe_unused]] const Edge& e : edges) assert(e.from < e.to && e.to < boxes.size() && "edges of a layout go forward");
  Layout out;
  if (boxes.empty()) return out;
  out.layers = choose_layers(boxes.size(), edges);
  size_t bends = 0;
  for (const Edge& e : edges) bends += out.layers[e.to] - out.layers[e.from] - 1;
  if (bends > max_bends) return std::nullopt;

  Drawing d;
  d.layers.resize(*std::max_element(out.layers.begin(), out.layers.end()) + 1);
  for (size_t i = 0; i < boxes.size(); ++i) d.items.push_back({out.layers[i], boxes[i].width, 0, false, {}, {}});
  std::vector<std::vector<size_t>> chains;   // of each edge: its bends from top to bottom
  for (const Edge& e : edges) {
    size_t last = e.from;
    chains.emplace_back();
    for (size_t l = out.layers[e.from] + 1; l < out.layers[e.to]; ++l) {
      const size_t bend = d.items.size();
      d.items.push_back({l, kBendWidth, 0, true, {last}, {}});
      d.items[last].below.push_back(bend);
      chains.back().push_back(bend);
      last = bend;
    }
    d.items[last].below.push_back(e.to);
    d.items[e.to].above.push_back(last);
  }
  for (size_t i = 0; i < d.items.size(); ++i) d.layers[d.items[i].layer].push_back(i);
  out.crossings = order_layers(d);
  place_items(d);

  double left = 0, right = 0;
  bool is_first = true;
  for (const Item& item : d.items) {
    left = is_first ? item.x - item.width / 2 : std::min(left, item.x - item.width / 2);
    right = is_first ? item.x + item.width / 2 : std::max(right, item.x + item.width / 2);
    is_first = false;
  }
  out.width = right - left;
  std::vector<double> top(d.layers.size(), 0), bottom(d.layers.size(), 0);
  double y = 0;
  for (size_t l = 0; l < d.layers.size(); ++l) {
    double height = 0;
    for (size_t item : d.layers[l])
      if (!d.items[item].is_bend) height = std::max(height, boxes[item].height);
    top[l] = y;
    bottom[l] = y + height;
    y = bottom[l] + kGapY;
  }
  out.height = y - kGapY;
  for (size_t i = 0; i < boxes.size(); ++i) out.centres.push_back({d.items[i].x - left, (top[out.layers[i]] + bottom[out.layers[i]]) / 2});
  for (size_t e = 0; e < edges.size(); ++e) {
    Layout::Route route{edges[e], {}};
    const size_t from = edges[e].from, to = edges[e].to;
    route.points.push_back({out.centres[from].x, out.centres[from].y + boxes[from].height / 2});
    for (size_t bend : chains[e]) {
      route.points.push_back({d.items[bend].x - left, top[d.items[bend].layer]});
      route.points.push_back({d.items[bend].x - left, bottom[d.items[bend].layer]});
    }
    route.points.push_back({out.centres[to].x, out.centres[to].y - boxes[to].height / 2});
    out.routes.push_back(std::move(route));
  }
  return out;
}

}  // namespace cutaway::report
