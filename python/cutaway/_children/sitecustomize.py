"""In every Python process that a watched program starts: found before the user's own `sitecustomize`, which it hands on to.

Nothing is loaded until the process comes to torch.compile or to cutaway.compile; then it is watched like the first one.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any


class _Arrival(importlib.abc.MetaPathFinder):
    """Notices the import of a compiler."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname not in ("torch._dynamo", "cutaway._compile"):
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_join(module: Any) -> None:
                load(module)
                import cutaway.observe

                cutaway.observe.join()

            spec.loader.exec_module = load_and_join  # type: ignore[method-assign]
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
