"""The programs of tests/programs through the backend native: `python -m tests.programs.native_programs [--only TEXT] [--every N] [--jobs 2]`.

Each is compiled before its first call, and shows what eager shows: results, effects, exceptions, gradients, random state. Numbers of floating
types agree up to rounding (kernels may round in another order), everything else exactly. Each program runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import pathlib
import re
import signal
import sys
import time

import cutaway
import torch

from tests.programs import survey
from tests.support import capture_cases, registry
from tests.support.observe import Description

NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+|-?\binf\b|\bnan\b")
ADDRESS = re.compile(r"0x[0-9a-f]+")
LIMIT = 100  # seconds a program
# What ahead-of-time autograd shows otherwise than eager, or a kernel does: nobody's numbers.
KNOWN = {
    "backward.hooks_of_parameters": "gradients of several parameters arrive together, in another order",
    "gradients.grad_fn_name": "the node of a graph has a name of its own",
    "odd_answers.convolutions_without_channels": "a convolution whose result is not used is not computed, and does not raise",
    "versions.made_by_factories": "a tensor that a kernel made was written once",
}


class Numbers(Description):
    """Shows the numbers of a floating tensor instead of a digest of its bytes."""

    def tensor(self, place, t):
        if not t.is_floating_point() or t.layout != torch.strided or t.is_meta:
            return super().tensor(place, t)
        storage = self.storages.setdefault(t.untyped_storage()._cdata, place)
        numbers = " ".join(f"{v:.6e}" for v in t.detach().reshape(-1)[:256].double().tolist())
        self.add(
            place,
            f"{type(t).__name__} {t.dtype} {tuple(t.shape)} stride {t.stride()} offset {t.storage_offset()} "
            f"grad {t.requires_grad} leaf {t.is_leaf} storage {storage} data {numbers}",
        )
        if t.is_leaf and t.grad is not None:
            self.walk(f"{place}.grad", t.grad)


def is_near(p, q):
    """Equal but for the last digits of numbers with a point."""
    if p == q:
        return True
    p, q = ADDRESS.sub("…", p), ADDRESS.sub("…", q)
    if NUMBER.sub("#", p) != NUMBER.sub("#", q):
        return False
    # Of a row of numbers the largest one sets the scale: sums cancel.
    a, b = ([float(x) for x in NUMBER.findall(s)] for s in (p, q))
    scale = max([abs(x) for x in a if abs(x) < float("inf")], default=0.0)
    rounding = 2e-2 if "bfloat16" in p or "float16" in p else 1e-4
    return all(
        x == y or (x != x and y != y) or abs(x - y) <= rounding * max(scale, 1.0) for x, y in zip(a, b, strict=True)
    )


def difference(expected, got):
    for i, (a, b) in enumerate(zip(expected, got, strict=True)):
        for p, q in zip(a, b, strict=False):
            if not is_near(p, q):
                return f"call {i}: eager {p!r:.300} | {q!r:.300}"
        if len(a) != len(b):
            return f"call {i}: eager has {len(a)} lines, this {len(b)}"
    return ""


def run(name):
    """What differs, or an empty text."""
    program = registry.load()[name]
    capture_cases.Description = Numbers
    torch.set_num_threads(2)
    eager = survey.lines(program.make(), program, program.calls)
    again = survey.lines(program.make(), program, program.calls)
    if difference(eager, again):
        return ""  # its own business
    cutaway.reset()
    return difference(
        eager, survey.lines(cutaway.compile(program.make(), backend="native:wait"), program, program.calls)
    )


def child(name, pipe):
    signal.alarm(LIMIT)
    try:
        text = run(name)
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
    pipe.send(text)
    pipe.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="every N-th program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", help="write what differs there")
    options = parser.parse_args()
    names = [n for n in sorted(registry.load()) if options.only in n and n not in KNOWN][:: options.every]
    fork, began, wrong, running = multiprocessing.get_context("fork"), time.time(), {}, []
    todo, done = list(reversed(names)), 0
    while todo or running:
        while todo and len(running) < options.jobs:
            ours, theirs = fork.Pipe(duplex=False)
            process = fork.Process(target=child, args=(todo[-1], theirs))
            process.start()
            theirs.close()
            running.append((todo.pop(), process, ours))
        multiprocessing.connection.wait([pipe for _, _, pipe in running])
        for entry in [e for e in running if e[2].poll()]:
            name, process, pipe = entry
            running.remove(entry)
            try:
                text = pipe.recv()
            except EOFError:
                process.join()
                text = f"ended with status {process.exitcode}"
            process.join()
            done += 1
            if text:
                wrong[name] = text
                print(f"DIFFERS {name}\n      {text}", flush=True)
            if done % 200 == 0:
                print(f"{done} of {len(names)}, {time.time() - began:.0f} s", flush=True)
    print(f"{len(names)} programs, {len(wrong)} differ, {time.time() - began:.0f} s")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(wrong, indent=1))
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
