"""Where a Python function can be found again: by its import name, or by its source text with what that text needs."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import sys
import textwrap
import types
from typing import Any


def import_name(f: Any) -> tuple[str, str] | None:
    """(module, qualified name) when an import gives this very object elsewhere; None for what the script defines."""
    return _own_name(f) or _variable_of_a_module(f)


def _variable_of_a_module(f: Any) -> tuple[str, str] | None:
    """Where a module of the user's holds it: an instance, a partial, a lambda."""
    for module, found in list(sys.modules.items()):
        if module.startswith(("__", "torch.", "cutaway.")) or getattr(found, "__spec__", None) is None:
            continue
        for name, value in list(vars(found).items()):
            if value is f and name.isidentifier():
                return module, name
    return None


def _own_name(f: Any) -> tuple[str, str] | None:
    module, name = getattr(f, "__module__", None), getattr(f, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    if found is None or getattr(found, "__spec__", None) is None:
        return None
    try:
        importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return (module, name) if found is f else None


def _import_line(name: str, value: types.ModuleType) -> str:
    return f"import {name}" if value.__name__ == name else f"import {value.__name__} as {name}"


def _names_used(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def _free_values(f: Any, text: str) -> dict[str, Any]:
    """Globals, and variables of enclosing functions, that the text names."""
    values: dict[str, Any] = {}
    scope = getattr(f, "__globals__", None) or vars(sys.modules[f.__module__])
    cells = inspect.getclosurevars(f).nonlocals if isinstance(f, types.FunctionType) else {}
    for name in sorted(_names_used(text)):
        if name in cells:
            values[name] = cells[name]
        elif name in scope:
            values[name] = scope[name]
        elif not hasattr(builtins, name):
            continue  # a local of the function
    return values


def source_text(f: Any) -> tuple[str, str]:
    """(name, text that defines it). Raises a ValueError that says what has no source."""
    imports: dict[str, str] = {}
    constants: dict[str, str] = {}
    definitions: dict[str, str] = {}

    def add(name: str, value: Any) -> None:
        if name in definitions or name in imports or name in constants:
            return
        if isinstance(value, types.ModuleType):
            imports[name] = _import_line(name, value)
            if value.__name__ != name and "." in value.__name__:
                imports[name] = f"import {value.__name__} as {name}"
            return
        if isinstance(value, (bool, int, float, str, bytes, type(None))):
            constants[name] = f"{name} = {value!r}"
            return
        if isinstance(value, (torch_dtype(), torch_device())):
            constants[name] = (
                f"{name} = {value if isinstance(value, torch_dtype()) else f'torch.device({str(value)!r})'}"
            )
            imports.setdefault("torch", "import torch")
            return
        known = import_name(value)
        if known is not None:
            module, qualified = known
            first, _, rest = qualified.partition(".")
            imports[name] = f"from {module} import {first}" + (
                f"\n{name} = {qualified}" if rest or first != name else ""
            )
            return
        if not isinstance(value, (types.FunctionType, type)):
            raise ValueError(f"{name} is a {type(value).__name__}, which has no source text")
        try:
            text = textwrap.dedent(inspect.getsource(value))
        except (OSError, TypeError):
            raise ValueError(f"the source text of {name} is not to be found") from None
        if not text.lstrip().startswith(("def ", "class ", "@", "async ")):
            raise ValueError(f"{name} is not defined by a def or a class of its own")
        definitions[name] = ""  # its own name may occur inside
        for other, used in _free_values(value, text).items():
            if other != name:
                add(other, used)
        definitions.pop(name)
        definitions[name] = text.rstrip() + "\n"  # after what it needs

    name = f.__name__
    if not isinstance(f, (types.FunctionType, type)):
        raise ValueError(f"{name} is a {type(f).__name__}, which has no source text")
    add(name, f)
    parts = [*sorted(imports.values()), *constants.values()]
    text = "\n".join(parts) + ("\n\n\n" if parts else "") + "\n\n".join(definitions.values())
    return name, text


def torch_dtype() -> type:
    import torch

    return torch.dtype


def torch_device() -> type:
    import torch

    return torch.device
