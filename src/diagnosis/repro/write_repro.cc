#include "diagnosis/repro/write_repro.h"

#include <cstdint>
#include <set>

#include "core/base/files.h"
#include "core/ir/edit.h"
#include "core/ir/location_text.h"
#include "core/script/repro_script.h"
#include "core/store/store.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::repro {
namespace {

namespace fs = std::filesystem;

/// The user's line of the first node that is this operator; of the call around it where it has none of its own.
std::string line_of(const ir::Graph& graph, std::string_view op) {
  const ir::Location* found = nullptr;
  const auto look = [&](const auto& self, const ir::Block& block, ir::LocationId around) -> void {
    for (const ir::Node& n : block.nodes) {
      const ir::LocationId here = n.location != ir::kNoLocation ? n.location : around;
      if (!found && n.kind == ir::Node::Kind::op && n.target == op && here != ir::kNoLocation) found = &graph.locations[here];
      for (const ir::Block& region : n.regions) self(self, region, here);
    }
  };
  look(look, graph.body, ir::kNoLocation);
  return found ? ir::print_location(*found) : "";
}

}  // namespace

base::Result<WrittenRepro> write_repro(const fs::path& path, const ir::Graph& graph, bundle::Manifest manifest, const std::vector<c10::IValue>& inputs,
                                       const std::vector<size_t>& parameters, uint64_t max_bytes) {
  if (!manifest.failure.op.empty() && manifest.failure.user_frame.empty()) manifest.failure.user_frame = line_of(graph, manifest.failure.op);
  // Staged beside the bundle, so that blobs are linked and not copied.
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  CUTAWAY_TRY(base::make_directories(parent));
  struct Staging {
    fs::path path;
    ~Staging() { std::error_code ignored; fs::remove_all(path, ignored); }
  } staging{parent / base::temporary_name()};
  CUTAWAY_TRY_ASSIGN(store::Store store, store::Store::open(staging.path, store::Store::Open::create, store::Durability::fast));
  CUTAWAY_TRY_ASSIGN(manifest.inputs, tensor::save_inputs(store, inputs, {max_bytes, manifest.seed}, &graph));
  for (size_t p : parameters)
    if (p < manifest.inputs.size() && manifest.inputs[p].kind != bundle::InputRef::Kind::literal) manifest.inputs[p].tensor.is_parameter = true;

  WrittenRepro report;
  std::set<base::Digest> counted;
  for (const bundle::InputRef& input : manifest.inputs) {
    if (input.kind == bundle::InputRef::Kind::seeded) ++report.seeded;
    if (input.kind == bundle::InputRef::Kind::data && counted.insert(input.tensor.storage).second) report.bytes += input.tensor.storage_bytes;
  }
  CUTAWAY_TRY(bundle::write_bundle(path, graph, manifest, store));
  if (base::Status status = script::write_repro_script(path, graph, manifest); !status.ok()) report.script_problem = status.error().text();
  return report;
}

fs::path checkpoint_path(const fs::path& folder, const ir::Graph& graph) {
  const fs::path first = folder / "checkpoints" / std::to_string(ir::count_nodes(graph));
  const base::Digest digest = ir::digest(graph);
  fs::path path = first;
  std::error_code ec;
  for (int number = 2; fs::exists(path, ec); ++number) {
    if (const auto there = bundle::read_manifest(path); there.ok() && there->graph_digest == digest) break;
    path = first.string() + "_" + std::to_string(number);
  }
  return path;
}

base::Status copy_newest(const fs::path& bundle, const fs::path& folder) {
  const fs::path target = folder / "repro", fresh = folder / base::temporary_name();
  std::error_code ec;
  fs::copy(bundle, fresh, fs::copy_options::recursive | fs::copy_options::create_hard_links, ec);
  if (ec) {   // no links here
    fs::remove_all(fresh, ec);
    fs::copy(bundle, fresh, fs::copy_options::recursive, ec);
  }
  if (!ec) fs::remove_all(target, ec);
  if (!ec) fs::rename(fresh, target, ec);
  if (!ec) return {};
  const std::string why = ec.message();
  fs::remove_all(fresh, ec);
  return base::Error{.what = "the copy could not be written", .place = target.string(), .because = why};
}

}  // namespace cutaway::repro
