# ruff: noqa
"""Corners of the language, written from its reference without a look at the code: data model, expressions, statements, execution model, standard library."""

import abc, collections, collections.abc, contextlib, copy, dataclasses, enum, functools, inspect, itertools, operator
import re, string, sys, types, typing, weakref, math, bisect, heapq, fractions, decimal
import torch
from tests.support.registry import program, built, tensor, leaf


def text(e):
    return f"{type(e).__name__}: {e}"


# ---------------------------------------------------------------- exceptions


@program
def return_in_finally_swallows(x):
    log = []

    def f(k):
        try:
            log.append(("try", k))
            if k == 1:
                raise KeyError(k)
            return x + k
        except KeyError as e:
            log.append(text(e))
            raise ValueError("second")
        else:
            log.append("else")
        finally:
            log.append("finally")
            if k:
                return x * 2

    a, b = f(0), f(1)
    for i in range(3):
        try:
            1 / 0
        finally:
            log.append(i)
            if i < 2:
                continue
            else:
                break
    return a, b, log


@program(graphs=0, breaks=True)
def except_name_is_deleted(x):
    e = "outer"
    out = []
    try:
        raise ValueError("v")
    except ValueError as e:
        out.append(str(e))
        x = x + 1
    try:
        out.append(e)
    except UnboundLocalError as u:
        out.append((type(u).__name__, u.name, isinstance(u, NameError)))
    try:
        del e
    except NameError as u:
        out.append(type(u).__name__)

    def g():
        try:
            raise KeyError(1)
        except KeyError as q:
            h = lambda: q
            out.append(text(h()))
        try:
            h()
        except NameError as n:
            out.append(text(n))

    g()
    return x, out


@program
def chaining_context_and_cause(x):
    out = []

    def walk(e):
        r = []
        while e is not None:
            r.append((text(e), e.__suppress_context__, e.__cause__ is not None, e.__context__ is not None))
            e = e.__context__
        return r

    try:
        try:
            try:
                {}["k"]
            except KeyError:
                x = x.sin()
                [][1]
        except IndexError as i:
            raise ValueError("v") from i
    except ValueError as v:
        out.append(walk(v))
    try:
        try:
            int("q")
        except ValueError:
            raise TypeError("t") from None
    except TypeError as t:
        out.append(walk(t))
    try:
        raise KeyError from ZeroDivisionError
    except KeyError as k:
        out.append((walk(k), repr(k.__cause__)))
    try:
        raise KeyError from 3
    except TypeError as k:
        out.append(text(k))
    return x, out, sys.exc_info()


@program
def exc_info_in_generator(x):
    out = []

    def gen():
        out.append(sys.exc_info()[0])
        try:
            raise KeyError("in")
        except KeyError:
            out.append(sys.exc_info()[0].__name__)
            yield x + 1
            out.append(sys.exc_info()[0].__name__)
        out.append(sys.exc_info()[0] and sys.exc_info()[0].__name__)
        yield x + 2

    g = gen()
    a = next(g)
    out.append(sys.exc_info()[0])
    try:
        raise ValueError("out")
    except ValueError:
        b = next(g)
        out.append(sys.exc_info()[0].__name__)
        try:
            next(g)
        except StopIteration as s:
            out.append(repr(s.__context__))
    return a + b, [str(o) for o in out]


@program(breaks=True)
def exception_group_splits(x):
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError("k"), ExceptionGroup("h", [TypeError("t"), ValueError(2)])])
    except* ValueError as v:
        out.append(("V", repr(v.exceptions)))
        x = x + len(v.exceptions)
    except* (TypeError, KeyError) as t:
        out.append(("T", repr(t)))
        x = x * 2
    try:
        try:
            raise ValueError("plain")
        except* ValueError as v:
            out.append(repr(v))
            raise KeyError("new")
    except BaseException as e:
        out.append((repr(e), repr(e.__context__)))
    try:
        try:
            raise ExceptionGroup("m", [OSError(1, "a"), KeyError(2)])
        except* OSError:
            pass
    except ExceptionGroup as e:
        out.append(repr(e))
    try:
        ExceptionGroup("n", [])
    except ValueError as e:
        out.append(text(e))
    return x, out


@program(breaks=True)
def exception_match_is_checked_late(x):
    out = []

    def side(n, v):
        out.append(n)
        return v

    try:
        raise KeyError("k")
    except side("a", ValueError):
        x = x + 1
    except side("b", (OSError, (LookupError,)[0])):
        x = x + 2
    except side("c", Exception):
        x = x + 3
    try:
        try:
            [].pop()
        except "not a class":
            x = x + 4
    except TypeError as e:
        out.append((text(e), text(e.__context__)))
    try:
        out.append("no raise")
    except undefined_name:
        x = x + 8

    class Meta(type):
        def __subclasscheck__(c, s):
            out.append("asked")
            return True

    class Odd(Exception, metaclass=Meta):
        pass

    try:
        try:
            raise ValueError(1)
        except Odd:
            x = x + 16
    except ValueError:
        x = x + 32
    return x, out


@program(graphs=0, breaks=True)
def raise_odd_things(x):
    out = []

    class Returns(Exception):
        def __new__(cls, *a):
            return 7

    class Init(Exception):
        def __init__(self, a, b=3):
            self.b = b

    class Str(Exception):
        def __str__(self):
            return "S" + repr(self.args)

    for thing in (
        3,
        "s",
        Returns,
        Init(1),
        Init,
        Str(1, 2),
        Str,
        None,
        int,
        StopIteration(5),
        KeyError("a b"),
        KeyError("a", "b"),
    ):
        try:
            raise thing
        except Exception as e:
            out.append((type(e).__name__, str(e), e.args if all(isinstance(a, (int, str)) for a in e.args) else None))
            x = x + len(e.args)
    try:
        raise
    except RuntimeError as e:
        out.append(text(e))
    return x, out


@program
def raise_bare_in_helper(x):
    out = []

    def again():
        raise

    def deep():
        try:
            raise OSError("inner")
        except OSError:
            pass
        again()

    try:
        try:
            (x, x)[5]
        except IndexError as e:
            first = e
            deep()
    except IndexError as e:
        out.append((text(e), e is first, e.__context__ is None))
        x = x - 1
    try:
        again()
    except RuntimeError as e:
        out.append(text(e))
    e = ValueError("n")
    e.add_note("one")
    e.add_note("two")
    try:
        e.add_note(3)
    except TypeError as t:
        out.append(text(t))
    try:
        raise e.with_traceback(None)
    except ValueError as v:
        out.append(v.__notes__)
    return x, out


@program
def with_suppression_truthiness(x):
    out = []

    class Flag:
        def __init__(s, v):
            s.v = v

        def __bool__(s):
            out.append("bool")
            return s.v

    class CM:
        def __init__(s, n, r):
            s.n, s.r = n, r

        def __enter__(s):
            out.append("+" + s.n)
            return x + len(s.n)

        def __exit__(s, t, v, tb):
            out.append(("-" + s.n, t and t.__name__, str(v), tb is None))
            return s.r

    y = x
    with CM("a", []) as p, CM("bb", Flag(True)) as q, CM("c", Flag(False)):
        y = p + q
        1 // 0
        y = y * 100
    try:
        with CM("d", Flag(False)):
            {}[1]
    except KeyError as e:
        out.append(text(e))
    with CM("e", Flag(True)):
        y = y + 1

    def f():
        with CM("f", True):
            return y * 2

    return f(), out


@program
def with_lookup_on_type(x):
    out = []

    class NoExit:
        def __enter__(s):
            out.append("entered")

    class Inst:
        pass

    i = Inst()
    i.__enter__ = lambda: 1
    i.__exit__ = lambda *a: True

    class Desc:
        def __get__(s, o, t):
            out.append(("get", t.__name__))
            return lambda *a: len(a) > 0

    class D:
        __enter__ = Desc()
        __exit__ = Desc()

    for c in (NoExit(), i, 3, D()):
        try:
            with c as v:
                out.append(("body", v))
                x = x + 1
                raise KeyError("b")
        except Exception as e:
            out.append(text(e))

    class Target:
        def __setattr__(s, n, v):
            raise AttributeError("no " + n)

    class C:
        def __enter__(s):
            return 1

        def __exit__(s, *a):
            out.append(text(a[1]))
            return True

    with C() as Target().q:
        x = x * 1000
    return x, out


@program
def exit_stack_order(x):
    out = []

    @contextlib.contextmanager
    def cm(n, swallow=False):
        out.append("in" + n)
        try:
            yield x * len(n)
        except ValueError as e:
            out.append((n, text(e)))
            if not swallow:
                raise KeyError(n) from e
        finally:
            out.append("out" + n)

    with contextlib.ExitStack() as s:
        s.callback(out.append, "callback")
        s.push(
            lambda t, v, tb: (
                out.append(
                    (t and t.__name__, repr(v), repr(getattr(v, "__cause__", 0)), repr(getattr(v, "__context__", 0)))
                )
                or True
            )
        )
        a = s.enter_context(cm("aa"))
        b = s.enter_context(cm("b", True))
        s.enter_context(cm("ccc"))
        t = s.pop_all()
        s.push(t)
        s.callback(lambda: int("zz"))
        out.append("body")
    with contextlib.suppress(ZeroDivisionError, KeyError):
        a = a + 1
        {}[0]
        a = a + 100
    return a + b, out


@program
def contextmanager_misuse(x):
    out = []

    @contextlib.contextmanager
    def twice():
        yield 1
        yield 2

    @contextlib.contextmanager
    def never():
        if False:
            yield

    @contextlib.contextmanager
    def stops():
        try:
            yield
        except StopIteration:
            out.append("saw stop")
            raise

    for c in (twice, never, stops):
        try:
            with c():
                x = x + 1
        except RuntimeError as e:
            out.append(text(e))
    try:
        with stops():
            raise StopIteration(4)
    except StopIteration as e:
        out.append(("escaped", e.value))
    m = stops()
    with m:
        pass
    try:
        with m:
            pass
    except Exception as e:
        out.append(text(e))

    @stops()
    def deco(y):
        return y * 2

    return deco(deco(x)), out


@program
def builtin_errors_branches(x):
    out = []
    for f in (
        lambda: int("0x"),
        lambda: "a" + 1,
        lambda: [1] + (2,),
        lambda: "%d" % "a",
        lambda: chr(-1),
        lambda: ord("ab"),
        lambda: [].index(1),
        lambda: {}.popitem(),
        lambda: (1).__add__("a"),
        lambda: next(iter([])),
        lambda: dict([1]),
        lambda: dict([(1, 2, 3)]),
        lambda: sum(["a"]),
        lambda: max([]),
        lambda: "x".join([1]),
        lambda: bytes([256]),
        lambda: range(1, 2, 0),
        lambda: 1 << -1,
        lambda: 2**-1,
        lambda: 0**-1,
        lambda: float("a"),
        lambda: (1, 2) < (1, "a"),
        lambda: {[]: 1},
        lambda: [1, 2, 3][1.0],
        lambda: {1} | [1],
        lambda: len(5),
        lambda: round("a"),
        lambda: int(float("inf")),
        lambda: 10.0**400,
        lambda: "abc".index("z"),
        lambda: "{a}".format(b=1),
        lambda: "{}".format(),
        lambda: [].remove(2),
        lambda: set().pop(),
        lambda: 5(),
        lambda: isinstance(1, 1),
        lambda: hash([]),
        lambda: abs("a"),
        lambda: None.x,
        lambda: (None)[0],
        lambda: zip([1], [1, 2], strict=True).__class__(*[1]),
        lambda: "a" < 1,
    ):
        try:
            out.append(f())
        except (ValueError, LookupError) as e:
            out.append("A" + text(e))
            x = x + 1
        except ArithmeticError as e:
            out.append("B" + text(e))
            x = x + 2
        except (TypeError, AttributeError, StopIteration) as e:
            out.append("C" + text(e))
            x = x + 3
    return x, [str(o) for o in out]


@program
def try_else_break_continue(x):
    out = []
    for i in range(5):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            if i == 2:
                raise LookupError
        except LookupError:
            out.append(f"except{i}")
        else:
            out.append(f"else{i}")
            x = x + i
        finally:
            out.append(f"fin{i}")
    else:
        out.append("loop else")
    while i:
        i -= 1
        try:
            try:
                continue
            finally:
                out.append(("w", i))
                1 / (i - 1)
        except ZeroDivisionError:
            x = x * 2
    else:
        out.append("while else")
    return x, out, i


# ---------------------------------------------------------------- classes and metaclasses


@program(graphs=3, breaks=True)
def metaclass_prepare_and_order(x):
    log = []

    class NS(dict):
        def __setitem__(s, k, v):
            if not k.startswith("__"):
                log.append(("set", k))
            super().__setitem__(k, v)

        def __missing__(s, k):
            if k.startswith("auto_"):
                log.append(("missing", k))
                return len(k)
            raise KeyError(k)

    class M(type):
        @classmethod
        def __prepare__(m, n, b, **k):
            log.append(("prepare", m.__name__, n, b, k))
            return NS()

        def __new__(m, n, b, ns, **k):
            log.append(("new", type(ns).__name__, k))
            return super().__new__(m, n, b, dict(ns))

        def __init__(c, n, b, ns, **k):
            log.append(("init", n, sorted(k)))
            super().__init__(n, b, ns)

        def __call__(c, *a):
            log.append("call")
            o = super().__call__(*a)
            o.extra = len(a)
            return o

    class A(metaclass=M, opt=1):
        q = auto_xy + 1

        def __init__(s, t):
            s.t = t * A.q

        r = q = 3

    a = A(x)
    return a.t, a.extra, A.q, A.r, log


@program(graphs=3, breaks=True)
def init_subclass_and_set_name(x):
    log = []

    class D:
        def __set_name__(s, o, n):
            log.append(("set_name", o.__name__, n))
            s.n = n

        def __get__(s, o, t=None):
            return s if o is None else o.__dict__.get("_" + s.n, -1)

        def __set__(s, o, v):
            log.append(("set", s.n))
            o.__dict__["_" + s.n] = v

    class Base:
        def __init_subclass__(cls, /, tag="none", **kw):
            super().__init_subclass__(**kw)
            log.append(("sub", cls.__name__, tag))
            cls.tag = tag

    class A(Base, tag="t"):
        b = D()
        a = D()

    class B(A):
        pass

    A.late = D()
    o = B()
    o.a = x + 1
    log.append((o.b, hasattr(A.__dict__["late"], "n"), type(Base.__dict__["__init_subclass__"]).__name__))
    try:

        class C(Base, other=1):
            pass
    except TypeError as e:
        log.append(text(e))

    class Bad:
        def __set_name__(s, o, n):
            raise KeyError("bad")

    try:

        class E:
            z = Bad()
    except Exception as e:
        log.append((type(e).__name__, str(e), getattr(e, "__notes__", None)))
    return o.a, log, B.tag


@program
def classcell_and_class_closure(x):
    out = []

    class M(type):
        def __new__(m, n, b, ns):
            cell = ns.get("__classcell__")
            out.append((n, type(cell).__name__))
            if n == "Drop":
                ns.pop("__classcell__")
            c = super().__new__(m, n, b, ns)
            if cell is not None and n != "Drop":
                out.append(cell.cell_contents is c)
            return c

    class A(metaclass=M):
        def f(self):
            return __class__.__name__, x + 1

        def g(self):
            return [__class__.__name__ for _ in range(2)]

    class Plain(metaclass=M):
        pass

    try:

        class Drop(metaclass=M):
            def f(self):
                return __class__
    except RuntimeError as e:
        out.append(type(e).__name__)

    class B(A):
        f = A.f

    return B().f(), B().g(), out, A.f.__code__.co_freevars


@program(graphs=3, breaks=True)
def super_all_forms(x):
    class A:
        def f(s):
            return ["A"]

        @classmethod
        def c(cls):
            return ["A", cls.__name__]

        @staticmethod
        def st():
            return "Ast"

        @property
        def p(s):
            return x + 1

        v = 10

    class B(A):
        v = 20

        def f(s):
            return ["B"] + super().f()

        @classmethod
        def c(cls):
            return ["B"] + super().c()

        @property
        def p(s):
            return super().p * 2

    class C(A):
        def f(s):
            return ["C"] + super(C, s).f()

    class D(B, C):
        def f(s):
            return ["D"] + super().f()

        def all(s):
            u = super(B, s)
            w = super(D, D)
            return (
                u.f(),
                u.v,
                u.st(),
                w.f(s),
                w.c(),
                super().__init__.__name__,
                u.__thisclass__.__name__,
                u.__self_class__.__name__,
                w.__self__ is D,
            )

    out = list(D().all())
    for bad in (
        lambda: super(D, 3),
        lambda: super(D, A()),
        lambda: super(3),
        lambda: super(D, D()).zzz,
        lambda: super(D).__self__,
        lambda: super(),
    ):
        try:
            out.append(bad())
        except Exception as e:
            out.append(text(e))
    return D().p, D().f(), D.c(), out


@program(graphs=0, breaks=True)
def super_dunder_calls(x):
    class L(list):
        def __contains__(s, v):
            return not super().__contains__(v)

        def __getitem__(s, i):
            r = super().__getitem__(i)
            return r * 2 if isinstance(i, int) else r

        def __iter__(s):
            return (q + 1 for q in super().__iter__())

        def __len__(s):
            return super().__len__() + 5

        def __eq__(s, o):
            return super().__eq__(o) is not True

        def __iadd__(s, o):
            super().__iadd__(o)
            return s

        def __repr__(s):
            return "L" + super().__repr__()

        def __setattr__(s, n, v):
            super().__setattr__(n, [v])

        def __getattribute__(s, n):
            return super().__getattribute__(n) if n != "secret" else "hidden"

    l = L([1, 2, 3])
    l += [4]
    l.k = 7
    return (
        x * l[0],
        1 in l,
        9 in l,
        l[-1],
        l[1:],
        list(l),
        len(l),
        l == [1, 2, 3, 4],
        l != [1],
        repr(l),
        l.k,
        l.secret,
        [*l],
        sum(l),
        bool(L()),
        list(reversed(l)),
        sorted(l),
        max(l),
        l.__hash__,
    )


@program(graphs=3, breaks=True)
def super_in_metaclass_call(x):
    log = []

    class Singleton(type):
        reg = {}

        def __call__(cls, *a, **k):
            if cls not in cls.reg:
                log.append("make " + cls.__name__)
                cls.reg[cls] = super().__call__(*a, **k)
            return cls.reg[cls]

        def __contains__(cls, v):
            return v in cls.items

        def __getitem__(cls, k):
            return cls.items[k]

        def __len__(cls):
            return len(cls.items)

        def __iter__(cls):
            return iter(cls.items)

        def __instancecheck__(cls, o):
            log.append("inst")
            return o == 5 or super().__instancecheck__(o)

        def __getattr__(cls, n):
            return "meta " + n

        def __add__(cls, o):
            return cls.__name__ + str(o)

    class A(metaclass=Singleton):
        items = [3, 4]

        def __init__(s, t):
            s.t = t + 1

        def __call__(s, k):
            return s.t * k

    a = A(x)
    b = A(x * 100)
    out = [
        a is b,
        3 in A,
        A[1],
        len(A),
        [*A],
        isinstance(5, A),
        isinstance(a, A),
        A.zork,
        A + 1,
        type(a).__name__,
        bool(A),
    ]
    try:
        a.zork
    except AttributeError as e:
        out.append(text(e))
    Singleton.reg.clear()
    return b(2), out, log


@program(breaks=True)
def metaclass_conflict_and_mro(x):
    out = []

    class M1(type):
        pass

    class M2(type):
        pass

    class M3(M1, M2):
        pass

    class A(metaclass=M1):
        pass

    class B(metaclass=M2):
        pass

    try:

        class C(A, B):
            pass
    except TypeError as e:
        out.append(str(e)[:20])

    class D(A, B, metaclass=M3):
        pass

    out.append(type(D).__name__)
    out.append([k.__name__ for k in D.__mro__])

    class X:
        pass

    class Y(X):
        pass

    try:
        type("Z", (X, Y), {})
    except TypeError as e:
        out.append(str(e)[:40])

    class MR(type):
        def mro(c):
            return [c, Y, X, object] if c.__name__ == "W" else super().mro()

    class W(metaclass=MR):
        pass

    Y.hi = lambda s: x + 1
    Y.__bases__ = (type("Q", (X,), {"q": 4}),)
    out.append([Y.q, [k.__name__ for k in Y.__mro__], issubclass(W, Y)])
    for b in ((int, str), (bool,), (type(None),)):
        try:
            type("N", b, {})
        except TypeError as e:
            out.append(text(e))
    return W().hi(), out


