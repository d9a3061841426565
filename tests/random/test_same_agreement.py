"""On 10,000 random cases `bool(cutaway.same(..., rules="torch"))` is what torch's `same` answers, wherever that does not raise."""

import collections
import inspect
import logging
import random
import warnings

import cutaway
import numpy as np
import pytest
import torch
from torch._dynamo.utils import same as torch_same

CASES = 10_000
TORCH_KNOWS = inspect.signature(torch_same).parameters  # three options came with torch 2.13
NAN, INF = float("nan"), float("inf")
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128, torch.complex32]
SHAPES = [(), (1,), (3,), (0,), (2, 0), (4, 5), (2, 3, 4), (2, 3, 1, 1), (1, 1), (11,), (37, 30), (501,), (1200,)]


def number(rng: random.Random, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    g = torch.Generator().manual_seed(rng.getrandbits(32))
    if dtype is torch.bool:
        return torch.rand(shape, generator=g) < rng.choice([0.5, 0.02, 0.98])
    if dtype in INTEGERS:
        high = rng.choice([3, 100, 100_000])
        t = torch.randint(0, high, shape, generator=g)
        if dtype in (torch.int64, torch.int32) and rng.random() < 0.5:
            t = t - high // 2
        if dtype in (torch.int64, torch.uint64) and rng.random() < 0.2:
            t = t + (1 << 40)
        return t.to(dtype)
    scale = rng.choice([1.0, 1.0, 1e-5, 1e4, 1e-8])
    t = torch.randn(shape, generator=g, dtype=torch.complex128 if dtype.is_complex else torch.float64) * scale
    if rng.random() < 0.1:
        t = torch.zeros_like(t)
    if rng.random() < 0.05:
        t = t * 1e25
    return t.to(dtype)


def special(rng: random.Random, t: torch.Tensor) -> torch.Tensor:
    if t.numel() and t.dtype in FLOATS + COMPLEX:
        flat = t.contiguous().view(-1)
        for _ in range(rng.choice([1, 1, 3])):
            flat[rng.randrange(flat.numel())] = rng.choice([NAN, INF, -INF, 0.0, -0.0])
        return flat.view(t.shape)
    return t


def perturbed(rng: random.Random, t: torch.Tensor, tol: float) -> torch.Tensor:
    """Near `t`: bit-identical, within the tolerance, near its limit, or far off; everywhere or in one place."""
    if t.dtype is torch.bool or t.dtype in INTEGERS:
        if t.numel() == 0 or rng.random() < 0.4:
            return t.clone()
        out = t.clone().contiguous().view(-1)
        for _ in range(rng.choice([1, 1, 5])):
            i = rng.randrange(out.numel())
            value = int(out[i].item())
            out[i] = not value if t.dtype is torch.bool else value - 1 if value > 100 else value + rng.choice([1, 7])
        return out.view(t.shape)
    wide = t.to(torch.complex128 if t.dtype.is_complex else torch.float64)
    size = rng.choice([0.0, 0.0, 1e-9, 0.3, 0.9, 1.0, 1.1, 3.0, 100.0]) * tol
    g = torch.Generator().manual_seed(rng.getrandbits(32))
    noise = (
        size * (1 + wide.abs()) * (torch.rand(t.shape, generator=g, dtype=torch.float64) if rng.random() < 0.5 else 1.0)
    )
    if t.numel() and rng.random() < 0.3:
        mask = torch.zeros(t.numel(), dtype=torch.bool)
        mask[rng.randrange(t.numel())] = True
        noise = noise * mask.view(t.shape)
    return (wide + noise).to(t.dtype)


def viewed(rng: random.Random, t: torch.Tensor) -> torch.Tensor:
    """The same numbers behind other strides, or lazy bits."""
    kind = rng.randrange(6)
    if t.dim() >= 2 and kind == 0:
        return t.transpose(0, 1).contiguous().transpose(0, 1)
    if t.dim() >= 1 and kind == 1 and t.dtype not in FLOAT8:
        gap = torch.zeros(*t.shape[:-1], t.shape[-1] * 2, dtype=t.dtype)
        gap[..., ::2] = t
        return gap[..., ::2]
    if t.dtype in (torch.complex64, torch.complex128) and kind in (2, 3):
        return t.conj().resolve_conj().conj()
    if t.dtype is torch.float32 and kind == 4:
        return torch.complex(torch.zeros_like(t), -t).conj().imag
    return t


def leaf(rng: random.Random, options: dict) -> tuple[object, object, object]:
    kind = rng.random()
    if kind < 0.12:
        a = rng.choice([None, "word", 3, True, False, torch.device("cpu"), 7])
        b = a if rng.random() < 0.8 else rng.choice([None, "word", 3, True, 3.0, torch.tensor(3), np.int64(3)])
        return a, b, rng.choice([None, a])
    if kind < 0.2:
        a = rng.choice([1.5, 0.0, NAN, INF, np.float64(2.5), -1e-6])
        b = (
            a
            if rng.random() < 0.6
            else rng.choice([a + 1e-5, a + 0.1, 1, torch.tensor(1.5), np.float64(1.5), np.float32(1.5)])
        )
        return a, b, rng.choice([None, a, torch.tensor(float(a), dtype=torch.float64)])
    if kind < 0.25:
        a = rng.choice([np.int64(4), np.int32(4), np.float32(0.5), np.float16(0.5), np.uint8(4), np.float32(NAN)])
        b = a if rng.random() < 0.6 else rng.choice([a.item(), type(a)(9), np.float64(0.5), np.int64(4)])
        return a, b, None
    if kind < 0.3:
        dtype = rng.choice([torch.float32, torch.float64, torch.int64, torch.bool, torch.float16])
        a = number(rng, rng.choice(SHAPES), dtype)
        b = perturbed(rng, a, options["tol"])
        fp64 = None if rng.random() < 0.5 or dtype in (torch.bool,) else a.double().numpy()
        return a.numpy(), b.numpy() if rng.random() < 0.9 else b, fp64
    family = rng.random()
    dtypes = (
        FLOATS
        if family < 0.65
        else INTEGERS
        if family < 0.75
        else COMPLEX
        if family < 0.85
        else [torch.bool]
        if family < 0.96
        else FLOAT8
    )
    dtype = rng.choice(dtypes)
    shape = rng.choice(SHAPES)
    exact = number(rng, shape, dtype)
    tol = options["tol"]
    if rng.random() < 0.12:
        exact = special(rng, exact)
    a = exact if rng.random() < 0.4 else perturbed(rng, exact, tol)
    b = perturbed(rng, a if rng.random() < 0.6 else exact, tol)
    if rng.random() < 0.08:
        a = special(rng, a)
    if rng.random() < 0.08:
        b = special(rng, b)
    if rng.random() < 0.08:
        b = b.to(rng.choice(FLOATS + INTEGERS[:5] + [torch.bool, torch.complex64]))
    if rng.random() < 0.04 and b.dim():
        b = b[:1] if rng.random() < 0.5 else b.flatten()
    fp64 = None
    if rng.random() < 0.55 and not dtype.is_complex:
        fp64 = exact.double() if dtype not in FLOAT8 else exact.float().double()
        if rng.random() < 0.1:
            fp64 = special(rng, fp64)
    if rng.random() < 0.06 and dtype in FLOATS + [torch.int64]:
        return a.to_sparse(), b.to_sparse(), None
    return viewed(rng, a), viewed(rng, b), fp64 if fp64 is None else viewed(rng, fp64)


Pair = collections.namedtuple("Pair", ["first", "second"])


class Foo:
    """One of the names that torch compares by attributes."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


def nested(rng: random.Random, options: dict, depth: int) -> tuple[object, object, object]:
    if depth == 0 or rng.random() < 0.55:
        return leaf(rng, options)
    parts = [nested(rng, options, depth - 1) for _ in range(rng.choice([0, 1, 2, 3]))]
    a, b, f = ([p[i] for p in parts] for i in range(3))
    if rng.random() < 0.5:
        f = None  # type: ignore[assignment]
    shape = rng.randrange(7)
    keys = ["logits", "loss", "z"]

    def dictionary(values: list) -> dict:
        return dict(zip(keys, values, strict=False))

    if shape == 0:
        return tuple(a), tuple(b), f
    if shape == 1:
        return collections.deque(a), b, f
    if shape == 2:
        return dictionary(a), dictionary(b), None if f is None else dictionary(f)
    if shape == 3:
        return {"s", len(a)}, {"s", len(a)}, None
    if shape == 4 and len(a) == 2:
        return Pair(*a), Pair(*b), f
    if shape == 5:
        return Foo(**dictionary(a)), Foo(**dictionary(b)), None if f is None else Foo(**dictionary(f))
    if rng.random() < 0.08:
        b = b[:-1]
    return a, b, f


def random_options(rng: random.Random) -> dict:
    options: dict = {"tol": rng.choice([1e-4, 1e-4, 1e-3, 1e-2, 2e-2, 0.1, 0.0])}
    for name, chance in [
        ("equal_nan", 0.5),
        ("cos_similarity", 0.12),
        ("relax_numpy_equality", 0.3),
        ("ignore_non_fp", 0.15),
        ("use_larger_multiplier_for_smaller_tensor", 0.25),
        ("force_max_multiplier", 0.1),
        ("use_iou_for_bool", 0.3),
    ]:
        if rng.random() < chance:
            options[name] = True
    if rng.random() < 0.3:
        options["exact_dtype"] = False
    if rng.random() < 0.2:
        options["iou_threshold"] = rng.choice([0.5, 0.9])
    return {name: value for name, value in options.items() if name in TORCH_KNOWS}


def describe(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} strides {value.stride() if not value.is_sparse else 'sparse'}"
    if isinstance(value, Foo):
        return f"Foo({describe(value.__dict__)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__ + "(" + ", ".join(map(describe, value)) + ")"
    return repr(value)[:80]


@pytest.fixture
def quiet_torch():
    logging.disable(logging.CRITICAL)  # torch's own `same` reports every difference
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def test_agreement_on_random_cases(quiet_torch):
    true = false = raised = 0
    disagreements = []
    for seed in range(CASES):
        rng = random.Random(seed)
        options = random_options(rng)
        ref, res, fp64 = nested(rng, options, depth=2)
        verdict = cutaway.same(ref, res, fp64, rules="torch", **options)
        try:
            expected = bool(torch_same(ref, res, fp64, **options))
        except Exception:
            raised += 1
            continue
        true += expected
        false += not expected
        if bool(verdict) != expected:
            disagreements.append(
                f"seed {seed}: torch says {expected}, {options}\n  ref {describe(ref)}\n"
                f"  res {describe(res)}\n  fp64 {describe(fp64)}\n{verdict}"
            )
    assert not disagreements, f"{len(disagreements)} disagreements\n" + "\n\n".join(disagreements[:10])
    # The cases must be able to fail: both answers are common, and few cases are lost to exceptions.
    assert true > CASES // 5 and false > CASES // 5 and raised < CASES // 4, (true, false, raised)
