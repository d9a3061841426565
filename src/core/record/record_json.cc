// record.json both ways. docs/formats/frame_record.md says what each field means.
#include <algorithm>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/bundle/manifest_parts.h"
#include "core/record/frame_record.h"

namespace cutaway::record {

using base::Json;
using base::JsonAt;
using base::JsonFields;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kFormat = "cutaway frame record";
constexpr size_t kMostObjects = 1'000'000, kMostItems = 10'000'000;

const ObjectKind* kind_named(std::string_view name) {
  for (const ObjectKind& k : object_kinds())
    if (k.name == name) return &k;
  return nullptr;
}

/// One row a field of an object: its letter in ObjectKind::fields, its name, and where it lies.
struct TextField { char letter; std::string_view name; std::string Object::*member; };
constexpr TextField kTexts[] = {{'t', "text", &Object::text}, {'m', "module", &Object::module}, {'n', "name", &Object::name}, {'r', "because", &Object::because}};
struct ReferenceField { char letter; std::string_view name; ObjectId Object::*member; };
constexpr ReferenceField kReferences[] = {{'y', "type", &Object::type}, {'a', "attributes", &Object::attributes}, {'c', "content", &Object::content}, {'k', "code", &Object::code},
                                          {'s', "scope", &Object::scope}, {'d', "defaults", &Object::defaults}, {'e', "keyword_defaults", &Object::keyword_defaults}};

enum class Need { absent, optional, required };
Need need(const ObjectKind& k, char letter) {
  if (k.fields.find(static_cast<char>(letter - 'a' + 'A')) != std::string_view::npos) return Need::required;
  return k.fields.find(letter) != std::string_view::npos ? Need::optional : Need::absent;
}

// ---- writing ----

void put_text(Json& out, std::string_view key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

Json object_json(const Object& o) {
  Json out;
  out["kind"] = o.kind;
  const ObjectKind* kind = kind_named(o.kind);
  for (const TextField& f : kTexts)
    if (const std::string& text = o.*f.member; !text.empty() || (kind && need(*kind, f.letter) == Need::required)) out[f.name] = text;
  for (const ReferenceField& f : kReferences)
    if (o.*f.member != kAbsent) out[f.name] = o.*f.member;
  if (!o.items.empty()) out["items"] = Json::Array(o.items.begin(), o.items.end());
  if (o.tensor >= 0) out["tensor"] = o.tensor;
  if (!o.blob.is_none()) out["blob"] = o.blob.hex();
  return out;
}

Json failure_json(const Failure& f) {
  Json out;
  out["kind"] = f.kind;
  put_text(out, "id", f.id);
  put_text(out, "what", f.what);
  put_text(out, "hint", f.hint);
  put_text(out, "instruction", f.instruction);
  Json::Array stack;
  for (const StackFrame& s : f.stack) {
    Json one;
    one["file"] = s.file;
    one["function"] = s.function;
    one["line"] = s.line;
    put_text(one, "text", s.text);
    stack.push_back(std::move(one));
  }
  if (!stack.empty()) out["stack"] = std::move(stack);
  return out;
}

// ---- reading ----

Result<ObjectId> reference(const JsonAt& at, size_t count) { return at.integer(0, static_cast<int64_t>(count) - 1); }

Result<Object> read_object(const JsonAt& at, size_t count, size_t tensor_count) {
  Object o;
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
  CUTAWAY_TRY_ASSIGN(const JsonAt kind_at, fields.required("kind"));
  CUTAWAY_TRY_ASSIGN(o.kind, kind_at.string());
  const ObjectKind* kind = kind_named(o.kind);
  if (!kind) return kind_at.error("unknown kind of object " + base::quote(o.kind.substr(0, 60)));
  const auto field = [&](char letter, std::string_view name, auto&& read) -> Status {
    const Need n = need(*kind, letter);
    if (n == Need::absent) return {};   // then finish() complains
    if (n == Need::optional) return fields.when(name, read);
    CUTAWAY_TRY_ASSIGN(const JsonAt value, fields.required(name));
    return read(value);
  };
  for (const TextField& f : kTexts)
    CUTAWAY_TRY(field(f.letter, f.name, [&](const JsonAt& v) -> Status { CUTAWAY_TRY_ASSIGN(o.*f.member, v.string()); return {}; }));
  for (const ReferenceField& f : kReferences)
    CUTAWAY_TRY(field(f.letter, f.name, [&](const JsonAt& v) -> Status { CUTAWAY_TRY_ASSIGN(o.*f.member, reference(v, count)); return {}; }));
  CUTAWAY_TRY(field('x', "tensor", [&](const JsonAt& v) -> Status { CUTAWAY_TRY_ASSIGN(o.tensor, v.integer(0, static_cast<int64_t>(tensor_count) - 1)); return {}; }));
  CUTAWAY_TRY(field('b', "blob", [&](const JsonAt& v) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::string hex, v.string());
    auto digest = base::Digest::parse(hex);
    if (!digest.ok()) return v.error(digest.error().what);
    o.blob = *digest;
    return {};
  }));
  CUTAWAY_TRY(field('i', "items", [&](const JsonAt& v) -> Status {
    CUTAWAY_TRY_ASSIGN(o.items, v.integers(kMostItems, 0));
    for (ObjectId id : o.items)
      if (id >= static_cast<int64_t>(count)) return v.error("there is no object " + std::to_string(id), "there are " + std::to_string(count));
    return {};
  }));
  if (kind->items >= 0 && need(*kind, 'i') != Need::absent && o.items.size() != static_cast<size_t>(kind->items))
    return at.error("expected " + base::count_of(static_cast<uint64_t>(kind->items), "item") + ", got " + std::to_string(o.items.size()));
  if (kind->items == kPairs && o.items.size() % 2) return at.error("keys and values do not pair");
  if (o.kind == "cell" && o.items.size() > 1) return at.error("a cell holds one object at most");
  if (o.kind == "enum_class" && o.items.size() % 2 == 0) return at.error("names and values do not pair");
  CUTAWAY_TRY(fields.finish());
  return o;
}

