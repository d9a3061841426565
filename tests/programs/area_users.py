# ruff: noqa
"""Code as users of torch write it: losses, metrics, samplers, masks, caches, quantisation, averages, clipping, recurrent loops, custom operators."""

import collections
import contextlib
import dataclasses
import functools
import math
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as F
from tests.support.registry import built, leaf, program, tensor
from torch import nn


def generator(i):
    return torch.Generator().manual_seed(i)


def labels(i=0, n=3, classes=4):
    return torch.randint(0, classes, (n,), generator=generator(i))


# --- losses ---


@program(args=lambda i: [leaf(i), labels(i)])
def focal_loss(logits, target, gamma=2.0, alpha=0.25):
    ce = F.cross_entropy(logits, target, reduction="none")
    pt = torch.exp(-ce)
    return (alpha * (1 - pt) ** gamma * ce).mean()


@program(args=lambda i: [leaf(i), labels(i)])
def smoothed_loss(logits, target, eps=0.1):
    n = logits.size(-1)
    logp = F.log_softmax(logits, -1)
    with torch.no_grad():
        weight = torch.full_like(logp, eps / (n - 1)).scatter_(1, target.unsqueeze(1), 1 - eps)
    return -(weight * logp).sum(-1).mean()


@program(args=lambda i: [leaf(i), leaf(i + 1)])
def contrastive_loss(a, b, temperature=0.07):
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    logits = a @ b.t() / temperature
    target = torch.arange(a.size(0), device=a.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


@program(args=lambda i: [leaf(i), (tensor(i) > 0).float()])
def dice_loss(pred, target, smooth=1.0):
    pred = pred.sigmoid().flatten()
    target = target.flatten()
    inter = (pred * target).sum()
    return 1 - (2 * inter + smooth) / (pred.sum() + target.sum() + smooth)


@program(args=lambda i: [leaf(i), tensor(i + 1), tensor(i) > 0.3])
def masked_mean_loss(pred, target, mask):
    loss = F.smooth_l1_loss(pred, target, reduction="none")
    loss = loss.masked_fill(~mask, 0.0)
    return loss.sum() / mask.sum().clamp(min=1)


@program(args=lambda i: [leaf(i), tensor(i + 1)])
def huber_by_hand(pred, target):
    error = pred - target
    small = error.abs() <= 1.0
    return torch.where(small, 0.5 * error**2, error.abs() - 0.5).mean()


@program(args=lambda i: [leaf(i), leaf(i + 1), leaf(i + 2)])
def triplet(a, p, n):
    d = lambda x, y: (x - y).pow(2).sum(-1)
    return F.relu(d(a, p) - d(a, n) + 0.2).mean()


@program(args=lambda i: [leaf(i), tensor(i + 3)])
def kl_with_temperature(student, teacher, T=2.0):
    return F.kl_div(F.log_softmax(student / T, 1), F.softmax(teacher.detach() / T, 1), reduction="batchmean") * T * T


@built(args=lambda i: [leaf(i), labels(i)])
def loss_dictionary():
    weights = {"ce": 1.0, "norm": 0.01, "entropy": -0.1}

    def f(logits, target):
        p = logits.softmax(-1)
        losses = {
            "ce": F.cross_entropy(logits, target),
            "norm": logits.norm(),
            "entropy": -(p * p.clamp_min(1e-9).log()).sum(-1).mean(),
        }
        total = sum(weights[k] * v for k, v in losses.items())
        return total, {k: v.detach() for k, v in losses.items()}

    return f


# --- metrics ---


class Meter:
    def __init__(self):
        self.total, self.count, self.history = torch.zeros(()), 0, []

    def update(self, value, n=1):
        self.total = self.total + value.detach() * n
        self.count += n
        self.history.append(value.detach())

    @property
    def average(self):
        return self.total / max(self.count, 1)


@built(args=lambda i: [tensor(i), labels(i)], graphs=3)
def running_accuracy():
    meter = Meter()

    def f(logits, target):
        correct = (logits.argmax(-1) == target).float().mean()
        meter.update(correct, target.size(0))
        return meter.average, meter.count, len(meter.history)

    return f


@program(args=lambda i: [tensor(i), labels(i)])
def topk_accuracy(logits, target, ks=(1, 2, 3)):
    _, pred = logits.topk(max(ks), 1, True, True)
    correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
    return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in ks]


