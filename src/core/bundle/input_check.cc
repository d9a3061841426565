#include "core/bundle/input_check.h"

#include "core/base/text.h"

namespace cutaway::bundle {

using base::Error;
using base::Status;

namespace {

std::string input_name(const ir::Graph& graph, size_t i) { return "input %" + graph.value(graph.inputs[i].value).name; }

/// Sizes that are symbols in the graph may be any number in the manifest.
bool sizes_agree(const ir::TensorType& type, const TensorRecord& record) {
  if (type.sizes.size() != record.sizes.size()) return false;
  for (size_t d = 0; d < type.sizes.size(); ++d) {
    const auto number = type.sizes[d].number();
    if (number && *number != record.sizes[d]) return false;
  }
  return true;
}

}  // namespace

std::string describe_input(const ir::Graph& graph, const Manifest& manifest, size_t i) {
  // Without gradness and device, which do not help to find the data.
  ir::TensorType type = manifest.inputs[i].tensor.type();
  type.requires_grad = false;
  type.device = {};
  return input_name(graph, i) + ", " + ir::Type::of(std::move(type)).text();
}

Status check_inputs(const ir::Graph& graph, const Manifest& manifest) {
  if (graph.inputs.size() != manifest.inputs.size()) {
    return Error{.what = "the graph has " + base::count_of(graph.inputs.size(), "input") + ", the manifest " + std::to_string(manifest.inputs.size())};
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Type& type = graph.value(graph.inputs[i].value).type;
    const InputRef& input = manifest.inputs[i];
    const auto differ = [&](const std::string& got) {
      return Error{.what = "inputs[" + std::to_string(i) + "] is " + got + ", the graph's " + input_name(graph, i) + " is " + type.text()};
    };
    if (input.kind == InputRef::Kind::literal) {
      if (type.is_tensor()) return differ("a literal");
      continue;
    }
    const std::string shown = ir::Type::of(input.tensor.type()).text();
    if (!type.is_tensor()) return differ("a tensor (" + shown + ")");
    if (type.tensor.dtype != input.tensor.dtype || !sizes_agree(type.tensor, input.tensor)) return differ(shown);
  }
  return {};
}

}  // namespace cutaway::bundle
