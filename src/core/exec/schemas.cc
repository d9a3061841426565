// Torch's operators as schemas, asked from the dispatcher and kept.
#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "core/exec/interpreter.h"
#include "core/exec/scalar_ops.h"

namespace cutaway::exec {
namespace {

ir::Schema describe(const c10::OperatorHandle& op) {
  ir::Schema schema;
  const c10::FunctionSchema& torch_schema = op.schema();
  for (const c10::Argument& a : torch_schema.arguments())
    schema.args.push_back({.name = a.name(),
                           .type = a.real_type()->str(),   // "ScalarType?" and "SymInt", where type() says int
                           .has_default = a.default_value().has_value(),
                           .kwarg_only = a.kwarg_only(),
                           .is_written = a.alias_info() && a.alias_info()->isWrite()});
  for (const c10::Argument& r : torch_schema.returns()) schema.returns.push_back(r.real_type()->str());
  schema.is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  return schema;
}

class DispatcherSchemas final : public ir::SchemaTable {
 public:
  const ir::Schema* find(std::string_view target) const override {
    std::string key(target);
    {
      std::shared_lock lock(mutex_);
      if (auto it = known_.find(key); it != known_.end()) return it->second.get();
    }
    std::unique_ptr<const ir::Schema> made;
    if (const ScalarOp* scalar = find_scalar_op(target)) {
      made = std::make_unique<const ir::Schema>(scalar_op_schema(*scalar));
    } else if (auto name = ir::split_op_name(target)) {
      if (auto op = c10::Dispatcher::singleton().findSchema({name->name, name->overload})) made = std::make_unique<const ir::Schema>(describe(*op));
    }
    if (!made) return nullptr;   // not kept: a library that is loaded later may bring it
    std::unique_lock lock(mutex_);
    return known_.try_emplace(std::move(key), std::move(made)).first->second.get();   // never removed: callers hold the pointer
  }

 private:
  mutable std::shared_mutex mutex_;
  mutable std::unordered_map<std::string, std::unique_ptr<const ir::Schema>> known_;
};

}  // namespace

const ir::SchemaTable& dispatcher_schemas() {
  static const DispatcherSchemas* table = new DispatcherSchemas;   // outlives static destructors of other libraries
  return *table;
}

}  // namespace cutaway::exec
