#include "compiler/codegen/emit_cpp.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "compiler/codegen/names.h"
#include "compiler/codegen/terms.h"

namespace cutaway::codegen {
namespace {

constexpr int64_t kBlock = 4096;         ///< elements of a unit of a pointwise kernel
constexpr int64_t kSumBlock = 128;       ///< vectors that are added up before they are added to the rest: errors grow with its root
constexpr int64_t kMostScratch = 65536;  ///< bytes of a row that are kept on the stack
constexpr int64_t kColumnVectors = 4;
constexpr int kAccumulators = 4;
constexpr int64_t kInCaches = int64_t{4} << 20;      ///< elements of a space whose values are there when a row is reached
constexpr int64_t kPastCaches = int64_t{32} << 20;   ///< bytes of a result that no cache keeps until somebody reads it

/// A row that is cut into blocks. Where all of the space is one dimension that grows, it always is: one text for few elements and for many.
bool has_blocks(const Kernel& k) { return k.form == Form::pointwise && (k.sizes.back() > kBlock || (k.is_general && !k.has_fixed_inner && k.sizes.size() == 1)); }
int64_t rows_per_unit(const Kernel& k) { return std::max<int64_t>(1, kBlock / std::max<int64_t>(1, k.sizes.back())); }
/// How many elements of a row are kept where they are: of few classes, where a text serves every size.
int64_t kept_elements(const Kernel& k, int lanes) {
  if (!k.is_general || k.has_fixed_inner) return (k.inner() + lanes - 1) / lanes * lanes;
  int64_t n = 1024;
  while (n < k.inner()) n *= 4;
  return n;
}

std::string_view type_of(Held h) {
  constexpr std::string_view kNames[] = {"F", "D", "I", "L", "I"};
  return kNames[static_cast<size_t>(h)];
}
std::string_view memory_type(ir::DType t) {
  using ir::DType;
  switch (t) {
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::bf16: case DType::f16: return "unsigned short";
    case DType::i64: return "long";
    case DType::i32: return "int";
    case DType::i16: return "short";
    case DType::i8: return "signed char";
    default: return "unsigned char";
  }
}
std::string_view memory_vector(ir::DType t) {
  using ir::DType;
  switch (t) {
    case DType::f32: return "F";
    case DType::f64: return "D";
    case DType::bf16: case DType::f16: return "H";
    case DType::i64: return "L";
    case DType::i32: return "I";
    case DType::i16: return "S16";
    case DType::i8: return "S8";
    default: return "B8";
  }
}

std::string literal(const Term& t) {
  if (t.held == Held::mask) return t.integer ? "splat_i(-1)" : "splat_i(0)";
  if (t.held == Held::i32) return "splat_i(" + (t.integer == INT32_MIN ? "-2147483647 - 1" : std::to_string(t.integer)) + ")";
  if (t.held == Held::i64) return "splat_l(" + (t.integer == INT64_MIN ? "-9223372036854775807l - 1" : std::to_string(t.integer) + "l") + ")";
  const bool single = t.held == Held::f32;
  const std::string of = single ? "splat_f(" : "splat_d(";
  if (std::isnan(t.number)) return of + (single ? "__builtin_nanf(\"\"))" : "__builtin_nan(\"\"))");
  if (std::isinf(t.number)) return of + (t.number < 0 ? "-" : "") + (single ? "__builtin_inff())" : "__builtin_inf())");
  char text[48];
  std::snprintf(text, sizeof text, single ? "%.9g" : "%.17g", t.number);
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return of + s + (single ? "f)" : ")");
}

class Emitter {
 public:
  Emitter(const Kernel& k, int lanes) : k_(k), lanes_(lanes), stage_(k.terms.size(), 0), name_(k.terms.size()), saved_(k.terms.size(), false) {}

  std::vector<int64_t> sizes;   ///< of a kernel that serves every size: its arguments, once run() is done

  std::string run() {
    Names names;
    for (const Buffer& b : k_.buffers) buffer_.push_back(names.of(b.name));
    for (size_t i = 0; i < k_.terms.size(); ++i) name_[i] = k_.terms[i].name.empty() ? "t" + std::to_string(i) : names.of(k_.terms[i].name);
    out_ += "// native." + k_.name + "\n";
    for (const std::string& line : k_.comment) out_ += "//   " + line + "\n";
    out_ += "extern \"C\" void " + k_.name + (k_.is_epilogue ? "(void* const* buffer, long begin, long end, long first, long past) {   // rows and columns of a tile\n" : "(void* const* buffer, long begin, long end) {\n");
    if (!k_.is_general) {
      std::string space = "  constexpr long ";
      for (size_t d = 0; d < k_.sizes.size(); ++d) space += (d ? ", " : "") + ("N" + std::to_string(d)) + " = " + std::to_string(k_.sizes[d]);
      out_ += space + ";   // the space, outermost first\n";
    }
    for (size_t i = 0; i < k_.buffers.size(); ++i) {
      const std::string type(memory_type(k_.buffers[i].dtype));
      out_ += "  " + (k_.buffers[i].is_written ? type : "const " + type) + (k_.is_epilogue ? "* const " : "* __restrict const ") + buffer_[i] + " = (" + (k_.buffers[i].is_written ? type : "const " + type) + "*)buffer[" + std::to_string(i) + "];\n";
    }
    std::string start = std::move(out_);
    out_.clear();
    if (k_.is_general) name_space();
    if (k_.checks_indices()) out_ += "  bool bad = false;   // an index that is out of range\n";
    if (k_.form == Form::columns) columns();
    else rows();
    if (k_.checks_indices()) out_ += "  if (bad) __atomic_store_n((int*)buffer[" + std::to_string(k_.buffers.size() + 1) + "], 1, __ATOMIC_RELAXED);\n";
    if (std::ranges::any_of(k_.stores, [this](const Store& s) { return goes_past_caches(s); })) out_ += "  flush();\n";
    return start + head_ + out_ + "}\n";
  }

