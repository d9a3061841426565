"""Cutaway: a compiler for PyTorch programs that you can see into, and a debugger for compilers."""

import torch  # noqa: F401  (loads libtorch, and sets torch.Tensor up, before _native)

from ._logs import compile_times, debug_dir, events, last_unfinished_phase, read_events, set_debug_dir, set_logs
from ._native import Error, __version__

__all__ = [
    "Error",
    "__version__",
    "compile_times",
    "debug_dir",
    "events",
    "last_unfinished_phase",
    "read_events",
    "set_debug_dir",
    "set_logs",
]
