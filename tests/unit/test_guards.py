"""Guards: what a compiled function depends on, exactly; a change is explained in words."""

import gc
import weakref

import cutaway
import pytest
import torch
from cutaway._native import capture

pytestmark = pytest.mark.usefixtures("fresh_capture")


class Watched:
    """A compiled function and why it was compiled again."""

    def __init__(self, function, **options):
        self.reasons = []
        self.count = 0
        self.compiled = cutaway.compile(function, backend="eager", **options)

    def __call__(self, *args, **kwargs):
        number = capture.add_listener(self._listen)
        try:
            return self.compiled(*args, **kwargs)
        finally:
            capture.remove_listener(number)

    def _listen(self, record):
        self.count += record["outcome"] == "compiled"
        if record["recompile_reason"]:
            self.reasons.append(record["recompile_reason"])


def add(x, y):
    return x + y


X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (torch.ones(4, 3), "`x.shape[0]` was 2, is 4"),
        (torch.ones(2, 3, dtype=torch.float64), "`x.dtype` was Float, is Double"),
        (torch.ones(2, 3, requires_grad=True), "`x.requires_grad` was False, is True"),
        (torch.ones(3), "`x.dim()` was 2, is 1"),
        (torch.ones(3, 2).t(), "`x.stride(0)` was 3, is 1"),
        (torch.nn.Parameter(torch.ones(2, 3), requires_grad=False), "`type(x)` was Tensor, is Parameter"),
    ],
    ids=["size", "dtype", "requires_grad", "rank", "stride", "type"],
)
def test_a_tensor_that_differs(other, words):
    f = Watched(lambda x: x + 1)
    f(X)
    f(X.clone())
    assert f.count == 1
    assert torch.equal(f(other), other + 1)
    assert f.count == 2
    assert words in f.reasons[0] and "test_guards.py:" in f.reasons[0]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (2, 3, "`y` was 2, is 3"),
        (2, 2.0, "`y` was 2, is 2.0"),
        (0.0, -0.0, "`y` was 0.0, is -0.0"),
        (True, 1, "`y` was True, is 1"),
    ],
)
def test_a_constant_that_differs(a, b, words):
    f = Watched(add)
    for _ in range(2):
        f(X, a)
    assert f.count == 1
    f(X, b)
    assert f.count == 2 and words in f.reasons[0]


def test_not_a_number_equals_itself():
    f = Watched(add)
    f(X, float("nan"))
    f(X, float("nan"))
    assert f.count == 1


def changed_grad_mode():
    return torch.no_grad()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (torch.no_grad, "grad mode was on, is off"),
        (torch.inference_mode, "inference mode|grad mode"),
        (lambda: torch.autocast("cpu", dtype=torch.bfloat16), "autocast on the CPU was off, is on"),
    ],
)
def test_global_state_is_named(change, words):
    f = Watched(lambda x: x @ x.t())
    f(X)
    with change():
        f(X)
    assert f.count == 2
    assert any(w in f.reasons[0] for w in words.split("|"))
    f(X)
    with change():
        f(X)
    assert f.count == 2  # both are kept


def test_default_dtype_is_named():
    f = Watched(lambda x: x + torch.ones(3))
    f(X)
    torch.set_default_dtype(torch.float64)
    try:
        assert f(X).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert "the default dtype was Float, is Double" in f.reasons[0]


def test_deterministic_mode_is_named():
    f = Watched(lambda x: x + 1)
    f(X)
    torch.use_deterministic_algorithms(True)
    try:
        f(X)
    finally:
        torch.use_deterministic_algorithms(False)
    assert "deterministic mode was off, is on" in f.reasons[0]


SCALE = 2


def scaled(x):
    return x * SCALE


def test_a_global_that_changes():
    global SCALE
    f = Watched(scaled)
    f(X)
    f(X)
    SCALE = 5
    try:
        assert torch.equal(f(X), X * 5)
    finally:
        SCALE = 2
    assert f.count == 2 and "`SCALE` was 2, is 5" in f.reasons[0]


def test_a_closure_that_changes():
    n = 1

    def f(x):
        return x + n

    watched = Watched(f)
    watched(X)
    n = 4
    assert torch.equal(watched(X), X + 4)
    assert "`n` was 1, is 4" in watched.reasons[0]


