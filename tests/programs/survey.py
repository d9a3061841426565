"""Runs every program three ways (eager, Cutaway, torch.compile) and tells where they differ.

    python -m tests.programs.survey [--peer] [--write] [--only TEXT] [--json FILE]

A line for each program that is wrong, breaks where Dynamo does not, or counts other operators. `--peer` runs Dynamo as well and writes
what it found to peer.json, which later runs compare with. `--write` writes beside each program the number of graphs that its calls take, and whether its
first call breaks, which test_capture_breadth.py holds us to: the diff is the review (`make format` breaks long lines).
"""

import argparse
import ast
import contextlib
import io
import json
import pathlib
import re
import sys
import time
import warnings

import cutaway
import torch

from tests.support import capture_cases, registry

HERE = pathlib.Path(__file__).parent

PEER = HERE / "peer.json"


def lines(function, program, count):
    """What `count` calls show, and print."""
    shown = []
    for i in range(count):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                shown.append(capture_cases.shown(function, program.args(i)))
            except Exception as error:  # the backward pass, or what is shown of a result
                shown.append([f"failed: {type(error).__name__}: {error}"])
        shown[-1].append(f"printed: {printed.getvalue()!r}")
    return shown


def run(program, compiler, reset):
    """Frames and operators that a counting backend got, whether one graph is enough, and what the calls showed."""
    reset()
    counter = capture_cases.Counter()
    shown = lines(compiler(program.make(), backend=counter), program, program.calls)
    result = {"frames": counter.frame_count, "ops": counter.op_count, "shown": shown}
    reset()
    try:
        whole = capture_cases.Counter()
        function = compiler(program.make(), backend=whole, fullgraph=True)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            function(*program.args(0))
        result["full"] = True
    except Exception as error:
        result["full"] = False
        result["why"] = str(error)
    return result


@contextlib.contextmanager
def torch_as_it_is():
    """Eager's while_loop and flex_attention call torch.compile, which changes optimisers, distributions and more of torch for the whole process:
    programs that run later would take other graphs."""
    from torch._dynamo.eval_frame import TorchPatcher

    patch, TorchPatcher.patch = TorchPatcher.patch, staticmethod(lambda: None)
    try:
        yield
    finally:
        TorchPatcher.patch = staticmethod(patch)


def stated(source, decorator, graphs, breaks):
    """The text of a decorator, or of a call of `cases`, with these graphs."""
    given = [*getattr(decorator, "args", []), *getattr(decorator, "keywords", [])]
    words = [ast.get_source_segment(source, g) for g in given if getattr(g, "arg", "") not in ("graphs", "breaks")]
    words += [f"graphs={graphs}"] * (graphs != 1) + ["breaks=True"] * breaks
    name = getattr(decorator, "func", decorator).id
    return f"{name}({', '.join(words)})" if words else name


def write_graphs(area, seen):
    """Into the file of an area: `seen` has (graphs, breaks) by name. What is right already stays as it is written."""
    file = HERE / f"area_{area}.py"
    source = file.read_text()
    lines, edits, left, table = source.splitlines(True), [], dict(seen), None
    for statement in ast.parse(source).body:
        call = getattr(statement, "value", None)
        if isinstance(statement, ast.FunctionDef):
            found = [
                d
                for d in statement.decorator_list
                if {"program", "built"} & {getattr(n, "id", "") for n in (d, getattr(d, "func", d))}
            ]
            name = statement.name
        elif isinstance(call, ast.Call) and getattr(call.func, "id", "") == "cases":
            found, name = [call], call.args[1].value
        else:
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "takes":
                table = call.args[1]
            continue
        if found and name in left:
            told = {k.arg: k.value.value for k in getattr(found[0], "keywords", []) if k.arg in ("graphs", "breaks")}
            wanted = left.pop(name)
            if (told.get("graphs", 1), told.get("breaks", False)) != wanted:
                edits.append((found[0], stated(source, found[0], *wanted)))
    if left:  # what a loop registers
        rows = {row.split()[0]: row.strip() for row in table.value.strip().splitlines()} if table else {}
        rows |= {n: f"{n} {graphs}{' breaks' if breaks else ''}" for n, (graphs, breaks) in left.items()}
        text = '"""\n' + "".join(f"    {rows[n]}\n" for n in sorted(rows)) + '    """'
        if table:
            edits.append((table, text))
        else:
            lines.append(f'\n\ntakes(\n    "{area}",\n    {text},\n)\n')
    for node, text in sorted(edits, key=lambda e: -e[0].lineno):
        first, last = lines[node.lineno - 1].encode(), lines[node.end_lineno - 1].encode()
        new = first[: node.col_offset].decode() + text + last[node.end_col_offset :].decode()
        lines[node.lineno - 1 : node.end_lineno] = [new]
    file.write_text("".join(lines))


