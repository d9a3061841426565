# seed 9510213, native: different
import functools
import math
import random
import sys
import torch.nn.functional as F
import torch.utils.checkpoint

class Box:

    def __init__(self, w, n):
        self.w = w
        self.n = n
        self.items = []

class Child(Box):
    pass
linear = functools.partial(F.leaky_relu, negative_slope=0.1)

class Loud:

    def __init__(self, w):
        self.w = w
        print('made')

    def run(self, k):
        y = self.w * k
        print(k)
        return self.step(y) + y

    def step(self, y):
        self.w = y
        print('step')
        return self.w + 1

def cutaway_break():
    sys.getrefcount(None)
G_LIST = []

def breaking(p, k):
    q = p * (k + 1)
    cutaway_break()
    G_LIST.append(k)
    return q + p

def broken_items(p, k):
    for i in range(k):
        q = p * (i + 1)
        cutaway_break()
        yield (q + i)
    G_LIST.append(k)

def fail_if(condition, text):
    if condition:
        raise Custom(text)

class Broken:

    def __init__(self, w, n):
        self.w = w * 2
        cutaway_break()
        self.n = n
        fail_if(n > 4, 'large')

    @property
    def value(self):
        y = self.w + self.n
        cutaway_break()
        fail_if(self.n == 2, 'two')
        return y * 0.5

    def __getattr__(self, name):
        cutaway_break()
        if name == 'absent':
            raise AttributeError(name)
        return len(name)

    def __setattr__(self, name, value):
        if name == 'tag':
            cutaway_break()
        object.__setattr__(self, name, value)

    def __add__(self, other):
        y = self.w * 3
        cutaway_break()
        return NotImplemented if self.n == 3 else y + other

    def __iadd__(self, other):
        self.w = self.w + other
        cutaway_break()
        self.w = self.w * 2
        return self

    def __radd__(self, other):
        cutaway_break()
        return other - self.w

    def __lt__(self, other):
        cutaway_break()
        return self.n < other

    def __eq__(self, other):
        cutaway_break()
        return NotImplemented if self.n == 0 else self.n == other

    def __bool__(self):
        cutaway_break()
        return self.n > 1

    def __len__(self):
        y = self.w + 1
        cutaway_break()
        self.w = y
        return self.n

    def __contains__(self, k):
        cutaway_break()
        return k == self.n

    def __getitem__(self, i):
        y = self.w * i
        cutaway_break()
        return y - 1

    def __setitem__(self, i, value):
        self.w = value + i
        cutaway_break()
        self.w = self.w * 0.5

    def __iter__(self):
        cutaway_break()
        for i in range(self.n):
            yield (self.w + i)
            cutaway_break()

    def __enter__(self):
        y = self.w * 2
        cutaway_break()
        return y + 1

    def __exit__(self, kind, value, traceback):
        cutaway_break()
        print('left', kind.__name__ if kind else None)
        return self.n > 0

def fn(x1, x2, x3, x4, x5, x6):
    v7 = v8 = x4
    x2.pop('b', None)
    v9 = linear
    import math as v10
    v12 = v10.cos(G_SCALE)
    v13 = v7
    v14 = torch.cat([v13, x4], dim=2 % 2)[:x2['a'].shape[0], :Loud(v8).run(1).shape[1]]
    for v15 in broken_items(breaking(*[v8], **{'k': 1}), 2):
        for v16 in Broken(v8, 3):

            def f17(p, *rest, k=math.pi if x3 else v12, **more):
                v19 = [1, 2, 3]
                random.shuffle(v19)
                return p * k + len(rest) + len(more)
            v20 = f17(x5[0].tanh(), v15.shape[0] & 3 | 4 ^ v7.size(1), k=v12, q=len(v15))
            if (G_N, len([1, 2])) < (int('12') + 2, 2 + 2):
                break
        if x3:
            break
    else:
        pass
    return (v14, x1, x3, x6, v8, v13)

def inputs(k):
    n, m, dtype = ([3, 4, 2, 3][k], [4, 4, 6, 3][k], torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(n, 2 * m, dtype=dtype)[:, ::2]
    x2 = {'a': torch.randn(n, m)} if k < 2 else {'b': torch.randn(n, m), 'a': x1}
    x3 = True
    x4 = torch.rand(n, m, requires_grad=True)
    x5 = [torch.randn(n, m) for _ in range(1 + k)]
    x6 = (Box if k < 2 else Child)(torch.randn(n, m), k)
    return ([x1, x2, x3, x4, x5, x6], {})

def between(k):
    global G_N
    global G_SCALE
    pass
    G_N = k
    G_SCALE = 0.75 if k < 2 else 1.25
    Box.factor = 0.5 if k < 3 else 2.5
