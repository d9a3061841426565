#include "core/capabilities/parts.h"

#include <algorithm>

namespace cutaway::capabilities {
namespace {

constexpr PartRow kInductorParts[] = {
    {"fusions", "fusion"}, {"lowerings", "lowering"}, {"patterns", "pattern replacement"}, {"post_grad_passes", "post-grad pass"}, {"joint_graph_passes", "joint-graph pass"},
    {"decompositions", "decomposition"}, {"pre_grad_passes", "pre-grad pass"},
};
constexpr std::string_view kInductorOrder[] = {"pre_grad_passes", "decompositions", "joint_graph_passes", "post_grad_passes", "patterns", "lowerings", "fusions"};
constexpr OptionRow kInductorOptions[] = {
    {"cpp.simdlen", "1"}, {"cpp.enable_loop_tail_vec", "false"}, {"cpp.enable_tiling_heuristics", "false"}, {"cpp.weight_prepack", "false"},
    {"cpp.enable_unsafe_math_opt_flag", "false"}, {"cpp.enable_floating_point_contract_flag", "\"off\""}, {"use_fast_math", "false"}, {"epilogue_fusion", "false"},
    {"pattern_matcher", "false"}, {"inplace_buffers", "false"}, {"allow_buffer_reuse", "false"}, {"split_reductions", "false"}, {"loop_ordering_after_fusion", "false"},
    {"constant_and_index_propagation", "false"}, {"joint_graph_constant_folding", "false"}, {"layout_optimization", "false"}, {"comprehensive_padding", "false"},
    {"shape_padding", "false"}, {"reorder_for_locality", "false"}, {"reorder_for_peak_memory", "false"}, {"online_softmax", "false"},
    {"optimize_scatter_upon_const_tensor", "false"}, {"emulate_precision_casts", "true"}, {"fallback_random", "true"},
};
constexpr PartRow kNativeParts[] = {{"fusions", "fusion"}, {"rewrites", "rewrite"}, {"kernels", "kernel"}};   // without kernels nothing is left that could be wrong
constexpr std::string_view kNativeOrder[] = {"rewrites", "fusions", "kernels"};

constexpr PartsTable kNone{};
constexpr PartsTable kInductor{kInductorParts, kInductorOrder, kInductorOptions, "Which pass, lowering or option of Inductor is guilty?", "inductor"};
constexpr PartsTable kNative{kNativeParts, kNativeOrder, {}, "Which rewrite, fusion or kernel of native is guilty?", ""};

}  // namespace

const PartsTable& table_of(Parts p) { return p == Parts::inductor ? kInductor : p == Parts::native ? kNative : kNone; }

std::vector<std::string> names_of(Parts p) {
  const auto names = table_of(p).in_order;
  return {names.begin(), names.end()};
}

std::vector<std::string> all_parts() {
  std::vector<std::string> all = names_of(Parts::inductor);
  for (std::string& name : names_of(Parts::native))
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
  return all;
}

std::string_view one_of(std::string_view part) {
  for (const Parts p : {Parts::inductor, Parts::native})
    for (const PartRow& row : table_of(p).parts)
      if (row.name == part) return row.one;
  return part;
}

}  // namespace cutaway::capabilities
