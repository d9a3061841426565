#include "core/ir/type.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

namespace cutaway::ir {
namespace {

struct DTypeRow {
  std::string_view name;
  int bytes;
  enum class Family : uint8_t { integral, floating, complex, boolean, quantized, bits } family;
};
using F = DTypeRow::Family;
// Indexed by DType. Types narrower than a byte take a whole one, as in torch; the packed ones hold several numbers in it.
constexpr std::array<DTypeRow, kDTypeCount> kDTypes = {{
    {"u8", 1, F::integral},       {"i8", 1, F::integral},        {"i16", 2, F::integral},     {"i32", 4, F::integral},
    {"i64", 8, F::integral},      {"f16", 2, F::floating},       {"f32", 4, F::floating},     {"f64", 8, F::floating},
    {"c32", 4, F::complex},       {"c64", 8, F::complex},        {"c128", 16, F::complex},    {"bool", 1, F::boolean},
    {"qi8", 1, F::quantized},     {"qu8", 1, F::quantized},      {"qi32", 4, F::quantized},   {"bf16", 2, F::floating},
    {"qu4x2", 1, F::quantized},   {"qu2x4", 1, F::quantized},    {"bits1x8", 1, F::bits},     {"bits2x4", 1, F::bits},
    {"bits4x2", 1, F::bits},      {"bits8", 1, F::bits},         {"bits16", 2, F::bits},      {"f8e5m2", 1, F::floating},
    {"f8e4m3fn", 1, F::floating}, {"f8e5m2fnuz", 1, F::floating}, {"f8e4m3fnuz", 1, F::floating}, {"u16", 2, F::integral},
    {"u32", 4, F::integral},      {"u64", 8, F::integral},       {"u1", 1, F::integral},      {"u2", 1, F::integral},
    {"u3", 1, F::integral},       {"u4", 1, F::integral},        {"u5", 1, F::integral},      {"u6", 1, F::integral},
    {"u7", 1, F::integral},       {"i1", 1, F::integral},        {"i2", 1, F::integral},      {"i3", 1, F::integral},
    {"i4", 1, F::integral},       {"i5", 1, F::integral},        {"i6", 1, F::integral},      {"i7", 1, F::integral},
    {"f8e8m0fnu", 1, F::floating}, {"f4e2m1fnx2", 1, F::floating},
}};
const DTypeRow& row(DType d) {
  assert(static_cast<size_t>(d) < kDTypes.size() && "a dtype outside the enumeration");
  return kDTypes[static_cast<size_t>(d)];
}

constexpr std::array<std::string_view, 8> kLayouts = {"strided",    "sparse_coo", "sparse_csr", "mkldnn",
                                                      "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
constexpr std::array<std::string_view, 4> kMemoryFormats = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

template <class E, size_t N>
std::optional<E> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace

std::string_view dtype_name(DType d) { return row(d).name; }
std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}
int64_t dtype_bytes(DType d) { return row(d).bytes; }
bool is_floating(DType d) { return row(d).family == F::floating; }
bool is_complex(DType d) { return row(d).family == F::complex; }
bool is_quantized(DType d) { return row(d).family == F::quantized; }
bool is_integral(DType d) { return row(d).family == F::integral; }

std::string_view layout_name(Layout l) { return kLayouts.at(static_cast<size_t>(l)); }
std::optional<Layout> layout_from_name(std::string_view name) { return find_name<Layout>(kLayouts, name); }
std::string_view memory_format_name(MemoryFormat f) { return kMemoryFormats.at(static_cast<size_t>(f)); }
std::optional<MemoryFormat> memory_format_from_name(std::string_view name) { return find_name<MemoryFormat>(kMemoryFormats, name); }

std::string Device::text() const { return index < 0 ? type : type + ":" + std::to_string(index); }

base::Result<Device> Device::parse(std::string_view text) {
  const size_t colon = text.find(':');
  Device d;
  d.type = std::string(text.substr(0, colon));
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool good = !d.type.empty() && is_letter(d.type[0]);
  for (char c : d.type) good = good && (is_letter(c) || (c >= '0' && c <= '9'));
  if (good && colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), d.index);
    good = failure == std::errc() && end == digits.data() + digits.size() && digits[0] != '-' && d.index <= kMaxIndex;
  }
  if (!good)
    return base::Error{"\"" + std::string(text) + "\" is not a device", {}, "a device is a name and perhaps an index from 0 to 127: cpu, cuda:0", {}, {}};
  return d;
}

std::optional<int64_t> TensorType::numel() const {
  int64_t n = 1;
  bool zero = false, overflow = false;
  for (const Dim& d : sizes) {
    if (d.is_symbolic()) return std::nullopt;
    zero = zero || d.value() == 0;
    overflow = overflow || __builtin_mul_overflow(n, d.value(), &n);
  }
  if (zero) return 0;
  return overflow ? std::nullopt : std::optional(n);
}

std::vector<Dim> contiguous_strides(const std::vector<Dim>& sizes) {
  // The running product: a constant, and the symbolic factors in the order of the sizes.
  int64_t constant = 1;
  std::vector<std::shared_ptr<const SymExpr>> factors;
  std::vector<Dim> strides(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    if (factors.empty()) {
      strides[i] = Dim(constant);
    } else if (factors.size() == 1 && constant == 1) {
      strides[i] = Dim(factors[0]);
    } else {
      auto product = std::make_shared<SymExpr>();
      product->kind = SymExpr::Kind::mul;
      product->operands = factors;
      if (constant != 1) {
        auto number = std::make_shared<SymExpr>();
        number->constant = constant;
        product->operands.push_back(std::move(number));
      }
      strides[i] = Dim(std::shared_ptr<const SymExpr>(std::move(product)));
    }
    if (sizes[i].is_symbolic()) {
      factors.insert(factors.begin(), sizes[i].expr());
    } else {
      // torch counts a size of 0 as 1 here. Saturated: such a type is refused by the parser and by verify().
      const int64_t size = sizes[i].value() < 1 ? 1 : sizes[i].value();
      if (__builtin_mul_overflow(constant, size, &constant)) constant = std::numeric_limits<int64_t>::max();
    }
  }
  return strides;
}

bool TensorType::is_contiguous() const {
  if (strides.size() != sizes.size()) return false;
  for (const Dim& d : sizes)
    if (!d.is_symbolic() && d.value() == 0) return true;
  const std::vector<Dim> expected = contiguous_strides(sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is_symbolic() && sizes[i].value() == 1) continue;   // the stride of a single element is never used
    if (!(strides[i] == expected[i])) return false;
  }
  return true;
}

bool Type::operator==(const Type& o) const { return kind == o.kind && (kind != Kind::tensor || tensor == o.tensor); }

std::string_view type_kind_name(Type::Kind kind) {
  constexpr std::array<std::string_view, 10> names = {"tensor", "none", "int", "float", "bool", "complex", "str", "device", "dtype", "opaque"};
  return names.at(static_cast<size_t>(kind));
}

}  // namespace cutaway::ir
