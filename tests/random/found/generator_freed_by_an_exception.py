# a generator on the stack of a frame that goes on behind a break ends when the frame does, not with the traceback
import sys

G_LIST = []


def count_up(k):
    i = 0
    try:
        while i < k:
            yield i
    finally:
        G_LIST.append(i)


def breaking(p):
    for _ in count_up(1):
        sys.getrefcount(None)
        p = p + missing  # noqa: F821


def fn(x1):
    try:
        breaking(x1 + 1)
    except KeyError:
        pass


def inputs(k):
    import torch

    return [torch.randn(3)], {}


def between(k):
    pass
