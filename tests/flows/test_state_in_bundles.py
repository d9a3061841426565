"""A failure that needs a state of the process, of the thread or of a tensor shows again when its bundle runs alone, and not without that state."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import cutaway
import pytest
import state_backends
import torch
from cutaway import _backends

from tests.support.patience import PATIENCE_S
from tests.support.trials import outcome, trial


@pytest.fixture(scope="module", autouse=True)
def backends():
    _backends.register_all()


@contextlib.contextmanager
def setting(set_, value, before):
    set_(value)
    try:
        yield
    finally:
        set_(before)


@contextlib.contextmanager
def seeded(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def autocast(**options):
    return torch.autocast("cpu", dtype=torch.bfloat16, **options)


STATES = {
    "autocast": autocast,
    "autocast_without_cache": lambda: autocast(cache_enabled=False),
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "default_dtype": lambda: setting(torch.set_default_dtype, torch.float64, torch.float32),
    "deterministic": lambda: setting(torch.use_deterministic_algorithms, True, False),
    "matmul_precision": lambda: setting(torch.set_float32_matmul_precision, "medium", "highest"),
    "denormals": lambda: setting(torch.set_flush_denormal, True, False),
    "random_state": lambda: seeded(77),
    "default_device": lambda: torch.device("meta"),
}


def captured(function, *inputs):
    seen = []

    def take(gm, example_inputs):
        seen.append(copy.deepcopy(gm))
        return gm.forward

    torch._dynamo.reset()
    torch.compile(function, backend=take, fullgraph=True, dynamic=False)(*inputs)
    return seen[0]


@pytest.mark.parametrize("name", STATES)
def test_state_around_the_call(name, tmp_path):
    x = torch.randn(4, 4)
    with STATES[name]():
        graph = captured(lambda x: torch.sin(x) + torch.rand_like(x), x)
        path = cutaway.save_repro(graph, [x], getattr(state_backends, name), path=tmp_path / "in", accuracy="accuracy")
    before = (torch.get_default_dtype(), torch.is_autocast_enabled("cpu"), torch.get_rng_state().sum())
    assert outcome(path)[0] == "failure", outcome(path)[1]
    assert before == (torch.get_default_dtype(), torch.is_autocast_enabled("cpu"), torch.get_rng_state().sum())
    assert trial(path, "analyze")["outcome"] == "failure"
    without = {"state": {}, "process": {}, "seed": 0, "generators": {}}
    assert outcome(path, **without)[0] == "pass", outcome(path, **without)[1]


def test_repro_script_sets_the_default_device(tmp_path):
    """Around the compiled code alone: what makes the inputs does not depend on it."""
    x = torch.randn(4, 4)
    with torch.device("meta"):
        graph = captured(torch.sin, x)
        path = cutaway.save_repro(graph, [x], state_backends.default_device, path=tmp_path / "in", accuracy="accuracy")
    assert json.loads((Path(path) / "manifest.json").read_text())["process"] == {"default_device": "meta"}
    where = {**os.environ, "PYTHONPATH": os.path.dirname(state_backends.__file__)}
    done = subprocess.run(
        [sys.executable, Path(path) / "repro.py"], capture_output=True, text=True, env=where, timeout=PATIENCE_S
    )
    assert done.returncode == 1, done.stderr
    assert "FAILS: output 0: values of float32" in done.stderr


UNDER, WITHOUT = "backward_under_autocast", "backward_without_autocast"


@pytest.mark.parametrize(
    ("backend", "around_call", "around_backward"),
    [
        (UNDER, False, False),
        (UNDER, False, True),
        (UNDER, True, False),
        (UNDER, True, True),
        (WITHOUT, False, False),
        (WITHOUT, True, False),
        (WITHOUT, True, True),
    ],
)
def test_state_around_backward(backend, around_call, around_backward, tmp_path):
    """Forward and backward each run under their own state, as in the program: level 4 sees it there and writes it down."""
    x = torch.randn(4, 4, requires_grad=True)
    watch = cutaway.debug(getattr(state_backends, backend), level=4, minify=False, base_dir=tmp_path)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.sin(x) * 2, backend=watch, dynamic=False)
    is_wrong = around_backward == (backend == UNDER)

    def step():
        with autocast(enabled=around_call):
            y = compiled(x).sum()
        with autocast(enabled=around_backward):
            y.backward()

    if not is_wrong:
        step()
        return
    with pytest.raises(Exception) as caught:
        step()
    error = caught.value
    while not hasattr(error, "minifier_path"):
        error = error.__cause__ or error.__context__
    assert outcome(error.minifier_path)[0] == "failure"


INNER_AUTOCAST = """
import torch


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * 1.5 if torch.is_autocast_enabled("cpu") else g


def backend(gm, example_inputs):
    return lambda *inputs: tuple(Wrong.apply(o) if o.requires_grad else o for o in gm.forward(*inputs))


@torch.compile(backend=backend)
def f(x):
    {inside}
        return torch.sin(x).mul(2).exp().sum()


