# seed 7389: differed at call 3
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

G_LIST = []

@contextlib.contextmanager
def doubled(p):
    try:
        yield p
    finally:
        G_LIST.append(2)

def fn(x1, x2):
    v3 = v4 = x1
    with doubled(v4) as v6:
        x2 += -2.0

def inputs(k):
    n, m, dtype = (k, 4, torch.float32)
    x1 = torch.rand(n, m, requires_grad=True)
    return (x1, {})

def between(k):
    pass
