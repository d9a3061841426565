// The numbers in comments are those of the rules in docs/formats/graph.md.
#include "core/ir/verify.h"

#include <cstdint>
#include <unordered_set>

#include "core/ir/breaches.h"
#include "core/ir/printer.h"
#include "core/ir/source_place.h"
#include "core/ir/spelling.h"
#include "core/ir/type_rules.h"

namespace cutaway::ir {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, const VerifyOptions& options) : graph_(graph), options_(options), state_(graph.values.size(), State::undefined) {}

  const std::vector<Breach>& run() {
    for (const Input& in : graph_.inputs) {
      const size_t before = breaches_.all().size();
      define(in.value, &in);
      if (breaches_.all().size() == before) check_type(in.value, &in);
    }
    block(graph_.body, 0);
    for (const Argument& a : graph_.body.outputs) argument(a, 0);
    return breaches_.all();
  }

 private:
  enum class State : uint8_t { undefined, visible, hidden };
  // Less than the parser's 64, by the depth that a symbolic size may add: every verified graph reads back.
  static constexpr int kMaxDepth = 40;

  bool exists(ValueId id) const { return id < graph_.values.size(); }
  std::string shown(ValueId id) const { return exists(id) ? "%" + graph_.values[id].name : "value " + std::to_string(id); }

  void define(ValueId id, const void* at) {
    if (!exists(id)) return breaches_.add(at, shown(id) + " is not among the graph's values");                          // V1
    const std::string& name = graph_.values[id].name;
    if (state_[id] != State::undefined) return breaches_.add(at, shown(id) + " is defined twice");                      // V2
    state_[id] = State::visible;
    defined_.push_back(id);
    if (!is_value_name(name)) breaches_.add(at, "\"" + name + "\" is not a name", "a name has letters, digits, '_' and '.'");   // V3
    else if (!names_.insert(name).second) breaches_.add(at, "the name %" + name + " is taken by another value");        // V4
  }

  void check_type(ValueId id, const void* at) {                                                                         // T1-T5
    const Type& type = graph_.values[id].type;
    if (!type.is_tensor()) return;
    if (std::string problem = breach_of(type.tensor); !problem.empty()) breaches_.add(at, shown(id) + ": " + problem);
  }

  void use(ValueId id, const Argument& at) {                                                                            // V5, V6
    if (!exists(id)) breaches_.add(&at, shown(id) + " is not among the graph's values");
    else if (state_[id] == State::undefined) breaches_.add(&at, shown(id) + " is used before it is defined");
    else if (state_[id] == State::hidden) breaches_.add(&at, shown(id) + " is used outside of the region that defines it");
  }

  void argument(const Argument& a, int depth) {
    const auto nested = [&](const std::vector<Argument>& items) {
      if (depth >= kMaxDepth) return breaches_.add(&a, "nested more than 40 deep");                                     // A1
      for (const Argument& x : items) argument(x, depth + 1);
    };
    if (auto* r = a.as<ValueRef>()) {
      use(r->id, a);
    } else if (auto* l = a.as<List>()) {
      nested(l->items);
    } else if (auto* t = a.as<Tuple>()) {
      nested(t->items);
    } else if (auto* s = a.as<Slice>()) {
      if (s->parts.size() != 3) breaches_.add(&a, "a slice has three parts: start, stop and step");                     // A2
      nested(s->parts);
    } else if (auto* d = a.as<Dict>()) {
      if (depth >= kMaxDepth) return breaches_.add(&a, "nested more than 40 deep");
      std::unordered_set<std::string_view> keys;
      for (const auto& [key, x] : d->items) {
        if (!keys.insert(key).second) breaches_.add(&x, "the key \"" + key + "\" stands twice in a dict");              // A3
        argument(x, depth + 1);
      }
    } else if (auto* dim = a.as<Dim>()) {
      if (std::string problem = breach_of(*dim); !problem.empty()) breaches_.add(&a, std::move(problem));               // T5
    } else if (auto* device = a.as<Device>()) {
      if (!is_identifier(device->type) || device->index < -1 || device->index > Device::kMaxIndex)
        breaches_.add(&a, "\"" + device->text() + "\" is not a device");                                                // A4
    } else if (auto* dtype = a.as<DType>()) {
      if (static_cast<int>(*dtype) >= kDTypeCount) breaches_.add(&a, "the dtype is not known");
    }
  }

  void arguments(const Node& n, int depth) {
    for (const Argument& a : n.args) argument(a, depth);
    std::unordered_set<std::string_view> keys;
    for (const auto& [key, a] : n.kwargs) {
      if (!keys.insert(key).second) breaches_.add(&key, "the argument " + key + " is given twice");                     // A5
      argument(a, depth);
    }
  }

  void shape_of_node(const Node& n) {
    const bool is_op = n.kind == Node::Kind::op;
    if (is_op && (!split_op_name(n.target) || !is_dotted_identifier(n.target)))                                         // N1
      breaches_.add(&n, "\"" + n.target + "\" does not name an operator", "a name is namespace.name or namespace.name.overload, as in aten.add.Tensor");
    if (n.kind == Node::Kind::call && n.target.empty()) breaches_.add(&n, "a call needs the name of what is called");   // N2
    if (n.kind == Node::Kind::scope && (!n.target.empty() || !n.args.empty() || !n.kwargs.empty()))                     // N3
      breaches_.add(&n, "a scope has no target and no arguments");
    if (is_op && !n.regions.empty()) breaches_.add(&n, "an operator has no region");                                    // N4
    if (is_op && !n.state.is_default()) breaches_.add(&n, "an operator has no state of its own", "state belongs to calls and scopes");   // N5
    if (!is_op && n.regions.size() != 1)                                                                                // N4
      breaches_.add(&n, std::string(n.kind == Node::Kind::call ? "a call" : "a scope") + " has exactly one region, this one has " + std::to_string(n.regions.size()));
    size_t promised = 0;
    for (int32_t r : n.returns) {
      if (r < Node::kSingle) breaches_.add(&n, "the number of results in a list is negative");                          // N6
      promised += r == Node::kSingle ? 1 : r > 0 ? static_cast<size_t>(r) : 0;
    }
    if (promised != n.results.size())
      breaches_.add(&n, "the node says that it returns " + std::to_string(promised) + " values and defines " + std::to_string(n.results.size()));
    if (n.location != kNoLocation && n.location >= graph_.locations.size()) breaches_.add(&n, "the node's location is not among the graph's locations");   // N7
    else if (n.location != kNoLocation && graph_.locations[n.location].line < 0) breaches_.add(&n, "the node's location has a negative line");
  }

  /// Flat: one output a result, whatever lists the results form.
  void yields(const Node& n, const Block& region) {
    if (region.outputs.size() != n.results.size())                                                                      // R1
      return breaches_.add(&region, "the region yields " + count(region.outputs.size()) + " where " + std::to_string(n.results.size()) + " are defined");
    for (size_t i = 0; i < n.results.size(); ++i) {
      if (!exists(n.results[i])) continue;
      const Type& want = graph_.values[n.results[i]].type;
      const std::optional<Type> have = type_of(region.outputs[i]);
      if (!have) breaches_.add(&region.outputs[i], "a region yields values and plain literals, one for each result");   // R2
      else if (!(*have == want)) breaches_.add(&region.outputs[i], shown(n.results[i]) + " is " + want.text() + " and the region yields " + have->text());
    }
  }
  static std::string count(size_t n) { return std::to_string(n) + (n == 1 ? " value" : " values"); }

  std::optional<Type> type_of(const Argument& a) const {
    if (auto* r = a.as<ValueRef>()) return exists(r->id) ? std::optional(graph_.values[r->id].type) : std::nullopt;
    if (a.is_none()) return Type::of(Type::Kind::none);
    if (a.as<bool>()) return Type::of(Type::Kind::boolean);
    if (a.as<int64_t>() || a.as<Dim>()) return Type::of(Type::Kind::integer);
    if (a.as<double>()) return Type::of(Type::Kind::floating);
    if (a.as<std::complex<double>>()) return Type::of(Type::Kind::complex);
    if (a.as<std::string>()) return Type::of(Type::Kind::string);
    if (a.as<Device>()) return Type::of(Type::Kind::device);
    if (a.as<DType>()) return Type::of(Type::Kind::dtype);
    return std::nullopt;
  }

  void node(const Node& n, int depth) {
    shape_of_node(n);
    arguments(n, depth);
    // A region sees what stands before its node; the node's results come after it.
    for (const Block& region : n.regions) {
      if (depth >= kMaxDepth) {
        breaches_.add(&n, "nested more than 40 deep");                                                                  // A1
        break;
      }
      const size_t outside = defined_.size();
      block(region, depth + 1);
      for (const Argument& a : region.outputs) argument(a, depth + 1);
      if (n.kind != Node::Kind::op) yields(n, region);
      for (size_t i = outside; i < defined_.size(); ++i) state_[defined_[i]] = State::hidden;
    }
    for (const ValueId& id : n.results) {
      const size_t before = breaches_.all().size();
      define(id, &id);
      if (breaches_.all().size() == before) check_type(id, &id);
    }
    if (n.kind == Node::Kind::op && options_.schemas) verify_schema(graph_, n, *options_.schemas, breaches_);
  }

  void block(const Block& b, int depth) {
    for (const Node& n : b.nodes) {
      if (breaches_.is_full()) return;
      node(n, depth);
    }
  }

  const Graph& graph_;
  const VerifyOptions& options_;
  std::vector<State> state_;
  std::vector<ValueId> defined_;                    // in order, so that a region's own can be hidden when it ends
  std::unordered_set<std::string_view> names_;
  Breaches breaches_;
};

}  // namespace

std::vector<base::Error> verify(const Graph& graph, const VerifyOptions& options) {
  Verifier verifier(graph, options);
  const std::vector<Breach>& breaches = verifier.run();
  std::vector<base::Error> errors;
  if (breaches.empty()) return errors;
  // Only now is the text needed: a graph without breaches is verified without being printed.
  std::string text;
  Spans spans;
  print_to(text, graph, {.header = true}, &spans);
  for (const Breach& b : breaches) {
    const auto it = spans.find(b.at);
    const Span span = it == spans.end() ? Span{} : it->second;
    errors.push_back(error_at(text, options.file, span.offset, span.length, b.what, b.because));
  }
  return errors;
}

}  // namespace cutaway::ir
