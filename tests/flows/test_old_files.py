"""Files that earlier versions wrote stay readable, and mean what they meant. tests/old_files/VERSION are never written again."""

import json
import subprocess
from pathlib import Path

import cutaway
import pytest
import torch

from tests.old_files.write import sum_of

OLD = Path(__file__).parents[1] / "old_files"
VERSIONS = sorted(p.name for p in OLD.iterdir() if (p / "answers.json").is_file())
CASES = [
    (version, name, answer)
    for version in VERSIONS
    for name, answer in json.loads((OLD / version / "answers.json").read_text()).items()
]


def test_there_are_some():
    assert "0.1" in VERSIONS and len(CASES) >= 8


@pytest.mark.parametrize(("version", "name", "answer"), CASES, ids=[f"{v}-{n}" for v, n, _ in CASES])
def test_a_bundle(version, name, answer, ask):
    path = OLD / version / name
    if answer["graph"] is not None:
        bundle = cutaway.load(path)
        assert str(bundle.graph) == answer["graph"]
        assert [sum_of(v) for v in bundle.inputs] == answer["sums"]
        assert bundle.manifest["version"] == 1
        if name == "kinds":
            assert bundle.inputs[0].stride() == (5, 1)  # a view, as it was
        if name == "passes":
            assert isinstance(bundle.inputs[0], torch.nn.Parameter)
    assert ask("show", path).code == 0
    done = ask("run", "--json", *answer["words"], path)
    told = {k: done.json[k] for k in ("outcome", "kind", "stage")}
    assert (done.code, told) == (answer["status"], {k: answer[k] for k in told}), done.json["message"]


@pytest.mark.parametrize("version", VERSIONS)
def test_other_files(version, ask, tmp_path):
    folder = OLD / version
    assert ask("diff", folder / "graph.cut", folder / "passes").code == 0
    done = ask("import", folder / "archive.tar", "-o", tmp_path / "unpacked")
    assert done.code == 0, done.err
    assert ask("diff", tmp_path / "unpacked", folder / "raises").code == 0
    # report.html is made from the certificate of the reduction that wrote it
    small = tmp_path / "minimal"
    subprocess.run(["cp", "-r", folder / "minimal", small], check=True)
    (small / "report.html").unlink()
    assert ask("report", small).code == 0
    assert "one-minimal" in (small / "report.html").read_text() or "How sure" in (small / "report.html").read_text()
