#include <ATen/ATen.h>

#include <cstdint>
#include <unordered_map>

#include "core/tensor/convert.h"
#include "core/tensor/make.h"
#include "core/tensor/rebuild.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::tensor {
namespace {

using bundle::InputRef;

std::string place_of(size_t i, const ir::Graph* graph) {
  std::string place = "input " + std::to_string(i);
  if (graph && i < graph->inputs.size()) place += " (%" + graph->value(graph->inputs[i].value).name + ")";
  return place;
}

std::optional<Range> range_from_graph(const ir::Graph* graph, size_t i) {
  if (!graph || i >= graph->inputs.size()) return std::nullopt;
  return index_range(*graph, graph->inputs[i].value);
}

// Smallest and largest number in an integer tensor: random data from that range goes wherever the data went.
std::optional<Range> range_of_data(const at::Tensor& t) {
  if (t.numel() == 0 || t.scalar_type() == at::kUInt64) return std::nullopt;
  const auto [low, high] = at::aminmax(t.detach().to(at::kLong));
  const int64_t last = high.item<int64_t>();
  if (last == INT64_MAX) return std::nullopt;
  return Range(low.item<int64_t>(), last + 1);
}

// Makes one storage after another as long as they fit, and remembers what became of each.
class InputWriter {
 public:
  InputWriter(store::Store& store, const SaveLimits& limits, const ir::Graph* graph) : store_(store), limits_(limits), graph_(graph) {}

  base::Result<InputRef> write(const at::Tensor& t, size_t position) {
    InputRef ref;
    CUTAWAY_TRY_ASSIGN(ref.tensor, compute_tensor_metadata(t));
    ref.seed = limits_.seed + position;
    if (ref.tensor.is_zero) {
      ref.kind = InputRef::Kind::filled;
      return ref;
    }
    if (auto none = why_no_data(t)) {
      // Fakes have a storage each for all that can be seen of them; meta tensors share theirs as others do.
      ref.tensor.storage_id = t.is_meta() ? saved_of(t).id : next_id_++;
      return seeded(std::move(ref), none->what, range_from_graph(graph_, position));
    }
    Saved& saved = saved_of(t);
    ref.tensor.storage_id = saved.id;
    if (saved.state == Saved::State::fresh) CUTAWAY_TRY(save(saved, t));
    if (saved.state == Saved::State::written) {
      ref.tensor.storage = saved.digest;
      return ref;
    }
    std::optional<Range> range = range_from_graph(graph_, position);
    if (!range && ir::is_integral(ref.tensor.dtype)) range = range_of_data(t);
    return seeded(std::move(ref), "its storage of " + std::to_string(ref.tensor.storage_bytes) + " bytes did not fit into the limit of " + std::to_string(limits_.max_bytes), range);
  }

 private:
  struct Saved {
    enum class State { fresh, written, too_large } state = State::fresh;
    int64_t id = -1;
    base::Digest digest;
  };

  Saved& saved_of(const at::Tensor& t) {
    Saved& saved = saved_[t.storage().unsafeGetStorageImpl()];
    if (saved.id < 0) saved.id = next_id_++;
    return saved;
  }

  base::Status save(Saved& saved, const at::Tensor& t) {
    const uint64_t bytes = t.storage().nbytes();
    if (bytes > limits_.max_bytes - written_bytes_) {
      saved.state = Saved::State::too_large;
      return {};
    }
    CUTAWAY_TRY_ASSIGN(bundle::TensorRecord record, write_tensor(store_, t));
    saved.digest = record.storage;
    saved.state = Saved::State::written;
    written_bytes_ += bytes;
    return {};
  }

  static InputRef seeded(InputRef ref, std::string reason, std::optional<Range> range) {
    ref.kind = InputRef::Kind::seeded;
    ref.reason = std::move(reason);
    if (ir::is_integral(ref.tensor.dtype)) ref.range = range;
    return ref;
  }

  store::Store& store_;
  const SaveLimits& limits_;
  const ir::Graph* graph_;
  uint64_t written_bytes_ = 0;
  int64_t next_id_ = 0;
  std::unordered_map<const c10::StorageImpl*, Saved> saved_;
};

}  // namespace

base::Result<std::vector<InputRef>> save_inputs(store::Store& store, const std::vector<c10::IValue>& values, const SaveLimits& limits, const ir::Graph* graph) {
  if (graph && graph->inputs.size() != values.size())
    return base::Error{.what = "the graph has " + std::to_string(graph->inputs.size()) + " inputs, and " + std::to_string(values.size()) + " were given"};
  InputWriter writer(store, limits, graph);
  std::vector<InputRef> refs;
  refs.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].isTensor() && values[i].toTensor().defined()) {
      auto ref = writer.write(values[i].toTensor(), i);
      if (!ref.ok()) return std::move(ref).error().at(place_of(i, graph));
      refs.push_back(std::move(ref).value());
      continue;
    }
    const ir::Type::Kind kind = graph ? graph->value(graph->inputs[i].value).type.kind : ir::Type::Kind::opaque;
    auto literal = to_literal(values[i].isTensor() ? c10::IValue() : values[i], kind);
    if (!literal.ok()) {
      base::Error error = std::move(literal).error();
      if (values[i].isList() || values[i].isTuple() || values[i].isGenericDict()) error.hint = "give the tensors inside of lists and tuples as inputs of their own";
      return std::move(error).at(place_of(i, graph));
    }
    InputRef ref;
    ref.kind = InputRef::Kind::literal;
    ref.literal = std::move(literal).value();
    refs.push_back(std::move(ref));
  }
  return refs;
}

