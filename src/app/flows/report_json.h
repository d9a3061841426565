// What reports of all commands have in common: the keys of --json, so that a program can read them without knowing which command it was, and lines for people.
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
/// The same keys for a command that came to no answer: the outcome is "error", the message says why, everything else is null.
base::Json::Object error_keys(const base::Error&);

/// "key   value\n", with the value in this column: a line of a report for people.
std::string report_line(std::string_view key, std::string_view value, size_t column = 15);

/// What a command was given that the next one needs too: " --backend inductor --accuracy --trust", or empty. `accuracy` as in RunOptions.
std::string flags_text(const std::string& backend, const std::string& accuracy, bool is_trusted);

/// Which file to attach to a bug report, and what it needs beside torch. A planted fault and a compiler outside of Python are not within torch's reach.
std::string attach_text(const std::string& repro, const bundle::Manifest&);

}  // namespace cutaway::flows