@built(args=lambda i: [labels(i, 6), labels(i + 1, 6)], graphs=2, breaks=True)
def confusion_matrix():
    matrix = torch.zeros(4, 4, dtype=torch.long)

    def f(pred, target):
        index = target * 4 + pred
        matrix.add_(torch.bincount(index, minlength=16).view(4, 4))
        return matrix.clone(), matrix.diag().sum().float() / matrix.sum()

    return f


@built(args=lambda i: [labels(i, 6), labels(i + 1, 6)])
def confusion_by_index_put():
    matrix = torch.zeros(4, 4, dtype=torch.long)

    def f(pred, target):
        matrix.index_put_((target, pred), torch.ones_like(pred), accumulate=True)
        return matrix.clone()

    return f


@program(args=lambda i: [tensor(i), tensor(i + 1)])
def correlation(a, b):
    a = a - a.mean(0)
    b = b - b.mean(0)
    return (a * b).sum(0) / (a.pow(2).sum(0).sqrt() * b.pow(2).sum(0).sqrt() + 1e-8)


# --- samplers ---


@program
def sample_temperature(logits, temperature=0.8, k=3):
    logits = logits / max(temperature, 1e-5)
    v, _ = torch.topk(logits, min(k, logits.size(-1)))
    logits = torch.where(logits < v[..., [-1]], -float("inf"), logits)
    return torch.multinomial(F.softmax(logits, -1), 1)


@program
def nucleus(logits, p=0.9):
    ordered, index = logits.sort(descending=True)
    cumulative = ordered.softmax(-1).cumsum(-1)
    remove = cumulative > p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    mask = remove.scatter(1, index, remove)
    return logits.masked_fill(mask, float("-inf")).softmax(-1)


@program
def gumbel(logits):
    noise = -torch.empty_like(logits).exponential_().log()
    y = ((logits + noise) / 0.5).softmax(-1)
    hard = torch.zeros_like(y).scatter_(-1, y.argmax(-1, keepdim=True), 1.0)
    return hard - y.detach() + y


@program(args=lambda i: [tensor(i), labels(i, 3 * 5).view(3, 5)])
def repetition_penalty(logits, previous, penalty=1.3):
    score = logits.gather(1, previous)
    score = torch.where(score < 0, score * penalty, score / penalty)
    return logits.scatter(1, previous, score)


@built(args=lambda i: [tensor(i)])
def beam_step():
    torch.manual_seed(0)
    head = nn.Linear(4, 6)

    def f(x, beams=2):
        scores = torch.zeros(1, 1)
        state = x[:1].unsqueeze(1)
        tokens = torch.zeros(1, 1, 0, dtype=torch.long)
        for step in range(3):
            logp = head(state).log_softmax(-1)
            total = (scores.unsqueeze(-1) + logp).flatten(1)
            scores, index = total.topk(beams, -1)
            parent, token = index // 6, index % 6
            tokens = torch.cat(
                [tokens.gather(1, parent.unsqueeze(-1).expand(-1, -1, tokens.size(-1))), token.unsqueeze(-1)], -1
            )
            state = state.gather(1, parent.unsqueeze(-1).expand(-1, -1, 4)) + token.unsqueeze(-1) * 0.1
        return tokens, scores

    return f


@dataclasses.dataclass(order=True)
class Hypothesis:
    score: float
    tokens: tuple = dataclasses.field(compare=False)


@program
def beam_of_objects(x):
    beam = [Hypothesis(0.0, ())]
    for row in range(x.shape[0]):
        grown = [Hypothesis(h.score + 0.5 * t, h.tokens + (t,)) for h in beam for t in range(x.shape[1])]
        beam = sorted(grown, reverse=True)[:2]
    best = beam[0]
    return x[:, list(best.tokens)[0]] * best.score, best.tokens


