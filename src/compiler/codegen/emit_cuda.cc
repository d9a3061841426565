#include "compiler/codegen/emit_cuda.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "compiler/codegen/names.h"

namespace cutaway::codegen {
namespace {

constexpr int64_t kProcessors = 132;        ///< of the machine that sizes are chosen for; others run the same text
constexpr int64_t kRowThreads = 128;        ///< of a block whose rows are shared by a warp or less
constexpr int64_t kMostKept = 64;           ///< registers of a thread for values of a row that are used again
constexpr int64_t kColumnLanes = 32, kColumnTurns = 8;   ///< a block of a column kernel: columns side by side, rows in turns

std::string_view cuda_type(Held h) {
  constexpr std::string_view kNames[] = {"float", "double", "int", "long", "bool"};
  return kNames[static_cast<size_t>(h)];
}
int64_t held_bytes(Held h) { return h == Held::f64 || h == Held::i64 ? 8 : 4; }

std::string_view cuda_memory_type(ir::DType t) {
  using ir::DType;
  switch (t) {
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::bf16: return "bf16_bits";
    case DType::f16: return "half_bits";
    case DType::i64: return "long";
    case DType::i32: return "int";
    case DType::i16: return "short";
    case DType::i8: return "signed char";
    case DType::boolean: return "bool";
    default: return "unsigned char";
  }
}
std::string to_memory(ir::DType t, const std::string& v) {
  if (t == ir::DType::bf16) return "memory_bf16(" + v + ")";
  if (t == ir::DType::f16) return "memory_f16(" + v + ")";
  return v;
}

std::string cuda_literal(const Term& t) {
  if (t.held == Held::mask) return t.integer ? "true" : "false";
  if (t.held == Held::i32) return t.integer == INT32_MIN ? "(-2147483647 - 1)" : t.integer < 0 ? "(" + std::to_string(t.integer) + ")" : std::to_string(t.integer);
  if (t.held == Held::i64) return t.integer == INT64_MIN ? "(-9223372036854775807l - 1)" : t.integer < 0 ? "(" + std::to_string(t.integer) + "l)" : std::to_string(t.integer) + "l";
  const bool single = t.held == Held::f32;
  if (std::isnan(t.number)) return single ? "F32_NAN" : "F64_NAN";
  if (std::isinf(t.number)) return std::string(t.number < 0 ? "(-" : "") + (single ? "F32_INF" : "F64_INF") + (t.number < 0 ? ")" : "");
  char text[48];
  std::snprintf(text, sizeof text, single ? "%.9g" : "%.17g", t.number);
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  if (single) s += "f";
  return std::signbit(t.number) ? "(" + s + ")" : s;
}

std::string text(int64_t n) { return std::to_string(n); }

/// The functions of CUDA, which have a form for each type: expf and exp.
const char* function_name(Op op) {
  switch (op) {
    case Op::sqrt: return "sqrt";
    case Op::exp: return "exp";
    case Op::exp2: return "exp2";
    case Op::expm1: return "expm1";
    case Op::log: return "log";
    case Op::log2: return "log2";
    case Op::log10: return "log10";
    case Op::log1p: return "log1p";
    case Op::sin: return "sin";
    case Op::cos: return "cos";
    case Op::tan: return "tan";
    case Op::asin: return "asin";
    case Op::acos: return "acos";
    case Op::atan: return "atan";
    case Op::sinh: return "sinh";
    case Op::cosh: return "cosh";
    case Op::asinh: return "asinh";
    case Op::acosh: return "acosh";
    case Op::atanh: return "atanh";
    case Op::tanh: return "tanh";
    case Op::erf: return "erf";
    case Op::erfc: return "erfc";
    case Op::pow: return "pow";
    case Op::atan2: return "atan2";
    case Op::floor: return "floor";
    case Op::ceil: return "ceil";
    case Op::round: return "rint";
    case Op::trunc: return "trunc";
    case Op::fma: return "fma";
    default: return nullptr;
  }
}

/// Everything that is not here has no text.
bool has_text(Op op) {
  switch (op) {
    case Op::load: case Op::constant: case Op::cast: case Op::rounded: case Op::position: case Op::index: case Op::index_wrapped: case Op::load_if: case Op::load_at:
    case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::neg: case Op::abs: case Op::sign: case Op::reciprocal: case Op::rsqrt:
    case Op::erf_plus_one: case Op::sigmoid: case Op::minimum: case Op::maximum: case Op::fmin: case Op::fmax:
    case Op::eq: case Op::ne: case Op::lt: case Op::le: case Op::gt: case Op::ge: case Op::is_nan:
    case Op::logical_and: case Op::logical_or: case Op::logical_xor: case Op::logical_not: case Op::bit_and: case Op::bit_or: case Op::bit_xor: case Op::bit_not:
    case Op::select: case Op::sum: case Op::prod: case Op::max: case Op::min: case Op::any: case Op::all:
      return true;
    default: return function_name(op) != nullptr;
  }
}

class CudaEmitter {
 public:
  explicit CudaEmitter(const Kernel& k) : k_(k), stage_(k.terms.size(), 0), name_(k.terms.size()), kept_(k.terms.size(), false) { launch_.alignment.assign(k.buffers.size(), 1); }

  CudaText run() {
    Names names;
    for (const Buffer& b : k_.buffers) buffer_.push_back(names.of(b.name));
    for (size_t i = 0; i < k_.terms.size(); ++i) name_[i] = k_.terms[i].op == Op::constant ? cuda_literal(k_.terms[i]) : k_.terms[i].name.empty() ? "t" + text(static_cast<int64_t>(i)) : names.of(k_.terms[i].name);
    index_ = is_large() ? "long" : "int";
    find_vector();
    switch (k_.form) {
      case Form::pointwise: pointwise(); break;
      case Form::rows: rows(); break;
      case Form::columns: columns(); break;
    }
    return {out_, launch_};
  }

