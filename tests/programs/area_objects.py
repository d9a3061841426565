# ruff: noqa
"""Classes from the language reference: stores on classes, classes made inside, metaclasses, hooks of class creation, slots, descriptors, attribute access."""

import abc
import copy
import dataclasses
import enum
import functools
import operator
import threading
import types
import typing
import weakref

import torch
from tests.support.registry import built, program, tensor


# --- attributes of classes ---


@built(graphs=2)
def class_counter():
    class Counter:
        count = 0

    def f(x):
        Counter.count += 1
        return x * 2, Counter.count

    return f


@built(graphs=2)
def class_attribute_new():
    class A:
        pass

    def f(x):
        A.scale = 3.0
        return x * A.scale, A.scale, hasattr(A, "scale"), "scale" in A.__dict__

    return f


@built(graphs=2)
def class_attribute_tensor():
    class A:
        last = None

    def f(x):
        before = A.last
        A.last = x + 1
        return (x if before is None else before + x), A.last is before

    return f


@built(graphs=2)
def class_attribute_through_instance():
    class A:
        seen = 0

        def hit(self):
            type(self).seen += 1
            return self.seen

    a, b = A(), A()

    def f(x):
        return x * a.hit() + b.hit(), a.seen, b.seen, A.seen

    return f


@built(graphs=2)
def class_attribute_inherited():
    class A:
        k = 1

    class B(A):
        pass

    def f(x):
        B.k = A.k + 1
        y = x * B.k
        A.k = 10
        return y, A.k, B.k

    return f


@built(graphs=2)
def class_attribute_deleted():
    class A:
        k = 1

    class B(A):
        k = 2

    def f(x):
        first = getattr(B, "k")
        if "k" in vars(B):
            del B.k
        return x + first + B.k

    return f


@built(graphs=3)
def class_registry_list():
    class A:
        made = []

        def __init__(self, v):
            A.made.append(v)
            self.v = v

    def f(x):
        A(1)
        A(2)
        return x * len(A.made)

    return f


@built(graphs=2)
def class_method_replaced():
    class A:
        def go(self, x):
            return x + 1

    def f(x):
        a = A()
        first = a.go(x)
        A.go = lambda self, x: x * 5
        second = a.go(x)
        return first, second

    return f


@built
def class_setattr_builtin():
    class A:
        pass

    def f(x):
        setattr(A, "n", 4)
        y = x + getattr(A, "n")
        delattr(A, "n")
        return y, hasattr(A, "n")

    return f


@built(graphs=2)
def class_attribute_classmethod_counter():
    class A:
        total = 0

        @classmethod
        def bump(cls, by):
            cls.total += by
            return cls.total

    def f(x):
        return x + A.bump(2) + A.bump(3)

    return f


@built(graphs=2)
def class_singleton_by_new():
    class Single:
        _instance = None

        def __new__(cls):
            if cls._instance is None:
                cls._instance = super().__new__(cls)
            return cls._instance

    def f(x):
        a, b = Single(), Single()
        a.k = 2
        return x * b.k, a is b

    return f


# --- classes made inside ---


@program
def made_inside(x):
    class A:
        k = 3

        def go(self, y):
            return y * self.k

    return A().go(x), A.__name__, A.__qualname__, A.__module__


@program
def made_inside_closure(x):
    n = x.shape[0]

    class A:
        def __init__(self, t):
            self.t = t

        def size(self):
            return self.t + n

    return A(x).size(), isinstance(A(x), A), issubclass(A, object)


@program
def made_inside_inherit_super(x):
    class A:
        def __init__(self, k):
            self.k = k

        def go(self, y):
            return y + self.k

    class B(A):
        def __init__(self, k):
            super().__init__(k + 1)

        def go(self, y):
            return super().go(y) * 2

    b = B(3)
    return b.go(x), b.k, [c.__name__ for c in B.__mro__]


@program
def made_inside_property(x):
    class A:
        def __init__(self, t):
            self._t = t

        @property
        def double(self):
            return self._t * 2

        @double.setter
        def double(self, v):
            self._t = v / 2

        @staticmethod
        def one():
            return 1

        @classmethod
        def make(cls, t):
            return cls(t)

    a = A.make(x)
    y = a.double
    a.double = x + 4
    return y, a._t + A.one()


@program
def made_inside_dataclass(x):
    @dataclasses.dataclass
    class P:
        a: torch.Tensor
        b: int = 2

    p = P(x)
    return p.a * p.b, P(x, 5).b


@program(graphs=3, breaks=True)
def made_inside_named_tuple(x):
    class P(typing.NamedTuple):
        a: torch.Tensor
        b: int = 2

    p = P(x)
    return p.a * p.b, p._fields, p[1]


