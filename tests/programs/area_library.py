# ruff: noqa
"""The standard library that model code meets: itertools, operator, contextvars, bisect, heapq, re, json, threading, time, os …"""

import array
import bisect
import collections
import contextvars
import datetime
import decimal
import heapq
import itertools
import json
import operator
import os
import pathlib
import re
import struct
import sys
import threading
import time
import typing

import torch
from tests.support.registry import built, program, tensor


@program
def itertools_infinite(x):
    c = itertools.count(3, 2)
    y = itertools.cycle([1, 2])
    r = itertools.repeat(7, 2)
    return x + next(c) + next(c) + next(y) + next(y) + next(y) + sum(r) + next(itertools.repeat(1))


@program(graphs=0)
def itertools_accumulate(x):
    return (
        x,
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.accumulate([1, 2, 3], operator.mul)),
        list(itertools.accumulate([1], initial=5)),
    )


@program
def itertools_accumulate_tensors(x):
    return list(itertools.accumulate([x, x, x]))


@program(graphs=0)
def itertools_chain(x):
    return x, list(itertools.chain([1], (2, 3))), list(itertools.chain.from_iterable([[1], [2]]))


@program(graphs=0)
def itertools_select(x):
    return (
        x,
        list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.dropwhile(lambda v: v < 2, [1, 2, 1])),
        list(itertools.takewhile(lambda v: v < 2, [1, 2, 1])),
        list(itertools.filterfalse(lambda v: v % 2, range(4))),
        list(itertools.islice(range(10), 2, 8, 3)),
        list(itertools.islice("abc", 2)),
    )


@program(graphs=0)
def itertools_group(x):
    return (
        x,
        [(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 1])],
        [(k, len(list(g))) for k, g in itertools.groupby("aabc", key=lambda c: c < "b")],
    )


@program
def itertools_pair(x):
    a, b = itertools.tee([1, 2, 3])
    return (
        x + sum(a) + sum(b),
        list(itertools.pairwise([1, 2, 3])),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.zip_longest([1, 2], [3], fillvalue=0)),
    )


@program(graphs=0)
def itertools_combinatoric(x):
    return (
        x,
        list(itertools.product([1, 2], "ab")),
        list(itertools.product([0, 1], repeat=2)),
        list(itertools.permutations([1, 2, 3], 2)),
        list(itertools.combinations([1, 2, 3], 2)),
        list(itertools.combinations_with_replacement("ab", 2)),
    )


@program
def itertools_over_tensors(x):
    out = 0
    for a, b in itertools.product([x, x + 1], [2, 3]):
        out = out + a * b
    return out


@program
def operator_functions(x):
    a = operator.add(x, 1) + operator.mul(x, 2) + operator.sub(x, 1) + operator.truediv(x, 2) + operator.neg(x)
    n = (
        operator.floordiv(7, 2)
        + operator.mod(7, 2)
        + operator.pow(2, 3)
        + operator.lshift(1, 2)
        + operator.and_(3, 1)
        + operator.or_(1, 2)
        + operator.xor(1, 3)
        + operator.not_(0)
        + operator.truth(3)
        + operator.index(3)
    )
    m = (
        operator.contains([1], 1)
        + operator.countOf([1, 1], 1)
        + operator.indexOf([1, 2], 2)
        + operator.getitem([5], 0)
        + operator.is_(1, 1)
        + operator.lt(1, 2)
        + operator.eq(1, 1)
        + operator.concat("a", "b").__len__()
    )
    return a + n + m + operator.matmul(x, x.t()).sum() + operator.getitem(x, 0).sum()


@program
def operator_getters(x):
    g = operator.itemgetter(1)
    h = operator.itemgetter(0, 2)
    a = operator.attrgetter("shape")
    b = operator.methodcaller("sum", dim=0)
    return b(x) + g([1, 2]) + h([1, 2, 3])[1] + a(x)[0]


@program
def operator_setters(x):
    l = [1, 2, 3]
    operator.setitem(l, 0, 9)
    operator.delitem(l, 1)
    l = operator.iadd(l, [4])
    return x + sum(l), l


VAR = contextvars.ContextVar("VAR", default=3)


@program
def context_variables(x):
    t = VAR.set(5)
    y = x + VAR.get()
    VAR.reset(t)
    return y + VAR.get()


