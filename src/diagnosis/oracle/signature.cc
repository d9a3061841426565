#include "diagnosis/oracle/signature.h"

#include <regex>

#include "core/ir/graph.h"

namespace cutaway::oracle {
namespace {

constexpr size_t kMaxMessage = 400;
constexpr size_t kMaxScanned = 20'000;   // std::regex recurses; messages can hold whole generated files

struct Mask { std::regex pattern; const char* replacement; };

const std::vector<Mask>& masks() {
  using R = std::regex;
  static const std::vector<Mask> table = {
      {R("0x[0-9a-fA-F]+"), "ADDR"},
      {R("(/[\\w.+-]+){2,}"), "PATH"},                               // absolute paths
      {R("\\b(line|pid|lineno) \\d+"), "$1 N"},
      {R("\\b(buf|arg|primals|tangents|getitem|tmp|xindex|op|fused|view|permute|add|mul|relu|mm|addmm|sub|div|convert_element_type|expand|clone|unsqueeze|squeeze|sum|mean|var_mean|rsqrt|sin|cos|tanh|sigmoid|where|full|embedding|t|select|slice|cat|bmm|_softmax|softmax|native_layer_norm)_?\\d+(_\\d+)*\\b"), "$1_N"},
      {R("\\b(cpp|triton)_(fused|poi|red|per)\\w*"), "KERNEL"},
      {R("\\bc[0-9a-z]{40,}\\b"), "HASH"},
      {R("%[A-Za-z_][\\w.]*"), "%V"},
      {R("\\[[-\\d, sx*+]*\\]"), "[N]"},                              // sizes
      {R("\\([-\\d, ]+\\)"), "(N)"},
      {R("[-+]?\\b\\d+(\\.\\d+)?([eE][-+]?\\d+)?\\b"), "N"},
  };
  return table;
}

}  // namespace

std::string normalise_message(std::string_view message) {
  // The first line that says something: what follows is usually the generated code, the stack, or advice.
  std::string text(message.substr(0, kMaxScanned));
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  text.erase(0, begin);
  if (const size_t end = text.find('\n'); end != std::string::npos) {
    // "CppCompileError: C++ compile error" followed by details: the first line is enough; a bare header line gets the next one too.
    std::string rest = text.substr(end + 1);
    text.resize(end);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.pop_back();
    if (text.size() < 12 || text.back() == ':') {
      const size_t from = rest.find_first_not_of(" \t\r\n");
      if (from != std::string::npos) text += " " + rest.substr(from, rest.find('\n', from) - from);
    }
  }
  if (text.size() > 2000) text.resize(2000);
  for (const Mask& m : masks()) text = std::regex_replace(text, m.pattern, m.replacement);
  std::string out;
  for (char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (space && (out.empty() || out.back() == ' ')) continue;
    out += space ? ' ' : c;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (out.size() > kMaxMessage) out.resize(kMaxMessage);
  return out;
}

std::string operator_in(std::string_view message) {
  const std::string text(message.substr(0, kMaxScanned));
  static const std::regex dotted("\\b(?:torch\\.ops\\.)?(aten|prims|_c10d_functional|[a-z][a-z0-9_]*)\\.([A-Za-z_]\\w*)\\.(default|[A-Za-z_]\\w*)\\b");
  static const std::regex colons("\\b(aten|prims|[a-z][a-z0-9_]*)::([A-Za-z_]\\w*)(?:\\.([A-Za-z_]\\w*))?");
  std::smatch m;
  static const std::regex target("target: (?:torch\\.ops\\.)?([a-z][a-z0-9_]*)\\.([A-Za-z_]\\w*)\\.(\\w+)");   // Inductor's LoweringException
  if (std::regex_search(text, m, target)) return ir::join_op_name(m[1].str() + "::" + m[2].str(), m[3] == "default" ? "" : m[3].str());
  for (auto it = std::sregex_iterator(text.begin(), text.end(), dotted); it != std::sregex_iterator(); ++it)
    if ((*it)[1] == "aten" || (*it)[1] == "prims") return ir::join_op_name((*it)[1].str() + "::" + (*it)[2].str(), (*it)[3] == "default" ? "" : (*it)[3].str());
  if (std::regex_search(text, m, colons) && (m[1] == "aten" || m[1] == "prims")) return ir::join_op_name(m[1].str() + "::" + m[2].str(), m[3].str());
  static const std::regex ours("\\b(aten|prims)\\.([A-Za-z_]\\w*)(?:\\.([A-Za-z_]\\w*))?\\b");
  if (std::regex_search(text, m, ours)) return m[0].str();
  return "";
}

bool is_same_failure(const bundle::FailureSignature& wanted, const bundle::FailureSignature& got, std::string_view full_message, std::string_view match) {
  if (wanted.kind != got.kind) return false;
  if (!match.empty()) return std::regex_search(std::string(full_message.substr(0, kMaxScanned)), std::regex(std::string(match)));
  if (wanted.kind == "exception") return wanted.type == got.type && wanted.message == got.message;
  if (wanted.kind == "crash") return wanted.signal == got.signal;
  return true;   // hang, memory, accuracy
}

std::string describe(const bundle::FailureSignature& s) {
  if (s.kind == "accuracy") return "wrong numbers" + (s.message.empty() ? "" : ": " + s.message);
  if (s.kind == "hang") return "hangs";
  if (s.kind == "memory") return "runs out of memory";
  std::string out = s.kind;
  if (!s.type.empty()) out += " " + s.type;
  if (!s.signal.empty()) out += " " + s.signal;
  if (!s.op.empty()) out += " in " + s.op;
  if (!s.message.empty()) out += ": " + s.message;
  return out;
}

base::Status check_pattern(std::string_view match) {
  try {
    std::regex compiled{std::string(match)};
  } catch (const std::regex_error& e) {
    return base::Error{"--match: not a regular expression", "", e.what(), "quote special characters with a backslash", ""};
  }
  return {};
}

}  // namespace cutaway::oracle
