"""Breaks inside functions that CPython reaches through C: every frame goes on behind them, and nobody sees that there was a break."""

import contextlib
import dis
import gc
import inspect
import io
import linecache
import os
import sys
import traceback
import types
import weakref

import cutaway
import pytest
import torch
from cutaway._polyfills import endings

from tests.programs import nested_breaks
from tests.support.capture_cases import Counter

pytestmark = pytest.mark.usefixtures("fresh_capture")

X = torch.arange(1.0, 5.0)

# Graphs of the programs whose break is a print, by place: depth 1, depth 2, in a loop, in a with block, in a try block.
GRAPHS = {
    "function": (2, 2, 4, 2, 2),
    "init": (2, 2, 4, 2, 2),
    "init_with_super": (2, 2, 4, 2, 2),
    "new": (2, 2, 4, 2, 2),
    "metaclass_call": (2, 2, 4, 2, 2),
    "post_init": (2, 2, 4, 2, 2),
    "module_init": (2, 2, 4, 2, 2),
    "property": (2, 2, 4, 2, 2),
    "property_called": (2, 2, 4, 2, 2),
    "property_set": (2, 2, 4, 2, 2),
    "descriptor": (2, 2, 5, 2, 2),
    "getattr": (2, 2, 4, 2, 2),
    "getattribute": (2, 2, 4, 2, 2),
    "getattr_called": (2, 2, 4, 2, 2),
    "setattr": (2, 2, 4, 2, 2),
    "getitem": (2, 2, 4, 2, 2),
    "setitem": (2, 2, 4, 2, 2),
    "delitem": (2, 2, 4, 2, 2),
    "len": (2, 2, 4, 2, 2),
    "contains": (3, 3, 5, 3, 3),
    "bool": (2, 2, 4, 2, 2),
    "bool_of_len": (2, 2, 4, 2, 2),
    "not": (2, 2, 4, 2, 2),
    "or": (2, 2, 4, 2, 2),
    "bool_called": (2, 2, 4, 2, 2),
    "iter": (2, 2, 4, 2, 2),
    "next": (3, 3, 5, 3, 3),
    "add": (2, 2, 4, 2, 2),
    "radd": (2, 2, 4, 2, 2),
    "iadd": (2, 2, 4, 2, 2),
    "neg": (2, 2, 4, 2, 2),
    "less": (2, 2, 4, 2, 2),
    "equal": (2, 2, 4, 2, 2),
    "enter": (2, 2, 5, 2, 2),
    "exit": (2, 2, 4, 2, 2),
    "call": (2, 2, 4, 2, 2),
    "hash": (4, 4, 6, 4, 4),
    "sorted": (7, 7, 11, 7, 7),
    "sort": (7, 7, 10, 7, 7),
    "min": (7, 7, 11, 7, 7),
    "max": (7, 7, 11, 7, 7),
    "map": (6, 6, 8, 6, 6),
    "list_of_map": (5, 5, 9, 5, 5),
    "filter": (6, 6, 8, 6, 6),
    "reduce": (4, 4, 6, 4, 4),
    "generator": (5, 5, 7, 5, 5),
    "generator_next": (2, 2, 4, 2, 2),
    "generator_list": (5, 5, 7, 5, 5),
    "generator_tuple": (5, 5, 7, 5, 5),
    "sum_of_map": (6, 6, 10, 6, 6),
    "filter_in_a_loop": (9, 9, 12, 9, 9),
    "generator_unpacked": (2, 2, 4, 2, 2),
    "generator_sum": (5, 5, 7, 5, 5),
    "yield_from": (5, 5, 6, 5, 5),
    "generator_calls": (5, 5, 7, 5, 5),
    "generator_expression": (5, 5, 7, 5, 5),
    "list_comprehension": (5, 5, 7, 5, 5),
    "manager": (3, 3, 6, 3, 3),
}


