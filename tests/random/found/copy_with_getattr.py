# seed 1122: differed at call 3 (inputs 2)
import copy
import itertools

import torch
import torch.utils.checkpoint


class Box:
    def __init__(self, w, n):
        self.items = []


class Child(Box):
    def __getattr__(self, name):
        pass


def fn(x1, x2, x3):
    v4 = len("a")
    v13 = v4
    v14 = [v15[0] for v15 in itertools.groupby([{**{"a": x1}, "z": x1}["z"]], key=lambda v17: v17)]
    with torch.no_grad():
        v19 = dict(a=x3, c=x3).get("b", x3)
        if not v13 > v13:
            v26 = copy.copy(x2)
            v26.n = v13
        else:
            pass


def inputs(k):
    n, m, dtype = (3, 4, torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(n, m, dtype=dtype)
    x2 = (Box if k < 2 else Child)(torch.randn(n, m), k)
    x3 = torch.randn(n, m, dtype=dtype)
    return ([x1, x2, x3], {})


def between(k):
    pass
