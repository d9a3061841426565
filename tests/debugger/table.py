"""Runs the planted cases of cases.py through `cutaway triage` and says which answers are right.

    python tests/debugger/table.py [--only TEXT] [--third] [--jobs 2] [--peer] [--write FILE] [--keep FOLDER]

--third runs every third case. --peer runs torch's own minifier on the same scripts (TORCHDYNAMO_REPRO_AFTER), at most
PEER_LIMIT_S seconds each. --write writes the table (docs/debugger_cases.md); with --keep it holds the answers of earlier
slices too, and --only says which cases are run now.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from cases import CASES, KINDS, Case  # noqa: E402

LIMIT_S, PEER_LIMIT_S = 240, 120


@dataclasses.dataclass
class Answer:
    verdict: str  # what was said, in a few words
    nodes: int | None
    seconds: float
    problem: str = ""  # empty: right


def find_command() -> str:
    import cutaway

    package = pathlib.Path(cutaway.__file__).parent
    beside = [package.parent.parent / "bin" / "cutaway", pathlib.Path(sys.executable).parent / "cutaway"]
    return next((str(p) for p in beside if p.is_file()), None) or shutil.which("cutaway") or "cutaway"


def environment() -> dict[str, str]:
    import cutaway

    package = str(pathlib.Path(cutaway.__file__).parent.parent)
    return {
        **os.environ,
        "CUTAWAY_PYTHON": sys.executable,
        "PYTHONPATH": package,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def start(case: Case, folder: pathlib.Path) -> tuple[list[str], str | None]:
    """Writes the script; the words behind `triage`, and what goes to standard input."""
    if case.start == "module":
        (folder / "planted").mkdir()
        (folder / "planted" / "__init__.py").write_text("")
        (folder / "planted" / "train.py").write_text(case.script())
        return ["-m", "planted.train"], None
    if case.start == "stdin":
        return ["-"], case.script()
    (folder / "train.py").write_text(case.script())
    return ["train.py"], None


def judge(case: Case, status: int, report: dict) -> str:
    """What is wrong with the answer; empty when it is right."""
    kind = KINDS[case.kind]
    if kind.expect == "pass":
        return "" if status == 0 and report["outcome"] == "pass" else f"a failure was invented: {report['outcome']}"
    if status != 1 or report["outcome"] != "failure":
        return f"exit status {status}, outcome {report['outcome']}"
    if report["kind"] != kind.expect:
        return f"kind {report['kind']}, planted is {kind.expect}"
    if kind.type and kind.type not in (report["signature"] or {}).get("type", ""):
        return f"the exception is {(report['signature'] or {}).get('type')}, planted is {kind.type}"
    nodes = report["nodes_after"]
    if nodes is None or not 1 <= nodes <= case.most_nodes:
        return f"{nodes} nodes left, {case.most_nodes} are enough"
    if not report["repro"]:
        return "there is no repro.py"
    return ""


def triage(case: Case, folder: pathlib.Path) -> Answer:
    folder.mkdir(parents=True, exist_ok=True)
    words, given = start(case, folder)
    command = [find_command(), "triage", "--json", "--jobs", "1", *KINDS[case.kind].options, *words]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment(), input=given, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return Answer("no answer", None, LIMIT_S, f"no answer after {LIMIT_S} s")
    seconds = time.monotonic() - began
    (folder / "stderr.txt").write_text(done.stderr)
    (folder / "report.json").write_text(done.stdout)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return Answer("no object", None, seconds, f"--json printed {done.stdout[:80]!r}; {done.stderr[-200:]!r}")
    verdict = report.get("kind") or report.get("outcome") or "?"
    problem = judge(case, done.returncode, report)
    if not problem and report.get("repro"):
        problem = check_repro(case, folder, folder / report["repro"])
    return Answer(verdict, report.get("nodes_after"), seconds, problem)


def check_repro(case: Case, folder: pathlib.Path, script: pathlib.Path) -> str:
    text = script.read_text()
    if 'BACKEND = "eager"' in text:
        return 'repro.py says BACKEND = "eager"'
    if str(folder.resolve()) in text and case.form == "function":
        return "repro.py holds a private path"
    return ""


def torch_minifier(case: Case, folder: pathlib.Path) -> Answer:
    """The same script under torch's own settings, then its launcher."""
    folder.mkdir(parents=True, exist_ok=True)
    if case.start in ("module", "stdin", "cutaway"):
        return Answer("not run", None, 0)
    (folder / "train.py").write_text(case.script())
    level = "4" if KINDS[case.kind].expect == "accuracy" else "2"
    settings = {
        "TORCHDYNAMO_REPRO_AFTER": "dynamo",
        "TORCHDYNAMO_REPRO_LEVEL": level,
        "TORCH_COMPILE_DEBUG_DIR": str(folder),
    }
    env = {**environment(), **settings}
    began = time.monotonic()

    def left() -> float:
        return max(1.0, PEER_LIMIT_S - (time.monotonic() - began))

    try:
        subprocess.run(
            [sys.executable, "train.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=left()
        )
        launchers = sorted(folder.rglob("minifier_launcher.py"))
        if not launchers:
            return Answer("nothing", None, time.monotonic() - began)
        subprocess.run(
            [sys.executable, str(launchers[0])], cwd=folder, env=env, capture_output=True, text=True, timeout=left()
        )
    except subprocess.TimeoutExpired:
        return Answer("no answer", None, PEER_LIMIT_S)
    scripts = sorted(folder.rglob("repro.py"), key=lambda p: p.stat().st_mtime)
    if not scripts:
        return Answer("no repro", None, time.monotonic() - began)
    forward = re.split(r"def forward\(", scripts[-1].read_text())[-1]
    nodes = sum(1 for line in forward.splitlines() if re.match(r"\s+\w+ = .*\(", line) and "getattr(" not in line)
    return Answer("repro", nodes, time.monotonic() - began)


def run(
    names: list[str], jobs: int, keep: pathlib.Path | None = None, peer: bool = False
) -> dict[str, tuple[Answer, Answer | None]]:
    with tempfile.TemporaryDirectory() as scratch:
        place = keep or pathlib.Path(scratch)

        def one(name: str) -> tuple[str, tuple[Answer, Answer | None]]:
            ours = triage(CASES[name], place / name)
            theirs = torch_minifier(CASES[name], place / (name + "-torch")) if peer else None
            (place / name).mkdir(parents=True, exist_ok=True)
            (place / name / "answer.json").write_text(json.dumps([a and dataclasses.asdict(a) for a in (ours, theirs)]))
            print(
                f"{'ok   ' if not ours.problem else 'WRONG'} {ours.seconds:6.1f} s  {name}  {ours.problem}", flush=True
            )
            return name, (ours, theirs)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            return dict(pool.map(one, names))


def table(results: dict[str, tuple[Answer, Answer | None]]) -> str:
    lines = [
        "| case (model, fault, operator, form, start) | planted | ours: verdict, nodes, seconds | torch's minifier: result, nodes, seconds |",
        "|---|---|---|---|",
    ]
    for name, (ours, theirs) in results.items():
        said = f"{ours.verdict}, {ours.nodes if ours.nodes is not None else '-'}, {ours.seconds:.1f}" + (
            f" **{ours.problem}**" if ours.problem else ""
        )
        other = (
            "not run"
            if theirs is None
            else f"{theirs.verdict}, {theirs.nodes if theirs.nodes is not None else '-'}, {theirs.seconds:.1f}"
        )
        lines.append(f"| {name} | {KINDS[CASES[name].kind].expect} | {said} | {other} |")
    return "\n".join(lines) + "\n"


def page(results: dict[str, tuple[Answer, Answer | None]]) -> str:
    wrong = [n for n, (ours, _) in results.items() if ours.problem]
    return f"""# Planted failures and what `cutaway triage` answers

Written by `tests/debugger/table.py`, which `make test-debugger` runs. A case is a model, a way to misbehave, the operator that it is about, a
form of the backend and a way to start the script; an answer is right when the kind of failure is the planted one, the exit status says so, no more nodes
are left than the fault needs, and repro.py is there and honest. {len(results)} of {len(CASES)} cases were run for this table, {len(results) - len(wrong)} are right. Seconds
are those of one machine of two cores that did other work at the same time.

{table(results)}"""


def kept_answers(folder: pathlib.Path) -> dict[str, tuple[Answer, Answer | None]]:
    """Of all cases that were run with this folder, in the order of the cases."""
    found: dict[str, tuple[Answer, Answer | None]] = {}
    for name in CASES:
        file = folder / name / "answer.json"
        if file.exists():
            ours, theirs = json.loads(file.read_text())
            found[name] = (Answer(**ours), Answer(**theirs) if theirs else None)
    return found


def third() -> list[str]:
    return list(CASES)[::3]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--third", action="store_true", help="every third case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peer", action="store_true", help="torch's own minifier beside")
    parser.add_argument("--write", type=pathlib.Path, help="write the table there")
    parser.add_argument("--keep", type=pathlib.Path, help="scripts, bundles and reports stay in this folder")
    options = parser.parse_args()
    names = [n for n in (third() if options.third else CASES) if options.only in n]
    results = run(names, options.jobs, options.keep, options.peer)
    wrong = [n for n, (ours, _) in results.items() if ours.problem]
    if options.write:
        rows = {**(kept_answers(options.keep) if options.keep else {}), **results}
        options.write.write_text(page({n: rows[n] for n in CASES if n in rows}))
    print(f"{len(results)} cases, {len(results) - len(wrong)} right, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
