"""Graphs with symbolic sizes: recorded at a few sizes, run at others, against eager there."""

import math

import cutaway
import pytest
import torch
import torch.nn.functional as F
from cutaway import trace
from cutaway._graph import all_inputs

pytest.importorskip("transformers")
from tests.support.model_zoo import build  # noqa: E402

TEXT = ["input_ids"]
CASES = {  # model: (inputs whose sizes change, their dimensions, other sizes to run at)
    "bert": (TEXT, {0: "batch", 1: "length"}, [(3, 7), (5, 40), (2, 2)]),
    "gpt2": (TEXT, {0: "batch", 1: "length"}, [(3, 7), (5, 40)]),
    "llama": (TEXT, {0: "batch", 1: "length"}, [(3, 7), (5, 40), (2, 300)]),
    "t5": (["input_ids", "decoder_input_ids"], {0: "batch", 1: "length"}, [(3, 7), (5, 40)]),
    "mixtral": (TEXT, {0: "batch", 1: "length"}, [(3, 7), (5, 40)]),
    "lstm": (["words"], {0: "batch", 1: "length"}, [(3, 7), (5, 40)]),
    "vit": (["pixel_values"], {0: "batch"}, [(7,)]),
    "resnet": (["pixel_values"], {0: "batch", 2: "height", 3: "width"}, [(3, 40, 56), (5, 33, 47)]),
    "unet": (["x"], {2: "height", 3: "width"}, [(40, 64)]),
}


def at_size(tensor, dims, sizes):
    shape = list(tensor.shape)
    for d, s in zip(dims, sizes, strict=True):
        shape[d] = s
    return torch.rand(shape) if tensor.is_floating_point() else torch.randint(0, 200, shape)


@pytest.mark.parametrize("where", ["above", "below"])
@pytest.mark.parametrize("name", CASES)
def test_models_run_at_other_sizes(name, where):
    keys, dims, others = CASES[name]
    model, kwargs = build(name)
    with torch.no_grad():
        graph = trace.record(model, (), kwargs, dynamic=dict.fromkeys(keys, dims), where=where)
        assert graph.static_sizes == {}, graph.static_sizes
        for named in dims.values():
            assert f"[{named}, " in str(graph) or f", {named}" in str(graph)
        assert str(cutaway.Graph.parse(str(graph))) == str(graph)
        for sizes in others:
            changed = {k: at_size(v, dims, sizes) if k in keys else v for k, v in kwargs.items()}
            if len(keys) == 2:
                changed[keys[1]] = changed[keys[0]]
            inputs = [v for v in changed.values() if isinstance(v, torch.Tensor)]
            assert graph.size_guards.check(all_inputs(graph, inputs)) == ""
            expected = torch.utils._pytree.tree_leaves(model(**changed))
            for e, r in zip(expected, graph.run(*inputs), strict=True):
                if isinstance(e, torch.Tensor):
                    assert torch.equal(e, r) if where == "above" else torch.allclose(e, r, atol=1e-5), (name, sizes)


def test_joint_graph_at_other_sizes():
    model, kwargs = build("bert")

    class Training(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            return torch.autograd.grad(
                self.model(ids)[0].pow(2).mean(), list(self.model.parameters()), allow_unused=True
            )

    training = Training()
    graph = trace.record(training, (kwargs["input_ids"],), where="below", dynamic={0: {0: "batch", 1: "length"}})
    # mean divides by a number of elements that autograd computes: a floating-point number would make it static
    ids = torch.randint(0, 200, (3, 11))
    if not graph.static_sizes:
        for e, r in zip(training(ids), graph.run(ids), strict=True):
            assert e is None or torch.allclose(e, r, atol=1e-6)
    else:
        assert any("floating-point" in reason or "no expression" in reason for reason in graph.static_sizes.values())


def test_guards_say_what_must_hold():
    def f(x):
        return x.view(x.shape[0] // 4, 4).sum(1)

    graph = trace.record(f, (torch.ones(12),), dynamic={0: {0: "n"}})
    assert "mod(n, 4) == 0" in graph.size_guards.texts
    assert graph.size_guards.check([torch.ones(20)]) == ""
    assert graph.size_guards.check([torch.ones(21)]).startswith("mod(n, 4) == 0 does not hold: 1 and 0")
    assert graph.run(torch.ones(20))[0].tolist() == [4.0] * 5


def test_names_are_made_up_and_shared():
    graph = trace.record(
        lambda a, b: (a @ b, a + 1),
        (torch.ones(4, 6), torch.ones(6, 3)),
        dynamic={0: {0: "rows", 1: "inner"}, 1: {0: "inner"}},
    )
    assert "%arg0: f32[rows, inner], %arg1: f32[inner, 3]" in str(graph)
    graph = trace.record(lambda a: a.flatten(), (torch.ones(4, 6),), dynamic={0: [0, 1]})
    assert "f32[s0*s1]" in str(graph)


def test_what_stays_static_says_why():
    graph = trace.record(lambda x: x * math.log(x.shape[0]), (torch.ones(4, 6),), dynamic={0: [0, 1]})
    assert list(graph.static_sizes) == ["s0"]
    assert "floating-point number" in graph.static_sizes["s0"]
    assert "f32[4, s1]" in str(graph)
    graph = trace.record(lambda x: F.relu(x), (torch.ones(1, 6),), dynamic={0: [0]})
    assert "broadcast" in graph.static_sizes["s0"]
    graph = trace.record(lambda x: x + torch.tensor(float(x.shape[0])), (torch.ones(4),), dynamic={0: [0]})
    assert "the value of a constant depends on the sizes" in graph.static_sizes["s0"]


def test_mistakes_are_named():
    x = torch.ones(4, 6)
    with pytest.raises(ValueError, match="n is 4 and 6"):
        trace.record(lambda x: x, (x,), dynamic={0: {0: "n", 1: "n"}})
    with pytest.raises(TypeError, match="input 1 is not a tensor"):
        trace.record(lambda x, k: x, (x, 3), dynamic={1: [0]})
    with pytest.raises(ValueError, match="need fake tensors"):
        trace.record(lambda x: x, (x,), dynamic={0: [0]}, fake=False)
    with pytest.raises(RuntimeError, match="shape|size"):  # the program's own mistake at its own sizes
        trace.record(lambda x: x @ x, (x,), dynamic={0: [0]})
    with pytest.raises(NotImplementedError, match="do not lie one after the other"):
        trace.record(lambda x: x, (torch.ones(4, 8)[:, ::2],), dynamic={0: [0]})
