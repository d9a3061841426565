# ruff: noqa
"""What the program does to the backward pass in Python: hooks of modules and tensors, autograd functions, also around one another."""

import torch
import torch.nn.functional as F
from tests.support.registry import built, leaf, program, takes, tensor
from torch import nn


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))


def trained(m, seen):
    """The backward pass inside: what hooks saw is part of the result."""

    def f(x):
        m.zero_grad()
        y = m(x)
        y.pow(2).sum().backward()
        return y.detach(), [p.grad.clone() for p in m.parameters()], list(seen)

    return f


@built(args=lambda i: [leaf(i)], graphs=8, breaks=True)
def module_hook_sees():
    m, seen = network(), []
    m[0].register_full_backward_hook(lambda mod, gi, go: seen.append((type(mod).__name__, len(gi), go[0].sum().item())))
    return trained(m, seen)


@built(args=lambda i: [leaf(i)], graphs=4, breaks=True)
def module_hook_changes():
    m = network()
    m[1].register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2,))
    return trained(m, [])


@built(args=lambda i: [leaf(i)], graphs=9, breaks=True)
def module_pre_hook():
    m, seen = network(), []
    m[2].register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
    m[2].register_full_backward_hook(lambda mod, gi, go: seen.append(go[0].sum().item()))
    return trained(m, seen)


@built(args=lambda i: [leaf(i)])
def module_hook_outside():
    m, seen = network(), []
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] + 1,))

    def f(x):
        return m(x * 2)

    return f


@built(args=lambda i: [tensor(i)], graphs=7, breaks=True)
def module_hook_input_without_grad():
    m, seen = network(), []
    m[2].register_full_backward_hook(lambda mod, gi, go: seen.append(go[0].shape))
    return trained(m, seen)


@built(args=lambda i: [leaf(i)])
def module_hook_no_grad():
    m = network()
    m[0].register_full_backward_hook(lambda mod, gi, go: None)

    def f(x):
        with torch.no_grad():
            return m(x)

    return f


@built(args=lambda i: [leaf(i), i], graphs=4)
def module_hook_appears():
    m, seen = network(), []

    def f(x, i):
        return m(x), len(seen)

    def g(x, i):
        if i == 1:
            m[0].register_full_backward_hook(lambda mod, gi, go: seen.append(1))
        return f(x, i)

    return g


@built(args=lambda i: [leaf(i)], graphs=9, breaks=True)
def module_hook_twice_called():
    torch.manual_seed(0)
    lin, seen = nn.Linear(4, 4), []
    lin.register_full_backward_hook(lambda mod, gi, go: seen.append(round(go[0].sum().item(), 4)))

    def f(x):
        y = lin(lin(x).relu())
        y.sum().backward()
        return y.detach(), list(seen)

    return f


@built(args=lambda i: [leaf(i)], graphs=5, breaks=True)
def module_hook_tuple():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x, scale, flag=True):
            y = self.lin(x) * scale
            return y, y.sum()

    torch.manual_seed(0)
    m, seen = Two(), []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((len(gi), [g is None for g in gi], len(go))))

    def f(x):
        a, b = m(x, 2.0)
        (a.sum() + b).backward()
        return a.detach(), list(seen)

    return f


@built(args=lambda i: [leaf(i)], graphs=4, breaks=True)
def module_hook_raises():
    m = network()

    def hook(mod, gi, go):
        raise ValueError("from the hook")

    m[1].register_full_backward_hook(hook)

    def f(x):
        y = m(x)
        try:
            y.sum().backward()
        except ValueError as e:
            return y.detach(), str(e)

    return f


# --- tensors ---

_scale = 3.0


def tripled(g):
    return g * _scale


@program(args=lambda i: [leaf(i)])
def tensor_hook(x):
    y = x.sin()
    y.register_hook(tripled)
    return y * 2


@program(args=lambda i: [leaf(i)])
def tensor_hook_lambda(x):
    y = x * 2
    y.register_hook(lambda g: g.clamp(-0.5, 0.5))
    return y.exp()


@program(args=lambda i: [leaf(i)])
def tensor_hook_closure(x):
    k = x.shape[0]
    y = x * 2
    y.register_hook(lambda g: g * k)
    return y.exp()


@program(args=lambda i: [leaf(i)], graphs=0, breaks=True)
def tensor_hook_removed(x):
    y = x * 2
    handle = y.register_hook(tripled)
    handle.remove()
    return y.exp()


@program(args=lambda i: [leaf(i)], graphs=3, breaks=True)
def tensor_hook_and_grad(x):
    y = x * 2
    y.register_hook(tripled)
    return torch.autograd.grad(y.sum(), x)[0]


# --- functions ---


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.bounds = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        low, high = ctx.bounds
        return g * ((x > low) & (x < high)), None, None


class TwoOut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        index = x.argmax()
        ctx.mark_non_differentiable(index)
        return x * y, x + y, index

    @staticmethod
    def backward(ctx, a, b, c):
        x, y = ctx.saved_tensors
        return a * y + b, a * x + b


class WithSetup(torch.autograd.Function):
    @staticmethod
    def forward(x, n):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.n = inputs[1]

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1), None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx, g):
        return g


