# ruff: noqa
"""Functions, generators and frames whose global names are in a dict that the compiled function made and gave to exec() or eval()."""

import sys
import torch
from tests.support.registry import built, program, tensor, text, trap

TEXT = """
def scaled(y):
    return y * k
def counted(n):
    for i in range(n):
        yield i * k
def broken(y):
    z = y + k
    sys.getrefcount(z)
    return z * k
class Box:
    def __init__(self, y):
        self.y = y * k
"""


@program(graphs=3, breaks=True)
def function_is_returned(x):
    d = {"k": 3}
    exec(TEXT, d)
    return d["scaled"](x), d["scaled"]


@program(graphs=0, breaks=True)
def function_is_called_after_a_break(x):
    d = {"k": 3, "sys": sys}
    exec(TEXT, d)
    f = d["scaled"]
    sys.getrefcount(x)
    d["k"] = 5
    return f(x), f.__globals__ is d


@program(graphs=0, breaks=True)
def break_inside_of_it(x):
    d = {"k": 3, "sys": sys}
    exec(TEXT, d)
    y = d["broken"](x)
    d["k"] = 5
    return y, d["broken"](x + 1)


@program(graphs=0, breaks=True)
def generator_goes_on_after_a_break(x):
    d = {"k": 3}
    exec(TEXT, d)
    it = d["counted"](4)
    first = next(it)
    sys.getrefcount(x)
    d["k"] = 7
    return x + first, list(it)


@program
def generator_is_returned(x):
    d = {"k": 3}
    exec(TEXT, d)
    it = d["counted"](4)
    next(it)
    return x * 2, list(it), next(d["counted"](2))


@program(graphs=0, breaks=True)
def class_that_text_defines(x):
    d = {"k": 3}
    exec(TEXT, d)
    b = d["Box"](x)
    sys.getrefcount(x)
    return b.y, d["Box"](x + 1).y


@program(graphs=0, breaks=True)
def lambda_of_eval(x):
    d = {"k": 3}
    f = eval("lambda y: y * k", d)
    a = f(x)
    sys.getrefcount(x)
    d["k"] = 4
    return a, f(x)


@program(graphs=0, breaks=True)
def break_in_text_itself(x):
    d = {"x": x, "sys": sys}
    exec("y = x + 1\nsys.getrefcount(y)\nz = y * 2\ndef last(): return z", d)
    return d["z"], d["last"]()


@program(graphs=0, breaks=True)
def hook_that_text_defines(x):
    x = x.clone().requires_grad_()
    d = {"k": 3}
    exec("def hook(g): return g * k", d)
    x.register_hook(d["hook"])
    (x * 2).sum().backward()
    return x.grad


@program(graphs=0, breaks=True)
def module_of_types(x):
    import types

    m = types.ModuleType("made")
    exec(TEXT, m.__dict__)
    m.k = 3
    y = m.scaled(x)
    sys.getrefcount(y)
    return y, m.scaled(x)
