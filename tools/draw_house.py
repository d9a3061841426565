"""Draws the house: the folders of src/, their size, and the arrows between them, into ARCHITECTURE.md (`make house`).

The drawing comes from the #include lines, so it shows what is used, where the folder table says what may be used. An arrow that
follows from two others is left out. Sizes are rounded, tests not counted. With --check nothing is written: a folder or an arrow
that differs is an error, a size only when it is off by more than a quarter, so that everyday changes need no new drawing.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN = "<!-- drawn by tools/draw_house.py: do not edit -->"
END = "<!-- end of the drawing -->"
TIERS = ["app", "diagnosis", "compiler", "core"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"(?P<folder>[\w/]+)/[\w.]+"', re.M)
NODE = re.compile(r'(?P<leaf>\w+)\["\w+<br>(?P<lines>[\d,]+) lines"\]')


def without_room(folder: str) -> str:
    """The rooms of a folder are drawn as one: "compiler/capture/values" is "compiler/capture"."""
    return "/".join(folder.split("/")[:2])


def read_tree() -> tuple[dict[str, int], dict[str, set[str]]]:
    """Lines of each folder ("core/ir"), and the folders that it includes."""
    lines: dict[str, int] = {}
    uses: dict[str, set[str]] = {}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cc", ".inc"} or path.stem.endswith(("_test", "_fuzz")):
            continue
        folder = without_room(str(path.relative_to(ROOT / "src").parent))
        text = path.read_text()
        lines[folder] = lines.get(folder, 0) + text.count("\n")
        uses.setdefault(folder, set()).update({without_room(f) for f in INCLUDE.findall(text)} - {folder})
    return lines, {folder: {t for t in targets if t in lines} for folder, targets in uses.items()}


def reach(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """All folders that each one includes, directly or through others."""
    found: dict[str, set[str]] = {}

    def visit(folder: str) -> set[str]:
        if folder not in found:
            found[folder] = set()  # a cycle ends here; check_layers.py reports it
            found[folder] = uses[folder].union(*(visit(t) for t in uses[folder]))
        return found[folder]

    for folder in uses:
        visit(folder)
    return found


def rounded(n: int) -> int:
    step = 100 if n >= 1000 else 10
    return max(step, round(n / step) * step)


def draw(lines: dict[str, int], uses: dict[str, set[str]]) -> str:
    reached = reach(uses)
    arrows = []
    for folder in sorted(uses):
        through = set().union(*(reached[t] for t in uses[folder]), set())
        arrows += [(folder, t) for t in sorted(uses[folder] - through)]

    def leaf(folder: str) -> str:
        return folder.rsplit("/", 1)[1]

    total = sum(lines.values())
    out = [BEGIN, "```mermaid", "flowchart TD"]
    tiers = sorted({f.split("/")[0] for f in lines}, key=lambda t: (TIERS.index(t) if t in TIERS else -1, t))
    for tier in tiers:
        out.append(f"  subgraph {tier}")
        out += [
            f'    {leaf(f)}["{leaf(f)}<br>{rounded(lines[f]):,} lines"]'
            for f in sorted(lines)
            if f.split("/")[0] == tier
        ]
        out.append("  end")
    out += [f"  {leaf(a)} --> {leaf(b)}" for a, b in arrows]
    out += [
        "```",
        f"{rounded(total):,} lines of C++ without tests, in {len(lines)} folders. An arrow that follows from others is left out.",
        END,
    ]
    return "\n".join(out)


def differences(old: str, new: str) -> list[str]:
    """What a reader of the old drawing would get wrong."""
    old_sizes = {m["leaf"]: int(m["lines"].replace(",", "")) for m in NODE.finditer(old)}
    new_sizes = {m["leaf"]: int(m["lines"].replace(",", "")) for m in NODE.finditer(new)}
    arrow = re.compile(r"^  (\w+ --> \w+)$", re.M)
    found = [f"the folder {f} is not in the drawing" for f in sorted(new_sizes.keys() - old_sizes.keys())]
    found += [f"the folder {f} is drawn and gone" for f in sorted(old_sizes.keys() - new_sizes.keys())]
    found += [
        f"{f} has about {n:,} lines, the drawing says {old_sizes[f]:,}"
        for f, n in new_sizes.items()
        if f in old_sizes and abs(n - old_sizes[f]) > max(100, old_sizes[f] / 4)
    ]
    found += [f"the arrow {a} is missing" for a in sorted(set(arrow.findall(new)) - set(arrow.findall(old)))]
    found += [f"the arrow {a} is drawn and gone" for a in sorted(set(arrow.findall(old)) - set(arrow.findall(new)))]
    return found


def steps_that_are_gone(page: str) -> list[str]:
    """Of the ways through the house: `folder/file.cc:function` that the tree does not have."""
    found = []
    for name, function in re.findall(r"`([\w/]+\.(?:cc|h|py)):(\w+)`", page):
        file = ROOT / name if name.startswith("python/") else ROOT / "src" / name
        if not file.exists():
            found.append(f"there is no file {name}")
        elif not re.search(rf"\b{function}\(", file.read_text()):
            found.append(f"{name} has no function {function}")
    return found


def main() -> int:
    page = PAGE.read_text()
    if BEGIN not in page or END not in page:
        print(
            f"ARCHITECTURE.md: the place of the drawing is missing; put these two lines where it should be:\n{BEGIN}\n{END}"
        )
        return 1
    before, rest = page.split(BEGIN, 1)
    old, after = rest.split(END, 1)
    new = draw(*read_tree())
    if "--check" not in sys.argv:
        PAGE.write_text(before + new + after)
        return 0
    problems = differences(old, new)
    for problem in problems:
        print(f"ARCHITECTURE.md: {problem}; try: make house")
    gone = steps_that_are_gone(page)
    for problem in gone:
        print(f"ARCHITECTURE.md, the ways through the house: {problem}")
    problems += gone
    print(f"house: {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
