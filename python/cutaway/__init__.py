"""Cutaway: a compiler for PyTorch programs that you can see into, and a debugger for compilers."""

import torch  # noqa: F401  (loads libtorch, and sets torch.Tensor up, before _native)

from . import _debug, _graph  # noqa: F401  (_graph adds from_fx, to_fx and the like to Graph)
from ._aot import Aot, aot
from ._bundle import Bundle, load, save
from ._compare import Verdict, same, same_two_models
from ._debug import debug
from ._failure import AccuracyError
from ._logs import compile_times, debug_dir, events, last_unfinished_phase, read_events, set_debug_dir, set_logs
from ._native import Error, Graph, Program, __version__
from ._repro import save_repro
from ._run import run_fwd_maybe_bwd
from ._store import Difference, Store, TensorMetadata, compute_tensor_metadata, digest_storage
from ._tensor import cast_to_fp64, clone_keeping_aliases, rand_strided

__all__ = [
    "AccuracyError",
    "Aot",
    "Bundle",
    "Difference",
    "Error",
    "Graph",
    "Program",
    "Store",
    "TensorMetadata",
    "Verdict",
    "__version__",
    "aot",
    "cast_to_fp64",
    "clone_keeping_aliases",
    "compile_times",
    "compute_tensor_metadata",
    "debug",
    "debug_dir",
    "digest_storage",
    "events",
    "last_unfinished_phase",
    "load",
    "rand_strided",
    "read_events",
    "run_fwd_maybe_bwd",
    "same",
    "same_two_models",
    "save",
    "save_repro",
    "set_debug_dir",
    "set_logs",
]

if _debug.settings_from_environment() is not None:  # CUTAWAY_REPRO_AFTER: every backend is watched
    _debug.install()
