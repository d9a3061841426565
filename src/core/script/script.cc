#include "core/script/script.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/base/places.h"
#include "core/base/text.h"
#include "core/ir/text.h"
#include "core/script/callable.h"
#include "core/script/preamble.h"
#include "core/script/python_literal.h"

namespace cutaway::script {

namespace {

// A comment must stay one: whatever a graph's text says as a file name.
std::string comment(std::string_view text) {
  std::string out;
  for (const char c : text) out += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  return base::is_utf8(out) ? out : std::string("?");
}

class Script {
 public:
  Script(const ir::Graph& graph, const std::vector<bundle::InputRef>& inputs, const ScriptOptions& options) : graph_(graph), inputs_(inputs), options_(options) {}

  base::Result<std::string> write() {
    if (inputs_.size() != graph_.inputs.size())
      return base::Error{.what = "the graph has " + base::count_of(graph_.inputs.size(), "input") + ", and " + std::to_string(inputs_.size()) + " were given"};
    name_values();
    function_ = is_python_identifier(graph_.name) && !is_python_keyword(graph_.name) && !taken_.count(graph_.name) ? graph_.name : "graph";
    if (!options_.main_part.empty()) function_ = "graph_under_test";   // the text around it may define anything else
    CUTAWAY_TRY(write_function());
    std::string body = std::move(out_);
    out_.clear();
    CUTAWAY_TRY(write_inputs());
    std::string builder = std::move(out_);
    out_.clear();

    const std::string title = options_.title.empty() ? "graph " + function_ : options_.title;
    const bool has_main = !options_.main_part.empty();
    std::string header = "\"\"\"" + docstring(title) + "\n\nWritten by Cutaway; needs torch alone. " +
                         (has_main ? options_.usage : "Run it, or pass --inputs FILE (a list of inputs written by torch.save)\nand --save FILE to keep the outputs.") + "\n\"\"\"\n\n";
    std::vector<std::string> imports;
    if (!has_main) imports.push_back("argparse");
    for (const std::string& m : options_.imports) {
      if (m.rfind("torch.", 0) == 0) modules_.insert(m);
      else if (!modules_.count(m)) imports.push_back(m);
    }
    for (const char* m : {"math", "operator"}) if (modules_.count(m)) imports.push_back(m);
    if (uses_folder_) imports.push_back("pathlib");
    std::sort(imports.begin(), imports.end());
    for (auto& m : imports) header += "import " + m + "\n";
    header += "\nimport torch\n";
    std::set<std::string> of_torch(modules_.begin(), modules_.end());
    for (const std::string& m : of_torch) if (m.rfind("torch.", 0) == 0) header += "import " + m + "\n";
    if (uses_folder_) header += "\nFOLDER = pathlib.Path(__file__).resolve().parent\n";
    if (uses_random_ || options_.uses_random) header += kRandomNumbers;
    if (uses_blobs_) header += kStoredBytes;
    return header + "\n\n" + body + "\n\n" + builder + "\n\n" + main_part();
  }

 private:
  static std::string docstring(std::string_view text) {
    std::string out = comment(text);
    std::replace(out.begin(), out.end(), '"', '\'');
    std::replace(out.begin(), out.end(), '\\', '/');
    return out;
  }

  // --- names ---
  void name_values() {
    for (const char* reserved : {"torch", "math", "operator", "argparse", "pathlib", "FOLDER", "make_inputs", "slice", "float", "complex", "max", "min", "getattr", "round", "_"})
      taken_.insert(reserved);
    names_.resize(graph_.values.size());
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      std::string name = graph_.values[i].name;
      for (char& c : name) if (!is_python_identifier(std::string_view(&c, 1)) && !(c >= '0' && c <= '9')) c = '_';
      if (!is_python_identifier(name)) name = "v" + name;
      if (is_python_keyword(name)) name += "_";
      names_[i] = unique(std::move(name));
    }
  }
  std::string unique(std::string name) {
    if (taken_.insert(name).second) return name;
    size_t& n = suffix_[name];
    for (;;) {
      std::string candidate = name + "_" + std::to_string(++n);
      if (taken_.insert(candidate).second) return candidate;
    }
  }

  base::Result<std::string> argument(const ir::Argument& a) {
    return python_argument(a, [&](ir::ValueId id) { return names_[id]; }, [&](const ir::Dim& d) { return symbolic(d); });
  }

