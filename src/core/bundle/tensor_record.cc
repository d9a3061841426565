#include <cstdint>

#include "core/bundle/tensor_record.h"

#include "core/bundle/tensor_json.h"

namespace cutaway::bundle {

using base::Error;
using base::Json;
using base::JsonAt;
using base::JsonFields;
using base::Result;
using base::Status;

namespace {

constexpr size_t kMaxRank = 64;                            // torch's own limit
constexpr uint64_t kMaxBytes = uint64_t{1} << 56;          // no storage is larger; keeps every product below in range

std::string list_text(const std::vector<int64_t>& numbers) {
  std::string out = "[";
  for (size_t i = 0; i < numbers.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return out + "]";
}

Json numbers_json(const std::vector<int64_t>& numbers) { return Json::Array(numbers.begin(), numbers.end()); }

/// Elements that the view reaches: one more than its last index. None: more than any storage has.
std::optional<uint64_t> elements_reached(const TensorRecord& r) {
  for (int64_t size : r.sizes) {
    if (size == 0) return 0;
  }
  uint64_t last = static_cast<uint64_t>(r.storage_offset);
  for (size_t d = 0; d < r.sizes.size(); ++d) {
    uint64_t step = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(r.sizes[d] - 1), static_cast<uint64_t>(r.strides[d]), &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  if (last >= kMaxBytes) return std::nullopt;
  return last + 1;
}

/// The number of elements fits 63 bits, a size of 0 anywhere notwithstanding: torch multiplies in any order.
bool counts_fit(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) {
    if (__builtin_mul_overflow(product, size == 0 ? 1 : size, &product)) return false;
  }
  return true;
}

Status check_view(const TensorRecord& r, const JsonAt& at) {
  if (r.strides.size() != r.sizes.size()) {
    return at.error("strides " + list_text(r.strides) + " do not match sizes " + list_text(r.sizes), "one stride a dimension");
  }
  if (!counts_fit(r.sizes)) return at.error("sizes " + list_text(r.sizes) + " are absurd", "so many elements cannot be counted");
  const std::optional<uint64_t> elements = elements_reached(r);
  const uint64_t width = static_cast<uint64_t>(ir::dtype_bytes(r.dtype));
  if (!elements || *elements > kMaxBytes / width) {
    return at.error("sizes " + list_text(r.sizes) + " with strides " + list_text(r.strides) + " are absurd", "no storage is so large");
  }
  // Without data the size of the storage may be unknown, which is written as 0.
  const bool size_is_known = !r.storage.is_none() || r.storage_bytes != 0;
  if (size_is_known && *elements * width > r.storage_bytes) {
    return at.error("the tensor reaches outside its storage",
                    "sizes " + list_text(r.sizes) + ", strides " + list_text(r.strides) + ", offset " + std::to_string(r.storage_offset) + " of " +
                        std::string(ir::dtype_name(r.dtype)) + " need " + std::to_string(*elements * width) + " bytes, the storage has " +
                        std::to_string(r.storage_bytes));
  }
  return {};
}

}  // namespace

ir::TensorType TensorRecord::type() const {
  ir::TensorType type;
  type.dtype = dtype;
  type.sizes.assign(sizes.begin(), sizes.end());
  type.strides.assign(strides.begin(), strides.end());
  type.device = device;
  type.requires_grad = requires_grad;
  return type;
}

Json tensor_to_json(const TensorRecord& r) {
  Json out;
  out["dtype"] = ir::dtype_name(r.dtype);
  out["sizes"] = numbers_json(r.sizes);
  out["strides"] = numbers_json(r.strides);
  out["storage_bytes"] = r.storage_bytes;
  // What is usual is left out: a reader sees what is special.
  if (r.storage_offset != 0) out["storage_offset"] = r.storage_offset;
  if (r.device != ir::Device{}) out["device"] = r.device.text();
  if (r.requires_grad) out["requires_grad"] = true;
  if (!r.is_leaf) out["is_leaf"] = false;
  if (r.is_conj) out["is_conj"] = true;
  if (r.is_neg) out["is_neg"] = true;
  if (r.is_zero) out["is_zero"] = true;
  if (r.is_parameter) out["is_parameter"] = true;
  if (!r.storage.is_none()) out["storage"] = r.storage.hex();
  if (r.storage_id != -1) out["storage_id"] = r.storage_id;
  return out;
}

Result<TensorRecord> tensor_from_json(const JsonAt& at) {
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
  TensorRecord r;
  {
    CUTAWAY_TRY_ASSIGN(const JsonAt dtype, fields.required("dtype"));
    std::vector<std::string> names;
    for (int i = 0; i < ir::kDTypeCount; ++i) names.emplace_back(ir::dtype_name(static_cast<ir::DType>(i)));
    CUTAWAY_TRY_ASSIGN(const std::string name, dtype.one_of(names));
    r.dtype = *ir::dtype_from_name(name);
  }
  CUTAWAY_TRY_ASSIGN(const JsonAt sizes, fields.required("sizes"));
  CUTAWAY_TRY_ASSIGN(r.sizes, sizes.integers(kMaxRank, 0));
  CUTAWAY_TRY_ASSIGN(const JsonAt strides, fields.required("strides"));
  CUTAWAY_TRY_ASSIGN(r.strides, strides.integers(kMaxRank, 0));
  CUTAWAY_TRY_ASSIGN(const JsonAt bytes, fields.required("storage_bytes"));
  CUTAWAY_TRY_ASSIGN(r.storage_bytes, bytes.unsigned_integer(kMaxBytes));
  CUTAWAY_TRY(fields.when("storage_offset", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(r.storage_offset, at.integer(0, static_cast<int64_t>(kMaxBytes)));
    return {};
  }));
  CUTAWAY_TRY(fields.when("device", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::string text, at.string());
    Result<ir::Device> device = ir::Device::parse(text);
    if (!device.ok()) return at.error(device.error().what, device.error().because);
    r.device = *std::move(device);
    return {};
  }));
  CUTAWAY_TRY(fields.fill("requires_grad", r.requires_grad, &JsonAt::boolean));
  CUTAWAY_TRY(fields.fill("is_leaf", r.is_leaf, &JsonAt::boolean));
  CUTAWAY_TRY(fields.fill("is_conj", r.is_conj, &JsonAt::boolean));
  CUTAWAY_TRY(fields.fill("is_neg", r.is_neg, &JsonAt::boolean));
  CUTAWAY_TRY(fields.fill("is_zero", r.is_zero, &JsonAt::boolean));
  CUTAWAY_TRY(fields.fill("is_parameter", r.is_parameter, &JsonAt::boolean));
  CUTAWAY_TRY(fields.when("storage", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(const std::string text, at.string());
    Result<base::Digest> digest = base::Digest::parse(text);
    if (!digest.ok()) return at.error(digest.error().what);
    if (digest->is_none()) return at.error("a digest of zeros names nothing", "", "leave the field out when there is no data");
    r.storage = *digest;
    return {};
  }));
  CUTAWAY_TRY(fields.when("storage_id", [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(r.storage_id, at.integer(-1));
    return {};
  }));
  CUTAWAY_TRY(fields.finish());
  CUTAWAY_TRY(check_view(r, at));
  return r;
}

