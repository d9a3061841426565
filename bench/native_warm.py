"""A new process whose caches on disk are full: seconds from the model to the end of its first compiled call, native beside Inductor with its own caches.

Each side runs twice in processes of their own over one cache folder; the second is timed, without the time that imports and the model take. Float32, 2 threads.
`--only WORD` picks models ("bert", "gpt2", "llama", "vit", "resnet").
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from native import MODELS, first_call
from side_by_side import finish, options


def warm(side: str, name: str, turns: int = 3) -> float:
    """The least of a few starts behind the one that fills the caches."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "CUTAWAY_CACHE_DIR": f"{folder}/cutaway"}
        times = []
        for _ in range(turns):
            done = subprocess.run([sys.executable, __file__, "--child", side, name], env={**os.environ, **caches}, capture_output=True, text=True, check=True)  # fmt: skip
            times.append(float(done.stdout.splitlines()[-1]))
        return min(times[1:])


def main() -> None:
    only = options().only
    for name in MODELS:
        if only and only not in name:
            continue
        ours, peer = warm("native", name), warm("inductor", name)
        print(f"warm start of {name}: {ours:.2f} s; Inductor {peer:.2f} s: {peer / ours:.1f} times")
    finish()


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        print(first_call(sys.argv[2], sys.argv[3]))
    else:
        main()
