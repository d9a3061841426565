#include "core/base/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace files_test {

using namespace cutaway::base;
namespace fs = std::filesystem;

namespace {
TemporaryDirectory scratch() { return std::move(TemporaryDirectory::make("cutaway-files-test-")).value(); }
size_t entries(const fs::path& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}
}  // namespace

TEST_CASE("files: write, replace, read") {
  const auto dir = scratch();
  const fs::path file = dir.path() / "a.txt";
  REQUIRE(write_file_atomic(file, "one").ok());
  CHECK(*read_file(file) == "one");
  const std::string big(1'000'000, 'x');
  REQUIRE(write_file_atomic(file, big, Sync::fast).ok());
  CHECK(*read_file(file) == big);
  REQUIRE(write_file_atomic(file, "").ok());
  CHECK(*read_file(file) == "");
  CHECK(entries(dir.path()) == 1);   // no temporary file stays
  CHECK(read_file("/proc/self/status")->size() > 10);   // says that it has no bytes
}

TEST_CASE("files: what cannot be read is said") {
  const auto dir = scratch();
  const fs::path file = dir.path() / "a";
  CHECK(read_file(file).error().what == "there is no such file");
  CHECK(read_file(dir.path()).error().what == "is a directory, not a file");
  REQUIRE(write_file_atomic(file, "12345").ok());
  CHECK(read_file(file, 5).ok());
  CHECK(read_file(file, 4).error().text() == file.string() + ": is too large: 5 bytes, at most 4 bytes are read");
  fs::create_symlink("a", dir.path() / "link");
  CHECK(*read_file(dir.path() / "link") == "12345");
  CHECK(read_file(dir.path() / "link", 100, Links::refuse).error().what == "is a symbolic link, which is not followed here");
  REQUIRE(mkfifo((dir.path() / "pipe").c_str(), 0600) == 0);
  CHECK(read_file(dir.path() / "pipe").error().what == "is not a plain file");
  const Status status = write_file_atomic(dir.path() / "none" / "b", "x");
  CHECK(status.error().because == "No such file or directory");
  fs::create_directory(dir.path() / "d");
  CHECK_FALSE(write_file_atomic(dir.path() / "d", "x").ok());   // and leaves nothing behind:
  CHECK(entries(dir.path()) == 4);
}

TEST_CASE("files: directories") {
  const auto dir = scratch();
  CHECK(make_directories(dir.path() / "a/b/c").ok());
  CHECK(make_directories(dir.path() / "a/b/c/").ok());
  CHECK(fs::is_directory(dir.path() / "a/b/c"));
  REQUIRE(write_file_atomic(dir.path() / "file", "").ok());
  CHECK(make_directories(dir.path() / "file").error().what == "is not a directory");
  CHECK_FALSE(make_directories(dir.path() / "file/x").ok());
}

TEST_CASE("files: temporary names never meet") {
  std::vector<std::vector<std::string>> made(8);
  std::vector<std::thread> threads;
  for (auto& names : made) {
    threads.emplace_back([&names] { for (int i = 0; i < 500; ++i) names.push_back(temporary_name()); });
  }
  for (auto& t : threads) t.join();
  std::set<std::string> all;
  for (const auto& names : made) all.insert(names.begin(), names.end());
  CHECK(all.size() == 8 * 500);
  CHECK(is_temporary_name(*all.begin()));
  CHECK_FALSE(is_temporary_name("weights.json"));
}

TEST_CASE("files: a path stays inside its root") {
  const auto dir = scratch();
  const fs::path root = dir.path() / "root";
  fs::create_directories(root / "in");
  fs::create_directories(dir.path() / "root-other");
  CHECK(*path_inside(root, "a/b.json") == root / "a/b.json");
  CHECK(path_inside(root, "in/x").ok());
  CHECK(path_inside(root, "..a/...").ok());
  fs::create_symlink("in", root / "fine");
  CHECK(path_inside(root, "fine/x").ok());
  const auto why = [&](std::string_view relative) { return path_inside(root, relative).error().because; };
  CHECK(why("") == "it is empty");
  CHECK(why("/etc/passwd") == "it is absolute");
  CHECK(why("../x") == "it has the component \"..\"");
  CHECK(why("a/../../x") == "it has the component \"..\"");
  CHECK(why("./x") == "it has the component \".\"");
  CHECK(why("a//b") == "it has an empty component");
  CHECK(why("a/") == "it has an empty component");
  CHECK(why(std::string_view("a\0b", 3)) == "it contains a zero byte");
  CHECK(why(std::string(256, 'a')) == "it has a component longer than 255 bytes");
  fs::create_symlink("../root-other", root / "out");
  CHECK(why("out/x") == "a symbolic link on the way leads outside");
  fs::create_symlink("/", root / "top");
  CHECK(why("top/etc/passwd") == "a symbolic link on the way leads outside");
  fs::create_symlink("loop", root / "loop");
  CHECK_FALSE(path_inside(root, "loop/x").ok());
}

}  // namespace files_test
