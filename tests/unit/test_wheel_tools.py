"""What `make wheel` and `make sdist` do beside the build itself: names, records, and the same bytes from the same content."""

import base64
import hashlib
import importlib.util
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("make_wheel", ROOT / "tools/make_wheel.py")
make_wheel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_wheel)


@pytest.fixture
def plain(tmp_path):
    """A wheel as a build leaves it: members in any order, with the time of the build."""

    def write(folder, year, order):
        members = {
            "cutaway/__init__.py": b"",
            "cutaway/_native.so": b"code",
            "cutaway-0.1.0.data/scripts/cutaway": b"program",
            "cutaway-0.1.0.dist-info/METADATA": b"Metadata-Version: 2.4\nName: cutaway\nVersion: 0.1.0\n\nVersion: of the text\n",
            "cutaway-0.1.0.dist-info/RECORD": b"old\n",
        }
        path = tmp_path / folder / "cutaway-0.1.0-cp311-cp311-linux_x86_64.whl"
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as file:
            for name in sorted(members, reverse=order):
                entry = zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0))
                entry.external_attr = (0o755 if name.endswith("/cutaway") else 0o644) << 16
                file.writestr(entry, members[name])
        return path

    return write


def test_the_version_names_the_torch(plain, tmp_path):
    wheel = make_wheel.name_torch(plain("a", 2020, False), tmp_path / "out", "2.13.0+cpu", 1_700_000_000)
    assert wheel.name == "cutaway-0.1.0+torch2.13.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        metadata = file.read("cutaway-0.1.0+torch2.13.0.dist-info/METADATA").decode()
        rows = [r.split(",") for r in file.read("cutaway-0.1.0+torch2.13.0.dist-info/RECORD").decode().splitlines()]
        assert "Version: 0.1.0+torch2.13.0\n" in metadata and metadata.endswith("\nVersion: of the text\n")
        assert {r[0] for r in rows} == set(names) and names[-1].startswith("cutaway-0.1.0+torch2.13.0.dist-info/")
        for name, digest, size in rows[:-1]:
            data = file.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == ("sha256=" + found, str(len(data)))
        command = file.getinfo("cutaway-0.1.0+torch2.13.0.data/scripts/cutaway")
        assert command.external_attr >> 16 == 0o755


def test_the_same_content_has_the_same_bytes(plain, tmp_path):
    made = [
        make_wheel.name_torch(plain(f, year, order), tmp_path / f / "out", "2.13.0", 1_700_000_000).read_bytes()
        for f, year, order in (("a", 2020, False), ("b", 2024, True))
    ]
    assert made[0] == made[1]


def test_sdist(tmp_path):
    made = []
    for folder in ("a", "b"):
        tool = [sys.executable, ROOT / "tools/make_sdist.py", "--output", tmp_path / folder]
        subprocess.run(tool, check=True, capture_output=True)
        made.append(next((tmp_path / folder).glob("cutaway-*.tar.gz")))
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as file:
        names = {n.partition("/")[2] for n in file.getnames()}
    needed = {"CMakeLists.txt", "pyproject.toml", "LICENSE", "src/app/cli/main.cc", "python/pytest_cutaway/__init__.py"}
    assert needed | {"tools/fetch_headers", "python/cutaway/py.typed"} <= names
    assert not [n for n in names if n.startswith((".venv", ".deps", "build/", "dist/")) or n.endswith((".so", ".pyc"))]
