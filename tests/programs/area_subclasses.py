# ruff: noqa
"""Classes derived from Tensor, Parameter and Buffer: with nothing of their own, with methods and attributes, with __torch_function__."""

import torch
from tests.support.registry import built, program, tensor
from torch import nn


class Plain(torch.Tensor):
    pass


class WithMethods(torch.Tensor):
    scale = 3

    def scaled(self):
        return self * self.scale

    @property
    def last(self):
        return self[..., -1]

    @classmethod
    def of(cls, t):
        return t.as_subclass(cls)


class Counting(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class AddsOne(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.Tensor.mul or func is torch.mul:
            return result + 1
        return result


class Disabled(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


class Unwraps(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, Tagged):
            tags = [a.tag for a in args if isinstance(a, Tagged) and hasattr(a, "tag")]
            result.tag = tags[0] if tags else "none"
        return result


class Special(nn.Parameter):
    pass


class Quantised(nn.Parameter):
    @property
    def levels(self):
        return 4


class Duck:
    """No tensor, but torch functions take it."""

    def __init__(self, t):
        self.t = t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.t if isinstance(a, Duck) else a for a in args]
        return Duck(func(*args, **(kwargs or {})))


def plain(i=0):
    return tensor(i).as_subclass(Plain)


@program(args=lambda i: [plain(i)])
def plain_arithmetic(x):
    return x * 2 + 1, type(x + 1).__name__


@program(args=lambda i: [plain(i)])
def plain_methods(x):
    y = x.relu().sum(-1)
    return y, isinstance(y, Plain), type(y) is Plain, isinstance(x, torch.Tensor)


@program(args=lambda i: [plain(i), tensor(i)])
def plain_with_ordinary(x, t):
    a, b = x + t, t + x
    return a, b, type(a).__name__, type(b).__name__, torch.cat([t, x]), torch.stack([t, t])


@program(args=lambda i: [plain(i)])
def plain_functions(x):
    return torch.sin(x), torch.nn.functional.gelu(x), torch.where(x > 0, x, -x), torch.einsum("ij,kj->ik", x, x)


@program(args=lambda i: [plain(i)])
def plain_several_results(x):
    a, b = x.split(2, dim=1)
    v, i = x.max(dim=1)
    return a, b, v, i, type(a).__name__, type(v).__name__, type(i).__name__


@program(args=lambda i: [plain(i)], graphs=0)
def plain_questions(x):
    return x.shape, x.dtype, x.dim(), x.is_floating_point(), x.size(0), type(x.shape).__name__


@program(args=lambda i: [plain(i)])
def plain_attributes(x):
    return x.T, x.mT, x.data, x.real, type(x.T).__name__, type(x.data).__name__


@program(args=lambda i: [plain(i)])
def plain_in_place(x):
    x.add_(1)
    x[0] = 2
    x *= 2
    return x


@program(args=lambda i: [plain(i)])
def plain_iterates(x):
    return [row * 2 for row in x], len(x)


@program(args=lambda i: [plain(i)], graphs=2, breaks=True)
def plain_break(x):
    y = x * 2
    print(type(y).__name__)
    return y + 1


@program(args=lambda i: [plain(i).requires_grad_()])
def plain_gradients(x):
    return (x * x).sum()


@program(args=lambda i: [plain(i)])
def plain_like(x):
    return torch.zeros_like(x), x.new_ones(2), x.clone(), x.detach(), x.to(torch.float64), x.contiguous()


@program(args=lambda i: [plain(i)])
def plain_comparisons(x):
    return x > 0, x == x, 1 - x, 2 / (x.abs() + 1), -x, ~(x > 0), x @ x.T


@program
def made_inside(x):
    y = x.as_subclass(Plain)
    return y * 2, type(y).__name__


@program
def made_inside_and_back(x):
    y = (x * 2).as_subclass(Plain) + 1
    return y.as_subclass(torch.Tensor) * 2


@program
def methods_of_own(x):
    y = WithMethods.of(x)
    return y.scaled(), y.last, (y + 1).scaled()


@program(args=lambda i: [tensor(i).as_subclass(WithMethods)])
def methods_of_own_argument(x):
    return x.scaled(), x.last, torch.sin(x).last


@program(args=lambda i: [tensor(i).as_subclass(Counting)])
def function_passes_on(x):
    return torch.sin(x) + x * 2, x.sum()


@program(args=lambda i: [tensor(i).as_subclass(AddsOne)])
def function_changes(x):
    return x * 2, torch.mul(x, x), x + 1


@program(args=lambda i: [tensor(i).as_subclass(Disabled)])
def function_disabled(x):
    y = x * 2
    return y, type(y).__name__


@program(args=lambda i: [tensor(i).as_subclass(Unwraps)])
def function_unwraps(x):
    y = x * 2
    return y, type(y).__name__


def tagged(i):
    t = tensor(i).as_subclass(Tagged)
    t.tag = "input"
    return t


@program(args=lambda i: [tagged(i)])
def function_keeps_attributes(x):
    y = x * 2
    return y, y.tag, (y + 1).sum().tag


@program(args=lambda i: [tensor(i).as_subclass(AddsOne), tensor(i).as_subclass(Counting)])
def function_of_two_classes(a, b):
    return type(torch.sin(a)).__name__, torch.sin(b)


@program
def function_of_no_tensor(x):
    return torch.sin(Duck(x)).t, torch.add(Duck(x), 1).t


@program(args=lambda i: [tensor(i).as_subclass(AddsOne)])
def function_disabled_by_context(x):
    with torch._C.DisableTorchFunction():
        y = x * 2
    with torch._C.DisableTorchFunctionSubclass():
        z = x * 3
    return y, z, type(y).__name__


@built
def parameter_subclass():
    torch.manual_seed(0)
    m = nn.Linear(4, 2)
    m.weight = Special(m.weight.detach())
    return m


@built
def parameter_subclass_property():
    torch.manual_seed(0)
    m = nn.Linear(4, 2)
    m.weight = Quantised(m.weight.detach())
    return lambda x: m(x) * m.weight.levels


@built
def parameter_subclass_with_attributes():
    torch.manual_seed(0)
    m = nn.Linear(4, 2)
    m.weight = Special(m.weight.detach())
    m.weight.partition = 2
    return lambda x: (m(x) * getattr(m.weight, "partition", 1), getattr(m.bias, "partition", 1))


@built
def buffer_plain():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = nn.Buffer(torch.ones(4))

        def forward(self, x):
            self.b += 1
            return x * self.b, isinstance(self.b, nn.Buffer)

    return M()


@program
def parameter_made_inside(x):
    p = nn.Parameter(x)
    return (p * 2).sum().detach(), isinstance(p, nn.Parameter), p.requires_grad


@program
def subclass_constructed(x):
    y = torch.Tensor._make_subclass(Plain, x)
    return y * 2


@built
def subclass_made_once():
    c = torch.ones(4).as_subclass(Plain)

    def f(x):
        return x * c

    return f


class Refuses(torch.Tensor):
    """Operators take its TypeError for NotImplemented; functions and methods let it through."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__)
        if func.__name__ in ("add", "add_", "sub", "mul", "matmul", "__eq__"):
            raise TypeError("cannot " + func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class RefusesToAdd(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ == "add":
            raise TypeError("cannot add")
        return func(*args, **(kwargs or {}))


def _told(*functions):
    said = []
    for f in functions:
        try:
            said.append(type(f()).__name__)
        except TypeError as e:
            said.append(str(e))
    return said


@program(graphs=5, breaks=True)
def type_error_of_an_operator(x):
    del Refuses.seen[:]
    a = x.as_subclass(Refuses)

    def in_place():
        b = a
        b += 1

    said = _told(
        lambda: a + a,
        lambda: a + 1,
        lambda: 1 + a,
        lambda: a - a,
        lambda: a * 2,
        lambda: a @ a,
        lambda: a == a,
        lambda: x + a,
        in_place,
        lambda: torch.add(a, a),
        lambda: a.add(a),
        lambda: a.__add__(a),
        lambda: a / 2,
    )
    return said, list(Refuses.seen), x * 2


@program(breaks=True)
def type_error_of_an_operator_in_a_mode(x):
    with RefusesToAdd():
        said = _told(lambda: x + 1, lambda: torch.add(x, 1), lambda: x * 2)
    return said, x * 2
