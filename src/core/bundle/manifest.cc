// manifest.json both ways. docs/formats/bundle.md says what each field means.
#include <cmath>
#include <cstdint>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/bundle/bundle.h"
#include "core/bundle/manifest_parts.h"
#include "core/bundle/signature_json.h"
#include "core/bundle/tensor_json.h"
#include "core/ir/text.h"

namespace cutaway::bundle {

using base::Error;
using base::Json;
using base::JsonAt;
using base::JsonFields;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kFormat = "cutaway bundle";
constexpr size_t kMaxInputs = 1'000'000;

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = {"data", "seeded", "literal", "filled"};   // in the order of InputRef::Kind
  return names;
}

// ---- writing ----

/// Only what is not empty: a reader sees what is there.
void put_text(Json& out, std::string_view key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

Json strings_json(const std::map<std::string, std::string>& strings) {
  Json::Object out;
  for (const auto& [key, value] : strings) out.emplace(key, value);
  return out;
}

/// Values that are JSON already become part of the document; anything else can only be a string.
Json embedded_json(const std::map<std::string, std::string>& texts) {
  Json::Object out;
  for (const auto& [key, text] : texts) {
    Result<Json> value = Json::parse(text, key);
    out.emplace(key, value.ok() ? std::move(value).value() : Json(text));
  }
  return out;
}

Json state_json(const ir::RegionState& state) {
  Json out = Json::Object{};
  if (state.grad_enabled) out["grad_enabled"] = *state.grad_enabled;
  if (state.inference_mode) out["inference_mode"] = *state.inference_mode;
  if (!state.autocast.empty()) {
    Json::Array all;
    for (const auto& autocast : state.autocast) {
      Json one;
      one["cache"] = autocast.cache;
      one["device"] = autocast.device.text();
      one["dtype"] = ir::dtype_name(autocast.dtype);
      one["enabled"] = autocast.enabled;
      all.push_back(std::move(one));
    }
    out["autocast"] = std::move(all);
  }
  return out;
}

Json failure_json(const FailureSignature& failure) {
  Json out = Json::Object{};
  for_each_field(failure, [&](const char* key, const std::string& text) { put_text(out, key, text); });
  return out;
}

Json input_json(const InputRef& input) {
  Json out;
  out["kind"] = kind_names()[static_cast<size_t>(input.kind)];
  if (input.kind == InputRef::Kind::literal) {
    out["literal"] = ir::print_argument(ir::Graph(), input.literal);   // spelled as in the graph's text
    return out;
  }
  out["tensor"] = tensor_to_json(input.tensor);
  if (input.kind == InputRef::Kind::seeded) {
    out["seed"] = input.seed;
    if (input.range) out["range"] = Json::Array{input.range->first, input.range->second};
  }
  if (input.kind == InputRef::Kind::filled) out["fill"] = input.fill;
  if (input.make_contiguous) out["make_contiguous"] = true;
  put_text(out, "reason", input.reason);
  return out;
}

// ---- reading ----

Status read_device(const JsonAt& at, ir::Device& out) {
  CUTAWAY_TRY_ASSIGN(const std::string text, at.string());
  Result<ir::Device> device = ir::Device::parse(text);
  if (!device.ok()) return at.error(device.error().what, device.error().because);
  out = *std::move(device);
  return {};
}

Status read_state(const JsonAt& at, ir::RegionState& state) {
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
  const auto flag = [](std::optional<bool>& out) {
    return [&out](const JsonAt& at) -> Status {
      CUTAWAY_TRY_ASSIGN(out, at.boolean());
      return {};
    };
  };
  CUTAWAY_TRY(fields.when("grad_enabled", flag(state.grad_enabled)));
  CUTAWAY_TRY(fields.when("inference_mode", flag(state.inference_mode)));
  CUTAWAY_TRY(fields.when("autocast", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> all, at.array(100));
    for (const JsonAt& one : all) {
      ir::RegionState::Autocast autocast;
      CUTAWAY_TRY_ASSIGN(JsonFields parts, JsonFields::open(one));
      CUTAWAY_TRY_ASSIGN(const JsonAt device, parts.required("device"));
      CUTAWAY_TRY(read_device(device, autocast.device));
      CUTAWAY_TRY_ASSIGN(const JsonAt enabled, parts.required("enabled"));
      CUTAWAY_TRY_ASSIGN(autocast.enabled, enabled.boolean());
      CUTAWAY_TRY_ASSIGN(const JsonAt dtype, parts.required("dtype"));
      CUTAWAY_TRY_ASSIGN(const std::string name, dtype.string());
      const auto known = ir::dtype_from_name(name);
      if (!known) return dtype.error("unknown dtype " + base::quote(name.substr(0, 60)));
      autocast.dtype = *known;
      CUTAWAY_TRY(parts.fill("cache", autocast.cache, &JsonAt::boolean));
      CUTAWAY_TRY(parts.finish());
      state.autocast.push_back(std::move(autocast));
    }
    return {};
  }));
  return fields.finish();
}

