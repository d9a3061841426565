"""freeze=True keeps packed weights: the same bits as without, and no stale weight after any write that torch counts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import cutaway
import pytest
import torch


class Net(torch.nn.Module):
    def __init__(self, inner: int = 70) -> None:
        super().__init__()
        self.a = torch.nn.Linear(40, inner)
        self.b = torch.nn.Linear(inner, 40, bias=False)
        self.register_buffer("c", torch.randn(40, 50))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.relu(self.a(x))) @ self.c


def pair(model: torch.nn.Module) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """With and without: compiled, and called often enough that weights are kept."""
    cutaway.reset()
    return cutaway.compile(model, backend="native:wait", freeze=True), cutaway.compile(model, backend="native:wait")


@pytest.mark.parametrize("rows", [1, 3, 5, 14, 15, 33, 128])
@pytest.mark.parametrize("inner", [5, 16, 33, 70, 400, 1000])
def test_same_bits(rows: int, inner: int) -> None:
    torch.manual_seed(0)
    model = Net(inner)
    frozen, plain = pair(model)
    x = torch.randn(rows, 40)
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(frozen(x), plain(x))
    model.double()
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(frozen(x.double()), plain(x.double()))


def add_in_place(m: Net) -> None:
    with torch.no_grad():
        m.a.weight.add_(0.5)


def step(m: Net) -> None:
    for foreach in (False, True):
        optimiser = torch.optim.AdamW(m.parameters(), lr=0.1, foreach=foreach)
        m(torch.ones(20, 40)).sum().backward()
        optimiser.step()
        m.zero_grad()


def fused_step(m: Net) -> None:
    """Torch does not count what fused steps write."""
    optimiser = torch.optim.SGD(m.parameters(), lr=0.1, fused=True)
    m(torch.ones(20, 40)).sum().backward()
    optimiser.step()
    m.zero_grad()


def load(m: Net) -> None:
    m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()})


def load_assigned(m: Net) -> None:
    m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}, assign=True)


def replace_data(m: Net) -> None:
    m.a.weight.data = m.a.weight.data + 1


def replace_parameter(m: Net) -> None:
    m.b.weight = torch.nn.Parameter(m.b.weight.detach() * 2)


def through_detach(m: Net) -> None:
    m.a.weight.detach().mul_(2)


def through_view(m: Net) -> None:
    with torch.no_grad():
        m.b.weight[3:5].fill_(1.0)


def buffer(m: Net) -> None:
    m.c.fill_(0.25)


def index(m: Net) -> None:
    with torch.no_grad():
        m.a.weight[2, 3] = 7.0


def initialise(m: Net) -> None:
    torch.nn.init.normal_(m.a.weight)


def foreach(m: Net) -> None:
    with torch.no_grad():
        torch._foreach_mul_(list(m.parameters()), 1.5)


def swap(m: Net) -> None:
    """New memory behind the old object."""
    with torch.no_grad():
        m.a.weight.set_(torch.randn_like(m.a.weight))


def cast_there_and_back(m: Net) -> None:
    m.double()
    m.float()
    with torch.no_grad():
        m.a.weight.neg_()


def through_data(m: Net) -> None:
    """Not counted; the whole weight changes, and a few elements are compared."""
    m.a.weight.data.mul_(1.25)
    m.b.weight.data.numpy()[:] *= 2


WRITES = [
    through_data,
    add_in_place,
    step,
    fused_step,
    load,
    load_assigned,
    replace_data,
    replace_parameter,
    through_detach,
    through_view,
    buffer,
    index,
    initialise,
    foreach,
    swap,
    cast_there_and_back,
]


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_no_stale_weight(write: Callable[[Net], None]) -> None:
    torch.manual_seed(0)
    model = Net()
    frozen, plain = pair(model)
    x = torch.randn(30, 40)
    for time in range(2):
        with torch.no_grad():
            for _ in range(3):
                before = frozen(x)
            write_under_grad(write, model)
            for _ in range(3):
                after = frozen(x)
                assert torch.equal(after, plain(x))
            assert time > 0 or not torch.equal(before, after)


def write_under_grad(write: Callable[[Net], None], model: Net) -> None:
    with torch.enable_grad():
        write(model)


def test_training_is_as_without() -> None:
    torch.manual_seed(0)
    one = Net()
    two = copy.deepcopy(one)
    cutaway.reset()
    runs = []
    for model, freeze in ((one, True), (two, False)):
        f = cutaway.compile(model, backend="native:wait", freeze=freeze)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
        losses = []
        for i in range(6):
            optimiser.zero_grad()
            loss = (f(torch.linspace(-1, 1, 20 * 40).reshape(20, 40) + i) ** 2).mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        runs.append(losses)
    assert runs[0] == runs[1]


def test_two_models_share_no_weights() -> None:
    torch.manual_seed(0)
    models = [Net(), Net()]
    frozen = cutaway.compile(lambda m, x: m(x), backend="native:wait", freeze=True)
    x = torch.randn(30, 40)
    with torch.no_grad():
        for _ in range(4):
            for m in models:
                assert torch.allclose(frozen(m, x), m(x), atol=1e-5)


def test_inference_tensors_are_not_kept() -> None:
    """Their writes are not counted."""
    with torch.inference_mode():
        model = Net()
        frozen, plain = pair(model)
        x = torch.randn(30, 40)
        for _ in range(3):
            frozen(x)
        model.a.weight.add_(1)
        assert torch.equal(frozen(x), plain(x))


def test_other_backends_refuse() -> None:
    with pytest.raises(cutaway.Error, match="freeze"):
        cutaway.compile(Net(), backend="eager", freeze=True)


def test_decorator() -> None:
    model = Net()

    @cutaway.compile(freeze=True)
    def f(x: torch.Tensor) -> torch.Tensor:
        return model(x)

    with torch.no_grad():
        x = torch.randn(30, 40)
        for _ in range(3):
            assert torch.allclose(f(x), model(x), atol=1e-5)
