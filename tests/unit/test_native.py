"""The backend native: fused kernels against eager and an fp64 run of it."""

import itertools
import math
import pathlib

import cutaway
import pytest
import torch
import torch.nn.functional as F

from tests.random import native_graphs

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-3, -1e-3, 1e-30, -1e-30, 1e-40, 1e-44, 10.0, -10.0, 88.0, 89.5, -88.0, -104.5, 1e4, -1e4, 1e10, -1e10, 3e38, math.inf, -math.inf, math.nan]  # fmt: skip


def floats(dtype, seed=0):
    """Special values and random ones of many sizes, 301 in all: not a multiple of any vector."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.randn(301 - len(SPECIAL), generator=generator, dtype=F64)
    scale = torch.randint(-3, 4, spread.shape, generator=generator).double()
    return torch.cat([torch.tensor(SPECIAL, dtype=F64), spread * 10**scale]).to(dtype)


def compiled(f, lanes=0):
    cutaway.reset()
    return cutaway.compile(f, backend=f"native:wait:lanes={lanes}" if lanes else "native:wait", fullgraph=True)


def lanes_here():
    """Those that this processor has: text for another one would not run."""
    words = set(pathlib.Path("/proc/cpuinfo").read_text().split())
    return [
        4,
        *([8] if {"avx2", "fma"} <= words else []),
        *([16] if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= words else []),
    ]


def same(expected, got, reference, what):
    """Equal where the results are whole numbers or truths; as near to fp64 as eager, or within two units of it, where they are floats."""
    assert expected.dtype == got.dtype and expected.shape == got.shape and expected.stride() == got.stride(), what
    if not expected.is_floating_point():
        assert torch.equal(expected, got), what
        return
    e, g, r = expected.double(), got.double(), reference.double()
    # Eager's own vectors give nan where fp64 does not (gelu of infinity): either is right.
    odd = (e.isnan() != g.isnan()) & (g.isnan() != r.isnan())
    assert not odd.any(), f"{what}: nan at {odd.nonzero()[:4].tolist()}"
    wrong_end = (e.isinf() | g.isinf()) & (e != g)
    unit = torch.finfo(expected.dtype).eps
    near = (g - e).abs() <= 4 * unit * e.abs() + torch.finfo(expected.dtype).tiny * 4
    as_good = (g - r).abs() <= 2 * (e - r).abs() + 4 * unit * r.abs()
    bad = ~(near | as_good | e.isnan()) & ~(e == g)
    bad |= wrong_end & ~as_good & (g != r)
    bad &= ~(e.isnan() & (g == r))
    assert not bad.any(), (
        f"{what}: {[(i.tolist(), e[tuple(i)].item(), g[tuple(i)].item(), r[tuple(i)].item()) for i in bad.nonzero()[:3]]}"
    )


UNARY = (
    {
        name: getattr(torch, name)
        for name in "neg abs sign sgn reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh asinh acosh atanh tanh erf erfc sigmoid floor ceil round trunc relu".split()  # fmt: skip
    }
    | {
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
        "pow2": lambda x: x**2,
        "pow3": lambda x: x**3,
        "pow_half": lambda x: x**0.5,
        "pow_minus_half": lambda x: x**-0.5,
        "pow_minus_1": lambda x: x**-1,
        "pow_minus_2": lambda x: x**-2,
        "pow_other": lambda x: x**1.7,
        "pow_0": lambda x: x**0,
        "add": lambda x: x + 1.5,
        "sub": lambda x: x - 3,
        "rsub": lambda x: 2 - x,
        "mul": lambda x: x * 0.1,
        "div": lambda x: x / 3,
        "clamp": lambda x: x.clamp(-1, 2),
        "clamp_min": lambda x: x.clamp(min=0.5),
        "clamp_max": lambda x: x.clamp(max=0.5),
        "where": lambda x: torch.where(x > 0, x, x * 2),
        "masked_fill": lambda x: x.masked_fill(x < 0, 7.0),
        "clone": lambda x: x.clone(),
        "to_f32": lambda x: x.float() + 1,
        "to_f64": lambda x: x.double() + 1,
        "to_bf16": lambda x: x.bfloat16(),
        "to_f16": lambda x: x.half(),
        "isnan": torch.isnan,
        "logical_not": torch.logical_not,
        "gt": lambda x: x > 0.5,
        "eq": lambda x: x == 0,
        "ne": lambda x: x != 1,
    }
)
BINARY = {
    "add": torch.add,
    "add_alpha": lambda x, y: torch.add(x, y, alpha=0.3),
    "sub": torch.sub,
    "sub_alpha": lambda x, y: torch.sub(x, y, alpha=-2),
    "mul": torch.mul,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "atan2": torch.atan2,
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.5),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=0.5),
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "eq": torch.eq,
    "ne": torch.ne,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "where": lambda x, y: torch.where(x < y, x, y),
}


@pytest.mark.parametrize("lanes", lanes_here())
@pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)
def test_every_pointwise_rule_of_one_operand(dtype, lanes):
    def all_of_them(x):
        return [f(x) for f in UNARY.values()]

    x = floats(dtype)
    got = compiled(all_of_them, lanes)(x)
    for name, e, g, r in zip(UNARY, all_of_them(x), got, all_of_them(x.double()), strict=True):
        same(e, g, r, name)


@pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)
def test_every_pointwise_rule_of_two_operands(dtype):
    def all_of_them(x, y):
        return [f(x, y) for f in BINARY.values()]

    pairs = list(itertools.product(SPECIAL, SPECIAL))
    x, y = (torch.tensor(side, dtype=F64).to(dtype) for side in zip(*pairs, strict=True))
    got = compiled(all_of_them)(x, y)
    for name, e, g, r in zip(BINARY, all_of_them(x, y), got, all_of_them(x.double(), y.double()), strict=True):
        same(e, g, r, name)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool], ids=str)
def test_integers(dtype):
    def program(x, y, z):
        out = [
            x == y,
            x < y,
            x + z,
            torch.where(x == 1, z, y.float()),
            x.float() * 2,
            x & y,
            x | y,
            x ^ y,
            ~x,
            x.to(torch.int64),
            x.bool(),
        ]
        if dtype != torch.bool:
            out += [
                x + y,
                x - y,
                x * y,
                x * 2,
                -x if dtype != torch.uint8 else x,
                x.abs(),
                torch.maximum(x, y),
                x.clamp(1, 5),
                x / y,
                x > 2.5,
            ]
        return out

    info = None if dtype == torch.bool else torch.iinfo(dtype)
    values = [0, 1, 2, 3, 5, 7] + ([] if info is None else [info.max, info.min, info.max - 1, info.min + 1])
    x, y = (torch.tensor(side).to(dtype) for side in zip(*itertools.product(values, values), strict=True))
    z = torch.linspace(-2, 2, len(x))
    got = compiled(program)(x, y, z)
    for i, (e, g) in enumerate(zip(program(x, y, z), got, strict=True)):
        same(e, g, e, f"result {i}")


SHAPES = [(), (1,), (7,), (3, 5), (4, 1, 6), (2, 3, 4, 5), (1, 300), (33, 17), (2, 64, 48), (5000,), (3, 4100)]


@pytest.mark.parametrize("lanes", lanes_here())
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes_strides_and_broadcasting(shape, lanes):
    def program(x, y, row, column, one):
        z = x + y.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x + y
        out = [z * 2, (z + row).sin(), z * column - one, z.reshape(-1) * 3, x.unsqueeze(0).expand(2, *x.shape) + 1]
        if x.dim() > 1:
            out += [
                x.transpose(0, -1) * 2 + 1,
                (x * 2).transpose(0, 1) + y.transpose(0, 1),
                x[..., ::2] * 3,
                x[1:] + 1,
                (x + 1).flatten(0, 1) * 2,
            ]
            out += [part * 2 for part in x.split(2, dim=-1)[:3]]
            out += [x.select(0, 0) - y.select(0, -1)]
        return out

    torch.manual_seed(0)
    x, y = torch.randn(shape), torch.randn(shape)
    row = torch.randn(shape[-1:]) if shape else torch.randn(())
    column = torch.randn((*shape[:-1], 1)) if shape else torch.randn(())
    got = compiled(program, lanes)(x, y, row, column, torch.tensor(0.5))
    for i, (e, g) in enumerate(zip(program(x, y, row, column, torch.tensor(0.5)), got, strict=True)):
        same(e, g, e, f"result {i}")


REDUCTIONS = {
    "sum": lambda x, d, k: x.sum(d, keepdim=k),
    "mean": lambda x, d, k: x.mean(d, keepdim=k),
    "amax": lambda x, d, k: x.amax(d, keepdim=k),
    "amin": lambda x, d, k: x.amin(d, keepdim=k),
    "sum of squares": lambda x, d, k: (x * x).sum(d, keepdim=k),
    "sum in fp64": lambda x, d, k: x.sum(d, keepdim=k, dtype=F64),
    "any": lambda x, d, k: (x > 2.9).any(d, keepdim=k) if isinstance(d, int) else (x > 2.9).sum(d, keepdim=k),
    "all": lambda x, d, k: (x > -2.9).all(d, keepdim=k) if isinstance(d, int) else (x > 0).sum(d, keepdim=k),
    "centred": lambda x, d, k: x - x.mean(d, keepdim=True),
    "norm": lambda x, d, k: x * (x.pow(2).mean(d, keepdim=True) + 1e-6).rsqrt(),
}


@pytest.mark.parametrize("dtype", [F32, F64, BF16], ids=str)
@pytest.mark.parametrize(
    "shape", [(3, 5), (1, 40), (40, 1), (6, 7, 33), (2, 3, 4, 64), (130, 257), (2, 20000), (300, 64)], ids=str
)
def test_reductions_over_any_dimensions(shape, dtype):
    choices = [d for n in (1, 2, len(shape)) for d in itertools.combinations(range(len(shape)), n)]
    choices = [d[0] if len(d) == 1 else d for d in dict.fromkeys(choices)]

    def program(x):
        return [f(x, d, k) for f in REDUCTIONS.values() for d in choices for k in (False, True)]

    torch.manual_seed(0)
    x = torch.randn(shape, dtype=F64).to(dtype)
    got = compiled(program)(x)
    names = [f"{n} over {d}, keepdim {k}" for n in REDUCTIONS for d in choices for k in (False, True)]
    for name, e, g, r in zip(names, program(x), got, program(x.double()), strict=True):
        same_sum(e, g, r, name)


def same_sum(e, g, r, what):
    assert e.dtype == g.dtype and e.shape == g.shape, what
    if not e.is_floating_point():
        assert torch.equal(e, g), what
        return
    assert cutaway.same(e, g, r, tol=1e-4 if e.dtype in (F32, F64) else 1e-2, equal_nan=True), (
        f"{what}: {(e.double() - g.double()).abs().max()}"
    )


@pytest.mark.parametrize("lanes", lanes_here())
def test_reductions_of_truths_and_integers(lanes):
    def program(x):
        t, i = x > 0, (x * 100).round().clamp(-200, 200).to(torch.int32)
        out = [f(d) for f in (t.amax, t.amin, t.any, t.all, t.sum, i.amax, i.amin, i.sum) for d in (0, 1)]
        return [
            *out,
            t.max(),
            t.min(),
            i.max(),
            i.sum(),
            i.float().mean(1),
            x.sum(1, dtype=torch.int64),
            t.to(torch.float32).amax(1),
        ]

    torch.manual_seed(0)
    x = torch.randn(9, 37)
    x[0], x[1] = -1, 1
    for got, expected in zip(compiled(program, lanes)(x), program(x), strict=True):
        assert got.dtype == expected.dtype and torch.equal(got, expected)


@pytest.mark.parametrize("lanes", lanes_here())
def test_rows_with_special_values(lanes):
    def program(x):
        return [
            x.amax(1),
            x.amin(1),
            x.sum(1),
            torch.softmax(x, 1),
            torch.log_softmax(x, 1),
            x.mean(0),
            F.layer_norm(x, (37,)),
        ]

    torch.manual_seed(0)
    x = torch.randn(8, 37)
    x[0, 3], x[1, 36], x[2, 0], x[3], x[4, 20] = math.nan, math.inf, -math.inf, -math.inf, 3e38
    got = compiled(program, lanes)(x)
    for i, (e, g, r) in enumerate(zip(program(x), got, program(x.double()), strict=True)):
        assert torch.equal(e.isnan(), g.isnan()), i
        assert torch.allclose(e, g, rtol=2e-5, atol=1e-6, equal_nan=True) or cutaway.same(e, g, r, equal_nan=True), (
            i,
            e,
            g,
        )


MODELS = {
    "norms": lambda: torch.nn.Sequential(torch.nn.Linear(48, 64), torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Linear(64, 48), torch.nn.Softmax(-1)),
    "group norm": lambda: torch.nn.Sequential(torch.nn.Conv1d(6, 8, 3, padding=1), torch.nn.GroupNorm(2, 8), torch.nn.SiLU(), torch.nn.Flatten(1)),
    "tanh": lambda: torch.nn.Sequential(torch.nn.Linear(48, 32), torch.nn.Tanh(), torch.nn.LayerNorm(32), torch.nn.Sigmoid()),
    "batch norm": lambda: torch.nn.Sequential(torch.nn.Linear(48, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(32, 4)),
    "encoder": lambda: torch.nn.TransformerEncoderLayer(48, 4, 96, dropout=0.1, batch_first=True),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_training_steps_are_eagers(name):
    """Three steps with dropout on: masks equal bit for bit, losses and weights to rounding."""

    def train(compile_it):
        torch.manual_seed(0)
        model = MODELS[name]()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        x = {"group norm": torch.randn(5, 6, 10), "encoder": torch.randn(3, 7, 48)}.get(name, torch.randn(9, 48))
        f = cutaway.compile(model, backend="native:wait") if compile_it else model
        losses = []
        for _ in range(3):
            optimiser.zero_grad()
            out = f(x)
            loss = (out * torch.linspace(-1, 1, out.shape[-1])).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
        return torch.stack(losses), [p.detach() for p in model.parameters()]

    cutaway.reset()
    expected, got = train(False), train(True)
    torch.testing.assert_close(got[0], expected[0], rtol=1e-4, atol=1e-6)
    for e, g in zip(expected[1], got[1], strict=True):
        torch.testing.assert_close(g, e, rtol=1e-3, atol=1e-5)


def test_sums_do_not_depend_on_the_number_of_threads():
    def program(x):
        return torch.softmax(x, -1).sum(0), x.mean(1), F.layer_norm(x, (513,))

    torch.manual_seed(0)
    x = torch.randn(700, 513)
    f = compiled(program)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(f(x))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_random_programs_agree_with_eager(first):
    """A fixed part of `make test-native`, gradients included."""
    for seed in range(first, first + 15):
        assert native_graphs.check(seed) == "", f"python -m tests.random.native_graphs --show {seed}"
