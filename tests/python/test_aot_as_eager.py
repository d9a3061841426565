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
