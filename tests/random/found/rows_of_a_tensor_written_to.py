# seed 408610, fx: different
import torch.utils.checkpoint

def fn(x1):
    for v2 in x1:
        for v3 in range(3):
            print(v3)
            v2 += v3

def inputs(k):
    n, m, dtype = (k, k, torch.float32)
    x1 = torch.rand(n, m, requires_grad=True)
    return (x1, {})

def between(k):
    pass
