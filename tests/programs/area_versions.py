# ruff: noqa
"""What `_version` says of tensors that the program makes and writes to."""

import torch
from tests.support.registry import program


@program(breaks=True)
def made_by_factories(x):
    made = [
        torch.zeros(3),
        torch.ones(3),
        torch.full((3,), 2.0),
        torch.eye(3),
        torch.arange(3),
        torch.linspace(0, 1, 3),
        torch.logspace(0, 1, 3),
        torch.rand(3),
        torch.randn(3),
        torch.randint(3, (3,)),
        torch.randperm(3),
        torch.normal(0.0, 1.0, (3,)),
        torch.hann_window(4),
        torch.kaiser_window(4),
        torch.tril_indices(3, 3),
        torch.tensor([1.0]),
        torch.zeros_like(x),
        torch.ones_like(x),
        torch.rand_like(x),
        x.new_zeros(3),
        x.new_full((3,), 1.0),
        torch.nn.functional.one_hot(torch.arange(3)),
        torch.diag_embed(x),
        torch.nn.functional.pad(x, (1, 1)),
        torch.block_diag(x, x),
        torch.empty(3).fill_(1),
        torch.empty(2).normal_(),
    ]
    return made, [t._version for t in made]


@program(graphs=4, breaks=True)
def written_to(x):
    y, z, w = torch.zeros(3, 4), torch.ones(5, 4), torch.empty(3, 4)
    y[0] = x[0]
    y[:, 1] = y[:, 2] * 2
    y[1, 1] = 3
    y.add_(1).clamp_(0, 2)
    z[1:4].copy_(x)
    torch.cumsum(x, 0, out=z[:3])
    z[x[0].long().clamp(0, 4)] = 1.0
    torch.nn.init.uniform_(w)
    torch.nn.functional.relu_(w)
    return y, z, w, y._version, z._version, w._version, y[0]._version, y[0]._base is y, z.view(-1)[3:]._base is z
