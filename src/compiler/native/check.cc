#include "compiler/native/check.h"

#include "compiler/backends/check.h"
#include "compiler/native/kernel_call.h"
#include "compiler/native/watch.h"
#include "core/exec/random_state.h"
#include "core/tensor/make.h"

namespace cutaway::native {
namespace {

using Values = std::vector<c10::IValue>;
using Generators = std::map<std::string, std::string>;

/// What is kept of a moment: nothing that runs later can write into it.
struct Before {
  Values values;
  Generators generators;
  explicit Before(const Values& v) : values(tensor::clone_keeping_aliases(v)), generators(exec::generators_now()) {}
};

class CheckingWatcher final : public Watcher {
 public:
  CheckingWatcher(const backends::Checker& checker, const ir::Graph& fused, const ir::Graph& whole, const Before& start, const std::string& backend)
      : checker_(checker), fused_(fused), whole_(whole), start_(start), backend_(backend) {}
  void before(const ir::Node& n, const Values& arguments) override {
    if (n.kind == ir::Node::Kind::call) before_.emplace(arguments);
  }
  void after(const ir::Node& n, const Values& results) override {
    if (n.kind != ir::Node::Kind::call || !before_) return;   // an operator is what it is compared with
    const ir::Graph region = region_graph(fused_, n);
    std::vector<std::string> names;
    for (ir::ValueId r : n.results) names.push_back(fused_.value(r).name);
    checker_({backend_, n.target, std::move(names), region, before_->values, results, before_->generators, whole_, start_.values, start_.generators});
    before_.reset();
  }

 private:
  const backends::Checker& checker_;
  const ir::Graph &fused_, &whole_;
  const Before& start_;
  const std::string& backend_;
  std::optional<Before> before_;
};

}  // namespace

Values run_checked(const exec::Program& program, const ir::Graph& fused, const ir::Graph& whole, const std::string& backend, int level, Values& inputs) {
  const backends::Checker checker = backends::checker();
  if (!checker || level <= 0) return program.run(inputs);
  const Before start(inputs);
  Values outputs;
  if (level >= 2) {
    CheckingWatcher watcher(checker, fused, whole, start, backend);
    outputs = run_watched(program, inputs, watcher);
  } else {
    outputs = program.run(inputs);
  }
  checker({backend, "", {}, whole, start.values, outputs, start.generators, whole, start.values, start.generators});
  return outputs;
}

}  // namespace cutaway::native
