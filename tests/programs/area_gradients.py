# ruff: noqa
"""Autograd inside the program: checkpoints, tensors that begin to require grad, questions about its graph, torch.autograd.grad."""

import functools

import torch
import torch.nn.functional as F
from tests.support.registry import built, leaf, program, tensor
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def pair(i=0):
    torch.manual_seed(i + 5)
    return torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)


def layers(n=2, dropout=0.0):
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(dropout)) for _ in range(n)])


def with_parameter_gradients(m, result):
    return result, torch.autograd.grad(result.sum(), [p for p in m.parameters()], retain_graph=True)


# --- checkpoints ---


@program(args=lambda i: [leaf(i)])
def checkpoint_plain(x):
    return checkpoint(torch.sin, x, use_reentrant=False) * 2


@program(args=lambda i: [leaf(i)])
def checkpoint_reentrant(x):
    return checkpoint(lambda y: (y * y).cos(), x, use_reentrant=True)


@program(args=lambda i: [tensor(i)], graphs=0, breaks=True)
def checkpoint_reentrant_no_grad(x):
    return checkpoint(torch.sin, x, use_reentrant=True)


@program(args=lambda i: [leaf(i)], graphs=0)
def checkpoint_default(x):
    return checkpoint(torch.sin, x)


@program(args=lambda i: [leaf(i), i], graphs=2)
def checkpoint_keywords(x, n):
    def f(a, *, scale, shift=0.0):
        return a * scale + shift

    return checkpoint(f, x, use_reentrant=False, scale=n + 1, shift=0.5, preserve_rng_state=False)


@built(args=lambda i: [leaf(i)])
def checkpoint_layers():
    m = layers(3, 0.3)

    def f(x):
        for layer in m:
            x = checkpoint(layer, x, use_reentrant=False)
        return x

    return f


@built(args=lambda i: [leaf(i)])
def checkpoint_layers_reentrant():
    m = layers(3, 0.3)

    def f(x):
        for layer in m:
            x = checkpoint(layer, x, use_reentrant=True)
        return x

    return f


@built(args=lambda i: [leaf(i)], graphs=2)
def checkpoint_parameter_gradients():
    m = layers(2)

    def f(x):
        return checkpoint(m, x, use_reentrant=False)

    def g(x):
        r = f(x)
        m.zero_grad()
        r.sum().backward()
        return r.detach(), [p.grad.clone() for p in m.parameters()]

    return g


@built(args=lambda i: [leaf(i)])
def checkpoint_partial():
    m = layers(1)
    run = functools.partial(checkpoint, use_reentrant=False)

    def f(x):
        return run(functools.partial(m.__call__), x)

    return f


@program(args=lambda i: [leaf(i)])
def checkpoint_nested(x):
    def inner(y):
        return y.sin() * y

    def outer(y):
        return checkpoint(inner, y.exp(), use_reentrant=False) + checkpoint(inner, y, use_reentrant=False)

    return checkpoint(outer, x, use_reentrant=False)


@program(args=lambda i: [leaf(i)])
def checkpoint_several_results(x):
    def f(y):
        return y.sin(), y.argmax(), {"a": y * 2}, 3

    a, b, c, d = checkpoint(f, x, use_reentrant=False)
    return a + c["a"], b, d


@program(args=lambda i: [leaf(i)])
def checkpoint_reentrant_several(x):
    a, b = checkpoint(lambda y: (y.sin(), y.argmax()), x, use_reentrant=True)
    return a, b


@program(args=lambda i: [leaf(i)], breaks=True)
def checkpoint_reentrant_dict(x):
    return checkpoint(lambda y: {"a": y.sin()}, x, use_reentrant=True)["a"] * 2 + x


@program(args=lambda i: [leaf(i)], graphs=0, breaks=True)
def checkpoint_reentrant_independent(x):
    a, b = checkpoint(lambda y: (y.sin(), torch.ones(3)), x, use_reentrant=True)
    return a, b.requires_grad


@program(args=lambda i: [leaf(i)])
def checkpoint_reentrant_identity(x):
    y = checkpoint(lambda y: y, x * 1, use_reentrant=True)
    return y * 2


@program(args=lambda i: [leaf(i)])
def checkpoint_identity(x):
    y = x * 1
    return checkpoint(lambda z: z, y, use_reentrant=False) is y


@built(args=lambda i: [leaf(i)], graphs=4, breaks=True)
def checkpoint_counts():
    calls = []

    def f(x):
        def g(y):
            calls.append(1)
            return y.sin().exp()

        r = checkpoint(g, x, use_reentrant=False)
        r.sum().backward()
        return len(calls), r.detach()

    return f


