"""Running a module forward and, where something requires it, backward; what `same_two_models` compares."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ._native import Error

__all__ = ["collect_results", "reduce_to_scalar_loss", "requires_bwd_pass", "run_fwd_maybe_bwd"]

_LOGITS_ALONE = ("MaskedLMOutput", "Seq2SeqLMOutput", "CausalLMOutputWithCrossAttentions")


@contextlib.contextmanager
def same_random_state(seed: int) -> Iterator[None]:
    """torch's, Python's and numpy's generators start from `seed` inside; the caller's states are put back."""
    numpy = sys.modules.get("numpy")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()):
        try:
            torch.default_generator.manual_seed(seed)
            if torch.cuda.is_initialized():
                torch.cuda.manual_seed_all(seed)
            random.seed(seed)
            if numpy:
                numpy.random.seed(seed)
            yield
        finally:
            random.setstate(python_state)
            if numpy:
                numpy.random.set_state(numpy_state)


def _clone(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    with torch.no_grad():
        twin = value.detach().clone()
        if value.layout is torch.strided and twin.stride() != value.stride():  # clone() loses gaps
            strided = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=value.device)
            with contextlib.suppress(RuntimeError):  # elements that share memory cannot be written: the clone does
                twin = strided.copy_(value.detach())
    twin.requires_grad_(value.requires_grad)
    if value.is_leaf and value.grad is not None:
        twin.grad = _clone(value.grad)
    return twin


def clone_inputs_retaining_gradness(inputs: Sequence[Any]) -> list[Any]:
    """Copies with the same strides; a copy requires grad, as a leaf, where the original does."""
    return list(pytree.tree_map(_clone, list(inputs)))


def requires_bwd_pass(out: Any) -> bool:
    """True when any tensor inside requires grad."""
    return any(isinstance(x, torch.Tensor) and x.requires_grad for x in _tensors(out))


def _tensors(out: Any) -> list[Any]:
    if isinstance(out, torch.Tensor) or out is None:
        return [out]
    if isinstance(out, (list, tuple)):
        return [t for part in out for t in _tensors(part)]
    if isinstance(out, dict):
        return [t for part in out.values() for t in _tensors(part)]
    if type(out).__name__ == "SquashedNormal":
        return [out.mean]
    return []


def reduce_to_scalar_loss(out: Any) -> Any:
    """A scalar that depends on every number in `out`: means of parts, down to sum / count of each tensor."""
    if isinstance(out, torch.Tensor):
        return out.sum() / out.numel()  # mean() refuses integers
    if isinstance(out, (list, tuple)):
        return sum(reduce_to_scalar_loss(x) for x in out) / len(out)
    if type(out).__name__ in _LOGITS_ALONE:
        return reduce_to_scalar_loss(out.logits)
    if type(out).__name__ == "SquashedNormal":
        return out.mean.sum()
    if isinstance(out, dict):
        return sum(reduce_to_scalar_loss(x) for x in out.values()) / len(out)
    raise Error(f"outputs of type {type(out).__name__} cannot be reduced to a loss\n   try: only_fwd=True")


def _own_name(model: Any, name: str) -> str:
    # torch.compile's wrapper puts its own attribute before the names of what it wraps.
    return name.removeprefix("_orig_mod.") if hasattr(model, "_orig_mod") else name


def collect_results(model: Any, prediction: Any, loss: Any, inputs: Sequence[Any]) -> list[Any]:
    """Outputs, loss slot, gradients of parameters (none counts as zero), parameters, buffers, gradients of inputs."""
    gradients, parameters, buffers = {}, {}, {}
    if isinstance(model, torch.nn.Module):
        for name, parameter in model.named_parameters():
            name = _own_name(model, name)
            gradients[name + ".grad"] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameters[name] = parameter
        buffers = {_own_name(model, name): buffer for name, buffer in model.named_buffers()}
    results = [prediction, loss, gradients, parameters, buffers]
    results.extend(tensor.grad for _, tensor in _input_tensors(inputs))
    return results


def _input_tensors(inputs: Sequence[Any]) -> list[tuple[str, torch.Tensor]]:
    """Tensors among the inputs, and inside lists and tuples that are inputs, with their places."""
    found = []
    for i, value in enumerate(inputs):
        if isinstance(value, (list, tuple)):
            found += [(f"inputs[{i}][{j}]", t) for j, t in enumerate(value) if isinstance(t, torch.Tensor)]
        elif isinstance(value, torch.Tensor):
            found.append((f"inputs[{i}]", value))
    return found


def result_names(results: Sequence[Any], inputs: Sequence[Any]) -> list[str]:
    """A name for each entry of `collect_results`."""
    names = ["out", "loss", "gradients", "parameters", "buffers"]
    return names + [f"{place}.grad" for place, _ in _input_tensors(inputs)][: len(results) - len(names)]


def run_fwd_maybe_bwd(
    model: Callable[..., Any], inputs: Sequence[Any], only_fwd: bool = False, disable_clone: bool = False
) -> Any:
    """Run a deep copy of the model on copies of the inputs; backward too when an output requires it.

    With `only_fwd`, gives the plain output; else what `collect_results` lists. With `disable_clone` the inputs are used
    as they are, and may be changed by the run.
    """
    model = copy.deepcopy(model)
    arguments = inputs if disable_clone else clone_inputs_retaining_gradness(inputs)
    if hasattr(model, "zero_grad"):
        model.zero_grad(True)
    # A boxed callable takes one list, and may empty it: the tensors whose gradients are asked for are kept here.
    kept = list(arguments)
    out = model(list(arguments)) if getattr(model, "_boxed_call", False) else model(*arguments)
    if only_fwd:
        return out
    if requires_bwd_pass(out):
        reduce_to_scalar_loss(out).backward()
    return collect_results(model, out, None, kept)


def _to_double(value: Any) -> Any:
    """Floating tensors to f64, complex ones to c128, keeping leafness and gradness."""
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    wide = value.detach().to(torch.complex128 if value.is_complex() else torch.float64)
    return wide.requires_grad_(value.requires_grad)


def _wide_dtype(value: Any) -> Any:
    if not isinstance(value, torch.dtype):
        return value
    return torch.float64 if value.is_floating_point else torch.complex128 if value.is_complex else value


class Draws(TorchDispatchMode):
    """Random numbers of one run, for another: a generator gives f64 other numbers than f32, and their comparison would say nothing.

    Inside ``kept()`` they are noted, inside ``given()`` what is drawn is replaced by them where it differs by more than rounding.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._drawn: list[torch.Tensor] = []
        self._left: list[torch.Tensor] | None = None  # None: they are noted

    def kept(self) -> Draws:
        self._drawn, self._left = [], None
        return self

    def given(self) -> Draws:
        self._left = list(self._drawn)
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            for tensor in pytree.tree_leaves(out):
                if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                    self._meet(tensor)
        return out

    def _meet(self, tensor: torch.Tensor) -> None:
        if self._left is None:
            self._drawn.append(tensor.clone())
        elif self._left and self._left[0].shape == tensor.shape:
            drawn = self._left.pop(0).to(tensor.dtype)
            if not torch.allclose(drawn, tensor, rtol=1e-2, atol=1e-6, equal_nan=True):
                tensor.copy_(drawn)


def cast_to_fp64(model: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The model and its inputs at double precision; dtype arguments inside an fx graph too."""
    if isinstance(model, torch.nn.Module):
        model = model.to(torch.float64)
    if isinstance(model, torch.fx.GraphModule):
        for node in model.graph.nodes:
            if node.op in ("call_function", "call_method"):
                node.args = torch.fx.node.map_aggregate(node.args, _wide_dtype)
                node.kwargs = torch.fx.node.map_aggregate(node.kwargs, _wide_dtype)
            if node.op == "call_method" and node.target in ("float", "half", "bfloat16"):
                node.target = "double"
            if node.target is torch.amp.autocast_mode._enter_autocast:  # (device, dtype, enabled, cache)
                node.args = (*node.args[:2], False, *node.args[3:])
        for name, value in list(vars(model).items()):  # constants that are neither parameters nor buffers
            if isinstance(value, torch.Tensor):
                setattr(model, name, _to_double(value))
        model.graph.lint()
        model.recompile()
    return model, list(pytree.tree_map(_to_double, list(inputs)))
