"""--json of every command, also where there is no answer: the keys that docs/exit_codes.md lists, and nothing else on standard output."""

import json
import signal
import subprocess
import time

import cutaway
import pytest
import torch
from bundles import write_bundle

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


def test_a_backend_that_is_nearly_one(ask, bundle):
    answer = ask("run", bundle, "--backend", "indutcor")
    assert answer.code == 2
    assert answer.err == 'cutaway: unknown backend "indutcor"; did you mean "inductor"? (cutaway doctor lists them)\n'


@pytest.mark.parametrize("name", ["run", "analyze"])
def test_ctrl_c(command, bundle, name):
    words = [command, name, str(bundle), "--backend", "fault:hang:aten.relu", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "interrupted" in err
    assert json.loads(out)["outcome"] == "error" and json.loads(out)["message"] == "interrupted"
