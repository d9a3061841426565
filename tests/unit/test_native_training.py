"""The backend native: what training is made of. Losses with wrong classes, batch norm with running statistics, scans, steps over lists of tensors."""

import math

import cutaway
import pytest
import torch
import torch.nn.functional as F

FLOATS = [torch.float32, torch.float64, torch.bfloat16]


def compiled(f, **options):
    cutaway.reset()
    return cutaway.compile(f, backend="native:wait", fullgraph=True, **options)


def wide(x):
    return x.detach().double().requires_grad_(x.requires_grad) if x.is_floating_point() else x


def agree(expected, got, exact, tol, what):
    assert (expected.dtype, expected.shape, expected.stride()) == (got.dtype, got.shape, got.stride()), what
    if not expected.is_floating_point():
        assert torch.equal(expected, got), what
        return
    assert torch.equal(expected.isnan(), got.isnan()) and torch.equal(expected.isinf(), got.isinf()), what
    assert cutaway.same(expected, got, exact, tol=tol, equal_nan=True), (
        what,
        (expected.double() - got.double()).abs().max(),
    )


def check(program, *inputs, tol=1e-4, f=None):
    """Results and gradients, beside eager's and those in fp64."""
    runs = []
    for run, given in ((program, inputs), (f or compiled(program), inputs), (program, [wide(x) for x in inputs])):
        given = [
            x.detach().clone().requires_grad_(x.requires_grad) if run is not program or given is not inputs else x
            for x in given
        ]
        out = run(*given)
        out = [out] if isinstance(out, torch.Tensor) else list(out)
        leaves = [x for x in given if x.requires_grad]
        floats = [y for y in out if y.requires_grad]
        if floats and leaves:
            torch.manual_seed(1)
            seeds = [torch.randn(y.shape, dtype=torch.float64).to(y.dtype) for y in floats]
            out += [g for g in torch.autograd.grad(floats, leaves, seeds, allow_unused=True) if g is not None]
        runs.append(out)
    for i, (e, g, r) in enumerate(zip(*runs, strict=True)):
        agree(e, g, r, tol, i)


def tol_of(dtype):
    return 2e-2 if dtype == torch.bfloat16 else 1e-4


# --- losses


REDUCTIONS = ["mean", "sum", "none"]
CASES = [
    ((9, 5), torch.float32),
    ((70, 33), torch.float32),
    ((3, 4, 6), torch.float32),
    ((2, 5, 3, 7), torch.float64),
    ((1, 2), torch.float64),
    ((9, 5), torch.bfloat16),
]


@pytest.mark.parametrize(("shape", "dtype"), CASES, ids=str)
def test_cross_entropy(shape, dtype):
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype).requires_grad_()
    classes = shape[1]
    t = torch.randint(0, classes, (shape[0], *shape[2:]))
    ignored = t.clone()
    ignored.view(-1)[::3] = -100

    def program(x, t, ignored, w):
        out = []
        for r in REDUCTIONS:
            out += [
                F.cross_entropy(x, t, reduction=r),
                F.cross_entropy(x * 2, ignored, reduction=r) * 3,
                F.nll_loss(x, ignored, reduction=r),
            ]
            out += [
                F.cross_entropy(x, t, w, ignore_index=1, reduction=r),
                F.cross_entropy(x, t, label_smoothing=0.1, reduction=r),
            ]
        return out

    check(program, x, t, ignored, torch.rand(classes).to(dtype), tol=tol_of(dtype))


