"""``torch.autograd``: functions with a backward pass of their own, hooks, labels of the profiler.

What says "really called" is no polyfill: a graph calls it, or capture does, where it needs Python.
"""

from __future__ import annotations

import contextlib
import dis
import gc
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch


class Label(contextlib.ContextDecorator):
    """A profiler's label around some work: captured work has none."""

    def __init__(self, name: str, args: Any = None) -> None:
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self.record = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


class FunctionContext:
    """``ctx`` of a ``torch.autograd.Function`` that no backward pass will ask."""

    saved_tensors: tuple[Any, ...] = ()
    without_gradient: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self, dirty: list[Any]) -> None:
        self.dirty = dirty

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        pass

    def mark_dirty(self, *tensors: Any) -> None:
        self.dirty.extend(tensors)

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.without_gradient = tensors

    def set_materialize_grads(self, value: bool) -> None:
        pass


def _forward(ctx: FunctionContext, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if cls.setup_context is not torch.autograd.Function.setup_context:
        out = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, args, out)
    else:
        out = cls.forward(ctx, *args, **kwargs)
    if isinstance(out, tuple):
        return tuple([_returned(o, args, ctx.dirty) for o in out])
    return _returned(out, args, ctx.dirty)


def apply_function(dirty: list[Any], cls: Any, *args: Any, **kwargs: Any) -> Any:
    """``torch.autograd.Function.apply`` where nothing requires grad: the forward part alone. What it marks as dirty is put into the list."""
    ctx = FunctionContext(dirty)
    ctx.needs_input_grad = (False,) * len(args)
    if torch.is_grad_enabled():
        with torch.no_grad():
            return _forward(ctx, cls, args, kwargs)
    return _forward(ctx, cls, args, kwargs)


def trace_function(cls: Any, *args: Any) -> tuple[Any, tuple[Any, ...], FunctionContext]:
    """The same for what it gives; which of that has no gradient; and what backward is given."""
    ctx = FunctionContext([])
    ctx.needs_input_grad = tuple([isinstance(a, torch.Tensor) and a.requires_grad for a in args])
    with torch.no_grad():
        return _forward(ctx, cls, args, {}), ctx.without_gradient, ctx


def trace_backward(cls: Any, ctx: FunctionContext, *grads: Any) -> Any:
    """The backward part, for what it does besides."""
    with torch.no_grad():
        if cls.vjp is not torch.autograd.Function.vjp:
            return cls.vjp(ctx, *grads)
        return cls.backward(ctx, *grads)


def trace_operator(setup: Any, inputs: tuple[Any, ...], output: Any) -> FunctionContext:
    """What the backward of an operator of the program's is given."""
    ctx = FunctionContext([])
    ctx.needs_input_grad = tuple([isinstance(a, torch.Tensor) and a.requires_grad for a in inputs])
    if setup is not None:
        with torch.no_grad():
            setup(ctx=ctx, inputs=inputs, output=output)
    return ctx


def trace_operator_backward(backward: Any, ctx: FunctionContext, *grads: Any) -> Any:
    with torch.no_grad():
        return backward(ctx, *grads)


def python_parts_of(op: Any) -> Any:
    """Really called, while capturing: setup and backward of an operator, where these are Python; None where autograd needs no Python; False where it does, and
    nobody tells what that is; True for an operator that is made of others by Python."""
    qualified = op._qualified_op_name if isinstance(op, torch._ops.OpOverloadPacket) else op._schema.name
    overloads = op.overloads() if isinstance(op, torch._ops.OpOverloadPacket) else [op._overloadname]
    space, _, name = qualified.partition("::")
    names = [name, *(f"{name}.{overload}" for overload in overloads)]

    def has(key: str) -> bool:
        return any(f"{space}/{n}/{key}" in torch.library._impls for n in names)

    if has("CompositeImplicitAutograd"):
        return True
    if not any(has(key) for key in ("Autograd", "AutogradCPU", "AutogradCUDA")):
        return None
    known = torch._library.custom_ops.OPDEFS.get(qualified)
    return False if known is None else (known._setup_context_fn, known._backward_fn)