 private:
  // --- what is an argument where a text serves every size
  /// The name of one more argument.
  std::string argument(int64_t value, const std::string& name, const char* type = "long") {
    const std::string at = "[" + std::to_string(sizes.size()) + "];\n";
    if (sizes.empty()) head_ += "  const long* const size = (const long*)buffer[" + std::to_string(k_.buffers.size()) + "];\n";
    head_ += "  const " + std::string(type) + " " + name + " = " + (std::string_view(type) == "long" ? "size" : "((const double*)size)") + at;
    sizes.push_back(value);
    return name;
  }
  /// N0, N1, …: the space, outermost first. A size of 1 is part of the form: its dimension is not walked.
  void name_space() {
    for (size_t d = 0; d < k_.sizes.size(); ++d) {
      const std::string name = "N" + std::to_string(d);
      if (k_.sizes[d] == 1 || (k_.has_fixed_inner && d + 1 == k_.sizes.size())) head_ += "  constexpr long " + name + " = " + std::to_string(k_.sizes[d]) + ";\n";
      else argument(k_.sizes[d], name);
    }
  }
  bool inner_varies() const { return k_.is_general && !k_.has_fixed_inner; }
  std::string row_count() {
    if (!k_.is_general) return std::to_string(k_.rows());
    if (row_count_.empty()) row_count_ = argument(k_.rows(), "row_count");
    return row_count_;
  }
  /// A stride, or (beyond them) the offset, of an access.
  std::string step(const Access& a, size_t d) {
    const int64_t value = d < a.strides.size() ? a.strides[d] : a.offset;
    if (!k_.is_general) return std::to_string(value);
    std::string& name = step_[{&a, d}];
    if (name.empty()) name = argument(value, "step" + std::to_string(sizes.size()));
    return name;
  }
  std::string constant(const Term& t) {
    if (!k_.is_general || !t.is_size) return literal(t);
    std::string& name = constant_[&t];
    if (name.empty()) name = is_double(t) ? argument(std::bit_cast<int64_t>(t.number), "number" + std::to_string(sizes.size()), "double") : argument(t.integer, "number" + std::to_string(sizes.size()));
    constexpr std::string_view kSplats[] = {"splat_f((float)", "splat_d(", "splat_i((int)", "splat_l("};
    return std::string(kSplats[static_cast<size_t>(t.held)]) + name + ")";
  }
  static bool is_double(const Term& t) { return t.held == Held::f32 || t.held == Held::f64; }

  // --- rows and pointwise
  void rows() {
    find_stages();
    const size_t last = k_.sizes.size() - 1;
    const std::string inner = "N" + std::to_string(last);
    const bool blocks = !k_.is_epilogue && has_blocks(k_);
    if (k_.is_epilogue) {   // a result may lie where the product's was: no pointer is alone
      out_ += "  for (long row = begin; row < end; ++row) {\n";
    } else if (blocks) {
      const std::string per_row = inner_varies() ? "per_row" : std::to_string((k_.sizes[last] + kBlock - 1) / kBlock);
      if (inner_varies()) head_ += "  const long per_row = (" + inner + " + " + std::to_string(kBlock - 1) + ") / " + std::to_string(kBlock) + ";\n";
      out_ += "  for (long unit = begin; unit < end; ++unit) {\n    const long row = unit / " + per_row + ", first = unit % " + per_row + " * " + std::to_string(kBlock) + ", past = first + " +
              std::to_string(kBlock) + " < " + inner + " ? first + " + std::to_string(kBlock) + " : " + inner + ";\n";
    } else if (k_.form == Form::pointwise) {
      const std::string per_unit = inner_varies() ? argument(rows_per_unit(k_), "rows_per_unit") : std::to_string(rows_per_unit(k_)), count = row_count();
      first_indices("begin * " + per_unit, last);
      out_ += "  for (long row = begin * " + per_unit + ", rows = end * " + per_unit + "; row < rows && row < " + count + "; ++row) {\n    " + (inner_varies() ? "const" : "constexpr") + " long first = 0, past = " + inner + ";\n";
    } else {
      const std::string rows = k_.sums_blocks ? " * " + std::to_string(block_rows()) : "";
      first_indices("begin" + rows, last);
      out_ += "  for (long row = begin" + rows + "; row < end" + rows + "; ++row) {\n    " + std::string(inner_varies() ? "const" : "constexpr") + " long first = 0, past = " + inner + ";\n";
    }
    if (blocks || !k_.is_general || k_.is_epilogue) outer_indices("row", last);   // tiles come in any order
    else copied_indices(last);
    if (blocks && per_row_is_one()) out_ += "    (void)row;\n";
    for (size_t i = 0; i < k_.terms.size(); ++i)
      if (saved_[i]) out_ += "    alignas(64) " + std::string(memory_type(dtype_of(k_.terms[i].held))) + " kept_" + name_[i] + "[" + std::to_string(kept_elements(k_, lanes_)) + "];\n";
    for (int stage = 0; stage <= last_stage_; ++stage) element_loop(stage, last);
    for (const Store& s : k_.stores)
      if (is_row_store(s)) store_one(s);
    if (!blocks && !k_.is_epilogue) next_indices(last);
    out_ += "  }\n";
  }

  bool per_row_is_one() const { return k_.is_general ? std::all_of(k_.sizes.begin(), k_.sizes.end() - 1, [](int64_t s) { return s == 1; }) : k_.rows() == 1; }

