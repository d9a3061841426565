"""`cutaway report`, and the page that `cutaway minify` leaves beside its result."""

import html.parser
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cutaway
import pytest
import torch

from tests.support.command import find_command
from tests.support.patience import PATIENCE_S


def run(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CUTAWAY_PYTHON": sys.executable}
    command = [find_command(), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE_S)


GRAPH = """graph g(%x: f32[4, 8], %w: f32[8, 8]) {
  %a: f32[4, 8] = aten.mm(%x, %w)   # model.py:11 Net.forward
  %b: f32[4, 8] = aten.relu(%a)   # model.py:12 Net.forward
  %c: f32[4, 8] = aten.tanh(%b)   # model.py:13 Net.forward
  return (%c)
}
"""


class Page(html.parser.HTMLParser):
    """Elements with their attributes, headings, and what would reach outside the file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.references.append(value or "")


@pytest.fixture(scope="module")
def minimal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = tmp_path_factory.mktemp("report") / "start"
    torch.manual_seed(0)
    cutaway.save(str(bundle), cutaway.Graph.parse(GRAPH), [torch.randn(4, 8), torch.randn(8, 8)])
    ablation = [
        {"backend": "eager", "outcome": "pass", "seconds": 0.1, "detail": ""},
        {"backend": "fault", "outcome": "exception", "seconds": 0.2, "detail": "cannot lower <aten.relu>"},
    ]
    (bundle / "ablation.json").write_text(json.dumps(ablation))
    result = run("minify", bundle, "--backend", "fault:exception:aten.relu", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["report"] == str(Path(answer["bundle"]) / "report.html")
    return Path(answer["bundle"])


def test_minify_leaves_a_page(minimal: Path) -> None:
    text = (minimal / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    sections = {"failure", "ablation", "graph", "certificate", "environment", "next"}
    assert sections <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert "script" not in page.tags and page.tags.count("svg") == 1 and page.tags.count("h1") == 1
    assert all(reference.startswith("#") for reference in page.references)
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    for fact in (
        "RuntimeError in aten.relu",
        "model.py:12",
        "cannot lower &lt;aten.relu&gt;",
        "One-minimal",
        "3 to 1 node",
        torch.__version__,
        "cutaway run start-minimal",
    ):
        assert fact in text, fact


def test_report_makes_the_same_page_again(minimal: Path) -> None:
    page = minimal / "report.html"
    before = page.read_bytes()
    page.unlink()
    result = run("report", minimal)
    assert (result.returncode, result.stdout) == (0, f"report         {page}\n"), result.stderr
    assert page.read_bytes() == before
    answer = json.loads(run("report", minimal, "--json").stdout)
    assert (answer["outcome"], answer["report"], answer["bundle"]) == ("pass", str(page), str(minimal))


def test_an_analysis_is_plotted(minimal: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "with analysis"
    shutil.copytree(minimal, bundle)
    row = {"op": "aten.relu", "local_error": 0.5, "cumulative_error": "inf", "verdict": "WRONG (first)"}
    (bundle / "analysis.json").write_text(json.dumps([{**row, "node": "%b"}]))
    assert run("report", bundle).returncode == 0
    text = (bundle / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert {"errors", "plot-wide-title", "plot-narrow-title"} <= set(page.ids)
    assert "cutaway run &#39;with analysis&#39;" in text


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("ablation.json", '[{"backend": "eager"}]', "ablation.json"),
        ("analysis.json", '{"version": 2}', "expected an array, got an object"),
        ("certificate.json", '{"version": 7, "one_minimal": true}', "version 7 is not known"),
    ],
)
def test_evidence_that_cannot_be_read(minimal: Path, tmp_path: Path, name: str, text: str, complaint: str) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(minimal, bundle)
    (bundle / "report.html").unlink()
    (bundle / name).write_text(text)
    result = run("report", bundle)
    assert result.returncode == 2
    assert name in result.stderr and complaint in result.stderr
    assert not (bundle / "report.html").exists()


def test_a_directory_that_is_no_bundle(tmp_path: Path) -> None:
    result = run("report", tmp_path)
    assert result.returncode == 2
    assert result.stderr == (
        f"cutaway: {tmp_path}: is no bundle\n"
        "   because: it has no manifest.json and graph.cut\n"
        "   try: the directory of a bundle, such as `cutaway minify` writes\n"
    )
    assert list(tmp_path.iterdir()) == []
    result = run("report", tmp_path / "absent")
    assert result.returncode == 2 and "is no directory" in result.stderr


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_fits_a_browser(minimal: Path, tmp_path: Path, width: int) -> None:
    """In a frame of that width, measured by the browser: it does not scroll sideways, and its picture has a size.

    A frame, because headless windows have a least width. The measuring page is ours; the report has no script."""
    probe = tmp_path / "probe.html"
    page = (minimal / "report.html").as_uri()
    probe.write_text(f"""<iframe style="width:{width}px;height:844px;border:0" src="{page}"></iframe><p></p>
<script>onload = () => {{
  const page = document.querySelector("iframe").contentDocument, root = page.documentElement;
  const height = page.querySelector("svg").getBoundingClientRect().height;
  document.querySelector("p").textContent = "measured " + (root.scrollWidth <= root.clientWidth) + " " + (height > 100);
}}</script>""")
    words = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    result = subprocess.run(
        ["chromium", *words, "--dump-dom", probe.as_uri()], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert "measured true true" in result.stdout, result.stdout[-400:]
