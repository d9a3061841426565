"""What training ahead of time must leave as eager does: gradients that are none, hooks that are not called, versions, errors half-way."""

import cutaway
import pytest
import torch

BACKENDS = ["eager", "aot_eager", "fx"]


def run(function, program, backend):
    torch.manual_seed(0)
    cutaway.reset()
    if backend is not None:
        function = cutaway.compile(
            function, backend=(lambda module, inputs: module.forward) if backend == "fx" else backend
        )
    return program(function)


def same(function, program, backends=BACKENDS):
    expected = run(function, program, None)
    for backend in backends:
        assert run(function, program, backend) == expected, backend
    return expected


def test_what_the_loss_does_not_reach_has_no_gradient():
    """An optimiser with weight decay steps over None, not over zeros."""

    def f(a, b):
        return a * 2, b.sin()

    def program(f):
        a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        first, second = f(a, b)
        first.sum().backward(retain_graph=True)
        seen = [a.grad.tolist(), b.grad is None]
        second.sum().backward()
        return [*seen, a.grad.tolist(), b.grad.tolist()]

    assert same(f, program)[1]


def test_hooks_of_what_gets_no_gradient_are_not_called():
    def f(x, w):
        with torch.no_grad():
            w.mul_(0.9)
        return x.sin() + w.detach()[1]

    def program(f):
        x, w = torch.ones(3, requires_grad=True), torch.ones(5, 3, requires_grad=True)
        seen = []
        w.register_hook(lambda g: seen.append("hook"))
        w.register_post_accumulate_grad_hook(lambda p: seen.append("after"))
        f(x, w).sum().backward()
        return seen, w.grad, x.grad.tolist(), w.tolist()

    same(f, program)


def test_a_buffer_with_a_history_of_its_own():
    """Backward of the result does not go through last call's graph, which is freed by then."""

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("history", torch.zeros(3, requires_grad=True))

        def forward(self, x):
            self.history = self.history * 0.5 + x.detach()
            return x * 2

    def program(wrap):
        module = wrap(Module())
        x = torch.ones(3, requires_grad=True)
        for _ in range(3):
            module(x).sum().backward()
        return x.grad.tolist(), module.history.tolist()

    expected = program(lambda m: m)
    for backend in ("eager", "aot_eager"):
        cutaway.reset()
        assert program(lambda m, backend=backend: cutaway.compile(m, backend=backend)) == expected


def test_what_was_written_before_an_error_stays_written():
    def f(x, count, table, box, at):
        count.add_(1)
        box.append("before")
        return x * torch.rand(()) + table[at]

    def program(f):
        count, box, seen = torch.zeros(()), [], []
        for at in (0, 5, 1):
            try:
                seen.append(f(torch.ones(2, requires_grad=True), count, torch.ones(3), box, torch.tensor(at)).tolist())
            except IndexError as error:
                seen.append(str(error))
        return seen, count.item(), box, torch.rand(()).item()

    assert same(f, program, ["aot_eager"])[1] == 3


def test_inputs_that_share_their_memory_only_later():
    """Guards do not tell such calls apart; what cannot be differentiated ahead of time runs operator by operator."""

    def f(a, b, c):
        a.mul_(2)
        a += c.sum()
        return b + 1

    def program(f):
        seen = []
        for k in range(4):
            a = torch.arange(4.0).reshape(2, 2)
            c = torch.ones(2, requires_grad=True)
            w = torch.ones(2, 2, requires_grad=k == 3)
            a = a * w
            b = [a.detach().clone(), a[:1], a.t(), a][k]
            out = f(a, b, c)
            (out.sum() + a.sum()).backward()
            seen.append(
                (
                    out.tolist(),
                    out.requires_grad,
                    a.tolist(),
                    a.requires_grad,
                    c.grad.tolist(),
                    w.grad is None or w.grad.tolist(),
                )
            )
        return seen

    same(f, program)