  // Divisions by sizes that are no constants are slow: such a text counts the indices of its rows up instead.
  /// at0, at1, … of the row where the walk begins.
  void first_indices(const std::string& row, size_t count, const char* pad = "  ") {
    if (!k_.is_general) return;
    std::string rest = "(" + row + ")";
    for (size_t d = count; d-- > 0;) {
      if (k_.sizes[d] == 1) continue;
      out_ += pad + ("long at" + std::to_string(d)) + " = " + rest + " % N" + std::to_string(d) + ";\n";
      rest = "(" + rest + " / N" + std::to_string(d) + ")";
    }
  }
  void copied_indices(size_t count) {
    for (size_t d = count; d-- > 0;)
      if (k_.sizes[d] != 1) out_ += "    const long d" + std::to_string(d) + " = at" + std::to_string(d) + ";\n";
  }
  void next_indices(size_t count, const char* pad = "    ") {
    if (!k_.is_general) return;
    std::string open, close;
    for (size_t d = count; d-- > 0;) {
      if (k_.sizes[d] == 1) continue;
      const std::string at = "at" + std::to_string(d);
      open += "if (++" + at + " == N" + std::to_string(d) + ") { " + at + " = 0; ";
      close += "}";
    }
    if (!open.empty()) out_ += pad + open + close + "\n";
  }

  static ir::DType dtype_of(Held h) { return h == Held::f32 ? ir::DType::f32 : h == Held::f64 ? ir::DType::f64 : h == Held::i64 ? ir::DType::i64 : ir::DType::i32; }

  /// d0, d1, … of a row.
  void outer_indices(const std::string& row, size_t count) {
    std::string rest = row;
    for (size_t d = count; d-- > 0;) {
      if (k_.sizes[d] == 1) continue;
      const bool outermost = std::all_of(k_.sizes.begin(), k_.sizes.begin() + static_cast<long>(d), [](int64_t s) { return s == 1; });
      out_ += "    const long d" + std::to_string(d) + " = " + (outermost ? rest : rest + " % N" + std::to_string(d)) + ";\n";
      rest = "(" + rest + " / N" + std::to_string(d) + ")";
    }
  }

  std::string address(uint32_t buffer, const Access& a, bool with_inner) { return place(buffer_[buffer], a, with_inner); }
  std::string place(std::string s, const Access& a, bool with_inner) {
    if (a.offset) s += " + " + step(a, a.strides.size());
    for (size_t d = 0; d + 1 < k_.sizes.size(); ++d)
      if (a.strides[d] != 0 && k_.sizes[d] != 1) s += " + d" + std::to_string(d) + (a.strides[d] == 1 ? "" : " * " + step(a, d));
    if (with_inner && a.strides.back() != 0) s += a.strides.back() == 1 ? " + i" : " + i * " + step(a, a.strides.size() - 1);
    return s;
  }

  /// A sum over the rows of a block: it is written by the first of them, and the others add to it.
  bool is_block_sum(const Term& t) const { return k_.sums_blocks && t.level == Level::column; }
  int64_t block_rows() const { return k_.sizes[k_.sizes.size() - 2]; }
  bool is_row_store(const Store& s) const { return k_.form == Form::rows && s.access.strides.back() == 0; }

  /// The loop over a row in which each term is first known. A reduction's value is known behind the loop of its operand.
  void find_stages() {
    std::vector<bool> costly(k_.terms.size(), false);
    for (size_t i = 0; i < k_.terms.size(); ++i) {
      const Term& t = k_.terms[i];
      for (TermId o : t.operands) {
        stage_[i] = std::max(stage_[i], stage_[o] + (is_reduction(k_.terms[o].op) ? 1 : 0));
        if (k_.terms[o].level == Level::element) costly[i] = costly[i] || costly[o];
      }
      costly[i] = costly[i] || (t.level == Level::element && is_costly(t.op));
      last_stage_ = std::max(last_stage_, stage_[i]);
    }
    for (const Store& s : k_.stores)   // a row's value that is written for each of its elements waits for the value
      if (!is_row_store(s) && !is_block_sum(k_.terms[s.term])) last_stage_ = std::max(last_stage_, stage_[s.term] + (is_reduction(k_.terms[s.term].op) ? 1 : 0));
    if (k_.form != Form::rows) return;
    int64_t bytes = 0;
    for (size_t i = 0; i < k_.terms.size(); ++i) {
      const Term& t = k_.terms[i];
      if (t.level != Level::element) continue;
      for (TermId o : t.operands) {
        if (k_.terms[o].level != Level::element || stage_[o] >= stage_[i] || !costly[o] || saved_[o]) continue;
        const int64_t size = (inner_varies() ? kept_elements(k_, lanes_) : k_.inner()) * (k_.terms[o].held == Held::f64 || k_.terms[o].held == Held::i64 ? 8 : 4);
        if (bytes + size > kMostScratch) continue;
        bytes += size;
        saved_[o] = true;
      }
    }
  }

