# ruff: noqa
"""Functions of torch's namespaces, factories, state queries, function transforms, higher-order operators, user operators, optimisers."""

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, tensor


@program
def factories(x):
    return (
        torch.zeros(2),
        torch.ones(2, 3),
        torch.full((2,), 7.0),
        torch.arange(5),
        torch.arange(1, 6, 2),
        torch.linspace(0, 1, 3),
        torch.eye(3),
        torch.empty(0),
        torch.tensor([1, 2]),
        torch.tensor(3.0),
        torch.zeros_like(x),
        torch.ones_like(x, dtype=torch.int),
        torch.full_like(x, 2),
        torch.as_tensor([1.0]),
        torch.logspace(0, 1, 2),
        torch.zeros(x.shape, dtype=x.dtype, device=x.device),
        torch.tril_indices(2, 2),
        torch.scalar_tensor(2),
    )


@program
def tensor_from_shape(x):
    return (
        torch.tensor(x.shape),
        torch.tensor([x.shape[0], 2]),
        torch.tensor([[1.0, 2], [3, 4]]),
        torch.tensor(True),
        torch.tensor(x.shape[0] * 2.0),
    )


@program
def tensor_from_tensors(x):
    return torch.tensor([1.0, 2.0]) + torch.stack([x[0, 0], x[1, 1]]), torch.as_tensor(x)


@program(breaks=True)
def random_factories(x):
    torch.manual_seed(0)
    return (
        torch.rand(2),
        torch.randn(2),
        torch.randint(0, 5, (3,)),
        torch.randperm(4),
        torch.rand_like(x),
        torch.randn_like(x),
        torch.bernoulli(torch.full((2,), 0.5)),
        torch.normal(0.0, 1.0, (2,)),
    )


@program
def random_no_seed(x):
    return x + torch.rand(3, 4)


@program
def pointwise(x):
    return (
        torch.sin(x)
        + torch.exp(x)
        + torch.relu(x)
        + torch.clamp(x, -1, 1)
        + torch.maximum(x, -x)
        + torch.add(x, 1, alpha=2)
        + torch.addcmul(x, x, x, value=0.5)
        + torch.lerp(x, x + 1, 0.5)
        + torch.where(x > 0, 1.0, 0.0)
        + torch.atan2(x, x + 3)
        + torch.fmod(x, 2)
        + torch.erf(x)
        + torch.sigmoid(x)
        + torch.logaddexp(x, x)
        + torch.float_power(x.abs(), 2).float()
    )


@program
def reductions(x):
    return (
        torch.sum(x, dim=(0, 1)),
        torch.mean(x, 0),
        torch.max(x, 1),
        torch.argmax(x),
        torch.std_mean(x),
        torch.norm(x),
        torch.var(x),
        torch.logsumexp(x, 0),
        torch.cumsum(x, 1),
        torch.cumprod(x, 1),
        torch.topk(x, 2),
        torch.sort(x),
        torch.argsort(x),
        torch.kthvalue(x, 1),
        torch.mode(x),
        torch.quantile(x, 0.5),
        torch.count_nonzero(x),
        torch.median(x),
        torch.nansum(x),
    )


@program(graphs=2, breaks=True)
def all_close(x):
    return torch.allclose(x, x), torch.allclose(x, x + 1), x + 1


@program
def shaping(x):
    return (
        torch.cat([x, x]),
        torch.stack([x, x], 1),
        torch.cat([r[None] for r in x]),
        torch.hstack([x, x]),
        torch.vstack((x, x)),
        torch.reshape(x, (4, 3)),
        torch.squeeze(x[None]),
        torch.transpose(x, 0, 1),
        torch.flatten(x),
        torch.permute(x, (1, 0)),
        torch.broadcast_to(x, (2, 3, 4)),
        torch.tile(x, (2,)),
        torch.roll(x, 1),
        torch.rot90(x),
        torch.meshgrid(x[0], x[1], indexing="ij"),
        torch.cartesian_prod(x[0], x[1]),
        torch.atleast_3d(x),
        torch.movedim(x, 0, 1),
        torch.chunk(x, 2),
        torch.block_diag(x, x),
        torch.broadcast_tensors(x, x[0]),
    )


