"""What builtins and the library raise, or give, when they are called in odd ways: the same words compiled as eagerly."""

import collections  # noqa: F401
import copy  # noqa: F401
import enum  # noqa: F401
import functools  # noqa: F401
import itertools  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import sys
import types  # noqa: F401
import warnings

import cutaway
import pytest
import torch

from tests.support import capture_cases

pytestmark = pytest.mark.skipif(
    not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture, or it is the peer's turn"
)

EXPRESSIONS = r"""
[1,2,3].pop(10)
[].remove(1)
{}.pop('a')
(1,2).index(5)
"abc".split(1)
"abc".join([1])
"a"*-1
[1]*2.0
{1,2}|[3]
{1}<1
sorted([1,"a"])
sorted([3,1],key=1)
max([])
min(1)
sum(["a"])
sum([1],"a")
len(5)
abs("a")
round("a")
pow(2,"a")
divmod(1,0)
int("12",2)
int([])
float([])
complex("x")
chr("a")
ord("ab")
hex(1.0)
list(5)
tuple(5)
dict(5)
dict([1])
dict([(1,2,3)])
set([[]])
frozenset([[]])
range("a")
range(1,2,3,4)
enumerate(5)
zip(5)
list(map(5,[1]))
list(filter(5,[1]))
reversed(5)
reversed({1})
iter(5,5)
next([])
getattr(1,2)
getattr(1,"a")
setattr(1,"a",2)
hasattr(1,2)
issubclass(1,int)
slice()
"%d" % "a"
"%s %s" % 1
"%z" % 1
"{0}{1}".format(1)
"{a}".format()
format(1,"zz")
f"{1:zz}"
bytes(-1)
b"a"+"a"
"a"+b"a"
1+"a"
"a"+1
[1]+(2,)
(1,)+[2]
1<"a"
None<1
{}<{}
1j<2j
-[]
~1.5
1//0
1.0%0
0**-1
2**0.5
(-1)**0.5
1<<-1
1>>"a"
[1][5]
[1]["a"]
"a"[5]
"a"["b"]
{}[[]]
{}["a"]
5[0]
None()
"a"()
len()
len(1,2)
print
type(1,2)
super()
object(1)
math.sqrt(-1)
math.factorial(-1)
math.log(0)
math.floor("a")
collections.deque([1],maxlen=-1)
collections.deque([]).pop()
collections.Counter(1)
collections.OrderedDict().move_to_end("a")
collections.namedtuple("N","a b")(1)
functools.partial()
functools.partial(5)
functools.reduce(lambda a,b:a,[])
operator.itemgetter()(1)
operator.attrgetter(1)
operator.index(1.0)
operator.add(1,"a")
itertools.islice([1],-1)
list(itertools.chain(1))
list(itertools.product(1))
itertools.count("a")
copy.copy(1)
[1,2].index(3,0,1)
[1].extend(5)
{1}.remove(2)
{1}.union(5)
{}.update(5)
{}.setdefault()
{}.fromkeys(5)
"a".encode("nope")
b"\xff".decode()
"abc".center("a")
"abc".replace("a")
"abc".startswith(1)
"abc".find(1)
" ".isdigit(1)
"a".zfill("b")
str(1,2)
str(b"a","utf-8")
int(1.5,2)
int.from_bytes([1],"big")
(1).to_bytes(0,"big")
(-1).to_bytes(1,"big")
(1.5).is_integer(1)
float("nan").as_integer_ratio()
dict(a=1)["b"]
any(5)
all(5)
callable()
id()
hash([])
hash({})
hash((1,[]))
vars(1)
dir(1,2)
compile("1","a","b")
__import__("nope_nope")
(lambda: (yield))().send(1)
(i for i in 5)
[*5]
{**5}
max(1,"a")
min([1],[2],key=5)
zip([1],strict=2)
sorted([1],reverse=None)
sorted([1,2],reverse='a')
sorted([1,2],reverse=2**70)
[2,1].sort(reverse='a')
[2,1].sort(reverse=[])
bool(1,2)
memoryview(b"a")[0]
bytearray(b"a")+b"b"
list[int]()
int|str
int|5
type("A",(),{})().b
type("A",(int,str),{})
type("A",(bool,),{})
enum.Enum("E","a b").a.value
types.SimpleNamespace(a=1).b
types.MappingProxyType({"a":1})["b"]
types.MappingProxyType({})["a"]
"""

PROGRAM = """
def f(x):
    try:
        r = EXPRESSION
        return x + 1, type(r).__name__, repr(r) if isinstance(r, (int, float, str, bytes, tuple, list, dict, set, complex)) else None
    except Exception as error:
        return x + 1, type(error).__name__, str(error)
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().split("\n"))
def test_expression(expression):
    space = dict(globals())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(PROGRAM.replace("EXPRESSION", expression), space)
    capture_cases.reset()
    x = torch.ones(2)
    expected = space["f"](x)
    given = capture_cases.compile(space["f"], backend="eager")(x)
    assert torch.equal(expected[0], given[0])
    assert expected[1:] == given[1:]


def test_rows_of_a_tensor_are_views_of_several():
    """Autograd refuses to write to one of them, and so must a graph."""

    def write(x):
        y = x * 2
        for row in y:
            row += 1
        return y

    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError) as expected:
        write(x)
    with pytest.raises(RuntimeError) as got:
        cutaway.compile(write)(x)
    assert str(got.value) == str(expected.value)
    assert torch.equal(cutaway.compile(write)(x.detach()), write(x.detach()))


def put_back_and_broken(d, seen):
    for k in d:
        seen.append(k)
        d[k] = d.pop(k)
        sys.getrefcount(None)
        if len(seen) > 5:
            break


def put_back(d, seen):
    for k, _ in d.items():
        seen.append(k)
        del d["a"]
        d["a"] = 1


def grown(s, seen):
    for k in s:
        seen.append(k)
        s.add(k + 10)


def grown_behind_a_break(s, seen):
    for k in s:
        seen.append(k)
        sys.getrefcount(None)
        s.add(k + 10)


def copy_grown_behind_a_break(s, seen):
    grown_behind_a_break(set(s), seen)


def only_read(s, seen):
    for k in {k + 1 for k in s}:
        sys.getrefcount(None)
        seen.append(k)


@pytest.mark.parametrize("backend", ["eager", lambda graph_module, inputs: graph_module.forward])
@pytest.mark.parametrize(
    "program, make",
    [
        (put_back_and_broken, lambda: {"a": 1, "b": 2, "c": 3}),
        (put_back, lambda: {"a": 1}),
        (put_back, lambda: {"a": 1, "b": 2}),
        *((f, lambda: {5, 1, 7, 100}) for f in (grown, grown_behind_a_break, copy_grown_behind_a_break, only_read)),
    ],
)
def test_containers_that_change_while_a_loop_is_in_them(program, make, backend):
    """A loop meets a key again that was taken out and put back, or says that the keys changed; behind a break, too."""

    def outcome(call):
        given, seen = make(), []
        try:
            call(given, seen)
        except RuntimeError as e:
            seen.append(str(e))
        return seen, list(given)

    compiled = cutaway.compile(program, backend=backend)
    for _ in range(3):
        assert outcome(compiled) == outcome(program)