Status read_word(JsonFields& fields, std::string_view key, std::string& out, std::vector<std::string> words) {
  return fields.when(key, [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(out, at.one_of(words));
    return {};
  });
}

Status read_failure(const JsonAt& at, FailureSignature& failure) {
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
  CUTAWAY_TRY(read_word(fields, "kind", failure.kind, {"exception", "crash", "hang", "memory", "accuracy"}));
  CUTAWAY_TRY(read_word(fields, "stage", failure.stage, {"capture", "aot", "backend"}));
  Status status;
  for_each_field(failure, [&](std::string_view key, std::string& text) {
    if (status.ok() && key != "kind" && key != "stage") status = fields.fill(key, text, &JsonAt::string);
  });
  CUTAWAY_TRY(status);
  return fields.finish();
}

/// A literal is spelled as in the graph's text: read as what a graph without inputs returns.
Status read_literal(const JsonAt& at, ir::Argument& out) {
  CUTAWAY_TRY_ASSIGN(const std::string text, at.string());
  Result<ir::Graph> graph = ir::parse("cutaway graph " + std::to_string(ir::kGraphFormatVersion) + "\ngraph literal() {\n  return (" + text + ")\n}\n");
  if (!graph.ok()) return at.error(base::quote(text.substr(0, 60)) + " is not a literal", graph.error().what);
  const ir::Block& body = graph->body;
  // Printed again it must be the same text: what slipped in beside it (a comment, a second value) does not come back.
  if (!body.nodes.empty() || !graph->inputs.empty() || body.outputs.size() != 1 || ir::print_argument(*graph, body.outputs[0]) != text) {
    return at.error(base::quote(text.substr(0, 60)) + " is not one literal in its plain form");
  }
  out = body.outputs[0];
  return {};
}

Status read_fill(const JsonAt& at, double& out) {
  if (const double* number = at.value().as<double>()) out = *number;
  else if (at.value() == Json("nan")) out = std::nan("");
  else if (at.value() == Json("inf")) out = INFINITY;
  else if (at.value() == Json("-inf")) out = -INFINITY;
  else return at.error("expected a number such as 1.0, or \"nan\", \"inf\", \"-inf\"", "got " + std::string(at.value().kind()));
  return {};
}

Status read_range(const JsonAt& at, std::optional<std::pair<int64_t, int64_t>>& out) {
  CUTAWAY_TRY_ASSIGN(const std::vector<int64_t> ends, at.integers(2, INT64_MIN));
  if (ends.size() != 2 || ends[0] >= ends[1]) return at.error("a range is [first, past the last], with the first below the second");
  out.emplace(ends[0], ends[1]);
  return {};
}

Result<InputRef> read_input(const JsonAt& at) {
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
  InputRef input;
  CUTAWAY_TRY_ASSIGN(const JsonAt kind, fields.required("kind"));
  CUTAWAY_TRY_ASSIGN(const std::string name, kind.one_of(kind_names()));
  for (size_t i = 0; i < kind_names().size(); ++i) {
    if (kind_names()[i] == name) input.kind = static_cast<InputRef::Kind>(i);
  }
  if (input.kind == InputRef::Kind::literal) {
    CUTAWAY_TRY_ASSIGN(const JsonAt literal, fields.required("literal"));
    CUTAWAY_TRY(read_literal(literal, input.literal));
    CUTAWAY_TRY(fields.finish());
    return input;
  }
  CUTAWAY_TRY_ASSIGN(const JsonAt tensor, fields.required("tensor"));
  CUTAWAY_TRY_ASSIGN(input.tensor, tensor_from_json(tensor));
  const bool has_data = !input.tensor.storage.is_none();
  if (input.kind == InputRef::Kind::data && !has_data) return tensor.error("the field \"storage\" is missing", "an input with data names its blob");
  if (input.kind != InputRef::Kind::data && has_data) return tensor.error("the field \"storage\" has no place here", "the input is " + name);
  if (input.kind == InputRef::Kind::seeded) {
    CUTAWAY_TRY_ASSIGN(const JsonAt seed, fields.required("seed"));
    CUTAWAY_TRY_ASSIGN(input.seed, seed.unsigned_integer());
    CUTAWAY_TRY(fields.when("range", [&](const JsonAt& at) { return read_range(at, input.range); }));
  }
  if (input.kind == InputRef::Kind::filled) {
    CUTAWAY_TRY_ASSIGN(const JsonAt fill, fields.required("fill"));
    CUTAWAY_TRY(read_fill(fill, input.fill));
  }
  CUTAWAY_TRY(fields.fill("make_contiguous", input.make_contiguous, &JsonAt::boolean));
  CUTAWAY_TRY(fields.fill("reason", input.reason, &JsonAt::string));
  CUTAWAY_TRY(fields.finish());
  return input;
}

