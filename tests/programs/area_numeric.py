# ruff: noqa
"""Numbers besides ordinary tensors: numpy, distributions, complex, Fourier, sparse, nested, operators of the user's."""

import numpy as np
import torch
import torch.nn.functional as F
from tests.support.registry import built, program, tensor
from torch import nn


@program
def numpy_round_trip(x):
    return torch.from_numpy(np.sin(x.numpy())) * 2


@program
def numpy_region(x):
    a = x.numpy()
    b = a * 2 + np.float32(1)
    c = np.concatenate([a, b], axis=0)
    return torch.from_numpy(c.sum(axis=1))


@program
def numpy_mean_std(x):
    a = x.detach().cpu().numpy()
    return a.mean(), a.std(axis=0), torch.as_tensor(a.max(axis=1))


@program(args=lambda i: [np.arange(6.0).reshape(2, 3) + i])
def numpy_in_numpy_out(a):
    return np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)


@program(args=lambda i: [np.arange(6.0).reshape(2, 3) + i])
def numpy_in_tensor_out(a):
    return torch.from_numpy(a).float() * 2


@program(args=lambda i: [np.arange(6).reshape(2, 3) + i])
def numpy_questions(a):
    return torch.ones(a.shape) * a.ndim, str(a.dtype), a.size


@program
def numpy_shared_memory(x):
    a = x.numpy()
    a[0] = 5
    return x * 2


@program
def numpy_constants(x):
    return x * np.pi + np.float64(2.5) + float(np.sqrt(2.0)) + np.int64(3)


@built
def numpy_table():
    table = np.linspace(0, 1, 4, dtype=np.float32)

    def f(x):
        return x * torch.from_numpy(table)

    return f


@program
def numpy_from_list(x):
    return x * torch.tensor(np.array([1.0, 2.0, 3.0, 4.0]), dtype=torch.float32)


@program(breaks=True)
def numpy_seeded(x):
    rng = np.random.default_rng(0)
    return x + float(rng.uniform())


@program
def normal_log_prob(x):
    d = torch.distributions.Normal(torch.zeros(4), torch.ones(4) * 2)
    return d.log_prob(x), d.entropy(), d.mean, d.stddev, d.cdf(x)


@program
def normal_unvalidated(x):
    d = torch.distributions.Normal(x, 1.0, validate_args=False)
    return d.rsample(), d.log_prob(x)


@program
def categorical(x):
    d = torch.distributions.Categorical(logits=x, validate_args=False)
    a = d.sample()
    return a, d.log_prob(a), d.entropy(), d.probs


@program
def kl_of_normals(x):
    p = torch.distributions.Normal(x, torch.ones_like(x), validate_args=False)
    q = torch.distributions.Normal(torch.zeros_like(x), torch.ones_like(x), validate_args=False)
    return torch.distributions.kl_divergence(p, q).sum()


@program
def independent(x):
    d = torch.distributions.Independent(
        torch.distributions.Normal(x, x.exp(), validate_args=False), 1, validate_args=False
    )
    return d.log_prob(x), d.event_shape, d.batch_shape


@program
def multivariate(x):
    d = torch.distributions.MultivariateNormal(torch.zeros(4), torch.eye(4), validate_args=False)
    return d.log_prob(x), d.rsample()


@program
def transformed(x):
    d = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(torch.zeros(4), torch.ones(4), validate_args=False),
        [torch.distributions.TanhTransform(cache_size=1)],
        validate_args=False,
    )
    return d.log_prob(torch.tanh(x) * 0.9)


@program
def beta_gamma(x):
    b = torch.distributions.Beta(x.abs() + 1, x.abs() + 2, validate_args=False)
    g = torch.distributions.Gamma(x.abs() + 1, 1.0, validate_args=False)
    return b.log_prob(torch.full((3, 4), 0.5)), g.mean, b.rsample().shape


@program
def bernoulli_uniform(x):
    b = torch.distributions.Bernoulli(logits=x, validate_args=False)
    u = torch.distributions.Uniform(0.0, 2.0)
    return b.log_prob((x > 0).float()), b.sample(), u.sample((3,))


@program
def fourier(x):
    f = torch.fft.rfft(x)
    return torch.fft.irfft(f * 2, n=4), torch.fft.fftshift(torch.fft.fft2(x)).abs(), torch.fft.fftfreq(4), f.real


@program
def stft_and_back(x):
    w = torch.hann_window(8)
    s = torch.stft(x.flatten().repeat(4), 8, hop_length=4, window=w, return_complex=True)
    return s.abs(), torch.istft(s, 8, hop_length=4, window=w)


@program(args=lambda i: [torch.complex(tensor(i), tensor(i + 1))])
def complex_argument(z):
    return z * z.conj(), z.abs(), z.angle(), z.real + z.imag, torch.view_as_real(z), z * 2j, z.is_complex()


@program
def rotary(x):
    f = torch.polar(torch.ones(3, 2), torch.arange(6.0).reshape(3, 2))
    return torch.view_as_real(torch.view_as_complex(x.reshape(3, 2, 2)) * f).flatten(1)


@program(graphs=2, breaks=True)
def sparse_inside(x):
    s = x.relu().to_sparse()
    return torch.sparse.mm(s, x.T), s.to_dense()


@program(args=lambda i: [tensor(i).relu().to_sparse()], breaks=True)
def sparse_argument(s):
    return s.to_dense() * 2


@program(breaks=True)
def nested_inside(x):
    n = torch.nested.nested_tensor([x[0], x[1, :2]])
    return n.to_padded_tensor(0.0)


@torch.jit.script
def scripted(x, k: int = 2):
    return x * k + 1