  void element_loop(int stage, size_t last) {
    row_terms(stage);
    // What this loop is for: reductions of its stage, stores that are known first here, values that later loops want.
    std::set<TermId> wanted;
    std::vector<TermId> reductions;
    for (TermId i = 0; i < k_.terms.size(); ++i) {
      const Term& t = k_.terms[i];
      if (is_block_sum(t)) continue;
      if (is_reduction(t.op) && stage_[i] == stage) { reductions.push_back(i); want(t.operands[0], stage, wanted); }
      if (saved_[i] && stage_[i] == stage) want(i, stage, wanted);
    }
    std::vector<const Store*> stores;
    for (const Store& s : k_.stores) {
      const Term& t = k_.terms[s.term];
      const int known = stage_[s.term] + (is_reduction(t.op) && !is_block_sum(t) ? 1 : 0);
      if (is_row_store(s) || known != stage) continue;
      stores.push_back(&s);
      want(is_block_sum(t) ? t.operands[0] : s.term, stage, wanted);
    }
    if (reductions.empty() && stores.empty() && wanted.empty()) return;
    for (TermId i : wanted)
      if (is_scan(k_.terms[i].op) && !(saved_[i] && stage_[i] < stage)) out_ += "    " + carry_type(k_.terms[i]) + " " + carry(i, stage) + " = " + (k_.terms[i].op == Op::scan_sum ? "0" : k_.terms[i].op == Op::scan_prod ? "1" : "-__builtin_inff()") + ";\n";
    bool has_sum = false;
    for (TermId r : reductions) has_sum = has_sum || k_.terms[r].op == Op::sum;
    const bool folds = has_sum && (inner_varies() || k_.sizes[last] > kSumBlock * lanes_);
    // Several accumulators where a step is short: one addition would wait for the other. With one function too: steps that stand side by side keep the
    // processor busier than a loop of single ones (sums of exp: a fifth). More of them would not find registers.
    const auto costs = [&](TermId i) { return is_costly(k_.terms[i].op) && !(saved_[i] && stage_[i] < stage); };
    const bool scans = std::ranges::any_of(wanted, [&](TermId i) { return is_scan(k_.terms[i].op); });
    const bool has_several = !reductions.empty() && !scans && (inner_varies() || k_.sizes[last] >= kAccumulators * lanes_) && std::ranges::count_if(wanted, costs) <= 1;
    const auto accumulators = [&](TermId r, const std::string& name) {
      const Term& t = k_.terms[r];
      std::string text = std::string(type_of(t.held)) + " " + name;
      if (!has_several) return text + " = " + identity(t) + ";\n";
      text += "[" + std::to_string(kAccumulators) + "] = {";
      for (int i = 0; i < kAccumulators; ++i) text += (i ? ", " : "") + identity(t);
      return text + "};\n";
    };
    const auto together = [&](TermId r, const std::string& name) {
      const auto at = [&](int i) { return name + "[" + std::to_string(i) + "]"; };
      const auto both = [&](int i) { return combine(k_.terms[r], at(i), at(i + 1)); };
      static_assert(kAccumulators == 4);
      return has_several ? combine(k_.terms[r], "(" + both(0) + ")", "(" + both(2) + ")") : name;
    };
    const auto has_parts = [&](TermId r) { return folds && k_.terms[r].op == Op::sum; };
    for (TermId r : reductions) out_ += "    " + (has_parts(r) ? std::string(type_of(k_.terms[r].held)) + " " + name_[r] + "sum = {};\n" : accumulators(r, name_[r] + "sum"));
    std::string pad = "    ";
    if (folds) {
      out_ += pad + "for (long block = first; block < past; block += " + std::to_string(kSumBlock * lanes_) + ") {\n";
      pad += "  ";
      for (TermId r : reductions)
        if (has_parts(r)) out_ += pad + accumulators(r, name_[r] + "part");
      out_ += pad + "const long block_past = block + " + std::to_string(kSumBlock * lanes_) + " < past ? block + " + std::to_string(kSumBlock * lanes_) + " : past;\n";
    }
    const std::string loop = "loop" + std::to_string(stage);
    out_ += pad + "const auto " + loop + " = [&](auto n, long i" + (has_several ? ", int a" : "") + ") __attribute__((always_inline)) {\n";
    for (TermId i : wanted) element_term(i, stage, pad + "  ");
    for (TermId i : wanted)
      if (saved_[i] && stage_[i] == stage) out_ += pad + "  write(kept_" + name_[i] + " + i, " + name_[i] + ", Full{});\n";
    for (TermId r : reductions) {
      const Term& t = k_.terms[r];
      const std::string into = name_[r] + (has_parts(r) ? "part" : "sum") + (has_several ? "[a]" : "");
      out_ += pad + "  " + into + " = " + combine(t, into, "within(" + name_[t.operands[0]] + ", " + identity(t) + ", n)") + ";\n";
    }
    for (const Store* s : stores) out_ += pad + "  " + store_text(*s) + "\n";
    if (stage == 1) next_row(pad + "  ");
    if (wanted.empty() && stores.empty()) out_ += pad + "  (void)n, (void)i;\n";
    out_ += pad + "};\n";
    const std::string from = folds ? "block" : "first", to = folds ? "block_past" : "past";
    out_ += pad + "{\n" + pad + "  long i = " + from + ";\n";
    if (has_several) {
      const std::string step = std::to_string(kAccumulators) + " * W";
      out_ += pad + "  for (; i + " + step + " <= " + to + "; i += " + step + ") ";
      for (int a = 0; a < kAccumulators; ++a) out_ += (a ? ", " : "") + loop + "(Full{}, i" + (a ? " + " + (a > 1 ? std::to_string(a) + " * W" : std::string("W")) : "") + ", " + std::to_string(a) + ")";
      out_ += ";\n";
    }
    const std::string first = has_several ? ", 0" : "";
    if (!has_several || inner_varies() || k_.sizes[last] % (kAccumulators * lanes_) >= lanes_) out_ += pad + "  for (; i + W <= " + to + "; i += W) " + loop + "(Full{}, i" + first + ");\n";
    if (k_.is_epilogue || inner_varies() || k_.sizes[last] % lanes_ != 0) out_ += pad + "  if (i < " + to + ") " + loop + "(Part{int(" + to + " - i)}, i" + first + ");\n";
    out_ += pad + "}\n";
    if (folds) {
      for (TermId r : reductions)
        if (has_parts(r)) out_ += pad + name_[r] + "sum += " + together(r, name_[r] + "part") + ";\n";
      out_ += "    }\n";
    }
    for (TermId r : reductions) out_ += "    const " + std::string(type_of(k_.terms[r].held)) + " " + name_[r] + " = " + finish(k_.terms[r], has_parts(r) ? name_[r] + "sum" : together(r, name_[r] + "sum")) + ";\n";
    if (stage == last_stage_) row_terms(stage + 1);
  }

  bool has_functions() const {
    return std::ranges::any_of(k_.terms, [](const Term& t) { return is_costly(t.op) && t.level == Level::element; });
  }

