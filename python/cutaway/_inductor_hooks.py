"""Values inside a graph that Inductor compiled, by the name of their node, for ``cutaway analyze``.

torch calls its intermediate hooks for Triton kernels and for operators that Inductor does not compile. For C++ kernels
and for ``out=`` calls (``mm`` and the like) it writes no call, so two methods of its code generation get a line after
theirs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch


def _origin(buffer: str) -> str | None:
    """The node that a buffer holds the value of; none for one that Inductor made for itself."""
    from torch._inductor.virtualized import V

    found = V.graph.get_buffer(buffer)
    node = found.get_origin_node() if found is not None and hasattr(found, "get_origin_node") else None
    return None if node is None else str(node.name)


def _write_call(wrapper: Any, buffer: str) -> None:
    name = _origin(buffer)
    if name is not None:
        wrapper.writeline(f"run_intermediate_hooks({name!r}, {buffer})")


@contextlib.contextmanager
def compiled_to_tell() -> Iterator[None]:
    """What Inductor compiles inside tells its values when it runs. Its code differs only by these calls."""
    from torch._inductor import config
    from torch._inductor.codegen.cpp import KernelGroup
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    kernel, out = KernelGroup.call_kernel, PythonWrapperCodegen._generate_extern_kernel_out_helper

    def call_kernel(self: Any, wrapper: Any, *args: Any, **kwargs: Any) -> Any:
        result = kernel(self, wrapper, *args, **kwargs)  # type: ignore[no-untyped-call]
        for buffer in self.args.live_output_buffers():
            _write_call(wrapper, buffer)
        return result

    def extern_out(self: Any, name: str, buffer: str, *args: Any, **kwargs: Any) -> Any:
        result = out(self, name, buffer, *args, **kwargs)
        _write_call(self, buffer)
        return result

    KernelGroup.call_kernel = call_kernel  # type: ignore[method-assign]
    PythonWrapperCodegen._generate_extern_kernel_out_helper = extern_out  # type: ignore[method-assign, assignment]
    try:
        with config.patch(generate_intermediate_hooks=True):
            yield
    finally:
        KernelGroup.call_kernel = kernel  # type: ignore[method-assign]
        PythonWrapperCodegen._generate_extern_kernel_out_helper = out  # type: ignore[method-assign]


@contextlib.contextmanager
def telling(tell: Callable[[str, torch.Tensor], None]) -> Iterator[None]:
    """Runs inside call ``tell(name, value)``. The value is Inductor's own memory: it is valid during the call only."""
    from torch._inductor.hooks import intermediate_hook

    with intermediate_hook(tell):
        yield