@program
def einsum_forms(x):
    return (
        torch.einsum("ij,kj->ik", x, x),
        torch.einsum("ij->j", x),
        torch.einsum("i,j->ij", [x[0], x[1]]),
        torch.tensordot(x, x, dims=([1], [1])),
    )


@program
def linalg_functions(x):
    a = x @ x.t() + torch.eye(3)
    return (
        torch.linalg.norm(x),
        torch.linalg.inv(a),
        torch.linalg.det(a),
        torch.linalg.matrix_norm(a),
        torch.linalg.solve(a, x),
        torch.linalg.qr(a).R,
        torch.linalg.svdvals(a),
        torch.linalg.cholesky(a),
        torch.linalg.vector_norm(x, dim=1),
        torch.linalg.eigvalsh(a),
        torch.linalg.multi_dot([a, a, a]),
        torch.linalg.matrix_power(a, 2),
        torch.trace(a),
        torch.linalg.cross(x[:, :3], x[:, 1:]),
    )


@program
def fft_functions(x):
    return (
        torch.fft.fft(x),
        torch.fft.rfft(x),
        torch.fft.irfft(torch.fft.rfft(x)),
        torch.fft.fftshift(x),
        torch.fft.fftfreq(4),
        torch.fft.fft2(x).abs(),
    )


@program
def special_functions(x):
    return (
        torch.special.expit(x),
        torch.special.erf(x),
        torch.special.logit(x.sigmoid()),
        torch.special.gammaln(x.abs() + 1),
        torch.special.xlog1py(x.abs(), x.abs()),
    )


@program
def functional_activations(x):
    return (
        F.relu(x)
        + F.gelu(x)
        + F.silu(x)
        + F.leaky_relu(x, 0.1)
        + F.elu(x)
        + F.softplus(x)
        + F.softmax(x, -1)
        + F.log_softmax(x, dim=1)
        + F.sigmoid(x)
        + F.tanh(x)
        + F.hardtanh(x)
        + F.mish(x)
        + F.hardswish(x)
        + F.selu(x)
        + F.relu6(x)
        + F.softsign(x)
        + F.tanhshrink(x)
        + F.threshold(x, 0.1, 0)
        + F.glu(torch.cat([x, x], 1))
        + F.logsigmoid(x)
    )


@program
def functional_losses(x):
    y = x + 0.1
    return (
        F.mse_loss(x, y),
        F.l1_loss(x, y),
        F.smooth_l1_loss(x, y),
        F.cross_entropy(x, torch.tensor([0, 1, 2])),
        F.nll_loss(F.log_softmax(x, 1), torch.tensor([0, 1, 2])),
        F.binary_cross_entropy_with_logits(x, x.sigmoid()),
        F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
        F.huber_loss(x, y),
        F.cosine_similarity(x, y),
        F.hinge_embedding_loss(x, torch.ones_like(x)),
    )


@program
def functional_layers(x):
    img = x[None, None]
    return (
        F.linear(x, x),
        F.layer_norm(x, (4,)),
        F.conv1d(x[None], torch.ones(2, 3, 3)),
        F.conv2d(img, torch.ones(1, 1, 2, 2)),
        F.max_pool2d(img, 2),
        F.avg_pool2d(img, 2),
        F.adaptive_avg_pool2d(img, 1),
        F.interpolate(img, scale_factor=2),
        F.pad(x, (1, 1)),
        F.normalize(x),
        F.embedding(torch.tensor([0, 1]), x),
        F.one_hot(torch.tensor([0, 1]), 3),
        F.batch_norm(x, torch.zeros(4), torch.ones(4)),
        F.group_norm(img, 1),
        F.scaled_dot_product_attention(x[None], x[None], x[None]),
        F.unfold(img, 2),
        F.pixel_shuffle(torch.ones(1, 4, 2, 2), 2),
        F.grid_sample(img, torch.zeros(1, 2, 2, 2), align_corners=False),
    )


@program
def functional_dropout(x):
    return F.dropout(x, 0.5, training=False) + F.dropout(x, 0.0)


