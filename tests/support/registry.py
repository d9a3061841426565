"""Small programs for the survey of what capture understands: one function each, by area.

`@program` registers a function of a tensor; `@program(args=...)` says what it is called with; `@built` registers a function that makes
what is called (a module, a closure with state), made anew for each way of running it. `cases` makes one program from a table of one-line cases.

Each says what capture makes of it, so that a fall-back shows: `graphs` is the number of graphs that all calls together take, and `breaks=True`
says that the first call is not one graph (fullgraph=True refuses it). Without a word a program is one graph. For programs that a loop
registers, `takes` says it. `python -m tests.programs.survey --write` writes what it sees into the files.
"""

import ast
import importlib
import linecache
import pathlib

import torch

FOLDER = pathlib.Path(__file__).parents[1] / "programs"
AREAS = sorted(p.stem for p in FOLDER.glob("area_*.py"))
PROGRAMS = {}


class Program:
    def __init__(self, make, name, args, calls, graphs, breaks):
        self.make = make  # -> what is called
        self.name = name
        self.args = args  # -> arguments, made anew for each call
        self.calls = calls
        self.graphs = graphs
        self.breaks = breaks


def tensor(i=0):
    torch.manual_seed(i + 1)
    return torch.randn(3, 4)


def leaf(i=0):
    return tensor(i).requires_grad_()


def seeded(make):
    torch.manual_seed(0)
    return make()


def text(error):
    return f"{type(error).__name__}: {error}"


def trap(f, *args, **kwargs):
    """What a call gives, or the error that it raises."""
    try:
        return f(*args, **kwargs)
    except Exception as error:
        return text(error)


def attempt(out, *cases):
    """Appends what each case gives, or the error that it raises; returns how many raised."""
    failed = 0
    for case in cases:
        try:
            out.append(case())
        except Exception as error:
            out.append(text(error))
            failed += 1
    return failed


def _register(make, function, args, calls, graphs, breaks):
    name = f"{function.__module__.rpartition('.')[2].removeprefix('area_')}.{function.__name__}"
    assert name not in PROGRAMS, name
    if args is None:
        arguments = lambda i: [tensor(i)]  # noqa: E731
    else:
        arguments = lambda i: args(i) if args.__code__.co_argcount else args()  # noqa: E731
    PROGRAMS[name] = Program(make, name, arguments, calls, graphs, breaks)


def program(function=None, *, args=None, calls=3, graphs=1, breaks=False):
    if function is None:
        return lambda f: program(f, args=args, calls=calls, graphs=graphs, breaks=breaks)
    _register(lambda: function, function, args, calls, graphs, breaks)
    return function


def built(function=None, *, args=None, calls=3, graphs=1, breaks=False):
    if function is None:
        return lambda f: built(f, args=args, calls=calls, graphs=graphs, breaks=breaks)
    _register(function, function, args, calls, graphs, breaks)
    return function


def takes(area, lines):
    """Graphs of programs that a loop registers, a line each: `name 3`, or `name 3 breaks`."""
    for line in lines.strip().splitlines():
        name, graphs, *breaks = line.split()
        made = PROGRAMS[f"{area}.{name}"]
        made.graphs, made.breaks = int(graphs), breaks == ["breaks"]


def cases(area, name, lines, names, graphs=1, breaks=False):
    """One program from a line a case: what an expression gives or raises, what statements put into `out`."""
    source = f"def {name}(x):\n    out = []\n"
    for line in lines.strip().splitlines():
        try:
            ast.parse(line, mode="eval")
            line = f"out.append(({line}))"
        except SyntaxError:
            pass
        source += (
            f"    try:\n        {line}\n    except Exception as e:\n        out.append((type(e).__name__, str(e)))\n"
        )
    source += "    return x + 1, out\n"
    file = f"<{area}.{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = dict(names, __name__=f"area_{area}")
    exec(compile(source, file, "exec"), space)
    program(space[name], graphs=graphs, breaks=breaks)


def load(areas=AREAS):
    for area in areas:
        importlib.import_module(f"tests.programs.{area}")
    return PROGRAMS
