#include <doctest/doctest.h>

#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "core/tensor/make.h"

using namespace cutaway;
using tensor::Range;

namespace {

ir::Graph parse(const std::string& text) {
  auto g = ir::parse(text);
  REQUIRE_MESSAGE(g.ok(), g.error().text());
  return std::move(g).value();
}
std::optional<Range> range(const std::string& text, size_t input) {
  const ir::Graph g = parse(text);
  return tensor::index_range(g, g.inputs[input].value);
}
std::string cast(const std::string& text) { return ir::print(tensor::cast_to_fp64(parse(text))); }
// Reads and prints, so that spacing does not matter.
std::string same(const std::string& text) { return ir::print(parse(text)); }

}  // namespace

TEST_CASE("an index must stay below the size that it indexes") {
  CHECK(range("graph g(%w: f32[10, 4], %i: i64[3]) { %y: f32[3, 4] = aten.embedding(%w, %i)  return (%y) }", 1) == Range(0, 10));
  CHECK(range("graph g(%x: f32[5, 7], %i: i64[3]) { %y: f32[5, 3] = aten.index_select(%x, -1, %i)  return (%y) }", 1) == Range(0, 7));
  CHECK(range("graph g(%x: f32[5, 7], %i: i64[5, 2]) { %y: f32[5, 2] = aten.gather(%x, 1, %i)  return (%y) }", 1) == Range(0, 7));
  CHECK(range("graph g(%x: f32[5, 7], %i: i64[5]) { %y: f32[5] = aten.take(%x, %i)  return (%y) }", 1) == Range(0, 35));
  CHECK(range("graph g(%x: f32[5, 7], %i: i64[5]) { %y: f32[] = aten.cross_entropy_loss(%x, %i)  return (%y) }", 1) == Range(0, 7));
  CHECK(range("graph g(%i: i64[5]) { %y: i64[5, 9] = aten.one_hot(%i, 9)  return (%y) }", 0) == Range(0, 9));
  CHECK(range("graph g(%x: f32[5, 7, 9], %i: i64[2]) { %y: f32[5, 2, 9] = aten.index.Tensor(%x, [none, %i])  return (%y) }", 1) == Range(0, 7));
  CHECK(range("graph g(%x: f32[5, 7, 9], %m: bool[5, 7], %i: i64[2]) { %y: f32[2] = aten.index.Tensor(%x, [%m, %i])  return (%y) }", 2) == Range(0, 9));
}

TEST_CASE("an index is followed through views, casts, added constants and captured calls") {
  CHECK(range("graph g(%w: f32[10, 4], %i: i32[6]) { %a: i32[2, 3] = aten.view(%i, [2, 3])  %b: i64[2, 3] = aten.to.dtype(%a, i64)  "
              "%c: i64[2, 3] = aten.add.Tensor(%b, 2)  %y: f32[2, 3, 4] = aten.embedding(%w, %c)  return (%y) }", 1) == Range(-2, 8));
  CHECK(range("graph g(%w: f32[10, 4], %v: f32[6, 4], %i: i64[3]) { %y: f32[3, 4] = aten.embedding(%w, %i)  %z: f32[3, 4] = aten.embedding(%v, %i)  return (%y, %z) }", 2) == Range(0, 6));
}

TEST_CASE("a range that is not known is none") {
  CHECK(!range("graph g(%i: i64[3]) { %y: i64[3] = aten.mul.Tensor(%i, 2)  return (%y) }", 0));
  CHECK(!range("graph g(%x: f32[3]) { %y: f32[3] = aten.relu(%x)  return (%y) }", 0));
  CHECK(!range("graph g(%w: f32[10, 4], %i: i64[3]) { %j: i64[3] = aten.mul.Tensor(%i, 2)  %y: f32[3, 4] = aten.embedding(%w, %j)  return (%y) }", 1));
}

