"""Tensors of classes derived from Tensor: what __torch_function__ is asked is what eager asks it, results have eager's classes, and what is only C's breaks."""

import cutaway
import pytest
import torch
import torch.nn.functional as F

from tests.support.capture_cases import reset, shown


class Plain(torch.Tensor):
    pass


CALLS = []


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        CALLS.append((func.__name__, len(args), sorted(kwargs or {}), [t.__name__ for t in types]))
        return super().__torch_function__(func, types, args, kwargs or {})


class Metres(torch.Tensor):
    """Keeps an attribute, unwraps by hand."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        unit = next((a.unit for a in args if isinstance(a, cls) and hasattr(a, "unit")), "m")
        plain = [a.as_subclass(torch.Tensor) if isinstance(a, cls) else a for a in args]
        result = func(*plain, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            result = result.as_subclass(cls)
            result.unit = unit
        return result


class WithOperator(torch.Tensor):
    def __add__(self, other):
        return super().__add__(other) * 2


class Wrapped(torch.Tensor):
    """Below autograd: only C can run it."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(a):
            return a.inner if isinstance(a, cls) else a

        return cls(func(*map(unwrap, args), **(kwargs or {})))


@pytest.fixture(autouse=True)
def clean():
    CALLS.clear()
    reset()
    yield
    CALLS.clear()
    reset()


BODIES = {
    "operators": lambda x: (x + 1, 1 - x, x * x, x @ x.T, -x, x > 0, x[0], x[:, 1:], 2**x, x / 2, x % 2, abs(x)),
    "functions": lambda x: (
        torch.sin(x),
        torch.cat([x, x]),
        torch.stack([x, x * 2], dim=1),
        torch.where(x > 0, x, 0.0),
        torch.max(x, dim=1),
    ),
    "functional": lambda x: (
        F.relu(x),
        F.softmax(x, dim=-1),
        F.linear(x, x),
        F.dropout(x, 0.5, False),
        F.layer_norm(x, (4,)),
        F.mse_loss(x, x * 2),
    ),
    "methods": lambda x: (
        x.sum(),
        x.mean(dim=0),
        x.view(-1),
        x.t(),
        x.split(2),
        x.chunk(2),
        x.clone(),
        x.norm(),
        x.argmax(),
        x.to(torch.float64),
    ),
    "attributes": lambda x: (x.shape, x.dtype, x.ndim, x.T, x.requires_grad, x.device, x.is_leaf),
    "questions": lambda x: (x.size(), x.dim(), len(x), x.numel(), x.is_floating_point(), x.stride()),
    "writes": lambda x: (x.clone().add_(1), x.clone().fill_(0), x.clone().masked_fill_(x > 0, 0.0)),
    "python": lambda x: (
        torch.einsum("ij,kj->ik", x, x),
        torch.split(x, 2),
        torch.norm(x),
        torch.broadcast_tensors(x, x[:1]),
    ),
    "initialise": lambda x: torch.nn.init.constant_(x.clone(), 2.0),
}


@pytest.mark.parametrize("backend", ["fx", "eager", "aot_eager"])
@pytest.mark.parametrize("kind", [Plain, Logged, Metres])
@pytest.mark.parametrize("body", list(BODIES))
def test_as_eager(body, kind, backend):
    f = BODIES[body]
    chosen = (lambda g, _: g.forward) if backend == "fx" else backend
    compiled = cutaway.compile(f, backend=chosen)
    for i in range(2):
        torch.manual_seed(i)
        data = torch.randn(3, 4)
        expected = shown(f, [data.clone().as_subclass(kind)])
        asked, _ = list(CALLS), CALLS.clear()
        got = shown(compiled, [data.clone().as_subclass(kind)])
        assert got == expected
        assert CALLS == asked
        CALLS.clear()


