"""Checks that includes follow the folder table of ARCHITECTURE.md.

Reads the table ("| `src/core/ir` (-) | … | base |"), then every #include "…" under src/, and reports each that points to a
folder the table does not allow, each folder that the table does not name, and libtorch or Python headers in (-) folders. The table
of where to begin must have a row for every folder, with a header that exists.

A folder inside a folder of the table is a room of it: it shares the target and the namespace, has a row of its own, and may use what
that row says: other rooms, the folder around it, and some of what the folder around it may use.

Examples include no header of ours that the table of public headers does not name. A test file of a (-) folder has a namespace of its own: such
files are compiled together.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIERS = ["core", "compiler", "diagnosis", "app"]
ROW = re.compile(r"^\| `src/(?P<folder>[\w/]+)`(?P<plain> \(-\))? \|[^|]*\|(?P<uses>[^|]*)\|$")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>["<])(?P<path>[^">]+)[">]')
BEGIN = re.compile(r"^\| (?P<leaf>\w+) \| `(?P<header>\w+\.h)` \|", re.M)  # "Where to begin in a folder"
PUBLIC = re.compile(r"^\| (?P<headers>`[\w/]+/\w+\.h`(?:, `[\w/]+\.h`)*) \|", re.M)  # "Headers for C++ users"
FOREIGN = re.compile(r"^(ATen|c10|torch|nanobind|Python\.h)")


def read_table() -> tuple[dict[str, set[str]], set[str]]:
    uses: dict[str, set[str]] = {}
    plain: set[str] = set()
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        if row := ROW.match(line):
            uses[row["folder"]] = set(row["uses"].split())
            if row["plain"]:
                plain.add(row["folder"])
    return uses, plain


def folder_around(folder: str, uses: dict[str, set[str]]) -> str | None:
    """The folder that a room is in; none for other folders."""
    around = folder.rsplit("/", 1)[0]
    return around if around in uses else None


def has_namespace(path: Path) -> bool:
    """Not needed where CMakeLists.txt compiles the file alone."""
    text, settings = path.read_text(), (ROOT / "CMakeLists.txt").read_text()
    named = re.search(rf"^namespace ({path.stem}|cutaway\S*) {{", text, re.M)
    return bool(named) or f"/{path.name} " in settings or f"/{path.stem}\\\\.cc" in settings


def check_examples(problems: list[str]) -> None:
    rows = PUBLIC.findall((ROOT / "ARCHITECTURE.md").read_text())
    public = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    problems += [
        f"ARCHITECTURE.md: the public header src/{h} does not exist" for h in public if not (ROOT / "src" / h).exists()
    ]
    installed = re.search(r"set\(public_headers ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())
    if not installed or set(installed[1].split()) != public:
        problems.append("CMakeLists.txt: public_headers are not those of ARCHITECTURE.md's table of public headers")
    for path in sorted((ROOT / "examples").rglob("*.cc")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            if include and include["open"] == '"' and include["path"] not in public:
                problems.append(
                    f'examples/{path.name}:{number}: "{include["path"]}" is not in ARCHITECTURE.md\'s table of public headers'
                )


def main() -> int:
    uses, plain = read_table()
    if not uses:
        print("ARCHITECTURE.md: no folder table found")
        return 1
    leaf_to_folder = {folder.rsplit("/", 1)[1]: folder for folder in uses}
    problems = []
    for folder, leaves in uses.items():
        for leaf in leaves:
            target = leaf_to_folder.get(leaf)
            if target is None:
                problems.append(f"ARCHITECTURE.md: {folder} may use `{leaf}`, which is no folder of the table")
            elif TIERS.index(target.split("/")[0]) > TIERS.index(folder.split("/")[0]):
                problems.append(f"ARCHITECTURE.md: {folder} may not use {target}: an include may only point left")
            elif around := folder_around(target, uses):
                if folder != around and folder_around(folder, uses) != around:
                    problems.append(f"ARCHITECTURE.md: {folder} may not use {target}, a room of {around}")
            elif (around := folder_around(folder, uses)) and target != around and leaf not in uses[around]:
                problems.append(f"ARCHITECTURE.md: {folder} may not use {target}, which {around} may not use")
    begins = dict(BEGIN.findall((ROOT / "ARCHITECTURE.md").read_text()))
    for leaf, folder in leaf_to_folder.items():
        if leaf not in begins:
            problems.append(f"ARCHITECTURE.md: the table of where to begin has no row for {leaf}")
        elif not (ROOT / "src" / folder / begins[leaf]).exists():
            problems.append(f"ARCHITECTURE.md: src/{folder}/{begins[leaf]}, where to begin, does not exist")
    files = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in {".h", ".cc", ".inc"})
    for path in files:
        relative = path.relative_to(ROOT / "src")
        folder = str(relative.parent)
        if folder not in uses:
            problems.append(f"src/{relative}: the folder src/{folder} is not in ARCHITECTURE.md's table")
            continue
        is_test = path.stem.endswith(("_test", "_fuzz"))
        if folder in plain and path.stem.endswith("_test") and not has_namespace(path):
            problems.append(
                f"src/{relative}: wrap all but the includes in `namespace {path.stem} {{ … }}`: its helpers would meet those of other tests"
            )
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            if not include:
                continue
            place = f"src/{relative}:{number}"
            target = include["path"]
            if FOREIGN.match(target) and folder in plain:
                problems.append(f"{place}: <{target}> in a folder that must build without libtorch and Python")
            if include["open"] == "<" or target.startswith("tests/"):
                continue
            target_folder = target.rsplit("/", 1)[0]
            if target_folder == folder or is_test and target_folder in uses:
                continue
            if target_folder not in uses:
                problems.append(f'{place}: "{target}" is not a path from src/')
            elif target_folder.rsplit("/", 1)[1] not in uses[folder]:
                problems.append(f'{place}: "{target}": ARCHITECTURE.md does not let {folder} use {target_folder}')
    check_examples(problems)
    for problem in problems:
        print(problem)
    print(f"layers: {len(files)} files, {len(uses)} folders, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
