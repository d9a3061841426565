"""`cutaway bisect`: the guilty part of torch's Inductor by name, verified, and no trace left behind."""

import json
import os
from pathlib import Path

import cutaway
import pytest
import torch

from tests.support.bundles import write_bundle

HERE = str(Path(__file__).parent)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(torch.tanh(self.linear(x)).sinh()).sum(-1)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    torch.manual_seed(0)
    graph = cutaway.Graph.from_export(torch.export.export(Model(), (torch.randn(4, 8),)))

    def bundle(**fields):
        path = tmp_path_factory.mktemp("bisect") / "bundle"
        return write_bundle(path, graph, [torch.randn(4, 8)], stage="capture", accuracy="accuracy", **fields)

    return bundle


def test_injected_bug_is_a_lowering_and_an_option(ask, make, tmp_path, monkeypatch):
    """Torch's injected relu bug, to the end: the lowering, the option that brings it, the smallest graph, the command."""
    torch_cache = tmp_path / "torch_cache"  # where torch's own bisector keeps its state
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(torch_cache))
    bundle = make(backend="inductor", options={"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"})
    answer = ask("bisect", bundle, "-o", tmp_path / "small", "--json")
    assert answer.code == 0, answer.err + answer.out
    report = answer.json
    guilty = report["guilty"]
    assert report["verified"] and report["outcome"] == "failure" and report["kind"] == "accuracy"
    assert guilty["kind"] == "lowering" and guilty["name"] == "aten.relu.default"
    assert 1 <= guilty["number"] <= guilty["of"]
    assert "forward" in guilty["graph"]
    option = next(c for c in report["also"] if c["kind"] == "option")
    assert (option["name"], option["value"]) == ("cpp.inject_relu_bug_TESTING_ONLY", '"accuracy"')
    assert report["nodes_after"] == 1 and "aten.relu" in report["graph"]
    assert json.loads((tmp_path / "small" / "bisect.json").read_text())["guilty"] == guilty
    assert guilty["switch"] in report["check"]
    assert ask("run", tmp_path / "small", "--option", "cpp.inject_relu_bug_TESTING_ONLY=default").code == 0
    assert not any("bisect" in name for _, folders, files in os.walk(torch_cache) for name in [*folders, *files])


def test_code_that_does_not_compile(ask, make):
    """The lowering whose code g++ refuses is named as well as one that computes wrong numbers; the report tells it."""
    bundle = make(backend="inductor", options={"cpp.inject_relu_bug_TESTING_ONLY": "compile_error"})
    answer = ask("bisect", bundle, "--no-minify", "--no-options", "--json")
    assert answer.code == 0, answer.err + answer.out
    guilty = answer.json["guilty"]
    assert (guilty["kind"], guilty["name"]) == ("lowering", "aten.relu.default")
    assert answer.json["kind"] == "exception" and answer.json["verified"]
    assert answer.json["report"] == str(bundle / "report.html")
    page = (bundle / "report.html").read_text()
    assert "Which part is guilty" in page and "aten.relu.default" in page


def test_code_that_throws(ask, make):
    """A C++ exception out of a kernel ends the process: a crash, and the lowering is named all the same."""
    bundle = make(backend="inductor", options={"cpp.inject_relu_bug_TESTING_ONLY": "runtime_error"})
    answer = ask("bisect", bundle, "--no-minify", "--no-options", "--json")
    assert answer.code == 0, answer.err + answer.out
    assert (answer.json["guilty"]["kind"], answer.json["guilty"]["name"]) == ("lowering", "aten.relu.default")
    assert answer.json["kind"] in ("crash", "exception") and answer.json["verified"]
    assert json.loads((bundle / "bisect.json").read_text())["guilty"] == answer.json["guilty"]


def test_wrong_pattern_of_a_backend_on_inductor(ask, make):
    bundle = make(backend="python:planted_backends:wrong_pattern", extra={"python_path": [HERE]})
    assert ask("bisect", bundle).code == 2  # it imports: --trust
    answer = ask("bisect", bundle, "--trust", "--no-minify", "--no-options", "--json")
    assert answer.code == 0, answer.err + answer.out
    guilty = answer.json["guilty"]
    assert (guilty["part"], guilty["name"]) == ("patterns", "tanh_to_cos(aten.tanh.default)")
    assert [c["part"] for c in answer.json["also"]] == ["post_grad_passes"]  # the pass that applies it
    assert answer.json["nodes_after"] is None and answer.json["verified"]


def test_run_without_a_decomposition(ask, make):
    bundle = make(backend="python:planted_backends:wrong_decomposition", extra={"python_path": [HERE]})
    assert ask("run", bundle, "--trust", "--without", "decompositions:aten.sinh.default").code == 0


def test_a_start_that_passes_and_wrong_usage(ask, make):
    bundle = make(backend="inductor")
    answer = ask("bisect", bundle, "--json")
    assert answer.code == 5 and answer.json["outcome"] == "pass" and answer.json["guilty"] is None
    native = ask("bisect", bundle, "--backend", "fault:wrong:aten.relu")
    assert native.code == 2 and "has no parts" in native.err
    assert "did you mean" in ask("run", bundle, "--without", "lowering:aten.relu").err
    assert ask("run", bundle, "--limit", "lowerings=x").code == 2
    assert ask("run", bundle, "--option", "epilogue_fusion").code == 2
    refused = ask("run", bundle, "--backend", "eager", "--without", "lowerings")
    assert refused.code == 2 and "no parts that can be switched off" in refused.err
    unknown = ask("run", bundle, "--option", "no_such_option=1")
    assert unknown.code == 2 and "no_such_option" in unknown.err
