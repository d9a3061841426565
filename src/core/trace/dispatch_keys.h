// The two dispatch keys that core/trace listens on, each named once.
#pragma once
#include <c10/core/DispatchKeySet.h>

namespace cutaway::trace {

/// Below autograd and functionalization. torch 2.13 reserves the key for a fake tensor of its own and has it below Python; in
/// 2.11 it is above. A second fallback on it is refused by torch with a message.
inline constexpr c10::DispatchKey kBelowKey = c10::DispatchKey::Fake;
/// Above autograd, autocast and every wrapper that torch ships.
inline constexpr c10::DispatchKey kAboveKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

}  // namespace cutaway::trace
