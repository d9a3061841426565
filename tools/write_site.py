#!/usr/bin/env python3
"""Assembles the pages of the site in build/site_pages: docs/, README and changelog, and what the commands and docstrings say of themselves.

`make docs` runs it with the Python that has Cutaway, and MkDocs on what it wrote.
"""

from __future__ import annotations

import inspect
import pathlib
import re
import shutil
import subprocess
import sys

import cutaway

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "build/site_pages"


def command_pages(command: str) -> str:
    """--help of every command, as it is printed."""

    def help_of(*words: str) -> str:
        return subprocess.run([command, *words, "--help"], capture_output=True, text=True, check=True).stdout.rstrip()

    top = help_of()
    out = ["# Commands", "", "As `--help` prints them.", "", "```", top, "```", ""]
    for name in re.findall(r"^  ([a-z]+)  ", top.partition("Subcommands:")[2], re.M):
        out += [f"## cutaway {name}", "", "```", help_of(name), "```", ""]
    return "\n".join(out)


def python_page() -> str:
    """Signatures and docstrings of `cutaway.__all__`."""
    out = [
        "# Python",
        "",
        "What `import cutaway` gives, from the docstrings. Names that begin with `_` are not for you.",
        "",
    ]
    for name in sorted(cutaway.__all__, key=str.lower):
        if name.startswith("_"):
            continue
        value = getattr(cutaway, name)
        out += [f"## {name}", ""]
        text = inspect.getdoc(value) if not isinstance(value, str) else "A text: where `find_package(cutaway)` looks."
        if callable(value):
            try:
                out += ["```python", f"{name}{inspect.signature(value)}", "```", ""]
            except (TypeError, ValueError):  # of C++
                pass
        out += ["```text", text or "(no words yet)", "```", ""]
        if inspect.isclass(value):
            for member, thing in sorted(vars(value).items()):
                words = inspect.getdoc(thing) if not member.startswith("_") and not isinstance(thing, str) else None
                if words and (callable(thing) or isinstance(thing, property)):
                    out.append(f"- `{member}`: {' '.join(words.split())}".replace("<", "&lt;"))
            out.append("")
    return "\n".join(out)


def formats_page() -> str:
    rows = ["# Formats", "", "Every file that Cutaway writes has a page, a version and a strict reader.", ""]
    for path in sorted((ROOT / "docs/formats").glob("*.md")):
        title = path.read_text().splitlines()[0].lstrip("# ")
        rows.append(f"- [{title}](../formats/{path.name})")
    return "\n".join(rows) + "\n"


def with_links(text: str, prefix: str) -> str:
    """A page of the root as a page of the site: links into docs/ begin in the site; others are names of files."""
    text = re.sub(r"\]\(docs/", f"]({prefix}", text)
    return re.sub(r"\[([^\]]+)\]\((?:bench|tests|examples|src)/[^)]*\)", r"\1", text)


def main() -> None:
    command = pathlib.Path(sys.executable).with_name("cutaway")
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    (PAGES / "index.md").write_text(with_links((ROOT / "README.md").read_text(), ""))
    reference = PAGES / "reference"
    reference.mkdir()
    (reference / "changelog.md").write_text(with_links((ROOT / "CHANGELOG.md").read_text(), "../"))
    (reference / "commands.md").write_text(command_pages(str(command)))
    (reference / "python.md").write_text(python_page())
    (reference / "formats.md").write_text(formats_page())


if __name__ == "__main__":
    main()
