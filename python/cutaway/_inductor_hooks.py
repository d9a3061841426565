"""What Inductor makes of a graph: kernels with the nodes that they compute, and values by the name of their node.

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


Kernels = list[tuple[str, list[str]]]
newest: Kernels = []  # of the compilation that began last: an exception out of it names its kernels only by their names


def _computed(part: Any) -> Iterator[Any]:
    """The fx nodes that one scheduled buffer computes.

    What Inductor calls its origins holds more: also what made an argument that was not in memory yet when the operator
    was lowered, though lowering put it there. So go back from the buffer's own node and stop at what the kernel reads.
    """
    from torch._inductor.virtualized import V

    buffer = part.node
    origins = {o for o in buffer.origins if o.op == "call_function"}
    own = buffer.get_origin_node()
    read = set()
    for dependency in part.read_writes.reads:
        found = V.graph.try_get_buffer(dependency.name)
        if found is not None:
            read.add(found.get_origin_node())
    todo = [own] if own in origins else [o for o in origins if not any(user in origins for user in o.users)]
    seen = set(todo)
    while todo:
        node = todo.pop()
        yield node
        for before in node.all_input_nodes:
            if before in origins and before not in seen and before not in read:
                seen.add(before)
                todo.append(before)


def _is_view(node: Any) -> bool:
    """It computes nothing: its result is its argument, looked at otherwise."""
    returns = getattr(getattr(node.target, "_schema", None), "returns", ())
    return len(returns) > 0 and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def _nodes(scheduled: Any, stage: str) -> list[str]:
    """Names of the graph's own nodes behind scheduled ones; after capture each remembers the call that it came from."""
    names: dict[str, None] = {}
    for one in scheduled:
        for part in one.get_nodes() if hasattr(one, "get_nodes") else ():
            for origin in _computed(part) if getattr(part, "node", None) is not None else ():
                if stage != "aot" and _is_view(origin):  # of a call that another kernel computes
                    continue
                source = origin.meta.get("from_node") if stage != "aot" else None
                names[source[0].name if source else origin.name] = None
    return list(names)


builds = [0]  # C++ kernels that this process has built since count_builds() was called


def count_builds() -> list[int]:
    """Counts this process's C++ kernel builds from now on. For a child that ends with its trial: it is never undone."""
    builds[0] = 0
    try:
        from torch._inductor.cpp_builder import CppBuilder
    except ImportError:
        return builds
    build = CppBuilder.build
    if getattr(build, "counts", False):
        return builds

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        builds[0] += str(self.get_target_file_path()).endswith(".so")  # not headers
        return build(self, *args, **kwargs)

    counted.counts = True  # type: ignore[attr-defined]
    CppBuilder.build = counted  # type: ignore[method-assign]
    return builds


@contextlib.contextmanager
def noting_kernels(stage: str) -> Iterator[Kernels]:
    """The list fills, in the order of code generation, while Inductor compiles inside."""
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.ir import MultiOutput
    from torch._inductor.scheduler import Scheduler

    global newest
    kernels: Kernels = []
    newest = kernels
    define, extern = CppScheduling.define_kernel, Scheduler.codegen_extern_call

    def define_kernel(self: Any, src_code: str, nodes: Any, *args: Any, **kwargs: Any) -> Any:
        name = define(self, src_code, nodes, *args, **kwargs)  # type: ignore[no-untyped-call]
        kernels.append((str(name), _nodes(nodes, stage)))
        return name

    def codegen_extern_call(self: Any, node: Any) -> Any:
        if isinstance(node.node, MultiOutput):  # a name for one result of the call before it
            return extern(self, node)
        kernels.append((str(getattr(node.node, "python_kernel_name", None) or node.get_name()), _nodes([node], stage)))
        return extern(self, node)

    CppScheduling.define_kernel = define_kernel  # type: ignore[method-assign]
    Scheduler.codegen_extern_call = codegen_extern_call  # type: ignore[method-assign, assignment]
    try:
        yield kernels
    finally:
        CppScheduling.define_kernel = define  # type: ignore[method-assign]
        Scheduler.codegen_extern_call = extern  # type: ignore[method-assign]


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
