// The rules of a well-formed graph, written in docs/formats/graph.md; verify() checks them all.
#pragma once
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::ir {

/// What a caller knows of operators. core/exec fills one from torch's dispatcher; tests write their own.
struct Schema {
  struct Arg {
    std::string name;
    /// torch's own spelling: "Tensor", "Tensor?", "Tensor[]", "int", "int[]", "float", "Scalar", "bool", "str", "ScalarType?", …
    std::string type;
    bool has_default = false;
    bool kwarg_only = false;
    bool is_written = false;   ///< alias annotation with "!"
  };
  std::vector<Arg> args;
  std::vector<std::string> returns;   ///< "Tensor", "Tensor[]", …
  bool is_random = false;             ///< draws from a generator
};
struct SchemaTable {
  virtual ~SchemaTable() = default;
  /// Null when the operator is not known.
  virtual const Schema* find(std::string_view target) const = 0;
};

struct VerifyOptions {
  const SchemaTable* schemas = nullptr;   ///< when given: operator known, arity, keyword names, kinds of literals
  std::string file = "<graph>";           ///< for messages
};
/// All breaches, in program order (at most 100). Places are "file:line:column" of the printed form with its header.
std::vector<base::Error> verify(const Graph&, const VerifyOptions& = {});

}  // namespace cutaway::ir
