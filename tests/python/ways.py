"""One program, compiled in every way. A program is a function of `compile`; what it returns must be eager's."""

import contextlib
import io
import warnings

import cutaway
import torch
from functorch.compile import aot_module_simplified, make_boxed_func


def torch_aot(module, examples):
    """A backend that traces the graph, forward and backward, and never calls it again."""
    return aot_module_simplified(module, examples, fw_compiler=lambda graph, _: make_boxed_func(graph.forward))


def python(module, examples):
    return module.forward


WAYS = {"eager": "eager", "aot_eager": "aot_eager", "python": python, "torch_aot": torch_aot}


def shown(value):
    if isinstance(value, torch.Tensor):
        return (
            f"{value.dtype} {tuple(value.shape)} {[round(v, 4) if isinstance(v, float) else v for v in value.detach().flatten().tolist()]}"
            + (" grad" if value.requires_grad else "")
        )
    if isinstance(value, (list, tuple)):
        return [shown(v) for v in value]
    return repr(value)


def run(program, compile):
    cutaway.reset()
    torch.manual_seed(0)
    with cutaway.options(strict=True), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(program(compile))
        except Exception as error:
            return f"raised {type(error).__name__}: {error}"


def check(program, way):
    """As in eager."""
    assert run(program, lambda f: cutaway.compile(f, backend=WAYS[way])) == run(program, lambda f: f)


def count(program):
    """Graphs that a Python backend got."""
    graphs = []

    def backend(module, examples):
        graphs.append(module)
        return module.forward

    run(program, lambda f: cutaway.compile(f, backend=backend))
    return len(graphs)


class Programs(dict):
    """`@programs(graphs=1)` registers one; `but` names ways in which a backend itself is another than eager, with the reason."""

    def __call__(self, graphs=None, but=None):
        def register(function):
            assert function.__name__ not in self, function.__name__
            self[function.__name__] = function
            function.graphs, function.but = graphs, but or {}
            return function

        return register

    def pairs(self):
        return [(name, way) for name, f in self.items() for way in WAYS if way not in f.but]

    def counted(self):
        return [name for name, f in self.items() if f.graphs is not None]
