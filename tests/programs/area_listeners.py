# ruff: noqa
"""Code of the program's own that hears a logger or a warning: what it does shows to the next line."""

import io
import logging
import warnings

import torch
from tests.support.registry import built, program, tensor


class Keep(logging.Handler):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def emit(self, record):
        self.seen.append(f"{record.levelname}:{record.getMessage()}")


def logger(name, *handlers, filters=()):
    log = logging.getLogger("listeners." + name)
    log.propagate = False
    log.setLevel(logging.INFO)
    log.handlers[:] = list(handlers)
    log.filters[:] = list(filters)
    return log


@built(graphs=4)
def handler_fills_a_list():
    seen = []
    log = logger("a", Keep(seen))

    def f(x):
        y = x + 1
        log.info("one %d", 1)
        n = len(seen)
        log.debug("not heard")
        return y * n, seen[:]

    return f


@built(graphs=4, breaks=True)
def handler_of_a_parent():
    seen = []
    log = logger("b", Keep(seen))

    def f(x):
        y = x + 1
        log.getChild("c").getChild("d").warning("up")
        return y * len(seen)

    return f


@built
def filter_that_counts():
    seen = []

    class Look(logging.Filter):
        def filter(self, record):
            seen.append(record.msg)
            return False

    log = logger("e", logging.NullHandler(), filters=[Look()])

    def f(x):
        y = x * 2
        log.error("f")
        return y, len(seen)

    return f


@built(breaks=True)
def formatter_that_counts():
    seen, text = [], io.StringIO()

    class Form(logging.Formatter):
        def format(self, record):
            seen.append(record.msg)
            return super().format(record)

    handler = logging.StreamHandler(text)
    handler.setFormatter(Form())
    log = logger("g", handler)

    def f(x):
        y = x * 2
        log.critical("f")
        return y, len(seen), text.getvalue()

    return f


@built
def stream_of_the_program():
    class Stream:
        lines = []

        def write(self, text):
            self.lines.append(text)

        def flush(self):
            pass

    stream = Stream()
    log = logger("h", logging.StreamHandler(stream))

    def f(x):
        y = x * 2
        log.log(logging.WARNING, "f")
        return y, "".join(stream.lines)

    return f


@built(graphs=0, breaks=True)
def handler_that_raises():
    class Bad(logging.Handler):
        def emit(self, record):
            raise KeyError("bad")

    log = logger("i", Bad())

    def f(x):
        try:
            log.info("x")
            return x + 1
        except KeyError as e:
            return x - 1, str(e)

    return f


@built(args=lambda i: [tensor(i), i], graphs=2)
def listener_that_comes_later():
    seen = []
    log = logger("j")

    def f(x, i):
        if i == 1:
            log.addHandler(Keep(seen))
        y = x + 1
        log.warning("w")
        return y, len(seen)

    return f


@program(graphs=2, breaks=True)
def recorded_inside(x):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = x + 1
        warnings.warn("w1")
        n = len(seen)
        z = y * 2
        warnings.warn("w2")
    return z, n, len(seen), [str(m.message) for m in seen]


@program(breaks=True)
def raised_inside(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            y = x + 1
            warnings.warn("w1")
            return y, "not raised"
        except UserWarning as e:
            return x * 2, str(e)


@program(graphs=0, breaks=True)
def raised_for_one_category(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=DeprecationWarning)
        warnings.warn("w1")
        try:
            warnings.warn("w2", DeprecationWarning)
            return x, "not raised"
        except DeprecationWarning as e:
            return x * 2, str(e)


@built(breaks=True)
def shown_by_the_program():
    seen = []

    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda m, *a, **k: seen.append(str(m))
            y = x + 1
            warnings.warn("w1")
            return y, len(seen)

    return f
