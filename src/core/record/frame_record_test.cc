#include <doctest/doctest.h>

#include <set>

#include "core/base/files.h"
#include "core/record/frame_record.h"

namespace frame_record_test {

using namespace cutaway;
using record::FrameRecord;
using record::Object;

namespace {

FrameRecord small(store::Store& blobs) {
  FrameRecord r;
  r.function = "f";
  r.file = "model.py";
  r.line = 3;
  r.failure = {.kind = "internal-error", .id = "internal-error", .what = "BUILD_MAP failed", .instruction = "BUILD_MAP at 12", .stack = {{"model.py", "f", "z = {y: 5}", 4}}};
  r.dynamic = {{"x", 0}};
  r.versions = {{"python", "3.11.2"}};
  const std::string code = "marshalled";
  r.objects = {{.kind = "function", .text = "f", .name = "f", .items = {4}, .code = 1, .scope = 2, .defaults = 3},
               {.kind = "code", .text = "model.py:3", .name = "f", .blob = *blobs.put(std::as_bytes(std::span(code)))},
               {.kind = "namespace", .name = "__main__", .items = {5, 6}},
               {.kind = "tuple", .items = {7, 8}},
               {.kind = "cell", .items = {0}},
               {.kind = "str", .text = "torch"},
               {.kind = "import", .module = "torch"},
               {.kind = "int", .text = "-0x1f"},
               {.kind = "opaque", .text = "mine.Socket", .because = "objects of this type have no form as data"}};
  r.callee = 0;
  r.arguments = {7, record::kAbsent};
  r.results = {{"torch.cuda.is_available", 7}};
  r.marks = {{0, "constant_result"}};
  return r;
}

}  // namespace

TEST_CASE("a record reads back as it was written") {
  auto dir = base::TemporaryDirectory::make("cutaway-record-");
  REQUIRE(dir.ok());
  auto blobs = store::Store::open(dir->path(), store::Store::Open::create);
  REQUIRE(blobs.ok());
  const FrameRecord r = small(*blobs);
  REQUIRE(record::write_record(dir->path(), r).ok());
  CHECK(record::looks_like_record(dir->path()));
  auto again = record::read_record(dir->path());
  REQUIRE_MESSAGE(again.ok(), again.error().text());
  CHECK(*again == r);
  CHECK(record::imported_modules(r) == std::vector<std::string>{"torch"});
  const std::string text = record::summary(r);
  for (const char* part : {"model.py:3", "BUILD_MAP at 12", "z = {y: 5}", "mine.Socket", "imports    torch"}) CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("a missing blob is named, with whose it is") {
  auto dir = base::TemporaryDirectory::make("cutaway-record-");
  auto other = base::TemporaryDirectory::make("cutaway-record-");
  auto blobs = store::Store::open(other->path(), store::Store::Open::create);
  REQUIRE(record::write_record(dir->path(), small(*blobs)).ok());
  auto read = record::read_record(dir->path());
  REQUIRE(!read.ok());
  CHECK(read.error().what.find("code of f") != std::string::npos);
}

TEST_CASE("what a record must not say") {
  auto dir = base::TemporaryDirectory::make("cutaway-record-");
  auto blobs = store::Store::open(dir->path(), store::Store::Open::create);
  const FrameRecord good = small(*blobs);
  const auto refused = [](const FrameRecord& r) {
    auto read = record::from_json(record::to_json(r), "record.json");
    return read.ok() ? std::string() : read.error().text();
  };
  CHECK(refused(good).empty());
  FrameRecord r = good;
  r.callee = 7;
  CHECK(refused(r).find("no function") != std::string::npos);
  r = good;
  r.objects[0].code = 5;
  CHECK(refused(r).find("does not lead to code") != std::string::npos);
  r = good;
  r.objects[3].items = {99};
  CHECK(refused(r).find("there is no object 99") != std::string::npos);
  r = good;
  r.objects[2].items.pop_back();
  CHECK(refused(r).find("do not pair") != std::string::npos);
  r = good;
  r.objects[4].kind = "exec";
  CHECK(refused(r).find("unknown kind") != std::string::npos);
  r = good;
  r.objects[5].module = "os";
  CHECK(refused(r).find("module") != std::string::npos);
  r = good;
  r.arguments = {1000};
  CHECK(refused(r).find("there is no object") != std::string::npos);
}

TEST_CASE("every kind of object has its row, once") {
  std::set<std::string_view> names;
  for (const record::ObjectKind& k : record::object_kinds()) CHECK_MESSAGE(names.insert(k.name).second, k.name);
}

}  // namespace frame_record_test
