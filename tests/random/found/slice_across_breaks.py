# seed 9510213, native: different (cut down by hand)
import torch

class Loud:

    def __init__(self, w):
        self.w = w
        print('made')

    def run(self):
        y = self.w * 1
        print('run')
        self.w = y
        print('step')
        return self.w + y

def items(p):
    for i in range(2):
        q = p * (i + 1)
        print('item')
        yield q

def fn(x1, x2):
    v3 = torch.cat([x2, x2])[:x1.shape[0], :Loud(x2).run().shape[1]]
    for v4 in items(x2):
        break
    return v3

def inputs(k):
    n, m = ([3, 4, 2, 3][k], [4, 4, 6, 3][k])
    return ([torch.randn(n, m), torch.rand(n, m, requires_grad=True)], {})

def between(k):
    pass
