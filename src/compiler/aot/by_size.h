// A program of somebody else's capture whose inputs have symbolic sizes, and which only a caller's function can run: recorded once for all sizes where that
// is possible, else anew for each set of sizes that comes. Every recording is a Specialized; finding the one for a call is done here.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compiler/aot/specialize.h"
#include "core/exec/size_guards.h"

namespace cutaway::aot {

class BySize {
 public:
  /// A size of an input that shows a symbol.
  struct Symbol { size_t input = 0, dimension = 0; };
  struct Recorded {
    ir::Graph graph;                              ///< of the tensors among the inputs
    std::vector<c10::IValue> lifted;              ///< of its inputs that are not the user's
    std::optional<exec::SizeGuards> guards;       ///< of a recording for all sizes
    std::vector<size_t> statics;                  ///< of that: symbols that stay what they are, by position
  };
  struct Program {
    std::vector<size_t> read;                     ///< inputs that come as a tensor and are taken as its number
    std::vector<Symbol> symbols;                  ///< empty: recorded at its sizes only
    std::string static_because;                   ///< why there are none
    /// For all sizes, at inputs that show these numbers. An Error says why it cannot be: then it is not asked again.
    std::function<base::Result<Recorded>(const std::vector<c10::IValue>& inputs, const std::vector<int64_t>& numbers)> record_symbolic;
    std::function<base::Result<Recorded>(const std::vector<c10::IValue>& inputs)> record;
  };

  BySize(Program, FunctionOptions);
  /// As Specialized::run. Absent: so many sets of sizes have come that another graph would not be worth it; `inputs` are as they were. Thread-safe, and
  /// not to be called with the GIL.
  std::optional<std::vector<c10::IValue>> run(std::vector<c10::IValue>& inputs);

  /// Why recordings are for one set of sizes each; empty: they are not.
  std::string static_because() const;
  std::vector<std::shared_ptr<Specialized>> symbolic() const;
  size_t count_by_size() const;

 private:
  struct Entry {
    Recorded recorded;
    std::shared_ptr<Specialized> function;
    std::string kind;                             // what else must agree
    std::vector<int64_t> numbers;                 // that it was recorded with
  };
  std::shared_ptr<const Entry> find(const std::vector<c10::IValue>& inputs, const std::vector<c10::IValue>& tensors);
  std::shared_ptr<const Entry> find_symbolic(const std::vector<c10::IValue>& inputs, const std::vector<c10::IValue>& tensors, const std::string& kind);
  std::shared_ptr<const Entry> make_entry(Recorded, std::string kind, std::vector<int64_t> numbers) const;

  const Program program_;
  const FunctionOptions options_;
  mutable std::mutex mutex_;
  std::string static_because_;
  std::vector<std::shared_ptr<const Entry>> symbolic_;
  std::map<std::string, std::shared_ptr<const Entry>> by_size_;
};

}  // namespace cutaway::aot
