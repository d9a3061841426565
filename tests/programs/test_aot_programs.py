"""Programs that a user might well write, differentiated ahead of time: as in eager, or refused by name; never anything else."""

import warnings

import cutaway
import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def weight(*shape, dtype=torch.float32):
    return torch.randn(*(shape or (4, 4)), dtype=dtype).requires_grad_()


def fresh(inputs):
    """Copies with the same sizes, strides and flags; views of one storage stay views of one storage."""
    copies = cutaway.clone_keeping_aliases([x.detach() for x in inputs])
    return [c.requires_grad_(x.requires_grad) for c, x in zip(copies, inputs, strict=True)]


def observe(f, inputs):
    torch.manual_seed(3)
    own = fresh(inputs)
    out = f(*own)
    flat = torch.utils._pytree.tree_leaves(out)
    ends = [o for o in flat if isinstance(o, torch.Tensor) and o.requires_grad]
    grads = []
    if ends:
        loss = sum((o.abs() if o.is_complex() else o).double().mul(i + 1).sum() for i, o in enumerate(ends))
        wanted = [x for x in own if x.requires_grad and x.is_leaf]
        grads = list(torch.autograd.grad(loss, wanted, allow_unused=True)) if wanted else []
    facts = [
        (o.shape, o.stride(), o.dtype, o.requires_grad, o.is_leaf, o.storage_offset())
        if isinstance(o, torch.Tensor)
        else o
        for o in [*flat, *own]
    ]
    tensors = [t for t in [*flat, *own] if isinstance(t, torch.Tensor)]
    storages = [t.untyped_storage().data_ptr() if t.numel() else None for t in tensors]
    sharing = [storages.index(s) for s in storages]
    values = [t.detach().clone() for t in tensors]
    return out, facts, sharing, values, grads


def check(f, *inputs):
    compiled = cutaway.aot(f, fresh(inputs))
    expected, got = observe(f, inputs), observe(compiled, inputs)
    structure = [torch.utils._pytree.tree_structure(o[0]) for o in (expected, got)]
    assert structure[0] == structure[1]
    assert got[1] == expected[1]
    assert got[2] == expected[2]
    for part in (3, 4):
        assert len(expected[part]) == len(got[part])
        for e, g in zip(expected[part], got[part], strict=True):
            assert (e is None) == (g is None)
            if e is not None:
                torch.testing.assert_close(g, e, rtol=1e-5, atol=1e-6, equal_nan=True)
    return compiled


# ---- autograd functions with a backward of their own ----


class Clipped(torch.autograd.Function):
    """Its backward is not that of its operators."""

    @staticmethod
    def forward(ctx, x, low):
        ctx.save_for_backward(x)
        ctx.low = low
        return x.clamp(min=low)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 + x, None


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * b, a + b

    @staticmethod
    def backward(ctx, g, h):
        return g + 2 * h, None


def test_autograd_functions_keep_their_backward():
    compiled = check(lambda x, w: Clipped.apply(x @ w, 0.1).sin(), torch.randn(3, 4), weight())
    assert "test_aot_programs.py" in str(compiled.backward)
    check(lambda w, v: Twice.apply(w, v), weight(), weight())
    check(lambda w: Clipped.apply(Clipped.apply(w, 0.0), 0.2).sum() + w.sum(), weight())

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            return Clipped.apply(self.linear(x), 0.0)

    net = Net()
    compiled = cutaway.aot(net, (torch.ones(2, 4),))
    for batch in (2, 5):  # the program runs once more for inputs of another size
        x = torch.randn(batch, 4)
        for f in (net, compiled):
            net.zero_grad()
            f(x).pow(2).sum().backward()
            if f is net:
                expected = [p.grad.clone() for p in net.parameters()]
        for p, e in zip(net.parameters(), expected, strict=True):
            torch.testing.assert_close(p.grad, e)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 9


def test_autograd_functions_that_write_in_place():
    check(lambda w: Doubled.apply(w * 1).sin(), weight())


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 5


class Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g.view(ctx.shape) * 5


