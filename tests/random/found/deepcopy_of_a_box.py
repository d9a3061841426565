# seed 15: differed at call 0 (inputs 0)
import copy
import functools

import torch
import torch.utils.checkpoint


def twice(f):

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(f(*args, **kwargs))

    return wrapper


@twice
def decorated(p):
    return p


class Box:
    def __init__(self, w, n):
        self.w = w
        self.n = n
        self.items = []

    @classmethod
    def make(cls, w):
        return cls(w, 1)

    def __call__(self, p):
        self.items.append(len(self.items))
        return self.w + p


def produce(p, k):
    for i in range(k):
        p = p + i
        yield p


class Base:
    def run(self, p):
        return p + 1


class Derived(Base):
    pass


super_call = Derived()


class Slotted(Box):
    pass


class Target(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x1):
        self.calls += 1
        torch.set_grad_enabled(False)
        x1 = decorated(x1)
        torch.set_grad_enabled(True)
        v2 = sum([v3 for v3 in range(3)])
        g4 = produce(Box.make(x1)(x1), 3)
        v7 = next(g4)
        v8 = list(g4)
        v9 = v8.pop()
        v10 = x1
        v11 = copy.deepcopy(Box(torch.full_like(x1, 0.5 if True else 0.5).detach(), v2))
        v12 = v9.sum()
        v8 += [(v7, x1)[0]]
        v13 = super_call.run(v9)
        v14 = copy.copy(Slotted(x1, v2))
        v14.n = v2
        return (x1, v10, v7)


target = Target()
fn = target


def inputs(k):
    n, m, dtype = ([2, 3, 5, 4][k], [4, 4, 6, 3][k], torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(n, m)
    return ([x1], {})


def between(k):
    pass
    Box.factor = 0.5 if k < 3 else 2.5
