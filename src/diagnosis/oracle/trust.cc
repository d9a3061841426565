#include "diagnosis/oracle/trust.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/json.h"
#include "core/capabilities/capabilities.h"

namespace cutaway::oracle {
namespace {

// Operators that read or write files or memory that is not a tensor's.
constexpr std::array kUnsafeOps = {"aten.from_file", "aten.save", "aten._from_file"};
constexpr std::array kNamespaces = {"aten", "prims", "prim", "sym", "_c10d_functional", "mkldnn", "mkl", "onednn", "quantized", "inductor", "torch"};
constexpr std::array kEnvironment = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_MAX_AUTOTUNE", "TORCHINDUCTOR_FREEZING", "TORCHINDUCTOR_CPP_WRAPPER",
                                     "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING", "TORCHINDUCTOR_FALLBACK_RANDOM", "PYTORCH_TVM_METASCHEDULE", "CUDA_LAUNCH_BLOCKING"};

template <class Table> bool contains(const Table& table, std::string_view word) { return std::find(table.begin(), table.end(), word) != table.end(); }

// Options are JSON text. A string could name a file, a compiler or a module; numbers, bools, null and the words below cannot.
bool is_plain(const std::string& value) {
  static const std::set<std::string> words = {"\"accuracy\"", "\"compile_error\"", "\"runtime_error\"", "\"default\"", "\"reduce-overhead\"", "\"max-autotune\"", "\"cpp\"", "\"triton\""};
  if (words.count(value)) return true;
  return !value.empty() && value.find_first_not_of("0123456789+-.eE") == std::string::npos ? true : value == "true" || value == "false" || value == "null";
}

std::string program_name(const std::string& text) {
  auto parsed = base::Json::parse(text, "program");
  const auto* fields = parsed.ok() ? parsed->as<base::Json::Object>() : nullptr;
  for (const char* key : {"module", "path"})
    if (fields)
      if (const auto it = fields->find(key); it != fields->end())
        if (const auto* name = it->second.as<std::string>(); name && !name->empty()) return *name;
  return "which it does not name";
}

}  // namespace

std::vector<std::string> needs_trust(const ir::Graph& graph, const bundle::Manifest& m) {
  std::set<std::string> found;
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    if (n.kind == ir::Node::Kind::call && n.target.rfind("torch.", 0) != 0 && n.target.rfind("Tensor.", 0) != 0 && n.target.rfind("operator.", 0) != 0 && n.target.rfind("math.", 0) != 0 &&
        n.target.rfind("builtins.", 0) != 0)
      found.insert("calls the Python function " + n.target);
    if (n.kind != ir::Node::Kind::op) return;
    const auto name = ir::split_op_name(n.target);
    const std::string space = n.target.substr(0, n.target.find('.'));
    const std::string without_overload = name ? ir::join_op_name(name->name, "") : n.target;
    if (contains(kUnsafeOps, without_overload)) found.insert("runs the operator " + n.target + ", which touches files");
    else if (!contains(kNamespaces, space)) found.insert("runs the operator " + n.target + " of the library " + space);
  });
  for (const std::string& l : m.libraries) found.insert("imports the module " + l);
  const std::string backend = std::string(capabilities::name_of(m.backend));
  if (!m.backend.empty() && capabilities::row_of(backend).needs_trust) found.insert("compiles with the backend " + m.backend + capabilities::nearest(backend));
  for (const auto& [k, v] : m.options)
    if (!is_plain(v)) found.insert("sets the option " + k + " to " + v);
  for (const auto& [k, v] : m.environment)
    if (!contains(kEnvironment, k)) found.insert("sets the environment variable " + k + " to " + v);
  if (const auto program = m.extra.find("program"); program != m.extra.end() && (backend == "live" || m.extra.count("operators_of_the_program")))
    found.insert("runs the program that it comes from, " + program_name(program->second));
  if (m.extra.count("backend_source")) found.insert("runs Python source text that the bundle carries (its backend)");
  return {found.begin(), found.end()};
}

}  // namespace cutaway::oracle
