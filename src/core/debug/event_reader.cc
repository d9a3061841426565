// Reads a stream of events back, and answers which phase was the last one unfinished.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/debug/event_json.h"
#include "core/debug/events.h"
#include "core/debug/stream_reader.h"

namespace cutaway::debug {
namespace {

using base::Json;

struct LineReader {
  std::string place;   // "path:line"

  base::Error bad(std::string what, std::string because = "") const {
    return {.what = std::move(what), .place = place, .because = std::move(because), .hint = "", .excerpt = ""};
  }

  base::Status read_text(const Json& line, const char* key, std::string& out) const {
    const Json* found = line.find(key);
    if (!found) return bad("not an event", std::string("it has no \"") + key + "\"");
    const std::string* text = found->as<std::string>();
    if (!text) return bad("not an event", std::string("\"") + key + "\" is not a text");
    out = *text;
    return {};
  }

  template <class T>
  base::Status read_number(const Json& line, const char* key, T& out, bool required = true) const {
    const Json* found = line.find(key);
    if (!found) {
      if (required) return bad("not an event", std::string("it has no \"") + key + "\"");
      return {};
    }
    const int64_t* plain = found->as<int64_t>();
    const uint64_t* large = found->as<uint64_t>();
    const uint64_t number = large ? *large : plain && *plain >= 0 ? static_cast<uint64_t>(*plain) : UINT64_MAX;
    if ((!large && (!plain || *plain < 0)) || number > static_cast<uint64_t>(std::numeric_limits<T>::max()))
      return bad("not an event", std::string("\"") + key + "\" is not a whole number in range");
    out = static_cast<T>(number);
    return {};
  }

  base::Result<FieldValue> read_value(const std::string& key, const Json& value) const {
    if (const bool* flag = value.as<bool>()) return FieldValue(*flag);
    if (value.as<uint64_t>()) return bad("field " + base::quote(key) + " does not fit into 64 bits with a sign");
    if (const int64_t* number = value.as<int64_t>()) return FieldValue(*number);
    if (const double* number = value.as<double>()) return FieldValue(*number);
    if (const std::string* text = value.as<std::string>()) return FieldValue(*text);
    if (const auto* object = value.as<Json::Object>(); object && object->size() == 1) {
      const std::string text = value.text_or("double");
      if (text == "nan") return FieldValue(std::numeric_limits<double>::quiet_NaN());
      if (text == "inf") return FieldValue(std::numeric_limits<double>::infinity());
      if (text == "-inf") return FieldValue(-std::numeric_limits<double>::infinity());
    }
    return bad("field " + base::quote(key) + " is no bool, number or text");
  }

  base::Result<StoredEvent> read_event(const Json& line) const {
    static constexpr std::string_view kKeys[] = {"time_us", "kind", "topic", "name", "level", "phase", "outer", "pid", "thread", "fields"};
    static constexpr std::string_view kKinds[] = {"begin", "end", "decision", "counter", "artifact", "message"};
    static constexpr std::string_view kLevels[] = {"error", "warning", "info", "debug"};
    const auto is_in = [](const auto& list, const std::string& word) { return std::find(std::begin(list), std::end(list), word) != std::end(list); };
    for (const auto& [key, value] : *line.as<Json::Object>())
      if (!is_in(kKeys, key)) return bad("not an event", base::quote(key) + " is unknown");
    StoredEvent e;
    CUTAWAY_TRY(read_text(line, "kind", e.kind));
    if (!is_in(kKinds, e.kind)) return bad("unknown kind of event " + base::quote(e.kind));
    CUTAWAY_TRY(read_text(line, "topic", e.topic));
    CUTAWAY_TRY(read_text(line, "name", e.name));
    CUTAWAY_TRY(read_text(line, "level", e.level));
    if (!is_in(kLevels, e.level)) return bad("unknown level " + base::quote(e.level));
    CUTAWAY_TRY(read_number(line, "time_us", e.time_us));
    CUTAWAY_TRY(read_number(line, "phase", e.phase));
    CUTAWAY_TRY(read_number(line, "outer", e.outer, false));
    CUTAWAY_TRY(read_number(line, "pid", e.pid));
    CUTAWAY_TRY(read_number(line, "thread", e.thread));
    if (const Json* fields = line.find("fields")) {
      const auto* object = fields->as<Json::Object>();
      if (!object) return bad("not an event", "\"fields\" is not an object");
      for (const auto& [key, given] : *object) {
        CUTAWAY_TRY_ASSIGN(FieldValue value, read_value(key, given));
        e.fields.emplace_back(key, std::move(value));
      }
    }
    return e;
  }