class Loud(torch.autograd.Function):
    calls = []

    @staticmethod
    def forward(ctx, x):
        Loud.calls.append(1)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Raising(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("in backward")


@program(args=lambda i: [leaf(i)])
def function_clipped(x):
    return Clipped.apply(x * 2, -1.0, 1.0).sum()


@program(args=lambda i: [leaf(i), leaf(i + 1)])
def function_two_results(x, y):
    a, b, i = TwoOut.apply(x, y)
    return a * 2 + b, i, i.requires_grad


@program(args=lambda i: [leaf(i), i + 1], graphs=2)
def function_with_setup(x, n):
    return WithSetup.apply(x, n) + 1


@program(args=lambda i: [leaf(i)], graphs=3, breaks=True)
def function_in_place(x):
    y = x * 2
    return InPlace.apply(y) * 3


@program(args=lambda i: [leaf(i)], breaks=True)
def function_with_effects(x):
    before = len(Loud.calls)
    y = Loud.apply(x)
    return y, len(Loud.calls) - before


@program(args=lambda i: [leaf(i)], graphs=2, breaks=True)
def function_raises_backward(x):
    y = Raising.apply(x)
    try:
        y.sum().backward()
    except ValueError as e:
        return y.detach(), str(e)


@program(args=lambda i: [leaf(i)])
def function_in_loop(x):
    for k in range(3):
        x = Clipped.apply(x, -1.0 - k, 1.0)
    return x


@program(args=lambda i: [tensor(i)])
def function_without_grad(x):
    return Clipped.apply(x, -0.5, 0.5)


@program(args=lambda i: [leaf(i)])
def function_in_checkpoint(x):
    return torch.utils.checkpoint.checkpoint(lambda y: Clipped.apply(y, -1.0, 1.0).sin(), x, use_reentrant=False)


@program(
    args=lambda i: [torch.randn(2 + i, 4, generator=torch.Generator().manual_seed(i), requires_grad=True)],
    calls=5,
    graphs=2,
)
def function_sizes(x):
    return Clipped.apply(x, -1.0, 1.0) * 2


@built(args=lambda i: [leaf(i)], graphs=5, breaks=True)
def function_in_model():
    torch.manual_seed(0)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x):
            return Clipped.apply(self.lin(x), -0.3, 0.3)

    m = nn.Sequential(Layer(), Layer())

    def f(x):
        m.zero_grad()
        y = m(x)
        y.sum().backward()
        return y.detach(), [p.grad.clone() for p in m.parameters()]

    return f


@built(args=lambda i: [tensor(i).requires_grad_()], graphs=4, breaks=True)
def handle_made_beside_a_backward_hook():
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 1))
    log, late = [], []
    m[1].register_full_backward_hook(lambda module, gi, go: log.append(len(gi)))

    def run(x):
        if not late:
            late.append(m.register_forward_hook(lambda module, a, o: print("out", tuple(o.shape))))
        y = m(x)
        torch.autograd.grad(y.sum(), x)
        if len(log) >= 2:
            late[0].remove()
        return y.detach(), len(m._forward_hooks), len(log), late[0].id in m._forward_hooks

    return run


@built(args=lambda i: [tensor(i).requires_grad_()], graphs=2, breaks=True)
def handle_made_beside_a_tensor_hook():
    m = torch.nn.Linear(4, 3)
    log = []

    def run(x):
        y = x * 2
        y.register_hook(log.append)
        first = m.register_forward_hook(lambda module, a, o: o + 1)
        second = m.register_forward_pre_hook(lambda module, a: (a[0] * 2,))
        z = m(y).detach()
        first.remove()
        second.remove()
        y.sum().backward()
        return z.shape, len(m._forward_hooks), len(m._forward_pre_hooks), len(log), second.id - first.id

    return run


def _failing(register):
    """A module that is called with what it takes, and with what it does not."""

    def b():
        torch.manual_seed(5)
        net, log = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), []
        register(net, log)

        def f(x):
            y = net(x)
            try:
                net(x[:, :2])
                said = "fine"
            except RuntimeError as e:
                said = str(e)
            seen = log[:]
            log.clear()
            return y, said, seen

        return f

    b.__name__ = register.__name__
    return built(b)


@_failing
def always_called_hook(net, log):
    net.register_forward_hook(lambda m, a, o: log.append(o is None), always_call=True)


@_failing
def always_called_hook_of_a_part(net, log):
    net[0].register_forward_hook(
        lambda m, a, k, o: log.append((o is None, sorted(k))), always_call=True, with_kwargs=True
    )
    net[1].register_forward_hook(lambda m, a, o: log.append("relu"))


@_failing
def always_called_hook_that_raises(net, log):
    def hook(m, a, o):
        log.append(o is None)
        if o is None:
            raise ValueError("no result")

    net.register_forward_hook(hook, always_call=True)


@built(graphs=3, breaks=True)
def always_called_hook_of_all_modules():
    torch.manual_seed(5)
    net, log = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), []

    def f(x):
        hook = lambda m, a, o: log.append((type(m).__name__, o is None))
        handle = nn.modules.module.register_module_forward_hook(hook, always_call=True)
        try:  # whatever happens: it is for all modules of the process
            y = net(x)
            net(x[:, :2])
        except RuntimeError as e:
            return y, str(e), log
        finally:
            handle.remove()

    return f


takes(
    "hooks",
    """
    always_called_hook 1 breaks
    always_called_hook_of_a_part 1 breaks
    always_called_hook_that_raises 1 breaks
    """,
)
