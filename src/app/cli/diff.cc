// cutaway diff: what differs between two graphs, in words and as a unified text. Exit status 0: same, 1: different.
#include <cstdio>

#include "app/cli/command.h"
#include "app/cli/subject.h"
#include "core/base/json.h"
#include "core/ir/diff.h"
#include "core/ir/text.h"

namespace cutaway::cli {
namespace {

struct DiffOptions {
  std::string a, b;
  bool words = false, text = false, json = false;
  int context = 3;
};

int diff(const DiffOptions& o) {
  auto a = read_subject(o.a);
  if (!a.ok()) return fail(a.error());
  auto b = read_subject(o.b);
  if (!b.ok()) return fail(b.error());
  const auto differences = ir::diff(a->graph, b->graph);
  const std::string unified = ir::unified_diff(ir::print(a->graph), ir::print(b->graph), o.a, o.b, o.context);
  std::vector<std::string> inputs;
  if (a->manifest && b->manifest) {
    const auto &x = a->manifest->inputs, &y = b->manifest->inputs;
    if (x.size() != y.size()) inputs.push_back(std::to_string(x.size()) + " inputs against " + std::to_string(y.size()));
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (x[i].kind != y[i].kind) inputs.push_back("input " + std::to_string(i) + ": data in one, not in the other");
      else if (x[i].kind == bundle::InputRef::Kind::literal ? !(x[i].literal == y[i].literal) : !(x[i].tensor == y[i].tensor))
        for (const std::string& f : bundle::differing_fields(x[i].tensor, y[i].tensor)) inputs.push_back("input " + std::to_string(i) + ": " + f);
  }
  const bool same = differences.empty() && inputs.empty();
  if (o.json) {
    using base::Json;
    Json::Array words;
    for (const auto& d : differences) words.push_back(Json::Object{{"where", d.where}, {"text", d.text}});
    const Json j = Json::Object{{"same", same}, {"differences", std::move(words)}, {"inputs", Json::Array(inputs.begin(), inputs.end())}, {"unified", unified}};
    std::printf("%s\n", j.text(2).c_str());
    return same ? 0 : 1;
  }
  if (same) {
    std::printf(unified.empty() ? "the same\n" : "the same program; only names or source lines differ\n");
  } else if (!o.text) {
    for (const auto& d : differences) std::printf("%s: %s\n", d.where.c_str(), d.text.c_str());
    for (const auto& d : inputs) std::printf("%s\n", d.c_str());
  }
  if (!o.words && !unified.empty()) std::printf("%s%s", o.text ? "" : "\n", unified.c_str());
  return same ? 0 : 1;
}

}  // namespace

std::function<int()> declare_diff(CLI::App& app) {
  auto o = std::make_shared<DiffOptions>();
  app.add_option("a", o->a, "a .cut file or a bundle")->required();
  app.add_option("b", o->b, "another")->required();
  auto* words = app.add_flag("--words", o->words, "only the differences in words");
  app.add_flag("--text", o->text, "only the unified text")->excludes(words);
  app.add_option("--context", o->context, "lines around each change")->capture_default_str()->check(not_negative());
  app.add_flag("--json", o->json, "one JSON object");
  app.footer("Exit status: 0 the same program, 1 different, 2 something cannot be read.");
  return [o] { return diff(*o); };
}

}  // namespace cutaway::cli
