#include "core/tensor/save_bundle.h"

#include "core/base/files.h"

namespace cutaway::tensor {
namespace {

namespace fs = std::filesystem;

// A store beside the bundle, so that its blobs can be linked into it; gone when the bundle is written.
class BesideStore {
 public:
  static base::Result<BesideStore> make(const fs::path& bundle_path) {
    fs::path path = bundle_path.lexically_normal();
    if (!path.has_filename()) path = path.parent_path();   // "out/"
    // A name that write_bundle clears away should this process be killed.
    BesideStore beside((path.has_parent_path() ? path.parent_path() : fs::path(".")) / base::temporary_name());
    // write_bundle makes what it publishes durable: doing it here too would pay twice.
    CUTAWAY_TRY_ASSIGN(store::Store store, store::Store::open(beside.path_, store::Store::Open::create, store::Durability::fast));
    beside.store_ = std::move(store);
    return beside;
  }
  BesideStore(BesideStore&& o) noexcept : path_(std::exchange(o.path_, {})), store_(std::move(o.store_)) {}
  BesideStore& operator=(BesideStore&&) = delete;
  ~BesideStore() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  store::Store& store() { return *store_; }

 private:
  explicit BesideStore(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
  std::optional<store::Store> store_;
};

}  // namespace

base::Status save_bundle(const fs::path& path, const ir::Graph& graph, bundle::Manifest manifest, const std::vector<c10::IValue>& values, const std::vector<size_t>& parameters, const SaveLimits& limits) {
  CUTAWAY_TRY_ASSIGN(BesideStore beside, BesideStore::make(path));
  CUTAWAY_TRY_ASSIGN(manifest.inputs, save_inputs(beside.store(), values, limits, &graph));
  for (size_t i : parameters)
    if (i < manifest.inputs.size()) manifest.inputs[i].tensor.is_parameter = true;
  if (manifest.name.empty()) manifest.name = graph.name;
  return bundle::write_bundle(path, graph, manifest, beside.store());
}

base::Result<std::vector<c10::IValue>> load_inputs(const bundle::Bundle& b, std::optional<at::Device> onto) {
  CUTAWAY_TRY_ASSIGN(store::Store store, bundle::open_store(b));
  return load_inputs(b.manifest.inputs, store, onto);
}

base::Result<LoadedBundle> load_bundle(const fs::path& path, MissingData missing, std::optional<at::Device> onto) {
  const bool randomise = missing == MissingData::randomise;
  CUTAWAY_TRY_ASSIGN(bundle::Bundle b, bundle::read_bundle(path, randomise ? bundle::Blobs::ignored : bundle::Blobs::required));
  CUTAWAY_TRY_ASSIGN(store::Store store, bundle::open_store(b));
  if (randomise && replace_missing_by_random(b.manifest.inputs, store, b.manifest.seed, &b.graph) > 0) b.manifest.random_inputs = true;
  auto inputs = load_inputs(b.manifest.inputs, store, onto);
  if (!inputs.ok()) {
    base::Error error = std::move(inputs).error();
    error.place = path.string() + (error.place.empty() ? "" : ": " + error.place);
    return error;
  }
  return LoadedBundle{std::move(b), std::move(inputs).value()};
}

}  // namespace cutaway::tensor