  base::Status check_stream_line(const Json& line) const {
    int64_t version = 0;
    CUTAWAY_TRY(read_number(line, "version", version));
    if (version != kEventsVersion) {
      base::Error e = bad("events of version " + std::to_string(version) + " cannot be read", "this program knows version " + std::to_string(kEventsVersion));
      e.hint = "read it with the version of cutaway that wrote it";
      return e;
    }
    return {};
  }
};

}  // namespace

const FieldValue* StoredEvent::find(std::string_view key) const {
  for (const auto& [k, v] : fields)
    if (k == key) return &v;
  return nullptr;
}

namespace {
template <class T> const T* field_as(const StoredEvent& e, std::string_view key) {
  const FieldValue* f = e.find(key);
  return f ? std::get_if<T>(f) : nullptr;
}
}  // namespace

std::string text_or(const StoredEvent& e, std::string_view key, std::string_view otherwise) {
  const auto* text = field_as<std::string>(e, key);
  return text ? *text : std::string(otherwise);
}
int64_t integer_or(const StoredEvent& e, std::string_view key, int64_t otherwise) {
  const auto* number = field_as<int64_t>(e, key);
  return number ? *number : otherwise;
}
bool flag_or(const StoredEvent& e, std::string_view key, bool otherwise) {
  const auto* flag = field_as<bool>(e, key);
  return flag ? *flag : otherwise;
}

base::Result<std::vector<StoredEvent>> StreamReader::read(std::string_view more, std::string_view place) {
  rest_ += more;
  std::vector<StoredEvent> events;
  std::string_view text = rest_;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos;) {   // what has no end yet: the writer is at it, or was killed there
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const LineReader reader{std::string(place) + ":" + std::to_string(++line_)};
    const Json parsed = Json::parse_or_null(line);
    if (!parsed.as<Json::Object>()) return reader.bad("not a line of JSON that holds an event");
    if (parsed.text_or("kind") == "stream") {
      CUTAWAY_TRY(reader.check_stream_line(parsed));
      is_opened_ = true;
      continue;
    }
    if (!is_opened_) return reader.bad("not a stream of events", "its first line does not say \"kind\":\"stream\" and a version");
    CUTAWAY_TRY_ASSIGN(StoredEvent event, reader.read_event(parsed));
    events.push_back(std::move(event));
  }
  rest_.erase(0, rest_.size() - text.size());
  return events;
}

base::Result<std::vector<StoredEvent>> parse_events(std::string_view text, std::string_view place) { return StreamReader().read(text, place); }

base::Result<std::vector<StoredEvent>> read_events(const std::string& path) {
  CUTAWAY_TRY_ASSIGN(const std::string text, base::read_file(path));
  return parse_events(text, path);
}

std::string last_unfinished_phase(const std::vector<StoredEvent>& events) {
  std::map<std::pair<int64_t, uint64_t>, size_t> open;   // (process, phase) -> index of its begin
  for (size_t i = 0; i < events.size(); ++i) {
    const StoredEvent& e = events[i];
    if (e.kind == "begin") open[{e.pid, e.phase}] = i;
    if (e.kind == "end") open.erase({e.pid, e.phase});
  }
  size_t last = events.size();
  for (const auto& [key, index] : open)
    if (last == events.size() || index > last) last = index;
  return last == events.size() ? std::string() : events[last].name;
}

std::string failing_phase(const std::vector<StoredEvent>& events) {
  if (std::string name = last_unfinished_phase(events); !name.empty()) return name;
  const auto failed = [](const StoredEvent& e) {
    const FieldValue* f = e.kind == "end" ? e.find("failed") : nullptr;
    return f && *f == FieldValue(true);
  };
  // A failure ends its phases from the inside out, so the last failed end is the outermost one of the last failure.
  const StoredEvent* innermost = nullptr;
  for (const StoredEvent& e : events)
    if (failed(e)) innermost = &e;
  if (!innermost) return {};
  // From there inwards: the latest failed phase directly inside this one.
  for (bool found = true; found;) {
    found = false;
    for (const StoredEvent* e = innermost; e-- != events.data();)
      if (failed(*e) && e->pid == innermost->pid && e->outer == innermost->phase) {
        innermost = e;
        found = true;
        break;
      }
  }
  return innermost->name;
}

}  // namespace cutaway::debug
