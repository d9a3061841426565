"""The Python side of compile(): what users of torch.compile expect of the thing they get back."""

import copy
import functools
import inspect
import pickle
import sys

import cutaway
import pytest
import torch
from cutaway._native import capture

pytestmark = pytest.mark.usefixtures("fresh_capture")
X = torch.ones(2, 3)


class Counter:
    def __init__(self):
        self.graphs = []

    def __call__(self, module, examples):
        self.graphs.append((module, examples))
        return module.forward


# --- functions


def documented(x, y: int = 2) -> torch.Tensor:
    """Adds."""
    return x + y


documented.label = "mine"


def test_looks_like_the_function():
    f = cutaway.compile(documented)
    assert (f.__name__, f.__qualname__, f.__doc__, f.__module__) == ("documented", "documented", "Adds.", __name__)
    assert f.__wrapped__ is documented and f.label == "mine"
    assert inspect.signature(f) == inspect.signature(documented)
    assert f.__code__ is documented.__code__ and callable(f)
    assert copy.deepcopy(f) is f
    assert "documented" in repr(f)


def test_decorator_with_and_without_arguments():
    @cutaway.compile
    def one(x):
        return x + 1

    @cutaway.compile(backend="eager", fullgraph=True)
    def two(x):
        return x + 2

    assert torch.equal(one(X), X + 1) and torch.equal(two(X), X + 2)


def test_methods():
    class C:
        def __init__(self, n):
            self.n = n

        @cutaway.compile
        def add(self, x):
            return x + self.n

        @staticmethod
        @cutaway.compile
        def plus_one(x):
            return x + 1

        @classmethod
        @cutaway.compile
        def name_length(cls, x):
            return x + len(cls.__name__)

    c = C(3)
    assert torch.equal(c.add(X), X + 3) and torch.equal(C.add(c, X), X + 3)
    assert torch.equal(C.plus_one(X), X + 1) and torch.equal(c.name_length(X), X + 1)
    assert torch.equal(cutaway.compile(c.add)(X), X + 3)
    assert torch.equal(functools.partial(c.add)(X), X + 3)


def test_same_function_twice_shares_what_is_compiled():
    def f(x):
        return x + 1

    for _ in range(3):
        cutaway.compile(f, backend="eager")(X)
    assert capture.entry_count(f) == 1


def test_disable_argument_and_decorator():
    assert cutaway.compile(documented, disable=True) is documented
    quiet = cutaway.disable(documented)
    counter = Counter()
    assert torch.equal(cutaway.compile(lambda x: quiet(x), backend=counter)(X), X + 2)
    assert not counter.graphs


def test_what_cannot_be_compiled():
    with pytest.raises(cutaway.Error, match="int cannot be compiled"):
        cutaway.compile(3)
    with pytest.raises(cutaway.exc.InvalidBackend, match="no backend is called 'nosuch'"):
        cutaway.compile(documented, backend="nosuch")
    with pytest.raises(cutaway.Error, match="there is no option 'nosuch'"), cutaway.options(nosuch=1):
        pass


@pytest.mark.parametrize("forward", [None, 5])
def test_forward_that_cannot_be_called(forward):
    cls = type("M", (torch.nn.Module,), {"forward": forward})
    for make in (lambda: cutaway.compile(cls()), lambda: cutaway.compile(cls)()):
        with pytest.raises(TypeError, match=f"'{type(forward).__name__}' object is not callable"):
            make()(torch.ones(2))


def test_classes():
    @cutaway.compile(backend="eager")
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.l(x) + 1

    net = Net()
    assert isinstance(net, Net) and torch.equal(net(X), net.l(X) + 1)


# --- modules


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)
        self.drop = torch.nn.Dropout(0.5)
        self.scale = 2

    def forward(self, x):
        return self.drop(self.linear(x)) * self.scale

    def extra(self):
        return "extra"


