# seed 11062, fx: different
import torch.utils.checkpoint

class Box:

    def __init__(self, w, n):
        pass

class Child(Box):
    pass

class Target(torch.nn.Module):

    def __init__(self):
        pass
target = Target()
fn = target

def inputs(k):
    n, m, dtype = ([2, 3, 5, 4][k], 4, torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(m, n, dtype=dtype).t
    x2 = torch.randn
    x3 = torch.rand
    x4 = (Box if k < 2 else Child)(torch.randn(n, m), k)
    return ([x1, x2, x3, x4], {})

def between(k):
    pass
