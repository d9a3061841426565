#include "core/tensor/tensor_store.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>

#include "core/tensor/convert.h"
#include "core/tensor/rebuild.h"

namespace cutaway::tensor {
namespace {

std::span<const std::byte> as_span(const HostBytes& b) { return {static_cast<const std::byte*>(b.data), b.size}; }

base::Error from_torch(std::string what, const c10::Error& e) { return base::Error{.what = std::move(what), .because = e.what_without_backtrace()}; }

}  // namespace

base::Result<base::Digest> digest_storage(const at::Storage& storage) {
  if (storage.device().is_meta()) return base::Error{.what = "the storage of a meta tensor has no data"};
  try {
    const HostBytes bytes = host_bytes(storage);
    return base::digest_bytes(bytes.data, bytes.size);
  } catch (const c10::Error& e) {
    return from_torch("a storage on " + storage.device().str() + " cannot be read", e);
  }
}

base::Result<bundle::TensorRecord> write_tensor(store::Store& store, const at::Tensor& t) {
  CUTAWAY_TRY_ASSIGN(bundle::TensorRecord r, compute_tensor_metadata(t));
  if (auto refusal = why_no_data(t)) return *std::move(refusal);
  if (r.is_zero) return r;   // it says all
  try {
    const HostBytes bytes = host_bytes(t.storage());
    CUTAWAY_TRY_ASSIGN(r.storage, store.put(as_span(bytes)));
    return r;
  } catch (const c10::Error& e) {
    return from_torch("a tensor on " + t.device().str() + " cannot be read", e);
  }
}

base::Result<at::Tensor> TensorReader::read(const bundle::TensorRecord& r) {
  if (r.is_zero) {
    at::Tensor zero = make_zero(r, onto_ ? *onto_ : to_aten(r.device));
    set_gradness(zero, r.requires_grad, r.is_leaf);
    return zero;
  }
  if (r.storage.is_none()) return base::Error{.what = "only the metadata of this tensor was recorded, not its data"};
  const std::optional<uint64_t> needed = bytes_needed(r);
  if (ir::is_quantized(r.dtype)) return base::Error{.what = "a record of the quantized dtype " + std::string(ir::dtype_name(r.dtype)) + " cannot be read"};
  if (!needed || *needed > r.storage_bytes)
    return base::Error{.what = "the view of this tensor leaves its storage of " + std::to_string(r.storage_bytes) + " bytes"};
  try {
    const at::Device device = onto_ ? *onto_ : to_aten(r.device);
    const std::string key = r.storage.hex() + "/" + std::to_string(r.storage_id);
    auto known = storages_.find(key);
    at::Storage storage;
    if (r.storage_id >= 0 && known != storages_.end()) {
      storage = known->second;
    } else {
      CUTAWAY_TRY_ASSIGN(store::Blob blob, store_.get(r.storage, r.storage_bytes));
      storage = make_storage(blob.data(), blob.size(), device);
      if (r.storage_id >= 0) storages_.emplace(key, storage);
    }
    at::Tensor t = view_storage(storage, r);
    set_gradness(t, r.requires_grad, r.is_leaf);
    return t;
  } catch (const c10::Error& e) {
    base::Error error = from_torch("a tensor recorded on " + r.device.text() + " cannot be made here", e);
    if (!onto_ && r.device.type != "cpu") error.hint = "ask for it on a device that is present (\"cpu\")";
    return error;
  }
}

int64_t NamedTensors::id_of(const at::Storage& storage, std::string_view name) {
  Written& w = written_[storage.unsafeGetStorageImpl()];
  if (w.id >= 0 && !w.storage.expired()) return w.id;
  // The first name that a storage was put under identifies it: the same in every process, distinct across names. A name that is
  // put again moves on by one, since other names may still share the storage that it had before.
  constexpr int64_t kRounds = 1 << 20;
  w.id = static_cast<int64_t>(base::digest_text(name).low >> 12);   // with the rounds below 2^53: exact in every JSON reader
  if (store_.contains_record(name))
    if (auto before = metadata(name); before.ok() && before->storage_id >= w.id && before->storage_id < w.id + kRounds) w.id = before->storage_id + 1;
  w.storage = storage.getWeakStorageImpl();
  return w.id;
}

base::Result<bundle::TensorRecord> NamedTensors::put(std::string_view name, const at::Tensor& t, As as) {
  auto written = write_tensor(store_, t);
  if (!written.ok()) return std::move(written).error().at("tensor \"" + std::string(name) + "\"");
  bundle::TensorRecord r = std::move(written).value();
  r.storage_id = id_of(t.storage(), name);
  r.is_parameter = as == As::parameter;
  CUTAWAY_TRY(store_.put_record(name, r.to_json()));
  // Dead storages would otherwise pile up in a long recording.
  if (written_.size() % 1024 == 0) std::erase_if(written_, [](const auto& e) { return e.second.storage.expired(); });
  return r;
}

base::Result<bundle::TensorRecord> NamedTensors::metadata(std::string_view name) const {
  CUTAWAY_TRY_ASSIGN(std::string text, store_.get_record(name));
  return bundle::TensorRecord::from_json(text, name);
}

base::Result<at::Tensor> NamedTensors::get(std::string_view name, std::optional<at::Device> onto) const {
  CUTAWAY_TRY_ASSIGN(bundle::TensorRecord r, metadata(name));
  auto t = TensorReader(store_, onto).read(r);
  if (!t.ok()) return std::move(t).error().at("tensor \"" + std::string(name) + "\"");
  return t;
}

base::Result<std::vector<at::Tensor>> NamedTensors::get(const std::vector<std::string>& names, std::optional<at::Device> onto) const {
  TensorReader reader(store_, onto);
  std::vector<at::Tensor> out;
  for (const std::string& name : names) {
    CUTAWAY_TRY_ASSIGN(bundle::TensorRecord r, metadata(name));
    auto t = reader.read(r);
    if (!t.ok()) return std::move(t).error().at("tensor \"" + name + "\"");
    out.push_back(std::move(t).value());
  }
  return out;
}

namespace {

// Bits of two views of equal dtype and sizes, element by element in row-major order; storages are not copied.
int64_t count_unequal(const std::byte* a, const bundle::TensorRecord& ra, const std::byte* b, const bundle::TensorRecord& rb) {
  const size_t item = ir::dtype_bytes(ra.dtype), rank = ra.sizes.size();
  for (int64_t s : ra.sizes)
    if (s == 0) return 0;
  std::vector<int64_t> index(rank, 0);
  int64_t at_a = ra.storage_offset, at_b = rb.storage_offset, unequal = 0;
  for (;;) {
    unequal += std::memcmp(a + at_a * item, b + at_b * item, item) != 0;
    size_t d = rank;
    for (;;) {
      if (d == 0) return unequal;
      --d;
      at_a += ra.strides[d];
      at_b += rb.strides[d];
      if (++index[d] < ra.sizes[d]) break;
      at_a -= ra.strides[d] * ra.sizes[d];
      at_b -= rb.strides[d] * rb.sizes[d];
      index[d] = 0;
    }
  }
}

base::Status compare_elements(const store::Store& store, const bundle::TensorRecord& a, const bundle::TensorRecord& b, RecordingDifference& out) {
  CUTAWAY_TRY_ASSIGN(store::Blob blob_a, store.get(a.storage));
  CUTAWAY_TRY_ASSIGN(store::Blob blob_b, store.get(b.storage));
  for (const auto& [r, blob] : {std::pair(&a, &blob_a), std::pair(&b, &blob_b)})
    if (const auto needed = bytes_needed(*r); !needed || *needed > blob->size()) return base::Error{.what = "the view of a tensor leaves its storage"};
  out.elements = 1;
  for (int64_t s : a.sizes) out.elements *= s;
  out.unequal_elements = count_unequal(static_cast<const std::byte*>(blob_a.data()), a, static_cast<const std::byte*>(blob_b.data()), b);
  return {};
}

}  // namespace

base::Result<std::vector<RecordingDifference>> compare_recordings(const store::Store& store, std::string_view a, std::string_view b) {
  std::map<std::string, std::pair<bool, bool>> names;
  auto collect = [&](std::string_view prefix, bool std::pair<bool, bool>::* side) -> base::Status {
    CUTAWAY_TRY_ASSIGN(std::vector<std::string> found, store.list_records(prefix));
    for (const std::string& n : found) names[n.substr(prefix.size())].*side = true;
    return {};
  };
  CUTAWAY_TRY(collect(a, &std::pair<bool, bool>::first));
  CUTAWAY_TRY(collect(b, &std::pair<bool, bool>::second));
  auto record = [&](const std::string& name) -> base::Result<bundle::TensorRecord> {
    CUTAWAY_TRY_ASSIGN(std::string text, store.get_record(name));
    return bundle::TensorRecord::from_json(text, name);
  };
  std::vector<RecordingDifference> out;
  for (const auto& [name, in] : names) {
    RecordingDifference d{.name = name};
    if (!in.first || !in.second) {
      d.fields.push_back("only in " + std::string(in.first ? a : b));
      out.push_back(std::move(d));
      continue;
    }
    CUTAWAY_TRY_ASSIGN(bundle::TensorRecord ra, record(std::string(a) + name));
    CUTAWAY_TRY_ASSIGN(bundle::TensorRecord rb, record(std::string(b) + name));
    // Ids come from names, which differ by the prefix: they say nothing about the tensors.
    ra.storage_id = rb.storage_id = -1;
    d.fields = bundle::differing_fields(ra, rb);
    if (d.fields.empty()) continue;
    const bool comparable = ra.dtype == rb.dtype && ra.sizes == rb.sizes && ra.is_conj == rb.is_conj && ra.is_neg == rb.is_neg;
    if (comparable && !ra.storage.is_none() && !rb.storage.is_none()) CUTAWAY_TRY(compare_elements(store, ra, rb, d));
    out.push_back(std::move(d));
  }
  return out;
}

}  // namespace cutaway::tensor