@built(args=lambda i: [tensor(i)])
def greedy_until():
    torch.manual_seed(1)
    emb, head = nn.Embedding(5, 4), nn.Linear(4, 5)

    def f(x):
        out = []
        token = torch.zeros(3, dtype=torch.long)
        done = torch.zeros(3, dtype=torch.bool)
        for _ in range(4):
            token = head(emb(token) + x).argmax(-1)
            token = torch.where(done, torch.full_like(token, -1), token).clamp_min(0)
            done = done | (token == 4)
            out.append(token)
        return torch.stack(out, 1), done

    return f


# --- masks and attention ---


@program
def causal_attention(x):
    q = k = v = x.unsqueeze(0)
    T = q.size(-2)
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    att = att.masked_fill(~mask, float("-inf")).softmax(-1)
    return att @ v, F.scaled_dot_product_attention(q, k, v, is_causal=True)


@program(args=lambda i: [tensor(i), torch.tensor([1, 3, 2])])
def length_mask(x, lengths):
    mask = torch.arange(x.size(1))[None, :] < lengths[:, None]
    return (x * mask).sum(1) / lengths


@program
def sliding_window(x):
    n = x.shape[0]
    i = torch.arange(n)
    near = (i[:, None] - i[None, :]).abs() <= 1
    return near, torch.where(near, x @ x.t(), 0.0)


@program
def alibi(x, heads=4):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    distance = torch.arange(x.shape[0]).view(1, -1) - torch.arange(x.shape[0]).view(-1, 1)
    return slopes.view(-1, 1, 1) * distance


@program
def rotary(x):
    half = x.shape[-1] // 2
    freq = 1.0 / (10000 ** (torch.arange(0, half).float() / half))
    angle = torch.outer(torch.arange(x.shape[0]).float(), freq)
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    rotated = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + rotated * sin


@program
def complex_rotary(x):
    z = torch.view_as_complex(x.reshape(3, 2, 2))
    turn = torch.polar(torch.ones(3, 2), torch.arange(6).view(3, 2).float())
    return torch.view_as_real(z * turn).flatten(1)


@program
def grouped_heads(x):
    k = x.view(1, 3, 2, 2).transpose(1, 2)
    b, h, t, d = k.shape
    return k[:, :, None].expand(b, h, 2, t, d).reshape(b, h * 2, t, d)


# --- caches ---


class Cache:
    def __init__(self, size=8):
        self.k = torch.zeros(1, size, 4)
        self.length = 0

    def update(self, k):
        n = k.size(1)
        self.k[:, self.length : self.length + n] = k
        self.length += n
        return self.k[:, : self.length]


@built(args=lambda i: [tensor(i)[:2]], graphs=2)
def static_cache():
    cache = Cache()

    def f(x):
        k = cache.update(x.unsqueeze(0))
        return k.sum(1), cache.length

    return f


@built(args=lambda i: [tensor(i)], graphs=3)
def growing_cache():
    cache = {}

    def f(x, layer=0):
        if layer in cache:
            cache[layer] = torch.cat([cache[layer], x], 0)
        else:
            cache[layer] = x
        return cache[layer].mean(0), len(cache)

    return f


@built(args=lambda i: [tensor(i), torch.tensor([i])])
def cache_by_position():
    torch.manual_seed(0)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("k", torch.zeros(4, 3, 4), persistent=False)

        def forward(self, x, position):
            self.k.index_copy_(0, position, x.unsqueeze(0))
            return self.k.sum(0)

    return M()


@built(args=lambda i: [tensor(i)], graphs=2)
def ring_buffer():
    store, state = torch.zeros(2, 3, 4), {"at": 0}

    def f(x):
        store[state["at"] % 2].copy_(x)
        state["at"] += 1
        return store.clone(), state["at"]

    return f


# --- quantisation ---


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


@program(args=lambda i: [leaf(i)])
def fake_quantise(x, bits=4):
    top = 2 ** (bits - 1) - 1
    scale = x.detach().abs().max() / top
    return Round.apply(x / scale).clamp(-top - 1, top) * scale


