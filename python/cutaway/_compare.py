"""`same` and `same_two_models`: the contract of torch's functions of these names, with a verdict in place of a bool."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from ._failure import one_line
from ._native import Error, Verdict
from ._native import same as _same
from ._run import cast_to_fp64, clone_inputs_retaining_gradness, result_names, run_fwd_maybe_bwd, same_random_state

__all__ = ["Verdict", "same", "same_two_models"]


def same(
    ref: Any,
    res: Any,
    fp64_ref: Any = None,
    cos_similarity: bool = False,
    tol: float = 1e-4,
    equal_nan: bool = False,
    exact_dtype: bool = True,
    relax_numpy_equality: bool = False,
    ignore_non_fp: bool = False,
    log_error: Callable[..., None] | None = None,
    use_larger_multiplier_for_smaller_tensor: bool = False,
    force_max_multiplier: bool = False,
    use_iou_for_bool: bool = False,
    iou_threshold: float = 0.99,
    *,
    exact_shape: bool = False,
    rules: str = "common",
) -> Verdict:
    """Compare a result with a reference, and with a reference in fp64 where there is one.

    The verdict is true where torch's `same` is true, and says why, but for this: where NaN or an infinity of the reference
    would make torch's pass whatever there is, NaN and infinities are compared by place and sign, and errors taken over the
    finite rest. With `rules="torch"` it is torch's answer to the letter. With `rules="cutaway"` the commands' own rules
    decide about tensors: always so, and one element that is far off is not hidden by a mean. Where torch's raises (another
    type, other keys, a fake tensor), the verdict is false. `exact_shape` makes another shape wrong; torch broadcasts.
    `log_error` is called with the text of a verdict that is false.
    """
    verdict = _same(
        ref,
        res,
        fp64_ref,
        {
            "cos_similarity": bool(cos_similarity),
            "tol": float(tol),
            "equal_nan": bool(equal_nan),
            "exact_dtype": bool(exact_dtype),
            "relax_numpy_equality": bool(relax_numpy_equality),
            "ignore_non_fp": bool(ignore_non_fp),
            "use_larger_multiplier_for_smaller_tensor": bool(use_larger_multiplier_for_smaller_tensor),
            "force_max_multiplier": bool(force_max_multiplier),
            "use_iou_for_bool": bool(use_iou_for_bool),
            "iou_threshold": float(iou_threshold),
            "exact_shape": bool(exact_shape),
            "rules": rules,
        },
    )
    if log_error is not None and not verdict:
        log_error("%s", verdict)
    return verdict


def same_two_models(
    ref_model: Callable[..., Any],
    compiled: Callable[..., Any],
    inputs: Sequence[Any],
    only_fwd: bool = False,
    *,
    require_fp64: bool = False,
    ignore_non_fp: bool = False,
    tol: float = 1e-3,
    equal_nan: bool = True,
    use_fp64: bool = True,
    seed: int = 1337,
    rules: str = "common",
) -> Verdict:
    """Run a model, its fp64 version and its compiled version on the same inputs and random state, and compare.

    Outputs are compared; unless `only_fwd`, gradients, parameters and buffers too. A compiled model that raises gives
    the verdict "raised", a reference that raises "refused"; the exception is the verdict's attribute `exception`.
    Where the two differ, each runs once more: a side that differs from itself makes the verdict "nondeterministic".
    The models, the inputs and the caller's random state are left as they were. `rules` are those of `same`.
    """

    def run(model: Callable[..., Any], values: Sequence[Any]) -> Any:
        with same_random_state(seed):
            return run_fwd_maybe_bwd(model, values, only_fwd)

    def compare(reference: Any, result: Any, fp64: Any) -> Verdict:
        options = {
            "tol": float(tol),
            "equal_nan": equal_nan,
            "ignore_non_fp": ignore_non_fp,
            "exact_shape": True,
            "rules": rules,
        }
        names = [] if only_fwd else result_names(reference, inputs)
        return _same(reference, result, fp64, options, names)

    def failed(outcome: str, reason: str, error: Exception) -> Verdict:
        verdict = Verdict(outcome, "", f"{reason}: {one_line(error)}")
        verdict.exception = error
        return verdict

    try:
        reference = run(ref_model, inputs)
    except Exception as error:
        return failed("refused", "the reference run raised", error)

    fp64, fp64_error = None, None
    if use_fp64:
        try:
            fp64_model, fp64_inputs = cast_to_fp64(copy.deepcopy(ref_model), clone_inputs_retaining_gradness(inputs))
            fp64 = run(fp64_model, fp64_inputs)
        except Exception as error:
            if require_fp64:
                raise Error(
                    "the fp64 reference could not be computed\n"
                    f"   because: {one_line(error)}\n   try: use_fp64=False, or require_fp64=False"
                ) from error
            fp64_error = error

    try:
        result = run(compiled, inputs)
    except Exception as error:
        return failed("raised", "the compiled run raised", error)

    verdict = compare(reference, result, fp64)
    if verdict.outcome == "wrong":
        for side, model, first in (("reference", ref_model, reference), ("compiled model", compiled, result)):
            again = _same(first, run(model, inputs), None, {"tol": 0.0, "equal_nan": True})
            if not again:
                verdict = verdict.with_outcome(
                    "nondeterministic",
                    f"two runs of the {side} with the same random state differ ({again.path}: {again.reason})",
                )
                break
    if fp64_error is not None:
        verdict = verdict.with_outcome(
            verdict.outcome, f"{verdict.reason}; without an fp64 reference, which raised {one_line(fp64_error)}"
        )
        verdict.fp64_exception = fp64_error
    return verdict
