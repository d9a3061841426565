"""A compiled ``nn.Module``: the module itself to everybody who looks, compiled code when it is called."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch.nn.modules import module as _nn_module

from ._native import capture as _capture


class OptimizedModule(torch.nn.Module):
    """What ``cutaway.compile(module)`` gives. Attributes, parameters, hooks and ``state_dict`` are the module's own."""

    _orig_mod: torch.nn.Module

    def __init__(self, module: torch.nn.Module, session: Any) -> None:
        self.__dict__["_orig_mod"] = module.__dict__["_orig_mod"] if isinstance(module, OptimizedModule) else module
        self.__dict__["_session"] = session
        self._make_call()

    def _make_call(self) -> None:
        module = self.__dict__["_orig_mod"]
        # Without hooks `forward` is all that a call is; it gives frames of the user's own.
        plain = (
            type(module).__call__ is torch.nn.Module.__call__ and _is_read_quietly(module) and callable(module.forward)
        )
        self.__dict__["_forward"] = (
            _capture.compiled_function(module.forward, self.__dict__["_session"]) if plain else None
        )
        self.__dict__["_whole"] = _capture.compiled_function(
            type(module).__call__.__get__(module), self.__dict__["_session"]
        )
        self.__dict__["_forward_of"] = module.__dict__.get("forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mine = self.__dict__
        module = mine["_orig_mod"].__dict__
        if (
            mine["_forward"] is None
            or module.get("_forward_hooks", True)  # not there: __init__ was not called, which a call tells
            or module["_forward_pre_hooks"]
            or module["_backward_hooks"]
            or module["_backward_pre_hooks"]
            or _nn_module._has_any_global_hook()
        ):
            return mine["_whole"](*args, **kwargs)
        if module.get("forward") is not mine["_forward_of"]:
            self._make_call()
        return mine["_forward"](*args, **kwargs)

    @property
    def forward(self) -> Any:  # type: ignore[override]
        return self.__dict__["_forward"] or self.__dict__["_whole"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_orig_mod"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_orig_mod"])

    def __repr__(self) -> str:
        return f"OptimizedModule(\n  (_orig_mod): {self.__dict__['_orig_mod']!r}\n)"

    def __reduce__(self) -> Any:
        return _again, (self.__dict__["_orig_mod"],)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        import copy

        return OptimizedModule(copy.deepcopy(self.__dict__["_orig_mod"], memo), self.__dict__["_session"])

    def __len__(self) -> int:
        return len(self.__dict__["_orig_mod"])  # type: ignore[arg-type]

    def __getitem__(self, key: Any) -> Any:
        return self.__dict__["_orig_mod"][key]  # type: ignore[index]

    def __iter__(self) -> Any:
        return iter(self.__dict__["_orig_mod"])  # type: ignore[call-overload]

    def __contains__(self, key: Any) -> bool:
        return key in self.__dict__["_orig_mod"]  # type: ignore[operator]

    def __bool__(self) -> bool:
        return bool(self.__dict__["_orig_mod"])


def _is_read_quietly(module: torch.nn.Module) -> bool:
    """Whether reading `module.forward` runs no code of the user's, which eager runs at each call and may raise."""
    cls = type(module)
    if cls.__getattribute__ is not object.__getattribute__:
        return False
    found = next((base.__dict__["forward"] for base in cls.__mro__ if "forward" in base.__dict__), None)
    return type(found) in (types.FunctionType, staticmethod, classmethod)


def _again(module: torch.nn.Module) -> Any:
    from ._compile import compile

    return compile(module)


# Everything that nn.Module defines is asked of the module itself, so that it sees its own dictionaries.
def _forwarded(name: str) -> Any:
    def call(self: OptimizedModule, *args: Any, **kwargs: Any) -> Any:
        module = self.__dict__["_orig_mod"]
        result = getattr(module, name)(*args, **kwargs)
        return self if result is module else result

    call.__name__ = call.__qualname__ = name
    call.__doc__ = getattr(torch.nn.Module, name).__doc__
    return call


for _name, _value in list(vars(torch.nn.Module).items()):
    if callable(_value) and not _name.startswith("__") and _name not in vars(OptimizedModule):
        setattr(OptimizedModule, _name, _forwarded(_name))
