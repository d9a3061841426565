#include "diagnosis/repro/write_repro.h"

#include <cstdint>
#include <set>

#include "core/base/files.h"
#include "core/script/repro_script.h"
#include "core/store/store.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::repro {

base::Result<WrittenRepro> write_repro(const std::filesystem::path& path, const ir::Graph& graph, bundle::Manifest manifest, const std::vector<c10::IValue>& inputs,
                                       const std::vector<size_t>& parameters, uint64_t max_bytes) {
  // Staged beside the bundle, so that blobs are linked and not copied.
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  CUTAWAY_TRY(base::make_directories(parent));
  struct Staging {
    std::filesystem::path path;
    ~Staging() { std::error_code ignored; std::filesystem::remove_all(path, ignored); }
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

}  // namespace cutaway::repro
