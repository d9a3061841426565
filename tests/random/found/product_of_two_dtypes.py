# seed 13230, fx: different
import torch.utils.checkpoint

class Box:

    def __init__(self, w, n):
        self.w = w

def fn(x1, x2, x3, x4, x5):

    def g6(p):
        v7 = (yield (p @ (x1.t() @ p) / 1))
    v9 = list(g6(x4.w))

def inputs(k):
    n, m, dtype = (k, [4, 4, 6, 3][k], torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(n, m, dtype=dtype)
    x2 = 'a'
    x3 = torch.randn
    x4 = Box(torch.randn(n, m), 2)
    x5 = torch.randn
    return ([x1, x2, x3, x4, x5], {})

def between(k):
    pass
