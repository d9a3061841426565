"""Programs whose graph breaks inside a Python function that CPython reaches through C: constructors, properties, operators, key functions,
generators. Each way in is crossed with what breaks and with where it stands; ``program`` gives the text of one."""

import itertools

# What breaks. ``y`` is a tensor before and behind it.
BREAKS = {
    "print": ['print("inside")'],
    "item": ["y = y + y.sum().item()"],
    "branch": ["if y.sum() > 0:", "    y = y * 3", "else:", "    y = y - 3"],
    "c_function": ["os.getpid()"],
}

# Where it stands: what comes around USE, which makes the tensor ``r`` of the tensor ``x``.
PLACES = {
    "depth_1": """
def program(x):
    x = x + 1
    USE
    return r * x
""",
    "depth_2": """
def helper(x):
    x = x - 1
    USE
    return r + x

def program(x):
    x = x + 1
    h = helper(x)
    return h * x
""",
    "loop": """
def program(x):
    for i in range(3):
        x = x + i
        USE
        x = r - 1
    return x
""",
    "with": """
class Region:
    def __enter__(self):
        LOG.append("enter")
        return self
    def __exit__(self, kind, value, trace):
        LOG.append(("exit", kind))

def program(x):
    x = x + 1
    with Region():
        x = x * 2
        USE
        r = r + x
    return r * x
""",
    "try": """
def program(x):
    x = x + 1
    try:
        x = x * 2
        USE
        r = r + x
    except ValueError:
        r = x
    finally:
        LOG.append("finally")
    return r * x
""",
}


def method(name, arguments="", after="return y", first="self.t"):
    return f"""
class Thing:
    def __init__(self, t):
        self.t = t
    def {name}(self{", " if arguments else ""}{arguments}):
        y = {first} * 2
        BREAK
        y = y + 1
        {after}
"""


FUNCTION = """
def inner(x):
    y = x * 2
    BREAK
    y = y + 1
    return y
"""
KEY = """
def key(n):
    y = X * n
    BREAK
    KEPT['last'] = y + 1
    return -n
"""
GENERATOR = """
def gen(x):
    for i in range(2):
        y = x * 2
        BREAK
        y = y + 1
        yield y
    LOG.append("done")
"""
FOR = "\n".join(["r = x", "for z in {}:", "    r = r + z"])

