# ruff: noqa
"""State of torch that the program sets: attention kernels, flags of torch.backends, default dtype, deterministic mode; and whole optimiser steps."""

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, takes, tensor
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


def heads(x):
    return x.view(1, 1, 3, 4)


@program
def attention_math(x):
    q = heads(x)
    with sdpa_kernel(SDPBackend.MATH):
        inside = torch.backends.cuda.flash_sdp_enabled()
        y = F.scaled_dot_product_attention(q, q, q)
    return y, inside, torch.backends.cuda.flash_sdp_enabled()


@program
def attention_several(x):
    q = heads(x)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        y = F.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel(SDPBackend.MATH):
        z = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    return y, z


@program(args=lambda i: [tensor(i).requires_grad_()])
def attention_trained(x):
    q = heads(x)
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, q, q).sum()


@sdpa_kernel(SDPBackend.MATH)
def decorated(q):
    return F.scaled_dot_product_attention(q, q, q)


@program
def attention_decorated(x):
    return decorated(heads(x))


@program(graphs=2, breaks=True)
def attention_break_inside(x):
    q = heads(x)
    with sdpa_kernel(SDPBackend.MATH):
        y = F.scaled_dot_product_attention(q, q, q)
        print(torch.backends.cuda.flash_sdp_enabled())
        z = F.scaled_dot_product_attention(y, q, q)
        inside = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    return z, inside, torch.backends.cuda.flash_sdp_enabled()


@program(graphs=2)
def attention_raises_inside(x):
    q = heads(x)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            y = torch.linalg.inv(torch.zeros(2, 2) * q.sum())
    except RuntimeError:
        return "caught", torch.backends.cuda.flash_sdp_enabled()
    return y


@program(breaks=True)
def attention_raises_out(x):
    with sdpa_kernel(SDPBackend.MATH):
        y = torch.linalg.inv(torch.zeros(2, 2) * x.sum())
    return y


@program(graphs=0)
def state_afterwards(x):
    return (
        torch.backends.cuda.flash_sdp_enabled(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        x,
    )


@program
def default_dtype_around(x):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        a = torch.zeros(3)
        b = torch.arange(3) * 0.5
    finally:
        torch.set_default_dtype(before)
    return a, b, torch.ones(2), torch.get_default_dtype()


@program(args=lambda i: [tensor(i), i % 2 == 0], graphs=2)
def default_dtype_sometimes(x, double):
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    a = torch.arange(3) * 0.5
    torch.set_default_dtype(torch.float32)
    return a, x


@program(graphs=0)
def default_dtype_not_floating(x):
    try:
        torch.set_default_dtype(torch.int64)
    except TypeError as e:
        return str(e), x


@program
def deterministic_inside(x):
    torch.use_deterministic_algorithms(True)
    y = x.cumsum(0).index_add(0, torch.tensor([0, 1]), x[:2])
    on = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    return y, on, torch.are_deterministic_algorithms_enabled()


@program(breaks=True)
def cudnn_flags(x):
    with torch.backends.cudnn.flags(enabled=False, benchmark=True):
        inside = torch.backends.cudnn.enabled
        y = F.conv1d(x[None], torch.ones(2, 3, 2))
    return y, inside, torch.backends.cudnn.enabled


@program(breaks=True)
def mkldnn_flags(x):
    with torch.backends.mkldnn.flags(enabled=False):
        y = F.linear(x, torch.ones(2, 4))
    return y


# --- optimisers ---


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))