def test_cross_entropy_of_special_values():
    x = torch.randn(6, 5)
    x[0, 0], x[1, 2], x[2], x[3, 1] = math.nan, math.inf, -math.inf, -math.inf
    t = torch.tensor([0, 2, 1, 1, 4, -100])
    check(
        lambda x, t: [F.nll_loss(x, t, reduction="none"), F.cross_entropy(x, t, reduction="none")],
        x.requires_grad_(),
        t,
    )
    # nothing counts: 0 / 0; one dimension; no rows
    check(lambda x, t: F.cross_entropy(x, t), torch.randn(6, 5, requires_grad=True), torch.full((6,), -100))
    check(lambda x, t: F.cross_entropy(x, t), torch.randn(5, requires_grad=True), torch.tensor(3))
    check(lambda x, t: F.cross_entropy(x, t), torch.randn(0, 5, requires_grad=True), torch.zeros(0, dtype=torch.int64))
    # another order in memory
    check(lambda x, t: F.nll_loss(x.t() * 2, t), torch.randn(5, 6, requires_grad=True), t)
    check(
        lambda x, t: F.nll_loss(x.permute(0, 3, 1, 2), t),
        torch.randn(2, 3, 4, 5),
        torch.randint(0, 5, (2, 6, 4))[:, ::2],
    )
    check(lambda x, t: F.nll_loss(x[:, ::2], t), torch.randn(6, 10, requires_grad=True), t)


@pytest.mark.parametrize(("bad", "reduction"), [(5, "mean"), (-1, "sum"), (2**40, "none")])
def test_a_wrong_class_raises_what_eager_raises(bad, reduction):
    programs = [
        lambda x, t: F.cross_entropy(x, t, reduction=reduction) * 2,
        lambda x, t: F.nll_loss(x, t, torch.ones(5), reduction=reduction) * 2,
        lambda x, t: F.nll_loss(x.view(2, 5, 1, 2), t.view(2, 1, 2), reduction=reduction) * 2,
    ]
    x, t = torch.randn(4, 5), torch.tensor([0, 4, 1, 2])
    wrong = torch.tensor([0, bad, 1, 2])
    for program in programs:
        f = compiled(program)
        torch.testing.assert_close(f(x, t), program(x, t))
        with pytest.raises(Exception) as expected:  # noqa: PT011
            program(x, wrong)
        with pytest.raises(type(expected.value)) as got:
            f(x, wrong)
        assert str(got.value).splitlines()[0] == str(expected.value).splitlines()[0]
        torch.testing.assert_close(f(x, t), program(x, t))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_loss_whose_probabilities_nobody_else_wants(dtype, reduction):
    """Without gradients the score of the class alone is read; bits are those of log_softmax and nll_loss one after the other."""
    torch.manual_seed(0)
    x, target = torch.randn(70, 33, dtype=dtype) * 5, torch.randint(0, 33, (70,))
    target[::7] = -100
    x[3, 4], x[5, 6], x[8] = math.inf, -math.inf, -math.inf
    x[10, 2], x[11, target[11]] = math.nan, -math.inf

    def program(x, target):
        return F.cross_entropy(x, target, reduction=reduction)

    f = compiled(program)
    with torch.no_grad():
        check(program, x, target, f=f)
        check(program, torch.randn(70, 33, dtype=dtype), target, f=f)
        check(program, x.t().contiguous().t(), target)
        check(lambda x, target: (F.log_softmax(x, 1), program(x, target)), x, target)
        check(lambda x, target: F.nll_loss(x - x.amax(1, keepdim=True) - x.abs().sum(1, keepdim=True), target, reduction=reduction), x[12:], target[12:])  # fmt: skip
        with pytest.raises(IndexError, match="Target 33 is out of bounds"):
            f(x, target.clone().fill_(33))


def test_which_class_is_the_targets():
    """Places beside one number a row, at both ends of rows that are no multiple of a vector."""
    for columns in (1, 5, 16, 33, 64):
        target = torch.randint(-2, columns + 2, (9,))
        target[0], target[1], target[2] = 2**40, -(2**40), columns - 1
        x = torch.randn(9, columns)
        check(lambda x, t, n=columns: (x.exp() - (torch.arange(n) == t[:, None]).float()) / 64, x, target)
        check(lambda x, t, n=columns: torch.where(t[:, None] == torch.arange(3, n + 3), x, 0), x, target)