@program
def script_inside(x):
    return scripted(x) * 2


@torch.library.custom_op("breadth_ts::twist", mutates_args=())
def twist(x: torch.Tensor, k: float) -> torch.Tensor:
    return x.flip(0) * k


@twist.register_fake
def _(x, k):
    return torch.empty_like(x)


def _twist_setup(ctx, inputs, output):
    ctx.k = inputs[1]


twist.register_autograd(lambda ctx, g: (g.flip(0) * ctx.k, None), setup_context=_twist_setup)


@torch.library.custom_op("breadth_ts::fill", mutates_args=("x",))
def fill(x: torch.Tensor, v: float) -> None:
    x.fill_(v)


@torch.library.custom_op("breadth_ts::pair", mutates_args=())
def pair(xs: list[torch.Tensor], n: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    return xs[0] * 2, xs[1] + (n or 0)


@pair.register_fake
def _(xs, n=None):
    return torch.empty_like(xs[0]), torch.empty_like(xs[1])


@torch.library.custom_op("breadth_ts::bare", mutates_args=())
def bare(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@program(args=lambda i: [tensor(i).requires_grad_()])
def custom_with_autograd(x):
    return twist(x, 2.0).sum()


@program(args=lambda i: [tensor(i).requires_grad_()], graphs=2, breaks=True)
def custom_by_name(x):
    return torch.ops.breadth_ts.twist(x, 2.0).sum() + torch.ops.breadth_ts.twist.default(x, k=3.0).mean()


@program
def custom_mutates(x):
    y = x * 2
    fill(y, 3.0)
    return y + x


@program
def custom_several(x):
    a, b = pair([x, x + 1], 3)
    c, d = pair([x, x])
    return a + b, c - d


@program(breaks=True)
def custom_without_fake(x):
    return bare(x) + 1


@program
def aten_overloads(x):
    return (
        torch.ops.aten.add.Tensor(x, 1),
        torch.ops.aten.max.dim(x, 1)[0],
        torch.ops.aten.sum(x),
        torch.ops.prims.sin(x),
    )


@program
def linalg_several(x):
    q, r = torch.linalg.qr(x)
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    return q @ r, (u * s) @ v, torch.linalg.norm(x, dim=1), torch.linalg.matrix_rank(x).shape


@program
def quantised(x):
    q = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    return q.dequantize()


@program
def fake_quantised(x):
    return torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)


@program
def float8(x):
    return x.to(torch.float8_e4m3fn).to(torch.float32)


@program
def histogram(x):
    return (
        torch.histc(x, 4, -2, 2),
        torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
        torch.searchsorted(torch.arange(4.0), x),
    )


@program(breaks=True)
def frombuffer(x):
    return x * torch.frombuffer(bytearray(b"\x00\x00\x80\x3f" * 4), dtype=torch.float32)


@program
def as_tensor_forms(x):
    return (
        torch.as_tensor([1, 2]),
        torch.as_tensor(x),
        torch.asarray([1.0]),
        torch.tensor([[1, 2], [3, 4]]).float() @ torch.ones(2),
    )


@program
def numpy_square_root(x):
    return x / np.sqrt(x.shape[-1]), x * np.log(2.0) + np.exp(1), np.sqrt(2.0) * x


@program
def numpy_product_of_sizes(x):
    n = np.prod(x.shape[1:])
    return x.reshape(-1, n), x.view(int(n), -1), n, torch.zeros(int(np.ceil(n / 3)))


@program
def numpy_numbers(x):
    a, b, c = np.float32(0.1), np.int64(3), np.bool_(True)
    return x * a, a * x, x + b, b - x, x[b - 1 : b], x if c else -x, a * b, -a, a > b, round(float(a), 3), int(b) // 2


@program
def numpy_number_types(x):
    a = np.float64(2.5)
    return (
        isinstance(a, float),
        type(a * 2).__name__,
        a.item(),
        str(a.dtype),
        f"{a:.1f}",
        hash(a) == hash(2.5),
        x * a.astype(np.float32),
    )


@built
def numpy_number_attribute():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 1.0 / np.sqrt(64)

        def forward(self, x):
            return x * self.scale

    return M()


@program(args=lambda i: [tensor(i), np.float32(i)], graphs=3)
def numpy_number_argument(x, k):
    return x * k


@program(graphs=0, breaks=True)
def numpy_number_of_tensor_type(x):
    return torch.tensor(np.float64(2.5)).dtype, torch.tensor(np.float32(2.5)), torch.as_tensor(np.int32(2)).dtype, x


@program
def numpy_warns(x):
    return x * float(np.float64(1.0) / np.float64(4.0)), np.isinf(np.log(np.float64(1e-300))), x


@program(graphs=0)
def numpy_number_and_list(x):
    return (
        x,
        np.int64(2) * np.int64(3),
        list(range(np.int64(3))),
        [1, 2, 3][np.int64(1)],
        np.int64(2) in (1, 2),
        {np.int64(2): "a"}[2],
    )


@program(breaks=True)
def numpy_number_beside_list(x):
    return x * 2, np.float64(2.0) * [1.0, 2.0]


@program
def numpy_maximum(x):
    return x * np.maximum(1, 2) + np.clip(5, 0, 3) + np.max([1, 2.5]) + np.mean((1, 2, 3)), np.floor(2.5)


@program
def numpy_infinite(x):
    return x.masked_fill(x > 0, -np.inf).clamp(min=np.finfo(np.float32).min), x * np.nan


@program(args=lambda i: [torch.ones(2 + i, 4)], graphs=3)
def numpy_of_changing_sizes(x):
    return x.reshape(np.prod(x.shape)), x / np.sqrt(x.shape[0])
