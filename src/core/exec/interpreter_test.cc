#include "core/exec/interpreter.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/ir/edit.h"
#include "core/ir/text.h"

namespace cutaway::exec {
namespace {

ir::Graph read(std::string_view text) {
  auto graph = ir::parse(text);
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  return std::move(graph).value();
}
Program ready(std::string_view text) {
  auto program = Program::prepare(read(text));
  REQUIRE_MESSAGE(program.ok(), program.error().text());
  return std::move(program).value();
}
std::vector<c10::IValue> run(const Program& p, std::vector<c10::IValue> inputs, const RunOptions& options = {}) { return p.run(inputs, options); }
std::vector<c10::IValue> run(std::string_view text, std::vector<c10::IValue> inputs) { return run(ready(text), std::move(inputs)); }
base::Error refusal(std::string_view text) {
  auto program = Program::prepare(read(text));
  REQUIRE_FALSE(program.ok());
  return program.error();
}

TEST_CASE("operators run in order and the result is eager's") {
  at::Tensor x = at::randn({2, 4}), w = at::randn({4, 3});
  auto out = run(R"(graph g(%x: f32[2, 4], %w: f32[4, 3]) {
    %h: f32[2, 3] = aten.mm(%x, %w)
    %y: f32[2, 3] = aten.relu(%h)
    %z: f32[2, 3] = aten.add.Tensor(%y, %h, alpha=2)
    return (%z, %y)
  })", {x, w});
  REQUIRE(out.size() == 2);
  const at::Tensor h = x.mm(w);
  CHECK(out[0].toTensor().equal(at::add(h.relu(), h, 2)));
  CHECK(out[1].toTensor().equal(h.relu()));
}

TEST_CASE("literals take the form that the schema asks for") {
  at::Tensor x = at::randn({2, 3, 8, 8});
  auto out = run(R"(graph g(%x: f32[2, 3, 8, 8]) {
    %a: f32[2, 3, 4, 4] = aten.max_pool2d(%x, 2, stride=[2, 2])
    %b: f64[2, 3, 4, 4] = aten.to.dtype(%a, f64, copy=true)
    %c: f64[2, 3, 4, 4] = aten.add.Tensor(%b, 3)
    %d: f64[2, 3, 4, 4] = aten.clone(%c, memory_format=channels_last)
    %e: f32[2, 2] = aten.full([2, 2], 7, dtype=f32, device=cpu, layout=strided)
    %f: f32[2, 3, 8, 8] = aten.leaky_relu(%x, 1)
    %g: f32[2, 3, 8, 8] = aten.clamp(%x, none, 0.5)
    %h: f32[2, 3, 8, 8] = aten.elu(%x, 1, 1, 1)
    %i: f32[2, 3] = aten.mean.dim(%x, [2, 3])
    return (%c, %d, %e, %f, %g, %h, %i)
  })", {x});
  const at::Tensor a = at::max_pool2d(x, 2).to(at::kDouble);
  CHECK(out[0].toTensor().equal(a + 3));
  CHECK((out[0].toTensor().scalar_type() == at::kDouble));
  CHECK(out[1].toTensor().is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(out[2].toTensor().equal(at::full({2, 2}, 7.0f)));
  CHECK(out[3].toTensor().equal(at::leaky_relu(x, 1)));
  CHECK(out[4].toTensor().equal(at::clamp(x, std::nullopt, 0.5)));
  CHECK(out[5].toTensor().equal(at::elu(x)));
  CHECK(out[6].toTensor().equal(at::mean(x, {2, 3})));
}

TEST_CASE("a number where a tensor is wanted promotes as a number") {
  at::Tensor x = at::ones({2}, at::kHalf);
  auto out = run("graph g(%x: f16[2]) { %y: f16[2] = aten.mul.Tensor(%x, 2.5) return (%y) }", {x});
  CHECK((out[0].toTensor().scalar_type() == at::kHalf));
}

TEST_CASE("lists of tensors, optional tensors in lists, list returns") {
  at::Tensor x = at::randn({4, 6}), i = at::tensor({0, 2});
  auto out = run(R"(graph g(%x: f32[4, 6], %i: i64[2]) {
    [%a: f32[2, 6], %b: f32[2, 6]] = aten.split.Tensor(%x, 2)
    %c: f32[4, 6] = aten.cat([%b, %a])
    %d: f32[4, 2] = aten.index.Tensor(%x, [none, %i])
    return ([%c, %a], (%d, 3), {"k": %b})
  })", {x, i});
  REQUIRE(out.size() == 3);
  REQUIRE(out[0].isTensorList());
  CHECK(out[0].toTensorVector()[0].equal(at::cat({x.slice(0, 2), x.slice(0, 0, 2)})));
  REQUIRE(out[1].isTuple());
  CHECK(out[1].toTupleRef().elements()[0].toTensor().equal(x.index({at::indexing::Slice(), i})));
  CHECK(out[1].toTupleRef().elements()[1].toInt() == 3);
  CHECK(out[2].toGenericDict().at("k").toTensor().equal(x.slice(0, 2)));
}

