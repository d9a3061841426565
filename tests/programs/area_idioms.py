# ruff: noqa
"""Idioms of model code: attention, caches, masks, configuration objects, registries, loops over layers, state kept between calls."""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import typing

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, tensor
from torch import nn


@dataclasses.dataclass
class Output(collections.OrderedDict):
    logits: typing.Any = None
    hidden: typing.Any = None

    def __post_init__(self):
        for f in dataclasses.fields(self):
            v = getattr(self, f.name)
            if v is not None:
                self[f.name] = v

    def to_tuple(self):
        return tuple(self[k] for k in self)


@program
def model_output(x):
    o = Output(logits=x + 1)
    return o["logits"] + o.logits, len(o), o.to_tuple()[0]


@program
def attention(x):
    q, k, v = (x @ torch.ones(4, 4) * s for s in (0.1, 0.2, 0.3))
    w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
    return w @ v


class Cache:
    def __init__(self):
        self.k = []

    def update(self, t):
        self.k.append(t)
        return torch.cat(self.k, dim=0)


@program
def cache_object(x):
    c = Cache()
    for i in range(3):
        y = c.update(x * i)
    return y, len(c.k)


REGISTRY = {}


def register(name):
    def wrap(f):
        REGISTRY[name] = f
        return f

    return wrap


@register("double")
def double(x):
    return x * 2


@register("square")
def square(x):
    return x * x


@program
def registry_lookup(x):
    for name in sorted(REGISTRY):
        x = REGISTRY[name](x)
    return x


@program
def kwargs_passing(x):
    def inner(x, *, scale=1.0, bias=None, **extra):
        y = x * scale
        if bias is not None:
            y = y + bias
        return y, extra

    def outer(x, **kwargs):
        kwargs.setdefault("scale", 2.0)
        kwargs["flag"] = True
        return inner(x, **kwargs)

    y, extra = outer(x, bias=x)
    return y, extra


@program
def args_forwarding(x):
    def wrapper(*args, **kwargs):
        return target(*args, **kwargs)

    def target(a, b=2, *rest, c=3):
        return a * b + c + sum(rest)

    return wrapper(x) + wrapper(x, 3, 4, 5, c=6)


@program
def early_return(x):
    if x.dim() == 3:
        return x
    if x.shape[0] > 100:
        return x - 1
    for i in range(5):
        if i == 3:
            return x + i
    return None


@program
def pad_to_multiple(x):
    n = x.shape[1]
    pad = (-n) % 3
    return F.pad(x, (0, pad)) if pad else x


@program
def causal_mask(x):
    n = x.shape[0]
    mask = torch.tril(torch.ones(n, n, dtype=torch.bool))
    return (x @ x.t()).masked_fill(~mask, float("-inf")).softmax(-1)


@program
def chunked(x):
    return torch.cat([c * i for i, c in enumerate(x.split(1, dim=0))])


@program
def dict_of_tensors(x):
    batch = {"a": x, "b": x + 1}
    batch = {k: v.float() for k, v in batch.items()}
    batch["c"] = sum(batch.values())
    return batch


@program
def nested_containers(x):
    t = {"a": [x, (x + 1, {"b": x * 2})]}
    t["a"][1][1]["b"] = t["a"][0]
    t["a"].append(len(t))
    return t


@program
def sum_of_generator(x):
    return sum(x * i for i in range(4)) + sum((x, x), start=x)


@program
def reduce_max(x):
    return functools.reduce(torch.maximum, [x, -x, x * 2])


@program
def max_over_python_numbers(x):
    sizes = [t.shape[1] for t in (x, x[:, :2], x[:, 1:])]
    return x[:, : max(sizes) - min(sizes)]


@program
def zip_dicts(x):
    a, b = {"p": 1, "q": 2}, {"p": x, "q": x + 1}
    return sum(a[k] * b[k] for k in a.keys() & b.keys())


@program
def string_dispatch(x):
    mode = "mean" if x.dim() == 2 else "sum"
    return getattr(torch, mode)(x) + getattr(x, mode)(dim=0)


@program
def isinstance_dispatch(x):
    def f(v):
        if isinstance(v, torch.Tensor):
            return v.sum()
        if isinstance(v, (list, tuple)):
            return sum(f(i) for i in v)
        if isinstance(v, dict):
            return sum(f(i) for i in v.values())
        if v is None:
            return 0
        return v

    return f([x, {"a": (x, 2), "b": None}, 3.0])


@program
def tree_map_by_hand(x):
    def tree_map(fn, t):
        if isinstance(t, dict):
            return type(t)((k, tree_map(fn, v)) for k, v in t.items())
        if isinstance(t, (list, tuple)):
            return type(t)(tree_map(fn, v) for v in t)
        return fn(t)

    return tree_map(lambda t: t + 1, {"a": [x, (x,)]})


@program
def try_except_attribute(x):
    try:
        return x.nothing
    except AttributeError:
        return x + 1


@program
def hasattr_fallback(x):
    return x.contiguous() if hasattr(x, "contiguous") else x


