"""Runs the planted cases of cases.py through `cutaway triage` and says which answers are right.

    python -m tests.flows.debugger.table [--only TEXT] [--third] [--jobs 2] [--peer] [--write FILE] [--keep FOLDER] [--minutes 8]

--third runs the fixed third that `make test` runs. --peer runs torch's own minifier on the same scripts
(TORCHDYNAMO_REPRO_AFTER), at most --peer-limit seconds each, after all of ours. --write writes the table
(docs/debugger_cases.md) after every answer: rows of cases that are not run now stay as they are, and so do the words about the
machines above it; with --keep it holds the answers of earlier slices too. --resume leaves out what either has answered rightly.
--minutes ends everything then: what is not answered counts as not run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

from tests.flows.debugger.cases import CASES, KINDS, THIRD, Case
from tests.support.command import find_command

LIMIT_S, PEER_LIMIT_S = 240.0, 120.0
TITLE = "# Planted failures and what `cutaway triage` answers"
Answers = dict[str, tuple["Answer | None", "Answer | None"]]  # ours, torch's; none: not run


@dataclasses.dataclass
class Answer:
    verdict: str  # what was said, in a few words
    nodes: int | None
    seconds: float
    problem: str = ""  # empty: right
    mark: str = ""  # of the machine, in a table that holds answers of several

    @classmethod
    def read(cls, cell: str) -> Answer | None:
        """As `write` gives it; none where it was not run."""
        found = re.fullmatch(r"(.+?), (-|\d+), ([\d.]+)(?: (\(\w+\)))?(?: \*\*(.*)\*\*)?", cell)
        if not found:
            return None
        verdict, nodes, seconds, mark, problem = found.groups()
        return cls(verdict, None if nodes == "-" else int(nodes), float(seconds), problem or "", mark or "")

    def write(self) -> str:
        text = f"{self.verdict}, {self.nodes if self.nodes is not None else '-'}, {self.seconds:.1f}"
        return text + (f" {self.mark}" if self.mark else "") + (f" **{self.problem}**" if self.problem else "")


class NoTime(Exception):
    """It did not end within its time."""


def run_program(
    command: list[str], folder: pathlib.Path, env: dict[str, str], limit: float, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Like subprocess.run. What has no time left is asked to end, then it and its group are killed: planted scripts may sleep for ever."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=pipe if given is not None else subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(given, timeout=max(1.0, limit))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            raise NoTime from None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


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
    if kind.signal and kind.signal != (report["signature"] or {}).get("signal", ""):
        return f"the signal is {(report['signature'] or {}).get('signal')}, planted is {kind.signal}"
    if not report["repro"]:
        return "there is no repro.py"
    if report["backend"].startswith("live:") and not (report["one_minimal"] and report["reproduced_rate"] == 1):
        return f"one-minimal: {report['one_minimal']}, fails in {report['reproduced_rate']} of the runs"
    return ""


def triage(case: Case, folder: pathlib.Path, limit: float = LIMIT_S) -> Answer:
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier slice
    folder.mkdir(parents=True)
    words, given = start(case, folder)
    command = [find_command(), "triage", "--json", "--jobs", "1", *KINDS[case.kind].options, *words]
    began = time.monotonic()
    try:
        done = run_program(command, folder, environment(), limit, given)
    except NoTime:
        return Answer("no answer", None, limit, f"no answer after {limit:.0f} s")
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
        problem = check_files(folder, report)
    return Answer(verdict, report.get("nodes_after"), seconds, problem)


def check_files(folder: pathlib.Path, report: dict) -> str:
    """Of what one attaches to a bug report."""
    text = (folder / report["repro"]).read_text()
    if 'BACKEND = "eager"' in text:
        return 'repro.py says BACKEND = "eager"'
    if report["backend"].startswith("live:") and not (
        "BACKEND = None" in text and "This file carries the text of" in text
    ):
        return "repro.py does not say where its backend comes from"
    for name in ("repro.py", "graph.cut", "report.html"):
        file = folder / report["bundle"] / name
        if file.exists() and str(folder.resolve()) in file.read_text():
            return f"{name} holds a private path"
    return ""


# The launcher knows a backend of the script's by its name alone: a user has to give it that by hand, and so do we.
LAUNCH = """
import re, runpy, sys
sys.path.insert(0, "")
import torch._dynamo, train
name = re.search(r"backend='([^']*)'", open(sys.argv[1]).read())
if name and callable(train.backend) and name[1] not in torch._dynamo.list_backends(None):
    torch._dynamo.register_backend(lambda gm, examples, **_: train.backend(gm, examples), name[1])
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def torch_minifier(case: Case, folder: pathlib.Path, limit: float = PEER_LIMIT_S) -> Answer:
    """The same script under torch's own settings, then its launcher."""
    if case.start in ("module", "stdin", "cutaway"):
        return Answer("not run", None, 0)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(case.script())
    level = "4" if KINDS[case.kind].expect == "accuracy" else "2"
    settings = {
        "TORCHDYNAMO_REPRO_AFTER": "dynamo",
        "TORCHDYNAMO_REPRO_LEVEL": level,
        "TORCH_COMPILE_DEBUG_DIR": str(folder.resolve()),
    }
    env = {**environment(), **settings}
    began = time.monotonic()

    def left() -> float:
        return limit - (time.monotonic() - began)

    try:
        run_program([sys.executable, "train.py"], folder, env, left())
        launchers = sorted(folder.rglob("minifier_launcher.py"))
        if not launchers:
            return Answer("nothing", None, time.monotonic() - began)
        done = run_program([sys.executable, "-c", LAUNCH, str(launchers[0].resolve())], folder, env, left())
    except NoTime:
        return Answer("no answer", None, limit)
    (folder / "stderr.txt").write_text(done.stderr)
    scripts = sorted(folder.rglob("repro.py"), key=lambda p: p.stat().st_mtime)
    if not scripts:
        return Answer("no repro", None, time.monotonic() - began)
    forward = re.split(r"def forward\(", scripts[-1].read_text())[-1]
    nodes = sum(1 for line in forward.splitlines() if re.match(r"\s+\w+ = .*\(", line) and "getattr(" not in line)
    return Answer("repro", nodes, time.monotonic() - began)


