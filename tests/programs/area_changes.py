# ruff: noqa
"""What changes between calls: globals, attributes, containers, functions, classes, modules, modes. A guard that is missing shows as a wrong answer."""

import collections
import dataclasses
import enum
import functools
import sys
import types

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, tensor
from torch import nn

HERE = sys.modules[__name__]
NUMBER = 1
LIST = [1, 2]
DICT = {"a": 1}
SET = {1}
TUPLE = (1, 2)
NONE_OR_TENSOR = None


def changing(name, values):
    """Sets a global of this module for each call."""

    def args(i):
        setattr(HERE, name, values[i % len(values)])
        return [tensor(i)]

    return args


@program(args=changing("NUMBER", [1, 2, 3]), graphs=2)
def global_number(x):
    return x + NUMBER


@program(args=changing("NUMBER", [1, 1.0, True]), graphs=3)
def global_number_type(x):
    return x.long() + NUMBER if isinstance(NUMBER, int) else x * NUMBER


@program(args=changing("NUMBER", [0.0, -0.0, float("nan")]), graphs=3)
def global_float_specials(x):
    return x / (NUMBER + 1), str(NUMBER), NUMBER == NUMBER


@program(args=changing("LIST", [[1, 2], [1, 3], [1, 2, 3]]), graphs=3)
def global_list(x):
    return x + sum(LIST)


@program(args=changing("LIST", [[1], (1,), [1.0]]), graphs=3)
def global_sequence_type(x):
    return x + LIST[0], type(LIST).__name__, type(LIST[0]).__name__


@program(args=changing("DICT", [{"a": 1}, {"a": 2}, {"b": 3}]), graphs=3)
def global_dict(x):
    return x + DICT.get("a", 10)


@program(args=changing("DICT", [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}]), graphs=0)
def global_dict_order(x):
    return x, list(DICT), next(iter(DICT))


@program(args=changing("DICT", [{}, {"k": 1}, {"k": None}]), graphs=2)
def global_dict_membership(x):
    if "k" in DICT:
        return x + 1
    return x - 1


@program(args=changing("DICT", [{}, {"k": 1}, {"z": 1, "y": 2}]), graphs=3)
def global_dict_truth(x):
    return x + 1 if DICT else x - 1


@program(args=changing("SET", [{1, 2}, {1, 3}, {1, 2, 3}]), graphs=3)
def global_set(x):
    return x + (2 in SET) + len(SET)


@program(args=changing("SET", [{8, 0}, {0, 8}, {0, 8, 16}]), graphs=3)
def global_set_order(x):
    out = []
    for v in SET:
        out.append(v)
    return x + out[0], out


@program(args=changing("NONE_OR_TENSOR", [None, torch.ones(4), torch.zeros(4)]))
def global_optional_tensor(x):
    return x if NONE_OR_TENSOR is None else x + NONE_OR_TENSOR


@program(args=changing("NONE_OR_TENSOR", [torch.ones(4), torch.ones(1), torch.ones(4, dtype=torch.float64)]), graphs=3)
def global_tensor_metadata(x):
    return x + NONE_OR_TENSOR, NONE_OR_TENSOR.shape[0]


def first(x):
    return x + 1


def second(x):
    return x * 2


CALLED = first


@program(args=changing("CALLED", [first, second, lambda x: x - 3]), graphs=3)
def global_function(x):
    return CALLED(x)


@program(
    args=changing(
        "CALLED", [functools.partial(torch.add, alpha=i) for i in (1, 2)] + [functools.partial(torch.sub, alpha=2)]
    ),
    graphs=3,
)
def global_partial(x):
    return CALLED(x, x)


@program(args=changing("CALLED", [torch.sin, torch.cos, F.relu]), graphs=3)
def global_torch_function(x):
    return CALLED(x)


class Thing:
    scale = 1

    def __init__(self, a=1, b=None):
        self.a = a
        self.b = b

    def run(self, x):
        return x * self.a


class Other(Thing):
    def run(self, x):
        return x - self.a


@program(args=lambda i: [tensor(i), Thing(i)], graphs=2)
def attribute_number(x, t):
    return t.run(x)


