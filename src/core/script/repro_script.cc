#include "core/script/repro_script.h"

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
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

base::Result<std::string> python_options(const bundle::Manifest& m) {
  std::vector<std::string> parts;
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

std::string_view first_word(std::string_view backend) { return backend.substr(0, backend.find(':')); }

// How the script names its compiler: torch's by a string, others by an import or by the source text that the bundle carries.
struct BackendText { std::string definition, expression; bool is_torch = false; };
base::Result<BackendText> backend_text(const bundle::Manifest& m) {
  const std::string_view name = m.backend;
  const std::string_view word = first_word(name);
  if (!runs_with_torch_alone(m)) return BackendText{"", "", false};
  if (word == "python") {
    const size_t colon = name.rfind(':');
    const std::string_view module = colon > 7 ? name.substr(7, colon - 7) : std::string_view(), attribute = name.substr(colon + 1);
    if (!is_dotted_name(module) || !is_dotted_name(attribute))
      return base::Error{.what = "the backend " + base::quote(name) + " is not of the form python:module:attribute"};
    return BackendText{"", "operator.attrgetter(" + python_string(attribute) + ")(importlib.import_module(" + python_string(module) + "))", false};
  }
  if (word == "source") {
    const auto found = m.extra.find("backend_source");
    const std::string_view function = word.size() < name.size() ? name.substr(7) : std::string_view();
    if (found == m.extra.end() || !is_python_identifier(function)) return base::Error{.what = "the bundle has no source text for its backend " + base::quote(name)};
    CUTAWAY_TRY_ASSIGN(const base::Json text, base::Json::parse(found->second, "backend_source"));
    if (!text.as<std::string>()) return base::Error{.what = "the source text of the backend is not a string"};
    return BackendText{"# The backend, as the program defined it.\n" + *text.as<std::string>() + "\n\n", std::string(function), false};
  }
  return BackendText{"", python_string(name.empty() ? std::string_view("eager") : name), true};
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
  return word != "fault" && word != "native" && word != "command";
}

base::Result<std::string> to_repro_script(const ir::Graph& graph, const bundle::Manifest& m, const std::string& blob_folder) {
  CUTAWAY_TRY_ASSIGN(const BackendText backend, backend_text(m));
  CUTAWAY_TRY_ASSIGN(const std::string settings, python_options(m));
  const bool after_aot = m.stage == "aot";
  const bool is_accuracy = m.failure.kind == "accuracy" || (m.failure.kind.empty() && !m.accuracy.empty());

  ScriptOptions options;
  options.seed = m.seed;
  options.title = m.failure.kind.empty() ? "graph " + m.name + " with " + m.backend : m.failure.kind + " " + m.failure.type + m.failure.signal + " with " + m.backend + ", graph " + m.name;
  options.usage = kReproUsage;
  options.blob_folder = blob_folder;
  options.imports = {"sys", "traceback"};
  std::string main;
  if (backend.expression.empty()) {
    options.imports = {"sys"};
    options.main_part = "if __name__ == \"__main__\":\n    print(" + python_string("the backend " + m.backend + " is a part of Cutaway, not of torch; run: cutaway run on the folder of this file") +
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
  if (!is_accuracy) main += "EXPECTED = " + (m.failure.kind == "exception" ? python_string(m.failure.type) : std::string("None")) + "\n";
  if (m.failure.kind == "hang") main += "PATIENCE = " + patience(m) + "  # seconds after which it counts as hanging\n";

  if (!after_aot && m.tracing_mode == "symbolic") {
    main += "DYNAMIC = " + python_dynamic_dimensions(graph) + "  # input -> dimensions with symbolic sizes\n";
    main += kCompileAfterCaptureDynamic;
    options.imports.push_back("torch._dynamo");
  } else if (!after_aot) {
    main += kCompileAfterCapture;
  } else if (backend.is_torch && m.backend == "inductor") {
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
  main += after_aot ? kRunForward : kRunForwardBackward;
  if (is_accuracy) {
    main += m.accuracy == "strict" ? kStrictCheck : kAccuracyCheck;
    if (m.accuracy != "strict") options.imports.push_back("torch.fx.experimental.proxy_tensor");
  } else {
    main += kExceptionCheck;
    if (m.failure.kind == "hang") {
      options.imports.push_back("faulthandler");
      main.replace(main.find("    # patience\n"), 15, "    faulthandler.dump_traceback_later(PATIENCE, exit=True)  # exit status 1\n");
    } else {
      main.replace(main.find("    # patience\n"), 15, "");
    }
  }
  ir::RegionState state = m.state;
  if (after_aot) state.grad_enabled = false;   // such a graph runs below autograd
  main += "\n\nif __name__ == \"__main__\":\n";
  if (state.is_default()) main += "    sys.exit(check())\n";
  else main += "    with " + python_state(state) + ":\n        sys.exit(check())\n";
  options.main_part = std::move(main);
  return to_python(graph, m.inputs, options);
}

base::Status write_repro_script(const std::filesystem::path& bundle, const ir::Graph& graph, const bundle::Manifest& m) {
  CUTAWAY_TRY_ASSIGN(const std::string text, to_repro_script(graph, m));
  return base::write_file_atomic(bundle / "repro.py", text);
}

}  // namespace cutaway::script
