# an operator that raises only on real data, inside a block that catches it, among writes and random numbers
import torch


def solve(p, q):
    try:
        return torch.linalg.solve(p, q)
    except RuntimeError as error:
        print(type(error).__name__)
        return q


def fn(x1, x2):
    x2.add_(1)
    v1 = torch.nn.functional.dropout(x2, 0.5)
    v2 = solve(x1, v1)
    x2.mul_(2)
    try:
        v3 = x2[(x1.sum(0) * 0 + 7).long()]
    except IndexError:
        v3 = torch.rand(3)
    return v2, v3


def inputs(k):
    return [torch.randn(3, 3) * (k != 1), torch.randn(3, 3)], {}


def between(k):
    pass