def test_autograd_functions_that_give_views_of_what_they_got():
    check(lambda w: Same.apply(w) * 2, weight())
    check(lambda w: Flat.apply(w).sin(), weight())
    for f in (Same, Flat):  # returned, it would be rebuilt by views from the input
        with pytest.raises(cutaway.Error, match="shares its storage"):
            cutaway.aot(lambda w, f=f: f.apply(w), (weight(),))

    def part(w):
        y = w * 1
        Doubled.apply(y[0])
        return y * 1

    check(part, weight())

    def other_view(w):
        y = w * 1
        before = y[0]
        Doubled.apply(y[0])
        return before * 1

    check(other_view, weight())

    def of_an_input(w, x):
        Doubled.apply(x)
        return w * 1

    x = weight()
    for f in (of_an_input, cutaway.aot(of_an_input, (weight(), x * 1))):
        y = x * 1
        f(weight(), y)
        torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.full((4, 4), 9.0))


def test_tensors_from_outside_that_need_gradients_are_refused_with_autograd_functions():
    w = weight()
    with pytest.raises(cutaway.Error, match="requires grad and is no input"):
        cutaway.aot(lambda x: Clipped.apply(x @ w, 0.0), (weight(),))
    assert w.grad is None


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    def block(x, w):
        return F.gelu(x @ w)

    def f(x, w):
        y = checkpoint(block, x, w, use_reentrant=reentrant)
        return checkpoint(block, y, w, use_reentrant=reentrant).sum()

    x, w = weight(3, 4), weight()
    compiled, grads = cutaway.aot(f, (x, w)), []
    for g in (f, compiled):
        x.grad = w.grad = None
        g(x, w).backward()
        grads.append((x.grad.clone(), w.grad.clone()))
    for e, got in zip(*grads, strict=True):
        torch.testing.assert_close(got, e)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

        def forward(self, x):
            return checkpoint(lambda y: self.b(torch.tanh(self.a(y))), x, use_reentrant=reentrant)

    net = Net()
    x = weight(3, 4)
    compiled = cutaway.aot(net, (x,))
    grads = []
    for g in (net, compiled):
        x.grad = None
        net.zero_grad()
        g(x).sum().backward()
        grads.append([x.grad.clone(), *(p.grad.clone() for p in net.parameters())])
    for e, got in zip(*grads, strict=True):
        torch.testing.assert_close(got, e)


