"""Runs the programs of tests/flows/debugger/inductor, which Inductor computes otherwise than eager, through `cutaway triage` again.

    python -m tests.flows.debugger.inductor_table [--only TEXT] [--jobs 1] [--keep FOLDER] [--write docs/inductor_differences.md]

They were found by tests/flows/debugger/inductor_search.py. Right is: a failure of the backend, one-minimal, which its files show again in a clean
process and its repro.py with torch alone. A program whose answer is "pass" is one that another version of torch has mended: it is told.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

from tests.flows.debugger import table
from tests.support.command import find_command

HERE = pathlib.Path(__file__).parent

LIMIT_S = 600.0


def ask(script: pathlib.Path, folder: pathlib.Path) -> dict[str, object]:
    """The row of a script, with what is wrong with the answer in "problem"."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(script, folder / script.name)
    # Kernels are shared by their text; compiled graphs are not: one from a cache could hide a difference.
    env = {**table.environment(), "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
    command = [find_command(), "triage", "--json", "--jobs", "1", "-o", "out", script.name]
    began = time.monotonic()
    row: dict[str, object] = {"name": script.stem, "about": ast.get_docstring(ast.parse(script.read_text())) or ""}
    try:
        done = table.run_program(command, folder, env, LIMIT_S)
        report = json.loads(done.stdout)
    except (table.NoTime, ValueError) as problem:
        return {**row, "seconds": time.monotonic() - began, "problem": f"no answer: {problem!r}"}
    row |= {k: report.get(k) for k in ("outcome", "kind", "stage", "nodes_before", "nodes_after", "graph", "message")}
    row["seconds"] = time.monotonic() - began
    certificate = folder / "out" / "minimal" / "certificate.json"
    proof = json.loads(certificate.read_text()) if certificate.exists() else {}
    row["repro"] = proof.get("repro", {}).get("outcome", "absent")
    problems = {
        f"outcome {report['outcome']}": done.returncode != 1 or report["outcome"] != "failure",
        f"guilty is {report['stage']}": report["stage"] not in ("backend", "aot"),
        "not one-minimal": not proof.get("one_minimal"),
        "not verified": not proof.get("verified"),
        f"repro.py: {row['repro']}": row["repro"] != "same failure",
    }
    row["problem"] = "; ".join(text for text, is_so in problems.items() if is_so)
    return row


def operators(graph: object) -> str:
    """Names of the operators that are left."""
    found = re.findall(r"= (?:call )?([\w.]+)\(", str(graph or ""))
    return ", ".join(dict.fromkeys(f for f in found if f.startswith("aten") or f.startswith("prims")))


def how(row: dict[str, object]) -> str:
    """The verdict's reason and its worst element, on one line."""
    message = str(row.get("message") or "")
    parts = [m[1].strip() for m in (re.search(rf"^ *{key}: (.*)$", message, re.M) for key in ("because", "worst")) if m]
    said = "; ".join(parts) or message.strip().partition("\n")[0]
    return said.replace("|", "\\|")  # of the table


def page(rows: list[dict[str, object]]) -> str:
    right = sum(not r["problem"] for r in rows)
    lines = "\n".join(
        f"| {r['name']} | {r['about']} | {how(r)} | {operators(r.get('graph'))} | {r.get('nodes_before')} -> {r.get('nodes_after')} | "
        + (f"{r.get('kind')}, one-minimal, repro.py: {r.get('repro')}" if not r["problem"] else f"**{r['problem']}**")
        + f" | {float(str(r['seconds'])):.0f} |"
        for r in rows
    )
    return f"""# Programs that Inductor computes otherwise than eager

Found by `tests/flows/debugger/inductor_search.py` (random operators on odd values, compared by the rule of every command), kept in
`tests/flows/debugger/inductor`, and answered by `cutaway triage`: {right} of {len(rows)} to a verified repro that needs torch alone. Written by
`tests/flows/debugger/inductor_table.py`, which `make test-debugger` runs. A machine of {table.machine()}.

Not all of them are errors of Inductor's: converting NaN, infinities and numbers that do not fit to integers has no defined result, and
torch promises none. They are differences all the same, and what a user sees who compares. Of what the search finds, triage lets pass what is
closer to fp64 than eager is: numbers that a conversion to float16 makes infinite in eager, and that stay finite in one kernel.

| program | what it does | how it differs from eager | operators left | nodes | verdict | seconds |
|---|---|---|---|---|---|---|
{lines}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="scripts, bundles and reports stay in this folder")
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    scripts = [s for s in sorted((HERE / "inductor").glob("*.py")) if options.only in s.stem]
    rows: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        place = options.keep or pathlib.Path(scratch)
        if options.keep:  # the rows of earlier slices
            for file in sorted(place.glob("*/row.json")):
                rows[file.parent.name] = json.loads(file.read_text())

        def one(script: pathlib.Path) -> dict[str, object]:
            row = ask(script, place / script.stem)
            (place / script.stem / "row.json").write_text(json.dumps(row))
            rows[script.stem] = row
            if options.write:
                options.write.write_text(page([rows[n] for n in sorted(rows)]))
            print(
                f"{'WRONG' if row['problem'] else 'ok   '} {row['seconds']:6.1f} s  {script.stem}  {row['problem']}",
                flush=True,
            )
            return row

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(one, scripts))
    wrong = [r for r in results if r["problem"]]
    print(f"{len(results)} programs, {len(results) - len(wrong)} to a verified repro")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
