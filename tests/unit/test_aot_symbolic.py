"""One joint graph for many sizes: recorded once, right at every size that its guards allow, anew or static elsewhere."""

import math

import cutaway
import pytest
import torch
import torch.nn.functional as F
from cutaway import trace


def symbolic(f, inputs, dynamic):
    graph = trace.record(f, inputs, dynamic=dynamic)
    return graph, cutaway.aot(graph, inputs)


def gradients(f, model, x):
    model.zero_grad()
    x = x.detach().clone().requires_grad_()
    out = f(x)
    out = out[0] if isinstance(out, tuple) else out
    out.pow(2).sum().backward()
    return [out.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]


MODELS = {
    "mlp": (lambda: torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)), (8,)),
    "norm": (lambda: torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Tanh()), (3, 8)),
    "convolution": (
        lambda: torch.nn.Sequential(torch.nn.Conv1d(2, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool1d(2)),
        (2, 8),
    ),
    "attention": (lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (6, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_train_at_many_batch_sizes_with_one_recording(name):
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model = make()
    x = torch.randn(5, *shape, requires_grad=True)
    graph, compiled = symbolic(model, (x,), {0: {0: "batch"}})
    function = compiled.function
    assert function.symbols == {"batch": 5}, function.static_because
    assert "batch" in str(compiled.forward) and "batch" in str(compiled.backward)
    for batch in (5, 2, 7, 33, 64):
        x = torch.randn(batch, *shape)
        for e, g in zip(gradients(model, model, x), gradients(compiled, model, x), strict=True):
            torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-5)
    assert len(compiled.runner.functions) == 1
    small = torch.randn(1, *shape, requires_grad=True)  # a size that broadcasts: a function of its own
    torch.testing.assert_close(compiled.runner.run([*graph.lifted, small])[0], model(small), rtol=1e-4, atol=1e-5)
    assert len(compiled.runner.functions) == 2


def test_two_symbols_views_and_written_inputs():
    def f(x, w, counts):
        counts.add_(x.detach().sum(0))
        y = (x @ w).view(x.shape[0] * 2, -1)
        return y, y[1], x.t(), x.shape[0], w

    x, w, counts = torch.randn(4, 6, requires_grad=True), torch.randn(6, 6, requires_grad=True), torch.zeros(6)
    _, compiled = symbolic(f, (x, w, counts), {0: {0: "rows"}})
    assert compiled.function.symbols == {"rows": 4}, compiled.function.static_because
    for rows in (4, 3, 9):
        x = torch.randn(rows, 6, requires_grad=True)
        a, b = torch.zeros(6), torch.zeros(6)
        expected, got = f(x, w, a), compiled(x, w, b)
        assert torch.equal(a, b)
        assert got[3] == rows and got[4] is w
        for e, g in zip(expected[:3], got[:3], strict=True):
            assert torch.equal(e, g) and e.stride() == g.stride() and e.requires_grad == g.requires_grad
        assert got[2].data_ptr() == x.data_ptr() and got[1]._base is got[0]._base
        loss = [(o[0].sum() + o[1].prod() + o[2].pow(2).sum()) for o in (expected, got)]
        for e, g in zip(*(torch.autograd.grad(v, (x, w)) for v in loss), strict=True):
            torch.testing.assert_close(g, e)
    assert len(compiled.runner.functions) == 1


def test_products_of_symbols_reach_backward():
    """What is saved is flat: no tensor of the backward graph alone tells both sizes."""

    def f(x):
        return torch.cumsum(x.reshape(-1), 0).exp().reshape(x.shape)

    x = torch.randn(3, 4, requires_grad=True)
    _, compiled = symbolic(f, (x,), {0: {0: "a", 1: "b"}})
    assert set(compiled.function.symbols) == {"a", "b"}, compiled.function.static_because
    for shape in ((3, 4), (2, 9), (5, 2)):
        x = torch.randn(*shape, requires_grad=True)
        (e,), (g,) = (torch.autograd.grad(h(x).sum() if h is f else h(x)[0].sum(), x) for h in (f, compiled))
        torch.testing.assert_close(g, e)
    assert len(compiled.runner.functions) == 1


def deviation(x):
    return (x.std(0) * x.var(1, correction=0).mean()).sum() + F.layer_norm(x, x.shape[1:]).var()


def scaled(x):
    return (x @ x.t() * x.shape[1] ** -0.5).softmax(-1).mean(0).sum() / x.shape[0] ** 0.5


@pytest.mark.parametrize("f", [deviation, scaled])
@pytest.mark.parametrize("partition", ["min_cut", "save_all"])
def test_floating_point_numbers_made_of_sizes(f, partition):
    """2/(n - 1), 1/n and 1/sqrt(n) are computed from the sizes of the run, in forward as in backward."""
    x = torch.randn(4, 6, requires_grad=True)
    graph = trace.record(f, (x,), dynamic={0: {0: "a", 1: "b"}})
    compiled = cutaway.aot(graph, (x,), partition=partition)
    assert set(compiled.function.symbols) == {"a", "b"}, compiled.function.static_because
    assert "sym." in str(compiled.function.joint)
    for shape in ((4, 6), (3, 7), (9, 2), (31, 12), (2, 2)):
        x = torch.randn(*shape, requires_grad=True)
        expected, got = f(x), compiled(x)[0]
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(torch.autograd.grad(got, x)[0], torch.autograd.grad(expected, x)[0])
    assert len(compiled.runner.functions) == 1


def test_a_division_by_a_size_is_guarded():
    """At the size that makes it zero the graph is another one: there Python raises, or torch gives infinities."""

    def f(x):
        return x * (1.0 / (x.shape[0] - 6))

    graph = trace.record(f, (torch.ones(9, 3),), dynamic={0: {0: "s"}})
    assert "s + -6 != 0" in graph.size_guards.texts, graph.size_guards.texts


def test_what_depends_on_a_size_in_other_ways_stays_static():
    def f(x):
        return (x * math.log(x.shape[0])).sum()

    x = torch.randn(4, 3, requires_grad=True)
    graph = trace.record(f, (x,), dynamic={0: {0: "s"}})
    assert "floating-point" in graph.static_sizes["s"]


def test_guards_of_the_captured_graph_hold_here_too():
    table = torch.randn(16, 4)
    x = torch.randn(6, 4, requires_grad=True)
    graph, compiled = symbolic(lambda x: (x + table[: x.shape[0]]).sin(), (x,), {0: {0: "s"}})
    assert torch.allclose(compiled(torch.ones(9, 4, requires_grad=True))[0], (1 + table[:9]).sin())
    with pytest.raises((cutaway.Error, RuntimeError)):
        compiled(torch.ones(17, 4, requires_grad=True))


@pytest.mark.parametrize("backend", ["aot_eager", "own_aot_eager"])
def test_compile_once_for_all_sizes_and_train(backend, tmp_path):
    cutaway.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    compiled = cutaway.compile(model, backend=backend, dynamic=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with cutaway.events(tmp_path / "e.jsonl"):
        for batch in (4, 6, 3, 11, 32):
            x = torch.randn(batch, 8)
            expected = gradients(model, model, x)
            got = gradients(compiled, model, x)
            for e, g in zip(expected, got, strict=True):
                torch.testing.assert_close(g, e, rtol=1e-5, atol=1e-6)
            optimizer.step()
    splits = [e for e in cutaway.read_events(tmp_path / "e.jsonl") if e["topic"] == "aot" and e["name"] == "split"]
    assert len({e["phase"] for e in splits}) == 1, splits  # differentiated once


def test_dropout_and_losses_at_many_sizes():
    def f(x, target):
        return F.cross_entropy(F.dropout(x, 0.5), target)

    x, target = torch.randn(6, 5, requires_grad=True), torch.randint(0, 5, (6,))
    _, compiled = symbolic(f, (x, target), {0: {0: "n"}, 1: {0: "n"}})
    assert compiled.function.symbols == {"n": 6}, compiled.function.static_because
    for n in (6, 4, 20):
        x, target = torch.randn(n, 5, requires_grad=True), torch.randint(0, 5, (n,))
        results = []
        for g in (f, lambda *a: compiled(*a)[0]):
            torch.manual_seed(n)
            results.append(torch.autograd.grad(g(x, target), x)[0])
        assert torch.equal(*results)


def test_bert_trains_at_every_size_with_one_recording():
    pytest.importorskip("transformers")
    from tests.support.aot_models import MODELS

    torch.manual_seed(0)
    model, kwargs = MODELS["bert"]()
    model.train()  # dropout draws eager's numbers
    graph = trace.record(model, (), kwargs, dynamic={k: {0: "batch", 1: "length"} for k in kwargs})
    compiled = cutaway.aot(graph, list(kwargs.values()))
    assert set(compiled.function.symbols) == {"batch", "length"}, compiled.function.static_because
    for shape in ((2, 12), (5, 7), (3, 33)):
        given = {k: torch.randint(0, 50, shape, dtype=v.dtype) for k, v in kwargs.items()}
        results = []
        for f in (lambda given=given: model(**given)[0], lambda given=given: compiled(*given.values())[0]):
            model.zero_grad()
            torch.manual_seed(1)
            loss = f()
            loss.backward()
            results.append([loss.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
        for e, g in zip(*results, strict=True):
            torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-6)
    assert len(compiled.runner.functions) == 1


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        y = self.norm(torch.relu(self.linear(x)))
        self.seen += x.shape[0]
        return (y.reshape(x.shape[0] * 2, 4).var(0) * x.shape[0]).sum() + y.mean(), y.view(-1, 4)


def test_graphs_of_dynamo_with_symbols_are_recorded_once(monkeypatch):
    """Sizes that Dynamo passes as inputs, and the eps of the norm, which it passes as a tensor and reads by item."""
    from cutaway import _aot

    made = []

    class Watched(_aot._BySize):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(_aot, "_BySize", Watched)
    torch.manual_seed(0)
    torch._dynamo.reset()
    eager, other = Counting(), Counting()
    other.load_state_dict(eager.state_dict())
    compiled = torch.compile(other, backend=_aot.aot_eager, dynamic=True)
    for batch in (4, 6, 3, 11, 2):
        x = torch.randn(batch, 8)
        inputs = [x.clone().requires_grad_() for _ in range(2)]
        results = [f(i) for f, i in zip((eager, compiled), inputs, strict=True)]
        for r in results:
            (r[0] + r[1].sum()).backward()
        for e, g in zip(*results, strict=True):
            torch.testing.assert_close(g, e)
        torch.testing.assert_close(inputs[1].grad, inputs[0].grad)
        for p, q in zip(eager.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(q.grad, p.grad)
        assert torch.equal(eager.seen, other.seen)
    (module,) = made
    assert module.graphs.by_size == 0 and len(module.graphs.symbolic) == 1, module.graphs.static_because
    assert len(module.graphs.symbolic[0].functions) == 1
