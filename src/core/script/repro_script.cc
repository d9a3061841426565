#include "core/script/repro_script.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/capabilities/capabilities.h"
#include "core/script/python_literal.h"
#include "core/script/repro_text.h"
#include "core/script/script.h"

namespace cutaway::script {
namespace {

std::string python_json(const base::Json& j) {
  if (j.is_null()) return "None";
  if (auto* b = j.as<bool>()) return *b ? "True" : "False";
  if (auto* d = j.as<double>()) return python_float(*d);
  if (auto* s = j.as<std::string>()) return python_string(*s);
  std::vector<std::string> parts;
  if (auto* a = j.as<base::Json::Array>()) {
    for (const base::Json& item : *a) parts.push_back(python_json(item));
    return "[" + base::join(parts) + "]";
  }
  if (auto* o = j.as<base::Json::Object>()) {
    for (const auto& [key, item] : *o) parts.push_back(python_string(key) + ": " + python_json(item));
    return "{" + base::join(parts) + "}";
  }
  return j.text();   // integers
}

/// Whether an operator may draw random numbers, by its name; rather one too many.
bool may_draw(const ir::Graph& graph) {
  static constexpr std::string_view kWords[] = {"dropout", "rand", "bernoulli", "normal_", "multinomial", "uniform", "exponential", "poisson", "rrelu", "attention"};
  bool draws = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) { draws = draws || std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view w) { return n.target.find(w) != n.target.npos; }); });
  return draws;
}

base::Result<std::string> python_options(const bundle::Manifest& m, bool as_eager) {
  std::vector<std::string> parts;
  if (as_eager && !m.options.count("fallback_random")) parts.push_back("\"fallback_random\": True");   // drawn in Inductor's own order they differ, which is not a bug
  for (const auto& [key, text] : m.options) {
    CUTAWAY_TRY_ASSIGN(const base::Json value, base::Json::parse(text, key));
    parts.push_back(python_string(key) + ": " + python_json(value));
  }
  return "{" + base::join(parts) + "}";
}

