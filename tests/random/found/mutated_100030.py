# mutated 100030
import abc, collections, collections.abc, contextlib, copy, dataclasses, enum, functools, itertools, types, typing
import torch
ERRORS = []
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import logging
import math
import operator
import random
import sys
import warnings
import torch
import torch.nn.functional as F
import torch.utils.checkpoint

def inputs(k):
    n, m, dtype = ([2, 3, 5, 4][k], [4, 4, 6, 3][k], torch.float32)
    x1 = torch.randn(n, m, dtype=dtype)
    x2 = x1
    x3 = torch.randn(n, m, dtype=dtype, requires_grad=k != 2)
    x4 = (x3, x3)
    x5 = torch.randn(n, m, dtype=dtype)
    return ([x1, x2, x3, x4], {'x5': x5})

def between(k):
    global G_SCALE
    pass
    G_SCALE = 0.75 if k < 2 else 1.25
    G_BOX.w = torch.tensor(float(k))
G_N = 1
G_SCALE = 0.75

class Region:

    def __init__(self, name, swallow=False):
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        print('enter', self.name)
        return self

    def __exit__(self, kind, value, traceback):
        print('exit', self.name, kind.__name__ if kind else None)
        return self.swallow
G_LIST = []

class Custom(Exception):

    def __init__(self, text, code=3):
        super().__init__(text)
        self.code = code

def fail_if(condition, text):
    if condition:
        raise Custom(text)

def cutaway_break():
    sys.getrefcount(None)

def breaking(p, k):
    q = p * (k + 1)
    cutaway_break()
    G_LIST.append(k)
    return q + p

def breaking_inside(p, k):
    q = p - k
    try:
        q = breaking(q, k) + q
        fail_if(k > 2, 'inside')
    finally:
        G_LIST.append(q.shape[0])
    return q * 0.5

class Net(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5]))
        self.register_buffer('steps', torch.zeros(()))
        self.inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout(0.5))
        self.scale = 1.0

    def forward(self, p):
        if self.training:
            self.steps += 1
        return self.inner(p * self.weight) * self.scale
net = Net()
net.inner[0].register_forward_hook(lambda module, args, out: out + 1)

def produce(p, k):
    for i in range(k):
        p = p + i
        yield p

class Box:
    made = 0
    factor = 0.5

    def __init__(self, w, n):
        self.w = w
        self.n = n
        self.items = []

    @classmethod
    def make(cls, w):
        return cls(w, 1)

    @staticmethod
    def static(p):
        return p * 3

    @property
    def twice(self):
        return self.w * 2

    @property
    def size(self):
        return self.n

    @size.setter
    def size(self, value):
        self.n = value + 1

    def scale_by(self, k):
        return self.w * k * self.n

    def bump(self):
        self.n += 1
        return self.n

    def __call__(self, p):
        self.items.append(len(self.items))
        return self.w + p

    def __getitem__(self, i):
        return self.w + i

    def __setitem__(self, i, value):
        self.w = value * (i + 1)

    def __eq__(self, other):
        return isinstance(other, Box) and self.n == other.n

    def __hash__(self):
        return 7

    def __repr__(self):
        return f'{type(self).__name__}({self.n})'

    def __len__(self):
        return 2
G_BOX = Box(torch.tensor(2.0), 1)
log = logging.getLogger('program')

def fn(x1, x2, x3, x4, *, x5):
    global G_N, G_SCALE
    try:
        G_N = G_N + 1
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        for v6 in range(2):
            with Region('loop', swallow=isinstance(x1, torch.Tensor)):
                v8 = 0
                while v8 < 3:
                    v8 += 1
                    v9 = (x3 + x1).clone()
                    v9.t()[0].fill_(math.sqrt(abs(G_SCALE)))
                    import math as v10
                    v12 = v10.cos(G_SCALE)
                    G_LIST[:] = [x2.unsqueeze(0).squeeze(0)]
                print(v6)
                fail_if(G_SCALE < max(G_SCALE, 0.25), ' x y '.strip().split()[0])
                v13 = torch.rand(2, x5.shape[1])[0] + breaking_inside(x1, 1)
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        v14 = x2 * 1
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        v14.add_(x2 + x5)
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        v15 = sum((p.sum() for p in net.parameters())) + x2
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        v16 = x3.to(torch.float64).to(v15.dtype)
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        if x3[:G_N].sum(**'') > 0:
            v14 = v14
        else:
            for v17 in produce(v14, 1 + 1):
                v18 = x5 * random.random()
                cutaway_break()
                v19 = (G_BOX.w + {'a': x2}['a']).numpy().sum() + v16.reshape(-1).view(v17.shape)
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        log.warning('seen %s', '{}-{x}'.format(' x y '.strip().split()[0], x=G_N))
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        v20, v21 = (v16, v15)
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        v22 = {v23: v24 * 2 for v23, v24 in dict({'a': v21}).items()}
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        return (v22, x1, x2)
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))

