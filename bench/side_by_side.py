"""Timing two ways of doing one thing in one run, taken in turns, so that a busy machine is busy for both.

A bench script calls `compare` for each claim and ends with `finish`:

    from side_by_side import compare, finish

    compare("digest of 256 MB", ours, peer, peer_name="hash_storage", at_least=100)
    finish()

Each claim prints one line with the ratio and both numbers. `--json FILE` writes them as data, `--only WORD` runs
the claims whose name contains the word, and `--check` makes a missed claim the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

_SAMPLE_S = 0.02  # shorter calls are repeated within one sample, so that the clock does not matter


@dataclass
class Row:
    """One claim. Times are seconds a call, medians over the samples; `ratio` is peer / ours."""

    name: str
    ours_s: float
    peer: str
    peer_s: float
    ratio: float
    at_least: float | None
    samples: int
    ours_all: list[float]
    peer_all: list[float]
    note: str = ""
    at_most_s: float | None = None

    @property
    def met(self) -> bool:
        fast_enough = self.at_most_s is None or self.ours_s <= self.at_most_s
        return fast_enough and (self.at_least is None or self.ratio >= self.at_least)


_rows: list[Row] = []
_options: argparse.Namespace | None = None


def options() -> argparse.Namespace:
    """The command line, read at first use."""
    global _options
    if _options is None:
        parser = argparse.ArgumentParser(
            description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--json", metavar="FILE", help="write the results here as JSON ('-': standard output)")
        parser.add_argument("--only", metavar="WORD", default="", help="only claims whose name contains this word")
        parser.add_argument("--repeat", type=int, metavar="N", help="samples of each side")
        parser.add_argument("--check", action="store_true", help="exit with 1 when a claim is missed")
        _options = parser.parse_args()
    return _options


def seconds(value: float) -> str:
    """A duration as people read it."""
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def _calls_in_a_sample(run: Callable[[], object], before: Callable[[], object] | None) -> int:
    """Also the warm-up. With `before`, one call is one sample: it may need a fresh state each time."""
    if before is not None:
        before()
    run()
    if before is not None:
        return 1
    start = time.perf_counter()
    run()
    once = max(time.perf_counter() - start, 1e-9)
    return max(1, min(100_000, round(_SAMPLE_S / once)))


def _sample(run: Callable[[], object], calls: int, before: Callable[[], object] | None) -> float:
    if before is not None:
        before()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def compare(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    peer_name: str = "torch",
    repeat: int = 5,
    at_least: float | None = None,
    before: Callable[[], object] | None = None,
    note: str = "",
    at_most_s: float | None = None,
) -> Row | None:
    """Times `ours` and `peer` in turns and prints one line. `before` runs untimed before each call.

    The claim is a ratio (`at_least`), a time of ours (`at_most_s`), both or neither.

    None: left out by --only.
    """
    if options().only and options().only not in name:
        return None
    repeat = options().repeat or repeat
    our_calls, peer_calls = _calls_in_a_sample(ours, before), _calls_in_a_sample(peer, before)
    our_times, peer_times = [], []
    for _ in range(repeat):
        our_times.append(_sample(ours, our_calls, before))
        peer_times.append(_sample(peer, peer_calls, before))
    ours_s, peer_s = statistics.median(our_times), statistics.median(peer_times)
    row = Row(
        name, ours_s, peer_name, peer_s, peer_s / ours_s, at_least, repeat, our_times, peer_times, note, at_most_s
    )
    _rows.append(row)
    goals = [] if at_least is None else [f"at least {at_least:g}x"]
    if at_most_s is not None:
        goals.append(f"at most {seconds(at_most_s)}")
    goal = f"  ({', '.join(goals)}: {'met' if row.met else 'MISSED'})" if goals else ""
    extra = f"  {note}" if note else ""
    print(f"{name}: {row.ratio:.3g}x  ours {seconds(ours_s)}, {peer_name} {seconds(peer_s)}{goal}{extra}", flush=True)
    return row


def finish() -> None:
    """Writes the JSON when asked to, and exits with 1 when --check is given and a claim was missed."""
    missed = [row.name for row in _rows if not row.met]
    if options().json:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
        if (torch := sys.modules.get("torch")) is not None:
            machine["torch"] = torch.__version__
        text = json.dumps({"machine": machine, "claims": [{**asdict(row), "met": row.met} for row in _rows]}, indent=2)
        if options().json == "-":
            print(text)
        else:
            with open(options().json, "w") as file:
                file.write(text + "\n")
    sys.exit(1 if options().check and missed else 0)