def test_quotients_of_powers_of_two():
    for dtype in FLOATS:
        x = torch.tensor([1.5, -0.0, 0.0, math.inf, -math.inf, math.nan, 1e-38, -1e-45, 3e38, 7.0], dtype=dtype)
        for by in (2.0, -0.25, 2.0**100, 2.0**-100, 2.0**126, 2.0**-126, 2.0**127, 2.0**-140, 3.0, 0.0):
            f = compiled(lambda x, by=by: x / by)
            y, z = x / by, f(x)
            assert torch.equal(y.nan_to_num(7), z.nan_to_num(7)) and torch.equal(y.signbit(), z.signbit()) or y.isnan().any() and torch.equal(y.nan_to_num(7), z.nan_to_num(7)), by  # fmt: skip


def test_classes_at_symbolic_sizes():
    def program(x, t):
        return F.cross_entropy(x, t), F.cross_entropy(x, t, reduction="none").exp()

    f = compiled(program, dynamic=True)
    for n, c in ((5, 7), (8, 7), (64, 33), (2, 3), (300, 7)):
        check(program, torch.randn(n, c, requires_grad=True), torch.randint(0, c, (n,)), f=f)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((9, 5), torch.float32), ((33,), torch.float64), ((), torch.float32), ((3, 4, 6), torch.bfloat16)],
    ids=str,
)
def test_losses_of_pairs(shape, dtype):
    torch.manual_seed(0)
    x, y, w = torch.randn(shape).to(dtype).requires_grad_(), torch.rand(shape).to(dtype), torch.rand(shape).to(dtype)

    def program(x, y, w):
        out = []
        for r in REDUCTIONS:
            out += [
                F.binary_cross_entropy_with_logits(x, y, reduction=r),
                F.binary_cross_entropy_with_logits(x, y, w, pos_weight=w * 2, reduction=r),
            ]
            out += [
                F.binary_cross_entropy(x.sigmoid(), y, reduction=r),
                F.binary_cross_entropy(x.sigmoid(), y, w, reduction=r),
            ]
            out += [
                F.smooth_l1_loss(x, y, reduction=r, beta=0.5),
                F.huber_loss(x, y, reduction=r, delta=0.7),
                F.mse_loss(x, y, reduction=r),
                F.l1_loss(x, y, reduction=r),
            ]
            out += [F.kl_div(x, y, reduction=r), F.kl_div(x, -y, reduction=r, log_target=True)]
        return out

    check(program, x, y, w, tol=tol_of(dtype))


def test_losses_of_special_values():
    x = torch.tensor([0.0, 1.0, 0.5, 1e-30, 1.0 - 1e-7, -0.0], requires_grad=True)
    y = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    check(lambda x, y: F.binary_cross_entropy(x, y, reduction="none"), x, y)
    check(lambda x, y: F.binary_cross_entropy(x, y), x, 1 - y)
    z = torch.tensor([math.inf, -math.inf, math.nan, 100.0, -100.0, -0.0], requires_grad=True)
    check(lambda z, y: F.binary_cross_entropy_with_logits(z, y, reduction="none"), z, y)
    check(
        lambda z, y: (F.smooth_l1_loss(z, y, reduction="none"), F.huber_loss(z, y, reduction="none"), F.logsigmoid(z)),
        z,
        y,
    )
    check(lambda x, z: torch.xlogy(x, z), y, z.detach())
    check(lambda x: torch.xlogy(x, x), torch.tensor([0.0, math.inf, math.nan, 1.0, 2.0, -1.0]))


@pytest.mark.parametrize("bad", [1.5, -0.1, math.nan])
def test_a_probability_out_of_range_raises_what_eager_raises(bad):
    def program(x, y):
        return F.binary_cross_entropy(x * 1, y) * 2

    x, y = torch.tensor([0.1, 0.9, 0.5]), torch.tensor([0.0, 1.0, 1.0])
    f = compiled(program)
    torch.testing.assert_close(f(x, y), program(x, y))
    wrong = torch.tensor([0.1, bad, 0.5])
    with pytest.raises(RuntimeError) as expected:
        program(wrong, y)
    with pytest.raises(RuntimeError) as got:
        f(wrong, y)
    assert str(got.value).splitlines()[0] == str(expected.value).splitlines()[0]


