"""Exceptions of :func:`cutaway.compile`. All of them are :class:`CompileError`."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BackendCompilerFailed",
    "CollectiveError",
    "CompileError",
    "InternalError",
    "InvalidBackend",
    "RecompileLimitExceeded",
    "RecompileNotAllowed",
    "Unsupported",
]


class CompileError(RuntimeError):
    """Something that compile() could not do."""

    reason_id: str = ""
    """Stable name of the reason, as ``data-dependent-branch``."""
    reason: str = ""
    """One sentence."""
    hint: str = ""
    """What to do about it."""
    cause: str = ""
    """Where this follows from a graph break: that break, with its line."""
    user_stack: list[tuple[str, int, str, str]] = []
    """(file, line, function, source line), outermost first."""


class Unsupported(CompileError):
    """The graph breaks here, and ``fullgraph=True`` or ``error_on_graph_break`` does not allow it."""


class InternalError(CompileError):
    """A mistake of Cutaway's own while capturing. Raised with ``fullgraph=True`` and ``CUTAWAY_STRICT=1``; else the function runs eagerly."""


class RecompileLimitExceeded(CompileError):
    """The function was compiled ``cache_size_limit`` times, and ``fullgraph=True`` does not allow another call to run eagerly."""


class RecompileNotAllowed(CompileError):
    """The function would have to be compiled while the stance is ``"fail_on_recompile"`` (``torch.compiler.set_stance``)."""


class CollectiveError(CompileError):
    """With ``compiler_collective`` on: a rank does not answer, so that the ranks cannot agree on one graph."""


class InvalidBackend(CompileError):
    """No backend has this name."""


class BackendCompilerFailed(CompileError):
    """The backend raised while it compiled a graph; its exception is ``inner_exception`` and the cause."""

    inner_exception: BaseException
    backend_name: str

    def __init__(self, text: str, *, backend_name: str = "", inner_exception: Any = None) -> None:
        super().__init__(text)
        self.backend_name = backend_name
        self.inner_exception = inner_exception
        for note in getattr(inner_exception, "__notes__", ()):  # where its bundle is, and the command for it
            self.add_note(note)
        if hasattr(inner_exception, "minifier_path"):
            self.minifier_path = inner_exception.minifier_path
