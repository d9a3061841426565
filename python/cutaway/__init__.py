"""Cutaway: a compiler for PyTorch programs that you can see into, and a debugger for compilers."""

import torch  # loads libtorch, and sets torch.Tensor up, before _native

from . import _torch_check

_torch_check.check(torch)  # before _native, which another torch could not load

# ruff: noqa: E402
from . import _debug, _graph, exc  # noqa: F401  (_graph adds from_fx, to_fx and the like to Graph)
from ._aot import Aot, aot
from ._bundle import Bundle, load, save
from ._commands import Reduced, minify
from ._compare import Verdict, same, same_two_models
from ._compile import (
    allow_in_graph,
    assume_constant_result,
    compile,  # noqa: A004
    counters,
    disable,
    disallow_in_graph,
    error_on_graph_break,
    graph_break,
    is_compiling,
    mark_dynamic,
    mark_static,
    maybe_mark_dynamic,
    options,
    reset,
)
from ._debug import debug
from ._explain import CompileProfiler, ExplainOutput, explain
from ._failure import AccuracyError
from ._logs import compile_times, debug_dir, events, last_unfinished_phase, read_events, set_debug_dir, set_logs
from ._native import Error, Graph, Program, __version__
from ._replay import Replayed, replay
from ._repro import save_repro
from ._run import run_fwd_maybe_bwd
from ._store import Difference, Store, TensorMetadata, compute_tensor_metadata, digest_storage
from ._tensor import cast_to_fp64, clone_keeping_aliases, rand_strided

__all__ = [
    "AccuracyError",
    "Aot",
    "Bundle",
    "CompileProfiler",
    "Difference",
    "Error",
    "ExplainOutput",
    "Graph",
    "Program",
    "Reduced",
    "Replayed",
    "Store",
    "TensorMetadata",
    "Verdict",
    "__version__",
    "allow_in_graph",
    "aot",
    "assume_constant_result",
    "cast_to_fp64",
    "clone_keeping_aliases",
    "cmake_prefix_path",
    "compile",
    "compile_times",
    "compute_tensor_metadata",
    "counters",
    "debug",
    "debug_dir",
    "digest_storage",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "events",
    "exc",
    "explain",
    "graph_break",
    "is_compiling",
    "last_unfinished_phase",
    "load",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "minify",
    "options",
    "rand_strided",
    "read_events",
    "replay",
    "reset",
    "run_fwd_maybe_bwd",
    "same",
    "same_two_models",
    "save",
    "save_repro",
    "set_debug_dir",
    "set_logs",
]

cmake_prefix_path = __path__[0]
"""For C++ programs: ``cmake -DCMAKE_PREFIX_PATH=…`` lets ``find_package(cutaway)`` find this installation."""

if _debug.settings_from_environment() is not None:  # CUTAWAY_REPRO_AFTER: every backend is watched
    from . import _observe_own

    _debug.install()
    _observe_own.watch_by_environment()