@program
def bisect_functions(x):
    l = [1, 3, 5]
    i = bisect.bisect(l, 3) + bisect.bisect_left(l, 3) + bisect.bisect_right(l, 4)
    bisect.insort(l, 4)
    return x + i, l


@program
def heapq_functions(x):
    h = []
    for v in [3, 1, 2]:
        heapq.heappush(h, v)
    a = heapq.heappop(h)
    l = [5, 4, 3]
    heapq.heapify(l)
    return x + a + heapq.nlargest(1, [1, 5, 2])[0] + heapq.nsmallest(1, [4, 2])[0], h, l


@program
def re_functions(x):
    m = re.match(r"(\w+)-(\d+)", "layer-12")
    n = (
        int(m.group(2))
        + len(re.sub("a", "b", "banana"))
        + len(re.findall("a", "banana"))
        + bool(re.search("z", "abc"))
        + len(re.split(",", "a,b"))
    )
    return x + n


PATTERN = re.compile(r"layer\.(\d+)")


@program
def re_compiled(x):
    m = PATTERN.match("layer.3")
    return x + int(m[1]) + len(PATTERN.sub("", "layer.3x")) + len(m.groups())


@program(breaks=True)
def json_functions(x):
    return x + json.loads("[1, 2]")[0], json.dumps({"a": [1, None]})


@program
def struct_functions(x):
    return x + struct.unpack("<i", struct.pack("<i", 5))[0] + struct.calcsize("ii")


@program(breaks=True)
def decimal_use(x):
    return x + float(decimal.Decimal("1.5") + 1)


@program(breaks=True)
def datetime_use(x):
    d = datetime.timedelta(seconds=90)
    return x + d.total_seconds()


@program(graphs=2, breaks=True)
def time_breaks(x):
    t = time.time()
    return x + (t > 0)


@program
def os_environ(x):
    return (
        x + (os.environ.get("BREADTH_NOT_SET", "3") == "3") + len(os.path.join("a", "b")) + len(os.path.basename("a/b"))
    )


@program
def pathlib_use(x):
    p = pathlib.PurePosixPath("a") / "b.txt"
    return x + len(p.name) + len(p.suffix)


@program
def sys_values(x):
    return x + (sys.version_info >= (3, 8)) + (sys.maxsize > 5) + len(sys.byteorder)


LOCK = threading.Lock()
LOCAL = threading.local()
LOCAL.v = 3


@program(breaks=True)
def threading_lock(x):
    with LOCK:
        y = x + 1
    return y


@program
def threading_local(x):
    return x + LOCAL.v


@program(graphs=2, breaks=True)
def array_use(x):
    a = array.array("i", [1, 2])
    return x + a[0] + len(a)


@program
def typing_functions(x):
    return (
        x + (typing.get_origin(list[int]) is list) + (typing.get_args(dict[str, int])[1] is int) + typing.TYPE_CHECKING
    )


@program
def enumerate_zip_nested(x):
    out = x
    for i, (a, b) in enumerate(zip([1, 2], [3, 4])):
        out = out + i * a * b
    return out


@program
def sum_of_lists(x):
    return x + len(sum([[1], [2, 3]], []))


@program(breaks=True)
def print_to_stderr(x):
    print("", end="", file=sys.stderr)
    return x + 1


@program(breaks=True)
def input_output_string(x):
    import io

    s = io.StringIO()
    s.write("abc")
    return x + len(s.getvalue())


@program
def collections_abc_use(x):
    class_ = collections.abc.Mapping
    return x + issubclass(dict, class_)


@program
def numpy_scalar(x):
    import numpy as np

    return x + float(np.float64(2.0)) + int(np.prod([2, 3]))


@program
def numpy_array_in(x):
    a = x.numpy()
    return torch.from_numpy(a * 2) + 1


@program(args=lambda i: [__import__("numpy").arange(4.0) + i])
def numpy_argument(a):
    return (a + 1).sum()


@program
def pytree_functions(x):
    from torch.utils import _pytree as pytree

    flat, spec = pytree.tree_flatten({"a": x, "b": [1, (x + 1,)]})
    back = pytree.tree_unflatten([v * 2 for v in flat], spec)
    return back["b"][1][0] + pytree.tree_map(lambda v: v + 1, (x, x))[0]
