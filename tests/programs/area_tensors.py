# ruff: noqa
"""Tensors: attributes, methods, indexing of every kind, in-place work, conversions to Python."""

import torch
from tests.support.registry import built, program, tensor


def sized(*sizes):
    torch.manual_seed(len(sizes))
    return torch.randn(*sizes)


@program
def shape_queries(x):
    a, b = x.shape
    return (
        x
        + a
        + b
        + x.size(0)
        + x.size()[1]
        + x.dim()
        + x.ndim
        + x.numel()
        + x.nelement()
        + len(x)
        + x.ndimension()
        + x.stride(0)
        + x.stride()[1]
        + x.element_size()
        + x.storage_offset()
        + x.itemsize
        + x.nbytes
    )


@program
def kind_queries(x):
    return (
        x
        + (x.dtype == torch.float32)
        + x.is_floating_point()
        + x.is_complex()
        + x.is_signed()
        + x.is_contiguous()
        + x.is_cuda
        + x.requires_grad
        + x.is_leaf
        + (x.device.type == "cpu")
        + (x.layout == torch.strided)
        + x.is_sparse
        + x.is_quantized
        + x.is_meta,
        x.dtype,
        x.device,
    )


@program
def views(x):
    return (
        x.T,
        x.mT,
        x.t(),
        x.H,
        x.real,
        x.view(-1),
        x.view(4, 3),
        x.reshape(2, 6),
        x.flatten(),
        x.unsqueeze(0),
        x.squeeze(),
        x.permute(1, 0),
        x.transpose(0, 1),
        x.expand(2, 3, 4),
        x.narrow(0, 1, 2),
        x.unflatten(1, (2, 2)),
        x.contiguous(),
        x.swapaxes(0, 1),
        x.movedim(0, 1),
        x.diagonal(),
        x.unfold(1, 2, 1),
        x.view_as(x),
        x.expand_as(x),
    )


@program
def splits(x):
    a, b = x.split(2)
    c, d = x.chunk(2, dim=1)
    e, f, g = x.unbind(0)
    h = torch.split(x, [1, 3], dim=1)
    i, j = torch.tensor_split(x, 2)
    return a.sum() + b.sum() + c.sum() + d.sum() + e.sum() + f.sum() + g.sum() + h[0].sum() + len(h) + i.sum() + j.sum()


@program
def indexing_basic(x):
    return x[0], x[-1], x[0, 1], x[:, 1], x[1:], x[:, ::2], x[..., 0], x[None], x[:, None], x[1:2, ..., 1:], x[(0, 1)]


@program
def indexing_advanced(x):
    i = torch.tensor([0, 2])
    return x[i], x[:, i], x[i, i], x[[0, 1]], x[[0, 1], [1, 2]], x[i][:, None], x[torch.tensor(1)]


@program
def indexing_mask(x):
    return x[x > 0]


@program
def indexing_bool(x):
    return x[True], x[False]


@program
def setitem_forms(x):
    y = x.clone()
    y[0] = 1
    y[:, 1] = 2.5
    y[1:, 2:] = x[1:, 2:] * 2
    y[y > 1] = 0
    y[torch.tensor([0])] = 7
    y[..., -1] += 1
    y[0, 0] *= 3
    return y


@program
def setitem_input(x):
    x[0] = 0
    x[1] += 1
    return x * 2


@program
def in_place_methods(x):
    y = x.clone()
    y.add_(1).mul_(2).sub_(x).div_(3)
    y.zero_()
    y.fill_(2)
    y.copy_(x)
    y.clamp_(-1, 1)
    y.relu_()
    y.sigmoid_()
    y.masked_fill_(x > 0, 5.0)
    y.t_()
    return y


@program
def in_place_input(x):
    x.add_(1)
    y = x.mul_(2)
    return y is x, y + 1


@program
def augmented(x):
    y = x.clone()
    y += 1
    y -= 2
    y *= 3
    y /= 4
    y //= 1
    y **= 2
    y %= 3
    return y


@program(graphs=0)
def augmented_on_attribute(x):
    class Holder:
        pass

    return x


class Holder:
    def __init__(self, t):
        self.t = t
        self.n = 1


@program(args=lambda i: [Holder(tensor(i))])
def augmented_attribute(h):
    h.t += 1
    h.n += 1
    h.t[0] *= 2
    return h.t * h.n


@program
def out_argument(x):
    y = torch.empty(3, 4)
    torch.add(x, 1, out=y)
    torch.mul(y, 2, out=y)
    return y


@program
def out_argument_input(x):
    torch.sin(x, out=x)
    return x + 1


@program
def comparisons(x):
    return (
        x > 0,
        x == x,
        x != 0,
        (x > 0) & (x < 1),
        (x > 0) | (x < -1),
        ~(x > 0),
        x.eq(0),
        x.gt(0).any(),
        (x < 0).all(),
        x >= 1,
        x <= 1,
    )


