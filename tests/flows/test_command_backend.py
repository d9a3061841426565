"""`command:PROGRAM {bundle}`: a compiler that is another program. Each way to fail is the usual outcome."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import cutaway
import pytest
import torch

from tests.support.bundles import write_bundle

EXAMPLE = Path(__file__).parents[2] / "examples" / "command_backend.py"
BACKEND = f"command:{sys.executable} {EXAMPLE} {{bundle}}"
GRAPH = """graph g(%x: f32[2, 3], %y: f32[2, 3]) {
  %a: f32[2, 3] = aten.relu(%x)
  %b: f32[2, 3] = aten.tanh(%a)
  %c: f32[2, 3] = aten.mul.Tensor(%b, %y)
  %d: f32[2, 3] = aten.sin(%c)
  return (%c, %d)
}
"""


@pytest.fixture
def bundle(tmp_path):
    torch.manual_seed(0)
    return write_bundle(
        tmp_path / "bundle", cutaway.Graph.parse(GRAPH), [torch.randn(2, 3), torch.randn(2, 3)], stage="aot"
    )


def test_example_computes_what_eager_does(ask, bundle):
    refused = ask("run", bundle, "--backend", BACKEND)
    assert refused.code == 2 and "--trust" in refused.err and BACKEND in refused.err
    answer = ask("run", bundle, "--backend", BACKEND, "--accuracy", "--trust", "--json")
    assert answer.code == 0 and BACKEND in answer.err, answer.out + answer.err  # the command is said first


@pytest.mark.parametrize(
    ("variable", "options", "kind"), [("COMMAND_BUG", ["--accuracy"], "accuracy"), ("COMMAND_CRASH", [], "crash")]
)
def test_minify_finds_the_operator(ask, bundle, tmp_path, monkeypatch, variable, options, kind):
    monkeypatch.setenv(variable, "aten.tanh")
    answer = ask("minify", bundle, "-o", tmp_path / "small", "--backend", BACKEND, "--trust", "--json", *options)
    assert answer.code == 0, answer.err + answer.out
    assert answer.json["kind"] == kind and answer.json["nodes_after"] == 1 and "aten.tanh" in answer.json["graph"]
    if kind == "crash":
        assert answer.json["signature"]["signal"] == "SIGSEGV"
    else:
        analysis = ask("analyze", bundle, "--backend", BACKEND, "--trust", "--json")
        assert analysis.code == 0 and analysis.json["first_wrong"]["operator"] == "aten.tanh", analysis.out


COMPILER = """graph g(%x: f32[2, 3], %w: f32[3, 4] strides(1, 3)) {
  %a: f32[2, 3] = aten.tanh(%x)
  %b: f32[2, 4] = aten.mm(%a, %w)
  %c: f32[2, 4] = aten.relu(%b)
  %d: f32[2, 4] = aten.add.Tensor(%c, %b)
  return (%d)
}
"""


def test_example_in_cxx(ask, tmp_path, monkeypatch):
    """examples/command_backend.cc, built as its first lines say: a compiler that links libcutaway_core and no libtorch."""
    root, package = Path(__file__).parents[2], Path(cutaway.__file__).parent
    words = [os.environ.get("CXX", "c++"), "-std=c++20", "-I", root / "src", root / "examples" / "command_backend.cc"]
    words += ["-o", tmp_path / "mycompiler", "-L", package, "-lcutaway_core", f"-Wl,-rpath,{package}"]
    subprocess.run(words, check=True)
    inputs = [torch.randn(2, 3), torch.randn(4, 3).t()]
    bundle = write_bundle(tmp_path / "bundle", cutaway.Graph.parse(COMPILER), inputs, stage="aot")
    backend = ["--backend", f"command:{tmp_path}/mycompiler {{bundle}}", "--trust", "--json"]
    assert ask("run", bundle, "--accuracy", *backend).code == 0
    monkeypatch.setenv("MYCOMPILER_BUG", "aten.mm")
    wrong = ask("minify", bundle, "-o", tmp_path / "wrong", "--accuracy", *backend)
    assert wrong.code == 0 and wrong.json["nodes_after"] == 1 and "aten.mm(" in wrong.json["graph"], (
        wrong.out + wrong.err
    )
    monkeypatch.delenv("MYCOMPILER_BUG")
    monkeypatch.setenv("MYCOMPILER_ABORT", "aten.relu")
    dead = ask("run", bundle, *backend)
    assert dead.code == 1 and dead.json["signature"]["signal"] == "SIGABRT"


# What the program does -> words of the message. An answer that cannot be used is the compiler's failure.
BAD = {
    "exit": ("echo 'cannot lower aten.relu' >&2; exit 3", "cannot lower aten.relu"),
    "nothing": ("true", "no outputs.json"),
    "text": ("echo nonsense > $CUTAWAY_OUTPUT/outputs.json", "cannot be used"),
    "version": ('echo \'{"version": 2, "outputs": []}\' > $CUTAWAY_OUTPUT/outputs.json', "version 2"),
    "number": ('echo \'{"version": 1, "outputs": [1]}\' > $CUTAWAY_OUTPUT/outputs.json', "the graph has 2"),
}
TENSORS = {
    "outside": ({"dtype": "f32", "sizes": [1], "file": "../bundle/graph.cut"}, "cannot be used"),
    "huge": ({"dtype": "f32", "sizes": [1 << 40, 1 << 40], "file": "x"}, "more elements than any memory holds"),
    "short": ({"dtype": "f32", "sizes": [4], "file": "outputs.json"}, "bytes"),
    "dtype": ({"dtype": "f33", "sizes": [4], "file": "x"}, "unknown dtype"),
    "missing": ({"dtype": "f32", "sizes": [4]}, "file"),
}


def test_answers_that_cannot_be_used(ask, bundle, tmp_path):
    cases = dict(BAD)
    for name, (record, words) in TENSORS.items():
        text = json.dumps({"version": 1, "outputs": [record, record]})
        (tmp_path / f"{name}.json").write_text(text)
        cases[name] = (f"cp {tmp_path}/{name}.json $CUTAWAY_OUTPUT/outputs.json", words)
    for name, (script, words) in cases.items():
        (tmp_path / f"{name}.sh").write_text(script)
        answer = ask("run", bundle, "--backend", f"command:sh {tmp_path}/{name}.sh {{bundle}}", "--trust", "--json")
        assert answer.code == 1 and answer.json["kind"] == "exception", (name, answer.out + answer.err)
        assert words in answer.json["message"], (name, answer.json["message"])


def test_a_hang_ends_with_its_whole_family(ask, bundle, tmp_path):
    family = f"(while true; do echo $$ >> {tmp_path}/alive; sleep 0.2; done) & wait"
    (tmp_path / "hang.sh").write_text(family)
    answer = ask(
        "run", bundle, "--backend", f"command:sh {tmp_path}/hang.sh {{bundle}}", "--trust", "--timeout", "2", "--json"
    )
    assert answer.code == 1 and answer.json["kind"] == "hang"
    written = (tmp_path / "alive").stat().st_size
    assert written > 0
    time.sleep(1)
    assert (tmp_path / "alive").stat().st_size == written


def test_wrong_usage(ask, bundle):
    for backend, words in (
        ("command:", "names no program"),
        ("command:./p", "{bundle}"),
        ("command:'p {bundle}", "quote"),
    ):
        answer = ask("run", bundle, "--backend", backend, "--trust")
        assert answer.code == 2 and words in answer.err, answer.err
    missing = ask("run", bundle, "--backend", "command:/no/such/program {bundle}", "--trust", "--json")
    assert missing.code == 1 and "cannot be started" in missing.json["message"]


@pytest.mark.parametrize(("variable", "kind"), [("COMMAND_BUG", "accuracy"), ("COMMAND_CRASH", "crash")])
def test_watched_in_a_program(ask, tmp_path, monkeypatch, variable, kind):
    monkeypatch.setenv(variable, "aten.tanh")
    watched = cutaway.debug(BACKEND, after="aot", level=4, base_dir=tmp_path, minify=False)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.relu(x).tanh(), backend=watched)
    error = cutaway.AccuracyError if kind == "accuracy" else RuntimeError
    with torch.no_grad(), pytest.raises(error):
        compiled(torch.randn(2, 3))
    manifest = json.loads((tmp_path / "repro" / "manifest.json").read_text())
    assert manifest["backend"] == BACKEND and manifest["failure"]["kind"] == kind
    assert ask("run", tmp_path / "repro", "--trust").code == 1  # as recorded
