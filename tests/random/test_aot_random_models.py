"""Random small models in training, called in changing ways, beside eager: outputs, gradients, buffers, strides, what shares memory.

A model is a few steps out of STEPS and a few outputs out of OUTPUTS. Each is called four times: other batch sizes, with and without
gradients, training and evaluating, parameters frozen in between, steps of an optimizer, backward twice.
"""

import copy
import random

import cutaway
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def _mutate_buffers(m, h, i):
    m.mean.mul_(0.9).add_(h.detach().mean(0))
    m.calls += 1
    return h + m.mean


def _no_grad(m, h, i):
    with torch.no_grad():
        z = m.linears[i](h)
        m.mean.copy_(z.mean(0))
    return h * z.sigmoid()


def _autocast(m, h, i):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = m.linears[i](h)
    return h + z.float()


def _slice_write(m, h, i):
    h = h.clone()
    h[:, 1:3] = h[:, 3:5] * 2
    h[0] = 0
    return h


def _buffer_views(m, h, i):
    m.table[1].add_(h.detach().sum(0))
    m.table.t()[2].mul_(0.5)
    return h + m.table.sum(0)


def _transpose_in_place(m, h, i):
    z = h * 1
    z.t_()
    return z.t() @ m.shared


def _diagonal(m, h, i):
    z = h.t() @ h
    z.fill_diagonal_(1.0)
    return h @ z * 0.1


def _write_frozen(m, h, i):
    with torch.no_grad():
        m.frozen.add_(1)
    return h + m.frozen


def _grad_mode(m, h, i):
    with torch.set_grad_enabled(i % 2 == 0):
        z = h.exp().clamp(max=3)
    return h + z


def _halves(m, h, i):
    a, b = h.chunk(2, -1)
    return torch.cat([b, a * b], -1)


def _greatest(m, h, i):
    value, index = h.max(1)
    return h - value[:, None] + index[:, None]


STEPS = {
    "linear": lambda m, h, i: torch.tanh(m.linears[i](h)),
    "layer_norm": lambda m, h, i: m.norm(h),
    "batch_norm": lambda m, h, i: m.batch_norm(h),
    "relu_": lambda m, h, i: m.linears[i](h).relu_(),
    "buffers": _mutate_buffers,
    "no_grad": _no_grad,
    "autocast": _autocast,
    "checkpoint": lambda m, h, i: checkpoint(lambda a: torch.sin(m.linears[i](a)) * a, h, use_reentrant=False),
    "views": lambda m, h, i: h.view(-1, 2, 3).transpose(1, 2).reshape(-1, 6) * 1.5,
    "tied": lambda m, h, i: F.linear(F.linear(h, m.shared), m.shared.t()),
    "dropout": lambda m, h, i: m.dropout(h),
    "dropout_across": lambda m, h, i: m.dropout(h.t()).t(),
    "detach": lambda m, h, i: h + h.detach() * 2,
    "in_place": lambda m, h, i: (h * 1).sigmoid_().mul_(2),
    "slice_write": _slice_write,
    "stack": lambda m, h, i: torch.stack([h, h * 2], 0).sum(0),
    "buffer_views": _buffer_views,
    "where": lambda m, h, i: torch.where(h > 0, h, h * 0.1 + m.frozen),
    "dtypes": lambda m, h, i: h.half().float() + h.double().sum(-1, keepdim=True).float(),
    "halves": _halves,
    "mode": lambda m, h, i: h * 2 if m.training else h * 3,
    "cumsum": lambda m, h, i: h.cumsum(0) / h.shape[0],
    "transpose_in_place": _transpose_in_place,
    "softmax": lambda m, h, i: F.softmax(h @ m.shared, -1) * h,
    "deviation": lambda m, h, i: h / (h.std(0, keepdim=True) + 1),
    "expand": lambda m, h, i: h + h.mean(0).expand_as(h),
    "greatest": _greatest,
    "diagonal": _diagonal,
    "parameter_views": lambda m, h, i: h + m.shared[1] * m.shared.diagonal(),
    "write_frozen": _write_frozen,
    "grad_mode": _grad_mode,
    "weight_norm": lambda m, h, i: F.linear(h, m.shared / m.shared.norm(dim=1, keepdim=True)),
}
OUTPUTS = {
    "result": lambda m, x, h: [h],
    "transposed": lambda m, x, h: [h.t()],
    "input": lambda m, x, h: [x],
    "view of input": lambda m, x, h: [x[1:]],
    "buffer": lambda m, x, h: [m.mean],
    "two views": lambda m, x, h: [h[0], h.reshape(-1)],
    "mask": lambda m, x, h: [h > 0],
    "integers": lambda m, x, h: [h.argmax(1)],
    "detached": lambda m, x, h: [h.detach()],
    "view of parameter": lambda m, x, h: [m.shared.t()],
    "twice": lambda m, x, h: [h, h],
}