TEST_CASE("several returns, none for an undefined tensor, and none for an absent one") {
  at::Tensor x = at::randn({2, 4}), g = at::randn({2, 4}), w = at::randn({4});
  auto out = run(R"(graph g(%x: f32[2, 4], %w: f32[4], %g: f32[2, 4]) {
    %y: f32[2, 4], %m: f32[2, 1], %r: f32[2, 1] = aten.native_layer_norm(%x, [4], %w, none, 1e-05)
    %a: f32[2, 4], %b: f32[4], %c: none = aten.native_layer_norm_backward(%g, %x, [4], %m, %r, %w, none, [true, true, false])
    return (%y, %a, %c)
  })", {x, w, g});
  CHECK(out[0].toTensor().equal(at::layer_norm(x, {4}, w)));
  CHECK(out[1].isTensor());
  CHECK(out[2].isNone());
}

TEST_CASE("values leave at their last use, and inputs with them") {
  at::Tensor x = at::randn({4});
  c10::weak_intrusive_ptr<at::TensorImpl> weak(x.getIntrusivePtr());
  Program p = ready(R"(graph g(%x: f32[4]) {
    %a: f32[4] = aten.sin(%x)
    %b: f32[4] = aten.cos(%a)
    %c: f32[4] = aten.exp(%b)
    return (%c)
  })");
  std::vector<bool> alive;
  Hooks hooks;
  hooks.before = [&](size_t, const ir::Node&, const std::vector<c10::IValue>&) { alive.push_back(!weak.expired()); };
  std::vector<c10::IValue> inputs{std::move(x)};
  auto out = p.run(inputs, {.hooks = &hooks});
  CHECK(inputs.empty());
  CHECK(alive == std::vector<bool>{true, false, false});
}

TEST_CASE("the argument at its last use is the only reference") {
  Program p = ready(R"(graph g(%x: f32[4]) {
    %a: f32[4] = aten.sin(%x)
    %b: f32[4] = aten.mul.Tensor(%a, %a)
    %c: f32[4] = aten.exp(%b)
    return (%c)
  })");
  std::vector<size_t> uses;
  Hooks hooks;
  hooks.before = [&](size_t, const ir::Node&, const std::vector<c10::IValue>& args) { uses.push_back(args[0].toTensor().use_count()); };
  auto counted = [&](bool free_early) {
    std::vector<c10::IValue> inputs;   // not from a braced list, which would hold a second reference
    inputs.emplace_back(at::randn({4}));
    p.run(inputs, {.hooks = &hooks, .free_early = free_early});
  };
  counted(true);
  CHECK(uses == std::vector<size_t>{1, 2, 1});   // mul holds %a twice
  uses.clear();
  counted(false);
  CHECK(uses == std::vector<size_t>{2, 3, 2});
}

