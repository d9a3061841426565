"""Tensors and the state of torch: whatever an operator can see of them, a compiled function sees too, and a change is named."""

import contextlib

import cutaway
import pytest
import torch
from test_guards_hostile import Follows, assert_same, outcome
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.usefixtures("fresh_capture")
X = torch.arange(6.0).reshape(2, 3)


# --- tensors


def describe(x):
    return (
        x + 1, x.stride(), x.storage_offset(), x.is_contiguous(), x.requires_grad, x.is_leaf, x.grad is None, x.is_conj(),
        x.is_neg(), x.layout, str(x.device), x.dim(), x.is_floating_point(), x._is_view(), x.is_inference(), x.grad_fn is None,
    )  # fmt: skip


def leaf():
    return torch.ones(2, 3, requires_grad=True)


def with_grad():
    x = leaf()
    x.sum().backward()
    return x


def inference():
    with torch.inference_mode():
        return torch.ones(2, 3)


TENSORS = {
    "plain": lambda: torch.ones(2, 3),
    "transposed": lambda: torch.ones(3, 2).t(),
    "offset": lambda: torch.ones(3, 3)[1:],
    "expanded": lambda: torch.ones(3).expand(2, 3),
    "view": lambda: torch.ones(6).view(2, 3),
    "leaf": leaf,
    "not a leaf": lambda: leaf() * 2,
    "with a gradient": with_grad,
    "of inference": inference,
    "negated": lambda: torch.ones(2, 3, dtype=torch.complex64).conj().imag,
    "double": lambda: torch.ones(2, 3, dtype=torch.float64),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
    "frozen parameter": lambda: torch.nn.Parameter(torch.ones(2, 3), requires_grad=False),
    "buffer": lambda: torch.nn.Buffer(torch.ones(2, 3)),
    "meta": lambda: torch.ones(2, 3, device="meta"),
    "scalar": lambda: torch.ones(()),
    "empty": lambda: torch.ones(0, 3),
    "one": lambda: torch.ones(1, 3),
    "conjugated": lambda: torch.ones(2, 3, dtype=torch.complex64).conj(),
}


@pytest.mark.parametrize(
    "function", [describe, lambda x: x * 2, lambda x: x.t().contiguous() if x.dim() == 2 else x.sum()]
)
def test_tensors_of_every_kind(function):
    """All pairs in turn through one compiled function."""
    compiled = cutaway.compile(function, backend="eager")
    with cutaway.options(cache_size_limit=64):
        for make in [*TENSORS.values(), *reversed(TENSORS.values())]:
            x = make()
            assert_same(outcome(compiled, (x,)), outcome(function, (x,)))


def test_memory_formats():
    f = Follows(lambda x: (x * 2, x.is_contiguous(memory_format=torch.channels_last)), torch.ones(2, 3, 4, 4))
    f.check(torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last))
    f.check(torch.ones(2, 3, 4, 8)[..., ::2])


def test_aliases_among_inputs():
    def f(x, y):
        x.add_(1)
        return x * y, x is y

    def run(function, make):
        x, y = make()
        return function(x, y), x, y

    compiled = cutaway.compile(f, backend="eager")

    def twins():
        x = torch.ones(4)
        return x, x

    def overlapping():
        x = torch.arange(5.0)
        return x[:4], x[1:]

    def views():
        x = torch.ones(4)
        return x, x.view(4)

    for make in (lambda: (torch.ones(4), torch.ones(4)), twins, overlapping, views, twins, overlapping):
        assert_same(run(compiled, make), run(f, make))


def test_gradients_flow():
    def f(x, w):
        return (x * w).relu().sum() if w.requires_grad else (x * w).sum() * 2

    compiled = cutaway.compile(f, backend="eager")
    for requires in (True, False, True):
        w = torch.full((2, 3), -1.0, requires_grad=requires)
        got, expected = compiled(X, w), f(X, w)
        assert_same(got, expected)
        if requires:
            assert_same(torch.autograd.grad(got, w), torch.autograd.grad(expected, w))


class Doubles(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, kinds, args=(), kwargs=None):
        result = super().__torch_function__(function, kinds, args, kwargs or {})
        return result * 2 if function is torch.Tensor.add else result


def test_subclasses():
    f = Follows(lambda x: x.add(1), X)
    f.check(X.as_subclass(Doubles))
    f.check(X)


