// The CUDA text of the golden cases goes through a compiler where there is one (nvcc). No card is needed.
#include <doctest/doctest.h>

#include <fstream>
#include <regex>

#include "compiler/codegen/generate.h"
#include "core/base/files.h"
#include "core/base/subprocess.h"
#include "core/ir/text.h"

namespace cuda_text_test {

using namespace cutaway;
using namespace cutaway::codegen;

TEST_CASE("codegen: CUDA text compiles for two generations of cards") {
  if (const auto said = base::run_command({.argv = {"nvcc", "--version"}}); !said.ok() || !said->exit.ok()) {
    MESSAGE("there is no nvcc here: skipped");
    return;
  }
  std::string all = cuda_prelude();
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(CUTAWAY_SOURCE_DIR) / "tests/golden/codegen")) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!text.starts_with("run: cuda")) continue;
    const size_t bar = text.find("\n----\n");
    REQUIRE(bar != std::string::npos);
    all += std::regex_replace(text.substr(bar + 6), std::regex("\\b(k[0-9]+(_end)?)\\("), "g" + std::to_string(count++) + "_$1(");
  }
  CHECK(count >= 8);
  const auto folder = base::TemporaryDirectory::make("cutaway-cuda");
  REQUIRE(folder.ok());
  const std::string source = (folder->path() / "all.cu").string(), made = (folder->path() / "all.out").string();
  REQUIRE(base::write_file_atomic(source, all, base::Sync::fast).ok());
  for (const std::vector<std::string>& how : {std::vector<std::string>{"-arch=sm_90", "-cubin"}, {"-arch=compute_75", "-ptx"}}) {
    base::Command c;
    c.argv = {"nvcc", "-w", "-fmad=false", source, "-o", made};
    c.argv.insert(c.argv.end(), how.begin(), how.end());
    const auto out = base::run_command(c);
    REQUIRE(out.ok());
    CHECK_MESSAGE(out->exit.ok(), out->err);
  }
}

}  // namespace cuda_text_test
