// Texts for CUDA cards run on the processor, by a compiler that is here and tests/support/cuda_on_processor/main.cc, and give the right numbers. No card is needed.
#include <doctest/doctest.h>

#include <regex>

#include "compiler/codegen/generate.h"
#include "core/base/files.h"
#include "core/base/subprocess.h"
#include "core/ir/text.h"

namespace cuda_run_test {

using namespace cutaway;
using namespace cutaway::codegen;

namespace {

constexpr const char* kProgram = R"(graph g(%x: bf16[6, 768] cuda:0, %r: bf16[6, 768] cuda:0, %w: bf16[768] cuda:0, %b: bf16[768] cuda:0, %ids: i64[5] cuda:0, %table: f32[10, 64] cuda:0,
  %a: f32[33, 688] cuda:0, %weight: f32[24, 688] cuda:0, %bias: f32[24] cuda:0, %image: f32[3, 6, 9, 9] cuda:0, %first: bf16[8, 300, 3, 3] cuda:0, %second: bf16[33, 8] cuda:0, %third: bf16[11, 8] cuda:0) {
  %s: bf16[6, 768] cuda:0 = aten.add.Tensor(%x, %r)
  %y: bf16[6, 768] cuda:0, %m: f32[6, 1] cuda:0, %v: f32[6, 1] cuda:0 = aten.native_layer_norm(%s, [768], %w, %b, 1e-5)
  %g: bf16[6, 768] cuda:0 = aten.gelu(%x)
  %e: f32[5, 64] cuda:0 = aten.embedding(%table, %ids)
  %z: f32[5] cuda:0 = aten.sum.dim_IntList(%e, [1])
  %q: bf16[6, 768] cuda:0 = aten.sigmoid(%x)
  %p: bf16[6, 768] cuda:0 = aten._softmax(%x, -1, false)
  %t: f32[688, 24] strides(1, 688) cuda:0 = aten.t(%weight)
  %c: f32[33, 24] cuda:0 = aten.addmm(%bias, %a, %t)
  %pool: f32[3, 6, 5, 5] cuda:0, %places: i64[3, 6, 5, 5] cuda:0 = aten.max_pool2d_with_indices(%image, [3, 3], [2, 2], [1, 1])
  %joined: bf16[44, 8] cuda:0 = aten.cat([%second, %third])
  %last: bf16[8, 300, 3, 3] strides(2700, 1, 900, 300) cuda:0 = aten.clone(%first, memory_format=channels_last)
  return (%y, %g, %z, %q, %p, %c, %pool, %joined, %last)
}
)";

/// The card's own instructions in words that every compiler knows.
std::string for_processors(std::string text) {
  text = std::regex_replace(text, std::regex(R"re(asm\("ex2\.approx[^;]*;" : "=f"\(y\) : "f"\(([^;]*)\)\);)re"), "y = exp2f($1);");
  text = std::regex_replace(text, std::regex(R"re(asm\("rcp\.approx[^;]*;" : "=f"\(y\) : "f"\(x\)\);)re"), "y = 1.0f / x;");
  text = std::regex_replace(text, std::regex(R"re(asm\("rsqrt\.approx[^;]*;" : "=f"\(y\) : "f"\(x\)\);)re"), "y = 1.0f / sqrtf(x);");
  text = std::regex_replace(text, std::regex(R"re(asm\("cvt\.[^;]*;"[^;]*;)re"), "abort();");   // halves, which are not tried
  return std::regex_replace(text, std::regex("#define INLINE [^\n]*"), "#define INLINE static inline");
}

}  // namespace

TEST_CASE("codegen: CUDA text run on the processor gives the right numbers") {
  if (const auto said = base::run_command({.argv = {"g++", "--version"}}); !said.ok() || !said->exit.ok()) {
    MESSAGE("there is no g++ here: skipped");
    return;
  }
  const auto graph = ir::parse(kProgram, "g");
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  const Program p = generate(*graph, {});
  std::string all = for_processors(p.cuda_source());
  for (const Generated& k : p.kernels) {
    REQUIRE(p.texts[k.text].cuda);
    for (const Buffer& b : k.kernel.buffers) {
      if (!b.is_written) continue;
      all += "#define run_" + b.name + " " + p.texts[k.text].function + "\nconstexpr int blocks_" + b.name + " = " + std::to_string(p.texts[k.text].cuda->blocks) + ", threads_" + b.name + " = " + std::to_string(p.texts[k.text].cuda->threads) + ";\n";
    }
  }
  const auto folder = base::TemporaryDirectory::make("cutaway-cuda-run");
  REQUIRE(folder.ok());
  REQUIRE(base::write_file_atomic((folder->path() / "kernels.inc").string(), all, base::Sync::fast).ok());
  const std::string made = (folder->path() / "run").string(), source = (std::filesystem::path(CUTAWAY_SOURCE_DIR) / "tests/support/cuda_on_processor/main.cc").string();
  const auto built = base::run_command({.argv = {"g++", "-std=c++20", "-O1", "-w", "-ffp-contract=off", "-I" + folder->path().string(), source, "-o", made, "-lpthread"}});
  REQUIRE(built.ok());
  REQUIRE_MESSAGE(built->exit.ok(), built->err);
  const auto ran = base::run_command({.argv = {made}});
  REQUIRE(ran.ok());
  const std::string said = ran->out + ran->err;
  CHECK_MESSAGE(ran->exit.ok(), said);
}

}  // namespace cuda_run_test
