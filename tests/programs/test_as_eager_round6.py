"""What a round of programs found that were written from the references of Python and torch: each class with its siblings."""

import contextlib
import io
import warnings

import cutaway
import pytest
import torch
import torch.nn.functional as F

WAYS = ["eager", "aot_eager", "native:wait"]


def python_backend(module, examples):
    return module.forward


def observed(f, *args):
    """What it gives or raises, what it prints, and the random number that comes next."""
    torch.manual_seed(3)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = shown(f(*args))
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return result, printed.getvalue(), torch.rand(1).item()


def shown(value):
    if isinstance(value, torch.Tensor):
        return [tuple(value.shape), [round(v, 3) for v in value.detach().double().flatten().tolist()]]
    if isinstance(value, (list, tuple)):
        return [shown(v) for v in value]
    return value


def compare(f, calls, ways=(*WAYS, python_backend)):
    for way in ways:
        cutaway.reset()
        with cutaway.options(strict=True):
            compiled = cutaway.compile(f, backend=way)
            for make in calls:
                assert observed(compiled, *make()) == observed(f, *make()), way


# ---- descriptors of classes that the compiled function makes


class Data:
    def __init__(self, name="a"):
        self.name = name

    def __get__(self, o, t):
        return "descriptor", o is None

    def __set__(self, o, v):
        o.__dict__[self.name] = v


class OnlySets:
    def __set__(self, o, v):
        o.__dict__["a"] = v


class OnlyGets:
    def __get__(self, o, t):
        return "got"


@pytest.mark.parametrize("descriptor", [Data, OnlySets, OnlyGets])
def test_data_descriptors_of_made_classes_come_before_the_dictionary(descriptor):
    def f(x):
        class C:
            a = descriptor()

        class D(C):
            pass

        c, d = C(), D()
        c.a = x
        d.a = 2
        return c.a, d.a, c.a, c.__dict__["a"], hasattr(d, "b"), x + 1

    def derived(x):
        class Own(Data):
            def __get__(self, o, t):
                return super().__get__(o, t) + (x,)

        class C:
            a = Own()
            b = Own("b")

        c = C()
        c.a, c.b = 1, x
        return c.a, c.b, sorted(c.__dict__), x * 2

    for program in (f, derived):
        compare(program, [lambda: (torch.ones(2),)] * 2, ways=["eager"])


def test_data_descriptors_of_metaclasses():
    log = []

    class Logs:
        def __get__(self, o, t):
            return ("got", o.__name__ if o else None)

        def __set__(self, o, v):
            log.append(v)

        def __delete__(self, o):
            log.append("deleted")

    class Meta(type):
        a = Logs()

    def made(x):
        class M(type):
            a = Logs()
            n = property(lambda cls: cls.__name__ * 2)

        class C(metaclass=M):
            pass

        log.append("made")
        C.a = 5
        del C.a
        C.b = x
        return C.a, C.n, C.b, list(log), x + 1

    def outside(x):
        class C(metaclass=Meta):
            pass

        log.append("made")
        C.a = 5
        return C.a, list(log), x + 1

    for program in (made, outside):
        compare(program, [lambda: (log.clear(), torch.ones(2))[1:]] * 2, ways=["eager"])


# ---- operators whose result nobody uses raise as in eager

X = torch.arange(12.0).view(3, 4)


def raising():
    def index(x, k):
        x[k]
        return x + 1

    def pair(x, k):
        x[k, k]
        return x + 1

    def named(x, k):
        y = x[k] * 2
        del y
        return x.sin()

    def select(x, k):
        x.index_select(0, k)
        return x + 1

    def embedding(x, k):
        (F.embedding(k, x) * 2).sum()
        return x + 1

    def gather(x, k):
        x.gather(1, k[None])
        return x.exp()

    def take(x, k):
        torch.take(x[0], k)
        return x + 1

    def scatter(x, k):
        x.scatter(1, k[None], 1.0)
        return x + 1

    def one_hot(x, k):
        F.one_hot(k, 3)
        return x + 1

    def loss(x, k):
        F.nll_loss(x.log_softmax(1)[:2], k)
        return x + 1

    def add(x, k):
        x.index_add(0, k, x[:2])
        return x + 1

    return [index, pair, named, select, embedding, gather, take, scatter, one_hot, loss, add]


@pytest.mark.parametrize("program", raising(), ids=lambda p: p.__name__)
def test_indices_of_results_that_nobody_uses(program):
    calls = [lambda k=k: (X.clone(), torch.tensor([0, k])) for k in (1, 2, 3, 99, 1)]
    compare(program, calls)


def test_values_that_kernels_refuse():
    def cholesky(x):
        torch.linalg.cholesky(x)
        return x * 2

    def inverse(x):
        torch.linalg.inv(x)
        return x * 2

    def divide(x):
        torch.tensor([4, 2]) // x[0].long()
        return x + 1

    for program in (cholesky, inverse, divide):
        compare(program, [lambda s=s: (torch.eye(2) * s,) for s in (1.0, 0.0, 2.0)])


