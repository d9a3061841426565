# ruff: noqa
"""Backward passes inside: gradients of leaves, whole training steps with their optimiser."""

import torch
import torch.nn.functional as F
from tests.support.registry import built, leaf, program, takes, tensor
from torch import nn


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))


def state(m):
    return [p.detach().clone() for p in m.parameters()]


@program
def of_a_leaf_made_inside(x):
    w = torch.ones(4, requires_grad=True)
    (x * w).sum().backward()
    return w.grad


@program
def leaf_made_inside_returned(x):
    w = torch.ones(4, requires_grad=True)
    (x * w).sum().backward()
    return w, w.grad


@program
def leaf_without_backward(x):
    w = torch.ones(4, requires_grad=True)
    return w.grad is None, x * 2


@program(args=lambda i: [leaf(i)])
def of_an_argument(x):
    (x * x).sum().backward()
    return x.grad * 2


@program(args=lambda i: [leaf(i)])
def twice_into_one_gradient(x):
    (x * x).sum().backward()
    x.sin().sum().backward()
    return x.grad + 0


@program(args=lambda i: [leaf(i)])
def with_a_gradient(x):
    (x * x).backward(torch.full_like(x, 2.0))
    return x.grad + 0


@program(args=lambda i: [leaf(i)])
def retained_graph(x):
    y = (x**3).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad + 0


@program(args=lambda i: [leaf(i), leaf(i + 5)])
def one_memory_for_two_gradients(x, y):
    (x + y).backward(torch.ones(3, 4))
    x.grad.add_(1)
    return x.grad + 0, y.grad + 0


@program(args=lambda i: [leaf(i), leaf(i + 5)])
def for_some_inputs(x, y):
    (x * y).sum().backward(inputs=[x])
    return x.grad + 0, y.grad


@program(args=lambda i: [leaf(i), leaf(i + 5)])
def by_autograd(x, y):
    torch.autograd.backward([x.sum(), (x * y).sum()])
    return x.grad + 0, y.grad + 0


@built(args=lambda i: [torch.randn(2, 3, 5, 5)], graphs=2)
def layout_of_the_leaf():
    torch.manual_seed(0)
    m = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)

    def f(x):
        m.zero_grad()
        m(x).square().sum().backward()
        return [(p.grad.stride(), p.grad + 0) for p in m.parameters()]

    return f


@built(graphs=2)
def written_by_hand():
    m = network()

    def step(x):
        m.zero_grad()
        loss = m(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in m.parameters():
                p -= 0.1 * p.grad
        return loss.detach(), state(m)

    return step


@built(graphs=2)
def accumulated():
    m = network()

    def step(x):
        m.zero_grad()
        for part in x.split(1):
            (m(part).square().mean() / 3).backward()
        return [p.grad.clone() for p in m.parameters()]

    return step


@built(graphs=2)
def clipped():
    m = network()

    def step(x):
        m.zero_grad()
        m(x).square().sum().backward()
        return nn.utils.clip_grad_norm_(m.parameters(), 0.5), [p.grad.clone() for p in m.parameters()]

    return step


@built(calls=4, graphs=6)
def hook_that_comes_later():
    m = network()
    calls = []

    def step(x):
        m.zero_grad()
        m(x).square().sum().backward()
        return [p.grad + 0 for p in m.parameters()]

    def f(x):
        if len(calls) == 2:
            next(m.parameters()).register_hook(lambda g: g * 2)
        calls.append(0)
        return step(x)

    return f


@built(calls=4, graphs=5)
def hook_that_comes_later_and_grad():
    w = nn.Parameter(torch.ones(4))
    calls = []

    def f(x):
        calls.append(0)
        if len(calls) == 3:
            w.register_hook(lambda g: g * 2)
        return torch.autograd.grad((x * w).sum(), w)[0]

    return f


def trained(make):
    def build():
        m = network()
        o = make(m.parameters())

        def step(x):
            o.zero_grad()
            loss = F.mse_loss(m(x), torch.zeros(3, 2))
            loss.backward()
            o.step()
            return loss.detach(), state(m)

        return step

    return build


for _name, _make in {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adamax": lambda p: torch.optim.Adamax(p),
    "nadam": lambda p: torch.optim.NAdam(p),
    "adam_fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
}.items():
    _f = trained(_make)
    _f.__name__ = f"step_of_{_name}"
    _f.__module__ = __name__
    built(_f)


@built(graphs=28, breaks=True)
def step_of_lbfgs():
    m = network()
    o = torch.optim.LBFGS(m.parameters(), max_iter=2)

    def step(x):
        def closure():
            o.zero_grad()
            loss = m(x).square().mean()
            loss.backward()
            return loss

        o.step(closure)
        return state(m)

    return step


takes(
    "steps",
    """
    step_of_adadelta 2
    step_of_adagrad 3
    step_of_adam 4
    step_of_adam_fused 2
    step_of_adamax 4
    step_of_adamw 4
    step_of_nadam 4
    step_of_radam 4 breaks
    step_of_rmsprop 2
    step_of_sgd 2
    step_of_sgd_momentum 2
    """,
)