ACTIVATIONS = {
    "elu": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.7),
    "softplus": lambda x: F.softplus(x, 2, 5),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.7),
    "relu6": F.relu6,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "mish": F.mish,
    "logsigmoid": F.logsigmoid,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "lerp": lambda x: torch.lerp(x, x.detach() * 2, 0.3) + torch.lerp(x, x.detach() + 1, 0.7),
    "lerp of a tensor": lambda x: torch.lerp(x, x.detach() * 2, x.detach().abs()),
    "isinf": lambda x: torch.where(x.isinf(), 1.0, x),
    "isfinite": lambda x: torch.where(x.isfinite(), x, 0.0),
    "clamp by tensors": lambda x: x.clamp(-x.detach().abs() * 0.5, x.detach().abs() * 0.3 + 0.1),
    "log1p": lambda x: torch.log1p(x),
}


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float16], ids=str)
def test_activations(dtype):
    torch.manual_seed(0)
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        3.0,
        -3.0,
        2.5,
        1e-6,
        -1e-6,
        50.0,
        -50.0,
        math.inf,
        -math.inf,
        0.7,
        -0.5,
        6.0,
        1e-8,
        1e-3,
    ]
    x = torch.cat([torch.randn(40) * 3, torch.tensor(special)]).to(dtype)
    inputs = [x.clone().requires_grad_() for _ in ACTIVATIONS]
    check(
        lambda *xs: [f(x) * 1 for x, f in zip(xs, ACTIVATIONS.values(), strict=True)],
        *inputs,
        tol=tol_of(dtype) if dtype != torch.float16 else 2e-3,
    )
    x[3] = math.nan  # forward: eager's gradients of it differ from place to place
    check(lambda x: [f(x) * 1 for f in ACTIVATIONS.values()], x, tol=tol_of(dtype) if dtype != torch.float16 else 2e-3)


# --- batch norm


NORMED = [
    ((6, 40), torch.float32, True),
    ((5, 3), torch.float32, True),
    ((3, 4, 7), torch.float64, True),
    ((2, 3, 5, 6), torch.float32, False),
    ((1, 4, 9, 3), torch.float32, True),
    ((4, 33, 8, 8), torch.float32, True),
    ((2, 40, 3, 3, 2), torch.float64, False),
]


@pytest.mark.parametrize(("shape", "dtype", "is_affine"), NORMED, ids=str)
def test_batch_norm_in_training(shape, dtype, is_affine):
    torch.manual_seed(0)
    x = (torch.randn(shape, dtype=dtype) * 3 + 5).requires_grad_()
    w, b = (
        (torch.rand(shape[1], dtype=dtype) + 0.5).requires_grad_(),
        torch.randn(shape[1], dtype=dtype, requires_grad=True),
    )

    def program(x, w, b, mean, var):
        y = F.batch_norm(x, mean, var, w if is_affine else None, b if is_affine else None, training=True, momentum=0.3)
        return y.relu()

    f = compiled(program)
    runs = []
    for run in (program, f, program):
        exact = len(runs) == 2
        given = [wide(v) if exact else v.detach().clone().requires_grad_(v.requires_grad) for v in (x, w, b)]
        mean, var = torch.zeros(shape[1], dtype=given[0].dtype), torch.ones(shape[1], dtype=given[0].dtype)
        for _ in range(2):
            y = run(*given, mean, var)
            (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)).sum().backward()
        runs.append([y.detach(), mean, var, *[v.grad for v in given if v.grad is not None]])
    for i, (e, g, r) in enumerate(zip(*runs, strict=True)):
        agree(e, g, r, 1e-4, i)


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "bfloat16"])
def test_batch_norm_of_other_layouts_is_torchs(layout):
    x = torch.randn(4, 8, 5, 6)
    if layout == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last)
    if layout == "transposed":
        x = torch.randn(8, 4, 5, 6).transpose(0, 1)
    if layout == "bfloat16":
        x = x.bfloat16()
    w, b = torch.rand(8, dtype=x.dtype), torch.randn(8).to(x.dtype)
    check(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        x.requires_grad_(),
        w,
        b,
        tol=2e-2 if layout == "bfloat16" else 1e-4,
    )