@program(args=lambda i: [leaf(i)])
def straight_through(x):
    q = torch.round(x * 4) / 4
    return x + (q - x).detach()


@program
def per_channel_int8(x):
    scale = x.abs().amax(1, keepdim=True) / 127
    q = torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8)
    return q, q.float() * scale


@program
def pack_bits(x):
    bits = (x > 0).to(torch.uint8)
    packed = (bits[:, ::2] << 4) | bits[:, 1::2]
    return packed, packed >> 4, packed & 15


@built(args=lambda i: [leaf(i)])
def observer():
    torch.manual_seed(0)

    class Observer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("low", torch.tensor(float("inf")))
            self.register_buffer("high", torch.tensor(float("-inf")))
            self.lin = nn.Linear(4, 4)

        def forward(self, x):
            if self.training:
                self.low = torch.minimum(self.low, x.detach().min())
                self.high = torch.maximum(self.high, x.detach().max())
            scale = (self.high - self.low) / 255
            return self.lin(torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)), scale

    return Observer()


# --- averages, clipping, norms ---


@built
def ema_update():
    torch.manual_seed(0)
    m, e = nn.Linear(4, 4), nn.Linear(4, 4)
    e.load_state_dict(m.state_dict())

    @torch.no_grad()
    def f(x, decay=0.9):
        for p in m.parameters():
            p.add_(0.1)
        for p, q in zip(m.parameters(), e.parameters()):
            q.mul_(decay).add_(p, alpha=1 - decay)
        for (n, a), (_, b) in zip(m.named_buffers(), e.named_buffers()):
            b.copy_(a)
        return e(x)

    return f


@built
def ema_lerp_foreach():
    torch.manual_seed(0)
    m, e = nn.Linear(4, 4), nn.Linear(4, 4)

    def f(x):
        with torch.no_grad():
            torch._foreach_lerp_(list(e.parameters()), list(m.parameters()), 0.1)
        return [p.detach().clone() for p in e.parameters()]

    return f


@built(graphs=2)
def clip_by_norm():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

    def f(x):
        m.zero_grad(set_to_none=True)
        m(x).pow(2).sum().backward()
        total = torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5)
        return total, [p.grad.clone() for p in m.parameters()]

    return f


def parameters_with_gradients():
    torch.manual_seed(0)
    ps = [nn.Parameter(torch.randn(3)) for _ in range(3)]
    for p in ps:
        p.grad = torch.randn(3)
    return ps


@built
def clip_only():
    ps = parameters_with_gradients()

    def f(x):
        total = torch.nn.utils.clip_grad_norm_(ps, 0.5)
        return total, [p.grad.clone() for p in ps]

    return f


@built
def clip_value_only():
    ps = parameters_with_gradients()

    def f(x):
        torch.nn.utils.clip_grad_value_(ps, 0.1)
        return [p.grad.clone() for p in ps]

    return f


@built
def clip_by_hand():
    ps = parameters_with_gradients()

    def f(x, limit=0.5):
        norm = torch.stack([p.grad.detach().norm() for p in ps]).norm()
        scale = (limit / (norm + 1e-6)).clamp(max=1.0)
        for p in ps:
            p.grad.mul_(scale)
        return norm

    return f


@program
def rms_norm(x, eps=1e-6):
    dtype = x.dtype
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return h.to(dtype)


# --- mixed precision ---


@built
def autocast_block():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2))

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = m(x)
            with torch.autocast("cpu", enabled=False):
                z = y.float().log_softmax(-1)
        return y.dtype, z

    return f


@built
def loss_scaling():
    torch.manual_seed(0)
    m = nn.Linear(4, 2)
    scale = torch.tensor(128.0)

    def f(x):
        loss = m(x).pow(2).mean()
        (loss * scale).backward()
        found = torch.zeros(())
        for p in m.parameters():
            p.grad.div_(scale)
            found = torch.maximum(found, (~torch.isfinite(p.grad)).any().float())
        g = [p.grad.clone() for p in m.parameters()]
        m.zero_grad()
        return found, g

    return f


