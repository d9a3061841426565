#include "core/ir/printer.h"

#include <algorithm>
#include <cstdint>

#include "core/ir/location_text.h"
#include "core/ir/spelling.h"

namespace cutaway::ir {
namespace {

constexpr size_t kLongHeader = 120;   // bytes of all inputs on one line

class Printer {
 public:
  Printer(std::string& out, const Graph& graph, const PrintOptions& options, Spans* spans, const std::vector<ValueId>* ordinals = nullptr)
      : out_(out), graph_(graph), options_(options), spans_(spans), ordinals_(ordinals) {}

  void graph() {
    if (options_.header) out_ += "cutaway graph " + std::to_string(kGraphFormatVersion) + "\n";
    const size_t start = out_.size();
    out_ += "graph";
    if (!graph_.name.empty() && !ordinals_) {
      out_ += ' ';
      word_or_quoted(graph_.name, is_identifier(graph_.name));
    }
    record(&graph_, start);
    inputs(has_long_header());
    out_ += " {\n";
    block(graph_.body, 1, "return");
    out_ += "}\n";
  }

  void argument(const Argument& a) {
    const size_t start = out_.size();
    std::visit([this](const auto& x) { literal(x); }, a.v);
    record(&a, start);
  }

  /// Up to and without the brace that opens a region.
  void node_head(const Node& n) {
    results(n);
    const size_t start = out_.size();
    if (n.kind == Node::Kind::scope) {
      out_ += "scope";
      record(&n, start);
    } else {
      if (n.kind == Node::Kind::call) out_ += "call ";
      const bool is_keyword = n.kind == Node::Kind::op && (n.target == "call" || n.target == "scope" || n.target == "yield" || n.target == "return");
      word_or_quoted(n.target, is_dotted_identifier(n.target) && !is_keyword);
      record(&n, start);
      arguments(n);
    }
    write_state(out_, n.state);
  }

 private:
  void record(const void* what, size_t start) {
    if (spans_) spans_->insert_or_assign(what, Span{start, out_.size() - start});
  }
  void indent(int depth) { out_.append(2 * static_cast<size_t>(depth), ' '); }
  void word_or_quoted(std::string_view text, bool is_word) {
    if (is_word) out_ += text;
    else write_quoted(out_, text);
  }

  void name(ValueId id) {
    out_ += '%';
    if (ordinals_ && id < ordinals_->size() && (*ordinals_)[id] != kNoValue) write_integer(out_, (*ordinals_)[id]);
    else if (id < graph_.values.size()) out_ += graph_.values[id].name;
    else out_ += "<value " + std::to_string(id) + ">";   // not part of the form: only messages about broken graphs show it
  }
  void definition(ValueId id, const void* key, bool with_type) {
    const size_t start = out_.size();
    name(id);
    if (with_type && id < graph_.values.size()) {
      out_ += ": ";
      write_type(out_, graph_.values[id].type);
    }
    record(key, start);
  }

  void inputs(bool one_a_line) {
    out_ += '(';
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (i) out_ += one_a_line ? "," : ", ";
      if (one_a_line) out_ += "\n  ";
      input(graph_.inputs[i]);
    }
    out_ += one_a_line ? "\n)" : ")";
  }
  /// A model has hundreds of inputs: on one line neither a person nor a diff finds its way. The canonical form has no lines to care for.
  bool has_long_header() const {
    if (ordinals_ || graph_.inputs.size() < 2) return false;
    std::string line;
    Printer(line, graph_, options_, nullptr).inputs(false);
    return line.size() > kLongHeader;
  }
  void input(const Input& in) {
    definition(in.value, &in, true);
    if (in.kind == InputKind::user && in.qualified_name.empty()) return;
    switch (in.kind) {
      case InputKind::user: out_ += " = user "; break;
      case InputKind::parameter: out_ += " = param "; break;
      case InputKind::buffer: out_ += " = buffer "; break;
      case InputKind::constant: out_ += " = const "; break;
    }
    write_quoted(out_, in.qualified_name);
  }

