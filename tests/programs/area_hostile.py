# ruff: noqa
"""What programs of strangers and mutated programs found: the smallest floats, identity of tuples as keys, the end of objects, classes of objects that are
set, methods of C that are bound by hand, dictionaries of partials, what a failing operator leaves behind."""

import functools, math, os, pickle, types, zlib
import torch
from tests.support.registry import built, program, tensor, text, trap

SMALL = 5e-324
FLOATS = [0.3, SMALL, -1.0, 0.0, -0.0, 1.0, -SMALL, 2.5, -2.5, 1e-323, 4e-323, 1.7e308, -1.7e308, 1e308, 2e-308, 0.5]


@program(args=lambda i: [tensor(i), FLOATS[i]], calls=len(FLOATS), graphs=8)
def floats_down_to_the_smallest(x, v):
    return x * v, repr(v)


@program(args=lambda i: [tensor(i), FLOATS[i]], calls=len(FLOATS), graphs=8)
def floats_that_are_asked(x, v):
    return (
        x * v,
        v.is_integer(),
        math.copysign(1, v),
        math.frexp(v),
        hash(v),
        {v: 1},
        trap(lambda: v**2),
        f"{v}",
        int(v),
    )


@program(args=lambda i: [tensor(i), FLOATS[-1 - i]], calls=len(FLOATS), graphs=8)
def floats_the_other_way(x, v):
    y = x + v if v > 0 else x - v
    return y * v, round(v), v == 0, math.isinf(v * 4)


def key():
    return tuple(["n", tuple([1, 2])])


def with_keys(i):
    k = key()
    return [tensor(i), {k: 0, tuple([i]): 1}, {}, [], k]


@program(args=with_keys, graphs=3)
def tuples_of_a_dict_as_keys(x, d, into, o, given):
    k = next(iter(d))
    into.update({k: 1})
    o.extend([k is q for q in into] + [k is given, k[1] is given[1]])
    d.pop(k)
    d[k] = 2
    e = {q: 1 for q in d}
    o.extend(
        [
            [q is given for q in c]
            for c in (d, e, set(d), dict.fromkeys(d), frozenset([k]), d.keys() & e.keys(), {k}, [{q for q in d}.pop()])
        ]
    )
    into.setdefault(given, 3)
    into[k[1]] = 4
    return x + 1


@built(args=lambda i: [tensor(i), tuple(["a", i % 2]), {}], graphs=2)
def tuples_given_as_keys():
    def f(x, k, into):
        into[k] = 1
        into[(k, 1)] = 2
        return x + 1

    def looks(x, k, into):
        y = f(x, k, into)
        return y, [q is k for q in into]

    return looks


class Loud:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(f"end of {self.name}")


def with_log(i):
    return [tensor(i), []]


@program(args=with_log, graphs=0, breaks=True)
def end_of_a_temporary(x, log):
    Loud(log, 1)
    log.append("A")
    return x * len(str(Loud(log, 2).name))


@program(args=with_log, graphs=0, breaks=True)
def end_of_a_variable(x, log):
    a = Loud(log, 1)
    del a
    log.append("A")
    a = Loud(log, 2)
    a = Loud(log, 3)
    log.append("B")
    b = Loud(log, 4)
    return x + 1


@program(args=with_log, graphs=0, breaks=True)
def end_in_a_container(x, log):
    d = {"k": Loud(log, 1)}
    d["k"] = 0
    log.append("A")
    l = [Loud(log, 2), Loud(log, 3)]
    del l[0]
    log.append("B")
    l.clear()
    log.append("C")
    return x + 1


@program(args=with_log, graphs=0, breaks=True)
def end_of_an_argument(x, log):
    (lambda a: log.append("in"))(Loud(log, 1))
    log.append("A")
    try:
        raise ValueError(Loud(log, 2))
    except ValueError:
        pass
    log.append("B")
    return x + 1


@program(args=with_log, graphs=0, breaks=True)
def end_after_a_break(x, log):
    t = Loud(log, 1)
    y = x + 1
    print(end="")
    t = None
    log.append("A")
    return y


class Plain:
    pass


class Slotted:
    __slots__ = ("a",)


class Other(Plain):
    pass


class OtherSlots:
    __slots__ = ("a",)


class Listed(list):
    pass


class Listed2(list):
    pass


class Failure(Exception):
    pass


def give_class(o, c):
    try:
        o.__class__ = c
    except Exception as e:
        return text(e)
    return type(o).__name__


@program(graphs=2, breaks=True)
def classes_that_are_set(x):
    said = [
        give_class(Plain(), Other),
        give_class(Slotted(), OtherSlots),
        give_class(Plain(), Slotted),
        give_class(Plain(), int),
    ]
    said += [
        give_class(Listed(), Listed2),
        give_class([], Listed),
        give_class({}, dict),
        give_class(1, bool),
        give_class((), tuple),
    ]
    said += [
        give_class(ValueError(1), ValueError),
        give_class(Failure(), Failure),
        give_class(Failure(), ValueError),
        give_class(KeyError(), 5),
    ]
    said += [
        give_class(lambda: 1, Plain),
        give_class(types.ModuleType("m"), Plain),
        give_class(Plain, type),
        give_class(len, Plain),
        give_class(x.sum, Plain),
    ]
    said += [
        give_class(functools.partial(len), Plain),
        give_class(torch.ones(1), Plain),
        give_class(give_class, Plain),
        give_class({1}, set),
    ]
    return x + 1, said


