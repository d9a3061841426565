"""Text of 100,000 nodes: print, parse, verify and digest, each linear in the graph. Goal: print and parse in half a second each.

The peer is torch.fx with as many nodes: str(graph) prints; what reads a graph back there is pickle, which traces the code again.
"""

import pickle

import cutaway
import torch
from side_by_side import compare, finish

NODES = 100_000


def text_of_graph() -> str:
    lines = ["cutaway graph 1", "graph forward(%x0: f32[64, 128]) {"]
    for i in range(NODES):
        place = f"model.py:{10 + i % 500} Net.forward in encoder.layer.{i % 24}"
        lines.append(f"  %x{i + 1}: f32[64, 128] = aten.add.Tensor(%x{i}, %x{i}, alpha=2)  # {place}")
    return "\n".join([*lines, f"  return (%x{NODES})", "}"]) + "\n"


def fx_module() -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    for _ in range(NODES):
        x = graph.call_function(torch.add, (x, x), {"alpha": 2})
    graph.output(x)
    return torch.fx.GraphModule(torch.nn.Module(), graph)


text = text_of_graph()
graph = cutaway.Graph.parse(text)
assert graph.text(header=True) == text
module = fx_module()
pickled = pickle.dumps(module)
size = f"{len(text) / 1e6:.1f} MB"

compare(
    f"print {NODES} nodes ({size})",
    lambda: str(graph),
    lambda: str(module.graph),
    peer_name="str(fx.Graph)",
    repeat=3,
    at_most_s=0.5,
)
compare(
    f"parse {NODES} nodes ({size})",
    lambda: cutaway.Graph.parse(text),
    lambda: pickle.loads(pickled),
    peer_name="pickle.loads(GraphModule)",
    repeat=3,
    at_most_s=0.5,
)
compare(f"verify {NODES} nodes", graph.verify, module.graph.lint, peer_name="fx.Graph.lint", repeat=3)
finish()
