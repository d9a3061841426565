"""Programs that nobody would write: random ones and those of tests/programs, changed at random places of their source.

    mutate.py --count 20000 [--first SEED] [--jobs 2] [--keep FOLDER] [--time-limit SECONDS]
    mutate.py --show SEED

What a changed program does is nobody's intention, but it is the same eagerly and compiled: no signal, no error of our own, no hang, no difference.
Most changes sit in a `try` that writes down what was raised, since outside of one an exception sends the frame back to CPython.
"""

import argparse
import ast
import builtins
import copy
import random
import sys
import warnings

from tests.random import campaign, generate, originals


def rows(text):
    return [row.strip().replace("\\n", "\n") for row in text.split("|")]


CONSTANTS = rows(
    """None | True | False | ... | NotImplemented | 0 | -1 | 1 | 2 | 3 | 7 | -5 | 2**31 | 2**63 | -2**63-1 | 2**64 | 10**30 | 0.0 | -0.0 | 0.5 | 1.5 | -2.5 | 1e308 | 1e-320
    | float('nan') | float('inf') | -float('inf') | 1j | 'a' | '' | 'abc' | 'é' | '%s' | '{}' | b'' | b'ab' | () | (1,) | (1, 2) | [] | [1] | [1, 2] | {} | {'a': 1} | set()
    | {1, 2} | frozenset({1}) | range(3) | range(0) | slice(None) | object | list | dict | int | type | Exception | len | print | iter([1]) | (i * i for i in range(3))
    | lambda: 1 | lambda x: x | lambda *a, **k: a"""
)
ATTRIBUTES = rows(
    """__class__ | __dict__ | __doc__ | __name__ | __module__ | __init__ | __call__ | __len__ | __iter__ | __next__ | __eq__ | __hash__ | __getitem__ | __contains__ | __add__
    | __self__ | __func__ | __qualname__ | __mro__ | __bases__ | __slots__ | __code__ | __closure__ | __defaults__ | append | extend | pop | items | keys | values | get | update
    | copy | clear | add | remove | discard | insert | index | count | sort | reverse | setdefault | popitem | union | intersection | shape | dtype | T | real | imag | grad | data
    | sum | mean | size | dim | view | name | value | args"""
)
WRAPS = rows(
    """list({}) | tuple({}) | set({}) | dict({}) | frozenset({}) | iter({}) | next(iter({})) | sorted({}) | reversed({}) | enumerate({}) | len({}) | str({}) | repr({}) | bool({})
    | int({}) | float({}) | type({}) | hash({}) | vars({}) | dir({})[-1] | callable({}) | super(type({0}), {0}) | ({}).__class__ | ({})[0] | ({})[-1] | ({})[::-1] | ({})[None]
    | ({},) | [{}] | {{{}}} | {{'k': {}}} | [*{}] | (*{},) | {{**{}}} | -({}) | ~({}) | not({}) | ({})() | ({})(1) | (lambda: {})() | (lambda *a: a)(*{}) | dict(**{}) | min({})
    | max({}) | sum({}) | any({}) | all({}) | abs({}) | round({}) | zip({0}, {0}) | map(str, {}) | filter(None, {}) | isinstance({}, (int, list)) | getattr({}, 'shape', None)
    | setattr({}, 'zz', 1) | f'{{{}}}' | ({0}) is ({0}) | ({0}) == ({0}) | ({0}) + ({0}) | ({0}) in ({0}) | ({}) @ 1 | [z for z in {}] | {{z: z for z in {}}} | (yield {})
    | (yield from {}) | (w := {})"""
)
DECORATORS = rows(
    """property | staticmethod | classmethod | functools.cache | functools.lru_cache | functools.cached_property | contextlib.contextmanager | torch.no_grad()
    | functools.total_ordering | dataclasses.dataclass | dataclasses.dataclass(frozen=True) | abc.abstractmethod | list | print"""
)
BASES = rows(
    """object | list | dict | set | tuple | int | str | float | frozenset | bytes | type | Exception | KeyError | StopIteration | collections.OrderedDict | collections.defaultdict
    | collections.deque | collections.Counter | collections.UserDict | collections.abc.Mapping | abc.ABC | typing.Generic | typing.NamedTuple | enum.Enum | torch.nn.Module
    | torch.Tensor | bool | None | 5 | len | property | types.SimpleNamespace"""
)
METACLASSES = rows(
    """type | abc.ABCMeta | object | 5 | lambda *a, **k: 7 | lambda name, bases, space: type(name, bases, dict(space)) | enum.EnumMeta | print | dict"""
)
DUNDERS = rows(
    """hash | eq | ne | lt | gt | len | iter | next | bool | getattr | getattribute | setattr | delattr | init | new | call | contains | getitem | setitem | delitem | missing | add
    | radd | iadd | mul | rmul | sub | neg | abs | matmul | rmatmul | enter | exit | repr | str | format | index | int | float | init_subclass | set_name | class_getitem | prepare
    | mro_entries | instancecheck | subclasscheck | get | set | delete | del | reduce | copy | deepcopy | reversed | length_hint | dir | torch_function | match_args | annotations
    | doc | module | qualname | name | dict | weakref | class | abstractmethods | orig_bases"""
)
MEMBERS = rows(
    """None | 5 | 'a' | () | NotImplemented | lambda: 1 | lambda self: 5 | lambda self: None | lambda self: self | lambda self: 'a' | lambda self: -1 | lambda self: 2**70
    | lambda self, *a: NotImplemented | lambda self, *a: a | lambda self, *a: True | lambda self, *a: 5 | lambda self, *a, **k: None | lambda self, *a: self
    | lambda self: iter([1, 2]) | lambda self: 1 / 0 | lambda self, *a: [][0] | lambda self, *a: {}['k'] | lambda cls, *a, **k: object.__new__(cls) | lambda self, *a: super().zz
    | staticmethod(lambda *a: 3) | classmethod(lambda cls, *a: cls) | property(lambda self: 4) | property() | [] | {} | int | len"""
)
ODD_MEMBERS = rows(
    """__classcell__ = 42 | __classcell__ = None | __slots__ = ('a', 'b') | __slots__ = 'x' | __slots__ = () | __slots__ = None | __slots__ = 5 | __slots__ = ('x', 'x')
    | __slots__ = ('__dict__',) | __slots__ = ('1a',) | __slots__ = {'a': 'doc'} | __slots__ = ('__weakref__',) | __class__ = None | __class__ = int
    | __class__ = property(lambda self: int) | def f(self): return __class__ | def __init_subclass__(cls, **k): cls.zz = 1 | def __class_getitem__(cls, k): return k
    | def __set_name__(self, o, n): self.n = n | zz = locals() | del __module__ | global G_Z; G_Z = 5 | def __eq__(self, o): return True | x = property(lambda self: 1) | shape = 3
    | __dict__ = {} | locals()['y'] = 1 | f = lambda self: super().__init__() | return_ = [i for i in range(3)] | def __getattr__(self, n): raise AttributeError(n) | mro = None
    | def __getattr__(self, n): return self.zz | def __len__(self): return 0 | def __bool__(self): return False | mro = lambda cls: [cls, object] | mro = lambda cls: type.mro(cls)"""
)
STATEMENTS = rows(
    """raise | raise 5 | raise None | raise ValueError | raise ValueError('a') from 5 | raise KeyError('k') from None | raise StopIteration | raise GeneratorExit
    | raise type('E', (Exception,), {{}}) | raise ExceptionGroup('g', [ValueError(1)]) | return | return None | return 5 | return NotImplemented | break | continue | yield | yield 1
    | yield from (1, 2) | pass | assert False | assert 0, 'm' | 1 / 0 | [][0] | {{}}['k'] | None.x | print('p') | del {0} | {0} = {1} | {0} += {1} | {0}, {1} = {1}, {0}
    | {0}, *{1} = {1} | {0}[0] = {1} | {0}['a'] = {1} | {0}.zz = {1} | del {0}.zz | del {0}[0] | {0}.__class__ = type({1}) | {0}.__dict__['zz'] = {1} | {0}.append({1})
    | {0}.update({1}) | {0}.extend({1} for _ in range(2)) | {0}.add({1}) | {0}.__init__({1}) | {0}.__init__() | vars({0})['x'] = {1} | global {0} | nonlocal {0}
    | for {0} in {1}: pass | for _ in {0}: {1} = _ | with {0}: pass | with {0} as {1}: pass | import math as {0} | {0}: int = {1} | locals()['{0}'] = 5 | exec('{0} = 1')
    | while {0}: break | async def g(): await {0} | class {0}: x = {1} | class ZZ({0}): pass | class ZZ(type({0})): x = {1} | class ZZ(metaclass={0}): pass | def {0}(): return {1}
    | def zz(): nonlocal {0}; {0} = {1} | match {0}:\\n    case [a, *b]: pass\\n    case {{'a': c}}: pass\\n    case int(): pass | {0} = [{0} for {0} in {1}] | {0} = lambda: {1}
    | {0} = type({0}) | {0} = super() | {0} = {0}.{1} | (z := {0}) | lambda: (yield) | {0} @= {1} | {0} = {0} if {1} else None | assert {0} == {1} | {0} is {1} | {0} in {1}
    | type({0})({1}) | {0}.__dict__ | dict.__setitem__({0}, 'a', {1}) | object.__setattr__({0}, 'x', {1}) | set.add({0}, {1}) | type({0}).zz = {1}
    | type({0}).__len__ = lambda self: 3 | del type({0}).zz | {0}.__setattr__('zz', {1}) | list.append({0}, {1}) | type.__call__(type({0})) | type('T', (type({0}),), {{}})
    | type.__new__(type, 'T', ({1},), {{}})"""
)
SHELLS = rows(
    r"""try:\n    S\nfinally:\n    return {0} | try:\n    S\nexcept {1}:\n    pass | try:\n    S\nexcept Exception:\n    raise ValueError from None
    | try:\n    S\nexcept* Exception as z:\n    pass | try:\n    S\nexcept Exception as z:\n    {0} = z | for _ in range(2):\n    S | with contextlib.suppress(Exception):\n    S
    | with torch.no_grad():\n    S | if {0}:\n    S | while True:\n    S\n    break | def zz():\n    S\nzz() | def zz():\n    S\n    yield 1\nlist(zz()) | class ZZ:\n    S
    | try:\n    S\nfinally:\n    {0} = 1 | for _ in {0}:\n    S | async def zz():\n    S\nzz().send(None) | try:\n    pass\nexcept KeyError:\n    pass\nelse:\n    S\nfinally:\n    del {0} | with {0}:\n    S"""
)
NOTED = "try:\n    S\nexcept Exception as error:\n    ERRORS.append((type(error).__name__, str(error)))"
KEPT = ("inputs", "between", "tensor", "leaf", "seeded")
IMPORTS = "import abc, collections, collections.abc, contextlib, copy, dataclasses, enum, functools, itertools, types, typing\nimport torch\nERRORS = []"


