"""cutaway.debug(after="aot") under cutaway.compile: our capture, our ahead-of-time autograd, nothing of Dynamo's or of torch's."""

from __future__ import annotations

import json
from pathlib import Path

import cutaway
import pytest
import torch


class ToyError(Exception):
    pass


def targets(gm) -> str:
    return " ".join(str(node.target) for node in gm.graph.nodes)


def rejects_relu(gm, example_inputs):
    if "relu" in targets(gm):
        raise ToyError("relu is not supported")
    return gm.forward


def rejects_cos(gm, example_inputs):
    if "cos" in targets(gm):  # the derivative of sin
        raise ToyError("no backward here")
    return gm.forward


def fails_at_run(gm, example_inputs):
    def run(*inputs):
        if "cos" in targets(gm):
            raise ToyError("while running backward")
        return gm.forward(*inputs)

    return run


def wrong_sin(gm, example_inputs):
    for node in list(gm.graph.nodes):
        if "sin" in str(node.target):
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.ops.aten.add.Tensor, (node, 0.5))
            node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
    gm.recompile()
    return gm.forward


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x):
        return torch.relu(self.linear(x)).sin()


@pytest.fixture(autouse=True)
def nothing_of_torch_s(monkeypatch):
    """Torch's ahead-of-time autograd and Dynamo are not to be called."""
    import torch._dynamo.backends.common
    import torch._dynamo.convert_frame
    import torch._functorch.aot_autograd

    def fail(*_, **__):
        raise AssertionError("torch's ahead-of-time autograd was called")

    monkeypatch.setattr(torch._functorch.aot_autograd, "aot_module_simplified", fail)
    monkeypatch.setattr(torch._dynamo.backends.common, "aot_module_simplified", fail)
    monkeypatch.setattr(torch._dynamo.convert_frame, "_compile", fail)
    cutaway.reset()


def manifest_of(path) -> dict:
    return json.loads((Path(path) / "manifest.json").read_text())


def train(net, f, x):
    net.zero_grad()
    out = f(x)
    out.pow(2).sum().backward()
    return [out.detach(), *(p.grad.clone() for p in net.parameters())]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "cutaway"])
def test_good_backends_train_as_eager_at_every_level(tmp_path, level, backend):
    net, x = Net(), torch.randn(3, 6)
    f = cutaway.compile(net, backend=cutaway.debug(backend, after="aot", level=level, base_dir=tmp_path))
    for e, g in zip(train(net, net, x), train(net, f, x), strict=True):
        torch.testing.assert_close(g, e)
    if level == 3:  # written before every step: forward and backward, each by its name
        names = {manifest_of(p.parent)["name"] for p in tmp_path.rglob("manifest.json")}
        assert any("_forward_" in n for n in names) and any("_backward_" in n for n in names), names


def test_a_compile_error_of_the_forward_graph(tmp_path):
    net, x = Net(), torch.randn(3, 6)
    f = cutaway.compile(net, backend=cutaway.debug(rejects_relu, after="aot", base_dir=tmp_path))
    with pytest.raises(cutaway.exc.BackendCompilerFailed, match="relu is not supported") as error:
        f(x)
    inner = error.value.inner_exception
    assert isinstance(inner, ToyError)
    manifest = manifest_of(inner.minifier_path)
    assert manifest["stage"] == "aot" and "_forward_" in manifest["name"]
    assert {i["kind"] for i in manifest["inputs"]} == {"data"}
    text = (Path(inner.minifier_path) / "graph.cut").read_text()
    assert "aten.relu" in text and "torch.relu" not in text


