"""Numbers that change between calls take no more graphs than they take Dynamo, and integers give eager's answers."""

from __future__ import annotations

import collections
import enum
import math
from collections.abc import Callable
from typing import Any

import cutaway
import pytest
import torch

X = torch.randn(6, 4)
FLOATS = [0.1, 0.2, 0.3, 0.05, 0.7]
COUNTS = [0, 1, 2, 3, 4, 5]


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Holder:
    step = 0


class Steps(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step += 1
        return x * self.step


STEP = 0
ITEMS = {"step": 0}
HISTORY: list[Any] = []
HOLDER = Holder()
MODULE = Steps()


def global_step(x: torch.Tensor) -> torch.Tensor:
    global STEP
    STEP += 1
    return x * STEP


def object_step(x: torch.Tensor) -> torch.Tensor:
    HOLDER.step += 1
    return x + HOLDER.step


def history(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    HISTORY.append(y)
    return y


def item_step(x: torch.Tensor) -> torch.Tensor:
    ITEMS["step"] += 1
    return x + ITEMS["step"]


def loop(x: torch.Tensor, n: int) -> torch.Tensor:
    for _ in range(n):
        x = x + 1
    return x + 1


def parity(x: torch.Tensor, n: int) -> torch.Tensor:
    return x + 1 if n % 2 == 0 else x - 1


def float_branch(x: torch.Tensor, a: float) -> torch.Tensor:
    return x * a if a > 0.15 else x + a


# name -> function, arguments of each call
TABLE: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "float times": (lambda x, a: x * a, [(X, a) for a in FLOATS]),
    "float expression": (lambda x, a: x - a * (1 - a / 2) * x.sin(), [(X, a) for a in FLOATS]),
    "float softmax": (lambda x, a: torch.softmax(x / a, -1), [(X, a) for a in FLOATS]),
    "float alpha": (lambda x, a: torch.add(x, x, alpha=a), [(X, a) for a in FLOATS]),
    "float branch": (float_branch, [(X, a) for a in FLOATS]),
    "float max": (lambda x, a: x * max(a, 0.15), [(X, a) for a in FLOATS]),
    "float power": (lambda x, a: x.abs() ** a, [(X, a) for a in FLOATS]),
    "float math": (lambda x, a: x * math.sqrt(a) * math.cos(a), [(X, a) for a in FLOATS]),
    "float tensor": (lambda x, a: x * torch.tensor(a), [(X, a) for a in FLOATS]),
    "float full": (lambda x, a: x + torch.full((4,), a), [(X, a) for a in FLOATS]),
    "float returned": (lambda x, a: (x + 1, a * 2), [(X, a) for a in FLOATS]),
    "float of a tuple": (lambda x, t: x * t[0] + t[1], [(X, (a, 0.9)) for a in FLOATS]),
    "specials": (lambda x, a: x * a, [(X, a) for a in [1.0, 2.0, 0.0, -0.0, math.inf, math.nan, 5.0]]),
    "types": (lambda x, a: x * a, [(X, a) for a in [1, 1.0, True, 2, 2.5, 3, 3.5]]),
    "int times": (lambda x, n: x * n, [(X, n) for n in COUNTS]),
    "int plus": (lambda x, n: x + n + 1, [(X, n) for n in COUNTS]),
    "int quotient": (lambda x, n: x / (n + 1), [(X, n) for n in COUNTS]),
    "int and float": (lambda x, n: x * (0.1 * n), [(X, n) for n in COUNTS]),
    "int power": (lambda x, n: x**n, [(X, n) for n in COUNTS]),
    "int index": (lambda x, n: x[n] * 2, [(X, n) for n in COUNTS]),
    "int slice": (lambda x, n: x[:n] * 2, [(X, n) for n in COUNTS]),
    "int arange": (lambda x, n: torch.arange(n) + x[0, 0], [(X, n) for n in COUNTS[2:]]),
    "int view": (lambda x, n: x.reshape(n, -1) * 2, [(X, n) for n in [2, 3, 4, 6]]),
    "int loop": (loop, [(X, n) for n in COUNTS]),
    "int parity": (parity, [(X, n) for n in COUNTS]),
    "int max": (lambda x, n: x * max(n, 3), [(X, n) for n in COUNTS]),
    "int key": (lambda x, n: x * {0: 1.0, 1: 2.0}.get(n, 3.0), [(X, n) for n in COUNTS]),
    "int returned": (lambda x, n: (x + 1, n + 1), [(X, n) for n in COUNTS]),
    "int compared": (lambda x, n: x * 2 if n < 100 else x, [(X, n) for n in COUNTS]),
    "int negative": (lambda x, n: x * n, [(X, n) for n in [-2, -1, 0, 1, 2, 3]]),
    "int far": (lambda x, n: x - n * 2, [(X, n) for n in [0, 1000, -20, 30, 40]]),
    "flag": (lambda x, b: x + 1 if b else x - 1, [(X, b) for b in [True, False, True]]),
    "enumeration": (lambda x, c: x + c.value, [(X, c) for c in [Color.RED, Color.GREEN, Color.RED]]),
    "text": (lambda x, s: x + (1 if s == "a" else 2), [(X, s) for s in "abca"]),
    "step of a module": (lambda x: MODULE(x), [(X,)] * 6),
    "global step": (global_step, [(X,)] * 6),
    "step of an object": (object_step, [(X,)] * 6),
    "step in a dict": (item_step, [(X,)] * 6),
    "history": (history, [(X,)] * 6),
}


def _reset_state() -> None:
    global STEP
    STEP = HOLDER.step = MODULE.step = ITEMS["step"] = 0
    HISTORY.clear()


def _run(compile: Callable[..., Any], f: Callable[..., Any], calls: list[tuple[Any, ...]]) -> tuple[int, list[Any]]:
    graphs = 0

    def backend(module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        nonlocal graphs
        graphs += 1
        return module.forward

    _reset_state()
    compiled = compile(f, backend=backend)
    return graphs, [compiled(*a) for a in calls] + [graphs]


@pytest.mark.parametrize("name", TABLE)
def test_no_more_graphs_than_dynamo(name: str) -> None:
    f, calls = TABLE[name]
    cutaway.reset()
    torch._dynamo.reset()
    _reset_state()
    expected = [f(*a) for a in calls]
    ours = _run(cutaway.compile, f, calls)[1]
    theirs = _run(torch.compile, f, calls)[1]
    for got, wanted in zip(ours[:-1], expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)
    assert ours[-1] <= theirs[-1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", TABLE)
def test_answers_are_eagers(name: str, backend: str) -> None:
    f, calls = TABLE[name]
    cutaway.reset()
    _reset_state()
    expected = [f(*a) for a in calls]
    _reset_state()
    compiled = cutaway.compile(f, backend=backend)
    for a, wanted in zip(calls, expected, strict=True):
        torch.testing.assert_close(compiled(*a), wanted, rtol=0, atol=0, equal_nan=True)


def test_a_list_that_is_only_appended_to_takes_one_graph() -> None:
    cutaway.reset()
    _reset_state()
    compiled = cutaway.compile(history)
    for i in range(5):
        compiled(X + i)
    assert len(HISTORY) == 5 and all(torch.equal(y, (X + i).sin()) for i, y in enumerate(HISTORY))
    assert len(cutaway._native.capture.entry_guards(history.__code__)) == 1


@pytest.mark.parametrize(
    "ask", ["len", "last", "truth", "iterate", "extend", "pop", "equal", "contains", "twice", "itself"]
)
def test_a_list_that_is_asked_after_an_append_is_known(ask: str) -> None:
    def program(x: torch.Tensor, kept: list[Any]) -> Any:
        was = bool(kept) if ask == "truth" else None
        kept.append(x + 1)
        if ask == "len":
            return x * len(kept)
        if ask == "last":
            return kept[-1] * 2, kept[0]
        if ask == "iterate":
            return sum(kept)
        if ask == "extend":
            kept.extend([x, 2])
            kept += [3]
        if ask == "pop":
            return kept.pop() * 3, len(kept)
        if ask == "equal":
            return x * (2 if kept == [] else 3)
        if ask == "contains":
            return x * (2 if None in kept else 3)
        if ask == "twice":
            kept.append(4)
            other = kept
            other.append(5)
            return x, list(other)[-2:]
        if ask == "itself":
            kept.append(kept)
            return x, kept[-1] is kept
        return x * 2, was

    cutaway.reset()
    compiled = cutaway.compile(program)
    mine: list[Any] = []
    theirs: list[Any] = []
    for i in range(4):
        got, wanted = compiled(X + i, mine), program(X + i, theirs)
        assert len(mine) == len(theirs)
        assert str(got) == str(wanted)
        for a, b in zip(mine, theirs, strict=True):
            assert (a is mine) == (b is theirs)
            if a is not mine:
                assert str(a) == str(b)


def test_history_of_a_deque_and_a_set_stays_right() -> None:
    queue: collections.deque[Any] = collections.deque(maxlen=2)
    seen: set[Any] = set()

    def program(x: torch.Tensor, n: int) -> torch.Tensor:
        queue.append(n)
        seen.add(n)
        return x + n

    cutaway.reset()
    compiled = cutaway.compile(program)
    for n in range(5):
        assert torch.equal(compiled(X, n), X + n)
    assert list(queue) == [3, 4] and seen == {0, 1, 2, 3, 4}