 private:
  size_t last() const { return k_.sizes.size() - 1; }
  int64_t inner() const { return k_.sizes.back(); }
  int64_t total() const { return k_.rows() * k_.inner(); }

  /// Whether a place in a buffer, or a number of an element, may be beyond 32 bits.
  bool is_large() const {
    int64_t most = total();
    const auto reach = [&](const Access& a) {
      int64_t end = a.offset;
      for (size_t d = 0; d < k_.sizes.size(); ++d) end += std::abs(a.strides[d]) * (k_.sizes[d] - 1);
      most = std::max(most, end);
    };
    for (const Term& t : k_.terms)
      if (has_access(t.op)) reach(t.access);
    for (const Store& s : k_.stores) reach(s.access);
    return most > (int64_t{1} << 31) - (int64_t{1} << 22);   // a block's threads may count beyond the end
  }

  /// What may be read and written several elements at once: neighbours in memory, all of them or none.
  bool is_even(const Term& t) const {
    return reads_memory(t.op) && t.access.strides.back() == 1 && (t.operands.empty() || (k_.form != Form::columns && k_.terms[t.operands[0]].level != Level::element));
  }
  template <class F> void for_each_even(F&& f) const {
    for (const Term& t : k_.terms)
      if (is_even(t)) f(t.buffer, t.access, t.memory, t.op == Op::load_at ? divisor(t.operands[0]) : 0);
    for (const Store& s : k_.stores)
      if (s.access.strides.back() == 1) f(s.buffer, s.access, s.memory, int64_t{0});
  }
  /// A number that the term's value is surely divisible by; 0 for a value that is 0.
  int64_t divisor(TermId id) const {
    const Term& t = k_.terms[id];
    switch (t.op) {
      case Op::constant: return t.held == Held::i64 || t.held == Held::i32 ? std::abs(std::clamp<int64_t>(t.integer, -(int64_t{1} << 40), int64_t{1} << 40)) : 1;
      case Op::mul: return t.held == Held::i64 ? std::gcd(divisor(t.operands[0]), int64_t{1} << 20) * std::gcd(divisor(t.operands[1]), int64_t{1} << 20) : 1;
      case Op::add: case Op::sub: return std::gcd(divisor(t.operands[0]), divisor(t.operands[1]));
      case Op::select: return std::gcd(divisor(t.operands[1]), divisor(t.operands[2]));
      default: return 1;
    }
  }

  /// Elements that a thread takes at once: 16 bytes of the narrowest buffer, as far as sizes and strides allow.
  void find_vector() {
    int64_t narrow = 8;
    for_each_even([&](uint32_t, const Access&, ir::DType t, int64_t) { narrow = std::min<int64_t>(narrow, std::max<int64_t>(2, ir::dtype_bytes(t))); });
    int64_t v = k_.form == Form::columns ? std::max<int64_t>(1, 4 / narrow) : 16 / narrow;
    while (v > 1 && !allows(v)) v /= 2;
    if (k_.form == Form::pointwise)   // a small tensor is spread over more threads instead
      while (v > 1 && total() / v < kProcessors * 256) v /= 2;
    if (k_.form == Form::rows)
      while (v > 1 && inner() / v < 32) v /= 2;
    vector_ = v;
    for_each_even([&](uint32_t buffer, const Access&, ir::DType t, int64_t) {
      if (v > 1) launch_.alignment[buffer] = std::max<int64_t>(launch_.alignment[buffer], std::min<int64_t>(16, v * ir::dtype_bytes(t)));
    });
  }
  bool allows(int64_t v) const {
    if (inner() % v != 0) return false;
    bool ok = true;
    for_each_even([&](uint32_t, const Access& a, ir::DType t, int64_t further) {
      const int64_t step = std::min<int64_t>(v, 16 / std::min<int64_t>(16, ir::dtype_bytes(t)));   // elements of 16 bytes
      ok = ok && a.offset % step == 0 && further % step == 0;
      for (size_t d = 0; d + 1 < k_.sizes.size(); ++d) ok = ok && (k_.sizes[d] == 1 || a.strides[d] % step == 0);
    });
    return ok;
  }

  void head(const std::string& name, const std::string& more, int64_t threads) {
    out_ += "extern \"C\" __global__ void __launch_bounds__(" + text(threads) + ") " + name + "(";
    for (size_t i = 0; i < k_.buffers.size(); ++i) {
      const std::string type(cuda_memory_type(k_.buffers[i].dtype));
      out_ += (i ? ", " : "") + std::string(k_.buffers[i].is_written ? "" : "const ") + type + "* __restrict " + buffer_[i];
    }
    out_ += more + ") {\n";
    std::string sizes = "  constexpr " + index_ + " ";
    for (size_t d = 0; d < k_.sizes.size(); ++d) sizes += (d ? ", " : "") + ("N" + text(static_cast<int64_t>(d))) + " = " + text(k_.sizes[d]);
    out_ += sizes + ";   // the space, outermost first\n";
  }
  void title() {
    out_ += "// native." + k_.name + "\n";
    for (const std::string& line : k_.comment) out_ += "//   " + line + "\n";
  }

