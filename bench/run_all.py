"""Runs every benchmark, one after the other, and writes their tables as Markdown to standard output.

Each script times us and the peer in turns within one run; `bench/RESULTS.md` holds the newest tables with machine and date.
"""

import json
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = [
    "store.py",
    "same.py",
    "exec.py",
    "graph_text.py",
    "graph_text_large.py",
    "trace.py",
    "recorder.py",
    "aot.py",
]


def seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def main() -> int:
    scripts = sys.argv[1:] or SCRIPTS
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}, {date.today()}\n")
    print("| claim | ours | peer | peer's time | ratio | goal |\n|---|---|---|---|---|---|", flush=True)
    status = 0
    for script in scripts:
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            done = subprocess.run(
                [sys.executable, str(HERE / script), "--json", out.name], capture_output=True, text=True
            )
            if done.returncode:
                status = 1
                print(f"{script} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
                continue
            data = json.loads(Path(out.name).read_text())
        for row in data["claims"]:
            goal = f"{row['at_least']:g}x" if row.get("at_least") else ""
            if row.get("at_most_s"):
                goal = f"at most {seconds(row['at_most_s'])}"
            note = f" ({row['note']})" if row.get("note") else ""
            print(
                f"| {row['name']}{note} | {seconds(row['ours_s'])} | {row['peer']} | {seconds(row['peer_s'])} "
                f"| {row['ratio']:.3g}x | {goal} |",
                flush=True,
            )
    return status


if __name__ == "__main__":
    sys.exit(main())