x = torch.randn(4, 4, requires_grad=True)
with torch.autocast("cpu", dtype=torch.bfloat16):
    {around}
        y = f(x)
    y.backward()
"""
OFF = 'with torch.autocast("cpu", enabled=False):'


@pytest.mark.parametrize(("inside", "around"), [(OFF, "if True:"), ("if True:", OFF)], ids=["inside", "around"])
def test_inner_autocast_off_and_backward_under_the_outer_one(inside, around, ask, tmp_path):
    """Found in the script, and still there when the graph is as small as can be, from its files and from repro.py."""
    (tmp_path / "script.py").write_text(INNER_AUTOCAST.format(inside=inside, around=around))
    answer = ask("triage", "--json", "-o", tmp_path / "out", tmp_path / "script.py")
    assert answer.code == 1, answer.err
    assert answer.json["signature"]["type"].startswith("gradients")
    assert answer.json["nodes_after"] == 1
    manifest = json.loads((tmp_path / "out" / "minimal" / "manifest.json").read_text())
    under = manifest["backward_state"] if manifest.get("backward_state") is not None else manifest["state"]
    assert under["autocast"], manifest


def parameter():
    return torch.nn.Parameter(torch.randn(3, 3))


def not_a_leaf():
    return torch.randn(3, 3, requires_grad=True) * 2


TENSORS = {
    "parameter": lambda: [parameter()],
    "conjugate": lambda: [torch.randn(3, 3, dtype=torch.complex64).conj()],
    "negative": lambda: [torch.randn(3, 3, dtype=torch.complex64).conj().imag],
    "zero_tensor": lambda: [torch._efficientzerotensor((3, 3))],
    "channels_last": lambda: [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)],
    "overlapping": lambda: [torch.randn(5).as_strided((3, 3), (1, 1))],
    "not_a_leaf": lambda: [not_a_leaf()],
    "aliased": lambda: [t := torch.randn(3, 3), t],
}


@pytest.mark.parametrize("name", TENSORS)
def test_facts_of_inputs(name, tmp_path):
    inputs = TENSORS[name]()
    graph = torch.fx.Graph()
    values = [graph.placeholder(f"x{i}") for i in range(len(inputs))]
    graph.output((graph.call_function(torch.mul, (values[0], 2)),))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    path = cutaway.save_repro(gm, inputs, getattr(state_backends, name), path=tmp_path / "in", accuracy="accuracy")
    assert outcome(path)[0] == "failure", outcome(path)[1]


class Wrapped(torch.Tensor):
    """A tensor made of another one."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Wrapped(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args = [a.inner if isinstance(a, cls) else a for a in args]
        out = function(*args, **(kwargs or {}))
        return cls(out) if isinstance(out, torch.Tensor) else out


def test_wrapper_subclasses_are_refused_by_name(tmp_path):
    graph = torch.fx.Graph()
    graph.output((graph.call_function(torch.mul, (graph.placeholder("x"), 2)),))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    with pytest.raises(cutaway.Error, match="Wrapped, a tensor made of other tensors"):
        cutaway.save_repro(gm, [Wrapped(torch.randn(3))], "eager", path=tmp_path / "in")


def eye():
    return torch.eye(4)


# Neither torch's capture nor ours gives one to a backend; who calls a backend himself gets told.
NOT_KEPT = {
    "layout sparse_coo": lambda: eye().to_sparse(),
    "layout sparse_csr": lambda: eye().to_sparse_csr(),
    "layout sparse_csc": lambda: eye().to_sparse_csc(),
    "layout sparse_bsr": lambda: eye().to_sparse_bsr((2, 2)),
    "layout sparse_bsc": lambda: eye().to_sparse_bsc((2, 2)),
    "layout mkldnn": lambda: eye().to_mkldnn(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "quantized": lambda: torch.quantize_per_tensor(eye(), 0.1, 0, torch.quint8),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_is_not_kept_is_refused_by_name(name, tmp_path):
    graph = torch.fx.Graph()
    graph.output((graph.call_function(torch.mul, (graph.placeholder("x"), 2)),))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    with pytest.raises(cutaway.Error, match=f"input 0 is a.*{name}"):
        cutaway.save_repro(gm, [NOT_KEPT[name]()], "eager", path=tmp_path / "in")
    assert not (tmp_path / "in").exists()


@pytest.mark.filterwarnings("ignore")
def test_a_failure_with_an_input_that_is_not_kept_says_so(tmp_path):
    def bad(gm, example_inputs):
        raise ValueError("cannot compile this")

    graph = torch.fx.Graph()
    graph.output((graph.call_function(torch.mul, (graph.placeholder("x"), 2)),))
    watch = cutaway.debug(bad, minify=False, base_dir=tmp_path)
    with pytest.raises(ValueError, match="cannot compile this") as caught:
        watch(torch.fx.GraphModule(torch.nn.Module(), graph), [eye().to_sparse()])
    assert any(
        "no repro was written: input 0 is a tensor of layout sparse_coo" in note for note in caught.value.__notes__
    )