  /// d0, d1, … of a row.
  void outer_indices(const std::string& pad) {
    std::string rest = "row";
    for (size_t d = last(); d-- > 0;) {
      if (k_.sizes[d] == 1) continue;
      const bool outermost = std::all_of(k_.sizes.begin(), k_.sizes.begin() + static_cast<long>(d), [](int64_t s) { return s == 1; });
      out_ += pad + "const " + index_ + " d" + text(static_cast<int64_t>(d)) + " = " + (outermost ? rest : rest + " % N" + text(static_cast<int64_t>(d))) + ";\n";
      rest = "(" + rest + " / N" + text(static_cast<int64_t>(d)) + ")";
    }
  }
  std::string address(uint32_t buffer, const Access& a, const std::string& inside) const { return place(buffer_[buffer], a, inside); }
  std::string place(std::string s, const Access& a, const std::string& inside) const {
    if (a.offset) s += a.offset < 0 ? " - " + text(-a.offset) : " + " + text(a.offset);
    for (size_t d = 0; d + 1 < k_.sizes.size(); ++d)
      if (a.strides[d] != 0 && k_.sizes[d] != 1) s += " + d" + text(static_cast<int64_t>(d)) + (a.strides[d] == 1 ? "" : " * " + text(a.strides[d]));
    if (!inside.empty() && a.strides.back() != 0 && inner() != 1) s += " + " + (a.strides.back() == 1 ? inside : (inside.find(' ') == std::string::npos ? inside : "(" + inside + ")") + " * " + text(a.strides.back()));
    return s;
  }
  /// Where a term reads, as far as its access and its distance say.
  std::string source(const Term& t, const std::string& inside) const { return address(t.buffer, t.access, inside) + (t.op == Op::load_at ? " + " + name_[t.operands[0]] : ""); }
  /// What depends on the place of an element.
  std::string placed(const Term& t, const std::string& inside) const {
    if (t.op == Op::position) return "(long)(" + place("0", t.access, inside) + ")";
    const std::string read = "number(*(" + source(t, inside) + "))";
    return t.op == Op::load_if ? name_[t.operands[0]] + " ? " + read + " : " + zero(t.held) : read;
  }
  static std::string zero(Held h) { return h == Held::f32 ? "0.0f" : h == Held::f64 ? "0.0" : h == Held::mask ? "false" : h == Held::i64 ? "0l" : "0"; }
  std::string each() const { return vector_ == 1 ? "i" : "i + e"; }

  // --- the part that all forms share: what is done for the elements i to i + vector_
  struct Step {
    std::set<TermId> wanted;               ///< in order: operands come first
    std::vector<TermId> reductions;
    std::vector<const Store*> stores;
    int stage = 0;
  };
  bool is_read_at_once(const Term& t) const { return vector_ > 1 && is_even(t); }
  bool is_from_kept(TermId id, const Step& s) const { return kept_[id] && stage_[id] < s.stage; }
  void elements(const Step& s, const std::string& pad) {
    for (TermId id : s.wanted)
      if (is_read_at_once(k_.terms[id]) && !is_from_kept(id, s))
        out_ += pad + "const auto " + name_[id] + "_v = " + (early_.contains(id) ? "early_" + name_[id] + "[c];\n" : (k_.terms[id].op == Op::load_if ? "read_if<" + text(vector_) + ">(" + name_[k_.terms[id].operands[0]] + ", " : "read<" + text(vector_) + ">(") + source(k_.terms[id], "i") + ");\n");
    for (size_t n = 0; n < s.stores.size(); ++n)
      if (is_written_at_once(*s.stores[n])) out_ += pad + "Vec<" + std::string(cuda_memory_type(s.stores[n]->memory)) + ", " + text(vector_) + "> " + written_name(*s.stores[n]) + ";\n";
    std::string in = pad;
    if (vector_ > 1) {
      out_ += "#pragma unroll\n" + pad + "for (int e = 0; e < " + text(vector_) + "; ++e) {\n";
      in += "  ";
    }
    const std::string place = vector_ > 1 ? "c * " + text(vector_) + " + e" : "c";
    for (TermId id : s.wanted) {
      const Term& t = k_.terms[id];
      out_ += in + "const " + std::string(cuda_type(t.held)) + " " + name_[id] + " = ";
      if (is_from_kept(id, s)) out_ += "kept_" + name_[id] + "[" + place + "]";
      else if (is_read_at_once(t)) out_ += "number(" + name_[id] + "_v.at[e])";
      else if (has_access(t.op)) out_ += placed(t, each());
      else out_ += expression(t);
      out_ += ";\n";
    }
    for (TermId id : s.wanted)
      if (kept_[id] && stage_[id] == s.stage && k_.form == Form::rows) out_ += in + "kept_" + name_[id] + "[" + place + "] = " + name_[id] + ";\n";
    for (TermId r : s.reductions) {
      const Term& t = k_.terms[r];
      const std::string into = name_[r] + "so_far" + (k_.form == Form::columns && vector_ > 1 ? "[e]" : "");
      out_ += in + into + " = " + combine(t, into, name_[t.operands[0]]) + ";\n";
    }
    for (const Store* st : s.stores) {
      const std::string v = to_memory(st->memory, name_[st->term]);
      if (is_written_at_once(*st)) out_ += in + written_name(*st) + ".at[e] = " + v + ";\n";
      else out_ += in + "*(" + address(st->buffer, st->access, each()) + ") = " + v + ";\n";
    }
    if (vector_ > 1) out_ += pad + "}\n";
    for (const Store* st : s.stores)
      if (is_written_at_once(*st)) out_ += pad + "write<" + text(vector_) + ">(" + address(st->buffer, st->access, "i") + ", " + written_name(*st) + ");\n";
  }
  bool is_written_at_once(const Store& s) const { return vector_ > 1 && s.access.strides.back() == 1; }
  std::string written_name(const Store& s) const { return buffer_[s.buffer] + "_v"; }

