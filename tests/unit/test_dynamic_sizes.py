"""Sizes that change: how often a function is compiled, with which graph, and that every size gives what eager gives."""

import cutaway
import pytest
import torch

pytestmark = pytest.mark.usefixtures("fresh_capture")


class Counter:
    """A backend that counts, checks its examples and runs the module."""

    def __init__(self):
        self.modules = []

    def __call__(self, module, examples):
        assert len(examples) == len([n for n in module.graph.nodes if n.op == "placeholder"])
        self.modules.append(module)
        return module.forward

    @property
    def count(self):
        return len(self.modules)


def compiled_at(function, inputs, **options):
    counter = Counter()
    compiled = cutaway.compile(function, backend=counter, **options)
    for args in inputs:
        args = args if isinstance(args, tuple) else (args,)
        got, expected = compiled(*args), function(*args)
        torch.testing.assert_close(got, expected, rtol=0, atol=0)
    return counter


def batches(*sizes):
    return [torch.arange(n * 3.0).reshape(n, 3) for n in sizes]


def changing(x):
    return torch.sin(x) * x.shape[0]


def reshapes(x):
    return x.reshape(x.shape[0] * 3).view(-1, x.shape[0]), x.new_zeros(x.shape[0] + 1), x[: x.shape[0] // 2]


def branches(x):
    return x * 2 if x.shape[0] < 6 else x * 3


def returns_sizes(x):
    return x + 1, x.shape[0], x.shape, x.numel() // 3, [x.size(0) + 1, x.shape[1]]


@pytest.mark.parametrize("function", [changing, reshapes, returns_sizes])
def test_two_compilations(function):
    assert compiled_at(function, batches(2, 3, 4, 5, 6, 100)).count == 2


def test_conditions_become_guards():
    counter = compiled_at(branches, batches(2, 3, 4, 5, 6, 7, 50, 4, 9))
    assert counter.count == 3


def test_graph_reads_the_size():
    counter = compiled_at(changing, batches(2, 3, 4))
    assert [n.target for n in counter.modules[1].graph.nodes if n.op == "call_method"].count("size") == 1
    assert torch.equal(counter.modules[1](torch.ones(7, 3))[0], changing(torch.ones(7, 3)))


def test_two_sizes_at_once():
    inputs = [(torch.ones(n, 2 * n), torch.ones(n)) for n in (2, 3, 5, 8)]
    assert compiled_at(lambda x, y: (x.t() + y).sum(0) * y.shape[0], inputs).count == 2


def test_integers_become_dynamic():
    inputs = [(torch.ones(4), n) for n in (2, 3, 5, 11, 12)]
    assert compiled_at(lambda x, n: x * n + torch.zeros(n).shape[0], inputs).count == 2
    assert compiled_at(lambda x, n: (x.repeat(n), n + 1), inputs).count == 2


def test_integers_that_decide():
    inputs = [(torch.ones(4), n) for n in (2, 3, 4, 20, 21, 3)]
    assert compiled_at(lambda x, n: x * n if n < 10 else x - n, inputs).count == 3


def test_zero_and_one_are_themselves():
    counter = compiled_at(
        lambda x, n: x + n,
        [(torch.ones(s, 3), n) for s, n in ((2, 2), (3, 3), (1, 3), (0, 4), (4, 1), (4, 0), (5, -3))],
    )
    assert counter.count <= 7


def test_numbers_of_modules_stay():
    class Layer(torch.nn.Module):
        def __init__(self, index):
            super().__init__()
            self.index = index

        def forward(self, x):
            return x * self.index

    counter = Counter()
    for i in range(2, 5):
        layer = Layer(i)
        assert torch.equal(cutaway.compile(layer, backend=counter)(torch.ones(2)), layer(torch.ones(2)))
    assert counter.count == 3
    assert all(len(m.graph.find_nodes(op="placeholder")) == 1 for m in counter.modules)


def test_changed_rank():
    assert compiled_at(changing, [torch.ones(2), torch.ones(2, 3), torch.ones(2, 3, 4)]).count == 3


def test_dynamic_true_and_false():
    assert compiled_at(changing, batches(2, 3, 4, 5), dynamic=True).count == 1
    assert compiled_at(changing, batches(2, 3, 4, 5), dynamic=False).count == 4
    inputs = [(torch.ones(4), n) for n in (2, 3, 5)]
    assert compiled_at(lambda x, n: x * n, inputs, dynamic=True).count == 1


def test_marks():
    marked = batches(5, 6, 9)
    for x in marked:
        cutaway.mark_dynamic(x, 0)
    assert compiled_at(changing, marked).count == 1
    maybe = batches(5, 6, 9)
    for x in maybe:
        cutaway.maybe_mark_dynamic(x, 0)
    assert compiled_at(lambda x: x * x.shape[0], maybe).count == 1
    fixed = batches(5, 6, 9)
    for x in fixed:
        cutaway.mark_static(x, 0)
    assert compiled_at(lambda x: x - x.shape[0], fixed).count == 3
    theirs = batches(5, 6, 9)
    for x in theirs:
        torch._dynamo.mark_dynamic(x, 0)
    assert compiled_at(lambda x: x / x.shape[0], theirs).count == 1


def test_automatic_dynamic_off():
    with cutaway.options(automatic_dynamic=False):
        assert compiled_at(changing, batches(2, 3, 4)).count == 3


def test_graph_breaks_are_dynamic_too():
    def f(x):
        y = x * x.shape[0]
        if y.sum() > 0:
            return y + x.shape[0]
        return y - 1

    counter = compiled_at(f, batches(2, 3, 4, 5, 6))
    assert counter.count == 4


def test_effects_with_sizes():
    seen = {}

    def f(x):
        seen["size"] = x.shape[0]
        return x + 1

    counter = Counter()
    compiled = cutaway.compile(f, backend=counter)
    for n in (2, 3, 4, 5):
        compiled(torch.ones(n))
        assert seen["size"] == n
    assert counter.count == 2


def test_same_number_as_dynamo():
    from torch._dynamo.testing import CompileCounter

    def steps(x, y, n):
        return torch.cat([x, y]).view(-1, n).sum(0)

    inputs = [
        (torch.ones(a * 4), torch.ones(b * 4), n) for a, b, n in ((2, 3, 4), (3, 3, 4), (4, 5, 4), (5, 6, 4), (7, 9, 4))
    ]
    for function, calls in ((changing, batches(2, 3, 4, 5)), (branches, batches(2, 3, 4, 9)), (steps, inputs)):
        torch._dynamo.reset()
        theirs = CompileCounter()
        peer = torch.compile(function, backend=theirs)
        for args in calls:
            peer(*(args if isinstance(args, tuple) else (args,)))
        assert compiled_at(function, calls).count <= theirs.frame_count


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_our_backends(backend):
    compiled = cutaway.compile(reshapes, backend=backend)
    for x in batches(2, 3, 4, 5, 64):
        torch.testing.assert_close(compiled(x), reshapes(x), rtol=0, atol=0)


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))


