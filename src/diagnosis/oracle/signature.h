// What identifies a failure, so that two runs of one bug compare equal and two bugs do not. Text work only: no libtorch.
#pragma once
#include <string>
#include <string_view>

#include "core/bundle/bundle.h"

namespace cutaway::oracle {

/// The message with everything masked that changes from run to run or from candidate to candidate: addresses, paths, process and line
/// numbers, generated names (buf12, cpp_fused_relu_3, /tmp/…), sizes and other numbers, quoted tensors. One line, at most 400 characters.
std::string normalise_message(std::string_view message);

/// The operator that a message names ("aten.relu.default", "aten::relu", "torch.ops.aten.relu"), in our spelling; empty when none.
std::string operator_in(std::string_view message);

/// True when `got` is the failure that `wanted` describes: kind, exception type, signal, and the normalised message. For accuracy the
/// kind and the type: what is off, and in which dtype. `match`, when not empty, is a regular expression that must be found in the full message instead of comparing messages.
bool is_same_failure(const bundle::FailureSignature& wanted, const bundle::FailureSignature& got, std::string_view full_message, std::string_view match);

/// One line for people: "exception InductorError in aten.relu: …", "crash SIGSEGV", "wrong numbers: …".
std::string describe(const bundle::FailureSignature&);
/// The same with the numbers and names of this very failure, where `message` is the whole text of it: a signature has them masked.
std::string describe(const bundle::FailureSignature&, std::string_view message);

/// An Error when the pattern is no regular expression.
base::Status check_pattern(std::string_view match);

}  // namespace cutaway::oracle
