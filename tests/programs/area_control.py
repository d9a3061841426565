# ruff: noqa
"""Control flow by torch.cond and while_loop, and torch function modes around calls."""

import torch
from tests.support.registry import built, leaf, program, tensor
from torch import nn
from torch._higher_order_ops.while_loop import while_loop


@program
def cond_plain(x):
    return torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v - 1, (x,))


@program(args=lambda i: [leaf(i)])
def cond_gradient(x):
    return torch.cond(x.sum() > 0, lambda v: v.sin() * 2, lambda v: v * v, (x,)).sum()


@program
def cond_closure(x):
    y = x * 2
    return torch.cond(x.mean() > 0, lambda: y + 1, lambda: y * x, ())


@program
def cond_results(x):
    a, d = torch.cond(x.sum() > 0, lambda v: (v + 1, {"k": v * 2}), lambda v: (v - 1, {"k": v * 3}), (x,))
    return a + d["k"]


@built
def cond_module():
    torch.manual_seed(0)
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)

    def f(x):
        return torch.cond(x.sum() > 0, lambda v: one(v), lambda v: two(v), (x,)) * 2

    return f


@program
def cond_nested(x):
    def outer(v):
        return torch.cond(v.max() > 1, lambda w: w + 1, lambda w: w - 1, (v,))

    return torch.cond(x.sum() > 0, outer, lambda v: v * 3, (x,))


@program
def cond_twice(x):
    for _ in range(2):
        x = torch.cond(x.sum() > 0, lambda v: v - 1, lambda v: v + 2, (x,))
    return x


@built(breaks=True)
def cond_effects():
    seen = []

    def f(x):
        def branch(v):
            seen.append(1)
            return v + 1

        try:
            return torch.cond(x.sum() > 0, branch, lambda v: v - 1, (x,))
        except Exception:
            return x, "refused"

    return f


@program(args=lambda i: [torch.randn(2 + i, 4, generator=torch.Generator().manual_seed(i))], calls=5, graphs=5)
def cond_sizes(x):
    return torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))


@program
def cond_constant_inside(x):
    return torch.cond(x.sum() > 0, lambda v: v * torch.tensor([1.0, 2.0, 3.0, 4.0]), lambda v: v * torch.ones(4), (x,))


@program
def while_plain(x):
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), x))


@program
def while_data(x):
    n, y = while_loop(
        lambda n, v: v.abs().max() > 0.1, lambda n, v: (n + 1, v / 2), (torch.zeros((), dtype=torch.long), x.clone())
    )
    return n, y


@program
def while_closure(x):
    w = x.t() @ x
    i, y = while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v @ w), (torch.tensor(0), x.clone()))
    return y


@program
def while_never(x):
    i, y = while_loop(lambda i, v: i > 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), x))
    return i, y


@program
def while_same_outside(x):
    return while_loop(lambda v: v.sum() < 10, lambda v: v + x.abs() + 1, (x,))


class Counting(torch.overrides.TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


class Doubling(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.sin or func is torch.Tensor.add else result


@program
def mode_counts(x):
    with Counting() as m:
        y = torch.relu(x + 1) @ x.t()
        z = torch.nn.functional.gelu(y).sum(dim=0)
    return z, m.names


@program(graphs=2, breaks=True)
def mode_attributes(x):
    with Counting() as m:
        n = x.shape[0] + len(x) + x.dim()
        y = x[0, 1:] * n
    return y, m.names


@program
def mode_changes(x):
    with Doubling():
        y = torch.sin(x) + 1
    return y, torch.sin(x)


@program
def mode_nested(x):
    with Counting() as a:
        with Doubling():
            y = torch.sin(x)
    return y, a.names


@program
def mode_factory(x):
    with Counting() as m:
        y = torch.ones(3, 4) + torch.zeros_like(x)
    return y, m.names


@program(graphs=2, breaks=True)
def mode_break(x):
    with Counting() as m:
        y = x + 1
        print("inside")
        z = y * 2
    return z, m.names


@program(graphs=0, breaks=True)
def mode_raises(x):
    try:
        with Counting():
            y = x @ x
    except RuntimeError:
        return x, "caught"


@program(graphs=3, breaks=True)
def mode_iterates(x):
    with Counting() as m:
        y = sum(row for row in x)
    return y, m.names


@program
def mode_in_place(x):
    y = x.clone()
    with Counting() as m:
        y += 1
        y[0] = 2.0
        y.mul_(3)
    return y, m.names