def test_an_operator_that_raises_after_it_has_drawn():
    def bernoulli(p):
        torch.bernoulli(p)
        return p * 2

    def dropout_first(p):
        y = F.dropout(p, 0.5)
        torch.bernoulli(p)
        return y

    def multinomial(p):
        return torch.multinomial(p, 1), F.dropout(p, 0.5)

    for program in (bernoulli, dropout_first, multinomial):
        compare(program, [lambda v=v: (torch.tensor([0.5, v]),) for v in (0.2, 1.5, 0.7, -1.0)])


# ---- methods of C are called as CPython calls them


class L(list):
    pass


def test_errors_name_the_class_of_the_method():
    def text(f):
        try:
            return f()
        except TypeError as error:
            return str(error)

    def f(x):
        items = L([1])
        m = x.relu
        return (
            text(lambda: x.relu(1)),
            text(lambda: x.t(1)),
            text(lambda: x.numel(1)),
            text(lambda: m(1)),
            text(lambda: torch.Tensor.relu(x, 1)),
            text(lambda: items.clear(1)),
            text(lambda: items.append()),
            text(lambda: "a".upper(1)),
            x + 1,
        )

    compare(f, [lambda: (torch.ones(2, 2),)] * 2, ways=["eager", python_backend])


# ---- hooks, gradients that are kept, labels


def test_a_backward_hook_whose_inputs_were_set_up_before_the_graph():
    def run(compile):
        torch.manual_seed(0)
        m = torch.nn.Sequential(torch.nn.Linear(4, 4))
        seen = []
        m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi[0] is not None, go[0].sum().item())))
        h = m[0].register_forward_hook(lambda *a: seen.append("forward"))

        def f(x, i):
            y = m(x * 2)
            if i == 1:
                h.remove()
            return y

        f = compile(f)
        for i in range(3):
            x = torch.ones(3, 4, requires_grad=True)
            f(x, i).sum().backward()
            seen.append(round(x.grad.sum().item(), 3))
        return seen

    expected = run(lambda f: f)
    for way in ("eager", "aot_eager", "native"):
        cutaway.reset()
        assert run(lambda f, way=way: cutaway.compile(f, backend=way)) == expected


def test_autograd_grad_adds_to_gradients_that_are_kept():
    def f(x):
        y = x * 2
        y.retain_grad()
        z = y**2
        (gy,) = torch.autograd.grad(z.sum(), y, retain_graph=True)
        z.mean().backward()
        return gy, y.grad, x.grad.clone()

    compare(f, [lambda: (torch.ones(3, requires_grad=True),)] * 2)


def test_labels_of_the_profiler_that_were_made_outside():
    label = torch.profiler.record_function("label")

    def entered(x, i):
        label.__enter__()
        y = x * 2
        print("break")
        y = y + 1
        if i == 1:
            y @ y
        label.__exit__(None, None, None)
        return y

    def block(x, i):
        with label:
            y = x * 2
            print("break")
            if i == 1:
                y @ y
        return y

    def state(x, i):
        label.__enter__()
        y = x * 2
        print(label.record is None)
        label.__exit__(None, None, None)
        return y, label.record is None

    @label
    def decorated(x, i):
        return x * 2

    for program in (entered, block, state, decorated):
        compare(program, [lambda i=i: (torch.ones(2, 3), i) for i in range(3)], ways=["eager"])
    cutaway.reset()
    graphs = []
    cutaway.compile(decorated, backend=lambda m, e: graphs.append(m) or m.forward)(torch.ones(2), 0)
    assert len(graphs) == 1


# ---- modules whose `forward` is no plain method


def test_compile_runs_nothing_of_the_module():
    import functools

    log = []

    class Cached(torch.nn.Module):
        @functools.cached_property
        def forward(self):
            log.append("cached")
            return lambda x: x * 2

    class Wrong(torch.nn.Module):
        @functools.cached_property
        def forward(self, x):
            return x

    class Property(torch.nn.Module):
        @property
        def forward(self):
            log.append("property")
            return lambda x: x * 3

    class Own(torch.nn.Module):
        def __getattribute__(self, name):
            if name == "forward":
                log.append("own")
            return super().__getattribute__(name)

        def forward(self, x):
            return x * 4

    for cls in (Cached, Wrong, Property, Own):
        compiled = cutaway.compile(cls(), backend="eager")
        assert log == []
        eager = cls()
        x = torch.ones(2)
        expected = [observed(eager, x), observed(eager, x)]
        calls, log[:] = list(log), []
        assert [observed(compiled, x), observed(compiled, x)] == expected
        assert log == calls
        log.clear()


# ---- views and versions without gradients


def seen_of(*tensors):
    out = []
    for t in tensors:
        bases = [i for i, o in enumerate(tensors) if t._base is o]
        out.append((t._is_view(), bases, t._version, shown(t)))
    return out


