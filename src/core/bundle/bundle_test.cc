#include "core/bundle/bundle.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/base/files.h"
#include "core/ir/text.h"

namespace bundle_test {

using namespace cutaway;
using namespace cutaway::bundle;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kGraph = R"(graph forward(%x: f32[2, 4], %w: f32[4, 4], %n: int) {
  %h: f32[2, 4] = aten.mm(%x, %w)
  return (%h)
}
)";

struct Fixture {
  base::TemporaryDirectory dir = std::move(base::TemporaryDirectory::make("cutaway-bundle-test-")).value();
  store::Store store = std::move(store::Store::open(dir.path() / "store", store::Store::Open::create, store::Durability::fast)).value();
  fs::path path = dir.path() / "out";
  ir::Graph graph = std::move(ir::parse(kGraph)).value();
  Manifest manifest;
  base::Digest weight;

  Fixture() {
    const std::string bytes(64, 'w');
    weight = *store.put(std::as_bytes(std::span(bytes)));
    manifest.name = "forward";
    InputRef x{.kind = InputRef::Kind::seeded, .seed = 3};
    x.tensor.sizes = {2, 4};
    x.tensor.strides = {4, 1};
    InputRef w;
    w.tensor.sizes = {4, 4};
    w.tensor.strides = {1, 4};   // transposed: strides may differ from the graph's
    w.tensor.storage = weight;
    w.tensor.storage_bytes = 64;
    InputRef n{.kind = InputRef::Kind::literal};
    n.literal = 5;
    manifest.inputs = {x, w, n};
  }
  fs::path blob() const { return path / "blobs" / weight.hex().substr(0, 2) / weight.hex(); }
  base::Status write() const { return write_bundle(path, graph, manifest, store); }
  void overwrite(const fs::path& file, std::string_view text) const {
    fs::remove_all(file);
    std::ofstream(file, std::ios::binary) << text;
  }
  std::string complaint() const {
    const auto read = read_bundle(path);
    return read.ok() ? "" : read.error().text();
  }
  size_t entries(const fs::path& at) const { return static_cast<size_t>(std::distance(fs::directory_iterator(at), fs::directory_iterator())); }
};

}  // namespace

TEST_CASE("bundle: written and read back") {
  const Fixture f;
  CHECK_FALSE(looks_like_bundle(f.path));
  const auto written = f.write();
  REQUIRE_MESSAGE(written.ok(), written.error().text());
  CHECK(looks_like_bundle(f.path));
  const auto bundle = read_bundle(f.path);
  REQUIRE_MESSAGE(bundle.ok(), bundle.error().text());
  CHECK(bundle->manifest == f.manifest);
  CHECK(identical(bundle->graph, f.graph));
  CHECK(verify_bundle(f.path).ok());
  CHECK(open_store(*bundle)->get(f.weight).ok());
  CHECK(base::read_file(f.path / "graph.cut")->starts_with("cutaway graph 1\n"));
  CHECK(f.entries(f.path) == 3);
  CHECK(f.entries(f.dir.path()) == 2);   // the store and the bundle: nothing temporary stays
  const std::string before = *base::read_file(f.path / "manifest.json");
  REQUIRE(f.write().ok());               // over the old one
  CHECK(*base::read_file(f.path / "manifest.json") == before);
  CHECK(f.entries(f.dir.path()) == 2);
}

TEST_CASE("bundle: a part whose writer was killed is not in the way of the next bundle") {
  const Fixture f;
  REQUIRE(f.write().ok());
  f.overwrite(f.path / base::temporary_name(), "half a certif");
  const auto written = f.write();
  REQUIRE_MESSAGE(written.ok(), written.error().text());
  CHECK(f.entries(f.path) == 3);         // it went with the old one
}

TEST_CASE("bundle: a copy of the directory is a bundle, wherever it lies") {
  const Fixture f;
  REQUIRE(f.write().ok());
  fs::copy(f.path, f.dir.path() / "copy", fs::copy_options::recursive);
  fs::remove_all(f.path);
  fs::remove_all(f.store.root());
  CHECK(verify_bundle(f.dir.path() / "copy").ok());
}

TEST_CASE("bundle: a blob that is missing or damaged is named with its input") {
  const Fixture f;
  REQUIRE(f.write().ok());
  const std::string name = "blob " + f.weight.short_hex();
  const std::string manifest = (f.path / "manifest.json").string();
  const std::string input = " (input %w, f32[4, 4] strides(1, 4))";
  f.overwrite(f.blob(), std::string(63, 'w'));
  CHECK(read_bundle(f.path).error().what == name + " is truncated: it has 63 of 64 bytes" + input);
  f.overwrite(f.blob(), std::string(64, 'v'));
  CHECK(read_bundle(f.path).ok());                 // size and presence only
  CHECK(verify_bundle(f.path).error().what == name + " is altered" + input);
  fs::remove(f.blob());
  CHECK(f.complaint() == manifest + ": " + name + " is missing" + input + "\n   try: copy blobs/" + f.weight.hex().substr(0, 2) +
                             "/ from the machine that wrote it, or --random-inputs to run on random data");
  CHECK(read_bundle(f.path, Blobs::ignored).ok());
  fs::remove_all(f.path / "blobs");
  CHECK(f.complaint().find(" is missing") != std::string::npos);
  fs::create_directory_symlink(f.store.root() / "blobs", f.path / "blobs");
  CHECK(f.complaint().find("leads outside") != std::string::npos);
}

TEST_CASE("bundle: without data it needs no blobs") {
  Fixture f;
  f.manifest.inputs[1] = f.manifest.inputs[0];
  f.manifest.inputs[1].tensor.sizes = {4, 4};
  REQUIRE(f.write().ok());
  fs::remove_all(f.path / "blobs");   // version control drops empty directories
  CHECK(verify_bundle(f.path).ok());
  CHECK(open_store(*read_bundle(f.path))->list()->empty());
}

