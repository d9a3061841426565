# seed 106761, native: different
import functools
import itertools
import math
import sys
import torch.nn.functional as F
import torch.utils.checkpoint

class Box:

    def __init__(self, w, n):
        self.w = w
        self.n = n
        self.items = []
linear = functools.partial(F.leaky_relu, negative_slope=0.1)

def produce(p, k):
    for i in range(k):
        p = p + i
        yield p

def delegate(p):
    yield p
G_LIST = []

def count_up(k):
    i = 0
    try:
        while i < k:
            yield i
            i += 1
    finally:
        G_LIST.append(i)

def cutaway_break():
    sys.getrefcount(None)

def breaking(p, k):
    pass
G_TABLE = {'n': 0, 'f': torch.cos}

def fn(x1, x2, x3, x4):
    (v5, v6), v7 = ([x1, x1], math.floor(math.sqrt(abs(0.5))))
    for v15 in delegate(linear(x1)):
        print('t'.replace('a', 'b').upper())

        def f16(p, k=v7 / 2):
            p += k
            if v7 == v7:
                for v19 in produce(v5 * k, 1 + 1):
                    torch.set_grad_enabled(False)
                    v19 = v15
                    torch.set_grad_enabled(True)
                    v20 = [v21 for v21, v23 in itertools.pairwise([len(v24) for v24 in 'a bb ccc'.split()])]
                    for v26 in count_up(1):
                        cutaway_break()
                        G_LIST.append(breaking(*[x3.w], **{'k': 0}))
                        if all((v27 > 0 for v27 in v20)):
                            break
                G_TABLE['n'] = v7
            else:
                v29 = v6 * 1
                v29.add_(v15 / (x1.abs() + 1) @ (v5[::-1 if False else 1].t() @ x1) / 3)
            return torch.where(x1 > k + v7, v15, x1)
        v30 = f16
        v31 = f16(v15)

def inputs(k):
    n, m, dtype = (3, 4, torch.float32)
    x1 = torch.randn(n, m)
    x2 = {'p': k}
    x3 = Box(torch.randn(n, m), 2)
    x4 = torch.randn(m)
    return ([x1, x2, x3, x4], {})

def between(k):
    pass
