# ruff: noqa
"""Functions of functions: transforms with their options and in one another, operators that take functions."""

import torch
from tests.support.registry import built, program, tensor
from torch import nn


@program
def vmap_options(x):
    a = torch.vmap(torch.dot, in_dims=(0, None))(x, x[0])
    b = torch.vmap(lambda t: t * 2, in_dims=1, out_dims=1)(x)
    c = torch.vmap(lambda d: d["a"] + d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": x[0]})
    d = torch.vmap(lambda t: (t, t.sum()), out_dims=(1, 0))(x)
    return a, b, c, d


@program
def vmap_randomness(x):
    return torch.vmap(lambda t: t + torch.rand(4), randomness="different")(x), torch.vmap(
        lambda t: t + torch.rand(4), randomness="same"
    )(x)


@program
def jacobians_composed(x):
    f = lambda t: (t**3).sum()
    return (
        torch.func.jacfwd(torch.func.jacrev(f))(x[0]),
        torch.func.hessian(f)(x[0]),
        torch.func.jacrev(torch.func.grad(f))(x[0]),
    )


@program
def vmapped_jacobian(x):
    return torch.vmap(torch.func.jacrev(lambda t: t.sin() * t.sum()))(x)


@program
def jacobian_options(x):
    f = lambda a, b: (a * b, a + b)
    return torch.func.jacrev(f, argnums=(0, 1))(x[0], x[1]), torch.func.jacfwd(f, argnums=1)(x[0], x[1])


@program(graphs=3, breaks=True)
def linearised(x):
    y, f = torch.func.linearize(torch.sin, x)
    return y, f(torch.ones_like(x))


@program
def vjp_with_aux(x):
    y, f, aux = torch.func.vjp(lambda t: (t.sin(), t.sum()), x, has_aux=True)
    return y, f(torch.ones_like(y))[0], aux


@built
def vjp_function_returned():
    def f(x):
        y, back = torch.func.vjp(torch.sin, x)
        return y, back

    return lambda x: f(x)[1](torch.ones_like(x))[0]


@program
def vjp_function_out(x):
    y, back = torch.func.vjp(torch.sin, x)
    return y, callable(back)


@program(graphs=0, breaks=True)
def functionalized(x):
    return torch.func.functionalize(lambda t: t.clone().add_(1))(x)


@program
def grad_with_aux_module(x):
    m = nn.Linear(4, 2)
    p = dict(m.named_parameters())
    return {k: v.shape for k, v in torch.func.grad(lambda q: torch.func.functional_call(m, q, x).sum())(p).items()}


@program(graphs=0, breaks=True)
def mapped(x):
    from torch._higher_order_ops.map import map as hop_map

    return hop_map(lambda row, k: row * k, x, 2.0)


@program
def scanned(x):
    from torch._higher_order_ops.scan import scan

    return scan(lambda c, row: (c + row, c * row), torch.zeros(4), x, dim=0)


@program
def scanned_associatively(x):
    from torch._higher_order_ops.associative_scan import associative_scan

    return associative_scan(lambda a, b: a + b, x, dim=0, combine_mode="generic")


@program
def flex(x):
    from torch.nn.attention.flex_attention import flex_attention

    q = x[None, None].repeat(1, 1, 1, 4)
    return flex_attention(q, q, q)


@program
def cond_closure(x):
    w = x * 3
    return torch.cond(x.sum() > 0, lambda: w + 1, lambda: w - 1)


@program
def vmap_in_no_grad(x):
    with torch.no_grad():
        return torch.vmap(lambda t: t.softmax(0))(x.requires_grad_(False))


@program
def checkpoint_of_vmap(x):
    return torch.utils.checkpoint.checkpoint(torch.vmap(lambda t: t.sin().sum()), x, use_reentrant=False)


@program
def tree_mapped(x):
    from torch.utils import _pytree as pytree

    return pytree.tree_map(lambda t: t * 2, {"a": x, "b": [x + 1, (x,)]}), pytree.tree_leaves([x, {"k": 3}])


@program
def tree_flattened(x):
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten({"a": x, "b": [x + 1]})
    return pytree.tree_unflatten([t * 2 for t in leaves], spec)


@program
def per_sample(x):
    w = torch.ones(4)
    return torch.vmap(torch.func.grad(lambda v, s: (v * s).sum() ** 2), in_dims=(None, 0))(w, x)


@program(breaks=True)
def jvp_of_module(x):
    torch.manual_seed(0)
    w = torch.ones(4, 2)
    return torch.func.jvp(lambda t: (t @ w).tanh(), (x,), (torch.ones_like(x),))
