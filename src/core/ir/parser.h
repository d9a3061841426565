// Reads the text form by recursive descent. One class in four files: parser.cc (graphs, nodes), parse_argument.cc (literals),
// parse_type.cc (types and symbolic integers), parse_location.cc. Not for use outside core/ir.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ir/lexer.h"

namespace cutaway::ir {

/// Every method that returns bool says whether to go on; after false, `error_` holds the first thing that went wrong.
class Parser {
 public:
  Parser(std::string_view text, std::string_view file);
  base::Result<Graph> read();

 private:
  // Nested lists, regions and parentheses together. Bounds the stack, here and in everything that walks a graph.
  static constexpr int kMaxDepth = 64;
  class Depth {
   public:
    explicit Depth(Parser& p) : p_(p) { ++p_.depth_; }
    ~Depth() { --p_.depth_; }
    bool ok() { return p_.depth_ <= kMaxDepth || p_.fail(p_.token_, "nested more than 64 deep"); }
   private:
    Parser& p_;
  };

  // parser.cc
  bool header();
  bool graph();
  bool input();
  bool block(Block&, std::string_view ending);
  bool node(Node&);
  bool results(Node&);
  bool result(Node&);
  bool target(Node&);
  bool call_arguments(Node&);
  bool state(RegionState&);
  bool autocast(RegionState&);
  bool region(Node&);
  bool define(const Token& name, const Type&, ValueId& id);
  bool use(const Token& name, ValueId& id);

  // parse_argument.cc
  bool argument(Argument&);
  bool argument_from(const Token& first, Argument&);   // `first` has been taken
  bool word_argument(const Token& word, Argument&);
  bool call_like_argument(const Token& word, Argument&);
  bool items(std::vector<Argument>&, std::string_view close, bool* trailing_comma = nullptr);
  bool dict(Dict&);
  bool quoted_in_parentheses(std::string&);
  bool integer(const Token&, int64_t&);
  bool floating(const Token&, double&);
  bool number(double&);
  bool string(const Token&, std::string&);

  // parse_type.cc
  bool type(Type&);
  bool tensor_type(TensorType&, const Token& dtype);
  bool type_suffix(TensorType&);
  bool dims(std::vector<Dim>&, std::string_view close);
  bool device_from(const Token& first, Device&);
  bool dim(Dim&);
  bool sum(std::shared_ptr<const SymExpr>&);
  bool product(std::shared_ptr<const SymExpr>&);
  bool atom(std::shared_ptr<const SymExpr>&);

  // parse_location.cc
  bool location(LocationId&);

  // Tokens
  void advance() { token_ = lexer_.next(); }
  Token take() { Token t = token_; advance(); return t; }
  bool accept(std::string_view punctuation_or_word);
  bool expect(std::string_view punctuation_or_word);
  /// Comments where a location would have no meaning.
  void skip_comment() { while (token_.kind == Token::Kind::location) advance(); }
  bool fail(const Token& at, std::string what, std::string because = {}, std::string hint = {});
  bool fail_expected(std::string_view what);
  std::string shown(const Token&) const;

  std::string_view text_;
  std::string_view file_;
  Lexer lexer_;
  Token token_;
  Graph graph_;
  std::unordered_map<std::string_view, ValueId> names_;              // keys are views into the text
  std::unordered_map<std::string_view, LocationId> locations_;       // by spelling: few distinct ones, many nodes
  std::vector<std::pair<ValueId, ValueId>> unfinished_;              // results of the nodes that are being read: not yet usable
  int depth_ = 0;
  bool failed_ = false;
  base::Error error_;
};

}  // namespace cutaway::ir
