"""Draws docs/picture.svg, the picture of the README, from a real run: a block of a transformer whose gelu a planted fault makes wrong goes
through `cutaway analyze` and `cutaway minify`, and the drawings of their two reports are put side by side.

    python tools/draw_picture.py [COMMAND]      # the command `cutaway`; default: the one of this environment
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cutaway
import torch

ROOT = Path(__file__).resolve().parent.parent
FAULT = "fault:wrong:aten.gelu"
GAP, TOP, MARGIN = 48, 64, 16


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.up = torch.nn.Linear(16, 64)
        self.down = torch.nn.Linear(64, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def drawing(report: Path) -> tuple[str, float, float, str]:
    """The graph of a report: what is inside of its svg element, its size, and the page's style."""
    page = report.read_text()
    found = re.search(r'<svg class="graph"[^>]* viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>(.*?)</svg>', page, re.S)
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    if not found or not style:
        sys.exit(f"{report} has no drawing")
    inside = re.sub(r"<(title|desc)[^>]*>.*?</\1>", "", found[3], flags=re.S)
    return inside, float(found[1]), float(found[2]), style[1]


def rules_of(style: str) -> str:
    """The colours of the page, light and dark, and what its rules say of drawings."""
    variables = re.findall(r":root\s*{[^}]*}|@media \(prefers-color-scheme: dark\)\s*{\s*:root\s*{[^}]*}\s*}", style)
    used = ("svg text", "svg.graph text", "svg .box", "svg .edge", "svg .tip")
    rules = [r for r in re.findall(r"^svg[^{]*{[^}]*}", style, re.M) if r.startswith(used)]
    return "\n".join([*variables, *rules])


def main() -> int:
    command = sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).parent / "cutaway")
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        program = torch.export.export(Block(), (torch.randn(4, 16),))
        cutaway.save(f"{folder}/block", cutaway.Graph.from_export(program), [torch.randn(4, 16)])
        for words in (["analyze"], ["minify", "--accuracy", "--first", "aten.gelu"]):
            done = [command, words[0], "block", "--backend", FAULT, *words[1:]]
            subprocess.run(done, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        whole, width, height, style = drawing(Path(folder, "block/report.html"))
        small, small_width, small_height, _ = drawing(Path(folder, "block-minimal/report.html"))

    def text(x: float, y: float, kind: str, words: str) -> str:
        return f'<text class="{kind}" x="{x:g}" y="{y:g}" style="text-anchor: start">{words}</text>'

    right = MARGIN + width + GAP
    total = right + max(small_width, 330) + MARGIN
    tall = TOP + height + MARGIN
    middle = TOP + (height - small_height) / 2
    parts = [
        f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:g} {tall:g}" width="{total:g}" height="{tall:g}" role="img">',
        "<title>A graph with one wrong operator, found by cutaway analyze, and what cutaway minify leaves of it</title>",
        f"<style>\n{rules_of(style)}\n</style>",
        '<rect width="100%" height="100%" style="fill: var(--ground)"/>',
        text(MARGIN, 24, "name", "cutaway analyze"),
        text(MARGIN, 44, "detail", "which operator is wrong first?"),
        text(right, middle - 40, "name", "cutaway minify"),
        text(right, middle - 20, "detail", "the smallest graph that is still wrong"),
        f'<g transform="translate({MARGIN} {TOP})">{whole}</g>',
        f'<g transform="translate({right:g} {middle:g})">{small}</g>',
        "</svg>\n",
    ]
    target = ROOT / "docs/picture.svg"
    target.write_text("\n".join(parts))
    print(f"{target.relative_to(ROOT)}: {total:g} x {tall:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
