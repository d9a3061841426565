"""What torch computes in another way when an optimiser is compiled."""

from __future__ import annotations

from typing import Any

import torch


def addcdiv_(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    return self.add_(value * tensor1 / tensor2)


def foreach_addcdiv_(self: Any, tensor1: Any, tensor2: Any, value: Any) -> None:
    for i in range(len(self)):
        self[i].add_(value[i] * tensor1[i] / tensor2[i])


REPLACEMENTS: dict[Any, Any] = {}

# Kept away from Dynamo by a wrapper; the function inside is plain.
if (_zero_grad := getattr(torch.optim.Optimizer.zero_grad, "__wrapped__", None)) is not None:
    REPLACEMENTS[torch.optim.Optimizer.zero_grad] = _zero_grad
