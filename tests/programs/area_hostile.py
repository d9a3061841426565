# ruff: noqa
"""What programs of strangers and mutated programs found: the smallest floats, identity of tuples as keys, the end of objects, classes of objects that are
set, methods of C that are bound by hand, dictionaries of partials, what a failing operator leaves behind."""

import abc, collections, enum, functools, math, os, pickle, sys, threading, types, zlib
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


# What the callers of a compiled function handle is seen inside it.


def within_handlers(f):
    def called(x, i):
        if i == 0:
            return f(x)
        try:
            raise LookupError("outer")
        except LookupError:
            return f(x)

    return called


def by_handler(i):
    return [tensor(i), i % 2]


@program(args=by_handler, graphs=2)
def callers_in_handlers(x, i):
    def asked(x):
        try:
            raise ValueError("own")
        except ValueError as e:
            context = e.__context__
        return x + 1, repr(sys.exception()), sys.exc_info()[0], repr(context)

    return within_handlers(asked)(x, i)


def raised_again(x):
    y = x + 1
    try:
        raise
    except RuntimeError as e:
        return y, text(e)
    except LookupError as e:
        return y * 2, text(e)


@program(args=lambda i: [tensor(i), i % 2], calls=4, graphs=2)
def raise_without_an_exception(x, i):
    return within_handlers(raised_again)(x, i)


class OddMapping:
    def __init__(self, log, **items):
        self.log, self.items = log, items

    def keys(self):
        self.log.append("keys")
        return list(self.items)

    def __getitem__(self, key):
        self.log.append(key)
        return self.items[key]


@program
def doubled_keywords(x):
    log = []
    take = lambda *a, **k: (a, k)
    return (
        x + 1,
        trap(lambda: take(1, **{"q": 1}, **OddMapping(log, p=3, q=2))),
        trap(lambda: {**{"q": 1}, **OddMapping(log, q=2)}),
        log,
    )


@built(breaks=True)
def hooks_of_abstract_classes():
    asked = []

    class Shape(abc.ABC):
        @classmethod
        def __subclasshook__(cls, other):
            asked.append(other.__name__)
            return NotImplemented

    class Square(Shape):
        pass

    def asks(x):  # the answers are remembered
        return isinstance(Square(), Shape), issubclass(Square, Shape), isinstance(3, Shape), list(asked), x + 1

    return asks


class Lazy:
    def __init__(self, log, n):
        self.log, self.n = log, n

    def __iter__(self):
        self.log.append("iter")
        return self

    def __next__(self):
        self.log.append(self.n)
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n

    def __length_hint__(self):
        self.log.append("hint")
        return self.n


@program
def iterators_asked_after_their_end(x):
    log = []
    all = [
        zip(Lazy(log, 2), Lazy(log, 3)),
        map(lambda v: v, Lazy(log, 1)),
        filter(None, Lazy(log, 2)),
        enumerate(Lazy(log, 1)),
        zip(Lazy(log, 1), strict=True),
    ]
    out = [[list(i), list(i), next(i, "end")] for i in all]
    first, *rest = Lazy(log, 3)
    (a, *b), c = Lazy(log, 2), 4
    return x + 1, out, first, rest, a, b, c, log, trap(lambda: [1 for (p, q, *r) in [Lazy(log, 1)]])


MISSED = []


class Colour(enum.Enum):
    RED = 1
    GREEN = 2

    @classmethod
    def _missing_(cls, value):
        MISSED.append(value)
        return cls.GREEN if value == "g" else None


@program(args=lambda i: [tensor(i), [1, "g", 9, 7, 2, 11][i]], calls=6, graphs=2)
def enumerations_with_missing_members(x, value):
    MISSED.clear()
    return trap(lambda: Colour(value)), x + 1, list(MISSED)


class OfThread(threading.local):
    def __init__(self, k):
        self.k = k


@built(graphs=0, breaks=True)
def attributes_of_threads():
    s = OfThread(5)

    def counts(x):
        s.k += 1
        s.other = x
        return x * s.k, s.k, sorted(vars(s))

    return counts


class Descriptor:
    def __get__(self, instance, owner):
        return 1000


@built(graphs=3)
def descriptors_that_lose_their_setter():
    class Some(Descriptor):
        pass

    class Holder:
        k = Some()

    holder, calls = Holder(), []

    def read(x):
        return x + holder.k

    def called(x):
        calls.append(1)
        if len(calls) == 2:
            Some.__set__ = lambda *a: None
            holder.__dict__["k"] = 5
        if len(calls) == 3:
            del Some.__set__
        return read(x)

    return called


@types.coroutine
def awaited(k):
    got = yield k
    return got


async def awaits(x):
    return x + await awaited(3)


@program
def generators_that_are_awaited(x):
    c = awaits(x)
    first = c.send(None)
    try:
        c.send(5)
    except StopIteration as e:
        return first, e.value


class WithSlot:
    __slots__ = ("v",)


@program(args=lambda i: [tensor(i), WithSlot()])
def slots_set_and_deleted(x, o):
    o.v = 3
    del o.v
    p = WithSlot()
    p.v = x
    del p.v
    return trap(lambda: delattr(o, "v")), trap(lambda: o.v), trap(lambda: p.v), hasattr(o, "v"), p, x + 1


