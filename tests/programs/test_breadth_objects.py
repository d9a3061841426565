"""Classes derived from frozenset, kinds of dictionaries and what shows them, keys, numpy arrays: one graph each, and what eager gives."""

from __future__ import annotations

import enum
import random
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import cutaway
import numpy as np
import pytest
import torch

X = torch.randn(3, 4)
TRIANGLE = np.tril_indices(3)
TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
TURNED = np.arange(12, dtype=np.float64).reshape(4, 3).T


class Frozen(frozenset):  # type: ignore[type-arg]
    pass


class Named(frozenset):  # type: ignore[type-arg]
    def __new__(cls, items: Any, name: str = "n") -> Named:
        self = super().__new__(cls, items)
        self.name = name  # type: ignore[attr-defined]
        return self


class Plain:
    def method(self) -> int:
        return 1


OUTSIDE = Plain()
KEYS = {OUTSIDE.method: 5, Frozen([1]): 7}
VIEWED = {"a": 1, "b": 2}
VIEWS = (VIEWED.keys(), VIEWED.values(), VIEWED.items(), types.MappingProxyType(VIEWED))


def frozen_sets(x: torch.Tensor) -> Any:
    s = Frozen([1, 2])
    t = s | {3}
    return (
        x + len(s),
        [type(v).__name__ for v in (s, t, s & {1}, s.copy(), s.union([4]))],
        [sorted(v) for v in (s, t, s - {1}, s ^ {1, 5})],
        (1 in s, s == frozenset([1, 2]), s <= t, hash(s) == hash(frozenset([1, 2])), s == {1, 2}, bool(Frozen())),
    )


def frozen_keys(x: torch.Tensor) -> Any:
    d = {Frozen([1]): 5}
    return (
        x + d[frozenset([1])] + d[Frozen([1])],
        Named([1, 2], "q").name,
        len({Frozen([1]), frozenset([1]), Frozen([2])}),
    )


def frozen_leaves(x: torch.Tensor) -> Any:
    return x + 1, Frozen([1, 2])


def unions(x: torch.Tensor) -> Any:
    a, o, d = {"a": 1, "z": 0}, OrderedDict(b=2, a=3), defaultdict(list, c=3)
    all_ = [a | o, o | a, a | d, d | a, o | d, d | o, d | d]
    return (
        x + 1,
        [type(v).__name__ for v in all_],
        [list(v.items()) for v in all_],
        [v["new"] for v in all_ if isinstance(v, defaultdict)],
    )


def views_from_outside(x: torch.Tensor) -> Any:
    keys, values, items, proxy = VIEWS
    return (
        x + len(keys) + sum(values) + proxy["a"],
        (
            sorted(keys),
            list(items),
            "a" in keys,
            ("b", 2) in items,
            list(proxy),
            proxy.get("q", 3),
            "b" in proxy,
            len(proxy),
        ),
        (keys & {"a"}, dict(proxy)),
    )


def methods_as_keys(x: torch.Tensor) -> Any:
    p, q = Plain(), Plain()
    d = {p.method: 1, q.method: 2}
    return x + d[p.method] + d[q.method] + KEYS[OUTSIDE.method], len({p.method, p.method, q.method}), p.method in KEYS


def hashes(x: torch.Tensor) -> Any:
    p, q = Plain(), Plain()
    return x + 1, hash(p) == hash(p), hash(p) == hash(q), hash(OUTSIDE) == hash(OUTSIDE), hash(hashes) == hash(hashes)


def arrays(x: torch.Tensor) -> Any:
    y = x.clone()
    y[TRIANGLE[0], TRIANGLE[1]] = 0.0
    return (
        x + torch.from_numpy(TABLE) + torch.tensor(TABLE) + torch.as_tensor(TURNED, dtype=torch.float32),
        x[TRIANGLE[0], TRIANGLE[1]],
        y,
        torch.tensor(TURNED).stride(),
        TABLE.shape + (TABLE.ndim, TABLE.size),
    )


def enumeration_by_call(x: torch.Tensor) -> Any:
    kind = enum.Enum("kind", "A B")
    return x + kind.A.value + kind["B"].value


def legacy_new(x: torch.Tensor) -> Any:
    return x.new(*x.size()).fill_(1.0) + x.new(x.size()).zero_() + x


def versions(x: torch.Tensor) -> Any:
    return x + (torch.__version__ >= "2.8"), torch.__version__ < "1.0"


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b) and a.stride() == b.stride()
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


WHOLE = [
    frozen_sets,
    frozen_keys,
    frozen_leaves,
    unions,
    views_from_outside,
    methods_as_keys,
    hashes,
    arrays,
    enumeration_by_call,
    legacy_new,
    versions,
]


@pytest.mark.parametrize("program", WHOLE, ids=lambda p: p.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph(program: Callable[..., Any], backend: str) -> None:
    cutaway.reset()
    function = cutaway.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        expected, got = program(X), function(X)
        assert same(expected, got), (expected, got)


def test_views_show_what_changes() -> None:
    d = {"a": 1}
    keys, proxy = d.keys(), types.MappingProxyType(d)
    cutaway.reset()
    function = cutaway.compile(lambda x: x + len(keys) + proxy["a"], backend="eager")
    assert torch.equal(function(X), X + 1 + 1)
    d["b"] = 5
    assert torch.equal(function(X), X + 2 + 1)
    d["a"] = 7
    assert torch.equal(function(X), X + 2 + 7)


def test_arrays_are_read_at_each_call() -> None:
    a = np.ones(4, dtype=np.float32)
    cutaway.reset()
    function = cutaway.compile(lambda x, a: x + torch.from_numpy(a), backend="eager", fullgraph=True)
    assert torch.equal(function(X, a), X + 1)
    a[0] = 5.0
    assert torch.equal(function(X, a), X + torch.from_numpy(a))
    b = np.zeros(4, dtype=np.float64)
    assert torch.equal(function(X, b), X + torch.from_numpy(b))
    c = np.zeros((3, 1), dtype=np.float32)
    assert torch.equal(function(X, c), X + torch.from_numpy(c))


def test_arrays_are_written_through() -> None:
    def f(x: torch.Tensor, a: Any) -> torch.Tensor:
        t = torch.from_numpy(a)
        t.add_(1)
        return x + t

    cutaway.reset()
    a, b = np.zeros(4, dtype=np.float32), np.zeros(4, dtype=np.float32)
    function = cutaway.compile(f, backend="eager")
    for _ in range(2):
        assert torch.equal(f(X, a), function(X, b))
    assert (a == b).all()


def test_random_numbers_stay_pythons() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * random.random() + random.randint(1, 6)

    cutaway.reset()
    function = cutaway.compile(f, backend="eager")
    for seed in range(3):
        random.seed(seed)
        expected = f(X)
        random.seed(seed)
        assert torch.equal(expected, function(X))