  /// A row is walked over again while it lies in L1, and memory would rest meanwhile: the next row is asked for. Processors do that themselves
  /// within a page alone, and rows begin new ones. Layer norm of 64 MB: a tenth; with functions it was slower.
  void next_row(const std::string& pad) {
    if (has_functions() || k_.form != Form::rows || k_.is_general || k_.sizes.size() != (k_.sums_blocks ? 3 : 2) || k_.rows() * k_.inner() < kInCaches) return;
    std::set<std::string> places;
    for (const Term& t : k_.terms)
      if (const auto& by = t.access.strides; t.op == Op::load && t.level == Level::element && by[by.size() - 2] != 0 && by.back() == 1) places.insert(address(t.buffer, t.access, true) + " + " + std::to_string(by[by.size() - 2]));
    for (const std::string& place : places) out_ += pad + "__builtin_prefetch(" + place + ");\n";
  }

  /// Element terms that must be computed in a loop to know this one; what is kept or known once a row ends the search.
  void want(TermId id, int stage, std::set<TermId>& wanted) {
    if (k_.terms[id].level != Level::element || wanted.contains(id)) return;
    wanted.insert(id);
    if (saved_[id] && stage_[id] < stage) return;
    for (TermId o : k_.terms[id].operands) want(o, stage, wanted);
  }

  /// Terms that are the same for all elements of a row, once what they need is known.
  void row_terms(int stage) {
    for (TermId i = 0; i < k_.terms.size(); ++i) {
      const Term& t = k_.terms[i];
      if (t.level == Level::element || is_reduction(t.op) || row_done_.contains(i) || stage_[i] > stage) continue;
      row_done_.insert(i);
      out_ += "    const " + std::string(type_of(t.held)) + " " + name_[i] + " = " + (t.op == Op::load ? loaded_one(t) : expression(t, "Full{}")) + ";\n";
    }
  }

  void element_term(TermId id, int stage, const std::string& pad) {
    const Term& t = k_.terms[id];
    out_ += pad + "const " + std::string(type_of(t.held)) + " " + name_[id] + " = ";
    if (saved_[id] && stage_[id] < stage) out_ += "read<" + std::string(type_of(t.held)) + ">(kept_" + name_[id] + " + i, Full{})";
    else if (t.op == Op::load) out_ += loaded(t);
    else if (is_scan(t.op)) out_ += std::string(op_name(t.op)) + "(" + name_[t.operands[0]] + ", " + carry(id, stage) + ")";
    else out_ += expression(t);
    out_ += ";\n";
  }
  /// What a scan has so far, from one vector of a row to the next.
  std::string carry(TermId id, int stage) const { return name_[id] + "_so_far" + std::to_string(stage); }
  /// As wide as ATen's, so that results are equal bit for bit. Integers wrap.
  static std::string carry_type(const Term& t) {
    if (is_integer(t.held)) return "unsigned long";
    return t.op == Op::scan_logsumexp ? (t.held == Held::f64 ? "double" : "float") : t.memory == ir::DType::f32 || t.memory == ir::DType::f64 ? "double" : "float";
  }

  static std::string from_memory(ir::DType memory, const std::string& v) {
    using ir::DType;
    switch (memory) {
      case DType::bf16: return "bf16_bits(" + v + ")";
      case DType::f16: return "f16_bits(" + v + ")";
      case DType::boolean: return "(I)(__builtin_convertvector(" + v + ", I) != 0)";
      case DType::u8: case DType::i8: case DType::i16: return "__builtin_convertvector(" + v + ", I)";
      default: return v;
    }
  }
  static std::string to_memory(ir::DType memory, const std::string& v) {
    using ir::DType;
    switch (memory) {
      case DType::bf16: return "bits_bf16(" + v + ")";
      case DType::f16: return "bits_f16(" + v + ")";
      case DType::boolean: return "__builtin_convertvector(" + v + " & 1, B8)";
      default: return v;
    }
  }

  std::string loaded(const Term& t) {
    const std::string vector(memory_vector(t.memory));
    const int64_t stride = t.access.strides.back();
    if (stride == 0) return loaded_one(t);
    if (stride == 1) return from_memory(t.memory, "read<" + vector + ">(" + address(t.buffer, t.access, true) + ", n)");
    return from_memory(t.memory, "read_far<" + vector + ">(" + address(t.buffer, t.access, true) + ", " + step(t.access, t.access.strides.size() - 1) + ", n)");
  }
  /// One element, in all lanes.
  std::string loaded_one(const Term& t) { return from_memory(t.memory, "(*(" + address(t.buffer, t.access, false) + ") - " + std::string(memory_vector(t.memory)) + "{})"); }

  /// position, index and loads that have operands. `n` names the lanes that count.
  std::string placed(const Term& t, const std::string& n) {
    const bool varies = k_.form == Form::columns || t.level == Level::element;
    const int64_t inner = t.access.strides.empty() ? 0 : t.access.strides.back();
    const std::string stride = inner == 0 || inner == 1 ? std::to_string(inner) : step(t.access, t.access.strides.size() - 1);
    if (t.op == Op::position) return "steps(" + place("0", t.access, varies) + ", " + (varies ? stride : "0") + ")";
    const TermId of = t.operands[0];
    if (t.op == Op::index || t.op == Op::index_wrapped) return std::string(t.op == Op::index ? "index(" : "index_wrapped(") + name_[of] + ", " + std::to_string(t.integer) + "l, bad, " + n + ")";
    const bool by_row = k_.form != Form::columns && k_.terms[of].level != Level::element;   // the mask or the way is the same for all elements of a row
    const std::string vector(memory_vector(t.memory)), at = address(t.buffer, t.access, varies);
    if (t.op == Op::load_if) return from_memory(t.memory, "read_if<" + vector + ">(" + at + ", " + stride + ", " + name_[of] + (by_row ? "[0]" : "") + ", " + n + ")");
    if (by_row && t.access.strides.back() == 1) return from_memory(t.memory, "read<" + vector + ">(" + at + " + " + name_[of] + "[0], " + n + ")");
    if (by_row) return from_memory(t.memory, "read_far<" + vector + ">(" + at + " + " + name_[of] + "[0], " + stride + ", " + n + ")");
    return from_memory(t.memory, "read_at<" + vector + ">(" + at + ", " + stride + ", " + name_[of] + ", " + n + ")");
  }

