# ruff: noqa
"""Numbers read from tensors and sizes that data decides: one graph with fullgraph=True (tests/programs/test_data_dependent.py), a break without."""

import math

import torch
from tests.support.registry import program


def rows(i):
    torch.manual_seed(i)
    return torch.randn(8, 4)


def lengths(i):
    return [torch.tensor([3, 1, 2, 2]).roll(i)]


def rows_lengths(i):
    return [rows(i), torch.tensor([3, 1, 2, 2]).roll(i)]


def rows_only(i):
    return [rows(i)]


def rows_mask(i):
    return [rows(i), rows(i + 10) > 0]


def rows_leaf(i):
    return [rows(i).requires_grad_()]


@program(args=rows_only, graphs=3)
def scale_item(x):
    return x * x.max().item()


@program(args=rows_only, graphs=2)
def item_returned(x):
    return (x.sum().item(), x + 1)


@program(args=rows_only, graphs=3)
def item_rsub(x):
    return 1.5 - x.mean().item() * x


@program(args=rows_lengths, graphs=3)
def int_slice(x, i):
    n = int(i[1])
    return x[:n] * 2


@program(args=rows_lengths, graphs=2)
def item_slice(x, i):
    return x[: i.max().item()].sum(0)


@program(args=rows_lengths, graphs=3)
def narrow(x, i):
    return x.narrow(0, 0, i[0].item())


@program(args=lengths, graphs=3)
def zeros_n(i):
    return torch.zeros(i[0].item(), 5) + 1


@program(args=lengths, graphs=2)
def arange_n(i):
    return torch.arange(i.sum().item())


@program(args=rows_lengths, graphs=3)
def select_item(x, i):
    return x[i[0].item()]


@program(args=rows_lengths, graphs=3)
def split_tolist(x, i):
    a, b, c, d = x.split(i.tolist())
    return a.sum() + b.sum() * c.mean() - d.max()


@program(args=rows_lengths, graphs=3)
def split_list_cat(x, i):
    return torch.cat([t * k for k, t in enumerate(x.split(i.tolist()))])


