#!/usr/bin/env python3
"""Writes dist/cutaway-VERSION.tar.gz: what a build needs and the tests, the same bytes from the same commit (`make sdist`)."""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib

from make_wheel import ROOT, epoch
from scikit_build_core.build import build_sdist


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    output = parser.parse_args().output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch())
    os.chdir(ROOT)
    file = output / build_sdist(str(output))
    print(f"sdist   {file}   sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