/// References that must lead to a certain kind: whoever makes the objects again relies on it.
Status check_kinds(const FrameRecord& r, const JsonAt& objects) {
  const auto is = [&](ObjectId id, std::initializer_list<std::string_view> kinds) { return id == kAbsent || std::find(kinds.begin(), kinds.end(), r.objects[static_cast<size_t>(id)].kind) != kinds.end(); };
  for (size_t i = 0; i < r.objects.size(); ++i) {
    const Object& o = r.objects[i];
    const auto wrong = [&](const std::string& what) { return JsonAt(objects.value(), objects.document(), "objects[" + std::to_string(i) + "]").error(what); };
    if (!is(o.code, {"code"})) return wrong("\"code\" does not lead to code");
    if (!is(o.scope, {"namespace", "library_namespace"})) return wrong("\"scope\" does not lead to a namespace");
    if (!is(o.attributes, {"dict"})) return wrong("\"attributes\" does not lead to a dict");
    if (!is(o.defaults, {"tuple"})) return wrong("\"defaults\" does not lead to a tuple");
    if (!is(o.keyword_defaults, {"dict"})) return wrong("\"keyword_defaults\" does not lead to a dict");
    if (!is(o.type, {"class", "import", "enum_class"})) return wrong("\"type\" does not lead to a class");
    if (o.kind == "function")
      for (ObjectId c : o.items)
        if (!is(c, {"cell"})) return wrong("the closure holds what is no cell");
    if (o.kind == "partial" && (!is(o.items[1], {"tuple"}) || !is(o.items[2], {"dict"}))) return wrong("the arguments of a partial are a tuple and a dict");
    if (o.kind == "mappingproxy" && !is(o.content, {"dict", "ordered_dict", "defaultdict"})) return wrong("a mapping proxy is one of a dict");
    if (o.kind == "tuple_getter" && !is(o.items[0], {"int"})) return wrong("the position of a field is no number");
    if (o.kind == "complex" && (!is(o.items[0], {"float"}) || !is(o.items[1], {"float"}))) return wrong("a complex number is two floats");
    if (o.kind == "range" || o.kind == "size")
      for (ObjectId part : o.items)
        if (!is(part, {"int"})) return wrong("expected whole numbers");
    if (o.kind == "namespace" || o.kind == "enum_class")
      for (size_t k = o.kind == "namespace" ? 0 : 1; k < o.items.size(); k += 2)
        if (!is(o.items[k], {"str"})) return wrong("a name is not text");
    if (o.kind == "instance")
      for (size_t k = 0; k < o.items.size(); k += 2)
        if (!is(o.items[k], {"str"})) return wrong("a slot's name is not text");
  }
  return {};
}

