"""Peak memory of a training step with the backend native, beside Inductor and eager.

Each side runs in a process of its own: three steps, then the most that the process held during a fourth, beyond what it held before any step. `--only WORD`
picks models; `--check` makes a step that needs more than Inductor's the exit status 1.
"""

from __future__ import annotations

import ctypes
import gc
import pathlib
import subprocess
import sys

from side_by_side import options

SIDES = ("native", "inductor", "eager")


def held(what: str) -> float:
    """Megabytes: VmRSS now, VmHWM at most since `forget`."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {what}")


def trim() -> None:
    """Free memory goes back to the system, so that it does not hide what a step needs."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def kept_by_native() -> float:
    """Megabytes of free blocks that native keeps for the next step: a step that uses them again must count them."""
    maps = pathlib.Path("/proc/self/maps").read_text()
    found = {line.split()[-1] for line in maps.splitlines() if line.endswith("/libcutaway.so")}
    if not found:
        return 0.0
    count = ctypes.CDLL(found.pop()).cutaway_pool_bytes
    count.restype = ctypes.c_int64
    return count() / 2**20


def peak(side: str, name: str) -> float:
    import cutaway
    import torch
    from native import step, transformer

    torch.set_num_threads(2)
    model, inputs = transformer(name)
    model.train()
    inputs = {k: v.repeat(8, *[1] * (v.dim() - 1)) for k, v in inputs.items()}
    with torch.no_grad():
        weight = torch.linspace(-1, 1, model(**inputs)[0].shape[-1])
    f = (
        model
        if side == "eager"
        else torch.compile(model)
        if side == "inductor"
        else cutaway.compile(model, backend="native:wait")
    )
    run = step(model, f, inputs, weight)
    for _ in range(3):
        run()
    model.zero_grad()
    trim()  # what compilers left behind, and blocks that are free
    before = held("VmRSS") - kept_by_native()
    run()
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    run()
    return held("VmHWM") - before


def main() -> None:
    only, missed = options().only, False
    for name in ("bert", "gpt2", "vit", "resnet"):
        if only and only not in name:
            continue
        found = {}
        for side in SIDES:
            done = subprocess.run(
                [sys.executable, __file__, "--child", side, name], capture_output=True, text=True, check=True
            )
            found[side] = float(done.stdout.splitlines()[-1])
        ratio = found["native"] / found["inductor"]
        missed = missed or ratio > 1.0
        print(
            f"training step of {name}: native {found['native']:.0f} MB, Inductor {found['inductor']:.0f} MB, eager {found['eager']:.0f} MB: {ratio:.2f} of Inductor's"
        )
    if options().check and missed:
        sys.exit(1)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        print(peak(sys.argv[2], sys.argv[3]))
    else:
        main()