@pytest.mark.parametrize("backend", [rejects_cos, fails_at_run])
def test_an_error_of_the_backward_graph_keeps_its_type_and_has_data(tmp_path, backend):
    net, x = Net(), torch.randn(3, 6)
    f = cutaway.compile(net, backend=cutaway.debug(backend, after="aot", base_dir=tmp_path))
    out = f(x)
    with pytest.raises(ToyError) as error:
        out.sum().backward()
    manifest = manifest_of(error.value.minifier_path)
    assert "_backward_" in manifest["name"] and manifest["failure"]["type"] == "ToyError"
    assert {i["kind"] for i in manifest["inputs"]} == {"data"}
    from cutaway import _backends, _native

    _backends.register_all()
    trial = {
        "task": "run",
        "graph": (Path(error.value.minifier_path) / "graph.cut").read_text(),
        "manifest": json.dumps(manifest),
        "store": str(error.value.minifier_path),
        "accuracy": "none",
        "only_forward": False,
        "is_trusted": True,
        "tolerance": 1e-3,
        "threads": 1,
    }
    result = json.loads(_native.run_trial(json.dumps(trial)))
    assert result["outcome"] == "failure" and result["signature"]["type"] == "ToyError", result


def test_wrong_numbers_are_found_in_the_graph_that_has_them(tmp_path):
    net, x = Net(), torch.randn(3, 6)
    f = cutaway.compile(net, backend=cutaway.debug(wrong_sin, after="aot", level=4, base_dir=tmp_path))
    with pytest.raises(cutaway.AccuracyError) as error:
        f(x)
    assert "_forward_" in manifest_of(error.value.minifier_path)["name"]


def test_without_gradients_there_is_one_graph(tmp_path):
    net, x = Net(), torch.randn(3, 6)
    f = cutaway.compile(net, backend=cutaway.debug(rejects_relu, after="aot", base_dir=tmp_path))
    with torch.no_grad(), pytest.raises(cutaway.exc.BackendCompilerFailed) as error:
        f(x)
    assert "_inference_" in manifest_of(error.value.inner_exception.minifier_path)["name"]


def test_what_cannot_be_differentiated_so_runs_eagerly_and_says_so(tmp_path, capfd):
    with torch.library._scoped_library("own_aot_tests", "DEF") as library:
        library.define("twice_(Tensor(a!) x) -> ()")
        library.impl("twice_", lambda x: [x.mul_(2), None][1], "CompositeExplicitAutograd")

        def f(x):
            y = x + 1
            torch.ops.own_aot_tests.twice_(y)
            return y

        g = cutaway.compile(f, backend=cutaway.debug("eager", after="aot", base_dir=tmp_path))
        x = torch.randn(3)
        assert torch.equal(g(x), f(x))
    assert "runs eagerly" in capfd.readouterr().err


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        return g * 3 + ctx.saved_tensors[0]


def test_autograd_functions_keep_their_backward(tmp_path):
    def f(x, w):
        return Tripled.apply(x @ w).sin()

    g = cutaway.compile(f, backend=cutaway.debug("eager", after="aot", level=4, base_dir=tmp_path))
    x, w = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    for expected, got in zip(*([h(x, w), *torch.autograd.grad(h(x, w).sum(), w)] for h in (f, g)), strict=True):
        torch.testing.assert_close(got, expected)


def test_sizes_that_change(tmp_path):
    net = Net()
    f = cutaway.compile(net, dynamic=True, backend=cutaway.debug("aot_eager", after="aot", level=4, base_dir=tmp_path))
    for batch in (3, 5, 8):
        x = torch.randn(batch, 6)
        for e, g in zip(train(net, net, x), train(net, f, x), strict=True):
            torch.testing.assert_close(g, e)


def test_after_capture_aot_eager_means_ours_and_the_bundle_says_so(tmp_path):
    net, x = Net(), torch.randn(3, 6)
    f = cutaway.compile(net, backend=cutaway.debug("aot_eager", level=3, base_dir=tmp_path))
    for e, g in zip(train(net, net, x), train(net, f, x), strict=True):
        torch.testing.assert_close(g, e)
    manifests = [manifest_of(p.parent) for p in tmp_path.rglob("manifest.json")]
    assert manifests and all(m["extra"].get("autograd") == "cutaway" for m in manifests)


@pytest.mark.skipif(not torch.backends.cpu.get_cpu_capability(), reason="no compiler for Inductor")
def test_inductor_compiles_our_forward_and_backward_graphs(tmp_path):
    net, x = Net(), torch.randn(3, 6)
    f = cutaway.compile(net, backend=cutaway.debug("inductor", after="aot", level=4, base_dir=tmp_path))
    for e, g in zip(train(net, net, x), train(net, f, x), strict=True):
        torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-5)