def views():
    def rows(x):
        y = x * 2
        return y, y[0], y.view(-1), y.t()[1:]

    def written(x):
        y = x * 2
        v = y[0]
        v.add_(1)
        y.view(-1)[3:5].mul_(2)
        return y, v

    def without_base(x):
        return (x * 2)[1:], (x + 1).t()

    def of_input(x):
        return x, x[0], x.view(-1)

    def detached(x):
        y = x * 2
        return y, y.detach(), y[0]

    def parts(x):
        y = x.exp()
        a, b = y.chunk(2, 1)
        return y, a, b

    def of_view(x):
        v = (x * 2).view(-1)
        return v, v[2:]

    def in_place_of_input(x):
        x.add_(1)
        x[0].zero_()
        return x, x[0]

    return [rows, written, without_base, of_input, detached, parts, of_view, in_place_of_input]


@pytest.mark.parametrize("program", views(), ids=lambda p: p.__name__)
@pytest.mark.parametrize("grad", [True, False])
def test_views_and_versions_without_gradients(program, grad):
    with torch.set_grad_enabled(grad):
        expected = seen_of(*program(X.clone()))
        for way in WAYS:
            cutaway.reset()
            assert seen_of(*cutaway.compile(program, backend=way)(X.clone())) == expected, way


def test_versions_of_inputs_whose_shape_is_changed_in_place():
    changes = [
        lambda x: x.t_(),
        lambda x: (x.unsqueeze_(0), x.squeeze_(), x.transpose_(0, 1)),
        lambda x: (x.add_(1), x.t_()),
        lambda x: (x.t_(), x.t_()),
    ]
    for change in changes:

        def f(x, change=change):
            change(x)
            return x + 1

        for way in WAYS:
            cutaway.reset()
            expected, found = X.clone(), X.clone()
            f(expected)
            cutaway.compile(f, backend=way)(found)
            assert (found._version, found.stride()) == (expected._version, expected.stride()), way
            assert torch.equal(found, expected)


def test_versions_of_inputs_that_are_views_of_each_other():
    def f(b, v, x):
        b.add_(x)
        v.mul_(2)
        return b[1:] * x[1:], v + 1

    for way in (None, *WAYS):
        cutaway.reset()
        b = X.clone()
        v, apart = b[0], b.view(-1)[1:]
        for _ in range(2):
            (cutaway.compile(f, backend=way) if way else f)(b, v, X)
        assert (b._version, v._version, apart._version, v._base is b) == (4, 4, 4, True), way


def test_a_view_without_gradients_may_get_some():
    def f(x):
        y = x * 2
        return y, y[0], x[0]

    w = torch.ones(4, requires_grad=True)
    for way in (None, *WAYS):
        cutaway.reset()
        y, v, u = (cutaway.compile(f, backend=way) if way else f)(X.clone())
        v.mul_(w)
        u.mul_(w)
        assert y.requires_grad and v.requires_grad and u.requires_grad
        (g,) = torch.autograd.grad(y.sum() + u.sum(), w)
        assert torch.equal(g, X[0] * 3)


# ---- second derivatives of a program that writes and gives outputs of which others are computed


def second():
    def buffer(x):
        b = torch.zeros(3, 4)
        y = x.sin()
        b.add_(1)
        b[0] += 1
        z = y * y + b
        return y, z, z.exp()

    def written_output(x):
        y = x.sin()
        y.mul_(2)
        z = y * y
        return y, z, z.exp()

    def written_copy(x):
        y = x.sin()
        c = y.clone()
        c[0] = 3.0
        return y, c, (c * y).exp()

    return [buffer, written_output, written_copy]


@pytest.mark.parametrize("program", second(), ids=lambda p: p.__name__)
def test_second_derivatives_of_programs_that_write(program):
    def run(f):
        x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        outs = f(x)
        (g,) = torch.autograd.grad(sum(o.sum() for o in outs), x, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), x, retain_graph=True)
        (p,) = torch.autograd.grad(outs[-1].sum(), outs[0], create_graph=True, allow_unused=True)
        (q,) = torch.autograd.grad((p * p).sum(), x, allow_unused=True) if p is not None else (None,)
        return [t for t in (g, h, p, q) if t is not None]

    expected = run(program)
    for way in ("aot_eager", "native:wait"):
        cutaway.reset()
        found = run(cutaway.compile(program, backend=way))
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "backend", [lambda module, inputs: module.forward, "eager", "aot_eager"], ids=["fx", "eager", "aot_eager"]
)
@pytest.mark.parametrize("stays", [False, True], ids=["no_grad", "set_grad_enabled"])
def test_grad_mode_after_a_graph_that_raises(backend, stays):
    def inside(x, i):
        with torch.no_grad():
            return x * 2 + x[i]

    def set_once(x, i):
        torch.set_grad_enabled(False)
        return x * 2 + x[i]

    f = cutaway.compile(set_once if stays else inside, backend=backend)
    for _ in range(3):
        with torch.enable_grad():
            with pytest.raises(IndexError):
                f(torch.ones(3, requires_grad=True), torch.tensor([5]))
            assert torch.is_grad_enabled() != stays
