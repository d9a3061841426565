# seed 26645, native: different
import torch.utils.checkpoint
scales = {}

def cached_scale(k):
    scales[k] = k

class Fixed:
    pass

def fn(x1, x2, x3):
    v4 = cached_scale(0)
    (v7, v8), v9 = ([x1, x1], Fixed.LIMIT)
    with torch.no_grad():
        v11 = next(iter(list(x1.split(1, dim=0))[:1] + [v7]))
        torch.add(v11.zero_(), v8, out=v11)

def inputs(k):
    n, m, dtype = ([3, 4, 2, 3][k], [4, 4, 6, 3][k], torch.float32)
    x1 = torch.randn(n, m, dtype=dtype, requires_grad=k != 2)
    x2 = True
    x3 = torch.randn
    return ([x1, x2], {'x3': x3})

def between(k):
    Fixed.LIMIT = 3
