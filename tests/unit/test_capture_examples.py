"""The worked examples of torch's troubleshooting guide that concern capture: explain, logs, the profiler, the filter, limits."""

import inspect
import os
import re
import subprocess
import sys
import textwrap

import cutaway
import pytest
import torch

pytestmark = pytest.mark.skipif(not hasattr(cutaway, "compile"), reason="this build has no capture")
FILE = __file__


@pytest.fixture(autouse=True)
def fresh():
    cutaway.reset()
    yield
    cutaway.reset()


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def in_a_process(script, **environment):
    """Runs a script as a user would; the parts of the guide that are set by environment variables."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=dict(os.environ, **environment),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


# --- a tensor as a dictionary's key


def assertion_error_example():
    y = torch.ones(200, 200)
    z = {y: 5}
    return z


def test_tensor_as_a_key():
    z = cutaway.compile(assertion_error_example, backend="eager")()
    ((key, value),) = z.items()
    assert torch.equal(key, torch.ones(200, 200)) and value == 5


# --- explain


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


@pytest.mark.parametrize(("sign", "operators"), [(1, 6), (-1, 7)])
def test_explain_toy_example(sign, operators, capsys):
    a, b = torch.randn(10), sign * torch.ones(10)
    explained = cutaway.explain(toy_example)(a, b)
    assert "woo" in capsys.readouterr().out
    assert (explained.graph_count, explained.graph_break_count, explained.op_count) == (3, 2, operators)
    assert len(explained.graphs) == len(explained.ops_per_graph) == len(explained.out_guards) == 3
    assert sum(map(len, explained.ops_per_graph)) == operators
    assert all(explained.out_guards)
    text = str(explained)
    for wanted in ('print("woo")', "if b.sum() < 0:"):
        assert f"{line_of(toy_example, wanted)}" in text and wanted in text
    assert FILE in text
    assert len(explained.break_reasons) == 2


def test_fullgraph_raises_at_the_print(capsys):
    compiled = cutaway.compile(toy_example, fullgraph=True, backend="eager")
    with pytest.raises(cutaway.exc.Unsupported) as caught:
        compiled(torch.randn(10), torch.randn(10))
    assert 'print("woo")' in str(caught.value)
    assert f"{line_of(toy_example, 'woo')}" in str(caught.value)
    assert "woo" not in capsys.readouterr().out  # nothing ran before the refusal


def test_explain_counts_nothing_when_nothing_breaks():
    explained = cutaway.explain(lambda x: torch.relu(x) + 1)(torch.randn(3))
    assert (explained.graph_count, explained.graph_break_count, explained.op_count) == (1, 0, 2)


# --- backends see what torch's see


def test_toy_compiler_rejects_relu():
    model = torch.nn.Sequential(*[torch.nn.Linear(20, 20) for _ in range(5)])

    def toy_compiler(graph_module, _):
        for node in graph_module.graph.nodes:
            assert node.target != torch.relu
        return graph_module

    def example():
        y = torch.ones(20, 20)
        x = torch.ones(20, 20)
        z = x + y
        a = torch.relu(z)
        return model(a)

    with pytest.raises(Exception, match="AssertionError|toy_compiler|relu|backend"):
        cutaway.compile(example, backend=toy_compiler)()


def test_counting_backend_of_torch():
    """torch's own way of counting works unchanged."""
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    compiled = cutaway.compile(toy_example, backend=counter)
    a, b = torch.randn(10), torch.ones(10)
    assert torch.equal(compiled(a, b), a / (torch.abs(a) + 1))
    assert (counter.frame_count, counter.op_count) == (3, 6)


def test_module_built_inside():
    def test_model(x):
        model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.LayerNorm(10), torch.nn.ReLU())
        return model(x)

    torch.manual_seed(0)
    expected = test_model(torch.ones(10, 10))
    torch.manual_seed(0)
    assert torch.equal(cutaway.compile(test_model, backend="eager")(torch.ones(10, 10)), expected)


# --- recompiles


def changing(x):
    return torch.sin(x) * x.shape[0]


def test_profiler_names_the_failing_guard():
    with cutaway.CompileProfiler() as profiler:
        compiled = cutaway.compile(changing, backend=profiler, dynamic=False)
        for size in (2, 3, 4):
            assert torch.equal(compiled(torch.ones(size)), changing(torch.ones(size)))
    report = profiler.report()
    assert "changing" in report
    assert re.search(r"x.*2.*3|size|shape", report)


def test_profiler_reports_breaks():
    with cutaway.CompileProfiler() as profiler:
        cutaway.compile(toy_example, backend=profiler)(torch.randn(4), torch.ones(4))
    assert 'print("woo")' in profiler.report() or "print" in profiler.report()


def test_limit_keeps_every_variant():
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    with cutaway.options(cache_size_limit=16, automatic_dynamic=False):
        compiled = cutaway.compile(changing, backend=counter, dynamic=False)
        for _ in range(2):
            for size in range(2, 12):
                assert torch.equal(compiled(torch.ones(size)), changing(torch.ones(size)))
    assert counter.frame_count == 10  # each variant once


def test_limit_then_eager_said_once(capfd):
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    with cutaway.options(cache_size_limit=2):
        compiled = cutaway.compile(changing, backend=counter, dynamic=False)
        for _ in range(2):
            for size in range(2, 8):
                assert torch.equal(compiled(torch.ones(size)), changing(torch.ones(size)))
    assert counter.frame_count == 2
    assert capfd.readouterr().err.count("cache_size_limit") == 1


def test_sizes_become_dynamic():
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    compiled = cutaway.compile(changing, backend=counter)
    for size in range(2, 12):
        assert torch.equal(compiled(torch.ones(size)), changing(torch.ones(size)))
    assert counter.frame_count == 2  # static, then any size


