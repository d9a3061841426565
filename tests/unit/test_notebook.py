"""What graphs, verdicts, explanations and reductions show in a notebook: well-formed, without scripts, and with the user's lines."""

from __future__ import annotations

import html.parser

import cutaway
import torch
from cutaway import trace

VOID = {"br", "meta", "path", "line", "rect", "circle"}


class Tags(html.parser.HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, (tag, self.open)


def shown(value: object) -> str:
    text: str = value._repr_html_()  # type: ignore[attr-defined]
    assert "script" not in Tags(text).seen
    return text


def test_graph() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).sum()

    graph = trace.record(f, [torch.ones(3)])
    text = shown(graph)
    assert {"svg", "details"} <= Tags(text).seen and "aten.relu" in text and "test_notebook.py" in text
    assert "@scope (.cutaway)" in text


def test_a_graph_that_is_too_large_to_draw_says_so() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        for _ in range(400):
            x = x + 1
        return x

    text = shown(trace.record(f, [torch.ones(3)]))
    assert "svg" not in Tags(text).seen and 'class="quiet"' in text and "aten.add" in text


def test_verdict() -> None:
    good = shown(cutaway.same(torch.ones(3), torch.ones(3)))
    assert 'class="badge good"' in good
    bad = shown(cutaway.same({"x": [torch.ones(3)]}, {"x": [torch.tensor([1.0, 2.0, 1.0])]}))
    assert 'class="badge bad"' in bad and "1 of 3" in bad and "RMSE to fp64" in bad


def test_explain() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        print("<seen>")
        return y + 1

    text = shown(cutaway.explain(f)(torch.ones(2)))
    assert "1 break" in text and "2 graphs" in text
    assert (
        "test_notebook.py:" in text
        and "print(&quot;&lt;seen&gt;&quot;)" in text
        and {"svg", "table"} <= Tags(text).seen
    )


def test_a_reduction_without_a_report_shows_its_graph() -> None:
    graph = trace.record(torch.relu, [torch.ones(3)])
    answer = {"nodes_before": 2, "nodes_after": 1, "elements_before": 2, "elements_after": 1}
    assert "svg" in Tags(shown(cutaway.Reduced("p", graph, [], {}, answer, None, None))).seen


def test_a_report_is_in_a_frame(tmp_path) -> None:
    page = tmp_path / "report.html"
    page.write_text('<!doctype html><p>it\'s "this"</p><script>1</script>')
    graph = trace.record(torch.relu, [torch.ones(3)])
    text = shown(cutaway.Reduced("p", graph, [], {}, {}, None, str(page)))
    assert text.startswith("<iframe sandbox srcdoc=") and "&lt;script&gt;" in text