Status read_inputs(const JsonAt& at, std::vector<InputRef>& out) {
  CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> all, at.array(kMaxInputs));
  out.reserve(all.size());
  std::map<base::Digest, uint64_t> bytes_of;
  for (const JsonAt& one : all) {
    CUTAWAY_TRY_ASSIGN(InputRef input, read_input(one));
    if (input.kind == InputRef::Kind::data) {
      const auto [known, is_new] = bytes_of.emplace(input.tensor.storage, input.tensor.storage_bytes);
      if (!is_new && known->second != input.tensor.storage_bytes) {
        return one.error("the storage " + input.tensor.storage.short_hex() + " has " + base::count_of(input.tensor.storage_bytes, "byte") + " here and " +
                         std::to_string(known->second) + " in an input before");
      }
    }
    out.push_back(std::move(input));
  }
  return {};
}

Status read_strings(const JsonAt& at, std::map<std::string, std::string>& out) {
  CUTAWAY_TRY_ASSIGN(out, at.strings_by_name());
  return {};
}

Status read_embedded(const JsonAt& at, std::map<std::string, std::string>& out) {
  const Json::Object* fields = at.value().as<Json::Object>();
  if (!fields) return at.error("expected an object, got " + std::string(at.value().kind()));
  for (const auto& [key, value] : *fields) out.emplace(key, value.text());
  return {};
}

Status check_version(JsonFields& fields) {
  CUTAWAY_TRY_ASSIGN(const JsonAt format, fields.required("format"));
  CUTAWAY_TRY_ASSIGN(const std::string name, format.string());
  if (name != kFormat) return format.error("expected " + base::quote(kFormat) + ", got " + base::quote(name.substr(0, 60)));
  CUTAWAY_TRY_ASSIGN(const JsonAt version, fields.required("version"));
  CUTAWAY_TRY_ASSIGN(const int64_t number, version.integer());
  if (number != kManifestVersion) {
    return version.error("version " + std::to_string(number) + " is not known", "this Cutaway reads version " + std::to_string(kManifestVersion),
                         number > kManifestVersion ? "a newer Cutaway" : "");
  }
  return {};
}

}  // namespace

Json input_to_json(const InputRef& input) { return input_json(input); }
Result<InputRef> input_from_json(const JsonAt& at) { return read_input(at); }
Json state_to_json(const ir::RegionState& state) { return state_json(state); }
Result<ir::RegionState> state_from_json(const JsonAt& at) {
  ir::RegionState state;
  CUTAWAY_TRY(read_state(at, state));
  return state;
}

Json signature_json(const FailureSignature& s) {
  Json::Object out;
  for_each_field(s, [&](const char* key, const std::string& text) { out.emplace(key, text); });
  return out;
}
FailureSignature signature_from(const Json& j) {
  FailureSignature s;
  for_each_field(s, [&](const char* key, std::string& text) { text = j.text_or(key); });
  return s;
}