  /// Terms that are the same for all elements of a row, once what they need is known.
  void row_terms(int stage, const std::string& pad) {
    for (TermId i = 0; i < k_.terms.size(); ++i) {
      const Term& t = k_.terms[i];
      if (t.level == Level::element || t.op == Op::constant || is_reduction(t.op) || row_done_.contains(i) || stage_[i] > stage) continue;
      row_done_.insert(i);
      out_ += pad + "const " + std::string(cuda_type(t.held)) + " " + name_[i] + " = " + (has_access(t.op) ? placed(t, "") : expression(t)) + ";\n";
    }
  }
  /// Element terms that must be computed to know this one; what is kept or known once a row ends the search.
  void want(TermId id, int stage, std::set<TermId>& wanted) const {
    if (k_.terms[id].level != Level::element || k_.terms[id].op == Op::constant || wanted.contains(id)) return;
    wanted.insert(id);
    if (kept_[id] && stage_[id] < stage) return;
    for (TermId o : k_.terms[id].operands) want(o, stage, wanted);
  }

  // --- pointwise
  void pointwise() {
    const int64_t units = total() / vector_, threads = units < kProcessors * 256 ? 128 : 256;
    launch_.threads = threads;
    launch_.blocks = (units + threads - 1) / threads;
    title();
    head(k_.name, "", threads);
    const int64_t per_row = inner() / vector_;
    out_ += "  const " + index_ + " unit = (" + index_ + ")blockIdx.x * " + text(threads) + " + (" + index_ + ")threadIdx.x;" + (vector_ > 1 ? "   // " + text(vector_) + " elements a thread\n" : "\n");
    if (units % threads != 0) out_ += "  if (unit >= " + text(units) + ") return;\n";
    if (k_.rows() == 1) {
      out_ += "  const " + index_ + " i = unit" + times(vector_) + ";\n";
    } else {
      out_ += "  const " + index_ + " row = unit / " + text(per_row) + ", i = unit % " + text(per_row) + times(vector_) + ";\n";
      outer_indices("  ");
    }
    row_terms(0, "  ");
    Step s;
    for (const Store& st : k_.stores) {
      s.stores.push_back(&st);
      want(st.term, 0, s.wanted);
    }
    elements(s, "  ");
    out_ += "}\n";
  }
  static std::string times(int64_t n) { return n == 1 ? "" : " * " + text(n); }

  // --- rows
  /// The loop over a row in which each term is first known. A reduction's value is known behind the loop of its operand.
  void find_stages() {
    for (size_t i = 0; i < k_.terms.size(); ++i) {
      for (TermId o : k_.terms[i].operands) stage_[i] = std::max(stage_[i], known(o));
      last_stage_ = std::max(last_stage_, stage_[i]);
    }
    for (const Store& s : k_.stores)
      if (!is_row_store(s)) last_stage_ = std::max(last_stage_, known(s.term));
  }
  int known(TermId id) const { return stage_[id] + (is_reduction(k_.terms[id].op) ? 1 : 0); }
  bool is_row_store(const Store& s) const { return s.access.strides.back() == 0; }

  /// What a later loop over the row uses again stays in registers: costly values first, then those that would be read again.
  void find_kept(int64_t in_thread) {
    std::vector<bool> costly(k_.terms.size(), false), used_again(k_.terms.size(), false);
    const auto use = [&](TermId o, int stage) {
      if (k_.terms[o].level == Level::element && k_.terms[o].op != Op::constant && stage_[o] < stage) used_again[o] = true;
    };
    for (size_t i = 0; i < k_.terms.size(); ++i) {
      const Term& t = k_.terms[i];
      for (TermId o : t.operands) {
        if (t.level == Level::element || is_reduction(t.op)) use(o, stage_[i]);
        if (k_.terms[o].level == Level::element) costly[i] = costly[i] || costly[o];
      }
      costly[i] = costly[i] || is_costly(t.op);
    }
    for (const Store& s : k_.stores)
      if (!is_row_store(s)) use(s.term, known(s.term));
    int64_t room = kMostKept;
    for (const bool first : {true, false}) {
      for (size_t i = 0; i < k_.terms.size(); ++i) {
        const int64_t need = in_thread * held_bytes(k_.terms[i].held) / 4;
        if (!used_again[i] || kept_[i] || costly[i] != first || need > room) continue;
        room -= need;
        kept_[i] = true;
      }
    }
  }

