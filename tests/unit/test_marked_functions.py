"""allow_in_graph and assume_constant_result: each program does what it does in eager, call by call, with every kind of backend."""

import sys

import cutaway
import pytest
import torch
import torch._dynamo

from tests.support.capture_cases import Counter

pytestmark = pytest.mark.usefixtures("fresh_capture")
BACKENDS = pytest.mark.parametrize("backend", ["eager", "fx", "aot_eager"])


def seen_values(v):
    if isinstance(v, torch.Tensor):
        return (type(v).__name__, v.dtype, tuple(v.shape), v.stride(), v.requires_grad, v.tolist())
    if isinstance(v, (list, tuple)):
        return (type(v).__name__, [seen_values(i) for i in v])
    if isinstance(v, dict):
        return [(k, seen_values(i)) for k, i in v.items()]
    return v


def observe(make, mark, backend):
    """What three calls show, and how many graphs an fx backend got. Results are changed after each call: the next one must not notice."""
    seen = []
    f = make(mark, seen)
    counter = Counter()
    if backend:
        f = cutaway.compile(f, backend=counter if backend == "fx" else backend)
    out, last = [], None
    for i in range(3):
        x = torch.arange(4.0) + i
        try:
            r = f(x)
        except Exception as e:
            out.append((type(e).__name__, str(e)))
            continue
        out.append((seen_values(r), seen_values(x), r is last))
        last = r
        if isinstance(r, torch.Tensor):
            r.detach().add_(100)
        if isinstance(r, list):
            r.append("more")
        seen.append(f"call {i}")
    return (out, [seen_values(s) for s in seen]), counter.frame_count


def no_tensors(mark, seen):
    @mark
    def note():
        seen.append(torch.is_grad_enabled())

    def f(x):
        note()
        return x + 1

    return f


def in_order(mark, seen):
    @mark
    def note(n):
        seen.append(n)

    def f(x):
        note(1)
        y = x + 1
        note(2)
        return y * 2

    return f


def gives_a_number(mark, seen):
    @mark
    def count():
        seen.append(0)
        return len(seen)

    return lambda x: x + count()


def effect_beside_a_result(mark, seen):
    @mark
    def note(x):
        seen.append(tuple(x.shape))
        return x + 1

    return lambda x: note(x) * 2


def effect_without_result(mark, seen):
    @mark
    def note(x):
        seen.append(tuple(x.shape))

    def f(x):
        note(x)
        return x + 1

    return f


def prints(mark, seen):
    @mark
    def say(x):
        sys.stdout.write("")
        return x + 1

    return lambda x: say(x) * 2


def writes_to_a_tensor(mark, seen):
    @mark
    def write(x):
        x.add_(1)

    def f(x):
        write(x)
        return x * 2

    return f


def one_node(mark, seen):
    @mark
    def mine(x, y, *, k=2):
        return torch.sin(x) + y * k

    return lambda x: mine(x, 3.0, k=4) + 1


def pair(mark, seen):
    @mark
    def two(x):
        return x + 1, x * 2

    def f(x):
        a, b = two(x)
        return a - b

    return f


def a_list(mark, seen):
    @mark
    def two(x):
        return [x + 1, x * 2]

    def f(x):
        every = two(x)
        every.append(x)
        return every

    return f


def mixed(mark, seen):
    @mark
    def two(x):
        return x + 1, 7

    def f(x):
        a, n = two(x)
        return a * n

    return f


def same_and_view(mark, seen):
    @mark
    def same(x):
        return x

    @mark
    def rest(x):
        return x[1:]

    def f(x):
        y = same(x)
        rest(y).add_(5)
        return y is x, x

    return f


def exact_arguments(mark, seen):
    @mark
    def kinds(x, size, kind):
        return (x.to(kind) if kind is float else x) + (1 if isinstance(size, torch.Size) else 2)

    return lambda x: kinds(x, x.shape, float)


def raises(mark, seen):
    @mark
    def refuse(x):
        raise ValueError("four")

    def f(x):
        try:
            return refuse(x)
        except ValueError as e:
            return x + 1, str(e)

    return f


def nested(mark, seen):
    @mark
    def inner(x):
        with torch.no_grad():
            return x.cos()

    @mark
    def outer(x):
        return inner(x) + 1

    return lambda x: outer(x) * 2


def appends_to_its_argument(mark, seen):
    @mark
    def put(into, x):
        into.append(x * 2)
        return x

    def f(x):
        into = []
        return put(into, x) + into[0]

    return f


def reads_a_value(mark, seen):
    @mark
    def scaled(x):
        return x * x.sum().item()

    return lambda x: scaled(x) + 1


