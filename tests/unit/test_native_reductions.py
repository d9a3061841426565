"""The backend native: reductions that are made of others. Variances, losses, norms of groups, places of extremes."""

import math

import cutaway
import pytest
import torch
import torch.nn.functional as F


def compiled(f):
    cutaway.reset()
    return cutaway.compile(f, backend="native:wait", fullgraph=True)


def check(program, *inputs, tol=1e-4):
    expected, got = program(*inputs), compiled(program)(*inputs)
    wide = program(*[x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs])
    for i, (e, g, r) in enumerate(zip(expected, got, wide, strict=True)):
        assert (e.dtype, e.shape, e.stride()) == (g.dtype, g.shape, g.stride()), i
        if e.is_floating_point():
            assert torch.equal(e.isnan(), g.isnan()) and torch.equal(e.isinf(), g.isinf()), i
            assert cutaway.same(e, g, r, tol=tol, equal_nan=True), (i, (e.double() - g.double()).abs().max())
        else:
            assert torch.equal(e, g), i


SHAPES = [(5, 7), (3, 4, 33), (130, 257), (2, 3, 4, 16), (6, 1), (1, 40), (40,), (300, 8)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_statistics(shape, dtype):
    def program(x):
        out = []
        for d in (-1, 0):
            for keep in (False, True):
                if x.shape[d] > 1:
                    out += [x.var(d, keepdim=keep), x.std(d, keepdim=keep), *torch.var_mean(x, d, keepdim=keep)]
                out += [x.var(d, keepdim=keep, correction=0), x.logsumexp(d, keepdim=keep), x.prod(d, keepdim=keep)]
        return [
            *out,
            x.var(),
            x.std(correction=0),
            x.logsumexp(tuple(range(x.dim()))),
            (x * 0.1 + 1).prod(),
            x - torch.var_mean(x, -1, keepdim=True, correction=0)[1],
        ]

    torch.manual_seed(0)
    check(
        program,
        (torch.randn(shape, dtype=torch.float64) * 3 + 100 if dtype == torch.float64 else torch.randn(shape)).to(dtype),
        tol=1e-4 if dtype != torch.bfloat16 else 2e-2,
    )


def test_rows_with_special_values():
    x = torch.randn(9, 37)
    x[0, 3], x[1, 36], x[2, 0], x[3], x[4, 20], x[5], x[6, ::2] = (
        math.nan,
        math.inf,
        -math.inf,
        -math.inf,
        3e38,
        math.inf,
        -0.0,
    )
    x[7] = 0

    def program(x):
        return [
            x.logsumexp(1),
            x.var(1),
            x.prod(1),
            x.argmax(1),
            x.argmin(1),
            *x.max(1),
            *x.min(1, keepdim=True),
            x.argmax(1, keepdim=True) + 1,
        ]

    check(program, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize("shape", [(4, 9), (3, 5, 16), (2, 70), (50, 64)], ids=str)
def test_places_of_extremes(shape, dtype):
    """Ties go to the first."""
    x = torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(0)).to(dtype)

    def program(x):
        return [
            x.argmax(-1),
            x.argmin(-1),
            *x.max(-1),
            *x.min(-1, keepdim=True),
            x.argmax(0),
            x.argmax(),
            *x.max(0),
            x.prod(-1),
            x.prod(),
        ]

    check(program, x)


def test_sums_of_a_few_slices_in_the_middle():
    def program(x, y):
        return [
            x.sum(2),
            x.sum(2, keepdim=True) * 2,
            x.sum(1),
            x.transpose(1, 3).sum(2),
            (x * y).sum(2).exp(),
            x.sum(-3),
        ]

    check(program, torch.randn(2, 3, 4, 5, 8), torch.randn(8))


def test_integers_wrap_around():
    x = torch.full((3, 70), 3)
    check(lambda x: [x.prod(1), x.int().prod(1), (x > 2).prod(1)], x)


LOSSES = {
    "mse": F.mse_loss,
    "smooth_l1": F.smooth_l1_loss,
    "smooth_l1 beta": lambda x, y, reduction: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.3),
    "huber": F.huber_loss,
    "huber delta": lambda x, y, reduction: F.huber_loss(x, y, reduction=reduction, delta=0.3),
    "l1": F.l1_loss,
    "kl": lambda x, y, reduction: F.kl_div(x, y.abs(), reduction=reduction),
    "bce logits": lambda x, y, reduction: F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction=reduction),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients(name):
    for reduction in ("mean", "sum", "none"):
        torch.manual_seed(0)
        x, y = torch.randn(7, 33, requires_grad=True), torch.randn(7, 33)
        x.data[0, :4] = torch.tensor([0.0, -0.0, 1e30, -1e-40])
        y[0, :2] = 0

        def f(x, y, reduction=reduction):
            return LOSSES[name](x, y, reduction=reduction) * 2

        e, g = f(x, y), compiled(f)(x, y)
        torch.testing.assert_close(g, e)
        weight = torch.ones_like(e)
        torch.testing.assert_close(torch.autograd.grad(g, x, weight), torch.autograd.grad(e, x, weight))


