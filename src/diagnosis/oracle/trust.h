// What running somebody else's bundle would do beyond arithmetic: files, imports, source text, programs. Reading a bundle never needs this.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/bundle/bundle.h"

namespace cutaway::oracle {

/// One line for each thing that needs --trust, in words; empty when the bundle only computes. Allowed without: operators of known
/// namespaces that touch no file, backends of ours and torch's by name, plain options (numbers, bools) and environment names on the list.
std::vector<std::string> needs_trust(const ir::Graph&, const bundle::Manifest&);

}  // namespace cutaway::oracle
