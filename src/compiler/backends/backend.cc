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

struct Table {
  std::mutex mutex;
  std::map<std::string, MakeBackend, std::less<>> rows = {{"aot_eager", make_aot_eager}, {"command", make_command}, {"eager", make_eager}, {"fault", make_fault}, {"own_aot_eager", make_aot_eager}};
};
Table& table() {
  static Table t;
  return t;
}

}  // namespace

void register_backend(std::string name, MakeBackend make) {
  std::lock_guard lock(table().mutex);
  table().rows[std::move(name)] = std::move(make);
}

base::Result<std::unique_ptr<Backend>> find_backend(std::string_view name) {
  const std::string_view word = capabilities::name_of(name);
  MakeBackend make;
  {
    std::lock_guard lock(table().mutex);
    auto it = table().rows.find(word);
    if (it == table().rows.end()) {
      std::vector<std::string> names;
      for (const auto& [k, found] : table().rows) names.push_back(k);
      return base::Error{"unknown backend " + base::quote(word) + base::did_you_mean(word, names), "", "", "cutaway backends lists them", ""};
    }
    make = it->second;
  }
  auto made = make(word.size() < name.size() ? name.substr(word.size() + 1) : std::string_view());
  if (made.ok() && (*made)->row.name.empty()) (*made)->row = capabilities::row_of(name);
  return made;
}

std::vector<capabilities::Row> list_backends() {
  std::lock_guard lock(table().mutex);
  std::vector<capabilities::Row> rows;
  for (const auto& [name, make] : table().rows) rows.push_back(capabilities::row_of(name));
  return rows;
}

}  // namespace cutaway::backends
