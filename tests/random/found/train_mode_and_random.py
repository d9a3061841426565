# seed 213: differed at call 2 (inputs 1)
import random

import torch
import torch.utils.checkpoint


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5]))
        self.inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout(0.5))
        self.scale = 1.0

    def forward(self, p):
        return self.inner(p * self.weight) * self.scale


net = Net()


def fn(x1, x2, x3, x4):
    v5 = 0
    while True:
        v5 += 1
        if v5 > 2 or float(v5) < abs(0.5) ** 0.5:
            break
        net.train(max(x4, key=lambda v6: v6.shape[0]) is x1)
        v8 = net(x1)
        v10 = v8 * random.random()


def inputs(k):
    n, m, dtype = (3, [3, 5, 3, 4][k], torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(n, m, dtype=dtype)
    x2 = 1
    x3 = list
    x4 = [x1, torch.randn(n, m)]
    return ([x1, x2, x3, x4], {})


def between(k):
    net.train(k % 2 == 0)