TEST_CASE("types and dtype arguments become f64, integers stay") {
  CHECK(cast("graph g(%x: f16[2] grad, %i: i64[2]) { %y: f32[2] = aten.to.dtype(%x, f32)  %z: f32[2] = aten.add.Tensor(%y, %i)  "
             "%w: bf16[2] = aten._to_copy(%z, dtype=bf16)  %v: i32[2] = aten.to.dtype(%z, i32)  return (%w, %v) }") ==
        same("graph g(%x: f64[2] grad, %i: i64[2]) { %y: f64[2] = aten.to.dtype(%x, f64)  %z: f64[2] = aten.add.Tensor(%y, %i)  "
             "%w: f64[2] = aten._to_copy(%z, dtype=f64)  %v: i32[2] = aten.to.dtype(%z, i32)  return (%w, %v) }"));
  CHECK(cast("graph g(%x: c64[2]) { %y: c32[2] = aten.to.dtype(%x, c32)  return (%y) }") == same("graph g(%x: c128[2]) { %y: c128[2] = aten.to.dtype(%x, c128)  return (%y) }"));
}

TEST_CASE("where torch's default dtype would decide, the dtype is said or the result is cast") {
  CHECK(cast("graph g() { %y: f32[2] = aten.full([2], 1.0)  return (%y) }") == same("graph g() { %y: f64[2] = aten.full([2], 1.0, dtype=f64)  return (%y) }"));
  CHECK(cast("graph g(%i: i64[2]) { %y: f32[2] = aten.div.Tensor(%i, 3)  return (%y) }") ==
        same("graph g(%i: i64[2]) { %i_wide: f64[2] = aten.to.dtype(%i, f64)  %y: f64[2] = aten.div.Tensor(%i_wide, 3)  return (%y) }"));
  CHECK(cast("graph g(%m: bool[2]) { %y: f32[2] = aten.where.Scalar(%m, 1.0, 2.0)  return (%y) }") ==
        same("graph g(%m: bool[2]) { %y_own: f32[2] = aten.where.Scalar(%m, 1.0, 2.0)  %y: f64[2] = aten.to.dtype(%y_own, f64)  return (%y) }"));
  CHECK(cast("graph g() { %y: f16[2] = aten.rand([2], dtype=f16)  return (%y) }") ==
        same("graph g() { %y_own: f16[2] = aten.rand([2], dtype=f16)  %y: f64[2] = aten.to.dtype(%y_own, f64)  return (%y) }"));
  CHECK(cast("graph g(%x: f32[2]) { %y: f32[2] = aten.normal_(%x)  return (%y) }") ==
        same("graph g(%x: f64[2]) { %x_own: f32[2] = aten.to.dtype(%x, f32)  %y_own: f32[2] = aten.normal_(%x_own)  %y: f64[2] = aten.copy_(%x, %y_own)  return (%y) }"));
  CHECK(cast("graph g(%x: f32[2]) { %y: f32[2] = aten.bernoulli(%x)  return (%y) }") ==
        same("graph g(%x: f64[2]) { %x_own: f32[2] = aten.to.dtype(%x, f32)  %y_own: f32[2] = aten.bernoulli(%x_own)  %y: f64[2] = aten.to.dtype(%y_own, f64)  return (%y) }"));
}

TEST_CASE("operators on bits run in their own precision") {
  CHECK(cast("graph g(%x: f32[2]) { %y: i32[2] = aten.view.dtype(%x, i32)  return (%y) }") ==
        same("graph g(%x: f64[2]) { %x_own: f32[2] = aten.to.dtype(%x, f32)  %y: i32[2] = aten.view.dtype(%x_own, i32)  return (%y) }"));
  CHECK(cast("graph g(%x: f16[2]) { %y: f32[2] = aten._softmax(%x, 0, true)  return (%y) }") ==
        same("graph g(%x: f64[2]) { %y: f64[2] = aten._softmax(%x, 0, false)  return (%y) }"));
}

TEST_CASE("a cast graph is still a valid graph") {
  const ir::Graph g = parse("graph g(%x: f32[2], %i: i64[2]) { %a: f32[2] = aten.div.Tensor(%i, 3)  %b: i32[2] = aten.view.dtype(%a, i32)  %c: f32[2] = aten.rand([2])  return (%a, %b, %c) }");
  for (const base::Error& e : ir::verify(tensor::cast_to_fp64(g))) FAIL_CHECK(e.text());
}
