"""Every operator of torch's database recorded twice: what the memo above autograd answers is what the operator gave."""

import pytest
import torch
from cutaway import trace
from torch.utils._pytree import tree_flatten, tree_unflatten

database = pytest.importorskip("torch.testing._internal.common_methods_invocations")


def recorded(sample, operator):
    """The graph, and of every tensor that the program returned what a recording may not get wrong."""
    leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    shown = []

    def program(*given):
        rest = iter(given)
        input, args, kwargs = tree_unflatten([next(rest) if isinstance(x, torch.Tensor) else x for x in leaves], spec)
        out = operator(input, *args, **kwargs)
        for t in tree_flatten(out)[0]:
            if isinstance(t, torch.Tensor):
                shown.append((t.shape, t.stride(), t.dtype, t.requires_grad, t.is_leaf))
        return out

    return str(trace.record(program, tensors)), shown


@pytest.mark.filterwarnings("ignore")
def test_a_second_recording_is_the_first():
    compared = hits = 0
    for op in database.op_db:
        if torch.float32 not in op.dtypes:
            continue
        sample = next(iter(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)), None)
        if sample is None or any(
            isinstance(x, torch.Tensor) and x.layout != torch.strided for x in tree_flatten(sample.input)[0]
        ):
            continue
        try:
            first = recorded(sample, op.op)
        except Exception:  # refused, or eager's own error: other tests say which may be
            continue
        before = trace.shape_counters()["memo_hits"]
        assert recorded(sample, op.op) == first, op.name
        hits += trace.shape_counters()["memo_hits"] > before
        compared += 1
    assert compared > 500 and hits > 300