  void rows() {
    find_stages();
    const int64_t n = inner(), pieces = n / vector_;
    int64_t& sharing = sharing_;
    while (sharing < 32 && sharing < pieces) sharing *= 2;
    while (sharing < 1024 && n > sharing * 32 && pieces > sharing) sharing *= 2;
    const int64_t turns = (pieces + sharing - 1) / sharing;
    const bool fits = turns * vector_ <= 32;
    if (fits) find_kept(turns * vector_);
    const bool alone = sharing > 32;   // a block has one row
    int64_t rows_of_block = alone ? 1 : kRowThreads / sharing;
    while (rows_of_block > 1 && rows_of_block * sharing > 32 && k_.rows() <= kProcessors * 32) rows_of_block /= 2;   // few rows: spread over all processors
    const int64_t threads = rows_of_block * sharing;
    launch_.threads = threads;
    launch_.blocks = (k_.rows() + rows_of_block - 1) / rows_of_block;
    const bool is_uneven = k_.rows() % rows_of_block != 0;
    title();
    head(k_.name, "", threads);
    out_ += "  constexpr int T = " + text(sharing) + ";   // threads that share a row\n";
    if (alone) {
      out_ += "  const " + index_ + " row = blockIdx.x;\n  const int lane = threadIdx.x;\n";
    } else {
      out_ += "  const " + index_ + " place = (" + index_ + ")blockIdx.x * " + text(rows_of_block) + " + threadIdx.x / T;\n  const int lane = threadIdx.x % T;\n";
      if (is_uneven) out_ += "  const bool is_row = place < " + text(k_.rows()) + ";   // the others go along with the last row, and write nothing\n  const " + index_ + " row = is_row ? place : " + text(k_.rows() - 1) + ";\n";
      else out_ += "  const " + index_ + " row = place;\n";
    }
    outer_indices("  ");
    if (k_.rows() == 1) out_ += "  (void)row;\n";
    for (size_t i = 0; i < k_.terms.size(); ++i) {
      if (kept_[i]) out_ += "  " + std::string(cuda_type(k_.terms[i].held)) + " kept_" + name_[i] + "[" + text(turns * vector_) + "];\n";
      if (is_reduction(k_.terms[i].op)) out_ += alone ? "  __shared__ " + std::string(folded_type(k_.terms[i])) + " parts_" + name_[i] + "[T / 32];\n" : "";
    }
    if (fits && vector_ > 1) read_early(turns, pieces);
    for (int stage = 0; stage <= last_stage_; ++stage) row_loop(stage, turns, pieces, fits, alone, is_uneven && !alone);
    row_terms(last_stage_ + 1, "  ");
    for (const Store& s : k_.stores)
      if (is_row_store(s)) out_ += "  if (lane == 0" + std::string(is_uneven && !alone ? " && is_row" : "") + ") *(" + address(s.buffer, s.access, "") + ") = " + to_memory(s.memory, name_[s.term]) + ";\n";
    out_ += "}\n";
  }
  /// What a later loop alone reads (weights of a norm) is on its way from memory while the first loops work.
  void read_early(int64_t turns, int64_t pieces) {
    std::vector<int> first(k_.terms.size(), INT32_MAX);
    const auto use = [&](TermId o, int stage) { first[o] = std::min(first[o], stage); };
    for (size_t i = 0; i < k_.terms.size(); ++i)
      for (TermId o : k_.terms[i].operands) use(o, k_.terms[i].level == Level::element || is_reduction(k_.terms[i].op) ? std::max(stage_[i], 0) : 0);
    for (const Store& s : k_.stores) use(s.term, known(s.term));
    int64_t room = 24;   // registers
    for (TermId i = 0; i < k_.terms.size(); ++i) {
      const Term& t = k_.terms[i];
      const int64_t need = turns * vector_ * ir::dtype_bytes(t.memory) / 4;
      if (t.op != Op::load || !is_even(t) || kept_[i] || first[i] == INT32_MAX || first[i] < 1 || need > room) continue;
      room -= need;
      early_.insert(i);
      out_ += "  Vec<" + std::string(cuda_memory_type(t.memory)) + ", " + text(vector_) + "> early_" + name_[i] + "[" + text(turns) + "];\n";
      out_ += "#pragma unroll\n  for (int c = 0; c < " + text(turns) + "; ++c) {\n    const " + index_ + " i = (c * T + lane)" + times(vector_) + ";\n    ";
      if (turns * sharing_ != pieces) out_ += "if (i < N" + text(static_cast<int64_t>(last())) + ") ";
      out_ += "early_" + name_[i] + "[c] = read<" + text(vector_) + ">(" + source(t, "i") + ");\n  }\n";
    }
  }
  /// Truths are folded as numbers.
  static std::string_view folded_type(const Term& t) { return t.held == Held::mask ? "int" : cuda_type(t.held); }