@program(args=lengths, graphs=2)
def number_arithmetic(i):
    n = i[0].item()
    m = i[1].item()
    return ((n + m) * 2 - n // 2 + m % 2, n / 2, -n, abs(-m), n > m)


@program(args=lengths, graphs=4)
def min_max(i):
    a, b = (i[0].item(), i[1].item())
    return torch.full((2,), max(a, b)) - min(a, b)


@program(args=rows_only)
def float_call(x):
    return float(x.sum()) + 1.0


@program(args=rows_only)
def bool_call(x):
    return (bool((x > 0).any()), x)


@program(args=rows_only, graphs=0)
def nonzero(x):
    return x.nonzero()


@program(args=rows_mask, graphs=2)
def mask_index(x, m):
    return x[m] * 2


@program(args=rows_mask, graphs=2)
def mask_sum(x, m):
    return x[m].sum()


@program(args=rows_mask, graphs=3)
def mask_add_same(x, m):
    return x[m] + (x * 2)[m]


@program(args=rows_mask, graphs=2)
def masked_select(x, m):
    return x.masked_select(m).relu()


@program(args=lengths, graphs=0)
def unique(i):
    return torch.unique(i)


@program(args=lengths, graphs=0)
def unique_all(i):
    u, inv, c = torch.unique(i, return_inverse=True, return_counts=True)
    return (u, inv, c)


@program(args=rows_mask, graphs=2)
def where_of_mask(x, m):
    a, b = torch.where(m)
    return a + b


@program(args=rows_only)
def argwhere(x):
    return torch.argwhere(x > 0.5)


@program(args=rows_mask, graphs=0)
def len_of_mask(x, m):
    return (len(x[m]), x[m].shape[0] * 2)


@program(args=rows_mask, graphs=3)
def mean_by_count(x, m):
    n = m.sum().item()
    return x[m].sum() / n


@program(args=rows_lengths)
def rep_inter(x, i):
    return torch.repeat_interleave(x[:4], i, dim=0)


@program(args=rows_only, graphs=3)
def row_mask(x):
    k = x[:, 0] > 0
    return x[k] @ torch.ones(4, 3)


@program(args=rows_only, graphs=3)
def row_mask_linear(x):
    k = x[:, 0] > 0
    return torch.nn.functional.linear(x[k], torch.ones(3, 4)).softmax(-1)


@program(args=rows_only, graphs=4)
def cat_masks(x):
    k = x[:, 0] > 0
    return torch.cat([x[k], x[~k]])


@program(args=rows_only)
def topk_filter(x):
    v, idx = x.flatten().topk(5)
    keep = v > v.mean()
    return idx[keep]


@program(args=rows_only, graphs=6)
def moe(x):
    logits = x @ torch.ones(4, 3).cumsum(1)
    e = logits.argmax(-1)
    out = torch.zeros_like(x)
    for k in range(3):
        idx = torch.where(e == k)[0]
        out[idx] = x[idx] * (k + 1)
    return out


@program(args=rows_only, graphs=8)
def moe_index_add(x):
    e = (x.sum(1) > 0).long()
    out = torch.zeros_like(x)
    for k in range(2):
        idx = (e == k).nonzero().squeeze(-1)
        out = out.index_add(0, idx, x[idx] * (k + 2))
    return out


@program(args=lengths, graphs=3)
def check_size(i):
    n = i[0].item()
    torch._check_is_size(n)
    torch._check(n <= 10)
    return torch.ones(n)


@program(args=lengths, breaks=True)
def check_fails(i):
    n = i[0].item()
    torch._check(n > 100, lambda: "too small")
    return torch.ones(n)


@program(args=lengths, graphs=3, breaks=True)
def branch(i):
    n = i[0].item()
    return i + 1 if n > 2 else i - 1


@program(args=lengths, graphs=3, breaks=True)
def loop(i):
    t = i
    for k in range(i[0].item()):
        t = t + k
    return t


@program(args=lengths, graphs=3)
def dict_of_items(i):
    return {"a": i[0].item(), "b": [i[1].item(), i[2].item()]}


@program(args=rows_mask, graphs=2)
def view_of_mask(x, m):
    y = x[m]
    return y.view(-1, 1).expand(y.shape[0], 3)


@program(args=rows_mask, graphs=2)
def shape_args(x, m):
    y = x[m]
    return torch.zeros(y.shape[0], 2) + y.unsqueeze(-1)


@program(args=rows_mask, graphs=2)
def new_zeros(x, m):
    y = x[m]
    return y.new_zeros(y.size(0) + 1)


@program(args=rows_only, graphs=3)
def boxes_filter(x):
    b = x.abs()
    area = b[:, 2] * b[:, 3]
    keep = area > 0.1
    b = b[keep]
    order = b[:, 0].argsort()
    return b[order]


@program(args=lengths, graphs=3)
def tensor_of_item(i):
    return torch.tensor(i[0].item()) + 1


@program(args=lengths, graphs=3)
def stack_counts(i):
    l = i.tolist()
    return (sum(l), torch.tensor(l))


@program(args=rows_only)
def mask_assign(x):
    y = x.clone()
    y[y > 0] = 0.5
    return y


@program(args=rows_mask, graphs=3)
def mask_assign_tensor(x, m):
    y = x.clone()
    y[m] = x[m] * 2
    return y


@program(args=rows_lengths, graphs=3)
def set_slice(x, i):
    y = x.clone()
    y[: i[0].item()] = 0
    return y


@program(args=rows_lengths, graphs=3)
def pad_by(x, i):
    return torch.nn.functional.pad(x, (0, i[0].item()))


@program(args=rows_lengths, graphs=3)
def roll_by(x, i):
    return x.roll(i[0].item(), 0)


@program(args=lengths)
def math_on_item(i):
    n = i[0].item()
    return (math.ceil(n / 2), math.sqrt(n), int(n * 1.5), float(n))


@program(args=rows_only, graphs=4)
def clamp_item(x):
    return x.clamp(min=x.mean().item(), max=x.max().item())


@program(args=rows_only, graphs=3)
def add_alpha(x):
    return torch.add(x, x, alpha=x.max().item())


@program(args=rows_leaf, graphs=4)
def grads(x):
    k = x[:, 0] > 0
    return (x[k] * x.detach().max().item()).sum()


@program(args=rows_only, graphs=3, breaks=True)
def eps(x):
    return torch.nn.functional.layer_norm(x, (4,), eps=x.abs().max().item())


@program(args=rows_lengths, graphs=2)
def two_lens(x, i):
    a, b = i.tolist()[:2]
    return x[:a].sum() + x[b:].sum()


@program(args=rows_lengths, graphs=5)
def mid(x, i):
    return x[i[1].item() : i[0].item()].mean(0)


@program(args=rows_lengths, graphs=3)
def reshape_n(x, i):
    n = i[2].item()
    return x.flatten()[: n * 4].view(n, 4)


@program(args=rows_only, breaks=True)
def format_item(x):
    return (f"{x.sum().item():.3f}", x)


@program(args=rows_only, graphs=3)
def isinst(x):
    n = x.sum().item()
    return (isinstance(n, float), x * n)


@program(args=rows_only)
def bincount(x):
    return torch.bincount((x.abs() * 3).long().flatten())


@program(args=rows_mask, graphs=0)
def numel(x, m):
    return (x[m].numel(), x[m].shape)


@program(args=rows_only)
def nms(x):
    b = x.abs().cumsum(1)
    s = x.sum(1)
    order = s.argsort(descending=True)
    b = b[order]
    keep = torch.ones(8, dtype=torch.bool)
    for i in range(8):
        iou = (b[i, 0] - b[:, 0]).abs()
        sup = (iou < 0.1) & (torch.arange(8) > i)
        keep = keep & ~(sup & keep[i])
    return order[keep]


@program(args=lengths, graphs=2)
def lens_mask(i):
    return torch.arange(i.max().item())[None] < i[:, None]


@program(args=rows_lengths, graphs=2)
def lens_mask_dim(x, i):
    m = torch.arange(i.max().item())[None] < i[:, None]
    return m.float().sum(1)


@program(args=rows_only, graphs=8)
def counts_of_composites(x):
    a = torch.argwhere(x > 0.5)
    b = torch.where(x > 0)[0]
    return a.shape, b.numel(), len(torch.nonzero(x > 1)), torch.unique(x > 0).shape[0]


@program(args=rows_lengths, graphs=2)
def element_by_item(x, i):
    n, m = i.tolist()[:2]
    y = x.clone()
    y[n] = 1.0
    y[m, 1:3] = -1.0
    y[..., n] += 1
    return y[n], y[m, n], y[:, m], y[1:, n, None] if False else y[n][m]


@program(args=rows_lengths, graphs=4)
def numbers_on_the_left(x, i):
    n = i[0].item()
    f = x.mean().item()
    return n - x, n / (x.abs() + 1), n > x, f < x, f * x, n // i, n % i, [n] + [f], (n, f)


@program(args=rows_lengths, graphs=3)
def beam_step(x, i):
    k = i[1].item() + 1
    score, index = x.flatten().topk(k)
    beam, token = index // x.shape[1], index % x.shape[1]
    return torch.stack([score, beam.float(), token.float()], 1), score[: k - 1]


@program(args=rows_lengths, graphs=4)
def pack_and_pad(x, i):
    parts = torch.cat([x, x]).split(i.tolist() + [8])
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True)


@program(args=rows_mask, graphs=8)
def experts_by_mask(x, m):
    out = torch.zeros_like(x)
    for k in range(3):
        chosen = m.sum(1) == k + 1
        out[chosen] += x[chosen] @ torch.ones(4, 4) * (k + 1)
    return out, out.sum().item()


@program(args=rows_leaf, graphs=5, breaks=True)
def training_on_a_part(x):
    keep = x.detach()[:, 1] > 0
    return torch.nn.functional.mse_loss(x[keep], torch.ones_like(x[keep])) * keep.sum().item()


@program(args=rows_only, graphs=5)
def kept_outside(x):
    seen = []
    seen.append(x.argmax().item())
    return {"at": seen, "max": float(x.max()), "any": bool((x > 3).any())}, x[seen[0] // 4]