def test_data_has_a_version_of_its_own():
    def f(x, w):
        y = x.sin() @ w
        w.data.add_(0.1)
        return y.sum(), w.data, x.data

    def program(f):
        x, w = torch.ones(2, 3, requires_grad=True), torch.full((3, 3), 0.5, requires_grad=True)
        plain = torch.ones(2, 3)
        loss, data, _ = f(x, w)
        loss.backward()
        data.mul_(2)
        other = f(plain, w)[2]
        return (
            w._version,
            x.grad.tolist(),
            w.grad.tolist(),
            w.tolist(),
            other is plain,
            other.data_ptr() == plain.data_ptr(),
        )

    assert same(f, program)[4:] == (False, True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_layouts_after_writes(backend):
    """The functional form of an operator that writes may choose another layout than eager's."""

    def f(x, w):
        x.index_fill_(0, torch.tensor([0]), 5.0)
        x.unsqueeze_(0).squeeze_(0)
        y = w * 1
        y.masked_fill_(w > 2, 1.0)
        return y

    def program(f):
        whole = torch.ones(4, 4)
        x, w = whole[1:3, 1:3], torch.arange(6.0).reshape(2, 3).t()
        y = f(x, w)
        return x.stride(), x.storage_offset(), whole.tolist(), y.stride(), y.tolist()

    same(f, program, [backend])


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[:1].expand(3, 4).fill_(7),
        lambda x: x[:1].expand(3, 4).zero_(),
        lambda x: x[:1].expand(3, 4).masked_fill_(torch.tensor(True), 7.0),
        lambda x: x[:, :1].expand(3, 4).copy_(x.clone()),
        lambda x: x.view(-1)[1:].add_(x.view(-1)[:-1]),
        lambda x: x[:, :3].copy_(x[:, 1:]),
        lambda x: torch.sin(x.view(-1)[:-1], out=x.view(-1)[1:]),
        lambda x: x[:, 0].add_(x[:, 1]),
        lambda x: x.t().add_(x.t()),
    ],
)
def test_writes_to_memory_that_is_shared(write):
    """A functional form writes to no memory: it neither raises nor lets elements share a value."""

    def f(x):
        write(x)
        return x + 0

    def program(f):
        x = torch.arange(12.0).view(3, 4)
        try:
            return f(x).tolist(), x.tolist()
        except RuntimeError as e:
            return str(e), x.tolist()

    same(f, program)


@pytest.mark.parametrize(
    "unused",
    [
        lambda x: (x * 1j) > 1,
        lambda x: x.long().softmax(0),
        lambda x: x.long() // 0,
        lambda x: x.gather(1, torch.full((3, 4), 9)),
        lambda x: torch.linalg.inv(x[:, :3] * 0),
        lambda x: x & 1,
        lambda x: x.exp(),
    ],
)
def test_an_operator_that_nobody_uses_raises(unused):
    def f(x):
        y = x * 2
        unused(y)
        return y + 1

    def program(f):
        x = torch.arange(12.0).view(3, 4).requires_grad_()
        try:
            f(x).sum().backward()
            return x.grad.tolist()
        except (RuntimeError, NotImplementedError) as e:
            return type(e).__name__, str(e)[:40]

    same(f, program)


def test_forward_mode_derivatives_are_kept():
    def f(x, y):
        return x.sin() * y

    def program(f):
        seen = [f(torch.ones(3), torch.ones(3)).tolist()]
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.full((3,), 2.0))
            for args in ((dual, torch.ones(3)), (torch.ones(3), dual), (torch.ones(3), torch.ones(3))):
                tangent = torch.autograd.forward_ad.unpack_dual(f(*args)).tangent
                seen.append(None if tangent is None else tangent.tolist())
        return seen

    assert same(f, program)[1] is not None


@pytest.mark.parametrize("count", [1, 6])
def test_versions_count_eagers_writes(count):
    def f(x):
        for _ in range(count):
            x.add_(1)
        x[0].mul_(2)
        return x * 2

    def program(f):
        x, base = torch.ones(3), torch.ones(4, 3)
        f(x)
        f(base[1])
        return x._version, base._version

    assert same(f, program) == (count + 1, count + 1)


def test_versions_of_running_statistics():
    def f(x, mean, variance):
        return torch.nn.functional.batch_norm(x, mean, variance, training=True)

    def program(f):
        mean, variance = torch.zeros(4), torch.ones(4)
        f(torch.arange(12.0).view(3, 4), mean, variance)
        return mean._version, variance._version, mean.tolist()

    same(f, program)


