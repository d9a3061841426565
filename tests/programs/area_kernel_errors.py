# ruff: noqa
"""Errors that only real kernels raise, inside blocks that handle them: dtypes without a kernel, memory that overlaps, values; and what warns."""

import contextlib
import warnings

import torch
import torch.nn.functional as F
from tests.support.registry import built, cases, program, takes, tensor

CASES = """
(x * 1j) > 1
(x * 1j) <= (x * 1j)
(x * 1j).sort()
(x * 1j).max()
(x * 1j).argmin()
(x * 1j).floor()
(x * 1j).clamp(0, 1)
(x * 1j).relu()
(x * 1j).topk(2)
(x * 1j).median()
x.long().softmax(0)
x.long().log_softmax(0)
F.softplus(x.long())
x.long().normal_()
x.to(torch.uint16) > 3
x.to(torch.uint16) + 1
x & 3
x << 1
torch.gcd(x, x)
x.long() // x.long().zero_()
x.long() % 0
x.bool().sub(True)
torch.linalg.det(x[:3, :3].long())
torch.linalg.inv(x[:3, :3] * 0)
torch.linalg.qr(x.long())
x.gather(1, torch.full((3, 4), 9))
F.one_hot(torch.tensor([-1]))
F.embedding(torch.tensor([7]), x)
F.binary_cross_entropy(x * 9, x)
x[torch.tensor([5])]
x.half().cholesky_inverse()
F.conv1d(x.long()[None], x.long()[None])
torch.bernoulli(x * 9)
x.clone().expand(3, 4).add_(1).sum()
x[:1].expand(3, 4).add_(1)
x[:, :1].expand(3, 4).copy_(x.clone())
x[:1].expand(3, 4).mul_(x)
x.view(-1)[1:].add_(x.view(-1)[:-1])
x[1:].copy_(x[:-1])
torch.add(x[0], x[1], out=x[:1].expand(3, 4)[:, 0])
torch.broadcast_tensors(x[:, :1], x)[0].copy_(x)
torch.sin(x.view(-1)[:-1], out=x.view(-1)[1:])
"""
for number, line in enumerate(CASES.strip().splitlines()):
    cases("kernel_errors", f"case_{number:02}", line, {"torch": torch, "F": F})


@program(breaks=True)
def after_a_write(x):
    x.add_(1)
    try:
        r = (x * 1j) > 1
    except (RuntimeError, NotImplementedError) as e:
        r = str(e)
    return r, x + 0


@program(breaks=True)
def before_a_write(x):
    try:
        r = x.long().softmax(0)
        x.mul_(2)
    except (RuntimeError, NotImplementedError) as e:
        r = str(e)
    return r, x + 0


@program(breaks=True)
def write_that_raises(x):
    x.mul_(2)
    try:
        x[:, :1].expand(3, 4).copy_(x.clone())
        r = "fine"
    except RuntimeError as e:
        r = str(e)
    x.add_(1)
    return r, x + 0


@program
def fills_expanded(x):
    x[:1].expand(3, 4).fill_(7)
    x[1:2].expand(2, 4).zero_()
    x[2:].expand(3, 4)[0, 1] = 3.0
    return x + 0


@program(breaks=True)
def divides_by_zero_in_suppress(x):
    n = x.long()
    x.sub_(1)
    with contextlib.suppress(RuntimeError):
        n = n // (n - n)
        x.sub_(1)
    return n, x + 0


@program
def initialises_in_a_block(x):
    w = torch.empty(3, 4)
    try:
        torch.nn.init.kaiming_uniform_(w)
        x.gather(1, torch.full((3, 4), 9))
    except RuntimeError:
        w = w + torch.rand(3, 4)
    return w, torch.rand(2)


@program(args=lambda i: [tensor(i), torch.zeros(4), torch.ones(4), torch.tensor([i * 2])], graphs=2)
def statistics_are_updated_once(x, mean, variance, index):
    y = F.batch_norm(x, mean, variance, training=True)
    try:
        y = y + x.index_select(0, index)
    except (RuntimeError, IndexError):
        y = y - 1
    return y, mean + 0, variance + 0


@built
def norms_in_a_block():
    torch.manual_seed(0)
    m = torch.nn.Sequential(
        torch.nn.Linear(4, 4),
        torch.nn.BatchNorm1d(4),
        torch.nn.Dropout(0.5),
        torch.nn.LayerNorm(4),
        torch.nn.BatchNorm1d(4),
    )

    def run(x):
        try:
            y = m(x)
        except RuntimeError:
            y = x
        return y, m[1].running_mean + 0, m[4].num_batches_tracked + 0

    return run


@built(graphs=2, breaks=True)
def kernel_written_in_python():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[x.long().clamp(0, 9)].sum() + x

        @staticmethod
        def backward(ctx, g):
            return g

    def run(x):
        x.mul_(2)
        y = (x * 5).requires_grad_()
        try:
            y = Fails.apply(y)
        except (RuntimeError, IndexError):
            y = y * 3
        return y.detach(), x + 0

    return run


@program(graphs=5, breaks=True)
def warns_once_a_call(x):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        a = F.mse_loss(x, x[:, :1])
        b = F.softmax(x)
        c = F.l1_loss(x, x[:1])
        warnings.warn("mine")
    return a, b, c, [str(w.message)[:40] for w in seen]


@program(breaks=True)
def warning_as_error(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            r = F.l1_loss(x, x[:1])
        except UserWarning as e:
            r = str(e)[:40]
    return r


@program(breaks=True)
def gradient_of_no_leaf(x):
    y = x.clone().requires_grad_() * 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        g = y.grad
    return g, len(seen)


@built(graphs=5, breaks=True)
def dirty_inputs():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            x.mul_(k)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g, None

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            y.add_(x)
            ctx.mark_dirty(y)
            return x, y

        @staticmethod
        def backward(ctx, g, h):
            return g, h

    def run(x):
        y = x * 2
        a = Scale.apply(y, 3)
        b, c = Two.apply(x, y)
        with torch.no_grad():
            d = Scale.apply(x, 2)
        return a is y, b is x, c is y, d is x, x._version, y._version, x + y

    return run


takes(
    "kernel_errors",
    """
    case_04 1 breaks
    case_05 1 breaks
    case_06 1 breaks
    case_07 1 breaks
    case_08 1 breaks
    case_17 0 breaks
    case_21 1 breaks
    case_22 1 breaks
    case_24 1 breaks
    case_26 1 breaks
    case_27 2
    case_28 2
    case_30 1 breaks
    case_33 1
    case_34 1 breaks
    case_35 1 breaks
    case_36 1 breaks
    case_37 1 breaks
    case_38 1 breaks
    case_39 1 breaks
    case_40 1 breaks
    case_41 1 breaks
    """,
)
