// Literals and values between the parentheses of a node.
#include <charconv>
#include <cstdint>
#include <limits>

#include "core/ir/nearest.h"
#include "core/ir/parser.h"
#include "core/ir/spelling.h"

namespace cutaway::ir {

bool Parser::argument(Argument& a) {
  skip_comment();
  return argument_from(take(), a);
}

bool Parser::argument_from(const Token& first, Argument& a) {
  Depth depth(*this);
  switch (first.kind) {
    case Token::Kind::value: return use(first, a.v.emplace<ValueRef>().id);
    case Token::Kind::integer: return integer(first, a.v.emplace<int64_t>());
    case Token::Kind::floating: return floating(first, a.v.emplace<double>());
    case Token::Kind::string: return string(first, a.v.emplace<std::string>());
    case Token::Kind::word: return word_argument(first, a);
    case Token::Kind::bad: return fail(first, std::string(first.problem));
    default: break;
  }
  if (!depth.ok()) return false;
  if (first.is("[")) return items(a.v.emplace<List>().items, "]");
  if (first.is("{")) return dict(a.v.emplace<Dict>());
  if (first.is("...")) {
    a.v = Ellipsis{};
    return true;
  }
  if (first.is("(")) {
    bool trailing_comma = false;
    auto& tuple = a.v.emplace<Tuple>().items;
    if (!items(tuple, ")", &trailing_comma)) return false;
    return tuple.size() != 1 || trailing_comma || fail(first, "a tuple of one element needs a comma: (x,)");
  }
  return fail(first, "expected an argument, found " + shown(first));
}

bool Parser::word_argument(const Token& word, Argument& a) {
  const std::string_view w = word.text;
  if (w == "none") a.v = None{};
  else if (w == "true") a.v = true;
  else if (w == "false") a.v = false;
  else if (w == "inf") a.v = std::numeric_limits<double>::infinity();
  else if (w == "nan") a.v = std::numeric_limits<double>::quiet_NaN();
  else if (is_bare_symbol(w)) a.v = Dim::symbol(std::string(w));
  else if (token_.is("(")) return call_like_argument(word, a);
  else if (const auto dtype = dtype_from_name(w)) a.v = *dtype;
  else if (const auto layout = layout_from_name(w)) a.v = *layout;
  else if (const auto format = memory_format_from_name(w)) a.v = *format;
  else if (is_bare_device_type(w)) return device_from(word, a.v.emplace<Device>());
  else
    return fail(word, shown(word) + " is not an argument" + did_you_mean(w, {"none", "true", "false", "inf", "nan", "f32", "f64", "f16", "bf16", "i64", "i32", "bool", "cpu", "cuda", "strided", "contiguous_format", "preserve_format", "channels_last"}),
                "words here are none, true, false, inf, nan, dtypes, layouts, memory formats, devices and symbols such as s0",
                "quotes around text, % before the name of a value");
  return true;
}

// complex(re, im), sym(…), device("…"), generator("…"), object("…"), slice(a, b, c)
bool Parser::call_like_argument(const Token& word, Argument& a) {
  Depth depth(*this);
  if (!depth.ok()) return false;
  if (word.is("complex")) {
    double re = 0, im = 0;
    if (!expect("(") || !number(re) || !expect(",") || !number(im) || !expect(")")) return false;
    a.v = std::complex<double>(re, im);
    return true;
  }
  if (word.is("sym")) {
    Dim d;
    if (!expect("(") || !dim(d) || !expect(")")) return false;
    a.v = std::move(d);
    return true;
  }
  if (word.is("device")) return device_from(word, a.v.emplace<Device>());
  if (word.is("generator")) return quoted_in_parentheses(a.v.emplace<GeneratorName>().name);
  if (word.is("object")) return quoted_in_parentheses(a.v.emplace<NamedObject>().name);
  if (word.is("slice")) {
    auto& parts = a.v.emplace<Slice>().parts;
    if (!expect("(") || !items(parts, ")")) return false;
    return parts.size() == 3 || fail(word, "a slice has three parts: slice(start, stop, step)");
  }
  return fail(word, shown(word) + " is not an argument" + did_you_mean(word.text, {"complex", "sym", "device", "generator", "object", "slice"}),
              "what takes parentheses here is complex, sym, device, generator, object and slice");
}

bool Parser::quoted_in_parentheses(std::string& out) {
  if (!expect("(")) return false;
  if (token_.kind != Token::Kind::string) return fail_expected("a name in quotes");
  return string(take(), out) && expect(")");
}

bool Parser::items(std::vector<Argument>& out, std::string_view close, bool* trailing_comma) {
  skip_comment();
  while (!accept(close)) {
    if (!out.empty()) {
      if (!token_.is(",")) return fail_expected("',' or '" + std::string(close) + "'");
      advance();
      skip_comment();
      if (accept(close)) {
        if (trailing_comma) *trailing_comma = true;
        return true;
      }
    }
    if (!argument(out.emplace_back())) return false;
    skip_comment();
  }
  return true;
}

bool Parser::dict(Dict& d) {
  skip_comment();
  while (!accept("}")) {
    if (!d.items.empty() && !expect(",")) return false;
    skip_comment();
    if (token_.kind != Token::Kind::string) return fail_expected("a key in quotes");
    auto& [key, value] = d.items.emplace_back();
    if (!string(take(), key) || !expect(":") || !argument(value)) return false;
    skip_comment();
  }
  return true;
}

bool Parser::integer(const Token& t, int64_t& out) {
  const auto [end, failure] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), out);
  return failure == std::errc() || fail(t, "the number does not fit into 64 bits");
}

bool Parser::floating(const Token& t, double& out) {
  if (t.text.ends_with("inf") || t.text.ends_with("nan")) {
    const double magnitude = t.text.ends_with("inf") ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    out = t.text[0] == '-' ? -magnitude : magnitude;
    return true;
  }
  const auto [end, failure] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), out);
  return failure == std::errc() || fail(t, "the number does not fit into a float of 64 bits");
}

bool Parser::number(double& out) {
  skip_comment();
  const Token t = take();
  if (t.kind == Token::Kind::floating || t.kind == Token::Kind::integer || t.is("inf") || t.is("nan")) return floating(t, out);
  return fail(t, "expected a number, found " + shown(t));
}

bool Parser::string(const Token& t, std::string& out) {
  std::string_view problem;
  size_t bad_offset = 0;
  out = unquote(t.text, problem, bad_offset);
  if (problem.empty()) return true;
  Token escape = t;
  escape.offset += bad_offset;
  escape.text = t.text.substr(bad_offset, 2);
  return fail(escape, std::string(problem));
}

}  // namespace cutaway::ir