def test_detached_in_place():
    def f(x):
        y = x * 1
        d = y.detach()
        d[0] = 0
        y.detach_()
        return y, (x * 2).sum()

    def program(f):
        x = torch.ones(3, requires_grad=True)
        y, s = f(x)
        s.backward()
        return y.requires_grad, y.is_leaf, y.tolist(), x.grad.tolist()

    same(f, program)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, c: torch.add(x, x, out=c.t()),
        lambda x, c: c.t().copy_(x * 2),
        lambda x, c: c.t().add_(x),
        lambda x, c: torch.mul(x.t(), 2, out=c),
    ],
)
def test_layout_of_what_is_written_to(write):
    def f(x):
        c = torch.zeros(4, 3)
        write(x, c)
        return c

    def program(f):
        c = f(torch.arange(12.0).view(3, 4))
        return c.stride(), c.tolist()

    same(f, program)


def change_weight(x, w, outputs):
    with torch.no_grad():
        w.add_(1)


def change_input(x, w, outputs):
    with torch.no_grad():
        x.mul_(3)


def change_output(x, w, outputs):
    with torch.no_grad():
        outputs[0].mul_(3)


@pytest.mark.parametrize("change", [change_weight, change_input, change_output])
@pytest.mark.parametrize(
    "forward",
    [
        lambda x, w: (x @ (w * 2)).sum(),
        lambda x, w: (x @ (w.triu() + w.triu(1).t())).sum(),
        lambda x, w: (x * w).sum(),
        lambda x, w: ((x * 2).exp() * w[0]).sum(),
        lambda x, w: (x.t() * w.t()).sum(),
        lambda x, w: ((x + 1) * (x + 2) * (x * w)).sum(),
        lambda x, w: torch.stack([x * 2, (x * 2 + 1) * (x * 2 - 1)]).prod(0).sum(),
        lambda x, w: x.double().pow(2).sum(),
    ],
)
def test_what_is_written_between_forward_and_backward(forward, change):
    """An error only where eager has kept the tensor: what backward computes again must not come from one that eager did not keep."""

    def f(x, w):
        h = x * 2
        return h, forward(x, w) + ((h + 1) * (h + 2)).sum()

    def program(f):
        x = torch.arange(16.0).view(4, 4).div(9).requires_grad_()
        w = torch.ones(4, 4).mul(1.5).requires_grad_()
        outputs = f(x, w)
        change(x, w, outputs)
        try:
            outputs[1].backward()
        except RuntimeError:
            return "raised"
        return x.grad.tolist(), None if w.grad is None else w.grad.tolist()

    same(f, program)


UNUSED = {
    "log": lambda x: (x * 0).log(),
    "sqrt": lambda x: (x * 0).sqrt(),
    "norm": lambda x: (x * 0).norm(),
    "divide": lambda x: 1 / (x * 0),
    "power": lambda x: (x * 0) ** -1.0,
    "acos": lambda x: (x * 0 + 1).acos(),
    "logsumexp": lambda x: (x - float("inf")).logsumexp(0),
    "atan2": lambda x: torch.atan2(x * 0, x * 0),
    "through a sum": lambda x: ((x * 0).log() + x * 3).sum(),
    "std": lambda x: (x * 0).std(),
    "part": lambda x: (x[1:] * 0).log(),
}


