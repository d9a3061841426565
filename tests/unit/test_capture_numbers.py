"""Floats that change between calls are inputs of the graph, and give eager's answers to the last bit."""

from __future__ import annotations

import collections
import math
import random
import struct
from collections.abc import Callable
from typing import Any

import cutaway
import pytest
import torch

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-45, 1e300, -1e-300, math.inf, -math.inf, math.nan, 1 / 3]


def _bits(v: Any) -> Any:
    if isinstance(v, torch.Tensor):
        return (v.dtype, tuple(v.shape), [_bits(i) for i in v.detach().flatten().tolist()])
    if isinstance(v, float):
        return ("float", "nan" if math.isnan(v) else struct.pack("d", v))
    if isinstance(v, (tuple, list)):
        return (type(v).__name__, [_bits(i) for i in v])
    if isinstance(v, dict):
        return {k: _bits(i) for k, i in v.items()}
    return (type(v).__name__, v)


def _fx(module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
    return module.forward


def _outcome(f: Callable[..., Any], x: torch.Tensor, *numbers: Any) -> Any:
    """What a call gives, with the gradient of x; or the exception."""
    x = x.clone().requires_grad_()
    try:
        out = f(x, *numbers)
    except Exception as error:
        return (type(error).__name__, str(error))
    tensors = [
        t for t in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(t, torch.Tensor) and t.requires_grad
    ]
    grads = [
        g
        for t in tensors
        for g in torch.autograd.grad(t.sum(), x, allow_unused=True, retain_graph=True)
        if g is not None
    ]
    return _bits(out), [_bits(g) for g in grads]


def scale(x: torch.Tensor, a: float) -> Any:
    return x * a


def expression(x: torch.Tensor, a: float) -> Any:
    return (x * (a * 2 + 1) - a / 3).sin() + (1 - a) * x, -a, a - 0.5, abs(a)


def adds_zero(x: torch.Tensor, a: float) -> Any:
    return x * (a + 0.0), a + 0.0, a * 1.0, 0.0 - a, -a


def times_zero(x: torch.Tensor, a: float) -> Any:
    return x + a * 0, a * 0.0


def divides(x: torch.Tensor, a: float) -> Any:
    return x * (1 / a), a // 0.3, a % 0.3, divmod(a, 0.7)


def functions(x: torch.Tensor, a: float) -> Any:
    return x * math.sqrt(a) * math.exp(a) + math.log(a), math.sin(a), math.cos(a), math.tanh(a), a**0.5, 2**a


def branches(x: torch.Tensor, a: float) -> Any:
    if a > 0.3:
        return x * a
    if not a:
        return x - 1
    return x + a if a == 0.25 else x.sin() * a


def chooses(x: torch.Tensor, a: float) -> Any:
    return x.clamp(-max(a, 0.1), max(a, 0.1)), min(a, 0.2, 1), sorted([a, 0.3, 0.1])


def truncates(x: torch.Tensor, a: float) -> Any:
    return x + (int(a) if math.isfinite(a) and abs(a) < 1e6 else 7), a == 3, bool(a)


def asks(x: torch.Tensor, a: float) -> Any:
    return (
        x * a,
        a.is_integer(),
        a.real,
        a is None,
        a != "auto",
        a in (0.5, 1.0),
        {0.5: 1}.get(a, 2),
        f"{a}",
        [a, 0.5].index(0.5),
    )


def arguments(x: torch.Tensor, a: float) -> Any:
    y = torch.add(x, x, alpha=a)
    return (
        torch.where(x > a, y, a),
        torch.full((2,), a),
        torch.lerp(x, y, a),
        x.masked_fill(x > 0, a),
        x.abs() ** a,
        torch.nn.functional.leaky_relu(x, a),
    )


def makes_tensor(x: torch.Tensor, a: float) -> Any:
    return x * torch.tensor(a) + torch.tensor([a, 1.0]).sum()


def makes_sizes(x: torch.Tensor, a: float) -> Any:
    return x.sum() + torch.arange(0.0, 1.0, 0.3 if not 0.01 < a < 10 else a).sum()


def hides_branches(x: torch.Tensor, a: float) -> Any:
    return torch.nn.functional.dropout(x, a, training=False) if 0 <= a <= 1 else torch.norm(x, a)


def integers_and_floats(x: torch.Tensor, a: float, n: int = 3) -> Any:
    return x * (a * n) + n / 7, a * True, n**0.5, a < n


PROGRAMS = [
    scale,
    expression,
    adds_zero,
    times_zero,
    divides,
    functions,
    branches,
    chooses,
    truncates,
    asks,
    arguments,
    makes_tensor,
    makes_sizes,
    hides_branches,
    integers_and_floats,
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "fx"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_floats_are_eagers_to_the_last_bit(program: Callable[..., Any], backend: str, dtype: torch.dtype) -> None:
    rng = random.Random(program.__name__ + backend)
    x = torch.randn(5, dtype=dtype, generator=torch.Generator().manual_seed(3))
    cutaway.reset()
    compiled = cutaway.compile(program, backend=_fx if backend == "fx" else backend)
    numbers = [0.25, 0.75, *(rng.uniform(-3, 3) for _ in range(4)), *SPECIAL, *(rng.uniform(0, 1) for _ in range(3))]
    for a in numbers:
        assert _outcome(compiled, x, a) == _outcome(program, x, a), a


def _graphs(
    f: Callable[..., Any], calls: list[tuple[Any, ...]], prepare: Callable[[int], object] = lambda i: None
) -> int:
    graphs = 0

    def backend(module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        nonlocal graphs
        graphs += 1
        return module.forward

    cutaway.reset()
    compiled = cutaway.compile(f, backend=backend)
    for i, arguments_ in enumerate(calls):
        prepare(i)
        compiled(*arguments_)
    return graphs


X = torch.randn(6, 4)
FLOATS = [0.1, 0.2, 0.3, 0.05, 0.7]


@pytest.mark.parametrize("program", [scale, expression, divides, arguments])
def test_a_float_argument_takes_two_graphs(program: Callable[..., Any]) -> None:
    assert _graphs(program, [(X, a) for a in FLOATS]) == 2


class Settings:
    rate = 0.1


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


RATE = 0.1
ITEMS = {"rate": 0.1}
LIST = [0.1, 0.2]


def test_floats_of_all_places_take_two_graphs() -> None:
    settings, module = Settings(), Scaled()

    def closure() -> tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[float], None]]:
        rate = 0.1

        def set_rate(value: float) -> None:
            nonlocal rate
            rate = value

        return lambda x: x * rate, set_rate

    inside, set_rate = closure()
    calls = [(X,)] * len(FLOATS)
    assert _graphs(lambda x: x * settings.rate, calls, lambda i: setattr(settings, "rate", FLOATS[i])) == 2
    assert _graphs(module.forward, calls, lambda i: setattr(module, "scale", FLOATS[i])) == 2
    assert _graphs(lambda x: x * RATE, calls, lambda i: globals().update(RATE=FLOATS[i])) == 2
    assert _graphs(lambda x: x * ITEMS["rate"], calls, lambda i: ITEMS.update(rate=FLOATS[i])) == 2
    assert _graphs(lambda x: x * LIST[0], calls, lambda i: LIST.__setitem__(0, FLOATS[i])) == 2
    assert _graphs(inside, calls, lambda i: set_rate(FLOATS[i])) == 2


def test_a_float_is_a_tensor_read_by_item_for_python_backends() -> None:
    seen: list[tuple[list[Any], str]] = []

    def backend(module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        seen.append((examples, module.code))
        return module.forward

    cutaway.reset()
    compiled = cutaway.compile(scale, backend=backend)
    for a in (0.1, 0.2, 0.3):
        assert torch.equal(compiled(X, a), X * a)
    examples, code = seen[1]
    assert examples[1].dtype == torch.float64 and examples[1].dim() == 0 and ".item()" in code


def test_other_types_are_other_graphs() -> None:
    class Float(float):
        pass

    cutaway.reset()
    compiled = cutaway.compile(lambda x, a: (x * a, type(a), a))
    numbers: list[Any] = [0.5, 0.25, 1.0, 1, True, 2, Float(0.5), 3.5, 10**30, "no"]
    numpy = pytest.importorskip("numpy")
    for a in [*numbers, numpy.float64(0.5), numpy.float32(0.5), 0.125]:
        try:
            expected = (X * a, type(a), a)
        except (TypeError, OverflowError) as error:
            with pytest.raises(type(error)):
                compiled(X, a)
            continue
        got = compiled(X, a)
        assert torch.equal(got[0], expected[0]) and got[1] is expected[1] and got[2] == expected[2]


def test_a_float_that_is_stored_is_computed_at_each_call() -> None:
    state = {"total": 0.0, "rate": 0.1}

    def step(x: torch.Tensor) -> torch.Tensor:
        state["rate"] = state["rate"] * 0.9
        state["total"] += state["rate"]
        return x * state["rate"]

    assert _graphs(step, [(X,)] * 6) <= 3
    expected = {"total": 0.0, "rate": 0.1}
    for _ in range(6):
        expected["rate"] = expected["rate"] * 0.9
        expected["total"] += expected["rate"]
    assert state == expected


def test_inductor_is_given_numbers_where_it_takes_no_floats() -> None:
    seen: collections.Counter[str] = collections.Counter()

    def refuses(module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        if any(n.target == "item" for n in module.graph.nodes):
            seen["floats"] += 1
            raise RuntimeError("no floats")
        seen["numbers"] += 1
        return module.forward

    cutaway.reset()
    compiled = cutaway.compile(scale, backend=refuses)
    for a in FLOATS:
        assert torch.equal(compiled(X, a), X * a)
    assert seen["numbers"] == len(FLOATS) and seen["floats"]


ASKING = [
    lambda v: "yes" if torch.tensor(v) > 0 else "no",
    lambda v: "yes" if torch.full((2,), v).sum() > 0 else "no",
    lambda v: "yes" if (torch.ones(1) * v) > 0 else "no",
    lambda v: "yes" if torch.zeros(2).add(v).sum() > 0.5 else "no",
    lambda v: "yes" if torch.full((3,), v).eq(1).all() else "no",
    lambda v: "yes" if torch.equal(torch.full((3,), v), torch.ones(3)) else "no",
    lambda v: torch.arange(0, 10)[: int(torch.full((), v))].shape,
    lambda v: float(torch.ones(1) * v),
    lambda v: torch.nonzero(torch.full((3,), v)).shape[0],
]


@pytest.mark.parametrize("number", ASKING, ids=range(len(ASKING)))
@pytest.mark.parametrize(
    "values", [[3.0, 0.5, -1.5, 1.0, 2.0, 0.0, 4.0], [3, 5, -1, 1, 2, 0, -7, 4]], ids=["float", "int"]
)
@pytest.mark.parametrize("backend", ["eager", lambda module, inputs: module], ids=["native", "fx"])
def test_values_of_tensors_that_a_number_made(number, values, backend):
    """Known although tensors are fake, and asked for: a number that decides this way is no symbol."""
    cutaway.reset()
    compiled = cutaway.compile(number, backend=backend)
    assert [compiled(v) for v in values] == [number(v) for v in values]
