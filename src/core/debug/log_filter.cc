#include "core/debug/log_filter.h"

#include <algorithm>
#include <optional>

#include "core/base/text.h"
#include "core/debug/topics.h"

namespace cutaway::debug {
namespace {

constexpr Level kDefault = Level::warning;

std::optional<Level> parse_level(std::string_view word) {
  for (Level l : {Level::error, Level::warning, Level::info, Level::debug})
    if (word == level_name(l)) return l;
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

LogFilter::LogFilter() : levels_(topics().size(), kDefault), rest_(kDefault), loudest_(kDefault) {}

Level LogFilter::level_of(std::string_view topic) const {
  const std::optional<size_t> i = topic_index(topic);
  return i ? levels_[*i] : rest_;
}

std::string LogFilter::text() const {
  std::string out = "all=" + std::string(level_name(rest_));
  for (size_t i = 0; i < levels_.size(); ++i) {
    const Topic& t = topics()[i];
    const Level inherited = t.is_component() ? rest_ : levels_[*topic_index(t.component)];
    if (levels_[i] != inherited) out += "," + std::string(t.name) + "=" + std::string(level_name(levels_[i]));
  }
  return out;
}

// Collects what the words say, then applies it from the general to the specific.
class LogWords {
 public:
  enum class Vocabulary { ours, torch };
  explicit LogWords(Vocabulary vocabulary) : vocabulary_(vocabulary), named_(topics().size()) {}

  // False: the word is unknown.
  bool add(std::string_view word) {
    std::optional<Level> level;
    if (word.starts_with('+')) level = Level::debug;
    if (word.starts_with('-')) level = Level::error;
    if (level) word.remove_prefix(1);
    if (vocabulary_ == Vocabulary::ours) {
      if (const size_t equals = word.find('='); equals != std::string_view::npos && !level) {
        level = parse_level(word.substr(equals + 1));
        if (!level) return false;
        word = word.substr(0, equals);
      } else if (const std::optional<Level> all = parse_level(word); all && !level) {
        all_ = all;
        return true;
      }
    }
    if (word == "all") {
      all_ = level.value_or(Level::info);
      return true;
    }
    std::optional<size_t> topic = topic_index_of_torch_word(word);
    if (vocabulary_ == Vocabulary::ours)
      if (const std::optional<size_t> own = topic_index(word)) topic = own;
    if (!topic) return false;
    named_[*topic] = level.value_or(topics()[*topic].is_component() ? Level::info : Level::debug);
    return true;
  }

  LogFilter apply(LogFilter filter) const {
    if (all_) {
      std::ranges::fill(filter.levels_, *all_);
      filter.rest_ = *all_;
    }
    for (size_t i = 0; i < named_.size(); ++i) {
      if (!named_[i]) continue;
      filter.levels_[i] = *named_[i];
      if (!topics()[i].is_component()) continue;
      for (size_t j = 0; j < named_.size(); ++j)
        if (topics()[j].component == topics()[i].name && !named_[j]) filter.levels_[j] = *named_[i];
    }
    filter.loudest_ = std::max(filter.rest_, *std::ranges::max_element(filter.levels_));
    return filter;
  }

 private:
  Vocabulary vocabulary_;
  std::optional<Level> all_;
  std::vector<std::optional<Level>> named_;
};

namespace {

template <class Each>
void for_each_word(std::string_view words, Each each) {
  while (!words.empty()) {
    const size_t comma = std::min(words.find(','), words.size());
    if (const std::string_view word = trimmed(words.substr(0, comma)); !word.empty()) each(word);
    words.remove_prefix(std::min(comma + 1, words.size()));
  }
}

base::Error unknown_word(std::string_view word, std::string_view place) {
  std::vector<std::string> topic_names{"all"};
  for (const Topic& t : topics()) {
    topic_names.emplace_back(t.name);
    topic_names.insert(topic_names.end(), t.torch.begin(), t.torch.end());
  }
  const std::vector<std::string> level_names{"error", "warning", "info", "debug"};
  const std::string_view whole = word;
  if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
  const size_t equals = std::min(word.find('='), word.size());
  base::Error e;
  e.place = place;
  if (whole != word && equals < word.size()) {
    e.what = base::quote(whole) + " says two levels";
    e.hint = std::string(word) + " alone";
    return e;
  }
  if (equals < word.size() && std::ranges::find(topic_names, word.substr(0, equals)) != topic_names.end()) {
    const std::string_view level = word.substr(equals + 1);
    e.what = "unknown level " + base::quote(level) + base::did_you_mean(level, level_names);
    e.hint = "one of " + base::join(level_names);
    return e;
  }
  topic_names.insert(topic_names.end(), level_names.begin(), level_names.end());
  e.what = "unknown topic " + base::quote(word.substr(0, equals)) + base::did_you_mean(word.substr(0, equals), topic_names);
  e.hint = "CUTAWAY_LOGS=help lists the topics";
  return e;
}

}  // namespace

base::Result<LogFilter> parse_logs(std::string_view words, std::string_view place, const LogFilter& start) {
  LogWords parsed(LogWords::Vocabulary::ours);
  std::optional<base::Error> error;
  for_each_word(words, [&](std::string_view word) {
    if (!error && !parsed.add(word)) error = unknown_word(word, place);
  });
  if (error) return *std::move(error);
  return parsed.apply(start);
}

LogFilter parse_torch_logs(std::string_view words, std::vector<std::string>& notes, const LogFilter& start) {
  LogWords parsed(LogWords::Vocabulary::torch);
  for_each_word(words, [&](std::string_view word) {
    if (!parsed.add(word)) notes.push_back("TORCH_LOGS: " + base::quote(word) + " has no topic here and is left to torch");
  });
  return parsed.apply(start);
}

}  // namespace cutaway::debug
