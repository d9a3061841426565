"""Shells, modules made inside and checked conditions through the other backends, and what they leave behind."""

from __future__ import annotations

import cutaway
import pytest
import torch
from torch import nn

from tests.programs import survey
from tests.programs.area_shells import Int8, Pair
from tests.support import capture_cases, registry

pytestmark = pytest.mark.skipif(not capture_cases.AVAILABLE, reason="this build has no capture")
PROGRAMS = {n: p for n, p in registry.load().items() if n.split(".")[0] in ("shells", "made_modules", "checked")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ahead_of_time(name: str) -> None:
    program = PROGRAMS[name]
    eager = survey.lines(program.make(), program, program.calls)
    cutaway.reset()
    got = survey.lines(cutaway.compile(program.make(), backend="aot_eager"), program, program.calls)
    assert not survey.difference(eager, got)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
def test_a_quantised_network(backend: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    for m in (net[0], net[2]):
        m.weight = nn.Parameter(Int8.from_float(m.weight.detach()), requires_grad=False)
    x = torch.randn(3, 16, requires_grad=True)
    eager = net(x)
    (eager_grad,) = torch.autograd.grad(eager.sum(), x)
    got = cutaway.compile(net, backend=backend, fullgraph=True)(x)
    (grad,) = torch.autograd.grad(got.sum(), x)
    torch.testing.assert_close(got, eager)
    torch.testing.assert_close(grad, eager_grad)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
def test_gradients_reach_a_parameter_made_inside(backend: str) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, nn.Parameter]:
        p = nn.Parameter(torch.full((4,), 2.0))
        return (x * p).sum(), p

    x = torch.arange(4.0)
    loss, p = cutaway.compile(f, backend=backend, fullgraph=True)(x)
    assert type(p) is nn.Parameter and p.is_leaf and p.requires_grad
    loss.backward()
    assert torch.equal(p.grad, x)


def test_results_are_real_shells() -> None:
    def f(x: torch.Tensor) -> Pair:
        return Pair(x, x + 1) * 2

    got = cutaway.compile(f, backend="eager", fullgraph=True)(torch.ones(2, 3))
    assert type(got) is Pair and got.shape == (2, 3)
    assert torch.equal((got + 1).b, torch.full((2, 3), 5.0))


def test_metadata_is_guarded() -> None:
    class Tagged(Pair):
        pass

    def f(p: Pair) -> torch.Tensor:
        return p.a + 1 if p.tag == "one" else p.b - 1

    compiled = cutaway.compile(f, backend="eager", fullgraph=True)
    for tag in ("one", "two", "one"):
        p = Pair(torch.zeros(2), torch.zeros(2))
        p.tag = tag
        assert torch.equal(compiled(p), f(p))
    q = Tagged(torch.zeros(2), torch.zeros(2))
    q.tag = "two"
    assert torch.equal(compiled(q), f(q))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
def test_a_check_that_fails_raises_as_in_eager(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        if not (x > 0).all():
            raise ValueError(f"not positive: {x.min().item()}")
        return x.log().sum()

    compiled = cutaway.compile(f, backend=backend, fullgraph=True)
    good, bad = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -2.0])
    for _ in range(2):
        torch.testing.assert_close(compiled(good), f(good))
        with pytest.raises(ValueError, match="not positive: -2.0"):
            compiled(bad)


def test_the_first_call_of_a_lazy_module_runs_eagerly() -> None:
    torch.manual_seed(0)
    eager = nn.LazyLinear(3)
    torch.manual_seed(0)
    lazy = nn.LazyLinear(3)
    x = torch.ones(2, 5)
    counter = capture_cases.Counter()
    compiled = cutaway.compile(lazy, backend=counter, fullgraph=True)
    torch.manual_seed(1)
    expected = [eager(x), eager(x)]
    torch.manual_seed(1)
    assert torch.equal(compiled(x), expected[0]) and counter.frame_count == 0
    assert torch.equal(compiled(x), expected[1]) and counter.frame_count == 1
