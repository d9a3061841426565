"""Shapes, strides and dtypes found on fake tensors against eager, over torch's operator database."""

import os

import pytest
import torch
from cutaway import trace
from torch.utils import _pytree as pytree

pytest.importorskip("expecttest")  # torch's operator database needs it
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

# A fixed tenth; CUTAWAY_FULL=1 runs all.
STEP = 1 if os.environ.get("CUTAWAY_FULL") == "1" else 10
SAMPLES = 20


# Refused by name: it depends on data, leaves strided tensors, or torch has no rule for it either.
REFUSALS = ("fake tensor", "cannot be traced", "is not possible", "no fake impl or Meta kernel")


def described(value):
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), tuple(value.stride()) if value.numel() > 1 else None, value.dtype, value.device
    return type(value)


def run(op, dtype):
    """Number of samples compared, and the differences found."""
    compared, differences = 0, []
    for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        if i >= SAMPLES:
            break
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        if any(t.layout != torch.strided for t in tensors):
            continue
        try:
            expected = op(sample.input, *sample.args, **sample.kwargs)
        except Exception:  # noqa: S112  (not a sample that eager takes)
            continue
        try:
            fakes = iter(trace.make_fakes(tensors))
            faked, args, kwargs = pytree.tree_unflatten(
                [next(fakes) if isinstance(x, torch.Tensor) else x for x in leaves], spec
            )
            with trace.FakeMode():
                result = op(faked, *args, **kwargs)
        except (NotImplementedError, RuntimeError) as e:
            if any(words in str(e) for words in REFUSALS):
                continue
            differences.append((i, str(e).split("\n")[0]))
            continue
        compared += 1
        e, r = [described(x) for x in pytree.tree_leaves(expected)], [described(x) for x in pytree.tree_leaves(result)]
        if e != r:
            differences.append((i, f"eager {e}, fake {r}"))
    return compared, differences


def has_own_rule(op):
    names = {n.split("::")[1].split(".")[0] for n in trace.shape_rule_names()}
    return op.aten_name in names or op.name.split(".")[-1] in names


CASES = [
    (op, torch.float32)
    for i, op in enumerate(op_db)
    if (i % STEP == 0 or has_own_rule(op)) and torch.float32 in op.dtypes
]
CASES += [(op, d) for op in op_db for d in (torch.bfloat16, torch.int64) if has_own_rule(op) and d in op.dtypes]

# Where torch's own meta kernels, reached through the dispatcher, say other strides than its CPU kernels. A rule of ours would end it.
KNOWN = {
    "fft.hfft2": "strides of transforms over dimensions in another order",
    "fft.hfftn": "strides of transforms over dimensions in another order",
    "fft.rfft2": "strides of transforms over dimensions in another order",
    "fft.rfftn": "strides of transforms over dimensions in another order",
    "linalg.eig": "strides of the vectors",
    "nn.functional.max_unpool2d.grad": "strides of channels-last inputs",
    "nonzero_static": "strides of a single column",
}


@pytest.mark.parametrize(
    "op,dtype", CASES, ids=lambda v: v.full_name if hasattr(v, "full_name") else str(v).split(".")[-1]
)
def test_fake_result_is_eager_result(op, dtype):
    _, differences = run(op, dtype)
    if op.full_name in KNOWN:
        if not differences:
            pytest.fail(f"{op.full_name} is as eager now: take it out of KNOWN")
        pytest.xfail(KNOWN[op.full_name])
    assert not differences, differences[:3]