  std::string store_text(const Store& s) {
    if (is_block_sum(k_.terms[s.term])) return "add_up(" + address(s.buffer, s.access, true) + ", " + name_[k_.terms[s.term].operands[0]] + ", d" + std::to_string(k_.sizes.size() - 2) + " == 0, n);";
    const std::string v = to_memory(s.memory, name_[s.term]);
    const int64_t stride = s.access.strides.back();
    if (stride == 1 || k_.sizes.back() == 1) return std::string(goes_past_caches(s) ? "write_past(" : "write(") + address(s.buffer, s.access, true) + ", " + v + ", n);";
    return "write_far(" + address(s.buffer, s.access, true) + ", " + step(s.access, s.access.strides.size() - 1) + ", " + v + ", n);";
  }
  /// Not where functions take the time: writing waits for nobody there, and was slower in this way (GELU 6.5 -> 7.5 ms for 64 MB; layer norm 5.0 -> 3.6).
  bool goes_past_caches(const Store& s) const {
    if (has_functions() || k_.is_general || k_.is_epilogue || k_.terms[s.term].level != Level::element) return false;
    return k_.rows() * k_.inner() * ir::dtype_bytes(s.memory) >= kPastCaches;
  }
  void store_one(const Store& s) { out_ += "    *(" + address(s.buffer, s.access, false) + ") = " + to_memory(s.memory, name_[s.term]) + "[0];\n"; }

  static std::string identity(const Term& t) {
    Term c;
    c.held = t.held;
    switch (t.op) {
      case Op::prod: c.number = 1; c.integer = 1; break;
      case Op::max: c.number = -INFINITY; c.integer = t.held == Held::i32 ? INT32_MIN : INT64_MIN; break;
      case Op::min: c.number = INFINITY; c.integer = t.held == Held::i32 ? INT32_MAX : INT64_MAX; break;
      case Op::all: c.integer = 1; break;
      default: break;
    }
    return literal(c);
  }
  static std::string combine(const Term& t, const std::string& a, const std::string& b) {
    switch (t.op) {
      case Op::sum: return a + " + " + b;
      case Op::prod: return a + " * " + b;
      case Op::max: return (t.held == Held::f32 ? "largest(" : "maximum(") + b + ", " + a + ")";
      case Op::min: return (t.held == Held::f32 ? "smallest(" : "minimum(") + b + ", " + a + ")";
      case Op::any: return a + " | " + b;
      default: return a + " & " + b;
    }
  }
  std::string finish(const Term& t, const std::string& v) const {
    const std::string_view fold = t.op == Op::sum ? "Sum" : t.op == Op::prod ? "Product" : t.op == Op::max || t.op == Op::all ? "Max" : "Min";   // masks: -1 is true
    return "fold<" + std::string(fold) + ">(" + v + ") - " + std::string(type_of(t.held)) + "{}";   // not a sum: that would lose the sign of -0.0
  }

