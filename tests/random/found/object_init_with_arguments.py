# seed 1015: differed at call 0 (inputs 0)
import copy

import torch
import torch.utils.checkpoint

G_SCALE = 0.75


class Box:
    pass


class Child(Box):
    def __init__(self, w, n, factor=1.0):
        super().__init__(w, n)
        self.factor = factor


def bump_global(k):
    pass


G_LIST = []


class Region:
    def __init__(self, name, swallow=False):
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        print("enter", self.name)
        return self

    def __exit__(self, kind, value, traceback):
        print("exit", self.name, kind.__name__ if kind else None)
        return self.swallow


def fn(x1, x2):
    v4 = copy.copy(Child(x1, G_N, factor=G_SCALE))
    v4.n = G_N
    with torch.no_grad():
        x1 = torch.relu(x1).t().contiguous().t()
    v4.w = x1
    v5 = [lambda p, i=v6: p + i for v6 in range(2)]
    v10 = v5[0](x1) + v5[1](x1)
    bump_global(G_N)
    v11 = list({v12: len(v12) for v12 in ["p", "qq"]}.values())
    v15 = v11
    with Region("{}-{x}".format("t", x=G_N) * 2, swallow=True):
        v18 = x1
        fail_if(True, f"v{G_N}")
        v19 = list(delegate(v17))


def inputs(k):
    n, m, dtype = ([4, 1, 4, 2][k], [3, 5, 3, 4][k], torch.float32)
    x1 = torch.randn(m, n, dtype=dtype).t()
    x2 = torch.randn(())
    return ([x1, x2], {})


def between(k):
    global G_N
    pass
    G_N = k
    if k == 3:
        G_LIST.clear()
