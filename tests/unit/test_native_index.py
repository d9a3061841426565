"""The backend native: what reads at places that it works out. Embeddings, indices, parts of a result, positions."""

import math

import cutaway
import pytest
import torch
import torch.nn.functional as F

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool]


def compiled(f):
    cutaway.reset()
    return cutaway.compile(f, backend="native:wait", fullgraph=True)


def values(shape, dtype, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=g, dtype=torch.float64)
    if dtype == torch.bool:
        return x > 0
    if dtype == torch.int64:
        return (x * 10).round().long()
    x = x.to(dtype)
    if x.numel() > 3:
        x.view(-1)[:3] = torch.tensor([math.nan, -math.inf, -0.0], dtype=dtype)
    return x


def equal(expected, got, what):
    """Bit for bit, with sign of zero."""
    assert (expected.dtype, expected.shape, expected.stride()) == (got.dtype, got.shape, got.stride()), what
    if expected.is_floating_point():
        assert torch.equal(expected.isnan(), got.isnan()), what
        e, g = expected.nan_to_num(7), got.nan_to_num(7)
        assert torch.equal(e, g) and torch.equal(e.signbit(), g.signbit()), what
    else:
        assert torch.equal(expected, got), what


def check(program, *inputs):
    got, expected = compiled(program)(*inputs), program(*inputs)
    for i, (e, g) in enumerate(zip(expected, got, strict=True)):
        equal(e, g, f"result {i}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_indices_from_tensors(dtype):
    def program(x, table, i, j, narrow):
        rows, columns = x.shape[0], x.shape[1]
        out = [
            table[i],
            table[i.t()],
            x[j],
            x[:, j],
            x[j, j],
            x[..., j],
            x[j.unsqueeze(1), j],
            x[j, :, j],
            x[:, j, 1:][:, :, j % 3],
            x[narrow],
            x.index_select(0, j),
            x.index_select(1, j),
            x.index_select(-1, j),
            x.transpose(0, 2).index_select(1, j),
            x.gather(0, (j % rows).view(-1, 1, 1).expand(-1, columns, 4)[:, :5]),
            x.gather(2, (x.float().nan_to_num(0).abs().clamp(max=3).long())),
            torch.take_along_dim(x, j.view(-1, 1, 1) % rows, 0),
            x[j - 3],
            x[torch.arange(rows), torch.arange(rows)],
            x[1][j],
        ]
        if dtype != torch.bool:
            out += [table[i] * 2 + 1, (x[j] + x[:1]).relu(), F.embedding(i, table) * x[0, 0, 0]]
        if dtype.is_floating_point:
            out += [
                F.embedding(i, table, padding_idx=1).exp(),
                F.embedding(i, table).cos() + F.embedding(i.clamp(max=2), table),
            ]
        return out

    x, table = values((5, 6, 7), dtype), values((11, 9), dtype, 1)
    i = torch.randint(0, 11, (3, 4), generator=torch.Generator().manual_seed(0))
    j = torch.tensor([0, 4, 2, 2, 1, 3, 0, 4])
    got, expected = compiled(program)(x, table, i, j, j.int()), program(x, table, i, j, j.int())
    for k, (e, g) in enumerate(zip(expected, got, strict=True)):
        if dtype.is_floating_point and k >= len(expected) - 2:
            torch.testing.assert_close(g, e, equal_nan=True)
        else:
            equal(e, g, f"result {k}")


WRONG = {
    "embedding": lambda x, i: F.embedding(i, x) * 2,
    "index": lambda x, i: x[i] + 1,
    "second index": lambda x, i: x[i * 0, i] + 1,
    "index_select": lambda x, i: x.index_select(0, i) + 1,
    "gather": lambda x, i: x.gather(0, i.view(-1, 1)) + 1,
    "inside a norm": lambda x, i: F.layer_norm(F.embedding(i, x), (6,)),
    "sum of rows": lambda x, i: F.embedding(i, x).sum(0),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("bad", [5, -6, -1, 2**40, -(2**62)])
def test_an_index_out_of_range_raises_what_eager_raises(name, bad):
    f = compiled(WRONG[name])
    x, good = torch.randn(5, 6), torch.tensor([0, 1, 4, 2, 3, 3, 0, 1, 2, 4])
    torch.testing.assert_close(f(x, good), WRONG[name](x, good))
    wrong = good.clone()
    wrong[7] = bad
    try:
        expected = WRONG[name](x, wrong)
    except Exception as e:
        with pytest.raises(type(e)) as raised:
            f(x, wrong)
        assert str(raised.value) == str(e)
    else:
        torch.testing.assert_close(f(x, wrong), expected)
    torch.testing.assert_close(f(x, good), WRONG[name](x, good))  # and works again


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_parts_of_a_result(dtype):
    def program(x, y, z):
        flat = x.flatten()
        out = [
            torch.cat([x, x[:, :2]], 1),
            torch.cat([x, y], 0),
            torch.cat([x, x, x], -1),
            torch.cat([x[..., 3:], x[..., :3]], -1),
            torch.cat([x.transpose(0, 1), x.transpose(0, 1)]),
            torch.cat([x[:0], x, y[:0]]),
            torch.cat([flat, flat[:1]]),
            torch.cat([flat[:1], flat, flat[:3]]),
            torch.cat([x, z], -1),
            torch.stack([x, x]),
            torch.stack([x, x.flip(0)], 1),
            torch.stack([x, x, x], -1),
            torch.stack([x.sum(), x.sum()]) if dtype == torch.int64 else torch.stack([x[0, 0, 0], x[0, 0, 1]]),
            F.pad(x, (1, 2)),
            F.pad(x, (1, 2, 3, 0)),
            F.pad(x, (0, 0, 2, 1)),
            F.pad(x, (-1, 2, 1, -1)),
            F.pad(x, (8, 8)),
            F.pad(x, (-2, -2)),
            x.flip(0),
            x.flip(-1),
            x.flip((0, 2)),
            x.tril(),
            x.triu(1),
            x.tril(-2),
            x.triu(-1),
            torch.slice_scatter(x, x[:, 1:4], 1, 2, 5),
            torch.select_scatter(x, x[:, 0], 1, -1),
            torch.roll(x, 1, 0),
            torch.cat([torch.zeros_like(x), torch.ones_like(x)], 1),
            torch.arange(7) * 2,
            torch.arange(2, 9).unsqueeze(1) < torch.arange(7),
            torch.arange(9, 1, -2) + 1,
            torch.cat([torch.arange(4), torch.arange(3)]),
            torch.arange(8).view(2, 4).t() + torch.arange(2),
        ]
        if dtype != torch.bool:
            out += [
                torch.cat([-x, x], 2) + 1,
                torch.cat([x * 2, y], 0) * torch.cat([x, -y], 0),
                F.pad(x + 1, (1, 1)),
                F.pad(x, (1, 1), value=3) * 2,
            ]
        return out

    check(program, values((4, 6, 8), dtype), values((3, 6, 8), dtype, 1), values((4, 6, 5), dtype, 2))


def test_parts_of_many_sizes():
    """Cuts that are and are not multiples of a vector, in each dimension."""

    def program(xs):
        out = []
        for a, b in zip(xs, xs[1:], strict=False):
            out += [
                torch.cat([a, b]),
                torch.cat([-a, b, a]),
                F.pad(a, (b.shape[0] % 5, 3)),
                torch.cat([a, b]).softmax(0).sum() * 0 + 1,
            ]
            out += [
                torch.cat([a.view(1, -1).expand(3, -1), b.view(1, -1).expand(3, -1)], 1),
                torch.cat([a.view(-1, 1).expand(-1, 7), -b.view(-1, 1).expand(-1, 7)]).t(),
            ]
        return out

    xs = [torch.randn(n) for n in (1, 3, 8, 16, 24, 64, 65, 128, 7, 4100, 12)]
    got, expected = compiled(program)(xs), program(xs)
    for i, (e, g) in enumerate(zip(expected, got, strict=True)):
        torch.testing.assert_close(g, e, rtol=0, atol=1e-6, msg=str(i))


def test_empty_and_single():
    def program(x, i, e):
        return [
            torch.cat([e, e]),
            torch.cat([x, e]),
            x[i],
            x[i[:0]],
            F.pad(e, (1, 1)),
            F.pad(x, (0, 0)),
            torch.stack([e, e]),
            x[0][None] * 2,
            torch.arange(0),
            torch.arange(1) + 1,
        ]

    check(program, torch.randn(3), torch.tensor([2, 0]), torch.randn(0))


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def test_rotary_embedding_is_one_kernel(tmp_path):
    x, angle = torch.randn(2, 16, 3, 32, requires_grad=True), torch.randn(1, 1, 16, 32)

    def program(x, angle):
        return rotate(x.transpose(1, 2), angle.cos(), angle.sin())

    cutaway.reset()
    got = compiled(program)(x, angle)
    torch.testing.assert_close(got, program(x, angle))
    (gradient,) = torch.autograd.grad(got.square().sum(), x)
    (expected,) = torch.autograd.grad(program(x, angle).square().sum(), x)
    torch.testing.assert_close(gradient, expected)


GRADIENTS = {
    "slice": lambda x: x[:, 1:4] * 2,
    "slices": lambda x: x[:, :3].sin() * x[:, 3:],
    "select": lambda x: x[1] * x[:, 0].sum(),
    "cat": lambda x: torch.cat([x * 2, x.cos()], 1) * 3,
    "pad": lambda x: F.pad(x, (1, 2)).square(),
    "stack": lambda x: torch.stack([x, x.sin()], 1),
    "chunk": lambda x: x.chunk(3, 1)[0] * x.chunk(3, 1)[2],
    "index": lambda x: x[torch.tensor([0, 3, 3, 1])] * 2,
    "gather": lambda x: x.gather(1, torch.tensor([[0, 1], [2, 2], [5, 0], [1, 1]])).exp(),
    "embedding": lambda x: F.embedding(torch.tensor([[0, 1], [3, 3]]), x).tanh(),
    "tril": lambda x: x.tril() * x.triu(1).sum(),
    "flip": lambda x: x.flip(1) * x,
    "roll": lambda x: x.roll(1, 0) * x,
    "steps": lambda x: x[:, ::2] * 3,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    f = GRADIENTS[name]
    x = torch.randn(4, 6, requires_grad=True)
    got, expected = compiled(f)(x), f(x)
    torch.testing.assert_close(got, expected)
    (a,), (b,) = torch.autograd.grad(got.square().sum(), x), torch.autograd.grad(expected.square().sum(), x)
    torch.testing.assert_close(a, b)


def test_threads_agree():
    def program(table, i, x):
        return F.embedding(i, table) * 2 + torch.cat([x, -x], 1)

    table, i, x = torch.randn(50, 64), torch.randint(0, 50, (4000,)), torch.randn(4000, 32)
    f, before, results = compiled(program), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(f(table, i, x))
            with pytest.raises(IndexError):
                f(table, torch.where(torch.arange(4000) == 3999, 50, i), x)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(r, program(table, i, x)) for r in results)


def test_a_product_that_is_read_at_other_places_is_finished_first():
    def program(a, b, i):
        y = a @ b
        half = y.shape[1] // 2
        return [
            (a @ b).flip(1) * 2,
            (a @ b)[i] + 1,
            (a @ b).gather(1, i.view(-1, 1).expand(-1, 64)) + 1,
            y * 2 + torch.cat([-y[:, half:], -y[:, :half]], 1),
            (b @ b).tril() + 1,
        ]

    a, b = torch.randn(128, 64), torch.randn(64, 64)
    i = torch.randint(0, 64, (128,), generator=torch.Generator().manual_seed(0))
    f = compiled(program)
    for k, (e, g) in enumerate(zip(program(a, b, i), f(a, b, i), strict=True)):
        torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-4, msg=str(k))
    with pytest.raises(IndexError):
        f(a, b, torch.where(i == i[5], 200, i))
