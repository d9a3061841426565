# ruff: noqa
"""Arrays and functions of numpy beside tensors: views by torch, what computes by numpy itself, inside the graph."""

import copy

import numpy as np
import torch
from tests.support.registry import program, tensor

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)


def shown(x):
    return torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7 - 0.5 + x.sum() * 0


@program
def functions_that_round_otherwise(x):
    a = shown(x).numpy()
    return np.sin(a), np.exp(a), np.tanh(a), np.sum(a, axis=0), a.mean(), a.std(axis=1, keepdims=True), np.cumsum(a)


@program
def there_and_back(x):
    y = shown(x)
    return torch.from_numpy(np.sqrt(np.abs(y.detach().cpu().numpy()))) * y, torch.as_tensor(
        y.numpy() ** 2, dtype=torch.float64
    )


@program
def operators(x):
    a = shown(x).numpy()
    return (
        a > 0,
        ~(a > 0),
        (a > 0) & (a < 1),
        -a,
        abs(a),
        a % 2,
        a // 2,
        2**a,
        np.float32(2) * a,
        [1, 2, 3, 4] + a,
        a @ a.T,
        a == a,
    )


@program
def views_share_memory(x):
    a = shown(x).numpy().copy()
    row, turned, flat = a[1:], a.T, a.reshape(-1)
    row *= 2
    turned[0] = 9
    flat[3] = -1
    return a, row, turned, flat, torch.from_numpy(a).sum()


@program
def kinds_of_views(x):
    a = shown(x).numpy()
    return (
        a.reshape(4, 3),
        a.transpose(1, 0),
        np.swapaxes(a, 0, 1),
        a.ravel(),
        a.flatten(),
        np.split(a, 3),
        np.array_split(a, 2, axis=1),
        np.moveaxis(a, 0, 1),
        a[..., 0],
        a[0, 1:3],
        a[-1],
        a[:, ::2],
    )


@program
def items_by_lists(x):
    a = shown(x).numpy()
    return a[[0, 2]], a[np.array([1, 0])], a[:, [1, 2]], np.take(a, [0, 1], axis=1)


@program(args=lambda i: [torch.arange(4.0) + i])
def writes_reach_the_tensor(x):
    a = x.numpy()
    a[0] = 7
    a += 1
    return x * 2, a


@program
def filled_row_by_row(x):
    y, z = shown(x).numpy(), np.zeros((3, 4), np.float32)
    for i in range(3):
        z[i] = y[i] * i
    z[0, 0] = 5
    z[:, 1] = [1, 2, 3]
    return torch.from_numpy(z) + 1, z


@program
def known_while_capturing(x):
    rates = [float(v) for v in np.linspace(0, 1, 5)]
    order = np.array([3, 1, 2])
    order.sort()
    order[0] += 5
    return (
        x * rates[2] + int(np.argmax(order)) + order[0],
        order,
        order[1:],
        np.arange(4).tolist(),
        order.max(),
        len(order),
        sum(order),
        np.prod(order),
    )


@program
def known_until_it_is_written_to(x):
    a = np.zeros(4, np.float32)
    b, t = a[1:3], torch.from_numpy(a)
    b[:] = 3
    t += 1
    return a, b, t, a.sum(), x + 1


@program
def positions(x):
    place, i = np.arange(3)[:, None], np.arange(4)[None]
    angle = place / np.power(10000, 2 * (i // 2) / 4)
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    return x.sum() + torch.tensor(angle, dtype=torch.float32)


@program
def numbers_of_the_graph(x):
    s = shown(x).numpy().sum()
    return s, type(s).__name__, s * 2, s + TABLE, isinstance(s, np.float32), isinstance(s, np.generic), s.dtype, s.shape


@program
def questions(x):
    a = shown(x).numpy()
    return (
        a.shape,
        a.ndim,
        a.size,
        a.nbytes,
        a.itemsize,
        len(a),
        a.dtype == np.float32,
        a.dtype.name,
        isinstance(a, np.ndarray),
        type(a) is np.ndarray,
        hasattr(a, "detach"),
        x + 1,
    )


@program
def identity(x):
    y = shown(x)
    a = y.numpy()
    return (
        a is np.asarray(a),
        a is y.numpy(),
        np.asarray(TABLE) is TABLE,
        a is a.astype(np.float32, copy=False),
        torch.from_numpy(a) is torch.from_numpy(a),
        x + 1,
    )


@program
def copies(x):
    a = shown(x).numpy()
    return (
        copy.copy(a),
        copy.deepcopy(a),
        a.copy(),
        np.copy(a),
        np.array(a),
        a.astype(np.float64),
        a.astype("int32"),
        a.astype(bool),
    )


@program
def joined(x):
    a = shown(x).numpy()
    return (
        np.stack([a, a]),
        np.concatenate([a, TABLE]),
        np.vstack([a, a]),
        np.hstack([a, a]),
        np.where(a > 0, a, 0),
        np.tile(a, 2),
        np.pad(a, 1),
        np.clip(a, 0, 1),
        np.roll(a, 1),
        np.diff(a),
    )


@program
def algebra(x):
    a = shown(x).numpy()
    return (
        np.dot(a, a.T),
        np.einsum("ij,ik->jk", a, a),
        np.linalg.norm(a, axis=1),
        np.linalg.svd(a)[1],
        np.outer(a[0], a[1]),
        np.fft.fft(a).real,
        np.median(a),
        np.argsort(-a),
    )


@program(args=lambda i: [np.arange(12.0).reshape(3, 4) + i])
def argument_and_result(a):
    return np.exp(a / a.max()) / np.exp(a).sum(axis=1, keepdims=True), torch.from_numpy(a) * 2, a


@program
def arrays_of_tensors(x):
    y = shown(x)
    return np.stack([y, y]), np.array(y), np.asarray(y), np.concatenate([y, y])


@program
def index_of_a_tensor(x):
    order = np.array([2, 0])
    y = shown(x)
    return y[order], y[:, np.arange(2)], y[np.int64(1)], y[torch.from_numpy(order)]


@program
def in_a_loop(x):
    a = shown(x).numpy()
    for row in a:
        x = x + row.max() * 0 if False else x + 1
    for i in range(3):
        a = np.sin(a) + i
    return torch.as_tensor(a), x


@program
def beside_gradients(x):
    w = x.clone().requires_grad_()
    y = (w * 2).sin()
    return (y * torch.from_numpy(np.cos(y.detach().numpy()))).sum()


@program(graphs=2)
def singular_matrix(x):
    try:
        return np.linalg.inv(np.zeros((2, 2), np.float32) + shown(x).numpy()[:2, :2] * 0)
    except np.linalg.LinAlgError as e:
        return str(e), x + 1


@program(graphs=2, breaks=True)
def truth_of_an_array(x):
    return x + 1 if shown(x).numpy().max() > 1 else x - 1


@program
def list_of_an_array(x):
    return x + 1, max(shown(x).numpy()[0].tolist())


@program(breaks=True)
def text_of_an_array(x):
    return x + 1, f"{shown(x).numpy()}"


@program(graphs=2, breaks=True)
def backwards(x):
    return torch.from_numpy(shown(x).numpy()[::-1].copy()) + 1


@program(graphs=4, breaks=True)
def lengths_that_depend_on_values(x):
    a = shown(x).numpy()
    return a[a > 0], np.unique(a.round()), np.nonzero(a > 0)[0], x + 1


@program
def mask_is_written_to(x):
    a = shown(x).numpy().copy()
    a[a < 0] = 0
    return torch.from_numpy(a) * 2
