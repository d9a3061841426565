# ruff: noqa
"""What reaches into the backward pass: hooks with closures, hooks on what is kept, autograd functions of every form."""

import torch
import torch.nn.functional as F
from tests.support.registry import built, leaf, program, tensor
from torch import nn
from torch.autograd.function import once_differentiable


@built(args=lambda i: [leaf(i)])
def closure_over_factor():
    def f(x):
        factor = 3.0
        y = x * 2
        y.register_hook(lambda g: g * factor)
        return y.sum()

    return f


@built(args=lambda i: [leaf(i)], graphs=4, breaks=True)
def closure_over_list():
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(g.sum().item()))
        return y.sum(), len(seen)

    return f


@built(args=lambda i: [leaf(i)])
def closure_over_tensor():
    def f(x):
        w = x.detach() * 2
        y = x * 2
        y.register_hook(lambda g: g * w)
        return y.sum()

    return f


@built(args=lambda i: [leaf(i)], breaks=True)
def hook_on_input():
    def f(x):
        x.register_hook(lambda g: g * 2)
        return (x * x).sum()

    return f


@built(args=lambda i: [leaf(i)])
def hook_default_argument():
    def f(x):
        y = x * 2
        y.register_hook(lambda g, k=2: g * k)
        return y.sum()

    return f


@built(args=lambda i: [leaf(i)], graphs=4, breaks=True)
def hook_bound_method():
    class Keeper:
        def __init__(self):
            self.all = []

        def keep(self, g):
            self.all.append(g.sum().item())

    keeper = Keeper()

    def f(x):
        y = x * 2
        y.register_hook(keeper.keep)
        return y.sum(), list(keeper.all)

    return f


@built(args=lambda i: [leaf(i)])
def hook_partial():
    import functools

    def scale(k, g):
        return g * k

    def f(x):
        y = x * 2
        y.register_hook(functools.partial(scale, 3))
        return y.sum()

    return f


@built(args=lambda i: [leaf(i)])
def hooks_in_order():
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g + 1)
        y.register_hook(lambda g: g * 3)
        return y.sum()

    return f


@built(args=lambda i: [leaf(i)], graphs=0, breaks=True)
def hook_handle_kept():
    def f(x):
        y = x * 2
        h = y.register_hook(lambda g: g * 5)
        z = y.sum()
        h.remove()
        return z

    return f


@built(args=lambda i: [leaf(i)])
def hook_on_each():
    def f(x):
        a, b = x.chunk(2)
        for t in (a, b):
            t.register_hook(lambda g: g.clamp(-0.1, 0.1))
        return a.sum() + (b * b).sum()

    return f


@built(args=lambda i: [leaf(i)])
def hook_on_no_grad():
    def f(x):
        y = x.detach() * 2
        if y.requires_grad:
            y.register_hook(lambda g: g * 5)
        return y

    return f


@built(args=lambda i: [leaf(i)], graphs=3, breaks=True)
def post_accumulate_on_input():
    seen = []

    def f(x):
        x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
        return (x * x).sum(), list(seen)

    return f


@built(args=lambda i: [leaf(i)], graphs=2, breaks=True)
def saved_hooks_pack():
    def f(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 2):
            y = x * x
        return y.sum()

    return f


@built(args=lambda i: [leaf(i)], breaks=True)
def saved_hooks_named():
    packed = []

    def pack(t):
        packed.append(tuple(t.shape))
        return t

    def f(x):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = x.exp() * x
        return y.sum(), list(packed)

    return f


@built(args=lambda i: [leaf(i)], breaks=True)
def saved_on_cpu():
    def f(x):
        with torch.autograd.graph.save_on_cpu():
            y = (x * x).exp()
        return y.sum()

    return f


@built(args=lambda i: [leaf(i)])
def saved_hooks_disabled():
    def f(x):
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            y = x * x
        return y.sum()

    return f


@built(args=lambda i: [leaf(i)], graphs=0, breaks=True)
def saved_hooks_disabled_raises():
    def f(x):
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            try:
                with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                    y = x * x
            except RuntimeError as e:
                return x * 2, str(e)
        return y.sum(), ""

    return f


class SetupContext(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, k = inputs
        ctx.k = k
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k + x * 0, None


class SavesNone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w=None):
        ctx.save_for_backward(x, w)
        return x * 2 if w is None else x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * 2, None) if w is None else (g * w, (g * x).sum())


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.exp()


class Needs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        ctx.shape = b.shape
        return x @ w + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = g @ w.T
        if ctx.needs_input_grad[1]:
            gw = x.T @ g
        if ctx.needs_input_grad[2]:
            gb = g.sum(0)
        return gx, gw, gb


class Attributes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dims, name="a", flag=True):
        ctx.dims, ctx.name, ctx.extra = dims, name, {"flag": flag}
        return x.sum(dims)

    @staticmethod
    def backward(ctx, g):
        for d in ctx.dims:
            g = g.unsqueeze(d)
        return g.expand(3, 4) * 1, None, None, None


