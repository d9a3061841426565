"""Tests as people write them. `pytest --cutaway examples/test_compiled.py` passes the first, and cuts the second one's failure down.

The second compiles with a backend that has a fault: its relu is a gelu. The assertion of the test is too weak to see it.
"""

import torch


def gelu_for_relu(gm: torch.fx.GraphModule, inputs):
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.nn.functional.gelu
    gm.recompile()
    return gm.forward


def block(x, w):
    return torch.relu(torch.tanh(x @ w) + 0.1).sum(-1)


def test_right():
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    assert torch.compile(block, backend="aot_eager")(x, w).shape == (4,)


def test_wrong():
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    assert torch.compile(block, backend=gelu_for_relu)(x, w).shape == (4,)