def may_read(start: Any, written: list[Any]) -> bool:
    """Really called, while capturing: whether a function, class or operator can come by one of these objects, over names, closures and what they hold. A graph calls it before
    what the captured code has written is put in place."""
    limit = 3000
    if isinstance(start, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        qualified = start._qualified_op_name if isinstance(start, torch._ops.OpOverloadPacket) else start._schema.name
        known = torch._library.custom_ops.OPDEFS.get(qualified)
        if known is None:  # by torch.library.impl: nobody tells the function
            space, _, name = qualified.partition("::")
            own = "/Meta" if space == "aten" else "\0"  # torch's, which runs on no data
            return any(
                key.startswith((f"{space}/{name}/", f"{space}/{name}.")) and not key.endswith(own)
                for key in torch.library._impls
            )
        start = [known._init_fn, known._backend_fns]
    wanted, seen, todo = {id(o) for o in written}, set(), [start]
    while todo:
        o = todo.pop()
        if id(o) in wanted:
            return True
        if id(o) in seen or isinstance(o, (str, bytes, int, float, torch.Tensor, types.BuiltinFunctionType)):
            continue
        seen.add(id(o))
        if len(seen) > limit:
            return True
        home = o.__name__ if isinstance(o, types.ModuleType) else getattr(o, "__module__", None)
        if isinstance(o, (type, types.FunctionType, types.ModuleType)) and str(home).partition(".")[0] in (
            "torch",
            "builtins",
            "numpy",
            "math",
        ):
            continue
        if isinstance(o, types.ModuleType):
            if id(vars(o)) in wanted:
                return True
        elif isinstance(o, types.FunctionType):
            if id(o.__globals__) in wanted:
                return True
            codes = [o.__code__]
            for code in codes:
                codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
                todo += [o.__globals__[n] for n in code.co_names if n in o.__globals__]
            todo += [o.__closure__, o.__defaults__, o.__kwdefaults__, o.__dict__]
        elif not isinstance(o, types.CodeType):
            todo += gc.get_referents(o)
    return False


class KeptByCaller(torch.autograd.Function):
    """The recorder knows it by this name and does not refuse its history."""

    @staticmethod
    def forward(ctx: Any, results: tuple[Any, ...], without: tuple[Any, ...], *args: Any) -> Any:  # type: ignore[override]
        ctx.mark_non_differentiable(*without)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("a fake tensor has no gradient")


def function_of_class(cls: Any) -> Callable[..., Any]:
    """Really called: what a graph calls in the place of ``cls.apply``."""

    def apply(*args: Any) -> Any:
        return cls.apply(*args)

    apply.__name__ = f"{cls.__name__}_apply"
    apply.__qualname__ = f"{cls.__qualname__}.apply"
    apply.__module__ = cls.__module__
    apply.is_autograd_function = True  # type: ignore[attr-defined]
    return apply


def _owned(o: Any) -> Callable[[], Any]:
    return lambda: o


def _known(o: Any) -> Callable[[], Any]:
    """Held weakly, where it can be: the guards of the graph see to it that it lives when the graph runs, and the graph must not keep it alive."""
    try:
        return _owned(o) if isinstance(o, frozenset) else weakref.ref(o)  # a frozen set may be a constant of the trace
    except TypeError:
        return _owned(o)


def registers_hook(hook: Callable[[Any], Any], method: str, is_new: bool) -> Callable[[Any], None]:
    """Really called: what a graph calls where the program registers a hook on a tensor."""
    known = _owned(hook) if is_new else _known(hook)

    def register_hook(tensor: Any) -> None:
        getattr(tensor, method)(known())

    return register_hook


def registers_method(function: Any, owner: Any, method: str) -> Callable[[Any], None]:
    """Really called: the same for a bound method."""
    known, of = _known(function), _known(owner)

    def register_hook(tensor: Any) -> None:
        getattr(tensor, method)(types.MethodType(known(), of()))

    return register_hook


def registers_closure(method: str, code: Any, names: Any, name: str, defaults: Any, cells: Any) -> Callable[..., None]:
    """Really called: the same for a hook that the captured code makes. Of each cell: (0, itself), (1, what is in it), (2, None) for a tensor of the graph."""

    kinds = tuple([(what, _known(cell)) for what, cell in cells])

    def register_hook(tensor: Any, *kept: Any) -> None:
        tensors = iter(kept)
        closure = tuple(
            known() if what == 0 else types.CellType(known() if what == 1 else next(tensors)) for what, known in kinds
        )
        hook = types.FunctionType(code, names, None, defaults, closure)  # errors of torch call it by its __name__
        hook.__qualname__ = name
        getattr(tensor, method)(hook)

    return register_hook


def writes_to_cells(code: Any) -> bool:
    """Really called, while capturing: does the function assign to what it closes over?"""
    stores = any(
        i.opname in ("STORE_DEREF", "DELETE_DEREF") and i.argval in code.co_freevars for i in dis.get_instructions(code)
    )
    return stores or any(writes_to_cells(c) for c in code.co_consts if isinstance(c, types.CodeType))


PLACE = object()
"""Stands for a tensor in the form of arguments that are fixed otherwise."""


def _filled(form: tuple[Any, ...], tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    rest = iter(tensors)
    return tuple([next(rest) if part is PLACE else part for part in form])


def applies_function(cls: Any, form: tuple[Any, ...]) -> Callable[..., Any]:
    """Really called: what a graph calls by name in the place of ``cls.apply``."""

    def apply(*tensors: Any) -> Any:
        result = cls.apply(*_filled(form, tensors))
        return tuple([r for r in result if isinstance(r, torch.Tensor)]) if isinstance(result, tuple) else (result,)

    return apply


class ModuleHooks:
    """Backward hooks of one module at one call of it, as a graph sets them up when it runs."""

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.given = (_known(module), [_known(h) for h in hooks], [_known(h) for h in pre_hooks])
        self.now = threading.local()  # the call that this thread is inside of

    def hook(self) -> Any:
        module, hooks, pre_hooks = self.given
        return torch.utils.hooks.BackwardHook(module(), [h() for h in hooks], [h() for h in pre_hooks])

    def enter(self, form: tuple[Any, ...], is_tuple: bool, inputs: int | None) -> Callable[..., Any]:
        def enter_module(*tensors: Any) -> Any:
            self.now.hook = self.hook()
            args = self.now.hook.setup_input_hook(_filled(form, tensors))
            return tuple([a for a, part in zip(args, form, strict=True) if part is PLACE])

        return enter_module

    def leave(self, form: tuple[Any, ...], is_tuple: bool, inputs: int | None) -> Callable[..., Any]:
        def leave_module(*tensors: Any) -> Any:
            if inputs is None:
                hook = self.now.hook
                del self.now.hook
            else:  # none of them requires grad
                hook = self.hook()
                hook.n_inputs = inputs
            filled = _filled(form, tensors)
            result = hook.setup_output_hook(filled if is_tuple else filled[0])
            if not is_tuple:
                return (result,)
            return tuple([r for r, part in zip(result, form, strict=True) if part is PLACE])

        return leave_module


def attach_backward(results: tuple[Any, ...], without: tuple[Any, ...], *args: Any) -> None:
    """Really called, while capturing: fakes that stand for results of a Function get a node of autograd's."""
    KeptByCaller.apply(results, without, *args)  # type: ignore[no-untyped-call]


def _returned(value: Any, args: tuple[Any, ...], dirty: list[Any]) -> Any:
    """An input that is returned as it is comes back as a view of itself, unless it was written to."""
    for d in dirty:
        if d is value:
            return value
    for a in args:
        if a is value and isinstance(value, torch.Tensor):
            return value.view_as(value)
    return value


REPLACEMENTS: dict[Any, Any] = {
    torch.autograd.profiler.record_function: Label,
}