@program(args=lambda i: [leaf(i)], graphs=0, breaks=True)
def checkpoint_local_list(x):
    seen = []

    def g(y):
        seen.append(y.shape[0])
        return y.sin()

    return checkpoint(g, x, use_reentrant=False), seen


@built(
    args=lambda i: [torch.randn(6, 4, generator=torch.Generator().manual_seed(i), requires_grad=True)],
    graphs=2,
    breaks=True,
)
def checkpoint_batch_norm():
    torch.manual_seed(0)
    m = nn.BatchNorm1d(4)

    def f(x):
        r = checkpoint(m, x, use_reentrant=False)
        r.sum().backward()
        return r.detach(), m.running_mean.clone(), m.num_batches_tracked.clone()

    return f


@program(args=lambda i: [leaf(i)], breaks=True)
def checkpoint_random_not_kept(x):
    return checkpoint(lambda y: y * torch.rand(3, 4), x, use_reentrant=False, preserve_rng_state=False).detach()


@program(args=lambda i: [leaf(i)], breaks=True)
def checkpoint_grad_mode_asked(x):
    return checkpoint(lambda y: y * (2 if torch.is_grad_enabled() else 3), x, use_reentrant=True).detach()


@program(args=lambda i: [leaf(i)])
def checkpoint_under_no_grad(x):
    with torch.no_grad():
        a = checkpoint(torch.sin, x, use_reentrant=False)
    return a, checkpoint(torch.cos, x, use_reentrant=False)


@program(args=lambda i: [leaf(i)])
def checkpoint_raises(x):
    def f(y):
        if y.shape[0] == 3:
            raise ValueError("three")
        return y

    try:
        return checkpoint(f, x, use_reentrant=False)
    except ValueError as e:
        return x.sin(), str(e)


@program(args=lambda i: [leaf(i)], graphs=2, breaks=True)
def checkpoint_break_inside(x):
    def f(y):
        print("inside")
        return y.sin()

    return checkpoint(f, x * 2, use_reentrant=False).detach()


@program(
    args=lambda i: [torch.randn(2 + i, 4, generator=torch.Generator().manual_seed(i), requires_grad=True)],
    calls=5,
    graphs=2,
)
def checkpoint_sizes(x):
    return checkpoint(lambda y: (y @ y.T).softmax(-1), x, use_reentrant=False)


@built(args=lambda i: [leaf(i)])
def checkpoint_in_sequence():
    m = layers(4)

    def f(x):
        return checkpoint_sequential(m, 2, x, use_reentrant=False)

    return f


@built(args=lambda i: [leaf(i)])
def checkpoint_autocast():
    m = layers(2)

    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            return checkpoint(m, x, use_reentrant=False).float()

    return f


@built(args=lambda i: [leaf(i), i % 2 == 0], graphs=2)
def checkpoint_or_not():
    m = layers(2)

    def f(x, training):
        m.train(training)
        if training:
            return checkpoint(m, x, use_reentrant=False)
        return m(x)

    return f


# --- tensors that begin to require grad ---


@program
def requires_grad_result(x):
    y = x.detach().clone().requires_grad_()
    return y, y.requires_grad, (y * 2).requires_grad, y.is_leaf


@program
def requires_grad_false(x):
    y = (x * 2).requires_grad_(False)
    return y.requires_grad, y


@program
def requires_grad_argument(x):
    before = x * 2
    x.requires_grad_()
    after = x * 3
    return before.requires_grad, after.requires_grad, after, x.is_leaf


@program(args=lambda i: [leaf(i)])
def requires_grad_argument_off(x):
    before = x * 2
    x.requires_grad_(False)
    return before, (x * 3).requires_grad


@program
def requires_grad_attribute(x):
    y = x.clone()
    y.requires_grad = True
    return (y * y), y.requires_grad


@program(breaks=True)
def requires_grad_of_integers(x):
    try:
        return x.long().requires_grad_()
    except RuntimeError as e:
        return str(e)


@program(args=lambda i: [leaf(i)], breaks=True)
def requires_grad_off_computed(x):
    y = x * 2
    try:
        y.requires_grad_(False)
    except RuntimeError:
        return y, "refused"
    return y


@program
def factory_requires_grad(x):
    w = torch.ones(4, requires_grad=True)
    z = torch.zeros_like(x, requires_grad=True)
    return (x * w + z), w.requires_grad, z.is_leaf


@program
def tensor_requires_grad(x):
    w = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    return x * w, w


@built(graphs=2)
def freeze_parameters():
    m = layers(2)

    def f(x):
        for p in m[0].parameters():
            p.requires_grad_(False)
        return m(x), [p.requires_grad for p in m.parameters()]

    return f