def test_backwards_that_draw_numbers_or_write_are_refused():
    def drops(x, w):
        return checkpoint(lambda x, w: F.dropout(x @ w, 0.5), x, w, use_reentrant=True).sum()

    with pytest.raises(cutaway.Error, match="random numbers"):
        cutaway.aot(drops, (weight(), weight()))

    class Counts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, seen):
            ctx.seen = seen
            return x * 2

        @staticmethod
        def backward(ctx, g):
            ctx.seen.add_(1)
            return g * 2, None

    class Spoils(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.mul_(2)

    with pytest.raises(cutaway.Error, match="writes to"):
        cutaway.aot(lambda x, seen: Counts.apply(x, seen), (weight(), torch.zeros(1)))
    with pytest.raises(cutaway.Error, match="writes to"):
        cutaway.aot(lambda x: Spoils.apply(x), (weight(),))


def test_gradients_taken_inside_the_program():
    def penalty(x, w):
        y = (x @ w).tanh()
        (g,) = torch.autograd.grad(y.sum(), w, create_graph=True)
        return y.sum() + g.pow(2).sum()

    check(penalty, torch.randn(3, 4), weight())


def test_backward_and_hooks_inside_the_program_are_refused():
    def runs_backward(w):
        y = Clipped.apply(w, 0.0)
        y.sum().backward()
        return w * 2

    def hooks(w):
        y = Clipped.apply(w, 0.0)
        y.register_hook(lambda g: g * 10)
        return y.sum()

    def keeps(w):
        y = w.sin()
        y.retain_grad()
        return y.sum()

    def by_function(w):
        torch.autograd.backward(Clipped.apply(w, 0.0).sum())
        return w * 2

    for f in (runs_backward, hooks, keeps, by_function):
        w = weight()
        with pytest.raises((cutaway.Error, NotImplementedError), match=r"refused"):
            cutaway.aot(f, (w,))
        assert w.grad is None


def test_hooks_of_saved_tensors_are_refused_unless_they_give_back_what_they_took():
    def lossy(w):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.bfloat16(), lambda t: t.float()):
            return w.exp() * w

    with pytest.raises(cutaway.Error, match="saved_tensors_hooks"):
        cutaway.aot(lossy, (weight(),))

    with pytest.raises(cutaway.Error, match="saved_tensors_hooks"):
        cutaway.aot(lambda w: lossy(Clipped.apply(w, 0.0)), (weight(),))

    def on_cpu(w):
        with torch.autograd.graph.save_on_cpu():
            return w.exp() * w

    check(on_cpu, weight())

    # On while the compiled program runs they see what they see in eager.
    def f(w):
        return w.exp() * w

    compiled, w = cutaway.aot(f, (weight(),)), weight()
    grads = []
    for g in (f, compiled):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.bfloat16(), lambda t: t.float()):
            out = g(w)
        grads.append(torch.autograd.grad(out.sum(), w)[0])
    assert torch.equal(*grads)
    blocks = cutaway.compile(lambda z: F.dropout(z.exp(), 0.5), backend="aot_eager")
    for use in (f, blocks):
        torch.manual_seed(1)
        expected = torch.autograd.grad(
            checkpoint(f if use is f else lambda z: F.dropout(z.exp(), 0.5), w, use_reentrant=False).sum(), w
        )[0]
        torch.manual_seed(1)
        got = torch.autograd.grad(checkpoint(compiled if use is f else blocks, w, use_reentrant=False).sum(), w)[0]
        torch.testing.assert_close(got, expected)


# ---- questions about values ----


def test_operators_that_only_check_values_ask_when_they_run():
    f = check(lambda x, q: torch.quantile(x, q, dim=1), weight(3, 5), torch.tensor([0.1, 0.5]))
    assert "_assert_async" in str(f.forward) and "_assert_async" not in str(f.backward)
    with pytest.raises(RuntimeError, match="quantile"):
        f(weight(3, 5), torch.tensor([0.1, 1.5]))
    with pytest.raises(RuntimeError, match="quantile"):
        with torch.no_grad():
            f(weight(3, 5), torch.tensor([0.1, 1.5]))
    check(lambda x: (torch.quantile(x, 0.3), torch.nanquantile(x, 0.3, dim=0)), weight(3, 5))
    with pytest.raises(RuntimeError, match="quantile"):  # eager says so while recording
        cutaway.aot(lambda x: torch.quantile(x, 1.5), (weight(3, 5),))
    check(lambda x: torch.cov(x), weight(3, 5))
    with pytest.raises(NotImplementedError, match="equal"):  # cov decides by the weights whether to divide
        cutaway.aot(lambda x, w: torch.cov(x, fweights=w), (weight(3, 5), torch.tensor([1, 2, 0, 1, 3])))
    with pytest.raises(NotImplementedError, match="equal"):  # not inside such an operator
        cutaway.aot(lambda x: x * 2 if torch.equal(x, x + 1) else x, (weight(),))


