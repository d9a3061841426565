"""Functions of Python's library and of torch that are written in C, or that hide behind one, in plain Python: capture interprets these in their place.

They are never called: only their bytecode is read (except ``endings``, which goes on behind breaks). Each module's ``REPLACEMENTS`` says what its functions stand for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# What capture asks for by name.
from .answers import give_up, identity, is_held
from .autograd import (
    PLACE,
    ModuleHooks,
    applies_function,
    apply_function,
    attach_backward,
    function_of_class,
    may_read,
    python_parts_of,
    registers_closure,
    registers_hook,
    registers_method,
    trace_backward,
    trace_function,
    trace_operator,
    trace_operator_backward,
    writes_to_cells,
)
from .checkpoints import SelectiveContext, only_answers
from .control_flow import cond_of, map_of, scan_of, while_loop_of
from .exception_groups import match_group, raise_again
from .function_modes import probe_mode
from .gradients import gradient_layout, gradient_leaves
from .numpy_numbers import numpy_without_warnings
from .optimizers import addcdiv_, foreach_addcdiv_
from .tensor_subclasses import probe_of, probe_subclass, shell_class, shell_like, switch_overriding
from .text import format_text, percent_text

__all__ = [
    "PLACE",
    "ModuleHooks",
    "REPLACEMENTS",
    "SelectiveContext",
    "addcdiv_",
    "applies_function",
    "apply_function",
    "attach_backward",
    "cond_of",
    "foreach_addcdiv_",
    "format_text",
    "function_of_class",
    "give_up",
    "gradient_layout",
    "gradient_leaves",
    "identity",
    "is_held",
    "map_of",
    "match_group",
    "may_read",
    "numpy_without_warnings",
    "only_answers",
    "percent_text",
    "probe_mode",
    "probe_of",
    "probe_subclass",
    "python_parts_of",
    "raise_again",
    "registers_closure",
    "registers_hook",
    "registers_method",
    "scan_of",
    "shell_class",
    "shell_like",
    "switch_overriding",
    "trace_backward",
    "trace_function",
    "trace_operator",
    "trace_operator_backward",
    "while_loop_of",
    "writes_to_cells",
]

REPLACEMENTS: dict[Any, Any] = {
    original: replacement
    for module in (
        "autograd",
        "bisect",
        "checkpoints",
        "collections",
        "control_flow",
        "copy",
        "exception_groups",
        "functools",
        "gradients",
        "heapq",
        "itertools",
        "operator",
        "optimizers",
        "tensor_subclasses",
        "transforms",
        "weakref",
    )
    for original, replacement in import_module(f"{__name__}.{module}").REPLACEMENTS.items()
}