@program(graphs=0, breaks=True)
def class_of_a_caught_exception(x):
    try:
        raise ValueError("a")
    except ValueError as e:
        said = [trap(setattr, e, "__class__", type(e)), trap(setattr, e, "__class__", Failure)]
    return x + 1, said


def give(o, name, v):
    try:
        setattr(o, name, v)
    except Exception as e:
        return text(e)
    return repr(getattr(o, name))


@program(graphs=0, breaks=True)
def attributes_of_exceptions_that_are_set(x):
    said = []
    for v in (None, 5, True, "a", (1, 2), [3], KeyError("k"), {"q": 1}):
        for name in ("args", "__cause__", "__context__", "__suppress_context__", "__dict__", "__notes__", "own"):
            e = ValueError("words")
            said.append((name, give(e, name, v), str(e), e.__suppress_context__))
    for kind, name in (
        (StopIteration, "value"),
        (SystemExit, "code"),
        (OSError, "errno"),
        (ImportError, "name"),
        (AttributeError, "obj"),
    ):
        said.append(give(kind(1), name, 7))
    e = ValueError(1)
    said += [trap(delattr, e, n) for n in ("__suppress_context__", "args", "__cause__", "__class__", "nothing")]
    return x + 1, said


@program(breaks=True)
def attributes_of_modules_that_are_set(x):
    m = types.ModuleType("m")
    said = [
        give(m, n, v)
        for n, v in (
            ("a", 1),
            ("__doc__", "d"),
            ("__dict__", {}),
            ("__class__", int),
            ("__name__", 5),
            ("__annotations__", {}),
        )
    ]
    return x + 1, said


class Frozen:
    def __init__(self, a, b):
        put = object.__setattr__.__get__(self)
        put("a", a)
        super().__setattr__("b", b)

    def __setattr__(self, n, v):
        raise AttributeError("frozen")

    def __delattr__(self, n):
        raise AttributeError("frozen")

    def __getattribute__(self, n):
        return object.__getattribute__.__get__(self)(n)

    def remove(self):
        object.__delattr__.__get__(self)("b")


class ReadOnly(dict):
    __slots__ = ("own",)

    def __new__(cls, *given):
        self = dict.__new__(cls, *given)
        dict.__init__(self, *given)
        object.__setattr__(self, "own", -1)
        return self

    def __init__(self, *given):
        pass

    def __setattr__(self, n, v):
        raise AttributeError("read only")

    __setitem__ = __delitem__ = __delattr__ = __setattr__


class ReadOnlyTuple(tuple):
    def __setattr__(self, n, v):
        raise AttributeError("read only")


class ReadOnlySet(set):
    __slots__ = ("own",)
    __setattr__ = ReadOnlyTuple.__setattr__


@program(breaks=True)
def slots_of_containers_past_their_classes(x):
    d, t, s = ReadOnly({"a": x}), ReadOnlyTuple((1, 2)), ReadOnlySet((1, 2))
    object.__setattr__(t, "own", 3)
    object.__setattr__(s, "own", 4)
    said = (
        [trap(setattr, o, "own", 5) for o in (d, t, s)]
        + [o.own for o in (d, t, s)]
        + [trap(object.__setattr__, [], "a", 1), trap(object.__setattr__, 5, "a", 1)]
    )
    object.__delattr__(d, "own")
    return d["a"] + 1, said, hasattr(d, "own")


class Backwards(list):
    def __getitem__(self, i):
        return "own"

    def __len__(self):
        return 77

    def append(self, v):
        raise TypeError("no")


class Holder(dict):
    def __setitem__(self, k, v):
        raise TypeError("read only")

    def __contains__(self, k):
        return True


@program(breaks=True)
def methods_of_c_bound_by_hand(x):
    f = Frozen(x * 2, 3)
    said = [f.b, trap(setattr, f, "a", 1)]
    f.remove()
    said.append(hasattr(f, "b"))
    b, h = Backwards([1, 2]), Holder()
    said += [list.__getitem__.__get__(b)(1), list.__len__.__get__(b)(), b[1], len(b)]
    list.append.__get__(b)(3)
    dict.__setitem__.__get__(h)("k", 4)
    said += [list.__len__(b), dict.__getitem__(h, "k"), dict.__contains__.__get__(h)("q"), "q" in h]
    said += [
        trap(lambda: list.append.__get__({})),
        trap(lambda: object.__setattr__.__get__(None)),
        int.__add__.__get__(5)(6),
    ]
    return f.a, said