  void results(const Node& n) {
    if (n.results.empty() && n.returns.empty()) return;
    size_t next = 0;
    const auto one = [&] {
      if (next < n.results.size()) definition(n.results[next], &n.results[next], options_.types);
      ++next;
    };
    for (size_t i = 0; i < n.returns.size(); ++i) {
      if (i) out_ += ", ";
      if (n.returns[i] < 0) {
        one();
        continue;
      }
      out_ += '[';
      // A broken graph may promise more results than it has; the text must not grow with the promise.
      for (int32_t k = 0; k < n.returns[i] && next < n.results.size(); ++k) {
        if (k) out_ += ", ";
        one();
      }
      out_ += ']';
    }
    for (; next < n.results.size();) {
      if (next || !n.returns.empty()) out_ += ", ";
      one();
    }
    out_ += " = ";
  }

  void arguments(const Node& n) {
    out_ += '(';
    bool first = true;
    const auto separate = [&] {
      if (!first) out_ += ", ";
      first = false;
    };
    for (const Argument& a : n.args) {
      separate();
      argument(a);
    }
    for (const auto& [key, a] : n.kwargs) {
      separate();
      const size_t start = out_.size();
      word_or_quoted(key, is_identifier(key));
      record(&key, start);
      out_ += '=';
      argument(a);
    }
    out_ += ')';
  }

  void node(const Node& n, int depth) {
    indent(depth);
    node_head(n);
    const bool open = !n.regions.empty() && (options_.regions || n.kind != Node::Kind::call);
    if (open) out_ += " {";
    if (options_.locations && n.location < graph_.locations.size()) {
      out_ += "  # ";
      write_location(out_, graph_.locations[n.location]);
    }
    out_ += '\n';
    if (!open) return;
    for (size_t i = 0; i < n.regions.size(); ++i) {
      if (i) {   // never in a verified graph
        indent(depth);
        out_ += "} {\n";
      }
      block(n.regions[i], depth + 1, "yield");
    }
    indent(depth);
    out_ += "}\n";
  }

  void block(const Block& b, int depth, std::string_view ending) {
    for (const Node& n : b.nodes) node(n, depth);
    indent(depth);
    const size_t start = out_.size();
    out_ += ending;
    out_ += " (";
    items(b.outputs);
    out_ += ')';
    record(&b, start);
    out_ += '\n';
  }

  void items(const std::vector<Argument>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ += ", ";
      argument(list[i]);
    }
  }
  void named(std::string_view function, std::string_view text) {
    out_ += function;
    out_ += '(';
    write_quoted(out_, text);
    out_ += ')';
  }

  void literal(None) { out_ += "none"; }
  void literal(Ellipsis) { out_ += "..."; }
  void literal(ValueRef r) { name(r.id); }
  void literal(bool b) { out_ += b ? "true" : "false"; }
  void literal(int64_t i) { write_integer(out_, i); }
  void literal(double d) { write_float(out_, d); }
  void literal(std::complex<double> c) {
    out_ += "complex(";
    write_float(out_, c.real());
    out_ += ", ";
    write_float(out_, c.imag());
    out_ += ')';
  }
  void literal(const std::string& s) { write_quoted(out_, s); }
  void literal(DType d) { out_ += dtype_name(d); }
  void literal(Layout l) { out_ += layout_name(l); }
  void literal(MemoryFormat f) { out_ += memory_format_name(f); }
  void literal(const Device& d) { write_device(out_, d); }
  void literal(const Dim& d) {
    const bool bare = d.is_symbolic() && d.expr()->kind == SymExpr::Kind::symbol && is_bare_symbol(d.expr()->symbol);
    if (!bare) out_ += "sym(";
    write_dim(out_, d);
    if (!bare) out_ += ')';
  }
  void literal(const GeneratorName& g) { named("generator", g.name); }
  void literal(const NamedObject& o) { named("object", o.name); }
  void literal(const List& l) {
    out_ += '[';
    items(l.items);
    out_ += ']';
  }
  void literal(const Tuple& t) {
    out_ += '(';
    items(t.items);
    if (t.items.size() == 1) out_ += ',';
    out_ += ')';
  }
  void literal(const Slice& s) {
    out_ += "slice(";
    items(s.parts);
    out_ += ')';
  }
  void literal(const Dict& d) {
    out_ += '{';
    for (size_t i = 0; i < d.items.size(); ++i) {
      if (i) out_ += ", ";
      write_quoted(out_, d.items[i].first);
      out_ += ": ";
      argument(d.items[i].second);
    }
    out_ += '}';
  }