@program(graphs=0, breaks=True)
def class_getitem_and_generic(x):
    T = typing.TypeVar("T")

    class A:
        def __class_getitem__(cls, k):
            return (cls.__name__, k)

    class B(A):
        pass

    class G(typing.Generic[T]):
        def __init__(s, v):
            s.v = v

    class H(G[int]):
        pass

    out = [
        A[1],
        B["q", 2],
        G[int].__origin__ is G,
        H.__orig_bases__[0].__args__,
        type(G[int](3)).__name__,
        G[int](x).v is x,
    ]
    try:
        A()[1]
    except TypeError as e:
        out.append(text(e))
    try:
        int[3]
    except TypeError as e:
        out.append(text(e))

    class Fake:
        def __mro_entries__(s, bases):
            out.append(len(bases))
            return (A,)

    class K(Fake()):
        pass

    out += [
        K.__bases__[0] is A,
        hasattr(K, "__orig_bases__"),
        list[int] == list[int],
        str(dict[str, int]),
        isinstance([], list[int].__origin__),
        str(int | None),
        (int | str) == (str | int),
        isinstance(3, int | str),
    ]
    return G[int](x).v * 2, out


@program
def class_body_scope(x):
    n = 5
    out = []

    class A:
        try:
            n = n + 1
        except NameError as e:
            err = text(e)
            n = 6
        xs = [n for _ in range(2)]
        try:
            ys = [n + k for k in range(n) if n]
        except NameError:
            ys = None

        def f(self):
            return n

        z = (lambda: n)()
        if n > 3:
            cond = x * n
        for i in range(3):
            pass
        del n
        w = n if "n" in locals() else "gone"

    class B:
        global gg_corners
        gg_corners = 4

        def __secret(self):
            return 1

        __p = 3

        def get(self, o):
            return o.__p, self.__secret()

        class __Inner:
            __q = 1

    out += [
        A.err,
        A.xs,
        A.ys,
        A().f(),
        A.z,
        A.i,
        A.w,
        "n" in A.__dict__,
        sorted(k for k in B.__dict__ if "B" in k),
        B().get(B()),
        globals()["gg_corners"],
        B.__qualname__,
        B._B__Inner.__name__,
        sorted(k for k in B._B__Inner.__dict__ if "q" in k),
    ]
    return A.cond, out


@program
def new_and_init_protocol(x):
    log = []

    class A:
        def __new__(cls, *a, **k):
            log.append(("new", cls.__name__, len(a)))
            return object.__new__(cls) if len(a) < 2 else 42

        def __init__(self, *a):
            log.append(("init", len(a)))
            self.t = a[0] + 1 if a else None

    class B(A):
        def __new__(cls, *a):
            return A.__new__(A, *a)

    class R:
        def __init__(s):
            return 3

    class N:
        pass

    class I(int):
        def __new__(cls, v):
            o = super().__new__(cls, v + 1)
            o.extra = v
            return o

    a = A(x)
    b = B(x)
    c = A(x, 2)
    for f in (
        R,
        lambda: N(1),
        lambda: object(1),
        lambda: object.__new__(int),
        lambda: A.__new__(),
        lambda: object.__new__(N, 1),
        lambda: N().__init__(1),
        lambda: int.__new__(str),
    ):
        try:
            log.append(type(f()).__name__)
        except TypeError as e:
            log.append(text(e))
    return a.t * I(3), c, type(b).__name__, I(3) + 0, I(3).extra, type(I(3) + I(3)).__name__, hasattr(b, "t"), log


@program(graphs=3, breaks=True)
def slots_rules(x):
    out = []

    class A:
        __slots__ = ("a", "__p")

        def put(s):
            s.__p = 5
            return s

    class B(A):
        __slots__ = ["b", "__dict__"]

    class C(A):
        pass

    a = A().put()
    a.a = x + 1

    def attempt(f):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))

    attempt(lambda: setattr(a, "z", 1))
    attempt(lambda: A().a)
    attempt(lambda: a.__dict__)
    attempt(lambda: delattr(A(), "a"))
    attempt(lambda: a._A__p)
    b = B()
    b.b = 1
    b.z = 2
    out.append(b.__dict__)
    c = C()
    c.a = 1
    c.q = 2
    out.append(c.__dict__)
    attempt(lambda: type("D", (), {"__slots__": ("v",), "v": 1}))
    attempt(lambda: type("E", (A, type("F", (), {"__slots__": ("g",)})), {}))
    attempt(lambda: type("G", (int,), {"__slots__": ("g",)}))
    attempt(lambda: type("S", (), {"__slots__": "single"})().single)
    attempt(lambda: weakref.ref(a))
    attempt(lambda: setattr(b, "__class__", C))
    attempt(lambda: vars(a))
    attempt(lambda: A.__dict__["a"].__get__(a, A) is a.a)
    attempt(lambda: A.a.__get__(3))
    return a.a, out


# ---------------------------------------------------------------- descriptors and attribute access


@program(graphs=0, breaks=True)
def descriptor_priority(x):
    out = []

    class Data:
        def __get__(s, o, t):
            return "data"

        def __set__(s, o, v):
            o.__dict__["d"] = ("via", v)

    class NonData:
        def __get__(s, o, t):
            return "nondata" if o is not None else "on class"

    class SetOnly:
        def __set__(s, o, v):
            out.append("setonly")

    class DelOnly:
        def __delete__(s, o):
            out.append("delonly")

    class A:
        d = Data()
        n = NonData()
        s = SetOnly()
        k = DelOnly()

    a = A()
    a.d = x
    a.__dict__["n"] = "inst"
    a.s = 1
    out += [a.d, a.__dict__["d"][0], a.n, type(a.s).__name__, A.n, A.d]
    a.__dict__["s"] = "sd"
    out.append(a.s)
    del a.__dict__["n"]
    out.append(a.n)
    for f in (
        lambda: setattr(a, "k", 1),
        lambda: delattr(a, "k"),
        lambda: delattr(a, "d"),
        lambda: delattr(a, "n"),
        lambda: delattr(A, "zz"),
    ):
        try:
            f()
        except Exception as e:
            out.append(text(e))
    A.d = 5
    out.append(type(a.d).__name__)
    a.__dict__["__class__"] = int
    out.append(a.__class__.__name__)
    return a.__dict__["d"][1] + 1, out


@program(graphs=3, breaks=True)
def get_returns_odd_for_dunder(x):
    out = []

    class D:
        def __init__(s, f):
            s.f = f

        def __get__(s, o, t):
            out.append((o is None, t.__name__))
            return s.f

    class A:
        __len__ = D(lambda: 3)
        __add__ = D(lambda other: ("added", other))
        __call__ = D(max)
        __getitem__ = D({"a": 1}.get)
        __iter__ = D([1, 2].__iter__)
        __contains__ = staticmethod(lambda v: v * 2)
        __neg__ = classmethod(lambda c: c.__name__)
        __bool__ = property(lambda s: lambda: False)
        __eq__ = functools.partialmethod(lambda s, k, o: (k, o), "k")

    a = A()
    a.__len__ = lambda: 99
    out += [len(a), a + 1, a(3, 7), a["a"], a["b"], 0 in a, 1 in a, -a, bool(a), a == 4, [*a]]
    try:
        1 + a
    except TypeError as e:
        out.append(text(e))
    return x * len(a) if a else x + a(1, 2), out


@program(graphs=4, breaks=True)
def property_stored_in_instance_dict(x):
    out = []

    class A:
        p = property(lambda s: x + 1)

        def __init__(s):
            s.__dict__["p"] = "shadow"
            s.q = property(lambda s: 1)

        @property
        def w(s):
            return s.missing

        def __getattr__(s, n):
            out.append("getattr " + n)
            return n * 2

        r = property()
        u = property(None, lambda s, v: out.append(v))
        t = property(fget=lambda s: 1, doc="doc")
        t2 = t.setter(lambda s, v: out.append(("t2", v)))

    a = A()
    out += [type(a.q).__name__, a.w, a.t2, A.t.__doc__, A.t is A.t2]
    a.u = 3
    a.t2 = 4
    for f in (
        lambda: setattr(a, "p", 2),
        lambda: delattr(a, "p"),
        lambda: a.r,
        lambda: a.u,
        lambda: setattr(a, "t", 1),
        lambda: A.p.fget(None),
        lambda: A.p.__get__(a) is not None,
        lambda: A.p.__get__(None) is A.p,
    ):
        try:
            r = f()
            out.append(r if isinstance(r, (str, bool, int)) else type(r).__name__)
        except (AttributeError, TypeError) as e:
            out.append(text(e))
    return a.p, out


@program(graphs=0, breaks=True)
def getattribute_and_getattr_interplay(x):
    log = []

    class A:
        cls_attr = 1

        def __getattribute__(s, n):
            log.append("ga " + n)
            if n == "boom":
                raise KeyError("boom")
            if n == "fall":
                raise AttributeError("custom")
            return object.__getattribute__(s, n)

        def __getattr__(s, n):
            log.append("gt " + n)
            if n.startswith("_x"):
                raise AttributeError(f"none {n}")
            return 7

        def __len__(s):
            return 2

    a = A()
    a.t = x
    out = [a.t is x, a.cls_attr, a.fall, a.nope, len(a), hasattr(a, "_x"), getattr(a, "_xx", "dflt")]
    try:
        a.boom
    except KeyError as e:
        out.append(text(e))
    try:
        getattr(a, "boom", 1)
    except KeyError as e:
        out.append("still")
    try:
        hasattr(a, "boom")
    except KeyError as e:
        out.append("still2")
    try:
        a._x1
    except AttributeError as e:
        out.append((text(e), text(e.__context__) if e.__context__ else None, e.name))
    a.cls_attr += 5
    a.t += 1
    out.append(sorted(a.__dict__))
    return a.t, a.cls_attr, out, log


@program(graphs=3, breaks=True)
def instance_dict_manipulation(x):
    out = []

    class A:
        def f(s):
            return s.t * 2

    a, b = A(), A()
    a.__dict__["not an identifier"] = 1
    a.__dict__.update(t=x, k=3)
    out.append(sorted(vars(a)))
    b.__dict__ = a.__dict__
    b.n = 4
    out.append(a.n)
    a.__dict__ = {"t": x + 1}
    out.append(hasattr(a, "k"))
    for bad in (3, None, [("t", 1)]):
        try:
            a.__dict__ = bad
        except TypeError as e:
            out.append(text(e))

    class D(dict):
        def __getitem__(s, k):
            return "never used"

        def __missing__(s, k):
            return "nor this"

    d = D(t=x - 1, g=5)
    a.__dict__ = d
    out += [a.g, hasattr(a, "zz"), type(vars(a)).__name__]
    a.h = 1
    out.append(dict.__getitem__(d, "h"))
    del a.h
    out.append("h" in d)
    del a.__dict__
    out.append(vars(a))
    out.append(setattr(A, "new", property(lambda s: 8)))
    out.append(a.new)
    try:
        A.__dict__["f"] = 1
    except TypeError as e:
        out.append(text(e))
    return b.f(), d["t"], out


@program(graphs=9, breaks=True)
def class_assignment_on_instance(x):
    out = []

    class A:
        def f(s):
            return s.t + 1

    class B(A):
        def f(s):
            return super().f() * 10

        def __eq__(s, o):
            return True

    class S:
        __slots__ = ()

    a = A()
    a.t = x
    r1 = a.f()
    m = a.f
    a.__class__ = B
    r2 = a.f()
    r3 = m()
    out += [a == 3, type(a).__name__, isinstance(a, B), A() == 3]
    for bad in (int, S, 3, list):
        try:
            a.__class__ = bad
        except TypeError as e:
            out.append(text(e))

    class P:
        @property
        def __class__(s):
            return int

    p = P()
    out += [isinstance(p, int), type(p) is P, p.__class__ is int, isinstance(p, P), issubclass(type(p), int)]
    try:
        hash(a)
    except TypeError as e:
        out.append(text(e))
    A.f = lambda s: s.t - 1
    out.append(m.__func__ is A.f)
    return r1, r2, r3, a.f(), out


@program(graphs=9, breaks=True)
def bound_method_identity(x):
    class A:
        def __init__(s, v):
            s.v = v

        def f(s, k=1):
            return s.v * k

        def __eq__(s, o):
            return True

        def __hash__(s):
            return 1

        @classmethod
        def c(cls):
            return cls.__name__

    a, b = A(x), A(x + 1)
    out = [
        a.f is a.f,
        a.f == a.f,
        a.f == b.f,
        hash(a.f) == hash(a.f),
        a.f.__self__ is a,
        a.f.__func__ is A.f,
        A.c == A.c,
        A.f is A.__dict__["f"],
        {a.f: 1}.get(b.f),
        a.f.__name__,
        a.f.__defaults__,
    ]
    try:
        a.f.attr = 1
    except AttributeError as e:
        out.append(text(e))
    A.f.attr = 2
    out.append(a.f.attr)
    m = types.MethodType(lambda *k: len(k), 5)
    out.append(m(1, 2))
    n = types.MethodType(a.f, 3)
    out.append([].append == [].append)
    for bad in (lambda: types.MethodType(3, 4), lambda: types.MethodType(len, None)):
        try:
            bad()
        except TypeError as e:
            out.append(text(e))
    A.f.__defaults__ = (5,)
    r = a.f()
    A.f.__kwdefaults__ = None
    b.f = types.MethodType(lambda s, k: s.v + k, b)
    return n(), r, b.f(2), out


@program(graphs=3, breaks=True)
def dunders_none_and_wrong(x):
    out = []

    class A:
        __iter__ = None
        __hash__ = None
        __contains__ = None
        __reversed__ = None
        __len__ = 3
        __add__ = None

        def __getitem__(s, i):
            return [1, 2][i]

        def __eq__(s, o):
            return NotImplemented

    class R:
        def __radd__(s, o):
            return "radd"

    class S(A):
        def __radd__(s, o):
            return "sub radd"

    class E:
        __eq__ = None
        __bool__ = None
        __str__ = None
        __getattr__ = None

    a = A()
    for f in (
        lambda: iter(a),
        lambda: 1 in a,
        lambda: hash(a),
        lambda: reversed(a),
        lambda: len(a),
        lambda: a + R(),
        lambda: a + S(),
        lambda: a + 1,
        lambda: a == A(),
        lambda: a == a,
        lambda: a[1],
        lambda: bool(a),
        lambda: E() == E(),
        lambda: bool(E()),
        lambda: str(E()),
        lambda: E().zz,
        lambda: E() != 3,
        lambda: 3 == E(),
        lambda: isinstance(a, collections.abc.Iterable),
        lambda: isinstance(a, collections.abc.Hashable),
        lambda: {E(): 1} and 0,
        lambda: [*a],
        lambda: isinstance(a, collections.abc.Sized),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
            x = x + 1
    return x, out


@program(graphs=10, breaks=True)
def odd_len_bool_index(x):
    out = []

    class V:
        def __init__(s, v):
            s.v = v

        def __len__(s):
            return s.v

    class B(V):
        def __bool__(s):
            return s.v

    class I:
        def __init__(s, v):
            s.v = v

        def __index__(s):
            return s.v

    for v in (-1, 1.0, True, 2**70, "a", None, I(4), 0, 3):
        for f in (
            lambda: len(V(v)),
            lambda: bool(V(v)),
            lambda: bool(B(v)),
            lambda: [0, 1, 2, 3, 4][I(v)],
            lambda: not B(v),
            lambda: "t" if B(v) else "f",
            lambda: int(I(v)),
            lambda: range(I(v)).stop,
            lambda: hex(I(v)),
        ):
            try:
                out.append(f())
            except Exception as e:
                out.append(text(e))
                x = x + 1
    return x, x[I(1)], x[I(0) : I(2)], out


@program(graphs=4, breaks=True)
def odd_hash_and_eq(x):
    out = []

    class H:
        def __init__(s, h, n):
            s.h, s.n = h, n

        def __hash__(s):
            out.append("h" + s.n)
            return s.h

        def __eq__(s, o):
            out.append(s.n + "=" + getattr(o, "n", "?"))
            return self_eq

    self_eq = []
    a, b = H(1, "a"), H(1, "b")
    d = {a: x, b: x + 1}
    out.append(len(d))
    out.append(d[a] is x)
    self_eq = "yes"
    d[b] = x * 2
    out.append((len(d), [k.n for k in d]))
    out.append(1 in d)
    for h in (2**61 - 1, -1, True, 2**80, 1.0, "s", None):
        try:
            out.append(hash(H(h, "c")))
        except TypeError as e:
            out.append(text(e))

    class E:
        def __eq__(s, o):
            return False

    e = E()
    out += [
        e in [e],
        e == e,
        [e] == [e],
        [e].index(e),
        [e].count(e),
        (e,) == (e,),
        {1: e} == {1: e},
        e != e,
        E.__hash__,
    ]
    nan = float("nan")
    out += [nan in [nan], [nan] == [nan], nan == nan, {nan: 1}[nan], [nan].count(float("nan"))]
    return d[b], out


@program
def rich_comparison_fallbacks(x):
    log = []

    class A:
        def __lt__(s, o):
            log.append("A<")
            return NotImplemented

        def __eq__(s, o):
            log.append("A=")
            return NotImplemented

        def __le__(s, o):
            log.append("A<=")
            return x.sum()

    class B(A):
        def __gt__(s, o):
            log.append("B>")
            return "gt"

        def __eq__(s, o):
            log.append("B=")
            return ["eq"]

        def __ge__(s, o):
            log.append("B>=")
            return NotImplemented

    a, b = A(), B()
    out = [a < b, a == b, a != b, b == a, b != b, a is not b, a <= b, 3 > a if False else 0]
    for f in (lambda: a < a, lambda: a > 3, lambda: 3 < a, lambda: sorted([a, A()]), lambda: max(a, A())):
        try:
            out.append(f())
        except TypeError as e:
            out.append(text(e))
    out.append(
        (
            1 < 2 < 3 > 2 != 5 in [5],
            (1, 2) < (1, 2, 0),
            [1, [2]] < [1, [3]],
            {1} < {1, 2} > {2},
            1 == 1.0 == True,
            "a" == b"a",
        )
    )

    def side(v):
        log.append(v)
        return v

    out.append(side(1) < side(0) < side(5))
    return x, out, log


@program(graphs=3, breaks=True)
def reflected_operator_subclass_rule(x):
    log = []

    class A:
        def __add__(s, o):
            log.append("A.add")
            return "A"

        def __radd__(s, o):
            log.append("A.radd")
            return "rA"

        def __sub__(s, o):
            return NotImplemented

        def __matmul__(s, o):
            raise AttributeError("inner")

    class B(A):
        pass

    class C(A):
        def __radd__(s, o):
            log.append("C.radd")
            return NotImplemented

    class D(A):
        __radd__ = A.__radd__

        def __rsub__(s, o):
            return "D.rsub"

    class T:
        def __radd__(s, o):
            return "with tensor"

        def __rmul__(s, o):
            return NotImplemented

        def __torch_function__(s, *a, **k):
            return NotImplemented

    out = [A() + B(), A() + C(), A() + D(), C() + A(), 1 + A(), A() - D()]
    for f in (
        lambda: A() - A(),
        lambda: A() @ A(),
        lambda: A() ** 2,
        lambda: x + T(),
        lambda: divmod(A(), 1),
        lambda: pow(A(), 2, 3),
        lambda: A() // x[0, 0].item().__class__,
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e) if "Tensor" not in str(e) else type(e).__name__)

    class F(float):
        def __rmul__(s, o):
            return ("F.rmul", o)

    return x + 1, 2.0 * F(3), out, log