@program
def functional_dropout_train(x):
    return F.dropout(x, 0.5, training=True)


@program
def dtype_info(x):
    f = torch.finfo(x.dtype)
    i = torch.iinfo(torch.int32)
    return x.clamp(min=f.min) + f.eps + (i.max > 0) + f.bits, torch.finfo(torch.float16).max, i.min, f.tiny


@program
def dtype_functions(x):
    return (
        torch.promote_types(torch.int, torch.float),
        torch.result_type(x, 1),
        torch.can_cast(torch.float, torch.int),
        x.dtype.is_floating_point,
        torch.float64.itemsize,
        torch.get_default_dtype(),
        x.dtype.to_complex(),
        x + 1,
    )


@program
def state_queries(x):
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.jit.is_scripting(),
        torch.jit.is_tracing(),
        torch.is_autocast_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.cuda.is_available(),
        x + 1,
    )


@program
def compiler_queries(x):
    return x + 1


@program
def is_compiling_branch(x):
    if torch.compiler.is_compiling():
        return x + 0
    return x + 0


@program
def device_objects(x):
    d = torch.device("cpu")
    return x.to(d) + (d.type == "cpu") + (x.device == d), d, str(d), d.index


@program(breaks=True)
def device_context(x):
    with torch.device("cpu"):
        return torch.zeros(3, 4) + x


