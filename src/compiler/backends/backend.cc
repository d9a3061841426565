#include "compiler/backends/backend.h"

#include <map>
#include <mutex>

#include "compiler/backends/aot_eager.h"
#include "compiler/backends/command.h"
#include "compiler/backends/eager.h"
#include "compiler/backends/fault.h"
#include "core/base/text.h"

namespace cutaway::backends {
namespace {

struct Row { std::string summary; MakeBackend make; };
struct Table {
  std::mutex mutex;
  std::map<std::string, Row, std::less<>> rows;
  Table() {
    rows["aot_eager"] = {"differentiated ahead of time in C++, then operator by operator; aot_eager:save_all keeps all that backward uses", make_aot_eager};
    rows["cutaway"] = {"the best of ours so far: aot_eager, also where torch's backend of that name is registered", make_aot_eager};
    rows["eager"] = {"runs the graph as it is, by torch's dispatcher", make_eager};
    rows["command"] = {"another program: command:PROGRAM {bundle} (docs/formats/command_backend.md)", make_command};
    rows["fault"] = {"eager with planted faults, for tests: fault:KIND:OPERATOR", make_fault};
  }
};
Table& table() {
  static Table t;
  return t;
}

}  // namespace

void register_backend(std::string name, std::string summary, MakeBackend make) {
  std::lock_guard lock(table().mutex);
  table().rows[std::move(name)] = {std::move(summary), std::move(make)};
}

base::Result<std::unique_ptr<Backend>> find_backend(std::string_view name) {
  const std::string_view word = name.substr(0, name.find(':'));
  MakeBackend make;
  {
    std::lock_guard lock(table().mutex);
    auto it = table().rows.find(word);
    if (it == table().rows.end()) {
      std::vector<std::string> names;
      for (const auto& [k, row] : table().rows) names.push_back(k);
      return base::Error{"unknown backend " + base::quote(word) + base::did_you_mean(word, names), "", "", "cutaway doctor lists them", ""};
    }
    make = it->second.make;
  }
  return make(word.size() < name.size() ? name.substr(word.size() + 1) : std::string_view());
}

std::vector<BackendRow> list_backends() {
  std::lock_guard lock(table().mutex);
  std::vector<BackendRow> rows;
  for (const auto& [name, row] : table().rows) rows.push_back({name, row.summary});
  return rows;
}

}  // namespace cutaway::backends
