# ruff: noqa
"""Function transforms of torch.func inside the program, alone and in one another."""

import torch
import torch.nn.functional as F
from tests.support.registry import built, leaf, program, tensor
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))


@program
def vmap_rows(x):
    return vmap(lambda r: r.sin().sum())(x)


@program
def vmap_dims(x):
    return vmap(torch.dot, in_dims=(0, 1), out_dims=0)(x, x.T.contiguous())


@program
def vmap_out_dim(x):
    return vmap(lambda r: r * 2, in_dims=1, out_dims=1)(x)


@program
def vmap_shared(x):
    return vmap(lambda r, m: m @ r, in_dims=(0, None))(x, torch.ones(2, 4))


@program
def vmap_nested(x):
    return vmap(vmap(lambda a: a * a + 1))(x)


@program
def vmap_tree(x):
    return vmap(lambda d: {"s": d["a"] + d["b"], "p": (d["a"] * d["b"],)})({"a": x, "b": x.cos()})


@program
def vmap_random_different(x):
    return vmap(lambda r: r + torch.rand(4), randomness="different")(x)


@program
def vmap_random_same(x):
    return vmap(lambda r: F.dropout(r, 0.5), randomness="same")(x)


@program(graphs=0, breaks=True)
def vmap_random_error(x):
    return vmap(lambda r: r + torch.rand(4))(x)


@program(graphs=0, breaks=True)
def vmap_item(x):
    return vmap(lambda r: r * r.sum().item())(x)


@program(graphs=0, breaks=True)
def vmap_branch(x):
    return vmap(lambda r: r if r.sum() > 0 else -r)(x)


@program
def vmap_chunks(x):
    return vmap(lambda r: r.exp().sum(), chunk_size=2)(x)


@program
def vmap_in_place(x):
    def f(r):
        y = r.clone()
        y.add_(1)
        y[0] = 5.0
        return y

    return vmap(f)(x)


@program(graphs=2, breaks=True)
def vmap_print(x):
    def f(r):
        print("row")
        return r.sin()

    return vmap(f)(x * 2) + 1


@program
def vmap_leaks(x):
    kept = []

    def f(r):
        kept.append(r)
        return r * 2

    return vmap(f)(x), len(kept)


@program(args=lambda i: [leaf(i)])
def vmap_requires_grad(x):
    return vmap(lambda r: r.softmax(0).log().sum())(x)


@program(args=lambda i: [torch.randn(2 + i, 4, generator=torch.Generator().manual_seed(i))], calls=5, graphs=2)
def vmap_sizes(x):
    return vmap(lambda r: r * r.sum())(x)


@built
def vmap_module():
    m = small()
    return lambda x: vmap(m)(x)


@program
def vmap_wrong_dims(x):
    try:
        return vmap(lambda a, b: a + b)(x, torch.ones(5))
    except ValueError as e:
        return str(e)


@program
def grad_plain(x):
    return grad(lambda y: (y**3).sum())(x)


@program
def grad_argnums(x):
    return grad(lambda a, b: (a * b.sin()).sum(), argnums=(0, 1))(x, x * 2)


@program
def grad_aux(x):
    g, aux = grad(lambda a: ((a * a).sum(), a.exp()), has_aux=True)(x)
    return g, aux


@program
def grad_value(x):
    g, v = grad_and_value(lambda a: a.cos().prod())(x)
    return g, v


@program
def grad_of_grad(x):
    f = lambda a: a.sin()
    return vmap(grad(grad(f)))(x.flatten())


@program
def grad_not_scalar(x):
    try:
        return grad(lambda a: a * 2)(x)
    except RuntimeError as e:
        return str(e)


@program(args=lambda i: [leaf(i)])
def grad_through(x):
    return grad(lambda a: (a.exp() * x).sum())(x * 2)


@program(args=lambda i: [leaf(i)])
def grad_under_no_grad(x):
    with torch.no_grad():
        return grad(lambda a: a.pow(2).sum())(x)


@program
def grad_with_no_grad_inside(x):
    def f(a):
        with torch.no_grad():
            c = a**2
        return (a - c).sum()

    return grad(f)(x)


@built
def per_sample_gradients():
    m = small()
    params = {k: v.detach() for k, v in m.named_parameters()}

    def loss(params, row, target):
        out = functional_call(m, params, (row.unsqueeze(0),))
        return F.mse_loss(out, target.unsqueeze(0))

    def f(x):
        return vmap(grad(loss), in_dims=(None, 0, 0))(params, x, torch.zeros(3, 1))

    return f


@built
def ensemble():
    models = [small() for _ in range(3)]
    params, buffers = torch.func.stack_module_state(models)
    base = small()

    def f(x):
        return vmap(lambda p, r: functional_call(base, p, (r,)), in_dims=(0, None))(params, x)

    return f


@program
def vjp_plain(x):
    out, f = vjp(lambda a: a.sin(), x)
    (g,) = f(torch.ones_like(out))
    return out, g


@program
def vjp_escapes(x):
    out, f = vjp(lambda a: a.sin(), x)
    return out, f(torch.ones_like(out)), callable(f)


@program(graphs=0, breaks=True)
def vjp_returned(x):
    out, f = vjp(lambda a: a.sin(), x)
    return f


@program
def jvp_plain(x):
    return jvp(lambda a: a.sin() * a, (x,), (torch.ones_like(x),))


@program
def jvp_two(x):
    return jvp(lambda a, b: a @ b.T, (x, x * 2), (x.cos(), torch.ones_like(x)))


@program
def jacobian_reverse(x):
    return jacrev(lambda a: a.sin().sum(0))(x)


@program
def jacobian_forward(x):
    return jacfwd(lambda a: (a * a).sum(1))(x)


@program
def hessian_plain(x):
    return hessian(lambda a: (a**3).sum())(x[0])


@program
def vmap_of_jacobian(x):
    return vmap(jacrev(lambda r: r.cos() * r.sum()))(x)


@built
def functional_module():
    m = small()

    def f(x):
        doubled = {k: v * 2 for k, v in m.named_parameters()}
        return functional_call(m, doubled, (x,)), m(x)

    return f


@program(args=lambda i: [tensor(i), i % 2 == 0], graphs=2)
def grad_mode_changes(x, on):
    with torch.set_grad_enabled(on):
        return grad(lambda a: a.tanh().sum())(x)


@program
def transform_made_outside(x):
    return _square_grad(x)


_square_grad = grad(lambda a: (a * a).sum())


@program
def hessian_vector_product(x):
    f = lambda a: (a.sin() ** 2).sum()
    return jvp(grad(f), (x,), (torch.ones_like(x),))[1]


@program
def vmap_linalg(x):
    return vmap(torch.linalg.det)(torch.stack([x[:, :3], x[:, 1:]]))


@program
def vmap_where_and_gather(x):
    return vmap(lambda r: torch.where(r > 0, r, r.gather(0, r.argsort())))(x)


@program
def maml_step(x):
    w = torch.ones(4)

    def inner(w, data):
        g = grad(lambda p: ((data @ p) ** 2).mean())(w)
        return w - 0.1 * g

    return grad(lambda w: ((x @ inner(w, x)) ** 2).mean())(w)
