#!/usr/bin/env python3
"""What a fresh installation must do, run inside it by tools/make_wheel.py: `python tools/try_wheel.py FOLDER_OF_BUNDLES`."""

from __future__ import annotations

import importlib.metadata
import json
import pathlib
import subprocess
import sys

import cutaway
import torch


def ask(*words: str) -> tuple[int, str]:
    done = subprocess.run([str(COMMAND), *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


COMMAND = pathlib.Path(sys.executable).with_name("cutaway")
bundles = pathlib.Path(sys.argv[1])

# It is the installed one, and says which torch it is for.
assert pathlib.Path(cutaway.__file__).is_relative_to(sys.prefix), cutaway.__file__
version = importlib.metadata.version("cutaway")
assert version == f"{cutaway.__version__}+torch{torch.__version__.partition('+')[0]}", version
assert any(e.name == "cutaway" for e in importlib.metadata.entry_points(group="pytest11"))

# Our compiler, and torch's with ours as its backend.
x = torch.randn(4, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())
assert cutaway.same(model(x), cutaway.compile(model)(x))
assert cutaway.same(model(x), torch.compile(model, backend="cutaway")(x))

# The command: without libtorch, with it, and with workers.
status, text = ask("--version")
assert status == 0 and text == f"cutaway {cutaway.__version__}\n", text
status, text = ask("doctor", "--json")
assert status == 0 and json.loads(text)["healthy"], text
status, text = ask("run", str(bundles / "passes"), "--backend", "aot_eager")
assert status == 0, text
status, text = ask("minify", str(bundles / "raises"), "-o", "small")
assert status == 0 and "one-minimal" in text, text
