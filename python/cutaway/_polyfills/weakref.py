"""``weakref.ref`` to what the trace made."""

from __future__ import annotations

import weakref
from typing import Any

from .answers import give_up, is_held


class Reference:
    """A weak reference to something that the trace holds anyway. A real one is made of it where it leaves the trace."""

    def __init__(self, target: Any, callback: Any = None) -> None:
        if not type(target).__weakrefoffset__:
            raise TypeError(f"cannot create weak reference to '{type(target).__name__}' object")
        if callback is not None:
            give_up("a weak reference with a callback is made")
        self.target = target

    def __call__(self) -> Any:
        if not is_held(self.target):
            give_up("a weak reference is followed to something that may be gone")
        return self.target

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, Reference):
            return self.target is other.target or self.target == other.target
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.target)


REPLACEMENTS: dict[Any, Any] = {
    weakref.ref: Reference,
}
