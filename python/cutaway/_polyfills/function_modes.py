"""What a torch function mode of the program's would be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_MISSING = object()


class _Asked(Exception):
    pass


class _Probe(torch.overrides.TorchFunctionMode):
    """Looks at what a mode would be given, and lets nothing run."""

    given: Any = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = _MISSING) -> Any:
        self.given = (func, types, args) if kwargs is _MISSING else (func, types, args, kwargs)
        raise _Asked


def probe_mode(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Really called, while capturing: what a torch function mode gets for this call; None when it is not asked."""
    with _Probe() as probe:
        try:
            function(*args, **(kwargs or {}))
        except _Asked:
            return probe.given
    return None
