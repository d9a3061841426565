# seed 1126: differed at call 0 (inputs 0)
import warnings

import torch
import torch.utils.checkpoint


class Box:
    def __init__(self, w, n):
        self.w = w
        self.n = n
        self.items = []


class Child(Box):
    def __init__(self, w, n, factor=1.0):
        super().__init__(w, n)
        self.factor = factor


def fn(x1, x2):
    if isinstance(Child(x1, 2, factor=0.5), Box):
        warnings.warn(x2)
        log.warning("seen %s", x2)


def inputs(k):
    n, m, dtype = ([2, 3, 5, 4][k], [4, 4, 6, 3][k], torch.float32)
    x1 = torch.rand(n, m, requires_grad=True)
    x2 = ["a", "b", "", "abc"][k]
    return ([x1, x2], {})


def between(k):
    pass
