// The vocabulary of events: what a topic may be called in code, in CUTAWAY_LOGS, in set_logs() and in the debug directory.
// A component is a stage (its name is a folder of the debug directory); a detail is one kind of thing that a component tells.
// One table (topics.cc) holds them with torch's words for the same.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cutaway::debug {

struct Topic {
  std::string_view name;
  std::string_view component;                ///< its own name for a component
  std::span<const std::string_view> torch;   ///< torch's words that mean it
  std::string_view summary;
  bool compiles = false;                     ///< its phases are part of compiling, so compile_times() counts them
  bool is_component() const { return name == component; }
};
/// All of them, components before details.
std::span<const Topic> topics();
/// Place in topics(), if there is one of that name.
std::optional<size_t> topic_index(std::string_view name);
/// Place in topics() of what torch calls so: a registered word, or a module such as "torch._dynamo.guards".
std::optional<size_t> topic_index_of_torch_word(std::string_view word);
/// The component of a topic; a topic outside the table is its own.
std::string_view component_of(std::string_view topic);
/// Two columns: the words and what they show. For `CUTAWAY_LOGS=help`.
std::string topics_text();

}  // namespace cutaway::debug