  void row_loop(int stage, int64_t turns, int64_t pieces, bool unrolled, bool alone, bool is_uneven) {
    row_terms(stage, "  ");
    Step s;
    s.stage = stage;
    for (TermId i = 0; i < k_.terms.size(); ++i) {
      if (is_reduction(k_.terms[i].op) && stage_[i] == stage) { s.reductions.push_back(i); want(k_.terms[i].operands[0], stage, s.wanted); }
      if (kept_[i] && stage_[i] == stage) want(i, stage, s.wanted);
    }
    for (const Store& st : k_.stores) {
      if (is_row_store(st) || known(st.term) != stage) continue;
      s.stores.push_back(&st);
      want(st.term, stage, s.wanted);
    }
    if (s.reductions.empty() && s.stores.empty() && s.wanted.empty()) return;
    for (TermId r : s.reductions) out_ += "  " + std::string(cuda_type(k_.terms[r].held)) + " " + name_[r] + "so_far = " + identity(k_.terms[r]) + ";\n";
    const bool exact = turns * sharing_ == pieces;
    std::string pad = "  ";
    if (turns > 1) {
      out_ += std::string(unrolled ? "#pragma unroll\n" : "") + "  for (int c = 0; c < " + text(turns) + "; ++c) {\n    const " + index_ + " i = (" + "c * T + lane)" + times(vector_) + ";\n";
      pad = "    ";
    } else {
      out_ += "  {\n    constexpr int c = 0;\n    (void)c;\n    const " + index_ + " i = lane" + times(vector_) + ";\n";
      pad = "    ";
    }
    std::string condition;
    if (!exact) condition = "i < N" + text(static_cast<int64_t>(last()));
    if (is_uneven && !s.stores.empty() && s.reductions.empty()) condition += std::string(condition.empty() ? "" : " && ") + "is_row";
    if (!condition.empty()) {
      out_ += pad + "if (" + condition + ") {\n";
      pad += "  ";
    }
    if (is_uneven && !s.stores.empty() && !s.reductions.empty()) {   // both: the row is computed, and written where it is one
      const Step sums{s.wanted, s.reductions, {}, stage};
      elements(sums, pad);
      out_ += pad + "if (is_row) {\n";
      Step writes{{}, {}, s.stores, stage};
      for (const Store* st : s.stores) want(st->term, stage, writes.wanted);
      const std::vector<bool> kept = kept_;
      kept_.assign(kept_.size(), false);
      for (size_t i = 0; i < kept.size(); ++i) kept_[i] = kept[i] && stage_[i] < stage;
      elements(writes, pad + "  ");
      kept_ = kept;
      out_ += pad + "}\n";
    } else {
      elements(s, pad);
    }
    if (!condition.empty()) out_ += pad.substr(2) + "}\n";
    out_ += "  }\n";
    for (TermId r : s.reductions) {
      const Term& t = k_.terms[r];
      const std::string type(folded_type(t));
      out_ += "  const " + std::string(cuda_type(t.held)) + " " + name_[r] + " = row_fold<" + fold_name(t.op) + ", T, " + type + ">(" + name_[r] + "so_far, " + (alone ? "parts_" + name_[r] : "nullptr") + ");\n";
    }
  }
  static std::string fold_name(Op op) { return op == Op::sum ? "Sum" : op == Op::prod ? "Product" : op == Op::max ? "Max" : op == Op::min ? "Min" : op == Op::any ? "Any" : "All"; }
  static std::string identity(const Term& t) {
    Term c;
    c.held = t.held;
    switch (t.op) {
      case Op::max: c.number = -INFINITY; c.integer = t.held == Held::i32 ? INT32_MIN : INT64_MIN; break;
      case Op::min: c.number = INFINITY; c.integer = t.held == Held::i32 ? INT32_MAX : INT64_MAX; break;
      case Op::all: c.integer = 1; break;
      case Op::prod: c.number = 1; c.integer = 1; break;
      default: break;
    }
    return cuda_literal(c);
  }
  static std::string combine(const Term& t, const std::string& a, const std::string& b) {
    switch (t.op) {
      case Op::sum: return a + " + " + b;
      case Op::prod: return a + " * " + b;
      case Op::max: return "maximum(" + b + ", " + a + ")";
      case Op::min: return "minimum(" + b + ", " + a + ")";
      case Op::any: return a + " | " + b;
      default: return a + " & " + b;
    }
  }

