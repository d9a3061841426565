# ruff: noqa
"""Corners of capture that programs of strangers met: arguments that torch takes as they are, operators that raise on real data before the program raises,
attributes of containers behind a break, functions of torch that the program replaces, descriptors that only store."""

import collections
import functools
import operator

import torch
import torch.nn.functional as F
from tests.support.registry import built, cases, leaf, program, takes, tensor, trap
from torch import nn


# --- requires_grad takes True and False alone ---

REQUIRES = """
x.requires_grad_("a")
x.requires_grad_(1)
x.requires_grad_(0)
x.requires_grad_(None)
x.requires_grad_(x)
x.requires_grad_(1.0)
x.requires_grad_(requires_grad=2)
setattr(x, "requires_grad", "yes")
setattr(x, "requires_grad", 1)
setattr(x, "requires_grad", None)
x.clone().requires_grad_([])
torch.zeros(2, requires_grad=1)
torch.zeros(2, requires_grad="a")
"""
cases("strangers", "requires_grad_of_other_kinds", REQUIRES, globals(), graphs=0, breaks=True)


def inference_tensor(x):
    with torch.inference_mode():
        return x * 2


@program(graphs=8, breaks=True)
def inference_tensors(x):
    out = []
    for call in (
        lambda f: f.requires_grad_(),
        lambda f: f.requires_grad_(False),
        lambda f: setattr(f, "requires_grad", True),
        lambda f: setattr(f, "requires_grad", False),
        lambda f: f.retain_grad(),
        lambda f: f * torch.ones(4, requires_grad=True),
        lambda f: f.add_(1),
    ):
        f = inference_tensor(x)
        out.append(str(trap(call, f))[:70])
    return out, x + 1


# --- an operator raises on real data inside a block, and the trace goes on to raise something else ---

W = torch.arange(24.0).reshape(6, 4)
FIRST = {
    "embedding": lambda x: F.embedding(torch.tensor([9]), W),
    "embedding_bag": lambda x: F.embedding_bag(torch.tensor([9]), W, torch.tensor([0])),
    "gather": lambda x: torch.gather(x, 1, torch.tensor([[9]])),
    "inverse": lambda x: torch.linalg.inv(torch.zeros(3, 3)),
    "index": lambda x: x[torch.tensor([9])],
    "nll_loss": lambda x: F.nll_loss(x, torch.tensor([9, 0, 0])),
    "cholesky": lambda x: torch.linalg.cholesky(-torch.eye(3)),
    "index_select": lambda x: x.index_select(0, torch.tensor([9])),
    "multinomial": lambda x: torch.multinomial(x * 0 - 1, 1),
    "scatter": lambda x: x.scatter(1, torch.tensor([[9]]), 1.0),
    "nothing": lambda x: torch.linalg.inv(torch.eye(3)),
}


def made(name, f):
    f.__name__ = f.__qualname__ = name
    f.__module__ = __name__
    program(f)


def raises_first(call):
    return lambda x: (x + 1, trap(call, x).upper()[:20])


for _name, _call in FIRST.items():
    made(f"raises_first_{_name}", raises_first(_call))


@program(breaks=True)
def raises_behind_what_may_raise(x):
    r = trap(F.embedding, (x[0] * 0).long(), W)
    if not isinstance(r, str):
        raise ValueError("as planned")
    return r


# --- attributes of containers behind a break ---


@program(graphs=0, breaks=True)
def attributes_of_an_ordered_dict(x):
    d = collections.OrderedDict(b=x + 1, a=x)
    d.version, d.about = 3, {"k": x * 2}
    print("break")
    d.move_to_end("b")
    return list(d), d.version, d.about["k"], vars(d).keys(), type(d).__name__


@program(graphs=3, breaks=True)
def attributes_of_other_containers(x):
    class D(dict): ...

    class L(list): ...

    class S(set): ...

    class T(tuple): ...

    class O(collections.OrderedDict): ...

    class Q(collections.deque): ...

    class DD(collections.defaultdict): ...

    class C(collections.Counter): ...

    all = [D(a=1), L([1]), S([1]), T([1]), O(a=1), Q([1]), DD(list), C("aab")]
    for i, c in enumerate(all):
        c.mark = i
    y = x + 1
    print("break")
    return y, [(type(c).__name__, c.mark, len(c)) for c in all]