def test_aot_autograd_of_torch():
    """Symbolic shapes inside torch's own ahead-of-time autograd: forward and gradients at every size from two compilations."""
    from torch._dynamo.backends.common import aot_autograd

    shapes = []

    def keep(module, examples):
        shapes.append([tuple(e.shape) if isinstance(e, torch.Tensor) else e for e in examples])
        return module.forward

    model = net()
    compiled = cutaway.compile(model, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep))
    for x in batches(2, 3, 4, 5, 17):
        model.zero_grad()
        compiled(x).sum().backward()
        got = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        expected = model(x)
        expected.sum().backward()
        torch.testing.assert_close(compiled(x), expected)
        torch.testing.assert_close(got, [p.grad for p in model.parameters()])
    assert len(shapes) == 4  # forward and backward, static and symbolic
    assert any(isinstance(d, torch.SymInt) for shape in shapes[2] if isinstance(shape, tuple) for d in shape)


def test_what_a_backend_takes_for_granted_is_guarded():
    """A backend that asks about symbolic sizes gets an answer that holds later."""

    def backend(module, examples):
        from torch._guards import TracingContext

        mode = TracingContext.get().fake_mode if TracingContext.try_get() else None
        if mode is None:
            return module.forward
        fake = mode.from_tensor(examples[0])
        small = bool(fake.shape[0] < 6)
        even = bool(fake.shape[0] % 2 == 0)
        calls.append((small, even))

        def run(x):
            assert (x.shape[0] < 6, x.shape[0] % 2 == 0) == (small, even)
            return module(x)

        return run

    calls = []
    compiled = cutaway.compile(changing, backend=backend)
    for x in batches(2, 3, 5, 4, 8, 7, 12, 3):
        torch.testing.assert_close(compiled(x), changing(x))
    assert len(calls) == 4


def test_inductor():
    model = net()
    compiled = cutaway.compile(model, backend="inductor")
    for x in batches(2, 3, 5, 9):
        torch.testing.assert_close(compiled(x), model(x))
    assert cutaway.counters["stats"]["unique_graphs"] == 2
