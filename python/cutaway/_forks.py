"""What a fork of this process cannot do."""

from __future__ import annotations

import os

import torch


def loses_cuda() -> bool:
    """Torch has looked at CUDA devices here, awake or not: a child that is forked now could not use them.

    Only a child can tell, so one is made. Always False without CUDA.
    """
    is_bad = getattr(torch._C, "_cuda_isInBadFork", None)
    if is_bad is None:
        return False
    child = os.fork()
    if child == 0:
        os._exit(1 if is_bad() else 0)
    return os.waitpid(child, 0)[1] != 0
