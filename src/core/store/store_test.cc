#include "core/store/store.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

#include "core/base/files.h"

namespace store_test {

using namespace cutaway;
using store::Store;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  base::TemporaryDirectory dir = std::move(base::TemporaryDirectory::make("cutaway-store-test-")).value();
  fs::path root = dir.path() / "store";
  Store open(store::Durability durability = store::Durability::fast) const {
    return std::move(Store::open(root, Store::Open::create, durability)).value();
  }
};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string random_text(size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string out(n, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

std::string text_of(const store::Blob& blob) { return std::string(static_cast<const char*>(blob.data()), blob.size()); }

fs::path file_of(const fs::path& root, const base::Digest& digest) { return root / "blobs" / digest.hex().substr(0, 2) / digest.hex(); }

/// Files are read-only; a test that damages one writes it anew.
void overwrite(const fs::path& path, std::string_view text) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << text;
}

size_t temporary_files(const fs::path& root) {
  size_t n = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) n += base::is_temporary_name(entry.path().filename().string());
  return n;
}

}  // namespace

TEST_CASE("store: what is put can be got, whatever its size") {
  const Scratch scratch;
  for (auto durability : {store::Durability::fast, store::Durability::durable}) {
    Store store = scratch.open(durability);
    for (size_t n : {0, 1, 63, 64, 65535, 65536, 65537, 1'000'000}) {
      CAPTURE(n);
      const std::string text = random_text(n, static_cast<unsigned>(n));
      const auto digest = store.put(bytes(text));
      REQUIRE(digest.ok());
      CHECK(*digest == base::digest_text(text));
      CHECK(*store.put(bytes(text)) == *digest);   // again: nothing changes
      CHECK(store.contains(*digest));
      CHECK(*store.size_of(*digest) == n);
      const auto blob = store.get(*digest, n);
      REQUIRE(blob.ok());
      CHECK(text_of(*blob) == text);
      CHECK(reinterpret_cast<uintptr_t>(blob->data()) % 64 == 0);
    }
    CHECK(store.list()->size() == 8);
  }
  CHECK(temporary_files(scratch.root) == 0);
}

TEST_CASE("store: content in parts has the name of the whole") {
  const Scratch scratch;
  Store store = scratch.open();
  const std::string text = random_text(20'000'000, 1);
  {
    auto writer = std::move(store.writer()).value();
    for (size_t at = 0; at < text.size(); at += 777'777) REQUIRE(writer->add(bytes(text).subspan(at, std::min<size_t>(777'777, text.size() - at))).ok());
    CHECK(*writer->finish() == base::digest_text(text));
  }
  CHECK(text_of(*store.get(base::digest_text(text))) == text);
  {
    auto abandoned = std::move(store.writer()).value();
    REQUIRE(abandoned->add(bytes("half")).ok());
    CHECK(temporary_files(scratch.root) == 1);
  }
  CHECK(temporary_files(scratch.root) == 0);
  CHECK_FALSE(store.contains(base::digest_text("half")));
  CHECK(*(*store.writer())->finish() == base::digest_text(""));
}

