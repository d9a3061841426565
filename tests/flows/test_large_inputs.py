"""Wrong numbers behind inputs of many megabytes: sizes come down first, so that the search never works with the whole of them."""

from __future__ import annotations

import subprocess
import sys

from tests.support.patience import PATIENCE_S

BACKEND = """
import torch

def backend(gm, inputs):
    def run(*args):
        class Wrong(torch.fx.Interpreter):
            def call_function(self, target, args, kwargs):
                out = super().call_function(target, args, kwargs)
                return {wrong} if target is {target} else out
        return Wrong(gm).run(*args)
    return run
"""

EVERYWHERE = (
    BACKEND.format(wrong="out * 1.01", target="torch.sin")
    + """
@torch.compile(backend=backend)
def f(x, w):
    y = torch.tanh(torch.sin(torch.relu(torch.cos(x)) + 1)) * w
    return y.sum(0), torch.sigmoid(y).mean(1)

f(torch.randn(15_000, 1000), torch.randn(1000))
"""
)

IN_ONE_PLACE = (
    BACKEND.format(wrong="torch.where(args[0] > 100, out * 1.01, out)", target="torch.relu")
    + """
@torch.compile(backend=backend)
def f(x):
    return torch.sqrt(torch.relu(x * 2 + 1))

x = torch.randn(6_000, 1000)
x[2_700, 300] = 1e4
f(x)
"""
)

# The sizes stand in relations that a plain cut would break.
RELATED = (
    BACKEND.format(wrong="out * 1.01", target="torch.cos")
    + """
@torch.compile(backend=backend)
def f(x, w):
    y = torch.cos(x @ w)
    a, b, c = y.view(y.shape[0], 3, 1024).unbind(1)
    return a * b + c

f(torch.randn(2048, 1024), torch.randn(1024, 3072) / 32)
"""
)


def test_wrong_numbers_everywhere(ask, tmp_path):
    """60 MB, with memory for a few copies of the inputs and not for dozens."""
    (tmp_path / "script.py").write_text(EVERYWHERE)
    answer = ask("triage", "--json", "--memory", 1.5, "-o", tmp_path / "out", tmp_path / "script.py")
    assert answer.code == 1, answer.err
    assert "inputs of 60 MB were cut to" in answer.err
    assert answer.json["first_wrong"]["operator"] == "torch.sin"
    assert (answer.json["nodes_after"], answer.json["elements_after"]) == (1, 1)
    assert answer.json["elements_before"] == 15_001_000
    small = sum(f.stat().st_size for f in (tmp_path / "out" / "minimal").rglob("*") if f.is_file())
    assert small < 1 << 20
    # One copy of the inputs on disk, in the bundle of the failing run; nothing of the search is left.
    blobs = {(f.stat().st_dev, f.stat().st_ino): f.stat().st_size for f in tmp_path.rglob("*") if f.is_file()}
    assert sum(blobs.values()) < 70 << 20


def test_wrong_numbers_in_one_place(ask, tmp_path):
    (tmp_path / "script.py").write_text(IN_ONE_PLACE)
    answer = ask("triage", "--json", "-o", tmp_path / "out", tmp_path / "script.py")
    assert answer.code == 1, answer.err
    assert answer.json["first_wrong"]["operator"] == "torch.relu"
    assert (answer.json["nodes_after"], answer.json["elements_after"]) == (1, 1)


def bundle_of(tmp_path, text):
    """What level 4 keeps of the script's failure."""
    (tmp_path / "script.py").write_text(text)
    watch = "import cutaway, runpy, torch\n_compile = torch.compile\n"
    watch += "torch.compile = lambda backend: (lambda f: _compile(f, backend=cutaway.debug(backend, level=4, minify=False)))\n"
    watch += f"runpy.run_path({str(tmp_path / 'script.py')!r}, run_name='__main__')\n"
    (tmp_path / "watch.py").write_text(watch)
    done = subprocess.run(
        [sys.executable, "watch.py"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    return tmp_path / next(line for line in done.stderr.splitlines() if "repro written to" in line).split()[-1]


def test_analyze_alone(ask, tmp_path):
    """It cuts the sizes first as well, and leaves the bundle as it is."""
    path = bundle_of(tmp_path, EVERYWHERE.replace("15_000", "5_000"))
    before = {f.relative_to(path): f.stat().st_size for f in path.rglob("*") if f.is_file()}
    answer = ask("analyze", "--json", "--trust", "--memory", 1.5, path)
    assert answer.code == 0, answer.err
    assert "inputs of 20 MB were cut to" in answer.err
    assert answer.json["first_wrong"]["operator"] == "torch.sin"
    assert answer.json["elements_before"] == 5_001_000 and answer.json["elements_after"] < 100_000
    after = {f.relative_to(path): f.stat().st_size for f in path.rglob("*") if f.is_file()}
    assert {f: size for f, size in after.items() if f in before and f.name != "report.html"} == {
        f: size for f, size in before.items() if f.name != "report.html"
    }
    assert {f.name for f in set(after) - set(before)} <= {"analysis.json", "report.html"}


def test_sizes_in_relation_and_minify_alone(ask, tmp_path):
    path = bundle_of(tmp_path, RELATED)
    answer = ask("minify", "--json", "--trust", "-o", tmp_path / "small", path)
    assert answer.code == 0, answer.err
    assert "inputs of 21 MB were cut to" in answer.err
    assert answer.json["nodes_after"] == 1 and answer.json["elements_after"] <= 4
    assert "torch.cos" in answer.json["graph"]
