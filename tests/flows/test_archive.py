"""A bundle as one .tar: what Python's tarfile, GNU tar and we write is read; what a stranger could hide in one is refused."""

import io
import json
import shutil
import subprocess
import tarfile

import cutaway
import pytest
import torch

from tests.support.bundles import write_bundle

GRAPH = "graph g(%x: f32[2, 3]) {\n  %y: f32[2, 3] = aten.relu(%x)\n  %z: f32[2, 3] = aten.sin(%y)\n  return (%z)\n}\n"


@pytest.fixture
def bundle(tmp_path):
    return write_bundle(
        tmp_path / "bundle", cutaway.Graph.parse(GRAPH), [torch.ones(2, 3)], backend="fault:exception:aten.sin"
    )


def pack(bundle, path, format, name="bundle"):
    with tarfile.open(path, "w", format=format) as tar:
        tar.add(bundle, name)
    return path


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_tarfile(ask, bundle, tmp_path, format):
    archive = pack(bundle, tmp_path / "a.tar", format, name="x" * 90 if format != tarfile.USTAR_FORMAT else ".")
    shown = ask("show", archive)
    assert shown.code == 0 and "aten.relu(%x)" in shown.out
    assert ask("diff", archive, bundle).code == 0
    run = ask("run", archive, "--json")
    assert run.code == 1 and run.json["bundle"] == str(archive)


def test_gnu_tar_and_minify(ask, bundle, tmp_path):
    archive = tmp_path / "sent.tar"
    subprocess.run(["tar", "-C", tmp_path, "-cf", archive, "bundle"], check=True)
    shutil.rmtree(bundle)
    done = ask("minify", archive, "--json")
    assert done.code == 0, done.err
    assert done.json["nodes_after"] == 1 and (tmp_path / "sent-minimal" / "repro.py").exists()


def test_what_is_found_out_goes_beside_the_archive(ask, bundle, tmp_path):
    archive = pack(bundle, tmp_path / "sent.tar", tarfile.PAX_FORMAT)
    before = archive.read_bytes()
    done = ask("analyze", archive, "--json")
    assert done.code == 0, done.err
    assert done.json["first_wrong"]["operator"] == "aten.sin" and done.json["bundle"] == str(archive)
    assert done.json["written"] == str(tmp_path / "sent.analysis.json")
    page = tmp_path / "sent.report.html"
    assert done.json["report"] == str(page) and "cutaway run sent.tar" in page.read_text()
    page.unlink()
    again = ask("report", archive, "--json")
    assert again.code == 0 and again.json["report"] == str(page) and "first wrong" in page.read_text()
    assert "sent.tar --accuracy --first aten.sin" in ask("analyze", archive).out
    assert archive.read_bytes() == before
    refused = ask("bisect", archive)
    assert refused.code == 2 and f"{archive}: the backend" in refused.err


def entry(name, data=b"", kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    return info, data


HOSTILE = {
    "a symbolic link": entry("bundle/blobs", kind=tarfile.SYMTYPE, link="/etc"),
    "a hard link": entry("bundle/graph.cut", kind=tarfile.LNKTYPE, link="/etc/passwd"),
    "its path is absolute": entry("/tmp/cutaway-escaped", b"1"),
    "leaves the archive's folder": entry("bundle/../../escaped", b"1"),
    "comes twice": entry("./bundle/manifest.json", b"{}"),
    "a named pipe": entry("bundle/pipe", kind=tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile(ask, bundle, tmp_path, words):
    archive = pack(bundle, tmp_path / "a.tar", tarfile.PAX_FORMAT)
    with tarfile.open(archive, "a") as tar:
        info, data = HOSTILE[words]
        tar.addfile(info, io.BytesIO(data))
    done = ask("run", archive)
    assert done.code == 2 and done.out == ""
    assert done.err.startswith(f"cutaway: {archive}: ") and words in done.err
    assert not (tmp_path / "escaped").exists()


def test_other_files(ask, bundle, tmp_path):
    archive = pack(bundle, tmp_path / "a.tar", tarfile.PAX_FORMAT)
    cut = tmp_path / "cut.tar"
    cut.write_bytes(archive.read_bytes()[:3000])
    assert "is truncated" in ask("show", cut).err
    empty = tmp_path / "other.tar"
    with tarfile.open(empty, "w") as tar:
        tar.addfile(*[entry("a.txt", b"1")[0], io.BytesIO(b"1")])
    assert "is not the archive of a bundle" in ask("run", empty).err
    altered = json.loads((bundle / "manifest.json").read_text()) | {"surprise": 1}
    (bundle / "manifest.json").write_text(json.dumps(altered))
    assert "surprise" in ask("show", pack(bundle, tmp_path / "b.tar", tarfile.PAX_FORMAT)).err


def test_export(ask, bundle, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert ask("export", bundle, "-o", tmp_path / name / "x.tar").code == 0
        for file in bundle.rglob("*"):
            file.touch()  # other times: the bytes must not show them
    one, two = (tmp_path / name / "x.tar" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as tar:
        names = tar.getnames()
        assert "x/manifest.json" in names and names == sorted(names)
        assert {m.mtime for m in tar.getmembers()} == {0}
    assert ask("diff", one, bundle).code == 0
    (bundle / "link").symlink_to("/etc/passwd")
    assert "is not a plain file" in ask("export", bundle, "-o", one).err


def test_a_bundle_without_data_has_no_blobs(ask, tmp_path):
    """Neither a .tar of ours nor git keeps an empty folder."""
    text = "graph g() {\n  %y: f32[2] = aten.ones([2])\n  %z: f32[2] = aten.sin(%y)\n  return (%z)\n}\n"
    bundle = write_bundle(tmp_path / "b", cutaway.Graph.parse(text), [], backend="fault:exception:aten.sin")
    shutil.rmtree(bundle / "blobs", ignore_errors=True)
    assert ask("run", bundle).code == 1
    assert ask("export", bundle, "-o", tmp_path / "b.tar").code == 0
    assert ask("run", tmp_path / "b.tar").code == 1
