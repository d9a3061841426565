"""Parts of Inductor that can be switched off, one application at a time, for ``cutaway bisect``.

A part is something that Inductor applies again and again while it compiles: passes, pattern replacements,
decompositions, lowerings, fusions. Each application gets a number within its part, in the order in which it happens;
torch's own bisect hook asks about most of them, the rest get a question here. Only for a child that ends with its
trial: nothing is undone, and no file of torch's bisector is read or written.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._guards import TracingContext

from ._native import Error
from ._native import debug as events

__all__ = ["PARTS", "Switchboard", "switch"]

# torch's names for its subsystems -> ours; "patterns" and "fusions" are not among torch's.
_SUBSYSTEMS = {
    "pre_grad_passes": "pre_grad_passes",
    "decomposition": "decompositions",
    "joint_graph_passes": "joint_graph_passes",
    "post_grad_passes": "post_grad_passes",
    "lowerings": "lowerings",
}
PARTS = (*_SUBSYSTEMS.values(), "patterns", "fusions")


def _graph_name() -> str:
    """Which of the graphs that one compilation makes: forward, backward, inference."""
    from torch._functorch._aot_autograd.logging_utils import get_aot_graph_name

    # Without a tracing context (a graph that went through ahead-of-time autograd before) there is one graph alone.
    return str(get_aot_graph_name()) if TracingContext.try_get() is not None else ""


def _place(node: Any) -> str:
    """The user's line of an fx node: the last one of its stack."""
    trace = getattr(node, "stack_trace", None) or ""
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    if not lines:
        return ""
    words = lines[-1].split('"')
    rest = words[2].split(",") if len(words) > 2 else []
    return f"{words[1]}:{rest[1].strip().removeprefix('line ')}" if len(rest) > 1 else ""


class Switchboard:
    """Counts applications, says which are off, and writes each down so that the list outlives a crash."""

    def __init__(self, limits: Mapping[str, int], without: list[str], log: str | None) -> None:
        self.limits = dict(limits)
        self.without = set()
        for text in without:
            part, _, name = text.partition(":")
            if name:
                self.without.add((part, name))
            else:
                self.limits[part] = 0
        for part in (*self.limits, *(part for part, _ in self.without)):
            if part not in PARTS:
                raise Error(f"Inductor has no part {part}\n   try: one of {', '.join(PARTS)}")
        self.counts: Counter[str] = Counter()
        self._log = events.EventFile(log) if log else None

    def is_off(self, part: str, name: str, node: Any = None, label: str = "") -> bool:
        number = self.counts[part]
        self.counts[part] += 1
        off = number >= self.limits.get(part, number + 1) or (part, name) in self.without
        if self._log is not None:
            about = {
                "part": part,
                "number": number,
                "name": name,
                "graph": _graph_name(),
                "place": _place(node),
                "off": off,
            }
            about["node"] = label or str(getattr(node, "name", "") or "")
            self._log.decide("backend", "applied", "", about)
        return off


def _ask_torch_hooks(board: Switchboard) -> None:
    from torch._inductor.compiler_bisector import CompilerBisector
    from torch._inductor.virtualized import V

    def disable_subsystem(cls: Any, backend: str, subsystem: str, debug_info: Callable[[], str] | None = None) -> bool:
        part = _SUBSYSTEMS.get(subsystem)
        if part is None:
            return False
        if part == "lowerings":
            node = V.graph.current_node
            return board.is_off(part, str(node.target), node)
        name = debug_info() if debug_info is not None else ""
        if part == "decompositions":
            if TracingContext.try_get() is None:
                return False  # torch prepares its own patterns: once a process, so not to be counted
            name = ".".join(re.findall(r"'([^']*)'", name)) or name
        return board.is_off(part, name)

    CompilerBisector.disable_subsystem = classmethod(disable_subsystem)  # type: ignore[assignment,method-assign]


def _ask_pattern_matcher(board: Switchboard) -> None:
    from torch._inductor import pattern_matcher

    def asked(apply: Callable[..., Any]) -> Callable[..., Any]:
        def apply_or_not(self: Any, match: Any, graph: Any, node: Any) -> Any:
            found = getattr(self, "pattern_name", None) or getattr(getattr(self, "handler", None), "__name__", None)
            name = f"{found or type(self.pattern).__name__}({node.target})"
            return None if board.is_off("patterns", name, node) else apply(self, match, graph, node)

        return apply_or_not

    for kind in ("LoweringPatternEntry", "GraphPatternEntry", "ReplacementPatternEntry"):
        entry = getattr(pattern_matcher, kind)
        entry.apply = asked(entry.apply)


def _operators(node: Any) -> str:
    """The operators of the graph that a scheduled node computes, sorted: the same in every run."""
    found = set()
    for part in node.get_nodes():
        for origin in getattr(part.node, "origins", ()) or ():
            found.add(str(origin.target))
    return ",".join(sorted(found)) or node.get_name()


def _ask_scheduler(board: Switchboard) -> None:
    from torch._inductor.scheduler import Scheduler

    # Inside of what undoes reordering when the answer is no, where this torch has that.
    method = "_can_fuse_impl" if hasattr(Scheduler, "_can_fuse_impl") else "can_fuse"
    can_fuse = getattr(Scheduler, method)
    answers: dict[tuple[int, str, str], bool] = {}  # a pair is asked for several times

    def asked(self: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any) -> bool:
        if not can_fuse(self, node1, node2, *args, **kwargs):
            return False
        pair = (id(self), node1.get_name(), node2.get_name())
        if pair not in answers:
            label = f"{node1.get_name()} and {node2.get_name()}"
            name = f"{_operators(node1)}+{_operators(node2)}"
            answers[pair] = not board.is_off("fusions", name, label=label)
        return answers[pair]

    setattr(Scheduler, method, asked)


def switch(text: str) -> None:
    """What the JSON object says, until this process ends: ``limits``, ``without``, ``options``, ``log``."""
    asked = json.loads(text)
    options = asked.get("options") or {}
    if options:
        from torch._inductor import config

        known = config.get_config_copy()
        unknown = [name for name in options if name not in known]
        if unknown:
            raise Error(f"Inductor has no option {unknown[0]}\n   because: this is torch {torch.__version__}")
        contextlib.ExitStack().enter_context(config.patch(options))
    if not any(asked.get(key) for key in ("limits", "without", "log")):
        return
    board = Switchboard(asked.get("limits") or {}, asked.get("without") or [], asked.get("log"))
    _ask_torch_hooks(board)
    _ask_pattern_matcher(board)
    _ask_scheduler(board)