def test_least_squares_where_the_shape_is_known():
    check(lambda a, b: torch.linalg.lstsq(a, b, driver="gels").solution, weight(5, 3), weight(5, 2))
    check(lambda a, b: torch.linalg.lstsq(a, b).solution, weight(2, 5, 3), weight(2, 5, 2))
    with pytest.raises(NotImplementedError, match="linalg_lstsq"):
        cutaway.aot(lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd").solution, (weight(5, 3), weight(5, 2)))


# ---- forms of inputs and outputs ----


def test_outputs_of_every_form():
    check(lambda w: {"a": [w.sin(), None, 3], "b": (w.argmax(0), {"c": 2.5, "d": w})}, weight())
    check(lambda w: None, weight())
    check(lambda w: [w.sum(), "text", True], weight())
    check(lambda w: [Clipped.apply(w, 0.0), "text", None, 3], weight())
    check(lambda w: [w, w, w.view(-1), w.detach()], weight())
    check(lambda: torch.arange(3.0) * 2)
    check(lambda w: (w > 0, w.long(), w.bool().sum()), weight())


def test_inputs_of_every_form():
    base = torch.randn(4, 6)
    check(lambda a, b: (a * 2, b.sin()), base[:, ::2], base.t())
    check(lambda a, b: a.mul_(2) + b.sum(), base[:2], base[1:3])
    check(lambda w, v: w.t() @ v, torch.randn(4, 4).t().requires_grad_(), torch.randn(8, 4)[::2].requires_grad_())
    check(lambda x: x.expand(3, 4).sum(0), torch.randn(1, 4).requires_grad_())
    check(lambda x: x.expand(3, 4) * 2, torch.randn(1, 4).expand(3, 4))
    check(lambda w: (w @ torch.ones(0, 3), w.sum()), torch.randn(4, 0).requires_grad_())
    check(lambda w: w[2:2], weight())
    w = weight()
    twice = cutaway.aot(lambda a, b: (a @ b).sum(), (w, w))
    twice(w, w).backward()
    torch.testing.assert_close(w.grad, torch.autograd.grad((w @ w).sum(), w)[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64, torch.float64])
def test_other_dtypes(dtype):
    check(lambda w, v: (w * v + w).sum(0), weight(4, 3, dtype=dtype), weight(4, 3, dtype=dtype))
    if dtype == torch.complex64:
        check(lambda w: (w.conj(), w.real, torch.view_as_real(w) * 2, w.imag.neg()), weight(3, 3, dtype=dtype))
        check(lambda w: (w.conj() * w).real.sqrt(), weight(3, 3, dtype=dtype))
        check(lambda w: w * 1j / (2 + 1j), weight(3, 3, dtype=dtype))


def test_writes():
    def views(x):
        y = x * 1
        y[0].mul_(3)
        y.t()[1].add_(y[2].clone())
        y.view(-1)[::5].zero_()
        return y, y[1]

    check(views, weight())

    def inputs_too(x, buffer):
        buffer[1:].add_(x.detach()[0])
        buffer.t_()
        return x * buffer.sum()

    check(inputs_too, weight(), torch.ones(3, 4))

    def detached(x):
        y = x.sin()
        z = y.detach()
        y = y * 1
        return y, z

    check(detached, weight())

    def detach_in_place(x):
        y = x.sin()
        y.detach_()
        return y * 2 + x

    with pytest.raises(
        cutaway.Error, match="aten.detach_ inside the program is refused"
    ):  # it would be lost where the tensor leaves the graph
        cutaway.aot(detach_in_place, (weight(),))

    def data(x):
        y = x * 1
        y.data.mul_(2)
        return y

    check(data, weight())

    def no_grad_write(x):
        with torch.no_grad():
            x.mul_(2)
        return x.sin()

    check(no_grad_write, weight())

    def index(x, i):
        y = x.clone()
        y[i] = 0
        y.index_add_(0, i, x[i])
        return y

    check(index, weight(), torch.tensor([1, 2]))


def test_replaced_data_is_refused():
    def inside(w):
        y = w * 1
        y.data = y.data * 2
        return y * 1

    def of_an_input(x):
        x.data = x.data * 2
        return x.sum()

    for f in (inside, of_an_input):
        with pytest.raises(cutaway.Error, match="was replaced"):
            cutaway.aot(f, (weight(),))


def test_fresh_storages_of_other_tensors():
    def resized(x):
        y = torch.empty(0)
        y.resize_(4).fill_(2)
        return x * y

    def as_out(x):
        y = torch.empty(4, 4)
        torch.mul(x.detach(), 2, out=y)
        return x + y

    for f in (resized, as_out):
        try:
            check(f, weight())
        except (cutaway.Error, NotImplementedError) as refused:
            assert "refused" in str(refused) or "cannot" in str(refused), refused


def test_new_leaves_inside():
    def f(x):
        y = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(y.sin().sum(), y)
        return x * g

    check(f, weight())
    with pytest.raises((cutaway.Error, NotImplementedError), match="requires_grad_|refused"):
        cutaway.aot(lambda x: x.detach().requires_grad_() * 2, (torch.ones(3),))


def test_modes():
    def f(x, w):
        with torch.no_grad():
            y = x @ w
            with torch.enable_grad():
                z = x @ w
        with torch.autocast("cpu", dtype=torch.bfloat16):
            u = x @ w
            with torch.autocast("cpu", enabled=False):
                v = x @ w
        return y, z, u, v

    check(f, torch.randn(3, 4), weight())
    with torch.inference_mode():
        g = cutaway.aot(f, (torch.randn(3, 4), torch.randn(4, 4)))
        assert not g(torch.randn(3, 4), torch.randn(4, 4))[1].requires_grad


def test_random_numbers_and_batch_norm():
    check(lambda w: F.dropout(w, 0.5) + torch.rand(4) + torch.rand_like(w) + torch.randn(4, 4), weight())

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4)

        def forward(self, x):
            return self.norm(x)

    a, b = Net(), Net()
    compiled = cutaway.aot(b, (torch.ones(3, 4),))
    for _ in range(3):
        x = torch.randn(3, 4)
        torch.testing.assert_close(compiled(x), a(x))
    for e, g in zip(a.state_dict().values(), b.state_dict().values(), strict=True):
        torch.testing.assert_close(g, e)