bool is_dotted_name(std::string_view text) {
  for (;;) {
    const size_t dot = text.find('.');
    if (!is_python_identifier(text.substr(0, dot))) return false;
    if (dot == text.npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// {0: [0, 2]}: which sizes of which inputs torch.compile is to take for symbols.
std::string python_dynamic_dimensions(const ir::Graph& graph) {
  std::vector<std::string> items;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Type& type = graph.value(graph.inputs[i].value).type;
    std::vector<std::string> dimensions;
    for (size_t d = 0; type.is_tensor() && d < type.tensor.sizes.size(); ++d)
      if (type.tensor.sizes[d].is_symbolic()) dimensions.push_back(std::to_string(d));
    if (!dimensions.empty()) items.push_back(std::to_string(i) + ": [" + base::join(dimensions) + "]");
  }
  return "{" + base::join(items) + "}";
}

std::string_view first_word(std::string_view backend) { return capabilities::name_of(backend); }

// The program that a bundle comes from, as its manifest tells: what the backend is an object of.
struct Program {
  std::string module, name, text, process, input;
  std::vector<std::string> arguments;
  int64_t compilation = 0;
  static std::optional<Program> of(const bundle::Manifest& m) {
    const auto found = m.extra.find("program");
    if (found == m.extra.end()) return std::nullopt;
    auto parsed = base::Json::parse(found->second, "program");
    const auto* fields = parsed.ok() ? parsed->as<base::Json::Object>() : nullptr;
    if (!fields) return std::nullopt;
    const auto field = [&](const char* key) { const auto it = fields->find(key); return it == fields->end() ? nullptr : &it->second; };
    const auto text = [&](const char* key) { const base::Json* f = field(key); const auto* s = f ? f->as<std::string>() : nullptr; return s ? *s : std::string(); };
    Program p{text("module"), std::filesystem::path(text("path")).filename().string(), text("text"), text("process"), text("input"), {}, 0};
    if (const base::Json* f = field("arguments"); f && f->as<base::Json::Array>())
      for (const base::Json& word : *f->as<base::Json::Array>())
        if (const auto* w = word.as<std::string>()) p.arguments.push_back(*w);
    if (const base::Json* f = field("compilation"); f && f->as<int64_t>()) p.compilation = *f->as<int64_t>();
    return p;
  }
  /// Its backends can be reached by torch.compile alone.
  bool is_within_reach(const bundle::Manifest& m) const { return process.empty() && compilation > 0 && m.stage != "aot" && (!module.empty() ? is_dotted_name(module) : !text.empty()); }
};

bool is_live_backend(const bundle::Manifest& m) { return first_word(m.backend) == "live"; }
bool has_operators_of_program(const bundle::Manifest& m) { return m.extra.count("operators_of_the_program") > 0; }

// How the script names its compiler: torch's by a string, others by an import, by the source text that the bundle carries, or by running the
// program that makes it.
struct BackendText {
  std::string definition, expression;
  bool is_torch = false;
  std::optional<Program> program;   // the graph is checked inside of it
};
base::Result<BackendText> backend_text(const bundle::Manifest& m) {
  const std::string_view name = m.backend;
  const std::string_view word = first_word(name);
  if (!runs_with_torch_alone(m)) return BackendText{};
  std::optional<Program> program;
  if (word == "live" || has_operators_of_program(m)) program = Program::of(m);
  if (word == "live") return BackendText{"", "None  # that of the program", false, std::move(program)};
  if (word == "python") {
    const size_t colon = name.rfind(':');
    const std::string_view module = colon > 7 ? name.substr(7, colon - 7) : std::string_view(), attribute = name.substr(colon + 1);
    if (!is_dotted_name(module) || !is_dotted_name(attribute))
      return base::Error{.what = "the backend " + base::quote(name) + " is not of the form python:module:attribute"};
    return BackendText{"", "operator.attrgetter(" + python_string(attribute) + ")(importlib.import_module(" + python_string(module) + "))", false, std::move(program)};
  }
  if (word == "source") {
    const auto found = m.extra.find("backend_source");
    const std::string_view function = word.size() < name.size() ? name.substr(7) : std::string_view();
    if (found == m.extra.end() || !is_python_identifier(function)) return base::Error{.what = "the bundle has no source text for its backend " + base::quote(name)};
    CUTAWAY_TRY_ASSIGN(const base::Json text, base::Json::parse(found->second, "backend_source"));
    if (!text.as<std::string>()) return base::Error{.what = "the source text of the backend is not a string"};
    return BackendText{"# The backend, as the program defined it.\n" + *text.as<std::string>() + "\n\n", std::string(function), false, std::move(program)};
  }
  if (name.empty()) return base::Error{.what = "the bundle names no backend"};
  return BackendText{"", python_string(name), true, std::move(program)};
}

// The program's text, or the module to import, and how it runs up to where the graph is checked.
std::string program_text(const Program& p, bool is_backend, bool is_own) {
  std::vector<std::string> arguments;
  for (const std::string& a : p.arguments) arguments.push_back(python_string(a));
  const std::string why = is_backend ? "The backend is an object that the program makes while it runs" : "Operators of the graph are the program's own";
  std::string out = "# " + why + ". " + (p.module.empty() ? "This file carries the text of " + p.name + ",\n# which" : "This file imports the module " + p.module + ",\n# which") +
                    " runs up to its compilation number COMPILATION; the check happens there.\n";
  if (p.module.empty()) out += "PROGRAM = " + python_string(p.text) + "\n";
  out += "NAME = " + python_string(p.module.empty() ? p.name : p.module) + "\nARGUMENTS = [" + base::join(arguments) + "]\nCOMPILATION = " + std::to_string(p.compilation) + "\n";
  if (!p.input.empty()) out += "INPUT = " + python_string(p.input) + "  # what it reads\n";
  out += kRunProgram;
  if (is_own) out += kCountOwn;
  if (!p.input.empty()) out += kGiveInput;
  return out + (p.module.empty() ? kExecProgram : kExecModule);
}

/// Around the backward pass: as recorded, and autocast off where it is on around the call alone.
std::string python_backward_state(const ir::RegionState& around, ir::RegionState backward) {
  for (const auto& a : around.autocast)
    if (std::none_of(backward.autocast.begin(), backward.autocast.end(), [&](const auto& b) { return b.device == a.device; })) {
      backward.autocast.push_back(a);
      backward.autocast.back().enabled = false;
    }
  return backward.is_default() ? "contextlib.nullcontext()" : python_state(backward);
}

/// Settings of the process as calls of torch.
std::vector<std::string> python_process(const std::map<std::string, std::string>& process) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : process) {
    const std::string flag = value == "0" ? "False" : "True";
    if (name == "default_dtype") {
      if (const auto dtype = ir::dtype_from_name(value)) lines.push_back("torch.set_default_dtype(" + python_dtype(*dtype) + ")");
    } else if (name == "deterministic_algorithms") {
      lines.push_back("torch.use_deterministic_algorithms(" + flag + ", warn_only=" + (value == "2" ? "True" : "False") + ")");
    } else if (name == "float32_matmul_precision") {
      lines.push_back("torch.set_float32_matmul_precision(" + python_string(value) + ")");
    } else if (name == "flush_denormal") {
      lines.push_back("torch.set_flush_denormal(" + flag + ")");
    } else if (name == "threads") {
      lines.push_back("torch.set_num_threads(int(" + python_string(value) + "))");
    } else if (name == "compilations" || name == "calls" || name == "default_device") {   // around the compiled code alone
      continue;
    } else if (is_python_identifier(name)) {
      lines.push_back("torch._C._set_" + name + "(" + flag + ")");
    }
  }
  return lines;
}