@program
def bool_of_single(x):
    return bool(torch.tensor(True)), x + 1


@program(graphs=3)
def item_breaks(x):
    n = x.sum().item()
    return x + n


@program
def item_of_constant(x):
    return x + torch.tensor(3).item()


@program(graphs=2)
def int_of_tensor(x):
    return x + int(x.sum() * 0 + 2)


@program
def tolist_breaks(x):
    return x + len(x.tolist())


@program
def numpy_breaks(x):
    return x + x.detach().numpy().shape[0]


@program
def iterate(x):
    out = 0
    for row in x:
        out = out + row
    for i, row in enumerate(x):
        out = out + row * i
    a, b, c = x
    return out + a + b + c + sum(x) + sum(r.sum() for r in x)


@program
def len_and_zip(x):
    return [a + b for a, b in zip(x, x.flip(0))], len(x), max(x.shape)


@program
def conversions(x):
    return (
        x.double(),
        x.half(),
        x.long(),
        x.int(),
        x.bool(),
        x.float(),
        x.to(torch.float64),
        x.to("cpu"),
        x.to(x),
        x.to(dtype=torch.int32),
        x.type(torch.float64),
        x.type_as(x),
        x.cpu(),
        x.bfloat16(),
        x.to("cpu", torch.float16),
    )


@program
def type_string(x):
    return x.type(), x.type() == "torch.FloatTensor", x + 1


@program
def detach_clone(x):
    return x.detach() + 1, x.clone(), x.data + 1, x.requires_grad, x.detach().requires_grad


@program
def new_methods(x):
    return (
        x.new_zeros(2),
        x.new_ones(2, 3),
        x.new_full((2,), 5),
        x.new_empty(0),
        x.new_tensor([1, 2]),
        x.new_zeros(x.shape),
    )


@program
def methods_math(x):
    return (
        x.sin()
        + x.cos()
        + x.exp()
        + x.abs().log()
        + x.abs().sqrt()
        + x.tanh()
        + x.sigmoid()
        + x.relu()
        + x.pow(2)
        + x.neg()
        + x.sign()
        + x.floor()
        + x.ceil()
        + x.round()
        + x.clamp(0, 1)
        + x.clamp(min=0)
        + x.reciprocal()
        + x.square()
        + x.trunc()
        + x.frac()
    )


@program
def methods_reduce(x):
    v, i = x.max(dim=1)
    s = x.sort(dim=1)
    t = x.topk(2, dim=1)
    return (
        x.sum(),
        x.sum(0),
        x.mean(1, keepdim=True),
        x.max(),
        x.min(),
        v,
        i,
        x.argmax(),
        x.std(),
        x.var(dim=0),
        x.prod(),
        x.norm(),
        x.cumsum(0),
        x.any(),
        x.all(),
        s.values,
        s[1],
        t.values,
        t.indices,
        x.median(),
        x.logsumexp(1),
        x.amax(1),
        x.aminmax(),
    )


@program
def methods_linear(x):
    return (
        x @ x.t(),
        x.mm(x.t()),
        x.matmul(x.t()),
        x[0].dot(x[1]),
        x.mv(x[0]),
        x[None].bmm(x.t()[None]),
        x[0].outer(x[1]),
        x.addmm(x @ x.t(), x) if False else 0,
    )


@program
def methods_gather(x):
    i = torch.tensor([[0, 1], [1, 2], [0, 3]])
    return (
        x.gather(1, i),
        x.scatter(1, i, 1.0),
        x.index_select(0, torch.tensor([0, 2])),
        x.masked_fill(x > 0, 0),
        torch.where(x > 0, x, -x),
        x.take(torch.tensor([0, 5])),
        x.repeat(2, 1),
        x.repeat_interleave(2, dim=0),
        x.roll(1, 0),
        x.flip(1),
        x.tril(),
        x.triu(1),
        x.scatter_add(1, i, torch.ones(3, 2)),
        x.index_add(0, torch.tensor([0]), x[:1]),
    )


@program
def nonzero_breaks(x):
    return x.nonzero().shape[1], torch.unique(x > 0)


@program
def grad_attribute(x):
    w = torch.ones(4, requires_grad=True)
    (x * w).sum().backward()
    return w.grad


@program
def autograd_grad(x):
    w = torch.ones(4, requires_grad=True)
    y = (x * w).sum()
    (g,) = torch.autograd.grad(y, w)
    return g


@program(args=lambda i: [tensor(i).requires_grad_()])
def requires_grad_input(x):
    y = x * 2
    return y, y.requires_grad, x.is_leaf, y.is_leaf


@program
def requires_grad_in_place(x):
    y = x.clone().requires_grad_()
    return (y * 2).requires_grad


@program
def set_requires_grad(x):
    y = x + 1
    y.requires_grad = True
    return y * 2


