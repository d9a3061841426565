# Containers that hold themselves, given to torch: siblings of mutated_100286.
import torch

ERRORS = []


def inputs(k):
    return [torch.ones(2) + k], {}


def between(k):
    pass


def fn(x):
    l, d = [1], {"a": 1}
    l.append(l)
    d["self"] = d
    for f in (lambda: x + l, lambda: x * d, lambda: torch.stack(l), lambda: torch.tensor(l), lambda: x[l], lambda: x.view(*l), lambda: torch.cat((x, l))):
        try:
            ERRORS.append(f())
        except (TypeError, ValueError, RuntimeError, RecursionError, IndexError) as error:
            ERRORS.append(type(error).__name__)
    return x + 1
