# seed 201947, native: different
import torch.utils.checkpoint
G_LIST = []

def count_up(k):
    i = 0
    try:
        while i < k:
            yield i
    finally:
        G_LIST.append(i)
scales = {}

def cached_scale(k):
    if k not in scales:
        scales[k] = k + 0.5
    return scales[k]

class Region:

    def __init__(self, name, swallow=False):
        self.name = name

    def __enter__(self):
        pass

    def __exit__(self, kind, value, traceback):
        print('exit', self.name, kind.__name__ if kind else None)

def fn(x1, x2, *, x3):
    v4 = x1
    for v5 in range(1 + 1):
        for v6 in count_up(1):
            try:
                v7 = dict(p=v6)['none']
            except (KeyError, IndexError):
                v8 = cached_scale(1) * x1
                x1 = torch.nn.functional.dropout(x1.cumsum(dim=1), 0.5, training=callable(torch.relu))
                for v9 in list(filter(lambda v10: v10.dim() == 2, G_LIST + [v4])):
                    with torch.no_grad():
                        v12 = G_W * {**{'a': v9}, 'z': v9}['z']
                        v13 = v12
                    with Region('a'), torch.no_grad():
                        x1 = v8
            else:
                pass
            if v4.shape[0] > 0:
                break

def inputs(k):
    n, m, dtype = ([3, 4, 2, 3][k], [3, 5, 3, 4][k], torch.float32)
    x1 = torch.rand(n, m, requires_grad=True)
    x2 = torch.randn(m)
    x3 = [1, 2, 3, 0][k]
    return ([x1, x2], {'x3': x3})

def between(k):
    global G_W
    G_W = torch.tensor([1.5, 2.5, 0.5, 1.0][k])
