"""``python -m cutaway.worker [--trust] [--path DIR]…``: serves trials on the socket CUTAWAY_WORKER_FD, each in a child.

Everything is imported once, on one thread; a child then starts in milliseconds. A parallel region in this process would
hang its children, so nothing is computed here beyond a warm-up on one thread. Inductor's goes on beside the first trial.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cutaway.worker", description="serves trials on the socket CUTAWAY_WORKER_FD"
    )
    parser.add_argument(
        "--trust", action="store_true", help="bundles may import modules, run source text and name any backend"
    )
    parser.add_argument("--path", action="append", default=[], metavar="DIR", help="where the user's own modules are")
    parser.add_argument("--backend", default="", help="the one that most trials will name: made ready beforehand")
    parser.add_argument("--once", action="store_true", help="there will be one trial: nothing beyond it is made ready")
    options = parser.parse_args()
    fd = os.environ.get("CUTAWAY_WORKER_FD", "")
    if not fd.isdigit():
        print(
            "cutaway: CUTAWAY_WORKER_FD names no file descriptor\n   try: cutaway run, which starts its workers itself",
            file=sys.stderr,
        )
        return 2
    # Before torch is imported: one thread, no pool of compilers, nothing cached that could hide a fault.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # CUDA's driver must not wake up before the fork
    os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "0")
    os.environ.setdefault("TORCHINDUCTOR_AUTOGRAD_CACHE", "0")
    for name in ("CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER"):  # nothing nests
        os.environ.pop(name, None)
    sys.path[:0] = options.path

    import torch

    torch.set_num_threads(1)

    from . import _backends, _failure, _native  # noqa: F401  (describes exceptions)

    _backends.register_all()
    _native.warm_up()
    meanwhile = None
    if _native.backend_row(options.backend)["is_inductor"] and torch.cuda.device_count() == 0:
        # Not beside a GPU: Inductor asks it for its properties, and no child could use it then.
        _backends.load_inductor()
        if not options.once:
            meanwhile = _backends.rehearse_inductor  # half of what later candidates cost (docs/notes/debug_wrapper.md)

    def prepare(libraries: list[str], python_path: list[str]) -> None:
        sys.path[:0] = [p for p in python_path if p not in sys.path]
        for module in libraries:
            importlib.import_module(module)

    _native.serve_worker(int(fd), options.trust, prepare, meanwhile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
