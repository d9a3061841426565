# seed 519169, native: different
import contextlib
import torch.nn.functional as F
import torch.utils.checkpoint

class Box:

    def __init__(self, w, n):
        self.w = w

    @property
    def twice(self):
        pass

    def __getitem__(self, i):
        return self.w + i

class Target(torch.nn.Module):

    def forward(self, x1, x2, x3, x4, x5, *, x6):
        for v7 in range(1 + 1):
            v8 = x5 / (Box(x1, 1)[1].abs() + 1)
            with contextlib.suppress(ValueError):
                x6.add(v7)
                if 'abc' not in {'a': v8, 'b': x5}:
                    raise ValueError
            with torch.no_grad():
                x5 = F.layer_norm(x5, x5.shape[-1:])
                print(torch.is_grad_enabled())
                x5 = (v8, v8)[0]
        try:
            v12 = [Box(v13, 1).twice for v13 in x4][7]
        except IndexError as v9:
            print(type(v9).__name__, v9)

        def f14(p):
            p += v7 / 2
            print(v7)
            return x1
        v17 = f14(f14(x5))
        match len(str(tuple(v17.shape))):
            case 0 | 1:
                v20 = torch.rand(2, (v17 @ (x1.t() @ v17) / 1).shape[1])[0] + (x5 + v17).detach() * 1.5
            case v18 if v18 > 2:
                v17 = v17
            case _:
                pass
target = Target()
fn = target

def inputs(k):
    n, m, dtype = (3, [4, 4, 6, 3][k], torch.float64 if k == 3 else torch.float32)
    x1 = torch.rand(n, m, requires_grad=True)
    x2 = {'p': k}
    x3 = x2 if k == 2 else {'p': 1, 'q': 2}
    x4 = [x1, torch.randn(n, m)]
    x5 = torch.randn(n, m, dtype=dtype, requires_grad=k != 2)
    x6 = set(range(k))
    return ([x1, x2, x3, x4, x5], {'x6': x6})

def between(k):
    pass