def load(kind, what, place):
    text = nested_breaks.program(kind, what, place)
    module = types.ModuleType(f"{kind}_{what}_{place}")
    module.__file__ = f"<{module.__name__}>"
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(True), module.__file__)
    sys.modules[module.__name__] = module  # dataclasses look it up
    try:
        exec(compile(text, module.__file__, "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return [plain(v) for v in value] if isinstance(value, list) else value


def shown(function, module):
    module.LOG.clear()
    module.KEPT.clear()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = plain(function(X.clone()))
    return result, repr(module.LOG), plain(list(module.KEPT.values())), printed.getvalue()


@pytest.mark.parametrize("kind", nested_breaks.KINDS)
def test_as_eager(kind):
    graphs = []
    for place in nested_breaks.PLACES:
        for what in nested_breaks.BREAKS:
            module = load(kind, what, place)
            expected = shown(module.program, module)
            cutaway.reset()
            counter = Counter()
            compiled = cutaway.compile(module.program, backend=counter)
            assert shown(compiled, module) == expected, (what, place)
            if what == "print":
                graphs.append(counter.frame_count)
            assert shown(compiled, module) == expected, (what, place)
    if sys.version_info < (3, 12):  # there a generator's whole body is a block, in which it does not go on
        assert tuple(graphs) == GRAPHS[kind]


def test_rest_begins_a_statement():
    """A frame of an ending is made with an empty stack."""
    for name, function in vars(endings).items():
        if name.startswith("after_"):
            code = list(dis.get_instructions(function))
            places = [i for i, at in enumerate(code) if at.opname == "LOAD_GLOBAL" and at.argval == "_rest"]
            assert len(places) == 1, name
            assert code[places[0]].starts_line is not None or code[places[0] - 1].opname == "NOP", name
            assert len(inspect.signature(function).parameters) == function.__code__.co_argcount


# --- what goes wrong behind the break


class Init:
    def __init__(self, x, result=None):
        self.y = x * 2
        print("init")
        self.z = self.y + 1
        if result == "raise":
            raise ValueError("late")
        return result

    def __bool__(self):
        return True


def init_that_raises(x):
    y = x + 1
    return Init(y, "raise").z


def init_with_a_result(x):
    return Init(x + 1, 3).z


class Answers:
    def __init__(self, x, answer):
        self.x, self.answer = x, answer

    def __bool__(self):
        y = self.x * 2
        print("bool")
        self.x = y + 1
        return self.answer

    def __len__(self):
        y = self.x * 2
        print("len")
        self.x = y + 1
        return self.answer

    def __iter__(self):
        print("iter")
        return self.answer

    def __add__(self, other):
        y = self.x * 2
        print("add")
        self.x = y + 1
        return self.answer

    def __lt__(self, other):
        print("lt")
        return self.answer


class Reflected:
    def __radd__(self, other):
        print("radd")
        return other.x

    def __gt__(self, other):
        print("gt")
        return other.x


def truth_that_is_none(x):
    return 1 if Answers(x, 3) else 2


def length_that_is_negative(x):
    return len(Answers(x, -1))


def length_that_is_text(x):
    return len(Answers(x, "a"))


def iterator_that_is_none(x):
    return [y for y in Answers(x, 3)]


def operator_without_answer(x):
    return Answers(x, NotImplemented) + 1


def operator_of_the_right_side(x):
    return Answers(x, NotImplemented) + Reflected()


def in_place_operator(x):
    a = Answers(x, NotImplemented)
    a += Reflected()
    return a


def comparison_without_answer(x):
    return Answers(x, NotImplemented) < 1


def comparison_of_the_right_side(x):
    return Answers(x, NotImplemented) < Reflected()


class Missing(torch.nn.Module):
    def __init__(self, x):
        super().__init__()
        self.x = x

    @property
    def a(self):
        y = self.x * 2
        print("property")
        self.seen = y + 1
        return self.not_there

    def __getattr__(self, name):
        if name == "a":
            print("fallback")
            return self.seen
        return super().__getattr__(name)


def property_without_attribute(x):
    return Missing(x).a


def property_that_raises(x):
    class Local:
        @property
        def a(self):
            y = x * 2
            print("property")
            raise KeyError(y.shape[0])

    return Local().a


def stop_inside(x):
    y = x + 1
    print("stop")
    raise StopIteration(y.shape[0])


def generating(x):
    y = x * 2
    yield y
    stop_inside(y)
    yield y + 1


def stop_iteration_in_a_generator(x):
    total = x
    for y in generating(x):
        total = total + y
    return total


def raises_in_a_generator(x):
    def gen():
        y = x * 2
        print("gen")
        yield y + 1
        raise ValueError("gen")

    out = []
    try:
        for z in gen():
            out.append(z)
    except ValueError as error:
        return [*out, str(error)]


def uncaught_in_a_generator(x):
    def gen():
        y = x * 2
        print("gen")
        yield y + 1
        int("no number")

    return [z for z in gen()]


def key_that_raises(x):
    def key(n):
        y = x * n
        print(n)
        if n == 2:
            raise ValueError(y.shape[0])
        return -n

    return sorted([1, 2, 3], key=key)


def sort_that_raises(x):
    numbers = [3, 1, 2]

    def key(n):
        print(n, numbers)
        if n == 2:
            raise ValueError("key")
        return n

    try:
        numbers.sort(key=key)
    except ValueError as error:
        return numbers, str(error), x + 1


def sort_of_a_list_that_grows(x):
    numbers = [3, 1, 2]

    def key(n):
        print(n, numbers)
        numbers.append(n)
        return n

    try:
        numbers.sort(key=key)
    except ValueError as error:
        return numbers, str(error), x + 1


def sort_that_cannot_compare(x):
    numbers = [3, 1, 2, 5]

    def key(n):
        print(n)
        return "text" if n == 2 else n

    try:
        numbers.sort(key=key)
    except TypeError as error:
        return numbers, str(error), x + 1


def sorted_backward_and_stable(x):
    def key(n):
        y = x * n[0]
        print(n)
        return y.shape[0] + n[0] // 2

    return sorted([(1, "a"), (0, "b"), (3, "c"), (2, "d")], key=key, reverse=True), max([3, 2], [3, 1], key=len)


def extreme_of_nothing(x):
    def key(n):
        print(n)
        return n

    return max([], default=x, key=key), min((y for y in [3, 1, 2]), key=key)


def tree(x, depth):
    class Node:
        def __init__(self, x, depth):
            self.x = x + depth
            print(depth)
            self.child = Node(self.x, depth - 1) if depth else None
            self.x = self.x * 2

    node, out = Node(x, depth), []
    while node is not None:
        out.append(node.x)
        node = node.child
    return out


def recursion(x):
    return tree(x, 6)


class Swallows:
    def __enter__(self):
        print("enter")
        return self

    def __exit__(self, kind, value, trace):
        print("exit", kind)
        return True


def exceptions_in_a_with_block(x):
    with Swallows():
        x = Init(x, "raise").z
    with Swallows():
        x = x + (Answers(x, NotImplemented) + 1)
    return x


def enter_that_raises(x):
    class Enters:
        def __enter__(self):
            y = x + 1
            print("enter")
            raise ValueError(y.shape[0])

        def __exit__(self, *args):
            print("never")

    try:
        with Enters():
            print("never")
    except ValueError as error:
        return x, error.args


def a_loop_that_is_left(x):
    def gen():
        for i in range(5):
            y = x * i
            print(i)
            yield y

    for z in gen():
        if z.shape[0] == 4:
            break
    return z


def generators_in_each_other(x):
    def inner(n):
        for i in range(n):
            y = x * i
            print("inner", i)
            got = yield y
            print("got", got)
        return n

    def outer():
        a = yield from inner(2)
        b = yield from inner(1)
        yield x + a + b

    return [z + 1 for z in outer()], list(outer()), sum(outer())


def a_generator_that_is_kept(x):
    def gen():
        y = x * 2
        print("one")
        yield y + 1
        print("two")
        yield y + 2

    g = gen()
    a = next(g)
    b = next(g)
    return a, b, next(g, None), list(g)


def a_generator_in_a_try_block(x):
    def gen():
        try:
            y = x * 2
            print("try")
            yield y + 1
        finally:
            print("finally")

    return [z * 2 for z in gen()]


def iterator_with_a_break(x):
    class Count:
        n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            y = x * self.n
            print(self.n)
            if self.n == 4:
                raise StopIteration
            return y + 1

    total = x
    for y in Count():
        total = total + y
    else:
        total = total * 2
    return total, next(iter(Count())), list(Count())


def map_that_stops(x):
    def step(n):
        y = x * n
        print(n)
        if n == 2:
            raise StopIteration
        return y

    total = x
    for y in map(step, [1, 2, 3]):
        total = total + y
    return total


def filter_that_stops(x):
    def some(n):
        y = x * n
        print(n, y.shape)
        if n == 4:
            raise StopIteration
        return n % 2

    out = []
    for n in filter(some, [1, 2, 3, 4, 5]):
        out.append(n)
    return out, list(map(some, [1, 2, 4, 3])), tuple(map(some, [2, 3])), sum(map(some, [1, 1, 4, 1]))


def two_breaks_in_one_property(x):
    class Local:
        @property
        def f(self):
            y = x + 1
            print(1)
            y = y * 2
            print(2)
            return lambda z: z + y

    return Local().f(x)


def or_and_and(x):
    return (Answers(x, False) or x), (Answers(x, True) and x), (Answers(x, True) or x).x, not Answers(x, True)


def stores(x):
    class Store:
        def __setattr__(self, name, value):
            y = value * 2
            print("set", name)
            object.__setattr__(self, name, y + 1)

        def __delattr__(self, name):
            print("del", name)
            object.__delattr__(self, name)

        def __setitem__(self, key, value):
            print("item", key)
            self.item = value

    s = Store()
    s.a = x
    setattr(s, "b", x + 1)  # noqa: B010
    s[1] = x + 2
    s[1:2] = x + 3
    result = s.a, s.b, s.item, setattr(s, "c", x)
    del s.a
    delattr(s, "b")
    return result, sorted(vars(s))


PROGRAMS = [
    f
    for f in list(globals().values())
    if isinstance(f, types.FunctionType)
    and f.__code__.co_varnames[: f.__code__.co_argcount] == ("x",)
    and f.__code__.co_argcount == 1
    and f not in (stop_inside, generating)
]


def places(error):
    """Every frame of the traceback and of what came before, but those of this file's own machinery."""
    seen = []
    while error is not None:
        stack = [
            (os.path.basename(f.filename), f.name, f.lineno)
            for f in traceback.extract_tb(error.__traceback__)
            if f.name not in ("outcome", "test_what_goes_wrong")
        ]
        seen.append((type(error), str(error), stack, error.__suppress_context__))
        error = error.__cause__ or error.__context__
    return seen


def outcome(function):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = repr(function(X.clone()))
        except Exception as error:
            result = places(error)
    return result, printed.getvalue()


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_what_goes_wrong(function):
    expected = outcome(function)
    for backend in ("eager", Counter()):
        cutaway.reset()
        compiled = cutaway.compile(function, backend=backend)
        for _ in range(3):
            assert outcome(compiled) == expected


def test_nothing_is_kept():
    class Kept:
        def __init__(self, x):
            self.x = x * 2
            os.getpid()
            self.y = self.x + 1

        @property
        def sum(self):
            y = self.x + self.y
            os.getpid()
            return y + 1

    made = []

    def program(x):
        k = Kept(x)
        made.append(weakref.ref(k))
        for z in (k.sum for _ in range(2)):
            x = x + z
        return x

    def alive(function):
        made.clear()
        gc.collect()
        function(X)
        return [r() is not None for r in made]

    assert alive(program) == [False]
    compiled = cutaway.compile(program, backend="eager")
    for _ in range(3):
        assert alive(compiled) == [False]


def test_reasons_do_not_show_endings():
    def key(n):
        print(n)
        return n

    def program(x):
        return x + sorted([2, 1], key=key)[0]

    with contextlib.redirect_stdout(io.StringIO()):
        found = cutaway.explain(program)(X)
    for reason in found.break_reasons:
        assert "endings.py" not in str(reason)
