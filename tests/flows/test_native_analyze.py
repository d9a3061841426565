"""Wrong numbers planted into the backend native, one row each: bisect names the part, analyze the node, inside of its kernel too."""

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
    r = torch.where(y > 0, y.sigmoid(), y.cos()) - x.abs().sqrt()
    return torch.cat([h.sin(), k.abs(), r.erf()]) @ torch.stack([s, w], 1)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    torch.manual_seed(0)
    inputs = [torch.randn(8, 32), torch.rand(32) + 0.5, torch.randn(32), torch.randn(32), torch.rand(32) + 0.5]
    graph = cutaway.aot(program, inputs).forward
    return write_bundle(
        tmp_path_factory.mktemp("native") / "bundle", graph, inputs, stage="aot", accuracy="accuracy", backend="native"
    )


# What is planted, which part bisect names (the text that its name holds), and which operator of the user's graph analyze names.
PLANTED = [
    ("rewrites:layer_norm", "rewrite layer_norm", "aten.native_layer_norm"),
    ("rewrites:softmax", "rewrite softmax", "aten._softmax"),
    ("rewrites:log_softmax", "rewrite log_softmax", "aten._log_softmax"),
    ("rewrites:batch_norm", "rewrite batch_norm", "batch_norm"),
    ("rules:aten.gelu", "aten.gelu", "aten.gelu"),
    ("rules:aten.tanh", "aten.tanh", "aten.tanh"),
    ("rules:aten.sin", "aten.sin", "aten.sin"),
    ("rules:aten.abs", "aten.abs", "aten.abs"),
    ("rules:aten.exp", "aten.exp", "softmax"),
    ("rules:aten.log", "aten.log", "_log_softmax"),
    ("rules:aten.erf", "aten.erf", "aten.erf"),
    ("rules:aten.sigmoid", "aten.sigmoid", "aten.sigmoid"),
    ("rules:aten.cos", "aten.cos", "aten.cos"),
    ("rules:aten.sqrt", "aten.sqrt", "aten.sqrt"),
    ("rules:aten.gt.Scalar", "aten.gt.Scalar", "aten.gt.Scalar"),
    ("rules:aten.where.self", "aten.where.self", "aten.where.self"),
    ("rules:aten.sum.dim_IntList", "aten.sum.dim_IntList", "softmax"),
    ("fusions:aten.gelu into aten.add.Tensor", "aten.gelu into aten.add.Tensor", "aten.gelu"),
    ("fusions:aten.tanh into aten.mul.Tensor", "aten.tanh into aten.mul.Tensor", "aten.tanh"),
    ("fusions:aten.log into aten.add.Tensor", "aten.log into aten.add.Tensor", "aten.log"),
]


@pytest.mark.parametrize(("planted", "part", "node"), PLANTED)
def test_bisect_names_the_part_and_analyze_the_node(ask, bundle, monkeypatch, planted, part, node):
    monkeypatch.setenv("CUTAWAY_PLANT_NATIVE_FAULT", planted)
    answer = ask("bisect", bundle, "--no-minify", "--no-options", "--json")
    assert answer.code == 0, answer.err + answer.out
    guilty = answer.json["guilty"]
    assert answer.json["verified"] and part in f"{guilty['kind']} {guilty['name']}"
    answer = ask("analyze", bundle, "--json")
    assert answer.code == 0, answer.err + answer.out
    assert node in answer.json["first_wrong"]["operator"], answer.json["first_wrong"]


def test_every_value_of_a_kernel_has_an_error_of_its_own(ask, bundle, monkeypatch):
    monkeypatch.setenv("CUTAWAY_PLANT_NATIVE_FAULT", "rules:aten.tanh")
    answer = ask("analyze", bundle, "--json")
    first = answer.json["first_wrong"]
    assert first["operator"] == "aten.tanh" and first["kernel"].startswith("native.k")
    rows = {row["op"]: row for row in answer.json["analysis"]["nodes"]}
    assert rows["aten.gelu"]["cumulative_error"] < 1e-5 < rows["aten.tanh"]["cumulative_error"]
