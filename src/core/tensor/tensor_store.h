// Tensors in the store: write, read, metadata; aliasing kept across a set of tensors.
// docs/formats/tensors.md is the document of what a record holds and how sharing is said.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/bundle/bundle.h"
#include "core/store/store.h"

namespace cutaway::tensor {

/// Metadata without the digest. Meta and fake tensors have metadata too; a quantized, sparse or nested tensor is refused by name.
base::Result<bundle::TensorRecord> compute_tensor_metadata(const at::Tensor&);
/// Digest of a whole storage, whatever the tensor looks at; device memory is copied to the host first.
base::Result<base::Digest> digest_storage(const at::Storage&);
/// Writes the whole storage and returns the record. Refused, with the reason: what has no data.
base::Result<bundle::TensorRecord> write_tensor(store::Store&, const at::Tensor&);

/// Reads tensors back, each into memory of its own that may be written to. Records with one storage digest and one storage id
/// share one storage again within one reader; a record without an id shares with nothing.
class TensorReader {
 public:
  explicit TensorReader(const store::Store& store, std::optional<at::Device> onto = std::nullopt) : store_(store), onto_(onto) {}
  base::Result<at::Tensor> read(const bundle::TensorRecord&);

 private:
  const store::Store& store_;
  std::optional<at::Device> onto_;
  std::unordered_map<std::string, at::Storage> storages_;
};

/// Tensors by name: the record under names/<name>.json. Remembers the storages it has written while they live, so that tensors
/// put one after the other keep sharing. Not for use from several threads at once.
class NamedTensors {
 public:
  explicit NamedTensors(store::Store& store) : store_(store) {}
  /// Marks the record as a torch.nn.Parameter's when asked; only the Python side knows.
  enum class As { tensor, parameter };
  base::Result<bundle::TensorRecord> put(std::string_view name, const at::Tensor&, As = As::tensor);
  base::Result<at::Tensor> get(std::string_view name, std::optional<at::Device> onto = std::nullopt) const;
  /// Several at once, sharing storages as they did when they were put.
  base::Result<std::vector<at::Tensor>> get(const std::vector<std::string>& names, std::optional<at::Device> onto = std::nullopt) const;
  base::Result<bundle::TensorRecord> metadata(std::string_view name) const;

 private:
  struct Written {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage{c10::intrusive_ptr<c10::StorageImpl>()};
    int64_t id = -1;
  };
  int64_t id_of(const at::Storage&, std::string_view name);
  store::Store& store_;
  std::unordered_map<const c10::StorageImpl*, Written> written_;
};

/// One name of two recordings that is not the same in both.
struct RecordingDifference {
  std::string name;                  ///< without the prefixes
  std::vector<std::string> fields;   ///< as differing_fields says them; or that one side lacks the name
  /// Where the storages differ and dtype and sizes agree: how many elements differ. -1: not looked at.
  int64_t unequal_elements = -1;
  int64_t elements = 0;
};
/// The names under prefix `a` against those under `b`: metadata first, bytes only where the digests of the storages differ.
/// Elements are compared as bits, so a NaN equals itself. Empty: the recordings are the same.
base::Result<std::vector<RecordingDifference>> compare_recordings(const store::Store&, std::string_view a, std::string_view b);

/// Inputs of a bundle as values: tensors with data (aliases kept), seeded ones, literals.
base::Result<std::vector<c10::IValue>> load_inputs(const bundle::Bundle&, std::optional<at::Device> onto = std::nullopt);
/// The same for refs that are not a bundle's yet (candidates of a reduction).
base::Result<std::vector<c10::IValue>> load_inputs(const std::vector<bundle::InputRef>&, const store::Store&, std::optional<at::Device> onto = std::nullopt);
struct SaveLimits { uint64_t max_bytes = UINT64_MAX; uint64_t seed = 0; };
/// Each storage is written once, in order, as long as the sum stays within max_bytes; one that does not fit becomes seeded, with
/// the reason, and so does a tensor without data. Seeded integers get the range that `graph` (whose inputs these are) shows, else
/// the range of the data that was there.
base::Result<std::vector<bundle::InputRef>> save_inputs(store::Store&, const std::vector<c10::IValue>&, const SaveLimits& = {}, const ir::Graph* graph = nullptr);
/// What `--random-inputs` asks for: inputs whose blob is missing or damaged become seeded, with the reason. Returns how many; the
/// caller records it in the manifest.
size_t replace_missing_by_random(std::vector<bundle::InputRef>&, const store::Store&, uint64_t seed, const ir::Graph* graph = nullptr);

}  // namespace cutaway::tensor
