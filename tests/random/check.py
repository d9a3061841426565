"""Runs one program eagerly and compiled, and tells the first place where they differ.

Each run starts from a module of its own, made from the same text. The calls are: the first inputs twice, three other sets of
inputs, the first ones again, with the program's own changes of globals between them; one call is made without gradients.
"""

import contextlib
import dataclasses
import gc
import io
import linecache
import logging
import random
import signal
import sys
import types
import warnings

import torch
import torch.utils.checkpoint

from tests.support.observe import Description, gradients

# Torch imports what a checkpoint needs (sympy among it) when one is called first: the limit below must not fall into that.
torch.utils.checkpoint.checkpoint(torch.sin, torch.ones(1, requires_grad=True), use_reentrant=False)

FILE = "/program.py"
CALLS = [0, 0, 1, 2, 3, 0]
CALL_WITHOUT_GRADIENTS = 4


@dataclasses.dataclass
class Answer:
    """What happened to a program: equal, or where it was not."""

    verdict: str  # "equal", "different", "invalid" (its module cannot be made, or it has no end), "refused" (the compiler said it failed)
    place: str = ""
    eager: str = ""
    compiled: str = ""
    graphs: int = 0
    raised: int = 0  # calls that raised, eagerly

    def text(self):
        return (
            f"{self.place}\n  eager    {self.eager}\n  compiled {self.compiled}" if self.verdict != "equal" else "equal"
        )


class TooLong(BaseException):
    """The program does not end: a list that grows while a loop walks over it."""


@contextlib.contextmanager
def limited(seconds):
    """Gives a list that is not empty once the processor time was up, whatever the program made of that."""
    stopped = []

    def stop(number, frame):
        stopped.append(True)
        raise TooLong(f"no end after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.05)  # again and again: a block of the program's may swallow one
    try:
        yield stopped
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Compiler:
    """Compiles a function, counts the graphs that a backend was given."""

    def __init__(self, name):
        self.name = name
        self.graphs = 0

    def reset(self):
        self.graphs = 0
        if self.name == "torch":
            torch._dynamo.reset()
        elif self.name == "cutaway":
            import cutaway

            cutaway.reset()

    def backend(self, graph_module, example_inputs):
        self.graphs += 1
        return graph_module.forward

    def compile(self, function, native=False):
        if self.name == "torch":
            return torch.compile(function, backend=self.backend)
        if self.name == "cutaway":
            import cutaway

            return cutaway.compile(function, backend="eager" if native else self.backend)
        return function


class Events(io.TextIOBase):
    """Printed text, log records and warnings, in the order in which they happened."""

    def __init__(self):
        self.lines = []

    def write(self, text):
        self.lines.append(f"print {text!r}")
        return len(text)


class Records(logging.Handler):
    def __init__(self, events):
        super().__init__()
        self.events = events

    def emit(self, record):
        self.events.lines.append(f"log {record.levelname} {record.getMessage()!r} {record.funcName}:{record.lineno}")


def load(text):
    linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
    module = types.ModuleType("program")
    sys.modules["program"] = module  # dataclasses look their module up
    exec(compile(text, FILE, "exec"), module.__dict__)
    if not callable(module.fn):
        raise TypeError("the program has no function")
    return module


@contextlib.contextmanager
def watched(events):
    logger = logging.getLogger("program")
    handler = Records(events)
    logger.addHandler(handler)
    logger.propagate = False

    def show(message, category, filename, lineno, file=None, line=None):
        if "Triggered internally" in str(message):  # by an operator: a graph that runs it has no line of the program's
            events.lines.append(f"warning {category.__name__} {str(message)!r}")
        elif filename == FILE:
            events.lines.append(f"warning {category.__name__} {str(message)!r} line {lineno}")

    try:
        with contextlib.redirect_stdout(events), warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            yield
    finally:
        logger.removeHandler(handler)


def run(module, function, calls):
    """A list of lines for each call."""
    shown = []
    for number, k in enumerate(calls):
        torch.manual_seed(k)
        random.seed(k)
        module.between(k)
        args, kwargs = module.inputs(k)
        events = Events()
        description = Description(FILE)
        error = result = None
        with watched(events), torch.set_grad_enabled(number != CALL_WITHOUT_GRADIENTS):
            try:
                result = function(*args, **kwargs)
            except Exception as raised:
                error = raised
            grad_after = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        description.lines += events.lines
        description.add("grad mode", grad_after)
        description.modes()
        description.add("random", hash(random.getstate()))
        description.add("torch random", int(torch.get_rng_state().sum()))
        if error is not None:
            description.exception("raised", error)
        else:
            description.walk("result", result)
        description.walk("args", args)
        description.walk("kwargs", kwargs)
        for name, value in list(vars(module).items()):
            if (
                not name.startswith("__")
                and not isinstance(value, types.ModuleType)
                and name not in ("inputs", "between")
            ):
                description.walk(name, value)
        loss = gradients([result, args, kwargs]) if error is None else None
        if loss is not None:
            try:
                loss.backward()
            except RuntimeError as raised:
                description.add("backward", str(raised))
            after = Description(FILE)
            after.walk("after backward args", args)
            after.walk("after backward kwargs", kwargs)
            description.lines += after.lines
        shown.append((description.lines, error is not None))
        del error
    return shown


def run_once(text, compiler, calls=CALLS, native=False):
    module = load(text)
    function = compiler.compile(module.fn, native=native)
    return run(module, function, calls)


def restore_modes():
    """What one program leaves on must not reach the next: one that was stopped inside a block left autocast on."""
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)


def check(text, compiler, calls=CALLS, native=False):
    """Compares a program with itself, compiled."""
    try:
        torch.manual_seed(0)
        with limited(2) as stopped:
            eager = run_once(text, Compiler("none"), calls)
    except (Exception, TooLong) as error:
        return Answer("invalid", f"{type(error).__name__}: {error}")
    finally:
        restore_modes()
    if stopped:
        return Answer("invalid", "no end")
    compiler.reset()
    torch.manual_seed(0)
    try:
        compiled = run_once(text, compiler, calls, native)
    except Exception as error:  # outside of the program itself: while compiling, or while looking at what it left
        return Answer("different", f"{type(error).__name__}", compiled=str(error), graphs=compiler.graphs)
    finally:
        restore_modes()
        gc.collect(0)
    raised = sum(r for _, r in eager)
    # How deep a recursion without end comes depends on the frames around it, of which a compiled function has others.
    if any("RecursionError" in line for lines, _ in eager for line in lines):
        return Answer("invalid", "RecursionError", graphs=compiler.graphs, raised=raised)
    for number, ((expected, _), (found, _)) in enumerate(zip(eager, compiled, strict=True)):
        if expected != found:
            i = next(
                (i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b),
                min(len(expected), len(found)),
            )
            lines = [lines[i] if i < len(lines) else "(nothing)" for lines in (expected, found)]
            return Answer("different", f"call {number} (inputs {calls[number]})", *lines, compiler.graphs, raised)
    return Answer("equal", graphs=compiler.graphs, raised=raised)


if __name__ == "__main__":
    # check.py FILE [compiler] [native]: one program from a file
    words = sys.argv[1:]
    with open(words[0]) as file:
        answer = check(file.read(), Compiler(words[1] if len(words) > 1 else "cutaway"), native="native" in words)
    print(answer.verdict, f"({answer.graphs} graphs, {answer.raised} calls raised)")
    print(answer.text())
    sys.exit(answer.verdict != "equal")
