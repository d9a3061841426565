"""CUTAWAY_CHECK: a compiled program that compares itself with its operators, and stops where they differ."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

PROGRAM = textwrap.dedent(
    """
    import torch, torch.nn.functional as F, cutaway

    def f(x, w):
        a = x * 2 + 1
        b = F.gelu(a)
        c = b.sum(-1, keepdim=True)
        return torch.tanh(b - c) @ w

    torch.manual_seed(0)
    x, w = torch.randn(6, 40, requires_grad=True), torch.randn(40, 8, requires_grad=True)
    f = cutaway.compile(f, backend="native")
    try:
        out = f(x, w)
        out.sum().backward()
        print("fine", tuple(x.grad.shape))
    except cutaway.AccuracyError as error:
        print("AccuracyError")
        print(error)
    """
)


def run(tmp_path, check, planted="", program=PROGRAM):
    (tmp_path / "model.py").write_text(program)
    environment = {**os.environ, "CUTAWAY_CHECK": check, "CUTAWAY_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("CUTAWAY_DEBUG_DIR", None)
    if planted:
        environment["CUTAWAY_PLANT_NATIVE_FAULT"] = planted
    return subprocess.run(
        [sys.executable, "model.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )


UNREAD = textwrap.dedent(
    """
    import torch, torch.nn.functional as F, cutaway

    def f(x, y, t):
        return F.nll_loss(x * 2, t) * 3 + (F.avg_pool2d(y * 2, 3, 1, 1) * F.max_pool2d(y, 3, 1, 1)).sum()

    x, y = torch.randn(9, 5, requires_grad=True), torch.randn(2, 3, 8, 8, requires_grad=True)
    cutaway.compile(f, backend="native")(x, y, torch.arange(9) % 5).backward()
    print("fine")
    """
)


def test_operands_that_a_kernel_does_not_read(tmp_path):
    """The operators that it is compared with ask for them."""
    done = run(tmp_path, "2", program=UNREAD)
    assert done.stdout == "fine\n", done.stdout + done.stderr


@pytest.mark.parametrize("check", ["1", "3"])
def test_a_right_program_passes(tmp_path, check):
    done = run(tmp_path, check)
    assert done.stdout == "fine (6, 40)\n", done.stderr
    assert not (tmp_path / "cutaway_check").exists()


@pytest.mark.parametrize(
    ("check", "says", "line"),
    [
        ("1", "the outputs of ", None),  # what comes out at the end
        ("2", "what kernel native.", None),  # the kernel that made it
        ("3", "value: %gelu = aten.gelu", 6),  # the value inside of it
    ],
)
def test_it_stops_at_the_first_difference(tmp_path, check, says, line):
    done = run(tmp_path, check, "rules:aten.gelu")
    lines = done.stdout.splitlines()
    assert lines[0] == "AccuracyError", done.stdout + done.stderr
    assert "CUTAWAY_CHECK" in lines[1] and says in done.stdout
    assert "because: " in done.stdout
    if line:
        assert f"model.py:{line}" in done.stdout
    bundle = re.search(r"bundle: (.+)", done.stdout)[1]
    assert os.path.exists(os.path.join(bundle, "manifest.json")) and os.path.exists(os.path.join(bundle, "repro.py"))
    assert ("kernel alone: " in done.stdout) == (check != "1")


def test_the_backward_half_is_checked_too(tmp_path):
    done = run(tmp_path, "2", "rules:aten.gelu_backward")
    if "fine" in done.stdout:
        pytest.skip("gelu's backward is made of other operators here")
    assert done.stdout.startswith("AccuracyError"), done.stdout + done.stderr
    assert "_backward" in done.stdout


def test_random_numbers_are_those_of_the_program(tmp_path):
    program = PROGRAM.replace("b = F.gelu(a)", "b = F.dropout(F.gelu(a), 0.5)")
    assert run(tmp_path, "3", program=program).stdout == "fine (6, 40)\n"


@pytest.mark.parametrize("value", ["4", "yes", "-1", "10"])
def test_a_value_that_makes_no_sense(tmp_path, value):
    done = run(tmp_path, value)
    assert (
        done.returncode != 0 and f"CUTAWAY_CHECK is '{value}'" in done.stderr and "0 (off), 1 (outputs)" in done.stderr
    )