@pytest.mark.parametrize("name", UNUSED)
def test_what_the_loss_does_not_use_adds_nothing_to_a_gradient(name):
    """Not zero times infinity, which is no number."""

    def f(x):
        return (x * x).sum(), UNUSED[name](x), x.exp().sum()

    def program(f):
        x = torch.ones(3, requires_grad=True)
        loss, unused, third = f(x)
        (loss + third).backward()
        return x.grad.tolist()

    assert all(g == g for g in same(f, program))


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("second", [0, 1, 2])
@pytest.mark.parametrize(
    "forward",
    [
        lambda a, b: (a.sin().sum(), b.exp().sum(), (a * b).sum()),
        lambda a, b: (lambda h: (h.sin().sum(), (h * 2).exp().sum(), b.cos().sum()))(a.exp()),
        lambda a, b: (lambda h: (h.sum(), (h * 2).sum(), (h + b).sum()))(a.tanh()),
        lambda a, b: (a.exp(), a.sin(), (a.sin() * b).sum()),
        lambda a, b: (a + b, (a - b).sum(), b.neg()),
        lambda a, b: ((a * a).sum(), (b * b).sum(), (a @ b).tanh()),
        lambda a, b: (a.sum(), a.relu().sum(), a.softmax(0)),
    ],
)
def test_backward_from_one_output_frees_its_history_alone(forward, first, second):
    """A second pass from another output works, or raises, as in eager; an optimiser may have written to what only the first one needed."""

    def program(f):
        a, b = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([0.5, 1.0, 1.5], requires_grad=True)
        outputs = f(a, b)
        outputs[first].sum().backward()
        try:
            outputs[second].sum().backward()
        except RuntimeError as e:
            return str(e)[:60]
        return [None if t.grad is None else t.grad.tolist() for t in (a, b)]

    def plain(f):
        return str(program(f))

    same(forward, plain)


@pytest.mark.parametrize("kept", [True, False])
def test_an_optimiser_steps_between_two_passes(kept):
    def f(x, w, v):
        return (x * w).exp().sum(), (x * v).exp()

    def program(f):
        x = torch.ones(3)
        w, v = torch.full((3,), 0.5, requires_grad=True), torch.full((3,), 0.25, requires_grad=True)
        loss, other = f(x, w, v)
        loss.backward(retain_graph=kept)
        with torch.no_grad():
            w.sub_(w.grad)
        other.sum().backward()
        return w.tolist(), v.grad.tolist()

    same(f, program)


WRITES = {
    "add_": lambda p, x: p.add_(1),
    "foreach add": lambda p, x: torch._foreach_add_([p], 1),
    "foreach lerp": lambda p, x: torch._foreach_lerp_([p], [x], 0.5),
    "foreach copy": lambda p, x: torch._foreach_copy_([p], [x]),
    "foreach zero": lambda p, x: torch._foreach_zero_([p]),
    "foreach addcdiv": lambda p, x: torch._foreach_addcdiv_([p], [x], [x], 0.5),
    "foreach twice": lambda p, x: (torch._foreach_mul_([p], 2), torch._foreach_sqrt_([p])),
    "foreach clamp": lambda p, x: torch._foreach_clamp_min_([p], 0.7),
    "copy_": lambda p, x: p.copy_(x),
    "setitem": lambda p, x: p.__setitem__(0, 3.0),
    "view": lambda p, x: p.view(-1).add_(1),
    "index": lambda p, x: p[1:].mul_(2),
}


