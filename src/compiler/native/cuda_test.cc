// The GPU half without a card: NVRTC where it is found, and which graphs would be recorded.
#include <doctest/doctest.h>

#include "compiler/codegen/generate.h"
#include "compiler/native/cuda_driver.h"
#include "compiler/native/cuda_graph.h"
#include "core/ir/text.h"

using namespace cutaway;

namespace {

ir::Graph parsed(const char* text) {
  auto g = ir::parse(text, "g");
  REQUIRE_MESSAGE(g.ok(), g.error().text());
  return std::move(*g);
}

}  // namespace

TEST_CASE("native: NVRTC compiles what codegen writes") {
  if (!native::nvrtc_version().ok()) {
    CHECK(native::nvrtc_version().error().text().find("CUTAWAY_NVRTC") != std::string::npos);
    MESSAGE("no NVRTC here: skipped");
    return;
  }
  const ir::Graph g = parsed(
      "graph g(%x: bf16[70, 768] cuda:0, %w: bf16[768] cuda:0, %b: bf16[768] cuda:0) {\n  %s: bf16[70, 768] cuda:0 = aten.gelu(%x)\n"
      "  %y: bf16[70, 768] cuda:0, %m: f32[70, 1] cuda:0, %v: f32[70, 1] cuda:0 = aten.native_layer_norm(%s, [768], %w, %b, 1e-5)\n  %c: bf16[768] cuda:0 = aten.sum.dim_IntList(%s, [0])\n  return (%y, %c)\n}\n");
  const codegen::Program p = codegen::generate(g, {});
  CHECK(p.has_cuda_texts());
  CHECK(!p.has_cpu_texts());
  const auto made = native::compile_cuda(p.cuda_source(), 90, nullptr);
  REQUIRE_MESSAGE(made.ok(), made.error().text());
  CHECK(made->substr(1, 3) == "ELF");
  const auto wrong = native::compile_cuda("extern \"C\" __global__ void k0() { not a text }", 90, nullptr);
  REQUIRE(!wrong.ok());
  CHECK(wrong.error().text().find("kernels.cu") != std::string::npos);
}

TEST_CASE("native: graphs that ask the host for something are not recorded") {
  const auto why = [](const char* body, const char* inputs = "%x: f32[8, 16] cuda:0") { return native::why_not_recorded(parsed(("graph g(" + std::string(inputs) + ") {\n" + body + "}\n").c_str())); };
  CHECK(why("  %y: f32[8, 16] cuda:0 = aten.tanh(%x)\n  return (%y)\n").empty());
  CHECK(why("  %y: f32[8, 16] cuda:0, %m: bool[8, 16] cuda:0 = aten.native_dropout(%x, 0.5, true)\n  return (%y)\n").empty());
  CHECK(why("  %y: i64[4, 2] cuda:0 = aten.nonzero(%x)\n  return (%y)\n").find("aten.nonzero") != std::string::npos);
  CHECK(why("  %y: f32[8, 16] = aten._to_copy(%x, device=cpu)\n  return (%y)\n").find("cpu") != std::string::npos);
  CHECK(why("  %y: f32[8, 16] = aten.tanh(%x)\n  return (%y)\n", "%x: f32[8, 16]").find("cpu") != std::string::npos);
  CHECK(why("  %m: bool[8, 16] cuda:0 = aten.gt.Scalar(%x, 0)\n  %y: f32[5] cuda:0 = aten.index.Tensor(%x, [%m])\n  return (%y)\n").find("mask") != std::string::npos);
  CHECK(why("  %y: f32[8, 16] cuda:0 = aten.bernoulli(%x, generator=generator(\"mine\"))\n  return (%y)\n").find("generator") != std::string::npos);
  CHECK(why("  %y: f32[s0, 16] cuda:0 = aten.tanh(%x)\n  return (%y)\n", "%x: f32[s0, 16] cuda:0").find("numbers") != std::string::npos);
  CHECK(why("  %c: f32[] = aten.full([], 2.0, dtype=f32, device=cpu)\n  %y: f32[8, 16] cuda:0 = aten.mul.Tensor(%x, %c)\n  return (%y)\n").empty());
}

TEST_CASE("native: a machine without a driver gets a message") {
  if (native::cuda_driver().ok()) return;
  CHECK(native::cuda_driver().error().text().find("no CUDA driver") != std::string::npos);
  CHECK(native::cuda_devices().empty());
  CHECK(!native::cuda_architecture(0).ok());
}
