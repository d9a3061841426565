"""Breaks where they are hard to go on after: inside calls, loops, blocks and generators."""

import contextlib
import os

import torch

from tests.support.registry import program

LOG = []


def start():
    return [torch.arange(1.0, 5.0)]


# --- inside calls


def innermost(x, k):
    y = x * k
    print("inside")
    return y + 1


def middle(x, k):
    y = x + 1
    z = innermost(y, k)
    return z * y


@program(args=start, graphs=2, breaks=True)
def three_frames(x):
    y = x - 1
    z = middle(y, 2.0)
    return z + y


@program(args=start, graphs=2, breaks=True)
def arguments_of_every_kind(x):
    def inner(a, *rest, k=1, **more):
        b = a * k
        print(len(rest), sorted(more))
        return b + len(rest) + more["m"]

    args, names = (x, 1, 2), {"k": 3, "m": 4}
    return inner(*args, **names) + x


@program(args=start, graphs=2, breaks=True)
def a_closure_that_is_made_inside(x):
    total = 0

    def add(n):
        nonlocal total
        total += n
        print(total)
        total += n
        return x + total

    a = add(1)
    b = add(2)
    return a, b, total


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.calls = 0

    def forward(self, x):
        y = x * self.weight
        self.calls += 1
        print("layer", self.calls)
        return y + 1


LAYER = Layer()


@program(args=start, graphs=3, breaks=True)
def modules(x):
    LAYER.calls = 0
    y = LAYER(x + 1)
    return LAYER(y) * 2, LAYER.calls


def down(x, n):
    if n == 0:
        print("bottom")
        return x
    y = down(x + n, n - 1)
    return y * n


@program(args=start, graphs=2, breaks=True)
def recursion(x):
    return down(x, 3) - 1


class Method:
    scale = 2

    def __init__(self, x):
        self.x = x
        print("made")

    def run(self, k):
        print("run", k)
        return self.x * k * self.scale

    def __call__(self, k):
        return self.run(k) + 1

    @property
    def shown(self):
        print("property")
        return self.x


class Derived(Method):
    def run(self, k):
        y = super().run(k + 1)
        print("derived")
        return super().run(k) + y


@program(args=start, graphs=6, breaks=True)
def methods_and_constructors(x):
    m = Derived(x + 1)
    return m(2) + m.shown + m.run(1)


def handler_inside(x):
    try:
        y = x + 1
        print("before")
        raise ValueError("inside")
    except ValueError as error:
        print("caught", error)
        return y * 2
    finally:
        print("finally")


@program(args=start, graphs=2, breaks=True)
def a_handler_in_the_callee(x):
    y = x * 3
    return handler_inside(y) + y


def raises(x):
    y = x + 1
    print("raises")
    raise KeyError(y.shape[0])


@program(args=start, graphs=2, breaks=True)
def a_handler_in_the_caller(x):
    y = x * 3
    try:
        raises(y)
    except KeyError as error:
        return y + error.args[0]


def missing_file(x):
    y = x + 1
    size = os.stat("/no such file").st_size
    return y + size


def missing_file_caught(x):
    y = x + 1
    try:
        size = os.stat("/no such file").st_size
    except OSError as error:
        print(type(error).__name__)
        return y - 1
    return y + size


@program(args=start, graphs=2, breaks=True)
def c_code_that_raises(x):
    y = x * 2
    try:
        z = missing_file(y)
    except FileNotFoundError as error:
        z = missing_file_caught(y) * len(error.args)
    return z + missing_file_caught(z)


@program(args=start, breaks=True)
def operators_that_raise_on_real_data(x):
    out = []
    for i in range(2):
        try:
            y = x + i
            out.append(torch.linalg.cholesky(-torch.eye(2) * y.sum()))
        except RuntimeError as error:
            out.append((y, type(error).__name__))
    try:
        table = torch.zeros(3)
        table += 1
        x.mul_(2)
        out.append(table[(x * 100).long()])
    except IndexError as error:
        out.append((x, type(error).__name__))
    return out


@program(args=start, graphs=3, breaks=True)
def two_breaks_in_one_callee(x):
    def inner(a):
        b = a + 1
        print(1)
        c = b * 2
        print(2)
        return c - 1

    return inner(x * 2) * 3


# --- loops


@program(args=start, graphs=3, breaks=True)
def range_loop(x):
    for i in range(3):
        x = x + 1
        print(i)
        x = x * 2
    return x


@program(args=start, graphs=4, breaks=True)
def data_dependent_branch_in_a_loop(x):
    for _ in range(5):
        if x.sum() > 100:
            x = x - 50
        else:
            x = x * 2
    return x


@program(args=start, graphs=3, breaks=True)
def list_that_grows(x):
    todo = [x]
    seen = 0
    for item in todo:
        y = item + 1
        print(seen)
        if seen < 3:
            todo.append(y)
        seen += 1
    return sum(todo)


@program(args=start, graphs=4, breaks=True)
def enumerate_and_zip(x):
    parts = []
    for i, (a, b) in enumerate(zip([x, x + 1, x + 2], (x, x - 1, x - 2), strict=False), 5):
        c = a * b
        print(i)
        parts.append(c + i)
    return parts


@program(args=start, graphs=8, breaks=True)
def dictionaries(x):
    table = {"a": x, "b": x + 1, "c": x + 2}
    out = {}
    for name in table:
        print(name)
        out[name] = table[name] * 2
    for name, value in table.items():
        table[name] = value + 1
        print(name)
    for value in table.values():
        print(value.shape)
        out["a"] = out["a"] + value
    return out, table


