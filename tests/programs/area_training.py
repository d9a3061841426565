# ruff: noqa
"""Training: backward inside and around, optimisers, hooks, modes and contexts with breaks inside them."""

import contextlib
import functools

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, takes, tensor
from torch import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def trained(make_optimizer, steps_inside=True):
    def build():
        m = model()
        o = make_optimizer(m.parameters())

        def step(x):
            o.zero_grad()
            loss = F.mse_loss(m(x), torch.zeros(3, 2))
            loss.backward()
            o.step()
            return [p.detach().clone() for p in m.parameters()]

        return step

    return build


for _name, _make in {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
}.items():
    _f = trained(_make)
    _f.__name__ = f"optimizer_{_name}"
    _f.__module__ = __name__
    built(_f)


@built(graphs=3)
def scheduler_step():
    m = model()
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    s = torch.optim.lr_scheduler.StepLR(o, 1, 0.5)

    def step(x):
        o.zero_grad()
        m(x).sum().backward()
        o.step()
        s.step()
        return o.param_groups[0]["lr"], next(m.parameters()).detach().clone()

    return step


@built(graphs=2)
def gradient_accumulation():
    m = model()

    def step(x):
        m.zero_grad()
        for part in x.split(1):
            (m(part).pow(2).mean() / 3).backward()
        return [p.grad.clone() for p in m.parameters()]

    return step


@built(graphs=2)
def gradient_clipping():
    m = model()

    def step(x):
        m.zero_grad()
        m(x * 100).pow(2).sum().backward()
        n = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        return n, [p.grad.clone() for p in m.parameters()]

    return step


@built
def autograd_grad_inside():
    m = model()

    def f(x):
        loss = m(x).sum()
        grads = torch.autograd.grad(loss, list(m.parameters()))
        return [g * 2 for g in grads]

    return f


@built(args=lambda i: [tensor(i).requires_grad_()])
def double_backward():
    def f(x):
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return g.pow(2).sum()

    return f


@built(args=lambda i: [tensor(i).requires_grad_()])
def gradient_penalty():
    m = model()

    def f(x):
        out = m(x).sum()
        (g,) = torch.autograd.grad(out, x, create_graph=True)
        return out + ((g.norm(dim=1) - 1) ** 2).mean()

    return f


@built(args=lambda i: [tensor(i).requires_grad_()])
def tensor_hook_scales():
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return (y * 3).sum()

    return f


@built(args=lambda i: [tensor(i).requires_grad_()], graphs=2, breaks=True)
def retain_grad_inside():
    def f(x):
        y = x * 2
        y.retain_grad()
        z = (y * 3).sum()
        z.backward(retain_graph=True)
        return y.grad, z

    return f


@built(graphs=4, breaks=True)
def module_backward_hook():
    m = model()
    seen = []
    m[0].register_full_backward_hook(lambda mod, gi, go: seen.append(go[0].shape))

    def f(x):
        return m(x).sum()

    return f


@built(graphs=2, breaks=True)
def parameter_post_accumulate_hook():
    m = model()
    seen = []
    for p in m.parameters():
        p.register_post_accumulate_grad_hook(lambda p: seen.append(tuple(p.shape)))

    def f(x):
        m.zero_grad()
        m(x).sum().backward()
        return len(seen)

    return f


@built
def frozen_parameters():
    m = model()
    for p in m[0].parameters():
        p.requires_grad_(False)

    def f(x):
        return m(x)

    return f


@built
def detach_between():
    m = model()

    def f(x):
        h = m[0](x).detach()
        return m[2](F.relu(h))

    return f


@built
def no_grad_method():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.l = nn.Linear(4, 4)

        @torch.no_grad()
        def frozen(self, x):
            return self.l(x)

        def forward(self, x):
            return self.l(x) + self.frozen(x)

    return M()


