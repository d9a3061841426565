#include "compiler/backends/aot_eager.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "core/trace/recorder.h"

using namespace cutaway;
using Values = std::vector<c10::IValue>;

TEST_CASE("the backend aot_eager is in the table") {
  auto w = at::randn({8, 8}).requires_grad_();
  auto graph = trace::record([](Values& in) -> Values { return {in[0].toTensor().tanh().sum()}; }, {w}, {});
  REQUIRE(graph.ok());
  auto backend = backends::find_backend("aot_eager");
  REQUIRE(backend.ok());
  auto compiled = (*backend)->compile(*graph, {w}, nullptr);
  REQUIRE(compiled.ok());
  Values in{w};
  (*compiled)->run(in).front().toTensor().backward();
  CHECK(at::allclose(w.grad(), 1 - w.tanh().pow(2)));
  CHECK_FALSE(backends::find_backend("aot_eager:half").ok());
}