@program(graphs=3, breaks=True)
def made_inside_enum(x):
    class Color(enum.Enum):
        RED = 1
        GREEN = 2

    return x * Color.GREEN.value, Color.RED.name, Color(2) is Color.GREEN, len(Color)


@program
def made_by_type(x):
    A = type("A", (), {"k": 3, "go": lambda self, y: y * self.k})
    return A().go(x), A.__name__


@program
def made_inside_exception(x):
    class MyError(ValueError):
        pass

    try:
        raise MyError("bad", 3)
    except ValueError as e:
        return x * e.args[1], type(e).__name__, str(e)


@program
def made_inside_decorated(x):
    def mark(cls):
        cls.marked = True
        return cls

    @mark
    class A:
        pass

    return x + 1 if A.marked else x


@program
def made_inside_local_loop(x):
    kinds = []
    for i in range(3):

        class A:
            k = i

        kinds.append(A)
    return x + sum(a.k for a in kinds), len(set(kinds))


# --- metaclasses and hooks ---


class CountingMeta(type):
    def __call__(cls, *args, **kwargs):
        obj = super().__call__(*args, **kwargs)
        obj.made_by = cls.__name__
        return obj


class Counted(metaclass=CountingMeta):
    def __init__(self, t):
        self.t = t


@program
def metaclass_call(x):
    c = Counted(x)
    return c.t * 2, c.made_by


class LenMeta(type):
    def __len__(cls):
        return 4

    def __getitem__(cls, key):
        return key * 2

    def __contains__(cls, key):
        return key == 3

    def __iter__(cls):
        return iter([1, 2])

    def __add__(cls, other):
        return other + 10

    def __bool__(cls):
        return False

    @property
    def tag(cls):
        return cls.__name__.lower()

    def helper(cls, y):
        return y + 1

    def __eq__(cls, other):
        return cls is other

    def __hash__(cls):
        return 5

    def __instancecheck__(cls, obj):
        return isinstance(obj, int)


class WithLen(metaclass=LenMeta):
    pass


@program
def metaclass_operators(x):
    return x * len(WithLen), WithLen[3], 3 in WithLen, list(WithLen), WithLen + 1, bool(WithLen), WithLen.tag


@program
def metaclass_methods(x):
    return WithLen.helper(x), isinstance(3, WithLen), isinstance("a", WithLen), WithLen == WithLen


