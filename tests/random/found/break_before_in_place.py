# seed 248: differed at call 0 (inputs 0)
import functools
import operator

import torch
import torch.utils.checkpoint


class Box:
    @staticmethod
    def static(p):
        return p * 3


def fn(x1, x2, x3, x4, x5):
    v6 = Box.static(x5)
    v7 = 0
    v8, v9 = (v6 * 1.5, torch.clamp(x5, min=-1.0, max=float(v7)))
    print(x4.upper(), functools.reduce(operator.add, [x5], v9).shape[0])
    v9 += 0.5
    v11 = x3.norm()


def inputs(k):
    n, m, dtype = (3, [4, 4, 6, 3][k], torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(n, m, dtype=dtype)
    x2 = True
    x3 = torch.randn(m)
    x4 = ["a", "b", "", "abc"][k]
    x5 = torch.rand(n, m, requires_grad=True)
    return ([x1, x2, x3, x4, x5], {})


def between(k):
    pass
