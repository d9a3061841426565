"""numpy beside tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def numpy_without_warnings(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Really called, while capturing, on numbers: what would warn raises."""
    import warnings

    import numpy

    with numpy.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*args, **kwargs)
