"""Random object graphs, a function that reads some of them, and random changes between calls: compiled gives what eager gives."""

import collections
import random
import types

import cutaway
import pytest
import torch

pytestmark = pytest.mark.usefixtures("fresh_capture")


class Slotted:
    __slots__ = ("a", "b", "c")


class Base:
    a = 1.5
    b = 7


class Thing(Base):
    pass


class Other(Base):
    a = 2.5

    @property
    def c(self):
        return 4


NAMES = ("a", "b", "c")


class World:
    """An object graph, paths into it, and changes of it."""

    def __init__(self, random_):
        self.random = random_
        self.root = types.SimpleNamespace()
        self.nodes = []
        for name in NAMES:
            setattr(self.root, name, self.value(0))
        self.nodes.append(self.root)

    def leaf(self):
        return self.random.choice(
            [
                0,
                1,
                2,
                5,
                True,
                False,
                1.0,
                0.5,
                -0.0,
                None,
                "x",
                "xy",
                (1, 2),
                (1, 2.0),
                torch.full((2,), float(self.random.randrange(9))),
                torch.zeros(2, dtype=torch.float64),
                torch.ones(3),
            ]
        )

    def value(self, depth):
        kinds = ["leaf"] * (2 + depth) + [
            "dict",
            "ordered",
            "list",
            "tuple",
            "thing",
            "other",
            "slots",
            "module",
            "default",
        ]
        kind = self.random.choice(kinds) if depth < 3 else "leaf"
        if kind == "leaf":
            return self.leaf()
        if kind == "tuple":
            return tuple(self.value(depth + 1) for _ in range(3))
        if kind == "list":
            made = [self.value(depth + 1) for _ in range(3)]
        elif kind in ("dict", "ordered", "default"):
            made = {"dict": dict, "ordered": collections.OrderedDict, "default": lambda: collections.defaultdict(int)}[
                kind
            ]()
            for name in NAMES:
                made[name] = self.value(depth + 1)
        else:
            made = {"thing": Thing, "other": Thing, "slots": Slotted, "module": torch.nn.Module}[kind]()
            for name in NAMES:
                if self.random.random() < 0.8:
                    self.set(made, name, self.value(depth + 1))
        self.nodes.append(made)
        return made

    def set(self, node, name, value):
        try:
            setattr(node, name, value)
        except (AttributeError, TypeError):
            pass

    def path(self):
        """An expression that reads something, or says that it is not there."""
        text = "w"
        for _ in range(self.random.randint(1, 4)):
            text = f"step({text}, {self.random.randrange(3)})"
        return self.random.choice(
            [
                "mix(x, {0})",
                "mix(x, {0})",
                "x + count({0})",
                "x * truth({0})",
                "mix(x, first({0}))",
                "x + has({0}, 'c')",
                "x + order({0})",
            ]
        ).format(text)

    def change(self):
        node, name, r = self.random.choice(self.nodes), self.random.choice(NAMES), self.random
        fresh = self.value(2)
        if isinstance(node, list):
            r.choice(
                [
                    lambda: node.__setitem__(r.randrange(max(len(node), 1)), fresh) if node else None,
                    lambda: node.append(fresh),
                    lambda: node.pop() if node else None,
                    node.reverse,
                ]
            )()
        elif isinstance(node, dict):
            actions = [
                lambda: node.__setitem__(name, fresh),
                lambda: node.pop(name, None),
                lambda: node.update({name: node.pop(name, 0)}),
            ]
            if isinstance(node, collections.OrderedDict) and name in node:
                actions.append(lambda: node.move_to_end(name, last=r.random() < 0.5))
            r.choice(actions)()
        else:
            actions = [lambda: self.set(node, name, fresh), lambda: getattr(node, "__dict__", {}).pop(name, None)]
            if type(node) in (Thing, Other):
                actions += [
                    lambda: setattr(node, "__class__", r.choice([Thing, Other])),
                    lambda: setattr(node, "__dict__", dict(node.__dict__)),
                ]
                actions.append(lambda: setattr(Base, "b", r.choice([7, 8])))
            if isinstance(node, Slotted):
                actions.append(lambda: hasattr(node, name) and delattr(node, name))
            r.choice(actions)()


def step(node, i):
    if isinstance(node, (list, tuple)):
        return node[i] if i < len(node) else None
    if isinstance(node, dict):
        return node[NAMES[i]] if NAMES[i] in node else "gone"
    if isinstance(node, (int, float, str, torch.Tensor)) or node is None:
        return node
    return getattr(node, NAMES[i], "missing")


def mix(x, value):
    if isinstance(value, torch.Tensor):
        return x + value.sum().to(x.dtype)
    if isinstance(value, bool):
        return x - 1 if value else x * 3
    if isinstance(value, (int, float)):
        return x * value + 1 / (value or -0.5)
    if isinstance(value, str):
        return x + len(value)
    if isinstance(value, tuple):
        return x - len(value)
    return x * 0.5 if value is None else x + 100


def count(node):
    return len(node) if isinstance(node, (list, tuple, dict, str)) else 1


def truth(node):
    return 2 if not isinstance(node, torch.Tensor) and node else 3


def first(node):
    if isinstance(node, dict):
        for value in node.values():
            return value
    return step(node, 0)


def has(node, name):
    return 1 if (name in node if isinstance(node, (dict, str)) else hasattr(node, name)) else 2


def order(node):
    total = 0
    if isinstance(node, dict):
        for key in node:
            total = total * 3 + len(key) + NAMES.index(key)
    return total


def same(a, b):
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
    return type(a) is type(b) and a == b


def outcome(function, x, word):
    try:
        return function(x, word)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("seed", range(40))
def test_random_changes(seed):
    check(seed, 25)


def check(seed, changes):
    world = World(random.Random(seed))
    lines = [f"    x = {world.path()}" for _ in range(3)]
    # Entries that differ by the word are checked in vain half-way through the others' objects.
    lines.insert(world.random.randrange(4), "    x = x * len(word)")
    names = {**globals(), "w": world.root}
    source = "def function(x, word):\n" + "\n".join(lines) + "\n    return x\n"
    exec(source, names)
    function = names["function"]
    compiled = cutaway.compile(function, backend="eager")
    x = torch.ones(2, dtype=torch.float64)
    before = Base.b
    try:
        with cutaway.options(cache_size_limit=100):
            for number in range(changes):
                for again in range(4):
                    word = world.random.choice(("one", "two", "three"))
                    expected, got = outcome(function, x, word), outcome(compiled, x, word)
                    assert same(got, expected), (
                        f"seed {seed}, change {number}, call {again}: {got}, eager {expected}\n{source}"
                    )
                world.change()
    finally:
        Base.b = before