class Program:
    """A tree and the places in it that may be changed."""

    def __init__(self, text, r):
        self.tree = ast.parse(text)
        self.random = r
        is_kept = lambda s: getattr(s, "name", "") in KEPT or isinstance(s, (ast.Import, ast.ImportFrom))  # noqa: E731
        self.kept = [s for s in self.tree.body if is_kept(s)]
        self.tree.body = [s for s in self.tree.body if s not in self.kept]

    def text(self):
        tree = copy.deepcopy(self.tree)
        tree.body = ast.parse(IMPORTS).body + self.kept + tree.body
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"

    def roots(self):
        """Functions and classes; not what a module does when it is loaded, which is the same on both sides."""
        return [s for s in self.tree.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]

    def nodes(self, kinds):
        return [n for root in self.roots() for n in ast.walk(root) if isinstance(n, kinds)]

    def function(self):
        """What is compiled, or makes it."""
        return self.roots()[-1]

    def any(self, kinds):
        found = [n for n in ast.walk(self.function()) if isinstance(n, kinds)] if self.random.random() < 0.6 else []
        found = found or self.nodes(kinds)
        return self.random.choice(found) if found else None

    def bodies(self, only=None):
        """Lists of statements inside functions."""
        found = []
        for function in [only] if only else self.nodes((ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                for field in ("body", "orelse", "finalbody"):
                    body = getattr(node, field, None)
                    if (
                        isinstance(body, list)
                        and body
                        and isinstance(body[0], ast.stmt)
                        and not any(body is b for b in found)
                    ):
                        found.append(body)
        return found

    def place(self):
        """A statement of a function: its list, and where."""
        found = self.bodies(self.function()) if self.random.random() < 0.6 else self.bodies()
        if not found:
            return None, 0
        body = self.random.choice(found)
        return body, self.random.randrange(len(body))

    def expression(self):
        """(owner, field, index) of an expression that is read."""
        found = []
        for root in [self.function()] if self.random.random() < 0.6 else self.roots():
            for owner in ast.walk(root):
                for field, value in ast.iter_fields(owner):
                    for i, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                        if (
                            isinstance(node, ast.expr)
                            and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
                            and not isinstance(owner, (ast.FormattedValue, ast.JoinedStr, ast.pattern))
                            and field not in ("decorator_list", "annotation", "returns")
                        ):
                            found.append((owner, field, i))
        return self.random.choice(found) if found else None

    def read(self, place):
        owner, field, i = place
        return getattr(owner, field) if i is None else getattr(owner, field)[i]

    def write(self, place, node):
        owner, field, i = place
        if i is None:
            setattr(owner, field, node)
        else:
            getattr(owner, field)[i] = node

    def names(self, most=2):
        """Names of variables, those of functions first."""
        found = [n.id for n in self.nodes(ast.Name)] + [a.arg for a in self.nodes(ast.arg)]
        found = [n for n in found if n not in dir(builtins) and n not in ("torch", "nn", "F", "ERRORS")] or ["x"]
        return [self.random.choice(found) for _ in range(most)]

    def attribute(self):
        own = [n.attr for n in self.nodes(ast.Attribute)] + [n.name for n in self.nodes((ast.FunctionDef,))]
        return self.random.choice(own) if own and self.random.random() < 0.6 else self.random.choice(ATTRIBUTES)

    def value(self):
        """An expression: odd, a name, or one from elsewhere in the program."""
        chance = self.random.random()
        if chance < 0.55:
            return parsed(self.random.choice(CONSTANTS))
        if chance < 0.8:
            return ast.Name(self.names(1)[0], ast.Load())
        place = self.expression()
        return copy.deepcopy(self.read(place)) if place else ast.Constant(None)


def parsed(text):
    return ast.parse(text, mode="eval").body


MUTATIONS = []


def mutation(weight):
    """Registers a function that changes a program, or gives False where it has no place for it."""

    def register(function):
        MUTATIONS.append((weight, function))
        return function

    return register


@mutation(8)
def change_constant(p):
    node = p.any(ast.Constant)
    place = next(
        (
            (o, f, i)
            for root in p.roots()
            for o in ast.walk(root)
            for f, v in ast.iter_fields(o)
            for i, n in (enumerate(v) if isinstance(v, list) else [(None, v)])
            if n is node
        ),
        None,
    )
    if place is None or isinstance(place[0], (ast.JoinedStr, ast.FormattedValue, ast.MatchValue, ast.MatchMapping)):
        return False
    p.write(place, parsed(p.random.choice(CONSTANTS)))


@mutation(8)
def replace_expression(p):
    place = p.expression()
    if place is None:
        return False
    p.write(place, p.value())


@mutation(10)
def wrap_expression(p):
    place = p.expression()
    if place is None:
        return False
    inner = ast.unparse(p.read(place))
    p.write(place, parsed(p.random.choice(WRAPS).format(inner)))


@mutation(5)
def rename_attribute(p):
    node = p.any(ast.Attribute)
    if node is None:
        return False
    node.attr = p.attribute()


@mutation(4)
def rename_variable(p):
    node = p.any(ast.Name)
    if node is None:
        return False
    node.id = (
        p.names(1)[0]
        if p.random.random() < 0.7
        else p.random.choice(["list", "dict", "len", "sum", "type", "super", "print", "__class__", "self", "x"])
    )


@mutation(5)
def change_operator(p):
    node = p.any((ast.BinOp, ast.AugAssign, ast.Compare, ast.BoolOp, ast.UnaryOp))
    if node is None:
        return False
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        node.op = p.random.choice(
            [
                ast.Add,
                ast.Sub,
                ast.Mult,
                ast.Div,
                ast.FloorDiv,
                ast.Mod,
                ast.MatMult,
                ast.BitAnd,
                ast.BitOr,
                ast.BitXor,
                ast.LShift,
                ast.RShift,
                ast.Pow,
            ]
        )()
    elif isinstance(node, ast.Compare):
        node.ops[0] = p.random.choice(
            [ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn]
        )()
    elif isinstance(node, ast.BoolOp):
        node.op = p.random.choice([ast.And, ast.Or])()
    else:
        node.op = p.random.choice([ast.Not, ast.USub, ast.UAdd, ast.Invert])()


@mutation(6)
def change_call(p):
    node = p.any(ast.Call)
    if node is None:
        return False
    r = p.random
    way = r.randrange(9)
    if way == 0 and node.args:
        del node.args[r.randrange(len(node.args))]
    elif way == 1 and node.keywords:
        del node.keywords[r.randrange(len(node.keywords))]
    elif way == 2:
        node.args.insert(r.randint(0, len(node.args)), p.value())
    elif way == 3 and len(node.args) > 1:
        r.shuffle(node.args)
    elif way == 4 and node.keywords:
        node.keywords[0].arg = r.choice(["key", "default", "x", "self", "dim"])
    elif way == 5:
        node.args.append(ast.Starred(p.value(), ast.Load()))
    elif way == 6:
        node.keywords.append(ast.keyword(None, p.value()))
    elif way == 7:
        node.keywords.append(
            ast.keyword(r.choice(["key", "default", "x", "self", "dim", "reverse", "maxlen", "strict"]), p.value())
        )
    elif way == 8 and node.args:  # a method through its class
        if not isinstance(node.func, ast.Attribute):
            return False
        node.args.insert(0, node.func.value)
        node.func = ast.Attribute(
            parsed(
                r.choice(
                    [
                        "list",
                        "dict",
                        "set",
                        "collections.OrderedDict",
                        "collections.deque",
                        "object",
                        "type",
                        f"type({ast.unparse(node.func.value)})",
                    ]
                )
            ),
            node.func.attr,
            ast.Load(),
        )
    else:
        return False


@mutation(3)
def change_parameters(p):
    node = p.any((ast.FunctionDef, ast.Lambda))
    if node is None or getattr(node, "name", "") == "fn":
        return False
    a, r = node.args, p.random
    way = r.randrange(6)
    if way == 0 and a.args and not a.defaults:
        a.args.pop()
    elif way == 1:
        a.args.append(ast.arg("extra"))
        a.defaults.append(p.value())
    elif way == 2 and a.defaults:
        a.defaults[r.randrange(len(a.defaults))] = p.value()
    elif way == 3:
        a.vararg = None if a.vararg else ast.arg("rest")
    elif way == 4:
        a.kwarg = None if a.kwarg else ast.arg("named")
    elif way == 5 and a.args and not a.defaults:
        a.kwonlyargs.append(a.args.pop())
        a.kw_defaults.append(r.choice([None, p.value()]))
    else:
        return False


@mutation(10)
def odd_statement(p):
    body, i = p.place()
    if body is None:
        return False
    new = ast.parse(p.random.choice(STATEMENTS).format(*p.names())).body
    if p.random.random() < 0.7:
        new = note(new)
    body[i : i + (p.random.random() < 0.2)] = new


def note(statements):
    """In a try that writes down what was raised."""
    shell = ast.parse(NOTED).body[0]
    shell.body = statements
    return [shell]


@mutation(8)
def note_errors(p):
    body, i = p.place()
    if body is None or isinstance(body[i], (ast.Nonlocal, ast.Global)):
        return False
    body[i : i + 1] = note(body[i : i + 1])


@mutation(5)
def move_statements(p):
    body, i = p.place()
    if body is None:
        return False
    r = p.random
    way = r.randrange(4)
    if way == 0 and len(body) > 1:
        del body[i]
    elif way == 1:
        body.insert(r.randint(0, len(body)), copy.deepcopy(body[i]))
    elif way == 2 and len(body) > 1:
        other = r.randrange(len(body))
        body[i], body[other] = body[other], body[i]
    elif way == 3:
        target, j = p.place()
        target.insert(j, copy.deepcopy(body[i]))
    else:
        return False


@mutation(5)
def shell_around(p):
    body, i = p.place()
    if body is None:
        return False
    new = ast.parse(p.random.choice(SHELLS).format(*p.names()))
    for node in ast.walk(new):
        for field in ("body", "orelse"):
            inner = getattr(node, field, None)
            if (
                isinstance(inner, list)
                and inner
                and isinstance(inner[0], ast.Expr)
                and isinstance(inner[0].value, ast.Name)
                and inner[0].value.id == "S"
            ):
                inner[0:1] = [body[i]]
                body[i : i + 1] = new.body
                return None
    return False


@mutation(8)
def odd_member(p):
    node = p.any(ast.ClassDef)
    if node is None:
        return False
    r = p.random
    if r.random() < 0.7:
        name = r.choice(DUNDERS)
        text = f"__{name}__ = {r.choice(MEMBERS)}"
    else:
        text = r.choice(ODD_MEMBERS)
    node.body[(at := r.randint(0, len(node.body))) : at] = ast.parse(text).body


@mutation(4)
def odd_bases(p):
    node = p.any(ast.ClassDef)
    if node is None:
        return False
    r = p.random
    way = r.randrange(5)
    if way == 0:
        node.bases = [parsed(r.choice(BASES))]
    elif way == 1:
        node.bases.append(parsed(r.choice(BASES)))
    elif way == 2:
        node.keywords = [ast.keyword("metaclass", parsed(r.choice(METACLASSES)))]
    elif way == 3:
        node.keywords.append(ast.keyword("flag", p.value()))
    elif node.bases:
        node.bases = node.bases[1:] or node.bases * 2


@mutation(3)
def change_decorators(p):
    node = p.any((ast.FunctionDef, ast.ClassDef))
    if node is None or getattr(node, "name", "") == "fn":
        return False
    if node.decorator_list and p.random.random() < 0.5:
        node.decorator_list.pop()
    else:
        node.decorator_list.append(parsed(p.random.choice(DECORATORS)))


@mutation(5)
def move_inside(p):
    """A class or function of the module is made by the captured code."""
    fn = p.function()
    outside = [s for s in p.roots() if s is not fn]
    if not outside:
        return False
    fn.body[0:0] = note([copy.deepcopy(p.random.choice(outside))])


@mutation(2)
def exchange(p):
    first, second = p.expression(), p.expression()
    if first is None or second is None:
        return False
    a, b = copy.deepcopy(p.read(first)), copy.deepcopy(p.read(second))
    p.write(first, b)
    p.write(second, a)


def is_program(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "program", "exec")
        except (SyntaxError, ValueError, RecursionError):
            return False
    return True


def note_all(p):
    """Every statement of the function goes on after an error."""
    for function in [p.function(), *[n for n in ast.walk(p.function()) if isinstance(n, ast.FunctionDef)]][:3]:
        function.body = [
            s
            for old in function.body
            for s in ([old] if isinstance(old, (ast.Global, ast.Nonlocal, ast.Try)) else note([old]))
        ]


def mutated(seed):
    """The program of a seed."""
    r = random.Random(f"mutated {seed}")
    original = generate.program(seed) if r.random() < 0.4 else originals.draw(r)
    p = Program(original, r)
    if r.random() < 0.5:
        move_inside(p)
    text = p.text()
    wanted = r.choice([1, 1, 2, 2, 3, 4, 6])
    for _ in range(60):
        if not wanted:
            break
        before = copy.deepcopy(p.tree)
        change = r.choices([m for _, m in MUTATIONS], weights=[w for w, _ in MUTATIONS])[0]
        try:
            now = "" if change(p) is False else p.text()
        except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError):  # a tree that has no text
            now = ""
        if now in ("", text) or not is_program(now):
            p.tree = before
            continue
        text, wanted = now, wanted - 1
    if r.random() < 0.7:
        note_all(p)
        text = p.text()
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    campaign.add_options(parser)
    parser.add_argument("--show", type=int, help="print the program of a seed")
    options = parser.parse_args()
    if options.show is not None:
        print(mutated(options.show))
        return 0
    return campaign.run_campaign(options, "mutated", mutated)


if __name__ == "__main__":
    sys.exit(main())
