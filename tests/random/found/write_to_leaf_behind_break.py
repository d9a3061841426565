# seed 22017474, fx: different
import torch.utils.checkpoint

def produce(p, k):
    for i in range(k):
        p = p + i
        yield p

def delegate(p):
    got = (yield from produce(p, 2))
    yield p

def fn(x1):
    for v3 in delegate(x1):
        print('a')
        v3 += 0.5

def inputs(k):
    n, m, dtype = (k, 4, torch.float32)
    x1 = torch.randn(n, m, dtype=dtype, requires_grad=k != 2)
    return (x1, {})

def between(k):
    pass
