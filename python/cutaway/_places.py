"""A queued call happens after the graph, and must look as if the user's line made it: loggers and warnings say where they were called."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


# fmt: off
def _stand_in(inner, call, args, keywords): return inner[0](inner[1:], call, args, keywords) if inner else call(*args, **keywords)  # type: ignore[no-untyped-def]  # noqa: E501,E704,ANN001,ANN202
# fmt: on


def stand_in(file: str, name: str, qualified_name: str, line: int, namespace: dict[str, Any]) -> Callable[..., Any]:
    """A function whose frame shows this file, name and line, and whose globals are the user's."""
    code = _stand_in.__code__.replace(co_filename=file, co_name=name, co_qualname=qualified_name, co_firstlineno=line)
    return types.FunctionType(code, namespace)
