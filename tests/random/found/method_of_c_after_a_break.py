# seed 7308, fx: different
import torch.utils.checkpoint

def fn(x1, x2):
    v3 = x2
    v5 = v3.t @ x1

def inputs(k):
    n, m, dtype = (3, k, torch.float64)
    x1 = torch.randn(n, m, dtype=dtype)
    x2 = torch.randn(n, m)
    return ([x1, x2], {})

def between(k):
    pass
