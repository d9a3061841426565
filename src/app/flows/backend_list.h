// `cutaway backends`: the table of backends, as a page for people and as JSON. Rows go in, text comes out.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/capabilities/capabilities.h"

namespace cutaway::flows {

/// "eager, native[:wait], …": those that need no trust.
std::string backend_names(const std::vector<capabilities::Row>&);
/// A paragraph each: how it is called, what it is, and what it can do in words.
std::string backends_text(const std::vector<capabilities::Row>&);
base::Json backends_json(const std::vector<capabilities::Row>&);

}  // namespace cutaway::flows