@pytest.mark.parametrize(
    "shape,groups", [((2, 6, 5), 3), ((3, 8, 4, 4), 2), ((2, 4, 33), 4), ((1, 6, 10), 1), ((5, 12), 4)], ids=str
)
def test_group_and_instance_norm(shape, groups):
    torch.manual_seed(0)
    x, w, b = torch.randn(shape, requires_grad=True), torch.randn(shape[1], requires_grad=True), torch.randn(shape[1])

    def program(x, w, b):
        out = [
            F.group_norm(x, groups, w, b),
            F.group_norm(x, groups),
            F.group_norm(x, groups, w),
            F.group_norm(x, groups, None, b).relu(),
        ]
        return out + ([F.instance_norm(x)] if x.dim() > 2 else [])

    e, g = program(x, w, b), compiled(program)(x, w, b)
    for a, c in zip(e, g, strict=True):
        torch.testing.assert_close(c, a, rtol=1e-4, atol=1e-5)
    gradients = [torch.autograd.grad(sum(o.square().sum() * (i + 1) for i, o in enumerate(r)), (x, w)) for r in (e, g)]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-3, atol=1e-4)


def test_softmax_of_rows_that_are_masked_whole():
    mask = torch.zeros(2, 1, 5, 5, dtype=torch.bool)
    mask[0, 0, 2:, :3] = True

    def program(q, mask):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=mask, dropout_p=0.4)

    q, results = torch.randn(2, 3, 5, 8, requires_grad=True), []
    for f in (program, compiled(program)):
        torch.manual_seed(0)
        out = f(q, mask)
        results.append((out, torch.autograd.grad(out.square().sum(), q)[0]))
    for e, g in zip(*results, strict=True):
        torch.testing.assert_close(g, e, equal_nan=True)


def test_sums_over_the_rows_of_what_no_cache_holds():
    """Such a sum is one of blocks first, in the kernel that reads the rows anyway, with the bits of a sum in one go."""
    torch.manual_seed(0)
    x, y = torch.randn(4096, 1024), torch.randn(4096, 1024)
    w, b = torch.randn(1024), torch.randn(1024)
    v = torch.randn(64, 1024, 128)[:, ::2]
    programs = [
        (lambda x, y: (x * y).sum(0), (x, y)),
        (lambda x, y: ((x * y).sum(0, keepdim=True), x.sum(0), (x + y).tanh()), (x, y)),
        (lambda x, y: (torch.softmax(x, -1) * y).sum(0), (x, y)),
        (lambda x: x.view(64, 64, 16, 64).sum((0, 1)), (x,)),
        (lambda x: x.view(512, 8, 1024).tanh().sum((0, 1)), (x,)),
        (lambda x: x.view(128, 32, 1024).transpose(0, 1).exp().sum((0, 1)), (x,)),
        (lambda x, w: (x * w).view(64, 64, 1024).sum(1) + (x * w).view(64, 64, 1024).sum(0), (x, w)),
        (lambda v: v.sum((0, 1)), (v,)),
        (lambda x: x.double().square().sum(0), (x,)),
        (lambda x: (x > 0).sum(0), (x,)),
        (lambda x: x.clone().fill_(-0.0).sum(0), (x,)),
        (lambda x: x[:, :1000].neg().sum(0), (x.repeat(2, 1),)),
    ]
    for i, (program, inputs) in enumerate(programs):
        cutaway.reset()
        with torch.no_grad():
            expected, got = program(*inputs), cutaway.compile(program, backend="native:wait", fullgraph=True)(*inputs)
            exact = program(*(t.double() for t in inputs))
        expected, got, exact = (t if isinstance(t, tuple) else (t,) for t in (expected, got, exact))
        for e, g, r in zip(expected, got, exact, strict=True):
            assert (e.dtype, e.shape, e.stride()) == (g.dtype, g.shape, g.stride()), i
            assert torch.equal(e, g) if not e.is_floating_point() else cutaway.same(e, g, r.double(), tol=1e-4), i
    leaves = [t.clone().requires_grad_() for t in (x, w, b)]
    program = lambda x, w, b: torch.nn.functional.layer_norm(x, (1024,), w, b)  # noqa: E731
    cutaway.reset()
    results = []
    for f, given in (
        (program, leaves),
        (cutaway.compile(program, backend="native:wait"), leaves),
        (program, [t.detach().double().requires_grad_() for t in leaves]),
    ):
        results.append(torch.autograd.grad(f(*given), given, y.to(given[0].dtype)))
    for e, g, r in zip(*results, strict=True):
        assert cutaway.same(e, g, r, tol=1e-4)
    one = cutaway.compile(lambda x, y: ((x * y).sum(0), x.sum(0)), backend="native:wait")
    alone = one(x, y)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1 if threads > 1 else 2)
        assert all(torch.equal(p, q) for p, q in zip(alone, one(x, y), strict=True))
    finally:
        torch.set_num_threads(threads)