@pytest.mark.parametrize(
    ("shape", "is_affine"), [((3, 4, 9), True), ((2, 3, 5, 6), False), ((1, 40, 8, 8), True)], ids=str
)
def test_instance_norm(shape, is_affine):
    torch.manual_seed(0)
    x = torch.randn(shape, requires_grad=True)
    w, b = torch.rand(shape[1], requires_grad=True), torch.randn(shape[1], requires_grad=True)
    check(lambda x, w, b: F.instance_norm(x, weight=w if is_affine else None, bias=b if is_affine else None), x, w, b)


def test_batch_norm_at_symbolic_sizes():
    def program(x, w):
        return F.batch_norm(x, None, None, w, training=True).tanh()

    f = compiled(program, dynamic=True)
    for n, h in ((3, 5), (4, 5), (8, 9), (2, 64)):
        check(program, torch.randn(n, 6, h, h, requires_grad=True), torch.rand(6, requires_grad=True), f=f)


def test_norms_of_which_some_gradients_are_wanted():
    x, w, b = torch.randn(4, 6, 5), torch.rand(6), torch.randn(6)

    def program(x, w, b):
        norms = [F.batch_norm(x, None, None, w, b, training=True) * 2, F.layer_norm(x.transpose(1, 2), (6,), w, b) * 2]
        return [*norms, F.batch_norm(x, None, None, w, training=True) * 2, F.layer_norm(x, (5,)) * 2]

    for wanted in ((1, 0, 0), (0, 1, 0), (1, 0, 1)):
        check(program, *[v.clone().requires_grad_(bool(a)) for v, a in zip((x, w, b), wanted, strict=True)])


def test_repeat():
    def program(x, y):
        return [
            x.repeat(2),
            x.repeat(3, 2) + 1,
            y.repeat(2, 3),
            y.t().repeat(1, 2),
            y.repeat(2, 1, 3),
            x.repeat(1),
            y.repeat(0, 1),
            (y * 2).repeat(2, 2) * 2,
        ]

    check(program, torch.randn(5, requires_grad=True), torch.randn(3, 4, requires_grad=True))
    check(lambda x: x.repeat(2, 2), torch.arange(6).view(2, 3))