class Plugin:
    registry = []

    def __init_subclass__(cls, /, key=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.key = key
        Plugin.registry.append(key)


class PluginA(Plugin, key="a"):
    pass


@program
def init_subclass_outside(x):
    return x * len(Plugin.registry), PluginA.key


@program
def init_subclass_inside(x):
    seen = []

    class Base:
        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__()
            seen.append((cls.__name__, kwargs))

    class Child(Base, flag=1):
        pass

    return x + len(seen), seen


class Named:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return instance.__dict__.get(self.name, 7)

    def __set__(self, instance, value):
        instance.__dict__[self.name] = value + 1


class UsesNamed:
    field = Named()
    other = Named()


@program
def set_name_descriptor(x):
    u = UsesNamed()
    before = u.field
    u.field = 3
    return x * u.field, before, u.other, UsesNamed.field.name


@program
def set_name_inside(x):
    class D:
        def __set_name__(self, owner, name):
            self.name = (owner.__name__, name)

    class A:
        d = D()

    return x + 1, A.d.name


class Indexable:
    def __class_getitem__(cls, item):
        return (cls.__name__, item)


@program
def class_getitem(x):
    name, item = Indexable[3]
    return x * item, name


@program
def class_getitem_builtin(x):
    t = list[int]
    u = dict[str, torch.Tensor]
    return x + len(t.__args__), t.__origin__ is list, u.__args__[0] is str


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class SlottedChild(Slotted):
    __slots__ = ("c",)


@program
def slots_use(x):
    s = SlottedChild(x)
    s.c = 4
    try:
        s.b
    except AttributeError:
        missing = True
    try:
        s.zzz = 1
    except AttributeError as e:
        text = str(e)
    del s.c
    return s.a * 2, missing, text, hasattr(s, "c"), hasattr(s, "__dict__")


@program
def slots_returned(x):
    s = SlottedChild(x * 2)
    s.b = (1, 2)
    return s


class TotalDescr:
    def __get__(self, obj, owner=None):
        return (obj, 5)[1]


class NonData:
    def __get__(self, obj, owner=None):
        return 11


class Lookup:
    total = TotalDescr()
    nondata = NonData()


@program
def descriptors_precedence(x):
    o = Lookup()
    a = o.nondata
    o.__dict__["nondata"] = 2
    return x * o.nondata + a, o.total, Lookup.total


class Attrs:
    def __init__(self):
        self.known = 1

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return len(name)
        raise AttributeError(name)

    def __setattr__(self, name, value):
        super().__setattr__(name, value if name == "known" else value * 2)

    def __delattr__(self, name):
        super().__setattr__("known", "deleted " + name)
        super().__delattr__(name)


@program
def attribute_hooks(x):
    a = Attrs()
    a.other = 4
    n = a.dyn_abc
    del a.other
    try:
        a.nothing
    except AttributeError as e:
        text = e.args
    return x * n, a.known, text, getattr(a, "zip", None)


class GetAttribute:
    def __init__(self, t):
        self.t = t

    def __getattribute__(self, name):
        if name == "twice":
            return object.__getattribute__(self, "t") * 2
        return super().__getattribute__(name)


@program
def getattribute_hook(x):
    g = GetAttribute(x)
    return g.twice, g.t + 1


# --- numbers and text of one's own ---


class Meters(float):
    def __add__(self, other):
        return Meters(float(self) + float(other))

    def __repr__(self):
        return f"{float(self)}m"


class Money(int):
    def __new__(cls, v, unit="EUR"):
        self = super().__new__(cls, v)
        self.unit = unit
        return self

    def __mul__(self, other):
        return Money(int(self) * other, self.unit)

    def __str__(self):
        return f"{int(self)} {self.unit}"


class Tag(str):
    def __add__(self, other):
        return Tag(str.__add__(self, "/" + other))

    def parts(self):
        return self.split("/")


@program
def float_subclass_operators(x):
    m = Meters(1.5) + 2
    return x * m, repr(m), type(m).__name__, m > 3, m - 1


@program
def int_subclass_operators(x):
    m = Money(3, "USD") * 2
    return x * m, str(m), m.unit, m + 1, type(m + 1).__name__, f"{m}"


@program
def str_subclass_operators(x):
    t = Tag("a") + "b"
    return x * len(t), t.parts(), isinstance(t, str), t == "a/b", {t: 1}["a/b"]


@program(args=lambda i: [tensor(i), Meters(i + 1.0)], graphs=3)
def float_subclass_argument(x, m):
    return x * (m + 1), m * 2


# --- truth, containers, index, format, hash ---


class Bag:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __contains__(self, v):
        return v in self.items

    def __getitem__(self, i):
        if isinstance(i, slice):
            return Bag(self.items[i])
        return self.items[i]

    def __reversed__(self):
        return reversed(self.items)


class OldSequence:
    def __getitem__(self, i):
        if i > 3:
            raise IndexError
        return i * 10

    def __len__(self):
        return 4


@program
def user_sequence(x):
    b = Bag([x, x + 1, x + 2])
    return (
        b[0] + b[-1],
        len(b[1:]),
        bool(Bag([])),
        [t.sum() for t in reversed(b)],
        3 in Bag([1, 3]),
        sum(t.mean() for t in b),
    )


@program
def old_sequence_protocol(x):
    s = OldSequence()
    return x * s[2], list(s), list(reversed(s)), 20 in s, 21 in s, [*s], max(s), tuple(enumerate(s))


class Index:
    def __index__(self):
        return 2


@program
def index_protocol(x):
    i = Index()
    return x[i], [1, 2, 3][i], list(range(i)), "abc"[i], hex(i), (5, 6, 7)[:i], operator.index(i)


class Fmt:
    def __format__(self, spec):
        return f"<{spec}>"

    def __str__(self):
        return "S"

    def __repr__(self):
        return "R"


@program
def format_protocol(x):
    f = Fmt()
    return x + 1, f"{f:abc}", f"{f!r}", f"{f!s:>3}", "{:q} {!s}".format(f, f), "%s %r" % (f, f), format(f, "z")


class Key:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return self.n % 2

    def __eq__(self, other):
        return isinstance(other, Key) and self.n == other.n


@program
def hash_keys(x):
    d = {Key(1): 1, Key(3): 3}
    d[Key(1)] = 10
    return x * d[Key(1)], len(d), Key(5) in d, d.get(Key(3)), {Key(2), Key(2), Key(4)} == {Key(4), Key(2)}


class Defaulting(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


@program
def missing_protocol(x):
    d = Defaulting(a=5)
    return x * d["z"] + d["a"], d["q"], d.get("nope"), dict(d)


class Unhashable:
    def __eq__(self, other):
        return True


@program
def unhashable_key(x):
    try:
        {Unhashable(): 1}
    except TypeError as e:
        return x + 1, str(e)


class Callable1:
    def __call__(self, *a, **k):
        return len(a) + len(k)


@program
def callable_object(x):
    c = Callable1()
    return x * c(1, 2, k=3), callable(c), callable(3), list(map(c, [1, 2], [3, 4]))


class Order:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n


@program
def sort_objects(x):
    a = sorted([Order(3), Order(1), Order(2)])
    return x * a[0].n, [o.n for o in a], min(a).n, max(a, key=lambda o: -o.n).n


@functools.total_ordering
class Total:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


@program
def total_ordering_use(x):
    a, b = Total(1), Total(2)
    return x + 1, a <= b, a >= b, a > b, a != b, sorted([b, a])[0].n


class NotImpl:
    def __add__(self, o):
        return NotImplemented

    def __eq__(self, o):
        return NotImplemented

    def __lt__(self, o):
        return NotImplemented


class Reflected:
    def __radd__(self, o):
        return "radd"

    def __gt__(self, o):
        return "gt"


@program
def reflected_operators(x):
    a, b = NotImpl(), Reflected()
    try:
        a + 1
    except TypeError as e:
        t1 = str(e)
    try:
        a < 1
    except TypeError as e:
        t2 = str(e)
    return x + 1, a + b, a < b, a == b, a == a, t1, t2


class Inplace:
    def __init__(self, v):
        self.v = v

    def __iadd__(self, o):
        self.v = self.v + o
        return self


@program
def inplace_operator(x):
    a = Inplace(x)
    b = a
    a += 2
    return b.v, a is b


# --- library helpers of objects ---


@program
def operator_getters(x):
    p = types.SimpleNamespace(a=x, b=types.SimpleNamespace(c=2))
    one, two = operator.attrgetter("a", "b.c")(p)
    return (
        one * two,
        operator.itemgetter(1, "k")({1: 2, "k": 3}),
        operator.methodcaller("sum", 0)(x),
        operator.itemgetter(slice(1, 3))([1, 2, 3, 4]),
    )


class WithCopy:
    def __init__(self, t):
        self.t = t
        self.l = [1, [2]]

    def __copy__(self):
        new = WithCopy(self.t)
        new.l = "copied"
        return new

    def __deepcopy__(self, memo):
        new = WithCopy(self.t + 1)
        new.l = copy.deepcopy(self.l, memo)
        return new


@program
def copy_hooks(x):
    a = WithCopy(x)
    b, c = copy.copy(a), copy.deepcopy(a)
    return b.t, b.l, c.t, c.l == a.l, c.l is a.l, c.l[1] is a.l[1]


class PlainCopy:
    def __init__(self, t):
        self.t, self.l = t, [1, {"k": (2,)}]


@program
def copy_plain(x):
    a = PlainCopy(3)
    a.me = a
    b, c = copy.copy(a), copy.deepcopy(a)
    return x * b.t, b.l is a.l, c.l == a.l, c.l[1] is a.l[1], c.me is c, b.me is a


@program
def copy_containers(x):
    inner = [1, 2]
    d = {"a": inner, "b": inner, "t": (inner, 3), "s": {1, 2}}
    c = copy.deepcopy(d)
    return x + 1, c == d, c["a"] is c["b"], c["a"] is inner, c["t"][0] is c["a"], copy.copy(d)["a"] is inner


class Weak:
    def __init__(self, k):
        self.k = k


KEPT = Weak(3)
REF = weakref.ref(KEPT)


@program
def weakref_outside(x):
    o = REF()
    return x * o.k, REF() is KEPT


@program
def weakref_inside(x):
    w = Weak(2)
    r = weakref.ref(w)
    return x * r().k, r() is w


@built(graphs=0, breaks=True)
def weak_dicts():
    k1 = Weak(1)
    values, keys = weakref.WeakValueDictionary({"a": k1}), weakref.WeakKeyDictionary({k1: 4})

    def f(x):
        return x * values["a"].k, keys[k1], "a" in values, len(keys)

    return f


LOCAL = threading.local()
LOCAL.v = 4


@program
def thread_local_read(x):
    return x * LOCAL.v, getattr(LOCAL, "nothing", 7)


@built(graphs=2)
def thread_local_write():
    state = threading.local()
    state.n = 0

    def f(x):
        state.n += 1
        state.last = x
        return x * state.n

    return f


class Base1:
    def who(self):
        return ["base"]


class Left(Base1):
    def who(self):
        return ["left", *super().who()]


class Right(Base1):
    def who(self):
        return ["right", *super().who()]


class Diamond(Left, Right):
    def who(self):
        return ["diamond", *super().who()]


@program
def diamond_super(x):
    d = Diamond()
    return x + len(d.who()), d.who(), super(Left, d).who(), super(Diamond, Diamond).who(d), Diamond.mro()[1].__name__


class AbstractBase(abc.ABC):
    @abc.abstractmethod
    def go(self, x): ...

    @property
    @abc.abstractmethod
    def tag(self): ...


class Concrete(AbstractBase):
    def go(self, x):
        return x + 1

    tag = "c"


@AbstractBase.register
class Virtual:
    pass


@program
def abstract_classes(x):
    try:
        AbstractBase()
    except TypeError as e:
        text = str(e)
    return (
        Concrete().go(x),
        text,
        isinstance(Virtual(), AbstractBase),
        issubclass(Virtual, AbstractBase),
        Concrete().tag,
    )


class Cached:
    def __init__(self, t):
        self.t = t
        self.calls = 0

    @functools.cached_property
    def big(self):
        self.calls += 1
        return self.t * 10


@program
def cached_property_use(x):
    c = Cached(x)
    a, b = c.big, c.big
    return a + b, c.calls, "big" in c.__dict__


@built(graphs=2)
def cached_property_outside():
    c = Cached(2)

    def f(x):
        return x * c.big, c.calls

    return f


class Partials:
    def base(self, a, b, *, c=0):
        return a * b + c

    twice = functools.partialmethod(base, 2)
    fancy = functools.partialmethod(base, b=3, c=1)

    @functools.singledispatchmethod
    def kind(self, v):
        return "other"

    @kind.register
    def _(self, v: int):
        return "int"

    @kind.register(str)
    def _(self, v):
        return "str"


@program
def partial_methods(x):
    p = Partials()
    return p.twice(x), p.fancy(x)


@program
def single_dispatch_method(x):
    p = Partials()
    return x + 1, p.kind(1), p.kind("a"), p.kind(1.0), p.kind(True)


@functools.singledispatch
def dispatched(v, y):
    return y


@dispatched.register
def _(v: int, y):
    return y * v


@dispatched.register(list)
def _(v, y):
    return y + len(v)


@dispatched.register
def _(v: torch.Tensor, y):
    return y + v


@program
def single_dispatch(x):
    return dispatched(2, x), dispatched([1, 2], x), dispatched("a", x), dispatched(x, x), dispatched(True, x)


class Recur:
    def __init__(self, n):
        self.child = Recur(n - 1) if n else None

    def depth(self):
        return 1 + (self.child.depth() if self.child else 0)


@program
def recursive_objects(x):
    return x * Recur(5).depth()


@program
def method_objects(x):
    b = Bag([1])
    m = b.__len__
    return (
        x * m(),
        m.__self__ is b,
        m.__name__,
        Bag.__len__ is Bag.__len__,
        b.__len__ == b.__len__,
        m.__func__ is Bag.__len__,
    )


@program
def class_of_things(x):
    return x + 1, [
        type(v).__name__
        for v in (1, "a", [], None, x, len, Bag, Bag([]), type, lambda: 1, {1: 2}.keys(), (i for i in []), ...)
    ]


@program
def dir_vars(x):
    b = Bag([2])
    return x * vars(b)["items"][0], [n for n in dir(b) if not n.startswith("_")], b.__dict__, Bag.__dict__["__len__"](b)


@program
def names_and_docs(x):
    def inner(a):
        "doc of inner"

    return (
        x + 1,
        inner.__name__,
        inner.__qualname__,
        inner.__doc__,
        Bag.__name__,
        Bag.__doc__,
        Bag.__len__.__qualname__,
        inner.__module__ == __name__,
    )


@built(graphs=3)
def object_changed_dynamically():
    class A:
        pass

    a = A()
    a.items = []

    def f(x):
        a.items.append(len(a.items))
        a.__dict__["n"] = a.__dict__.get("n", 0) + 1
        a.__class__.__name__
        return x * a.n, list(a.items)

    return f


class Iter:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


@program
def iterator_protocol(x):
    it = Iter(4)
    a = next(it)
    rest = list(it)
    return x * a, rest, next(it, "end"), list(zip(Iter(2), Iter(3))), sum(Iter(3)), 1 in Iter(3)


class CM:
    def __init__(self, log, swallow):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, t, v, tb):
        self.log.append((t.__name__ if t else None, str(v)))
        return self.swallow


@program
def context_manager_protocol(x):
    log = []
    with CM(log, True) as c, CM(log, False):
        raise KeyError("k")
    return x + len(log), log