// Seconds after which a hang counts as one: what minify allowed its candidates, where it has said so.
std::string patience(const bundle::Manifest& m) {
  if (const auto found = m.extra.find("patience_s"); found != m.extra.end())
    if (auto parsed = base::Json::parse(found->second, "patience_s"); parsed.ok() && (parsed->as<int64_t>() || parsed->as<double>())) return found->second;
  return "120";
}

}  // namespace

bool runs_with_torch_alone(const bundle::Manifest& m) {
  const std::string_view word = first_word(m.backend);
  if (word == "live" || has_operators_of_program(m))
    if (const auto program = Program::of(m); !program || !program->is_within_reach(m)) return false;
  return capabilities::row_of(m.backend).is_torchs;
}

std::string program_in_script(const bundle::Manifest& m) {
  const bool is_live = first_word(m.backend) == "live";
  const auto program = is_live || has_operators_of_program(m) ? Program::of(m) : std::nullopt;
  if (!program || !program->is_within_reach(m)) return "";
  return program->module.empty() ? "it carries " + program->name + " and runs it up to there" : "it imports the module " + program->module;
}

base::Result<std::string> to_repro_script(const ir::Graph& graph, const bundle::Manifest& m, const std::string& blob_folder) {
  CUTAWAY_TRY_ASSIGN(const BackendText backend, backend_text(m));
  const bool after_aot = m.stage == "aot";
  const bool is_accuracy = m.failure.kind == "accuracy" || (m.failure.kind.empty() && !m.accuracy.empty());
  CUTAWAY_TRY_ASSIGN(const std::string settings, python_options(m, is_accuracy && capabilities::row_of(m.backend).randomness == capabilities::Randomness::own && may_draw(graph)));

  ScriptOptions options;
  options.seed = m.seed;
  options.title = m.failure.kind.empty() ? "graph " + m.name + " with " + m.backend : m.failure.kind + " " + m.failure.type + m.failure.signal + " with " + m.backend + ", graph " + m.name;
  options.usage = kReproUsage;
  options.blob_folder = blob_folder;
  options.imports = {"os", "sys", "traceback"};
  std::string main;
  if (backend.expression.empty()) {
    options.imports = {"sys"};
    options.usage = "It shows the graph and its inputs; the failure shows with `cutaway run` on the\nfolder of this file. Exit status: 2.";
    const bool is_ours = !is_live_backend(m) && !has_operators_of_program(m);
    options.main_part = "if __name__ == \"__main__\":\n    print(" +
                        python_string("the backend " + m.backend + (is_ours ? " is a part of Cutaway, not of torch" : " lives in the program that this graph comes from") + "; run: cutaway run on the folder of this file") +
                        ", file=sys.stderr)\n    sys.exit(2)\n";
    return to_python(graph, m.inputs, options);
  }
  for (const std::string& library : m.libraries) {
    if (!is_dotted_name(library)) return base::Error{.what = base::quote(library) + " is no name of a module"};
    main += "import " + library + "  # operators of the graph\n";
  }
  if (!m.libraries.empty()) main += "\n\n";
  main += backend.definition;
  main += "BACKEND = " + backend.expression + "\nOPTIONS = " + settings + "\nSEED = " + std::to_string(m.seed) + "\n";
  if (backend.expression.find("importlib") != std::string::npos) { options.imports.push_back("importlib"); options.imports.push_back("operator"); }
  const bool is_exit = m.failure.kind == "crash" && m.failure.signal.starts_with("exit ");
  if (is_exit) main += "ENDING = " + python_string(m.failure.signal) + "\n";
  std::vector<std::string> generators;
  for (const auto& [device, state] : m.generators) generators.push_back(python_string(device) + ": " + python_string(state));
  main += "GENERATORS = {" + base::join(generators) + "}\n";
  const bool expects_type = m.failure.kind == "exception" || (m.failure.kind == "accuracy" && !m.failure.type.empty());
  main += "EXPECTED = " + (expects_type ? python_string(m.failure.type) : std::string("None")) + "\n";
  if (is_accuracy) main += std::string("STRICT = ") + (m.accuracy == "strict" ? "True" : "False") + "\nTOLERANCE = 1e-3\nSEES_LAYOUT = " + (after_aot ? "False" : "True") + "\n";
  if (m.failure.kind == "hang") main += "PATIENCE = " + patience(m) + "  # seconds after which it counts as hanging\n";

  if (!after_aot && m.tracing_mode == "symbolic") {
    main += "DYNAMIC = " + python_dynamic_dimensions(graph) + "  # input -> dimensions with symbolic sizes\n";
    main += kCompileAfterCaptureDynamic;
    options.imports.push_back("torch._dynamo");
  } else if (!after_aot && is_accuracy && m.failure.type == "structure") {
    main += kCompileByHand;
    options.imports.push_back("torch._dynamo");
  } else if (!after_aot) {
    main += kCompileAfterCapture;
  } else if (backend.is_torch && capabilities::row_of(m.backend).is_inductor) {
    main += kCompileInnerInductor;
    options.imports.push_back("torch._inductor.config");
  } else {
    main += kCompileAfterAot;
  }
  if (after_aot) {
    const std::string mode = m.tracing_mode == "symbolic" ? "symbolic" : "real";
    main.replace(main.find("@mode@"), 6, python_string(mode));
    options.imports.push_back("torch.fx.experimental.proxy_tensor");
  }
  if (const auto device = m.process.find("default_device"); device != m.process.end()) {
    const size_t at = main.rfind("def compile_graph():");
    main.replace(at, std::string_view("def compile_graph():").size(), "def compile_plainly():");
    main += "\n\ndef compile_graph():\n    compiled = compile_plainly()\n\n    def run_there(*inputs):\n        with torch.device(" + python_string(device->second) + "):\n            return compiled(*inputs)\n\n    return run_there\n";
  }
  if (const auto times = m.process.find("calls"); times != m.process.end()) {
    // Before the call that counts: what compiled code keeps from one call to the next.
    const size_t at = main.rfind("def compile_graph():");
    main.replace(at, std::string_view("def compile_graph():").size(), "def compile_uncalled():");
    main += "\n\ndef compile_graph():\n    compiled = compile_uncalled()\n    for _ in range(int(" + python_string(times->second) + ") - 1):\n        run(compiled, make_inputs())\n    return compiled\n";
  }
  if (const auto times = m.process.find("compilations"); times != m.process.end()) {
    // Before the one that counts: what a compilation leaves behind in the process.
    const size_t at = main.rfind("def compile_graph():");
    main.replace(at, std::string_view("def compile_graph():").size(), "def compile_once():");
    main += "\n\ndef compile_graph():\n    for _ in range(int(" + python_string(times->second) + ") - 1):\n        run(compile_once(), make_inputs())\n        torch._dynamo.reset()\n    return compile_once()\n";
    options.imports.push_back("torch._dynamo");
  }
  main += kRandomStart;
  main += after_aot ? kRunForward : kRunForwardBackward;
  if (!after_aot) {
    main.replace(main.find("@backward@"), 10, m.backward_state ? python_backward_state(m.state, *m.backward_state) : "contextlib.nullcontext()");
    options.imports.push_back("contextlib");
    options.uses_random = true;
  }
  if (is_accuracy) {
    main += kAccuracyCheck;
    options.imports.push_back("torch.fx.experimental.proxy_tensor");
    if (after_aot) options.imports.push_back("contextlib");
    options.uses_random = true;
  } else {
    main += kExceptionCheck;
    if (m.failure.kind == "hang") {
      options.imports.push_back("faulthandler");
      main.replace(main.find("    # patience\n"), 15, "    faulthandler.dump_traceback_later(PATIENCE, exit=True)  # exit status 1\n");
    } else {
      main.replace(main.find("    # patience\n"), 15, is_exit ? "    os._exit = end_process\n" : "");
    }
    if (is_exit) main += kWatchExit;
  }
  ir::RegionState state = m.state;
  if (after_aot) state.grad_enabled = false;   // such a graph runs below autograd
  const std::string around = state.is_default() ? "" : "    with " + python_state(state) + ":\n    ";
  // Not sys.exit: threads that a backend has left running would hold it up.
  std::string process;
  for (const std::string& line : python_process(m.process)) process += "    " + line + "\n";
  const std::string end = "    sys.stdout.flush()\n    sys.stderr.flush()\n    leave(status)\n";
  if (backend.program) {
    main += "\n\ndef check_and_end(backend, leave=os._exit):\n" + (is_live_backend(m) ? std::string("    global BACKEND\n    BACKEND = backend\n") : "") + process + around + "    status = check()\n" + end + "\n\n";
    main += program_text(*backend.program, is_live_backend(m), m.extra.count("autograd") > 0);
    main += kMainOfProgram;
    for (const char* module : {"types", "linecache"})
      if (backend.program->module.empty()) options.imports.emplace_back(module);
    if (!backend.program->module.empty()) options.imports.emplace_back("runpy");
    options.imports.emplace_back("torch._dynamo");
    if (!backend.program->input.empty()) options.imports.emplace_back("tempfile");
  } else {
    main += "\n\nif __name__ == \"__main__\":\n    leave = os._exit\n" + process + around + "    status = check()\n" + end;
  }
  options.main_part = std::move(main);
  return to_python(graph, m.inputs, options);
}

base::Status write_repro_script(const std::filesystem::path& bundle, const ir::Graph& graph, const bundle::Manifest& m) {
  CUTAWAY_TRY_ASSIGN(const std::string text, to_repro_script(graph, m));
  return base::write_file_atomic(bundle / "repro.py", text);
}

}  // namespace cutaway::script
