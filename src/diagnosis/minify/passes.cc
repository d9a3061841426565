// The table of passes: a pass is a row here and a function in pass_*.cc. Order: what takes most away comes first.
#include "diagnosis/minify/pass_list.h"

namespace cutaway::minify {

std::span<const ReductionPass> passes() {
  using Search = ReductionPass::Search;
  static constexpr ReductionPass table[] = {
      {"drop_suffix", drop_suffix, "the last nodes go; what they used becomes the output", Search::prefix, false},
      {"drop_node_blocks", drop_node_blocks, "nodes go; a value that is still needed becomes an input with its recorded data", Search::subset, false},
      {"drop_outputs", drop_outputs, "outputs go, and the nodes that only they needed", Search::subset, false},
      {"drop_dead_code", drop_dead_code, "nodes and inputs that nothing uses go", Search::subset, false},
      {"fix_symbolic_sizes", fix_symbolic_sizes, "symbolic sizes become numbers, and the backend compiles for these alone", Search::subset, true},
      {"bypass_operators", bypass_operators, "an operator is replaced by one of its inputs of the same type", Search::subset, false},
      {"simplify_values_to_zeros", simplify_values_to_zeros, "an input's data becomes zeros", Search::subset, false},
      {"simplify_values_to_ones", simplify_values_to_ones, "an input's data becomes ones", Search::subset, false},
      {"shrink_dims_to_one", shrink_dims_to_one, "every dimension of one size becomes 1, through the graph", Search::subset, true},
      {"shrink_dims_by_half", shrink_dims_by_half, "every dimension of one size is halved, through the graph", Search::subset, true},
      {"shrink_dims_by_half_keep_end", shrink_dims_by_half_keep_end, "the same, keeping the end of the data", Search::subset, true},
      {"shrink_input_dims", shrink_input_dims, "one dimension of one input becomes 1", Search::subset, true},
      {"shrink_input_dims_by_half", shrink_input_dims_by_half, "one dimension of one input is halved", Search::subset, true},
      {"shrink_dims_by_factors", shrink_dims_by_factors, "every dimension of one size is divided by an odd factor of it", Search::subset, true},
      {"shrink_dims_by_parts", shrink_dims_by_parts, "every dimension of one size loses some of it: the search between the sizes tried", Search::subset, true},
      {"shrink_dims_with_multiples", shrink_dims_with_multiples, "the same, and sizes that are multiples of it stay multiples", Search::subset, true},
      {"shrink_dims_with_neighbours", shrink_dims_with_neighbours, "the same, and sizes that are one or two more stay so", Search::subset, true},
      {"shrink_input_dims_by_parts", shrink_input_dims_by_parts, "one dimension of one input loses some of it", Search::subset, true},
      {"simplify_dtypes", simplify_dtypes, "an input becomes float32, the dtype arguments with it", Search::subset, true},
      {"simplify_values_to_integers", simplify_values_to_integers, "an input's data becomes small whole numbers", Search::subset, false},
      {"simplify_strides", simplify_strides, "an input is laid out contiguously", Search::subset, true},
      {"simplify_scalars", simplify_scalars, "a number among the arguments becomes 1", Search::subset, true},
      {"drop_keywords", drop_keywords, "a keyword argument goes back to its default", Search::subset, true},
      {"drop_gradients", drop_gradients, "an input no longer asks for a gradient", Search::subset, true},
      {"drop_state", drop_state, "autocast, grad mode, options and environment go where the failure does not need them", Search::subset, true},
  };
  return table;
}

}  // namespace cutaway::minify
