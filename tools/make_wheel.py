#!/usr/bin/env python3
"""Builds a wheel for the torch in place, names that torch in its version, and tries it in an empty environment (`make wheel`).

    python tools/make_wheel.py [--output dist] [--no-test]

The wheel is `cutaway-VERSION+torchRELEASE-….whl`: what links libtorch fits one release of it. Members are sorted and carry one
time (SOURCE_DATE_EPOCH; else that of the last commit), so that the same build gives the same bytes. Nothing is downloaded: the build
uses this environment, and the empty environment borrows its packages, all but Cutaway's own.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN = ("cutaway", "pytest_cutaway", "pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")


def epoch() -> int:
    """When the sources are from."""
    if text := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(text)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 315532800  # 1980: zip's first year


def build(into: pathlib.Path) -> pathlib.Path:
    """By the build tree of `make build`: only what a wheel has otherwise is made anew."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--disable-pip-version-check",
        "--no-build-isolation",
        "--no-deps",
    ]
    command += ["--no-index", "-C", "cmake.define.CUTAWAY_WHEEL=ON", "-w", str(into), str(ROOT)]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch())})
    return next(into.glob("cutaway-*.whl"))


def record_hash(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def name_torch(plain: pathlib.Path, output: pathlib.Path, torch: str, when: int) -> pathlib.Path:
    """The same wheel under the version VERSION+torchRELEASE, its bytes fixed by its content."""
    with zipfile.ZipFile(plain) as file:
        members = {i.filename: (i.external_attr, file.read(i)) for i in file.infolist() if not i.is_dir()}
    old = re.match(r"cutaway-([^-]+)-", plain.name)
    assert old, plain.name
    before = old[1].partition("+")[0]
    after = f"{before}+torch{torch.partition('+')[0]}"
    info, named = f"cutaway-{old[1]}.dist-info/", f"cutaway-{after}.dist-info/"
    renamed: dict[str, tuple[int, bytes]] = {}
    for name, (mode, data) in members.items():
        if name == info + "METADATA":
            data, count = re.subn(rb"(?m)^Version: .*$", b"Version: " + after.encode(), data, count=1)
            assert count == 1
        for part in (".dist-info/", ".data/"):  # both are named after the version
            name = name.replace(f"cutaway-{old[1]}{part}", f"cutaway-{after}{part}", 1)
        renamed[name] = (mode, data)
    mode, _ = renamed.pop(named + "RECORD")
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    for name in sorted(renamed):
        writer.writerow([name, record_hash(renamed[name][1]), len(renamed[name][1])])
    writer.writerow([named + "RECORD", "", ""])
    renamed[named + "RECORD"] = (mode, rows.getvalue().encode())
    output.mkdir(parents=True, exist_ok=True)
    target = output / plain.name.replace(f"cutaway-{old[1]}-", f"cutaway-{after}-", 1)
    stamp = time.gmtime(max(when, 315532800))[:6]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name in sorted(renamed, key=lambda n: (n.startswith(named), n)):  # dist-info comes last
            entry = zipfile.ZipInfo(name, stamp)
            entry.external_attr, entry.compress_type, entry.create_system = renamed[name][0], zipfile.ZIP_DEFLATED, 3
            file.writestr(entry, renamed[name][1])
    return target


def make_empty_environment(folder: pathlib.Path) -> pathlib.Path:
    """A new environment with the packages of this one, by links, and without Cutaway. Returns its Python."""
    venv.create(folder, with_pip=True, symlinks=True)
    here = pathlib.Path(sysconfig.get_paths()["purelib"])
    there = next(folder.glob("lib/python*/site-packages"))
    for path in here.iterdir():
        if not re.match(rf"({'|'.join(OWN)})(\W|$)", path.name) and not (there / path.name).exists():
            (there / path.name).symlink_to(path)
    return folder / "bin/python"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--no-test", action="store_true", help="do not try it in an empty environment")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cutaway-wheel-") as scratch:
        plain = build(pathlib.Path(scratch))
        wheel = name_torch(plain, options.output, importlib.metadata.version("torch"), epoch())
        print(f"wheel   {wheel}   sha256 {hashlib.sha256(wheel.read_bytes()).hexdigest()}", flush=True)
        if options.no_test:
            return 0
        python = make_empty_environment(pathlib.Path(scratch) / "empty")
        install = [
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--no-index",
            "--no-deps",
            wheel,
        ]
        subprocess.run(install, check=True)
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        clean["PATH"] = f"{python.parent}:{os.environ['PATH']}"
        done = subprocess.run(
            [python, ROOT / "tools/try_wheel.py", ROOT / "tests/old_files/0.1"], cwd=scratch, env=clean
        )
    print("tried   in an empty environment: " + ("all is well" if done.returncode == 0 else "FAILED"))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