TEST_CASE("bundle: graph and manifest must agree") {
  const Fixture f;
  REQUIRE(f.write().ok());
  const std::string graph_file = (f.path / "graph.cut").string();
  const std::string good = *base::read_file(graph_file);
  std::string other = good;
  other.replace(other.find("aten.mm"), 7, "aten.xx");
  f.overwrite(graph_file, other);
  CHECK(f.complaint().starts_with(graph_file + ": this is not the graph that manifest.json names"));
  f.overwrite(graph_file, "cutaway graph 1\ngraph f() {\n  return (%y)\n}\n");
  CHECK(f.complaint().starts_with(graph_file + ":3:"));
  fs::remove(graph_file);
  CHECK(f.complaint() == graph_file + ": there is no such file");
  CHECK_FALSE(looks_like_bundle(f.path));
  f.overwrite(f.dir.path() / "elsewhere.cut", good);
  fs::create_symlink(f.dir.path() / "elsewhere.cut", graph_file);
  CHECK(f.complaint() == graph_file + ": is a symbolic link, which is not followed here");

  const auto refused = [&](const Manifest& m) { return write_bundle(f.dir.path() / "new", f.graph, m, f.store).error().text(); };
  const std::string place = (f.dir.path() / "new/manifest.json").string();
  Manifest m = f.manifest;
  m.inputs.pop_back();
  CHECK(refused(m) == place + ": the graph has 3 inputs, the manifest 2");
  m = f.manifest;
  m.inputs[1].tensor.sizes = {4, 2};
  CHECK(refused(m).starts_with(place + ": inputs[1] is f32[4, 2] strides(1, 4), the graph's input %w is f32[4, 4]"));
  m = f.manifest;
  std::swap(m.inputs[1], m.inputs[2]);
  CHECK(refused(m) == place + ": inputs[1] is a literal, the graph's input %w is f32[4, 4]");
  m = f.manifest;
  m.inputs[1].tensor.dtype = ir::DType::i32;
  CHECK(refused(m).find("inputs[1] is i32[4, 4]") != std::string::npos);
  CHECK_FALSE(fs::exists(f.dir.path() / "new"));
}

TEST_CASE("bundle: nothing is written that could not be read") {
  const Fixture f;
  const auto refused = [&](auto change) {
    Manifest m = f.manifest;
    change(m);
    return write_bundle(f.path, f.graph, m, f.store).error().what;
  };
  CHECK(refused([](Manifest& m) { m.stage = "somewhere"; }) == "unknown word \"somewhere\"");
  CHECK(refused([](Manifest& m) { m.options["x"] = "{"; }) == "the value of \"x\" is not JSON");
  CHECK(refused([](Manifest& m) { m.name = "\xff"; }) == "the manifest holds text that is not UTF-8");
  CHECK(refused([](Manifest& m) { m.inputs[1].tensor.storage_bytes = 60; }) == "the tensor reaches outside its storage");
  CHECK(refused([](Manifest& m) { m.inputs[1].tensor.storage_bytes = 100; }).find(" is truncated: it has 64 of 100 bytes (input %w") != std::string::npos);
  CHECK(refused([](Manifest& m) { m.inputs[1].tensor.storage = base::digest_text("?"); }).find(" is missing (input %w") != std::string::npos);
  CHECK(refused([](Manifest& m) { m.inputs[2].literal = ir::Argument(ir::ValueRef{0}); }) != "");
  CHECK_FALSE(fs::exists(f.path));
  CHECK(f.entries(f.dir.path()) == 1);
}

TEST_CASE("bundle: what is not a bundle is not replaced") {
  const Fixture f;
  fs::create_directories(f.path);
  REQUIRE(f.write().ok());   // an empty directory is
  f.overwrite(f.path / "report.html", "old");
  REQUIRE(f.write().ok());   // a bundle is, with its report
  CHECK_FALSE(fs::exists(f.path / "report.html"));
  f.overwrite(f.path / "notes.txt", "mine");
  CHECK(f.write().error().because == "it also holds notes.txt");
  CHECK(verify_bundle(f.path).ok());
  fs::remove_all(f.path);
  fs::create_directories(f.path / "blobs");
  CHECK(f.write().error().because == "it has no manifest.json and graph.cut");
  f.overwrite(f.path, "a file");
  CHECK_FALSE(f.write().ok());
  CHECK(read_bundle(f.path).error().what == "is not a bundle");
  CHECK(read_bundle(f.dir.path() / "absent").error().what == "there is no such bundle");
  CHECK(read_bundle(f.dir.path()).error().because == "it has no manifest.json");
}

TEST_CASE("bundle: a reader beside a writer sees a whole one") {
  const Fixture f;
  REQUIRE(f.write().ok());
  const pid_t writer = fork();
  REQUIRE(writer >= 0);
  if (writer == 0) {
    bool good = true;
    for (int i = 0; i < 15; ++i) good = f.write().ok() && good;
    _exit(good ? 0 : 1);
  }
  // Between two reads of one bundle the other may take its place: contents are equal here, so every read must succeed as long
  // as the exchange is atomic. Where the old one is being removed while it is read, reading again must.
  int status = 0;
  while (waitpid(writer, &status, WNOHANG) == 0) {
    bool good = false;
    for (int attempt = 0; attempt < 20 && !good; ++attempt) good = verify_bundle(f.path).ok();
    CHECK(good);
  }
  CHECK(status == 0);
  CHECK(f.entries(f.dir.path()) == 2);
}

}  // namespace bundle_test