class SeveralMixed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        i = x.argmax(-1)
        ctx.mark_non_differentiable(i)
        ctx.save_for_backward(i)
        return x * 2, i, None

    @staticmethod
    def backward(ctx, g, gi, gn):
        return g * 2


class ReturnsNumber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x.shape[0]

    @staticmethod
    def backward(ctx, g, n):
        return g * 2


class Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return -g


class ViewAs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.alpha, None


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class NoMaterialise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return (0 if a is None else a * 2) + (0 if b is None else b * 3)


class Listed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, n, *ts):
        ctx.n = n
        return sum(ts) * n

    @staticmethod
    def backward(ctx, g):
        return (None,) + (g * ctx.n,) * 2


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class WithJvp(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


@program(args=lambda i: [leaf(i)])
def function_setup_context(x):
    return SetupContext.apply(x, 3.0).sum()


@program(args=lambda i: [leaf(i)])
def function_saves_none(x):
    return SavesNone.apply(x).sum() + SavesNone.apply(x, None).mean()


@program(args=lambda i: [leaf(i)])
def function_saves_two(x):
    return SavesNone.apply(x, x.sum()).sum()


@program(args=lambda i: [leaf(i)], graphs=3, breaks=True)
def function_dirty(x):
    y = x * 1
    return Dirty.apply(y).sum(), y


@program(args=lambda i: [leaf(i)])
def function_once(x):
    return Once.apply(x).sum()


@program(args=lambda i: [leaf(i), leaf(i + 5).detach().T.contiguous().requires_grad_(), torch.zeros(3)])
def function_needs(x, w, b):
    return Needs.apply(x, w, b).sum()


@program(args=lambda i: [leaf(i)])
def function_attributes(x):
    return Attributes.apply(x, (0,)).sum() + Attributes.apply(x, [1], "b", False).sum() * 2


@program(args=lambda i: [leaf(i)])
def function_several_mixed(x):
    a, b, c = SeveralMixed.apply(x)
    return a.sum(), b, c


@program(args=lambda i: [leaf(i)])
def function_returns_number(x):
    a, b = ReturnsNumber.apply(x)
    return a * b


@program(args=lambda i: [leaf(i)])
def function_identity(x):
    return Identity.apply(x * 2).sum()


@program(args=lambda i: [leaf(i)])
def function_reversal(x):
    return ViewAs.apply(x * 2, 0.5).sum()


@program(args=lambda i: [leaf(i)])
def function_straight_through(x):
    return (StraightThrough.apply(x) * x).sum()


@program(args=lambda i: [leaf(i)])
def function_not_materialised(x):
    a, b = NoMaterialise.apply(x)
    return a.sum()


@program(args=lambda i: [leaf(i)])
def function_of_list(x):
    return Listed.apply(2, *[x, x * 2]).sum()


@program(args=lambda i: [leaf(i)])
def function_no_grad_and_grad(x):
    with torch.no_grad():
        a = Cubed.apply(x)
    return a, Cubed.apply(x).sum()


@program(args=lambda i: [leaf(i)], graphs=4, breaks=True)
def function_double_backward(x):
    y = Cubed.apply(x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g.sum()


@program(args=lambda i: [leaf(i)], graphs=0, breaks=True)
def function_vmapped(x):
    return torch.vmap(WithJvp.apply)(x)


@program(args=lambda i: [leaf(i)], breaks=True)
def function_in_func_grad(x):
    return torch.func.grad(lambda t: WithJvp.apply(t).sum())(x.detach())


@program(args=lambda i: [leaf(i)])
def function_alias(x):
    apply = Cubed.apply
    return apply(x).sum()


@built(args=lambda i: [leaf(i)])
def function_in_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = StraightThrough.apply
            self.w = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return self.f(x * self.w)

    return M()


@program(args=lambda i: [leaf(i)])
def function_under_autocast(x):
    with torch.autocast("cpu", torch.bfloat16):
        return Cubed.apply(x @ x.T).sum()


@program(args=lambda i: [leaf(i)])
def backward_inside(x):
    y = (x * x).sum()
    y.backward()
    return x.grad


@program(args=lambda i: [leaf(i)])
def backward_with_gradient(x):
    y = x * x
    y.backward(torch.ones_like(y))
    return x.grad * 2


@program(args=lambda i: [leaf(i)])
def grad_mode_in_backward(x):
    y = x * 2
    with torch.enable_grad():
        z = y * 3
    with torch.set_grad_enabled(False):
        w = y * 4
    return z.sum(), w


@built(args=lambda i: [leaf(i)], graphs=2, breaks=True)
def multi_grad_hook():
    def f(x):
        a, b = x * 2, x * 3
        torch.autograd.graph.register_multi_grad_hook((a, b), lambda gs: None)
        return (a + b).sum()

    return f


@program(args=lambda i: [leaf(i)])
def functional_jacobian(x):
    return torch.autograd.functional.jacobian(lambda t: (t * t).sum(0), x.detach())


@program(args=lambda i: [leaf(i)])
def forward_mode(x):
    import torch.autograd.forward_ad as fwAD

    with fwAD.dual_level():
        d = fwAD.make_dual(x.detach(), torch.ones(3, 4))
        return fwAD.unpack_dual(d * d).tangent


@built(args=lambda i: [leaf(i)], graphs=0, breaks=True)
def closure_changes_afterwards():
    def f(x):
        factor = 3.0
        y = x * 2
        y.register_hook(lambda g: g * factor)
        factor = 5.0
        return y.sum() * 1

    return f


@built(args=lambda i: [leaf(i)], graphs=3, breaks=True)
def closure_writes():
    def f(x):
        count = 0

        def hook(g):
            nonlocal count
            count += 1
            return g * count

        y = x * 2
        y.register_hook(hook)
        z = x * 3
        z.register_hook(hook)
        return (y + z).sum()

    return f


@built(args=lambda i: [leaf(i)], graphs=2, breaks=True)
def closure_over_new_list():
    def f(x):
        grads = []
        y = x * 2
        y.register_hook(grads.append)
        return y.sum(), grads

    return f


@built(args=lambda i: [leaf(i)])
def closure_over_module():
    torch.manual_seed(0)
    m = nn.Linear(4, 4)

    def f(x):
        y = m(x)
        y.register_hook(lambda g: g * m.in_features)
        return y.sum()

    return f


@built(args=lambda i: [tensor(i)], graphs=10, breaks=True)
def hooks_of_parameters():
    torch.manual_seed(0)
    m = nn.Linear(4, 3)
    seen = []

    def f(x):
        handles = [
            p.register_hook(lambda g, i=i: seen.append((i, g.sum().item()))) for i, p in enumerate(m.parameters())
        ]
        y = m(x)
        y.sum().backward()
        for h in handles:
            h.remove()
        out, grads = list(seen), [p.grad.clone() for p in m.parameters()]
        seen.clear()
        m.zero_grad()
        return out, grads

    return f


@built(args=lambda i: [tensor(i)], graphs=6, breaks=True)
def module_hook_without_input_gradient():
    torch.manual_seed(0)
    m, seen = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), []
    m[0].register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go[0].sum().item())))

    def f(x):
        return m(x).sum(), list(seen)

    return f