  // --- columns
  void columns() {
    const int64_t width = kColumnLanes * vector_, n = inner(), row_count = k_.rows();
    const int64_t groups = (n + width - 1) / width;
    // As many blocks as fill the machine a few times, each with enough rows to be worth it.
    int64_t splits = std::clamp<int64_t>(kProcessors * 8 / groups, 1, (row_count + 63) / 64);
    const int64_t chunk = (row_count + splits - 1) / splits;
    splits = (row_count + chunk - 1) / chunk;
    launch_.blocks = groups;
    launch_.splits = splits;
    launch_.threads = kColumnLanes * kColumnTurns;
    Step s;
    std::vector<const Store*> column_stores;
    for (TermId i = 0; i < k_.terms.size(); ++i)
      if (is_reduction(k_.terms[i].op)) { s.reductions.push_back(i); want_any(k_.terms[i].operands[0], s.wanted); }
    for (const Store& st : k_.stores) {
      const bool is_column = k_.terms[st.term].level == Level::column;
      (is_column ? column_stores : s.stores).push_back(&st);
      if (!is_column) want_any(st.term, s.wanted);
    }
    const bool is_split = splits > 1;
    std::vector<int64_t> scratch_at;
    for (TermId r : s.reductions) {
      scratch_at.push_back(launch_.scratch_bytes);
      if (is_split) launch_.scratch_bytes += (splits * n * held_bytes(k_.terms[r].held) + 255) / 256 * 256;
    }
    title();
    head(k_.name, is_split ? ", char* __restrict scratch" : "", launch_.threads);
    const std::string inner_name = "N" + text(static_cast<int64_t>(last()));
    const std::string slot = "lane" + times(vector_) + (vector_ > 1 ? " + e" : "");
    out_ += "  const int lane = threadIdx.x % 32, turn = threadIdx.x / 32;   // columns side by side, rows in turns\n";
    out_ += "  const " + index_ + " i = ((" + index_ + ")blockIdx.x * 32 + lane)" + times(vector_) + ";\n";
    for (TermId r : s.reductions) {
      const std::string type(cuda_type(k_.terms[r].held));
      out_ += "  __shared__ " + type + " parts_" + name_[r] + "[" + text(kColumnTurns) + "][" + text(width) + "];\n";
      out_ += "  " + type + " " + name_[r] + "so_far" + (vector_ > 1 ? "[" + text(vector_) + "] = {};\n" : " = 0;\n");
    }
    out_ += "  const " + index_ + " first = " + (is_split ? "(" + index_ + ")blockIdx.y * " + text(chunk) : "0") + ", past = " + (is_split ? "first + " + text(chunk) + " < " + text(row_count) + " ? first + " + text(chunk) + " : " + text(row_count) : text(row_count)) + ";\n";
    out_ += n % width ? "  if (i < " + inner_name + ")\n" : "";
    out_ += "#pragma unroll 4\n  for (" + index_ + " row = first + turn; row < past; row += " + text(kColumnTurns) + ") {\n";
    outer_indices("    ");
    elements(s, "    ");
    out_ += "  }\n";
    fold_turns(s.reductions, slot);
    out_ += "  if (turn == 0" + (n % width ? " && i < " + inner_name : std::string()) + ") {\n";
    std::string pad = "    ";
    if (vector_ > 1) {
      out_ += "#pragma unroll\n    for (int e = 0; e < " + text(vector_) + "; ++e) {\n";
      pad = "      ";
    }
    add_turns(s.reductions, slot, pad);
    if (is_split) {
      for (size_t r = 0; r < s.reductions.size(); ++r) out_ += pad + scratch_of(s.reductions[r], scratch_at[r]) + "[(" + index_ + ")blockIdx.y * " + inner_name + " + " + each() + "] = " + name_[s.reductions[r]] + ";\n";
    } else {
      finish_columns(column_stores, pad);
    }
    if (vector_ > 1) out_ += "    }\n";
    out_ += "  }\n}\n";
    if (!is_split) return;
    launch_.end_blocks = (n + kColumnLanes - 1) / kColumnLanes;
    const int64_t vector = vector_;
    vector_ = 1;
    out_ += "// adds up what the blocks of native." + k_.name + " found\n";
    head(k_.name + "_end", ", const char* __restrict scratch", launch_.threads);
    out_ += "  const int lane = threadIdx.x % 32, turn = threadIdx.x / 32;\n  const " + index_ + " i = (" + index_ + ")blockIdx.x * 32 + lane;\n";
    for (TermId r : s.reductions) {
      const std::string type(cuda_type(k_.terms[r].held));
      out_ += "  __shared__ " + type + " parts_" + name_[r] + "[" + text(kColumnTurns) + "][32];\n  " + type + " " + name_[r] + "so_far = 0;\n";
    }
    out_ += "  if (i < " + inner_name + ")\n#pragma unroll 4\n    for (" + index_ + " part = turn; part < " + text(splits) + "; part += " + text(kColumnTurns) + ") {\n";
    for (size_t r = 0; r < s.reductions.size(); ++r) out_ += "      " + name_[s.reductions[r]] + "so_far += " + scratch_of(s.reductions[r], scratch_at[r], true) + "[part * " + inner_name + " + i];\n";
    out_ += "    }\n";
    fold_turns(s.reductions, "lane");
    out_ += "  if (turn == 0 && i < " + inner_name + ") {\n";
    add_turns(s.reductions, "lane", "    ");
    finish_columns(column_stores, "    ");
    out_ += "  }\n}\n";
    vector_ = vector;
  }
  std::string scratch_of(TermId r, int64_t at, bool is_read = false) const { return std::string("((") + (is_read ? "const " : "") + std::string(cuda_type(k_.terms[r].held)) + "*)(scratch + " + text(at) + "))"; }
  void fold_turns(const std::vector<TermId>& reductions, const std::string& slot) {
    std::string pad = "  ";
    if (vector_ > 1) {
      out_ += "#pragma unroll\n  for (int e = 0; e < " + text(vector_) + "; ++e) {\n";
      pad = "    ";
    }
    for (TermId r : reductions) out_ += pad + "parts_" + name_[r] + "[turn][" + slot + "] = " + name_[r] + "so_far" + (vector_ > 1 ? "[e]" : "") + ";\n";
    if (vector_ > 1) out_ += "  }\n";
    out_ += "  __syncthreads();\n";
  }
  void add_turns(const std::vector<TermId>& reductions, const std::string& slot, const std::string& pad) {
    for (TermId r : reductions) {
      out_ += pad + std::string(cuda_type(k_.terms[r].held)) + " " + name_[r] + " = parts_" + name_[r] + "[0][" + slot + "];\n";
      out_ += "#pragma unroll\n" + pad + "for (int t = 1; t < " + text(kColumnTurns) + "; ++t) " + name_[r] + " += parts_" + name_[r] + "[t][" + slot + "];\n";
    }
  }
  void finish_columns(const std::vector<const Store*>& stores, const std::string& pad) {
    std::set<TermId> wanted;
    for (const Store* st : stores) want_column(st->term, wanted);
    for (TermId i : wanted) out_ += pad + "const " + std::string(cuda_type(k_.terms[i].held)) + " " + name_[i] + " = " + expression(k_.terms[i]) + ";\n";
    for (const Store* st : stores) out_ += pad + "*(" + address(st->buffer, st->access, each()) + ") = " + to_memory(st->memory, name_[st->term]) + ";\n";
  }
  void want_any(TermId id, std::set<TermId>& wanted) const {
    if (k_.terms[id].op == Op::constant || !wanted.insert(id).second) return;
    for (TermId o : k_.terms[id].operands) want_any(o, wanted);
  }
  void want_column(TermId id, std::set<TermId>& wanted) const {
    if (k_.terms[id].op == Op::constant || is_reduction(k_.terms[id].op) || !wanted.insert(id).second) return;
    for (TermId o : k_.terms[id].operands) want_column(o, wanted);
  }

