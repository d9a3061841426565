"""Every program of one tensor again, inside a checkpoint, a function transform or torch.autograd.grad: compiled must show what eager shows.

    python -m tests.programs.wrapped [--kinds checkpoint,grad,…] [--only TEXT]

A line for each difference. Those that are known and why:
- a reentrant checkpoint runs its function under no_grad, where eager's kernels for recurrent layers and some of linalg round otherwise;
- an in-place write that backward forbids without a checkpoint is allowed inside one, where it is computed again: compiled, it raises;
- errors of torch's higher-order operators have stacks in their text;
- torch.autograd.grad through a reentrant checkpoint raises in eager, and gives the gradient when the checkpoint was inlined.
"""

import argparse
import signal
import sys
import warnings

import cutaway
import torch
from torch.utils.checkpoint import checkpoint

from tests.programs import survey
from tests.support import registry


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in tensors(item)] if isinstance(value, (list, tuple)) else []


def total(value):
    result = torch.zeros(())
    for t in tensors(value):
        if t.is_floating_point():
            result = result + t.sum()
    return result


KINDS = {
    "checkpoint": lambda f: lambda x: checkpoint(f, x, use_reentrant=False),
    "reentrant": lambda f: lambda x: checkpoint(f, x * 1, use_reentrant=True),
    "grad": lambda f: lambda x: torch.func.grad(lambda y: total(f(y)))(x.detach()),
    "vmap": lambda f: (
        lambda x: torch.func.vmap(lambda y: total(f(y)), randomness="different")(
            torch.stack([x.detach(), x.detach() * 2])
        )
    ),
    "jvp": lambda f: lambda x: torch.func.jvp(lambda y: total(f(y)), (x.detach(),), (torch.ones_like(x),)),
    "autograd": lambda f: lambda x: torch.autograd.grad(total(f(x)), x, allow_unused=True),
}


class Wrapped:
    calls = 2

    def __init__(self, program, wrap):
        self.make = lambda: wrap(program.make())
        self.args = lambda i: [program.args(i)[0].detach().clone().requires_grad_()]


def fits(name, program):
    """One floating tensor goes in. Torch's eager crashes on lazy layers in a transform."""
    arguments = program.args(0)
    return (
        len(arguments) == 1
        and type(arguments[0]) is torch.Tensor
        and arguments[0].is_floating_point()
        and "lazy" not in name
    )


def stop(*_):
    raise TimeoutError


def difference(program, kind, seconds=30):
    """What compiled shows otherwise than eager, or an empty text."""
    wrapped = Wrapped(program, KINDS[kind])
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        eager = survey.lines(wrapped.make(), wrapped, wrapped.calls)
        cutaway.reset()
        ours = survey.lines(cutaway.compile(wrapped.make(), backend="eager"), wrapped, wrapped.calls)
        return survey.difference(eager, ours)
    except TimeoutError:
        return "took too long"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="every N-th program")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = differences = 0
    programs = [(n, p) for n, p in registry.load().items() if options.only in n and fits(n, p)]
    for name, program in programs[:: options.every]:
        for kind in options.kinds.split(","):
            runs += 1
            if found := difference(program, kind):
                differences += 1
                print(f"{name} in {kind}: {found}", flush=True)
    print(f"{runs} runs, {differences} differences")
    return 1 if differences or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