@program(args=lambda i: [tensor(i).requires_grad_()])
def grad_of_input_none(x):
    return x.grad is None, x + 1


@program
def data_assignment(x):
    y = x.clone()
    y.data = x + 1
    return y


@program
def tensor_hook(x):
    y = (x * 2).requires_grad_() if False else x * 2
    return y


@program(args=lambda i: [tensor(i).requires_grad_()])
def register_hook(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y.sum()


@program
def attribute_on_tensor(x):
    x.tag = 5
    return x + x.tag


@program
def getattr_on_tensor(x):
    return x + getattr(x, "ndim") + hasattr(x, "sin") + hasattr(x, "nope") + getattr(x, "nope", 3) + getattr(x, "sum")()


@program
def method_objects(x):
    f = x.add
    g = torch.Tensor.mul
    return f(1) + g(x, 2) + torch.Tensor.sum(x)


@program
def isinstance_checks(x):
    return (
        x
        + isinstance(x, torch.Tensor)
        + torch.is_tensor(x)
        + isinstance(x, torch.FloatTensor)
        + isinstance(x, torch.nn.Parameter)
        + torch.is_floating_point(x)
    )


@program
def contains_in_tensor(x):
    return bool((1.0 in torch.tensor([1.0, 2.0])))


@program
def format_of_tensor_breaks(x):
    return x + len(f"{x.shape} {x.dtype}")


@program(graphs=3, breaks=True)
def str_of_tensor(x):
    return len(str(x)) > 0, x + 1


@program
def complex_views(x):
    z = torch.view_as_complex(x.reshape(3, 2, 2).contiguous())
    return z.real, z.imag, z.abs(), z.conj(), torch.view_as_real(z), z.angle()


@program(graphs=0, breaks=True)
def delitem_fails(x):
    try:
        del x[0]
    except TypeError:
        return x + 1


@program(args=lambda i: [tensor(i), tensor(i + 1), 2, "a", None, [1, tensor(i)], {"k": tensor(i)}])
def mixed_arguments(x, y, n, s, none, l, d):
    return x + y * n + len(s) + l[1] + d["k"] + (none is None)


@program(args=lambda i: [tensor(i), i], graphs=2)
def int_argument_changes(x, n):
    return x + n


@program(args=lambda i: [tensor(i), i * 0.5], graphs=2)
def float_argument_changes(x, f):
    return x * f


@program(args=lambda i: [sized(3 + i, 4)], graphs=2)
def batch_changes(x):
    return x * 2 + x.shape[0]


@program(args=lambda i: [sized(3 + i, 4)], graphs=2)
def batch_changes_view(x):
    return x.view(-1, 2).sum(0) + x.reshape(x.shape[0] * 2, 2).mean()


@program(args=lambda i: [sized(3 + i, 4), sized(3 + i, 4)], graphs=2)
def batch_changes_two(x, y):
    return torch.cat([x, y], 0) @ torch.ones(4, 2)


@program(args=lambda i: [sized(3, 4).to(torch.float64 if i % 2 else torch.float32)], graphs=2)
def dtype_changes(x):
    return x + 1


@program(args=lambda i: [sized(*[2] * (i + 1))], graphs=3)
def rank_changes(x):
    return x + x.dim()


@program(args=lambda i: [[tensor(j) for j in range(i + 1)]], graphs=3)
def list_length_changes(l):
    return sum(l)


@program(args=lambda i: [tensor(i), bool(i % 2)], graphs=2)
def bool_argument_changes(x, flag):
    return x + 1 if flag else x - 1


@program(args=lambda i: [tensor(i), None if i % 2 else tensor(i)])
def optional_tensor(x, y):
    return x if y is None else x + y


@program(args=lambda i: (lambda t: [t, t])(tensor(i)))
def same_tensor_twice(a, b):
    a.add_(1)
    return a + b, a is b


@program(args=lambda i: (lambda t: [t, t[0]])(tensor(i)))
def overlapping_inputs(a, b):
    b.add_(1)
    return a + b


@program
def view_then_mutate(x):
    y = x[0]
    y.add_(1)
    return x * 2, y


@program(graphs=0)
def returns_input(x):
    return x


@program
def returns_input_twice(x):
    y = x + 1
    return y, y, x, [y]


@program
def returns_view(x):
    return x.view(-1), x[0]


@program(graphs=0)
def constant_outputs(x):
    return 1, "a", None, (1.5, [2])


@program(graphs=0)
def no_tensor_work(x):
    return x.shape[0] + 1


@program(graphs=0)
def empty_function(x):
    pass


@program(graphs=0)
def parameter_argument(x):
    return x


@program(args=lambda i: [torch.nn.Parameter(tensor(i))])
def parameter_input(p):
    return p * 2, isinstance(p, torch.nn.Parameter)
