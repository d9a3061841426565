#!/usr/bin/env python3
"""Writes python/cutaway/_native/*.pyi from the built module; --check only tells whether they are as they should be.

What the binding library cannot know stands in tools/stub_patterns.txt.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUBS = ROOT / "python" / "cutaway" / "_native"


def generate(into: pathlib.Path) -> None:
    import cutaway  # noqa: F401  (torch is loaded first, and Graph has the methods that Python adds to it)
    from nanobind import stubgen

    patterns = str(ROOT / "tools" / "stub_patterns.txt")
    stubgen.main(["-q", "-m", "cutaway._native", "-r", "-O", str(into), "-p", patterns])
    for command in (["check", "-q", "--fix", "--select", "I,UP,F401"], ["format", "-q"]):
        subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", str(ROOT / "pyproject.toml"), str(into)], check=True
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        generate(pathlib.Path(folder))
        made = {p.name: p.read_text() for p in sorted(pathlib.Path(folder).rglob("*.pyi"))}
    have = {p.name: p.read_text() for p in STUBS.glob("*.pyi")}
    if check:
        old = sorted(name for name in made.keys() | have.keys() if made.get(name) != have.get(name))
        for name in old:
            print(f"python/cutaway/_native/{name}: not what the module has\n   try: make stubs")
        return 1 if old else 0
    STUBS.mkdir(exist_ok=True)
    for name, text in made.items():
        (STUBS / name).write_text(text)
    for name in have.keys() - made.keys():
        (STUBS / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