namespace {

// Makes the tensors that have no data. Those that shared a storage share one again.
class Maker {
 public:
  Maker(const std::vector<InputRef>& refs, std::optional<at::Device> onto) : onto_(onto) {
    for (const InputRef& ref : refs) {
      if (ref.kind != InputRef::Kind::seeded && ref.kind != InputRef::Kind::filled) continue;
      if (ref.tensor.storage_id < 0) continue;
      uint64_t& most = bytes_[ref.tensor.storage_id];   // the storage must hold the furthest view of it
      most = std::max({most, ref.tensor.storage_bytes, bytes_needed(ref.tensor).value_or(0)});
    }
  }

  base::Result<at::Tensor> make(const InputRef& ref) {
    if (!bytes_needed(ref.tensor)) return base::Error{.what = "the view of a tensor does not fit into 64 bits"};
    if (ref.tensor.is_zero) {
      at::Tensor zero = make_zero(ref.tensor, onto_ ? *onto_ : to_aten(ref.tensor.device));
      set_gradness(zero, ref.tensor.requires_grad, ref.tensor.is_leaf);
      return zero;
    }
    at::Storage fresh;
    at::Storage& storage = ref.tensor.storage_id < 0 ? fresh : storages_[ref.tensor.storage_id];
    if (!storage) {
      bundle::TensorRecord whole = ref.tensor;
      if (ref.tensor.storage_id >= 0) whole.storage_bytes = bytes_[ref.tensor.storage_id];
      CUTAWAY_TRY_ASSIGN(storage, random_storage(whole, ref.seed, ref.range, onto_));
    }
    at::Tensor t = view_storage(storage, ref.tensor);
    if (ref.kind == InputRef::Kind::filled) t.fill_(ref.fill);
    set_gradness(t, ref.tensor.requires_grad, ref.tensor.is_leaf);
    return t;
  }

 private:
  std::optional<at::Device> onto_;
  std::unordered_map<int64_t, uint64_t> bytes_;
  std::unordered_map<int64_t, at::Storage> storages_;
};

at::Tensor lay_out_contiguously(const at::Tensor& t) {
  if (t.is_contiguous()) return t;
  at::Tensor copy = t.detach().clone(at::MemoryFormat::Contiguous);
  set_gradness(copy, t.requires_grad(), t.is_leaf());
  return copy;
}

}  // namespace

base::Result<std::vector<c10::IValue>> load_inputs(const std::vector<InputRef>& refs, const store::Store& store, std::optional<at::Device> onto) {
  Maker maker(refs, onto);
  TensorReader reader(store, onto);
  std::vector<c10::IValue> out;
  out.reserve(refs.size());
  for (size_t i = 0; i < refs.size(); ++i) {
    const InputRef& ref = refs[i];
    if (ref.kind == InputRef::Kind::literal) {
      auto value = from_literal(ref.literal);
      if (!value.ok()) return std::move(value).error().at(place_of(i, nullptr));
      out.push_back(std::move(value).value());
      continue;
    }
    try {
      auto t = ref.kind == InputRef::Kind::data ? reader.read(ref.tensor) : maker.make(ref);
      if (!t.ok()) {
        base::Error error = std::move(t).error();
        if (ref.kind == InputRef::Kind::data && error.hint.empty()) error.hint = "restore the blob, or ask for random data in its place with --random-inputs";
        if (!error.place.empty()) error.what = error.place + ": " + error.what;
        error.place = place_of(i, nullptr);
        return error;
      }
      out.emplace_back(ref.make_contiguous ? lay_out_contiguously(*t) : *t);
    } catch (const c10::Error& e) {
      return base::Error{.what = "the tensor cannot be made", .place = place_of(i, nullptr), .because = e.what_without_backtrace()};
    }
  }
  return out;
}

size_t replace_missing_by_random(std::vector<InputRef>& refs, const store::Store& store, uint64_t seed, const ir::Graph* graph) {
  std::unordered_map<base::Digest, std::string> damage;   // why a blob cannot be used; empty: it can
  size_t replaced = 0;
  for (size_t i = 0; i < refs.size(); ++i) {
    InputRef& ref = refs[i];
    if (ref.kind != InputRef::Kind::data) continue;
    auto [entry, is_new] = damage.try_emplace(ref.tensor.storage);
    if (is_new)
      if (base::Status status = store.verify(ref.tensor.storage); !status.ok()) entry->second = status.error().what;
    if (entry->second.empty()) continue;
    ref.kind = InputRef::Kind::seeded;
    ref.seed = seed + i;
    ref.reason = entry->second;
    ref.tensor.storage = {};
    if (ir::is_integral(ref.tensor.dtype)) ref.range = range_from_graph(graph, i);
    ++replaced;
  }
  return replaced;
}

}  // namespace cutaway::tensor
