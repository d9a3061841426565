# ruff: noqa
"""Functions that remember what they gave, properties that are computed once, registries, hooks, scripted functions."""

import functools
import warnings

import torch
from tests.support.registry import built, program, seeded, tensor


class Recipe:
    def __init__(self, n):
        self.n = n
        self.parts = [n, 2]


@functools.lru_cache(256)
def recipe(n):
    return Recipe(n)


@functools.lru_cache(256)
def plan(n):
    return ([n, 2], None, [], {}, None, 2)


@functools.cache
def numbers(n):
    return {i: i * i for i in range(n)}


@functools.lru_cache(maxsize=None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.cache
def names_of(pattern, kind=str):
    return frozenset(pattern.split()), kind


@functools.lru_cache(maxsize=2)
def small(n):
    return [n]


@functools.cache
def by_class(kind):
    return Recipe(len(kind.__name__))


@functools.cache
def by_dtype(dtype, device):
    return {"dtype": dtype, "device": device, "eps": torch.finfo(dtype).eps}


@program
def cached_object(x):
    return x.sin() * recipe(x.shape[0]).n + x.cos()


@program
def cached_tuple(x):
    return x.sin().reshape(plan(3)[0][0], -1) + 1


@program
def cached_dict(x):
    return x + numbers(5)[3]


@program
def cached_recursion(x):
    return x + fibonacci(20)


@program
def cached_frozenset(x):
    names, kind = names_of("b h w")
    return x + len(names) + ("h" in names)


@program
def cached_keywords(x):
    names, kind = names_of("b h w", kind=int)
    return x + kind("3")


@program
def cached_twice(x):
    return x + recipe(3).n + recipe(3).n, recipe(3) is recipe(3)


@program
def cached_by_class(x):
    return x * by_class(torch.nn.Linear).n


@program
def cached_by_dtype(x):
    return x * by_dtype(x.dtype, x.device)["eps"]


@program
def cached_changed_by_program(x):
    r = recipe(17)
    y = x + len(r.parts)
    return y * 2


@program(breaks=True)
def cached_list_evicted(x):
    a, b, c = small(1), small(2), small(3)
    return x + a[0] + b[0] + c[0], small(1) is a


@built(breaks=True)
def cached_info():
    @functools.cache
    def f(n):
        return [n]

    def g(x):
        y = x + f(1)[0] + f(1)[0] + f(2)[0]
        return y, tuple(f.cache_info())

    return g


@built(graphs=3)
def cached_and_returned():
    @functools.cache
    def f(n):
        return Recipe(n)

    seen = []

    def g(x):
        r = f(4)
        seen.append(r)
        return x + r.n, all(s is seen[0] for s in seen)

    return g


@built(graphs=3, breaks=True)
def cached_cleared():
    @functools.lru_cache
    def f(n):
        return [n]

    def g(x):
        a = f(1)
        f.cache_clear()
        return x + a[0], f(1) is a

    return g


@built(graphs=2)
def cached_and_written():
    @functools.cache
    def state(name):
        return {"calls": 0}

    def g(x):
        s = state("a")
        s["calls"] += 1
        return x + s["calls"]

    return g


class Shape:
    def __init__(self, n):
        self.n = n
        self.asked = 0

    @functools.cached_property
    def area(self):
        self.asked += 1
        return self.n * self.n

    @functools.cached_property
    def table(self):
        return {"n": self.n, "rows": [self.n] * 2}

    @functools.lru_cache
    def scaled(self, k):
        return (self.n * k, [k])


@built
def cached_property_inside():
    def g(x):
        s = Shape(3)
        return x + s.area + s.area + s.table["n"], s.asked

    return g


@built(graphs=2)
def cached_property_outside():
    s = Shape(3)

    def g(x):
        return x + s.area + s.table["rows"][1], s.asked

    return g


@built
def cached_method():
    s = Shape(3)

    def g(x):
        a, b = s.scaled(2)
        return x + a + b[0]

    return g


@built(graphs=3, breaks=True)
def cached_method_of_module():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        @functools.lru_cache(maxsize=8)
        def mask_sizes(self, n):
            return [n, n]

        @functools.cached_property
        def scale(self):
            return self.linear.in_features**-0.5

        def forward(self, x):
            return self.linear(x) * self.scale + len(self.mask_sizes(x.shape[0]))

    return seeded(Net)


REGISTRY = {}


def register(name):
    def wrap(f):
        REGISTRY[name] = f
        return f

    return wrap


@register("double")
def double(x):
    return x * 2


@register("relu")
class Relu(torch.nn.Module):
    def forward(self, x):
        return x.relu()


@program
def registry_of_functions(x):
    return REGISTRY["double"](x) + REGISTRY.get("none", double)(x)


@program
def registry_of_classes(x):
    return REGISTRY["relu"]()(x)


@program
def registry_by_type(x):
    handlers = {torch.Tensor: lambda v: v + 1, int: lambda v: v, type(None): lambda v: 0}
    return handlers[type(x)](x) + handlers[type(None)](None)


@program
def registry_asked_for_names(x):
    return x + len(sorted(n for n, f in REGISTRY.items() if callable(f)))


@functools.singledispatch
def size_of(v):
    return 0


@size_of.register
def _(v: int):
    return v


@size_of.register(torch.Tensor)
def _(v):
    return v.numel()


@program
def single_dispatch(x):
    return x + size_of(x) + size_of(3) + size_of("a")


@program(graphs=2, breaks=True)
def subclasses_counted(x):
    return x.sin() * len(Recipe.__subclasses__()) + 1


@program
def version_compared(x):
    return x.sin() if torch.__version__ >= "2.8" else x


@program
def version_split(x):
    return x + (tuple(int(p) for p in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 8))


@program
def backend_flag(x):
    y = x.sin()
    return y + 1 if torch.backends.mkldnn.enabled else y


@program
def legacy_new(x):
    return x.new(*x.size()).fill_(1.0) + x


with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def scripted(x: torch.Tensor, k: int):
        return x.sin() * k

    @torch.jit.script
    def scripted_pair(x: torch.Tensor):
        return x + 1, x.cos()

    @torch.jit.script
    def scripted_default(x: torch.Tensor, scale: float = 2.0, add: bool = True):
        if add:
            return x * scale + 1
        return x * scale

    @torch.jit.script
    def scripted_list(xs: list[torch.Tensor]):
        return torch.cat(xs)


@program
def scripted_function(x):
    return scripted(x + 1, 2) + 1


@program
def scripted_two_results(x):
    a, b = scripted_pair(x)
    return a * b


@program
def scripted_keywords(x):
    return scripted_default(x, add=False) + scripted_default(x, scale=3.0)


@program
def scripted_of_list(x):
    return scripted_list([x, x + 1])


@program
def scripted_trains(x):
    return scripted(x, 3).sum()


@built(breaks=True)
def scripted_module():
    def make():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.jit.script(torch.nn.Linear(4, 4))

    m = seeded(make)
    return lambda x: m(x) + 1


@built(breaks=True)
def traced_module():
    def make():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.jit.trace(torch.nn.Linear(4, 4), tensor())

    m = seeded(make)
    return lambda x: m(x) + 1


@built
def twelve_hooked_layers():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.linear.register_forward_hook(lambda m, a, o: o + 1)

        def forward(self, x):
            return self.linear(x)

    return seeded(lambda: torch.nn.Sequential(*[Block() for _ in range(12)]))


@program(graphs=2, breaks=True)
def fork_rng(x):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        y = torch.rand(3, 4)
    return x + y + torch.rand(3, 4)


@program(graphs=2, breaks=True)
def fork_rng_of_no_devices(x):
    with torch.random.fork_rng(devices=[]):
        y = torch.rand(4)
    return x + y