O = torch.optim
for _name, _make in {
    "sgd": lambda p: O.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: O.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "sgd_nesterov": lambda p: O.SGD(p, lr=0.1, momentum=0.9, nesterov=True, foreach=True),
    "adam": lambda p: O.Adam(p, lr=0.01),
    "adam_foreach": lambda p: O.Adam(p, lr=0.01, foreach=True),
    "adam_amsgrad": lambda p: O.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: O.AdamW(p, lr=0.01),
    "adamw_foreach": lambda p: O.AdamW(p, lr=0.01, foreach=True),
    "adam_tensor_lr": lambda p: O.Adam(p, lr=torch.tensor(0.01), foreach=False),
    "rmsprop": lambda p: O.RMSprop(p, lr=0.01),
    "rmsprop_momentum": lambda p: O.RMSprop(p, lr=0.01, momentum=0.9, centered=True, foreach=True),
    "adagrad": lambda p: O.Adagrad(p, lr=0.01),
    "adagrad_foreach": lambda p: O.Adagrad(p, lr=0.01, foreach=True),
    "adamax": lambda p: O.Adamax(p, lr=0.01),
    "nadam": lambda p: O.NAdam(p, lr=0.01),
    "radam": lambda p: O.RAdam(p, lr=0.01),
    "adadelta": lambda p: O.Adadelta(p, lr=0.1),
    "asgd": lambda p: O.ASGD(p, lr=0.1),
    "rprop": lambda p: O.Rprop(p, lr=0.1),
    "groups": lambda p: O.SGD([{"params": [q], "lr": 0.1 * (i + 1)} for i, q in enumerate(p)], lr=0.1),
    "adam_fused": lambda p: O.Adam(p, lr=0.01, fused=True),
}.items():

    def _steps(make=_make):
        m = network()
        o = make(m.parameters())

        def step(x):
            for i, p in enumerate(m.parameters()):
                p.grad = x.mean() * torch.ones_like(p) * (i + 1)
            o.step()
            result = [p.detach().clone() for p in m.parameters()]
            o.zero_grad()
            return result, [p.grad for p in m.parameters()]

        return step

    _steps.__name__ = f"step_{_name}"
    _steps.__module__ = __name__
    built(_steps)


@built(graphs=2)
def zero_grad_kept():
    m = network()
    o = O.SGD(m.parameters(), lr=0.1)

    def f(x):
        for p in m.parameters():
            p.grad = torch.ones_like(p) if p.grad is None else p.grad + 1
        before = [p.grad.clone() for p in m.parameters()]
        o.zero_grad(set_to_none=False)
        return before, [p.grad.clone() for p in m.parameters()]

    return f


@built(graphs=2)
def step_with_closure():
    m = network()
    o = O.SGD(m.parameters(), lr=0.1)

    def f(x):
        def closure():
            o.zero_grad()
            loss = m(x).pow(2).mean()
            loss.backward()
            return loss

        return o.step(closure).detach(), [p.detach().clone() for p in m.parameters()]

    return f


@built(graphs=3)
def step_with_hook():
    m = network()
    o = O.SGD(m.parameters(), lr=0.1)
    calls = []
    o.register_step_post_hook(lambda *a: calls.append(1))

    def f(x):
        for p in m.parameters():
            p.grad = torch.ones_like(p)
        o.step()
        return len(calls), [p.detach().clone() for p in m.parameters()]

    return f


for _name, _make in {
    "step": lambda o: O.lr_scheduler.StepLR(o, 2, 0.5),
    "cosine": lambda o: O.lr_scheduler.CosineAnnealingLR(o, 5),
    "lambda": lambda o: O.lr_scheduler.LambdaLR(o, lambda e: 0.9**e),
    "linear": lambda o: O.lr_scheduler.LinearLR(o),
    "one_cycle": lambda o: O.lr_scheduler.OneCycleLR(o, 0.1, total_steps=8),
    "warm": lambda o: O.lr_scheduler.SequentialLR(
        o, [O.lr_scheduler.LinearLR(o), O.lr_scheduler.ExponentialLR(o, 0.9)], [2]
    ),
}.items():

    def _scheduled(make=_make):
        m = network()
        o = O.SGD(m.parameters(), lr=0.1)
        s = make(o)

        def f(x):
            for p in m.parameters():
                p.grad = torch.ones_like(p)
            o.step()
            s.step()
            return o.param_groups[0]["lr"], s.get_last_lr(), s.last_epoch, [p.detach().clone() for p in m.parameters()]

        return f

    _scheduled.__name__ = f"scheduler_{_name}"
    _scheduled.__module__ = __name__
    built(_scheduled)


takes(
    "state",
    """
    scheduler_cosine 3
    scheduler_lambda 3
    scheduler_linear 3
    scheduler_one_cycle 3
    scheduler_step 3
    scheduler_warm 3
    step_adadelta 2
    step_adagrad 2
    step_adagrad_foreach 2
    step_adam 3
    step_adam_amsgrad 3
    step_adam_foreach 3
    step_adam_fused 2
    step_adam_tensor_lr 3
    step_adamax 3
    step_adamw 3
    step_adamw_foreach 3
    step_asgd 3 breaks
    step_groups 1
    step_nadam 3
    step_radam 3 breaks
    step_rmsprop 2
    step_rmsprop_momentum 2
    step_rprop 4
    step_sgd 1
    step_sgd_momentum 2
    step_sgd_nesterov 2
    """,
)
