#include "core/ir/graph.h"

#include <unordered_map>
#include <unordered_set>

#include "core/ir/spelling.h"

namespace cutaway::ir {
namespace {

struct LocationHash {
  size_t operator()(const Location& l) const {
    const std::hash<std::string> h;
    size_t x = h(l.file) * 31 + static_cast<size_t>(l.line);
    x = x * 1000003 + h(l.function);
    return x * 1000003 + h(l.module);
  }
};

}  // namespace

struct Graph::Index {
  std::unordered_set<std::string> names;
  std::unordered_map<std::string, size_t> next_suffix;   // by base name: a thousand "relu" must not search a thousand times each
  std::unordered_map<Location, LocationId, LocationHash> locations;
  size_t values_seen = 0;
  size_t locations_seen = 0;
};

Graph::Graph(const Graph& o) : name(o.name), values(o.values), inputs(o.inputs), body(o.body), locations(o.locations) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph& o) {
  if (this != &o) *this = Graph(o);
  return *this;
}
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::Graph() = default;
Graph::~Graph() = default;

// Values and locations appended without our help are caught up with; renamed ones are rename()'s business. Names and locations
// catch up apart: the parser adds locations, keeps names itself, and should not pay for a second table of them.
Graph::Index& Graph::index() {
  if (!index_) index_ = std::make_unique<Index>();
  return *index_;
}
void Graph::catch_up_names() {
  Index& x = index();
  if (x.values_seen > values.size()) {
    x.names.clear();
    x.next_suffix.clear();
    x.values_seen = 0;
  }
  for (; x.values_seen < values.size(); ++x.values_seen) x.names.insert(values[x.values_seen].name);
}
void Graph::catch_up_locations() {
  Index& x = index();
  if (x.locations_seen > locations.size()) {
    x.locations.clear();
    x.locations_seen = 0;
  }
  for (; x.locations_seen < locations.size(); ++x.locations_seen)
    x.locations.emplace(locations[x.locations_seen], static_cast<LocationId>(x.locations_seen));
}

std::string Graph::unique_name(std::string base) {
  if (base.empty()) base = "v";
  for (char& c : base)
    if (!is_name_char(c)) c = '_';
  catch_up_names();
  Index& x = index();
  if (x.names.insert(base).second) return base;
  for (size_t& n = x.next_suffix[base];;) {
    std::string candidate = base + "_" + std::to_string(++n);
    if (x.names.insert(candidate).second) return candidate;
  }
}

ValueId Graph::add_value(std::string name, Type type) {
  std::string unique = unique_name(std::move(name));
  values.push_back({std::move(unique), std::move(type)});
  index_->values_seen = values.size();
  return static_cast<ValueId>(values.size() - 1);
}

void Graph::rename(ValueId id, std::string name) {
  if (values[id].name == name) return;
  catch_up_names();
  index().names.erase(values[id].name);
  values[id].name = unique_name(std::move(name));
}

ValueId Graph::add_input(std::string name, Type type, InputKind kind, std::string qualified_name) {
  const ValueId id = add_value(std::move(name), std::move(type));
  inputs.push_back({id, kind, std::move(qualified_name)});
  return id;
}

LocationId Graph::add_location(const Location& location) {
  if (location == Location{}) return kNoLocation;
  catch_up_locations();
  Index& x = index();
  const auto [it, is_new] = x.locations.emplace(location, static_cast<LocationId>(locations.size()));
  if (is_new) {
    locations.push_back(location);
    x.locations_seen = locations.size();
  }
  return it->second;
}

size_t count_nodes(const Graph& g) {
  size_t n = 0;
  const auto count = [&n](const Block& block, const auto& self) -> void {
    for (const Node& node : block.nodes) {
      if (node.kind != Node::Kind::scope) ++n;
      else for (const Block& region : node.regions) self(region, self);
    }
  };
  count(g.body, count);
  return n;
}

size_t count_ops(const Graph& g) {
  size_t n = 0;
  for_each_node(g.body, [&n](const Node& node) { n += node.kind == Node::Kind::op; });
  return n;
}

std::optional<OpName> split_op_name(std::string_view target) {
  const size_t first = target.find('.');
  if (first == std::string_view::npos || first == 0) return std::nullopt;
  const size_t second = target.find('.', first + 1);
  const std::string_view name = target.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
  const std::string_view overload = second == std::string_view::npos ? std::string_view() : target.substr(second + 1);
  if (name.empty() || (second != std::string_view::npos && overload.empty())) return std::nullopt;
  if (overload.find('.') != std::string_view::npos || target.find(':') != std::string_view::npos) return std::nullopt;
  return OpName{std::string(target.substr(0, first)) + "::" + std::string(name), std::string(overload)};
}

std::string join_op_name(std::string_view name, std::string_view overload) {
  std::string out(name);
  if (const size_t colons = out.find("::"); colons != std::string::npos) out.replace(colons, 2, ".");
  if (!overload.empty()) {
    out += '.';
    out += overload;
  }
  return out;
}

}  // namespace cutaway::ir
