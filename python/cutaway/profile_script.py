"""``python -m cutaway.profile_script [--json] [--timeline FILE] SCRIPT [ARGS…]``: runs a script and tells where the time of its compiled functions goes.

``torch.compile`` of the script is ``cutaway.compile`` with the backend native while it runs; C++ measures, and makes the texts.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from typing import Any

import torch

import cutaway

from . import _native, _program


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="cutaway profile", description="runs a script and tells where the time of its compiled functions goes"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object; what the script prints goes to standard error"
    )
    parser.add_argument("--timeline", default="", help="a file for a timeline in the form of Chrome's traces")
    parser.add_argument("--backend", default="native", help="native, with other settings")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="SCRIPT or -m MODULE, and its arguments")
    options = parser.parse_args()
    original = cutaway.compile

    def compiled(model: Any = None, **keywords: Any) -> Any:
        for name in ("mode", "options", "backend"):
            keywords.pop(name, None)
        return original(model, backend=options.backend, **keywords)

    torch.compile = functools.wraps(torch.compile)(compiled)
    cutaway.compile = functools.wraps(original)(compiled)
    out = sys.stdout
    if options.json:
        out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
    _native.start_profile()
    status = _program.run_words(options.words)
    _program.flush()
    if options.timeline:
        try:
            with open(options.timeline, "w", encoding="utf-8") as file:
                file.write(_native.profile_timeline())
        except OSError as error:
            print(f"cutaway: {options.timeline}: {error.strerror}", file=sys.stderr)
            return 2
    print(
        _native.profile_json() if options.json else _native.profile_text(),
        end="\n" if options.json else "",
        file=out,
        flush=True,
    )
    return abs(status)


if __name__ == "__main__":
    sys.exit(main())