@program(args=lambda i: [tensor(i), i - 1], calls=2, graphs=2)
def dimensions_of_a_number(x, dim):
    s = x.sum()
    return (
        [
            trap(lambda: f(s, dim))
            for f in (torch.argmax, torch.argmin, torch.amax, torch.sum, torch.logsumexp, torch.softmax, torch.cumsum)
        ],
        trap(lambda: s.max(dim)),
        s.var(dim, correction=0),
    )


@program(args=lambda i: [torch.arange(10.0), i], calls=2, graphs=2)
def strided_views_past_their_tensor(base, i):
    x = base[2:5] if i else base[:1]
    w = x.as_strided((2, 2), (1, 2), 1)
    w.add_(10)
    return w, x, base


class Bound:
    k = 2

    def m(self, x):
        return x + self.k


@program
def calls_of_bound_methods(x):
    b = Bound()
    return (
        b.m.__call__(x),
        Bound.m.__call__(b, x),
        x.add.__call__(1),
        len.__call__([1]),
        b.m.__func__(b, x),
        b.m.__self__ is b,
        b.m.__class__,
        b.m.__name__,
    )


SEEN = []


class Watched(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        SEEN.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})


@program(args=lambda i: [tensor(i).as_subclass(Watched)], calls=4)
def gradients_of_watched_tensors(x):
    SEEN.clear()
    return len(x), x.grad, x.requires_grad, (x + 1).sum(), list(SEEN)


@program
def pieces_that_share_memory(x):
    a = x * 1
    p, q = a.unsafe_chunk(2, 1)
    p.mul_(2)
    c = x * 1
    s = c.unsafe_split(2, 1)
    s[1].add_(5)
    return p, q, a, c, s[0]


@program
def lists_that_name_a_tensor_twice(x):
    t, u = x * 1, x * 1
    torch._foreach_add_([t, t], 1)
    torch._foreach_mul_([u[:2], u[1:]], 2)
    return t, u


# Numbers and sizes that change between calls are told apart though a message would call them by one name.

n, w = 5, 0.5
t = torch.ones(2)


def by_global(x):
    return x * n + w, t * 2


def with_numbers(i):
    global n, w, t
    n, w, t = 5 + 3 * i, 0.5 + i, torch.ones(2 + i)
    return [tensor(i), 2 + i, 10.25 - 3 * i, torch.ones(5 + 2 * i)]


@program(args=with_numbers, calls=5, graphs=2)
def locals_and_globals_of_one_name(x, n, w, t):
    y, u = by_global(x)
    return y + n, y * w, u, t * 3, t.shape[0] + u.shape[0]


class Key:
    pass


KEYS = Key(), Key()


@program(
    args=lambda i: [tensor(i), {KEYS[0]: 1 + i, KEYS[1]: 40 + 7 * i}, {KEYS[0]: 1.5 * i, KEYS[1]: 2.25 - i}],
    calls=5,
    graphs=2,
)
def keys_of_one_class(x, d, e):
    return x * d[KEYS[0]] + d[KEYS[1]], d[KEYS[0]] - d[KEYS[1]], x * e[KEYS[0]] + e[KEYS[1]]


@built(calls=5, graphs=2)
def counters_of_two_classes():
    class A:
        calls = 0

    class B:
        calls = 0

    def counts(x):
        A.calls += 1
        B.calls += 1
        A.calls += 1
        return x + 1, A.calls, B.calls

    return counts


# What a recording makes anew (the tensor of a stored number) does not make sizes constant.
@program(args=lambda i: [torch.arange(5.0 + i)], calls=5, graphs=2)
def numbers_stored_at_changing_sizes(x):
    y = x * 2
    y[0] = 7
    y[y == 4.0] = -1
    y[1:3] += 0.5
    return y


def binds_nothing(x):
    return x


@program
def functions_bound_to_nothing(x):
    said = []
    for given in (None,), (None, None), (None, int), (3,), (3, None):
        try:
            said.append(binds_nothing.__get__(*given) is binds_nothing)
        except TypeError as e:
            said.append(str(e))
    return x + 1, said


@program
def keys_that_are_moved_stay(x):
    d = collections.OrderedDict({(1, "a"): x, (2, "b"): x + 1, (3, "c"): 0})
    d.move_to_end((1.0, "a"))
    d.move_to_end((True, "a"), last=False)
    d.move_to_end((2.0, "b"))
    return [(type(k[0]), k) for k in d], list(d.values())


def lists_that_shrink(over, makes, takes):
    """A loop over a list that has become shorter than the place of the loop, and grows again behind a break."""

    def f(x, given):
        v = [x, x + 1, x + 2] if makes else given
        seen = []
        for a in over(v):
            seen.append(a)
            for _ in range(takes):
                if v:
                    del v[0]
            sys.getrefcount(None)
            if len(seen) < 4:
                v.append(x * len(seen))
        return seen, list(v)

    return f


OVERS = {
    "for": iter,
    "backward": reversed,
    "numbered": enumerate,
    "zipped": lambda v: zip(v, "abcdef"),
    "mapped": lambda v: map(lambda a: a, v),
}


def shrinking_arguments(i):
    return [tensor(i), [tensor(j) for j in range(3)]]


@built(args=shrinking_arguments, graphs=17, breaks=True)
def list_made_here_that_shrinks():
    return lambda x, given: [(lists_that_shrink(over, True, n)(x, None)) for over in OVERS.values() for n in (1, 3)]


@built(args=shrinking_arguments, graphs=8, breaks=True)
def list_given_that_shrinks():
    def f(x, given):
        return [lists_that_shrink(over, False, n)(x, given) for over in OVERS.values() for n in (1, 3)]

    return f