TEST_CASE("hooks see positions, arguments with defaults, and may replace results") {
  Program p = ready(R"(graph g(%x: f32[2]) {
    %y: f32[2] = call torch.f(%x) { %s: f32[2] = aten.add.Tensor(%x, %x) yield (%s) }
    [%a: f32[1], %b: f32[1]] = aten.split.Tensor(%y, 1)
    return (%a, %b)
  })");
  std::vector<std::string> seen;
  Hooks hooks;
  hooks.before = [&](size_t position, const ir::Node& n, const std::vector<c10::IValue>& args) { seen.push_back(std::to_string(position) + n.target + std::to_string(args.size())); };
  hooks.after = [&](size_t position, const ir::Node&, std::vector<c10::IValue>& results) {
    if (position == 1) {
      REQUIRE(results.size() == 2);
      results[1] = at::full({1}, 9.0f);
    }
  };
  auto out = run(p, {at::ones({2})}, {.hooks = &hooks});
  CHECK(seen == std::vector<std::string>{"0aten.add.Tensor3", "1aten.split.Tensor3"});
  CHECK(out[0].toTensor().item<float>() == 2);
  CHECK(out[1].toTensor().item<float>() == 9);
}

TEST_CASE("a region's state holds inside it only, also after an exception") {
  Program p = ready(R"(graph g(%x: f32[4, 4] grad) {
    %y: f32[4, 4] = scope no_grad { %a: f32[4, 4] = aten.mul.Tensor(%x, 2) yield (%a) }
    %z: bf16[4, 4] = scope autocast(cpu, bf16) { %b: bf16[4, 4] = aten.mm(%x, %x) yield (%b) }
    %w: f32[4, 4] = scope inference_mode { %c: f32[4, 4] = aten.mul.Tensor(%y, 3) yield (%c) }
    %v: f32[4, 4] = aten.mul.Tensor(%x, 2)
    return (%y, %z, %w, %v)
  })");
  auto out = run(p, {at::randn({4, 4}).requires_grad_()});
  CHECK_FALSE(out[0].toTensor().requires_grad());
  CHECK((out[1].toTensor().scalar_type() == at::kBFloat16));
  CHECK(out[1].toTensor().requires_grad());
  CHECK(out[2].toTensor().is_inference());
  CHECK(out[3].toTensor().requires_grad());
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));

  Program bad = ready(R"(graph g(%x: f32[4]) {
    %y: f32[4] = scope no_grad autocast(cpu, bf16) { %z: f32[4] = scope inference_mode { %a: f32[4] = aten.mm(%x, %x) yield (%a) } yield (%z) }
    return (%y)
  })");
  CHECK_THROWS_AS(run(bad, {at::randn({4})}), c10::Error);
  CHECK(Program::error_position() == 0);
  CHECK(at::GradMode::is_enabled());
  CHECK_FALSE(c10::InferenceMode::is_enabled());
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("autograd works through it") {
  at::Tensor x = at::randn({3, 4}).requires_grad_(), w = at::randn({4, 2}).requires_grad_();
  auto out = run(R"(graph g(%x: f32[3, 4] grad, %w: f32[4, 2] grad) {
    %h: f32[3, 2] grad = aten.mm(%x, %w)
    %y: f32[] grad = aten.sum(%h)
    return (%y)
  })", {x, w});
  out[0].toTensor().backward();
  CHECK(w.grad().equal(x.t().mm(at::ones({3, 2}))));
}

TEST_CASE("in-place operators write to what they were given") {
  at::Tensor x = at::zeros({4});
  auto out = run(R"(graph g(%x: f32[4]) {
    %v: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
    %w: f32[2] = aten.add_.Scalar(%v, 1)
    aten.mul_.Scalar(%x, 3)
    return (%x)
  })", {x});
  CHECK(x.equal(at::tensor({3.0f, 3.0f, 0.0f, 0.0f})));
  CHECK(out[0].toTensor().is_same(x));
}