@program
def unpack_in_loop(x):
    out = []
    for name, (w, b) in {"l1": (2, 1), "l2": (3, 0)}.items():
        out.append(x * w + b + len(name))
    return out


@program
def multiple_assignment(x):
    a = b = x + 1
    b = b * 2
    c, d = a, b
    c, d = d, c
    return c - d


@program
def swap_in_list(x):
    l = [x, x + 1, x + 2]
    l[0], l[-1] = l[-1], l[0]
    return l[0] - l[2]


@program
def running_mean(x):
    mean, n = torch.zeros(4), 0
    for row in x:
        n += 1
        mean = mean + (row - mean) / n
    return mean


@program
def in_place_loop(x):
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * i
        out[i, 0] += 1
    return out


@program
def in_place_on_slice_of_input(x):
    x[:, 0].mul_(2)
    x[0].zero_()
    return x.sum()


@program
def boolean_mask_arithmetic(x):
    m = (x > 0).float()
    return x * m + (1 - m) * -x, m.sum(), (~(x > 0)).sum()


@program
def where_and_clamp(x):
    return torch.where(x > 0, x, torch.zeros_like(x)).clamp_(max=1.0) + torch.where(x < 0, -1.0, 1.0)


@program
def gradient_through_branch(x):
    w = x * 2
    if w.shape[0] % 2:
        w = w.relu()
    else:
        w = w.sigmoid()
    return w


@built(graphs=3)
def module_with_state_list():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.history = collections.deque(maxlen=2)

        def forward(self, x):
            self.history.append(x.detach())
            return sum(self.history)

    return M()


@built
def module_with_enum():
    class Kind(enum.Enum):
        A = "a"
        B = "b"

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.kind = Kind.B

        def forward(self, x):
            if self.kind is Kind.A:
                return x
            if self.kind == Kind.B:
                return x + 1

    return M()


@built(graphs=2)
def module_cached_property():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

        @functools.cached_property
        def scale(self):
            return 3.0

        def forward(self, x):
            return x * self.w * self.scale

    return M()


@built
def module_partial_attribute():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = functools.partial(F.leaky_relu, negative_slope=0.1)
            self.norm = functools.partial(torch.clamp, min=-1)

        def forward(self, x):
            return self.act(x) + self.norm(x, max=1)

    return M()


@built
def module_lambda_attribute():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = lambda x: x + 1
            self.fs = [torch.sin, torch.cos]

        def forward(self, x):
            for f in self.fs:
                x = f(x)
            return self.f(x)

    return M()


