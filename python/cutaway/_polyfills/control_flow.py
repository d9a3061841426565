"""What an fx graph calls for ``torch.cond``, ``while_loop``, ``scan`` and ``map``, and what other operators that take functions do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from .answers import give_up

try:
    from torch._higher_order_ops.flex_attention import sdpa_dense
except ImportError:
    sdpa_dense = None  # type: ignore[assignment]


def _modules(texts: tuple[str, ...], grad: int) -> list[Any]:
    from .._native import Graph

    return [Graph.parse(text).to_fx(bool(grad)) for text in texts]


def cond_of(texts: tuple[str, ...], grad: int) -> Callable[..., Any]:
    """Really called: what an fx graph calls where the program calls ``torch.cond``."""
    one, two = _modules(texts, grad)

    def cond(predicate: Any, for_true: tuple[Any, ...], for_false: tuple[Any, ...]) -> Any:
        n = len(for_true)
        return torch.ops.higher_order.cond(
            predicate, lambda *a: tuple(one(*a[:n])), lambda *a: tuple(two(*a[n:])), (*for_true, *for_false)
        )

    return cond


def while_loop_of(texts: tuple[str, ...], grad: int) -> Callable[..., Any]:
    """Really called: what an fx graph calls where the program calls ``while_loop``."""
    asks, turns = _modules(texts, grad)

    def while_loop(carried: tuple[Any, ...], for_condition: tuple[Any, ...], for_body: tuple[Any, ...]) -> Any:
        n, m = len(carried), len(for_condition)
        return torch.ops.higher_order.while_loop(
            lambda *a: asks(*a[: n + m])[0],
            lambda *a: tuple(turns(*a[:n], *a[n + m :])),
            carried,
            (*for_condition, *for_body),
        )

    return while_loop


def scan_of(texts: tuple[str, ...], grad: int) -> Callable[..., Any]:
    """Really called: what an fx graph calls where the program calls ``scan``."""
    (turns,) = _modules(texts, grad)

    def scan(carried: tuple[Any, ...], rows: tuple[Any, ...], outside: tuple[Any, ...]) -> Any:
        return torch.ops.higher_order.scan(lambda *a: list(turns(*a)), list(carried), list(rows), tuple(outside))

    return scan


def map_of(texts: tuple[str, ...], grad: int) -> Callable[..., Any]:
    """Really called: what an fx graph calls where the program calls ``map``."""
    (turns,) = _modules(texts, grad)

    def map_rows(rows: tuple[Any, ...], outside: tuple[Any, ...]) -> Any:
        return torch.ops.higher_order.map_impl(lambda *a: tuple(turns(*a)), list(rows), list(outside))

    return map_rows


def call_function(func: Any, *args: Any, **kwargs: Any) -> Any:
    """``nested_compile_region``: the function itself."""
    return func(*args, **kwargs)


def call_operator(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Operators that call the function that they are given, and do nothing else."""
    return func(*args, **kwargs)


def flex_attention(
    self: Any,
    query: Any,
    key: Any,
    value: Any,
    score_mod: Any,
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: dict[str, Any],
    score_mod_other_buffers: tuple[Any, ...] = (),
    mask_mod_other_buffers: tuple[Any, ...] = (),
) -> Any:
    """What eager computes: scores, the program's functions of them by ``vmap``, a product."""
    if torch.is_autocast_enabled(query.device.type):
        give_up("flex_attention is called under autocast")
    return sdpa_dense(
        query,
        key,
        value,
        score_mod,
        block_mask,
        scale,
        kernel_options,
        score_mod_other_buffers,
        mask_mod_other_buffers,
    )


def permute_strides(out: Any, query_strides: tuple[int, ...]) -> Any:
    """A copy whose dimensions lie in memory in the order of the query's, the last one innermost."""
    last = out.dim() - 1
    order = sorted(range(out.dim()), key=lambda i: (query_strides[i], -i))

    def strides() -> list[int]:
        found, step = [0] * len(order), 1
        for dim in order:
            found[dim] = step
            step *= out.shape[dim]
        return found

    if strides()[last] != 1:
        order = [last] + [dim for dim in order if dim != last]
    return out.new_empty_strided(out.shape, strides()).copy_(out)


REPLACEMENTS: dict[Any, Any] = {}
for _place, _name, _replacement in (
    ("_higher_order_ops.invoke_subgraph", "invoke_subgraph_placeholder", call_function),
    ("_higher_order_ops.wrap", "Wrap.__call__", call_operator),
    ("_higher_order_ops.foreach_map", "ForeachMap.__call__", call_operator),
    ("_higher_order_ops.flex_attention", "FlexAttentionHOP.__call__", flex_attention),
    ("_higher_order_ops.flex_attention", "_permute_strides", permute_strides),
):
    try:
        _found = operator.attrgetter(_name)(import_module(f"torch.{_place}"))
    except (ImportError, AttributeError):  # another version of torch
        continue
    REPLACEMENTS[_found] = _replacement