# with the number of graphs of an fx backend
ALLOWED = {
    no_tensors: 1, in_order: 1, gives_a_number: None, effect_beside_a_result: 2, effect_without_result: None, prints: None, writes_to_a_tensor: 1, one_node: 1, pair: 1,
    a_list: 1, mixed: None, same_and_view: 1, exact_arguments: 1, raises: None, nested: 1, appends_to_its_argument: None, reads_a_value: None,
}  # fmt: skip


@BACKENDS
@pytest.mark.parametrize("mark", [torch._dynamo.allow_in_graph, cutaway.allow_in_graph], ids=["torch", "cutaway"])
@pytest.mark.parametrize("make", ALLOWED, ids=lambda f: f.__name__)
def test_allow_in_graph(make, mark, backend):
    want, _ = observe(make, mark, None)
    with cutaway.options(strict=True):
        got, graphs = observe(make, mark, backend)
    assert got == want
    if backend == "fx" and ALLOWED[make]:
        assert graphs == ALLOWED[make]


KEPT, CONFIG, PAIR = torch.ones(4), [1, 2], (torch.ones(4), 3)


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("b", torch.ones(4) * 2)

    def scale(self):
        return torch.tensor(3.0)

    def weight(self):
        return self.w

    def buffer(self):
        return self.b

    def part(self):
        return self.b[1:]


def returns(value, use=lambda v, x: v):
    def make(mark, seen):
        constant = mark(lambda: value())
        return lambda x: use(constant(), x)

    return make


def of_module(name, use):
    def make(mark, seen):
        holder, function = Holder(), getattr(Holder, name)
        method = mark(lambda self: function(self))
        return lambda x: use(method(holder), x)

    return make


CONSTANT = {
    "used": returns(lambda: torch.full([4], 13.0), lambda v, x: v * 2 + x),
    "read": returns(lambda: torch.full([2], 13), lambda v, x: ((v * 2).tolist(), x + 1)),
    "given_back": returns(lambda: torch.full([4], 13.0)),
    "a_view": returns(lambda: torch.arange(8.0), lambda v, x: v[4:]),
    "transposed": returns(lambda: torch.arange(6.0).reshape(2, 3).t()),
    "transposed_and_used": returns(lambda: torch.arange(6.0).reshape(2, 3).t(), lambda v, x: v + 1),
    "expanded": returns(lambda: torch.ones(1).expand(3), lambda v, x: v + 1),
    "written_to": returns(lambda: torch.zeros(4), lambda v, x: v.add_(x)),
    "existing": returns(lambda: KEPT),
    "existing_written_to": returns(lambda: KEPT, lambda v, x: v.add_(1) + x),
    "view_of_existing": returns(lambda: KEPT[1:]),
    "list": returns(lambda: [1, torch.ones(3)]),
    "existing_list": returns(lambda: CONFIG),
    "list_changed": returns(lambda: [1, 2], lambda v, x: (v.append(3), v, x + len(v))[1:]),
    "dict": returns(lambda: {"a": torch.ones(4), "n": 2}, lambda v, x: v["a"] * v["n"] + x),
    "tuple": returns(lambda: (torch.ones(4), 4), lambda v, x: v[0] * v[1] + x),
    "existing_tuple": returns(lambda: PAIR, lambda v, x: v[0].add_(1) * v[1]),
    "set": returns(lambda: {3, 1}, lambda v, x: x + len(v) + max(v)),
    "nested": returns(lambda: [[torch.ones(3)], (torch.zeros(3), [1])]),
    "none": returns(lambda: None, lambda v, x: (v, x + 1)),
    "parameter_made": returns(lambda: torch.nn.Parameter(torch.ones(4)), lambda v, x: v + x),
    "method": of_module("scale", lambda v, x: v * x),
    "method_gives_parameter": of_module("weight", lambda v, x: v * x),
    "method_gives_buffer": of_module("buffer", lambda v, x: v * x),
    "method_gives_view": of_module("part", lambda v, x: v + x[1:]),
}


@BACKENDS
@pytest.mark.parametrize(
    "mark", [torch._dynamo.assume_constant_result, cutaway.assume_constant_result], ids=["torch", "cutaway"]
)
@pytest.mark.parametrize("name", CONSTANT)
def test_assume_constant_result(name, mark, backend):
    def run(backend):
        KEPT.fill_(1)
        PAIR[0].fill_(1)
        CONFIG[:] = [1, 2]
        return observe(CONSTANT[name], mark, backend)[0], seen_values([KEPT, CONFIG, PAIR])

    want = run(None)
    with cutaway.options(strict=True):
        assert run(backend) == want


def test_constant_results_take_keywords_and_are_called_once():
    calls = []

    @cutaway.assume_constant_result
    def total(a, *, b):
        calls.append(1)
        return a + b

    compiled = cutaway.compile(lambda x: x + total(1, b=2), backend="eager", fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(2)), torch.ones(2) + 3)
    assert len(calls) == 1