TEST_CASE("regions: nested, yielding literals and flat lists") {
  at::Tensor x = at::randn({4});
  auto out = run(R"(graph g(%x: f32[4]) {
    %n: int, [%p: f32[2], %q: f32[2]], %o: f32[4] = call m.f(%x) {
      [%a: f32[2], %b: f32[2]] = aten.split.Tensor(%x, 2)
      %t: f32[4] = call m.g(%x) { yield (%x) }
      yield (2, %b, %a, %t)
    }
    [%c: f32[2], %d: f32[2]] = aten.split.Tensor(%o, %n)
    return (%p, %q, %c, %n)
  })", {x});
  CHECK(out[0].toTensor().equal(x.slice(0, 2)));
  CHECK(out[1].toTensor().equal(x.slice(0, 0, 2)));
  CHECK(out[2].toTensor().equal(x.slice(0, 0, 2)));
  CHECK(out[3].toInt() == 2);
}

TEST_CASE("symbolic sizes come from the inputs") {
  Program p = ready(R"(graph g(%x: f32[s0, 4], %y: f32[s1*2 + 1], %n: int) {
    %a: f32[s0*4] = aten.view(%x, [sym(s0*4)])
    %k: int = aten.sym_size.int(%x, 0)
    %m: int = sym.mul(%k, %n)
    %b: f32[s0*2, s1] = aten.full([%m, s1], 1.0)
    return (%a, %b, %m)
  })");
  auto out = run(p, {at::randn({3, 4}), at::randn({7}), 2});
  CHECK(out[0].toTensor().sizes() == at::IntArrayRef{12});
  CHECK(out[1].toTensor().sizes() == at::IntArrayRef{6, 3});
  CHECK(out[2].toInt() == 6);
  CHECK_THROWS_AS(run(p, {at::randn({3, 4}), at::randn({8}), 2}), c10::ValueError);
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[s0] = aten.view(%x, [s7]) return (%a) }").what == "no input tells the value of the symbol s7");
}

TEST_CASE("generators by name") {
  Program p = ready(R"(graph g() {
    %a: f32[4] = aten.rand.generator([4], generator=generator("mine"))
    %b: f32[4] = aten.rand.generator([4], generator=generator("default"))
    return (%a, %b)
  })");
  CHECK_THROWS_AS(run(p, {}), c10::ValueError);
  auto draw = [&] {
    at::manual_seed(3);
    at::Generator g = at::globalContext().defaultGenerator(at::kCPU).clone();
    g.set_current_seed(17);
    const std::unordered_map<std::string, at::Generator> named{{"mine", g}};
    return run(p, {}, {.generators = &named});
  };
  auto first = draw(), second = draw();
  CHECK(first[0].toTensor().equal(second[0].toTensor()));
  at::manual_seed(3);
  CHECK(first[1].toTensor().equal(at::rand({4})));
}

TEST_CASE("refusals name the operator, the argument and the place") {
  const base::Error unknown = refusal("graph g(%x: f32[4]) {\n  %y: f32[4] = aten.relu(%x)  # m.py:3 f\n  %a: f32[4] = aten.ad.Tensor(%x, %y)  # m.py:4 f\n  return (%a)\n}");
  CHECK(unknown.what == "torch has no operator 'aten.ad.Tensor'");
  CHECK(unknown.place == "<graph>:4:16");
  CHECK(unknown.excerpt.find("m.py:4") != std::string::npos);
  CHECK(unknown.hint.find("aten.add") != std::string::npos);
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4] = aten.add.Tensr(%x, %x) return (%a) }").hint.find("aten.add.Tensor") != std::string::npos);
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4] = higher_order.cond(%x) return (%a) }").what == "the operator 'higher_order.cond' is not run here");
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4] = aten.sum.dim_IntList(%x, [0.5]) return (%a) }").what ==
        "the argument 'dim' of aten.sum.dim_IntList: a float cannot be taken as int");
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4] = aten.relu(%x, 1) return (%a) }").what == "2 arguments without a name where aten.relu takes 1");
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4] = aten.mm(%x) return (%a) }").what == "the argument 'mat2' of aten.mm is missing");
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4] = aten.relu(%x, self=%x) return (%a) }").what == "the argument 'self' of aten.relu is given twice");
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4], %b: f32[4] = aten.relu(%x) return (%a) }").what == "the node defines 2 results where aten.relu gives 1");
  CHECK(refusal("graph g(%x: f32[4]) { [%a: f32[4]] = aten.relu(%x) return (%a) }").what == "result 0 of aten.relu is taken as a list and is Tensor");
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4] = aten.add_.Tensor(2, %x) return (%a) }").what.find("is written to") != std::string::npos);
  CHECK(refusal("graph g(%x: f32[4]) { %a: f32[4] = sym.add(1) return (%a) }").what == "sym.add takes 2 arguments without names, not 1");
}