@pytest.mark.parametrize("way", ["no_grad", "detach", "detach in no_grad", "inference"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_to_parameters_that_autograd_does_not_see(name, way):
    """Averages of weights write through x.detach() with grad mode on. Each write counts in the version."""

    def f(p, x):
        if way == "detach":
            WRITES[name](p.detach(), x)
        else:
            with torch.inference_mode() if way == "inference" else torch.no_grad():
                WRITES[name](p.detach() if way == "detach in no_grad" else p, x)
        return (p * x).sum()

    def program(f):
        p, x = torch.full((3,), 0.5, requires_grad=True), torch.tensor([1.0, 2.0, 3.0])
        loss = f(p, x)
        loss.backward()
        return p.tolist(), p._version, p.grad.tolist(), p.is_leaf

    same(f, program)


def test_average_of_weights():
    def make():
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        return model, torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        )

    def program_of(backend):
        cutaway.reset()
        model, average = make()

        def f(x):
            average.update_parameters(model)
            return average(x).detach()

        if backend:
            f = cutaway.compile(f, backend=backend)
        seen = []
        for i in range(3):
            seen.append(f(torch.full((2, 4), float(i))).tolist())
            with torch.no_grad():
                model.weight.add_(1)
        return seen

    expected = program_of(None)
    for backend in ("eager", "aot_eager"):
        assert program_of(backend) == expected


@pytest.mark.parametrize("reached", [[0], [1], [2], [0, 1], [1, 2]])
def test_part_of_the_outputs_and_layouts(reached):
    """Where a sum of gradients loses a term, the other one may lie differently in memory: views behind it were recorded for the sum."""

    def f(x, w):
        q, k, v = (t.view(2, 4, 2, 4).transpose(1, 2) for t in (x @ w).split(8, dim=2))
        p = (q @ k.transpose(-2, -1) * 0.5).softmax(-1)
        y = (p @ v).transpose(1, 2).contiguous().view(2, 4, 8)
        other = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return y, other, (q.transpose(-1, -2) + k.transpose(2, 3)).contiguous()

    def program(f):
        torch.manual_seed(1)
        x, w = torch.randn(2, 4, 8, requires_grad=True), torch.randn(8, 24, requires_grad=True)
        results = f(x, w)
        weights = [torch.arange(1.0, r.numel() + 1).view_as(r) for r in results]
        sum((results[i] * weights[i]).sum() for i in reached).backward()
        return x.grad.tolist(), w.grad.tolist()

    same(f, program)


def gradient_penalty(f):
    x = torch.randn(4, 3, requires_grad=True)
    w = torch.randn(3, 2, requires_grad=True)
    (g,) = torch.autograd.grad(f(x, w).sum(), x, create_graph=True)
    ((g.norm(2, dim=1) - 1) ** 2).mean().backward()
    return x.grad.tolist(), w.grad.tolist(), g.requires_grad


def hessian(f):
    x, w = torch.randn(2, 3), torch.randn(3, 2)
    rows = torch.autograd.functional.hessian(lambda a: f(a, w).sum(), x)
    return rows.tolist(), torch.autograd.functional.jacobian(lambda a: f(a, w), x).tolist()


def third_order(f):
    x, w = torch.randn(2, 3, requires_grad=True), torch.randn(3, 2)
    y, seen = f(x, w).sum(), []
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        seen.append(y.tolist())
    return seen


def inner_loop(f):
    w, x = torch.randn(3, 2, requires_grad=True), torch.randn(4, 3)
    fast = w
    for _ in range(3):
        (g,) = torch.autograd.grad(f(x, fast).pow(2).sum(), fast, create_graph=True)
        fast = fast - 0.1 * g
    f(x, fast).sum().backward()
    return w.grad.tolist(), fast.tolist()


def tied(f):
    w = torch.randn(3, 3, requires_grad=True)
    (g,) = torch.autograd.grad(f(w, w).sum(), w, create_graph=True)
    g.sum().backward()
    return g.tolist(), w.grad.tolist()


def after_a_write(f):
    """Operators that cannot run again give the first gradient, and refuse the second."""
    x, w = torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)
    (g,) = torch.autograd.grad(f(x, w).sum(), w, create_graph=True)
    return g.tolist()


@pytest.mark.parametrize("program", [gradient_penalty, hessian, third_order, inner_loop, tied, after_a_write])
@pytest.mark.parametrize("kind", ["plain", "broken"])
def test_derivatives_of_derivatives(program, kind):
    def f(x, w):
        h = torch.tanh(x @ w) * 0.5
        if kind == "broken":
            torch._dynamo.graph_break()
        return (h.exp() * h).sin() + h * x.shape[0]

    # The operators of a second derivative are made when the first one is taken, so that sums come in another order.
    expected = run(f, program, None)
    for backend in BACKENDS:
        for got, wanted in zip(run(f, program, backend), expected, strict=True):
            torch.testing.assert_close(torch.tensor(got), torch.tensor(wanted), msg=backend)


def test_anomaly_mode_names_the_operator():
    def f(x):
        return (x - x).sqrt() * 0

    def program(f):
        seen = []
        for around_forward in (True, False):
            x = torch.ones(3, requires_grad=True)
            with torch.autograd.set_detect_anomaly(around_forward):
                y = f(x).sum()
            try:
                with torch.autograd.set_detect_anomaly(True):
                    y.backward()
            except RuntimeError as e:
                seen.append(str(e))
        return seen

    assert "SqrtBackward0" in same(f, program)[0]


