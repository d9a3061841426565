"""What a captured function leaves behind: lists, dictionaries, attributes, globals, cells, modes, buffers, logs, generators. Compiled equals eager."""

import collections
import contextlib
import functools
import logging
import warnings

import cutaway
import pytest
import torch

LOG = logging.getLogger("captured")
TABLE = {"n": 0}
COUNT = 0


def both(function, make, calls=3, fullgraph=True):
    """Runs it eagerly and compiled on inputs of its own; gives the two lists of (results, inputs after)."""
    out = []
    for compiled in (False, True):
        cutaway.reset()
        f = cutaway.compile(function, backend="eager", fullgraph=fullgraph) if compiled else function
        seen = []
        for k in range(calls):
            torch.manual_seed(k)
            args = make(k)
            seen.append((f(*args), args))
        out.append(seen)
    return out


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b) and a.requires_grad == b.requires_grad
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for k in a:
            same(a[k], b[k])
    elif hasattr(a, "__dict__") and type(a).__module__ == __name__:
        same(vars(a), vars(b))
    elif not callable(a):
        assert a == b


class Box:
    def __init__(self):
        self.w = torch.ones(2)
        self.seen = []


def change_list(x, items):
    items.append(x + 1)
    items[0] = len(items)
    return items, items is not None


def change_dict(x, d):
    d["new"] = x * 2
    d["a"] += 1
    d.setdefault("s", []).append(d["a"])
    del d["gone"]
    return d["new"].sum()


def change_object(x, box):
    box.w = box.w + x
    box.seen.append(box)
    box.extra = box.w is not None
    return box


def swap(x, box):
    box.w, box.v = box.v, box.w
    return box.w + x


def in_place(x, y):
    x.add_(1)
    y[0] = x.sum()
    z = y.view(-1)
    z.mul_(2)
    return x, z


def make_box(k):
    b = Box()
    b.v = torch.zeros(2)
    return [torch.randn(2), b]


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (change_list, lambda k: [torch.randn(2), [k, "b"]]),
        (change_dict, lambda k: [torch.randn(2), {"a": k, "gone": 1}]),
        (swap, make_box),
        (in_place, lambda k: [torch.randn(3), torch.randn(3)]),
    ],
)
def test_arguments_are_left_as_eager_leaves_them(function, make):
    eager, compiled = both(function, make)
    same(eager, compiled)


def test_identity_is_kept():
    f = cutaway.compile(change_object, backend="eager", fullgraph=True)
    box = Box()
    seen = box.seen
    for n in range(3):
        assert f(torch.ones(2), box) is box
        assert box.seen is seen and len(seen) == n + 1 and seen[-1] is box and box.extra is True
        assert torch.equal(box.w, torch.full((2,), n + 2.0))


def test_a_list_under_two_names_is_another_case():
    def f(x, a, b):
        a.append(x)
        return len(b)

    g = cutaway.compile(f, backend="eager")
    x, one = torch.ones(1), [1]
    assert g(x, [1], [1]) == 1
    assert g(x, one, one) == 2
    assert g(x, [1], [1]) == 1


def test_globals_and_cells():
    calls = 0

    def f(x):
        global COUNT
        nonlocal calls
        COUNT += 1
        calls = calls + 2
        TABLE["n"] = calls
        return x + COUNT

    g = cutaway.compile(f, backend="eager", fullgraph=True)
    start = COUNT
    for k in range(1, 4):
        assert torch.equal(g(torch.zeros(1)), torch.full((1,), float(start + k)))
        assert COUNT == start + k and calls == 2 * k and TABLE["n"] == 2 * k


def test_an_equal_value_is_still_stored():
    def f(x, n):
        TABLE["n"] = n
        return x

    g = cutaway.compile(f, backend="eager", fullgraph=True)
    TABLE["n"] = 5
    g(torch.ones(1), 5)
    TABLE["n"] = 0
    g(torch.ones(1), 5)
    assert TABLE["n"] == 5


