// Ctrl-C: the first one asks the engine to stop with the best so far, the second one ends the command.
#pragma once

namespace cutaway::cli {

/// Ctrl-C was pressed. Installs the handler on first use.
bool is_interrupted();
/// The same, without the handler.
bool was_interrupted();

}  // namespace cutaway::cli
