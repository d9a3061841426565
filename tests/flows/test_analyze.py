"""cutaway analyze with planted faults: the first wrong node is the planted one, and nothing else is blamed."""

import json
import subprocess
from pathlib import Path

import cutaway
import pytest
import torch

from tests.support.command import find_command

COMMAND = find_command()


def analyze(bundle: Path, backend: str, *options: str) -> tuple[int, dict]:
    done = subprocess.run(
        [COMMAND, "analyze", str(bundle), "--backend", backend, "--json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def write(path: Path, text: str, *inputs: torch.Tensor) -> Path:
    cutaway.save(path, cutaway.Graph.parse(text), list(inputs))
    return path


def verdicts(report: dict) -> dict[str, str]:
    return {row["node"]: row["verdict"] for row in report["analysis"]["nodes"]}


def chain(nodes: int, special: dict[int, str], size: int = 16) -> str:
    """mul, add, sin in turn: errors travel through without being lost."""
    lines, before = [f"graph g(%x: f32[4, {size}]) {{"], "x"
    ops = [
        "aten.mul.Tensor(%{}, 1.01)",
        "aten.add.Tensor(%{}, 0.125)",
        "aten.neg(%{})",
    ]
    for i in range(nodes):
        op = special.get(i, ops[i % 3]).format(before)
        lines.append(f"  %v{i}: f32[4, {size}] = {op}  # model.py:{i + 1} Net.forward")
        before = f"v{i}"
    return "\n".join([*lines, f"  return (%{before})", "}"])


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("analyze") / "large"
    return write(path, chain(300, {171: "aten.relu(%{})"}), torch.randn(4, 16))


def test_the_planted_node_of_300(large):
    code, report = analyze(large, "fault:wrong:aten.relu")
    assert code == 0
    assert report["outcome"] == "failure"
    assert report["kind"] == "accuracy"
    assert report["first_wrong"]["node"] == "v171"
    assert report["first_wrong"]["operator"] == "aten.relu"
    assert report["first_wrong"]["source"] == "model.py:172 Net.forward"
    found = verdicts(report)
    assert found["v170"] == "equal"
    assert [name for name, v in found.items() if v == "wrong"] == ["v171"]
    assert found["v172"] == "wrong input"
    rows = report["analysis"]["nodes"]
    assert rows[171]["local_error"] == pytest.approx(0.1, rel=1e-3)
    assert rows[172]["local_error"] == 0
    assert rows[172]["cumulative_error"] > 0.05
    assert report["analysis"]["eager_repeated"] == "identical"
    assert report["analysis"]["backend_repeated"] == "identical"


def test_rows_for_the_report_lie_beside_the_bundle(large):
    analyze(large, "fault:wrong:aten.relu")
    rows = json.loads((large / "analysis.json").read_text())
    assert len(rows) == 300
    assert rows[171]["verdict"] == "WRONG (first)"
    assert set(rows[0]) == {"node", "op", "local_error", "cumulative_error", "verdict", "source"}


def test_the_text_answers_first(large):
    done = subprocess.run(
        [COMMAND, "analyze", str(large), "--backend", "fault:wrong:aten.relu"],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["first", "wrong", "%v171", "aten.relu", "model.py:172", "Net.forward"]
    assert "..." in lines
    assert any("WRONG (first)" in line and "model.py:172" in line for line in lines)
    assert lines[-1].startswith("next")


def test_repeated_layers_name_the_first_layer(tmp_path):
    lines, h = ["graph g(%x: f32[4, 8], %w: f32[8, 8]) {"], "x"
    for i in range(40):
        lines.append(f"  %mm{i}: f32[4, 8] = aten.mm(%{h}, %w)")
        lines.append(f"  %relu{i}: f32[4, 8] = aten.relu(%mm{i})")
        lines.append(f"  %add{i}: f32[4, 8] = aten.add.Tensor(%relu{i}, %{h})")
        h = f"add{i}"
    text = "\n".join([*lines, f"  return (%{h})", "}"])
    path = write(tmp_path / "b", text, torch.randn(4, 8), torch.randn(8, 8) * 0.01)
    code, report = analyze(path, "fault:wrong:aten.relu")
    assert code == 0
    assert report["first_wrong"]["node"] == "relu0"
    found = verdicts(report)
    assert all(found[f"relu{i}"] == "wrong" for i in range(40))
    assert all(found[f"mm{i}"] != "wrong" and found[f"add{i}"] != "wrong" for i in range(40))
    # Whole graph (12 looks), copy that returns all, and the three kinds of node.
    assert report["analysis"]["compiled"] == 16


def test_a_fault_that_needs_two_nodes_is_a_stretch(tmp_path):
    text = chain(100, {40: "aten.sin(%{})", 41: "aten.cos(%{})"})
    path = write(tmp_path / "b", text, torch.randn(4, 16))
    code, report = analyze(path, "fault:wrong:aten.sin>aten.cos")
    assert code == 0
    assert report["first_wrong"]["node"] == "v41"
    assert report["first_wrong"]["together_with"] == "v40"
    assert "wrong" not in {v for name, v in verdicts(report).items() if name != "v41"}


def test_a_flaky_backend_is_called_nondeterministic(tmp_path):
    path = write(tmp_path / "b", chain(60, {33: "aten.relu(%{})"}), torch.randn(4, 16))
    code, report = analyze(path, "fault:wrong:aten.relu:p=0.5")
    assert code == 0
    assert report["first_wrong"]["node"] == "v33"
    assert report["first_wrong"]["verdict"] == "nondeterministic"
    assert report["analysis"]["backend_repeated"] == "differs"
    assert 0 < report["reproduced_rate"] < 1


def test_nan(tmp_path):
    path = write(tmp_path / "b", chain(50, {20: "aten.relu(%{})"}), torch.randn(4, 16))
    code, report = analyze(path, "fault:wrongnan:aten.relu")
    assert code == 0
    assert report["first_wrong"]["node"] == "v20"
    assert report["analysis"]["nodes"][20]["local_error"] == "nan"


def test_an_exception_has_a_node_too(large):
    code, report = analyze(large, "fault:exception:aten.relu")
    assert code == 0
    assert report["kind"] == "exception"
    assert report["first_wrong"]["node"] == "v171"
    assert report["first_wrong"]["verdict"] == "raises"


CANCELLATION = """graph g(%x: f32[20000]) {
  %a: f32[20000] = aten.mul.Tensor(%x, 3.0)
  %s: f32[] = aten.sum(%a)
  %y: f32[] = aten.neg(%s)
  return (%y)
}"""


def test_a_cancelling_sum_is_ill_conditioned_and_not_wrong(tmp_path):
    torch.manual_seed(0)
    half = torch.randn(9_999) * 1e6
    x = torch.cat([half, -half, torch.tensor([1.0, 0.5])])[torch.randperm(20_000)]
    path = write(tmp_path / "b", CANCELLATION, x)
    rounding = abs((x * 3).sum().item() - (x * 3).double().sum().item())
    assert rounding > 0.01, "the sum must lose digits for this test to say anything"
    code, report = analyze(path, f"fault:wrong:aten.sum:by={rounding}", "--all")
    assert code == 5
    assert report["outcome"] == "pass"
    assert report["first_wrong"] is None
    assert verdicts(report)["s"] in {"ill-conditioned", "closer to fp64"}
    code, report = analyze(path, f"fault:wrong:aten.sum:by={rounding * 50}")
    assert code == 0
    assert report["first_wrong"]["node"] == "s"


def test_nothing_wrong(large):
    code, report = analyze(large, "eager")
    assert code == 5
    assert report["outcome"] == "pass"
    assert report["first_wrong"] is None


def test_all_finds_what_the_outputs_hide(tmp_path):
    text = """graph g(%x: f32[8]) {
  %r: f32[8] = aten.relu(%x)
  %z: f32[8] = aten.mul.Tensor(%r, 0.0)
  return (%z)
}"""
    path = write(tmp_path / "b", text, torch.randn(8))
    code, report = analyze(path, "fault:wrong:aten.relu")
    assert code == 5
    code, report = analyze(path, "fault:wrong:aten.relu", "--all")
    assert code == 0
    assert report["first_wrong"]["node"] == "r"


def test_in_place_operators_see_the_values_of_their_moment(tmp_path):
    text = """graph g(%x: f32[8]) {
  %a: f32[8] = aten.mul.Tensor(%x, 2.0)
  %b: f32[8] = aten.add_.Tensor(%a, 1.0)
  %c: f32[8] = aten.relu(%a)
  %d: f32[8] = aten.mul_.Tensor(%b, 3.0)
  %e: f32[8] = aten.sub.Tensor(%a, %c)
  return (%e, %d)
}"""
    path = write(tmp_path / "b", text, torch.randn(8))
    code, report = analyze(path, "eager", "--all")
    assert code == 5
    assert set(verdicts(report).values()) == {"equal"}
    code, report = analyze(path, "fault:wrong:aten.relu")
    assert code == 0
    assert report["first_wrong"]["node"] == "c"


def test_a_crash_does_not_end_the_analysis(large):
    code, report = analyze(large, "fault:crash:aten.relu")
    assert code == 0
    assert report["kind"] == "crash"
    assert report["first_wrong"]["operator"] == "aten.relu"


def test_eager_that_fails(tmp_path):
    path = write(
        tmp_path / "b", "graph g(%x: f32[2, 3]) { %y: f32[2, 3] = aten.mm(%x, %x) return (%y) }", torch.ones(2, 3)
    )
    code, report = analyze(path, "fault:wrong:aten.mm")
    assert code == 4
    assert report["outcome"] == "eager_fails"


def test_a_missing_bundle():
    done = subprocess.run([COMMAND, "analyze", "/nowhere/b"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("cutaway: /nowhere/b")


def test_inductor_tells_its_values_and_the_planted_bug_is_named(tmp_path):
    text = """graph g(%x: f32[32, 32], %w: f32[32, 32]) {
  %h: f32[32, 32] = aten.mm(%x, %w)
  %a: f32[32, 32] = aten.sin(%h)
  %r: f32[32, 32] = aten.relu(%a)
  %c: f32[32, 32] = aten.add.Tensor(%r, %h)
  %m: f32[32, 32] = aten.mm(%c, %w)
  return (%m, %c)
}"""
    path = write(tmp_path / "b", text, torch.randn(32, 32), torch.randn(32, 32))
    manifest = json.loads((path / "manifest.json").read_text())
    manifest |= {"stage": "aot", "options": {"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}}
    (path / "manifest.json").write_text(json.dumps(manifest))
    code, report = analyze(path, "inductor", "--trust")
    assert code == 0
    assert report["first_wrong"]["node"] == "r"
    assert report["analysis"]["backend_repeated"] == "identical"
    rows = {row["node"]: row for row in report["analysis"]["nodes"]}
    assert rows["a"]["cumulative_error"] is None, "sin is fused into the kernel of add"
    assert rows["h"]["cumulative_error"] < 1e-4
    assert rows["c"]["cumulative_error"] > 0.5
    assert rows["c"]["verdict"] == rows["m"]["verdict"] == "wrong input"
    assert report["analysis"]["kernels"] == 3 and report["analysis"]["distinct_kernels"] == 2  # two products alike
    assert rows["a"]["kernel"] == rows["r"]["kernel"] == rows["c"]["kernel"] != rows["h"]["kernel"]
    assert rows["m"]["kernel"] == rows["h"]["kernel"] == "extern_kernels.mm"


def test_inductor_after_capture_is_measured_by_kernel(tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.second = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)

        def forward(self, x):
            return self.second(torch.relu(self.norm(self.first(x))).sin())

    torch.manual_seed(0)
    net, x = Net(), torch.randn(2, 3, 8)
    seen = []
    torch._dynamo.reset()
    torch.compile(net, backend=lambda gm, given: seen.append((gm, given)) or gm.forward)(x)
    path = tmp_path / "b"
    options = {"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}
    cutaway.save_repro(*seen[0], options=options, accuracy="accuracy", path=path)
    code, report = analyze(path, "inductor")
    assert code == 0, report
    assert report["first_wrong"]["operator"] == "torch.relu"
    rows = {row["op"].rpartition(".")[2]: row for row in report["analysis"]["nodes"]}
    assert rows["relu"]["kernel"] == rows["sin"]["kernel"] == report["first_wrong"]["kernel"]
    assert rows["relu"]["kernel"].startswith("cpp_fused_") and rows["linear"]["kernel"] == "extern_kernels.addmm"
    assert report["analysis"]["kernels"] >= 3


@pytest.mark.parametrize("fault, ending", [("crash", "crashes"), ("hang", "hangs")])
def test_a_part_that_ends_its_process_is_a_verdict(tmp_path, fault, ending):
    text = """graph g(%x: f32[4]) {
  %a: f32[4] = aten.sin(%x)
  %b: f32[4] = aten.tanh(%a)
  %r: f32[4] = aten.relu(%b)
  %c: f32[4] = aten.cos(%r)
  return (%c)
}"""
    path = write(tmp_path / "b", text, torch.ones(4))
    code, report = analyze(path, f"fault:{fault}:aten.relu", "--part-timeout", "1")
    assert code == 0, report
    assert report["kind"] == fault and report["first_wrong"]["node"] == "r"
    rows = {row["node"]: row for row in report["analysis"]["nodes"]}
    assert rows["r"]["verdict"] == ending
    assert rows["a"]["verdict"] == rows["b"]["verdict"] == rows["c"]["verdict"] == "equal"