std::string TensorRecord::to_json() const { return tensor_to_json(*this).text(2); }

Result<TensorRecord> TensorRecord::from_json(std::string_view text, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(const Json document, Json::parse(text, place));
  return tensor_from_json(JsonAt(document, place));
}

std::vector<std::string> differing_fields(const TensorRecord& a, const TensorRecord& b) {
  std::vector<std::string> out;
  const auto compare = [&](const char* field, const std::string& left, const std::string& right) {
    if (left != right) out.push_back(std::string(field) + " " + left + " != " + right);
  };
  const auto flag = [](bool b) { return std::string(b ? "true" : "false"); };
  compare("dtype", std::string(ir::dtype_name(a.dtype)), std::string(ir::dtype_name(b.dtype)));
  compare("sizes", list_text(a.sizes), list_text(b.sizes));
  compare("strides", list_text(a.strides), list_text(b.strides));
  compare("storage_offset", std::to_string(a.storage_offset), std::to_string(b.storage_offset));
  compare("device", a.device.text(), b.device.text());
  compare("requires_grad", flag(a.requires_grad), flag(b.requires_grad));
  compare("is_leaf", flag(a.is_leaf), flag(b.is_leaf));
  compare("is_conj", flag(a.is_conj), flag(b.is_conj));
  compare("is_neg", flag(a.is_neg), flag(b.is_neg));
  compare("is_zero", flag(a.is_zero), flag(b.is_zero));
  compare("is_parameter", flag(a.is_parameter), flag(b.is_parameter));
  compare("storage_bytes", std::to_string(a.storage_bytes), std::to_string(b.storage_bytes));
  const auto digest = [](const base::Digest& d) { return d.is_none() ? std::string("none") : d.short_hex(); };
  if (a.storage != b.storage) out.push_back("storage " + digest(a.storage) + " != " + digest(b.storage));
  return out;
}

}  // namespace cutaway::bundle