TEST_CASE("store: a blob outlives the file it was mapped from") {
  const Scratch scratch;
  Store store = scratch.open();
  const std::string text = random_text(300'000, 2);
  const auto digest = *store.put(bytes(text));
  const auto blob = *store.get(digest);
  REQUIRE(store.collect({}).ok());
  CHECK_FALSE(store.contains(digest));
  CHECK(text_of(blob) == text);
}

TEST_CASE("store: damage of every kind is named") {
  const Scratch scratch;
  Store store = scratch.open();
  for (size_t n : {1000, 200'000}) {
    const std::string text = random_text(n, 3);
    const auto digest = *store.put(bytes(text));
    const fs::path file = file_of(scratch.root, digest);
    const std::string name = "blob " + digest.short_hex();
    const auto complaint = [&] { return store.get(digest).error(); };
    const auto sized_complaint = [&] { return store.get(digest, n).error().what; };

    std::string changed = text;
    for (size_t at : {size_t{0}, n / 2, n - 1}) {
      changed = text;
      changed[at] ^= 1;
      overwrite(file, changed);
      CHECK(complaint().what == name + " is altered");
      CHECK(complaint().place == file.string());
      CHECK_FALSE(store.verify(digest).ok());
    }
    overwrite(file, text.substr(0, n - 1));
    CHECK(complaint().what == name + " is altered");
    CHECK(sized_complaint() == name + " is truncated: it has " + std::to_string(n - 1) + " of " + std::to_string(n) + " bytes");
    overwrite(file, text + "x");
    CHECK(sized_complaint() == name + " is altered: it has " + std::to_string(n + 1) + " of " + std::to_string(n) + " bytes");
    overwrite(file, "");
    CHECK(complaint().what == name + " is empty");
    overwrite(file, std::string(n, '\0'));   // what a power cut leaves of a file that was never synced
    CHECK(complaint().what == name + " is altered");
    fs::remove(file);
    CHECK(complaint().text() == scratch.root.string() + ": " + name + " is missing");
    CHECK_FALSE(store.size_of(digest).ok());
    fs::create_directory(file);
    CHECK(complaint().what == name + " is not a plain file");
    fs::remove(file);
    overwrite(scratch.root / "elsewhere", text);
    fs::create_symlink(scratch.root / "elsewhere", file);
    CHECK(complaint().what == name + " is a symbolic link, not a plain file");
    CHECK_FALSE(store.contains(digest));
    fs::remove(file);
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
    CHECK(complaint().what == name + " is not a plain file");
    fs::remove(file);
    fs::remove(file.parent_path());
    CHECK(complaint().what == name + " is missing");
    overwrite(file.parent_path(), "a file where a directory should be");
    CHECK(complaint().what == name + " is missing");
    CHECK_FALSE(store.put(bytes(text)).ok());
    fs::remove(file.parent_path());
    CHECK(store.put(bytes(text)).ok());
  }
}

TEST_CASE("store: putting the content again heals a damaged blob") {
  const Scratch scratch;
  Store store = scratch.open();
  const auto digest = *store.put(bytes("content"));
  overwrite(file_of(scratch.root, digest), "content?");
  CHECK_FALSE(store.verify(digest).ok());
  CHECK(*store.put(bytes("content")) == digest);
  CHECK(store.verify(digest).ok());
}

TEST_CASE("store: files are read-only") {
  const Scratch scratch;
  const auto digest = *scratch.open().put(bytes("content"));
  struct stat info;
  REQUIRE(::stat(file_of(scratch.root, digest).c_str(), &info) == 0);
  CHECK((info.st_mode & 0222) == 0);
}

TEST_CASE("store: stray files are neither listed nor touched") {
  const Scratch scratch;
  Store store = scratch.open();
  const auto digest = *store.put(bytes("kept"));
  const std::string other = base::digest_text("other").hex();
  const std::vector<fs::path> strays = {"blobs/README", "blobs/zz/notes", "blobs/" + other, "blobs/00/" + base::Digest{1ull << 60, 0}.hex(),
                                        "blobs/" + other.substr(0, 2) + "/" + other + ".bak", "names/x.txt", "names/.json", "top"};
  for (const fs::path& stray : strays) {
    fs::create_directories((scratch.root / stray).parent_path());
    overwrite(scratch.root / stray, "stray");
  }
  const auto blobs = *store.list();
  REQUIRE(blobs.size() == 1);
  CHECK(blobs[0].digest == digest);
  CHECK(blobs[0].bytes == 4);
  CHECK(store.list_records()->empty());
  CHECK(*store.collect({digest}) == 0);
  for (const fs::path& stray : strays) CHECK(fs::exists(scratch.root / stray));
}

TEST_CASE("store: collect keeps what it is told and takes leftovers that are old") {
  const Scratch scratch;
  Store store = scratch.open();
  const auto a = *store.put(bytes("aaaa")), b = *store.put(bytes("bb"));
  const fs::path old_leftover = scratch.root / "blobs" / base::temporary_name(), new_leftover = scratch.root / "blobs" / base::temporary_name();
  overwrite(old_leftover, "12345678");
  overwrite(new_leftover, "12345678");
  fs::last_write_time(old_leftover, fs::file_time_type::clock::now() - std::chrono::hours(2));
  CHECK(store.list()->size() == 2);
  CHECK(*store.collect({a, base::digest_text("never there")}) == 2 + 8);
  CHECK(store.contains(a));
  CHECK_FALSE(store.contains(b));
  CHECK_FALSE(fs::exists(old_leftover));
  CHECK(fs::exists(new_leftover));
}

TEST_CASE("store: copying links, and does not spread damage") {
  const Scratch scratch;
  Store from = scratch.open();
  Store to = std::move(Store::open(scratch.dir.path() / "bundle", Store::Open::create)).value();
  const auto digest = *from.put(bytes("content"));
  REQUIRE(from.copy_to(to, digest).ok());
  CHECK(fs::equivalent(file_of(from.root(), digest), file_of(to.root(), digest)));
  REQUIRE(from.copy_to(to, digest).ok());
  CHECK(to.verify(digest).ok());
  CHECK_FALSE(from.copy_to(to, base::digest_text("other")).ok());

  const auto second = *from.put(bytes("second"));
  fs::create_directories(file_of(to.root(), second).parent_path());
  overwrite(file_of(to.root(), second), "damaged");   // in the way at the other end
  REQUIRE(from.copy_to(to, second).ok());
  CHECK(to.verify(second).ok());

  overwrite(file_of(from.root(), second), "damaged");
  fs::remove(file_of(to.root(), second));
  CHECK_FALSE(from.copy_to(to, second).ok());
  CHECK_FALSE(to.contains(second));
}

TEST_CASE("store: opening") {
  const Scratch scratch;
  CHECK(Store::open(scratch.root, Store::Open::existing).error().what == "there is no such directory");
  fs::create_directories(scratch.root);
  CHECK(Store::open(scratch.root, Store::Open::existing).error().what == "is not a store");
  const auto empty = Store::open(scratch.root, Store::Open::existing_or_empty);
  REQUIRE(empty.ok());
  CHECK(empty->list()->empty());
  CHECK(empty->list_records()->empty());
  CHECK_FALSE(empty->get(base::digest_text("x")).ok());
  (void)scratch.open();
  CHECK(Store::open(scratch.root, Store::Open::existing).ok());
  overwrite(scratch.dir.path() / "file", "");
  CHECK_FALSE(Store::open(scratch.dir.path() / "file", Store::Open::create).ok());
  CHECK_FALSE(Store::open(scratch.dir.path() / "file", Store::Open::existing_or_empty).ok());
}

TEST_CASE("store: records") {
  const Scratch scratch;
  Store store = scratch.open();
  for (const char* name : {"weight", "inductor/0/relu", "inductor/0", "..a", "ä ö", "a.json"}) REQUIRE(store.put_record(name, name).ok());
  CHECK(*store.get_record("inductor/0/relu") == "inductor/0/relu");
  REQUIRE(store.put_record("weight", "{\"new\": 1}").ok());
  CHECK(*store.get_record("weight") == "{\"new\": 1}");
  CHECK(*store.list_records() == std::vector<std::string>{"..a", "a.json", "inductor/0", "inductor/0/relu", "weight", "ä ö"});
  CHECK(*store.list_records("inductor/") == std::vector<std::string>{"inductor/0", "inductor/0/relu"});
  CHECK(store.get_record("wieght").error().what == "there is no record \"wieght\"; did you mean \"weight\"?");
  for (std::string_view bad : {std::string_view(""), std::string_view("/abs"), std::string_view("../up"), std::string_view("a/../../up"), std::string_view("a//b"),
                               std::string_view("."), std::string_view(".."), std::string_view("a/"), std::string_view("a\0b", 3)}) {
    CAPTURE(bad);
    CHECK_FALSE(store.put_record(bad, "x").ok());
    CHECK_FALSE(store.get_record(bad).ok());
  }
  CHECK_FALSE(store.put_record(std::string(300, 'x'), "x").ok());
  fs::create_symlink("/tmp", scratch.root / "names" / "out");
  CHECK_FALSE(store.put_record("out/x", "x").ok());
  CHECK_FALSE(fs::exists("/tmp/x.json"));
  CHECK(temporary_files(scratch.root) == 0);
}

}  // namespace store_test
