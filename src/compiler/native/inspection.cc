#include "compiler/native/inspection.h"

#include <filesystem>

#include "compiler/codegen/diagram.h"
#include "compiler/codegen/instructions.h"
#include "compiler/codegen/line_marks.h"
#include "compiler/codegen/program_text.h"
#include "compiler/native/check.h"
#include "compiler/native/machine_limits.h"
#include "compiler/native/values_file.h"
#include "compiler/native/watch.h"
#include "core/base/files.h"
#include "core/exec/random_state.h"
#include "core/debug/process.h"

namespace cutaway::native {
namespace {

namespace fs = std::filesystem;
using base::Error;
constexpr int kTimedRuns = 20;   ///< of a graph whose profile is asked for, besides the one that was asked for

/// "k.cpp" -> "k.values"
std::string values_beside(const fs::path& code) { return code.stem().string() + ".values"; }

}  // namespace

Inspection::Inspection(InspectionOptions options, const codegen::Program& program, const ir::Graph& whole, int lanes, debug::Sink* sink) : options_(std::move(options)), program_(program), whole_(whole), lanes_(lanes) {
  if (program_.has_cpu_texts() || !program_.has_cuda_texts()) debug::keep_artifact(sink, "native", graph_name(), "output_code.cpp", [&] { return text_for("output_code.cpp", "values.bin"); });
  debug::keep_artifact(sink, "native", graph_name(), "instructions.txt", [&] { return codegen::instructions_text(program_); });
  debug::keep_artifact(sink, "native", graph_name(), "diagram.svg", [&] { return codegen::diagram(program_); });
  const bool keeps_profile = sink && sink->keeps_file("profile");
  if (is_profiling() || keeps_profile) times_ = std::make_shared<GraphTimes>(program_);
  if (times_) (void)machine_limits();   // now: when the process ends torch may be gone
  if (times_ && is_profiling()) join_profile(times_);
  if (times_ && keeps_profile) debug::keep_artifact(sink, "native", times_->name(), "profile.txt", [&] { return times_->text(); });   // not at the end of the process: what writes files may be gone then
  wants_values_ = !options_.write_code.empty() || (sink && sink->keeps_file("values"));
  is_needed_ = options_.observes || options_.check || times_ || wants_values_;
}

std::string Inspection::text_for(const std::string& file, const std::string& values_file) const {
  codegen::ProgramTextOptions o;
  o.lanes = lanes_;
  if (const auto& t = toolchain(); t.ok()) o.compiler = t->compiler;
  o.flags = flags_for(lanes_);
  o.file = file;
  o.values_file = values_file;
  o.has_line_marks = options_.lines;
  return codegen::complete_program(program_, o);
}

base::Status Inspection::write() const {
  if (options_.write_code.empty()) return {};
  const fs::path path = options_.write_code;
  return base::write_file_atomic(path, text_for(path.filename().string(), values_beside(path)), base::Sync::fast);
}

base::Result<std::shared_ptr<Library>> Inspection::load(debug::Sink* sink) const {
  if (!program_.has_cpu_texts()) return std::shared_ptr<Library>();
  if (options_.code.empty()) {
    if (!options_.lines) return Library::load(program_.source(lanes_), lanes_, sink);
    return Library::load(codegen::with_line_marks(program_.source(lanes_), program_.rewritten, "kernels.cpp"), lanes_, sink, {"-g1"});
  }
  std::vector<const codegen::Text*> texts;
  for (const codegen::Text& t : program_.texts)
    if (!t.cuda) texts.push_back(&t);
  return load_code(options_.code, texts, lanes_, sink);
}

base::Result<std::shared_ptr<Library>> Inspection::load_code(const std::string& file, const std::vector<const codegen::Text*>& texts, int lanes, debug::Sink* sink) {
  CUTAWAY_TRY_ASSIGN(const std::string text, base::read_file(file, uint64_t{1} << 26));
  // The compiler's complaints name the file and its lines.
  auto library = Library::load("#line 1 \"" + file + "\"\n" + text, lanes, sink);
  if (!library.ok()) return Error{.what = "the code does not compile", .place = file, .because = library.error().because.empty() ? library.error().what : library.error().because};
  std::string missing;
  for (const codegen::Text* t : texts)
    if (!(*library)->find(t->function)) missing += (missing.empty() ? "" : ", ") + t->function;
  if (!missing.empty())
    return Error{.what = "the code lacks functions of kernels: " + missing, .place = file, .because = "this graph has " + std::to_string(texts.size()) + ", each with its own extern \"C\" function", .hint = "--write-code writes all of them"};
  return library;
}

std::vector<c10::IValue> Inspection::run_telling(const exec::Program& program, std::vector<c10::IValue>& inputs, const backends::ValueObserver& observer) const {
  struct Teller final : Watcher {
    const ir::Graph& graph;
    const backends::ValueObserver& tell;
    Teller(const ir::Graph& g, const backends::ValueObserver& o) : graph(g), tell(o) {}
    void after(const ir::Node& n, const std::vector<c10::IValue>& results) override {
      for (size_t i = 0; i < results.size() && i < n.results.size(); ++i)
        if (results[i].isTensor() && results[i].toTensor().defined()) tell(fx_name(graph.value(n.results[i]).name), results[i].toTensor());
    }
  };
  Teller teller(program_.graph, observer);
  return run_watched(program, inputs, teller);
}

std::vector<backends::Kernel> kernels_of(const codegen::Program& program) {
  std::unordered_map<std::string, const codegen::Kernel*> loops;
  for (const codegen::Generated& k : program.kernels) loops["native." + k.kernel.name] = &k.kernel;
  std::vector<backends::Kernel> told;
  for (const ir::Node& n : program.graph.body.nodes) {
    backends::Kernel kernel{n.target, {}};
    for (ir::ValueId id : n.results) kernel.nodes.push_back(fx_name(program.graph.value(id).name));
    if (const auto loop = loops.find(n.target); loop != loops.end())
      for (const codegen::Term& t : loop->second->terms)
        if (!t.name.empty()) kernel.nodes.push_back(fx_name(t.name));
    told.push_back(std::move(kernel));
  }
  return told;
}

std::vector<c10::IValue> Inspection::run(const exec::Program& program, std::vector<c10::IValue>& inputs) {
  if (options_.check) return run_checked(program, program_.graph, whole_, options_.backend, options_.check, inputs);
  if (wants_values_.exchange(false)) {
    std::string file;
    std::vector<c10::IValue> outputs = run_recorded(program, program_, inputs, file);
    debug::Sink* sink = debug::process_sink();
    if (file.empty()) {
      debug::say(sink, "native", debug::Level::warning, graph_name() + ": its values take more than " + std::to_string(kMostValueBytes >> 20) + " MB and are not written");
    } else if (!options_.write_code.empty()) {
      const fs::path code = options_.write_code;
      if (base::Status s = base::write_file_atomic(fs::path(code).replace_filename(values_beside(code)), file, base::Sync::fast); !s.ok()) debug::say(sink, "native", debug::Level::warning, s.error().text());
    } else {
      debug::keep_artifact(sink, "native", graph_name(), "values.bin", [&] { return file; });
    }
    return outputs;
  }
  if (times_ && !options_.profile.empty()) {   // once is no measurement; what is drawn in between is drawn again
    const exec::RandomStateScope drawn_again(0);
    for (int i = 0; i < kTimedRuns; ++i) {
      std::vector<c10::IValue> again = inputs;
      times_->run(program, again);
    }
  }
  std::vector<c10::IValue> outputs = times_ ? times_->run(program, inputs) : program.run(inputs);
  if (!options_.profile.empty()) {
    const base::Status written = base::write_file_atomic(options_.profile, profile_json() + "\n", base::Sync::fast);
    if (!written.ok()) debug::say(debug::process_sink(), "native", debug::Level::warning, written.error().text());
  }
  return outputs;
}

}  // namespace cutaway::native
