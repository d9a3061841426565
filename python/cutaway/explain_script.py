"""``python -m cutaway.explain_script [--format FORMAT] SCRIPT [ARGS…]``: runs a script and tells what its compiled functions became.

``torch.compile`` of the script is ``cutaway.compile`` while it runs, so that the breaks, guards and recompiles told are
those of Cutaway's capture.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

import cutaway

from . import _native, _program
from ._explain import _indented, _listening, _reason


class Account:
    """What happened, per function, in the order in which functions were met."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def listen(self, record: dict[str, Any]) -> None:
        self.records.append(
            {**{k: v for k, v in record.items() if k != "graph"}, "has_graph": record["graph"] is not None}
        )

    def count(self, wanted: Callable[[dict[str, Any]], bool]) -> int:
        return sum(map(wanted, self.records))

    def totals(self) -> dict[str, Any]:
        return {
            "graphs": self.count(lambda r: r["has_graph"]),
            "operators": sum(r["op_count"] for r in self.records if r["has_graph"]),
            "breaks": self.count(lambda r: r["ending"] == "break"),
            "recompiles": self.count(lambda r: bool(r["recompile_reason"]) and r["outcome"] == "compiled"),
            "skipped": self.count(lambda r: r["outcome"] == "skipped"),
            "failed": self.count(lambda r: r["outcome"] == "failed"),
            "seconds": sum(r["seconds"] for r in self.records),
            "backend_seconds": sum(r["backend_seconds"] for r in self.records),
        }

    def text(self) -> str:
        t = self.totals()
        lines = [
            f"graphs: {t['graphs']}, operators: {t['operators']}, breaks: {t['breaks']}, compiled again: {t['recompiles']}, "
            f"left to Python: {t['skipped']}",
            f"compile time: {t['seconds'] * 1e3:.1f} ms, {t['backend_seconds'] * 1e3:.1f} ms of them in backends",
        ]
        told: set[str] = set()
        for r in self.records:
            place = f"{r['function']} ({r['file']}:{r['line']})"
            texts = []  # one record may be both: compiled again, and broken again
            if r["recompile_reason"] and r["outcome"] == "compiled":
                texts.append(f"compiled again: {place}: {r['recompile_reason']}")
            if r["reason"] is not None:
                word = "break" if r["ending"] == "break" else "left to Python"
                texts.append(f"{word} in {place}: {_indented(str(_reason(r)))}")
            lines += [text for text in texts if text not in told]
            told.update(texts)
        return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="cutaway explain", description="runs a script and tells what its compiled functions became"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "sarif", "github"),
        default="text",
        help="json, sarif: alone on standard output, and the script's own goes to standard error; github: the text, then annotations",
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, help="SCRIPT or -m MODULE, and its arguments")
    options = parser.parse_args()
    account = Account()

    @functools.wraps(torch.compile)
    def compiled(model: Any = None, **keywords: Any) -> Any:
        keywords.pop("mode", None)
        keywords.pop("options", None)
        keywords.pop("backend", None)  # what a backend does with a graph is not asked here
        return cutaway.compile(model, **keywords)

    torch.compile = compiled
    out = sys.stdout
    if options.format in ("json", "sarif"):
        out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
    with _listening(account.listen):
        status = _program.run_words(options.words)
    _program.flush()
    if options.format in ("text", "github"):
        print(account.text())
    if options.format != "text":
        answer = json.dumps({**account.totals(), "records": account.records, "status": abs(status)}, default=str)
        text = answer if options.format == "json" else _native.explain_text(answer, options.format)
        print(text, file=out, end="" if options.format == "github" else "\n", flush=True)
    return abs(status)


if __name__ == "__main__":
    sys.exit(main())
