// Types, devices and symbolic integers.
#include <cstdint>

#include "core/ir/nearest.h"
#include "core/ir/parser.h"
#include "core/ir/spelling.h"
#include "core/ir/type_rules.h"

namespace cutaway::ir {
namespace {

std::shared_ptr<const SymExpr> make(SymExpr::Kind kind, std::vector<std::shared_ptr<const SymExpr>> operands) {
  auto e = std::make_shared<SymExpr>();
  e->kind = kind;
  e->operands = std::move(operands);
  return e;
}

}  // namespace

bool Parser::type(Type& out) {
  skip_comment();
  if (token_.kind != Token::Kind::word) return fail_expected("a type such as f32[2, 64] or int");
  const Token word = take();
  if (token_.is("[")) {
    out.kind = Type::Kind::tensor;
    return tensor_type(out.tensor, word);
  }
  for (int k = static_cast<int>(Type::Kind::none); k <= static_cast<int>(Type::Kind::opaque); ++k)
    if (word.text == type_kind_name(static_cast<Type::Kind>(k))) {
      out = Type::of(static_cast<Type::Kind>(k));
      return true;
    }
  if (dtype_from_name(word.text)) return fail(token_, "expected '[' and sizes, found " + shown(token_), {}, std::string(word.text) + "[] for a tensor without dimensions");
  return fail(word, shown(word) + " is not a type" + did_you_mean(word.text, {"none", "int", "float", "bool", "complex", "str", "device", "dtype", "opaque"}));
}

bool Parser::tensor_type(TensorType& t, const Token& dtype) {
  const std::optional<DType> d = dtype_from_name(dtype.text);
  if (!d) {
    std::vector<std::string_view> known;
    for (int i = 0; i < kDTypeCount; ++i) known.push_back(dtype_name(static_cast<DType>(i)));
    return fail(dtype, shown(dtype) + " is not a dtype" + did_you_mean(dtype.text, known));
  }
  t.dtype = *d;
  if (!expect("[") || !dims(t.sizes, "]")) return false;
  t.strides = contiguous_strides(t.sizes);
  if (!type_suffix(t)) return false;
  if (std::string problem = breach_of(t); !problem.empty()) return fail(dtype, std::move(problem));
  return true;
}

// strides(1, 2) sparse_coo cuda:0 grad, each at most once
bool Parser::type_suffix(TensorType& t) {
  bool strides = false, layout = false, device = false, grad = false;
  while (token_.kind == Token::Kind::word) {
    const Token word = take();
    bool* seen = nullptr;
    if (word.is("strides")) {
      seen = &strides;
      t.strides.clear();
      if (!expect("(") || !dims(t.strides, ")")) return false;
    } else if (word.is("grad")) {
      seen = &grad;
      t.requires_grad = true;
    } else if (const auto l = layout_from_name(word.text)) {
      seen = &layout;
      t.layout = *l;
    } else if (is_bare_device_type(word.text) || word.is("device")) {
      seen = &device;
      if (!device_from(word, t.device)) return false;
    } else {
      return fail(word, shown(word) + " is not part of a type" + did_you_mean(word.text, {"strides", "grad", "cpu", "cuda", "sparse_coo", "sparse_csr"}),
                  "after the sizes stand strides(…), a layout, a device and grad");
    }
    if (*seen) return fail(word, shown(word) + " is said twice");
    *seen = true;
  }
  return true;
}

bool Parser::dims(std::vector<Dim>& out, std::string_view close) {
  skip_comment();
  while (!accept(close)) {
    if (!out.empty() && !expect(",")) return false;
    if (!dim(out.emplace_back())) return false;
    skip_comment();
  }
  return true;
}

// cpu, cuda:0, device("name:1"); the first word has been taken
bool Parser::device_from(const Token& first, Device& out) {
  std::string text(first.text);
  Token whole = first;
  if (first.is("device")) {
    if (!quoted_in_parentheses(text)) return false;
  } else {
    if (!is_bare_device_type(first.text)) return fail(first, shown(first) + " is not a device" + did_you_mean(first.text, {"cpu", "cuda", "xpu", "mps", "meta"}), {}, "device(\"…\") for a device of an extension");
    // "cuda:0" is one word to a reader, so no blanks around the colon.
    if (token_.is(":") && token_.offset == first.offset + first.text.size()) {
      const Token colon = take();
      if (token_.kind != Token::Kind::integer || token_.offset != colon.offset + 1) return fail_expected("the index of a device");
      const Token index = take();
      text += ":" + std::string(index.text);
      whole.text = text_.substr(first.offset, index.offset + index.text.size() - first.offset);
    }
  }
  base::Result<Device> device = Device::parse(text);
  if (!device.ok()) return fail(whole, device.error().what, device.error().because);
  out = std::move(device).value();
  return true;
}

bool Parser::dim(Dim& out) {
  skip_comment();
  if (token_.kind == Token::Kind::integer) {   // nearly always: no tree for it
    const Token number = take();
    int64_t value = 0;
    if (!integer(number, value)) return false;
    if (!token_.is("+") && !token_.is("*") && !token_.is("//")) {
      out = Dim(value);
      return true;
    }
    lexer_.move_to(number);
    advance();
  }
  std::shared_ptr<const SymExpr> e;
  if (!sum(e)) return false;
  out = Dim(std::move(e));
  return true;
}

bool Parser::sum(std::shared_ptr<const SymExpr>& out) {
  std::vector<std::shared_ptr<const SymExpr>> terms(1);
  if (!product(terms[0])) return false;
  while (accept("+"))
    if (!product(terms.emplace_back())) return false;
  out = terms.size() == 1 ? std::move(terms[0]) : make(SymExpr::Kind::add, std::move(terms));
  return true;
}

bool Parser::product(std::shared_ptr<const SymExpr>& out) {
  std::vector<std::shared_ptr<const SymExpr>> factors(1);
  if (!atom(factors[0])) return false;
  if (accept("//")) {
    if (!atom(factors.emplace_back())) return false;
    out = make(SymExpr::Kind::floor_div, std::move(factors));
  } else {
    while (accept("*"))
      if (!atom(factors.emplace_back())) return false;
    out = factors.size() == 1 ? std::move(factors[0]) : make(SymExpr::Kind::mul, std::move(factors));
  }
  if (token_.is("//") || token_.is("*")) return fail(token_, "'*' and '//' need parentheses to be mixed");
  return true;
}

bool Parser::atom(std::shared_ptr<const SymExpr>& out) {
  Depth depth(*this);
  if (!depth.ok()) return false;
  skip_comment();
  if (token_.kind == Token::Kind::integer) {
    auto e = std::make_shared<SymExpr>();
    if (!integer(take(), e->constant)) return false;
    out = std::move(e);
    return true;
  }
  if (accept("(")) return sum(out) && expect(")");
  if (token_.kind != Token::Kind::word || !is_identifier(token_.text)) return fail_expected("a number or a symbol such as s0");
  const Token word = take();
  if (!token_.is("(")) {
    auto e = std::make_shared<SymExpr>();
    e->kind = SymExpr::Kind::symbol;
    e->symbol = std::string(word.text);
    out = std::move(e);
    return true;
  }
  const SymExpr::Kind kind = word.is("min") ? SymExpr::Kind::min : word.is("max") ? SymExpr::Kind::max : SymExpr::Kind::mod;
  if (kind == SymExpr::Kind::mod && !word.is("mod")) return fail(word, shown(word) + " is not a function of sizes", "those are min, max and mod");
  advance();
  std::vector<std::shared_ptr<const SymExpr>> operands;
  do {
    if (!sum(operands.emplace_back())) return false;
  } while (accept(","));
  if (operands.size() < 2 || (kind == SymExpr::Kind::mod && operands.size() != 2)) return fail(word, shown(word) + (kind == SymExpr::Kind::mod ? " takes two operands" : " takes two operands or more"));
  out = make(kind, std::move(operands));
  return expect(")");
}

}  // namespace cutaway::ir
