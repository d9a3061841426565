# seed 56: differed at call 0 (inputs 0)
import copy
import dataclasses
import random

import torch
import torch.utils.checkpoint


@dataclasses.dataclass
class Data:
    n: int = 2


class Box:
    def __init__(self, w, n):
        self.n = n


def fn(x1, x2, x3, x4, x5):
    v9 = copy.deepcopy(Box(x2.detach(), Data(x4).n))
    with torch.no_grad():
        v12 = [1, 2, 3]
        random.shuffle(v12)


def inputs(k):
    n, m, dtype = ([3, 4, 2, 3][k], 4, torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(n, m, dtype=dtype)
    x2 = torch.randn(n, m, dtype=dtype)
    x3 = list(range(k + 1))
    x4 = torch.rand(n, m, requires_grad=True)
    x5 = k % 2 == 0
    return ([x1, x2, x3, x4], {"x5": x5})


def between(k):
    pass
