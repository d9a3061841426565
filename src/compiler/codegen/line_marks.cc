#include "compiler/codegen/line_marks.h"

#include <cctype>
#include <string_view>
#include <unordered_map>

namespace cutaway::codegen {
namespace {

/// The name in "const F gelu_ = …", which is how emitted text says what a value is; empty for any other line.
std::string_view defined_in(std::string_view line) {
  const size_t start = line.find_first_not_of(' ');
  if (start == line.npos || !line.substr(start).starts_with("const ")) return {};
  const size_t type = start + 6, name = line.find(' ', type);
  if (name != type + 1) return {};   // vector types have one letter
  const size_t end = line.find(' ', name + 1);
  return end != line.npos && line.substr(end).starts_with(" = ") ? line.substr(name + 1, end - name - 1) : std::string_view();
}

std::string quoted(const std::string& path) {
  std::string out = "\"";
  for (char c : path) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string with_line_marks(const std::string& text, const ir::Graph& graph, const std::string& own_file) {
  std::unordered_map<std::string, const ir::Location*> places;   // by the name that text has for a value
  for (const ir::Node& n : graph.body.nodes) {
    if (n.location == ir::kNoLocation || !graph.locations[n.location].is_known() || graph.locations[n.location].line <= 0) continue;
    for (ir::ValueId r : n.results) {
      std::string name;
      for (char c : graph.value(r).name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
      places.emplace(name + "_", &graph.locations[n.location]);
    }
  }
  std::string out;
  int64_t own = 1;
  const auto add = [&](std::string_view line) {
    out += line;
    out += '\n';
    ++own;
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const auto place = places.find(std::string(defined_in(line)));
    if (place == places.end()) {
      add(line);
      continue;
    }
    add("#line " + std::to_string(place->second->line) + " " + quoted(place->second->file));
    add(line);
    add("#line " + std::to_string(own + 1) + " " + quoted(own_file));
  }
  return out;
}

}  // namespace cutaway::codegen
