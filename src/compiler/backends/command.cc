#include "compiler/backends/command.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/subprocess.h"
#include "core/base/text.h"
#include "core/tensor/convert.h"
#include "core/tensor/save_bundle.h"

namespace cutaway::backends {
namespace {

using Values = std::vector<c10::IValue>;
namespace fs = std::filesystem;
constexpr int kProtocol = 1;
constexpr size_t kMessage = 4000;   // of what the program printed, its end

base::Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool is_open = false;
  for (char c : text) {
    if (quote ? c == quote : c == '\'' || c == '"') {
      quote = quote ? 0 : c;
      is_open = true;
    } else if (c == ' ' && !quote) {
      if (is_open) words.push_back(std::move(word));
      word.clear();
      is_open = false;
    } else {
      word += c;
      is_open = true;
    }
  }
  if (quote) return base::Error{"backend command:" + std::string(text) + ": a quote is not closed", "", "", "", ""};
  if (is_open) words.push_back(std::move(word));
  return words;
}

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
}

// What the program says is not trusted: every complaint is about the program, and is the failure of the compiler that it is.
[[noreturn]] void refuse(const base::Error& e) { throw std::runtime_error("the command's answer cannot be used: " + e.text()); }
template <class T> T must(base::Result<T> r) {
  if (!r.ok()) refuse(r.error());
  return std::move(r).value();
}

at::Tensor read_tensor(const base::JsonAt& at, const fs::path& folder) {
  auto fields = must(base::JsonFields::open(at));
  const base::JsonAt dtype_at = must(fields.required("dtype")), sizes_at = must(fields.required("sizes")), file_at = must(fields.required("file"));
  if (auto done = fields.finish(); !done.ok()) refuse(done.error());
  const std::string name = must(dtype_at.string());
  const auto dtype = ir::dtype_from_name(name);
  if (!dtype) refuse(dtype_at.error("unknown dtype " + base::quote(name)));
  const std::vector<int64_t> sizes = must(sizes_at.integers(64, 0));
  const c10::ScalarType scalar = tensor::to_aten(*dtype);
  uint64_t bytes = c10::elementSize(scalar);
  for (int64_t n : sizes)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes) || bytes > (uint64_t{1} << 40)) refuse(sizes_at.error("more elements than any memory holds"));
  const fs::path path = must(base::path_inside(folder, must(file_at.string())));
  const std::string data = must(base::read_file(path, bytes + 1, base::Links::refuse));
  if (data.size() != bytes) refuse(file_at.error("has " + std::to_string(data.size()) + " bytes, and the sizes need " + std::to_string(bytes)));
  at::Tensor t = at::empty(sizes, at::TensorOptions(scalar));
  if (bytes) std::memcpy(t.data_ptr(), data.data(), bytes);
  return t;
}

c10::IValue read_value(const base::JsonAt& at, const fs::path& folder) {
  const base::Json& v = at.value();
  if (const auto* i = v.as<int64_t>()) return *i;
  if (const auto* d = v.as<double>()) return *d;
  if (const auto* b = v.as<bool>()) return *b;
  return read_tensor(at, folder);
}

class CommandGraph final : public CompiledGraph {
 public:
  CommandGraph(ir::Graph graph, bundle::Manifest manifest, std::vector<std::string> words) : graph_(std::move(graph)), manifest_(std::move(manifest)), words_(std::move(words)) {}

  Values run(Values& inputs) override {
    const base::TemporaryDirectory place = must(base::TemporaryDirectory::make("cutaway-command-"));
    const fs::path bundle = place.path() / "bundle", output = place.path() / "output";
    if (auto saved = tensor::save_bundle(bundle, graph_, manifest_, inputs); !saved.ok()) throw std::runtime_error("the command cannot be given its inputs: " + saved.error().text());
    if (auto made = base::make_directories(output, base::Sync::fast); !made.ok()) refuse(made.error());
    start(bundle, output);
    Values results = read_results(output, inputs);
    inputs.clear();
    return results;
  }

