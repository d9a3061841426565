"""One sample of torch's operator database through ahead-of-time autograd; `tests/operators/op_db.py --aot` runs it on all of them.

The program is recorded above autograd on fake tensors, becomes a joint graph, is split, and runs: outputs, what the inputs hold
afterwards and every gradient must be eager's, bit for bit or, where sums come in another order, as near to an fp64 run as eager's.
"""

from __future__ import annotations

import os
import re


def written_arguments(text):
    """Operators of a printed graph that write to an argument."""
    import torch

    found = set()
    for target in set(re.findall(r"= ([\w.]+)\(", text)):
        namespace, name, *overload = target.split(".")
        packet = getattr(getattr(torch.ops, namespace), name)
        if getattr(packet, overload[0] if overload else "default")._schema.is_mutable:
            found.add(target)
    return found


def reason(error, helpers):
    """What was refused, without the line of this file that asked for it."""
    return re.sub(r" \(at .*", "", helpers.first_line(error))


def as_fp64(value):
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    if value.is_floating_point():
        return value.double()
    return value.to(torch.complex128) if value.is_complex() else value


def check(expected, got, reference, what, metadata_only, bits_equal):
    """Empty when equal or as good as eager, else what differs."""
    import cutaway
    import torch

    problem = bits_equal(expected, got, metadata_only)
    if not problem:
        return ""
    if (
        isinstance(expected, torch.Tensor)
        and isinstance(got, torch.Tensor)
        and "values" in problem
        and reference is not None
    ):
        tolerance = (
            1e-4 if expected.dtype in (torch.float32, torch.complex64, torch.float64, torch.complex128) else 1e-2
        )
        if cutaway.same(expected, got, reference.to(as_fp64(expected).dtype), tol=tolerance, equal_nan=True):
            return ""
    return f"{what}: {problem}"


def run_case(name, op, sample, helpers):
    """Nothing when the graphs do what eager does; raises helpers.Refused, or AssertionError with the reason."""
    import cutaway
    import torch
    from torch.utils import _pytree as pytree

    call, tensors, needs_grad = helpers.as_function(op, sample)

    def program(*flat):
        return pytree.tree_leaves(sample.output_process_fn_grad(call(*flat)))

    def fresh(convert=lambda t: t):
        copies = cutaway.clone_keeping_aliases(tensors)
        return [convert(t).detach().requires_grad_(g) for t, g in zip(copies, needs_grad, strict=True)]

    def run(f, inputs, cotangents):
        """Outputs, inputs afterwards, gradients."""
        torch.manual_seed(helpers.SEED)
        kept = list(inputs)
        outputs = list(f(*inputs))
        ends = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
        if len(cotangents) < len(ends):
            generator = torch.Generator().manual_seed(1)
            for e in ends:
                if e.layout != torch.strided:
                    raise helpers.Refused("a sparse tensor is an output")
                cotangents.append(
                    torch.randn(e.shape, generator=generator, dtype=torch.float64).to(e.dtype).to(e.device)
                )
        wanted = [t for t, g in zip(kept, needs_grad, strict=True) if g]
        given = [c.to(e.dtype) for c, e in zip(cotangents, ends, strict=True)]
        gradients = torch.autograd.grad(ends, wanted, given, allow_unused=True) if ends else []
        return outputs, kept, gradients

    cotangents = []
    try:
        expected = run(program, fresh(), cotangents)
    except helpers.Refused:
        raise
    except Exception as e:
        raise helpers.Refused(f"eager raises {type(e).__name__}: {helpers.first_line(e)}") from None
    if not cotangents and not os.environ.get("CUTAWAY_TEST_DTYPES"):
        return
    try:
        torch.manual_seed(helpers.SEED)
        backend = os.environ.get("CUTAWAY_TEST_BACKEND", "eager")
        compiled = cutaway.aot(program, fresh(), name=re.sub(r"\W", "_", name), backend=backend)
    except cutaway.Error as e:
        raise helpers.Refused(reason(e, helpers)) from None
    except RuntimeError as e:  # NotImplementedError is one; "a fake tensor has no data" has no type of its own
        if not isinstance(e, NotImplementedError) and "a fake tensor has no data" not in str(e):
            raise
        raise helpers.Refused(f"recording: {reason(e, helpers)}") from None
    mutable = written_arguments(str(compiled.joint))
    assert not mutable, f"the joint graph writes: {', '.join(sorted(mutable))}"
    got = run(compiled, fresh(), cotangents)
    try:
        reference = run(program, fresh(as_fp64), [as_fp64(c) for c in cotangents])
    except Exception:  # an operator without fp64, or one that cares for the dtypes of its arguments
        reference = None
    problems = []
    for part, (es, gs) in enumerate(zip(expected, got, strict=True)):
        assert len(es) == len(gs), f"{len(gs)} {('outputs', 'inputs', 'gradients')[part]}, eager has {len(es)}"
        for i, (e, g) in enumerate(zip(es, gs, strict=True)):
            what = f"{('output', 'input', 'gradient')[part]} {i}"
            r = reference[part][i] if reference and len(reference[part]) == len(es) else None
            problems.append(check(e, g, r, what, name in helpers.UNINITIALISED, helpers.bits_equal))
            if part == 0 and isinstance(e, torch.Tensor) and isinstance(g, torch.Tensor):
                same = e.requires_grad == g.requires_grad and (e.stride() == g.stride() or e.numel() == 0)
                problems.append("" if same else f"{what}: strides {e.stride()} and {g.stride()}, or requires_grad")
    problems = [p for p in problems if p]
    if problems and not helpers.is_repeatable(
        lambda *a: run(program, a, cotangents), fresh, pytree.tree_leaves(expected)
    ):
        raise helpers.Refused("eager itself is not repeatable: it reads memory that nothing wrote")
    assert not problems, "; ".join(problems)