  std::string expression(const Term& t) const {
    const auto a = [&](size_t i) { return name_[t.operands[i]]; };
    const auto call = [&](const std::string& f) {
      std::string s = f + "(";
      for (size_t i = 0; i < t.operands.size(); ++i) s += (i ? ", " : "") + a(i);
      return s + ")";
    };
    const auto infix = [&](const char* o) { return a(0) + " " + o + " " + a(1); };
    const bool single = t.held == Held::f32;
    if (single && gives_narrow_alone()) {
      if (t.op == Op::exp) return call("quick_exp");
      if (t.op == Op::rsqrt && t.level == Level::element) return call("quick_rsqrt");   // once a row it costs nothing
      if (t.op == Op::sigmoid) return call("quick_sigmoid");
      if (t.op == Op::erf_plus_one) return call("quick_erf_plus_one");
    }
    if (const char* f = function_name(t.op)) return call(std::string(f) + (single ? "f" : ""));
    switch (t.op) {
      case Op::cast: return t.held == Held::mask ? a(0) + " != 0" : "(" + std::string(cuda_type(t.held)) + ")" + a(0);
      case Op::index: case Op::index_wrapped: return std::string(t.op == Op::index ? "index_of(" : "index_wrapped_of(") + a(0) + ", " + text(t.integer) + "l, " + where_indexed() + ")";
      case Op::rounded: return std::string(t.memory == ir::DType::bf16 ? "round_bf16(" : "round_f16(") + a(0) + ")";
      case Op::add: return infix("+");
      case Op::sub: return infix("-");
      case Op::mul: return infix("*");
      case Op::div: return infix("/");
      case Op::neg: return "-" + a(0);
      case Op::abs: return call("absolute");
      case Op::sign: return call("sign");
      case Op::reciprocal: return (single ? "1.0f / " : "1.0 / ") + a(0);
      case Op::rsqrt: return single ? "1.0f / sqrtf(" + a(0) + ")" : "1.0 / sqrt(" + a(0) + ")";
      case Op::erf_plus_one: return single ? "1.0f + erff(" + a(0) + ")" : "1.0 + erf(" + a(0) + ")";
      case Op::sigmoid: return call("sigmoid");
      case Op::minimum: return call("minimum");
      case Op::maximum: return call("maximum");
      case Op::fmin: return call("fminimum");
      case Op::fmax: return call("fmaximum");
      case Op::eq: return infix("==");
      case Op::ne: return infix("!=");
      case Op::lt: return infix("<");
      case Op::le: return infix("<=");
      case Op::gt: return infix(">");
      case Op::ge: return infix(">=");
      case Op::is_nan: return a(0) + " != " + a(0);
      case Op::logical_and: case Op::bit_and: return infix("&");
      case Op::logical_or: case Op::bit_or: return infix("|");
      case Op::logical_xor: case Op::bit_xor: return infix("^");
      case Op::logical_not: case Op::bit_not: return (t.held == Held::mask ? "!" : "~") + a(0);
      case Op::select: return a(0) + " ? " + a(1) + " : " + a(2);
      default: return "an operation without text";   // why_no_cuda has refused those
    }
  }

  bool gives_narrow_alone() const {
    return std::ranges::all_of(k_.stores, [](const Store& s) { return s.memory == ir::DType::bf16 || s.memory == ir::DType::f16; });
  }
  /// The user's line whose operator takes an index, as the arguments of the message.
  std::string where_indexed() const {
    std::string line;
    for (const std::string& c : k_.comment)
      if (line.empty() || (!takes_index(line) && takes_index(c))) line = c;
    const size_t end = line.find(": "), colon = line.rfind(':', end == std::string::npos ? end : end - 1);
    const bool has_place = end != std::string::npos && colon != std::string::npos && colon < end;
    const std::string place = has_place ? line.substr(0, end) : "", operators = has_place ? line.substr(end + 2) : line;
    const size_t blank = place.find(' ', colon == std::string::npos ? 0 : colon);
    const std::string number = has_place ? place.substr(colon + 1, blank == std::string::npos ? blank : blank - colon - 1) : "";
    const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos && number.size() < 10;
    return quoted(operators + ": an index is out of range") + ", " + quoted(has_place ? place.substr(0, colon) : "native." + k_.name) + ", " + (is_number ? number : "0") + ", " + quoted(blank == std::string::npos ? "" : place.substr(blank + 1));
  }
  static bool takes_index(const std::string& line) {
    for (const char* word : {"embedding", "index", "gather", "take", "nll_loss"})
      if (line.find(word) != std::string::npos) return true;
    return false;
  }
  static std::string quoted(const std::string& s) {
    std::string out = "\"";
    for (const char c : s)
      if (c == '"' || c == '\\') out += std::string("\\") + c;
      else if (static_cast<unsigned char>(c) >= 32 && static_cast<unsigned char>(c) < 127) out += c;
      else out += '?';
    return out + "\"";
  }

  const Kernel& k_;
  std::string out_, index_;
  CudaLaunch launch_;
  int64_t vector_ = 1;
  std::vector<std::string> buffer_;
  std::vector<int> stage_;
  std::vector<std::string> name_;
  std::vector<bool> kept_;             ///< in registers, from one loop over the row to the next
  std::set<TermId> row_done_;
  std::set<TermId> early_;             ///< read before the first loop over the row
  int last_stage_ = 0;
  int64_t sharing_ = 1;                ///< threads of a row
};

}  // namespace

std::optional<std::string> why_no_cuda(const Kernel& k) {
  for (const Term& t : k.terms)
    if (!has_text(t.op) || (k.form == Form::columns && is_reduction(t.op) && t.op != Op::sum)) return "no CUDA text for " + std::string(op_name(t.op));
  if (k.inner_dims != 1) return "rows of several dimensions";
  if (k.rows() * k.inner() / 128 > (int64_t{1} << 31) - 1) return "more elements than a launch has blocks";
  return std::nullopt;
}

CudaText emit_cuda(const Kernel& k) { return CudaEmitter(k).run(); }

}  // namespace cutaway::codegen
