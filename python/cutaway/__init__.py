"""Cutaway: a compiler for PyTorch programs that you can see into, and a debugger for compilers."""

import torch  # noqa: F401  (loads libtorch, and sets torch.Tensor up, before _native)

from ._native import Error, __version__

__all__ = ["Error", "__version__"]