def test_module_wrapper():
    net = Net()
    compiled = cutaway.compile(net, backend="eager")
    assert isinstance(compiled, torch.nn.Module)
    assert compiled._orig_mod is net
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert [n for n, _ in compiled.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert compiled.extra() == "extra" and compiled.scale == 2
    assert compiled.eval() is compiled and not net.training
    assert torch.equal(compiled(X), net(X))
    compiled.scale = 3
    assert net.scale == 3 and torch.equal(compiled(X), net(X))
    compiled.train()
    assert net.training
    torch.manual_seed(0)
    a = compiled(X)
    torch.manual_seed(0)
    assert torch.equal(a, net(X))
    compiled.load_state_dict({k: torch.zeros_like(v) for k, v in net.state_dict().items()})
    assert not net.linear.weight.any()
    assert compiled.to(torch.float64) is compiled and net.linear.weight.dtype == torch.float64


def test_module_trains():
    net = Net()
    compiled = cutaway.compile(net, backend="eager")
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
    before = net.linear.weight.detach().clone()
    compiled(X).sum().backward()
    optimizer.step()
    assert not torch.equal(before, net.linear.weight)
    compiled.zero_grad()
    assert net.linear.weight.grad is None


def test_module_hooks_run():
    net = Net().eval()
    seen = []
    net.register_forward_hook(lambda m, a, out: seen.append(1) or out + 1)
    compiled = cutaway.compile(net, backend="eager")
    expected = net(X)
    seen.clear()
    assert torch.equal(compiled(X), expected) and seen == [1]


def test_module_copies():
    compiled = cutaway.compile(Net().eval(), backend="eager")
    other = copy.deepcopy(compiled)
    assert other._orig_mod is not compiled._orig_mod and torch.equal(other(X), compiled(X))
    again = pickle.loads(pickle.dumps(compiled))
    assert torch.equal(again(X), compiled(X))


def test_containers():
    compiled = cutaway.compile(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), backend="eager")
    assert len(compiled) == 2 and isinstance(compiled[1], torch.nn.ReLU) and len(list(compiled)) == 2


# --- backends


def test_a_backend_gets_a_graph_module_and_tensors():
    counter = Counter()
    net = Net().eval()
    cutaway.compile(net, backend=counter)(X)
    ((module, examples),) = counter.graphs
    assert isinstance(module, torch.fx.GraphModule)
    assert all(isinstance(e, torch.Tensor) for e in examples)
    assert len([n for n in module.graph.nodes if n.op == "placeholder"]) == len(examples)
    targets = [n.target for n in module.graph.nodes if n.op.startswith("call")]
    assert torch.nn.functional.linear in targets or torch._C._nn.linear in targets


def test_a_backend_that_raises():
    def backend(module, examples):
        raise ZeroDivisionError("mine")

    with pytest.raises(
        cutaway.exc.BackendCompilerFailed, match="backend 'backend' raised ZeroDivisionError: mine"
    ) as caught:
        cutaway.compile(documented, backend=backend)(X)
    assert isinstance(caught.value.inner_exception, ZeroDivisionError)
    assert torch.equal(cutaway.compile(documented, backend="eager")(X), X + 2)


def test_a_backend_that_gives_nothing():
    with pytest.raises(cutaway.exc.BackendCompilerFailed, match="NoneType, which cannot be called"):
        cutaway.compile(documented, backend=lambda m, e: None)(X)


def test_backends_of_torch_by_name():
    f = cutaway.compile(lambda x: torch.sin(x) + 1, backend="aot_eager")
    x = X.clone().requires_grad_()
    out = f(x)
    out.sum().backward()
    assert torch.equal(out, torch.sin(x) + 1) and torch.equal(x.grad, torch.cos(x))


def test_debug_as_a_backend(tmp_path):
    def bad(module, examples):
        def run(*args):
            return [o + 1 if isinstance(o, torch.Tensor) else o for o in module(*args)]

        return run

    watched = cutaway.debug(bad, after="capture", level=4, base_dir=tmp_path, minify=False)
    with pytest.raises(cutaway.AccuracyError):
        cutaway.compile(lambda x: torch.sin(x), backend=watched)(X)


# --- information


