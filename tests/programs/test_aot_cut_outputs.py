"""Outputs that other outputs of the same graph are computed from: gradients come to them as in eager, where hooks see and change them, passes end, and passes begin."""

import cutaway
import pytest
import torch


def loss_and_hidden(x, w):
    h = torch.tanh(x @ w)
    return (h * h).sum() + h.mean(), h


def hidden_first(x, w):
    h = torch.tanh(x @ w)
    return h, (h.relu() + 1).log().sum()


def chain(x, w):
    a = torch.sin(x @ w)
    b = a * a + a
    c = b.exp().sum(1)
    return a, b, c, c.sum()


def trunk(x, w):
    """The loss comes by the hidden layer on two ways, one of them past the output."""
    t = torch.tanh(x @ w)
    h = t * 2
    return (h.sin() + t.cos() * 3).sum(), h


def penalty(x, w):
    """What the loss takes of the weights was computed first: gradients are added up in that order."""
    p = (w * w).sum()
    h = (x @ w).sigmoid()
    return h.sum() * 2 + p + w.sum(), h


def siblings(x, w):
    h = x @ w
    a, b = h.sin(), h.cos()
    return a, b, (a * b).sum(), a.sum() * 2


def view_out(x, w):
    v = (x @ w).tanh().view(-1)
    return v, (v * v).sum()


def base_and_view(x, w):
    h = (x @ w).tanh()
    v = h.reshape(-1)
    return h, v, (v * v).sum() + h.exp().sum()


def view_of_view(x, w):
    h = (x @ w).tanh()
    v = h.view(-1)
    u = v[2:]
    return v, u, u.sum() + v.exp().sum()


def views_in_a_row(x, w):
    """The last one first."""
    h = (x @ w).tanh()
    v = h.view(-1)
    u = v.unsqueeze(0)
    t = u[:, 1:]
    return t, h, u, v


def hidden_base(x, w):
    z = (x @ w) * 2
    v = z.t()
    return v, (z.sin() + v.t() * 2).sum()


def view_of_input(x, w):
    v = w.view(-1)
    return v, (v * v).sum() + x.sum()


def detached(x, w):
    h = (x @ w).tanh()
    return h, h.detach(), (h * h.detach()).sum()


def partly_without_grad(x, w):
    h = (x @ w).tanh()
    with torch.no_grad():
        n = h.norm()
    return h, (h / n).exp().sum(), n


def written_inside(x, w):
    h = x @ w
    h.relu_()
    return h, h.exp().sum()


def other_dtype(x, w):
    h = (x @ w).to(torch.float64).tanh()
    return h, (h * h).sum().float()


def twice(x, w):
    h = (x @ w).tanh()
    return h, h, h.exp().sum()


def nested(x, w):
    h = (x @ w).tanh()
    return {"loss": h.exp().sum(), "hidden": (h, [h * 2])}


PROGRAMS = [
    loss_and_hidden,
    hidden_first,
    chain,
    trunk,
    penalty,
    siblings,
    view_out,
    base_and_view,
    view_of_view,
    views_in_a_row,
    hidden_base,
    view_of_input,
    detached,
    partly_without_grad,
    written_inside,
    other_dtype,
    twice,
    nested,
]


def flat(out):
    if isinstance(out, dict):
        out = tuple(out.values())
    if isinstance(out, (tuple, list)):
        return [t for o in out for t in flat(o)]
    return [out]


def differentiable(out):
    return [o for o in flat(out) if o.requires_grad]


def total(outs):
    return sum((o.float() * (i + 1)).sum() for i, o in enumerate(outs))


def values(*tensors):
    return [None if t is None else t.detach().double() for t in tensors]


def hooks_see(f, x, w):
    outs = differentiable(f(x, w))
    seen = []
    for i, o in enumerate(outs):
        o.register_hook(lambda g, i=i: seen.append((i, g.clone())))
    total(outs).backward()
    seen.sort(
        key=lambda s: s[0]
    )  # of outputs that do not depend on each other it is the order in which the hooks were registered
    return [i for i, _ in seen], *values(*[g for _, g in seen], x.grad, w.grad)


def hooks_replace(f, x, w):
    outs = differentiable(f(x, w))
    for i, o in enumerate(outs):
        o.register_hook(lambda g, i=i: g * (i + 2))
    total(outs).backward()
    return values(x.grad, w.grad)


def retained(f, x, w):
    outs = differentiable(f(x, w))
    for o in outs:
        o.retain_grad()
    total(outs).backward()
    return values(*[o.grad for o in outs], x.grad, w.grad)


def with_respect_to_each(f, x, w):
    outs = differentiable(f(x, w))
    found = []
    for o in outs:
        found += torch.autograd.grad(total(outs), o, retain_graph=True, allow_unused=True)
    for a in outs:
        for b in outs:
            found += torch.autograd.grad(a.sum(), b, retain_graph=True, allow_unused=True)
    return values(*found)