  std::string& out_;
  const Graph& graph_;
  const PrintOptions& options_;
  Spans* spans_;
  const std::vector<ValueId>* ordinals_;
};

bool is_location_char(char c) {
  return is_name_char(c) || c == '/' || c == '-' || c == '<' || c == '>' || c == '+' || c == '@' || c == '[' || c == ']';
}
void write_location_word(std::string& out, std::string_view word) {
  const bool bare = !word.empty() && word != "in" && std::all_of(word.begin(), word.end(), is_location_char);
  if (bare) out += word;
  else write_quoted(out, word);
}

}  // namespace

void print_to(std::string& out, const Graph& graph, const PrintOptions& options, Spans* spans) {
  Printer(out, graph, options, spans).graph();
}

void print_canonical_to(std::string& out, const Graph& graph, const std::vector<ValueId>& ordinals) {
  const PrintOptions options{.header = true, .locations = false};
  Printer(out, graph, options, nullptr, &ordinals).graph();
}

void write_node_head(std::string& out, const Graph& graph, const Node& n, const std::vector<ValueId>& ordinals) {
  const PrintOptions options;
  Printer(out, graph, options, nullptr, &ordinals).node_head(n);
}

void write_arguments(std::string& out, const Graph& graph, const std::vector<Argument>& list, const std::vector<ValueId>& ordinals) {
  const PrintOptions options;
  Printer printer(out, graph, options, nullptr, &ordinals);
  for (const Argument& a : list) {
    printer.argument(a);
    out += ", ";
  }
}

void write_state(std::string& out, const RegionState& s) {
  if (s.grad_enabled) out += *s.grad_enabled ? " enable_grad" : " no_grad";
  if (s.inference_mode) out += *s.inference_mode ? " inference_mode" : " no_inference_mode";
  for (const RegionState::Autocast& a : s.autocast) {
    out += " autocast(";
    write_device(out, a.device);
    out += ", ";
    out += dtype_name(a.dtype);
    if (!a.enabled) out += ", off";
    if (!a.cache) out += ", no_cache";
    out += ')';
  }
}

void write_location(std::string& out, const Location& l) {
  if (l.file.empty() && l.line == 0 && l.function.empty()) {   // a module alone
    out += "in ";
    write_location_word(out, l.module);
    return;
  }
  write_location_word(out, l.file);
  if (l.line != 0) {
    out += ':';
    write_integer(out, l.line);
  }
  if (!l.function.empty()) {
    out += ' ';
    write_location_word(out, l.function);
  }
  if (!l.module.empty()) {
    out += " in ";
    write_location_word(out, l.module);
  }
}

std::string print_location(const Location& location) {
  std::string out;
  write_location(out, location);
  return out;
}

std::string print(const Graph& graph, const PrintOptions& options) {
  std::string out;
  out.reserve(128 + 96 * graph.values.size());
  print_to(out, graph, options);
  return out;
}

std::string print_argument(const Graph& graph, const Argument& a) {
  std::string out;
  const PrintOptions options;
  Printer(out, graph, options, nullptr).argument(a);
  return out;
}

std::string print_node(const Graph& graph, const Node& n) {
  std::string out;
  const PrintOptions options;
  Printer(out, graph, options, nullptr).node_head(n);
  return out;
}

}  // namespace cutaway::ir