class Holder:
    def __init__(self):
        self.n = 1
        self.items = [1, 2]
        self.table = {"a": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: setattr(h, "n", 7), "h.n"),
        (lambda h: h.items.append(3), "h.items"),
        (lambda h: h.items.__setitem__(0, 9), "h.items[0]"),
        (lambda h: h.table.__setitem__("b", 2), "h.table"),
        (lambda h: h.table.__setitem__("a", 9), "h.table"),
    ],
    ids=["attribute", "length", "item", "key", "value"],
)
def test_objects_that_change(change, words):
    def f(x, h):
        return x + h.n + sum(h.items) + sum(h.table.values())

    watched, holder = Watched(f), Holder()
    for _ in range(3):
        watched(X, holder)
    assert watched.count == 1
    change(holder)
    assert torch.equal(watched(X, holder), f(X, holder))
    assert watched.count == 2 and words in watched.reasons[0]


def test_modules_that_change():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.0), torch.nn.Linear(4, 2))
    watched = Watched(lambda x: model(x))
    for _ in range(3):
        watched(X)
    assert watched.count == 1
    model.eval()
    watched(X)
    assert watched.count == 2 and "training" in watched.reasons[0]
    model.train()
    watched(X)
    assert watched.count == 2
    with torch.no_grad():
        model[0].weight.mul_(2)
    assert torch.equal(watched(X), model(X)) and watched.count == 2
    model[0].weight = torch.nn.Parameter(torch.ones(4, 3))
    assert torch.equal(watched(X), model(X)) and watched.count == 2  # another tensor of the same kind
    model[2] = torch.nn.Linear(4, 5)
    assert watched(X).shape == (2, 5)


def test_aliases_are_told_apart():
    def f(a, b):
        a.mul_(2)
        return b + 1

    for same_first in (True, False):
        cutaway.reset()
        compiled = cutaway.compile(f, backend="eager")
        for same in (same_first, not same_first, same_first):
            a = torch.ones(2)
            b = a if same else torch.ones(2)
            assert torch.equal(compiled(a, b), torch.full((2,), 3.0 if same else 2.0))


def test_most_recent_first_and_all_kept():
    watched = Watched(add, dynamic=False)
    for n in (1, 2, 3, 1, 2, 3):
        watched(X, n)
    assert watched.count == 3 and capture.entry_count(add) == 3
    assert any("== 3" in g for g in capture.entry_guards(add)[0])


def test_entries_go_with_their_objects():
    def f(x, thing):
        return x + 1 if thing is not None else x

    class Thing:
        pass

    def g(x, function):
        return function(x)

    watched = Watched(g)
    for i in range(3):
        watched(X, (lambda k: lambda x: x + k)(i))
    thing = Thing()
    dead = weakref.ref(thing)
    Watched(f)(X, thing)
    del thing
    gc.collect()
    assert dead() is None  # a guard keeps nothing alive


def test_a_method_of_a_class_that_changes():
    class C:
        def scale(self, x):
            return x * 2

    def f(x, c):
        return c.scale(x)

    watched, c = Watched(f), C()
    assert torch.equal(watched(X, c), X * 2)
    C.scale = lambda self, x: x * 3
    assert torch.equal(watched(X, c), X * 3)


def test_guards_print():
    watched = Watched(add)
    watched(X, 2)
    texts = capture.entry_guards(add)[0]
    assert any(t.startswith("x: ") and "[2, 3]" in t for t in texts)
    assert any(t == "y == 2" for t in texts)


def test_limit_with_fullgraph_raises():
    compiled = cutaway.compile(add, backend="eager", fullgraph=True, dynamic=False)
    with cutaway.options(cache_size_limit=2):
        compiled(X, 1)
        compiled(X, 2)
        with pytest.raises(cutaway.exc.RecompileLimitExceeded, match="`y` was 2, is 3"):
            compiled(X, 3)


def test_a_check_that_failed_half_way_leaves_nothing_old_behind():
    """The value of the dictionary changed in a call that failed at a later guard; the entry's next success must read the new one."""

    def f(x, table, word):
        return x + table["w"] * len(word)

    compiled = cutaway.compile(f)
    x, old, new = torch.zeros(2), torch.ones(2), torch.full((2,), 5.0)
    table = {"w": old}
    for _ in range(4):
        assert torch.equal(compiled(x, table, "two"), f(x, table, "two"))
    table["w"] = new
    for word in ("three", "two", "three", "two"):
        assert torch.equal(compiled(x, table, word), f(x, table, word))


def test_a_slot_that_was_only_asked_for():
    class Slotted:
        __slots__ = ("there",)

    thing = Slotted()
    thing.there = [1]

    def f(x):
        return x + 1 if hasattr(thing, "there") else x + 2

    compiled = cutaway.compile(f)
    assert torch.equal(compiled(X), X + 1)
    del thing.there
    assert torch.equal(compiled(X), X + 2)