@program(args=lambda i: [tensor(i).requires_grad_()])
def grad_mode_nested(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
        c = x * 4
    return a, b, c, a.requires_grad, b.requires_grad, c.requires_grad


@program(args=lambda i: [tensor(i).requires_grad_()], graphs=2, breaks=True)
def break_inside_no_grad(x):
    with torch.no_grad():
        a = x * 2
        print("", end="")
        b = a + x
    return a + b + x, torch.is_grad_enabled()


@program(graphs=2, breaks=True)
def break_inside_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x.t()
        print("", end="")
        b = a @ a
    return a, b, torch.is_autocast_enabled("cpu")


@contextlib.contextmanager
def logged(log):
    log.append("in")
    try:
        yield log
    finally:
        log.append("out")


@program(graphs=2, breaks=True)
def break_inside_user_context(x):
    log = []
    with logged(log) as l:
        a = x * 2
        print("", end="")
        b = a + len(l)
    return b, log


@program(graphs=2, breaks=True)
def break_inside_nested_contexts(x):
    log = []
    with logged(log), torch.no_grad(), contextlib.suppress(ValueError):
        a = x * 2
        print("", end="")
        a = a + 1
    return a, log


@program(breaks=True)
def exception_out_of_context_after_break(x):
    log = []
    try:
        with logged(log):
            a = x * 2
            print("", end="")
            raise KeyError("k")
    except KeyError:
        log.append("caught")
    return x, log


@program
def set_grad_enabled_function(x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(before)
    return y, torch.is_grad_enabled()


@program
def grad_mode_left_changed(x):
    torch._C._set_grad_enabled(False)
    y = x + 1
    torch._C._set_grad_enabled(True)
    return y


@program
def autocast_nested(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x.t()
        with torch.autocast("cpu", enabled=False):
            b = x @ x.t()
        c = x.float() @ x.t()
    return a.dtype, b.dtype, c.dtype, a.float() + b + c.float()


@program
def autocast_decorator(x):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def f(v):
        return v @ v.t()

    return f(x).float()


@program(breaks=True)
def saved_tensors_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        y = x.sin()
    return y


@program
def profiler_record_function(x):
    with torch.autograd.profiler.record_function("work"):
        y = x * 2
    return y


@program
def deterministic_guard(x):
    return x + torch.are_deterministic_algorithms_enabled()


@program
def default_generator_untouched(x):
    a = torch.rand(2)
    b = F.dropout(x, 0.3)
    c = torch.randn_like(x)
    return a, b, c


@program(graphs=2, breaks=True)
def fork_rng(x):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        a = torch.rand(3)
    return a + x[:, 0]


@program(breaks=True)
def manual_seed_inside(x):
    torch.manual_seed(3)
    return x + torch.rand(3, 4)


@built
def ema_of_parameters():
    m, e = model(), model()

    def f(x):
        with torch.no_grad():
            for p, q in zip(m.parameters(), e.parameters()):
                q.mul_(0.9).add_(p, alpha=0.1)
        return e(x)

    return f


@built
def weight_decay_by_hand():
    m = model()

    def f(x):
        loss = m(x).pow(2).mean()
        for n, p in m.named_parameters():
            if "weight" in n:
                loss = loss + 0.1 * p.pow(2).sum()
        return loss

    return f


@built
def sgd_by_hand():
    m = model()

    def f(x):
        for p in m.parameters():
            p.grad = None
        loss = m(x).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for p in m.parameters():
                p -= 0.1 * p.grad
        return loss.detach(), m[0].weight.detach().clone()

    return f


@built(graphs=7, breaks=True)
def sgd_with_data():
    m = model()

    def f(x):
        m.zero_grad()
        m(x).sum().backward()
        for p in m.parameters():
            p.data.sub_(p.grad.data, alpha=0.1)
            p.data = p.data * 0.99
        return m[0].weight.detach().clone()

    return f


@built
def functional_sgd():
    torch.manual_seed(0)
    w = torch.randn(4, 2)

    def f(x):
        p = w.clone().requires_grad_()
        loss = (x @ p).pow(2).mean()
        (g,) = torch.autograd.grad(loss, p)
        return p.detach() - 0.1 * g

    return f


@built
def state_dict_round_trip():
    m, n = model(), model()

    def f(x):
        n.load_state_dict(m.state_dict())
        return n(x)

    return f


@built
def loss_with_reductions():
    m = model()

    def f(x):
        out = m(x)
        t = torch.tensor([0, 1, 0])
        return (
            F.cross_entropy(out, t),
            F.cross_entropy(out, t, reduction="none"),
            F.nll_loss(out.log_softmax(1), t),
            F.binary_cross_entropy_with_logits(out, torch.ones(3, 2)),
            (out.argmax(1) == t).float().mean(),
        )

    return f


takes(
    "training",
    """
    optimizer_adagrad 3
    optimizer_adam 4
    optimizer_adamw 4
    optimizer_rmsprop 2
    optimizer_sgd 2
    """,
)