  // --- columns
  void columns() {
    const int64_t width = kColumnVectors * lanes_;
    const size_t last = k_.sizes.size() - 1;
    std::vector<TermId> reductions;
    std::set<TermId> wanted;
    if (k_.scan_rows) { scans_down(width, last); return; }
    std::vector<const Store*> element_stores, column_stores;
    for (TermId i = 0; i < k_.terms.size(); ++i)
      if (is_reduction(k_.terms[i].op)) { reductions.push_back(i); want_any(k_.terms[i].operands[0], wanted); }
    for (const Store& s : k_.stores) {
      const bool is_column = k_.terms[s.term].level == Level::column;
      (is_column ? column_stores : element_stores).push_back(&s);
      if (!is_column) want_any(s.term, wanted);
    }
    out_ += "  for (long unit = begin; unit < end; ++unit) {\n    const long first = unit * " + std::to_string(width) + ";\n";
    for (TermId r : reductions) out_ += "    " + std::string(type_of(k_.terms[r].held)) + " " + name_[r] + "sum[" + std::to_string(kColumnVectors) + "] = {};\n";
    const std::string count = row_count();
    out_ += "    for (long block = 0; block < " + count + "; block += 64) {\n";
    for (TermId r : reductions) out_ += "      " + std::string(type_of(k_.terms[r].held)) + " " + name_[r] + "part[" + std::to_string(kColumnVectors) + "] = {};\n";
    out_ += "      const long past = block + 64 < " + count + " ? block + 64 : " + count + ";\n";
    first_indices("block", last, "      ");
    out_ += "      for (long row = block; row < past; ++row) {\n";
    if (k_.is_general) copied_indices(last);
    else outer_indices("row", last);
    out_ += "        const auto step = [&](auto n, long i, int v) __attribute__((always_inline)) {\n";
    for (TermId i : wanted) {
      const Term& t = k_.terms[i];
      out_ += "          const " + std::string(type_of(t.held)) + " " + name_[i] + " = " + (t.op == Op::load ? loaded(t) : expression(t)) + ";\n";
    }
    for (TermId r : reductions) out_ += "          " + name_[r] + "part[v] += " + name_[k_.terms[r].operands[0]] + ";\n";
    for (const Store* s : element_stores) out_ += "          " + store_text(*s) + "\n";
    out_ += "        };\n";
    const std::string loop = "for (int v = 0; v < " + std::to_string(kColumnVectors) + "; ++v) ";
    const std::string inner = "N" + std::to_string(last);
    if (!inner_varies() && k_.inner() % width == 0) {
      out_ += "        " + loop + "step(Full{}, first + v * W, v);\n";
    } else {
      out_ += "        if (first + " + std::to_string(width) + " <= " + inner + ") {\n          " + loop + "step(Full{}, first + v * W, v);\n        } else {\n          " + loop +
              "\n            if (const long left = " + inner + " - first - v * W; left > 0) step(Part{int(left < W ? left : W)}, first + v * W, v);\n        }\n";
    }
    next_indices(last, "        ");
    out_ += "      }\n";
    for (TermId r : reductions) out_ += "      " + loop + name_[r] + "sum[v] += " + name_[r] + "part[v];\n";
    out_ += "    }\n    const auto finish = [&](auto n, long i, int v) __attribute__((always_inline)) {\n";
    for (TermId r : reductions) out_ += "      const " + std::string(type_of(k_.terms[r].held)) + " " + name_[r] + " = " + name_[r] + "sum[v];\n";
    for (TermId i = 0; i < k_.terms.size(); ++i) {
      const Term& t = k_.terms[i];
      if ((t.level == Level::column && !is_reduction(t.op)) || (t.op == Op::constant && feeds_column(i))) out_ += "      const " + std::string(type_of(t.held)) + " " + name_[i] + " = " + expression(t) + ";\n";
    }
    for (const Store* s : column_stores) out_ += "      " + store_text(*s) + "\n";
    out_ += "    };\n    " + loop + "\n      if (const long left = " + inner + " - first - v * W; left >= W) finish(Full{}, first + v * W, v);\n      else if (left > 0) finish(Part{int(left)}, first + v * W, v);\n  }\n";
  }
  /// Scans over rows: what there is so far is a vector of columns.
  void scans_down(int64_t width, size_t last) {
    std::set<TermId> wanted;
    for (const Store& s : k_.stores) want_any(s.term, wanted);
    const std::string inner = "N" + std::to_string(last), w = std::to_string(width);
    const std::string rows = k_.is_general ? argument(k_.scan_rows, "scan_rows") : std::to_string(k_.scan_rows);
    if (inner_varies()) head_ += "  const long per_row = (" + inner + " + " + std::to_string(width - 1) + ") / " + w + ";\n";
    const std::string per_row = inner_varies() ? "per_row" : std::to_string((k_.inner() + width - 1) / width);
    out_ += "  for (long unit = begin; unit < end; ++unit) {\n    const long first = unit % " + per_row + " * " + w + ", from = unit / " + per_row + " * " + rows + ";\n";
    for (TermId i : wanted) {
      const Term& t = k_.terms[i];
      if (!is_scan(t.op)) continue;
      const std::string name = name_[i] + "_so_far", count = std::to_string(kColumnVectors);
      const std::string type = t.op == Op::scan_logsumexp ? std::string(type_of(t.held)) : is_integer(t.held) ? "UL" : carry_type(t) == "double" ? "D" : "F";
      out_ += "    " + type + " " + name + "[" + count + "] = {};\n";
      if (t.op == Op::scan_prod) out_ += "    for (auto& v : " + name + ") v = v + 1;\n";
      if (t.op == Op::scan_logsumexp) out_ += "    for (auto& v : " + name + ") v = v - __builtin_inff();\n";
    }
    first_indices("from", last, "    ");
    out_ += "    for (long row = from; row < from + " + rows + "; ++row) {\n";
    if (k_.is_general) copied_indices(last);
    else outer_indices("row", last);
    out_ += "      const auto step = [&](auto n, long i, int v) __attribute__((always_inline)) {\n";
    for (TermId i : wanted) {
      const Term& t = k_.terms[i];
      const std::string value = t.op == Op::load ? loaded(t) : is_scan(t.op) ? "down_" + std::string(op_name(t.op)) + "(" + name_[t.operands[0]] + ", " + name_[i] + "_so_far[v])" : expression(t);
      out_ += "        const " + std::string(type_of(t.held)) + " " + name_[i] + " = " + value + ";\n";
    }
    for (const Store& s : k_.stores) out_ += "        " + store_text(s) + "\n";
    out_ += "      };\n";
    const std::string loop = "for (int v = 0; v < " + std::to_string(kColumnVectors) + "; ++v) ";
    if (!inner_varies() && k_.inner() % width == 0) {
      out_ += "      " + loop + "step(Full{}, first + v * W, v);\n";
    } else {
      out_ += "      if (first + " + w + " <= " + inner + ") {\n        " + loop + "step(Full{}, first + v * W, v);\n      } else {\n        " + loop +
              "\n          if (const long left = " + inner + " - first - v * W; left > 0) step(Part{int(left < W ? left : W)}, first + v * W, v);\n      }\n";
    }
    next_indices(last, "      ");
    out_ += "    }\n  }\n";
  }
  void want_any(TermId id, std::set<TermId>& wanted) {
    if (!wanted.insert(id).second) return;
    for (TermId o : k_.terms[id].operands) want_any(o, wanted);
  }
  bool feeds_column(TermId id) const {
    for (const Term& t : k_.terms)
      if (t.level == Level::column && std::ranges::find(t.operands, id) != t.operands.end()) return true;
    return false;
  }

  /// Which element of a row has a place that is one number a row, such as a target's class: no vector of places is made.
  std::optional<std::string> place_compared(const Term& t) {
    if (k_.form == Form::columns || k_.is_general) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      const Term &at = k_.terms[t.operands[i]], &wanted = k_.terms[t.operands[1 - i]];
      if (at.op != Op::position || at.level != Level::element || at.access.strides.back() != 1 || wanted.held != Held::i64 || wanted.level != Level::row) continue;
      return "is_at(" + place("0", at.access, true) + ", " + name_[t.operands[1 - i]] + "[0])";
    }
    return std::nullopt;
  }

