"""What a person reads about breaks, guards and limits: it is true, names what the user wrote, and points at the first cause."""

import cutaway
import pytest
import torch

pytestmark = pytest.mark.usefixtures("fresh_capture")
X = torch.ones(2)


def helper(x, k):
    y = x * k
    print("", end="")
    return y + k


def test_guards_after_a_break_name_variables():
    def f(x):
        w = x + 1
        return w.sin() + helper(w, 3) * x

    first, second = cutaway.explain(f)(X).out_guards
    line = f.__code__.co_firstlineno + 2
    assert "x: Tensor Float[2] strides [1] on cpu" in first
    assert "helper's y: Tensor Float[2] strides [1] on cpu" in second
    assert "helper's k == 3" in second
    assert f"the value under construction at line {line}: Tensor Float[2] strides [1] on cpu" in second
    assert not [g for g in first + second if ".stack" in g or "__closure__" in g or "<function>" in g or "<dict>" in g]


def test_recompiles_after_a_break_name_variables():
    def f(x, items):
        for item in items:
            x = x + item
            print("", end="")
        return x

    report = cutaway.explain(f)(X, (1, 2, 3))
    assert any("`item` was 2, is 3" in text for text in report.recompile_reasons)


def test_a_phrase_stands_in_brackets():
    def f(x):
        return {"a": [x.sin()], "b": helper(x, 2)}["a"][0] + 1

    _, second = cutaway.explain(f)(X).out_guards
    line = f.__code__.co_firstlineno + 1
    assert f"len(the value under construction at line {line}) == 1" in second
    assert any(g.startswith(f"(the value under construction at line {line})[0]: Tensor") for g in second)


def test_a_loop_left_open_points_at_the_break():
    def f(x):
        for i in [1, 2, 3]:
            x = x + i
            print("", end="")
        return x

    reasons = cutaway.explain(f)(X).break_reasons
    loop = next(r for r in reasons if r.id == "opaque-iterator")
    first = next(r for r in reasons if r.id == "print")
    assert (
        loop.hint == first.hint and "print() is called" in loop.cause and f":{first.user_stack[-1][1]} in" in loop.cause
    )
    assert "because the graph had to end: print() is called" in str(loop)


def test_a_frame_that_is_left_to_python_says_why_the_graph_had_to_end():
    def f(x):
        a = x + 1
        print("", end="")
        return a, sorted(locals())

    (skipped,) = cutaway.explain(f)(X).skipped
    assert skipped.id == "looks-at-its-frame"
    assert skipped.cause.startswith("print() is called") and "reorderable" in skipped.hint
    with pytest.raises(cutaway.exc.Unsupported) as caught:
        cutaway.compile(f, backend="eager", fullgraph=True)(X)
    assert caught.value.cause == skipped.cause


def test_the_limit_says_what_is_true(capfd):
    @cutaway.compile(backend="eager", dynamic=False)
    def f(x, text):
        return x + len(text)

    with cutaway.options(cache_size_limit=2):
        for text in ("a", "bb", "ccc", "a"):
            f(X, text)
        said = capfd.readouterr().err
        assert (
            "was compiled 2 times, the limit (cache_size_limit); a call that fits none of them runs in Python" in said
        )
        assert "`text` was" in said
        hits = []
        number = cutaway._native.capture.add_listener(hits.append)
        f(X, "a")  # one that fits is used
        cutaway._native.capture.remove_listener(number)
        assert not hits

    def g(x, text):
        return x + len(text)

    whole = cutaway.compile(g, backend="eager", fullgraph=True, dynamic=False)
    with cutaway.options(cache_size_limit=1):
        whole(X, "a")
        with pytest.raises(cutaway.exc.RecompileLimitExceeded, match="this call fits none of them"):
            whole(X, "bb")


def test_hints_are_advice():
    """No row only restates the problem or is in the words of the implementation."""
    import pathlib
    import re

    table = pathlib.Path(__file__).parents[2] / "src" / "compiler" / "capture" / "break_hints.cc"
    if not table.exists():
        pytest.skip("the sources are not here")
    rows = dict(re.findall(r'\{"([a-z-]+)", "([^"]+)"\}', table.read_text()))
    assert len(rows) > 80
    for name, hint in rows.items():
        assert not re.search(r"captured code|\btrace\b|behind|\bgives?\b|in its own way| is no ", hint), (name, hint)
        assert hint[0].islower() or hint.startswith("`"), (name, hint)