# --- state


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def default_device(name):
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def deterministic(warn_only=False):
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def flag(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


class AddsAreProducts(TorchFunctionMode):
    def __init__(self, by):
        self.by = by

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        return (
            function(*args, **(kwargs or {})) * self.by if function is torch.sin else function(*args, **(kwargs or {}))
        )


STATES = {
    "as usual": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast bfloat16": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast float16": lambda: torch.autocast("cpu", torch.float16),
    "autocast without cache": lambda: torch.autocast("cpu", torch.bfloat16, cache_enabled=False),
    "autocast off": lambda: torch.autocast("cpu", enabled=False),
    "float64": lambda: default_dtype(torch.float64),
    "meta": lambda: default_device("meta"),
    "cpu": lambda: default_device("cpu"),
    "with meta": lambda: torch.device("meta"),
    "with cpu": lambda: torch.device("cpu"),
    "deterministic": deterministic,
    "deterministic, warnings": lambda: deterministic(True),
    "mode 2": lambda: AddsAreProducts(2.0),
    "mode 3": lambda: AddsAreProducts(3.0),
    "no functions": torch._C.DisableTorchFunction,
    "mkldnn off": lambda: torch.backends.mkldnn.flags(enabled=False),
    "math attention": lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
}


def everything(x, w):
    made = torch.ones(2, 3)
    product = x @ w
    return (
        made, torch.sin(x), product, torch.tensor(1.5), torch.arange(3), torch.is_grad_enabled(), torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"), torch.are_deterministic_algorithms_enabled(), torch.is_inference_mode_enabled(),
    )  # fmt: skip


@pytest.mark.parametrize("order", [1, -1])
def test_states_in_turn(order):
    w = torch.ones(3, 3, requires_grad=True)
    compiled = cutaway.compile(everything, backend="eager")
    with cutaway.options(cache_size_limit=64):
        for _ in range(2):
            for name, state in list(STATES.items())[::order]:
                for _ in range(2):
                    with state():
                        got = outcome(compiled, (X, w))
                    with state():
                        expected = outcome(everything, (X, w))
                    try:
                        assert_same(got, expected)
                    except AssertionError as error:
                        raise AssertionError(name) from error


def test_default_devices_in_turn():
    """Each is a new object, which may lie where the last one was."""
    compiled = cutaway.compile(lambda x: torch.zeros(3), backend="eager")
    with cutaway.options(cache_size_limit=64):
        for name in ["cpu", "meta"] * 10:
            with torch.device(name):
                assert compiled(X).device.type == name
            with AddsAreProducts(1.0), torch.device(name):
                assert compiled(X).device.type == name
    assert cutaway.counters["frames"]["ok"] <= 24


def test_modes_see_each_operator_once():
    class Counts(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
            self.seen.append(str(function))
            return function(*args, **(kwargs or {}))

    def f(x):
        return torch.relu(x) + 1

    compiled = cutaway.compile(f, backend="eager")
    for _ in range(3):
        with Counts() as ours:
            got = compiled(X)
        with Counts() as eager:
            expected = f(X)
        assert_same(got, expected)
        assert ours.seen == eager.seen
        assert_same(compiled(X), expected)


def test_transforms_around():
    def f(x):
        return x.sin() * x.shape[0]

    compiled = cutaway.compile(f, backend="eager")
    for _ in range(2):
        assert_same(compiled(X), f(X))
        assert_same(torch.func.vmap(compiled)(X), torch.func.vmap(f)(X))
        assert_same(torch.func.grad(lambda x: compiled(x).sum())(X), torch.func.grad(lambda x: f(x).sum())(X))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(X, torch.ones_like(X))
            got, expected = (torch.autograd.forward_ad.unpack_dual(g(dual)) for g in (compiled, f))
            assert_same(got.tangent, expected.tangent)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("no_grad", "grad mode was on, is off"),
        ("inference mode", "mode was"),
        ("autocast bfloat16", "autocast on the CPU was off, is on"),
        ("float64", "the default dtype was Float, is Double"),
        ("meta", "the default device was cpu, is meta"),
        ("deterministic", "deterministic mode was off, is on"),
        ("mkldnn off", "torch.backends.mkldnn.enabled was on, is off"),
        ("math attention", "torch.backends.cuda.flash_sdp was on, is off"),
    ],
)
def test_states_are_named(state, words):
    from cutaway._native import capture

    reasons = []
    compiled = cutaway.compile(lambda x: x + 1, backend="eager")
    compiled(X)
    number = capture.add_listener(lambda record: reasons.append(record["recompile_reason"]))
    try:
        with STATES[state]():
            compiled(X)
    finally:
        capture.remove_listener(number)
    assert words in reasons[0]
