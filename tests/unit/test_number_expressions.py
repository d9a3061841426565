"""Every kind of expression over a number that changes from call to call: what it gives, or raises, is eager's at every value.

After the second value the number is a symbol where it can be; the later values go where recordings did not: 0, -1, huge, infinite.
"""

import math
import operator

import cutaway
import pytest
import torch

EXPRESSIONS = """
abs(v)
hash(v)
round(v)
round(v, 1)
pow(v, 2)
pow(2, v)
v ** 2
v ** 3
divmod(v, 3)
divmod(7, v)
~v
-v
+v
v << 1
v >> 1
v & 3
v | 1
v ^ 1
v & -2
v % 3
v // 2
v // -2
7 // v
v / 2
v * v
v - 1
3 - v
float(v)
complex(v)
str(v)
bool(v)
int(v)
repr(v)
f"{v}"
f"{v:+d}"
v.real
v.imag
v.conjugate()
v.__abs__()
v.__hash__()
v.__neg__()
v.__index__()
v.__bool__()
v.__pow__(2)
operator.index(v)
operator.neg(v)
operator.abs(v)
operator.truth(v)
operator.not_(v)
math.gcd(v, 6)
math.floor(v)
math.ceil(v)
math.trunc(v)
math.fabs(v)
math.copysign(1, v)
math.copysign(v, -1)
math.fmod(v, 3)
math.isqrt(abs(v))
math.hypot(v, 1)
math.prod([v, 2])
max(v, 0)
min(v, 0)
max(v, 1, 2)
min([v, 2, 3])
max([v, 0], key=abs)
min(v, -v)
sum([v, 1])
sum([v, 0.5])
sorted([v, 1, 0])
v and 5
v or 5
not v
v == -1
v != 0
v > 0
v is None
v in (1, 2)
v in {1: 2}
[1, 2, 3][v % 3]
[10, 20, 30, 40, 50, 60, 70, 80][v]
(1, 2, 3, 4, 5, 6, 7, 8)[v:]
"abcdefghij"[v]
"abcdefghij"[:v]
[0] * v
"a" * v
list(range(v))
list(range(0, 10, v))
{v: 1}
{v}
(v, v + 1)
[i for i in range(abs(v))]
v if v > 2 else -v
v.bit_length()
bin(v)
isinstance(v, int)
type(v).__name__
(v > 0) - (v < 0)
abs(v) * (1 if v >= 0 else -1)
max(abs(v), 2)
-abs(v)
abs(v - 2)
abs(-v)
hash((v, 1))
hash(v) % 7
int(v / 2)
round(v / 2)
math.sqrt(abs(v))
(v + 1) % 2
y + v
y * v
y.sum() * abs(v)
y + abs(v)
y * max(v, 1)
y ** v
y + hash(v)
y.roll(v)
y[v % 4]
y + (-v)
y + v // 2
y + v % 3
y + (v >> 1)
y + (v & 3)
y + (~v)
y + divmod(v, 3)[0]
y + int(v > 0)
y + bool(v)
torch.full((2,), v)
torch.full((2,), -v)
torch.arange(abs(v))
y.add(y, alpha=v)
torch.tensor([v, 1])
torch.clamp(y, max=v)
torch.where(y > v, y, v)
y.new_full((2,), v)
y.fill_(v).clone()
y.view(4).unsqueeze(0).sum() + v
"""
VALUES = {
    "int": [[3, 5, -1, 1, 2, 0, -7, 4, -2, 100], [-3, -2, 0, 3, -1, 1]],
    "float": [[3.0, 0.5, -1.5, 1.0, -0.0, 0.0, 4.0, math.inf, math.nan, -3.25]],
    "size": [[2, 3, 5, 4, 1, 7]],
}


def outcome(function, value, kind):
    y = torch.tensor([1.0, -2.0, 3.0, 0.5])
    try:
        if kind == "size":  # a number that was computed: 3 less than the size of an input
            return function(torch.ones(value), y)
        return function(value, y)
    except Exception as e:
        return type(e).__name__, str(e)


def alike(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5))
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, complex):
        return alike(a.real, b.real) and alike(a.imag, b.imag)
    if isinstance(a, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


@pytest.mark.parametrize("backend", ["eager", lambda module, inputs: module], ids=["native", "fx"])
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_expression(expression, kind, backend):
    space = {"math": math, "operator": operator, "torch": torch}
    first = "v = v.shape[0] - 3" if kind == "size" else "pass"
    exec(f"def function(v, y):\n    {first}\n    return ({expression}), y * 2", space)
    function = space["function"]
    for values in VALUES[kind]:
        cutaway.reset()
        compiled = cutaway.compile(function, backend=backend)
        for value in values:
            expected = outcome(function, value, kind)
            found = outcome(compiled, value, kind)
            assert alike(found, expected), (value, found, expected)
