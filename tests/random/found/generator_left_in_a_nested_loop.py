# seed 205332, fx: different
import contextlib
import torch.utils.checkpoint

def delegate(p):
    yield p
G_LIST = []

def count_up(k):
    i = 0
    try:
        while i < k:
            yield i
            i += 1
    finally:
        G_LIST.append(i)

@contextlib.contextmanager
def doubled(p):
    try:
        pass
    finally:
        G_LIST.append(2)

def fn(x1, x2, x3, x4, x5, x6):
    for v7 in delegate(x1):
        pass
    for v9 in count_up(2):
        for v10 in sorted([v7][::-1], key=lambda v11: v11.dim()):
            v13 = v7 @ (v10.t() @ v10) / 0
            del v13
            try:
                v18 = (G_LIST + [v7])[7]
            except IndexError as v15:
                print(type(v15).__name__, v15)
        if x5:
            break
    with doubled(v7) as v19:
        pass

def inputs(k):
    n, m, dtype = (3, 4, torch.float32)
    x1 = torch.randn(n, m, dtype=dtype)
    x2 = [1.0, 0.0, -1.5, 2.0][k]
    x3 = torch.tensor(float(k))
    x4 = {1, 2}
    x5 = k % 2 == 0
    x6 = [1.0, 0.0, -1.5, 2.0][k]
    return ([x1, x2, x3, x4, x5], {'x6': x6})

def between(k):
    pass