@program(breaks=True)
def methods_of_c_bound_after_a_break(x):
    f, b = Frozen(x * 2, 3), Backwards([1, 2])
    put, at = object.__setattr__.__get__(f), list.__getitem__.__get__(b)
    print(end="")
    put("b", 5)
    return f.a + f.b, at(0), b[0]


def takes(*a, **k):
    return a, k


@built(breaks=True)
def partials_keep_no_dictionary():
    p = functools.partial(takes, 1)

    def f(x):
        said = [hasattr(p, "own"), getattr(p, "__name__", None), trap(lambda: p.nothing)]
        print(end="")
        said += [hasattr(p, "__wrapped__"), functools.partial(p, k=4).func is takes, functools.partial(p, k=4)()]
        q = functools.partial(p, 2)
        said.append(trap(lambda: q.lru))
        print(end="")
        said += [
            trap(lambda: q.lru),
            functools.partial(q, 3).func is takes,
            functools.partial(q, 3).func is q,
            functools.partial(q, 3)(),
        ]
        return x + 1, said

    return f


@built
def partials_with_attributes():
    p = functools.partial(takes, 1)
    p.own = 5

    def f(x):
        return x + p.own, functools.partial(p, 2).func is p, functools.partial(p, 2)(), vars(p), hasattr(p, "other")

    return f


CALLED = []


class Hooks:
    def before(self):
        CALLED.append("before")


@program(graphs=0, breaks=True)
def functions_of_c_with_long_signatures(x):
    h = Hooks()
    os.register_at_fork(before=h.before, after_in_child=lambda: CALLED.append("child"))
    with open(__file__, encoding="utf8", errors="strict", newline="", closefd=True) as f:
        first = f.readline()
    said = [
        os.access(__file__, os.R_OK, dir_fd=None, effective_ids=False, follow_symlinks=True),
        pickle.dumps((1, "a"), 2, fix_imports=False, buffer_callback=None),
    ]
    said += [
        pickle.loads(said[1], fix_imports=True, encoding="ASCII", errors="strict"),
        eval(compile("1 + 1", "s", "eval", dont_inherit=True, optimize=0, flags=0)),
    ]
    said += [
        zlib.compressobj(level=1, wbits=9, memLevel=1).compress(b""),
        trap(lambda: open(__file__, mod="r")),
        trap(lambda: pickle.dumps(1, 2, 3)),
        trap(lambda: os.access(__file__)),
    ]
    return x + 1, len(CALLED), first, said


def state(i):
    return [tensor(i), tensor(i + 1), [1, 2, 3], {"a": 1}]


@program(args=state, breaks=True)
def index_of_a_wrong_dtype(a, b, held, d):
    held.pop()
    a += 0.5
    d["b"] = 2
    said = trap(lambda: b.__setitem__(a, 1.0))
    return b, said


@program(args=state, breaks=True)
def raises_by_dtype_after_effects(a, b, held, d):
    held.pop()
    a += 0.5
    d["b"] = 2
    b[a] = 1.0
    held.pop()
    return b


@program(args=lambda i: state(i) + [torch.tensor([0, 7 if i != 1 else 1])], breaks=True)
def raises_by_value_before_effects(a, b, held, d, index):
    a += 0.5
    y = a[index]
    held.pop()
    d["b"] = 2
    return y


@program(graphs=4, breaks=True)
def indices_that_cannot_be(x):
    said = []
    y = x.clone()
    long, mask = torch.tensor([0, 1]), torch.tensor([True, False, True])
    for index in (
        x,
        long.float(),
        (long, torch.tensor([0, 1, 2])),
        (long, long, long),
        torch.ones(2, dtype=torch.bool),
        (mask, long),
        (slice(None), mask),
        long.int(),
        (long, long),
        mask,
    ):
        for value in (1.0, torch.ones(2), torch.ones(7), torch.ones(2, 4), torch.ones(4)):
            said.append(trap(lambda: y.__setitem__(index, value)))
    said.append(trap(lambda: torch.zeros(0, 3).__setitem__(long, 1.0)))
    said.append(trap(lambda: torch.zeros(2, 3, 4).__setitem__((long, slice(None), long), torch.ones(2, 3))))
    said.append(trap(lambda: torch.zeros(2, 3, 4).__setitem__((slice(None), long, long), torch.ones(2, 2))))
    said.append(trap(lambda: torch.zeros(2, 3, 4).__setitem__((long, slice(None), long), torch.ones(3, 2))))
    return y, said


class Stores:
    def __setitem__(self, k, v):
        pass


class Deletes:
    def __delitem__(self, k):
        pass


class Neither:
    __delitem__ = None


def put(o):
    o[2] = 1


def drop(o):
    del o[2]


@program(breaks=True)
def halves_of_item_assignment(x):
    said = [(trap(put, o()), trap(drop, o())) for o in (Stores, Deletes, Neither, object, Plain, Listed, ReadOnly)]
    return x + 1, said


@program(args=lambda i: [tensor(i), [Stores(), Deletes(), Neither(), object(), Listed()][i]], calls=5, breaks=True)
def halves_of_item_assignment_that_raise(x, o):
    y = trap(lambda: put(o))
    drop(o)
    return x + 1, y