@program(graphs=3, breaks=True)
def inplace_operator_rules(x):
    log = []

    class A:
        def __init__(s, v):
            s.v = v

        def __iadd__(s, o):
            log.append("iadd")
            return NotImplemented

        def __add__(s, o):
            log.append("add")
            return A(s.v + o)

        def __imul__(s, o):
            s.v = s.v * o
            return s.v

        __isub__ = None

        def __sub__(s, o):
            return 1

    a = A(x)
    old = a
    a += 1
    log.append(a is old)
    a *= 2
    log.append(type(a).__name__)
    q = A(1)
    try:
        q -= 1
    except TypeError as e:
        log.append(text(e))
    t = ([1], x)
    try:
        t[0] += [2]
    except TypeError as e:
        log.append((text(e), t[0]))
    l = m = [1]
    l += "ab"
    log.append((m, l is m))
    l = l + [3]
    log.append(l is m)
    u = v = (1,)
    u += (2,)
    log.append(v)
    s = w = {1}
    s |= {2}
    s -= {1}
    log.append((w, s is w))
    f = g = frozenset([1])
    f |= {2}
    log.append(sorted(g))

    def idx():
        log.append("idx")
        return 0

    l[idx()] += 5
    d = {}
    try:
        d["k"] += 1
    except KeyError as e:
        log.append(text(e))
    n = "a"
    n *= 3
    k = {"a": 1}
    k |= [("b", 2)]
    i = 7
    i //= -2
    i **= 2
    i ^= 3
    i <<= 1
    i @= type("M", (), {"__rmatmul__": lambda s, o: ("rm", o)})()
    return a, old.v, log, l, n, k, i


@program
def tensor_inplace_alias_in_containers(x):
    out = []

    class Box:
        def __init__(s, t):
            s.t = t

    y = x.clone()
    b = Box(y)
    l = [y, y]
    d = {"a": y}
    t = (y,)
    b.t += 1
    out.append(b.t is y)
    l[0] *= 2
    out.append(l[0] is l[1])
    d["a"] -= 1
    try:
        t[0].add_(1)
        t[0] += 1
    except TypeError as e:
        out.append(text(e))
    z = y
    z = z + 1
    out.append(z is y)
    y[0] += 10
    y[..., 1:2] = 0
    for v in l:
        v += 1
    for i, v in enumerate(l):
        v = v + 1
        l[i] = v
    out.append(l[0] is l[1])
    y[0, 0], y[0, 1] = y[0, 1].clone(), y[0, 0].clone()
    return y, z, l, d["a"] is y, t[0] is y, out


# ---------------------------------------------------------------- generators and iteration


@program(breaks=True)
def generator_send_protocol(x):
    out = []

    def gen():
        r = yield "first"
        out.append(("got", r))
        while True:
            try:
                r = yield x + r
            except ValueError as e:
                out.append(text(e))
                r = yield "caught"
            except GeneratorExit:
                out.append("closing")
                raise
            finally:
                out.append("fin")

    g = gen()
    try:
        g.send(1)
    except TypeError as e:
        out.append(text(e))
    out.append(inspect.getgeneratorstate(g))
    out.append(next(g))
    a = g.send(2)
    b = g.send(3)
    out.append(inspect.getgeneratorstate(g))
    out.append(g.throw(ValueError("thrown")))
    c = g.send(10)
    g.close()
    g.close()
    out.append(inspect.getgeneratorstate(g))
    out.append(next(g, "default"))
    try:
        g.throw(KeyError("after"))
    except KeyError as e:
        out.append(text(e))
    h = gen()
    try:
        h.throw(KeyError, "unstarted")
    except KeyError as e:
        out.append(text(e))
    out.append(list(h))
    return a, b, c, out


@program
def yield_from_delegation(x):
    out = []

    def inner():
        try:
            r = yield 1
            out.append(("r", r))
            yield x * r
        except KeyError as e:
            out.append(("inner", text(e)))
            yield "recovered"
        finally:
            out.append("inner fin")
        return "result"

    def outer():
        v = yield from inner()
        out.append(v)
        w = yield from [10, 20]
        out.append(w)
        z = yield from range(2)
        out.append(z)
        try:
            yield from 5
        except TypeError as e:
            out.append(text(e))
        return v * 2

    g = outer()
    out.append(next(g))
    t = g.send(4)
    out.append(g.throw(KeyError("k")))
    out.append(next(g))
    try:
        g.send(3)
    except AttributeError as e:
        out.append(text(e))
    out.append(list(g))
    h = outer()
    next(h)
    h.close()

    class It:
        def __iter__(s):
            return s

        def __next__(s):
            raise StopIteration("val")

    def k():
        out.append((yield from It()))

    out.append(list(k()))
    return t, out


@program(breaks=True)
def generator_close_rules(x):
    out = []

    def ignores():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    def returns():
        try:
            yield 1
        except GeneratorExit:
            out.append("exit")
            return x + 1

    def raises():
        try:
            yield 1
        finally:
            raise OSError("in finally")

    def stop():
        yield 1
        raise StopIteration("bad")

    def nextstop():
        yield next(iter(()))

    for f in (ignores, returns, raises):
        g = f()
        next(g)
        try:
            g.close()
            out.append("closed")
        except Exception as e:
            out.append((text(e), type(e.__context__).__name__))
    for f in (stop, nextstop):
        try:
            out.append(list(f()))
        except RuntimeError as e:
            out.append((text(e), repr(e.__cause__)))

    def selfrun():
        yield next(me)

    me = selfrun()
    try:
        next(me)
    except ValueError as e:
        out.append(text(e))
    g = returns()
    g.close()
    out.append(list(g))
    return x * len(out), out


@program
def generator_reads_what_it_extends(x):
    l = [1, 2, 3]
    out = []

    def grow():
        for v in l:
            if len(l) < 8:
                l.append(v * 10)
            yield v

    out.append(list(grow()))
    m = [1, 2, 3]
    m.extend(v + 1 for v in m if len(m) < 6)
    out.append(m)
    n = [1, 2, 3]
    n[:] = (v * 2 for v in n)
    out.append(n)
    o = [1, 2]
    o += (len(o) for _ in range(3))
    out.append(o)
    q = [3, 1, 2]
    q.extend(q)
    q[1:2] = q
    out.append(q)
    s = {1}
    s.update(len(s) for _ in range(4))
    out.append(s)
    t = [x]
    t.extend(t[-1] + 1 for _ in range(3))
    d = {0: 1}
    d.update((len(d), len(d)) for _ in range(3))
    out.append(d)
    dq = collections.deque([1, 2])
    try:
        dq.extend(v for v in dq if len(dq) < 5)
    except RuntimeError as e:
        out.append(text(e))
    dq.extend(dq)
    out.append(list(dq))
    return t, out


@program(graphs=0, breaks=True)
def mutate_while_iterating(x):
    out = []
    l = [0, 1, 2, 3, 4, 5]
    for v in l:
        if v % 2 == 0:
            l.remove(v)
    out.append(list(l))
    for v in reversed(l):
        l.insert(0, v) if len(l) < 6 else l.clear()
    out.append(l)
    d = {1: x, 2: x}
    try:
        for k in d:
            d[k + 10] = 1
    except RuntimeError as e:
        out.append((text(e), list(d)))
    for k in list(d):
        del d[k]
        d[k] = x + k
    try:
        for k in d:
            d[k] = x * k
        for k in d.keys():
            del d[k]
            d[k] = 2
    except RuntimeError as e:
        out.append(text(e))
    s = {1, 2, 3}
    try:
        for k in s:
            s.add(k + 100)
    except RuntimeError as e:
        out.append(text(e))
    it = iter(l := [1])
    next(it)
    out.append(next(it, "end"))
    l.append(2)
    out.append(next(it, "end"))
    r = iter([1, 2, 3])
    out += [[a for a in r if a < 3 or next(r, None)], operator.length_hint(r), it.__length_hint__()]
    dq = collections.deque([1, 2])
    try:
        for v in dq:
            dq.append(v)
    except RuntimeError as e:
        out.append(text(e))
    return d[11], out


@program
def sentinel_and_getitem_iteration(x):
    out = []

    class G:
        def __getitem__(s, i):
            if i == 3:
                raise IndexError
            if i > 5:
                raise StopIteration
            return x * i

    out.append(len([*G()]))
    a, b, c = G()
    out.append(any(v is c for v in [a, b, c]))
    n = iter([1, 2, 3, 4])
    out.append(list(iter(lambda: next(n), 3)))
    out.append(list(iter(lambda: next(n), 9)))

    class Bad:
        def __iter__(s):
            return 3

    class NoNext:
        def __iter__(s):
            return [].__iter__

    class Late:
        def __getitem__(s, i):
            raise KeyError(i)

    class K:
        def __getitem__(s, i):
            return 7 if i < 2 else [][0]

        def __len__(s):
            return 10

    out += [4 in [1], 7 in K(), 8 in K(), list(reversed(K()))[:0] if False else 0]
    for f in (
        lambda: iter(Bad()),
        lambda: iter(NoNext()),
        lambda: list(Late()),
        lambda: iter(3, 4),
        lambda: next([]),
        lambda: list(reversed(K())),
        lambda: reversed({1}),
        lambda: dict(K()),
        lambda: [] in Late(),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    return a + b + c, out


@program
def zip_map_filter_consumption(x):
    a, b = iter([1, 2, 3]), iter("xy")
    out = []
    out.append(list(zip(a, b)))
    out.append(list(a))
    a, b = iter([1, 2, 3]), iter("xy")
    out.append(list(zip(b, a)))
    out.append(list(a))
    try:
        list(zip([1, 2], [1], strict=True))
    except ValueError as e:
        out.append(text(e))
    try:
        list(zip([1], [1, 2], [3], strict=True))
    except ValueError as e:
        out.append(text(e))

    def boom(v):
        if v == 2:
            raise StopIteration
        return v

    out.append(list(map(boom, [1, 2, 3])))
    m = map(boom, [1, 2, 3])
    out.append([next(m), next(m, "end"), next(m, "end")])
    out.append(list(filter(None, [0, [], "a", x.shape, float("nan")])) == [])
    out.append(list(map(lambda *k: k, "ab", [1])))
    out.append(list(zip()))
    e = enumerate(iter("abc"), -1)
    next(e)
    out.append(list(e))
    out.append(list(zip(*[iter(range(6))] * 2)))
    try:
        map(int)
    except TypeError as t:
        out.append(text(t))
    it = iter([1, 2, 3, 4])
    out.append(any(v == 2 for v in it))
    out.append(list(it))
    out.append(all([]))
    it = iter([1, 0, 3])
    out += [all(it), list(it), 2 in (i := iter([1, 2, 3])), list(i)]
    return torch.stack(list(map(torch.add, x, x.flip(0)))), out


@program
def comprehension_scoping(x):
    i = "outer"
    out = []
    l = [i for i in range(3)]
    out.append((i, l))
    out.append([(y := k * 2, k) for k in range(3)])
    out.append(y)
    out.append([j for i in range(3) for j in range(i) if (w := j) >= 0])
    out.append(w)
    fs = [lambda: k for k in range(3)]
    out.append([f() for f in fs])
    gs = [lambda k=k: k for k in range(3)]
    out.append([g() for g in gs])

    def order(n):
        out.append(n)
        return range(2)

    g = (order("inner") for _ in order("outermost"))
    out.append("made")
    next(g)
    try:
        (q for q in 5)
    except TypeError as e:
        out.append(text(e))
    out.append({k: v for k, v in [(1, 2), (1, 3)]})
    out.append({len(out) - len(out): (out.append("val"), 1)[1] for _ in range(1)})

    def lazily():
        z = 1
        g = (z + q for q in range(2))
        z = 10
        return list(g)

    out.append(lazily())
    n = [[c for c in r] for r in ["ab", "c"]]
    out.append(n)
    ts = [x + k for k in range(2)]
    xs = [x for x in ts]
    return x, xs[1], out


@program
def walrus_positions(x):
    out = []
    if (n := x.shape[0]) > 2 and (m := n * 2):
        out.append((n, m))
    while n := n - 1:
        out.append(n)
    f = lambda a=(d := 5), *, b=(e := 6): (a, b)
    out.append((f(), d, e))
    out.append([last := v for v in range(3)])
    out.append(last)
    out.append(any((hit := v) > 1 for v in [1, 2, 3]))
    out.append(hit)
    t = (p := x + 1) * p
    out.append(f"{(q := 3)}{q:=4}")
    l = [0] * 3
    l[(k := 1)] = (k := 2)
    out.append((l, k))
    out.append((z := 1, 2))
    out.append(z)
    d = {(a := 1): (a := a + 1), (a := a + 1): a}
    out.append(d)

    def g():
        nonlocal m
        [m := c for c in "ab"]

    g()
    out.append(m)
    return t, out


# ---------------------------------------------------------------- scopes


@program
def closures_nonlocal_del(x):
    out = []

    def outer():
        v = x
        n = 0

        def bump():
            nonlocal n, v
            n += 1
            v = v + n
            return n

        def drop():
            nonlocal v
            del v

        def read():
            return v

        return bump, drop, read

    b, d, r = outer()
    b()
    b()
    a = r()
    d()
    try:
        r()
    except NameError as e:
        out.append(text(e))
    try:
        b()
    except NameError as e:
        out.append(text(e))
    out.append(len(b.__closure__))
    out.append(sorted(b.__code__.co_freevars))
    try:
        r.__closure__[0].cell_contents
    except ValueError as e:
        out.append(text(e))
    r.__closure__[0].cell_contents = x * 3
    c = r()

    def late():
        def f():
            return undefined_yet

        try:
            f()
        except NameError as e:
            out.append(text(e))
        undefined_yet = 4
        return f()

    out.append(late())

    def unbound():
        if False:
            loc = 1
        return loc

    try:
        unbound()
    except UnboundLocalError as e:
        out.append(text(e))
    return a, c, out


@program
def default_argument_mutation(x):
    out = []

    def f(a, acc=[], *, kw={}):
        acc.append(a)
        kw[len(acc)] = a
        return acc

    f(1)
    f(2)
    out.append(f(3) is f.__defaults__[0])
    out.append(f.__kwdefaults__)
    f.__defaults__ = ([9],)
    out.append(f(1))
    f.__kwdefaults__["kw"] = {}
    f.__defaults__ = None
    try:
        f(1)
    except TypeError as e:
        out.append(text(e))
    log = []

    def mk(n):
        log.append(n)
        return n

    def g(a=mk("a"), b: mk("ann") = mk("b"), *, c=mk("c")) -> mk("ret"):
        return a

    out.append((log, g.__annotations__))

    def h(t=x):
        t = t + 1
        return t

    h()
    r = h()
    k = lambda t=x.clone(): t.add_(1)
    k()
    k()
    g.__defaults__ = (1, 2, 3, 4)
    try:
        out.append(g())
    except TypeError as e:
        out.append(text(e))
    return r, k(), out


@program
def call_argument_binding(x):
    out = []

    def f(a, /, b, c=3, *args, d, e=5, **kw):
        return a, b, c, args, d, e, sorted(kw.items())

    class M:
        def keys(s):
            return iter(["d", "q"])

        def __getitem__(s, k):
            return k * 2

    for c in (
        lambda: f(1, 2, d=4),
        lambda: f(1, b=2, d=4, a=9),
        lambda: f(1, 2, 3, 4, 5, d=1, z=2),
        lambda: f(1, 2),
        lambda: f(b=1, d=2),
        lambda: f(1, 2, b=3, d=1),
        lambda: f(*[1, 2], **M()),
        lambda: f(*"ab", d=1, **{"d": 2}),
        lambda: f(1, **{"b": 1, 3: 4}),
        lambda: f(1, 2, *5),
        lambda: f(1, **[("a", 1)]),
        lambda: f(),
        lambda: (lambda: 1)(1),
        lambda: (lambda *, k: 1)(1),
        lambda: f(1, 2, *(), d=4, **{}),
        lambda: (lambda a, b=1: 0)(1, 2, 3),
        lambda: f(*[1], 2, *[3], d=4, **{"e": 6}, **{"not id": 7}),
        lambda: int(3, basee=4),
        lambda: len(),
        lambda: f(1, 2, d=1, **{"e": 1}, **{"e": 2}),
    ):
        try:
            out.append(c())
        except TypeError as e:
            out.append(str(e))
            x = x + 1
    log = []

    def n(v):
        log.append(v)
        return v

    def many(*a, **k):
        return a, k

    out.append(many(n(1), *[n(2)], k=n(3), *[n(4)], **{"z": n(5)}))
    out.append(log)
    return x, out


@program
def star_unpacking_rules(x):
    out = []
    a, *b, c = x
    out.append((len(b), b[0].shape))
    (*d,) = "ab"
    [e, [f, *g]] = 1, (2, 3, 4)
    (h,) = [5]
    out.append((d, e, f, g, h))
    i, *j = [1]
    out.append(j)
    for t in (
        "a, b = [1]",
        "a, b = [1, 2, 3]",
        "a, *b, c = [1]",
        "a, b = 5",
        "a, b = {1: 2, 3: 4}",
        "(a, b), c = 'xy', 'z'",
        "*a, b = iter('')",
        "a = *b, = 'q'",
        "a, b = 'xyz'",
    ):
        ns = {}
        try:
            exec(t, {}, ns)
            out.append(ns)
        except Exception as e_:
            out.append(text(e_))
    l = [0, 0]
    k = 0
    k, l[k] = 1, 5
    out.append((k, l))
    k = l = [1, 2]
    k[0], k = 7, 3
    out.append(l)
    p = q = r = []
    out.append(p is r)
    s = [*{1: 2}, *"a", *range(2)]
    out.append(s)
    out.append({**{"a": 1}, "b": 2, **{"a": 3}})
    u = *[1], 2
    out.append(u)
    z = [1, 2, 3]
    z[0], *z[1:] = "abc"
    out.append(z)

    class C:
        pass

    o = C()
    o.m, *o.n = x
    m1, n1 = o.n
    for o.v, (o.w, *_) in [(1, "ab"), (2, "cd")]:
        pass
    return a + c, m1 + n1, o.v, o.w, _, out


@program(graphs=0, breaks=True)
def del_statement_forms(x):
    out = []

    class A:
        def __delitem__(s, k):
            out.append(("delitem", k))

        def __delattr__(s, n):
            out.append(("delattr", n))

    a = A()
    del a[1], a[1:2], a.q, a[..., None], (a[0], [a.z])
    l = list(range(10))
    del l[::3], l[-1]
    out.append(l)
    y = x
    del x
    out.append("x" in locals())
    try:
        x
    except UnboundLocalError as e:
        out.append(text(e))
    for f in (
        lambda: operator.delitem((1,), 0),
        lambda: operator.delitem([1], 5),
        lambda: operator.delitem({}, 1),
        lambda: operator.delitem(y, 0),
        lambda: operator.delitem([1, 2], "a"),
    ):
        try:
            f()
        except Exception as e:
            out.append(text(e))
    x = y + 1
    d = {"a": 1, "b": 2}
    del d["a"]
    d["a"] = 3
    out.append(list(d))
    b = [1, 2, 3, 4]
    del b[10:], b[2:1], b[:1]
    out.append(b)
    del b[::-2]
    out.append(b)

    class P:
        @property
        def q(s):
            return 1

        @q.deleter
        def q(s):
            out.append("deleter")

    del P().q
    return x, out


@program(graphs=3, breaks=True)
def pattern_matching_rules(x):
    out = []

    class P:
        __match_args__ = ("a", "b")

        def __init__(s, a, b):
            s.a, s.b = a, b

    class Bad:
        __match_args__ = ["a"]

    class Dup:
        __match_args__ = ("a", "a")
        a = 1

    def m(v):
        match v:
            case torch.Tensor(shape=(n, 4)):
                return ("tensor", n)
            case True:
                return "True"
            case 1 | 2 as n:
                return ("int", n)
            case "a" | b"b":
                return "str/bytes"
            case [1, *rest] if len(rest) > 1:
                return ("list", rest)
            case [a, [b, _]] | (b, a, 3):
                return (a, b)
            case {"k": k, **rest}:
                return (k, rest)
            case {}:
                return "empty or other mapping"
            case P(a=0, b=q) | P(1, q):
                return ("P", q)
            case P():
                return "P()"
            case float(f):
                return ("float", f)
            case str() | bytes():
                return "text"
            case -1 | 1 + 2j:
                return "literal"
            case None:
                return "None"
            case _:
                return "other"

    for v in (
        True,
        1,
        1.0,
        2,
        "a",
        b"b",
        [1, 2, 3],
        (1, 2),
        [5, [6, 7]],
        (8, 9, 3),
        {"k": 1, "z": 2},
        {},
        {"q": 1},
        P(0, 5),
        P(1, 6),
        P(2, 3),
        2.5,
        "zz",
        -1,
        1 + 2j,
        None,
        x,
        range(2),
        {1},
        collections.deque([1, 4, 4]),
        bytearray(b"a"),
        collections.defaultdict(int),
    ):
        out.append(m(v))
    for c in (Bad, Dup):
        try:
            match c():
                case c(1, y):
                    out.append("?")
        except TypeError as e:
            out.append(text(e))
    return x * m(x)[1], out


@program(graphs=0, breaks=True)
def pattern_binding_leaks(x):
    out = []
    log = []

    class K:
        def __eq__(s, o):
            log.append(("eq", o))
            return o == 3

    class NS:
        k = K()
        three = 3

    class Seq(collections.abc.Sequence):
        def __len__(s):
            log.append("len")
            return 2

        def __getitem__(s, i):
            log.append(i)
            if i >= 2:
                raise IndexError(i)
            return i + 10

    class Map(dict):
        def __missing__(s, k):
            log.append("missing")
            return 1

        def get(s, k, d=None):
            log.append(("get", k))
            return super().get(k, d)

    match [1, 2, 3]:
        case [a, b, 4]:
            out.append("no")
        case [_, *mid]:
            out.append(mid)
    out.append("a" in locals() and a)
    match 3:
        case NS.k:
            out.append("by eq")
    match Seq():
        case [p, q, r]:
            out.append("3")
        case [p, q]:
            out.append((p, q))
    match Map(z=1):
        case {"absent": v}:
            out.append("absent")
        case {"z": v}:
            out.append(v)
    match (yy := x + 1), 4:
        case t, 4 if (w := t.ndim) == 2:
            out.append(w)
    match x.tolist():
        case [[float(f0), *_], *others]:
            out.append(len(others))
    return t * 2, f0, out, [str(l) if not isinstance(l, (int, str)) else l for l in log if l != ("eq", 3)]


# ---------------------------------------------------------------- containers


@program(breaks=True)
def container_reinit(x):
    l = [1, 2]
    l.__init__((3, 4))
    s = {1}
    s.__init__([5])
    d = {1: x}
    d.__init__(a=2)
    out = [l, s, list(d)]
    l.__init__()
    out.append(list(l))
    s.__init__()
    out.append(len(s))
    dq = collections.deque([1, 2, 3], 2)
    dq.__init__([7, 8, 9])
    out.append((list(dq), dq.maxlen))
    t = (1,)
    t.__init__()
    out.append(t)
    try:
        t.__init__(3)
    except TypeError as e:
        out.append(text(e))
    dd = collections.defaultdict(list, a=1)
    dd.__init__(int)
    out.append((dd["zz"], dict(dd)))
    c = collections.Counter("aab")
    c.__init__("b")
    out.append(dict(c))
    od = collections.OrderedDict(a=1)
    od.__init__([("b", 2)])
    out.append(list(od.items()))
    ba = bytearray(b"abc")
    ba.__init__(2)
    out.append(bytes(ba))
    l2 = [1]
    try:
        l2.__init__(v for v in [l2.append(9) or len(l2)] * 2)
    except ValueError as e:
        out.append(text(e))
    out.append(l2)
    fs = frozenset([1])
    fs.__init__([2])
    out.append(fs)
    p = functools.partial(max, 3)
    e = ValueError(1)
    e.__init__(2, 3)
    out.append((e.args, str(e)))
    d2 = {"k": [1]}
    d2.__init__(d2)
    out.append(d2)
    l3 = [1, 2]
    l3.__init__(l3)
    out.append(l3)
    return d[1] + 1, out


@program(breaks=True)
def set_semantics(x):
    out = []
    s = {1, True, 1.0}
    out.append(s)
    t = {True}
    t.add(1)
    out.append(t)
    a, b = {1, 2}, frozenset([2, 3])
    out += [
        type(a | b).__name__,
        type(b | a).__name__,
        a ^ b,
        a <= {1, 2},
        a < a,
        a == frozenset(a),
        a.isdisjoint([9]),
        a.union([5], (6,)),
        a.issubset("12"),
        b - a,
    ]
    for f in (
        lambda: a | [1],
        lambda: a < [1],
        lambda: {[]},
        lambda: a.remove(9),
        lambda: frozenset().pop,
        lambda: hash(a),
        lambda: a + b,
        lambda: set(1),
        lambda: a.update(1),
        lambda: {{1}},
        lambda: a.remove({1}),
        lambda: {1} in {frozenset([1])},
        lambda: a.discard([]),
        lambda: a.intersection(b, 3),
        lambda: set([1], [2]),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))

    class S(set):
        def __contains__(s, v):
            return True

        def __iter__(s):
            return iter([100])

        def add(s, v):
            raise ValueError

    q = S([1, 2])
    q |= {3}
    out += [
        len(q),
        type(q & {1}).__name__,
        type(q.copy()).__name__,
        sorted(set(q)),
        [*q],
        q == {1, 2, 3},
        99 in q,
        {100} - q,
        sorted(set().union(q)),
        type(frozenset(q)).__name__,
        q > {1},
    ]
    c = {1: 0}.keys() & [1, 2]
    out += [
        c,
        {1: 0}.keys() == {1},
        {1: 2}.items() >= {(1, 2)},
        {1: 0}.keys() | "a" == {1, "a"},
        a.difference_update(a),
        a,
        frozenset([1]) is frozenset(frozenset([1])),
        {*()} == set(),
    ]
    return x + len(out), out


