"""Making tensors: random ones from metadata, clones that keep aliasing, copies in fp64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import torch

from . import _native


def rand_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    *,
    storage_offset: int = 0,
    requires_grad: bool = False,
    seed: int = 0,
    range: tuple[int, int] | None = None,
) -> torch.Tensor:
    """Random data with exactly this metadata, the same for the same seed on every machine.

    Torch's random state is not touched. Floating: near standard normal. Integers: in `range` (first, beyond the last),
    else 0 to 9.
    """
    return _native.rand_strided(
        list(size), list(stride), dtype, str(device), storage_offset, requires_grad, seed, range
    )


def clone_keeping_aliases(values: Sequence[Any]) -> list[Any]:
    """Clones tensors (also in lists and tuples) with strides, shared storages, gradness, leafness and gradients."""
    return _native.clone_keeping_aliases(values)


@overload
def cast_to_fp64(values: _native.Graph) -> _native.Graph: ...
@overload
def cast_to_fp64(values: Sequence[Any]) -> list[Any]: ...
def cast_to_fp64(values: Any) -> Any:
    """Floating tensors as float64, complex ones as complex128, aliases and strides kept; the rest as it is.

    Of a graph: its floating types, and the dtype arguments inside it.
    """
    if isinstance(values, _native.Graph):
        return _native.cast_graph_to_fp64(values)
    return _native.cast_to_fp64(values)
