"""--json of every command, also where there is no answer: the keys that docs/exit_codes.md lists, and nothing else on standard output."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import cutaway
import pytest
import torch

from tests.support.bundles import write_bundle
from tests.support.patience import PATIENCE_S

KEYS = """outcome kind stage backend signature bundle repro nodes_before nodes_after elements_before elements_after candidates
    seconds one_minimal reproduced_rate others first_wrong message""".split()
GRAPH = "graph g(%x: f32[4]) {\n  %a: f32[4] = aten.sin(%x)\n  %b: f32[4] = aten.relu(%a)\n  return (%b)\n}\n"


@pytest.fixture
def bundle(tmp_path):
    return write_bundle(tmp_path / "bundle", cutaway.Graph.parse(GRAPH), [torch.ones(4)])


def check(answer, outcome):
    report = answer.json
    assert report["outcome"] == outcome, answer.err
    assert [key for key in KEYS if key not in report] == []
    assert all(report[key] != "" for key in KEYS), "what is not known is null"
    return report


@pytest.mark.parametrize("fault, kind", [("exception", "exception"), ("crash", "crash"), ("wrong", "accuracy")])
def test_answers(ask, bundle, tmp_path, fault, kind):
    words = ["--backend", f"fault:{fault}:aten.relu", "--json", *(["--accuracy"] if kind == "accuracy" else [])]
    run = ask("run", bundle, *words)
    assert run.code == 1 and check(run, "failure")["kind"] == kind
    small = ask("minify", bundle, "-o", tmp_path / "small", *words)
    assert small.code == 0 and check(small, "failure")["nodes_after"] == 1
    again = ask("run", tmp_path / "small", "--json")
    assert again.code == 1 and check(again, "failure")["signature"]["kind"] == kind, "it says by itself how it fails"
    analysis = ask("analyze", bundle, *words[:3])
    assert analysis.code == 0 and check(analysis, "failure")["first_wrong"]["operator"] == "aten.relu"


def test_nothing_fails(ask, bundle, tmp_path):
    words = ["--backend", "fault:exception:aten.cos", "--json"]
    assert ask("run", bundle, *words).code == 0
    check(ask("run", bundle, *words), "pass")
    for command in ("minify", "analyze"):
        answer = ask(command, bundle, *words)
        assert answer.code == 5
        check(answer, "pass")
    check(ask("export", bundle, "-o", tmp_path / "b.tar", "--json"), "pass")
    check(ask("import", tmp_path / "b.tar", "-o", tmp_path / "again", "--json"), "pass")
    check(ask("report", bundle, "--json"), "pass")


WRONG = [
    ["run", "nowhere"], ["run"], ["minify", "nowhere", "--bogus"], ["minify"], ["triage", "nowhere.py"], ["triage"], ["bisect", "nowhere"],
    ["analyze", "nowhere.tar"], ["import", "nowhere"], ["export", "nowhere", "-o", "x.tar"], ["report", "nowhere"], ["run", "x", "--threads", "0"],
]  # fmt: skip


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage(ask, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    answer = ask(*words, "--json") if words != ["triage", "nowhere.py"] else ask("triage", "--json", "nowhere.py")
    assert answer.code == 2
    report = check(answer, "error")
    assert report["message"] in answer.err and report["backend"] is None and report["others"] == []


TOLD = [
    ["--help"],
    ["help"],
    ["--version"],
    ["minify", "--help"],
    ["triage", "--help"],
    ["minify", "--list-passes", "x"],
    ["doctor", "--help"],
    ["help", "doctor"],
]


@pytest.mark.parametrize("words", TOLD, ids=" ".join)
def test_what_is_only_told(ask, words):
    at = 1 if words[0] == "triage" else len(words)
    answer = ask(*words[:at], "--json", *words[at:])
    assert answer.code == 0
    report = check(answer, "pass")
    key = "passes" if "--list-passes" in words else "version" if "--version" in words else "help"
    assert report[key]
    if key == "passes":
        assert {"name", "summary"} == set(report[key][0])


@pytest.mark.parametrize(
    "words", [["mnify"], ["help", "mnify"], ["--bogus"], ["show", "nowhere"], ["diff", "nowhere", "x"], ["explain", "nowhere.py"], ["replay", "nowhere"], ["show"]], ids=" ".join
)  # fmt: skip
def test_no_answer_of_any_command(ask, words):
    at = 1 if words[0] == "explain" else len(words)
    answer = ask(*words[:at], "--json", *words[at:])
    assert answer.code == 2
    assert check(answer, "error")["message"] in answer.err


def test_the_scripts_own_json_is_not_ours(ask, tmp_path):
    answer = ask("triage", "nowhere.py", "--json")
    assert answer.code == 2 and not answer.out and "nowhere.py" in answer.err


VARIABLES = {
    "CUTAWAY_DEBUG": "9", "CUTAWAY_LOGS": "bogus", "CUTAWAY_DEBUG_FILES": "bogus", "CUTAWAY_REPRO_AFTER": "later",
    "CUTAWAY_REPRO_LEVEL": "9", "CUTAWAY_STRICT": "maybe", "CUTAWAY_REPLAY_RECORD": "maybe", "CUTAWAY_PLANT_CAPTURE_FAULT": "ADD",
    "CUTAWAY_COMMAND": "/nowhere/cutaway", "CUTAWAY_PYTHON": "/nowhere/python", "CUTAWAY_DEBUG_DIR": __file__,
    "CUTAWAY_CACHE_DIR": __file__, "CUTAWAY_CHECK": "9", "CUTAWAY_COMPILE_SECONDS": "soon", "CUTAWAY_POOL_MB": "-1",
    "CUTAWAY_PLANT_NATIVE_FAULT": "softmax",
}  # fmt: skip


def test_a_variable_that_makes_no_sense(command, bundle, monkeypatch):
    """The documented error in the command, whatever it was asked; the package reads the same."""
    for name, value in VARIABLES.items():
        done = subprocess.run(
            [command, "show", str(bundle), "--json"], capture_output=True, text=True, env={**os.environ, name: value}
        )
        assert done.returncode == 2 and name in done.stderr, (name, done.stderr)
        assert name in json.loads(done.stdout)["message"]
    for name in ("CUTAWAY_STRICT", "CUTAWAY_REPRO_LEVEL"):
        done = subprocess.run(
            [sys.executable, "-c", "import cutaway"], capture_output=True, text=True, env={**os.environ, name: "maybe"}
        )
        assert done.returncode == 1 and f"{name} is 'maybe'" in done.stderr


def test_a_backend_that_is_nearly_one(ask, bundle):
    answer = ask("run", bundle, "--backend", "indutcor")
    assert answer.code == 2
    assert answer.err == 'cutaway: unknown backend "indutcor"; did you mean "inductor"? (cutaway backends lists them)\n'


def children_of(pid):
    with contextlib.suppress(OSError):  # it has just ended
        return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    return []


@pytest.mark.parametrize("name", ["run", "analyze"])
def test_ctrl_c(command, bundle, name):
    words = [command, name, str(bundle), "--backend", "fault:hang:aten.relu", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + PATIENCE_S
    while not any(children_of(worker) for worker in children_of(process.pid)):  # until a trial runs
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and "interrupted" in err
    assert json.loads(out)["outcome"] == "error" and json.loads(out)["message"] == "interrupted"


def test_doctor_names_cuda_devices(command, tmp_path):
    """As torch tells them: here by a torch that only pretends to have two."""
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "lib" / "libtorch_cuda.so").write_text("")
    (tmp_path / "torch" / "__init__.py").write_text(
        "import types\n"
        "device = types.SimpleNamespace(name='Pretended', total_memory=80 << 30, major=9, minor=0)\n"
        "cuda = types.SimpleNamespace(device_count=lambda: 2, get_device_properties=lambda i: device)\n"
    )
    environment = {**os.environ, "CUTAWAY_PYTHON": sys.executable, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([command, "doctor", "--json"], capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout)["devices"] == ["cpu", *(f"cuda:{i} (Pretended, 80 GiB, sm_90)" for i in (0, 1))]
