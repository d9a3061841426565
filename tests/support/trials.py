"""A bundle put to the trial runner in this process: what a worker does for run, analyze and minify."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cutaway import _native


def trial(path: str | os.PathLike[str], task: str = "run", budget_s: float = 60, **changes: Any) -> dict[str, Any]:
    """The answer to one question about the bundle at `path`, with these fields of its manifest changed.

    ``budget_s``: how long an analysis goes on once it knows the first wrong node.
    """
    path = Path(path)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest.update(changes)
    question = {
        "task": task,
        "graph": (path / "graph.cut").read_text(),
        "manifest": json.dumps(manifest),
        "store": str(path),
        "accuracy": "accuracy",
        "only_forward": False,
        "is_trusted": True,
        "tolerance": 1e-3,
        "threads": 0,
        "budget_s": budget_s,
    }
    return json.loads(_native.run_trial(json.dumps(question)))


def outcome(path: str | os.PathLike[str], **changes: Any) -> tuple[str, str]:
    """(outcome, message) of one run."""
    answer = trial(path, **changes)
    return answer["outcome"], answer["message"]