def test_buffers_and_hooks():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(1))
            self.norm = torch.nn.BatchNorm1d(3)
            self.calls = 0

        def forward(self, x):
            self.total = self.total + x.sum()
            self.calls += 1
            return self.norm(x)

    def run(compiled):
        torch.manual_seed(0)
        m = Counter()
        seen = []
        m.norm.register_forward_hook(lambda mod, args, out: seen.append(len(args)) or out * 2)
        f = cutaway.compile(m, backend="eager", fullgraph=True) if compiled else m
        outs = [f(torch.randn(4, 3)) for _ in range(3)]
        return outs, m.total, m.calls, m.norm.running_mean, m.norm.num_batches_tracked, seen

    same(run(False), run(True))


def test_logs_and_warnings_say_the_users_line(caplog):
    def inner(x):
        LOG.warning("seen %s", x.shape[0])
        warnings.warn("careful", stacklevel=1)
        return x + 1

    f = cutaway.compile(lambda x: inner(x) * 2, backend="eager", fullgraph=True)
    line = inner.__code__.co_firstlineno + 1
    for _ in range(2):
        caplog.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert torch.equal(f(torch.ones(2)), torch.full((2,), 4.0))
        record = caplog.records[0]
        assert (record.getMessage(), record.funcName, record.lineno) == ("seen 2", "inner", line)
        assert (str(caught[0].message), caught[0].lineno, caught[0].filename) == ("careful", line + 1, __file__)


def test_modes_end_as_eager_ends_them():
    def f(x):
        with torch.no_grad():
            y = x * 2
        torch.set_grad_enabled(False)
        return y, x * 3, torch.is_grad_enabled()

    x = torch.ones(2, requires_grad=True)
    g = cutaway.compile(f, backend="eager")
    for _ in range(2):
        try:
            y, z, on = g(x)
            assert not y.requires_grad and not z.requires_grad and on is False and not torch.is_grad_enabled()
        finally:
            torch.set_grad_enabled(True)


def test_a_generator_left_open_still_ends():
    ended = []

    def produce(x):
        try:
            yield x
            yield x + 1
        finally:
            ended.append("end")

    def f(x):
        return next(produce(x)) * 2

    g = cutaway.compile(f, backend="eager")
    assert torch.equal(g(torch.ones(1)), torch.full((1,), 2.0)) and ended == ["end"]


def test_remembered_results_keep_their_identity():
    @functools.lru_cache
    def table(n):
        return [n]

    g = cutaway.compile(lambda x: (x + 1, table(3)), backend="eager")
    assert g(torch.ones(1))[1] is g(torch.ones(1))[1]


def test_breaks_have_stable_ids():
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    with pytest.raises(cutaway.exc.Unsupported, match="decides which branch runs"):
        cutaway.compile(f, backend="eager", fullgraph=True)(torch.ones(2))


def test_an_exception_is_eagers_own():
    def f(x, n):
        try:
            return x.view(n)
        except RuntimeError as e:
            raise ValueError(n) from e

    g = cutaway.compile(f, backend="eager")
    assert g(torch.ones(4), 4).shape == (4,)
    with pytest.raises(ValueError, match="3") as info:
        g(torch.ones(4), 3)
    assert isinstance(info.value.__cause__, RuntimeError)


def test_containers_come_back_with_their_types():
    Pair = collections.namedtuple("Pair", "a b")

    def f(x):
        d = collections.OrderedDict(b=x, a=1)
        d.move_to_end("b")
        c = collections.defaultdict(list)
        c["k"].append(x)
        return Pair(x, d), c, {1, 2}, frozenset("ab"), slice(1, None), x.shape, torch.max(x, dim=0)

    x = torch.randn(2, 3)
    want, got = f(x), cutaway.compile(f, backend="eager", fullgraph=True)(x)
    assert [type(i) for i in got] == [type(i) for i in want]
    assert type(got[0]) is Pair and got[0].a is x and list(got[0].b) == ["a", "b"]
    assert got[1]["fresh"] == [] and got[2:6] == want[2:6] and torch.equal(got[6].values, want[6].values)


def test_user_context_managers_and_suppress():
    seen = []

    @contextlib.contextmanager
    def region(name):
        seen.append(("in", name))
        try:
            yield name
        finally:
            seen.append(("out", name))

    def f(x):
        with region("a"), contextlib.suppress(KeyError):
            {}["none"]
        return x + len(seen)

    want = f(torch.zeros(1))
    first, seen[:] = list(seen), []
    got = cutaway.compile(f, backend="eager")(torch.zeros(1))
    assert torch.equal(want, got) and seen == first
