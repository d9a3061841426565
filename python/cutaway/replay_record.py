"""``python -m cutaway.replay_record``: what ``cutaway replay`` starts. Captures the frame of a record, and tells how that ends."""

from __future__ import annotations

import argparse
import json
import os
import sys

import cutaway

from ._native import replay as _native
from ._replay import replayed


def main() -> int:
    parser = argparse.ArgumentParser(prog="cutaway replay", description="captures the frame of a record again")
    parser.add_argument("record")
    parser.add_argument("--trust", action="store_true", help="run the record's code")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="the plan of a frame that is captured now")
    options = parser.parse_args()
    place = os.path.abspath(options.record)
    try:
        modules = _native.modules(place)
        if not options.trust:
            raise cutaway.Error(
                f"{place}: replaying a record runs its code\n   try: --trust, when you know who wrote it"
            )
        said = f"running the code of {place}, which imports {', '.join(modules) or 'nothing'}"
        print(said, file=sys.stderr if options.json else sys.stdout, flush=True)
        answer = _native.run(place)
    except cutaway.Error as error:
        print(f"cutaway: {error}", file=sys.stderr)
        if options.json:
            print(json.dumps({"record": place, "outcome": "error", "message": str(error)}))
        return 2
    result = replayed(place, answer)
    if options.json:
        print(json.dumps({"record": place, **answer}))
    else:
        print(result)
        if options.verbose and result.plan:
            print(result.plan)
    return 0 if result.now is None else 1 if result.same else 3


if __name__ == "__main__":
    sys.exit(main())
