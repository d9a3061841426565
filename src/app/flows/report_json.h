// The keys that --json of every command has, so that a program can read them without knowing which command it was.
#pragma once
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/bundle/bundle.h"

namespace cutaway::flows {

/// outcome, kind, stage, backend, signature, bundle, repro, seconds, message; the keys of a reduction are there as null (`others`: []) for
/// the caller to fill. What is not known is null, never an empty string.
base::Json::Object common_keys(std::string_view outcome, const bundle::FailureSignature&, const std::string& backend, const std::string& bundle, const std::string& repro, double seconds,
                               const std::string& message);

}  // namespace cutaway::flows