def natively(program):
    """What the calls show with the backend that is C++."""
    cutaway.reset()
    return lines(cutaway.compile(program.make(), backend="eager"), program, program.calls)


def difference(expected, got):
    for i, (a, b) in enumerate(zip(expected, got, strict=True)):
        if a != b:
            for p, q in zip(a, b, strict=False):
                if p != q:
                    return f"call {i}: eager {p!r:.150} | {q!r:.150}"
            return f"call {i}: eager has {len(a)} lines, this {len(b)}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", action="store_true", help="run Dynamo, too, and remember what it does")
    parser.add_argument("--write", action="store_true", help="write beside each program the graphs that it takes")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", help="write everything there")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    programs = {n: p for n, p in registry.load().items() if options.only in n}
    peer = json.loads(PEER.read_text()) if PEER.exists() else {}
    rows, started = {}, time.time()
    with contextlib.nullcontext() if options.peer else torch_as_it_is():
        for name, program in programs.items():
            if options.verbose:
                print(name, flush=True)
            eager = lines(program.make(), program, program.calls)
            ours = run(program, cutaway.compile, cutaway.reset)
            wrong = difference(eager, ours.pop("shown")) or difference(eager, natively(program))
            row = {"ours": ours, "wrong": wrong}
            if options.peer:
                theirs = run(program, torch.compile, torch._dynamo.reset)
                theirs["wrong"] = re.sub(
                    r"(?:/[\w.+-]+){2,}/?", "…", difference(eager, theirs.pop("shown"))
                )  # no paths of this machine
                theirs.pop("why", None)
                peer[name] = theirs
            rows[name] = row
    if options.peer:
        PEER.write_text("{\n" + ",\n".join(f" {json.dumps(n)}: {json.dumps(peer[n])}" for n in sorted(peer)) + "\n}\n")
    groups = {"wrong": [], "breaks where Dynamo does not": [], "counts differ": [], "same or better": []}
    for name, row in rows.items():
        ours, theirs = row["ours"], peer.get(name)
        text = f"{name}: frames {ours['frames']} ops {ours['ops']}"
        if theirs:
            text += f" | Dynamo frames {theirs['frames']} ops {theirs['ops']} full {theirs['full']}"
        if row["wrong"]:
            groups["wrong"].append(text + "\n      " + row["wrong"])
        elif theirs and theirs["full"] and not ours["full"]:
            groups["breaks where Dynamo does not"].append(text + "\n      " + " / ".join(ours["why"].split("\n"))[:220])
        elif (
            theirs
            and (ours["frames"], ours["ops"]) != (theirs["frames"], theirs["ops"])
            and not (ours["full"] and not theirs["full"])
        ):
            groups["counts differ"].append(
                text + ("" if ours["full"] else "\n      " + " / ".join(ours["why"].split("\n"))[:160])
            )
        else:
            groups["same or better"].append(text)
    for title, group in groups.items():
        print(f"== {title}: {len(group)}")
        if title != "same or better" or options.verbose:
            for text in group:
                print("   " + text)
    full = sum(r["ours"]["full"] for r in rows.values())
    print(
        f"{len(rows)} programs, {full} in one graph ({sum(peer[n]['full'] for n in rows if n in peer)} by Dynamo), {time.time() - started:.0f} s"
    )
    if options.write:
        for area in sorted({n.split(".")[0] for n in rows}):
            of_area = {
                n.split(".")[1]: rows[n]["ours"] for n in rows if n.startswith(area + ".") and not rows[n]["wrong"]
            }
            write_graphs(area, {n: (ours["frames"], not ours["full"]) for n, ours in of_area.items()})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if groups["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
