"""What tests of capture share: a compile function that can also be torch's, a backend that counts, and the comparison with eager."""

import os
import random

import cutaway
import torch

from tests.support.observe import Description, gradients

PEER = os.environ.get("CUTAWAY_TEST_COMPILER") == "torch"  # shows that the tests themselves are sound
AVAILABLE = PEER or hasattr(cutaway, "compile")


class Counter:
    """A backend that runs what it gets, and counts graphs and operators."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph_module, example_inputs):
        self.graphs.append(graph_module)
        return graph_module.forward

    @property
    def frame_count(self):
        return len(self.graphs)

    @property
    def op_count(self):
        return sum(node.op.startswith("call") for graph in self.graphs for node in graph.graph.nodes)


def reset():
    if PEER:
        torch._dynamo.reset()
    else:
        cutaway.reset()


def compile(function=None, **options):
    return (torch.compile if PEER else cutaway.compile)(function, **options)


def shown(function, args, kwargs=None, seed=0):
    """Everything that one call shows: result or exception, arguments afterwards, random state, gradients."""
    torch.manual_seed(seed)
    random.seed(seed)
    description = Description(function.__code__.co_filename if hasattr(function, "__code__") else "")
    kwargs = kwargs or {}
    result = None
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        description.add("raised", f"{type(error).__name__}: {error}")
    else:
        description.walk("result", result)
    description.walk("args", args)
    description.walk("kwargs", kwargs)
    description.add("grad mode", torch.is_grad_enabled())
    description.modes()
    description.add("random", random.random())
    description.add("torch random", torch.rand(1).item())
    loss = gradients([result, args])
    if loss is not None:
        loss.backward()
        description.walk("gradients", [t.grad for t in args if isinstance(t, torch.Tensor)])
    return description.lines