# --- scans


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.bool], ids=str)
def test_scans(dtype):
    torch.manual_seed(0)
    shapes = [(5, 7), (3, 4, 33), (40,), (1,), (6, 1), (2, 300), (0, 4), (), (130, 16)]
    inputs = [torch.randn(s).to(dtype) if dtype.is_floating_point else torch.randint(0, 3, s).to(dtype) for s in shapes]

    def program(*xs):
        out = []
        for x in xs:
            for d in (-1, 0) if x.dim() else (0,):
                out += [
                    x.cumsum(d),
                    x.cumprod(d),
                    (x * 2).cumsum(d) + 1,
                    x.cumsum(d, dtype=torch.float32),
                    x.cumsum(d, dtype=torch.float64),
                ]
            out += [x.cumsum(-1).sum(-1), x.cumsum(-1) / (x.cumsum(-1).amax(-1, keepdim=True) + 1) if x.numel() else x]
        return out

    check(program, *inputs, tol=tol_of(dtype))
    for x in inputs[:3]:  # in eager's order and precision
        g = compiled(lambda x: [x.cumsum(-1), x.cumprod(-1)])(x)
        assert torch.equal(x.cumsum(-1), g[0])
        assert torch.equal(x.cumprod(-1), g[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_scans_with_gradients(dtype):
    torch.manual_seed(0)
    x = torch.randn(6, 50, dtype=dtype, requires_grad=True)
    y = (torch.rand(4, 20, dtype=dtype) + 0.5).requires_grad_()

    def program(x, y):
        out = [
            (x * 2).cumsum(-1).tanh(),
            x.cumsum(0).tanh(),
            x.logcumsumexp(-1) * 2,
            y.cumprod(-1),
            x.t().cumsum(-1) * 2,
        ]
        return [*out, x.flip(-1).cumsum(-1).flip(-1) * 2, x.softmax(-1).cumsum(-1), x[:, ::2].cumsum(-1) + x[:, ::2]]

    check(program, x, y)


def test_scans_of_special_values():
    x = torch.randn(8, 45)
    x[0, 3], x[1, 20], x[2, 0], x[3], x[4, 7], x[5, 3:5] = (
        math.nan,
        math.inf,
        -math.inf,
        -math.inf,
        3e38,
        torch.tensor([math.inf, -math.inf]),
    )
    x[6, ::2], x[7] = -0.0, -200
    steep, big = torch.linspace(-300, 300, 90).view(3, 30), torch.full((3, 40), 2**62)
    check(
        lambda x, y, z: [
            x.cumsum(-1),
            x.cumprod(-1),
            x.logcumsumexp(-1),
            y.logcumsumexp(-1),
            y.logcumsumexp(0),
            z.cumsum(-1),
            z.cumprod(-1),
        ],
        x,
        steep,
        big,
    )
    check(lambda x: [x.cumsum(-1), x.cumprod(-1), x.logcumsumexp(-1)], x.double())


def test_scans_at_symbolic_sizes():
    def program(x):
        return x.cumsum(-1) * 2, (x.exp()).cumsum(-1).log(), x.logcumsumexp(-1)

    f = compiled(program, dynamic=True)
    for n, c in ((5, 7), (8, 40), (64, 33), (2, 3), (3, 2000)):
        check(program, torch.randn(n, c, requires_grad=True), f=f)


# --- steps of optimisers


SHAPES = [(5, 4), (7,), (), (33, 8), (0,), (3, 2, 2), (128, 64)]


def lists(count, dtype, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [[torch.randn(s, generator=g).to(dtype) for s in SHAPES] for _ in range(count)]


def sgd(p, d, m):
    torch._foreach_mul_(m, 0.9)
    torch._foreach_add_(m, d, alpha=0.9)
    torch._foreach_add_(p, torch._foreach_add(d, m, alpha=0.9), alpha=-0.1)


def adamw(p, d, m, v):
    torch._foreach_mul_(p, 1 - 0.01 * 0.1)
    torch._foreach_lerp_(m, d, 0.1)
    torch._foreach_mul_(v, 0.999)
    torch._foreach_addcmul_(v, d, d, 0.001)
    root = torch._foreach_sqrt(v)
    torch._foreach_div_(root, [0.5] * len(root))
    torch._foreach_add_(root, 1e-8)
    torch._foreach_addcdiv_(p, m, root, [-0.01] * len(root))


def others(p, d, m):
    torch._foreach_maximum_(m, torch._foreach_abs(d))
    torch._foreach_sub_(p, d, alpha=0.5)
    torch._foreach_mul_(p, torch.tensor(0.5))
    torch._foreach_div_(p, torch._foreach_add(torch._foreach_sqrt(torch._foreach_abs(m)), 1.0))
    torch._foreach_clamp_max_(p, 3.0)
    torch._foreach_addcmul_(p, d, m, 0.5)
    torch._foreach_lerp_(p, d, torch._foreach_sigmoid(m))
    torch._foreach_neg_(p)


@pytest.mark.parametrize("step", [sgd, adamw, others], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_steps_over_lists(step, dtype):
    count = step.__code__.co_argcount
    expected, got, exact = (
        lists(count, dtype),
        lists(count, dtype),
        [[x.double() for x in part] for part in lists(count, dtype)],
    )
    if step is adamw:
        for part in (expected, got, exact):
            part[3] = [x.abs() for x in part[3]]
    f = compiled(step)
    for _ in range(3):
        step(*expected)
        f(*got)
        step(*exact)
    for e, g, r in zip(expected, got, exact, strict=True):
        for i, (a, b, c) in enumerate(zip(e, g, r, strict=True)):
            agree(a, b, c, tol_of(dtype), i)