# Definitions, and the statements that make r of x.
KINDS = {
    "function": (FUNCTION, "r = inner(x)"),
    "init": (
        """
class Thing:
    def __init__(self, t, k=1):
        y = t * k
        BREAK
        self.y = y + 1
""",
        "r = Thing(x, k=2).y",
    ),
    "init_with_super": (
        """
class Base:
    def __init__(self, t):
        y = t * 2
        BREAK
        self.y = y + 1
class Thing(Base):
    def __init__(self, t):
        super().__init__(t + 1)
        self.z = self.y * 2
""",
        "thing = Thing(x)\nr = thing.y + thing.z",
    ),
    "new": (
        """
class Thing:
    def __new__(cls, t):
        y = t * 2
        BREAK
        self = super().__new__(cls)
        self.y = y + 1
        return self
    def __init__(self, t):
        self.z = t + 1
""",
        "thing = Thing(x)\nr = thing.y + thing.z",
    ),
    "metaclass_call": (
        """
class Meta(type):
    def __call__(cls, t):
        y = t * 2
        BREAK
        made = super().__call__(y)
        made.z = y + 1
        return made
class Thing(metaclass=Meta):
    def __init__(self, t):
        self.y = t * 2
""",
        "thing = Thing(x)\nr = thing.y + thing.z",
    ),
    "post_init": (
        """
@dataclasses.dataclass
class Thing:
    t: torch.Tensor
    k: int = 2
    def __post_init__(self):
        y = self.t * self.k
        BREAK
        self.y = y + 1
""",
        "r = Thing(x).y",
    ),
    "module_init": (
        """
class Thing(torch.nn.Module):
    def __init__(self, t):
        super().__init__()
        y = t * 2
        BREAK
        self.y = y + 1
    def forward(self, x):
        return self.y * x
""",
        "r = Thing(x)(x)",
    ),
    "property": (
        "\nclass Thing:\n    def __init__(self, t):\n        self.t = t\n    @property\n    def y(self):\n        y = self.t * 2\n        BREAK\n        return y + 1\n",
        "r = Thing(x).y",
    ),
    "property_called": (
        "\nclass Thing:\n    def __init__(self, t):\n        self.t = t\n    @property\n    def y(self):\n        y = self.t * 2\n        BREAK\n        return lambda: y + 1\n",
        "r = Thing(x).y()",
    ),
    "property_set": (
        "\nclass Thing:\n    @property\n    def y(self):\n        return self.kept\n    @y.setter\n    def y(self, t):\n        y = t * 2\n        BREAK\n        self.kept = y + 1\n",
        "thing = Thing()\nthing.y = x\nr = thing.y",
    ),
    "descriptor": (
        "\nclass Doubled:\n    def __get__(self, owner, kind=None):\n        y = owner.t * 2\n        BREAK\n        return y + 1\nclass Thing:\n    y = Doubled()\n    def __init__(self, t):\n        self.t = t\n",
        "r = Thing(x).y",
    ),
    "getattr": (method("__getattr__", "name"), "r = Thing(x).anything"),
    "getattribute": (
        """
class Thing:
    def __init__(self, t):
        self.t = t
    def __getattribute__(self, name):
        if name != "y":
            return object.__getattribute__(self, name)
        y = self.t * 2
        BREAK
        return y + 1
""",
        "r = Thing(x).y",
    ),
    "getattr_called": (method("__getattr__", "name"), 'r = getattr(Thing(x), "anything")'),
    "setattr": (
        """
class Thing:
    def __setattr__(self, name, t):
        y = t * 2
        BREAK
        object.__setattr__(self, name, y + 1)
""",
        "thing = Thing()\nthing.y = x\nr = thing.y",
    ),
    "getitem": (method("__getitem__", "i"), "r = Thing(x)[3]"),
    "setitem": (method("__setitem__", "i, v", "self.y = y + v"), "thing = Thing(x)\nthing[3] = x\nr = thing.y"),
    "delitem": (method("__delitem__", "i", "self.y = y"), "thing = Thing(x)\ndel thing[3]\nr = thing.y"),
    "len": (method("__len__", "", "self.y = y; return 2"), "thing = Thing(x)\nn = len(thing)\nr = thing.y * n"),
    "contains": (
        method("__contains__", "i", "self.y = y; return i"),
        "thing = Thing(x)\nn = 3 in thing\nm = 0 not in thing\nr = thing.y + n + m",
    ),
    "bool": (
        method("__bool__", "", "self.y = y; return False"),
        "thing = Thing(x)\nr = x\nif not thing:\n    r = thing.y",
    ),
    "bool_of_len": (
        method("__len__", "", "self.y = y; return 2"),
        "thing = Thing(x)\nr = x\nif thing:\n    r = thing.y",
    ),
    "not": (method("__bool__", "", "self.y = y; return False"), "thing = Thing(x)\nn = not thing\nr = thing.y + n"),
    "or": (method("__bool__", "", "self.y = y; return False"), "thing = Thing(x)\nr = thing or x"),
    "bool_called": (
        method("__bool__", "", "self.y = y; return False"),
        "thing = Thing(x)\nn = bool(thing)\nr = thing.y + n",
    ),
    "iter": (method("__iter__", "", "return iter([y, y])"), FOR.format("Thing(x)")),
    "next": (
        """
class Thing:
    def __init__(self, t):
        self.t, self.n = t, 0
    def __iter__(self):
        return self
    def __next__(self):
        if self.n == 2:
            raise StopIteration
        self.n += 1
        y = self.t * 2
        BREAK
        y = y + 1
        return y
""",
        FOR.format("Thing(x)"),
    ),
    "add": (method("__add__", "other"), "r = Thing(x) + 1"),
    "radd": (method("__radd__", "other"), "r = 1 + Thing(x)"),
    "iadd": (method("__iadd__", "other"), "r = Thing(x)\nr += 1"),
    "neg": (method("__neg__"), "r = -Thing(x)"),
    "less": (method("__lt__", "other"), "r = Thing(x) < 1"),
    "equal": (method("__eq__", "other"), "r = Thing(x) == 1"),
    "enter": (
        method("__enter__") + "    def __exit__(self, *args):\n        LOG.append(args)\n",
        "with Thing(x) as z:\n    r = z + 1",
    ),
    "exit": (
        method("__exit__", "*args", "self.y = y") + "    def __enter__(self):\n        return self\n",
        "with Thing(x) as thing:\n    x = x + 1\nr = thing.y + x",
    ),
    "call": (method("__call__", "k"), "r = Thing(x)(3)"),
    "hash": (
        method("__hash__", "", "self.y = y; return 3"),
        "thing = Thing(x)\nd = {thing: 1}\nr = thing.y + d[thing]",
    ),
    "sorted": (KEY, "order = sorted([1, 3, 2], key=key)\nLOG.append(order)\nr = x + KEPT['last']"),
    "sort": (KEY, "order = [1, 3, 2]\norder.sort(key=key)\nLOG.append(order)\nr = x + KEPT['last']"),
    "min": (KEY, "n = min([1, 3, 2], key=key)\nr = x * n + KEPT['last']"),
    "max": (KEY, "n = max(1, 3, 2, key=key)\nr = x * n + KEPT['last']"),
    "map": (FUNCTION, FOR.format("map(inner, [x, x + 1])")),
    "list_of_map": (FUNCTION, "a, b = list(map(inner, [x, x + 1]))\nr = a + b"),
    "filter": (KEY, "r = x + sum(filter(key, [1, 3, 2]))"),
    "reduce": (
        "\ndef inner(a, b):\n    y = a * b\n    BREAK\n    return y + 1\n",
        "r = functools.reduce(inner, [x, 2, 3])",
    ),
    "generator": (GENERATOR, FOR.format("gen(x)")),
    "generator_next": (GENERATOR, "g = gen(x)\na = next(g)\nb = next(g)\nr = a + b"),
    "generator_list": (GENERATOR, "a, b = list(gen(x))\nr = a + b"),
    "generator_tuple": (GENERATOR, "a, b = tuple(gen(x))\nr = a + b"),
    "sum_of_map": (FUNCTION, "r = sum(map(inner, [x, x + 1]), x)"),
    "filter_in_a_loop": (KEY, "r = x\nfor n in filter(key, [1, 3, 2]):\n    r = r * n + KEPT['last']"),
    "generator_unpacked": (GENERATOR, "a, b = gen(x)\nr = a + b"),
    "generator_sum": (GENERATOR, "r = sum(gen(x))"),
    "yield_from": (
        GENERATOR + "\ndef outer(x):\n    z = x + 1\n    yield from gen(z)\n    yield z\n",
        FOR.format("outer(x)"),
    ),
    "generator_calls": (
        FUNCTION + "\ndef gen(x):\n    for i in range(2):\n        z = inner(x + i)\n        yield z + 1\n",
        FOR.format("gen(x)"),
    ),
    "generator_expression": (FUNCTION, "r = sum(inner(t) for t in [x, x + 1])"),
    "list_comprehension": (FUNCTION, "r = sum([inner(t) for t in [x, x + 1]])"),
    "manager": (
        """
@contextlib.contextmanager
def manager(x):
    y = x * 2
    BREAK
    y = y + 1
    try:
        yield y
    finally:
        LOG.append("left")
""",
        "with manager(x) as z:\n    r = z + 1",
    ),
}
HEADER = "import contextlib, dataclasses, functools, os\nimport torch\nLOG, KEPT = [], {}\nX = torch.arange(1.0, 5.0)\n"


def indented(text, old, lines):
    """``text`` with each line that is ``old`` replaced by the lines at its depth."""
    out = []
    for line in text.split("\n"):
        if line.strip() == old:
            out += [line[: len(line) - len(line.lstrip())] + new for new in lines]
        else:
            out.append(line)
    return "\n".join(out)


def program(kind, what, place):
    definitions, use = KINDS[kind]
    return HEADER + indented(definitions, "BREAK", BREAKS[what]) + indented(PLACES[place], "USE", use.split("\n"))


def every():
    return itertools.product(KINDS, BREAKS, PLACES)