  // --- symbolic integers: each symbol is read from the input that shows it ---
  base::Result<std::string> symbolic(const ir::Dim& d) {
    if (auto n = d.number()) return std::to_string(*n);
    CUTAWAY_TRY(find_symbols(*d.expr()));
    return "(" + d.text() + ")";
  }
  base::Status find_symbols(const ir::SymExpr& e) {
    for (auto& o : e.operands) CUTAWAY_TRY(find_symbols(*o));
    if (e.kind != ir::SymExpr::Kind::symbol || symbols_.count(e.symbol)) return {};
    if (!is_python_identifier(e.symbol) || is_python_keyword(e.symbol)) return base::Error{.what = "the symbol " + base::quote(e.symbol) + " is no name in Python"};
    const ir::Dim wanted = ir::Dim::symbol(e.symbol);
    for (const ir::Input& input : graph_.inputs) {
      const ir::Value& v = graph_.value(input.value);
      if (v.type.kind == ir::Type::Kind::integer && v.name == e.symbol) {   // the name is taken by the input itself
        symbols_.insert(e.symbol);
        return {};
      }
      if (!v.type.is_tensor()) continue;
      for (size_t i = 0; i < v.type.tensor.sizes.size(); ++i)
        if (v.type.tensor.sizes[i] == wanted && taken_.insert(e.symbol).second) {
          symbols_.insert(e.symbol);
          symbol_lines_.push_back("    " + e.symbol + " = " + names_[input.value] + ".size(" + std::to_string(i) + ")\n");
          return {};
        }
    }
    return base::Error{.what = "the symbol " + e.symbol + " is told by no input", .hint = "pass it as an input"};
  }

  // --- the graph ---
  base::Status write_function() {
    std::string head = "def " + function_ + "(";
    for (const ir::Input& input : graph_.inputs) {
      const ir::Value& v = graph_.value(input.value);
      head += "\n    " + names_[input.value] + ",  # " + v.type.text();
      static constexpr const char* kKinds[] = {"", "parameter", "buffer", "constant"};
      if (input.kind != ir::InputKind::user) head += std::string("; ") + kKinds[static_cast<size_t>(input.kind)] + " " + comment(input.qualified_name);
    }
    head += graph_.inputs.empty() ? "):\n" : "\n):\n";
    size_t depth = 1;
    if (!options_.state.is_default()) {
      out_ += "    with " + python_state(options_.state) + ":\n";
      depth = 2;
    }
    CUTAWAY_TRY(write_block(graph_.body, depth));
    std::string outputs;
    for (const ir::Argument& a : graph_.body.outputs) {
      CUTAWAY_TRY_ASSIGN(std::string text, argument(a));
      outputs += text + ", ";
    }
    if (graph_.body.outputs.size() > 1) outputs.resize(outputs.size() - 2);
    else if (!outputs.empty()) outputs.pop_back();
    out_ += std::string(depth * 4, ' ') + "return (" + outputs + ")\n";
    std::string symbols;
    for (auto& line : symbol_lines_) symbols += line;
    out_ = head + symbols + out_;
    return {};
  }

  base::Status write_block(const ir::Block& block, size_t depth) {
    for (const ir::Node& n : block.nodes) CUTAWAY_TRY(write_node(n, depth));
    return {};
  }

  base::Result<std::string> arguments(const ir::Node& n, size_t first = 0) {
    std::vector<std::string> parts;
    std::string odd;   // keywords that are Python's own words
    for (size_t i = first; i < n.args.size(); ++i) {
      CUTAWAY_TRY_ASSIGN(std::string text, argument(n.args[i]));
      parts.push_back(std::move(text));
    }
    for (auto& [key, a] : n.kwargs) {
      CUTAWAY_TRY_ASSIGN(std::string text, argument(a));
      if (is_python_identifier(key) && !is_python_keyword(key)) parts.push_back(key + "=" + text);
      else odd += (odd.empty() ? "" : ", ") + python_string(key) + ": " + text;
    }
    if (!odd.empty()) parts.push_back("**{" + odd + "}");
    return base::join(parts);
  }

