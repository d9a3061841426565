// What a node reads, and where: its rule is run, and each place that it reads is handed to whoever asked. Fusion asks which cuts of the space a
// node needs; the builder makes loads of them.
// Main type: OperandReads.
#pragma once
#include <functional>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/rules.h"

namespace cutaway::codegen {

/// One place that a node reads.
struct Leaf {
  enum class Kind : uint8_t {
    element,    ///< the operand's element of the same place: a kernel that computes the operand has it at hand
    memory,     ///< another place: the operand must lie in memory
    position,   ///< no operand
  };
  Kind kind = Kind::element;
  Op op = Op::load;
  ir::ValueId value = ir::kNoValue;
  std::vector<int64_t> sizes, strides;   ///< broadcast to `space`
  std::vector<int64_t> space;            ///< the node's sizes, perhaps with a dimension cut in two
  int64_t offset = 0;
  std::vector<TermId> operands;          ///< of load_if and load_at
};

/// Answers a rule's questions. Constants, and nodes that are worked out where they are wanted, are lowered on the way.
class OperandReads final : public Reads {
 public:
  struct To {
    std::function<TermId(const Leaf&)> read;
    /// That the dimension would better be cut there, in elements of the space. Says whether it is.
    std::function<bool(int64_t elements)> prefer_cut;
    /// The node with its symbols, where it has some; may be empty.
    std::function<const ir::Node*(const ir::Node&)> with_symbols = {};
  };
  OperandReads(const ir::Graph& graph, const Origins& from, const std::vector<bool>& is_free, Terms& terms, std::vector<int64_t> space, const To& to)
      : graph_(graph), from_(from), is_free_(is_free), terms_(terms), space_(std::move(space)), to_(to) {}

  /// The node's term, rounded to its dtype.
  base::Result<TermId> lower(const ir::Node&);

  TermId element(ir::ValueId) override;
  TermId moved(ir::ValueId, const std::vector<int64_t>& first, TermId mask) override;
  TermId strided(ir::ValueId, const std::vector<int64_t>& strides, int64_t offset, std::optional<TermId> mask) override;
  TermId further(ir::ValueId, const std::vector<int64_t>& strides, TermId elements) override;
  TermId position(const std::vector<int64_t>& strides) override;
  TermId is_within(size_t dim, int64_t first, int64_t past, int64_t block) override;

 private:
  struct Window { std::vector<int64_t> first; TermId mask; };
  const ir::Node* free_node(ir::ValueId) const;
  TermId read_window(ir::ValueId, const Window&);
  TermId lower_free(const ir::Node&, ir::ValueId);

  const ir::Graph& graph_;
  const Origins& from_;
  const std::vector<bool>& is_free_;
  Terms& terms_;
  std::vector<int64_t> space_;
  const To& to_;
  std::optional<Window> window_;   ///< set while a node is worked out for a part of the space
  std::optional<Leaf> line_;       ///< set while the numbers of an arange are wanted: how they are looked at
};

}  // namespace cutaway::codegen