@built(graphs=2, breaks=True)
def state_dict_behind_a_break():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))
    n = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))

    def f(x):
        y = m(x)
        s = m.state_dict()
        same = s["0.weight"].data_ptr() == m[0].weight.data_ptr()
        return y, same, s._metadata["1"], str(n.load_state_dict(s)), list(s.copy()._metadata)

    return f


# --- functions of torch that the program replaces for a while ---


def replaced(home, name, call):
    def f(x):
        log = []
        original = getattr(home, name)

        @functools.wraps(original)
        def wrapper(*args, **kwargs):
            log.append("call")
            try:
                return original(*args, **kwargs)
            finally:
                log.append("end")

        setattr(home, name, wrapper)
        try:
            y = call(x)
            print("break")
            z = call(y)
        finally:
            setattr(home, name, original)
        return original(z), call(z), log, getattr(home, name) is original

    return f


REPLACED = {
    "relu": (F, "relu", lambda x: F.relu(x)),
    "relu_of_module": (F, "relu", lambda x: nn.ReLU()(x)),
    "sin": (torch, "sin", lambda x: torch.sin(x)),
    "gelu": (F, "gelu", lambda x: F.gelu(x)),
    "norm": (torch.linalg, "norm", lambda x: torch.linalg.norm(x)),
    "operator_neg": (operator, "neg", lambda x: operator.neg(x)),
    "method": (torch.Tensor, "cos", lambda x: x.cos()),
    "method_of_python": (torch.Tensor, "norm", lambda x: x.norm()),
    "special_method": (torch.Tensor, "__neg__", lambda x: -x),
}
for _name, _case in REPLACED.items():
    made(f"replaced_{_name}", replaced(*_case))


@built(graphs=6, breaks=True)
def replaced_between_calls():
    n = 0

    def inner(x):
        return x.cos() + (-x) + F.relu(x)

    def f(x):
        nonlocal n
        n += 1
        log = []
        homes = [(torch.Tensor, "cos"), (torch.Tensor, "__neg__"), (F, "relu")]
        originals = [getattr(*h) for h in homes]
        if n == 2:
            for h, o in zip(homes, originals):
                setattr(*h, lambda *a, o=o, h=h: (log.append(h[1]), o(*a))[1])
        try:
            y = inner(x)
        finally:
            for h, o in zip(homes, originals):
                setattr(*h, o)
        return y, log

    return f


# --- descriptors that only store ---


class Resets:
    """As networkx has it: what it stores is read from the instance's dictionary."""

    def __set__(self, instance, value):
        instance.__dict__["_rows"] = value
        instance.__dict__.pop("total", None)


class Removes:
    def __delete__(self, instance):
        instance.__dict__.pop("kept", None)


class Table:
    _rows = Resets()
    kept = Removes()

    def __init__(self, rows):
        self._rows = rows

    @functools.cached_property
    def total(self):
        return sum(self._rows.values())


@program
def descriptor_with_set_alone(x):
    t = Table({"a": x, "b": x + 1})
    first = t.total
    t._rows = {"a": x * 2}
    t.__dict__["kept"] = 5
    seen = [
        "a" in t._rows,
        "b" in t._rows,
        len(t._rows),
        t.kept,
        type(Table._rows).__name__,
        type(Table([])._rows).__name__,
    ]
    del t.kept
    return first, t.total, seen, type(t.kept).__name__


class Meta(type):
    rows = Resets()


@program
def descriptor_with_set_alone_on_a_metaclass(x):
    class A(metaclass=Meta):
        rows = 3

    class B(metaclass=Meta): ...

    return x + A.rows, type(B.rows).__name__


takes(
    "strangers",
    """
    raises_first_cholesky 3 breaks
    raises_first_embedding 4 breaks
    raises_first_embedding_bag 4 breaks
    raises_first_gather 3 breaks
    raises_first_index 3 breaks
    raises_first_index_select 3 breaks
    raises_first_inverse 3 breaks
    raises_first_multinomial 3 breaks
    raises_first_nll_loss 4 breaks
    raises_first_nothing 1 breaks
    raises_first_scatter 3 breaks
    replaced_gelu 2 breaks
    replaced_method 1 breaks
    replaced_method_of_python 1 breaks
    replaced_norm 2 breaks
    replaced_operator_neg 2 breaks
    replaced_relu 3 breaks
    replaced_relu_of_module 3 breaks
    replaced_sin 2 breaks
    replaced_special_method 4 breaks
    """,
)
