"""Cutaway: a compiler for PyTorch programs that you can see into, and a debugger for compilers."""

import torch  # noqa: F401  (loads libtorch, and sets torch.Tensor up, before _native)

from ._compare import Verdict, same, same_two_models
from ._logs import compile_times, debug_dir, events, last_unfinished_phase, read_events, set_debug_dir, set_logs
from ._native import Error, __version__
from ._run import run_fwd_maybe_bwd

__all__ = [
    "Error",
    "Verdict",
    "__version__",
    "compile_times",
    "debug_dir",
    "events",
    "last_unfinished_phase",
    "read_events",
    "run_fwd_maybe_bwd",
    "same",
    "same_two_models",
    "set_debug_dir",
    "set_logs",
]
