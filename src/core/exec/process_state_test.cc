#include "core/exec/process_state.h"

#include <ATen/ATen.h>
#include <c10/core/DefaultDtype.h>
#include <doctest/doctest.h>

#include "core/exec/control_flow.h"
#include "core/exec/interpreter.h"
#include "core/ir/text.h"

namespace cutaway::exec {
namespace {

Program program(const std::string& text) {
  auto graph = ir::parse(text, "test");
  REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
  auto ready = Program::prepare(*graph);
  REQUIRE_MESSAGE(ready.ok(), (ready.ok() ? "" : ready.error().text()));
  return std::move(ready).value();
}

TEST_CASE("a graph sets switches of the process, and they can be put back") {
  const SwitchState before;
  const int flash = switch_set_by("_set_sdp_use_flash");
  REQUIRE(flash >= 0);
  CHECK(switch_set_by("_set_nothing") == -1);
  CHECK(std::string(setter_of(flash)) == "_set_sdp_use_flash");
  const Program p = program(R"(graph g(%x: f32[2]) {
  cutaway.set_switch("_set_sdp_use_flash", 0)
  cutaway.set_switch("_set_default_dtype", 7)
  %y: f32[2] = aten.mul.Tensor(%x, 2.0)
  return (%y)
}
)");
  std::vector<c10::IValue> inputs{at::ones({2})};
  CHECK(p.run(inputs)[0].toTensor().numel() == 2);
  CHECK(switch_now(flash) == 0);
  CHECK((c10::get_default_dtype_as_scalartype() == at::kDouble));
  before.put_back();
  CHECK(switch_now(flash) == before[flash]);
  CHECK((c10::get_default_dtype_as_scalartype() == at::kFloat));
}

TEST_CASE("control flow by operators: one branch runs and is differentiated, a loop carries tensors") {
  const std::string doubles = keep_program(program("graph a(%x: f32[2]) {\n  %y: f32[2] = aten.mul.Tensor(%x, 2.0)\n  return (%y)\n}\n"));
  const std::string squares = keep_program(program("graph b(%x: f32[2]) {\n  %y: f32[2] = aten.mul.Tensor(%x, %x)\n  return (%y)\n}\n"));
  const Program choose = program("graph c(%p: bool[], %x: f32[2]) {\n  %y: f32[2] = aten.alias(%x)\n  [%z: f32[2]] = cutaway.cond(%p, \"" + doubles + "\", \"" + squares + "\", [%y], [%y])\n  return (%z)\n}\n");
  for (const bool flag : {true, false}) {
    const at::Tensor x = at::full({2}, 3.0).requires_grad_(true);
    std::vector<c10::IValue> inputs{at::scalar_tensor(flag, at::kBool), x};
    const at::Tensor z = choose.run(inputs)[0].toTensor();
    CHECK(z[0].item<float>() == (flag ? 6.0f : 9.0f));
    z.sum().backward();
    CHECK(x.grad()[0].item<float>() == (flag ? 2.0f : 6.0f));
  }
  const Program unknown = program("graph d(%p: bool[], %x: f32[2]) {\n  [%z: f32[2]] = cutaway.cond(%p, \"99999\", \"99999\", [%x], [%x])\n  return (%z)\n}\n");
  std::vector<c10::IValue> inputs{at::scalar_tensor(true, at::kBool), at::ones({2})};
  CHECK_THROWS_WITH(unknown.run(inputs), doctest::Contains("there is no program 99999"));
}

}  // namespace
}  // namespace cutaway::exec
