#include <doctest/doctest.h>

#include <fstream>
#include <map>

#include "core/bundle/archive.h"
#include "core/bundle/tar_header.h"

namespace archive_test {

using namespace cutaway;
using bundle::TarHeader;
namespace fs = std::filesystem;

namespace {

base::TemporaryDirectory scratch() { return std::move(base::TemporaryDirectory::make("cutaway-archive-test-")).value(); }

std::string entry(const TarHeader& h, std::string content = {}) {
  const auto block = bundle::write_tar_header(h);
  content.resize((content.size() + bundle::kTarBlock - 1) / bundle::kTarBlock * bundle::kTarBlock, '\0');
  return std::string(block.data(), block.size()) + content;
}
std::string file(const std::string& path, const std::string& content) { return entry({.path = path, .size = content.size()}, content); }
std::string pax(const std::string& records) { return entry({.path = "x", .size = records.size(), .type = 'x'}, records); }
const std::string kEnd(2 * bundle::kTarBlock, '\0');

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::map<std::string, std::string> files_in(const fs::path& root) {
  std::map<std::string, std::string> out;
  for (const auto& e : fs::recursive_directory_iterator(root))
    if (e.is_regular_file()) out[e.path().lexically_relative(root).string()] = std::move(base::read_file(e.path())).value();
  return out;
}

/// What unpacking says about an archive with these bytes; empty: nothing.
std::string complaint(const std::string& bytes) {
  const auto dir = scratch();
  write(dir.path() / "a.tar", bytes);
  fs::create_directories(dir.path() / "into");
  const auto done = bundle::unpack_archive(dir.path() / "a.tar", dir.path() / "into");
  return done.ok() ? "" : done.error().what + (done.error().because.empty() ? "" : "; " + done.error().because);
}

}  // namespace

TEST_CASE("archive: a directory goes in and comes out, and the bytes do not depend on times or places") {
  const auto dir = scratch();
  const std::string longer = "blobs/" + std::string(60, 'a') + "/" + std::string(90, 'b');
  for (const char* name : {"one", "two"}) {
    write(dir.path() / name / "manifest.json", "{}");
    write(dir.path() / name / "graph.cut", std::string(1000, 'g'));
    write(dir.path() / name / "blobs/ab/empty", "");
    write(dir.path() / name / longer, std::string(512, '\0'));
    write(dir.path() / name / base::temporary_name(), "left by a killed process");
  }
  fs::create_directories(dir.path() / "x");
  fs::create_directories(dir.path() / "y");
  REQUIRE(bundle::write_archive(dir.path() / "one", dir.path() / "x/out.tar").ok());
  REQUIRE(bundle::write_archive(dir.path() / "two", dir.path() / "y/out.tar").ok());
  CHECK(*base::read_file(dir.path() / "x/out.tar") == *base::read_file(dir.path() / "y/out.tar"));
  CHECK(bundle::looks_like_archive(dir.path() / "x/out.tar"));
  CHECK_FALSE(bundle::looks_like_archive(dir.path() / "one/graph.cut"));
  CHECK_FALSE(bundle::looks_like_archive(dir.path() / "one"));
  const auto unpacked = bundle::unpack_bundle(dir.path() / "x/out.tar");
  REQUIRE_MESSAGE(unpacked.ok(), unpacked.error().text());
  CHECK(unpacked->path.filename() == "out");
  const auto files = files_in(unpacked->path);
  CHECK(files.size() == 4);
  CHECK(files.at("graph.cut") == std::string(1000, 'g'));
  CHECK(files.at(longer) == std::string(512, '\0'));
  fs::create_symlink("/etc/passwd", dir.path() / "one/link");
  CHECK(bundle::write_archive(dir.path() / "one", dir.path() / "z.tar").error().what == "is not a plain file");
  CHECK_FALSE(fs::exists(dir.path() / "z.tar"));
}

TEST_CASE("archive: what a stranger's may not have") {
  CHECK(complaint(file("./a", "1") + entry({.path = "b/", .type = '5'}) + file("b/c", "2") + kEnd).empty());
  CHECK(complaint(file("a", "1")).empty());   // no zeros at the end
  CHECK(complaint(pax(bundle::pax_record("mtime", "1.5") + bundle::pax_record("path", "b")) + file("a", "1") + kEnd).empty());
  CHECK(complaint("") == "is truncated; it ends inside an entry, after 0 bytes");
  CHECK(complaint(kEnd) == "is an empty archive");
  CHECK(complaint(std::string(512, 'x')) == "this is not the header of an entry; it has no \"ustar\" in its place");
  std::string altered = file("a", "1");
  altered[0] = 'b';
  CHECK(complaint(altered) == "the header of an entry is altered; its checksum is another");
  CHECK(complaint(file("/etc/passwd", "1")) == "the entry \"/etc/passwd\" is refused; its path is absolute");
  CHECK(complaint(file("a/../../b", "1")) == "the entry \"a/../../b\" is refused; its path leaves the archive's folder");
  CHECK(complaint(file("a//b", "1")) == "the entry \"a//b\" is refused; its path has an empty part");
  CHECK(complaint(file("a/", "1")) == "the entry \"a/\" is refused; its path has an empty part");
  CHECK(complaint(file("a", "1") + file("./a", "2")) == "the entry \"a\" comes twice");
  CHECK(complaint(pax(bundle::pax_record("path", "../up")) + file("a", "1")) == "the entry \"../up\" is refused; its path leaves the archive's folder");
  CHECK(complaint(pax(bundle::pax_record("GNU.sparse.major", "1")) + file("a", "1")) == "the field \"GNU.sparse.major\" before an entry is not known");
  CHECK(complaint(pax("99 path=a\n") + file("a", "1")) == "the fields before an entry are malformed");
  CHECK(complaint(pax(bundle::pax_record("size", "99999999999999999999"))) == "the size before an entry is not a number");
  CHECK(complaint(pax(bundle::pax_record("size", "18446744073709551615")) + file("a", "1")) == "is truncated; \"a\" should have 18446744073709551615 bytes");
  CHECK(complaint(file("a", "1") + file("a/b", "2")).find("a") != std::string::npos);   // a folder where a file is
  for (const auto& [type, what] : std::map<char, std::string>{{'1', "a hard link"}, {'2', "a symbolic link"}, {'3', "a device"}, {'6', "a named pipe"}, {'S', "a sparse file"}, {'g', "a header for all entries"}})
    CHECK(complaint(entry({.path = "a", .type = type})) == "\"a\" is " + what + ", which an archive of a bundle may not have");
  CHECK(complaint(entry({.path = "a", .type = 'Q'})) == "\"a\" is an entry of unknown type \"Q\"");
  std::string deep;
  for (int i = 0; i < 20; ++i) deep += "d/";
  CHECK(complaint(file(deep + "f", "1")).ends_with("it is nested more than 16 deep"));
}

}  // namespace archive_test
