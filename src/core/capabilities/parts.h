// The parts of a compiler that `cutaway bisect` may switch off: which there are, in which order they are searched, and how one is called. A backend
// whose parts can be switched off has a table here and a word in Parts (capabilities.h).
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/capabilities/capabilities.h"

namespace cutaway::capabilities {

struct PartRow {
  std::string_view name;   ///< "lowerings": as switches name it
  std::string_view one;    ///< "lowering": an application of it, in sentences
};
/// An option that switches something off, or chooses the more careful way. Options that hide a failure instead (assertions off) are none of them.
struct OptionRow {
  std::string_view name, careful;   ///< the value as JSON
};

struct PartsTable {
  /// Where several make the failure go away, the first here is guilty: it comes last in a compilation, and what came before it is only what led there.
  /// (Without decompositions a wrong lowering is never reached; without lowerings a wrong decomposition is still wrong.)
  std::span<const PartRow> parts;
  std::span<const std::string_view> in_order;   ///< their names, as a compilation comes to them
  std::span<const OptionRow> options;
  std::string_view question;   ///< what bisect answers, for a reader of a report
  std::string_view loads;      ///< what a Python worker loads beforehand; empty: nothing
};

/// Empty for Parts::none.
const PartsTable& table_of(Parts);
/// Their names, as `--without` and `--limit` take them, in the order in which a compilation comes to them.
std::vector<std::string> names_of(Parts);
/// Of every backend, each once.
std::vector<std::string> all_parts();
/// "lowering" of "lowerings", whosever it is; the name itself where no table has it.
std::string_view one_of(std::string_view part);

}  // namespace cutaway::capabilities