  std::string targets(const ir::Node& n) const {
    if (n.results.empty()) return "";
    if (n.returns.size() == 1 && n.returns[0] == ir::Node::kSingle) return names_[n.results[0]] + " = ";
    size_t next = 0;
    auto list = [&](int32_t count) {
      std::string out;
      for (int32_t i = 0; i < count; ++i) out += (i ? ", " : "") + names_[n.results[next++]];
      return count == 1 ? "(" + out + ",)" : "(" + out + ")";
    };
    if (n.returns.size() == 1) return list(n.returns[0]) + " = ";
    std::string out;
    for (size_t i = 0; i < n.returns.size(); ++i) out += (i ? ", " : "") + (n.returns[i] == ir::Node::kSingle ? names_[n.results[next++]] : list(n.returns[i]));
    return out + " = ";
  }

  std::string where(const ir::Node& n) const {
    if (n.location == ir::kNoLocation || n.location >= graph_.locations.size() || !graph_.locations[n.location].is_known()) return "\n";
    const ir::Location& l = graph_.locations[n.location];
    return "  # " + comment(base::package_relative(l.file)) + ":" + std::to_string(l.line) + (l.function.empty() ? "" : " " + comment(l.function)) + "\n";
  }

  base::Result<std::string> function_of(const ir::Node& n) {
    if (auto symbolic = symbolic_function(n.target)) {
      modules_.insert(symbolic->module);
      return symbolic->module == "builtins" ? symbolic->name : symbolic->module + "." + symbolic->name;
    }
    auto op = ir::split_op_name(n.target);
    if (!op) return base::Error{.what = base::quote(n.target) + " is no operator's name"};
    const size_t colons = op->name.find("::");
    const std::string overload = op->overload.empty() ? "default" : op->overload;
    std::string text = "torch.ops";
    for (const std::string& part : {op->name.substr(0, colons), op->name.substr(colons + 2), overload}) {
      if (!is_python_identifier(part)) return base::Error{.what = base::quote(n.target) + " is no operator's name"};
      text = is_python_keyword(part) ? "getattr(" + text + ", " + python_string(part) + ")" : text + "." + part;
    }
    return text;
  }

  base::Status write_node(const ir::Node& n, size_t depth) {
    const std::string indent(depth * 4, ' ');
    if (n.kind == ir::Node::Kind::op) {
      CUTAWAY_TRY_ASSIGN(std::string function, function_of(n));
      CUTAWAY_TRY_ASSIGN(std::string args, arguments(n));
      out_ += indent + targets(n) + function + "(" + args + ")" + where(n);
      return {};
    }
    if (!n.state.is_default()) {
      out_ += indent + "with " + python_state(n.state) + ":\n";
      return write_captured(n, depth + 1);
    }
    return write_captured(n, depth);
  }

  base::Status write_captured(const ir::Node& n, size_t depth) {
    const std::string indent(depth * 4, ' ');
    if (n.kind == ir::Node::Kind::call) {
      if (auto callable = callable_from_torch(n.target)) {
        const bool method = callable->kind == Callable::Kind::method;
        if (!method || (!n.args.empty() && n.args[0].as<ir::ValueRef>())) {
          CUTAWAY_TRY_ASSIGN(std::string args, arguments(n, method ? 1 : 0));
          if (!method) modules_.insert(callable->module);
          std::string function = (method ? names_[n.args[0].as<ir::ValueRef>()->id] : callable->module) + "." + callable->name;
          if (is_python_keyword(callable->name)) return base::Error{.what = base::quote(n.target) + " is no name in Python"};
          out_ += indent + targets(n) + function + "(" + args + ")" + where(n);
          return {};
        }
      }
      out_ += indent + "# " + comment(n.target) + ", as the operators it ran" + where(n);
    }
    const ir::Block& region = n.regions.at(0);
    CUTAWAY_TRY(write_block(region, depth));
    for (size_t i = 0; i < n.results.size(); ++i) {
      CUTAWAY_TRY_ASSIGN(std::string text, argument(region.outputs.at(i)));
      out_ += indent + names_[n.results[i]] + " = " + text + "\n";
    }
    if (region.nodes.empty() && n.results.empty()) out_ += indent + "pass\n";
    return {};
  }

  // --- inputs ---
  static std::string numbers(const std::vector<int64_t>& list) {
    std::string out = "(";
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + std::to_string(list[i]);
    return out + (list.size() == 1 ? ",)" : ")");
  }