@program
def default_dtype_set(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(3, 4)
    torch.set_default_dtype(torch.float32)
    return y + x


@program
def logical(x):
    return (
        torch.logical_and(x > 0, x < 1),
        torch.isnan(x),
        torch.isfinite(x),
        torch.equal(x, x) if False else 0,
        torch.isclose(x, x),
        torch.eq(x, 0),
        torch.isin(x, torch.tensor([1.0])),
        torch.any(x > 0),
        torch.all(x > 0),
    )


@program(breaks=True)
def allclose_breaks(x):
    return torch.allclose(x, x), x + 1


@program(breaks=True)
def equal_breaks(x):
    return torch.equal(x, x), x + 1


@program
def ops_namespace(x):
    return torch.ops.aten.sin.default(x) + torch.ops.aten.add.Tensor(x, x) + torch.ops.aten.relu(x)


@program
def broadcast_shapes(x):
    return torch.broadcast_shapes((3, 1), (4,)), x + 1


@program
def numel_and_is_tensor(x):
    return torch.numel(x) + torch.is_tensor(x), x + 1


@program
def vmap_simple(x):
    return torch.func.vmap(lambda v: v * 2)(x)


@program
def vmap_two(x):
    return torch.vmap(torch.dot)(x, x)


@program
def func_grad(x):
    return torch.func.grad(lambda v: (v**2).sum())(x)


@program
def func_grad_and_value(x):
    g, v = torch.func.grad_and_value(lambda v: v.sin().sum())(x)
    return g + v


@program
def func_vjp_jvp(x):
    out, f = torch.func.vjp(torch.sin, x)
    return f(x)[0] + out


@program
def func_jacrev(x):
    return torch.func.jacrev(lambda v: v**2)(x[0])


@program
def func_hessian(x):
    return torch.func.hessian(lambda v: (v**3).sum())(x[0])


@program
def checkpoint_function(x):
    return torch.utils.checkpoint.checkpoint(lambda v: v.sin().cos(), x, use_reentrant=False)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


@program(args=lambda i: [tensor(i).requires_grad_()])
def autograd_function(x):
    return Square.apply(x) + 1


@program
def autograd_function_no_grad(x):
    return Square.apply(x) + Scaled.apply(x, 3.0)


@torch.library.custom_op("breadth::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


@program
def library_custom_op(x):
    return torch.ops.breadth.twice(x) + twice(x)


LIB = torch.library.Library("breadth2", "DEF")
LIB.define("triple(Tensor x) -> Tensor")
LIB.impl("triple", lambda x: x * 3, "CompositeExplicitAutograd")


@program
def library_define(x):
    return torch.ops.breadth2.triple(x)


@program
def distributions(x):
    d = torch.distributions.Normal(x, 1.0)
    return d.log_prob(x + 1), d.mean, d.entropy()


@program
def distributions_sample(x):
    return torch.distributions.Normal(torch.zeros(3), torch.ones(3)).rsample() + 1


@built(graphs=2)
def optimizer_step():
    p = torch.nn.Parameter(torch.ones(4))
    o = torch.optim.SGD([p], lr=0.1)

    def f(x):
        o.zero_grad()
        loss = (x * p).sum()
        loss.backward()
        o.step()
        return loss.detach(), p.detach().clone()

    return f


@built
def training_forward():
    torch.manual_seed(0)
    m = torch.nn.Linear(4, 2)

    def f(x):
        return F.mse_loss(m(x), torch.zeros(3, 2))

    return f


class Sub(torch.Tensor):
    pass


@program(args=lambda i: [tensor(i).as_subclass(Sub)])
def tensor_subclass(x):
    return x + 1


@program
def as_subclass_inside(x):
    return x.as_subclass(torch.Tensor) + 1


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@program
def torch_function_mode(x):
    with Mode():
        return x + 1


@program(graphs=0, breaks=True)
def sparse_tensors(x):
    s = x.to_sparse()
    return s.to_dense()


@program
def complex_functions(x):
    z = torch.complex(x, x)
    return torch.abs(z), torch.angle(z), torch.polar(x.abs(), x), z * 1j, torch.real(z)


@program
def bitwise(x):
    i = x.long()
    return i & 3, i | 1, i ^ 2, ~i, i << 1, i >> 1, torch.bitwise_and(i, 1)


@program(graphs=0, breaks=True)
def int_division(x):
    i = (x * 10).long()
    return (
        i // 3,
        i % 3,
        torch.div(i, 3, rounding_mode="floor"),
        x / 2,
        1 / x,
        2**x,
        x**2,
        divmod(i, 3),
        -x,
        5 % i.abs().add(1),
    )


@program
def scalar_on_left(x):
    return 1 + x, 2 - x, 3 * x, 4 / x, 2**x, 5 // (x.abs() + 1), True & (x > 0), 1.0 < x


@program
def tensor_with_numpy_number(x):
    return x * 2.0


@program
def compile_nested_disable(x):
    return x + 1


@program
def record_function(x):
    with torch.profiler.record_function("label"):
        return x + 1


@program
def deterministic_switch(x):
    return x + 1


@program
def sdpa_kernel_context(x):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(x[None], x[None], x[None])


@program
def pack_padded(x):
    return torch.nn.utils.rnn.pad_sequence([x[0, :2], x[1]])


@program
def clip_grad_norm(x):
    return torch.nn.utils.parameters_to_vector([x, x])


@program
def assert_async(x):
    torch._assert(x.shape[0] == 3, "m")
    return x + 1


@program
def torch_check(x):
    torch._check(x.shape[0] == 3)
    return x + 1


@program
def foreach(x):
    return torch._foreach_add([x, x], 1)


@program(graphs=0, breaks=True)
def typed_storage(x):
    return x.untyped_storage().size()


@program
def compile_is_scripting_branches(x):
    if not torch.jit.is_scripting() and not torch.jit.is_tracing():
        x = x + 1
    if torch.overrides.has_torch_function((x,)):
        x = x * 100
    return x


@program
def jit_annotate(x):
    y = torch.jit.annotate(int, 3)
    return x + y


@program
def size_from_symbols(x):
    b, n = x.size()
    h = 2
    return x.view(b, h, n // h).transpose(0, 1).reshape(h, -1)


@program
def masks(x):
    n = x.shape[0]
    m = torch.full((n, n), float("-inf")).triu(1)
    return (x @ x.t() + m).softmax(-1)


@program
def positional_encoding(x):
    pos = torch.arange(x.shape[0], dtype=x.dtype).unsqueeze(1)
    div = torch.exp(torch.arange(0, x.shape[1], 2).float() * (-9.2 / x.shape[1]))
    pe = torch.zeros_like(x)
    pe[:, 0::2] = torch.sin(pos * div)
    pe[:, 1::2] = torch.cos(pos * div)
    return x + pe


@program(breaks=True)
def out_resized(x):
    one, v, i = torch.tensor(0.0), torch.tensor(0.0), torch.tensor(0)
    torch.sigmoid(x, out=one)
    torch.sort(x, out=(v, i))
    return one.numel(), one, v.stride(), v, i


@program(breaks=True)
def out_empty(x):
    o = torch.empty(0)
    torch.sin(x, out=o)
    return o, o.shape


@program
def out_as_large(x):
    o, strided, constant = torch.empty(3, 4), torch.zeros(4, 3).t(), torch.tensor([[0.0] * 4] * 3)
    torch.sin(x, out=o)
    torch.sin(x, out=strided)
    r = torch.sin(x, out=constant)
    return o, strided, strided.stride(), constant, r is constant


@program(breaks=True)
def out_dtypes(x):
    up, down = torch.empty(3, 4, dtype=torch.double), torch.empty(3, 4, dtype=torch.half)
    torch.sin(x, out=up)
    torch.sin(x, out=down)
    try:
        torch.sin(x, out=torch.empty(3, 4, dtype=torch.int))
    except RuntimeError as e:
        return up, down, str(e)


@program
def out_aliases(x):
    torch.add(x, x, out=x)
    rows = torch.zeros(2, 3, 4)
    torch.sin(x, out=rows[1])
    columns = torch.zeros(3, 4, 2)
    torch.sin(x, out=columns[..., 0])
    return x, rows, columns


@program(breaks=True)
def out_of_several(x):
    v, i = torch.empty(3), torch.empty(0, dtype=torch.long)
    torch.max(x, 1, out=(v, i))
    return v, i


@program(breaks=True)
def builtin_types_as_dtypes(x):
    return (
        (x * 5).to(bool).to(float).to(int) + 8,
        x.to(complex),
        x.to(dtype=float),
        x.type(int),
        x.sum(dtype=float),
        torch.zeros(2, dtype=int),
        torch.arange(3, dtype=float),
        torch.zeros_like(x, dtype=bool),
        torch.tensor([1, 0], dtype=bool),
        x.softmax(0, dtype=float),
    )


@program
def tensor_types_as_dtypes(x):
    return x.type(torch.HalfTensor) + 1, x.type("torch.HalfTensor"), x.type(torch.half), x.type()


@program
def odd_complex_numbers(x):
    return x + complex(float("inf"), float("nan")), torch.full((2,), complex(-0.0, -0.0)), x * 2j


@program(graphs=2, breaks=True)
def functions_as_arguments(x):
    return F.triplet_margin_with_distance_loss(x, x + 1, x + 2, distance_function=F.pairwise_distance)


@program(graphs=0, breaks=True)
def types_that_torch_refuses(x):
    out = []
    for t in (dict, [float], F.relu):
        try:
            out.append(x.to(t))
        except TypeError as e:
            out.append(type(e).__name__)
    return out


SIZES = {torch.Size([4, 64]): 7}


@program
def size_of_tensors(x):
    s = torch.tensor(x.shape[1:])
    key = torch.Size([s[0], 64])
    return (
        key in SIZES,
        key,
        torch.Size(torch.tensor([2, 3])),
        torch.Size([1]) + (torch.tensor(2),),
        hash(key) == hash((4, 64)),
    )


@program(breaks=True)
def size_of_other_things(x):
    out = []
    for items in ([True], [1.5], "ab", [None], [torch.tensor(1.5)], [-1], [], [2**70], 3):
        try:
            out.append((torch.Size(items), torch.Size(items).numel()))
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return out, x + 1


@program
def tensors_as_indices(x):
    one = torch.tensor(1)
    return (
        [10, 20, 30][one],
        [10, 20, 30][one:],
        list(range(torch.tensor(3))),
        one.__index__(),
        "abc"[one],
        x[one],
        torch.zeros(one, 2),
        x.reshape([torch.tensor(4), 3]),
        list(enumerate([5], one)),
    )


@program(breaks=True)
def unknown_tensors_as_indices(x):
    n = (x[0, 0] * 0 + 1).long()
    return [10, 20][n], x[n], list(range(n)), torch.Size([n, 2])
