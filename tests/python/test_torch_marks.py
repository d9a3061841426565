"""What people wrote for torch.compile counts for cutaway.compile too: torch's decorators, breaks and marks, and torch.func."""

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