class OwnTangent(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.clamp(min=0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g

    @staticmethod
    def jvp(ctx, t):
        return t * 0.1


@program(graphs=5, breaks=True)
def own_tangent_of_a_function(x):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        y = torch.autograd.forward_ad.unpack_dual(OwnTangent.apply(dual))
        with torch.no_grad():
            z = torch.autograd.forward_ad.unpack_dual(OwnTangent.apply(dual))
    return y.primal, y.tangent, z.tangent, OwnTangent.apply(x)


@built(graphs=6, breaks=True)
def own_tangent_behind_a_call_without():
    def f(x):
        return OwnTangent.apply(x) * 2

    def both(x):
        plain = f(x)
        with torch.autograd.forward_ad.dual_level():
            return plain, torch.autograd.forward_ad.unpack_dual(
                f(torch.autograd.forward_ad.make_dual(x, x + 1))
            ).tangent

    return both


FACTORS, FACTOR = [1.0], 1.0


class ReadsItsClass(torch.autograd.Function):
    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        return x * ReadsItsClass.factor

    @staticmethod
    def backward(ctx, g):
        return g * ReadsItsClass.factor


class ReadsNames(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * FACTORS[0] * FACTOR

    @staticmethod
    def backward(ctx, g):
        return g * FACTORS[0]


@torch.library.custom_op("breadth_backward::reads", mutates_args=())
def reads(x: torch.Tensor) -> torch.Tensor:
    return x * FACTORS[0]


reads.register_fake(lambda x: torch.empty_like(x))
reads.register_autograd(lambda ctx, g: g * 2)


@torch._dynamo.allow_in_graph
def allowed_to_read(x):
    return x * FACTORS[0]


@program(args=lambda i: [leaf(i), i + 2.0], graphs=12, breaks=True)
def functions_read_what_was_just_written(x, factor):
    global FACTOR
    ReadsItsClass.factor = factor
    a = ReadsItsClass.apply(x)
    FACTORS[0] = factor + 1
    b = ReadsNames.apply(x)
    FACTOR = factor + 2
    c = ReadsNames.apply(x)
    try:
        return a, b, c, torch.autograd.grad((a + b + c).sum(), x)
    finally:
        ReadsItsClass.factor = FACTORS[0] = FACTOR = 1.0


@program(args=lambda i: [leaf(i), i + 2.0], graphs=2, breaks=True)
def kernels_read_what_was_just_written(x, factor):
    FACTORS[0] = factor
    a, b = reads(x), torch.ops.breadth_backward.reads(x)
    FACTORS[0] = factor + 1
    c = allowed_to_read(x)
    FACTORS[0] = 1.0
    return a, b, c, reads(x)


@built(args=lambda i: [leaf(i)], graphs=3)
def functions_beside_a_counter():
    class Counts(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return ReadsNames.apply(x) + self.calls

    return Counts()