@program(args=lambda i: [tensor(i), [Thing, Other][i % 2](3)], graphs=2)
def attribute_class(x, t):
    return t.run(x)


def with_instance_method(i):
    t = Thing(2)
    if i == 1:
        t.run = lambda x: x + 100
    return [tensor(i), t]


@program(args=with_instance_method, graphs=2)
def method_shadowed_by_instance(x, t):
    return t.run(x)


def with_class_attribute(i):
    Thing.scale = [1, 5, 1][i]
    return [tensor(i), Thing()]


@program(args=with_class_attribute, graphs=2)
def class_attribute(x, t):
    return x * t.scale + Thing.scale


def with_patched_method(i):
    Thing.run = [lambda self, x: x + 1, lambda self, x: x + 2, lambda self, x: x * self.a][i]
    return [tensor(i), Thing(4)]


@program(args=with_patched_method, graphs=3)
def patched_method(x, t):
    return t.run(x)


def with_extra_attribute(i):
    t = Thing()
    if i:
        t.extra = i
    return [tensor(i), t]


@program(args=with_extra_attribute, graphs=3)
def attribute_appears(x, t):
    return x + getattr(t, "extra", 50) + hasattr(t, "extra")


@program(args=lambda i: [tensor(i), Thing([1] * (i + 1), {"k": i})], graphs=3)
def attribute_containers(x, t):
    return x + len(t.a) + t.b["k"]


@program(args=lambda i: (lambda t: [tensor(i), t, t if i == 1 else Thing(5)])(Thing(5)), graphs=2)
def same_object_twice(x, a, b):
    b.a = 7
    return x + a.a, a is b


@program(args=lambda i: (lambda l: [l, l if i == 1 else [1, 2]])([1, 2]), graphs=2)
def same_list_twice(a, b):
    b.append(5)
    return torch.ones(2) * len(a), a is b


@program(args=lambda i: (lambda t: [t, t if i == 1 else tensor(9)])(tensor(i)), graphs=2)
def same_tensor_changes(a, b):
    b.mul_(2)
    return a + b, a is b


@program(args=lambda i: (lambda t: [t, t.view(-1) if i == 1 else tensor(9).view(-1)])(tensor(i)))
def alias_changes(a, b):
    b.add_(1)
    return a * 2


@program(
    args=lambda i: [tensor(i).t() if i == 1 else tensor(i)[:, :3].contiguous() if i == 2 else torch.ones(4, 3)],
    graphs=3,
)
def strides_change(x):
    return x.is_contiguous(), x.stride(), x + 1


@program(args=lambda i: [tensor(i).requires_grad_(i == 1)], graphs=2)
def requires_grad_changes(x):
    return x * 2, x.requires_grad


def with_grad_mode(i):
    return [tensor(i).requires_grad_()]


@built(args=with_grad_mode, graphs=3)
def grad_mode_changes():
    count = []

    def f(x):
        count.append(1)
        return x * 2

    def run(x):
        with torch.set_grad_enabled(len(count) != 1):
            return f(x)

    return run


@program(args=lambda i: [tensor(i), (1, 2) if i == 0 else (1, 3) if i == 1 else [1, 2]], graphs=3)
def tuple_argument(x, t):
    return x + t[1], isinstance(t, tuple)


@program(args=lambda i: [tensor(i), "relu" if i != 1 else "tanh"], graphs=2)
def string_argument(x, name):
    return getattr(torch, name)(x)


@program(args=lambda i: [tensor(i), torch.float32 if i != 1 else torch.float64], graphs=2)
def dtype_argument(x, dtype):
    return x.to(dtype)


@program(args=lambda i: [tensor(i), slice(0, i + 1)], graphs=3)
def slice_argument(x, s):
    return x[s]


@program(args=lambda i: [tensor(i), range(i + 1)], graphs=3)
def range_argument(x, r):
    return x + sum(r)


@program(args=lambda i: [tensor(i), None if i else 3])
def none_argument(x, n):
    return x if n is None else x + n


@program(args=lambda i: [tensor(i), [first, second, torch.neg][i]], graphs=3)
def function_argument(x, f):
    return f(x)