def run(
    names: list[str],
    jobs: int,
    place: pathlib.Path,
    peer_limit: float = 0,
    until: float = float("inf"),
    known: Answers | None = None,
    tell: Callable[[Answers], None] = lambda answers: None,
) -> Answers:
    """All of ours, then torch's (where it has a limit). `tell` hears of every answer as it comes; nothing begins after `until`."""
    found: Answers = dict(known or {})
    lock = threading.Lock()

    def left(limit: float) -> float:
        return min(limit, until - time.monotonic())

    def keep(name: str, ours: Answer | None, theirs: Answer | None) -> None:
        with lock:
            found[name] = (ours, theirs)
            (place / name).mkdir(parents=True, exist_ok=True)
            text = json.dumps([a and dataclasses.asdict(a) for a in (ours, theirs)])
            (place / name / "answer.json").write_text(text)
            tell(found)

    def ask(name: str) -> None:
        if left(LIMIT_S) < 5:
            return
        ours = triage(CASES[name], place / name, left(LIMIT_S))
        if ours.problem and until - time.monotonic() < 5:
            return  # it had less time than it needs
        print(f"{'WRONG' if ours.problem else 'ok   '} {ours.seconds:6.1f} s  {name}  {ours.problem}", flush=True)
        keep(name, ours, found[name][1] if name in found else None)

    def ask_torch(name: str) -> None:
        if name not in found or left(peer_limit) < min(20, peer_limit):
            return
        theirs = torch_minifier(CASES[name], place / (name + "-torch"), left(peer_limit))
        print(f"torch {theirs.seconds:6.1f} s  {name}  {theirs.verdict}, {theirs.nodes}", flush=True)
        keep(name, found[name][0], theirs)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        wanted = [n for n in names if not (known and (answer := known.get(n, (None, None))[0]) and not answer.problem)]
        ours = {n: pool.submit(ask, n) for n in wanted}  # all of them begin before the first of torch's

        def ask_torch_then(name: str) -> None:
            if name in ours:
                ours[name].result()
            ask_torch(name)

        open_ = (
            [n for n in names if n in ours or (known and known.get(n, (None, None))[1] is None)]
            if peer_limit > 0
            else []
        )
        for task in [*ours.values(), *[pool.submit(ask_torch_then, n) for n in open_]]:
            task.result()
    return {n: found[n] for n in names if n in found}


