# ruff: noqa
"""Text, bytes and numbers, after the library reference's chapter on built-in types: every method, folded while capturing."""

import cmath
import fractions
import math
import random
import statistics
import string

from tests.support.registry import program


@program
def str_case(x):
    s = "hello World"
    n = len(s.upper() + s.lower() + s.title() + s.capitalize() + s.swapcase() + s.casefold())
    return x * n


@program
def str_pad(x):
    s = "ab"
    return x + len(s.center(10, "*") + s.ljust(7) + s.rjust(8, "-") + s.zfill(5) + "a\tb".expandtabs(4))


@program
def str_find(x):
    s = "banana"
    k = s.find("an") + s.rfind("an") + s.index("n") + s.rindex("n") + s.count("a") + s.find("zz")
    return x * k


@program
def str_index_raises(x):
    try:
        "abc".index("z")
    except ValueError as e:
        return x + len(str(e))
    return x


@program
def str_is(x):
    s = "abc1"
    t = [
        s.isalnum(),
        s.isalpha(),
        s.isascii(),
        s.isdecimal(),
        s.isdigit(),
        s.isidentifier(),
        s.islower(),
        s.isnumeric(),
        s.isprintable(),
        s.isspace(),
        s.istitle(),
        s.isupper(),
    ]
    return x + sum(t)


@program
def str_split(x):
    s = "a,b,,c"
    parts = s.split(",") + s.rsplit(",", 1) + "a b  c".split() + "x\ny\n".splitlines() + "x\ny\n".splitlines(True)
    p = s.partition(",") + s.rpartition(",")
    return x * len(parts) + len(p)


@program
def str_strip(x):
    s = "  xx-a-xx  "
    return x + len(
        s.strip()
        + s.lstrip()
        + s.rstrip()
        + "xxaxx".strip("x")
        + "prefix_a".removeprefix("prefix_")
        + "a.py".removesuffix(".py")
    )


@program
def str_replace_join(x):
    s = "-".join(["a", "b", "c"]).replace("-", "+").replace("+", "", 1)
    return x + len(s), s


@program
def str_translate(x):
    table = str.maketrans("abc", "xyz", "d")
    s = "abcd".translate(table)
    return x * len(s), s


@program(graphs=0)
def str_format_methods(x):
    a, b = x.shape
    s = "{} {:>5} {0} {name!r}".format(a, b, name="n") if False else "{0} {1:>5} {0} {name!r}".format(a, b, name="n")
    t = "{a}-{b}".format_map({"a": 1, "b": 2})
    return x, s, t


@program
def str_encode(x):
    b = "héllo".encode("utf-8")
    return x * len(b), b.decode("utf-8")


@program
def str_startswith(x):
    s = "abcdef"
    if s.startswith("abc") and s.endswith(("def", "xyz")) and not s.startswith("b", 2):
        return x + 1
    return x - 1


@program
def str_iteration_index(x):
    s = "abc"
    out = 0
    for i, c in enumerate(s):
        out += ord(c) * i
    return x + out + ord(s[-1]) + len(s[::-1]) + (s[0] == "a") + ("b" in s) + len(s * 2) + (s < "abd")


@program(graphs=0)
def str_percent(x):
    s = "%d %s %5.2f %x %r %%" % (x.shape[0], "a", 1.5, 255, "q")
    t = "%(k)s=%(v)03d" % {"k": "key", "v": 7}
    return x, s, t


@program(graphs=0)
def str_fstring_forms(x):
    n, m = x.shape
    v = 3.14159
    w = 10
    s = f"{n}x{m} {v:.2f} {v:{w}.3} {n!r:>4} {n + m = } {'a' if n > 2 else 'b'} {{}} {x.dtype} {x.shape}"
    return x, s


@program
def str_built_from_shape(x):
    key = f"layer_{x.shape[0]}_{x.size(1)}"
    table = {"layer_3_4": 2.0}
    return x * table.get(key, 1.0)


@program
def str_conversions(x):
    return (
        x
        + int("12")
        + float("1.5")
        + int("ff", 16)
        + int("0b11", 0)
        + len(str(12.5))
        + len(repr("a"))
        + ord("a")
        + len(chr(97))
        + len(hex(255) + bin(5) + oct(8) + ascii("é"))
    )


@program(graphs=0)
def str_compare_chain(x):
    a, b, c = "a", "b", "c"
    return x if a < b < c else -x


@program
def string_module(x):
    return x + len(string.ascii_letters + string.digits + string.punctuation), string.capwords("a b c")


@program
def bytes_methods(x):
    b = b"hello"
    n = (
        len(b.upper())
        + b.find(b"l")
        + b.count(b"l")
        + b[0]
        + len(b[1:3])
        + len(b.split(b"l"))
        + len(b.hex())
        + len(bytes([1, 2, 3]))
        + len(b + b"x")
        + len(b.replace(b"l", b""))
    )
    return x + n, b.decode(), bytes.fromhex("ff00")


@program(breaks=True)
def bytearray_use(x):
    b = bytearray(b"abc")
    b.append(100)
    b[0] = 65
    return x + len(b), bytes(b)


@program
def int_methods(x):
    n = 37
    return (
        x
        + n.bit_length()
        + n.bit_count()
        + len(n.to_bytes(2, "big"))
        + int.from_bytes(b"\x01\x00", "big")
        + n.real
        + n.imag
        + n.numerator
        + n.denominator
        + n.conjugate()
        + sum((3).as_integer_ratio())
    )


