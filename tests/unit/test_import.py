"""Import and export of small graphs: what each kind of node becomes, and what is refused by name."""

import subprocess
import sys

import cutaway
import pytest
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx


def test_operators_results_and_constants():
    def f(x, y):
        a, b = torch.split(x, 2)
        v, m = torch.var_mean(a * y, 0)
        return v, m, b + torch.tensor(3.0)

    x, y = torch.randn(4, 3), torch.randn(3)
    graph = cutaway.Graph.from_fx(make_fx(f)(x, y), (x, y))
    text = str(graph)
    assert "aten.var_mean.correction" in text and "constant" in text
    assert str(cutaway.Graph.parse(text)) == text
    for got, want in zip(graph.run(x, y), f(x, y), strict=True):
        assert torch.equal(got, want)


def test_symbolic_sizes_run_at_another_size():
    def f(x):
        return x.reshape(x.shape[0] * x.shape[1], -1).sum(1) / (x.shape[0] + 1)

    graph = cutaway.Graph.from_fx(make_fx(f, tracing_mode="symbolic")(torch.randn(2, 3, 4)))
    text = str(graph)
    assert "sym.mul" in text and str(cutaway.Graph.parse(text)) == text
    x = torch.randn(5, 7, 2)
    assert torch.equal(graph.run(x)[0], f(x))


def test_captured_calls_keep_their_names():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4, 4))
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x):
            h = F.linear(x, self.weight).relu()
            return self.inner(torch.add(h, 2)).view(-1, 2)

    net = Net()
    x = torch.randn(3, 4)
    graph = cutaway.Graph.from_fx(torch.fx.symbolic_trace(net), (x,))
    text = str(graph)
    for name in (
        "torch.nn.functional.linear",
        "Tensor.relu",
        "torch.add",
        "Tensor.view",
        "inner.weight",
    ):
        assert name in text, text
    assert str(cutaway.Graph.parse(text)) == text
    assert torch.equal(graph.run(x)[0], net(x))
    graph.run(x)[0].sum().backward()
    assert torch.equal(graph.to_fx()(x)[0], net(x))
    want = net(x).sum()
    net.zero_grad()
    want.backward()


def test_writes_to_parts_of_a_tensor():
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(cutaway.Graph.from_fx(graph_module, example_inputs))
        return graphs[-1].run

    def f(x):
        y = x.clone()
        y[:, 0] = 1.0
        y[..., 1:] *= 2
        return y, y.shape[0] + y.sum(), y[None, 1]

    torch._dynamo.reset()
    x = torch.randn(3, 4)
    for got, want in zip(torch.compile(f, backend=backend, dynamic=False)(x), f(x), strict=True):
        assert torch.equal(got, want)
    assert "operator.setitem" in str(graphs[0])
    assert cutaway.Graph.parse(str(graphs[0])) == graphs[0]


def test_grad_mode_inside_a_dynamo_graph():
    seen = []

    def backend(gm, inputs):
        seen.append(cutaway.Graph.from_fx(gm, inputs))
        back = seen[-1].to_fx()
        return lambda *a: back(*a) if len(seen) % 2 else seen[-1].run(*a)

    def f(x):
        with torch.no_grad():
            y = x * 2
        return y + x

    torch._dynamo.reset()
    x = torch.randn(3, requires_grad=True)
    out = torch.compile(f, backend=backend)(x)
    assert torch.equal(out, f(x))
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], torch.ones(3))
    run = seen[0].run(x)[0]
    assert torch.equal(torch.autograd.grad(run.sum(), x)[0], torch.ones(3))
    assert torch.is_grad_enabled()


def captured(f, *inputs):
    """The graphs that Dynamo captures of f, after checking that each runs as f does; grad mode is the caller's."""
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(cutaway.Graph.from_fx(graph_module, example_inputs))
        assert cutaway.Graph.parse(str(graphs[-1])) == graphs[-1] and not graphs[-1].verify()
        return graphs[-1].run

    torch._dynamo.reset()
    got, want = torch.compile(f, backend=backend, dynamic=False)(*inputs), f(*inputs)
    for g, w in zip(got, want, strict=True):
        assert torch.equal(g, w) and g.dtype == w.dtype and g.requires_grad == w.requires_grad
    return graphs