@pytest.mark.parametrize("breaks", [0, 1, 2])
def test_gradients_of_one_input_are_added_in_order(breaks):
    """Each graph hands on the terms of a sum, not the sum: the engine adds them as it adds eager's."""

    def f(x, w):
        a, b = x.sin() * w, (x.cos() * 1.1) @ w
        if breaks:
            torch._dynamo.graph_break()
        c, d = x.exp() * 0.3, (x + w).tanh()
        if breaks > 1:
            torch._dynamo.graph_break()
        return a, b, c, d, (x * w).sigmoid(), x.square().mean(0)

    def program(f):
        x, w = torch.randn(16, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True)
        hooked = []
        x.register_hook(lambda g: hooked.append(g.sum().item()))
        results = f(x, w)
        sum((r * r.detach().cos()).sum() for r in results).backward(retain_graph=True)
        results[2].sum().backward(retain_graph=True)
        (results[0].sum() + results[5].sum()).backward()
        return x.grad.tolist(), w.grad.tolist(), hooked

    same(f, program)


def test_a_buffer_that_is_written_again_before_backward():
    """The new value of an input is kept as the input itself; the words of the error are about what eager reads first."""

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)
            self.register_buffer("step", torch.zeros((), dtype=torch.long))

        def forward(self, x):
            self.step += 1
            return self.norm(self.linear(x)) * self.step

    def program(wrap):
        torch.manual_seed(0)
        module = Module()
        compiled = wrap(module)
        seen = []
        for written in (None, module.step, module.norm.weight.detach(), module.norm.running_mean):
            y = compiled(torch.ones(4, 3) * torch.arange(4.0)[:, None])
            if written is not None:
                written.add_(1)
            try:
                y.sum().backward()
                seen.append("fine")
            except RuntimeError as e:
                seen.append(str(e))
        return seen, module.step.item()

    expected = program(lambda m: m)
    assert any("modified by an inplace" in str(s) for s in expected[0])
    for backend in ("eager", "aot_eager"):
        cutaway.reset()
        assert program(lambda m, b=backend: cutaway.compile(m, backend=b)) == expected


@pytest.mark.parametrize("write", ["unbind", "out_dtype", "sort_out", "split"])
def test_writes_that_eager_refuses(write):
    def f(x, y):
        a = x * 1
        try:
            if write == "unbind":
                a.unbind(1)[0].mul_(2)
            if write == "split":
                a.split(2)[0].add_(1)
            if write == "out_dtype":
                torch.add(y, 1, out=torch.empty(3, 4, dtype=torch.int64))
            if write == "sort_out":
                torch.sort(y, stable=True, dim=-1, out=(torch.empty(3, 4), torch.empty(3, 4)))
            said = "fine"
        except RuntimeError as e:
            said = str(e)
        return a.sum() + y.sum(), said

    def program(f):
        x, y = torch.ones(3, 4, requires_grad=True), torch.ones(3, 4)
        r, said = f(x, y)
        r.backward()
        return said, x.grad.tolist()

    assert same(f, program)[0] != "fine"


def test_versions_and_bases_of_what_the_program_makes():
    def plain(x):
        y = torch.zeros(3, 4)
        y[0] = x.sum()
        y.add_(1)
        return y, y[1], y.view(-1)[2:]

    def program(f):
        y, row, part = f(torch.ones(3))
        return y._version, row._base is y, part._base is y, y.tolist()

    assert same(plain, program)[:3] == (2, True, True)

    def trained(x):
        y = torch.zeros(3, 3)
        y[0] = x
        y[1].add_(x * 2)
        return y

    def versions(f):
        x = torch.ones(3, requires_grad=True)
        y = f(x)
        seen = y._version
        (y * torch.arange(9.0).view(3, 3)).sum().backward()
        return seen, x.grad.tolist()

    assert same(trained, versions)[0] == 2


