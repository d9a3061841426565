# ruff: noqa
"""Classes with __torch_dispatch__ whose tensors are shells around others: quantised weights, pairs, tensors with notes."""

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, seeded, tensor
from torch import nn
from torch.utils import _pytree as pytree

aten = torch.ops.aten


class Pair(torch.Tensor):
    @staticmethod
    def __new__(cls, a, b, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.size(), strides=a.stride(), dtype=a.dtype, device=a.device, requires_grad=requires_grad
        )

    def __init__(self, a, b, requires_grad=False):
        self.a, self.b = a, b

    def __repr__(self):
        return f"Pair({self.a}, {self.b})"

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        first = func(
            *pytree.tree_map_only(Pair, lambda x: x.a, args), **pytree.tree_map_only(Pair, lambda x: x.a, kwargs)
        )
        second = func(
            *pytree.tree_map_only(Pair, lambda x: x.b, args), **pytree.tree_map_only(Pair, lambda x: x.b, kwargs)
        )
        flat, spec = pytree.tree_flatten(first)
        both = [Pair(x, y) if isinstance(x, torch.Tensor) else x for x, y in zip(flat, pytree.tree_leaves(second))]
        return pytree.tree_unflatten(both, spec)


class Scaled(torch.Tensor):
    """One number of metadata; what is computed with it is plain."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype, device=data.device)

    def __init__(self, data, scale):
        self.inside, self.scale = data, scale

    def __tensor_flatten__(self):
        return ("inside",), (self.scale,)

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size, stride):
        return cls(inner["inside"], meta[0])

    def dequantize(self):
        return self.inside * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func is aten.detach.default:
            return cls(args[0].inside.detach(), args[0].scale)
        return func(*[a.dequantize() if isinstance(a, cls) else a for a in args], **(kwargs or {}))


KNOWN = {}


def implements(*functions):
    def keep(f):
        for function in functions:
            KNOWN[function] = f
        return f

    return keep


class Int8(torch.Tensor):
    """As libraries of quantised weights write them: __slots__, a table of functions, both protocols."""

    __slots__ = ["q", "s"]

    @staticmethod
    def __new__(cls, q, s, shape, dtype=torch.float32):
        return torch.Tensor._make_wrapper_subclass(
            cls, shape, device=q.device, layout=q.layout, dtype=dtype, requires_grad=False
        )

    def __init__(self, q, s, shape, dtype=torch.float32):
        self.q, self.s = q, s

    def __tensor_flatten__(self):
        return ["q", "s"], [self.shape, self.dtype]

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size=None, stride=None):
        return cls(inner["q"], inner["s"], meta[0] if size is None else size, meta[1])

    @classmethod
    def from_float(cls, w):
        s = w.abs().amax(1, keepdim=True) / 127
        return cls((w / s).round().to(torch.int8), s, w.shape, w.dtype)

    def dequantize(self):
        return self.q.to(self.dtype) * self.s

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in KNOWN:
            return KNOWN[func](func, types, args, kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in KNOWN:
            return KNOWN[func](func, types, args, kwargs or {})
        raise NotImplementedError(f"{cls.__name__} does not know {func}")


@implements(F.linear)
def int8_linear(func, types, args, kwargs):
    x, w, b = args[0], args[1], args[2] if len(args) > 2 else None
    y = torch.mm(x.reshape(-1, x.shape[-1]), w.q.to(x.dtype).t()) * w.s.t()
    y = y.reshape(*x.shape[:-1], y.shape[-1])
    return y if b is None else y + b


@implements(aten.detach.default, aten.clone.default, aten.alias.default)
def int8_same(func, types, args, kwargs):
    return Int8(func(args[0].q), func(args[0].s), args[0].shape, args[0].dtype)


@implements(aten.t.default)
def int8_t(func, types, args, kwargs):
    return args[0].dequantize().t()


@implements(aten.mm.default, aten.addmm.default, aten.mul.Tensor)
def int8_product(func, types, args, kwargs):
    return func(*[a.dequantize() if isinstance(a, Int8) else a for a in args])


def pair(i):
    return Pair(tensor(i), tensor(i + 10))


def parts(p):
    return p.a, p.b, type(p).__name__, tuple(p.shape), p.dtype


@program(args=lambda i: [pair(i)])
def pointwise(p):
    return parts(p.sin() + p * 2)


@program(args=lambda i: [pair(i)])
def reads_parts(p):
    return p.a.sin() + p.b


@program
def made_inside(x):
    return parts(Pair(x, x * 2) * 3)


@program
def made_and_returned(x):
    p = Pair(x, x * 2)
    return p.b, [p]


@program(args=lambda i: [pair(i), pair(i + 3)])
def two(p, q):
    return parts((p @ q.t()).relu())


@program(args=lambda i: [pair(i)])
def with_plain(p):
    return parts(p + p.a), parts(1 - p)


@program(args=lambda i: [pair(i)])
def views(p):
    return parts(p.transpose(0, 1).reshape(-1)), parts(p[1:]), parts(p.view(-1)), parts(p.t())


@program(args=lambda i: [pair(i)])
def written(p):
    q = p.add_(1)
    return q is p, parts(p)


@program(args=lambda i: [pair(i)])
def questions(p):
    if p.dim() == 2 and p.dtype == torch.float32 and not p.requires_grad and p.is_contiguous():
        return p.a * p.shape[0] + p.size(1) + p.numel()
    return p.a


@program(args=lambda i: [pair(i)])
def comes_back(p):
    return p.a + 1, isinstance(p, Pair), type(p) is Pair, [p]


@program(args=lambda i: [Pair(pair(i), pair(i + 5))])
def nested(p):
    q = p.cos() * 2
    return parts(q.a), parts(q.b)


@program(args=lambda i: [pair(i)])
def several_results(p):
    values, places = p.max(0)
    a, b = p.chunk(2, dim=1)
    return parts(values), parts(places), parts(a), parts(torch.cat([a, b * 2], dim=1))


@program(args=lambda i: [pair(i)])
def in_a_loop(p):
    for i in range(3):
        p = p * i + torch.ones_like(p)
    return p.sum().a


@program(args=lambda i: [pair(i)])
def flattened_inside(p):
    names, context = p.__tensor_flatten__()
    return parts(Pair.__tensor_unflatten__({n: getattr(p, n) + 1 for n in names}, context, None, None))


@program(args=lambda i: [pair(i)], graphs=2, breaks=True)
def across_a_break(p):
    q = p * 2
    print(type(q).__name__)
    return parts(q + 1)


@program(args=lambda i: [tensor(i), Scaled(tensor(i + 1).t(), 0.5)])
def metadata(x, s):
    return x @ s, s.dequantize().relu()


@program(args=lambda i: [tensor(i), Scaled(tensor(i), float(i + 1))], graphs=2)
def metadata_that_changes(x, s):
    return x + s.dequantize()


@program
def metadata_made(x):
    s = Scaled(x, 3.0)
    return s + x, s.scale, [s.inside]


@program(args=lambda i: [Int8.from_float(tensor(i))])
def dequantized(w):
    return w.dequantize() + 1


@program(args=lambda i: [tensor(i), Int8.from_float(tensor(i + 1))])
def quantised_product(x, w):
    return torch.mul(x, w), w * 2, torch.mm(x, torch.t(w))


@program
def quantised_inside(x):
    w = Int8.from_float(x)
    return F.linear(x, w), w.q


@program
def quantised_returned(x):
    w = Int8.from_float(x)
    return [w], w.q, w.s


@built
def quantised_layer():
    layer = seeded(lambda: nn.Linear(4, 3))
    layer.weight = nn.Parameter(Int8.from_float(layer.weight.detach()), requires_grad=False)
    return lambda x: layer(x).relu()


@built
def quantised_network():
    def make():
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        for m in (net[0], net[2]):
            m.weight = nn.Parameter(Int8.from_float(m.weight.detach()), requires_grad=False)
        return net

    return seeded(make)


@program(args=lambda i: [Int8.from_float(tensor(i))])
def parameter_of_a_shell(w):
    p = nn.Parameter(w.detach(), requires_grad=False)
    return type(p).__name__, p._is_param, p.q


@program(args=lambda i: [Int8.from_float(tensor(i))], graphs=0, breaks=True)
def dispatch_raises(w):
    return w.sin()


@program(args=lambda i: [Int8.from_float(tensor(i))])
def dispatch_raises_and_is_caught(w):
    y = w.q + 1
    try:
        w.sin()
    except NotImplementedError as error:
        return y, str(error)
    return y


@program(args=lambda i: [Pair(tensor(i), tensor(i + 1), True)], graphs=0, breaks=True)
def gradients(p):
    return parts(p * p)


@program(args=lambda i: [tensor(i).requires_grad_(), pair(i)], graphs=0, breaks=True)
def gradients_of_others(x, p):
    return parts(p * x)


class Counting(Scaled):
    count = []

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        cls.count.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


@program(args=lambda i: [tensor(i), Counting(tensor(i), 2.0)])
def dispatch_with_effects(x, s):
    Counting.count.clear()
    y = x + s
    return y, list(Counting.count)
