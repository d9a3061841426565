"""Modes that a program enters, with and without a graph break inside: what it gives requires grad, and is an inference tensor, as in eager."""

import contextlib
import random
import sys

import pytest
import torch

from tests.support import capture_cases

pytestmark = pytest.mark.skipif(not capture_cases.AVAILABLE, reason="this build has no capture")
MODES = {
    "as it is": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference_mode": torch.inference_mode,
    "no inference_mode": lambda: torch.inference_mode(False),
    "no autocast": lambda: torch.autocast("cpu", enabled=False),
}


def nesting():
    """How many autocast blocks are open: at the last one torch forgets the casts of weights."""
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return depth


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
        assert nesting() == 0
        torch.testing.assert_close(found[1], expected[1])  # sums of gradients have another order behind a break


STATE = "(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled('cpu'), torch.is_autocast_cache_enabled())"
BLOCKS = [
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.inference_mode()",
    "torch.inference_mode(False)",
    "torch.autocast('cpu', dtype=torch.bfloat16)",
    "torch.autocast('cpu', dtype=torch.bfloat16, cache_enabled=False)",
    "torch.autocast('cpu', enabled=False)",
    "torch.set_grad_enabled(False)",
]
SWITCHES = [
    "torch.set_grad_enabled(False)",
    "torch.set_grad_enabled(True)",
    "torch.set_autocast_enabled('cpu', True)",
    "torch.set_autocast_enabled('cpu', False)",
    "torch.set_autocast_cache_enabled(False)",
]


def random_program(seed):
    """Blocks of modes inside each other, switches, errors that are caught and graph breaks, in any order."""
    choose = random.Random(seed)
    lines = ["def program(x, w, seen, raises):"]

    def block(depth, indent):
        for _ in range(choose.randint(1, 3)):
            kind = choose.random()
            if kind < 0.35 and depth < 3:
                lines.append(f"{indent}with {choose.choice(BLOCKS)}:")
                block(depth + 1, indent + "    ")
            elif kind < 0.45 and depth < 3:
                lines.append(indent + "try:")
                block(depth + 1, indent + "    ")
                lines.append(indent + "    if raises: raise ValueError")
                lines.append(indent + "except ValueError:")
                block(depth + 1, indent + "    ")
            elif kind < 0.6:
                lines.append(indent + "sys.getrefcount(None)")
            elif kind < 0.7:
                lines.append(indent + choose.choice(SWITCHES))
            elif kind < 0.85:
                lines.append(f"{indent}seen.append({STATE})")
            else:
                lines.append(f"{indent}y = x @ w; seen.append((y.dtype, y.requires_grad, y.is_inference()))")

    block(0, "    ")
    lines.append("    return x @ w")
    space = {"torch": torch, "sys": sys}
    exec("\n".join(lines), space)
    return space["program"]


def as_at_first():
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_cache_enabled(True)
    torch.clear_autocast_cache()


def seen_by(call):
    """What a program saw, gave and left, with errors raised inside and without."""
    found = []
    for raises in (False, True, False, True):
        x, w, seen = (
            torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
            torch.tensor([[1.0, -2.0], [2.0, 1.0]], requires_grad=True),
            [],
        )
        try:
            y = call(x, w, seen, raises)
            seen.append((y.dtype, y.requires_grad, y.is_inference()))
            if y.requires_grad:
                y.sum().backward()
                seen.append(w.grad.tolist())
            seen.append(eval(STATE))
        finally:
            as_at_first()
        assert nesting() == 0
        found.append(seen)
    return found


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_modes_in_any_order(first):
    # An inference mode that a break left open gave back autocast as it was in the middle of the graph before.
    for seed in range(first, first + 20):
        program = random_program(seed)
        expected = seen_by(program)
        for backend in ("eager", lambda graph_module, inputs: graph_module.forward):
            found = seen_by(capture_cases.cutaway.compile(program, backend=backend))
            assert found == expected, seed


def test_inference_mode_gives_back_autocast_as_it_was_entered():
    def program(x):
        torch.set_autocast_enabled("cpu", True)
        with torch.inference_mode():
            torch.set_autocast_enabled("cpu", False)
            sys.getrefcount(None)
            y = x @ x
        is_on = torch.is_autocast_enabled("cpu")
        torch.set_autocast_enabled("cpu", False)
        return is_on, y.dtype

    assert (
        capture_cases.cutaway.compile(program)(torch.ones(2, 2)) == program(torch.ones(2, 2)) == (True, torch.float32)
    )
