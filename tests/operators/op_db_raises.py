"""One operator of torch's operator database on valid and on invalid arguments, inside a try block and outside of one, compiled
and eager; `tests/operators/op_db.py --raises` runs it on all of them.

An exception counts as the program's only when eager raises it. So the branch that is taken, the type and the words of the exception
and, where there is none, the result must be eager's. Strict mode is on: outside of a block a wrong belief is an error, which
tests/operators/op_db_raises_refusals.txt lists.
"""

from __future__ import annotations

import collections
import copy
import itertools
import re

# Kernels of eager that read memory they were not given when an argument has another shape: they end the process.
CRASHES = {"_segment_reduce.lengths", "_segment_reduce.offsets"}
FALSE_ERROR = "fake tensors raise and eager does not"
SAMPLES = 4
ERROR_SAMPLES = 12


def in_block(call):
    def program(args, kwargs):
        try:
            result = call(*args, **kwargs)
        except Exception as error:
            return "except", type(error).__name__, str(error)
        return "try", result

    return program


def alone(call):
    def program(args, kwargs):
        return call(*args, **kwargs)

    return program


def variants(op):
    """Name and callable: the function, the method, the method that writes in place."""
    yield "function", op.op
    for name in ("method_variant", "inplace_variant"):
        if getattr(op, name, None) is not None:
            yield name.removesuffix("_variant"), getattr(op, name)


def spoiled(args, kwargs):
    """What no operator takes, or few do: another type, dtype or number of dimensions, one argument too many."""
    import torch

    first, *rest = args
    yield "text", ("text", *rest), kwargs
    yield "None", (None, *rest), kwargs
    yield "one more", (first, *rest, "more"), kwargs
    yield "keyword", args, {**kwargs, "no_such_keyword": 1}
    if rest:
        yield "text second", (first, "text", *rest[1:]), kwargs
        yield "half second", (first, 0.5, *rest[1:]), kwargs
    if isinstance(first, torch.Tensor):
        yield "list", ([1, 2], *rest), kwargs
        for dtype in (torch.bool, torch.complex64, torch.int32):
            if first.dtype != dtype:
                yield str(dtype), (first.detach().to(dtype), *rest), kwargs
        yield "0-d", (first.detach().new_zeros(()), *rest), kwargs
        yield "6-d", (first.detach().reshape(first.shape + (1,) * max(0, 6 - first.dim())), *rest), kwargs
        yield "empty", (first.detach().new_zeros((0,)), *rest), kwargs
        if first.dim():
            yield (
                "longer",
                (torch.cat([first.detach(), first.detach().narrow(-1, 0, min(1, first.size(-1)))], -1), *rest),
                kwargs,
            )


def cases(name, op, dtype):
    """(what it is, arguments, keywords): samples, the last of them spoiled in some ways, and those that the database says to raise."""
    samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES))
    for number, sample in enumerate(samples):
        yield f"sample {number}", (sample.input, *sample.args), sample.kwargs
    if samples and name not in CRASHES:
        args, kwargs = (samples[-1].input, *samples[-1].args), samples[-1].kwargs
        for what, *call in spoiled(args, kwargs):
            yield (what, *call)
    if op.error_inputs_func is not None:
        for number, error in enumerate(itertools.islice(op.error_inputs("cpu"), ERROR_SAMPLES)):
            sample = error.sample_input
            yield f"error {number}", (sample.input, *sample.args), sample.kwargs


def fresh(value):
    """A copy; tensors that are one tensor, or share memory, still do."""
    import torch
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten(value)
    memo = {}
    copies = [
        memo.setdefault(id(leaf), leaf.detach().clone(memory_format=torch.preserve_format))
        if isinstance(leaf, torch.Tensor)
        else copy.copy(leaf)
        if isinstance(leaf, list)
        else leaf
        for leaf in leaves
    ]
    return pytree.tree_unflatten(copies, spec)


def outcome(program, args, kwargs, seed):
    """The result, what the arguments hold afterwards, or the exception."""
    import torch

    given = fresh((tuple(args), dict(kwargs)))
    torch.manual_seed(seed)
    try:
        result = program(*given)
    except Exception as error:
        if getattr(error, "reason_id", "") == "raises-while-traced":
            return FALSE_ERROR, given
        return ("raises", type(error).__name__, re.sub(r"0x[0-9a-f]+", "0x", str(error))), given
    finally:
        torch._C._set_grad_enabled(True)
    return result, given


def differs(expected, got, metadata_only, bits_equal):
    import torch
    from torch.utils import _pytree as pytree

    a, a_spec = pytree.tree_flatten(expected)
    b, b_spec = pytree.tree_flatten(got)
    if a_spec != b_spec:
        return f"{str(expected)[:200]} and {str(got)[:200]}"
    for x, y in zip(a, b, strict=True):
        if isinstance(x, (torch.Tensor, int, float, complex, str, bool, type(None))):
            if problem := bits_equal(x, y, metadata_only or getattr(x, "is_meta", False)):
                return f"{problem}: {str(expected)[:120]} and {str(got)[:120]}"
        elif type(x) is not type(y):
            return f"{type(x).__name__} and {type(y).__name__}"
    return ""


def check_operator(name, op, helpers, verbose=False):
    """One record a dtype, as tests/operators/op_db.py prints them."""
    import warnings

    import cutaway

    warnings.simplefilter("ignore")
    for dtype in helpers.chosen_dtypes(name, op):
        passed, refused, failed = 0, collections.Counter(), []
        try:
            all_cases = list(cases(name, op, dtype))
        except Exception as e:
            all_cases = []
            refused[f"no samples: {type(e).__name__}: {helpers.first_line(e)}"] += 1
        for variant, call in variants(op):
            for what, args, kwargs in all_cases:
                for form in (in_block, alone):
                    program = form(call)
                    first, given = outcome(program, args, kwargs, helpers.SEED)
                    again, _ = outcome(program, args, kwargs, helpers.SEED)
                    metadata_only = name in helpers.UNINITIALISED or bool(
                        differs(first, again, False, helpers.bits_equal)
                    )
                    cutaway.reset()
                    with cutaway.options(strict=True):
                        got, given_too = outcome(
                            cutaway.compile(form(call), backend="eager"), args, kwargs, helpers.SEED
                        )
                    if got == FALSE_ERROR:
                        refused[f"{variant}: {FALSE_ERROR}"] += 1
                        continue
                    problem = differs(first, got, metadata_only, helpers.bits_equal) or (
                        ""
                        if metadata_only
                        else differs(given, given_too, False, helpers.bits_equal) and "what is left of the arguments"
                    )
                    if problem:
                        failed.append(f"{variant}, {what}, {form.__name__}: {problem}")
                        if verbose:
                            print(failed[-1], flush=True)
                    else:
                        passed += 1
        yield {
            "case": f"{name} {str(dtype).removeprefix('torch.')} raises",
            "passed": passed,
            "refused": dict(refused),
            "failed": failed,
        }
