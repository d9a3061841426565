# ruff: noqa
"""Parameters and modules that the compiled function makes, changes and copies; lazy modules."""

import copy

import torch
from tests.support.registry import built, program, seeded, tensor
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return self.l(x)


@program
def parameter(x):
    p = nn.Parameter(torch.ones(4))
    return x * p, type(p).__name__, p.requires_grad, p.is_leaf


@program
def parameter_returned(x):
    p = nn.Parameter(x * 2)
    return p, [isinstance(p, nn.Parameter), p.requires_grad], (p * 3).sum()


@program
def parameter_without_grad(x):
    p = nn.Parameter(x * 2, requires_grad=False)
    return p + x, p


@program
def buffer(x):
    b = nn.Buffer(x * 2)
    return b + x, type(b).__name__


@program
def linear(x):
    return nn.Linear(4, 3)(x)


@program
def linear_without_bias(x):
    return nn.Linear(4, 3, bias=False)(x).sum()


@program
def network(x):
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.0), nn.LayerNorm(8), nn.Linear(8, 2))(x)


@program(args=lambda i: [torch.ones(2, 3, 8, 8) * i])
def convolution(x):
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2))(x)


@program
def own_module(x):
    return Net()(x)


@program
def module_returned(x):
    m = nn.Linear(4, 3)
    return x + 1, [type(m).__name__, list(m.state_dict()), m.in_features], m.weight, m(x)


@program
def weight_given(x):
    m = nn.Linear(4, 3, bias=False)
    m.weight = nn.Parameter(x)
    return m(x)


@program
def list_of_parameters(x):
    for p in nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(3)]):
        x = x * p
    return x


@built
def low_rank():
    m = seeded(Net)

    def f(x):
        a, b = nn.Parameter(torch.ones(4, 2)), nn.Parameter(torch.zeros(2, 4))
        return m(x) + x @ a @ b

    return f


@built(graphs=2)
def registers_a_buffer():
    m = seeded(Net)

    def f(x):
        m.register_buffer("kept", x * 2)
        return m.kept + x, list(dict(m.named_buffers()))

    return f


@built(graphs=2)
def registers_a_parameter():
    m = seeded(Net)

    def f(x):
        m.register_parameter("p", nn.Parameter(torch.ones(4)))
        return m.p + x, list(dict(m.named_parameters()))

    return f


@built(graphs=2)
def adds_a_module():
    m = seeded(Net)

    def f(x):
        if not hasattr(m, "extra"):
            m.add_module("extra", nn.Linear(4, 4))
        return m.extra(m(x))

    return f


@built
def replaces_a_module():
    m = seeded(Net)

    def f(x):
        m.l = nn.Linear(4, 4)
        return m(x), m.l.weight

    return f


@built(graphs=2)
def to_another_type():
    m = seeded(Net)

    def f(x):
        m.to(torch.float64)
        return m(x.double()), m.l.weight.dtype

    return f


@built(graphs=2)
def halves():
    m = seeded(Net)

    def f(x):
        return m.bfloat16()(x.bfloat16())

    return f


@built(graphs=2)
def to_where_it_is():
    m = seeded(Net)

    def f(x):
        return m.to(x.device).to(x.dtype)(x)

    return f


@built
def data_replaced():
    m = seeded(Net)

    def f(x):
        m.l.weight.data = x.T @ x
        return m(x), m.l.weight

    return f


@built(graphs=2)
def frozen_inside():
    m = seeded(Net)

    def f(x):
        m.requires_grad_(False)
        return m(x)

    return f


@built(breaks=True)
def copied():
    m = seeded(Net)

    def f(x):
        return copy.deepcopy(m)(x)

    return f


@built
def parameters_by_name():
    m = seeded(lambda: nn.Sequential(Net(), Net()))

    def f(x):
        return sum((p**2).sum() for n, p in m.named_parameters() if n.endswith("weight")) + x

    return f


@built
def state_dict_inside():
    m = seeded(Net)

    def f(x):
        return m.state_dict()["l.weight"].sum() + x

    return f


@built
def lazy_layer():
    return seeded(lambda: nn.LazyLinear(3))


@built
def lazy_layers():
    return seeded(lambda: nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2)))


@built(args=lambda i: [torch.ones(2, 3, 8, 8) * i])
def lazy_convolution():
    return seeded(lambda: nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d()))


@built
def lazy_inside_a_function():
    m = seeded(lambda: nn.LazyLinear(4))

    def f(x):
        return m(x * 2) + torch.rand(1)

    return f
