"""What people wrote for torch.compile counts for cutaway.compile too: torch's decorators, breaks and marks, and torch.func."""

import types

import cutaway
import pytest
import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounter

pytestmark = pytest.mark.usefixtures("fresh_capture")


def counted(function, *args, **keywords):
    """Graphs and operators that a backend sees; the result is compared with eager's."""
    counter = CompileCounter()
    got = cutaway.compile(function, backend=counter, **keywords)(*args)
    want = function(*args)
    torch.testing.assert_close(got, want, rtol=0, atol=0)
    return counter.frame_count, counter.op_count


X = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))


def test_graph_break():
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    assert counted(f, X) == (2, 2)
    with pytest.raises(cutaway.exc.Unsupported, match="as the program asked"):
        cutaway.compile(f, backend="eager", fullgraph=True)(X)


def test_disable_hides_what_is_called_below():
    def inner(x):
        return x.cos() + 3

    @torch.compiler.disable
    def outer(x):
        return inner(x).sin()

    assert counted(lambda x: outer(x + 1) * 2, X) == (2, 2)


def test_disable_of_one_frame_alone():
    def inner(x):
        return x.cos() + 3

    @torch.compiler.disable(recursive=False)
    def outer(x):
        return inner(x).sin()

    assert counted(lambda x: outer(x + 1) * 2, X) == (3, 4)


def test_a_disabled_function_as_the_target():
    seen = []

    @torch.compiler.disable
    def f(x):
        seen.append(cutaway.is_compiling())
        return x + 1

    assert counted(f, X) == (0, 0)
    assert not any(seen)


def test_assume_constant_result():
    calls = []

    @torch._dynamo.assume_constant_result
    def size():
        calls.append(1)
        return 5

    compiled = cutaway.compile(lambda x: x + size(), backend="eager", fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(X), X + 5)
    assert len(calls) == 1


def test_modes_are_entered_once():
    def no_grad(x):
        with torch.no_grad():
            y = x.relu().sin()
        return y + x

    def autocast(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x.t()

    assert counted(no_grad, X, fullgraph=True) == (1, 5)
    assert counted(autocast, X, fullgraph=True) == (1, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.func.vmap(torch.sin)(x) + 1,
        lambda x: torch.func.vmap(lambda row: row.sum() * 2)(x + 1) + 1,
        lambda x: torch.func.grad(lambda y: y.sin().sum())(x) * 2,
        lambda x: torch.func.jacrev(lambda y: y * y)(x[0]).sum(),
        lambda x: torch.func.jvp(torch.sin, (x,), (x,))[1] + 1,
    ],
    ids=["vmap", "vmap_of_a_lambda", "grad", "jacrev", "jvp"],
)
def test_transforms_leave_no_level_behind(function):
    compiled = cutaway.compile(function, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(X), function(X))
    cutaway.reset()
    try:
        cutaway.compile(function, backend="eager", fullgraph=True)(X)
    except cutaway.exc.Unsupported:
        pass
    assert torch._C._functorch.maybe_current_level() is None


def test_first_use_of_an_operator_inside():
    lib = torch.library.Library("cutaway_first_use", "FRAGMENT")
    for name in ("twice", "thrice"):
        lib.define(name + "(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x * 2, "CompositeExplicitAutograd")
        lib.impl(name, lambda x: torch.empty_like(x), "Meta")
    with cutaway.options(strict=True):
        assert counted(lambda x: torch.ops.cutaway_first_use.twice(x) + 1, X, fullgraph=True) == (1, 2)
        assert counted(lambda x: torch.ops.cutaway_first_use.thrice.default(x) + 1, X, fullgraph=True) == (1, 2)


def test_an_operator_that_comes_later():
    lib = torch.library.Library("cutaway_later", "FRAGMENT")

    def f(x):
        return x + (1 if hasattr(torch.ops.cutaway_later, "late") else 2)

    compiled = cutaway.compile(f, backend="eager")
    assert torch.equal(compiled(X), X + 2)
    lib.define("late(Tensor x) -> Tensor")
    assert torch.equal(compiled(X), X + 1)


def test_attributes_that_modules_make_when_asked():
    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("made"):
                setattr(self, name, len(name))
                return len(name)
            raise AttributeError(name)

    lazy = Lazy("lazy")
    with cutaway.options(strict=True):
        for f in (
            lambda x: x + lazy.made,
            lambda x: x + getattr(lazy, "nothing", 3),
            lambda x: x + hasattr(lazy, "made_too"),
        ):
            for _ in range(2):
                assert torch.equal(cutaway.compile(f, backend="eager")(X), f(X))
