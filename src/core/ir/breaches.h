// What verify() collects before it knows whether a text has to be printed to point into. Not for use outside core/ir.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/ir/verify.h"

namespace cutaway::ir {

struct Breach {
  const void* at;   ///< a key of Spans (printer.h)
  std::string what;
  std::string because;
};
class Breaches {
 public:
  static constexpr size_t kMax = 100;
  void add(const void* at, std::string what, std::string because = {}) {
    if (!is_full()) all_.push_back({at, std::move(what), std::move(because)});
  }
  bool is_full() const { return all_.size() >= kMax; }
  const std::vector<Breach>& all() const { return all_; }

 private:
  std::vector<Breach> all_;
};

/// The rules S1 to S7: a node against the schema of its operator.
void verify_schema(const Graph&, const Node&, const SchemaTable&, Breaches&);

}  // namespace cutaway::ir