# --- recurrent ---


@built
def lstm_cell_loop():
    torch.manual_seed(0)
    cell = nn.LSTMCell(4, 5)

    def f(x):
        h = c = torch.zeros(1, 5)
        outs = []
        for row in x:
            h, c = cell(row[None], (h, c))
            outs.append(h)
        return torch.cat(outs), c

    return f


@built
def gru_module():
    torch.manual_seed(0)
    m = nn.GRU(4, 5, batch_first=True, bidirectional=True)
    return lambda x: m(x.unsqueeze(0))


@built(args=lambda i: [torch.randn(2, 3, 4, generator=generator(i)), torch.tensor([3, 2])], breaks=True)
def packed_lstm():
    torch.manual_seed(0)
    m = nn.LSTM(4, 5, batch_first=True)

    def f(x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, (h, c) = m(packed)
        padded, n = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return padded, n, h

    return f


@program
def pad_list(x):
    rows = [x[0, :1], x[1, :3], x[2]]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)


@built
def minimal_rnn():
    torch.manual_seed(0)
    w = nn.Parameter(torch.randn(4, 4) * 0.1)

    def f(x):
        h = torch.zeros(4)
        states = []
        for t in range(x.size(0)):
            h = torch.tanh(x[t] + h @ w)
            states += [h]
        return torch.stack(states)

    return f


# --- einops-like ---


@functools.lru_cache(maxsize=None)
def parse(pattern):
    left, right = (side.split() for side in pattern.split("->"))
    return tuple(left), tuple(right), tuple(left.index(n) for n in right)


@program
def permute_by_pattern(x):
    _, _, order = parse("a b -> b a")
    return x.permute(order)