  std::string expression(const Term& t, const std::string& n = "n") {
    if (t.op == Op::constant) return constant(t);
    if (t.op >= Op::position && t.op <= Op::load_at) return placed(t, n);
    const auto a = [&](size_t i) { return name_[t.operands[i]]; };
    const auto call = [&](const char* f) { return std::string(f) + "(" + a(0) + (t.operands.size() > 1 ? ", " + a(1) : "") + ")"; };
    const auto infix = [&](const char* o) { return a(0) + " " + o + " " + a(1); };
    const auto compare = [&](const char* o) { return "mask_of(" + infix(o) + ")"; };
    switch (t.op) {
      case Op::load: case Op::constant: break;
      case Op::cast: {
        const Held from = k_.terms[t.operands[0]].held;
        if (t.held == Held::mask) return "mask_of(" + a(0) + " != 0)";
        const std::string v = from == Held::mask ? "(" + a(0) + " & 1)" : a(0);
        return "__builtin_convertvector(" + v + ", " + std::string(type_of(t.held)) + ")";
      }
      case Op::rounded: return std::string(t.memory == ir::DType::bf16 ? "round_bf16(" : "round_f16(") + a(0) + ")";
      case Op::add: return infix("+");
      case Op::sub: return infix("-");
      case Op::mul: return infix("*");
      case Op::div: return infix("/");
      case Op::fma: return "vfma(" + a(0) + ", " + a(1) + ", " + a(2) + ")";
      case Op::neg: return "-" + a(0);
      case Op::abs: return call("vabs");
      case Op::sign: return call("vsign");
      case Op::reciprocal: return "1 / " + a(0);
      case Op::sqrt: return call("vsqrt");
      case Op::rsqrt: return "1 / vsqrt(" + a(0) + ")";
      case Op::exp: return call("vexp");
      case Op::exp2: return call("vexp2");
      case Op::expm1: return call("vexpm1");
      case Op::log: return call("vlog");
      case Op::log2: return call("vlog2");
      case Op::log10: return call("vlog10");
      case Op::log1p: return call("vlog1p");
      case Op::sin: return call("vsin");
      case Op::cos: return call("vcos");
      case Op::tan: return call("vtan");
      case Op::asin: return call("vasin");
      case Op::acos: return call("vacos");
      case Op::atan: return call("vatan");
      case Op::sinh: return call("vsinh");
      case Op::cosh: return call("vcosh");
      case Op::asinh: return call("vasinh");
      case Op::acosh: return call("vacosh");
      case Op::atanh: return call("vatanh");
      case Op::tanh: return call("vtanh");
      case Op::erf: return call("verf");
      case Op::erfc: return call("verfc");
      case Op::erf_plus_one: return call("verf_plus_one");
      case Op::sigmoid: return call("vsigmoid");
      case Op::pow: return call("vpow");
      case Op::atan2: return call("vatan2");
      case Op::floor: return call("vfloor");
      case Op::ceil: return call("vceil");
      case Op::round: return call("vround");
      case Op::trunc: return call("vtrunc");
      case Op::minimum: return call("minimum");
      case Op::maximum: return call("maximum");
      case Op::fmin: return call("fminimum");
      case Op::fmax: return call("fmaximum");
      case Op::eq: {
        if (const auto at = place_compared(t)) return *at;
        return compare("==");
      }
      case Op::ne: return compare("!=");
      case Op::lt: return compare("<");
      case Op::le: return compare("<=");
      case Op::gt: return compare(">");
      case Op::ge: return compare(">=");
      case Op::is_nan: return "mask_of(" + a(0) + " != " + a(0) + ")";
      case Op::logical_and: case Op::bit_and: return infix("&");
      case Op::logical_or: case Op::bit_or: return infix("|");
      case Op::logical_xor: case Op::bit_xor: return infix("^");
      case Op::logical_not: case Op::bit_not: return "~" + a(0);
      case Op::select: return "select(" + a(0) + ", " + a(1) + ", " + a(2) + ")";
      default: break;
    }
    return "an operation without text";   // does not compile: rules make none of the others
  }

  const Kernel& k_;
  int lanes_;
  std::string out_, head_;             ///< head_: what is named before the loops
  std::string row_count_;
  std::map<std::pair<const Access*, size_t>, std::string> step_;
  std::map<const Term*, std::string> constant_;
  std::vector<std::string> buffer_;
  std::vector<int> stage_;
  std::vector<std::string> name_;
  std::vector<bool> saved_;            ///< kept in memory from one loop over the row to the next
  std::set<TermId> row_done_;
  int last_stage_ = 0;
};

}  // namespace

Work work_of(const Kernel& k, int lanes) {
  const int64_t last = k.sizes.back();
  switch (k.form) {
    case Form::rows: return k.sums_blocks ? Work{k.rows() / k.sizes[k.sizes.size() - 2], k.inner() * k.sizes[k.sizes.size() - 2]} : Work{k.rows(), k.inner()};
    case Form::columns: {
      const int64_t width = kColumnVectors * lanes, rows = k.scan_rows ? k.scan_rows : k.rows();
      return {(k.inner() + width - 1) / width * (k.rows() / rows), rows * width};
    }
    case Form::pointwise: break;
  }
  if (has_blocks(k)) return {k.rows() * ((last + kBlock - 1) / kBlock), kBlock};
  const int64_t rows = rows_per_unit(k);
  return {(k.rows() + rows - 1) / rows, rows * last};
}

std::string emit_cpp(const Kernel& k, int lanes, std::vector<int64_t>* sizes) {
  Emitter emitter(k, lanes);
  std::string text = emitter.run();
  if (sizes) *sizes = std::move(emitter.sizes);
  return text;
}

Kernel without_names(const Kernel& k) {
  Kernel plain = k;
  plain.name = "k";
  plain.comment.clear();
  for (size_t i = 0; i < plain.buffers.size(); ++i) plain.buffers[i].name = (plain.buffers[i].is_written ? "out" : "in") + std::to_string(i) + "_" + std::string(ir::dtype_name(plain.buffers[i].dtype));
  for (Term& t : plain.terms) t.name.clear();
  return plain;
}

std::string structure(const Kernel& k) { return print(without_names(k)); }

}  // namespace cutaway::codegen