Status read_failure(const JsonAt& at, Failure& f) {
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
  CUTAWAY_TRY_ASSIGN(const JsonAt kind, fields.required("kind"));
  CUTAWAY_TRY_ASSIGN(f.kind, kind.one_of({"internal-error", "unsupported"}));
  CUTAWAY_TRY(fields.fill("id", f.id, &JsonAt::string));
  CUTAWAY_TRY(fields.fill("what", f.what, &JsonAt::string));
  CUTAWAY_TRY(fields.fill("hint", f.hint, &JsonAt::string));
  CUTAWAY_TRY(fields.fill("instruction", f.instruction, &JsonAt::string));
  CUTAWAY_TRY(fields.when("stack", [&](const JsonAt& list) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> all, list.array(10'000));
    for (const JsonAt& one : all) {
      StackFrame s;
      CUTAWAY_TRY_ASSIGN(JsonFields parts, JsonFields::open(one));
      CUTAWAY_TRY(parts.fill("file", s.file, &JsonAt::string));
      CUTAWAY_TRY(parts.fill("function", s.function, &JsonAt::string));
      CUTAWAY_TRY(parts.fill("text", s.text, &JsonAt::string));
      CUTAWAY_TRY(parts.when("line", [&](const JsonAt& v) -> Status { CUTAWAY_TRY_ASSIGN(s.line, v.integer(0)); return {}; }));
      CUTAWAY_TRY(parts.finish());
      f.stack.push_back(std::move(s));
    }
    return {};
  }));
  return fields.finish();
}

}  // namespace

std::string to_json(const FrameRecord& r) {
  Json out;
  out["format"] = kFormat;
  out["version"] = kVersion;
  Json& frame = out["frame"];
  frame["function"] = r.function;
  frame["file"] = r.file;
  frame["line"] = r.line;
  frame["callee"] = r.callee;
  frame["arguments"] = Json::Array(r.arguments.begin(), r.arguments.end());
  out["failure"] = failure_json(r.failure);
  Json options = Json::Object{};
  if (r.fullgraph) options["fullgraph"] = true;
  if (r.all_dynamic) options["all_dynamic"] = true;
  if (r.runs_python) options["runs_python"] = true;
  if (!r.dynamic.empty()) {
    Json::Array all;
    for (const DynamicSize& d : r.dynamic) all.push_back(Json::Object{{"source", d.source}, {"dim", d.dim}});
    options["dynamic"] = std::move(all);
  }
  if (!r.planted.empty()) {
    Json::Object planted;
    for (const auto& [name, value] : r.planted) planted.emplace(name, value);
    options["planted"] = std::move(planted);
  }
  out["options"] = std::move(options);
  Json state = bundle::state_to_json(r.state);
  state["default_dtype"] = r.default_dtype;
  out["state"] = std::move(state);
  if (!r.results.empty()) {
    Json::Array all;
    for (const CallResult& c : r.results) all.push_back(Json::Object{{"call", c.call}, {"value", c.value}});
    out["results"] = std::move(all);
  }
  if (!r.marks.empty()) {
    Json::Array all;
    for (const Mark& m : r.marks) all.push_back(Json::Object{{"object", m.object}, {"mark", m.mark}});
    out["marks"] = std::move(all);
  }
  Json::Array objects, tensors;
  for (const Object& o : r.objects) objects.push_back(object_json(o));
  out["objects"] = std::move(objects);
  for (const bundle::InputRef& t : r.tensors) tensors.push_back(bundle::input_to_json(t));
  if (!tensors.empty()) out["tensors"] = std::move(tensors);
  Json::Object versions;
  for (const auto& [name, value] : r.versions) versions.emplace(name, value);
  out["versions"] = std::move(versions);
  return out.text(1) + "\n";
}