def rearrange(x, pattern, **sizes):
    left, right = pattern.split("->")
    groups = left.replace("(", " ( ").replace(")", " ) ").split()
    names, shape, axis, inside = [], [], 0, None
    for token in groups:
        if token == "(":
            inside = []
        elif token == ")":
            known = math.prod(sizes[n] for n in inside if n in sizes)
            for n in inside:
                names.append(n)
                shape.append(sizes.get(n, x.shape[axis] // known))
            inside, axis = None, axis + 1
        elif inside is None:
            names.append(token)
            shape.append(x.shape[axis])
            axis += 1
        else:
            inside.append(token)
    return x.reshape(shape).permute([names.index(n) for n in right.split()])


@program
def rearranged(x):
    return rearrange(x, "t (h d) -> h t d", h=2)


@program
def einsum_attention(x):
    q = x.view(3, 2, 2)
    att = torch.einsum("ihd,jhd->hij", q, q).softmax(-1)
    return torch.einsum("hij,jhd->ihd", att, q).flatten(1)


# --- custom operators ---

_library = torch.library.Library("breadth_users", "DEF")


@torch.library.custom_op("breadth_users::scale", mutates_args=())
def scale_op(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


@scale_op.register_fake
def _(x, by):
    return torch.empty_like(x)


scale_op.register_autograd(
    lambda ctx, g: (g * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
)


@torch.library.custom_op("breadth_users::add_one_", mutates_args={"x"})
def add_one_op(x: torch.Tensor) -> None:
    x.add_(1)


_library.define("plain(Tensor x) -> Tensor")
_library.impl("plain", lambda x: x.cos(), "CompositeImplicitAutograd")


@program
def custom_op(x):
    return scale_op(x, 2.0) + 1


@program(args=lambda i: [leaf(i)])
def custom_op_gradient(x):
    return scale_op(x, 3.0).sin()


@program
def custom_op_in_place(x):
    y = x.clone()
    add_one_op(y)
    return y


@program(graphs=2, breaks=True)
def custom_op_by_name(x):
    return torch.ops.breadth_users.plain(x) * 2


# --- autograd functions ---


class SwishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i * i.sigmoid()
        ctx.save_for_backward(i)
        return result

    @staticmethod
    def backward(ctx, g):
        i = ctx.saved_tensors[0]
        s = i.sigmoid()
        return g * (s * (1 + i * (1 - s)))


class Swish(nn.Module):
    def forward(self, x):
        return SwishFunction.apply(x)


@built(args=lambda i: [leaf(i)])
def swish_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), Swish(), nn.Linear(4, 2))


# --- training loops, distributed-style ---


@built(graphs=2)
def two_optimisers():
    torch.manual_seed(0)
    g, d = nn.Linear(4, 4), nn.Linear(4, 1)
    og, od = torch.optim.SGD(g.parameters(), 0.1), torch.optim.SGD(d.parameters(), 0.1)

    def f(x):
        od.zero_grad()
        fake = g(x)
        ld = F.softplus(-d(x)).mean() + F.softplus(d(fake.detach())).mean()
        ld.backward()
        od.step()
        og.zero_grad()
        lg = F.softplus(-d(fake)).mean()
        lg.backward()
        og.step()
        return ld.detach(), lg.detach()

    return f


@built(graphs=2)
def averaged_over_ranks():
    torch.manual_seed(0)
    replicas = [nn.Linear(4, 2) for _ in range(2)]
    for r in replicas[1:]:
        r.load_state_dict(replicas[0].state_dict())

    def f(x):
        for r, part in zip(replicas, x.chunk(2)):
            r.zero_grad()
            r(part).pow(2).sum().backward()
        for ps in zip(*[r.parameters() for r in replicas]):
            mean = torch.stack([p.grad for p in ps]).mean(0)
            for p in ps:
                p.grad.copy_(mean)
                with torch.no_grad():
                    p -= 0.1 * p.grad
        return [p.detach().clone() for p in replicas[1].parameters()]

    return f


@built(graphs=5)
def accumulate_and_step():
    torch.manual_seed(0)
    m = nn.Linear(4, 1)
    o = torch.optim.AdamW(m.parameters(), 0.01)
    state = {"step": 0}

    def f(x, every=2):
        (m(x).mean() / every).backward()
        state["step"] += 1
        if state["step"] % every == 0:
            o.step()
            o.zero_grad()
        return state["step"], m.weight.detach().clone()

    return f


@built(args=lambda i: [tensor(i), i], graphs=3)
def cosine_rate():
    torch.manual_seed(0)
    m = nn.Linear(4, 1)

    def f(x, step, warm=2, top=10, base=0.1):
        rate = (
            base * (step + 1) / warm
            if step < warm
            else base * 0.5 * (1 + math.cos(math.pi * (step - warm) / (top - warm)))
        )
        with torch.no_grad():
            for p in m.parameters():
                p.sub_(rate * torch.ones_like(p))
        return rate, m(x)

    return f


# --- state and structures ---


class Output(NamedTuple):
    loss: Optional[torch.Tensor]
    logits: torch.Tensor


@built(args=lambda i: [tensor(i), labels(i) if i % 2 else None], graphs=2)
def optional_labels():
    torch.manual_seed(0)
    m = nn.Linear(4, 4)

    def f(x, target=None):
        logits = m(x)
        loss = None if target is None else F.cross_entropy(logits, target)
        return Output(loss, logits)

    return f


@built(graphs=3)
def replay_buffer():
    buffer = collections.deque(maxlen=2)

    def f(x):
        buffer.append((x, x.sum()))
        states, rewards = zip(*buffer)
        return torch.stack(states).mean(0), torch.stack(rewards), len(buffer)

    return f


@built
def registry_of_layers():
    torch.manual_seed(0)
    table = {"relu": F.relu, "gelu": F.gelu, "swish": lambda t: t * t.sigmoid()}
    plan = [("relu", 2.0), ("swish", 0.5), ("gelu", 1.0)]

    def f(x):
        for name, scale in plan:
            x = table[name](x) * scale
        return x

    return f


def experts_and_gate():
    torch.manual_seed(0)
    return nn.ModuleList(nn.Linear(4, 4) for _ in range(3)), nn.Linear(4, 3)


@built
def moe_dense():
    experts, gate = experts_and_gate()

    def f(x):
        weight, index = gate(x).softmax(-1).topk(2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, expert in enumerate(experts):
            share = (weight * (index == i)).sum(-1, keepdim=True)
            out = out + share * expert(x)
        return out

    return f


@built(graphs=6)
def moe_sparse():
    experts, gate = experts_and_gate()

    def f(x):
        index = gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(experts):
            rows = (index == i).nonzero(as_tuple=True)[0]
            out.index_add_(0, rows, expert(x[rows]))
        return out

    return f


@program
def box_iou(x):
    boxes = torch.cat([x[:, :2], x[:, :2] + x[:, 2:].abs()], 1)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    lt = torch.max(boxes[:, None, :2], boxes[None, :, :2])
    rb = torch.min(boxes[:, None, 2:], boxes[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    return inter / (area[:, None] + area[None] - inter)


@program(graphs=8, breaks=True)
def nms_loop(x):
    order = x[:, 0].argsort(descending=True)
    keep = torch.ones(3, dtype=torch.bool)
    for i in range(3):
        for j in range(i + 1, 3):
            close = (x[order[i], 1] - x[order[j], 1]).abs() < 0.5
            keep[j] = keep[j] & ~(close & keep[i])
    return order, keep


@program
def patches(x):
    image = x.repeat(4, 3).view(1, 1, 12, 12)
    p = image.unfold(2, 4, 4).unfold(3, 4, 4)
    return p.contiguous().view(1, 9, -1).mean(-1), F.unfold(image, 3).shape


@program
def diffusion_step(x):
    betas = torch.linspace(1e-4, 0.02, 10)
    alphas = torch.cumprod(1 - betas, 0)
    t = torch.tensor([1, 5, 9])
    a = alphas[t].view(-1, 1)
    noise = torch.randn_like(x)
    return a.sqrt() * x + (1 - a).sqrt() * noise


@program
def returns_to_go(x):
    total, out = torch.zeros(x.shape[1]), []
    for r in reversed(x):
        total = r + 0.9 * total
        out.insert(0, total)
    return torch.stack(out)


@program(args=lambda i: [leaf(i)])
def gae(values):
    rewards = torch.ones(3)
    v = values[:, 0]
    adv = torch.zeros_like(v)
    last = 0.0
    for t in range(2, -1, -1):
        nxt = v[t + 1] if t < 2 else torch.zeros(())
        delta = rewards[t] + 0.99 * nxt - v[t]
        last = delta + 0.95 * 0.99 * last
        adv[t] = last
    return adv.detach(), (adv.detach() - v).pow(2).mean()


@contextlib.contextmanager
def eval_mode(m):
    was = m.training
    m.eval()
    try:
        yield m
    finally:
        m.train(was)


@built
def evaluated_inside():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    def f(x):
        with eval_mode(m), torch.no_grad():
            a = m(x)
        return a, m.training

    return f


@program
def histogram_match(x):
    flat, order = x.flatten().sort()
    target = torch.linspace(-1, 1, flat.numel())
    return torch.empty_like(flat).scatter_(0, order, target).view_as(x)


@program
def sinkhorn(x):
    log = -x.abs()
    for _ in range(3):
        log = log - log.logsumexp(1, keepdim=True)
        log = log - log.logsumexp(0, keepdim=True)
    return log.exp()


@program
def power_iteration(x):
    w = x @ x.t()
    v = torch.ones(3)
    for _ in range(4):
        v = F.normalize(w @ v, dim=0)
    return v @ w @ v


@program(graphs=3, breaks=True)
def data_dependent_stop(x):
    n = 0
    while x.abs().max() > 0.5 and n < 5:
        x = x / 2
        n += 1
    return x, n


@program(breaks=True)
def item_in_message(x):
    return x * 2, f"mean {x.mean().item():.3f}"


@program
def nan_check(x):
    if torch.isnan(x).any():
        raise ValueError("nan")
    return x.log1p()


@program
def unique_counts(x):
    v, c = torch.unique(x.round(), return_counts=True)
    return v, c


@program
def boolean_rows(x):
    return x[x[:, 0] > 0]