@program(args=start, graphs=0, breaks=True)
def dictionary_that_changes_size(x):
    table = {"a": 1, "b": 2}
    try:
        for name in table:
            print(name)
            table["c"] = 3
    except RuntimeError as error:
        return x + 1, str(error)


@program(args=start, graphs=4, breaks=True)
def nested_loops(x):
    for i in range(2):
        for j in reversed([1, 2, 3]):
            if j == 2:
                continue
            x = x + i * j
            print(i, j)
            if i == 1 and j == 3:
                break
        else:
            x = x * 2
    return x


@program(args=start, graphs=4, breaks=True)
def loop_over_a_tensor(x):
    total = 0
    for row in x.reshape(2, 2):
        if row.sum() > 3:
            total = total + row
        else:
            total = total - row
    return total


@program(args=start, graphs=3, breaks=True)
def while_loop(x):
    steps = 0
    while x.sum() < 200:
        x = x * 2
        steps += 1
    return x, steps


@program(args=start, graphs=4, breaks=True)
def comprehension(x):
    return [y + len(str(y.sum().item())) for y in (x, x + 1)]


@program(args=start, graphs=4, breaks=True)
def map_filter_and_strict_zip(x):
    total = x
    for a, b in zip(map(lambda v: v + 1, [x, x * 2]), filter(None, [0, 1, 2]), strict=True):
        print(b)
        total = total + a * b
    return total


def counting(x, n):
    for i in range(n):
        x = x + i
        try:
            got = yield x
        finally:
            LOG.append(i)
        LOG.append(got)


def delegating(x):
    last = yield from counting(x, 3)
    yield x if last is None else x - 1


@program(args=start, graphs=5, breaks=True)
def generators(x):
    LOG.clear()
    total = x
    for y in counting(x, 3):
        total = total + y
        print(LOG)
    for y in delegating(x * 2):
        print(LOG)
        total = total + y
    g = counting(x, 5)
    a = next(g)
    print("sent")
    b = g.send(7)
    g.close()
    return total, a, b, list(LOG)


@program(args=start, graphs=2, breaks=True)
def generator_expression(x):
    squares = (v * v for v in [x, x + 1, x + 2])
    first = next(squares)
    print("first")
    return first + sum(squares)


@program(args=start, graphs=2, breaks=True)
def user_iterator(x):
    class_like = Countdown(3)
    for n in class_like:
        x = x + n
        print(n)
    return x


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        print("next")
        return self.n


class Old:
    def __getitem__(self, i):
        if i == 3:
            raise IndexError
        return i * 2


@program(args=start, graphs=3, breaks=True)
def the_old_protocol(x):
    for n in Old():
        x = x + n
        print(n)
    return x


# --- blocks


class Region:
    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        print("enter", self.name)
        return self

    def __exit__(self, kind, value, trace):
        print("exit", self.name, kind)
        return self.swallow


@contextlib.contextmanager
def manager(x):
    LOG.append("in")
    try:
        yield x * 2
    finally:
        LOG.append("out")


@program(args=start, graphs=2, breaks=True)
def with_blocks(x):
    LOG.clear()
    with Region("a") as a, manager(x) as y:
        z = y + 1
        print(a.name, LOG)
        z = z * 2
    with Region("b", swallow=True):
        print("raising")
        raise ValueError("swallowed")
    return z, list(LOG)


@program(args=start, graphs=3, breaks=True)
def grad_modes(x):
    x = x.clone().requires_grad_()
    with torch.no_grad():
        a = x * 2
        print(torch.is_grad_enabled())
        b = x * 3
        with torch.enable_grad():
            c = x * 4
            print(torch.is_grad_enabled())
            d = x * 5
    return a, b, c, d, [t.requires_grad for t in (a, b, c, d)], torch.is_grad_enabled()


@program(args=start, graphs=4, breaks=True)
def autocast_with_a_break(x):
    m = x.reshape(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = m @ m
        print(torch.is_autocast_enabled("cpu"), a.dtype)
        b = m @ m
        for _ in range(2):
            b = b @ m
            print(b.dtype)
    return a, b, m @ m, torch.is_autocast_enabled("cpu")


@program(args=start, graphs=4, breaks=True)
def inference_mode_with_a_break(x):
    with torch.inference_mode():
        a = x * 2
        print(torch.is_inference_mode_enabled(), a.is_inference())
        b = x * 3
    return a + 0, b.is_inference(), (x + 1).is_inference(), torch.is_inference_mode_enabled()


@program(args=start, graphs=3, breaks=True)
def try_in_a_loop(x):
    out = []
    for i in range(4):
        try:
            y = x + i
            print(i)
            if i == 1:
                continue
            if i == 2:
                raise ValueError(i)
            out.append(y)
        except ValueError as error:
            out.append(error.args)
        finally:
            print("finally", i)
    return out


@program(args=start, graphs=0, breaks=True)
def unbound_variables(x):
    def inner():
        return late

    for i in range(2):
        print(i)
        try:
            x = x + early  # noqa: F821
        except NameError as error:
            print(type(error).__name__, error)
        try:
            x = x + inner()
        except NameError as error:
            print(type(error).__name__, error)
        try:
            x = x + late
        except NameError as error:
            print(type(error).__name__, error)
        if i == 0:
            continue
        early = late = 3  # noqa: F841  (early is a cell that inner reads)
    return x


# --- what looks at frames


@program(args=start)
def looks_at_itself(x):
    y = x + 1
    a = sorted(locals())
    b = eval("y + 1")
    exec("LOG.append(2)", globals())
    return y * 2, a, b
