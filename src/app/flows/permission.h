// What a flow asks before it runs somebody's bundle: may it do more than compute, and how much memory may it take?
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/result.h"
#include "core/bundle/bundle.h"

namespace cutaway::flows {

/// An Error that lists what needs --trust, when there is such a thing and nobody said --trust. With it, each goes to `say` first.
base::Status check_trust(const bundle::Bundle&, bool is_trusted, const std::function<void(const std::string&)>& say);

/// `asked`, or four fifths of what the machine has free now: a fault that eats memory must not take the machine with it. No limit where an
/// input is not on the CPU: drivers map more than they use.
uint64_t memory_limit(uint64_t asked, const bundle::Manifest&);

}  // namespace cutaway::flows