@built(args=lambda i: [tensor(i), i % 2 == 0], graphs=2)
def freeze_and_thaw():
    m = layers(2)

    def f(x, frozen):
        m[0].requires_grad_(not frozen)
        return m(x), [p.requires_grad for p in m.parameters()]

    return f


@program(args=lambda i: [tensor(i)], breaks=True)
def requires_grad_then_raises(x):
    x.requires_grad_()
    y = torch.linalg.inv(torch.zeros(2, 2) * x.sum())
    return y


# --- questions ---


@program(args=lambda i: [[tensor(i), leaf(i), leaf(i) * 2][i % 3]], calls=6, graphs=3)
def leaf_question(x):
    if x.is_leaf:
        return x * 2
    return x * 3


@program(args=lambda i: [[tensor(i), leaf(i), leaf(i) * 2][i % 3]], calls=6, graphs=3)
def grad_fn_question(x):
    if x.grad_fn is None:
        return x * 2
    return x * 3


@program(args=lambda i: [leaf(i)])
def grad_fn_of_result(x):
    y = x * 2
    return y.grad_fn is not None, x.detach().grad_fn is None, y.is_leaf


@program(args=lambda i: [leaf(i)], breaks=True)
def grad_fn_name(x):
    return (x * 2).grad_fn.name()


@program(args=lambda i: [leaf(i)], graphs=3, breaks=True)
def retained_gradient(x):
    y = x * 2
    y.retain_grad()
    z = (y * y).sum()
    z.backward()
    return y.grad, z.detach()


@program(args=lambda i: [leaf(i)], graphs=2, breaks=True)
def retained_outside(x):
    y = x.sin()
    y.retain_grad()
    return y, y * 2


@program(args=lambda i: [tensor(i)], breaks=True)
def retain_without_grad(x):
    try:
        (x * 2).retain_grad()
    except RuntimeError:
        return x, "refused"


# --- torch.autograd.grad ---


@program(args=lambda i: [leaf(i)])
def grad_inside(x):
    (g,) = torch.autograd.grad((x**3).sum(), x)
    return g


@program(args=lambda i: [leaf(i)])
def grad_created(x):
    (g,) = torch.autograd.grad(x.sigmoid().pow(2).sum(), x, create_graph=True)
    return g, (g * g).sum()


@program
def grad_of_new_leaf(x):
    y = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(torch.tanh(y).sum(), y)
    return g


@program(args=lambda i: pair(i))
def grad_unused(x, y):
    a, b = torch.autograd.grad(x.exp().sum(), [x, y], allow_unused=True)
    return a, b is None


@program(args=lambda i: pair(i), breaks=True)
def grad_unused_raises(x, y):
    return torch.autograd.grad(x.exp().sum(), [x, y])


@program(args=lambda i: pair(i))
def grad_with_outputs(x, v):
    (g,) = torch.autograd.grad(x.cos(), x, grad_outputs=v.detach(), retain_graph=True)
    return g


@built(args=lambda i: [tensor(i), tensor(i + 1)])
def gradient_penalty():
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

    def f(real, fake):
        eps = torch.rand(real.size(0), 1)
        mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
        score = critic(mixed)
        (g,) = torch.autograd.grad(score, mixed, torch.ones_like(score), create_graph=True, retain_graph=True)
        return ((g.norm(2, dim=1) - 1) ** 2).mean()

    return f


@program(args=lambda i: [leaf(i)])
def second_derivative(x):
    y = x.sin().exp()
    (a,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (b,) = torch.autograd.grad(a.sum(), x, create_graph=True)
    return a.detach(), b


@program(args=lambda i: [leaf(i) * 2], breaks=True)
def grad_through_outside(x):
    y = (x * x).sum()
    try:
        return torch.autograd.grad(y, x)[0]
    except RuntimeError as e:
        return "refused"


@program(args=lambda i: [leaf(i)])
def grad_in_loop(x):
    y = x
    for _ in range(3):
        (g,) = torch.autograd.grad((y**2).sum(), y)
        y = (y - 0.1 * g).detach().requires_grad_()
    return y.detach()


@built(args=lambda i: [tensor(i), torch.randint(0, 2, (3,), generator=torch.Generator().manual_seed(i))])
def fgsm_attack():
    torch.manual_seed(0)
    m = nn.Linear(4, 2)

    def f(x, target):
        x = x.clone().detach().requires_grad_(True)
        loss = F.cross_entropy(m(x), target)
        (g,) = torch.autograd.grad(loss, x)
        return (x + 0.1 * g.sign()).detach()

    return f
