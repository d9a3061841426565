"""cutaway.compile under triage where no graph is to blame: what capture makes of a program, and what it refuses."""

from __future__ import annotations

import pytest
from test_triage import report_of

# As wrong as a fault of ours would be: the compiled program computes something else, and every graph of it is right.
WRONG = """
import torch
import cutaway

def f(x):
    y = torch.sin(x)
    return y + 1 if torch.compiler.is_compiling() else y

def plain(gm, inputs):
    return gm.forward

x = torch.ones(3)
got = cutaway.compile(f, backend={backend})(x)
{complaint}
"""
RAISES = 'assert torch.allclose(got, torch.sin(x)), "wrong numbers"'
LEAVES = "raise SystemExit(0 if torch.allclose(got, torch.sin(x)) else 3)"


@pytest.mark.parametrize(
    ("backend", "complaint"),
    [('"eager"', RAISES), ('"aot_eager"', RAISES), ("plain", LEAVES)],
    ids=["eager", "aot_eager", "a function"],
)
def test_wrong_numbers_of_capture_itself(backend, complaint, tmp_path):
    status, report = report_of(tmp_path, WRONG.format(backend=backend, complaint=complaint))
    assert status == 1, report
    assert report["stage"] == "capture"
    assert "no graph by itself is wrong" in report["message"]
    rows = {row["backend"]: row["outcome"] for row in report["ablation"]}
    assert rows["eager"] == "pass" and rows["capture"] == "exception", rows
    assert report["repro"] is None and report["nodes_after"] is None


REFUSED = """
import torch
import cutaway

def f(x):
    y = torch.sin(x)
    print("a graph ends here")
    return torch.cos(y)

{compile}(f, fullgraph=True, backend="aot_eager")(torch.ones(3))
"""


@pytest.mark.parametrize("compile", ["cutaway.compile", "torch.compile"])
def test_a_refusal_of_fullgraph(compile, tmp_path):
    status, report = report_of(tmp_path, REFUSED.format(compile=compile))
    assert status == 1, report
    assert (report["stage"], report["kind"]) == ("capture", "exception")
    assert [(row["backend"], row["outcome"]) for row in report["ablation"]] == [
        ("eager", "pass"),
        ("capture", "exception"),
    ]
    assert report["signature"]["user_frame"] == "script.py:6 f", report["signature"]


def test_a_refusal_that_the_script_handles(tmp_path):
    """It is the script's own affair, and what it does instead is looked at."""
    text = REFUSED.format(compile="cutaway.compile")
    head, _, call = text.rstrip().rpartition("\n")
    text = f"{head}\ntry:\n    {call}\nexcept Exception:\n    cutaway.compile(torch.sin, backend='aot_eager')(torch.ones(3))\n"
    status, report = report_of(tmp_path, text)
    assert status == 0, report