@program(args=lambda i: [tensor(i), (lambda n: lambda v: v + n)(i)], graphs=2)
def closure_argument(x, f):
    return f(x)


@program(args=lambda i: [tensor(i), Thing(i + 1).run], graphs=2)
def method_argument(x, f):
    return f(x)


@program(args=lambda i: [tensor(i), [int, float, str][i]], graphs=3)
def class_argument(x, c):
    return x + 1, c("3"), c.__name__


def default_number(x, n=1):
    return x + n


def with_default(i):
    default_number.__defaults__ = (i,)
    return [tensor(i)]


@program(args=with_default, graphs=3)
def defaults_change(x):
    return default_number(x)


def with_code(i):
    replaced.__code__ = [first, second, first][i].__code__
    return [tensor(i)]


def replaced(x):
    return x


@program(args=with_code, graphs=2)
def code_changes(x):
    return replaced(x)


LAYER = nn.Linear(4, 4)


def with_parameter(i):
    torch.manual_seed(i)
    LAYER.weight = nn.Parameter(torch.randn(4, 4))
    return [tensor(i)]


@program(args=with_parameter)
def parameter_replaced(x):
    return LAYER(x)


def with_parameter_data(i):
    with torch.no_grad():
        LAYER.weight.fill_(i)
    return [tensor(i)]


@program(args=with_parameter_data)
def parameter_data_changes(x):
    return LAYER(x)


SEQUENCE = nn.Sequential(nn.ReLU(), nn.Tanh())


def with_layer(i):
    SEQUENCE[0] = [nn.ReLU(), nn.Sigmoid(), nn.ReLU()][i]
    return [tensor(i)]


@program(args=with_layer, graphs=2)
def submodule_replaced(x):
    return SEQUENCE(x)


DROPOUT = nn.Dropout(0.5)


def with_training(i):
    DROPOUT.train(i == 1)
    return [tensor(i)]


@program(args=with_training, graphs=2)
def training_mode_changes(x):
    return DROPOUT(x)


HOOKED = nn.ReLU()


def with_hook(i):
    HOOKED._forward_hooks.clear()
    if i == 1:
        HOOKED.register_forward_hook(lambda m, a, o: o + 10)
    return [tensor(i)]


@program(args=with_hook, graphs=2)
def hook_appears(x):
    return HOOKED(x)


NORM = nn.LayerNorm(4)


def with_eps(i):
    NORM.eps = [1e-5, 1.0, 1e-5][i]
    return [tensor(i)]


@program(args=with_eps, graphs=2)
def module_attribute_changes(x):
    return NORM(x)


class Mode(enum.Enum):
    A = 1
    B = 2


@program(args=lambda i: [tensor(i), [Mode.A, Mode.B, Mode.A][i]], graphs=2)
def enum_changes(x, m):
    return x * m.value if m is Mode.A else x - m.value


@dataclasses.dataclass
class Config:
    k: int = 1
    names: list = dataclasses.field(default_factory=list)


@program(args=lambda i: [tensor(i), Config(i, ["a"] * i)], graphs=3)
def dataclass_changes(x, c):
    for _ in c.names:
        x = x * 2
    return x + c.k


@program(args=lambda i: [tensor(i), types.SimpleNamespace(k=i, **({"z": 1} if i else {}))], graphs=2)
def namespace_changes(x, n):
    return x + n.k + hasattr(n, "z")


@program(
    args=lambda i: [tensor(i), collections.OrderedDict([("a", 1), ("b", 2)] if i != 1 else [("b", 2), ("a", 1)])],
    graphs=2,
)
def ordered_dict_changes(x, d):
    out = x
    for k, v in d.items():
        out = out * v + len(k)
    return out, list(d)


@program(args=lambda i: [tensor(i), collections.defaultdict([int, list, lambda: 7][i])], graphs=0)
def default_factory_changes(x, d):
    v = d["new"]
    return x, v, len(d)


@program(args=lambda i: [tensor(i), collections.deque([1, 2, 3][: i + 1], maxlen=2 + i)], graphs=3)
def deque_changes(x, d):
    d.append(9)
    return x + sum(d), d.maxlen, list(d)


