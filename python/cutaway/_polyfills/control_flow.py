"""What an fx graph calls for ``torch.cond`` and ``while_loop``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _modules(texts: tuple[str, ...], grad: int) -> list[Any]:
    from .._native import Graph

    return [Graph.parse(text).to_fx(bool(grad)) for text in texts]


def cond_of(if_true: str, if_false: str, grad: int) -> Callable[..., Any]:
    """Really called: what an fx graph calls where the program calls ``torch.cond``."""
    one, two = _modules((if_true, if_false), grad)

    def cond(predicate: Any, for_true: tuple[Any, ...], for_false: tuple[Any, ...]) -> Any:
        n = len(for_true)
        return torch.ops.higher_order.cond(
            predicate, lambda *a: tuple(one(*a[:n])), lambda *a: tuple(two(*a[n:])), (*for_true, *for_false)
        )

    return cond


def while_loop_of(condition: str, body: str, grad: int) -> Callable[..., Any]:
    """Really called: what an fx graph calls where the program calls ``while_loop``."""
    asks, turns = _modules((condition, body), grad)

    def while_loop(carried: tuple[Any, ...], for_condition: tuple[Any, ...], for_body: tuple[Any, ...]) -> Any:
        n, m = len(carried), len(for_condition)
        return torch.ops.higher_order.while_loop(
            lambda *a: asks(*a[: n + m])[0],
            lambda *a: tuple(turns(*a[:n], *a[n + m :])),
            carried,
            (*for_condition, *for_body),
        )

    return while_loop