@program
def int_operations(x):
    a, b = 17, 5
    return (
        x
        + a // b
        + a % b
        + a**b % 7
        + (a << 2)
        + (a >> 1)
        + (a & b)
        + (a | b)
        + (a ^ b)
        + ~a
        + -a
        + +a
        + abs(-a)
        + divmod(a, b)[1]
        + pow(a, b, 7)
        + round(a, -1)
    )


@program
def int_div_zero_caught(x):
    try:
        y = 1 // (x.shape[0] - 3)
    except ZeroDivisionError:
        y = 7
    return x + y


@program
def float_methods(x):
    f = 2.5
    return (
        x
        + f.is_integer()
        + f.as_integer_ratio()[0]
        + len(f.hex())
        + float.fromhex("0x1.8p+1")
        + f.real
        + f.imag
        + f.conjugate()
        + round(f)
        + round(2.567, 2)
        + int(f)
        + f // 1
        + f % 1
        + f**2
    )


@program
def float_special(x):
    inf, nan = float("inf"), float("nan")
    return x + (inf > 1) + (nan != nan) + math.isinf(inf) + math.isnan(nan) + (-inf < 0)


@program
def complex_methods(x):
    z = complex(3, 4)
    w = z * 2j + z.conjugate()
    return (
        x + z.real + z.imag + abs(z) + w.real + (z == 3 + 4j) + cmath.phase(1j) + abs(cmath.exp(1j)) + cmath.polar(z)[0]
    )


@program
def bool_arithmetic(x):
    a, b = True, False
    return x + (a + b) + (a & b) + (a | b) + (a ^ b) + (not a) + bool(0) + bool("a") + bool([]) + int(a)


@program
def math_functions(x):
    return (
        x
        + math.sqrt(2)
        + math.pi
        + math.e
        + math.tau
        + math.floor(2.5)
        + math.ceil(2.5)
        + math.trunc(2.5)
        + math.gcd(12, 18)
        + math.lcm(4, 6)
        + math.factorial(5)
        + math.comb(5, 2)
        + math.perm(5, 2)
        + math.log(2)
        + math.log2(8)
        + math.log10(100)
        + math.log1p(1)
        + math.exp(1)
        + math.expm1(1)
        + math.sin(1)
        + math.cos(1)
        + math.tan(1)
        + math.asin(0.5)
        + math.acos(0.5)
        + math.atan(1)
        + math.atan2(1, 2)
        + math.hypot(3, 4)
        + math.degrees(1)
        + math.radians(180)
        + math.fabs(-1)
        + math.fmod(5, 3)
        + math.copysign(1, -2)
        + math.fsum([0.1, 0.2])
        + math.prod([1, 2, 3])
        + math.isqrt(17)
        + math.dist([0, 0], [3, 4])
        + math.isclose(1, 1 + 1e-12)
        + math.modf(2.5)[0]
        + math.frexp(8)[1]
        + math.ldexp(1, 3)
        + math.erf(0.5)
        + math.gamma(5)
        + math.remainder(5, 3)
    )


@program
def math_on_shape(x):
    return x / math.sqrt(x.shape[-1]) + math.prod(x.shape) + math.ceil(x.shape[0] / 2)


@program
def statistics_functions(x):
    return x + statistics.mean([1, 2, 3]) + statistics.median([1, 5, 2])


@program
def fractions_use(x):
    f = fractions.Fraction(1, 3) + fractions.Fraction(1, 6)
    return x * float(f)


@program(graphs=3, breaks=True)
def random_in_graph(x):
    random.seed(3)
    return x + random.random() + random.randint(1, 5) + random.uniform(0, 1)


@program(breaks=True)
def random_without_seed(x):
    return x * random.random()


@program(breaks=True)
def random_choice(x):
    y = random.choice([1, 2, 3])
    return x * y


@program
def range_methods(x):
    r = range(2, 20, 3)
    return (
        x
        + len(r)
        + r[1]
        + r[-1]
        + r.start
        + r.stop
        + r.step
        + r.index(5)
        + r.count(5)
        + (5 in r)
        + sum(r[1:3])
        + len(r[::-1])
        + (r == range(2, 20, 3))
        + sum(reversed(r))
    )


@program
def range_unpack(x):
    a, b, c = range(3)
    first, *rest = range(5)
    return x + a + b + c + first + len(rest) + sum([*range(3), *range(2)])


@program
def slice_objects(x):
    s = slice(1, 3)
    t = slice(None, None, 2)
    return x[s], x[t], x[:, s], s.start + s.stop, s.step, s.indices(10), [1, 2, 3, 4][s], s == slice(1, 3)


@program
def ellipsis_and_none(x):
    idx = (..., None)
    return x[idx], x[..., 0], x[None], (Ellipsis is ...)


@program
def hash_of_constants(x):
    d = {hash("a") == hash("a"): 1}
    return x + d[True] + (hash(3) == hash(3.0)) + (hash((1, 2)) == hash((1, 2)))


@program
def eval_order(x):
    log = []

    def say(v):
        log.append(v)
        return v

    y = say(1) + say(2) * say(3)
    d = {say(4): say(5), say(6): say(7)}
    return x + y + sum(d.values()), log
