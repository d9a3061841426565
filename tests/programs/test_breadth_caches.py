"""Functions that remember their results, tables of hooks, scripted functions: one graph, and never a result that the cache does not have any more."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import cutaway
import pytest
import torch

X = torch.randn(3, 4)


class Counter:
    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph_module: Any, example_inputs: Any) -> Any:
        self.graphs += 1
        return graph_module.forward


class Recipe:
    def __init__(self, n: int) -> None:
        self.n = n
        self.parts = [n, 2]


def compiled(function: Callable[..., Any], **options: Any) -> tuple[Callable[..., Any], Counter]:
    cutaway.reset()
    counter = Counter()
    return cutaway.compile(function, backend=counter, **options), counter


@pytest.mark.parametrize("limit", [None, 8, 128])
@pytest.mark.parametrize("typed", [False, True])
def test_a_cold_and_a_warm_cache_are_one_graph(limit: int | None, typed: bool) -> None:
    def make() -> tuple[Callable[..., Any], Any]:
        @functools.lru_cache(limit, typed)
        def recipe(n: int, kind: str = "a", *, flag: bool = False) -> Recipe:
            return Recipe(n + len(kind) + flag)

        def f(x: torch.Tensor) -> Any:
            a = recipe(x.shape[0])
            b = recipe(2, kind="bc", flag=True)
            return x.sin() * a.n + b.parts[0], a is recipe(x.shape[0]), len(recipe(5, "d").parts)

        return f, recipe

    eager, eager_cache = make()
    ours, our_cache = make()
    function, counter = compiled(ours, fullgraph=True)
    for _ in range(3):
        expected, got = eager(X), function(X)
        assert torch.equal(expected[0], got[0]) and expected[1:] == got[1:]
        assert eager_cache.cache_info() == our_cache.cache_info()
    assert counter.graphs == 1


def test_what_the_cache_forgets_is_computed_again() -> None:
    @functools.cache
    def settings(name: str) -> dict[str, float]:
        return {"scale": VALUES[name]}

    VALUES = {"a": 2.0}

    def f(x: torch.Tensor) -> torch.Tensor:
        return x * settings("a")["scale"]

    function, counter = compiled(f)
    assert torch.equal(function(X), X * 2.0)
    VALUES["a"] = 3.0
    assert torch.equal(function(X), X * 2.0)  # remembered, as in eager
    settings.cache_clear()
    assert torch.equal(function(X), X * 3.0)
    settings("a")["scale"] = 5.0  # what it remembers may be changed by others
    assert torch.equal(function(X), X * 5.0)
    assert settings.cache_info()[:2] == (2, 1)
    assert counter.graphs >= 2


def test_an_entry_that_another_has_pushed_out() -> None:
    made: list[int] = []

    class Part:
        def __init__(self, n: int) -> None:
            self.n = n

    @functools.lru_cache(maxsize=1)
    def part(n: int) -> Part:
        return Part(len(made))

    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        return x + part(n).n

    function, _ = compiled(f, dynamic=False)
    for n in (1, 1, 2, 1, 1, 2, 2):
        made.append(n)
        expected = len(made) if part.cache_info().currsize == 0 else None
        got = function(X, n)
        if expected is not None:
            assert torch.equal(got, X + expected)
        assert torch.equal(got, X + part(n).n)


def test_a_function_with_effects_stays_python() -> None:
    calls: list[int] = []

    @functools.cache
    def noted(n: int) -> list[int]:
        calls.append(n)
        return [n]

    function, _ = compiled(lambda x: x + noted(3)[0])
    for _ in range(3):
        assert torch.equal(function(X), X + 3)
    assert calls == [3]
    assert noted.cache_info()[:2] == (2, 1)


def test_methods_and_objects_are_keys_by_identity() -> None:
    class Layer:
        def __init__(self, n: int) -> None:
            self.n = n

        @functools.lru_cache  # noqa: B019
        def sizes(self, k: int) -> list[int]:
            return [self.n, k]

    a, b = Layer(1), Layer(2)

    def f(x: torch.Tensor, layer: Layer) -> torch.Tensor:
        n, k = layer.sizes(4)
        return x * n + k

    function, counter = compiled(f, fullgraph=True)
    for layer in (a, b, a, b):
        assert torch.equal(function(X, layer), X * layer.n + 4)
    assert Layer.sizes.cache_info()[:2] == (2, 2)
    assert counter.graphs <= 2


def test_one_cache_calls_another() -> None:
    def make() -> tuple[Callable[..., Any], Any, Any]:
        @functools.cache
        def inner(n: int) -> list[int]:
            return [n] * n

        @functools.cache
        def outer(n: int) -> tuple[list[int], int]:
            return inner(n), len(inner(n + 1))

        return lambda x: x + outer(2)[0][1] + outer(2)[1], inner, outer

    (eager, *theirs), (ours, *mine) = make(), make()
    function, counter = compiled(ours, fullgraph=True)
    for _ in range(3):
        assert torch.equal(eager(X), function(X))
        assert [c.cache_info() for c in theirs] == [c.cache_info() for c in mine]
    assert counter.graphs == 1


def test_a_break_behind_a_cold_cache() -> None:
    @functools.cache
    def table(n: int) -> dict[int, int]:
        return {i: i for i in range(n)}

    def f(x: torch.Tensor) -> torch.Tensor:
        y = x + len(table(3))
        cutaway.graph_break()
        return y * len(table(4))

    function, counter = compiled(f)
    for _ in range(2):
        assert torch.equal(function(X), (X + 3) * 4)
    assert counter.graphs == 2
    assert table.cache_info()[:2] == (2, 2)


def test_equal_layers_with_hooks_share_graphs() -> None:
    class Block(torch.nn.Module):
        def __init__(self, add: float) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.linear.register_forward_hook(lambda m, a, o: o + 1)
            self.linear.register_forward_pre_hook(lambda m, a: (a[0] * 2,))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x)

    layers = [Block(float(i)) for i in range(12)]
    expected = X
    for layer in layers:
        expected = layer(expected)
    cutaway.reset()
    counter = Counter()
    for layer in layers:
        layer.forward = cutaway.compile(layer.forward, backend=counter)  # type: ignore[method-assign]
    got = X
    for layer in layers:
        got = layer(got)
    assert torch.equal(expected, got)
    assert counter.graphs <= 2


def test_hooks_that_come_and_go() -> None:
    linear = torch.nn.Linear(4, 4)
    seen: list[int] = []
    function, _ = compiled(lambda x: linear(x))
    plain = linear(X)
    assert torch.equal(function(X), plain)
    first = linear.register_forward_hook(lambda m, a, o: o + 1)
    assert torch.equal(function(X), plain + 1)
    second = linear.register_forward_hook(lambda m, a, o: o * 3)
    assert torch.equal(function(X), (plain + 1) * 3)
    first.remove()
    assert torch.equal(function(X), plain * 3)
    third = linear.register_forward_hook(lambda m, a, o: o - 5, prepend=True)
    assert torch.equal(function(X), (plain - 5) * 3)
    second.remove()
    third.remove()
    assert torch.equal(function(X), plain)
    with_names = linear.register_forward_hook(lambda m, a, k, o: o + len(k) + 7, with_kwargs=True)
    assert torch.equal(function(X), plain + 7)
    other = linear.register_forward_hook(lambda m, a, o: o + 1)
    assert torch.equal(function(X), plain + 7 + 1)
    with_names.remove()
    assert torch.equal(function(X), plain + 1)
    other.remove()
    assert not seen


def test_the_numbers_of_hooks_can_be_looked_at() -> None:
    linear = torch.nn.Linear(4, 4)
    linear.register_forward_hook(lambda m, a, o: o + 1)

    def f(x: torch.Tensor) -> Any:
        return linear(x), [k in linear._forward_hooks for k in list(linear._forward_hooks)], sum(linear._forward_hooks)

    function, _ = compiled(f)
    expected, got = f(X), function(X)
    assert torch.equal(expected[0], got[0]) and expected[1:] == got[1:]


with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def scripted(x: torch.Tensor, k: int, scale: float = 2.0) -> torch.Tensor:
        if k > 2:
            x = x + 1
        return x.sin() * k / scale

    @torch.jit.script
    def scripted_branch(x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x + 1
        return x - 1

    @torch.jit.script
    def scripted_print(x: torch.Tensor) -> torch.Tensor:
        print("scripted")
        return x + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "counter"])
def test_scripted_functions_are_in_the_graph(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return scripted(x + 1, 2) + scripted(x, 3, scale=0.5)

    cutaway.reset()
    counter = Counter()
    function = cutaway.compile(f, backend=counter if backend == "counter" else backend, fullgraph=True)
    for _ in range(2):
        assert torch.equal(f(X), function(X))
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    f(x).sum().backward()
    function(y).sum().backward()
    assert torch.allclose(x.grad, y.grad)  # type: ignore[arg-type]


def test_scripted_functions_that_look_at_values() -> None:
    function, counter = compiled(lambda x: scripted_branch(x * 2) + 1)
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(function(x), scripted_branch(x * 2) + 1)


def test_scripted_functions_that_print(capfd: pytest.CaptureFixture[str]) -> None:
    function, _ = compiled(lambda x: scripted_print(x * 2) + 1)
    for _ in range(2):
        assert torch.equal(function(X), X * 2 + 1 + 1)
    assert capfd.readouterr().out.count("scripted") == 2
