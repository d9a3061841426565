// Symbolic sizes during a run: where each symbol's number is read from the inputs. What expressions then come to is core/symbolic's matter.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/symbolic/expression.h"

namespace cutaway::exec {

/// Finds the numbers of symbols in the inputs of a run: a size or stride of a tensor input that is the symbol itself, or an
/// integer input that has the symbol's name. A size such as s0*2 + 1 with one symbol is solved where nothing else tells.
class SymbolSources {
 public:
  /// For the symbols that `used` expressions name. Refuses one that no input tells.
  static base::Result<SymbolSources> find(const ir::Graph&, const std::vector<ir::Dim>& used);
  /// The symbols, sorted: slot i of what read() gives is that of names()[i].
  const std::vector<std::string>& names() const { return *names_; }
  /// Throws c10::ValueError when two inputs disagree about a symbol.
  std::vector<int64_t> read(const std::vector<c10::IValue>& inputs) const;
  symbolic::SymbolValues values(const std::vector<c10::IValue>& inputs) const { return {names_, read(inputs)}; }

 private:
  struct Source {
    enum class From : uint8_t { integer, size, stride };
    size_t slot = 0;
    size_t input = 0, dim = 0;
    From from = From::integer;
    int64_t factor = 1, offset = 0;   ///< found number = factor * symbol + offset
    bool is_first = false;            ///< of its symbol: those after it must agree
  };
  std::shared_ptr<const std::vector<std::string>> names_ = std::make_shared<const std::vector<std::string>>();
  std::vector<Source> sources_;
};

/// Throws c10::ValueError where the expression has no value.
int64_t evaluate(const ir::Dim&, const symbolic::SymbolValues&);

}  // namespace cutaway::exec
