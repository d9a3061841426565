"""Sizes that are symbols, for backends that are Python functions: torch's own fake mode and shape environment around the call.

The graph reads its sizes by ``size`` calls. A backend that traces it (AOTAutograd, Inductor) finds the fake mode in torch's
tracing context, where the same sizes are symbolic integers; what it asks about them on its way comes back as conditions, which
guard the compiled graph. A condition that has no counterpart of ours pins the sizes in it to their present numbers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from . import _native

Expression = int | str | tuple[Any, ...]  # a number, a symbol, or (operation, operand, operand, …)
Condition = tuple[str, Expression, Expression]  # "==", "!=", "<" or "<="
Sizes = Sequence[
    Sequence[Expression] | str | None
]  # of the inputs: sizes of a tensor, the symbol of an integer, else None


class _NoCounterpart(Exception):
    pass


class SymbolicInputs:
    """The example inputs of a graph with symbols, and a tracing context that knows them."""

    def __init__(self, sizes: Sizes, examples: Sequence[Any]) -> None:
        import torch._guards
        from torch._dynamo.source import ConstantSource
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

        self._env = env = ShapeEnv()
        self._mode = FakeTensorMode(shape_env=env)
        self._expressions: dict[Any, Expression] = {}  # torch's symbol -> ours
        self._numbers: dict[Any, int] = {}
        self._fakes = []  # torch remembers the fake of a tensor as long as it lives
        self.examples = list(examples)
        first: dict[Expression, Any] = {}
        for i, (example, shape) in enumerate(zip(examples, sizes, strict=True)):
            source = ConstantSource(f"cutaway_input_{i}")
            if isinstance(shape, str):
                symbol = env.create_unspecified_symbol(example, source, dynamic_dim=DimDynamic.DYNAMIC)
                made = env.create_symintnode(symbol, hint=example, source=source)
                self._met(made, shape, example, first)
                self.examples[i] = made
            elif isinstance(example, torch.Tensor) and shape is not None:
                kinds = [DimDynamic.STATIC if isinstance(d, int) else DimDynamic.DYNAMIC for d in shape]
                context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
                fake = self._mode.from_tensor(example, symbolic_context=context, source=source)
                self._fakes.append(fake)
                for size, expression, number in zip(fake.shape, shape, example.shape, strict=True):
                    if not isinstance(expression, int):
                        self._met(size, expression, number, first)
        self.context = torch._guards.TracingContext(self._mode)

    def _met(self, size: Any, expression: Expression, number: int, first: dict[Expression, Any]) -> None:
        if not isinstance(size, torch.SymInt) or not size.node.expr.is_Symbol:
            raise _NoCounterpart(f"torch does not take {expression} as a symbol")
        self._expressions[size.node.expr] = expression
        self._numbers[size.node.expr] = number
        if expression in first:
            bool(first[expression] == size)  # inputs that share a symbol of ours share one of torch's
        first.setdefault(expression, size)

    def call(self, backend: Callable[..., Any], module: torch.fx.GraphModule, **keywords: Any) -> Any:
        import torch._guards

        with torch._guards.tracing(self.context):
            compiled = backend(module, self.examples, **keywords)
            self.conditions = list(dict.fromkeys(self._asked()))
        return compiled

    def _asked(self) -> Iterable[Condition]:
        for guard in self._env.guards:
            yield from self._conditions(guard.expr)
        for symbol, bounds in self._env.var_to_range.items():
            if (ours := self._expressions.get(symbol)) is None:
                continue
            if bounds.lower.is_Integer and bounds.lower > 2:
                yield ("<=", int(bounds.lower), ours)
            if bounds.upper.is_Integer and bounds.upper < 2**62:
                yield ("<=", ours, int(bounds.upper))

    def _conditions(self, asked: Any) -> Iterable[Condition]:
        """All must hold, and then `asked` holds."""
        sympy: Any = importlib.import_module("sympy")

        if asked in (True, sympy.true):
            return
        try:
            found = list(self._translated(asked))
        except _NoCounterpart:
            found = [
                ("==", self._expressions[s], self._numbers[s]) for s in asked.free_symbols if s in self._expressions
            ]
            if len(found) != len(asked.free_symbols):
                raise
        yield from (c for c in found if c[0] not in ("==", "<=") or c[1] != c[2])

    def _translated(self, asked: Any) -> Iterable[Condition]:
        sympy: Any = importlib.import_module("sympy")

        relations: dict[Any, tuple[str, bool]] = {
            sympy.Eq: ("==", False), sympy.Ne: ("!=", False), sympy.Lt: ("<", False), sympy.Le: ("<=", False),
            sympy.Gt: ("<", True), sympy.Ge: ("<=", True),
        }  # fmt: skip
        if isinstance(asked, sympy.And):
            for part in asked.args:
                yield from self._translated(part)
        elif isinstance(asked, sympy.Or):  # the part that holds now is enough, and more than was asked
            for part in asked.args:
                if part.subs(self._numbers) in (True, sympy.true):
                    yield from self._translated(part)
                    return
            raise _NoCounterpart
        elif isinstance(asked, sympy.Not) and type(asked.args[0]) in relations:
            yield from self._translated(asked.args[0].negated)
        elif type(asked) in relations:
            sign, turned = relations[type(asked)]
            left, right = self._expression(asked.lhs), self._expression(asked.rhs)
            yield (sign, right, left) if turned else (sign, left, right)
        else:
            raise _NoCounterpart

    def _expression(self, e: Any) -> Expression:
        found: Expression | None = _native._size_expression(e, self._expressions)
        if found is None:
            raise _NoCounterpart
        return found