  base::Status write_inputs() {
    out_ += "def make_inputs():\n";
    std::unordered_map<std::string, std::string> storages;   // what several tensors share -> its name
    std::vector<std::string> list;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bundle::InputRef& in = inputs_[i];
      const std::string& name = names_[graph_.inputs[i].value];
      list.push_back(name);
      if (i < options_.files.size() && !options_.files[i].empty()) {
        uses_folder_ = true;
        out_ += "    " + name + " = torch.load(FOLDER / " + python_string(options_.files[i]) + ", weights_only=True)\n";
        if (in.kind != bundle::InputRef::Kind::literal && in.tensor.requires_grad) out_ += "    " + name + ".requires_grad_()\n";
        continue;
      }
      if (in.kind == bundle::InputRef::Kind::literal) {
        CUTAWAY_TRY_ASSIGN(std::string text, python_argument(in.literal, [](ir::ValueId) { return std::string("None"); }, [](const ir::Dim& d) -> base::Result<std::string> {
          if (auto n = d.number()) return std::to_string(*n);
          return base::Error{.what = "an input cannot be the symbol " + d.text()};
        }));
        out_ += "    " + name + " = " + text + "\n";
        continue;
      }
      write_tensor(i, name, storages);
    }
    out_ += list.empty() ? "    return []\n" : "    return [" + base::join(list) + "]\n";
    return {};
  }

  void write_tensor(size_t position, const std::string& name, std::unordered_map<std::string, std::string>& storages) {
    const bundle::InputRef& in = inputs_[position];
    const bundle::TensorRecord& t = in.tensor;
    const std::string dtype = python_dtype(t.dtype), device = python_string(t.device.text());
    if (t.is_zero) {
      out_ += "    " + name + " = torch._efficientzerotensor(" + numbers(t.sizes) + ", dtype=" + dtype + ", device=" + device + ")" + (t.requires_grad ? ".requires_grad_()" : "") + "\n";
      return;
    }
    uint64_t bytes = t.storage_bytes;
    const uint64_t item = static_cast<uint64_t>(ir::dtype_bytes(t.dtype));
    uint64_t needed = t.sizes.empty() ? item : 0;
    if (!t.sizes.empty() && std::find(t.sizes.begin(), t.sizes.end(), 0) == t.sizes.end()) {
      needed = static_cast<uint64_t>(t.storage_offset + 1) * item;
      for (size_t d = 0; d < t.sizes.size(); ++d) needed += static_cast<uint64_t>((t.sizes[d] - 1) * t.strides[d]) * item;
    } else if (t.sizes.empty()) {
      needed += static_cast<uint64_t>(t.storage_offset) * item;
    }
    bytes = std::max(bytes, needed);

    // One line builds the storage, one the view; tensors on one storage share the first.
    std::string storage;
    const bool is_data = in.kind == bundle::InputRef::Kind::data;
    const std::string key = is_data ? "digest " + t.storage.hex() + (t.storage_id >= 0 ? " " + std::to_string(t.storage_id) : "") : t.storage_id >= 0 ? "id " + std::to_string(t.storage_id) : "";
    if (auto found = key.empty() ? storages.end() : storages.find(key); found != storages.end()) {
      storage = found->second;
    } else {
      std::string text;
      if (is_data) {
        uses_blobs_ = uses_folder_ = true;
        const std::string hex = t.storage.hex();
        text = "stored_bytes(" + python_string(options_.blob_folder + "/" + hex.substr(0, 2) + "/" + hex) + ", " + std::to_string(t.storage_bytes) + ", " + device + ")";
      } else if (in.kind == bundle::InputRef::Kind::filled) {
        text = "torch.full((" + std::to_string(item ? bytes / item : 0) + ",), " + python_float(in.fill) + ").to(" + dtype + ").to(" + device + ").untyped_storage()";
      } else {
        uses_random_ = true;
        text = "random_storage(" + std::to_string(bytes) + ", " + dtype + ", " + device + ", seed=" + std::to_string(static_cast<int64_t>(in.seed)) +   // as an int64 tensor takes it
              
               (in.range ? ", range=(" + std::to_string(in.range->first) + ", " + std::to_string(in.range->second) + ")" : "") + ")";
      }
      if (key.empty()) {
        storage = std::move(text);
      } else {
        storage = unique("storage");
        storages[key] = storage;
        out_ += "    " + storage + " = " + text + "\n";
      }
    }
    std::string view = "torch.empty(0, dtype=" + dtype + ", device=" + device + ").set_(" + storage + ", " + std::to_string(t.storage_offset) + ", " + numbers(t.sizes) + ", " + numbers(t.strides) + ")";
    if (t.is_conj) view = "torch._conj(" + view + ")";
    if (t.is_neg) view = "torch._neg_view(" + view + ")";
    if (is_data && in.make_contiguous) view += ".contiguous()";
    if (t.is_parameter && t.is_leaf) view = "torch.nn.Parameter(" + view + (t.requires_grad ? ")" : ", requires_grad=False)");
    else if (t.requires_grad) view += ".requires_grad_()";
    out_ += "    " + name + " = " + view + "\n";
    if (t.requires_grad && !t.is_leaf) out_ += "    " + name + " = " + name + ".view_as(" + name + ")\n";
  }