TEST_CASE("torch's exceptions pass, and the position is known") {
  Program p = ready(R"(graph g(%x: f32[4], %y: f32[3]) {
    %a: f32[4] = aten.relu(%x)
    %b: f32[4] = aten.add.Tensor(%a, %y)
    return (%b)
  })");
  CHECK_THROWS_AS(run(p, {at::randn({4}), at::randn({3})}), c10::Error);
  CHECK(Program::error_position() == 1);
  run(p, {at::randn({4}), at::randn({4})});
  CHECK(Program::error_position() == -1);
  Program list = ready("graph g(%x: f32[4]) { [%a: f32[2]] = aten.split.Tensor(%x, 2) return (%a) }");
  CHECK_THROWS_AS(run(list, {at::randn({4})}), c10::ValueError);
}

TEST_CASE("schemas from the dispatcher") {
  const ir::Schema* add = dispatcher_schemas().find("aten.add.Tensor");
  REQUIRE(add);
  CHECK(add == dispatcher_schemas().find("aten.add.Tensor"));
  REQUIRE(add->args.size() == 3);
  CHECK(add->args[2].name == "alpha");
  CHECK(add->args[2].type == "Scalar");
  CHECK(add->args[2].kwarg_only);
  CHECK(add->args[2].has_default);
  CHECK_FALSE(add->args[0].is_written);
  CHECK(add->returns == std::vector<std::string>{"Tensor"});
  CHECK_FALSE(add->is_random);
  CHECK(dispatcher_schemas().find("aten.add_.Tensor")->args[0].is_written);
  CHECK(dispatcher_schemas().find("aten.add.out")->args[3].is_written);
  CHECK(dispatcher_schemas().find("aten.bernoulli")->is_random);
  CHECK(dispatcher_schemas().find("aten.to.dtype")->args[1].type == "ScalarType");
  CHECK(dispatcher_schemas().find("aten.index.Tensor")->args[1].type == "Tensor?[]");
  CHECK(dispatcher_schemas().find("aten.view")->args[1].type == "SymInt[]");
  CHECK(dispatcher_schemas().find("sym.max")->args.size() == 2);
  CHECK(dispatcher_schemas().find("aten.nothing") == nullptr);
}

TEST_CASE("operators that draw random numbers or write are known by name too") {
  size_t checked = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    ir::Node n;
    n.target = "aten." + name.name.substr(6) + (name.overload_name.empty() ? "" : "." + name.overload_name);
    const ir::Schema* schema = dispatcher_schemas().find(n.target);
    if (!schema || schema->returns.empty()) continue;
    n.results = {0};
    // Out-variants with overloads of their own are told by the keyword.
    for (const ir::Schema::Arg& a : schema->args)
      if (a.is_written && a.kwarg_only) n.kwargs.emplace_back("out", ir::Argument(int64_t{0}));
    if (!ir::has_effects(n, &dispatcher_schemas())) continue;
    INFO(n.target);
    CHECK(ir::has_effects(n));
    ++checked;
  }
  CHECK(checked > 1000);
}

}  // namespace
}  // namespace cutaway::exec
