// A graph made ready: a flat list of instructions over numbered slots. Written by prepare.cc, read by interpreter.cc.
// Regions are unfolded; a captured call without state of its own costs nothing. Slots are emptied by the instruction that uses them last.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interpreter.h"
#include "core/exec/literal.h"
#include "core/exec/region_state.h"
#include "core/exec/scalar_ops.h"
#include "core/exec/symbols.h"

namespace cutaway::exec {

struct Operand {
  enum class Kind : uint8_t { constant, slot, composite, dim, generator };
  Kind kind = Kind::constant;
  Expect expect = Expect::as_is;
  bool is_last_use = false;   ///< of the slot: the value is moved out
  uint32_t index = 0;         ///< into constants, slots, composites, dims or generator names
};

/// A list, tuple or dict that holds values.
struct Composite {
  enum class Kind : uint8_t { typed_list, list, tuple, dict };
  Kind kind = Kind::typed_list;
  c10::TypePtr element_type;        ///< typed_list: as the schema says
  std::vector<Operand> items;
  std::vector<std::string> keys;    ///< dict
};

struct Instruction {
  enum class Kind : uint8_t { op, scalar_op, enter, leave, call };
  Kind kind = Kind::op;
  bool has_lists = false;                        ///< some return is a list that is taken apart
  bool makes_anew = false;                       ///< no tensor goes in: how its result is filled counts in no version
  uint32_t first_operand = 0, operand_count = 0;
  uint32_t first_result = 0, result_count = 0;   ///< slots, flat
  uint32_t position = 0;                         ///< among the ops of the graph
  uint32_t state = 0;                            ///< enter: into states
  std::optional<c10::OperatorHandle> op;
  const ScalarOp* scalar_op = nullptr;
  const BoundCall* call = nullptr;
  const ir::Node* node = nullptr;
};

struct Program::Plan {
  static constexpr uint32_t kDropped = 0xffffffffu;   ///< a result that nothing uses

  ir::Graph graph;   ///< instructions point into it, and into these
  BoundCalls calls;
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<uint32_t> results;
  std::vector<c10::IValue> constants;
  std::vector<Composite> composites;
  std::vector<symbolic::Expression> dims;
  std::vector<std::string> generators;
  std::vector<StateSetting> states;
  std::vector<uint32_t> input_slots;   ///< kDropped for an input that nothing uses
  std::vector<Operand> outputs;
  SymbolSources symbols;
  uint32_t slot_count = 0;
  uint32_t max_stack = 0;
};

}  // namespace cutaway::exec
