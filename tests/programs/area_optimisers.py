# ruff: noqa
"""Steps of optimisers and schedulers, after gradients that were computed outside."""

import torch
from tests.support.registry import built, program, takes, tensor
from torch import nn


def stepped(make, scheduler=None, closure=False, inside=False):
    """A compiled step: the gradients are set as a training loop has them."""
    torch.manual_seed(0)
    m = nn.Linear(4, 3)
    opt = make(m.parameters())
    sched = scheduler(opt) if scheduler else None

    def f(x):
        for p in m.parameters():
            p.grad = torch.ones_like(p) * x.mean()
        opt.step()
        if sched:
            sched.step()
        return [p.detach().clone() for p in m.parameters()], [g["lr"] for g in opt.param_groups]

    return f


def _add(name, make, scheduler=None):
    def b():
        return stepped(make, scheduler)

    b.__name__ = name
    built(b)


o = torch.optim
_add("radam", lambda p: o.RAdam(p, lr=0.01))
_add("nadam", lambda p: o.NAdam(p, lr=0.01))
_add("asgd", lambda p: o.ASGD(p, lr=0.01))
_add("rprop", lambda p: o.Rprop(p, lr=0.01))
_add("adamax", lambda p: o.Adamax(p, lr=0.01))
_add("adadelta", lambda p: o.Adadelta(p, lr=0.01))
_add("adagrad", lambda p: o.Adagrad(p, lr=0.01))
_add("rmsprop", lambda p: o.RMSprop(p, lr=0.01, momentum=0.9, centered=True))
_add("adam_amsgrad", lambda p: o.Adam(p, lr=0.01, amsgrad=True, foreach=True))
_add("adamw_single", lambda p: o.AdamW(p, lr=0.01, foreach=False, weight_decay=0.1))
_add("sgd_nesterov", lambda p: o.SGD(p, lr=0.01, momentum=0.9, nesterov=True))
_add("radam_foreach", lambda p: o.RAdam(p, lr=0.01, foreach=True))
_add("nadam_foreach", lambda p: o.NAdam(p, lr=0.01, foreach=True))
_add("asgd_foreach", lambda p: o.ASGD(p, lr=0.01, foreach=True))
_add("adamax_foreach", lambda p: o.Adamax(p, lr=0.01, foreach=True))
_add("adagrad_foreach", lambda p: o.Adagrad(p, lr=0.01, lr_decay=0.1, foreach=True))
_add("adagrad_decay", lambda p: o.Adagrad(p, lr=0.01, lr_decay=0.1))
_add("adafactor", lambda p: o.Adafactor(p, lr=0.01))
_add("adam_fused", lambda p: o.Adam(p, lr=0.01, fused=True))
_add("sgd_tensor_lr_foreach", lambda p: o.SGD(p, lr=torch.tensor(0.01), foreach=True))
_add("adam_capturable_on_cpu", lambda p: o.Adam(p, lr=0.01, capturable=True))
_add("adam_tensor_lr", lambda p: o.Adam(p, lr=torch.tensor(0.01)))
_add("sgd_step_lr", lambda p: o.SGD(p, lr=0.1), lambda opt: o.lr_scheduler.StepLR(opt, 1, 0.5))
_add("sgd_cosine", lambda p: o.SGD(p, lr=0.1), lambda opt: o.lr_scheduler.CosineAnnealingLR(opt, 10))
_add("sgd_lambda", lambda p: o.SGD(p, lr=0.1), lambda opt: o.lr_scheduler.LambdaLR(opt, lambda e: 1 / (e + 1)))
_add(
    "sgd_one_cycle",
    lambda p: o.SGD(p, lr=0.1, momentum=0.9),
    lambda opt: o.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=10),
)


@built(graphs=20, breaks=True)
def lbfgs_closure():
    torch.manual_seed(0)
    m = nn.Linear(4, 3)
    opt = torch.optim.LBFGS(m.parameters(), lr=0.1, max_iter=2)

    def f(x):
        def closure():
            opt.zero_grad()
            loss = m(x).pow(2).sum()
            loss.backward()
            return loss

        loss = opt.step(closure)
        return loss.detach(), [p.detach().clone() for p in m.parameters()]

    return f


@built(graphs=2)
def whole_step():
    torch.manual_seed(0)
    m = nn.Linear(4, 3)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        opt.zero_grad()
        loss = m(x).pow(2).mean()
        loss.backward()
        opt.step()
        return loss.detach(), m.weight.detach().clone()

    return f


@built(graphs=2)
def optimizer_state_read():
    torch.manual_seed(0)
    m = nn.Linear(4, 3)
    opt = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)

    def f(x):
        for g in opt.param_groups:
            g["lr"] *= 0.5
        return x * opt.param_groups[0]["lr"], len(opt.state)

    return f


@built(graphs=2)
def zero_grad_of_optimizer():
    torch.manual_seed(0)
    m = nn.Linear(4, 3)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        opt.zero_grad()
        return m(x).sum()

    return f


@built(graphs=2, breaks=True)
def optimizer_made_inside():
    torch.manual_seed(0)
    m = nn.Linear(4, 3)

    def f(x):
        for p in m.parameters():
            p.grad = torch.ones_like(p)
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        opt.step()
        return m.weight.detach().clone(), x

    return f


takes(
    "optimisers",
    """
    adadelta 2
    adafactor 3 breaks
    adagrad 2
    adagrad_decay 2
    adagrad_foreach 2
    adam_amsgrad 3
    adam_capturable_on_cpu 1
    adam_fused 2
    adam_tensor_lr 3
    adamax 3
    adamax_foreach 3 breaks
    adamw_single 3
    asgd 3 breaks
    asgd_foreach 3 breaks
    nadam 3
    nadam_foreach 3
    radam 3 breaks
    radam_foreach 3 breaks
    rmsprop 2
    rprop 4
    sgd_cosine 3
    sgd_lambda 3
    sgd_nesterov 2
    sgd_one_cycle 3
    sgd_step_lr 3
    sgd_tensor_lr_foreach 3
    """,
)