def table(results: Answers) -> str:
    lines = [
        "| case (model, fault, operator, form, start) | planted | ours: verdict, nodes, seconds | torch's minifier: result, nodes, seconds |",
        "|---|---|---|---|",
    ]
    for name, row in results.items():
        ours, theirs = (answer.write() if answer else "not run" for answer in row)
        lines.append(f"| {name} | {KINDS[CASES[name].kind].expect} | {ours} | {theirs} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    import torch

    load = f"load {os.getloadavg()[0]:.0f}"
    return f"{os.cpu_count()} cores ({load} at the end), Python {sys.version.split()[0]}, torch {torch.__version__}"


def page(results: Answers, words: str = "") -> str:
    """`words` are what an earlier page says about the machines of its rows."""
    mine = [ours for ours, _ in results.values() if ours is not None]
    peers = [theirs for _, theirs in results.values() if theirs is not None and theirs.verdict != "not run"]
    said = f"torch's minifier was run on {len(peers)} and left a repro for {sum(t.verdict == 'repro' for t in peers)} (its launcher was given the script's backend)."
    return f"""{TITLE}

Written by `tests/flows/debugger/table.py`, which `make test-debugger` runs. A case is a model, a way to misbehave, the operator that it is about, a
form of the backend and a way to start the script; an answer is right when the kind of failure is the planted one, the exit status says so, no more nodes
are left than the fault needs, and repro.py is there and honest. {len(mine)} of {len(CASES)} cases were run for this table, {sum(not a.problem for a in mine)} are right;
{said if peers else "torch's minifier was not run."}

{words or f"A machine of {machine()}."}

{table(results)}"""


def read_page(file: pathlib.Path) -> tuple[Answers, str]:
    """The rows of a page, in the order of the cases, and what it says about machines."""
    if not file.exists():
        return {}, ""
    text = file.read_text()
    rows = dict(re.findall(r"^\| ([\w-]+) \| (.*) \|$", text, re.MULTILINE))
    cells = {name: rows[name].split(" | ") for name in CASES if name in rows}
    words = text[: text.index("| case (")].strip().split("\n\n", 2)[2:]
    return {name: (Answer.read(ours), Answer.read(theirs)) for name, (_, ours, theirs) in cells.items()}, "".join(words)


def kept_answers(folder: pathlib.Path) -> Answers:
    """Of all cases that were run with this folder, in the order of the cases."""
    found: Answers = {}
    for name in CASES:
        file = folder / name / "answer.json"
        if file.exists():
            ours, theirs = json.loads(file.read_text())
            found[name] = (Answer(**ours) if ours else None, Answer(**theirs) if theirs else None)
    return found


def newer(rows: Answers, others: Answers) -> Answers:
    """`rows`, with the answers that there are in `others` in place of theirs."""
    none = (None, None)
    return {
        n: (others.get(n, none)[0] or rows.get(n, none)[0], others.get(n, none)[1] or rows.get(n, none)[1])
        for n in {**rows, **others}
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--third", action="store_true", help="the fixed third of `make test`")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peer", action="store_true", help="torch's own minifier beside")
    parser.add_argument("--peer-limit", type=float, default=PEER_LIMIT_S, help="seconds that it has for a case")
    parser.add_argument("--write", type=pathlib.Path, help="write the table there, after every answer")
    parser.add_argument("--keep", type=pathlib.Path, help="scripts, bundles and reports stay in this folder")
    parser.add_argument("--resume", action="store_true", help="leave out what --keep or --write has answers for")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for all of it")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    names = [n for n in (THIRD if options.third else CASES) if options.only in n]
    if importlib.util.find_spec("transformers") is None:
        without = [n for n in names if "import transformers" not in CASES[n].script()]
        print(f"there is no transformers: {len(names) - len(without)} cases are not run", flush=True)
        names = without
    earlier, words = read_page(options.write) if options.write else ({}, "")
    earlier = newer(earlier, kept_answers(options.keep) if options.keep else {})
    last = [0.0]

    def write(answers: Answers, *, at_once: bool = False) -> None:
        if options.write and (at_once or time.monotonic() - last[0] > 2):
            rows = newer(earlier, answers)
            options.write.write_text(page({n: rows[n] for n in CASES if n in rows}, words))
            last[0] = time.monotonic()

    with tempfile.TemporaryDirectory() as scratch:
        place = options.keep or pathlib.Path(scratch)
        known = {n: a for n, a in earlier.items() if n in names} if options.resume else None
        results = run(names, options.jobs, place, options.peer_limit if options.peer else 0, until, known, write)
    write(results, at_once=True)
    answered = [ours for ours, _ in results.values() if ours is not None]
    wrong = [a for a in answered if a.problem]
    missing = len(names) - len(answered)
    print(f"{len(answered)} cases, {len(answered) - len(wrong)} right, {len(wrong)} wrong, {missing} not run")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
