#include <cstdint>

#include "core/ir/parser.h"

#include "core/ir/nearest.h"
#include "core/ir/source_place.h"
#include "core/ir/spelling.h"
#include "core/ir/text.h"

namespace cutaway::ir {

base::Result<Graph> parse(std::string_view text, std::string_view file) { return Parser(text, file).read(); }

Parser::Parser(std::string_view text, std::string_view file) : text_(text), file_(file), lexer_(text) { advance(); }

base::Result<Graph> Parser::read() {
  if (!header() || !graph()) return std::move(error_);
  skip_comment();
  if (token_.kind != Token::Kind::end && !fail(token_, "text after the end of the graph: " + shown(token_), "a file holds one graph")) return std::move(error_);
  return std::move(graph_);
}

bool Parser::fail(const Token& at, std::string what, std::string because, std::string hint) {
  if (!failed_) error_ = error_at(text_, file_, at.offset, at.text.size(), std::move(what), std::move(because), std::move(hint));
  failed_ = true;
  return false;
}

std::string Parser::shown(const Token& t) const {
  constexpr size_t kMaxShown = 40;
  switch (t.kind) {
    case Token::Kind::end: return "the end of the text";
    case Token::Kind::location: return "a comment";
    default: break;
  }
  std::string out;
  if (t.kind != Token::Kind::string && t.text.size() <= kMaxShown) return "'" + std::string(t.text) + "'";
  write_quoted(out, t.text.substr(t.kind == Token::Kind::string, kMaxShown));   // a quoted string's own quotes would be escaped
  return out;
}

bool Parser::fail_expected(std::string_view what) {
  if (token_.kind == Token::Kind::bad) return fail(token_, std::string(token_.problem));
  return fail(token_, "expected " + std::string(what) + ", found " + shown(token_));
}

bool Parser::accept(std::string_view s) {
  if (!token_.is(s)) return false;
  advance();
  return true;
}

bool Parser::expect(std::string_view s) {
  skip_comment();
  return accept(s) || fail_expected("'" + std::string(s) + "'");
}

// cutaway graph 1
bool Parser::header() {
  if (!accept("cutaway")) return true;
  if (!expect("graph")) return false;
  int64_t version = 0;
  const Token number = take();
  if (number.kind != Token::Kind::integer || !integer(number, version)) return fail(number, "expected the version of the format, found " + shown(number));
  if (version != kGraphFormatVersion)
    return fail(number, "version " + std::string(number.text) + " of the graph format is not known",
                "this program reads version " + std::to_string(kGraphFormatVersion), "a newer cutaway");
  return true;
}

bool Parser::graph() {
  skip_comment();
  if (!token_.is("graph")) return fail_expected("'graph'");
  advance();
  if (token_.kind == Token::Kind::word) {
    if (!is_identifier(token_.text)) return fail(token_, shown(token_) + " is not a name for a graph", "a bare name has letters, digits and '_'", "put it in quotes");
    graph_.name = std::string(take().text);
  } else if (token_.kind == Token::Kind::string) {
    if (!string(take(), graph_.name)) return false;
  }
  if (!expect("(")) return false;
  skip_comment();
  while (!accept(")")) {
    if (!graph_.inputs.empty() && !expect(",")) return false;
    skip_comment();
    if (!graph_.inputs.empty() && accept(")")) break;   // a comma after the last input is fine
    if (!input()) return false;
    skip_comment();
  }
  if (!expect("{")) return false;
  skip_comment();
  return block(graph_.body, "return") && expect("}");
}

// %w: f32[64, 64] grad = param "encoder.0.weight"
bool Parser::input() {
  if (token_.kind != Token::Kind::value) return fail_expected("an input such as '%x: f32[2, 64]'");
  const Token name = take();
  Type t;
  Input in;
  if (!expect(":") || !type(t) || !define(name, t, in.value)) return false;
  if (accept("=")) {
    const Token kind = take();
    if (kind.is("param")) in.kind = InputKind::parameter;
    else if (kind.is("buffer")) in.kind = InputKind::buffer;
    else if (kind.is("const")) in.kind = InputKind::constant;
    else if (!kind.is("user")) return fail(kind, "expected param, buffer, const or user, found " + shown(kind));
    if (token_.kind != Token::Kind::string) return fail_expected("the qualified name in quotes");
    if (!string(take(), in.qualified_name)) return false;
  }
  graph_.inputs.push_back(std::move(in));
  return true;
}

bool Parser::define(const Token& name, const Type& type, ValueId& id) {
  id = static_cast<ValueId>(graph_.values.size());
  const auto [it, is_new] = names_.emplace(name.text, id);
  if (!is_new) return fail(name, std::string(name.text) + " is defined twice", {}, "another name: names are unique within a graph, regions included");
  graph_.values.push_back({std::string(name.text.substr(1)), type});
  return true;
}

bool Parser::use(const Token& name, ValueId& id) {
  const auto it = names_.find(name.text);
  if (it != names_.end()) {
    id = it->second;
    for (const auto& [first, end] : unfinished_)
      if (id >= first && id < end) return fail(name, std::string(name.text) + " is used before it is defined", "it is a result of the node itself");
    return true;
  }
  // Defined further on? Only asked once, on the way out.
  Lexer rest(text_.substr(name.offset + name.text.size()));
  for (Token t = rest.next(), before; t.kind != Token::Kind::end; before = t, t = rest.next())
    if (t.is(":") && before.kind == Token::Kind::value && before.text == name.text)
      return fail(name, std::string(name.text) + " is used before it is defined");
  std::vector<std::string_view> known;
  for (const Value& v : graph_.values) known.push_back(v.name);
  return fail(name, std::string(name.text) + " is not defined" + did_you_mean(name.text.substr(1), known, "%"));
}

bool Parser::block(Block& b, std::string_view ending) {
  for (;;) {
    skip_comment();
    if (accept(ending)) break;
    if (token_.kind == Token::Kind::end || token_.is("}")) return fail_expected("'" + std::string(ending) + " (…)'");
    if (!node(b.nodes.emplace_back())) return false;
  }
  if (!expect("(") || !items(b.outputs, ")")) return false;
  skip_comment();
  return true;
}

bool Parser::node(Node& n) {
  const auto first = static_cast<ValueId>(graph_.values.size());
  if (!results(n)) return false;
  unfinished_.emplace_back(first, static_cast<ValueId>(graph_.values.size()));
  if (token_.is("scope")) {
    n.kind = Node::Kind::scope;
    advance();
    if (!state(n.state) || !region(n)) return false;
  } else {
    if (token_.is("call")) {
      n.kind = Node::Kind::call;
      advance();
    }
    if (!target(n) || !call_arguments(n)) return false;
    if (n.kind == Node::Kind::call && (!state(n.state) || !region(n))) return false;
  }
  unfinished_.pop_back();
  return n.kind != Node::Kind::op || location(n.location);
}

// %a: f32[2], [%b: f32[2], %c: f32[2]] =
bool Parser::results(Node& n) {
  if (token_.kind != Token::Kind::value && !token_.is("[")) return true;
  do {
    if (!accept("[")) {
      n.returns.push_back(Node::kSingle);
      if (!result(n)) return false;
      continue;
    }
    int32_t count = 0;
    while (!accept("]")) {
      if (count && !expect(",")) return false;
      if (!result(n)) return false;
      ++count;
    }
    n.returns.push_back(count);
  } while (accept(","));
  return expect("=");
}

bool Parser::result(Node& n) {
  if (token_.kind != Token::Kind::value) return fail_expected("a result such as '%y: f32[2, 64]'");
  const Token name = take();
  if (!token_.is(":")) return fail(token_, "expected ':' and a type, found " + shown(token_), {}, "print the graph with types: a text without them cannot be read");
  advance();
  Type t;
  ValueId id = kNoValue;
  if (!type(t) || !define(name, t, id)) return false;
  n.results.push_back(id);
  return true;
}

bool Parser::target(Node& n) {
  const bool is_op = n.kind == Node::Kind::op;
  if (token_.kind == Token::Kind::string) return string(take(), n.target);
  if (token_.kind != Token::Kind::word) return fail_expected(is_op ? "an operator such as 'aten.relu', 'call' or 'scope'" : "the name of the called function");
  if (!is_dotted_identifier(token_.text)) return fail(token_, shown(token_) + " is not a name: a dot stands between two words");
  n.target = std::string(take().text);
  return true;
}

bool Parser::call_arguments(Node& n) {
  if (!expect("(")) return false;
  skip_comment();
  bool first = true;
  while (!accept(")")) {
    if (!first && !expect(",")) return false;
    skip_comment();
    if (!first && accept(")")) break;
    first = false;
    if (token_.kind != Token::Kind::word && token_.kind != Token::Kind::string) {
      if (!n.kwargs.empty()) return fail(token_, "an argument without a name follows one with a name");
      if (!argument(n.args.emplace_back())) return false;
    } else {
      const Token word = take();
      if (accept("=")) {
        auto& [key, value] = n.kwargs.emplace_back();
        if (word.kind == Token::Kind::string) {
          if (!string(word, key)) return false;
        } else {
          if (!is_identifier(word.text)) return fail(word, shown(word) + " is not the name of an argument");
          key = std::string(word.text);
        }
        if (!argument(value)) return false;
      } else {
        if (!n.kwargs.empty()) return fail(word, "an argument without a name follows one with a name");
        if (!argument_from(word, n.args.emplace_back())) return false;
      }
    }
    skip_comment();
  }
  return true;
}

bool Parser::state(RegionState& s) {
  // A call without its region is followed by the end of the block, or by a node, whose operator has a dot.
  const auto ends = [this] { return token_.is("return") || token_.is("yield") || token_.text.find('.') != std::string_view::npos; };
  while (token_.kind == Token::Kind::word && !ends()) {
    const Token word = token_;
    advance();
    const auto set = [&](std::optional<bool>& flag, bool value) {
      if (flag) return fail(word, shown(word) + " is said twice");
      flag = value;
      return true;
    };
    bool ok = false;
    if (word.is("no_grad")) ok = set(s.grad_enabled, false);
    else if (word.is("enable_grad")) ok = set(s.grad_enabled, true);
    else if (word.is("inference_mode")) ok = set(s.inference_mode, true);
    else if (word.is("no_inference_mode")) ok = set(s.inference_mode, false);
    else if (word.is("autocast")) ok = autocast(s);
    else ok = fail(word, shown(word) + " is not a state" + did_you_mean(word.text, {"no_grad", "enable_grad", "inference_mode", "no_inference_mode", "autocast"}),
                   "a state is no_grad, enable_grad, inference_mode, no_inference_mode or autocast(cpu, bf16)");
    if (!ok) return false;
  }
  return true;
}

// autocast(cuda, f16, off, no_cache)
bool Parser::autocast(RegionState& s) {
  RegionState::Autocast a;
  a.enabled = true;
  if (!expect("(")) return false;
  if (token_.kind != Token::Kind::word) return fail_expected("a device");
  if (!device_from(take(), a.device) || !expect(",")) return false;
  const std::optional<DType> dtype = token_.kind == Token::Kind::word ? dtype_from_name(token_.text) : std::nullopt;
  if (!dtype) return fail_expected("a dtype");
  a.dtype = *dtype;
  advance();
  bool off = false, no_cache = false;
  while (accept(",")) {
    const Token word = take();
    bool* flag = word.is("off") ? &off : word.is("no_cache") ? &no_cache : nullptr;
    if (!flag || *flag) return fail(word, "expected off or no_cache once each, found " + shown(word));
    *flag = true;
  }
  a.enabled = !off;
  a.cache = !no_cache;
  s.autocast.push_back(std::move(a));
  return expect(")");
}

bool Parser::region(Node& n) {
  Depth depth(*this);
  if (!depth.ok()) return false;
  if (!token_.is("{"))
    return fail(token_, "expected '{' and the operators that ran, found " + shown(token_), {}, "print the graph with regions: a text without them cannot be read");
  advance();
  return location(n.location) && block(n.regions.emplace_back(), "yield") && expect("}");
}

}  // namespace cutaway::ir
