# an operator that raises only on real data: the line of the program is missing where a backend of Python runs the graph
import torch


def fn(x1, x2):
    v1 = x1 + 1
    v2 = v1 @ x2
    return v2


def inputs(k):
    return [torch.randn(3, 3), torch.randn(3, 3, dtype=torch.float64 if k == 2 else torch.float32)], {}


def between(k):
    pass
