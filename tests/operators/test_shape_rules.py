"""Shapes, strides, dtypes and devices found on fake tensors, forward and backward, over torch's operator database.

The truth is eager; torch's own meta kernels are asked as well, and where they say something else than eager a rule of ours may not
repeat it. `make test` runs a fixed tenth of the operators and those that have a rule of ours, 10 samples each; CUTAWAY_FULL=1 runs
every sample of every operator.
"""

import os

import pytest
import torch
from cutaway import trace
from torch.utils import _pytree as pytree

pytest.importorskip("expecttest")  # torch's operator database needs it
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

FULL = os.environ.get("CUTAWAY_FULL") == "1"
STEP, SAMPLES = (1, 10**9) if FULL else (10, 10)

# Refused by name: it depends on data, leaves strided tensors, or torch has no rule for it either.
REFUSALS = (
    "a fake tensor has none",
    "a fake tensor has no data",  # tensor_split, ctc_loss and max_pool1d read memory in kernels above every dispatch key
    "cannot be traced",
    "is not possible",
    "cannot be mixed with fake tensors",
    "no fake impl or Meta kernel",
)


def described(value):
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), tuple(value.stride()) if value.numel() > 1 else None, value.dtype, value.device
    return type(value)


def differentiable(outputs):
    return [t for t in pytree.tree_leaves(outputs) if isinstance(t, torch.Tensor) and t.requires_grad]


def gradients(outputs, inputs):
    outputs = differentiable(outputs)
    if not outputs or not inputs:
        return []
    return torch.autograd.grad(outputs, inputs, [torch.ones_like(o) for o in outputs], allow_unused=True)


class Sample:
    """One call of an operator: its tensors may be replaced."""

    def __init__(self, op, sample):
        self.op = op
        self.leaves, self.spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.tensors = [x for x in self.leaves if isinstance(x, torch.Tensor)]

    def __call__(self, tensors, backward):
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, torch.Tensor) else x for x in self.leaves]
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        result = self.op(first, *args, **kwargs)
        found = [described(x) for x in pytree.tree_leaves(result)]
        if backward:
            found += [described(x) for x in gradients(result, [t for t in tensors if t.requires_grad])]
        return found


def as_torchs_meta_kernels(sample, backward):
    try:
        found = sample([t.detach().to("meta").requires_grad_(t.requires_grad) for t in sample.tensors], backward)
    except Exception:  # no kernel, or it asks for data
        return None
    return [(*d[:3], torch.device("cpu")) if isinstance(d, tuple) else d for d in found]


def without_strides(found):
    return [(d[0], *d[2:]) if isinstance(d, tuple) else d for d in found]


def run(op, dtype, backward, strides_may_differ=False):
    """Number of samples compared, those refused, those whose strides alone differ where they may, and the other differences."""
    compared, refused, differing_strides, differences = 0, 0, 0, []
    for i, given in enumerate(op.sample_inputs("cpu", dtype, requires_grad=backward)):
        if i >= SAMPLES:
            break
        sample = Sample(op, given)
        if any(t.layout != torch.strided for t in sample.tensors):
            continue
        try:
            expected = sample(sample.tensors, backward)
        except Exception:  # noqa: S112  (not a sample that eager takes)
            continue
        try:
            fakes = trace.make_fakes(sample.tensors)
            with trace.FakeMode():
                found = sample(fakes, backward)
        except (NotImplementedError, RuntimeError) as e:
            if any(words in str(e) for words in REFUSALS):
                refused += 1
            else:
                differences.append((i, str(e).split("\n")[0]))
            continue
        compared += 1
        if expected != found:
            if strides_may_differ and without_strides(expected) == without_strides(found):
                differing_strides += 1
                continue
            meta = as_torchs_meta_kernels(sample, backward)
            differences.append(
                (
                    i,
                    f"eager {expected}, fake {found}, torch's meta kernels {'agree with us' if meta == found else meta}",
                )
            )
    return compared, refused, differing_strides, differences


def has_own_rule(op):
    names = {n.split("::")[1].split(".")[0] for n in trace.shape_rule_names()}
    return op.aten_name in names or op.name.split(".")[-1] in names


CASES = [
    (op, torch.float32, False)
    for i, op in enumerate(op_db)
    if (i % STEP == 0 or has_own_rule(op)) and torch.float32 in op.dtypes
]
CASES += [
    (op, d, False)
    for op in op_db
    for d in (torch.bfloat16, torch.int64)
    if (FULL or has_own_rule(op)) and d in op.dtypes
]
CASES += [
    (op, torch.float32, True)
    for i, op in enumerate(op_db)
    if (i % STEP == 0 or has_own_rule(op)) and op.supports_autograd and torch.float32 in op.backward_dtypes
]

FFT = ("hfft2", "hfftn", "rfft2", "rfftn", "irfft2", "irfftn")
# Where torch's own meta kernels, reached through the dispatcher, say other strides than its CPU kernels. A rule of ours would end it.
KNOWN = {
    "fft.hfft2": "strides of transforms over dimensions in another order",
    "fft.hfftn": "strides of transforms over dimensions in another order",
    "fft.rfft2": "strides of transforms over dimensions in another order",
    "fft.rfftn": "strides of transforms over dimensions in another order",
    "linalg.eig": "strides of the vectors",
    "nn.functional.max_unpool2d.grad": "strides of channels-last inputs",
    "nonzero_static": "strides of a single column",
    "nn.functional.max_unpool2d": "strides of channels-last inputs",
    "nn.functional.max_unpool2d backward": "strides of channels-last inputs",
    "nn.functional.max_unpool2d.grad backward": "strides of channels-last inputs",
    **{f"fft.{n} backward": "strides of transforms over dimensions in another order" for n in FFT},
}


@pytest.mark.parametrize(
    "op,dtype,backward",
    CASES,
    ids=[f"{op.full_name}-{str(d).split('.')[-1]}{'-backward' if b else ''}" for op, d, b in CASES],
)
def test_fake_result_is_eager_result(op, dtype, backward):
    name = op.full_name + (" backward" if backward else "")
    compared, refused, differing_strides, differences = run(op, dtype, backward, strides_may_differ=name in KNOWN)
    assert not differences, differences[:3]
    if not compared:
        pytest.skip(f"all {refused} samples are refused by name" if refused else "eager takes none of the samples")
    if differing_strides:
        pytest.xfail(KNOWN[name])
    if name in KNOWN and FULL and dtype == torch.float32:
        pytest.fail(f"{name} is as eager now: take it out of KNOWN")
