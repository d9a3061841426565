// Declarations of the reduction passes, one a row of the table in passes.cc.
#pragma once
#include "diagnosis/minify/minify.h"

namespace cutaway::minify {

void drop_suffix(Chooser&, Case&, const PassContext&);
void drop_node_blocks(Chooser&, Case&, const PassContext&);
void drop_outputs(Chooser&, Case&, const PassContext&);
void drop_dead_code(Chooser&, Case&, const PassContext&);
void fix_symbolic_sizes(Chooser&, Case&, const PassContext&);
void bypass_operators(Chooser&, Case&, const PassContext&);
void simplify_values_to_zeros(Chooser&, Case&, const PassContext&);
void simplify_values_to_ones(Chooser&, Case&, const PassContext&);
void simplify_values_to_integers(Chooser&, Case&, const PassContext&);
void shrink_dims_to_one(Chooser&, Case&, const PassContext&);
void shrink_dims_by_half(Chooser&, Case&, const PassContext&);
void shrink_dims_by_half_keep_end(Chooser&, Case&, const PassContext&);
void shrink_dims_by_factors(Chooser&, Case&, const PassContext&);
void shrink_dims_by_parts(Chooser&, Case&, const PassContext&);
void shrink_dims_with_multiples(Chooser&, Case&, const PassContext&);
void shrink_dims_with_neighbours(Chooser&, Case&, const PassContext&);
void shrink_input_dims(Chooser&, Case&, const PassContext&);
void shrink_input_dims_by_half(Chooser&, Case&, const PassContext&);
void shrink_input_dims_by_parts(Chooser&, Case&, const PassContext&);
void simplify_dtypes(Chooser&, Case&, const PassContext&);
void simplify_strides(Chooser&, Case&, const PassContext&);
void simplify_scalars(Chooser&, Case&, const PassContext&);
void drop_keywords(Chooser&, Case&, const PassContext&);
void drop_gradients(Chooser&, Case&, const PassContext&);
void drop_state(Chooser&, Case&, const PassContext&);

}  // namespace cutaway::minify