def each_alone(f, x, w):
    found = []
    for i in range(len(differentiable(f(x, w)))):
        outs = differentiable(f(x, w))
        called = []
        for k, o in enumerate(outs):
            o.register_hook(lambda g, k=k, called=called: called.append((k, g is None)))
        found += [*torch.autograd.grad(outs[i].sum(), [x, w], allow_unused=True)]
        found += [torch.tensor(called)]
    return values(*found)


def into_some_inputs(f, x, w):
    outs = differentiable(f(x, w))
    first = outs[0]
    outs[-1].sum().backward(inputs=[first, w], retain_graph=True)
    total(outs).backward(inputs=[w])
    return values(first.grad if not first.is_leaf else None, x.grad, w.grad)


def passes_one_by_one(f, x, w):
    outs = differentiable(f(x, w))
    for o in outs:
        o.sum().backward(retain_graph=True)
    return values(x.grad, w.grad)


def freed(f, x, w):
    """A second pass raises where the first one has freed what it needs."""
    outs = differentiable(f(x, w))
    found = []
    for o in reversed(outs):
        try:
            o.sum().backward()
            found.append("")
        except RuntimeError as e:
            found.append(str(e)[:30])
    return found, *values(w.grad)


def written_afterwards(f, x, w):
    outs = differentiable(f(x, w))
    first = outs[0]
    seen = []
    try:
        first.mul_(2)
        first.register_hook(lambda g: seen.append(g.clone()))
        total(outs).backward()
    except RuntimeError:
        return None  # eager keeps it for backward
    return values(*seen, x.grad, w.grad)


def hook_on_a_view(f, x, w):
    outs = differentiable(f(x, w))
    seen = []
    view = outs[0].reshape(-1)[:3]
    view.register_hook(lambda g: seen.append(g.clone()) or g * 3)
    (total(outs) + view.sum()).backward()
    return values(*seen, x.grad, w.grad)


def second_derivatives(f, x, w):
    """The operators of the program run again."""
    outs = differentiable(f(x, w))
    (gw,) = torch.autograd.grad(total(outs), w, create_graph=True)
    (gw * gw).sum().backward()
    (gh,) = torch.autograd.grad(total(differentiable(f(x, w))[1:]), w, create_graph=True)
    (gh * gh).sum().backward()
    return values(gw, gh, x.grad, w.grad)


def second_derivatives_of_outputs(f, x, w):
    if f.__name__ == "view_of_view":
        return []
    outs = differentiable(f(x, w))
    first, last = outs[0], outs[-1]
    (g,) = torch.autograd.grad((last * last).sum(), first, create_graph=True, allow_unused=True)
    if g is None or not g.requires_grad:
        return [g is None]
    found = torch.autograd.grad((g * g).sum(), [first, w], allow_unused=True)
    return values(g, *found)


def detached_by_the_caller(f, x, w):
    outs = differentiable(f(x, w))
    for o in outs:
        o.detach().exp()
    outs[-1].sum().backward()
    return values(x.grad, w.grad)


USES = [
    hooks_see,
    hooks_replace,
    retained,
    with_respect_to_each,
    each_alone,
    into_some_inputs,
    passes_one_by_one,
    freed,
    written_afterwards,
    hook_on_a_view,
    second_derivatives,
    second_derivatives_of_outputs,
    detached_by_the_caller,
]


def observe(f, use, sizes=(4, 3, 5)):
    torch.manual_seed(1)
    n, k, m = sizes
    x = torch.randn(n, k, requires_grad=True)
    w = torch.randn(k, m, requires_grad=True)
    return use(f, x, w)


def check(found, expected, exact):
    if expected is None:  # an error that may be missed: the backward graph may have computed again what eager kept
        return
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b
        elif exact:
            assert torch.equal(a, b), (a, b)
        else:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_aot_eager(program):
    """Bit for bit, but for sums of second derivatives."""
    for use in USES:
        cutaway.reset()
        compiled = cutaway.compile(program, backend="aot_eager")
        for _ in range(2):
            check(observe(compiled, use), observe(program, use), exact=not use.__name__.startswith("second"))


@pytest.mark.parametrize("use", USES, ids=lambda u: u.__name__)
def test_native(use):
    cutaway.reset()
    for program in (loss_and_hidden, chain, trunk, view_out):
        compiled = cutaway.compile(program, backend="native")
        check(observe(compiled, use), observe(program, use), exact=False)


@pytest.mark.parametrize(
    "program", [loss_and_hidden, chain, trunk, base_and_view, views_in_a_row], ids=lambda p: p.__name__
)
def test_sizes_that_change(program):
    cutaway.reset()
    compiled = cutaway.compile(program, backend="aot_eager", dynamic=True)
    for use in (hooks_see, retained, with_respect_to_each, each_alone):
        for sizes in ((4, 3, 5), (6, 3, 5), (7, 2, 8)):
            check(observe(compiled, use, sizes), observe(program, use, sizes), exact=True)
