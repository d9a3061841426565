#include "core/ir/graph.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

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

/// Names in use, by their hashes alone: a table that nothing is allocated for but itself. Two names with one hash would look like one, and the
/// second would get a suffix that it does not need.
class NameSet {
 public:
  /// False when it is there already.
  bool insert(std::string_view name) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    const uint64_t hash = hash_of(name);
    size_t at = place(hash);
    for (; slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == hash) return false;
    slots_[at] = hash;
    ++used_;
    return true;
  }
  void erase(std::string_view name) {
    if (slots_.empty()) return;
    const uint64_t hash = hash_of(name);
    for (size_t at = place(hash); slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == hash) {
        slots_[at] = kErased;
        return;
      }
  }
  void clear() {
    slots_.clear();
    used_ = 0;
  }

 private:
  static constexpr uint64_t kFree = 0, kErased = 1;
  static uint64_t hash_of(std::string_view name) { return std::max<uint64_t>(std::hash<std::string_view>()(name), kErased + 1); }
  size_t place(uint64_t hash) const { return (hash * 0x9e3779b97f4a7c15u >> 20) & (slots_.size() - 1); }
  void grow() {
    std::vector<uint64_t> before(std::max<size_t>(slots_.size() * 2, 256), kFree);
    before.swap(slots_);
    used_ = 0;
    for (const uint64_t hash : before) {
      if (hash <= kErased) continue;
      size_t at = place(hash);
      while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = hash;
      ++used_;
    }
  }
  std::vector<uint64_t> slots_;
  size_t used_ = 0;   ///< erased ones too
};

}  // namespace

struct Graph::Index {
  NameSet names;
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
  if (x.names.insert(base)) return base;
  size_t& n = x.next_suffix[base];
  base += '_';
  for (const size_t length = base.size();; base.resize(length)) {
    char digits[24];
    base.append(digits, std::to_chars(digits, digits + sizeof digits, ++n).ptr);
    if (x.names.insert(base)) return base;
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
