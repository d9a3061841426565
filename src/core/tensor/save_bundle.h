// A graph with its inputs as values <-> a bundle: what `cutaway.save` and `cutaway.load` are made of.
#pragma once
#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

#include "core/bundle/bundle.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::tensor {

/// Writes a bundle at `path`. The manifest is taken as it is but for its inputs, which come from `values` (one for each input of the
/// graph); `parameters` holds the positions of those that are torch.nn.Parameters. Atomic, as write_bundle is.
base::Status save_bundle(const std::filesystem::path& path, const ir::Graph&, bundle::Manifest, const std::vector<c10::IValue>& values, const std::vector<size_t>& parameters = {}, const SaveLimits& = {});

/// Missing or damaged data is an error, or becomes random data: only when asked, and the manifest then says so.
enum class MissingData { refuse, randomise };
struct LoadedBundle {
  bundle::Bundle bundle;
  std::vector<c10::IValue> inputs;
};
base::Result<LoadedBundle> load_bundle(const std::filesystem::path& path, MissingData = MissingData::refuse, std::optional<at::Device> onto = std::nullopt);

}  // namespace cutaway::tensor
