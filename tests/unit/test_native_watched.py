"""Who watches native looks at its kernels, however long the compiler takes: not at the operators that run until they are there."""

import os
import subprocess
import sys

PROGRAM = """
import itertools, sys
import torch
import cutaway

for i, (compile_, after) in enumerate(itertools.product((torch.compile, cutaway.compile), ("capture", "aot"))):
    watched = cutaway.debug("native", after=after, level=4, base_dir=sys.argv[1], minify=False)
    f = compile_(lambda x: torch.softmax(x * (i + 2), -1).sin(), backend=watched)  # each with a kernel of its own
    try:
        f(torch.randn(4, 6))
    except Exception as error:  # torch wraps it
        print("found" if "the numbers of native differ from eager's" in str(error) else error)
    else:
        print(compile_.__module__, after, "missed")
"""


def test_kernels_are_waited_for(tmp_path):
    slow = tmp_path / "g++"
    slow.write_text('#!/bin/sh\n[ "$1" = --version ] || sleep 1.5\nexec g++ "$@"\n')
    slow.chmod(0o755)
    environment = {
        **os.environ,
        "CUTAWAY_CXX": str(slow),
        "CUTAWAY_CACHE_DIR": str(tmp_path / "cache"),
        "CUTAWAY_PLANT_NATIVE_FAULT": "rewrites:softmax",
    }
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "bundles")]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)
    assert done.stdout.split("\n") == ["found"] * 4 + [""], done.stdout + done.stderr
