"""The documentation: examples of its pages run, links lead somewhere, and the pages that are made of help texts and docstrings are whole."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import cutaway
import pytest

from tests.support.command import find_command
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [DOCS / "first_ten_minutes.md", *sorted((DOCS / "howto").glob("*.md"))]
ALL = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]


def examples(page: Path) -> str:
    """Its Python blocks, one program."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S))


WITH_EXAMPLES = [page for page in PAGES if examples(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(page, tmp_path):
    script = tmp_path / f"{page.stem}.py"
    script.write_text(examples(page))
    paths = os.pathsep.join(
        p for p in (str(Path(cutaway.__file__).parent.parent), os.environ.get("PYTHONPATH", "")) if p
    )
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_most_pages_have_examples():
    assert len(WITH_EXAMPLES) >= 4


def anchors(page: Path) -> set[str]:
    """Of the headings, as MkDocs makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", ALL, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"(?<!`)\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_every_page_of_the_site_is_there():
    site = (ROOT / "mkdocs.yml").read_text()
    made = {"index.md", *(f"reference/{n}.md" for n in ("commands", "python", "formats", "changelog"))}
    named = set(re.findall(r": ([\w/]+\.md)$", site, re.M))
    assert made <= named and all((DOCS / name).is_file() for name in named - made)


def test_pages_that_are_made(monkeypatch):
    spec = importlib.util.spec_from_file_location("write_site", ROOT / "tools/write_site.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    commands = tool.command_pages(find_command())
    assert "## cutaway triage" in commands and "## cutaway completion" in commands and "--check-calls" in commands
    python = tool.python_page()
    assert all(f"\n## {name}\n" in python for name in cutaway.__all__ if not name.startswith("_"))
    assert "no words yet" not in python, re.findall(r"## (\w+)\n(?:(?!## ).)*?no words yet", python, re.S)
    formats = tool.formats_page()
    assert all(f"(../formats/{p.name})" in formats for p in (DOCS / "formats").glob("*.md"))
    assert tool.with_links("[a](docs/x.md) [b](bench/R.md)", "../") == "[a](../x.md) b"
