#include "core/trace/fakes/view_rules.h"

#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "core/trace/fake_tensor.h"
#include "core/trace/fakes/fake_impl.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace {
namespace {

using at::Tensor;
using c10::IValue;
using Sizes = c10::SmallVector<int64_t, 5>;

/// False when it is out of range.
bool wrap(int64_t& dim, int64_t dims) {
  if (dim < 0) dim += dims;
  return dim >= 0 && dim < dims;
}
struct Geometry {
  explicit Geometry(const Tensor& t) : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {}
  Sizes sizes, strides;
  int64_t offset;
  Tensor of(const Tensor& base) const { return make_view(base, sizes, strides, offset); }
};

bool same(const Tensor& self, const IValue*, IValue& out) {
  out = Geometry(self).of(self);
  return true;
}
bool exchange(const Tensor& self, int64_t a, int64_t b, IValue& out) {
  Geometry g(self);
  std::swap(g.sizes[a], g.sizes[b]);
  std::swap(g.strides[a], g.strides[b]);
  out = g.of(self);
  return true;
}
bool t(const Tensor& self, const IValue* args, IValue& out) {
  if (self.dim() > 2) return false;
  return self.dim() == 2 ? exchange(self, 0, 1, out) : same(self, args, out);
}
bool transpose(const Tensor& self, const IValue* args, IValue& out) {
  int64_t a = args[1].toInt(), b = args[2].toInt();
  return wrap(a, self.dim()) && wrap(b, self.dim()) && exchange(self, a, b, out);
}
bool permute(const Tensor& self, const IValue* args, IValue& out) {
  if (!args[1].isIntList()) return false;
  const auto dims = args[1].toDimVector();
  if (static_cast<int64_t>(dims.size()) != self.dim()) return false;
  Geometry g(self);
  uint64_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = dims[i];
    if (!wrap(d, self.dim()) || seen >> d & 1) return false;
    seen |= uint64_t{1} << d;
    g.sizes[i] = self.size(d);
    g.strides[i] = self.stride(d);
  }
  out = g.of(self);
  return true;
}
bool expand(const Tensor& self, const IValue* args, IValue& out) {
  if (!args[1].isIntList()) return false;
  const auto wanted = args[1].toDimVector();
  const auto n = static_cast<int64_t>(wanted.size()), extra = n - self.dim();
  if (extra < 0) return false;
  Geometry g(self);
  g.sizes.assign(wanted.begin(), wanted.end());
  g.strides.assign(n, 0);
  for (int64_t d = n - 1; d >= 0; --d) {
    const int64_t from = d - extra;
    const int64_t size = from >= 0 ? self.size(from) : 1;
    const int64_t stride = from >= 0 ? self.stride(from) : d + 1 < n ? g.sizes[d + 1] * g.strides[d + 1] : 1;
    if (g.sizes[d] == -1 && from >= 0) g.sizes[d] = size;
    if (g.sizes[d] < 0 || (size != g.sizes[d] && size != 1)) return false;
    g.strides[d] = size == g.sizes[d] ? stride : 0;
  }
  out = g.of(self);
  return true;
}
bool unsqueeze(const Tensor& self, const IValue* args, IValue& out) {
  int64_t d = args[1].toInt();
  if (!wrap(d, self.dim() + 1)) return false;
  Geometry g(self);
  const int64_t stride = d < self.dim() ? g.sizes[d] * g.strides[d] : 1;
  g.sizes.insert(g.sizes.begin() + d, 1);
  g.strides.insert(g.strides.begin() + d, stride);
  out = g.of(self);
  return true;
}
template <class Drops> bool squeeze_where(const Tensor& self, Drops&& drops, IValue& out) {
  Geometry g(self);
  g.sizes.clear();
  g.strides.clear();
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.size(d) != 1 || !drops(d)) {
      g.sizes.push_back(self.size(d));
      g.strides.push_back(self.stride(d));
    }
  out = g.of(self);
  return true;
}
bool squeeze(const Tensor& self, const IValue*, IValue& out) {
  return squeeze_where(self, [](int64_t) { return true; }, out);
}
bool squeeze_dim(const Tensor& self, const IValue* args, IValue& out) {
  int64_t dim = args[1].toInt();
  return wrap(dim, self.dim()) && squeeze_where(self, [&](int64_t d) { return d == dim; }, out);
}
bool squeeze_dims(const Tensor& self, const IValue* args, IValue& out) {
  if (!args[1].isIntList()) return false;
  auto dims = args[1].toDimVector();
  for (auto& d : dims)
    if (!wrap(d, self.dim())) return false;
  return squeeze_where(self, [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }, out);
}
bool select(const Tensor& self, const IValue* args, IValue& out) {
  int64_t d = args[1].toInt();
  if (!args[2].isInt() || !wrap(d, self.dim())) return false;
  int64_t index = args[2].toInt();
  if (!wrap(index, self.size(d))) return false;
  Geometry g(self);
  g.offset += index * g.strides[d];
  g.sizes.erase(g.sizes.begin() + d);
  g.strides.erase(g.strides.begin() + d);
  out = g.of(self);
  return true;
}
Tensor part_of(const Tensor& self, int64_t d, int64_t start, int64_t length) {
  Geometry g(self);
  g.offset += start * g.strides[d];
  g.sizes[d] = length;
  return g.of(self);
}
bool slice(const Tensor& self, const IValue* args, IValue& out) {
  int64_t d = args[1].toInt();
  if (!wrap(d, self.dim()) || !(args[2].isNone() || args[2].isInt()) || !(args[3].isNone() || args[3].isInt()) || !args[4].isInt()) return false;
  const int64_t size = self.size(d), step = args[4].toInt();
  if (step <= 0) return false;
  const auto clamped = [&](int64_t v) { return v < 0 ? std::max<int64_t>(v + size, 0) : std::min(v, size); };
  const int64_t start = args[2].isNone() ? 0 : clamped(args[2].toInt());
  const int64_t end = std::max(start, args[3].isNone() ? size : clamped(args[3].toInt()));
  Geometry g(self);
  g.offset += start * g.strides[d];
  g.sizes[d] = (end - start) / step + ((end - start) % step != 0);
  g.strides[d] *= step;
  out = g.of(self);
  return true;
}
bool split(const Tensor& self, const IValue* args, IValue& out) {
  int64_t d = args[2].toInt();
  if (!args[1].isInt() || !wrap(d, self.dim())) return false;
  const int64_t length = args[1].toInt(), size = self.size(d);
  if (length <= 0 || size == 0) return false;
  std::vector<Tensor> parts;
  for (int64_t start = 0; start < size; start += length) parts.push_back(part_of(self, d, start, std::min(length, size - start)));
  out = std::move(parts);
  return true;
}
bool split_with_sizes(const Tensor& self, const IValue* args, IValue& out) {
  int64_t d = args[2].toInt();
  if (!args[1].isIntList() || !wrap(d, self.dim())) return false;
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t length : args[1].toDimVector()) {
    if (length < 0 || start + length > self.size(d)) return false;
    parts.push_back(part_of(self, d, start, length));
    start += length;
  }
  if (start != self.size(d)) return false;
  out = std::move(parts);
  return true;
}
bool unbind(const Tensor& self, const IValue* args, IValue& out) {
  int64_t d = args[1].toInt();
  if (!wrap(d, self.dim())) return false;
  Geometry g(self);
  g.sizes.erase(g.sizes.begin() + d);
  g.strides.erase(g.strides.begin() + d);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < self.size(d); ++i, g.offset += self.stride(d)) parts.push_back(g.of(self));
  out = std::move(parts);
  return true;
}
bool view(const Tensor& self, const IValue* args, IValue& out) {
  if (!args[1].isIntList()) return false;
  const auto wanted = args[1].toDimVector();
  int64_t product = 1;
  for (const int64_t s : wanted) product *= s < 0 ? 1 : s;
  if (product == 0 || self.numel() % product != 0) return false;
  const auto sizes = at::infer_size_dv(wanted, self.numel());
  const auto strides = at::detail::computeStride(self.sizes(), self.strides(), sizes);
  if (!strides) return false;
  out = make_view(self, sizes, *strides, self.storage_offset());
  return true;
}
bool as_strided(const Tensor& self, const IValue* args, IValue& out) {
  if (!args[1].isIntList() || !args[2].isIntList() || !(args[3].isNone() || args[3].isInt())) return false;
  const auto sizes = args[1].toDimVector(), strides = args[2].toDimVector();
  const int64_t offset = args[3].isNone() ? self.storage_offset() : args[3].toInt();
  if (sizes.size() != strides.size() || offset < 0) return false;
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] <= 0 || strides[i] < 0) return false;
    last += (sizes[i] - 1) * strides[i];
  }
  if ((last + 1) * static_cast<int64_t>(self.itemsize()) > static_cast<int64_t>(self.storage().nbytes())) return false;
  out = make_view(self, sizes, strides, offset);
  return true;
}
bool reshape_alias(const Tensor& self, const IValue* args, IValue& out) {
  if (!args[1].isIntList() || !args[2].isIntList()) return false;
  out = make_view(self, args[1].toDimVector(), args[2].toDimVector(), self.storage_offset());
  return true;
}

}  // namespace

static const std::unordered_map<std::string, ViewRule>& view_rules() {
  static const std::unordered_map<std::string, ViewRule> rules = {
      {"aten::alias", same}, {"aten::detach", same}, {"aten::t", t}, {"aten::transpose.int", transpose}, {"aten::permute", permute}, {"aten::expand", expand},
      {"aten::unsqueeze", unsqueeze}, {"aten::squeeze", squeeze}, {"aten::squeeze.dim", squeeze_dim}, {"aten::squeeze.dims", squeeze_dims}, {"aten::select.int", select},
      {"aten::slice.Tensor", slice}, {"aten::split.Tensor", split}, {"aten::split_with_sizes", split_with_sizes}, {"aten::unbind.int", unbind}, {"aten::view", view},
      {"aten::as_strided", as_strided}, {"aten::_reshape_alias", reshape_alias},
  };
  return rules;
}

ViewRule find_view_rule(const std::string& full_name) {
  const auto it = view_rules().find(full_name);
  return it == view_rules().end() ? nullptr : it->second;
}

std::vector<std::string> shape_rule_names() {
  std::vector<std::string> names = table_rule_names();
  for (const auto& [name, rule] : view_rules()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cutaway::trace