def test_changed_rank_recompiles():
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    compiled = cutaway.compile(changing, backend=counter)
    for shape in ((2,), (2, 3), (2, 3, 4)):
        assert torch.equal(compiled(torch.ones(shape)), changing(torch.ones(shape)))
    assert counter.frame_count == 3


# --- logs and filters, in a process of their own


LOGGED = """
import torch, cutaway
def inner(x):
    return torch.sin(x) + 1
def outer(x):
    y = inner(x)
    print("woo")
    return y * 2
compiled = cutaway.compile(outer, backend="eager")
compiled(torch.ones(3))
compiled(torch.ones(4))
"""


def test_default_log_shows_breaks():
    assert "print" in in_a_process(LOGGED, CUTAWAY_LOGS="breaks").stderr


def test_log_levels_grow():
    sizes = [
        len(in_a_process(LOGGED, CUTAWAY_LOGS=words).stderr)
        for words in ("-all", "", "capture", "+capture,bytecode,graph,guards")
    ]
    assert sizes == sorted(sizes) and sizes[-1] > sizes[0]


def test_log_of_recompiles_names_the_guard():
    error = in_a_process(LOGGED, CUTAWAY_LOGS="recompiles").stderr
    assert "3" in error and "4" in error and "x" in error


def test_torch_words_are_understood():
    assert in_a_process(LOGGED, TORCH_LOGS="graph_breaks").stderr


def test_function_filter():
    script = """
    import torch, cutaway
    seen = []
    def backend(graph_module, inputs):
        seen.append(1)
        return graph_module
    def one(x):
        return x + 1
    def two(x):
        return x + 2
    cutaway.compile(one, backend=backend)(torch.ones(2))
    assert not seen
    cutaway.compile(two, backend=backend)(torch.ones(2))
    assert len(seen) == 1
    """
    in_a_process(script, CUTAWAY_DEBUG_FUNCTION="two")
    in_a_process(script, TORCHDYNAMO_DEBUG_FUNCTION="two")


def test_compile_times_are_there():
    cutaway.compile(changing, backend="eager")(torch.ones(3))
    assert "changing" in cutaway.compile_times()


# --- what is compiling


def test_is_compiling():
    def f(x):
        return x + 1 if torch.compiler.is_compiling() else x - 1

    x = torch.ones(2)
    assert torch.equal(cutaway.compile(f, backend="eager")(x), x + 1)
    assert torch.equal(f(x), x - 1)
    assert not cutaway.is_compiling()


def test_disable():
    from torch._dynamo.testing import CompileCounter

    @cutaway.disable
    def hidden(x):
        return torch.cos(x)

    def f(x):
        return hidden(x + 1) + 1

    counter = CompileCounter()
    x = torch.ones(2)
    assert torch.equal(cutaway.compile(f, backend=counter)(x), f(x))
    assert counter.frame_count == 2 and counter.op_count == 2


def test_graph_break_function():
    from torch._dynamo.testing import CompileCounter

    def f(x):
        x = x + 1
        cutaway.graph_break()
        return x * 2

    counter = CompileCounter()
    assert torch.equal(cutaway.compile(f, backend=counter)(torch.ones(2)), torch.full((2,), 4.0))
    assert counter.frame_count == 2


def test_mark_dynamic():
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    compiled = cutaway.compile(changing, backend=counter)
    for size in (5, 6, 9):
        x = torch.ones(size)
        cutaway.mark_dynamic(x, 0)
        assert torch.equal(compiled(x), changing(x))
    assert counter.frame_count == 1


def test_assume_constant_result():
    calls = []

    @cutaway.assume_constant_result
    def constant():
        calls.append(1)
        return 3

    def f(x):
        return x * constant()

    compiled = cutaway.compile(f, backend="eager", fullgraph=True)
    for _ in range(2):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0))
    assert len(calls) == 1


def test_fallback_random_with_dropout():
    def f(x):
        return torch.nn.functional.dropout(x, 0.5)

    compiled = cutaway.compile(f, backend="eager")
    x = torch.ones(100)
    for seed in range(3):
        torch.manual_seed(seed)
        expected = f(x)
        torch.manual_seed(seed)
        assert torch.equal(compiled(x), expected)


# --- programs that live long


def test_threads():
    import threading

    def f(x, n):
        return torch.sin(x) * n + x.shape[0]

    compiled = cutaway.compile(f, backend="eager")
    wrong = []

    def work(number):
        for i in range(40):
            x = torch.full((2 + (i + number) % 3,), float(number))
            if not torch.equal(compiled(x, i % 2), f(x, i % 2)):
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_leaks():
    import gc

    class Thing:
        pass

    def f(x, table):
        thing = Thing()
        thing.x = x + 1
        table["k"] = [thing.x, {"deep": thing}]
        return thing.x * 2, table

    compiled = cutaway.compile(f, backend="eager")
    x = torch.ones(4)
    for _ in range(20):
        compiled(x, {})
    gc.collect()
    before, tracked = len(gc.get_objects()), sys.getrefcount(x)
    for _ in range(10_000):
        compiled(x, {})
    gc.collect()
    assert len(gc.get_objects()) - before < 200
    assert sys.getrefcount(x) - tracked < 5


def test_modules_are_built_as_before_once_dynamo_has_run():
    """Dynamo, once used, patches the constructor of every module; slicing a ModuleList calls it."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])

        def forward(self, x):
            for layer in self.layers[:2]:
                x = layer(x)
            return x

    net, x = Net(), torch.ones(1, 2)
    torch.compile(torch.sin, backend="eager")(x)
    assert torch.equal(cutaway.compile(net, fullgraph=True)(x), net(x))
