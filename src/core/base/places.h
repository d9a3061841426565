// Names of source files for others to read.
#pragma once
#include <string>
#include <string_view>

namespace cutaway::base {

/// A source file as others may see it: from its package on ("torch/nn/modules/linear.py"), the bare name of a script. Where somebody keeps
/// his files is nobody else's business. What is no absolute path is left as it is.
std::string package_relative(const std::string& file);

/// A text with every absolute path in it shortened so; of a folder its last part is left.
std::string without_private_paths(std::string_view text);

}  // namespace cutaway::base