  std::string main_part() const {
    if (!options_.main_part.empty()) {
      std::string text = options_.main_part;
      for (size_t at = 0; (at = text.find(kGraphName, at)) != std::string::npos; at += function_.size()) text.replace(at, kGraphName.size(), function_);
      return text;
    }
    return "if __name__ == \"__main__\":\n"
           "    parser = argparse.ArgumentParser(description=" + python_string("runs the graph " + function_) + ")\n"
           "    parser.add_argument(\"--inputs\", help=\"a list of inputs written by torch.save\")\n"
           "    parser.add_argument(\"--save\", help=\"where to write the outputs\")\n"
           "    options = parser.parse_args()\n"
           "    inputs = torch.load(options.inputs, weights_only=True) if options.inputs else make_inputs()\n"
           "    torch.manual_seed(" + std::to_string(options_.seed) + ")\n"
           "    outputs = " + function_ + "(*inputs)\n"
           "    for i, output in enumerate(outputs):\n"
           "        print(f\"output {i}:\", output)\n"
           "    if options.save:\n"
           "        torch.save(outputs, options.save)\n";
  }

  const ir::Graph& graph_;
  const std::vector<bundle::InputRef>& inputs_;
  const ScriptOptions& options_;
  std::string function_, out_;
  std::vector<std::string> names_, symbol_lines_;
  std::unordered_set<std::string> taken_, modules_, symbols_;
  std::unordered_map<std::string, size_t> suffix_;
  bool uses_folder_ = false, uses_random_ = false, uses_blobs_ = false;
};

}  // namespace

base::Result<std::string> to_python(const ir::Graph& graph, const std::vector<bundle::InputRef>& inputs, const ScriptOptions& options) {
  return Script(graph, inputs, options).write();
}

base::Result<std::vector<bundle::InputRef>> inputs_from_types(const ir::Graph& graph, uint64_t seed) {
  std::vector<bundle::InputRef> refs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Value& v = graph.value(graph.inputs[i].value);
    bundle::InputRef ref;
    if (v.type.kind == ir::Type::Kind::none) {
      ref.kind = bundle::InputRef::Kind::literal;
      refs.push_back(std::move(ref));
      continue;
    }
    if (!v.type.is_tensor()) return base::Error{.what = "the input %" + v.name + " is " + v.type.text() + ", not a tensor", .because = "its value cannot be made up", .hint = "pass inputs"};
    ref.kind = bundle::InputRef::Kind::seeded;
    ref.seed = seed + i;
    ref.reason = "no data was given";
    bundle::TensorRecord& t = ref.tensor;
    t.dtype = v.type.tensor.dtype;
    t.device = v.type.tensor.device;
    t.requires_grad = v.type.tensor.requires_grad;
    t.is_parameter = graph.inputs[i].kind == ir::InputKind::parameter;
    if (v.type.tensor.layout != ir::Layout::strided) return base::Error{.what = "the input %" + v.name + " has the layout " + std::string(ir::layout_name(v.type.tensor.layout)), .because = "only strided tensors are made up"};
    for (const auto* dims : {&v.type.tensor.sizes, &v.type.tensor.strides})
      for (const ir::Dim& d : *dims) {
        auto n = d.number();
        if (!n) return base::Error{.what = "the input %" + v.name + " has the symbolic size " + d.text(), .hint = "pass inputs"};
        (dims == &v.type.tensor.sizes ? t.sizes : t.strides).push_back(*n);
      }
    refs.push_back(std::move(ref));
  }
  return refs;
}

}  // namespace cutaway::script
