"""The debugger on the backend native: a wrong rewrite, fusion or kernel is named, cut down and told, without any Python worker."""

import cutaway
import pytest
import torch
import torch.nn.functional as F

from tests.support.bundles import write_bundle


def program(x, w, b, mean, var):
    y = F.layer_norm(x + 1, (32,), w, b)
    z = F.gelu(y) * x
    h = torch.softmax(z.tanh(), -1)
    n = F.batch_norm(z, mean, var, w, b)
    k = torch.log_softmax(n * 2, -1) + torch.full_like(x, 0.5)
    s = (x.exp() + 1).log().sum(0)
    return torch.cat([h.sin(), k.abs()]) @ torch.stack([s, w], 1)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    torch.manual_seed(0)
    inputs = [torch.randn(8, 32), torch.rand(32) + 0.5, torch.randn(32), torch.randn(32), torch.rand(32) + 0.5]
    graph = cutaway.aot(program, inputs).forward
    return write_bundle(
        tmp_path_factory.mktemp("native") / "bundle", graph, inputs, stage="aot", accuracy="accuracy", backend="native"
    )


PLANTED = [  # test_native_analyze.py has the others
    "fusions:aten.mean.dim into aten.add.Tensor", "fusions:aten.mul.Tensor into aten.gelu", "fusions:aten.div.Tensor into aten.sum.dim_IntList",
]  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_bisect_names_what_is_wrong(ask, bundle, monkeypatch, planted):
    monkeypatch.setenv("CUTAWAY_PLANT_NATIVE_FAULT", planted)
    answer = ask("bisect", bundle, "--no-minify", "--no-options", "--json")
    assert answer.code == 0, answer.err + answer.out
    guilty = answer.json["guilty"]
    assert answer.json["verified"] and f"{guilty['kind']}s:{guilty['name']}" == planted
    assert "test_native_debugger.py" in guilty["place"]


def test_without_a_fault_it_passes(ask, bundle):
    assert ask("run", bundle).code == 0
    assert ask("bisect", bundle, "--no-minify", "--no-options").code == 5


def test_a_wrong_kernel_is_cut_down_and_told(ask, bundle, monkeypatch, tmp_path):
    monkeypatch.setenv("CUTAWAY_PLANT_NATIVE_FAULT", "rewrites:softmax")
    small = tmp_path / "small"
    answer = ask("minify", bundle, "-o", small, "--json")
    assert answer.code == 0 and answer.json["one_minimal"] and answer.json["nodes_after"] == 1, answer.err + answer.out
    assert "aten._softmax" in (small / "graph.cut").read_text()
    assert ask("run", small, "--without", "rewrites:softmax").code == 0
    assert ask("run", small, "--without", "kernels").code == 0
    assert ask("run", small).code == 1


def test_parts_are_those_of_the_backend(ask, bundle):
    assert "neither Inductor nor native has a part" in ask("run", bundle, "--without", "kernel").err
    refused = ask("run", bundle, "--without", "lowerings")
    assert refused.code == 2 and "no part" in refused.err
