#include "compiler/codegen/loops.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"

namespace cutaway::codegen {
namespace {

constexpr std::string_view kOpNames[] = {
    "load", "constant", "cast", "rounded", "position", "index", "index_wrapped", "load_if", "load_at",
    "add", "sub", "mul", "div", "fma", "neg", "abs", "sign", "reciprocal", "sqrt", "rsqrt",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "tanh", "erf", "erfc", "erf_plus_one", "sigmoid", "pow", "atan2",
    "floor", "ceil", "round", "trunc",
    "minimum", "maximum", "fmin", "fmax",
    "eq", "ne", "lt", "le", "gt", "ge", "is_nan",
    "logical_and", "logical_or", "logical_xor", "logical_not", "bit_and", "bit_or", "bit_xor", "bit_not",
    "select",
    "scan_sum", "scan_prod", "scan_logsumexp",
    "sum", "prod", "max", "min", "any", "all"};
static_assert(std::size(kOpNames) == static_cast<size_t>(Op::all) + 1);

std::string numbers(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + std::to_string(values[i]);
  return out + "]";
}

std::string access_text(const Buffer& b, const Access& a) { return b.name + numbers(a.strides) + (a.offset ? " + " + std::to_string(a.offset) : ""); }

std::string constant_text(const Term& t) {
  if (t.held == Held::f32 || t.held == Held::f64) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", t.number);
    return text;
  }
  return std::to_string(t.integer);
}

}  // namespace

std::string_view op_name(Op op) { return kOpNames[static_cast<size_t>(op)]; }
bool is_reduction(Op op) { return op >= Op::sum; }
bool is_scan(Op op) { return op == Op::scan_sum || op == Op::scan_prod || op == Op::scan_logsumexp; }
bool reads_memory(Op op) { return op == Op::load || op == Op::load_if || op == Op::load_at; }
bool has_access(Op op) { return op == Op::position || reads_memory(op); }
bool is_costly(Op op) { return (op >= Op::exp && op <= Op::atan2) || op == Op::div || op == Op::sqrt || op == Op::rsqrt || is_scan(op); }

std::string_view held_name(Held held) {
  constexpr std::string_view kNames[] = {"f32", "f64", "i32", "i64", "mask"};
  return kNames[static_cast<size_t>(held)];
}

std::string_view form_name(Form form) {
  constexpr std::string_view kNames[] = {"pointwise", "rows", "columns"};
  return kNames[static_cast<size_t>(form)];
}

bool Kernel::checks_indices() const {
  return std::ranges::any_of(terms, [](const Term& t) { return t.op == Op::index || t.op == Op::index_wrapped; });
}

int64_t Kernel::rows() const {
  int64_t n = 1;
  for (size_t i = 0; i + inner_dims < sizes.size(); ++i) n *= sizes[i];
  return n;
}

int64_t Kernel::inner() const {
  int64_t n = 1;
  for (size_t i = sizes.size() - inner_dims; i < sizes.size(); ++i) n *= sizes[i];
  return n;
}

std::string print(const Kernel& k) {
  std::string out = "kernel " + k.name + " " + std::string(k.is_epilogue ? "epilogue" : form_name(k.form)) + " " + numbers(k.sizes);
  if (k.device.type != "cpu") out += " " + k.device.text();
  if (k.form != Form::pointwise) out += k.form == Form::rows ? " reduces the last " + base::count_of(k.inner_dims, "dimension") : " reduces all but the last " + base::count_of(k.inner_dims, "dimension");
  if (k.scan_rows) out += " and scans " + std::to_string(k.scan_rows) + " rows at a time";
  if (k.sums_blocks) out += " and sums blocks of " + std::to_string(k.sizes[k.sizes.size() - 2]) + " rows";
  if (k.is_general) out += k.has_fixed_inner ? " of any size but the last" : " of any size";
  out += " {\n";
  for (const std::string& line : k.comment) out += "  # " + line + "\n";
  for (size_t i = 0; i < k.terms.size(); ++i) {
    const Term& t = k.terms[i];
    out += "  t" + std::to_string(i) + ": " + std::string(held_name(t.held)) + (t.level == Level::row ? " row" : t.level == Level::column ? " column" : "") + " = " + std::string(op_name(t.op));
    if (reads_memory(t.op)) out += " " + std::string(ir::dtype_name(t.memory)) + " " + access_text(k.buffers[t.buffer], t.access);
    if (t.op == Op::position) out += " " + numbers(t.access.strides) + (t.access.offset ? " + " + std::to_string(t.access.offset) : "");
    if (t.op == Op::index || t.op == Op::index_wrapped) out += " of " + std::to_string(t.integer);
    if (t.op == Op::load_if) out += " if";
    if (t.op == Op::load_at) out += " at";
    if (t.op == Op::constant) out += (t.is_size ? " size " : " ") + constant_text(t);
    else {
      if (t.op == Op::rounded || is_scan(t.op)) out += " " + std::string(ir::dtype_name(t.memory));
      for (size_t j = 0; j < t.operands.size(); ++j) out += (j ? ", t" : " t") + std::to_string(t.operands[j]);
    }
    if (!t.name.empty()) out += "   # %" + t.name;
    out += "\n";
  }
  for (const Store& s : k.stores) out += "  store " + std::string(ir::dtype_name(s.memory)) + " " + access_text(k.buffers[s.buffer], s.access) + " = t" + std::to_string(s.term) + "\n";
  return out + "}\n";
}

}  // namespace cutaway::codegen
