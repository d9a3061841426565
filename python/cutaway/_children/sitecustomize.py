"""In every Python process that a watched program starts: found before the user's own `sitecustomize`, which it hands on to.

Nothing is loaded until the process calls torch.compile or cutaway.compile; then it is watched like the first one.
"""

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

_ENTRANCES = {"torch._dynamo": "optimize", "cutaway._compile": "compile"}  # what every compilation goes through
_joined = False


def _join_at_first_call(module: Any, name: str) -> None:
    """Not while it is imported: what we need then is half loaded."""
    plain = getattr(module, name)

    @functools.wraps(plain)
    def joining(*arguments: Any, **keywords: Any) -> Any:
        global _joined
        if not _joined:
            _joined = True
            import cutaway.observe

            cutaway.observe.join()
        return plain(*arguments, **keywords)

    setattr(module, name, joining)


class _Arrival(importlib.abc.MetaPathFinder):
    """Notices the import of a compiler."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname not in _ENTRANCES or fullname in self.seen:
            return None
        self.seen.add(fullname)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_wait(module: Any) -> None:
                load(module)
                _join_at_first_call(module, _ENTRANCES[fullname])

            spec.loader.exec_module = load_and_wait  # type: ignore[method-assign]
        return spec


def _hand_on() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    rest = [p for p in sys.path if os.path.abspath(p) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        users = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = users
        spec.loader.exec_module(users)


_hand_on()
if "CUTAWAY_OBSERVE" in os.environ:
    sys.meta_path.insert(0, _Arrival())
