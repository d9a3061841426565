"""`cutaway run --write-code` and `--code`: the generated program of a bundle, edited and run in its place; `cutaway profile`."""

import json
import re
import subprocess

import cutaway
import pytest
import torch
import torch.nn.functional as F

from tests.support.bundles import write_bundle


def program(x, w):
    return torch.softmax(F.gelu(x @ w + 1), -1) * 2


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    torch.manual_seed(0)
    inputs = [torch.randn(8, 32), torch.randn(32, 24)]
    graph = cutaway.aot(program, inputs).forward
    return write_bundle(
        tmp_path_factory.mktemp("native_code") / "bundle",
        graph,
        inputs,
        stage="aot",
        accuracy="accuracy",
        backend="native",
    )


@pytest.fixture(scope="module")
def code(bundle, command):
    file = bundle.parent / "k.cpp"
    done = subprocess.run([command, "run", bundle, "--write-code", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return file


def test_what_was_written_runs_by_itself_and_in_place(ask, bundle, code):
    line = code.read_text().splitlines()[0]
    done = subprocess.run(
        ["sh", "-c", line.removeprefix("// ")], cwd=code.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "all agree" in done.stdout, done.stdout + done.stderr
    assert ask("run", bundle, "--code", code).code == 0


def test_an_edited_kernel_is_what_runs(ask, bundle, code, tmp_path):
    edited = re.sub(r"(const F gelu\w* = )(.+);", r"\1(\2) * 3;", code.read_text(), count=1)
    (tmp_path / "k.cpp").write_text(edited)
    answer = ask("run", bundle, "--code", tmp_path / "k.cpp", "--json")
    assert answer.code == 1 and answer.json["outcome"] == "failure", answer.out + answer.err
    assert ask("run", bundle).code == 0


def test_code_that_does_not_compile_says_where(ask, bundle, code, tmp_path):
    text = code.read_text()
    at = text.splitlines().index(next(line for line in text.splitlines() if "const F gelu" in line)) + 1
    (tmp_path / "k.cpp").write_text(re.sub(r"const F gelu", "const Nothing gelu", text, count=1))
    answer = ask("run", bundle, "--code", tmp_path / "k.cpp")
    assert answer.code == 2 and "the code does not compile" in answer.err
    assert f"k.cpp:{at}:" in answer.err and "Nothing" in answer.err


def test_code_that_lacks_a_function_says_which(ask, bundle, code, tmp_path):
    text = code.read_text()
    name = re.search(r'extern "C" void (k\d+)\(', text)[1]
    (tmp_path / "k.cpp").write_text(text.replace(f"void {name}(", "void another("))
    answer = ask("run", bundle, "--code", tmp_path / "k.cpp")
    assert answer.code == 2 and name in answer.err
    (tmp_path / "k.cpp").write_text("int nothing;\n")
    answer = ask("run", bundle, "--code", tmp_path / "k.cpp")
    assert "lacks functions of kernels" in answer.err and name in answer.err


def test_the_report_of_a_bundle_tells_its_profile(ask, bundle, tmp_path):
    answer = ask("run", bundle, "--profile")
    assert answer.code == 0 and "report.html" in answer.out, answer.out + answer.err
    (graph,) = json.loads((bundle / "profile.json").read_text())["graphs"]
    assert graph["calls"] > 10 and {"kernel", "product"} <= {step["kind"] for step in graph["steps"]}
    page = (bundle / "report.html").read_text()
    assert "Where the time goes" in page and "native.k" in page and "GFLOP/s" in page


def test_wrong_usage(ask, bundle, code, tmp_path):
    assert "there is no such file" in ask("run", bundle, "--code", tmp_path / "nowhere.cpp").err
    answer = ask("run", bundle, "--backend", "eager", "--code", code)
    assert answer.code == 2 and "only the backend native" in answer.err


SCRIPT = """
import sys, torch

@torch.compile
def f(x, w):
    return torch.softmax(torch.nn.functional.gelu(x @ w + 1), -1).sort().values

x, w = torch.randn(64, 128), torch.randn(128, 96)
for _ in range(int(sys.argv[1])):
    f(x, w)
print("done")
sys.exit(int(sys.argv[2]))
"""


def test_profile_of_a_script(ask, tmp_path):
    (tmp_path / "s.py").write_text(SCRIPT)
    answer = ask("profile", "--json", "--timeline", tmp_path / "t.json", tmp_path / "s.py", 5, 0)
    assert answer.code == 0 and "done" in answer.err, answer.err
    (graph,) = answer.json["graphs"]
    assert (
        graph["calls"] == 5
        and answer.json["limits"]["bytes_per_s"] > 1e8
        and answer.json["limits"]["operations_per_s"] > 1e8
    )
    kinds = {step["kind"]: step for step in graph["steps"]}
    assert set(kinds) == {"kernel", "product", "torch"}
    assert all(step["calls"] == 5 and step["seconds"] > 0 for step in graph["steps"])
    assert kinds["product"]["operations"] == 2 * 64 * 128 * 96 and kinds["kernel"]["bytes"] >= 64 * 96 * 4
    assert "s.py:6" in kinds["kernel"]["place"] and "extern" in kinds["kernel"]["text"]
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert len(events) == 5 * (len(graph["steps"]) + 1) and {e["ph"] for e in events} == {"X"}


def test_profile_as_text_and_its_statuses(ask, tmp_path):
    (tmp_path / "s.py").write_text(SCRIPT)
    answer = ask("profile", tmp_path / "s.py", 2, 7)
    assert answer.code == 7 and "2 calls" in answer.out and "GB/s" in answer.out and "native." in answer.out
    (tmp_path / "nothing.py").write_text("print(1)")
    assert "nothing was compiled" in ask("profile", tmp_path / "nothing.py").out
    assert "a script is missing" in ask("profile").err and ask("profile").code == 2
    assert "there is no such script" in ask("profile", tmp_path / "nowhere.py").err
    assert "only the backend native" in ask("profile", "--backend", "eager", tmp_path / "s.py").err
    assert "--timeline" in ask("profile", "--help").out