@program(graphs=0, breaks=True)
def dict_views_and_order(x):
    out = []
    d = {"b": 1, "a": x}
    k, v, it = d.keys(), d.values(), d.items()
    d["c"] = 3
    out += [list(k), len(v), ("c", 3) in it, list(reversed(k)), sorted(k - {"a"}), k.isdisjoint("zz"), repr(k)]
    d["b"] = 9
    out.append(list(d))
    d.pop("b")
    d["b"] = 1
    out += [list(d), d.setdefault("n"), d.setdefault("n", 5), d.pop("zz", None), list(d), d.popitem(), k.mapping["c"]]
    out += [
        d.keys() == {"a", "c", "b"},
        d.values() == d.values(),
        {1: 1} == {1.0: True},
        list({1: "a", True: "b"}.items()),
        dict.fromkeys("aba", 0),
        dict(d, z=1).keys() - d.keys(),
        dict(zip("ab", [1])),
        d | {"c": 0} is d,
        list({**d}) == list(d),
    ]
    for f in (
        lambda: d.keys()[0],
        lambda: {1: 2} < {1: 3},
        lambda: hash(k),
        lambda: {1: 2}.items() | [[1]],
        lambda: {1: [2]}.items() | {1},
        lambda: d["q"],
        lambda: {} + {},
        lambda: dict(1),
        lambda: dict(a=1, **{"a": 2}),
        lambda: {1: 1} | [(1, 2)],
        lambda: dict.fromkeys(5),
        lambda: dict([(1, 2), 3]),
        lambda: dict(["ab", "cde"]),
        lambda: {}.update([1], [2]),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    m = types.MappingProxyType(d)
    out += [m["c"], len(m), "c" in m, type(m | {"k": 1}).__name__, type(m.copy()).__name__]
    d["late"] = 1
    out.append(m["late"])
    for f in (
        lambda: operator.setitem(m, 1, 2),
        lambda: m.pop(1),
        lambda: types.MappingProxyType([1]) and 1,
        lambda: types.MappingProxyType(3),
        lambda: hash(m),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    return d["a"] + 1, out


@program(graphs=3, breaks=True)
def dict_subclass_overrides(x):
    log = []

    class D(dict):
        def __getitem__(s, k):
            log.append(("get", k))
            return super().__getitem__(k)

        def __setitem__(s, k, v):
            log.append(("set", k))
            super().__setitem__(k, v)

        def __missing__(s, k):
            log.append(("missing", k))
            return k * 2

        def __iter__(s):
            log.append("iter")
            return iter(["fake"])

        def keys(s):
            log.append("keys")
            return ["a"]

        def items(s):
            return [("it", 1)]

        def __contains__(s, k):
            return k == "magic"

        def __len__(s):
            return 42

    d = D(a=1, b=x)
    d.update(c=3)
    d["d"] = 4
    d |= {"e": 5}
    d.setdefault("f", 6)
    out = [
        d["q"],
        d.get("q"),
        d.get("a"),
        "a" in d,
        "magic" in d,
        len(d),
        list(d),
        [*d],
        dict(d),
        {**d},
        sorted(dict.keys(d)),
        d.pop("a"),
        bool(D()),
        type(d.copy()).__name__,
        type(d | {}).__name__,
        list(d.items()),
        len(list(d.values())),
        dict.__len__(d),
    ]

    def f(**k):
        return k

    out += [
        f(**d) if False else None,
        "%(q)s" % d,
        "{0[q]}".format(d),
        "{zz}".format_map(d),
        eval("a_b", {}, d) if False else 0,
        d == {"a": 1},
        dict([("k", 1)], **{"z": 2}),
        list(reversed(d)) == list(dict.__iter__(d))[::-1],
        sorted(d),
        list(map(str, d)),
        isinstance(d.keys(), list),
        D.fromkeys("ab", 1).__class__.__name__,
    ]
    return d["b"] + 1, out, log


@program
def ordered_default_counter_chain(x):
    out = []
    OD, C, DD, CM = collections.OrderedDict, collections.Counter, collections.defaultdict, collections.ChainMap
    o = OD(a=1, b=2, c=3)
    o.move_to_end("a")
    o.move_to_end("c", last=False)
    out += [
        list(o),
        o.popitem(last=False),
        o == OD(a=1, b=2),
        o == {"a": 1, "b": 2},
        OD(a=1, b=2) == OD(b=2, a=1),
        list(reversed(o)),
        repr(o),
    ]
    try:
        o.move_to_end("zz")
    except KeyError as e:
        out.append(text(e))
    c = C("abca")
    c["z"] += 1
    c.subtract("aaa")
    out += [
        c["nope"],
        "nope" in c,
        dict(c),
        +c,
        -c,
        c.most_common(2),
        c & C(b=5),
        c | C(q=2),
        C(a=1) <= C(a=2),
        C(a=0) == C(),
        sorted(C(a=2, b=-1).elements()),
        c.total(),
        C(a=1) + C(a=-1),
        c.update([("k", 1)]),
        c[("k", 1)],
    ]
    d = DD(list)
    d["a"].append(x)
    out += [
        "b" in d,
        d.get("b"),
        list(d),
        d.default_factory is list,
        type(d | {}).__name__,
        repr(DD(None, {1: 2})),
        type(d.copy()).__name__,
    ]
    try:
        DD(None)["k"]
    except KeyError as e:
        out.append(text(e))
    try:
        DD(3)
    except TypeError as e:
        out.append(text(e))
    e = DD(lambda: len(e))
    out += [e["p"], e["q"], dict(e)]
    m = CM({"a": 1}, {"a": 2, "b": 3})
    m["b"] = 9
    out += [
        m["a"],
        m["b"],
        m.maps,
        list(m),
        len(m),
        m.new_child({"c": 1})["c"],
        m.parents["b"],
        dict(m),
        m.get("zz", 4),
        "b" in m,
    ]
    for f in (
        lambda: m.pop("zz"),
        lambda: CM({}, {"q": 1}).pop("q"),
        lambda: m["nope"],
        lambda: CM().popitem(),
        lambda: C.fromkeys("a"),
    ):
        try:
            out.append(f())
        except Exception as q:
            out.append(text(q))
    return d["a"][0] * 2, out


@program(graphs=0, breaks=True)
def deque_semantics(x):
    D = collections.deque
    out = []
    d = D([1, 2, 3], maxlen=3)
    d.append(4)
    d.appendleft(0)
    out += [list(d), d.maxlen]
    d.rotate(1)
    out.append(list(d))
    d.rotate(-5)
    d.extendleft("ab")
    out += [list(d), d[-1], d.index("a"), d.count(0), repr(d)]
    for f in (
        lambda: d[9],
        lambda: d[0:1],
        lambda: d.insert(0, 1),
        lambda: D([]).pop(),
        lambda: d.remove("zz"),
        lambda: D([1], -1),
        lambda: D([1]) + [2],
        lambda: D([1]) < D([2]),
        lambda: D([1]) == [1],
        lambda: hash(d),
        lambda: d * 2,
        lambda: D([1, 2]) + D([3]),
        lambda: D(maxlen=0).append(1),
        lambda: setattr(d, "maxlen", 4),
        lambda: D([1], "a"),
        lambda: d.index("zz"),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    e = D([x, x + 1])
    e += [x + 2]
    e[0] = e[0] * 2
    del e[1]
    e *= 2
    out += [
        len(e),
        list(reversed(D("abc"))),
        D("abc").copy().maxlen,
        list(D(range(5), 2)),
        bool(D()),
        "a" in D("abc"),
        list(D("aXb"))[1],
    ]

    class Q(D):
        def append(s, v):
            super().append(v * 2)

    q = Q([1])
    q.append(2)
    q.extend([3])
    out += [list(q), type(q.copy()).__name__, type(q + q).__name__]
    return e.popleft(), e.pop(), out


@program(graphs=5, breaks=True)
def list_subclass_and_sort_corners(x):
    out = []
    l = [3, 1, 2]
    try:
        l.sort(key=lambda v: (out.append(list(l)), v)[1])
    except ValueError as e:
        out.append(text(e))
    m = [1, 2, 3]
    try:
        m.sort(key=lambda v: m.append(v) or v)
    except ValueError as e:
        out.append((text(e), m))
    n = [2, 1]
    try:
        n.sort(key=lambda v: 1 / (v - 1))
    except ZeroDivisionError as e:
        out.append(n)
    out += [
        sorted([("b", 1), ("a", 1), ("c", 0)], key=operator.itemgetter(1), reverse=True),
        sorted("bAc", key=str.lower),
        sorted([True, 0, 1.0, False]),
        sorted([[2], [1, 5], []]),
        sorted({3: 1, 1: 2}),
        sorted([3, 1], reverse=2),
    ]
    for f in (
        lambda: sorted([1, "a"]),
        lambda: sorted([1, 2], lambda v: v),
        lambda: sorted([None, None]),
        lambda: [1].sort(cmp=1),
        lambda: sorted([1j, 2j]),
        lambda: sorted([{}, {}]),
        lambda: sorted([None]),
        lambda: sorted([float("nan"), 1.0, 0.0])[1],
        lambda: sorted(3),
        lambda: max([1, 2], key=3),
        lambda: min("b", "a", key=None, default=3),
        lambda: min([], default="d"),
        lambda: max(1),
        lambda: max("ab", "b", key=len),
        lambda: sorted([1, 2], reverse="x"),
        lambda: sorted([1, 2], reverse=1.5),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))

    class L(int):
        def __lt__(s, o):
            return int(s) > int(o)

    out.append([int(v) for v in sorted([L(1), L(3), L(2)])])
    out.append(int(max([L(1), L(3)])))
    out.append(sorted([1, 3, 2], key=functools.cmp_to_key(lambda a, b: b - a)))
    rows = sorted(x, key=lambda r: r.sum().item())
    out.append(sorted([(1, x[0]), (0, x[1])], key=lambda p: p[0])[0][0])
    return torch.stack(rows), out


@program
def slices_with_odd_bounds(x):
    l = list(range(6))
    out = [
        l[10:],
        l[-100:2],
        l[::-1],
        l[4:1:-2],
        l[None:None:2],
        l[True:],
        l[2:2],
        l[5:0],
        l[-1:-1],
        l[:-10:-1],
        "abcdef"[::-2],
        (1, 2, 3)[-2:],
        range(10)[2:8:3],
        range(10)[::-1][2],
        slice(5).indices(3),
        slice(None, None, -1).indices(4),
        slice(-100, 100, 3).indices(10),
        b"abc"[1],
        b"abc"[1:2],
    ]

    class G:
        def __getitem__(s, k):
            return k

    g = G()
    out += [
        str(g[1:2, ::3]),
        str(g[()]),
        str(g[1,]),
        str(g[:]),
        g[...] is Ellipsis,
        str(g[*[1, 2]]),
        slice(1, 2) == slice(1, 2, None),
        slice(1) < slice(2),
        str(g[None : x.shape[0]]),
    ]
    for f in (
        lambda: l[::0],
        lambda: l["a":],
        lambda: l[1.0:2],
        lambda: operator.setitem(l, slice(0, 4, 2), [1]),
        lambda: operator.setitem(l, slice(0, 1), 5),
        lambda: "abc"[5],
        lambda: operator.setitem("abc", 0, "d"),
        lambda: {}[1:2],
        lambda: range(3)[5],
        lambda: hash(slice(1)) and 0,
        lambda: slice(1, 2, 0).indices(3),
        lambda: slice(1).indices(-1),
        lambda: l[2**100],
        lambda: l[2**100 :],
        lambda: [1] * 2**70,
        lambda: l[1, 2],
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    m = [1, 2, 3, 4]
    m[1:1] = "ab"
    m[-1:0] = [9]
    m[::2] = range(4) if len(m) > 6 else [0] * len(m[::2])
    m[10:20] = [7]
    m[3:0:-1] = "xyz"
    m[:] = m[::-1]
    return x[-100:2], x[..., ::2], m, [str(o) for o in out]


@program
def list_methods_corners(x):
    out = []
    l = [1, 2, 1.0, True]
    out += [l.index(True), l.count(1), l.index(1, 1), l.pop(-2), l]
    l.insert(-1, "i")
    l.insert(100, "e")
    l.insert(-100, "s")
    out.append(list(l))
    l.extend({5: 6})
    l.extend("xy")
    out += [
        l.copy() == l,
        l[:] is l,
        l.reverse(),
        l * 0,
        l * -1,
        [[]] * 2,
        [1, 2] > [1],
        [] < [0],
        not [],
        l.clear(),
        l,
    ]
    for f in (
        lambda: [].pop(),
        lambda: [1].pop(3),
        lambda: [1].insert("a", 1),
        lambda: [1].extend(3),
        lambda: [1].index(2),
        lambda: [1] + "a",
        lambda: [1] * 1.5,
        lambda: [1] * [1],
        lambda: list(1),
        lambda: [1, 2].remove(3),
        lambda: [].append(),
        lambda: [1].index(1, 1),
        lambda: (1, 2).index(3),
        lambda: (1,) + [2],
        lambda: [].sort(1),
        lambda: (1, 2).append,
        lambda: [1].pop("a"),
        lambda: tuple(1),
        lambda: operator.setitem((1,), 0, 1),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    r = [1]
    r.append(r)
    out += [repr(r), r[1] is r, r[1][1][0]]
    d = {}
    d["d"] = d
    out.append(repr(d))
    a = [[0] * 2] * 2
    a[0][0] = 1
    out.append(a)
    q = [1, 2, 3]
    q.extend(v for v in iter(q.pop, 1)) if False else q.extend(map(q.pop, [0]))
    out.append(q)
    t = [x] * 2
    t[0] += 1
    out.append(t[0] is t[1])
    b = [x, x.clone()]
    out += [b.index(x) if b[0] is x else None, [v is x for v in b], b.count]
    return t[1], out[:-1]


# ---------------------------------------------------------------- numbers, strings


@program
def int_float_semantics(x):
    out = [
        7 // -2,
        -7 % 3,
        7 % -3,
        -7 // 2.0,
        7.5 % -2,
        divmod(-7, 2),
        divmod(7, -2.5),
        -(2**2),
        2**-2,
        (-8) ** (1 / 3) != 2,
        0**0,
        0.0**0,
        round(2.5),
        round(3.5),
        round(-0.5),
        round(1234, -2),
        round(2.675, 2),
        round(15, -1),
        round(25, -1),
        int(-3.9),
        int("-0b11", 0),
        int(" 1_000 "),
        int("z", 36),
        float(" -inf "),
        float("1e5"),
        1e16 + 1 == 1e16,
        0.1 + 0.2,
        -0.0 == 0.0,
        str(-0.0),
        math.copysign(1, -0.0),
        True + True,
        True / 2,
        ~True if False else -2,
        5 & -2,
        -5 >> 1,
        -1 >> 100,
        1 << 65,
        3 ^ -1,
        (5).bit_length(),
        (-1).bit_count(),
        (255).to_bytes(2, "big"),
        int.from_bytes(b"\xff", "big", signed=True),
        (0.5).as_integer_ratio(),
        (3.0).is_integer(),
        (10.5).hex(),
        float.fromhex("0x1p-2"),
        hash(1.0) == hash(1),
        hash(-1),
        pow(3, -1, 7),
        pow(2, 10, 1000),
        1 == 1.0 + 0j,
        complex("1+2j"),
        (1 + 2j) * 1j,
        abs(3 + 4j),
        10**20 // 3,
        int(1e20),
        2**53 + 1.0,
        2**53 + 1 == float(2**53),
        math.inf - math.inf != 0,
        max(float("nan"), 1) != 1,
        min(1, float("nan")),
        math.fsum([0.1] * 10),
        sum([0.1] * 3),
        1 if 0.0 else 2,
        isinstance(True, int),
        type(True & 1).__name__,
        type(True & False).__name__,
        int(True),
        True is (1 == 1),
        (3).real,
        bool("False"),
        1_0.0_1,
        math.gcd(-4, 6),
        math.isqrt(17),
        (7).__floordiv__(2.0) is NotImplemented,
        (2).__pow__(-1),
        (1.5).__round__(),
        math.trunc(-1.5),
        math.floor(-1.5),
    ]
    for f in (
        lambda: 1 % 0,
        lambda: 1.0 // 0,
        lambda: 0.0**-1,
        lambda: pow(2, -1, 4),
        lambda: pow(2, 3, 0),
        lambda: round(float("nan")),
        lambda: int("1__0"),
        lambda: int("１２"),
        lambda: 1j < 2j,
        lambda: 1j // 1,
        lambda: int(1j),
        lambda: float(10**400),
        lambda: 10**400 / 1.0,
        lambda: 10**400 / 10**399,
        lambda: math.sqrt(-1),
        lambda: math.log(0),
        lambda: math.exp(1000),
        lambda: (-1) ** 0.5,
        lambda: (256).to_bytes(1, "big"),
        lambda: int("9", 8),
        lambda: math.factorial(-1),
        lambda: 2**1.0e3 * 2e307,
        lambda: round(1.5, 1.5),
        lambda: (5).__lt__("a"),
        lambda: int(),
        lambda: int("5", base=37),
        lambda: int(5, 10),
        lambda: float(),
        lambda: bool([0]),
        lambda: float.fromhex("q"),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    return x * (7 // -2) + -7 % 3, [repr(o) for o in out]


@program(graphs=0, breaks=True)
def str_bytes_semantics(x):
    out = [
        "a,b,,".split(","),
        " a  b ".split(),
        "".split(),
        "".split(","),
        "a b c".split(None, 1),
        "a-b-c".rsplit("-", 1),
        "abc".partition("z"),
        "abc".rpartition("z"),
        "\n".splitlines(),
        "a\r\nb\x0bc\x85d".splitlines(True),
        "x".join("ab"),
        "aaa".replace("a", "b", 2),
        "abc".replace("", "-"),
        "".replace("", "x"),
        "abc".find(""),
        "abc".find("", 9),
        "".find(""),
        "aaa".count("aa"),
        "abc".count(""),
        "abc".center(6, "*"),
        "ab".zfill(4),
        "-5".zfill(4),
        "ß".upper(),
        "İ".lower() == "i̇",
        "ǆ".title(),
        "they're".title(),
        "aB".swapcase(),
        "²".isdigit(),
        "²".isdecimal(),
        "½".isnumeric(),
        "".isalpha(),
        "".isascii(),
        "a b".isidentifier(),
        "class".isidentifier(),
        "abc".startswith(("x", "a")),
        "abc".startswith("", 4),
        "abc".endswith("c", -1),
        "xxaxx".strip("x"),
        "abcba".lstrip("ab"),
        "test".removeprefix("te"),
        "a\tb".expandtabs(4),
        "abc".translate({97: None, 98: "ZZ", 99: 100}),
        str.maketrans("ab", "xy", "z"),
        "%s %r %5.1f %-4d| %+d %x %o %e %c %%" % ("s", "r", 3.14159, 5, 3, 255, 8, 12345.678, 65),
        "%(a)s" % {"a": 1, "b": 2},
        "%s" % ((1, 2),),
        "%.2s" % "abc",
        "%*d" % (5, 3),
        "%#x" % 255,
        "abcdef",
        "a" < "B",
        "é".encode(),
        b"\xff".decode("latin1"),
        b"\xff".decode("utf8", "replace"),
        b"a" + bytearray(b"b"),
        type(bytearray(b"a") + b"b").__name__,
        b"abc".hex("-"),
        bytes.fromhex("61 62"),
        bytes(3),
        bytes([1, 2]),
        list(b"ab"),
        b"%d" % 5,
        b"a" in b"cab",
        97 in b"a",
        repr("it's"),
        repr("\"'\n\x00é\U0001f600"),
        ascii("é"),
        "\N{BULLET}",
        "a" * -1,
        "abc"[-1:],
        str(b"a"),
        str(b"a", "ascii"),
        b"a,b".split(b","),
        "ab".encode("utf-16-le"),
        "a".__mul__(2),
        "abc".__contains__("b"),
        "abc".casefold(),
        ord("\ud800"),
        "xyz" in "xyz",
        bytes(b"q").__class__.__name__,
        "a\0b".__len__(),
        memoryview(b"abc")[1:].tobytes(),
    ]
    for f in (
        lambda: "a" in 5,
        lambda: 5 in "a",
        lambda: "a" + b"b",
        lambda: "é".encode("ascii"),
        lambda: b"\xff".decode(),
        lambda: "%d" % "x",
        lambda: "%s %s" % 1,
        lambda: "%s" % (1, 2),
        lambda: "abc".split(""),
        lambda: "".join(["a", 1]),
        lambda: "a".startswith(["a"]),
        lambda: b"a".join(["a"]),
        lambda: "a" * 1.0,
        lambda: "%z" % 1,
        lambda: "%(a)s" % 1,
        lambda: "a".center(5, "ab"),
        lambda: bytes("a"),
        lambda: bytes.fromhex("zz"),
        lambda: 300 in b"a",
        lambda: str.maketrans("ab", "a"),
        lambda: "\ud800".encode(),
        lambda: "abc".rindex("z"),
        lambda: str(b"a", "nope"),
        lambda: "a" - "b",
        lambda: "%c" % 1114112,
        lambda: "%c" % "ab",
        lambda: "a".zfill("b"),
        lambda: "a".split(1),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    return x + len("ß".upper()), [repr(o) for o in out]


@program(graphs=5, breaks=True)
def format_and_fstrings(x):
    log = []

    class F:
        def __format__(s, spec):
            log.append(spec)
            return f"<{spec}>"

        def __repr__(s):
            return "R"

        def __str__(s):
            return "S"

    class N:
        def __format__(s, spec):
            return 5

    class Rep:
        def __repr__(s):
            return 5

    class Sub(str):
        def __format__(s, k):
            return "subformat"

        def __str__(s):
            return "substr"

    f = F()
    w, v = 8, 3.14159
    out = [
        f"{f}{f!r}{f!s:>3}{f:a{w}b}{f!a}",
        f"{v:{w}.{2}f}|{v!r:^10}|{w=}|{w = !r:>4}|{v=:.1f}",
        f"{{}}{w}}}",
        f"{'ab':*^5}",
        f"{1_000_000:,}{1e6:_}{-5:05d}{5:+}{5: }{255:#x}{255:#010b}{0.5:%}{1e10:g}{12345.6:.3g}{True:d}{True}{65:c}",
        f"{None}",
        f"{'x':<3}|{'x':>3}|{5:<3}|{[1]!s:6}|",
        f"{w!r:{'>'}{w}}",
        f"{(lambda q: q * 2)(3)}",
        f"{'nested ' + f'{w}'}",
        f"{x.shape}{x.ndim:03d}",
        f"{Sub('q')}",
        f"{Sub('q')!s}",
        "%s" % Sub("q"),
        str(Sub("q")),
        "".join([Sub("q")]),
        "{0}{1}{0}".format(1, 2),
        "{a.real}{b[0]}{c[k]}".format(a=1, b=[2], c={"k": 3}),
        "{:{}}".format("a", 3),
        "{!r:>5}".format("a"),
        "{0[-1]}".format({"-1": 4}),
        format(3, ""),
        format(1.0, ""),
        format(10**20, "e"),
        format(float("nan"), "5"),
        format(-0.0, "z.1f"),
        format(3 + 4j, ".1f"),
        format("s", "s"),
        format(1.5, "n"),
        f"{0.1 + 0.2:.17g} {1e100} {1e-5} {123456789012345678.0} {1e16} {0.0001} {5e-324}",
    ]
    for g in (
        lambda: f"{N()}",
        lambda: f"{Rep()!r}",
        lambda: f"{[1]:5}",
        lambda: f"{None:3}",
        lambda: f"{3:s}",
        lambda: f"{'a':d}",
        lambda: f"{3:.2d}",
        lambda: f"{3.0:d}",
        lambda: "{}{0}".format(1),
        lambda: "{".format(),
        lambda: "{a}".format(),
        lambda: "{0.zz}".format(1),
        lambda: f"{3:{'q'}}",
        lambda: format(3, 4),
        lambda: "{!z}".format(1),
        lambda: f"{'a':=5}",
        lambda: f"{3:,_}",
        lambda: f"{'é':,}",
        lambda: "{:{}}".format(1),
        lambda: f"{1:c}{-1:c}",
        lambda: f"{x[0].tolist():>4}",
        lambda: "}".format(),
        lambda: "{a[}".format(a=1),
    ):
        try:
            out.append(g())
        except Exception as e:
            out.append(text(e))
    return x * w, out, log, string.Template("$a ${b} $$").safe_substitute(a=1), f"{x[0, 0].item():.3f}"


# ---------------------------------------------------------------- functools, itertools, operator


@program(breaks=True)
def partial_semantics(x):
    log = []

    def f(*a, **k):
        return a, sorted(k.items())

    p = functools.partial(f, 1, k=2)
    q = functools.partial(p, 3, k=4, z=5)
    out = [p(2), q(), q(9, z=0), q.func is f, q.args, q.keywords, p.keywords["k"]]
    p.keywords["k"] = 99
    out.append(p())
    p.attr = 1
    out.append((p.__dict__, hasattr(p, "__name__")))

    class A:
        m = functools.partial(f, "m")
        pm = functools.partialmethod(f, "pm", z=1)

        @functools.partialmethod
        def bad(s):
            return 1

        sm = functools.partialmethod(staticmethod(lambda *a: len(a)), 1)

        def __call__(s, k=x):
            return k + 1

    a = A()
    out += [a.m(2), len(a.pm(2)[0]), a.pm(2)[0][1:], a.pm(2)[1], a.sm(2), A.pm(5)[0]]
    for g in (
        lambda: functools.partial(),
        lambda: functools.partial(3),
        lambda: functools.partial(len)(),
        lambda: functools.partial(f, **{"a b": 1})(),
        lambda: setattr(p, "func", 1),
        lambda: functools.partial(int, base=2)("101"),
        lambda: functools.partial(int, base=2)(3),
    ):
        try:
            out.append(g())
        except Exception as e:
            out.append(text(e))

    class P(functools.partial):
        def __call__(s, *a, **k):
            log.append((len(a), sorted(k)))
            return super().__call__(*a, **k)

    t = P(torch.add, x)
    c = copy.copy(t)
    out += [type(c).__name__, c.func is torch.add, functools.partial(max, 3)(1, key=lambda v: -v)]
    return t(x), P(t, alpha=2)(x), functools.partial(A(), k=x)(), out, log


@program(breaks=True)
def lru_cache_semantics(x):
    calls = []

    @functools.lru_cache(maxsize=2)
    def f(a, b=1):
        calls.append((a, b))
        return a * 10

    f(1)
    f(1.0)
    f(True)
    f(a=1)
    f(1, 1)
    f(1, b=1)
    f(1)
    out = [list(calls), tuple(f.cache_info()), f.cache_parameters()]
    f.cache_clear()
    out.append(tuple(f.cache_info()))
    f.__wrapped__(5)
    out.append(calls[-1])
    out.append(f.__name__)
    for bad in (lambda: f([]), lambda: f({}), lambda: functools.lru_cache("a"), lambda: f()):
        try:
            out.append(bad())
        except TypeError as e:
            out.append(text(e))

    @functools.lru_cache(typed=True)
    def g(a):
        calls.append(a)
        return a

    out.append([g(1), g(1.0), g(True), tuple(g.cache_info())])

    @functools.cache
    def fails(n):
        calls.append(n)
        raise KeyError(n)

    for _ in range(2):
        try:
            fails(7)
        except KeyError:
            pass
    out.append(tuple(fails.cache_info()))

    @functools.cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    class A:
        @functools.lru_cache(None)
        def m(s, k):
            calls.append("m")
            return x * k

    a = A()
    r = a.m(2)
    out.append((a.m(2) is r, A().m(2) is r, A.m.cache_info().hits))
    return r, fib(20), tuple(fib.cache_info()), out, calls


@program(graphs=3, breaks=True)
def singledispatch_rules(x):
    @functools.singledispatch
    def f(v, *a):
        return "base"

    @f.register
    def _(v: int):
        return "int"

    @f.register(list)
    @f.register(tuple)
    def seq(v):
        return "seq " + str(len(v))

    @f.register(collections.abc.Mapping)
    def _(v):
        return "mapping"

    @f.register
    def _(v: torch.Tensor, k=1):
        return v + k

    f.register(type(None), lambda v: "none")
    f.register(collections.abc.Sized, lambda v: "sized")

    class B(bool if False else int):
        pass

    out = [
        f(True),
        f(B(3)),
        f([1]),
        f((1, 2)),
        f({}),
        f(collections.ChainMap()),
        f(None),
        f("s"),
        f(1.5),
        f.dispatch(bool) is f.registry[int],
        f({1}),
        seq([1]),
        sorted(k.__name__ for k in f.registry),
    ]
    for bad in (lambda: f(), lambda: f.register(3), lambda: f.register(lambda v: 1), lambda: f(v=3)):
        try:
            out.append(bad())
        except TypeError as e:
            out.append(re.sub("<.*>", "<>", text(e)))

    class P(abc.ABC):
        pass

    class Q(abc.ABC):
        pass

    f.register(P, lambda v: "P")
    f.register(Q, lambda v: "Q")

    class R:
        pass

    P.register(R)
    out.append(f(R()))
    Q.register(R)
    try:
        out.append(f(R()))
    except RuntimeError as e:
        out.append(str(e)[:20])

    class M:
        @functools.singledispatchmethod
        def g(s, v):
            return "m base"

        @g.register
        def _(s, v: int):
            return x * v

        @g.register(str)
        @classmethod
        def _(cls, v):
            return cls.__name__

    return f(x), f(x, 5), M().g(3), M().g("s"), M().g(2.0), out


@program(graphs=3, breaks=True)
def cached_property_and_total_ordering(x):
    log = []

    class A:
        def __init__(s, v):
            s.v = v

        @functools.cached_property
        def c(s):
            log.append("computed")
            return s.v * 2

    a = A(x)
    r = a.c
    log.append((a.c is r, "c" in vars(a), type(A.c).__name__))
    a.c = 5
    log.append(a.c)
    del a.c
    log.append(a.c is r)

    class S:
        __slots__ = ()

        @functools.cached_property
        def c(s):
            return 1

    try:
        S().c
    except TypeError as e:
        log.append(text(e))
    try:

        class D:
            q = functools.cached_property(lambda s: 1)
            w = q
    except Exception as e:
        log.append(type(e).__name__)
    cp = functools.cached_property(lambda s: 1)
    A.late = cp
    try:
        a.late
    except TypeError as e:
        log.append(text(e))

    @functools.total_ordering
    class T:
        def __init__(s, n):
            s.n = n

        def __lt__(s, o):
            log.append("lt")
            return s.n < o.n if isinstance(o, T) else NotImplemented

        def __eq__(s, o):
            log.append("eq")
            return isinstance(o, T) and s.n == o.n

    log.append([T(1) <= T(1), T(2) > T(1), T(1) >= T(2), T.__ge__.__name__, T.__hash__])
    try:
        T(1) >= 3
    except TypeError as e:
        log.append(text(e))
    try:
        functools.total_ordering(type("N", (), {}))
    except ValueError as e:
        log.append(text(e))
    return r, log


@program(graphs=3, breaks=True)
def wraps_and_decorator_stack(x):
    log = []

    def deco(n):
        log.append(("make", n))

        def d(f):
            log.append(("apply", n))

            @functools.wraps(f)
            def w(*a, **k):
                log.append(("call", n))
                return f(*a, **k) + n

            w.count = getattr(f, "count", 0) + 1
            return w

        return d

    @deco(1)
    @(lambda f: deco(2)(f))
    @deco(3)
    def g(t, *, k: int = 2):
        "doc"
        return t * k

    out = [
        g.__name__,
        g.__doc__,
        g.count,
        g.__wrapped__.__wrapped__.count,
        str(inspect.signature(g)),
        g.__qualname__,
        g.__annotations__,
        inspect.unwrap(g).__kwdefaults__,
    ]

    class C:
        def __init__(s, f):
            s.f = f
            functools.update_wrapper(s, f)

        def __get__(s, o, t):
            return types.MethodType(s, o)

        def __call__(s, o, *a):
            return s.f(o, *a)

    class K:
        @C
        def m(s, t):
            "mdoc"
            return t - 1

        @staticmethod
        @deco(7)
        def st(t):
            return t

        @classmethod
        @functools.lru_cache
        def cl(cls):
            return cls.__name__

    out += [K.__dict__["m"].__doc__, K.cl(), K.__dict__["st"].__wrapped__.__name__, K.st.__name__]

    @list
    @iter
    class L(metaclass=type("IM", (type,), {"__iter__": lambda c: iter([c.__name__])})):
        pass

    functools.update_wrapper(3 and (p := functools.partial(len)), len)
    out += [L, p.__name__]
    return g(x, k=3), K().m(x), K.st(x), out, log


@program
def reduce_and_accumulate(x):
    log = []
    R = functools.reduce

    def add(a, b):
        log.append(1)
        return a + b

    out = [
        R(add, [5]),
        R(add, [], 7),
        R(lambda a, b: (a, b), "abc"),
        R(operator.or_, [{1: 2}, {3: 4}]),
        R(add, [[1], [2]], []),
    ]
    for f in (
        lambda: R(add, []),
        lambda: R(add, 5),
        lambda: R(add, [1, "a"]),
        lambda: R(None, [1]),
        lambda: R(None, [1, 2]),
    ):
        try:
            out.append(f())
        except TypeError as e:
            out.append(text(e))
    A = itertools.accumulate
    out += [
        list(A([1, 2, 3])),
        list(A([1, 2, 3], initial=10)),
        list(A([], initial=None)),
        list(A([3, 1, 4], max)),
        list(A("abc", lambda a, b: b + a)),
        sum([[1], [2]], []),
        sum([1, 2], start=0.5),
        sum(map(len, ["a", "bb"])),
        math.prod([2, 3], start=4),
        sum([True, True]),
        sum((i for i in range(3)), 10),
    ]
    for f in (
        lambda: sum(["a", "b"], ""),
        lambda: sum([[1]]),
        lambda: sum([b"a"], b""),
        lambda: sum(1),
        lambda: sum({1: 2}, ""),
    ):
        try:
            out.append(f())
        except TypeError as e:
            out.append(text(e))
    return (
        R(torch.add, x),
        R(torch.matmul, [x, x.T, x]),
        sum(x),
        sum([x, x], start=x),
        list(A(x, torch.maximum))[-1],
        out,
        len(log),
    )


@program(breaks=True)
def itertools_corners(x):
    I = itertools
    it = iter(range(10))
    out = [
        list(I.islice(it, 3)),
        next(it),
        list(I.islice(it, 1, None, 2)),
        list(I.islice("abc", None)),
        list(I.takewhile(lambda v: v < 2, t := iter([1, 5, 1]))),
        list(t),
        list(I.dropwhile(str.isalpha, "ab1c")),
    ]
    a, b = I.tee(s := iter("abc"))
    out += [next(a), next(a), list(b), list(a), list(s)]
    g = I.groupby([1, 1, 2, 2, 1])
    k1, g1 = next(g)
    k2, g2 = next(g)
    out += [
        k1,
        list(g1),
        k2,
        list(g2),
        [(k, len(list(v))) for k, v in I.groupby("aAb", str.lower)],
        [list(v) for _, v in list(I.groupby("aab"))],
    ]
    c = I.chain("ab", [1], iter(()))
    out += [
        list(c),
        list(I.chain.from_iterable(["ab", "c"])),
        list(I.zip_longest("ab", "c", fillvalue="-")),
        list(I.product("ab", repeat=2))[-1],
        list(I.product()),
        list(I.product([1], [])),
        list(I.permutations("abc", 2))[:3],
        list(I.permutations("a", 2)),
        list(I.combinations([3, 3, 1], 2)),
        list(I.combinations_with_replacement("ab", 2)),
        list(I.compress("abcd", [1, 0, True])),
        list(I.starmap(pow, [(2, 3), (3, 2)])),
        list(I.filterfalse(None, [0, 1, ""])),
        list(I.pairwise("abc")),
        list(I.repeat("x", 2)),
        list(I.repeat("x", -1)),
        next(I.cycle([])) if False else 0,
        [v for v, _ in zip(I.cycle("ab"), range(5))],
        list(I.islice(I.count(1.5, -0.5), 3)),
        list(zip(I.count(), "ab")),
        repr(I.count(3)),
        repr(I.repeat(1, 2)),
        operator.length_hint(I.repeat(1, 4)),
    ]
    for f in (
        lambda: I.islice([1], -1),
        lambda: I.islice([1], 0, 5, 0),
        lambda: I.product(1),
        lambda: I.permutations("a", -1),
        lambda: list(I.starmap(pow, [1])),
        lambda: next(I.chain()),
        lambda: I.tee([], -1),
        lambda: I.count("a"),
        lambda: I.repeat(),
        lambda: list(I.chain([1], 2)),
        lambda: next(I.cycle([])),
        lambda: I.zip_longest("a", fill=1),
        lambda: list(I.groupby([1], 3)),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    log = []
    src = (log.append(v) or v for v in range(5))
    p, q = I.tee(src)
    next(p)
    next(p)
    next(q)
    out.append(list(log))
    z = I.chain((log.append("lazy") or 1 for _ in "a"))
    out.append(list(log))
    next(z)
    return torch.stack([u + v for u, v in I.pairwise(x)]), torch.stack(list(I.islice(x, 1, None))), out, log


@program
def operator_module_forms(x):
    O = operator
    log = []

    class A:
        b = type("B", (), {"c": 5, "m": lambda s, *a, **k: (a, k)})()

    a = A()
    out = [
        O.attrgetter("b.c")(a),
        O.attrgetter("b.c", "b")(a)[0],
        O.itemgetter(1)("abc"),
        O.itemgetter(0, -1)([1, 2, 3]),
        O.itemgetter(slice(1))("abc"),
        O.methodcaller("m", 1, k=2)(a.b),
        O.methodcaller("upper")("a"),
        O.not_([]),
        O.truth("a"),
        O.is_(None, None),
        O.contains([1], 1),
        O.indexOf([1, 2], 2),
        O.countOf([1, 1.0, True], 1),
        O.concat([1], [2]),
        O.index(True),
        O.length_hint(3, 4),
        O.length_hint(iter([1, 2])),
        O.iadd([1], (2,)),
        O.floordiv(-7, 2),
        O.inv(5),
        O.call(max, 1, 2),
        O.xor(True, False),
        O.matmul.__name__,
    ]
    for f in (
        lambda: O.attrgetter("b.zz")(a),
        lambda: O.attrgetter(3),
        lambda: O.itemgetter(),
        lambda: O.itemgetter(5)([1]),
        lambda: O.methodcaller("zz")(a),
        lambda: O.methodcaller(),
        lambda: O.index(1.0),
        lambda: O.concat(1, 2),
        lambda: O.add(1, "a"),
        lambda: O.indexOf([], 1),
        lambda: O.lt(1, "a"),
        lambda: O.contains(1, 1),
        lambda: O.length_hint(type("H", (), {"__length_hint__": lambda s: -1})()),
        lambda: O.length_hint(type("H", (), {"__length_hint__": lambda s: NotImplemented})(), 8),
        lambda: O.truediv(1, 0),
        lambda: O.neg("a"),
        lambda: O.itemgetter("k")({"k": 1}),
        lambda: O.pos(True),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    t = x.clone()
    r = O.iadd(t, 1)
    u = O.attrgetter("T.shape")(x)
    return (
        O.methodcaller("sum", dim=0, keepdim=True)(x),
        r is t,
        t,
        O.itemgetter(0)(x),
        O.itemgetter((0, slice(None, 2)))(x),
        tuple(u),
        O.matmul(x, x.T),
        out,
    )


# ---------------------------------------------------------------- dataclasses, enum, typing, abc


@program(graphs=0, breaks=True)
def dataclass_features(x):
    log = []
    DC = dataclasses

    @DC.dataclass(order=True)
    class P:
        a: int
        b: list = DC.field(default_factory=list, compare=False)
        c: DC.InitVar[int] = 3
        d: typing.ClassVar[int] = 7
        e: int = DC.field(init=False, repr=False)
        f: str = DC.field(default="f", kw_only=True)

        def __post_init__(s, c):
            log.append(("post", c))
            s.e = s.a + c

    @DC.dataclass(frozen=True, slots=True)
    class F:
        t: object
        n: int = 0

    @DC.dataclass
    class Q(P):
        g: int = 1
        a: int = 9

    p = P(1)
    q = P(1, [2], 4, f="z")
    out = [
        repr(p),
        p == q,
        p < q,
        p.b is P(1).b,
        p.e,
        q.e,
        P.d,
        P.__match_args__,
        P.__hash__,
        repr(Q()),
        [f.name for f in DC.fields(Q)],
        DC.asdict(p),
        DC.astuple(q),
        DC.is_dataclass(P),
        hasattr(P, "b"),
        P.c,
    ]
    f = F(x, 2)
    for g in (
        lambda: setattr(f, "n", 3),
        lambda: setattr(f, "zz", 3),
        lambda: P(),
        lambda: P(1, 2, 3, 4),
        lambda: DC.replace(p, a=5).a,
        lambda: DC.replace(p, a=5, c=1).e,
        lambda: DC.replace(p, e=1),
        lambda: hash(p),
        lambda: DC.dataclass(type("B", (), {"__annotations__": {"l": list}, "l": []})),
        lambda: p < 3,
        lambda: p == Q(1),
        lambda: DC.dataclass(type("O", (), {"__annotations__": {"a": int, "b": int}, "a": 1})),
        lambda: f.__dict__,
        lambda: DC.fields(3),
        lambda: DC.make_dataclass("MD", ["u", ("v", int, 5)])(1),
        lambda: hash(F(1, 2)) == hash((1, 2)),
        lambda: DC.dataclass(frozen=True)(type("G", (P,), {})),
    ):
        try:
            r = g()
            out.append(r if isinstance(r, (int, bool)) else repr(r))
        except Exception as e:
            out.append(text(e))
    return DC.replace(f, t=f.t + 1).t, f.t is x, out, log


@program(graphs=0, breaks=True)
def enum_features(x):
    E = enum

    class C(E.Enum):
        R = 1
        G = 2
        ALIAS = 1
        _ignore_ = ["tmp"]
        tmp = 5

        def scale(s):
            return s.value * 10

        @classmethod
        def _missing_(c, v):
            return c.G if v == "g" else None

        @property
        def low(s):
            return s.name.lower()

    class F(E.Flag):
        A = E.auto()
        B = E.auto()
        AB = A | B

    class I(E.IntEnum):
        ONE = 1
        TWO = 2

    class S(str, E.Enum):
        X = "x"
        Y = "y"

    class V(E.Enum):
        P = (1, 2)
        Q = (3, 4)

        def __init__(s, a, b):
            s.total = a + b

    class Auto(E.Enum):
        def _generate_next_value_(name, start, count, last):
            return name + str(count)

        U = E.auto()
        W = E.auto()

    out = [
        C.R is C.ALIAS,
        C.ALIAS.name,
        C(1) is C.R,
        C("g").name,
        C["G"].value,
        list(C) == [C.R, C.G],
        len(C),
        list(C.__members__),
        repr(C.R),
        str(C.R),
        C.R == 1,
        C.G.scale(),
        C.R.low,
        (F.A | F.B) is F.AB,
        F.AB & ~F.A,
        F.A in F.AB,
        bool(F(0)),
        repr(F(3)),
        I.TWO + 1,
        type(I.ONE + I.TWO).__name__,
        I.ONE < I.TWO,
        max(I).name,
        S.X == "x",
        S("y").name,
        S.X.upper(),
        V.P.total,
        V((3, 4)).name,
        Auto.W.value,
        isinstance(C.R, C),
        {C.R: 1}[C.ALIAS],
        [1, 2, 3][I.ONE],
        f"{I.ONE!r}",
        C.R in C,
        hasattr(C, "tmp"),
        E.Enum("D", "a b").b.value,
        sorted(I, reverse=True)[0].name,
        int(I.TWO),
        C.R.name.__class__.__name__,
    ]
    for f in (
        lambda: C(9),
        lambda: C["zz"],
        lambda: setattr(C, "R", 5),
        lambda: type("K", (C,), {}) and 0,
        lambda: C.R < C.G,
        lambda: C.zz,
        lambda: delattr(C, "R"),
        lambda: setattr(C.R, "value", 3),
        lambda: F.A | 1,
        lambda: C.R(),
        lambda: F("q"),
        lambda: C(),
        lambda: C.R.G if False else 0,
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(type(e).__name__ if isinstance(e, TypeError) else text(e))
    return x * C.G.value, x[I.ONE], x + I.TWO, x.sum(dim=I.ONE), [repr(o) for o in out]


@program(graphs=0, breaks=True)
def abc_and_protocols(x):
    out = []

    class B(abc.ABC):
        @abc.abstractmethod
        def f(s):
            return "base f"

        @property
        @abc.abstractmethod
        def p(s): ...
        @classmethod
        def __subclasshook__(cls, c):
            return True if hasattr(c, "magic") else NotImplemented

    class C(B):
        def f(s):
            return super().f() + "!"

        p = x * 2

    class D:
        magic = 1

    class V:
        pass

    B.register(V)

    @typing.runtime_checkable
    class Pr(typing.Protocol):
        def go(self): ...

    class NP(typing.Protocol):
        def go(self): ...

    class G:
        go = None

    class H:
        go = 5

    out += [
        C().f(),
        isinstance(D(), B),
        issubclass(V, B),
        isinstance(3, B),
        sorted(B.__abstractmethods__),
        isinstance(G(), Pr),
        isinstance(H(), Pr),
        isinstance(3, Pr),
        V in B._abc_registry if hasattr(B, "_abc_registry") else 0,
    ]
    for f in (
        lambda: B(),
        lambda: isinstance(H(), NP),
        lambda: Pr(),
        lambda: isinstance(1, typing.List[int]),
        lambda: issubclass(3, B),
        lambda: isinstance(1, list[int]),
        lambda: isinstance(1, (str, (bytes, int))),
        lambda: isinstance(1, (str, 5, int)),
        lambda: isinstance("a", (str, 5)),
        lambda: issubclass(bool, int | None),
        lambda: isinstance([], collections.abc.MutableSequence),
        lambda: isinstance(range(3), collections.abc.Sequence),
        lambda: isinstance({}.keys(), collections.abc.Set),
        lambda: isinstance((i for i in ()), collections.abc.Generator),
        lambda: isinstance(x, collections.abc.Iterable),
        lambda: isinstance(len, collections.abc.Callable),
        lambda: isinstance("", collections.abc.Iterator),
    ):
        try:
            out.append(f())
        except TypeError as e:
            out.append(text(e))

    class MS(collections.abc.MutableMapping):
        def __init__(s):
            s.d = {}

        def __getitem__(s, k):
            return s.d[k]

        def __setitem__(s, k, v):
            s.d[k] = v

        def __delitem__(s, k):
            del s.d[k]

        def __iter__(s):
            return iter(s.d)

        def __len__(s):
            return len(s.d)

    m = MS()
    m.update(a=1, b=x)
    m.setdefault("c", 3)
    out += [m.pop("a"), "b" in m, m.get("z"), list(m.keys()), m == {"q": 1}, m.popitem()[0], len(m), {**MS()}]
    return C().p, out


@program(graphs=4, breaks=True)
def namedtuple_and_typing(x):
    N = collections.namedtuple("N", "a b c", defaults=[3])
    out = []

    class T(typing.NamedTuple):
        t: object
        n: int = 2

        def twice(s):
            return s.t * s.n

    class Sub(N):
        __slots__ = ()

        def __new__(cls, a, b=0):
            return super().__new__(cls, a, b)

        def __eq__(s, o):
            return "sub eq"

    n = N(1, b=2)
    out += [
        n,
        n == (1, 2, 3),
        n._replace(a=9),
        n._asdict(),
        N._fields,
        N._field_defaults,
        N._make([1, 2, 3]),
        n[1:],
        n + (4,),
        repr(n),
        hash(n) == hash((1, 2, 3)),
        isinstance(n, tuple),
        Sub(1) == 3,
        Sub(1)[1],
        n < (1, 3),
        n.count(2),
        n.index(3),
        type(n._replace(a=1)).__name__,
        type(N.a).__name__,
        n.__getnewargs__(),
        N(*n) is n,
    ]
    a, *b = n
    out.append(b)
    for f in (
        lambda: N(1),
        lambda: setattr(n, "a", 1),
        lambda: setattr(n, "z", 1),
        lambda: n._replace(z=1),
        lambda: N._make([1]),
        lambda: collections.namedtuple("B", "a a"),
        lambda: collections.namedtuple("B", "class _x ok", rename=True)._fields,
        lambda: collections.namedtuple("B", "_x"),
        lambda: Sub(1, 2, 3),
        lambda: n.zz,
        lambda: T(),
        lambda: T.__annotations__["n"] is int,
        lambda: operator.setitem(n, 0, 1),
        lambda: typing.get_type_hints(T)["n"] is int,
        lambda: typing.cast(int, "a"),
        lambda: typing.NewType("U", int)(5),
        lambda: typing.Optional[int] == (int | None),
        lambda: typing.TypedDict("TD", {"a": int})(a="no"),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    t = T(x)
    q, w = t
    return (
        t.twice(),
        T(n=3, t=x).twice(),
        q is x,
        w,
        t._replace(n=5).twice(),
        torch.stack(N(x, x, x)),
        x.max(dim=1).indices,
        out,
    )


# ---------------------------------------------------------------- copy, weakref, types, inspect


@program(graphs=0, breaks=True)
def copy_protocols(x):
    log = []

    class A:
        def __init__(s):
            log.append("init")
            s.l = [1]
            s.me = s

    class C:
        def __copy__(s):
            return "copied"

        def __deepcopy__(s, memo):
            log.append(type(memo).__name__)
            return "deep"

    class R:
        def __init__(s, v):
            s.v = v

        def __reduce__(s):
            log.append("reduce")
            return (R, (s.v + 1,), {"extra": [1]})

    class St:
        def __getstate__(s):
            return {"k": 1}

        def __setstate__(s, st):
            log.append(st)
            s.q = st["k"] * 2

    class S:
        __slots__ = ("a", "b")

    class L(list):
        pass

    a = A()
    b = copy.copy(a)
    c = copy.deepcopy(a)
    out = [
        b.l is a.l,
        b.me is a,
        c.l is a.l,
        c.me is c,
        copy.copy(C()),
        copy.deepcopy([C()]),
        copy.copy(R(1)).v,
        copy.deepcopy(R(1)).extra,
        copy.copy(St()).q,
    ]
    s = S()
    s.a = [1]
    t = copy.copy(s)
    out += [t.a is s.a, hasattr(t, "b"), copy.deepcopy(s).a is s.a]
    l = L([[1]])
    l.attr = l
    m = copy.deepcopy(l)
    out += [type(m).__name__, m.attr is m, m[0] is l[0]]
    sh = [1]
    d = copy.deepcopy({"a": sh, "b": sh, "t": (sh, 1), "e": (1, 2)})
    out += [d["a"] is d["b"], d["t"][0] is d["a"]]
    tu = (1, "a")
    out += [
        copy.copy(tu) is tu,
        copy.deepcopy(tu) is tu,
        copy.deepcopy(len) is len,
        copy.deepcopy(A) is A,
        copy.copy(range(3)) == range(3),
    ]
    y = x.clone()
    ys = copy.deepcopy([y, y])
    ys[0].add_(1)
    out += [ys[0] is ys[1], copy.copy([y])[0] is y, copy.deepcopy((y,), {id(y): "memo"})[0]]
    for f in (
        lambda: copy.deepcopy(i for i in ()),
        lambda: copy.copy(C),
        lambda: copy.replace if False else 0,
        lambda: copy.deepcopy(types),
        lambda: copy.copy({}.keys()),
    ):
        try:
            r = f()
            out.append(type(r).__name__)
        except Exception as e:
            out.append(text(e))
    return y, ys[1], out, log


@program(graphs=0, breaks=True)
def weakref_lifetimes(x):
    log = []

    class A:
        def __init__(s, n):
            s.n = n

        def __eq__(s, o):
            return s.n == o.n

        def __hash__(s):
            return hash(s.n)

        def m(s):
            return s.n

        def __del__(s):
            log.append("del " + str(s.n))

    a = A(1)
    r = weakref.ref(a, lambda q: log.append(("cb", q is r)))
    out = [
        r() is a,
        weakref.ref(a) is weakref.ref(a),
        r is weakref.ref(a),
        weakref.getweakrefcount(a) >= 1,
        r == weakref.ref(A(1)),
    ]
    del a
    out.append(r())
    wv = weakref.WeakValueDictionary()
    b = A(2)
    wv["b"] = b
    out.append(len(wv))
    del b
    out += [len(wv), "b" in wv]
    wk = weakref.WeakKeyDictionary()
    c = A(3)
    wk[c] = x
    out.append(wk[A(3)] is x)
    del c
    out.append(len(wk))
    d = A(4)
    wm = weakref.WeakMethod(d.m)
    out += [wm()(), weakref.WeakMethod(d.m) == wm]
    del d
    out.append(wm())
    e = A(5)
    p = weakref.proxy(e)
    out += [p.n, p == A(5), type(p).__name__, isinstance(p, A)]
    del e
    for f in (
        lambda: p.n,
        lambda: weakref.ref(3),
        lambda: weakref.ref([]),
        lambda: weakref.proxy({1}) and 1,
        lambda: hash(r),
    ):
        try:
            out.append(f())
        except Exception as q:
            out.append(text(q))
    f = A(6)
    fin = weakref.finalize(f, log.append, "finalized")
    out.append(fin.alive)
    del f
    out += [fin.alive, fin()]
    ws = weakref.WeakSet([A(7)])
    out.append(len(ws))
    g = A(8)
    h = g
    del g
    out.append(h.n)
    h = None
    log.append("end")
    y = x + 1
    ry = weakref.ref(y)
    out.append(ry() is y)
    return y * 2, out, log


@program(breaks=True)
def types_and_inspect(x):
    def f(a, /, b: int, *c, d=2, **e) -> str:
        "doc"
        return a

    out = [
        str(inspect.signature(f)),
        inspect.getfullargspec(f).kwonlydefaults,
        [p.kind.name for p in inspect.signature(f).parameters.values()],
        inspect.signature(f).bind(1, 2, 3, d=4, z=5).arguments,
        inspect.getdoc(f),
        f.__code__.co_varnames,
        f.__code__.co_argcount,
        f.__code__.co_posonlyargcount,
        f.__code__.co_kwonlyargcount,
        inspect.isfunction(f),
        inspect.ismethod(f),
        inspect.isbuiltin(len),
        inspect.isgeneratorfunction(f),
        callable(f),
        inspect.isclass(type),
        f.__module__ == __name__,
    ]
    ns = types.SimpleNamespace(a=1, t=x)
    ns.b = [2]
    out += [
        types.SimpleNamespace(a=1) == types.SimpleNamespace(a=1),
        repr(types.SimpleNamespace(q=1, p="s")),
        sorted(vars(ns)),
        types.SimpleNamespace(**{"a b": 1}).__dict__,
    ]
    g = types.FunctionType(f.__code__, {}, "g", (9,))
    out += [g.__name__, g(5, d=1), g.__defaults__]
    g2 = types.FunctionType((lambda: y_glob * 2).__code__, {"y_glob": x})
    K = types.new_class("K", (dict,), {}, lambda ns: ns.update(z=3))
    out += [K(a=1), K.z, types.resolve_bases((int,)), K.__module__ == __name__]
    m = types.ModuleType("mod")
    m.v = 5
    exec("def q(): return v + 1", m.__dict__)
    out += [
        m.q(),
        m.__name__,
        type(types.CellType(3)).__name__,
        types.CellType(3).cell_contents,
        types.DynamicClassAttribute.__name__,
        type(types.coroutine(f)).__name__,
    ]
    for h in (
        lambda: inspect.signature(f).bind(1),
        lambda: inspect.signature(3),
        lambda: types.SimpleNamespace(1),
        lambda: ns.zz,
        lambda: types.FunctionType((lambda: x).__code__, {}),
        lambda: m.zz,
        lambda: inspect.signature(lambda a, b=1: 0).replace(parameters=[]).__str__(),
        lambda: types.new_class("K", (int, str)),
        lambda: inspect.getattr_static(ns, "a"),
        lambda: inspect.getattr_static(K, "nope"),
        lambda: f.nope,
        lambda: setattr(f, "__code__", 3),
        lambda: setattr(f, "__name__", 3),
        lambda: setattr(f, "__dict__", 3),
        lambda: delattr(f, "__code__"),
    ):
        try:
            out.append(h())
        except Exception as e:
            out.append(re.sub(r"<function.*?>|0x\w+", "<>", text(e)))

    def n():
        return inspect.currentframe().f_code.co_name, inspect.currentframe().f_back.f_code.co_name

    return ns.t + 1, g2(), out, n()


@program(graphs=6, breaks=True)
def code_swapping_on_functions(x):
    out = []

    def f(t):
        return t + 1

    def g(t):
        return t * 10

    a = f(x)
    f.__code__ = g.__code__
    b = f(x)
    out.append((f.__name__, f.__qualname__.split(".")[-1]))
    n = 3

    def closed():
        return n

    try:
        f.__code__ = closed.__code__
    except ValueError as e:
        out.append(text(e))
    f.__code__ = f.__code__.replace(co_consts=tuple(100 if c == 10 else c for c in f.__code__.co_consts))
    c = f(x)
    f.__dict__["attr"] = 1
    out.append(f.attr)
    f.__dict__ = {"other": 2}
    out.append(hasattr(f, "attr"))
    f.__name__ = "renamed"
    out.append(f.__name__)
    f.__doc__ = "d"
    f.__annotations__ = {"t": int}
    out.append((f.__doc__, f.__annotations__))
    del f.__annotations__
    out.append(f.__annotations__)

    class A:
        def m(s):
            return 4

    A.m.__code__ = (lambda s: 5).__code__
    out.append(A().m())
    k = lambda t, s=1: t * s
    k.__defaults__ = (4,)
    d = k(x)
    k.__kwdefaults__ = {"s": 2}
    out.append(k.__kwdefaults__)
    closed.__closure__[0].cell_contents = 8
    out.append(closed())
    out.append(n)
    return a, b, c, d, out


@program(graphs=0, breaks=True)
def globals_locals_eval_exec(x):
    out = []
    y = 5
    l = locals()
    out.append(sorted(l))
    l["injected"] = 1
    out.append("injected" in locals() or "injected" in l)
    out += [
        eval("y + 1"),
        eval("y", {"y": 7}),
        eval("z", {}, {"z": 8}),
        eval("[y for _ in range(2)]", {"y": 1}),
        eval("(lambda: len)()([1])"),
        eval(compile("y * 2", "<s>", "eval")),
        eval("x.shape[0]"),
    ]
    ns = {}
    exec("a = 1\ndef f(t):\n    return t + a\nclass K:\n    v = a\nfor i in range(3): pass", ns)
    out += [ns["a"], ns["K"].v, ns["i"], "__builtins__" in ns]
    t = ns["f"](x)
    ns["a"] = 10
    u = ns["f"](x)
    exec("y = 99")
    out.append(y)
    loc = {}
    exec("b = 2\nc = [b2 for b2 in range(b)]", {}, loc)
    out.append(loc)

    class Map(dict):
        def __missing__(s, k):
            if k == "magic":
                return 42
            raise KeyError(k)

    out.append(eval("magic", {}, Map()))
    for s in (
        "1 +",
        "undefined_q",
        "1/0",
        "x = 1",
        "y := 3",
        "(w := 3)",
        "__import__('math').pi > 3",
        "f'{y}'",
        "yield 1",
    ):
        try:
            out.append(eval(s))
        except Exception as e:
            out.append(type(e).__name__ if isinstance(e, SyntaxError) else text(e))
    try:
        exec("def g():\n    return y_local\ny_local = 1\ng()", {}, {})
    except NameError as e:
        out.append(text(e))
    globals()["dyn_lang"] = 3
    out.append(dyn_lang)
    del globals()["dyn_lang"]
    try:
        dyn_lang
    except NameError as e:
        out.append(text(e))

    def inner():
        return sorted(locals()), (lambda: sorted(locals()))(), [sorted(locals()) for q in "a"][0][-1:], y

    out.append(inner())
    out.append(sorted(vars())[:2])
    out.append(eval("x.sum() is not None", {"x": x}))
    return t, u, out


lang_counter = 0


@program
def global_statement_and_shadowing(x):
    global lang_counter
    lang_counter = 0
    out = []

    def bump():
        global lang_counter
        lang_counter += 1

        def inner():
            lang_counter = "local"
            return lang_counter

        return inner()

    out += [bump(), lang_counter]
    globals()["lang_counter"] += 5
    out.append(lang_counter)

    class A:
        lang_counter = lang_counter + 100

    out += [A.lang_counter, lang_counter]
    len_ = len
    try:
        globals()["len"] = lambda v: "shadowed"
        out.append(len([1]))
    finally:
        del globals()["len"]
    out.append(len([1]))
    for lang_counter in range(3):
        pass
    out.append(lang_counter)
    import math as lang_counter

    out.append(lang_counter.floor(2.5))

    def lang_counter(t):
        return t + 1

    r = lang_counter(x)
    del lang_counter
    out.append("lang_counter" in globals())
    try:
        lang_counter
    except NameError as e:
        out.append(text(e))
    lang_counter = 0

    def int(v):
        return "my int"

    out.append(int(3))
    del int
    try:
        int(3)
    except UnboundLocalError as e:
        out.append(type(e).__name__)
    return r, out


@program(graphs=3, breaks=True)
def recursion_and_mutual(x):
    out = []

    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    def deep(t, n):
        return t if n == 0 else deep(t + 1, n - 1) * 0.5

    def hanoi(n, a, b, c):
        if n:
            yield from hanoi(n - 1, a, c, b)
            yield a + c
            yield from hanoi(n - 1, b, a, c)

    Y = lambda f: (lambda g: g(g))(lambda g: f(lambda n: g(g)(n)))

    def flat(v):
        return [w for u in v for w in (flat(u) if isinstance(u, (list, tuple)) else [u])]

    out += [
        fact(20),
        even(30),
        list(hanoi(3, "a", "b", "c")),
        Y(lambda s: lambda n: 1 if n == 0 else n * s(n - 1))(6),
        flat([1, [2, (3, [4])], []]),
    ]

    def forever(n):
        return forever(n + 1) + 1

    try:
        forever(0)
    except RecursionError as e:
        out.append((type(e).__name__, isinstance(e, RuntimeError)))

    class R:
        def __repr__(s):
            return f"R({[s.n]!r})" if s.n else "end"

        def __init__(s, n):
            s.n = R(n - 1) if n else None

    out.append(repr(R(2)))
    fib = lambda n, a=0, b=1: a if n == 0 else fib(n - 1, b, a + b)
    out.append(fib(50))
    old = fact
    fact = lambda n: -1
    out.append(old(5))
    return deep(x, 8), out


# ---------------------------------------------------------------- more corners


@program
def evaluation_order(x):
    log = []

    def n(v, r=None):
        log.append(v)
        return v if r is None else r

    l = [0, 0, 0]
    n("a", l)[n(0)] = n("value")
    d = {n("k1"): n("v1"), n("k2"): n("v2")}
    (n("x", l))[n(1)], n("y", l)[n(2)] = n(5), n(6)
    log.append("|")
    n(1) + n(2) * n(3) ** n(1)
    n("a") if n(0) else n("b")
    n(0) and n(1) or n(2)
    n(1) < n(3) < n(2)
    log.append("|")
    n("f", max)(n(1), *n("star", [2]), **n("dstar", {"key": abs}))
    n("o", l)[n(0) : n(2) : n(1)]
    lambda q=n("default"): 0
    log.append("|")
    [n((i, j)) for i in n("outer", range(2)) for j in n("inner", range(2)) if n("cond")]
    n("t", l)[n(0)] += n(1) if isinstance(l[0], int) else "z"

    class O:
        def __getattr__(s, k):
            log.append("get " + k)
            return 1

        def __setattr__(s, k, v):
            log.append("set " + k)

    o = O()
    o.a += n(2)
    o.b = o.c = n(7)
    o.d, o.e = n(8), n(9)
    try:
        n(1) + n("s") + n(3)
    except TypeError:
        log.append("T")
    assert n(1), n("not evaluated")
    try:
        assert n(0), n("message")
    except AssertionError as e:
        log.append(text(e))

    class K(n("base", object), metaclass=n("meta", type)):
        n("body")

    @n("deco", lambda f: f)
    def f(a=n("dflt")) -> n("ret"):
        pass

    with n("cm", contextlib.nullcontext(x + 1)) as l[n(0)]:
        pass
    for l[n(1)] in n("it", [1, 2]):
        pass
    return l[0], d, l[1:], log


@program(graphs=0, breaks=True)
def boolean_short_circuit_values(x):
    log = []

    class B:
        def __init__(s, v):
            s.v = v

        def __bool__(s):
            log.append(s.v)
            return bool(s.v)

        def __repr__(s):
            return f"B{s.v}"

    a, b, c = B(0), B(1), B(2)
    out = [
        repr(a or b and c),
        repr(a and b or c),
        not a,
        repr(not b or a),
        repr(a or a),
        [] or 0 or None or "",
        0 and 1,
        "" or [],
        1 and 2 and 3,
        None or False,
        repr((a or b) and (a or c)),
        [v for v in (a, b, c) if v and not v],
        any([a, b, c]),
        all([b, a, c]),
        repr(b if a else c),
        bool(not a),
        a is not b,
        not a is b,
        repr(max(a, b, key=bool)),
        list(
            map(
                bool,
                [
                    [],
                    [0],
                    "",
                    " ",
                    0.0,
                    1e-300,
                    None,
                    (),
                    range(0),
                    {1: 2},
                    float("nan"),
                    0j,
                    b"",
                    Ellipsis,
                    NotImplemented is None,
                ],
            )
        ),
    ]
    while a or (b and log.count(1) < 12):
        log.append("loop")
    try:
        bool(x)
    except RuntimeError as e:
        out.append(text(e))
    try:
        x and 1
    except RuntimeError as e:
        out.append(text(e))
    t = x.sum() * 0
    y = t or x + 1
    z = (t == 0) and x * 2
    w = x[:0].numel() or x - 1
    return y, z, w, not t, out, log


@program(graphs=0, breaks=True)
def exception_attributes_of_c_errors(x):
    out = []

    class A:
        pass

    for f in (
        lambda: A().foo,
        lambda: A.foo,
        lambda: undefined_thing,
        lambda: {}["k"],
        lambda: b"\xff".decode(),
        lambda: open("/nonexistent/q"),
        lambda: next(g_stop()),
        lambda: sys.exit(3),
        lambda: int("x"),
        lambda: [].foo,
        lambda: __import__("no_such_mod_q"),
        lambda: "é".encode("ascii"),
        lambda: getattr(x, "no_such_attr"),
        lambda: setattr(3, "a", 1),
        lambda: eval("1 +"),
        lambda: {1: 2}[(1, x.shape[0])],
        lambda: getattr(A, "bar"),
    ):
        try:
            f()
        except BaseException as e:
            out.append(
                (
                    type(e).__name__,
                    {
                        k: getattr(e, k)
                        for k in (
                            "name",
                            "code",
                            "errno",
                            "filename",
                            "reason",
                            "start",
                            "end",
                            "value",
                            "lineno",
                            "msg",
                        )
                        if hasattr(e, k) and isinstance(getattr(e, k), (int, str, type(None)))
                    },
                    len(e.args),
                )
            )
            if isinstance(e, AttributeError):
                out.append(type(e.obj).__name__)
            x = x + 1
    o = OSError(2, "m", "file")
    out += [
        type(o).__name__,
        o.errno,
        str(o),
        repr(OSError(2)),
        type(OSError(13, "p")).__name__,
        repr(KeyError()),
        repr(
            ValueError(
                "a",
            )
        ),
        str(ValueError("a", 1)),
        str(KeyError("k")),
        str(KeyError()),
        repr(UnicodeDecodeError("utf8", b"a", 0, 1, "r")),
        StopIteration(1, 2).value,
        StopIteration().value,
        SystemExit().code,
        ImportError("a", name="n").name,
        BaseException(1) == BaseException(1),
        Exception.__mro__[1].__name__,
        str(Exception(Exception(1))),
        repr(Exception([1])),
    ]
    try:
        ImportError(a=1)
    except TypeError as e:
        out.append(text(e))
    try:
        ValueError(a=1)
    except TypeError as e:
        out.append(text(e))
    return x, out


def g_stop():
    return iter(())


@program(graphs=9, breaks=True)
def tensor_errors_are_caught(x):
    out = []

    def attempt(n, f):
        nonlocal x
        try:
            r = f()
        except IndexError as e:
            out.append((n, "index"))
            x = x + 1
        except (TypeError, ValueError) as e:
            out.append((n, type(e).__name__))
            x = x * 2
        except RuntimeError as e:
            out.append((n, "runtime", str(e).split("\n")[0][:60]))
            x = x - 3
        except AttributeError as e:
            out.append((n, text(e)))
        else:
            out.append((n, "fine", type(r).__name__))
        finally:
            out.append("f")

    attempt("idx", lambda: x[10])
    attempt("shape", lambda: x + torch.ones(5))
    attempt("mm", lambda: x @ x)
    attempt("view", lambda: x.view(5))
    attempt("attr", lambda: x.nope)
    attempt("type", lambda: torch.add(x, "a"))
    attempt("item", lambda: x.item())
    attempt("unpack", lambda: [a for a, b in x])
    attempt("bool", lambda: 1 if x else 2)
    attempt("in", lambda: 3.5 in x)
    attempt("len0", lambda: len(x.sum()))
    attempt("iter0", lambda: list(x.sum()))
    attempt("int", lambda: int(x))
    attempt("dim", lambda: x.sum(dim=7))
    attempt("cat", lambda: torch.cat([]))
    attempt("hash", lambda: {x: 1}[x])
    attempt("fmt", lambda: f"{x.sum():.0f}")
    attempt("stack", lambda: torch.stack([x, x[0]]))
    attempt("mul", lambda: "a" * x)
    attempt("list", lambda: [1, 2, 3][x.long()[0, 0] * 0])
    attempt("radd", lambda: [1] + x)
    attempt("lt", lambda: sorted([x, x]))
    attempt("cmp", lambda: x < "a")
    attempt("eq", lambda: x == "a")
    attempt("eqn", lambda: x == None)
    return x, out


@program(graphs=18, breaks=True)
def finally_and_inplace_effects(x):
    out = []

    def risky(t, k):
        t.add_(1)
        try:
            t.mul_(2)
            if k == 0:
                raise KeyError
            if k == 1:
                return "early"
            t[0, 0] = 100
        except KeyError:
            t.sub_(5)
            return "except"
        else:
            t.div_(2)
        finally:
            t.neg_()
        return "end"

    out += [risky(x, k) for k in range(3)]

    class Restore:
        def __init__(s, t):
            s.t = t

        def __enter__(s):
            s.saved = s.t.clone()
            return s

        def __exit__(s, *a):
            s.t.copy_(s.saved)
            s.kind = a[0] and a[0].__name__
            return a[0] is ZeroDivisionError

    r = Restore(x)
    with r:
        x.zero_()
        1 / 0
    out.append(r.kind)
    m = x.max()
    try:
        with r:
            x.fill_(7)
            raise LookupError("out")
    except LookupError as e:
        out.append((text(e), r.kind))

    def g():
        try:
            yield x.add_(1)
        finally:
            x.mul_(3)

    for t in g():
        break
    else:
        out.append("never")
    it = g()
    next(it)
    del it
    return m, x.sum(), out


@program(args=lambda i: [tensor(i), [tensor(i), 1, {"k": [2]}], {"a": tensor(i + 5), "n": i}])
def mutates_its_arguments(x, l, d):
    l.append(l[0] + 1)
    l[0] += 5
    l[2]["k"].extend(l[2]["k"])
    l[2]["self"] = l[2]["k"]
    d["b"] = d.pop("a") * 2
    d.setdefault("c", []).append(x)
    l[1:2] = [x, "two"]
    d["view"] = x[0]
    d["view"] *= 0
    x.t_() if False else x.add_(1)

    def f(p=l, **k):
        p.insert(0, len(p))
        k["new"] = 1
        return k

    r = f(**d)
    s = sorted(d)
    del d["n"]
    d |= {"z": r["n"]}
    try:
        l.extend(v for v in (1, 2, 1 / 0))
    except ZeroDivisionError:
        l.append("caught")
    try:
        l.extend((lambda v: 6 / v)(v) for v in (1, 2, 0))
    except ZeroDivisionError:
        l.append("caught2")
    try:
        d.update([("u", 1), ("v",)])
    except ValueError as e:
        d["err"] = str(e)
    return r["b"], s, len(l), d["view"]


@program(args=lambda i: [leaf(i), i], graphs=2)
def gradients_through_odd_paths(x, i):
    class V:
        def __init__(s, t):
            s.t = t

        def __getattr__(s, n):
            return getattr(s.t, n)

        def __add__(s, o):
            return V(s.t + getattr(o, "t", o))

        __radd__ = __add__

        def __getitem__(s, k):
            return V(s.t[k])

        def __matmul__(s, o):
            return V(s.t @ o.t)

        def __iter__(s):
            return map(V, s.t)

    v = V(x)
    w = sum(v)
    r, *rest = v

    def gen():
        acc = 0
        while True:
            t = yield acc
            if t is None:
                return acc
            acc = acc + t.t * (i + 1)

    g = gen()
    next(g)
    try:
        for p in (r, *rest, None):
            g.send(p)
    except StopIteration as s:
        acc = s.value
    try:
        y = x.detach() * 2
        raise ValueError(x * 3)
    except ValueError as e:
        z = e.args[0]
    with torch.no_grad():
        n = x * 5
    return (
        (v @ V(x.T)).sum(),
        w.t,
        acc,
        z,
        n.requires_grad,
        y.requires_grad,
        z.requires_grad,
        (v[0] + 1).shape,
        x.is_leaf,
    )


@program(graphs=0, breaks=True)
def int_str_subclasses(x):
    log = []

    class I(int):
        def __add__(s, o):
            log.append("add")
            return I(int(s) + o)

        def __eq__(s, o):
            log.append("eq")
            return int(s) == o

        __hash__ = int.__hash__

        def __index__(s):
            log.append("index")
            return 0

        def __str__(s):
            return "I!"

        def __bool__(s):
            return False

    class S(str):
        def __eq__(s, o):
            log.append("seq")
            return str.__eq__(s, o)

        def __hash__(s):
            log.append("shash")
            return str.__hash__(s)

        def __len__(s):
            return 99

        def __getitem__(s, i):
            return "item"

        def upper(s):
            return "UP"

        def __add__(s, o):
            return "added"

        def __iter__(s):
            return iter("zz")

    class Fl(float):
        def __float__(s):
            return 7.0

        def __round__(s, n=0):
            return "rounded"

    i, s, f = I(1), S("ab"), Fl(1.5)
    out = [
        type(i + 1).__name__,
        type(1 + i).__name__,
        i == 1,
        {1: "d"}[i],
        [10, 20, 30][i],
        str(i),
        f"{i}",
        f"{i:d}",
        repr(i),
        "%d" % i,
        bool(i),
        int(i),
        int.__bool__(i),
        sum([i, i]),
        range(i).stop,
        list(range(5))[i:],
        hex(i),
        i * 2,
        -i,
        type(-i).__name__,
        s == "ab",
        {"ab": 1}[s],
        len(s),
        s[0],
        s.upper(),
        s + "c",
        "c" + s,
        list(s),
        "".join(s),
        "-".join([s, s]),
        s * 2,
        "a" in s,
        s.replace("a", "b"),
        type(str(s)).__name__,
        float(f),
        round(f),
        f + 1,
        math.floor(f),
        int(f),
        "%s" % s,
        s.__class__.__name__,
        tuple(s),
        "b" + "a" == s,
        "abc".startswith(s),
        dict(k=s)["k"] is s,
        int("7") == I(7),
        I(1) in [1],
        isinstance(True, I),
        I("12"),
        S(b"a", "ascii") == "a",
    ]
    return (
        x * i,
        x + f,
        x[i],
        x.sum(dim=i),
        [str(o) if isinstance(o, (str, int, float)) and type(o) in (I, S, Fl) else o for o in out],
        log,
    )


@program(graphs=3, breaks=True)
def tuple_and_frozenset_subclasses(x):
    log = []

    class T(tuple):
        def __new__(cls, *a):
            return super().__new__(cls, a)

        def __getitem__(s, i):
            log.append(i if isinstance(i, int) else "slice")
            return super().__getitem__(i)

        def __iter__(s):
            log.append("iter")
            return super().__iter__()

        def __len__(s):
            return 1

        def __add__(s, o):
            return T(*tuple.__add__(s, tuple(o)))

        def __eq__(s, o):
            return NotImplemented

        __hash__ = tuple.__hash__

        def __lt__(s, o):
            return "lt"

    t = T(1, x, 3)
    a, b, c = t
    out = [
        t[0],
        len(t),
        type(t[1:]).__name__,
        len(t + (4,)),
        type(t * 2).__name__,
        T(1, 5) == (1, 2),
        (1,) == T(1),
        hash(T(1)) == hash((1,)),
        [*T(5, 6)],
        tuple(t) is t,
        type(tuple(t)).__name__,
        3 in T(3),
        T(1, 2).index(2),
        T(2) < T(1),
        max(T(4, 9)),
        T(1, 2).count(1),
        isinstance(t, tuple),
        t.__class__.__name__,
        "%s-%s" % T("p", "q"),
        {T(1): 5}.get((1,)),
        sorted(T(3, 1)),
        list(reversed(T(1, 2))),
        bool(T()),
        dict([T("k", "v")]),
    ]

    def f(*a):
        return len(a), type(a).__name__

    out.append(f(*t))
    t.attr = 5
    out.append(t.__dict__)
    try:
        match T(1, 2):
            case [p]:
                out.append("len 1")
            case [p, q]:
                out.append("len 2")
    except ValueError as e:
        out.append(text(e))
    try:
        p, q, r = T(1, 2)
    except ValueError as e:
        out.append(text(e))

    class FS(frozenset):
        def __contains__(s, v):
            return "yes"

        def __or__(s, o):
            return "or"

    fs = FS([1])
    out += [
        5 in fs,
        fs | {2},
        {2} | fs,
        FS([1]) == {1},
        hash(fs) == hash(frozenset([1])),
        type(fs - {1}).__name__,
        type(fs.copy()).__name__,
        type(fs.union([2])).__name__,
        isinstance((), T),
        T.__base__.__name__,
    ]
    return b + 1, torch.stack(tuple(T(x, x))), x.sum(dim=T(0, 1)), out, log


@program(graphs=3, breaks=True)
def type_call_and_dynamic_class(x):
    out = []
    ns = {"v": 1, "f": lambda s: x + s.v, "__doc__": "D", "__qualname__": "Q.N", "__module__": "mm"}
    N = type("N", (), ns)
    ns["v"] = 100
    out += [
        N.v,
        N.__doc__,
        N.__qualname__,
        N.__module__,
        repr(N),
        type(N()).__name__,
        "__qualname__" in N.__dict__,
        N.__bases__,
        N.__name__,
    ]
    N.__name__ = "Renamed"
    out += [N.__name__, repr(N)]
    N.__qualname__ = "Z"
    N.w = property(lambda s: s.v + 1)
    n = N()
    out.append(n.w)
    N.__len__ = lambda s: 4
    out += [len(n), bool(n)]
    del N.__len__
    for f in (
        lambda: len(n),
        lambda: type("A\0"),
        lambda: type("A", (), {}, k=1),
        lambda: type("A", [], {}),
        lambda: type(1, (), {}),
        lambda: type("A", (3,), {}),
        lambda: type(1, 2),
        lambda: setattr(int, "q", 1),
        lambda: setattr(N, "__name__", 3),
        lambda: setattr(N, "__dict__", {}),
        lambda: delattr(N, "zz"),
        lambda: type.__call__(N) is n,
        lambda: N.__call__().v,
        lambda: type("S", (), {"__slots__": ("a b",)}),
        lambda: type(type)(3).__name__,
        lambda: type(n)().v,
        lambda: n.__class__.__class__.__name__,
        lambda: type.__getattribute__(N, "v"),
        lambda: object.__getattribute__(N, "zz"),
        lambda: N.mro()[-1].__name__,
        lambda: N.__subclasses__(),
        lambda: type("X", (), {"__eq__": lambda s, o: 1}).__hash__,
        lambda: object().__eq__(3) is NotImplemented,
        lambda: object().__lt__(3) is NotImplemented,
        lambda: type.__instancecheck__(N, n),
        lambda: object.__init_subclass__(),
        lambda: setattr(object(), "a", 1),
        lambda: type("E", (), {"__bool__": lambda s: 3})() or 1,
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e))
    return n.f(), [str(o) for o in out]


@program(breaks=True)
def staticmethod_classmethod_forms(x):
    out = []

    def f(*a):
        return [k.__name__ if isinstance(k, type) else k for k in a]

    class A:
        s = staticmethod(f)
        c = classmethod(f)
        sc = staticmethod(classmethod(f))
        d = staticmethod(3)
        raw = staticmethod(lambda t: t + 1)
        lenm = len
        cls = int
        bi = staticmethod(max)
        par = functools.partial(f, "p")

        def __call__(self):
            return "called"

        called_in_body = staticmethod(lambda: 5)()
        nested = classmethod(property(lambda c: c.__name__)) if sys.version_info < (3, 11) else None

        def self_less():
            return "no self"

        @classmethod
        def make(cls, *a):
            o = cls.__new__(cls)
            o.a = a
            return o

    class B(A):
        pass

    class Inst:
        def __get__(s, o, t):
            return (o is None, t.__name__)

    A.i = Inst()
    A.cl = classmethod(lambda *a: len(a))
    inst = A()
    out += [
        A.s(1),
        inst.s(1),
        B.c(2),
        B().c(2),
        inst.d,
        A.d,
        inst.cls("7"),
        inst.bi(1, 2),
        inst.par(),
        A.self_less(),
        A.called_in_body,
        B.make(1).a,
        type(B.make()).__name__,
        inst.i,
        A.i,
        inst.cl(),
        A.__dict__["s"].__func__ is f,
        A.__dict__["c"].__wrapped__ is f,
        A.__dict__["s"](3),
        callable(A.__dict__["c"]),
        A.c.__self__ is A,
        B.__dict__.get("c"),
        A.raw.__name__,
    ]
    for g in (
        lambda: inst.lenm(),
        lambda: inst.self_less(),
        lambda: A.__dict__["c"](1),
        lambda: inst.sc(1),
        lambda: inst.lenm([1]),
        lambda: inst.d(),
        lambda: A.make.__func__(),
        lambda: B.self_less(1),
        lambda: classmethod(3).__get__(None, A)(),
        lambda: A.__call__(),
        lambda: inst(),
    ):
        try:
            out.append(g())
        except Exception as e:
            out.append(re.sub(r"[\w.<>]*(staticmethod_classmethod_forms)[\w.<>]*\.", "", text(e)))
    return inst.raw(x), A.raw(x), B.make(x).a[0] * 2, out


@program(graphs=2, breaks=True)
def module_getattr_and_imports(x):
    out = []
    m = types.ModuleType("corners_mod")
    m.__dict__["__getattr__"] = lambda n: (
        "dyn " + n if n != "no" else (_ for _ in ()).throw(AttributeError("nope " + n))
    )
    m.real = 1
    out += [m.real, m.zork, hasattr(m, "no"), getattr(m, "no", 5), m.__name__, m.__doc__]
    sys.modules["corners_mod"] = m
    try:
        import corners_mod
        from corners_mod import real, virtual as v

        out += [corners_mod is m, real, v]
        try:
            from corners_mod import no
        except ImportError as e:
            out.append((type(e).__name__, e.name))
        m.__all__ = ["real", "listed"]
        ns = {}
        exec("from corners_mod import *", ns)
        out.append(sorted(k for k in ns if k != "__builtins__"))
        sys.modules["corners_mod"] = None
        try:
            import corners_mod
        except ImportError as e:
            out.append(text(e))
    finally:
        del sys.modules["corners_mod"]
    import os.path as p, collections.abc as ca, torch.nn.functional as F
    from math import floor, pi as PI

    out += [p.join("a", "b"), ca.Sized.__name__, floor(PI)]
    try:
        import no_such_module_lang.sub
    except ModuleNotFoundError as e:
        out.append((text(e), e.name))
    try:
        import math.nope
    except ImportError as e:
        out.append(text(e))
    try:
        from math import nope
    except ImportError as e:
        out.append(type(e).__name__)

    class M(types.ModuleType):
        def __setattr__(s, k, v):
            out.append(("set", k))
            super().__setattr__(k, v)

        @property
        def prop(s):
            return x * 3

    m.__class__ = M
    m.k = 1
    out.append(m.k)
    return F.relu(x), m.prop, out


@program
def augmented_attribute_on_class(x):
    out = []

    class A:
        n = 0
        l = []
        t = x

        def bump(s):
            s.n += 1
            s.l += [s.n]
            s.t = s.t + 1
            return s

    a, b = A().bump().bump(), A().bump()
    out += [A.n, a.n, b.n, A.l, "l" in a.__dict__, a.l is A.l, A.t is x, "t" in vars(b)]
    A.n += 10
    c = A()
    out += [c.n, a.n]
    del a.n
    out.append(a.n)
    a.n -= 1
    out.append((a.n, A.n))
    try:
        del c.n
    except AttributeError as e:
        out.append(text(e))

    class P:
        _v = 1

        @property
        def v(s):
            out.append("get")
            return s._v

        @v.setter
        def v(s, w):
            out.append(("set", w))
            s._v = w

    p = P()
    p.v += 4
    p.v = p.v = 9
    out.append((p._v, P._v))
    setattr(p, "v", getattr(p, "v") * 2)
    for p.v in (1, 2):
        pass
    with contextlib.nullcontext(3) as p.v:
        pass
    ((p.v, q),) = [(5, 6)]

    class Ctr:
        def __init__(s):
            s.d = {}

        def __getitem__(s, k):
            out.append(("gi", k))
            return s.d.get(k, 0)

        def __setitem__(s, k, v):
            out.append(("si", k))
            s.d[k] = v

    k = Ctr()
    k["a"] += 1
    k["a", 1] += 2
    k[str(slice(1, 2))] = 5
    A.t += 1 if False else 0
    return a.t, b.t, A.t, k.d, out


@program(graphs=0, breaks=True)
def async_objects_without_loop(x):
    out = []

    class Aw:
        def __await__(s):
            r = yield "suspended"
            return r * 2

    async def co(t):
        v = await Aw()
        out.append(v)
        async with ACM() as q:
            out.append(q)
        async for w in AIt():
            out.append(w)
        return t + v

    class ACM:
        async def __aenter__(s):
            return "entered"

        async def __aexit__(s, *a):
            out.append(a[0])

    class AIt:
        def __init__(s):
            s.n = 0

        def __aiter__(s):
            return s

        async def __anext__(s):
            s.n += 1
            if s.n > 2:
                raise StopAsyncIteration
            return s.n

    c = co(x)
    out.append(c.send(None))
    try:
        c.send(21)
    except StopIteration as e:
        r = e.value
    try:
        c.send(None)
    except RuntimeError as e:
        out.append(text(e))

    async def agen():
        yield 1
        yield 2

    a = agen()
    try:
        a.__anext__().send(None)
    except StopIteration as e:
        out.append(e.value)
    for f in (lambda: list(a), lambda: iter(c), lambda: a.__anext__().close()):
        try:
            out.append(f())
        except Exception as e:
            out.append(re.sub(" at 0x.*", "", text(e)))

    async def comp():
        return [v async for v in agen()], {k: await Plain(k) for k in (1,)}

    class Plain:
        def __init__(s, k):
            s.k = k

        def __await__(s):
            return iter(()) if s.k > 5 else (s.k for _ in ())

    try:
        comp().send(None)
    except StopIteration as e:
        out.append(e.value)
    return r, out, inspect.iscoroutinefunction(co)


@program(graphs=3, breaks=True)
def heapq_bisect_fraction_decimal(x):
    out = []
    h = []
    n = 0

    class Task:
        def __init__(s, p, t):
            s.p, s.t = p, t

        def __lt__(s, o):
            nonlocal n
            n += 1
            return s.p < o.p

    for k, p in enumerate((5, 1, 3, 2)):
        heapq.heappush(h, Task(p, x * k))
    first = heapq.heappop(h)
    out += [
        first.p,
        n > 0,
        heapq.nlargest(2, [1, 5, 3], key=lambda v: -v),
        heapq.heapreplace(q := [1, 4, 2], 9),
        q,
        list(heapq.merge([1, 4], [2, 3], reverse=False)),
        heapq.heappushpop([2, 3], 1),
    ]
    l = [1, 2, 2, 3]
    bisect.insort(l, 2.0)
    out += [
        l,
        [type(v).__name__ for v in l],
        bisect.bisect_left(l, 2),
        bisect.bisect(l, 2),
        bisect.bisect([("a", 1), ("b", 2)], 1, key=lambda p: p[1]),
    ]
    F, D = fractions.Fraction, decimal.Decimal
    out += [
        F(1, 3) + F(1, 6),
        F("0.125"),
        F(1, 2) == 0.5,
        F(1, 2) + 0.5,
        F(7, -3),
        divmod(F(7, 2), 1),
        F(0.1).limit_denominator(10),
        hash(F(2)) == hash(2),
        round(F(5, 2)),
        D("0.1") + D("0.2"),
        D("1") / D("3") == D("0.3333333333333333333333333333"),
        D(1) == 1.0,
        D("1.10").quantize(D("0.1")),
        D("-0"),
        D("NaN") != D("NaN"),
        -D("7") % 3,
        D("1E+2"),
        int(D("1.9")),
    ]
    for f in (
        lambda: F(1, 0),
        lambda: D("x"),
        lambda: D(1) + 1.5,
        lambda: D(1) / 0,
        lambda: heapq.heappop([]),
        lambda: heapq.heappush((), 1),
        lambda: heapq.heapify([1, "a"]),
        lambda: bisect.insort([1], "a"),
        lambda: F("q"),
        lambda: F(1.5, 2),
        lambda: heapq.heappush([(1, "a")], (1, 2)),
        lambda: bisect.bisect([1], 1, -1),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append(text(e) if "decimal" not in type(e).__module__ else type(e).__name__)
    return first.t, [t.p for t in h], x * float(F(1, 4)), [str(o) for o in out]


@program(graphs=0, breaks=True)
def regex_with_callbacks(x):
    log = []

    def rep(m):
        log.append((m.group(), m.span(), m.lastgroup))
        return f"<{m.group(0).upper()}>"

    out = [
        re.sub(r"(?P<w>[a-z]+)|(?P<n>\d+)", rep, "ab 12 c"),
        re.sub("x*", "-", "abxd"),
        re.split(r"(,)|;", "a,b;c"),
        re.split("", "ab"),
        re.findall(r"(a)(b)?", "ab a"),
        re.findall("", "ab"),
        re.match(r"(?P<y>\d+)-(?P<z>q)?", "12-").groupdict(),
        re.match("a|ab", "ab").group(),
        re.fullmatch("a|ab", "ab").group(),
        re.search(r"(\w)\1", "hello").group(1),
        re.subn("a", "b", "aaa", count=2),
        re.sub(r"(a)|b", r"[\1]", "ab"),
        re.escape("a.b-c"),
        [m.start() for m in re.finditer("(?=a)", "aa")],
        re.compile("(a)(?P<n>b)").groupindex["n"],
        re.match("a", "b"),
        bool(re.match("", "")),
        re.match("(a)(b)?", "a").groups("d"),
        re.match("(a)(b)?", "a").span(2),
        re.I | re.M == re.M | re.I,
        re.sub("(?i)A", lambda m: "", "aAb"),
        re.match(".(?s:.)", "a\n") is not None,
        re.compile("a") == re.compile("a"),
        re.match("a", "abc").end(),
        re.sub("a", r"\\n", "a"),
        re.template if False else 0,
    ]
    for f in (
        lambda: re.compile("("),
        lambda: re.match("a", "a").group(3),
        lambda: re.match(b"a", "a"),
        lambda: re.sub("(a)", r"\2", "a"),
        lambda: re.sub("a", lambda m: 3, "a"),
        lambda: re.match("a", None),
        lambda: re.compile("*"),
        lambda: re.match("(?P<a>x)", "x")["b"],
        lambda: re.sub("a", lambda m: 1 / 0, "a"),
        lambda: re.compile("a", 3.5),
        lambda: re.match("(?P<a>x)", "x")["a", 1],
        lambda: re.compile(re.compile("a"), re.I),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    n = int(re.search(r"\d+", "k=3;").group())
    return x * n, [repr(o) for o in out], log


@built
def closure_state_across_calls():
    state = {"n": 0, "seen": []}
    count = 0
    last = None

    class Reg:
        made = 0

        def __init__(s):
            Reg.made += 1
            s.id = Reg.made

        def __eq__(s, o):
            return isinstance(o, Reg)

    def memo(k, cache={}):
        return cache.setdefault(k, []).append(len(cache)) or cache[k]

    def f(x):
        nonlocal count, last
        count += 1
        state["n"] += x.shape[0]
        state["seen"].append(count)
        r = Reg()
        f.calls = getattr(f, "calls", 0) + 1
        prev, last = last, x * count
        if count % 2:
            state.setdefault("odd", []).append(r.id)
        else:
            Reg.label = property(lambda s: s.id * 100)
        return (
            last if prev is None else prev + last,
            count,
            dict(state),
            list(state["seen"]),
            memo(count % 2),
            f.calls,
            Reg.made,
            getattr(r, "label", None),
            r == Reg.__new__(Reg),
        )

    return f


@built(graphs=0, breaks=True)
def generator_resumed_across_calls():
    log = []

    def source():
        n = 0
        try:
            while True:
                x = yield n
                n += 1
                log.append(tuple(x.shape))
                try:
                    x = yield x + n
                except KeyError as e:
                    log.append(text(e))
                    yield x * -1
        finally:
            log.append("finished")

    g = source()
    it = iter(range(100))
    cyc = itertools.cycle("ab")
    cnt = itertools.count(10)
    pending = None

    def f(x):
        nonlocal pending
        k = next(g) if pending is None else pending
        a = g.send(x)
        t = next(it), next(cyc), next(cnt)
        b = g.throw(KeyError(k)) if next(it) % 3 == 0 else a
        try:
            nxt = next(g)
        except AttributeError as e:
            nxt = text(e)
        pending = nxt
        return a, b, k, t, list(log), nxt if isinstance(nxt, (int, str)) else "tensor", list(itertools.islice(it, 2))

    return f