@built
def residual_blocks():
    class Block(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.l = nn.Linear(4, 4)
            self.i = i

        def forward(self, x, skip=None):
            y = self.l(x) * self.i
            return y if skip is None else y + skip

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.blocks = nn.ModuleList(Block(i) for i in range(3))

        def forward(self, x):
            skip = None
            for b in self.blocks:
                x, skip = b(x, skip), x
            return x

    return Net()


@built
def weight_sharing_embedding():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.emb = nn.Embedding(5, 4)

        def forward(self, x):
            ids = torch.arange(3)
            h = self.emb(ids) + x
            return h @ self.emb.weight.t()

    return M()


@built
def batch_norm_running_stats():
    m = nn.Sequential(nn.BatchNorm1d(4), nn.ReLU())
    return m.train()


@built
def ema_buffer():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("ema", torch.zeros(4))
            self.register_buffer("steps", torch.tensor(0))

        @torch.no_grad()
        def update(self, x):
            self.ema.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.steps += 1

        def forward(self, x):
            self.update(x)
            return x - self.ema

    return M()


@built(graphs=2)
def global_counter_dict():
    stats = {"calls": 0, "shapes": []}

    def f(x):
        stats["calls"] += 1
        stats["shapes"].append(tuple(x.shape))
        return x + 1

    return f


@built(graphs=2)
def memo_dict():
    memo = {}

    def f(x, n=3):
        if n in memo:
            return x * memo[n]
        memo[n] = n * 2
        return x * memo[n]

    return f


@built
def closure_over_module():
    torch.manual_seed(0)
    m = nn.Linear(4, 4)

    def f(x):
        return F.relu(m(x))

    return f


@built(graphs=2)
def method_of_object():
    class Runner:
        def __init__(self):
            self.scale = 2.0
            self.log = []

        def run(self, x):
            self.log.append("run")
            self.scale += 1
            return x * 2

    return Runner().run


@built
def class_with_call_and_modules():
    class Pipeline:
        def __init__(self):
            torch.manual_seed(0)
            self.steps = [nn.Linear(4, 4), torch.relu, self.extra]

        def extra(self, x):
            return x + 1

        def __call__(self, x):
            for s in self.steps:
                x = s(x)
            return x

    return Pipeline()


@program
def loop_with_dict_accumulation(x):
    d = collections.defaultdict(float)
    for i in range(3):
        d["total"] += i
        d[i % 2] += 1.5
    return x + d["total"], dict(d)


@program
def counter_and_most_common(x):
    c = collections.Counter([1, 1, 2])
    return x * c[1] + c[2]


@program
def sorted_dict_items(x):
    d = {"b": 2, "a": 1}
    for k, v in sorted(d.items(), key=lambda kv: kv[1], reverse=True):
        x = x * v + len(k)
    return x


@program
def enumerate_with_condition(x):
    rows = [r for i, r in enumerate(x) if i != 1]
    return torch.stack(rows)


@program
def list_of_shapes(x):
    shapes = [tuple(t.shape) for t in (x, x.t(), x[0])]
    return (
        shapes,
        x.new_zeros(shapes[1]),
        [s.numel() if hasattr(s, "numel") else len(s) for s in (x.shape, x.t().shape)],
    )


@program
def flatten_and_restore(x):
    shape = x.shape
    y = x.reshape(-1, shape[-1])
    y = y * 2
    return y.view(*shape[:-1], -1), y.view(shape)


@program
def stack_and_unbind(x):
    a, b = torch.stack([x, x + 1]).unbind(0)
    return a * b


@program
def matmul_chain(x):
    return functools.reduce(operator.matmul, [x, x.t(), x])


@program
def polynomial(x):
    coefficients = (1.0, -2.0, 0.5)
    return sum(c * x**i for i, c in enumerate(coefficients))


@program
def numeric_constants(x):
    return x * math.pi + math.inf * 0 if False else x * math.e + float("1e-3")


@program
def assert_shapes(x):
    b, d = x.shape
    assert b == 3 and d == 4, f"unexpected {x.shape}"
    assert isinstance(x, torch.Tensor)
    return x.view(b, 2, d // 2)


@program
def context_stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y = x * 2
    return y


@program
def conditional_context(x):
    ctx = torch.no_grad() if x.dim() == 2 else contextlib.nullcontext()
    with ctx:
        y = x + 1
    return y


@program(args=lambda i: [tensor(i).requires_grad_()])
def stop_gradient(x):
    return x + (x * 2 - x).detach()


@program(args=lambda i: [tensor(i).requires_grad_()])
def no_grad_inside(x):
    with torch.no_grad():
        m = x.mean()
    return (x - m) ** 2


@program
def deepcopy_config(x):
    cfg = {"layers": [1, 2], "opts": {"a": 1}}
    c = copy.deepcopy(cfg)
    c["layers"].append(3)
    c["opts"]["a"] += 5
    return x + len(cfg["layers"]) + c["opts"]["a"]


@program
def product_grid(x):
    return torch.stack([x * a + b for a, b in itertools.product((1, 2), (0, 1))])


@program
def recursive_tree(x):
    class_ = collections.namedtuple
    tree = (1, (2, (3, None)))

    def walk(t):
        return 0 if t is None else t[0] + walk(t[1])

    return x + walk(tree)


@program(args=lambda i: [tensor(i), {"mask": tensor(i) > 0, "scale": 2}])
def optional_keys(x, opts):
    if opts.get("bias") is not None:
        x = x + opts["bias"]
    x = x * opts.pop("scale")
    return x.masked_fill(opts["mask"], 0.0), list(opts)


@program(args=lambda i: [[tensor(j) for j in range(3)]])
def list_argument_sorted(l):
    l.sort(key=lambda t: -t.shape[0])
    l.reverse()
    return torch.cat(l)


@program(args=lambda i: [(tensor(i), [tensor(i + 1), {"k": tensor(i + 2)}])])
def nested_argument(t):
    a, (b, d) = t
    d["new"] = a
    return a + b + d["k"]


@program
def tensor_equality_of_shapes(x):
    y = x.t()
    return x.shape == y.shape, x.shape[::-1] == y.shape, x.size() != y.size(), x + 1


@program
def type_and_device_checks(x):
    if x.is_cuda:
        x = x.half()
    if x.dtype in (torch.float32, torch.float64) and x.device.type != "cuda":
        x = x * 2
    return x.to(torch.float64 if x.dtype == torch.float32 else torch.float32)


@program
def string_keys_from_shapes(x):
    return {f"w{i}_{tuple(r.shape)}": r for i, r in enumerate(x)}


@program
def closure_factory(x):
    def make(n):
        def f(v):
            return v * n

        return f

    fs = [make(i) for i in range(3)]
    return sum(f(x) for f in fs)


@program
def generator_pipeline(x):
    def source():
        for i in range(4):
            yield x + i

    def doubled(it):
        for v in it:
            yield v * 2

    return torch.stack(list(doubled(source())))


@program
def zip_longest_layers(x):
    out = x
    for a, b in itertools.zip_longest([1, 2, 3], [4], fillvalue=0):
        out = out + a * b
    return out


@program
def global_function_redefinition(x):
    f = double
    f = functools.wraps(f)(lambda v: f.__wrapped__(v) if False else v + 1)
    return f(x), f.__name__


@program
def class_hierarchy_dispatch(x):
    class_map = {"a": Adder, "m": Multiplier}
    return class_map["a"](2).run(x) + class_map["m"](3).run(x)


class Op:
    def __init__(self, k):
        self.k = k

    def run(self, x):
        return self.apply(x)


class Adder(Op):
    def apply(self, x):
        return x + self.k


class Multiplier(Op):
    def apply(self, x):
        return x * self.k
