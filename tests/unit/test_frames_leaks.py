"""Nothing is left behind: objects and memory over many calls and recompiles; threads; entries of things that died."""

import gc
import os
import threading
import weakref

import cutaway
import pytest
import torch
from cutaway._native import capture

pytestmark = pytest.mark.usefixtures("fresh_capture")
X = torch.ones(2, 3)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(once, rounds):
    """Objects and bytes that later rounds add, when the first have filled the caches."""
    once()
    once()
    gc.collect()
    objects, memory = len(gc.get_objects()), resident()
    for _ in range(rounds):
        once()
    gc.collect()
    return len(gc.get_objects()) - objects, resident() - memory


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x, scale):
        self.last = x
        return {"out": self.layer(x) * scale, "parts": [x, x + 1]}


def breaks(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y


def raises(x):
    torch.relu(x)
    raise ValueError("no")


def test_calls_leave_nothing():
    net = Net()
    compiled, broken = cutaway.compile(net, backend="eager"), cutaway.compile(breaks, backend="eager")
    failing = cutaway.compile(raises, backend="eager")

    def once():
        for _ in range(2500):
            compiled(X, 2.0)
            broken(X)
        for _ in range(100):
            with pytest.raises(ValueError):
                failing(X)

    objects, memory = growth(once, 4)
    assert objects < 50 and memory < 8 << 20


def test_recompiles_leave_nothing():
    """500 compilations, dynamic ones among them, and their end. (torch.fx keeps the text of every module it makes, so backends of C++.)"""
    options = {"cache_size_limit": 1000}

    def once():
        def f(x, n, key):
            return x * n + len(key)

        with cutaway.options(**options):
            static = cutaway.compile(f, backend="eager", dynamic=False)
            for n in range(45):
                static(X, n, "a" * n)
            automatic = cutaway.compile(f, backend="eager", dynamic=None)
            for n in range(2, 7):
                automatic(torch.ones(n, 3), 1, "b")
        cutaway.reset()

    objects, memory = growth(once, 10)
    assert objects < 400 and memory < 64 << 20


def test_entries_go_with_the_function():
    def make():
        big = torch.ones(1000)

        def f(x):
            return x + big.sum()

        compiled = cutaway.compile(f, backend="eager")
        compiled(X)
        compiled(X)
        return weakref.ref(f), weakref.ref(big)

    for dead in make():
        gc.collect()
        assert dead() is None


def test_modules_are_not_kept():
    compiled = cutaway.compile(Net.forward, backend="eager")
    refs = []
    with cutaway.options(cache_size_limit=100):
        for _ in range(10):
            net = Net()
            for _ in range(3):
                compiled(net, X, 2.0)
            refs += [weakref.ref(net), weakref.ref(net.layer.weight)]
            del net
    gc.collect()
    assert not [r for r in refs if r() is not None]


def test_entries_of_dead_things_are_dropped():
    def f(x, function):
        return function(x)

    compiled = cutaway.compile(f, backend="eager")
    for i in range(50):
        compiled(X, eval(f"lambda x: x + {i}"))
    assert capture.entry_count(f) <= 2  # and no limit was reached


def test_constants_go_with_reset():
    def make():
        class Thing:
            pass

        def f(x):
            return x + 1, Thing

        cutaway.compile(f, backend="eager")(X)
        return weakref.ref(Thing)

    dead = make()
    cutaway.reset()
    gc.collect()
    assert dead() is None


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "python"])
def test_eight_threads(backend):
    """The same function at several sizes and modes, from eight threads at once."""
    net = Net()
    for p in net.parameters():
        p.requires_grad_(False)

    def f(x, scale):
        return net(x, scale)["out"].sum() if x.shape[0] % 2 else net(x, scale)["out"].mean() * 2

    compiled = cutaway.compile(f, backend=(lambda module, examples: module.forward) if backend == "python" else backend)
    problems, ready = [], threading.Barrier(8)

    def work(number):
        try:
            ready.wait()
            for i in range(60):
                x, scale = torch.full((1 + (number + i) % 4, 3), float(number)), float(i % 2)
                with torch.set_grad_enabled(number % 2 == 0):
                    got, expected = compiled(x, scale), f(x, scale)
                if not torch.equal(got, expected):
                    problems.append((number, i, got, expected))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