def test_autocast_inside_a_dynamo_graph():
    def f(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = x @ w
            with torch.autocast("cpu", enabled=False):
                k = x @ w
        return h, k, x @ w

    x, w = torch.randn(4, 4), torch.randn(4, 4)
    (graph,) = captured(f, x, w)
    for got, want in zip(graph.to_fx()(x, w), f(x, w), strict=True):
        assert torch.equal(got, want) and got.dtype == want.dtype
    assert not torch.is_autocast_enabled("cpu")


def test_calls_with_several_results():
    def f(x):
        a, b = torch.split(x, 2)
        values, indices = torch.max(x, dim=1)
        (whole,) = torch.split(x, 10)
        return a, b, values, indices, whole

    x = torch.randn(4, 4)
    for graph in captured(f, x):
        text = str(graph)
        assert "torch.split" in text and "torch.max" in text


def test_script_of_captured_calls_runs_alone(tmp_path):
    def f(x):
        with torch.no_grad():
            y = F.gelu(x, approximate="tanh")[..., 1:]
        return y.reshape(-1, 3), F.layer_norm(x, (4,)).to(torch.float64), torch.full((2,), float("-inf"))

    x = torch.randn(3, 4)
    (graph,) = captured(f, x)
    script = graph.to_python((x,))
    assert "torch.nn.functional.gelu(" in script and "torch.set_grad_enabled(False)" in script
    (tmp_path / "script.py").write_text(script)
    torch.save([x], tmp_path / "inputs.pt")
    command = [sys.executable, "script.py", "--inputs", "inputs.pt", "--save", "out.pt"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    for got, want in zip(torch.load(tmp_path / "out.pt", weights_only=True), f(x), strict=True):
        assert torch.equal(got, want)


def test_export_writes_mutated_buffers_back():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    x = torch.randn(2)
    graph = cutaway.Graph.from_export(torch.export.export(Counter(), (x,)))
    assert torch.equal(graph.run(x)[0], x + 1)
    assert torch.equal(graph.run(x)[0], x + 2)
    assert torch.equal(graph.lifted[0], torch.full((2,), 2.0))


def test_no_grad_of_an_exported_program_is_a_scope():
    class Net(torch.nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = x.sin()
            return y * x

    x = torch.randn(3, requires_grad=True)
    graph = cutaway.Graph.from_export(torch.export.export(Net(), (x,)))
    out = graph.run(x)[0]
    assert torch.equal(out, Net()(x))
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], x.detach().sin())


def test_parameters_travel_in_a_bundle(tmp_path):
    net = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    graph = cutaway.Graph.from_export(torch.export.export(net, (x,)))
    cutaway.save(tmp_path / "bundle", graph, (x,))
    bundle = cutaway.load(tmp_path / "bundle")
    assert [i.qualified_name for i in bundle.graph.inputs] == ["weight", "bias", ""]
    assert torch.equal(bundle.graph.run(*bundle.inputs)[0], net(x))


def test_control_flow_is_refused_by_name():
    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    program = torch.export.export(Net(), (torch.randn(3),))
    with pytest.raises(cutaway.Error, match="the higher-order operator 'cond' is not imported"):
        cutaway.Graph.from_export(program)


def test_errors_name_the_place():
    with pytest.raises(cutaway.Error, match="from_fx takes a torch.fx.GraphModule, not Linear"):
        cutaway.Graph.from_fx(torch.nn.Linear(1, 1), ())
    with pytest.raises(cutaway.Error, match="the input 'x' has no type"):
        cutaway.Graph.from_fx(torch.fx.symbolic_trace(lambda x: torch.relu(x)))
    with pytest.raises(cutaway.Error, match="not an exported program"):
        cutaway.Graph.from_export(__file__)
    graph = cutaway.Graph.from_fx(make_fx(torch.sin)(torch.randn(2)))
    with pytest.raises(cutaway.Error, match="wrong number of inputs: 2 given; the graph has 1"):
        graph.run(torch.randn(2), torch.randn(2))


def test_script_makes_the_same_random_inputs(tmp_path):
    """The script computes its inputs by itself; they must be the ones that Cutaway makes from the same seeds."""

    def f(x, i, b, h, z):
        return x * 1, i * 1, b.clone(), h * 1, z * 1

    inputs = (
        torch.randn(5, 3).t(),
        torch.randint(0, 10, (4,)),
        torch.ones(9, dtype=torch.bool),
        torch.randn(7).half(),
        torch.randn(3, dtype=torch.complex128),
    )
    graph = cutaway.Graph.from_fx(make_fx(f)(*inputs), inputs)
    (tmp_path / "script.py").write_text(graph.to_python(seed=11))
    subprocess.run([sys.executable, "script.py", "--save", "out.pt"], cwd=tmp_path, check=True, capture_output=True)
    first = torch.load(tmp_path / "out.pt", weights_only=True)
    assert [o.dtype for o in first] == [i.dtype for i in inputs]
    assert first[0].std() > 0.3 and first[1].max() < 10 and first[2].any() and not first[2].all()
    for i, (got, t) in enumerate(zip(first, inputs, strict=True)):
        assert torch.equal(got, cutaway.rand_strided(t.shape, t.stride(), t.dtype, seed=11 + i))
    (tmp_path / "script.py").write_text(graph.to_python(inputs, seed=11))
    subprocess.run([sys.executable, "script.py", "--save", "out2.pt"], cwd=tmp_path, check=True, capture_output=True)
    for a, b in zip(first, torch.load(tmp_path / "out2.pt", weights_only=True), strict=True):
        assert torch.equal(a, b)


def test_script_reads_files(tmp_path):
    x = torch.randn(3)
    graph = cutaway.Graph.from_fx(make_fx(lambda x: x.sin())(x), (x,))
    torch.save(x, tmp_path / "x.pt")
    (tmp_path / "script.py").write_text(graph.to_python(files=["x.pt"]))
    subprocess.run([sys.executable, "script.py", "--save", "out.pt"], cwd=tmp_path, check=True, capture_output=True)
    assert torch.equal(torch.load(tmp_path / "out.pt", weights_only=True)[0], x.sin())
