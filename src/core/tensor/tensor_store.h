// Tensors in the store: write, read, metadata; aliasing kept across a set of tensors. (FEATURES.md section 7.)
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/bundle/bundle.h"
#include "core/store/store.h"

namespace cutaway::tensor {

/// Metadata without the digest. A quantized, sparse, nested or fake tensor is refused by name.
base::Result<bundle::TensorRecord> compute_tensor_metadata(const at::Tensor&);
/// Digest of a whole storage, whatever the tensor looks at; device memory is copied to the host first.
base::Result<base::Digest> digest_storage(const at::Storage&);
base::Result<bundle::TensorRecord> write_tensor(store::Store&, const at::Tensor&);

/// Reads tensors back. Records with one storage digest and id share one storage again within one reader.
class TensorReader {
 public:
  explicit TensorReader(const store::Store& store, std::optional<at::Device> onto = std::nullopt) : store_(store), onto_(onto) {}
  base::Result<at::Tensor> read(const bundle::TensorRecord&);

 private:
  const store::Store& store_;
  std::optional<at::Device> onto_;
  std::unordered_map<std::string, at::Storage> storages_;
};

/// Named tensors: the record under names/<name>.json.
base::Result<bundle::TensorRecord> put_tensor(store::Store&, std::string_view name, const at::Tensor&);
base::Result<at::Tensor> get_tensor(const store::Store&, std::string_view name, std::optional<at::Device> onto = std::nullopt);
base::Result<bundle::TensorRecord> tensor_metadata(const store::Store&, std::string_view name);

/// Inputs of a bundle as values: tensors with data (aliases kept), seeded ones, literals.
base::Result<std::vector<c10::IValue>> load_inputs(const bundle::Bundle&, std::optional<at::Device> onto = std::nullopt);
/// The same for refs that are not a bundle's yet (candidates of a reduction).
base::Result<std::vector<c10::IValue>> load_inputs(const std::vector<bundle::InputRef>&, const store::Store&, std::optional<at::Device> onto = std::nullopt);
struct SaveLimits { uint64_t max_bytes = UINT64_MAX; uint64_t seed = 0; };
/// Storages in order until max_bytes is reached; the rest become seeded, with the reason.
base::Result<std::vector<bundle::InputRef>> save_inputs(store::Store&, const std::vector<c10::IValue>&, const SaveLimits& = {});

}  // namespace cutaway::tensor
