"""torch.compiler.set_stance and error_on_graph_break hold for cutaway.compile."""

import cutaway
import pytest
import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounter

pytestmark = pytest.mark.usefixtures("fresh_capture")
A, B = torch.ones(2), torch.ones(3)
br = torch._dynamo.graph_break


def compiled():
    counter = CompileCounter()
    return cutaway.compile(lambda x: x + 1, backend=counter), counter


def test_force_eager():
    f, counter = compiled()
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(f(A), A + 1)
    torch.compiler.set_stance("force_eager")(lambda: f(A))()
    torch.compiler.set_stance("force_eager")
    f(A)
    torch.compiler.set_stance("default")
    assert counter.frame_count == 0
    f(A)
    assert counter.frame_count == 1


def test_force_eager_with_fullgraph_and_modules():
    def broken(x):
        br()
        return x + 1

    whole = cutaway.compile(broken, backend="eager", fullgraph=True)
    counter = CompileCounter()
    module = cutaway.compile(torch.nn.Linear(2, 2), backend=counter)
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(whole(A), A + 1)
        module(A)
    assert counter.frame_count == 0
    with pytest.raises(cutaway.exc.Unsupported):
        whole(A)


def test_eager_on_recompile():
    f, counter = compiled()
    with torch.compiler.set_stance("eager_on_recompile"):
        assert torch.equal(f(A), A + 1)
    assert counter.frame_count == 0
    f(A)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert torch.equal(f(B), B + 1)
        f(A)
    assert counter.frame_count == 1
    f(B)
    assert counter.frame_count == 2


def test_fail_on_recompile():
    f, counter = compiled()
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="would have to be compiled"):
        f(A)
    f(A)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert torch.equal(f(A), A + 1)
        with pytest.raises(cutaway.exc.RecompileNotAllowed, match=r"`x.shape\[0\]` was 2, is 3"):
            f(B)
    assert counter.frame_count == 1


def test_fail_on_recompile_after_a_break():
    def f(x):
        x = x + 1
        br()
        return x * 2

    g = cutaway.compile(f, backend="eager")
    g(A)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert torch.equal(g(A), f(A))
        with pytest.raises(cutaway.exc.RecompileNotAllowed):
            g(B)


def test_eager_then_compile_takes_sizes_that_changed_as_symbols():
    f, counter = compiled()
    with torch.compiler.set_stance("eager_then_compile"):
        counts = []
        for n in (2, 3, 4, 5):
            assert torch.equal(f(torch.ones(n)), torch.ones(n) + 1)
            counts.append(counter.frame_count)
    assert counts == [0, 1, 1, 1]


def test_force_backend():
    f, counter = compiled()
    other = CompileCounter()
    with torch.compiler.set_stance("default", force_backend=other):
        assert torch.equal(f(A), A + 1)
        f(A)
    assert (counter.frame_count, other.frame_count) == (0, 1)
    f(A)
    assert (counter.frame_count, other.frame_count) == (1, 1)
    with torch.compiler.set_stance(force_backend="no such one"), pytest.raises(cutaway.exc.InvalidBackend):
        f(A)


def test_skipping_guards_is_not_taken():
    f, _ = compiled()
    f(A)
    with torch.compiler.set_stance("default", skip_guard_eval_unsafe=True):
        assert torch.equal(f(B), B + 1)


def test_a_stance_set_inside():
    inner, counter = compiled()

    def f(x):
        x = x + 1
        with torch.compiler.set_stance("force_eager"):
            y = inner(x)
        return y * 2

    assert torch.equal(cutaway.compile(f, backend="eager")(A), (A + 2) * 2)
    assert counter.frame_count == 0
    assert torch._dynamo.eval_frame._stance.stance == "default"


SWITCHES = pytest.mark.parametrize(
    "switch", [torch._dynamo.error_on_graph_break, cutaway.error_on_graph_break], ids=["torch", "cutaway"]
)


def outcome(f):
    """Number of graphs, or the line at which the break raised."""
    counter = CompileCounter()
    compiled = cutaway.compile(f, backend=counter)
    first = f.__code__.co_firstlineno
    for _ in range(2):
        try:
            result = compiled(A)
        except cutaway.exc.Unsupported as e:
            assert e.reason_id == "asked-for"
            found = e.user_stack[-1][3]
        else:
            torch.testing.assert_close(result, f(A), rtol=0, atol=0)
            found = counter.frame_count
    assert not torch._dynamo.utils._error_on_graph_break and first
    return found


@SWITCHES
def test_on_inside(switch):
    def f(x):
        x = x + 1
        with switch(True):
            x = x * 2
            br()  # here
        return x

    assert outcome(f) == "br()  # here"


@SWITCHES
def test_on_for_a_part(switch):
    def f(x):
        with switch(True):
            x = x * 2
        br()
        return x - 1

    assert outcome(f) == 2


@SWITCHES
def test_nested(switch):
    def allowed(x):
        with switch(True):
            x = x + 1
            with switch(False):
                br()
                x = x * 3
            x = x - 1
        return x

    def refused(x):
        with switch(True):
            with switch(False):
                x = x + 1
                br()
                x = x * 3
            br()  # second
        return x

    assert outcome(allowed) == 2
    assert outcome(refused) == "br()  # second"


@SWITCHES
def test_as_decorator(switch):
    @switch(True)
    def on(x):
        x = x + 1
        br()  # on
        return x * 2

    @switch(False)
    def off(x):
        x = x + 1
        br()
        return x * 2

    def calls_off(x):
        with switch(True):
            return off(x + 1) + 1

    assert outcome(on) == "br()  # on"
    assert outcome(off) == 2
    assert outcome(lambda x: on(x + 1)) == "br()  # on"
    assert outcome(calls_off) == 2


@SWITCHES
def test_outside(switch):
    def f(x):
        x = x + 1
        br()
        return x * 2

    @switch(False)
    def off(x):
        x = x + 1
        br()
        return x * 2

    g = cutaway.compile(f, backend="eager")
    with switch(True):
        for _ in range(2):
            with pytest.raises(cutaway.exc.Unsupported):
                g(A)
        assert torch.equal(cutaway.compile(off, backend="eager")(A), f(A))
    assert torch.equal(g(A), f(A))
    with switch(True):
        assert torch.equal(g(A), f(A))  # compiled before


def test_options_set_the_same_switch():
    @cutaway.error_on_graph_break(False)
    def off(x):
        br()
        return x + 1

    with cutaway.options(error_on_graph_break=True):
        with pytest.raises(cutaway.exc.Unsupported):
            cutaway.compile(lambda x: br(), backend="eager")(A)
        assert torch.equal(cutaway.compile(off, backend="eager")(A), A + 1)
    assert not torch._dynamo.utils._error_on_graph_break


def test_fullgraph_counts_for_more():
    @cutaway.error_on_graph_break(False)
    def f(x):
        br()
        return x + 1

    with pytest.raises(cutaway.exc.Unsupported):
        cutaway.compile(f, backend="eager", fullgraph=True)(A)
