"""Logs, steps, times and the debug directory of cutaway.compile: every level, every word, the files that people look for."""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import cutaway
import pytest
import torch

SCRIPT = """
import torch, cutaway
def inner(x):
    return torch.sin(x) + 1
def outer(x):
    y = inner(x)
    print("woo")
    return y * 2
compiled = cutaway.compile(outer, backend="aot_eager")
compiled(torch.ones(3, requires_grad=True)).sum().backward()
compiled(torch.ones(4, requires_grad=True))
"""
ORIGINAL = r"outer, original:(?s:.*?)LOAD_GLOBAL"


@pytest.fixture(autouse=True)
def fresh():
    cutaway.reset()
    yield
    cutaway.set_logs()
    cutaway.reset()


def log_of(words, variable="CUTAWAY_LOGS", script=SCRIPT, status=0, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, variable: words, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def levels():
    return {level: log_of(level) for level in ("error", "warning", "info", "debug")}


def test_error_level_is_silent_where_nothing_is_wrong(levels):
    assert levels["error"] == ""


def test_warning_level_has_breaks_and_is_the_default(levels):
    assert "print() is called" in levels["warning"]
    assert "step 1" not in levels["warning"] and "LOAD_GLOBAL" not in levels["warning"]
    assert "print() is called" in log_of("")


def test_info_level_has_every_function_compiled(levels):
    text = levels["info"]
    assert re.search(ORIGINAL, text) and "compiled:" in text  # original and modified
    assert "graph captured(" in text and "torch.sin" in text
    assert "aot: joint" in text and "FAILED" not in text and "refused" not in text


def test_debug_level_has_every_instruction(levels):
    assert not re.search(r"instructions: .*BINARY_OP", levels["info"])
    for place in ("outer", "inner"):  # the inlined one too
        assert re.search(rf"{place} .*(BINARY_OP|RETURN_VALUE)", levels["debug"]), place
    assert len(re.findall(r"instructions", levels["debug"])) > 20


def test_levels_hold_what_lower_ones_hold(levels):
    assert len(levels["error"]) < len(levels["warning"]) < len(levels["info"]) < len(levels["debug"])


@pytest.mark.parametrize(
    ("word", "wanted", "absent"),
    [
        ("graph_breaks", r"print\(\) is called", "graph captured("),
        ("recompiles", r"`x.shape\[0\]` was 3, is 4", "graph captured("),
        ("guards", "6 guards|guards: outer", "graph captured("),
        ("bytecode", "outer, original:", "graph captured("),
        ("graph_code", r"graph captured\(", "original:"),
        ("trace_bytecode", r"instructions", "graph captured("),
        ("+dynamo", r"instructions", "nothing of the kind"),
        ("aot_graphs", "", "original:"),
        ("torch._dynamo", "step 1 capture begins", "nothing of the kind"),
    ],
)
def test_words_of_torch(word, wanted, absent):
    text = log_of(word, "TORCH_LOGS")
    ours = "\n".join(line for line in text.splitlines() if not line.startswith(("I1", "V1", "W1")))
    assert re.search(wanted, ours), ours
    assert absent not in ours


def test_set_from_python(capfd):
    def f(x):
        return x.sin() + 1

    cutaway.set_logs(capture="info")
    cutaway.compile(f)(torch.ones(2))
    assert "step 1 capture begins" in capfd.readouterr().err
    cutaway.set_logs("bytecode")
    cutaway.reset()
    cutaway.compile(f)(torch.ones(2))
    text = capfd.readouterr().err
    assert "original:" in text and "step 1" not in text


# --- steps: the failing one is the last without an end


def steps(text):
    return re.findall(r"step (\d) \w+ (begins|done|FAILED)", text)


def test_steps_begin_and_end(levels):
    assert steps(levels["info"])[:4] == [("1", "begins"), ("2", "begins"), ("2", "done"), ("1", "done")]


def test_a_backend_that_raises_is_the_failing_step():
    script = """
    import torch, cutaway
    def broken(module, inputs):
        raise ValueError("no")
    try:
        cutaway.compile(lambda x: x + 1, backend=broken)(torch.ones(2))
    except cutaway.exc.BackendCompilerFailed:
        pass
    """
    found = steps(log_of("info", script=script))
    assert ("2", "FAILED") in found and ("2", "done") not in found


def test_capture_that_fails_is_the_failing_step(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTAWAY_STRICT", "0")  # the error is planted
    script = """
    import torch, cutaway
    cutaway.compile(lambda x: {x: 1})(torch.ones(2))
    """
    text = log_of("info", script=script, CUTAWAY_PLANT_CAPTURE_FAULT="BUILD_MAP", CUTAWAY_DEBUG_DIR=str(tmp_path))
    assert steps(text)[:2] == [("1", "begins"), ("1", "FAILED")]


# --- times


def test_forms_of_compile_times():
    def timed(x):
        return x.sin() * x.shape[0]

    cutaway.compile_times(reset=True)
    compiled = cutaway.compile(timed, dynamic=False)
    for size in (2, 3, 4):
        compiled(torch.ones(size))
    text = cutaway.compile_times()
    assert text.splitlines()[0].split()[:2] == ["phase", "function"] and "timed" in text
    data = cutaway.compile_times("data")
    name = timed.__qualname__
    assert len(data["capture"][name]) == len(data["backend"][name]) == 3  # one value a compilation
    summed = cutaway.compile_times("data", summed=True)
    assert summed["capture"][name] == pytest.approx(sum(data["capture"][name]))
    with pytest.raises(ValueError, match="form"):
        cutaway.compile_times("csv")


# --- explain


def test_parts_of_explain():
    def f(x):
        y = x.sin()
        print("woo")
        return y.cos() + 1

    found = cutaway.explain(f)(torch.ones(3))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 3)
    assert [len(ops) for ops in found.ops_per_graph] == [1, 2]
    assert len(found.out_guards) == 2 and all(found.out_guards)
    assert found.break_reasons[0].id == "print" and found.break_reasons[0].user_stack[-1][3] == 'print("woo")'
    assert [t[0] for t in found.compile_times] == [f.__qualname__] * 2
    assert len(found.text(verbose=False)) < len(found.text()) and str(found) == found.text()
    data = json.loads(found.to_json())
    assert data["graph_count"] == 2 and data["break_reasons"][0]["id"] == "print" and len(data["graphs"]) == 2
    assert torch.equal(found.result, torch.ones(3).sin().cos() + 1)


# --- the debug directory


SMALL_MODEL = """
import torch, cutaway
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.LayerNorm(10), torch.nn.ReLU())
def test_model(x):
    return model(x)
cutaway.compile(test_model, backend="aot_eager")(torch.ones(10, 10))
"""


def test_debug_directory_is_off_unless_asked(tmp_path):
    log_of("", script=SMALL_MODEL, CUTAWAY_DEBUG_DIR=str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("root", ["CUTAWAY_DEBUG_DIR", "TORCH_COMPILE_DEBUG_DIR"])
def test_debug_directory(tmp_path, root):
    text = log_of("", script=SMALL_MODEL, TORCH_COMPILE_DEBUG="1", **{root: str(tmp_path)})
    (run,) = tmp_path.glob("cutaway_debug/run_*")
    assert str(run) in text  # a line tells where it is
    for file in ("events.jsonl", "times.txt", "capture/debug.log", "aot/debug.log"):
        assert (run / file).stat().st_size, file
    graphs = [folder for folder in (run / "capture").iterdir() if (folder / "graph.cut").exists()]
    assert graphs
    folder = max(graphs, key=lambda f: (f / "graph.cut").stat().st_size)
    for file in ("graph.cut", "fx_graph_readable.py", "fx_graph_runnable.py", "guards.txt", "bytecode.txt"):
        assert (folder / file).stat().st_size, file
    assert "layer_norm" in (folder / "fx_graph_readable.py").read_text()
    assert cutaway.Graph.parse((folder / "graph.cut").read_text()).name
    ran = subprocess.run(
        [sys.executable, str(folder / "fx_graph_runnable.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert any("forward" in f.name or "inference" in f.name for f in (run / "aot").iterdir())


def test_single_files_can_be_switched(tmp_path):
    log_of(
        "",
        script=SMALL_MODEL,
        CUTAWAY_DEBUG="4",
        CUTAWAY_DEBUG_DIR=str(tmp_path),
        CUTAWAY_DEBUG_FILES="-fx_graph_runnable,-guards",
    )
    names = {p.name for p in pathlib.Path(tmp_path).rglob("*") if p.is_file()}
    assert "fx_graph_readable.py" in names
    assert not names & {"fx_graph_runnable.py", "guards.txt"}
