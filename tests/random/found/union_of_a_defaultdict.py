# seed 100695, native: different
import collections
import torch.utils.checkpoint

def fn(x1, x2, x3, x4):
    v6 = collections.defaultdict(list, a=x1) | {'a': x1}
    return v6

def inputs(k):
    n, m, dtype = ([4, 1, 4, 2][k], [4, 4, 6, 3][k], torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(n, m)
    x2 = [x1, torch.randn(n, m)]
    x3 = 'abc'
    x4 = {'p': 1, 'q': 2}
    return ([x1, x2, x3, x4], {})

def between(k):
    global G_SCALE
    G_SCALE = 0.75 if k < 2 else 1.25
