"""cutaway.Graph as Python sees it: the text form, views, edits, comparison."""

import copy
import pickle

import pytest
from cutaway import Error, _native

Graph = _native.Graph

TEXT = """graph forward(%x: f32[2, 64], %w: f32[64, 64] grad = param "encoder.0.weight", %m: f32[64] = buffer "mean") {
  %h: f32[2, 64] = aten.mm(%x, %w)  # model.py:12 Net.forward in encoder.layer.0
  %r: f32[2, 64] = call torch.nn.functional.relu(%h, inplace=false) no_grad {
    %r0: f32[2, 64] = aten.relu(%h)
    yield (%r0)
  }
  %dead: f32[2, 64] = aten.neg(%h)
  return (%r, none, [%h, 3])
}
"""


def test_text_reads_back() -> None:
    g = Graph.parse(TEXT)
    assert str(g) == TEXT
    assert g == Graph.parse(str(g)) == g.copy() == copy.deepcopy(g)
    assert pickle.loads(pickle.dumps(g)) == g
    assert g.text(header=True).startswith("cutaway graph 1\n")
    assert repr(g) == "<Graph forward: 3 inputs, 3 nodes, 3 outputs>"
    assert "<svg" in g._repr_html_()


def test_views() -> None:
    g = Graph.parse(TEXT)
    assert [(i.name, i.type, i.kind, i.qualified_name) for i in g.inputs] == [
        ("x", "f32[2, 64]", "user", ""),
        ("w", "f32[64, 64] grad", "parameter", "encoder.0.weight"),
        ("m", "f32[64]", "buffer", "mean"),
    ]
    mm, relu, _ = g.nodes
    assert (mm.kind, mm.target, mm.args, mm.results) == ("op", "aten.mm", ["%x", "%w"], ["h"])
    assert (mm.file, mm.line, mm.function, mm.module) == ("model.py", 12, "Net.forward", "encoder.layer.0")
    assert (relu.kind, relu.kwargs) == ("call", {"inplace": "false"})
    assert [n.target for n in relu.region] == ["aten.relu"]
    assert g.outputs == ["%r", "none", "[%h, 3]"]


def test_edits() -> None:
    g = Graph.parse(TEXT)
    before = g.copy()
    assert g.remove_dead_code() == 1
    assert g.remove_unused_inputs() == [0, 1]
    assert g.verify() == []
    assert [d.where for d in _native.diff(before, g)] == ["input %m", "%dead (node 2)"]
    assert _native.unified_diff(before, g).startswith("--- a\n+++ b\n@@")
    digest = g.digest()
    g.renumber(rename=True)
    assert g.digest() == digest != before.digest()
    assert [i.name for i in g.inputs] == ["0", "1"]
    g.replace_value_by_input("2")
    g.keep_outputs([0])
    assert g.outputs == ["%3"]
    assert len(before.extract([1]).inputs) == 1
    assert before.prefix(0).outputs == ["%h"]


def test_mistakes_have_their_place() -> None:
    with pytest.raises(Error) as e:
        Graph.parse("graph f(%x: fp32[2]) {", "x.cut")
    assert str(e.value).startswith("x.cut:1:13: 'fp32' is not a dtype; did you mean \"f32\"?\n    1 | graph f(")
    g = Graph.parse(TEXT)
    with pytest.raises(IndexError):
        g.keep_outputs([9])
    with pytest.raises(KeyError):
        g.replace_value_by_input("nothing")
    with pytest.raises(ValueError):
        g.replace_value_by_input("r0")
