"""Modes that a program enters, with and without a graph break inside: what it gives requires grad, and is an inference tensor, as in eager."""

import contextlib

import capture_cases
import pytest
import torch

pytestmark = pytest.mark.skipif(not capture_cases.AVAILABLE, reason="this build has no capture")
MODES = {
    "as it is": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference_mode": torch.inference_mode,
    "no inference_mode": lambda: torch.inference_mode(False),
    "no autocast": lambda: torch.autocast("cpu", enabled=False),
}


def outcome(call, outer, breaks):
    torch.manual_seed(0)
    w, x = torch.randn(3, 3, requires_grad=True), torch.randn(2, 3)
    try:
        with outer():
            results = call(w, x, breaks)
    except RuntimeError as e:  # an inference tensor where autograd wants to save it
        return str(e), []
    flags = [(t.dtype, t.requires_grad, t.is_inference()) for t in results]
    numbers = [t.detach().clone() for t in results]
    if loss := [t.sum() for t in results if t.requires_grad]:
        try:
            sum(loss).backward()
        except RuntimeError as e:
            flags.append(str(e))
        numbers.append(w.grad)
    return flags, numbers


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("inner", MODES)
@pytest.mark.parametrize("outer", MODES)
def test_mode_inside_mode(outer, inner, backend):
    enter, enter_twice = MODES[inner], MODES[outer]

    def program(w, x, breaks):
        a = x @ w
        with enter():
            b = a @ w
            if breaks:
                print(end="")
            with enter_twice():
                if breaks:
                    print(end="")
                c = b @ w
            d = b + c
        e = (a @ w + 1) @ w
        return a, b, c, d, e

    for breaks in (False, True):
        capture_cases.reset()
        expected = outcome(program, MODES[outer], breaks)
        found = outcome(capture_cases.compile(program, backend=backend), MODES[outer], breaks)
        assert found[0] == expected[0]
        torch.testing.assert_close(found[1], expected[1])  # sums of gradients have another order behind a break