std::string manifest_to_json(const Manifest& m, const base::Digest& graph_digest) {
  Json out;
  out["format"] = kFormat;
  out["version"] = kManifestVersion;
  out["graph"]["digest"] = graph_digest.hex();
  put_text(out, "name", m.name);
  put_text(out, "stage", m.stage);
  put_text(out, "backend", m.backend);
  out["tracing_mode"] = m.tracing_mode;
  put_text(out, "accuracy", m.accuracy);
  if (!m.state.is_default()) out["state"] = state_json(m.state);
  if (m.backward_state) out["backward_state"] = state_json(*m.backward_state);
  if (!m.process.empty()) out["process"] = strings_json(m.process);
  if (!m.generators.empty()) out["generators"] = strings_json(m.generators);
  out["seed"] = m.seed;
  if (m.random_inputs) out["random_inputs"] = true;
  Json::Array inputs;
  for (const InputRef& input : m.inputs) inputs.push_back(input_json(input));
  out["inputs"] = std::move(inputs);
  if (m.failure != FailureSignature{}) out["failure"] = failure_json(m.failure);
  if (!m.options.empty()) out["options"] = embedded_json(m.options);
  if (!m.environment.empty()) out["environment"] = strings_json(m.environment);
  if (!m.libraries.empty()) out["libraries"] = Json::Array(m.libraries.begin(), m.libraries.end());
  if (!m.versions.empty()) out["versions"] = strings_json(m.versions);
  if (!m.hardware.empty()) out["hardware"] = strings_json(m.hardware);
  if (!m.extra.empty()) out["extra"] = embedded_json(m.extra);
  return out.text(2) + "\n";
}

Result<ParsedManifest> manifest_from_json(std::string_view text, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(const Json document, Json::parse(text, place));
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(JsonAt(document, place)));
  CUTAWAY_TRY(check_version(fields));   // before anything else: a later version may mean other things by the same words

  ParsedManifest out;
  Manifest& m = out.manifest;
  CUTAWAY_TRY_ASSIGN(const JsonAt graph, fields.required("graph"));
  CUTAWAY_TRY_ASSIGN(JsonFields graph_fields, JsonFields::open(graph));
  CUTAWAY_TRY_ASSIGN(const JsonAt digest, graph_fields.required("digest"));
  CUTAWAY_TRY_ASSIGN(const std::string hex, digest.string());
  Result<base::Digest> parsed = base::Digest::parse(hex);
  if (!parsed.ok()) return digest.error(parsed.error().what);
  out.graph_digest = *parsed;
  CUTAWAY_TRY(graph_fields.finish());

  CUTAWAY_TRY(fields.fill("name", m.name, &JsonAt::string));
  CUTAWAY_TRY(read_word(fields, "stage", m.stage, {"capture", "aot"}));
  CUTAWAY_TRY(fields.fill("backend", m.backend, &JsonAt::string));
  CUTAWAY_TRY(read_word(fields, "tracing_mode", m.tracing_mode, {"real", "fake", "symbolic"}));
  CUTAWAY_TRY(read_word(fields, "accuracy", m.accuracy, {"accuracy", "strict"}));
  CUTAWAY_TRY(fields.when("state", [&](const JsonAt& at) { return read_state(at, m.state); }));
  CUTAWAY_TRY(fields.when("backward_state", [&](const JsonAt& at) { return read_state(at, m.backward_state.emplace()); }));
  CUTAWAY_TRY(fields.when("process", [&](const JsonAt& at) { return read_strings(at, m.process); }));
  CUTAWAY_TRY(fields.when("generators", [&](const JsonAt& at) { return read_strings(at, m.generators); }));
  CUTAWAY_TRY(fields.when("seed", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(m.seed, at.unsigned_integer());
    return {};
  }));
  CUTAWAY_TRY(fields.fill("random_inputs", m.random_inputs, &JsonAt::boolean));
  CUTAWAY_TRY_ASSIGN(const JsonAt inputs, fields.required("inputs"));
  CUTAWAY_TRY(read_inputs(inputs, m.inputs));
  CUTAWAY_TRY(fields.when("failure", [&](const JsonAt& at) { return read_failure(at, m.failure); }));
  CUTAWAY_TRY(fields.when("options", [&](const JsonAt& at) { return read_embedded(at, m.options); }));
  CUTAWAY_TRY(fields.when("environment", [&](const JsonAt& at) { return read_strings(at, m.environment); }));
  CUTAWAY_TRY(fields.when("libraries", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> all, at.array(10'000));
    for (const JsonAt& one : all) {
      CUTAWAY_TRY_ASSIGN(std::string name, one.string());
      m.libraries.push_back(std::move(name));
    }
    return {};
  }));
  CUTAWAY_TRY(fields.when("versions", [&](const JsonAt& at) { return read_strings(at, m.versions); }));
  CUTAWAY_TRY(fields.when("hardware", [&](const JsonAt& at) { return read_strings(at, m.hardware); }));
  CUTAWAY_TRY(fields.when("extra", [&](const JsonAt& at) { return read_embedded(at, m.extra); }));
  CUTAWAY_TRY(fields.finish());
  return out;
}

}  // namespace cutaway::bundle