class Net(nn.Module):
    def __init__(self, steps, outputs):
        super().__init__()
        self.steps, self.outputs = [STEPS[s] for s in steps], [OUTPUTS[o] for o in outputs]
        self.linears = nn.ModuleList(nn.Linear(6, 6) for _ in steps)
        self.norm, self.batch_norm, self.dropout = nn.LayerNorm(6), nn.BatchNorm1d(6), nn.Dropout(0.3)
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("table", torch.zeros(3, 6))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.shared = nn.Parameter(torch.randn(6, 6) * 0.3)
        self.frozen = nn.Parameter(torch.randn(6), requires_grad=False)

    def forward(self, x):
        h = x
        for i, step in enumerate(self.steps):
            h = step(self, h, i)
        return tuple(o for output in self.outputs for o in output(self, x, h))


def observe(model, call, calls):
    """Everything that a user can see of some calls."""
    seen = []
    for batch, requires_grad, train, grad, layout, then in calls:
        model.train(train)
        for p in model.linears.parameters():
            p.requires_grad_(then != "freeze")
        torch.manual_seed(batch)
        x = torch.randn(6, batch).t() if layout == "transposed" else torch.randn(batch, 6)
        leaf = x.requires_grad_(requires_grad)
        x = leaf * 1.0 if layout == "computed" else leaf
        torch.manual_seed(99)
        with torch.set_grad_enabled(grad):
            out = call(x)
        around = (*out, x, model.shared, model.mean)
        seen.append([o.detach().clone() for o in out])
        seen.append([(o.stride(), o.dtype, o.requires_grad, o.is_leaf) for o in out])
        seen.append([[a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for b in around] for a in out])
        seen.append([[a is b for b in around] for a in out])
        ends = [o for o in out if o.requires_grad and o.is_floating_point()]
        if ends:
            loss = sum((o * torch.linspace(0.1, 1, o.numel()).view(o.shape)).sum() for o in ends)
            loss.backward(retain_graph=then == "twice")
            if then == "twice":
                loss.backward()
            grads = [leaf.grad, *(p.grad for p in model.parameters())]
            seen.append([g if g is None else g.clone() for g in grads])
            seen.append([g if g is None else g.stride() for g in grads])
            if then == "step":
                torch.optim.SGD(model.parameters(), 0.01).step()
        model.zero_grad()
        seen.append([b.clone() for b in model.buffers()] + [model.frozen.clone(), torch.rand(1)])
    return seen


def same(expected, got, where=""):
    assert type(expected) is type(got), f"{where}: {expected} and {got}"
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5, equal_nan=True, msg=lambda m: f"{where}: {m}")
    elif isinstance(expected, list):
        assert len(expected) == len(got), where
        for i, (e, g) in enumerate(zip(expected, got, strict=True)):
            same(e, g, f"{where}.{i}")
    else:
        assert expected == got, f"{where}: {expected} and {got}"


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("seed", range(24))
def test_a_random_model_trains_as_in_eager(seed, dynamic):
    draw = random.Random(seed)
    steps = [draw.choice(list(STEPS)) for _ in range(draw.randint(2, 6))]
    outputs = draw.sample(list(OUTPUTS), draw.randint(1, 3))
    calls = [
        (
            draw.choice([3, 4, 5]),
            draw.random() < 0.6,
            draw.random() < 0.7,
            draw.random() < 0.85,
            draw.choice(["plain", "plain", "transposed", "computed"]),
            draw.choice(["", "step", "twice", "freeze"]),
        )
        for _ in range(4)
    ]
    torch.manual_seed(seed)
    model = Net(steps, outputs)
    other = copy.deepcopy(model)
    cutaway.reset()
    expected = observe(model, model, calls)
    got = observe(other, cutaway.compile(other, backend="aot_eager", dynamic=dynamic), calls)
    same(expected, got, f"{steps} {outputs}")
