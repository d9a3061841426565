#include "diagnosis/oracle/signature.h"

#include <regex>

#include "core/ir/graph.h"
#include "diagnosis/oracle/mask.h"

namespace cutaway::oracle {
namespace {

constexpr size_t kMaxMessage = 400;
constexpr size_t kMaxScanned = 20'000;   // std::regex recurses; messages can hold whole generated files

constexpr size_t kMaxLine = 2000;

std::string_view trimmed(std::string_view s) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = s.find_first_not_of(kSpace);
  return begin == s.npos ? std::string_view() : s.substr(begin, s.find_last_not_of(kSpace) - begin + 1);
}

// A type of tensors as Python writes it. torch translates its own names ("CPUFloatType") on the way to Python, and not for C++.
std::string in_pythons_words(const std::string& line) {
  static const std::regex type("(?:Variable\\[)?\\b(Sparse|Quantized)?(CPU|CUDA)(Byte|Char|Double|Float|Int|Long|Short|Half|BFloat16|Bool|ComplexFloat|ComplexDouble)Type\\b\\]?");
  std::string out;
  auto at = line.cbegin();
  for (std::sregex_iterator it(line.begin(), line.end(), type), end; it != end; ++it) {
    const std::smatch& m = *it;
    const bool is_wrapped = m.str().starts_with("Variable[");   // then its closing bracket belongs to it
    out.append(at, m[0].first).append("torch.").append(m[2] == "CUDA" ? "cuda." : "").append(m[1] == "Sparse" ? "sparse." : m[1] == "Quantized" ? "quantized." : "").append(m[3].str()).append("Tensor");
    at = m[0].second;
    if (!is_wrapped && *(at - 1) == ']') --at;
  }
  return out.append(at, line.cend());
}

// Takes the next line that holds something off the front; empty at the end.
std::string_view next_line(std::string_view& text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!line.empty()) return line;
  }
  return {};
}

// The rest of the first line that has `word` in it, with the word.
std::string_view line_with(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  return at == text.npos ? std::string_view() : trimmed(text.substr(at, text.find('\n', at) - at));
}

// What a message says in one line. `write` is what becomes of each of its parts.
std::string summary(std::string_view message, std::string (*write)(std::string_view)) {
  // The first line says what; what follows is generated code, a stack, or advice, with three exceptions that tell failures apart:
  // what a bare header line introduces, the operator that Inductor was lowering, and the first complaint of a C++ compiler.
  std::string_view rest = message.substr(0, kMaxScanned);
  std::string text = in_pythons_words(std::string(next_line(rest).substr(0, kMaxLine)));
  constexpr size_t kBareHeader = 12;
  if (text.size() < kBareHeader || text.back() == ':')
    if (const std::string_view more = next_line(rest); !more.empty()) text += " " + std::string(more.substr(0, kMaxLine));
  const std::string_view target = line_with(rest, "target: ");
  std::string_view complaint = line_with(rest, ": error: ");
  if (complaint.empty()) complaint = line_with(rest, ": fatal error: ");
  std::string out = write(text);
  if (!target.empty()) out += " | " + write(target.substr(0, kMaxLine));
  // Where the first line quotes the complaint, once is enough.
  if (!complaint.empty())
    if (const std::string more = write(complaint.substr(2, kMaxLine)); out.find(more.substr(more.find(' ') + 1)) == out.npos) out += " | " + more;
  if (out.size() > kMaxMessage) {
    out.resize(kMaxMessage);
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();   // not in the middle of a character
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
  }
  return out;
}

std::string as_it_is(std::string_view line) { return std::string(line); }

}  // namespace

std::string normalise_message(std::string_view message) { return summary(message, mask_line); }

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
  if (wanted.kind == "accuracy") {
    if (wanted.type.empty() || wanted.type == got.type) return true;   // older bundles do not say what is off
    // A value that is a little off may show in the gradients of a whole model alone; by itself the operator's own result shows it.
    constexpr std::string_view kGradients = "gradients of ", kValues = "values of ";
    return wanted.type.starts_with(kGradients) && got.type.starts_with(kValues) && wanted.type.substr(kGradients.size()) == got.type.substr(kValues.size());
  }
  return true;   // hang, memory
}

std::string describe(const bundle::FailureSignature& s) {
  if (s.kind == "accuracy") {
    const bool is_numbers = s.type.empty() || s.type.find(" of ") != s.type.npos;
    if (is_numbers)
      return std::string("wrong numbers") + (s.type.starts_with("gradients") ? " in gradients" : s.type.starts_with("inputs") ? " in inputs after the run" : "") + (s.message.empty() ? "" : ": " + s.message);
    std::string_view reason = s.message;
    for (const std::string& again : {"other " + s.type + ": ", "another " + s.type + ": "})
      if (reason.starts_with(again)) reason.remove_prefix(again.size());
    return "wrong " + s.type + (reason.empty() ? "" : ": " + std::string(reason));
  }
  if (s.kind == "hang") return "hangs";
  if (s.kind == "memory") return "runs out of memory";
  std::string out = s.kind;
  if (!s.type.empty()) out += " " + s.type;
  if (!s.signal.empty()) out += " " + s.signal;
  if (!s.op.empty()) out += " in " + s.op;
  if (!s.message.empty()) out += ": " + s.message;
  return out;
}

std::string describe(const bundle::FailureSignature& s, std::string_view message) {
  bundle::FailureSignature shown = s;
  if (s.kind != "exception" || s.message.empty()) return describe(s);
  if (const std::string type = s.type + ": "; message.starts_with(type)) message.remove_prefix(type.size());
  if (normalise_message(message) == s.message) shown.message = summary(message, as_it_is);
  return describe(shown);
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
