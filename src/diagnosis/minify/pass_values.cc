// Passes that make the data of inputs plainer, without touching the graph.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "diagnosis/minify/pass_list.h"
#include "diagnosis/minify/sizes.h"

namespace cutaway::minify {
namespace {

using Kind = bundle::InputRef::Kind;

// Metadata stays; the stored bytes are no longer needed, and an offset into them means nothing.
void forget_data(bundle::InputRef& in, std::string reason = "simplified by minify") {
  in.tensor.storage = {};
  in.tensor.storage_bytes = 0;
  in.tensor.storage_id = -1;
  in.tensor.storage_offset = 0;
  in.tensor.is_conj = in.tensor.is_neg = false;
  if (in.make_contiguous) {
    in.make_contiguous = false;
    int64_t stride = 1;
    for (size_t d = in.tensor.sizes.size(); d-- > 0; stride *= std::max<int64_t>(1, in.tensor.sizes[d])) in.tensor.strides[d] = stride;
  }
  in.reason = std::move(reason);
}

void fill_with(Chooser& chooser, Case& c, double value) {
  for (bundle::InputRef& in : c.manifest.inputs) {
    if (in.kind == Kind::literal || (in.kind == Kind::filled && (in.fill == value || in.fill == 0))) continue;
    if (chooser.keep()) continue;
    in.kind = Kind::filled;
    in.fill = value;
    in.range.reset();
    forget_data(in);
  }
}

}  // namespace

void make_seeded(bundle::InputRef& in, size_t position, std::string reason) {
  in.kind = Kind::seeded;
  in.seed = position + 1;
  if (!ir::is_floating(in.tensor.dtype) && !ir::is_complex(in.tensor.dtype)) in.range = std::pair<int64_t, int64_t>{0, 2};   // it may be an index
  forget_data(in, std::move(reason));
}

void simplify_values_to_zeros(Chooser& chooser, Case& c, const PassContext&) { fill_with(chooser, c, 0); }
void simplify_values_to_ones(Chooser& chooser, Case& c, const PassContext&) { fill_with(chooser, c, 1); }

void simplify_values_to_integers(Chooser& chooser, Case& c, const PassContext&) {
  size_t position = 0;
  for (bundle::InputRef& in : c.manifest.inputs) {
    ++position;
    if (in.kind != Kind::data && !(in.kind == Kind::seeded && !in.range)) continue;
    if (chooser.keep()) continue;
    in.kind = Kind::seeded;
    in.seed = position;
    // Negative numbers only where the dtype has them and an index would not: floating point.
    in.range = ir::is_floating(in.tensor.dtype) ? std::pair<int64_t, int64_t>{-3, 4} : std::pair<int64_t, int64_t>{0, 2};
    forget_data(in);
  }
}

}  // namespace cutaway::minify