@program(args=lambda i: [{"x": tensor(i), **({"mask": tensor(i) > 0} if i == 1 else {})}])
def optional_key(d):
    if "mask" in d:
        return d["x"].masked_fill(d["mask"], 0)
    return d["x"]


@program(args=lambda i: [[tensor(0)] * (i + 1)], graphs=3)
def repeated_tensor_in_list(l):
    return sum(l), len({id(t) for t in l})


@program(args=lambda i: [tensor(i), i], calls=3, graphs=3)
def number_decides_branch(x, n):
    if n > 1:
        return x + 1
    return x - 1


@program(args=lambda i: [tensor(i), i * 1.5])
def float_decides_branch(x, f):
    return x * f if f > 1 else x


@program(args=lambda i: [tensor(i), complex(0, i)], graphs=3)
def complex_argument(x, z):
    return x + z.imag


@program(args=lambda i: [tensor(i), b"abc"[: i + 1]], graphs=3)
def bytes_argument(x, b):
    return x + len(b)


@program(args=lambda i: [torch.ones(i + 2, 4), torch.ones(4, i + 2)], graphs=2)
def two_sizes_together(x, y):
    return x @ y


@program(args=lambda i: [torch.ones(2, [4, 1, 4][i])], graphs=2)
def size_becomes_one(x):
    return x + torch.zeros(2, 4)


@program(args=lambda i: [torch.ones([3, 0, 3][i], 4)], graphs=2)
def size_becomes_zero(x):
    return x.sum(0), x.shape[0] == 0


@program(args=lambda i: [torch.ones(i + 2, 4)], graphs=3)
def size_in_branch(x):
    if x.shape[0] > 3:
        return x + 1
    return x - 1


@program(args=lambda i: [torch.ones(i + 2, 4)], graphs=3)
def size_in_loop(x):
    for i in range(x.shape[0]):
        x = x + i
    return x


@program(args=lambda i: [torch.ones(i + 2, 4)], graphs=3)
def size_in_list(x):
    return torch.cat([x] * x.shape[0]), [x.shape[0]], {x.shape[0]: 1}


@program(args=lambda i: [torch.ones(i + 2, 4)], graphs=0)
def size_returned(x):
    return x.shape, x.size(0) * 2, x.numel(), f"{x.shape[0]}"


@program(args=lambda i: [torch.ones(i + 2, 4)], graphs=2)
def size_in_factory(x):
    return torch.zeros(x.shape[0], 2), torch.arange(x.size(0)), torch.full((x.shape[0],), x.shape[0])


@program(args=lambda i: [torch.ones(i + 2, 6)], graphs=2)
def size_divided(x):
    return x.view(x.shape[0], 2, -1), x.reshape(x.shape[0] * 2, x.shape[1] // 2), x[: x.shape[0] // 2]


@built(graphs=3)
def state_machine():
    state = {"phase": "warm"}

    def f(x):
        if state["phase"] == "warm":
            state["phase"] = "hot"
            return x + 1
        state["count"] = state.get("count", 0) + 1
        return x * state["count"]

    return f


@built(graphs=2)
def first_call_initialises():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ready = False
            self.w = None

        def forward(self, x):
            if not self.ready:
                self.w = torch.ones(x.shape[1])
                self.ready = True
            return x * self.w

    return M()


@built(graphs=2)
def rotating_list():
    items = [1, 2, 3]

    def f(x):
        items.append(items.pop(0))
        return x + items[0]

    return f


@built(graphs=3)
def toggled_attribute():
    class T:
        on = False

    t = T()

    def f(x):
        t.on = not t.on
        return x + 1 if t.on else x - 1

    return f


@built(graphs=3)
def function_attribute_counter():
    def f(x):
        f.calls = getattr(f, "calls", 0) + 1
        return x * f.calls

    return f


@built(graphs=2)
def swapped_callbacks():
    callbacks = [torch.sin, torch.cos]

    def f(x):
        callbacks.reverse()
        return callbacks[0](x)

    return f