def test_views_of_what_does_not_leave_stay_views():
    def f(x):
        y = x * 3
        first, rest = (x + 1).split([1, 2])
        return y[0], (x * 2).view(-1)[2:], y.sum(), first, rest

    def program(f):
        x = torch.randn(3, 2, requires_grad=True)
        row, part, total, first, _ = f(x)
        seen = [row._is_view(), row._base is None, part._base.shape == x.shape, total._is_view()]
        for t in (row, first):
            try:
                t.detach_()
            except RuntimeError as e:
                seen.append(str(e))
        try:
            first.mul_(2)
        except RuntimeError as e:
            seen.append(str(e))
        part.mul_(2)
        (row.sum() + part.sum() + total).backward()
        return seen, x.grad.tolist()

    assert same(f, program)[0][:4] == [True, False, True, False]


def test_a_write_to_data_of_an_output():
    """No version tells of it: backward reads what was written, as in eager."""

    def f(x):
        y = x.relu()
        return y, y.data

    def program(f):
        x = torch.tensor([-1.0, 2.0], requires_grad=True)
        y, data = f(x)
        data.add_(1)
        y.sum().backward()
        return x.grad.tolist(), y._version, data._version

    assert same(f, program) == ([1.0, 1.0], 0, 1)


def test_a_write_through_a_conjugated_view():
    def f(z):
        c, n = z.detach().clone(), z.detach().clone()
        view = c.conj()
        view[0] = 1 + 2j
        view.mul_(1j)
        n.conj().imag.mul_(2)
        return c, n, z * 2, z.conj()

    def program(f):
        z = torch.complex(torch.arange(3.0), torch.ones(3)).requires_grad_()
        results = f(z)
        return [(r.is_conj(), r.is_neg(), r.tolist()) for r in results]

    same(f, program)


class Logged(torch.autograd.Function):
    """Tells what its backward is given. In eager nothing is, where a pass does not come by."""

    log = []

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        Logged.log.append(g.sum().item())
        return g * x.exp()


def two_losses(y, x):
    return (y * 2).sum(), (x * x).sum()


@pytest.mark.parametrize("made_by", [Logged.apply, lambda x: Logged.apply(x).sin(), torch.exp, lambda x: x.exp()[1:]])
@pytest.mark.parametrize("first", [0, 1])
def test_a_pass_does_not_come_by_what_only_other_outputs_depend_on(made_by, first):
    def program(f):
        Logged.log.clear()
        x = torch.arange(3.0).requires_grad_()
        z = torch.arange(3.0).requires_grad_()
        losses = f(made_by(x), z)
        losses[first].backward()
        seen = [[None if t.grad is None else t.grad.tolist() for t in (x, z)], list(Logged.log)]
        losses[1 - first].backward()
        return seen, x.grad.tolist(), z.grad.tolist(), list(Logged.log)

    same(two_losses, program)


def test_a_pass_beside_freed_history():
    def program(f):
        x = torch.arange(3.0).requires_grad_()
        y = Logged.apply(x).sin()
        loss, other = f(y, x)
        loss.backward()
        return x.grad.tolist(), torch.autograd.grad(other, x)[0].tolist()

    same(two_losses, program)


def test_a_hook_of_a_leaf_that_a_pass_does_not_come_by():
    def program(f):
        seen = []
        y, x = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        y.register_hook(lambda g: seen.append(g.tolist()))
        loss, other = f(y, x)
        other.backward()
        before = list(seen), y.grad
        loss.backward()
        return before, seen, y.grad.tolist(), x.grad.tolist()

    same(two_losses, program)


def test_a_pass_through_several_graphs():
    """Graphs take none from each other without a word, and stay compiled."""

    def program(f):
        x, z = torch.arange(3.0).requires_grad_(), torch.arange(3.0).requires_grad_()
        first, second = f(x, z)
        third, fourth = f(first, second)
        third.backward(retain_graph=True)
        seen = [None if t.grad is None else t.grad.tolist() for t in (x, z)]
        fourth.backward()
        return seen, x.grad.tolist(), z.grad.tolist()

    same(two_losses, program)


def test_versions_of_what_is_written_without_gradients():
    def f(x, w):
        with torch.no_grad():
            s, t = x.new_zeros(3), x.new_zeros(3)
            s.copy_(x * w)
            v = t.view(3)
            v.copy_(w)
            t[0] = 1
        return s, t, v

    def program(f):
        return [t._version for t in f(torch.ones(3), torch.ones(3, requires_grad=True))]

    assert same(f, program) == [1, 2, 2]
