# seed 292: differed at call 0 (inputs 0)
import contextlib

import torch
import torch.utils.checkpoint

G_N = 1


def produce(p, k):
    for i in range(k):
        yield p


class Custom(Exception):
    pass


def fail_if(condition, text):
    if condition:
        raise Custom(text)


def fn(x1, *, x2):
    v3 = x1 * 1
    try:
        with contextlib.suppress(ValueError):
            for v5 in list(produce(v3, 2)):
                try:
                    try:
                        fail_if(v3 is not None, "inner")
                    except Custom as v6:
                        raise RuntimeError("outer") from v6
                except RuntimeError as v8:
                    print(v8, v8.__cause__)
            if G_N == G_N:
                raise ValueError
    finally:
        v11 = [lambda p: p + v12 for v12 in range(2)]
    for v16 in x1:
        pass
    print("a"[::-1], G_N)


def inputs(k):
    n, m, dtype = ([2, 3, 5, 4][k], 4, torch.float64 if k == 3 else torch.float32)
    x1 = torch.randn(m, n, dtype=dtype).t()
    x2 = {"p": k}
    return ([x1], {"x2": x2})


def between(k):
    pass
