#include "core/bundle/tensor_record.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>

namespace tensor_record_test {

using namespace cutaway;
using bundle::TensorRecord;

namespace {
std::string complaint(std::string text) {
  for (char& c : text) c = c == '\'' ? '"' : c;
  const auto read = TensorRecord::from_json(text, "t.json");
  return read.ok() ? "" : read.error().text();
}
}  // namespace

TEST_CASE("tensor record: random records read back equal") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    TensorRecord r;
    r.dtype = static_cast<ir::DType>(random() % ir::kDTypeCount);
    uint64_t last = r.storage_offset = static_cast<int64_t>(random() % 5);
    for (size_t d = random() % 5; d > 0; --d) {
      r.sizes.push_back(static_cast<int64_t>(random() % 4));
      r.strides.push_back(static_cast<int64_t>(random() % 7));
      if (r.sizes.back() > 0) last += static_cast<uint64_t>((r.sizes.back() - 1) * r.strides.back());
    }
    r.storage_bytes = (last + 1) * static_cast<uint64_t>(ir::dtype_bytes(r.dtype)) + random() % 9;
    if (random() % 2) r.device = {"cuda", static_cast<int>(random() % 3) - 1};
    r.requires_grad = random() % 2, r.is_leaf = random() % 2, r.is_conj = random() % 2, r.is_neg = random() % 2, r.is_parameter = random() % 2;
    if (random() % 2) r.storage = {random(), random()};
    r.storage_id = static_cast<int64_t>(random() % 5) - 1;
    const auto back = TensorRecord::from_json(r.to_json(), "t");
    REQUIRE_MESSAGE(back.ok(), back.error().text());
    CHECK(*back == r);
    CHECK(back->to_json() == r.to_json());
    CHECK(differing_fields(*back, r).empty());
    CHECK(r.type().sizes.size() == r.sizes.size());
  }
}

TEST_CASE("tensor record: refuses what no tensor can be") {
  CHECK(complaint("{'dtype':'f32','sizes':[2],'strides':[1],'storage_bytes':8}") == "");
  CHECK(complaint("{'dtype':'f31','sizes':[2],'strides':[1],'storage_bytes':8}").starts_with("t.json: dtype: unknown word \"f31\"; did you mean"));
  CHECK(complaint("{'dtype':'f32','sizes':[-2],'strides':[1],'storage_bytes':8}") == "t.json: sizes[0]: -2 is too small\n   because: at least 0");
  CHECK(complaint("{'dtype':'f32','sizes':[2],'strides':[-1],'storage_bytes':8}") == "t.json: strides[0]: -1 is too small\n   because: at least 0");
  CHECK(complaint("{'dtype':'f32','sizes':[2],'strides':[],'storage_bytes':8}").starts_with("t.json: strides [] do not match sizes [2]"));
  CHECK(complaint("{'dtype':'f32','sizes':[2],'strides':[1]}") == "t.json: the field \"storage_bytes\" is missing");
  CHECK(complaint("{'dtype':'f32','sizes':[3],'strides':[1],'storage_bytes':8}") ==
        "t.json: the tensor reaches outside its storage\n   because: sizes [3], strides [1], offset 0 of f32 need 12 bytes, the storage has 8");
  CHECK(complaint("{'dtype':'f32','sizes':[2],'strides':[1],'storage_offset':1,'storage_bytes':8}").starts_with("t.json: the tensor reaches outside"));
  CHECK(complaint("{'dtype':'f32','sizes':[2],'strides':[1],'storage_bytes':8,'size':1}") == "t.json: unknown field \"size\"; did you mean \"sizes\"?");
  CHECK(complaint("{'dtype':'f32','sizes':[9223372036854775807,3],'strides':[0,0],'storage_bytes':8}").starts_with("t.json: sizes [9223372036854775807, 3] are absurd"));
  CHECK(complaint("{'dtype':'f32','sizes':[9223372036854775807,0,9],'strides':[0,0,0],'storage_bytes':8}").find("absurd") != std::string::npos);
  CHECK(complaint("{'dtype':'f32','sizes':[3,3],'strides':[9223372036854775807,9223372036854775807],'storage_bytes':0}").find("absurd") != std::string::npos);
  CHECK(complaint("{'dtype':'f64','sizes':[36028797018963968],'strides':[1],'storage_bytes':0}").find("absurd") != std::string::npos);
  CHECK(complaint("{'dtype':'f32','sizes':[2],'strides':[1],'storage_bytes':18446744073709551615}").starts_with("t.json: storage_bytes: 18446744073709551615 is too large"));
  CHECK(complaint("{'dtype':'f32','sizes':[2],'strides':[1],'storage_bytes':8,'device':'cu da'}").starts_with("t.json: device: "));
  CHECK(complaint("{'dtype':'f32','sizes':[" + std::string(64 * 2, ' ') + "1],'strides':[1],'storage_bytes':8}") == "");
  // One size with an unknown storage, and a view of nothing anywhere in it, are fine.
  CHECK(complaint("{'dtype':'f32','sizes':[1000],'strides':[1],'storage_bytes':0}") == "");
  CHECK(complaint("{'dtype':'f32','sizes':[0],'strides':[1],'storage_offset':100,'storage_bytes':8}") == "");
}

TEST_CASE("tensor record: says which fields differ, the storage last") {
  TensorRecord a;
  a.sizes = {2, 3};
  a.strides = {3, 1};
  TensorRecord b = a;
  b.sizes = {3, 2};
  b.requires_grad = true;
  b.storage = base::digest_text("x");
  CHECK(differing_fields(a, b) == std::vector<std::string>{"sizes [2, 3] != [3, 2]", "requires_grad false != true", "storage none != " + b.storage.short_hex()});
}

}  // namespace tensor_record_test
