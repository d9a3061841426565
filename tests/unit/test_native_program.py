"""The debug directory of the backend native: every file has a writer, and output_code is a program that compiles, runs and compares."""

import os
import re
import subprocess
import sys
import textwrap
import xml.dom.minidom

import pytest

PROGRAM = textwrap.dedent(
    """\
    import sys, torch, torch.nn.functional as F, cutaway

    def f(x, w, b, i):
        h = F.layer_norm(x, (40,), b)
        y = F.gelu(h @ w + 1)
        y = torch.sort(y.to(torch.bfloat16).float()).values * 2
        if y.sum() > 1e9:
            print("never")
        return torch.softmax(y, -1), y.sum(0), y > i

    torch.manual_seed(0)
    x, w, b = (torch.randn(*s, requires_grad=True) for s in ((24, 40), (40, 16), (40,)))
    f = cutaway.compile(f, backend=sys.argv[1])
    out = f(x, w, b, torch.arange(16))
    (out[0].square().sum() + out[1].sum()).backward()
    """
)


def run(folder, backend="native:wait", level="5", files="profile,diagram"):
    (folder / "model.py").write_text(PROGRAM)
    environment = {**os.environ, "CUTAWAY_DEBUG": level, "CUTAWAY_DEBUG_FILES": files, "CUTAWAY_DEBUG_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "model.py", backend], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return next((folder / "cutaway_debug").iterdir())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return run(tmp_path_factory.mktemp("native_debug"))


def build_and_run(file, *words):
    """As the first line of the file says."""
    line = file.read_text().splitlines()[0]
    assert line.startswith("// ")
    return subprocess.run(
        ["sh", "-c", line[3:] + " " + " ".join(words)], cwd=file.parent, capture_output=True, text=True, check=False
    )


def test_every_row_of_the_table_has_a_writer(written, tmp_path):
    said = subprocess.run(
        [sys.executable, "-c", "import cutaway"], env={**os.environ, "CUTAWAY_DEBUG_FILES": "nonsense"}, capture_output=True, text=True, check=False
    ).stderr  # fmt: skip
    rows = set(re.search(r"one of (.+)", said)[1].replace(" and ", ", ").replace(" or ", ", ").split(", "))
    assert {"events", "output_code", "diagram"} <= rows
    found = {path.name.split(".")[0] for path in written.rglob("*") if path.is_file()}
    assert rows - found == set()


def programs(written):
    return sorted(written.glob("native/*/output_code.cpp"))


def test_output_code_is_a_program(written):
    files = programs(written)
    assert len(files) >= 2  # forward and backward
    for file in files:
        assert set(re.findall(r"#include <(.+)>", file.read_text())) <= {
            "math.h",
            "stdio.h",
            "stdlib.h",
            "string.h",
            "time.h",
        }
        done = build_and_run(file)
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"^0 of [1-9]\d* values differ from those recorded: all agree$", done.stdout, re.M), (
            done.stdout
        )
        assert "native.k" in done.stdout and "model.py" in done.stdout


def test_a_wrong_kernel_is_seen_by_the_program(written, tmp_path):
    file = next(p for p in programs(written) if "forward" in p.parent.name)
    text = file.read_text()
    edited = re.sub(r"(const F gelu\w* = )(.+);", r"\1\2 + 1;", text, count=1)
    assert edited != text
    (tmp_path / "output_code.cpp").write_text(edited)
    (tmp_path / "values.bin").write_bytes((file.parent / "values.bin").read_bytes())
    done = build_and_run(tmp_path / "output_code.cpp")
    assert done.returncode == 1 and "WRONG" in done.stdout, done.stdout + done.stderr


def test_without_values_numbers_are_made_up(written, tmp_path):
    (tmp_path / "output_code.cpp").write_text(programs(written)[0].read_text())
    done = build_and_run(tmp_path / "output_code.cpp")
    assert done.returncode == 0 and "made up by a fixed generator, and nothing is compared" in done.stdout, (
        done.stdout + done.stderr
    )


def test_a_file_of_values_that_is_cut_off(written, tmp_path):
    file = programs(written)[0]
    (tmp_path / "output_code.cpp").write_text(file.read_text())
    (tmp_path / "values.bin").write_bytes((file.parent / "values.bin").read_bytes()[:-1])
    done = build_and_run(tmp_path / "output_code.cpp")
    assert done.returncode == 2 and "values.bin: cannot be read" in done.stderr


def test_the_picture_and_the_instructions(written):
    for folder in {p.parent for p in programs(written)}:
        xml.dom.minidom.parse(str(folder / "diagram.svg"))
        text = (folder / "instructions.txt").read_text()
        assert re.search(r"^\d+ +kernel +%.+ = native\.k0\(.*\).*# model.py:\d+$", text, re.M), text
        assert "frees %" in text and text.splitlines()[-1].startswith("return  %")
        assert (
            (folder / "profile.txt").read_text().startswith("captured__")
        )  # its calls are counted when they are watched


def test_lines_of_the_model_in_the_text(tmp_path):
    written = run(tmp_path, "native:wait:lines", "4", "")
    text = programs(written)[0].read_text()
    assert f'#line 5 "{tmp_path / "model.py"}"' in text and '"output_code.cpp"' in text
    assert build_and_run(programs(written)[0]).returncode == 0
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):  # behind a mark the text's own lines count on
        if found := re.match(r'#line (\d+) "output_code.cpp"', line):
            assert int(found[1]) == number + 1
