// cutaway show: a graph file or a bundle, as text or as JSON.
#include <cstdio>
#include <cstdint>
#include <map>

#include "app/cli/command.h"
#include "app/cli/subject.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "core/record/frame_record.h"

namespace cutaway::cli {
namespace {

struct ShowOptions {
  std::string path;
  bool no_types = false, no_locations = false, no_regions = false, json = false;
};

std::string describe_input(const ir::Graph& graph, size_t i, const bundle::InputRef& ref) {
  const std::string name = i < graph.inputs.size() ? "%" + graph.value(graph.inputs[i].value).name : "?";
  switch (ref.kind) {
    case bundle::InputRef::Kind::data: return name + ": " + ir::Type::of(ref.tensor.type()).text() + "  data " + ref.tensor.storage.short_hex();
    case bundle::InputRef::Kind::seeded: return name + ": " + ir::Type::of(ref.tensor.type()).text() + "  random, seed " + std::to_string(ref.seed) + (ref.reason.empty() ? "" : " (" + ref.reason + ")");
    case bundle::InputRef::Kind::filled: {
      char value[32];
      std::snprintf(value, sizeof value, "%g", ref.fill);
      return name + ": " + ir::Type::of(ref.tensor.type()).text() + "  every element " + value;
    }
    case bundle::InputRef::Kind::literal: return name + ": " + ir::print_argument(graph, ref.literal);
  }
  return name;
}

void print_manifest(const Subject& s) {
  const bundle::Manifest& m = *s.manifest;
  size_t with_data = 0, made = 0, literal = 0;   // made: random by seed, or filled with one value
  for (const auto& in : m.inputs) ++(in.kind == bundle::InputRef::Kind::data ? with_data : in.kind == bundle::InputRef::Kind::literal ? literal : made);
  std::printf("bundle    %s\n", s.path.c_str());
  std::printf("graph     %s: %s, %s, %s (%zu with data, %zu made up, %s), digest %s\n", s.graph.name.c_str(), base::count_of(ir::count_nodes(s.graph), "node").c_str(),
              base::count_of(ir::count_ops(s.graph), "operator").c_str(), base::count_of(s.graph.inputs.size(), "input").c_str(), with_data, made, base::count_of(literal, "literal").c_str(),
              ir::digest(s.graph).hex().c_str());
  std::vector<std::string> from;
  if (!m.stage.empty()) from.push_back("after " + m.stage);
  if (!m.backend.empty()) from.push_back("backend " + m.backend);
  if (!from.empty()) std::printf("from      %s\n", base::join(from).c_str());
  if (!m.failure.kind.empty())
    std::printf("failure   %s%s%s%s%s\n", m.failure.kind.c_str(), m.failure.type.empty() ? "" : (" " + m.failure.type).c_str(), m.failure.signal.empty() ? "" : (" " + m.failure.signal).c_str(),
                m.failure.op.empty() ? "" : (" in " + m.failure.op).c_str(), m.failure.message.empty() ? "" : (": " + m.failure.message).c_str());
  if (m.random_inputs) std::printf("inputs    random data stands in for recorded data, because the caller asked\n");
  std::string versions;
  for (const auto& [k, v] : m.versions) versions += (versions.empty() ? "" : ", ") + k + " " + v;
  if (!versions.empty()) std::printf("written   by %s\n", versions.c_str());
  for (size_t i = 0; i < m.inputs.size(); ++i)
    if (m.inputs[i].kind != bundle::InputRef::Kind::data) std::printf("input     %s\n", describe_input(s.graph, i, m.inputs[i]).c_str());
  std::printf("\n");
}

int show(const ShowOptions& o) {
  if (record::looks_like_record(o.path)) {
    auto read = record::read_record(o.path);
    if (!read.ok()) return fail(read.error());
    if (o.json) std::fputs(record::to_json(*read).c_str(), stdout);
    else std::printf("record     %s\nframe      %s\n\nnext       cutaway replay --trust %s   (runs its code)\n", o.path.c_str(), record::summary(*read).c_str(), o.path.c_str());
    return kOk;
  }
  auto subject = read_subject(o.path);
  if (!subject.ok()) return fail(subject.error());
  ir::PrintOptions print;
  print.types = !o.no_types;
  print.locations = !o.no_locations;
  print.regions = !o.no_regions;
  const std::string text = ir::print(subject->graph, print);
  if (o.json) {
    using base::Json;
    const ir::Graph& graph = subject->graph;
    std::map<std::string, uint64_t> counts;
    ir::for_each_node(graph.body, [&](const ir::Node& n) { if (n.kind == ir::Node::Kind::op) ++counts[n.target]; });
    Json::Array inputs;
    for (const ir::Input& in : graph.inputs)
      inputs.push_back(Json::Object{{"name", graph.value(in.value).name}, {"type", graph.value(in.value).type.text()}, {"qualified_name", in.qualified_name}});
    Json j = Json::Object{{"path", o.path}, {"name", graph.name}, {"digest", ir::digest(graph).hex()}, {"nodes", uint64_t{ir::count_nodes(graph)}},
                          {"operators", Json::Object(counts.begin(), counts.end())}, {"inputs", std::move(inputs)}, {"text", text}};
    if (subject->manifest) j["manifest"] = Json::parse(bundle::manifest_to_json(*subject->manifest, ir::digest(graph)), o.path).value();
    std::printf("%s\n", j.text(2).c_str());
    return kOk;
  }
  if (subject->manifest) print_manifest(*subject);
  std::fputs(text.c_str(), stdout);
  return kOk;
}

}  // namespace

std::function<int()> declare_show(CLI::App& app) {
  auto o = std::make_shared<ShowOptions>();
  app.add_option("path", o->path, "a .cut file, a bundle or its .tar, the record of a frame")->required();
  app.add_flag("--no-types", o->no_types, "leave out the types of results");
  app.add_flag("--no-locations", o->no_locations, "leave out the user's source lines");
  app.add_flag("--no-regions", o->no_regions, "a captured call is one line");
  app.add_flag("--json", o->json, "one JSON object");
  return [o] { return show(*o); };
}

}  // namespace cutaway::cli
