#include "compiler/native/watch.h"

#include <algorithm>

namespace cutaway::native {
namespace {

thread_local Watcher* current = nullptr;

class WatcherScope {
 public:
  explicit WatcherScope(Watcher* w) : before_(current) { current = w; }
  ~WatcherScope() { current = before_; }
  WatcherScope(const WatcherScope&) = delete;
  WatcherScope& operator=(const WatcherScope&) = delete;

 private:
  Watcher* before_;
};

class WatchedCall final : public exec::BoundCall {
 public:
  WatchedCall(std::shared_ptr<const exec::BoundCall> inner, const ir::Node& node) : inner_(std::move(inner)), node_(node) {}
  void run(std::vector<c10::IValue>& stack) const override {
    Watcher* watcher = current;
    if (!watcher) return inner_->run(stack);
    watcher->before(node_, stack);
    {
      const WatcherScope nobody(nullptr);   // a call that runs its region's operators is one step
      inner_->run(stack);
    }
    watcher->after(node_, stack);
  }

 private:
  std::shared_ptr<const exec::BoundCall> inner_;
  const ir::Node& node_;
};

}  // namespace

exec::BoundCalls watched(exec::BoundCalls calls, const ir::Graph& fused) {
  for (const ir::Node& n : fused.body.nodes)
    if (const auto it = calls.find(n.target); n.kind == ir::Node::Kind::call && it != calls.end()) it->second = std::make_shared<WatchedCall>(it->second, n);
  return calls;
}

std::vector<c10::IValue> run_watched(const exec::Program& program, std::vector<c10::IValue>& inputs, Watcher& watcher) {
  const WatcherScope scope(&watcher);
  exec::Hooks hooks;
  hooks.before = [&](size_t, const ir::Node& n, const std::vector<c10::IValue>& arguments) { watcher.before(n, arguments); };
  hooks.after = [&](size_t, const ir::Node& n, std::vector<c10::IValue>& results) { watcher.after(n, results); };
  exec::RunOptions options;
  options.hooks = &hooks;
  return program.run(inputs, options);
}

std::string fx_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return !name.empty() && name[0] >= '0' && name[0] <= '9' ? "v" + name : name;
}

std::string place_of(const ir::Graph& g, const ir::Node& n) {
  if (n.location == ir::kNoLocation) return {};
  const ir::Location& l = g.locations[n.location];
  if (!l.is_known()) return {};
  return l.file + ":" + std::to_string(l.line) + (l.function.empty() ? "" : " in " + l.function);
}

}  // namespace cutaway::native