Result<FrameRecord> from_json(std::string_view text, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(const Json document, Json::parse(text, place));
  const JsonAt top(document, place);
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(top));
  CUTAWAY_TRY_ASSIGN(const JsonAt format, fields.required("format"));
  CUTAWAY_TRY_ASSIGN(const std::string name, format.string());
  if (name != kFormat) return format.error("expected " + base::quote(kFormat) + ", got " + base::quote(name.substr(0, 60)));
  CUTAWAY_TRY_ASSIGN(const JsonAt version, fields.required("version"));
  CUTAWAY_TRY_ASSIGN(const int64_t number, version.integer());
  if (number != kVersion)
    return version.error("version " + std::to_string(number) + " is not known", "this Cutaway reads version " + std::to_string(kVersion), number > kVersion ? "a newer Cutaway" : "");

  FrameRecord r;
  CUTAWAY_TRY(fields.when("tensors", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> all, at.array(kMostObjects));
    for (const JsonAt& one : all) {
      CUTAWAY_TRY_ASSIGN(bundle::InputRef input, bundle::input_from_json(one));
      if (input.kind == bundle::InputRef::Kind::literal) return one.error("a literal is no tensor");
      r.tensors.push_back(std::move(input));
    }
    return {};
  }));
  CUTAWAY_TRY_ASSIGN(const JsonAt objects, fields.required("objects"));
  CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> all, objects.array(kMostObjects));
  for (const JsonAt& one : all) {
    CUTAWAY_TRY_ASSIGN(Object o, read_object(one, all.size(), r.tensors.size()));
    r.objects.push_back(std::move(o));
  }
  CUTAWAY_TRY(check_kinds(r, top));

  CUTAWAY_TRY_ASSIGN(const JsonAt frame_at, fields.required("frame"));
  CUTAWAY_TRY_ASSIGN(JsonFields frame, JsonFields::open(frame_at));
  CUTAWAY_TRY(frame.fill("function", r.function, &JsonAt::string));
  CUTAWAY_TRY(frame.fill("file", r.file, &JsonAt::string));
  CUTAWAY_TRY(frame.when("line", [&](const JsonAt& v) -> Status { CUTAWAY_TRY_ASSIGN(r.line, v.integer(0)); return {}; }));
  CUTAWAY_TRY_ASSIGN(const JsonAt callee, frame.required("callee"));
  CUTAWAY_TRY_ASSIGN(r.callee, reference(callee, r.objects.size()));
  if (r.objects[static_cast<size_t>(r.callee)].kind != "function") return callee.error("the frame's function is no function of Python's");
  CUTAWAY_TRY_ASSIGN(const JsonAt arguments, frame.required("arguments"));
  CUTAWAY_TRY_ASSIGN(r.arguments, arguments.integers(100'000, kAbsent));
  for (ObjectId id : r.arguments)
    if (id >= static_cast<int64_t>(r.objects.size())) return arguments.error("there is no object " + std::to_string(id));
  CUTAWAY_TRY(frame.finish());

  CUTAWAY_TRY_ASSIGN(const JsonAt failure, fields.required("failure"));
  CUTAWAY_TRY(read_failure(failure, r.failure));
  CUTAWAY_TRY(fields.when("options", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(JsonFields options, JsonFields::open(at));
    CUTAWAY_TRY(options.fill("fullgraph", r.fullgraph, &JsonAt::boolean));
    CUTAWAY_TRY(options.fill("all_dynamic", r.all_dynamic, &JsonAt::boolean));
    CUTAWAY_TRY(options.fill("runs_python", r.runs_python, &JsonAt::boolean));
    CUTAWAY_TRY(options.fill("planted", r.planted, &JsonAt::strings_by_name));
    CUTAWAY_TRY(options.when("dynamic", [&](const JsonAt& list) -> Status {
      CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> sizes, list.array(10'000));
      for (const JsonAt& one : sizes) {
        DynamicSize d;
        CUTAWAY_TRY_ASSIGN(JsonFields parts, JsonFields::open(one));
        CUTAWAY_TRY(parts.fill("source", d.source, &JsonAt::string));
        CUTAWAY_TRY(parts.when("dim", [&](const JsonAt& v) -> Status { CUTAWAY_TRY_ASSIGN(d.dim, v.integer(0, 63)); return {}; }));
        CUTAWAY_TRY(parts.finish());
        r.dynamic.push_back(std::move(d));
      }
      return {};
    }));
    return options.finish();
  }));
  CUTAWAY_TRY(fields.when("state", [&](const JsonAt& at) -> Status {
    const Json::Object* object = at.value().as<Json::Object>();
    if (!object) return at.error("expected an object, got " + std::string(at.value().kind()));
    Json::Object rest = *object;   // the dtype is ours, the rest is a bundle's
    if (auto dtype = rest.find("default_dtype"); dtype != rest.end()) {
      const std::string* word = dtype->second.as<std::string>();
      if (!word || !ir::dtype_from_name(*word)) return at.error("the default dtype is no dtype");
      r.default_dtype = *word;
      rest.erase(dtype);
    }
    const Json others(std::move(rest));
    CUTAWAY_TRY_ASSIGN(r.state, bundle::state_from_json(JsonAt(others, at.document(), at.path())));
    return {};
  }));
  CUTAWAY_TRY(fields.when("results", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> calls, at.array(kMostObjects));
    for (const JsonAt& one : calls) {
      CallResult c;
      CUTAWAY_TRY_ASSIGN(JsonFields parts, JsonFields::open(one));
      CUTAWAY_TRY(parts.fill("call", c.call, &JsonAt::string));
      CUTAWAY_TRY_ASSIGN(const JsonAt value, parts.required("value"));
      CUTAWAY_TRY_ASSIGN(c.value, reference(value, r.objects.size()));
      CUTAWAY_TRY(parts.finish());
      r.results.push_back(std::move(c));
    }
    return {};
  }));
  CUTAWAY_TRY(fields.when("marks", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> marks, at.array(kMostObjects));
    for (const JsonAt& one : marks) {
      Mark m;
      CUTAWAY_TRY_ASSIGN(JsonFields parts, JsonFields::open(one));
      CUTAWAY_TRY_ASSIGN(const JsonAt object, parts.required("object"));
      CUTAWAY_TRY_ASSIGN(m.object, reference(object, r.objects.size()));
      CUTAWAY_TRY_ASSIGN(const JsonAt mark, parts.required("mark"));
      CUTAWAY_TRY_ASSIGN(m.mark, mark.one_of({"graph_break", "allow_in_graph", "constant_result", "reorderable"}));
      CUTAWAY_TRY(parts.finish());
      r.marks.push_back(std::move(m));
    }
    return {};
  }));
  CUTAWAY_TRY(fields.fill("versions", r.versions, &JsonAt::strings_by_name));
  CUTAWAY_TRY(fields.finish());
  return r;
}

}  // namespace cutaway::record