def test_explain_is_a_report():
    def f(x):
        y = torch.sin(x)
        cutaway.graph_break()
        return y + 1

    e = cutaway.explain(f)(X)
    assert (e.graph_count, e.graph_break_count, e.op_count) == (2, 1, 2)
    assert "cutaway.graph_break()" in str(e) and __file__ in str(e)
    assert e.break_reasons[0].user_stack[-1][3] == "cutaway.graph_break()"
    assert '"graph_break_count": 1' in e.to_json()
    assert "guards of graph" not in e.text(verbose=False)
    assert torch.equal(e.result, torch.sin(X) + 1)
    assert capture.entry_count(f) <= 1


def test_counters():
    cutaway.compile(documented, backend="eager")(X)
    assert cutaway.counters["frames"]["ok"] == 1
    cutaway.reset()
    assert not cutaway.counters["frames"]


def test_counters_are_a_view_of_the_events(tmp_path):
    """Whoever has the file of events has the counters."""

    def broken(x):
        cutaway.graph_break()
        return x + 1

    path = str(tmp_path / "events.jsonl")
    cutaway.reset()
    with cutaway.events(path):
        for f in (documented, broken):
            cutaway.compile(f, backend="eager")(X)
        cutaway.compile(documented, backend="eager", dynamic=False)(torch.randn(7))
    counted = {group: cutaway.counters[group] for group in cutaway.counters}
    assert counted["frames"]["total"] > 2 and counted["graph_break"] and counted["stats"]["unique_graphs"] > 1
    assert cutaway._native.capture.counters_of(path) == counted


def test_error_on_graph_break():
    def f(x):
        cutaway.graph_break()
        return x + 1

    with cutaway.error_on_graph_break(), pytest.raises(cutaway.exc.Unsupported) as caught:
        cutaway.compile(f, backend="eager")(X)
    assert caught.value.reason_id == "asked-for" and caught.value.user_stack
    cutaway.reset()
    assert torch.equal(cutaway.compile(f, backend="eager")(X), X + 1)


def test_suppress():
    counter = Counter()
    with cutaway.options(suppress=True):
        cutaway.compile(documented, backend=counter)(X)
    assert not counter.graphs


def test_print_may_be_reordered(capsys):
    def f(x):
        print("one")
        y = x + 1
        print("two")
        return y

    counter = Counter()
    with cutaway.options(reorderable=[print]):
        assert torch.equal(cutaway.compile(f, backend=counter)(X), X + 1)
    assert len(counter.graphs) == 1 and capsys.readouterr().out == "one\ntwo\n"


def test_allow_in_graph():
    @cutaway.allow_in_graph
    def mine(x):
        return torch.sin(x) + torch.cos(x)

    counter = Counter()
    assert torch.equal(cutaway.compile(lambda x: mine(x) + 1, backend=counter)(X), mine(X) + 1)
    ((module, _),) = counter.graphs
    assert len([n for n in module.graph.nodes if n.op.startswith("call")]) == 2


def test_disallow_in_graph():
    @cutaway.disallow_in_graph
    def mine(x):
        return torch.sin(x)

    counter = Counter()
    assert torch.equal(cutaway.compile(lambda x: mine(x + 1) + 1, backend=counter)(X), torch.sin(X + 1) + 1)
    assert len(counter.graphs) >= 2


def test_nested_compile():
    inner = cutaway.compile(lambda x: x + 1, backend="eager")
    counter = Counter()
    assert torch.equal(cutaway.compile(lambda x: inner(x) * 2, backend=counter)(X), (X + 1) * 2)
    assert len(counter.graphs) == 1


def test_hook_is_gone_outside():
    """Python functions outside of compiled regions are not slowed down."""
    seen = []

    def f(x):
        return x + 1

    cutaway.compile(f, backend="eager")(X)
    number = capture.add_listener(seen.append)
    try:
        f(X)
    finally:
        capture.remove_listener(number)
    assert not seen


def test_nothing_leaks_over_recompiles():
    import gc

    def f(x, n):
        return x + n

    def once():
        with cutaway.options(cache_size_limit=1000):
            compiled = cutaway.compile(f, backend="eager", dynamic=False)
            for n in range(100):
                compiled(X, n)
        cutaway.reset()
        gc.collect()
        return len(gc.get_objects())

    once()
    first = once()
    for _ in range(4):
        last = once()
    assert last - first < 200
    assert sys.getrefcount(f) < 10
