// The one place that knows torch.distributed: the store of a process group.
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "compiler/frames/collective.h"

namespace cutaway::frames {
namespace {

struct GroupStore final : SharedTexts {
  c10::intrusive_ptr<c10d::Store> store;
  explicit GroupStore(c10::intrusive_ptr<c10d::Store> s) : store(std::move(s)) {}
  void put(const std::string& key, const std::string& text) override { store->set(key, std::vector<uint8_t>(text.begin(), text.end())); }
  bool has(const std::string& key) override { return store->check({key}); }
  std::string get(const std::string& key) override {
    const std::vector<uint8_t> bytes = store->get(key);
    return {bytes.begin(), bytes.end()};
  }
  void remove(const std::string& key) override {
    try {
      store->deleteKey(key);
    } catch (const c10::Error&) {   // a store without removal keeps a few hundred bytes a compilation
    }
  }
};

}  // namespace

base::Result<std::shared_ptr<Collective>> asked_collective() {
  const std::string& name = settings().collective_group;
  if (name.empty()) return std::shared_ptr<Collective>();
  // One for as long as the group's store and the time-out stay: it remembers which key to clear. The store is held, so that a later group
  // cannot be taken for this one.
  struct Known { c10::intrusive_ptr<c10d::Store> store; double timeout = 0; std::shared_ptr<Collective> ranks; };
  static auto* known = new Known;
  const double timeout = settings().compiler_collective_timeout;
  try {
    auto group = c10d::resolve_process_group(name);
    auto store = group->getStore();
    if (!store) return base::Error{.what = "the process group has no store", .hint = "init_process_group with an init_method or a store"};
    if (!known->ranks || known->store.get() != store.get() || known->timeout != timeout)
      *known = {store, timeout, std::make_shared<Collective>(std::make_unique<GroupStore>(store), group->getRank(), group->getSize(), std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000)))};
    return known->ranks;
  } catch (const std::exception& e) {
    const std::string said = e.what();
    return base::Error{.what = "there is no process group called \"" + name + "\"", .because = said.substr(0, said.find('\n')), .hint = "torch.distributed.init_process_group before the first compiled call"};
  }
}

}  // namespace cutaway::frames