def test_warnings_and_errors_are_eager_s():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = cutaway.aot(lambda w: w @ w, (weight(),))
        f(weight())
    g = cutaway.aot(lambda x, i: x[i], (weight(), torch.tensor([0, 1])))
    with pytest.raises(IndexError):
        g(weight(), torch.tensor([0, 9]))


def test_a_backward_that_checks_phases_checks_them_when_it_runs():
    """The gradient of a complex svd exists only for a loss that does not depend on the phases of the vectors."""
    x = torch.randn(4, 4, dtype=torch.complex128, requires_grad=True)

    def good(x):
        return sum(v.abs().pow(2 + i).sum() for i, v in enumerate(torch.linalg.svd(x)))

    compiled = cutaway.aot(good, (x,))
    assert "_assert_async" in str(compiled.backward)
    (expected,), (got,) = (torch.autograd.grad(h(x), x) for h in (good, compiled))
    torch.testing.assert_close(got, expected)
    bad = cutaway.aot(lambda x: torch.linalg.svd(x)[0].imag.pow(2).sum(), (x,))
    with pytest.raises(RuntimeError, match="phases"):
        torch.autograd.grad(bad(x), x)


@pytest.mark.parametrize("order", ["result first", "detached first", "views"])
def test_outputs_that_were_detached_from_others_share_their_memory(order):
    def f(w):
        h = (w * 2).tanh()
        outputs = {
            "result first": (h, h.detach()),
            "detached first": (h.detach(), h),
            "views": (h.detach()[1:], h[0], h.t().detach(), h),
        }
        return outputs[order]

    w = weight()
    compiled = cutaway.aot(f, (w,))
    expected, got = f(w), compiled(w)
    for e, g in zip(expected, got, strict=True):
        assert torch.equal(e, g) and e.requires_grad == g.requires_grad and e.stride() == g.stride()
        assert g.untyped_storage().data_ptr() == got[0].untyped_storage().data_ptr()
    grads = [torch.autograd.grad(sum(o.sum() for o in out if o.requires_grad), w)[0] for out in (expected, got)]
    torch.testing.assert_close(grads[1], grads[0])
    for out in (f(w), compiled(w)):  # a write to one is seen in all
        next(o for o in out if not o.requires_grad).zero_()
        assert all((o == 0).any() for o in out if o.dim() == 2)