@pytest.mark.parametrize("body", ["operators", "functional", "methods"])
@pytest.mark.parametrize("kind", [Plain, Metres])
def test_one_graph(body, kind):
    x = torch.randn(3, 4).as_subclass(kind)
    result = cutaway.compile(BODIES[body], fullgraph=True)(x)
    assert all(isinstance(t, kind) for t in result if isinstance(t, torch.Tensor))


def test_gradients():
    def f(x, w):
        return (x * w).sigmoid().sum()

    w = torch.nn.Parameter(torch.ones(4))
    x = torch.randn(3, 4).requires_grad_()
    y = cutaway.compile(f, fullgraph=True)(x.as_subclass(Plain), w)
    y.backward()
    got = [x.grad, w.grad]
    x.grad = w.grad = None
    f(x.as_subclass(Plain), w).backward()
    assert type(y) is Plain
    assert torch.equal(x.grad, got[0]) and torch.equal(w.grad, got[1])


def test_other_class_is_another_capture():
    def f(x):
        return x * 2

    compiled = cutaway.compile(f)
    x = torch.randn(3)
    for kind in (torch.Tensor, Plain, torch.Tensor, Metres):
        assert type(compiled(x.as_subclass(kind))) is kind


def test_class_that_changes_is_seen():
    class Changing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x):
        return x * 2

    compiled = cutaway.compile(f)
    x = torch.ones(3).as_subclass(Changing)
    assert compiled(x).sum() == 6

    def other(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {})) + 1

    Changing.__torch_function__ = classmethod(other)
    assert compiled(x).as_subclass(torch.Tensor).sum() == f(x).as_subclass(torch.Tensor).sum() == 9


def test_switched_off_outside():
    def f(x):
        return x * 2

    compiled = cutaway.compile(f)
    x = torch.ones(3).as_subclass(Plain)
    assert type(compiled(x)) is Plain
    with torch._C.DisableTorchFunctionSubclass():
        assert type(compiled(x)) is type(f(x)) is torch.Tensor
    assert type(compiled(x)) is Plain


def test_own_operator_breaks():
    x = torch.ones(3).as_subclass(WithOperator)
    assert torch.equal(cutaway.compile(lambda t: t + 1)(x).as_subclass(torch.Tensor), torch.full((3,), 4.0))


def test_class_below_autograd():
    """Its attribute `inner` hides a method of torch's."""
    x = Wrapped(torch.ones(3))
    for fullgraph in (False, True):
        result = cutaway.compile(lambda t: t * 2, fullgraph=fullgraph)(x)
        assert type(result) is Wrapped and torch.equal(result.inner, torch.full((3,), 2.0))


@pytest.mark.parametrize("name", ["sum", "inner", "dot", "__len__", "register_hook", "split", "foo"])
@pytest.mark.parametrize("kind", ["tensor", "parameter", "subclass", "made_inside"])
def test_an_attribute_hides_a_method(kind, name):
    def made():
        t = torch.arange(3.0)
        if kind == "parameter":
            t = torch.nn.Parameter(t)
        if kind == "subclass":
            t = t.as_subclass(WithOperator)
        return t

    def f(t):
        if kind == "made_inside":
            t = t + 0
            setattr(t, name, 5)
        return t * getattr(t, name), t.mean()

    x = made()
    if kind != "made_inside":
        setattr(x, name, 5)
    compiled = cutaway.compile(f)
    for expected, got in zip(f(x), compiled(x), strict=True):
        assert torch.equal(expected, got)
    if kind != "made_inside":
        setattr(x, name, 7)
        for expected, got in zip(f(x), compiled(x), strict=True):
            assert torch.equal(expected, got)


def test_function_of_python_inside_a_mode():
    """A function of torch's that does not ask the mode itself: what it calls does."""

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            CALLS.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def f(x):
        with Mode():
            return torch.nn.init.xavier_uniform_(x.clone())

    torch.manual_seed(0)
    expected = f(torch.ones(3, 4))
    asked, _ = list(CALLS), CALLS.clear()
    torch.manual_seed(0)
    assert torch.equal(cutaway.compile(f)(torch.ones(3, 4)), expected)
    assert CALLS == asked