 private:
  void start(const fs::path& bundle, const fs::path& output) const {
    base::Command command;
    command.argv = words_;
    for (std::string& w : command.argv) {
      replace_all(w, "{bundle}", bundle.string());
      replace_all(w, "{output}", output.string());
    }
    command.environment = {{"CUTAWAY_PROTOCOL", std::to_string(kProtocol)}, {"CUTAWAY_BUNDLE", bundle.string()}, {"CUTAWAY_OUTPUT", output.string()}};
    command.group = base::Command::Group::callers;
    const base::Output done = must(base::run_command(command));
    if (done.exit.ok()) return;
    std::string said = done.err.empty() ? done.out : done.err;
    if (said.size() > kMessage) said.erase(0, said.size() - kMessage);
    while (!said.empty() && said.back() == '\n') said.pop_back();
    if (done.exit.kind == base::Exit::Kind::signaled) throw ProgramDied("the command died by " + done.exit.text() + (said.empty() ? "" : "\n" + said), base::signal_name(done.exit.code));
    throw std::runtime_error((said.empty() ? "the command said nothing" : said) + "\n(the command ended with " + done.exit.text() + ")");
  }

  Values read_results(const fs::path& output, const Values& inputs) const {
    const fs::path file = output / "outputs.json";
    std::error_code ec;
    if (!fs::exists(file, ec)) throw std::runtime_error("the command wrote no outputs.json");
    const base::Json json = must(base::Json::parse(must(base::read_file(file, uint64_t{64} << 20, base::Links::refuse)), "outputs.json"));
    auto fields = must(base::JsonFields::open(base::JsonAt(json, "outputs.json")));
    const int64_t version = must(must(fields.required("version")).integer());
    if (version != kProtocol) refuse({"outputs.json has version " + std::to_string(version), "", "this is version " + std::to_string(kProtocol), "", ""});
    const std::vector<base::JsonAt> list = must(must(fields.required("outputs")).array(1 << 20));
    if (list.size() != graph_.body.outputs.size())
      refuse({"outputs.json has " + base::count_of(list.size(), "output") + ", and the graph has " + std::to_string(graph_.body.outputs.size()), "", "", "", ""});
    Values results;
    for (const base::JsonAt& at : list) results.push_back(read_value(at, output));
    // Inputs that the graph writes to: the caller's tensors get what the program says they hold afterwards.
    if (auto changed = fields.optional("changed_inputs")) {
      auto positions = must(base::JsonFields::open(*changed));
      for (size_t i = 0; i < inputs.size(); ++i)
        if (auto at = positions.optional(std::to_string(i))) {
          const at::Tensor value = read_tensor(*at, output);
          if (!inputs[i].isTensor() || inputs[i].toTensor().sizes() != value.sizes()) refuse(at->error("is not of the input's sizes"));
          inputs[i].toTensor().detach().copy_(value);
        }
      if (auto done = positions.finish(); !done.ok()) refuse(done.error());
    }
    if (auto done = fields.finish(); !done.ok()) refuse(done.error());
    return results;
  }

  ir::Graph graph_;
  bundle::Manifest manifest_;
  std::vector<std::string> words_;
};

struct CommandBackend final : Backend {
  std::vector<std::string> words;
  Settings settings;
  void configure(const Settings& s) override { settings = s; }
  base::Result<std::unique_ptr<CompiledGraph>> compile(const ir::Graph& graph, const Values&, debug::Sink*) override {
    bundle::Manifest m;
    m.name = graph.name;
    m.stage = settings.stage;
    m.backend = "command";
    m.options = settings.options;
    return std::unique_ptr<CompiledGraph>(std::make_unique<CommandGraph>(graph, std::move(m), words));
  }
};

}  // namespace

base::Result<std::unique_ptr<Backend>> make_command(std::string_view parameters) {
  auto backend = std::make_unique<CommandBackend>();
  CUTAWAY_TRY_ASSIGN(backend->words, split_words(parameters));
  if (backend->words.empty()) return base::Error{"the backend command names no program", "", "", "command:PROGRAM {bundle}", ""};
  if (parameters.find("{bundle}") == parameters.npos) return base::Error{"backend command:" + std::string(parameters) + ": {bundle} is missing", "", "the program would not know what to compile", "command:PROGRAM {bundle}", ""};
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace cutaway::backends
