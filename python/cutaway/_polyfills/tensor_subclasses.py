"""Classes derived from Tensor, and other classes with ``__torch_function__``.

What says "really called" is no polyfill: capture calls it, where it needs Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributions import utils as _distributions

_MISSING = object()


class _Asked(Exception):
    pass


class _Seen(torch.Tensor):
    """In the place of a tensor whose class answers calls of torch: tells what it is asked, and lets nothing run."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = _MISSING) -> Any:
        raise _Asked((func, types, args) if kwargs is _MISSING else (func, types, args, kwargs))


class _SeenObject:
    """The same for an object that is no tensor."""

    __torch_function__ = _Seen.__torch_function__


def probe_of(fake: Any) -> Any:
    """Really called, while capturing."""
    return _SeenObject() if fake is None else fake.as_subclass(_Seen)


def probe_subclass(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Really called, while capturing: what ``__torch_function__`` gets for this call; None when it is not asked."""
    try:
        function(*args, **kwargs)
    except _Asked as asked:
        return asked.args[0]
    return None


def shell_class(hand_on: Callable[..., Any]) -> type:
    """Really called, once: the class of what stands for tensors of classes with ``__torch_dispatch__`` in a trace."""

    class Shell(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

        @classmethod
        def __torch_dispatch__(  # type: ignore[override]
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return hand_on(func, args, kwargs or {})

    return Shell


def shell_like(cls: type, t: torch.Tensor) -> torch.Tensor:
    """Really called, while capturing."""
    return torch.Tensor._make_wrapper_subclass(
        cls,
        t.size(),
        strides=t.stride(),
        storage_offset=t.storage_offset(),
        dtype=t.dtype,
        layout=t.layout,
        device=t.device,
        requires_grad=t.requires_grad,
    )


def switch_overriding(by: int, modes_too: bool) -> None:
    """Never run: capture counts."""


class DisableTorchFunctionSubclass:
    """``torch._C.DisableTorchFunctionSubclass``."""

    def __enter__(self) -> None:
        switch_overriding(1, False)

    def __exit__(self, *exception: Any) -> None:
        switch_overriding(-1, False)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    def __enter__(self) -> None:
        switch_overriding(1, True)

    def __exit__(self, *exception: Any) -> None:
        switch_overriding(-1, True)


class LazyProperty(_distributions.lazy_property):  # type: ignore[type-arg]
    """``torch.distributions``: a lazy property as its class shows it, which is only asked whether it is one."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped


REPLACEMENTS: dict[Any, Any] = {
    torch._C.DisableTorchFunctionSubclass: DisableTorchFunctionSubclass,
    torch._C.DisableTorchFunction: DisableTorchFunction,  # type: ignore[attr-defined]
    _distributions._lazy_property_and_property: LazyProperty,
}
