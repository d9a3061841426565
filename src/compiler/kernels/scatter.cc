#include "compiler/kernels/scatter.h"

namespace cutaway::kernels {

template <class T> bool scatter_add(const ScatterAdd& s, const int64_t* index, const T* source, T* target, int64_t first, int64_t past) {
  const int last = s.dims - 1;
  int64_t at[kMostScatterDims] = {}, rows = 1;
  for (int d = 0; d < last; ++d) rows *= s.sizes[d];
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t* i = index;
    const T* from = source;
    T* to = target;
    for (int d = 0; d < last; ++d) {
      i += at[d] * s.index_strides[d];
      from += at[d] * s.source_strides[d];
      to += at[d] * s.target_strides[d];
    }
    const auto place = [&](int64_t given, int64_t& out) {
      out = s.wraps && given < 0 ? given + s.limit : given;
      return out >= 0 && out < s.limit;
    };
    int64_t where = 0;
    if (s.index_strides[last] == 0) {   // one index for the whole row
      if (!place(*i, where)) return false;
      if (*i != s.skip) {
        to += where * s.row;
        if (s.source_strides[last] == 1 && s.target_strides[last] == 1)
          for (int64_t j = first; j < past; ++j) to[j] += from[j];
        else
          for (int64_t j = first; j < past; ++j) to[j * s.target_strides[last]] += from[j * s.source_strides[last]];
      }
    } else {
      for (int64_t j = first; j < past; ++j) {
        const int64_t given = i[j * s.index_strides[last]];
        if (!place(given, where)) return false;
        if (given != s.skip) to[j * s.target_strides[last] + where * s.row] += from[j * s.source_strides[last]];
      }
    }
    for (int d = last - 1; d >= 0; --d) {
      if (++at[d] < s.sizes[d]) break;
      at[d] = 0;
    }
  }
  return true;
}

template bool scatter_add<float>(const ScatterAdd&, const int64_t*, const float*, float*, int64_t, int64_t);
template bool scatter_add<double>(const ScatterAdd&, const int64_t*, const double*, double*, int64_t, int64_t);

}  // namespace cutaway::kernels
