"""Whole programs such as people write: training loops, samplers, searches, simulations, each with the parts that one would compile.

A program takes `compile`, calls it on its functions and modules, and gives everything that it computed.
"""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import io
import itertools
import logging
import math
import random
import types
import typing
import warnings

import torch
import torch.nn.functional as F
from torch import nn

PROGRAMS = {}


def program(graphs):
    """`graphs`: how many the whole program takes at most; what torch has loaded or cached before makes some take fewer. None would be a fall-back to eager."""

    def register(f):
        PROGRAMS[f.__name__] = f
        f.graphs = graphs
        return f

    return register


def train(optimiser, loss):
    """The step behind the compiled part, which itself is never compiled; gives the loss."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


@program(graphs=4)
def char_rnn(compile):
    text = "hello world, this is a small text for a small network. " * 3
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(len(chars), 16)
            self.r = nn.GRU(16, 24, batch_first=True)
            self.o = nn.Linear(24, len(chars))

        def forward(self, x, h=None):
            y, h = self.r(self.e(x), h)
            return self.o(y), h

    net = Net()
    opt = torch.optim.Adam(net.parameters(), 1e-2)

    @compile
    def step(x, y, h):
        logits, h = net(x, h)
        return F.cross_entropy(logits.flatten(0, 1), y.flatten()), h

    seen = []
    h = None
    data = torch.tensor([stoi[c] for c in text])
    for i in range(4):
        x, y = data[i * 8 : i * 8 + 8][None], data[i * 8 + 1 : i * 8 + 9][None]
        loss, h = step(x, y, h)
        h = h.detach()
        seen.append(train(opt, loss))

    @compile
    def sample(n):
        out = []
        x = torch.tensor([[0]])
        h = None
        with torch.no_grad():
            for _ in range(n):
                value, h = net(x, h)
                x = value[:, -1:].argmax(-1)
                out.append(x)
        return torch.cat(out, 1)

    return seen, sample(5), sample(6)


@program(graphs=2)
def gan(compile):
    G = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.BatchNorm1d(16), nn.Linear(16, 2))
    D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.utils.spectral_norm(nn.Linear(16, 1)))
    og, od = (torch.optim.Adam(m.parameters(), 2e-4, betas=(0.5, 0.999)) for m in (G, D))
    bce = nn.BCEWithLogitsLoss()

    @compile
    def d_loss(real, z):
        fake = G(z).detach()
        return bce(D(real), torch.ones(real.size(0), 1)) + bce(D(fake), torch.zeros(fake.size(0), 1))

    @compile
    def g_loss(z):
        return bce(D(G(z)), torch.ones(z.size(0), 1))

    out = []
    for _ in range(3):
        value = d_loss(torch.randn(8, 2), torch.randn(8, 4))
        train(od, value)
        k = g_loss(torch.randn(8, 4))
        train(og, k)
        out += [value.item(), k.item()]
    return out, [b.clone() for b in G.buffers()], [b.clone() for b in D.buffers()]


@program(graphs=2)
def vae(compile):
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc = nn.Linear(10, 16)
            self.mu, self.lv = nn.Linear(16, 3), nn.Linear(16, 3)
            self.dec = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 10), nn.Sigmoid())

        def reparameterize(self, mu, logvar):
            if self.training:
                std = torch.exp(0.5 * logvar)
                return mu + torch.randn_like(std) * std
            return mu

        def forward(self, x):
            h = F.relu(self.enc(x))
            mu, lv = self.mu(h), self.lv(h)
            return self.dec(self.reparameterize(mu, lv)), mu, lv

    m = VAE()
    o = torch.optim.Adam(m.parameters(), 1e-2)
    c = compile(m)
    out = []
    for i in range(4):
        x = torch.rand(6, 10)
        r, mu, lv = c(x)
        beta = min(1.0, i / 3)
        loss = F.binary_cross_entropy(r, x, reduction="sum") - beta * 0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
        out.append(train(o, loss))
    m.eval()
    return out, c(torch.ones(2, 10))[0]


Transition = collections.namedtuple("Transition", "s a r n d")


@program(graphs=7)
def dqn(compile):
    rng = random.Random(0)
    memory = collections.deque(maxlen=20)
    q = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
    target = copy.deepcopy(q)
    o = torch.optim.RMSprop(q.parameters(), 1e-2)

    @compile
    def td(batch, gamma):
        b = Transition(*(torch.stack(x) for x in zip(*batch, strict=True)))
        now = q(b.s).gather(1, b.a[:, None]).squeeze(1)
        with torch.no_grad():
            nxt = target(b.n).max(1).values * (1 - b.d)
        return F.smooth_l1_loss(now, b.r + gamma * nxt)

    @compile
    def act(s, eps):
        if rng.random() < eps:
            return rng.randrange(2)
        with torch.no_grad():
            return int(q(s).argmax())

    out = []
    s = torch.randn(3)
    for i in range(8):
        a = act(s, 0.5)
        n = torch.randn(3)
        memory.append(Transition(s, torch.tensor(a), n.sum(), n, torch.tensor(float(i % 3 == 0))))
        s = n
        out.append(a)
        if len(memory) >= 4:
            value = td(rng.sample(list(memory), 4), 0.9)
            o.zero_grad()
            value.backward()
            nn.utils.clip_grad_value_(q.parameters(), 1.0)
            o.step()
            out.append(value.item())
        if i % 3 == 0:
            target.load_state_dict(q.state_dict())
    return out


@program(graphs=3)
def seq2seq_attention(compile):
    class Attn(nn.Module):
        def __init__(self, h):
            super().__init__()
            self.w = nn.Linear(2 * h, h)
            self.v = nn.Parameter(torch.rand(h))

        def forward(self, hidden, enc):
            e = torch.tanh(self.w(torch.cat([hidden.expand(enc.size(0), -1, -1), enc], 2)))
            return F.softmax(torch.einsum("sbh,h->bs", e, self.v), 1).unsqueeze(1)

    class Dec(nn.Module):
        def __init__(self, v, h):
            super().__init__()
            self.e = nn.Embedding(v, h)
            self.a = Attn(h)
            self.g = nn.GRU(2 * h, h)
            self.o = nn.Linear(2 * h, v)

        def forward(self, tok, hid, enc):
            w = self.a(hid, enc)
            c = w.bmm(enc.transpose(0, 1)).transpose(0, 1)
            o, hid = self.g(torch.cat([self.e(tok)[None], c], 2), hid)
            return self.o(torch.cat([o[0], c[0]], 1)), hid, w

    V, H = 11, 8
    enc_e, enc = nn.Embedding(V, H), nn.GRU(H, H)
    dec = Dec(V, H)
    ps = [*enc_e.parameters(), *enc.parameters(), *dec.parameters()]
    o = torch.optim.Adam(ps)

    def run(src, trg, teach):
        outs = torch.zeros(trg.size(0), trg.size(1), V)
        e, h = enc(enc_e(src))
        tok = trg[0]
        for t in range(1, trg.size(0)):
            y, h, _ = dec(tok, h, e)
            outs[t] = y
            tok = trg[t] if teach[t] else y.argmax(1)
        return outs

    c = compile(run)
    r = random.Random(1)
    out = []
    for i in range(3):
        src, trg = torch.randint(0, V, (5 + i, 2)), torch.randint(0, V, (4, 2))
        y = c(src, trg, [r.random() < 0.5 for _ in range(4)])
        value = F.cross_entropy(y[1:].reshape(-1, V), trg[1:].reshape(-1), ignore_index=0)
        o.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(ps, 1.0)
        o.step()
        out.append(value.item())
    return out


@program(graphs=2)
def gnn(compile):
    class Layer(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.l = nn.Linear(i, o, bias=False)
            self.b = nn.Parameter(torch.zeros(o))

        def message(self, xj, norm):
            return norm.view(-1, 1) * xj

        def forward(self, x, edge):
            n = x.size(0)
            loop = torch.arange(n).repeat(2, 1)
            edge = torch.cat([edge, loop], 1)
            row, col = edge
            deg = torch.zeros(n).scatter_add_(0, col, torch.ones(col.numel()))
            inv = deg.pow(-0.5)
            inv[inv == float("inf")] = 0
            m = self.message(self.l(x)[row], inv[row] * inv[col])
            return torch.zeros(n, m.size(1)).index_add_(0, col, m) + self.b

    class GCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer(4, 8), Layer(8, 3)])

        def forward(self, x, e):
            for i, layer in enumerate(self.layers):
                x = layer(x, e)
                if i < len(self.layers) - 1:
                    x = F.dropout(F.relu(x), 0.3, self.training)
            return F.log_softmax(x, 1)

    m = GCN()
    o = torch.optim.Adam(m.parameters(), 1e-2, weight_decay=5e-4)
    c = compile(m)
    out = []
    for k in range(4):
        n = 6 + k
        x = torch.randn(n, 4)
        e = torch.randint(0, n, (2, 10 + k))
        mask = torch.rand(n) < 0.7
        y = torch.randint(0, 3, (n,))
        p = c(x, e)
        value = F.nll_loss(p[mask], y[mask])
        out.append(train(o, value))
    return out


@program(graphs=5)
def diffusion(compile):
    def temb(t, d):
        half = d // 2
        f = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
        a = t[:, None].float() * f[None]
        return torch.cat([a.sin(), a.cos()], -1)

    class Block(nn.Module):
        def __init__(self, i, o, t):
            super().__init__()
            self.c1, self.c2, self.t, self.n = (
                nn.Conv2d(i, o, 3, padding=1),
                nn.Conv2d(o, o, 3, padding=1),
                nn.Linear(t, o),
                nn.GroupNorm(2, o),
            )
            self.s = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x, t):
            h = F.silu(self.n(self.c1(x))) + self.t(F.silu(t))[:, :, None, None]
            return self.c2(h) + self.s(x)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.d = nn.ModuleList([Block(1, 4, 8), Block(4, 8, 8)])
            self.m = Block(8, 8, 8)
            self.u = nn.ModuleList([Block(16, 4, 8), Block(8, 4, 8)])
            self.o = nn.Conv2d(4, 1, 1)

        def forward(self, x, t):
            e = temb(t, 8)
            skips = []
            for b in self.d:
                x = b(x, e)
                skips.append(x)
                x = F.avg_pool2d(x, 2)
            x = self.m(x, e)
            for b in self.u:
                x = F.interpolate(x, scale_factor=2, mode="nearest")
                x = b(torch.cat([x, skips.pop()], 1), e)
            return self.o(x)

    net = UNet()
    ema = copy.deepcopy(net)
    o = torch.optim.AdamW(net.parameters(), 1e-3)
    T = 10
    beta = torch.linspace(1e-4, 0.02, T)
    ab = torch.cumprod(1 - beta, 0)

    @compile
    def loss(x):
        t = torch.randint(0, T, (x.size(0),))
        n = torch.randn_like(x)
        a = ab[t].view(-1, 1, 1, 1)
        return F.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * n, t), n)

    @compile
    @torch.no_grad()
    def update(decay):
        for p, q in zip(ema.parameters(), net.parameters(), strict=True):
            p.mul_(decay).add_(q, alpha=1 - decay)

    @compile
    @torch.no_grad()
    def sample(n):
        x = torch.randn(n, 1, 8, 8)
        for i in reversed(range(T)):
            t = torch.full((n,), i, dtype=torch.long)
            eps = ema(x, t)
            x = (x - beta[i] / (1 - ab[i]).sqrt() * eps) / (1 - beta[i]).sqrt()
            if i > 0:
                x = x + beta[i].sqrt() * torch.randn_like(x)
        return x

    out = []
    for i in range(3):
        value = loss(torch.randn(2 + i, 1, 8, 8))
        train(o, value)
        update(min(0.99, (1 + i) / (10 + i)))
        out.append(value.item())
    return out, sample(2)


@program(graphs=3)
def lora(compile):
    class LoRA(nn.Module):
        def __init__(self, base, r=2, alpha=4):
            super().__init__()
            self.base = base
            self.a = nn.Parameter(torch.randn(r, base.in_features) * 0.1)
            self.b = nn.Parameter(torch.zeros(base.out_features, r))
            self.scale = alpha / r
            self.merged = False

        def forward(self, x):
            return self.base(x) if self.merged else self.base(x) + (x @ self.a.T @ self.b.T) * self.scale

        @torch.no_grad()
        def merge(self):
            self.base.weight += self.b @ self.a * self.scale
            self.merged = True

    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    c = compile(net)
    x = torch.randn(3, 6)
    out = [c(x)]
    for p in net.parameters():
        p.requires_grad_(False)
    for n, m in list(net.named_children()):
        if isinstance(m, nn.Linear):
            setattr(net, n, LoRA(m))
    o = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)
    for _ in range(3):
        value = c(x).pow(2).mean()
        out.append(train(o, value))
    out.append(c(x).detach())
    for m in net.modules():
        if isinstance(m, LoRA):
            m.merge()
    out.append(c(x))
    return out


@program(graphs=14)
def moe(compile):
    class MoE(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(4, 3)
            self.ex = nn.ModuleList(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)) for _ in range(3))
            self.aux = 0.0

        def forward(self, x):
            p = self.gate(x).softmax(-1)
            w, i = p.topk(2, -1)
            w = w / w.sum(-1, keepdim=True)
            out = torch.zeros_like(x)
            for k, e in enumerate(self.ex):
                r, c = (i == k).nonzero(as_tuple=True)
                if r.numel() == 0:
                    continue
                out.index_add_(0, r, e(x[r]) * w[r, c, None])
            self.aux = (p.mean(0) * F.one_hot(i[:, 0], 3).float().mean(0)).sum() * 3
            return out

    m = MoE()
    c = compile(m)
    o = torch.optim.Adam(m.parameters(), 1e-2)
    out = []
    for k in range(4):
        value = c(torch.randn(5 + k, 4)).pow(2).mean() + 0.01 * m.aux
        out.append(train(o, value))
    return out


@program(graphs=10)
def beam_search(compile):
    lm = nn.Sequential(nn.Embedding(7, 8), nn.Linear(8, 7))

    @dataclasses.dataclass(order=True)
    class Hyp:
        score: float
        tokens: list[int] = dataclasses.field(compare=False)

        def extend(self, t, s):
            return Hyp(self.score + s, self.tokens + [t])

    @compile
    @torch.no_grad()
    def search(start, width, steps):
        beams = [Hyp(0.0, [start])]
        for _ in range(steps):
            cand = []
            for h in beams:
                lp = lm(torch.tensor(h.tokens[-1])).log_softmax(-1)
                v, i = lp.topk(width)
                cand += [h.extend(int(t), float(s)) for s, t in zip(v, i, strict=True)]
            beams = sorted(cand, reverse=True)[:width]
        return [(round(b.score, 4), b.tokens) for b in beams]

    return search(0, 2, 3), search(1, 3, 3), search(2, 2, 2)


@program(graphs=8)
def moco_queue(compile):
    class MoCo(nn.Module):
        def __init__(self, K=12, m=0.9, T=0.1):
            super().__init__()
            self.K, self.m, self.T = K, m, T
            self.q, self.k = nn.Linear(6, 4), nn.Linear(6, 4)
            self.k.load_state_dict(self.q.state_dict())
            for p in self.k.parameters():
                p.requires_grad = False
            self.register_buffer("queue", F.normalize(torch.randn(4, K), dim=0))
            self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))
            self.at = 0

        @torch.no_grad()
        def momentum(self):
            for a, b in zip(self.q.parameters(), self.k.parameters(), strict=True):
                b.data = b.data * self.m + a.data * (1 - self.m)

        @torch.no_grad()
        def enqueue(self, keys):
            n = keys.shape[0]
            self.queue[:, self.at : self.at + n] = keys.T
            self.at = (self.at + n) % self.K
            self.ptr[0] = self.at

        def forward(self, a, b):
            q = F.normalize(self.q(a), dim=1)
            with torch.no_grad():
                self.momentum()
                k = F.normalize(self.k(b), dim=1)
            pos = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
            neg = q @ self.queue.clone().detach()
            logits = torch.cat([pos, neg], 1) / self.T
            self.enqueue(k)
            return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))

    m = MoCo()
    c = compile(m)
    o = torch.optim.SGD(m.q.parameters(), 0.1, momentum=0.9, nesterov=True)
    out = []
    for _ in range(5):
        value = c(torch.randn(4, 6), torch.randn(4, 6))
        out.append((train(o, value), m.at))
    return out, m.queue, m.ptr, m.k.weight


@program(graphs=5)
def ppo(compile):
    class AC(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 16), nn.Tanh())
            self.pi, self.v = nn.Linear(16, 2), nn.Linear(16, 1)

        def forward(self, x):
            h = self.body(x)
            return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)

    m = AC()
    o = torch.optim.Adam(m.parameters(), 3e-3)

    @compile
    def gae(r, v, d, gamma=0.99, lam=0.95):
        adv = torch.zeros_like(r)
        last = 0
        for t in reversed(range(len(r) - 1)):
            nonterm = 1.0 - d[t]
            delta = r[t] + gamma * v[t + 1] * nonterm - v[t]
            last = delta + gamma * lam * nonterm * last
            adv[t] = last
        return adv, adv + v

    @compile
    def loss(s, a, old, adv, ret, clip):
        dist, v = m(s)
        ratio = (dist.log_prob(a) - old).exp()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        return (
            -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
            + 0.5 * (ret - v).pow(2).mean()
            - 0.01 * dist.entropy().mean()
        )

    s = torch.randn(8, 3)
    with torch.no_grad():
        dist, v = m(s)
        a = dist.sample()
        lp = dist.log_prob(a)
    adv, ret = gae(torch.randn(8), v, (torch.rand(8) < 0.2).float())
    out = []
    for i in range(4):
        value = loss(s, a, lp, adv, ret, 0.2 - 0.01 * i)
        o.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.5)
        o.step()
        out.append(value.item())
    return out, adv


@program(graphs=1)
def maml(compile):
    from torch.func import functional_call, grad

    m = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    params = {k: v for k, v in m.named_parameters()}
    o = torch.optim.Adam(params.values(), 1e-2)

    def loss(p, x, y):
        return F.mse_loss(functional_call(m, p, (x,)), y)

    def task(p, x, y, qx, qy):
        g = grad(loss)(p, x, y)
        fast = {k: v - 0.1 * g[k] for k, v in p.items()}
        return loss(fast, qx, qy)

    c = compile(lambda x, y, qx, qy: torch.stack([task(params, *b) for b in zip(x, y, qx, qy, strict=True)]).mean())
    out = []
    for _ in range(3):
        value = c(*(torch.randn(3, 5, 1) for _ in range(4)))
        out.append(train(o, value))
    return out


@program(graphs=2)
def neural_ode(compile):
    f = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def rk4(fn, y, t, dt):
        k1 = fn(y)
        k2 = fn(y + dt / 2 * k1)
        k3 = fn(y + dt / 2 * k2)
        k4 = fn(y + dt * k3)
        return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @compile
    def odeint(y, ts):
        out = [y]
        for a, b in zip(ts[:-1], ts[1:], strict=True):
            y = rk4(f, y, a, b - a)
            out.append(y)
        return torch.stack(out)

    o = torch.optim.Adam(f.parameters())
    out = []
    for i in range(4):
        value = odeint(torch.randn(3, 2), [j * 0.1 * (i + 1) for j in range(4)]).pow(2).sum()
        out.append(train(o, value))
    return out


@program(graphs=1)
def gaussian_process(compile):
    class GP(nn.Module):
        def __init__(self):
            super().__init__()
            self.ls, self.s, self.n = (nn.Parameter(torch.tensor(v)) for v in (0.0, 0.0, -2.0))

        def k(self, a, b):
            return self.s.exp() * torch.exp(-0.5 * torch.cdist(a / self.ls.exp(), b / self.ls.exp()).pow(2))

        def nll(self, x, y):
            L = torch.linalg.cholesky(self.k(x, x) + (self.n.exp() + 1e-4) * torch.eye(len(x)))
            a = torch.cholesky_solve(y[:, None], L)
            return 0.5 * y @ a.squeeze() + L.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)

    g = GP()
    c = compile(g.nll)
    o = torch.optim.LBFGS(g.parameters(), max_iter=4)
    x = torch.rand(6, 1)
    y = x.squeeze().sin()
    out = []

    def closure():
        o.zero_grad()
        value = c(x, y)
        value.backward()
        out.append(value.item())
        return value

    for _ in range(2):
        o.step(closure)
    return out


@program(graphs=16)
def kmeans(compile):
    @compile
    def fit(x, k, iters):
        c = x[:k].clone()
        for it in range(iters):
            a = torch.cdist(x, c).argmin(1)
            new = torch.stack([x[a == j].mean(0) if (a == j).any() else c[j] for j in range(k)])
            if torch.allclose(new, c):
                return c, a, it
            c = new
        return c, a, iters

    return fit(torch.randn(12, 2), 3, 5), fit(torch.randn(9, 2), 2, 5)


@program(graphs=1)
def physics(compile):
    @compile
    def energy(p):
        d = p[:, None] - p[None]
        r2 = d.pow(2).sum(-1) + torch.eye(len(p))
        return (1 / r2.pow(6) - 1 / r2.pow(3)).triu(1).sum()

    @compile
    def step(p, v, dt):
        p = p.detach().requires_grad_()
        (f,) = torch.autograd.grad(-energy(p), p)
        v = v + dt * f
        return (p + dt * v).detach(), v

    p, v = torch.randn(5, 3) * 2, torch.zeros(5, 3)
    out = []
    for _i in range(4):
        p, v = step(p, v, 0.01)
        out.append(p)
    return out


@program(graphs=8)
def transformer_padding(compile):
    m = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True), 2, enable_nested_tensor=False
    )
    c = compile(m)
    out = []
    for n in (5, 7, 9):
        x = torch.randn(2, n, 8)
        lens = [n, n - 2]
        mask = torch.arange(n)[None] >= torch.tensor(lens)[:, None]
        out.append(c(x, mask=nn.Transformer.generate_square_subsequent_mask(n), src_key_padding_mask=mask))
    m.eval()
    with torch.no_grad():
        out.append(c(torch.randn(2, 6, 8)))
    return out


@program(graphs=6)
def registry_config(compile):
    REG = {}

    def register(name):
        def deco(cls):
            REG[name] = cls
            cls.registered = name
            return cls

        return deco

    @dataclasses.dataclass
    class Cfg:
        kind: str = "mlp"
        width: int = 8
        act: str = "relu"
        opts: dict = dataclasses.field(default_factory=dict)

    @register("mlp")
    class MLP(nn.Module):
        def __init__(self, cfg):
            super().__init__()
            self.cfg = cfg
            self.l = nn.Linear(4, cfg.width)

        def forward(self, x, **kw):
            y = getattr(F, self.cfg.act)(self.l(x))
            return {"out": y, "meta": {**self.cfg.opts, **kw, "name": f"{self.registered}-{self.cfg.width:03d}"}}

    @register("deep")
    class Deep(MLP):
        def forward(self, x, **kw):
            r = super().forward(x, depth=2, **kw)
            r["out"] = r["out"].sum()
            return r

    out = []
    for k, a in (("mlp", "relu"), ("deep", "gelu"), ("deep", "silu")):
        c = compile(REG[k](Cfg(k, act=a, opts={"a": 1})))
        out.append(c(torch.randn(2, 4), tag="t"))
        out.append(c(torch.randn(3, 4)))
    return out


@program(graphs=6)
def metrics_logging(compile):
    class Meter:
        def __init__(self):
            self.sum = self.count = 0
            self.hist = []

        def update(self, v, n=1):
            self.sum += v * n
            self.count += n
            self.hist.append(v)

        @property
        def avg(self):
            return self.sum / max(self.count, 1)

        def __str__(self):
            return f"{self.avg:.4f} ({len(self.hist)})"

    m = nn.Linear(3, 1)
    meters = collections.defaultdict(Meter)
    o = torch.optim.SGD(m.parameters(), 0.1)

    @compile
    def step(x, y, epoch):
        value = F.mse_loss(m(x), y)
        meters["loss"].update(value.detach(), len(x))
        meters["mae"].update((m(x) - y).abs().mean().detach())
        if epoch % 2 == 0:
            meters["even"].update(value.detach())
        return value

    for e in range(6):
        value = step(torch.randn(4, 3), torch.randn(4, 1), e)
        train(o, value)
    return {k: (v.avg, v.count, v.hist, str(v)) for k, v in meters.items()}


@program(graphs=4)
def early_exit(compile):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.ls = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
            self.h = nn.ModuleList(nn.Linear(4, 2) for _ in range(4))
            self.exits = collections.Counter()

        def forward(self, x, thr):
            for i, (layer, h) in enumerate(zip(self.ls, self.h, strict=True)):
                x = torch.tanh(layer(x))
                p = h(x).softmax(-1)
                if p.max() > thr:
                    self.exits[i] += 1
                    return p, i
            return p, -1

    n = Net()
    c = compile(n)
    out = [c(torch.randn(1, 4), t) for t in (0.55, 0.6, 0.7, 0.9, 0.52, 0.65)]
    return out, n.exits


@program(graphs=1)
def quantize_ste(compile):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, s):
            ctx.save_for_backward(x, s)
            return torch.round(x / s).clamp(-8, 7) * s

        @staticmethod
        def backward(ctx, g):
            x, s = ctx.saved_tensors
            m = ((x / s) >= -8) & ((x / s) <= 7)
            return g * m, (g * (torch.round(x / s) - x / s) * m).sum().reshape(s.shape)

    class QLinear(nn.Linear):
        def __init__(self, *a):
            super().__init__(*a)
            self.s = nn.Parameter(torch.tensor(0.1))

        def forward(self, x):
            return F.linear(x, Round.apply(self.weight, self.s), self.bias)

    m = nn.Sequential(QLinear(4, 8), nn.ReLU(), QLinear(8, 2))
    c = compile(m)
    o = torch.optim.SGD(m.parameters(), 0.1)
    out = []
    for _ in range(3):
        value = c(torch.randn(5, 4)).pow(2).mean()
        out.append(train(o, value))
    return out, m[0].s


@program(graphs=2)
def weight_tying_hooks(compile):
    acts = {}

    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(9, 6)
            self.n = nn.LayerNorm(6)
            self.o = nn.Linear(6, 9, bias=False)
            self.o.weight = self.e.weight

        def forward(self, x):
            return self.o(self.n(self.e(x).cumsum(1)))

    m = LM()
    m.n.register_forward_hook(lambda mod, i, o: acts.__setitem__("n", o.detach()))
    m.register_forward_pre_hook(lambda mod, a: (a[0] % 9,))
    norms = []
    m.e.weight.register_hook(lambda g: norms.append(float(g.norm())) or g.clamp(-0.1, 0.1))
    c = compile(m)
    o = torch.optim.Adagrad(m.parameters(), 0.1)
    out = []
    for _ in range(3):
        x = torch.randint(0, 20, (2, 5))
        value = F.cross_entropy(c(x).flatten(0, 1), (x % 9).flatten())
        out.append((train(o, value), acts["n"]))
    return out, norms


@program(graphs=2)
def trainer_class(compile):
    class Callback:
        def on_step(self, tr): ...
        def on_epoch(self, tr): ...

    class Recorder(Callback):
        def __init__(self):
            self.log = []

        def on_step(self, tr):
            self.log.append((tr.step, tr.last))

        def on_epoch(self, tr):
            self.log.append(("epoch", tr.epoch, f"{tr.avg:.3f}"))

    class Stop(Callback):
        def __init__(self, p):
            self.best, self.bad, self.p = math.inf, 0, p

        def on_epoch(self, tr):
            if tr.avg < self.best - 1e-4:
                self.best, self.bad = tr.avg, 0
            else:
                self.bad += 1
            if self.bad >= self.p:
                tr.stop = True

    class Trainer:
        def __init__(self, m, cbs):
            self.m, self.cbs = m, cbs
            self.o = torch.optim.SGD(m.parameters(), 0.05)
            self.step = self.epoch = 0
            self.last = self.avg = 0.0
            self.stop = False
            self.loss = compile(self.compute)

        def compute(self, x, y):
            self.step += 1
            return F.mse_loss(self.m(x), y) + sum(p.pow(2).sum() for p in self.m.parameters()) * 1e-3

        def fit(self, data, n):
            for self.epoch in range(n):
                tot = []
                for x, y in data:
                    value = self.loss(x, y)
                    self.o.zero_grad()
                    value.backward()
                    self.o.step()
                    self.last = value.item()
                    tot.append(self.last)
                    for c in self.cbs:
                        c.on_step(self)
                self.avg = sum(tot) / len(tot)
                for c in self.cbs:
                    c.on_epoch(self)
                if self.stop:
                    break

    r = Recorder()
    t = Trainer(nn.Linear(3, 1), [r, Stop(1)])
    t.fit([(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)], 4)
    return r.log, t.step


@program(graphs=3)
def kv_cache_class(compile):
    class Cache:
        def __init__(self, n):
            self.k = [None] * n
            self.v = [None] * n

        def update(self, i, k, v):
            self.k[i] = k if self.k[i] is None else torch.cat([self.k[i], k], 2)
            self.v[i] = v if self.v[i] is None else torch.cat([self.v[i], v], 2)
            return self.k[i], self.v[i]

        def __len__(self):
            return 0 if self.k[0] is None else self.k[0].shape[2]

    class Attn(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.i = i
            self.qkv, self.o = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x, cache):
            b, t, _ = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
            k, v = cache.update(self.i, k, v)
            m = torch.ones(t, k.shape[2], dtype=torch.bool).tril(k.shape[2] - t)
            return x + self.o(F.scaled_dot_product_attention(q, k, v, attn_mask=m).transpose(1, 2).reshape(b, t, 8))

    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(11, 8)
            self.p = nn.Embedding(32, 8)
            self.ls = nn.ModuleList(Attn(i) for i in range(2))
            self.h = nn.Linear(8, 11)

        def forward(self, ids, cache):
            past = len(cache)
            x = self.e(ids) + self.p(torch.arange(past, past + ids.shape[1]))
            for layer in self.ls:
                x = layer(x, cache)
            return self.h(x)[:, -1]

    m = LM().eval()
    c = compile(m)
    cache = Cache(2)
    out = []
    with torch.inference_mode():
        tok = torch.tensor([[1, 2, 3]])
        for _ in range(7):
            tok = c(tok, cache).argmax(-1, keepdim=True)
            out.append(tok.item())
    return out, len(cache)


@program(graphs=3)
def generator_pipeline(compile):
    def batches(data, n):
        it = iter(data)
        while chunk := list(itertools.islice(it, n)):
            yield torch.stack(chunk)

    def augment(bs, scale):
        for b in bs:
            yield b * scale
            yield b.flip(-1)

    @compile
    def run(data, n, scale):
        return [b.mean(0) + i for i, b in enumerate(augment(batches(data, n), scale))]

    d = [torch.randn(3) for _ in range(5)]
    return run(d, 2, 0.5), run(d, 3, 0.25), run(d, 2, 0.125)


@program(graphs=4)
def exceptions_control(compile):
    class NotConverged(Exception):
        def __init__(self, x, it):
            super().__init__(f"after {it}")
            self.x, self.it = x, it

    @compile
    def newton(x, f, df, tol, most):
        for i in range(most):
            d = f(x) / df(x)
            x = x - d
            if d.abs().max() < tol:
                return x, i
        raise NotConverged(x, most)

    out = []
    for most in (2, 3, 20):
        try:
            out.append(newton(torch.tensor([1.0, 2.0]), lambda x: x**2 - 2, lambda x: 2 * x, 1e-5, most))
        except NotConverged as e:
            out.append((str(e), e.x, e.it))
    return out


@program(graphs=2)
def state_dict_roundtrip(compile):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.bn = nn.BatchNorm1d(4)
            self.register_buffer("n", torch.tensor(0))
            self.extra = {"k": 1}

        def forward(self, x):
            self.n += 1
            return self.bn(self.a(x)) * self.n

        def get_extra_state(self):
            return self.extra

        def set_extra_state(self, s):
            self.extra = s

    m = Net()
    c = compile(m)
    out = [c(torch.randn(3, 4)) for _ in range(2)]
    b = io.BytesIO()
    torch.save(m.state_dict(), b)
    b.seek(0)
    m2 = Net()
    m2.load_state_dict(torch.load(b, weights_only=False))
    c2 = compile(m2)
    out.append(c2(torch.ones(3, 4)))
    out.append(m2.extra)
    m.load_state_dict(m2.state_dict())
    out.append(c(torch.ones(3, 4)))
    m3 = copy.deepcopy(m)
    out.append(compile(m3)(torch.ones(3, 4)))
    out.append([m.n, m2.n, m3.n])
    m.double()
    out.append(c(torch.ones(3, 4, dtype=torch.float64)))
    return out


@program(graphs=4)
def enum_dispatch(compile):
    class Act(enum.Enum):
        RELU = "relu"
        GELU = "gelu"
        NONE = None

        def __call__(self, x):
            return x if self.value is None else getattr(F, self.value)(x)

        @classmethod
        def parse(cls, s):
            return cls[s.upper()] if s else cls.NONE

    class Flag(enum.Flag):
        NORM = enum.auto()
        SCALE = enum.auto()
        BIAS = enum.auto()

    @compile
    def f(x, act, flags):
        y = Act.parse(act)(x)
        if Flag.NORM in flags:
            y = y / y.norm()
        if flags & Flag.SCALE:
            y = y * 2
        match flags:
            case Flag.BIAS:
                y = y + 1
            case Flag.NORM | Flag.SCALE:
                y = y - 1
        return y, Act.parse(act), int(flags.value)

    x = torch.randn(4)
    r = []
    for a, fl in (("relu", Flag.NORM), ("gelu", Flag.NORM | Flag.SCALE), ("", Flag.BIAS), ("relu", Flag.SCALE)):
        y, e, v = f(x, a, fl)
        r.append((y, e.name, v))
    return r


@program(graphs=7)
def lru_and_partial(compile):
    calls = []

    @functools.cache
    def table(n, base):
        calls.append(n)
        return torch.tensor([base**i for i in range(n)])

    @functools.singledispatch
    def enc(v, x):
        return x

    @enc.register
    def _(v: int, x):
        return x * v

    @enc.register(str)
    def _(v, x):
        return x + len(v)

    @compile
    def f(x, v):
        return enc(v, functools.partial(torch.add, alpha=2)(x, table(x.numel(), 0.5)))

    r = [f(torch.randn(n), v) for n, v in ((3, 2), (3, "ab"), (4, None), (3, 5), (4, "abc"))]
    return r, calls


@program(graphs=2)
def tree_lstm(compile):
    @dataclasses.dataclass
    class Node:
        word: int
        left: typing.Any = None
        right: typing.Any = None

    class Tree(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(7, 4)
            self.w = nn.Linear(8, 4)

        def forward(self, n):
            if n.left is None:
                return self.e(torch.tensor(n.word))
            return torch.tanh(self.w(torch.cat([self(n.left), self(n.right)]))) + self.e.weight[n.word]

    m = Tree()
    c = compile(m)
    o = torch.optim.Adam(m.parameters(), 0.05)
    out = []
    for t in (Node(0, Node(1), Node(2)), Node(3, Node(4, Node(1), Node(5)), Node(2)), Node(0, Node(1), Node(2))):
        value = c(t).pow(2).sum()
        out.append(train(o, value))
    return out


@program(graphs=2)
def hyper_network(compile):
    class Hyper(nn.Module):
        def __init__(self):
            super().__init__()
            self.g = nn.Linear(3, 4 * 2 + 2)
            self.shapes = collections.OrderedDict(w=(2, 4), b=(2,))

        def forward(self, z, x):
            flat = self.g(z)
            i = 0
            ps = {}
            for k, s in self.shapes.items():
                n = math.prod(s)
                ps[k] = flat[i : i + n].view(s)
                i += n
            return F.linear(x, **{"weight": ps["w"], "bias": ps["b"]}), {k: v.norm() for k, v in ps.items()}

    m = Hyper()
    c = compile(m)
    o = torch.optim.NAdam(m.parameters(), 0.01)
    out = []
    for i in range(3):
        y, n = c(torch.randn(3), torch.randn(2 + i, 4))
        value = y.pow(2).mean() + 0.1 * sum(n.values())
        out.append(train(o, value))
    return out


@program(graphs=2)
def context_stack(compile):
    log = []

    @contextlib.contextmanager
    def scope(name, scale):
        log.append(f"enter {name}")
        try:
            yield scale
        except ZeroDivisionError as e:
            log.append(f"caught {e}")
        finally:
            log.append(f"exit {name}")

    @compile
    def f(x, names, bad):
        with contextlib.ExitStack() as st:
            for i, n in enumerate(names):
                x = x * st.enter_context(scope(n, i + 1.5))
            st.callback(log.append, "cb")
            if bad:
                raise ZeroDivisionError("none")
            x = x + 1
        with contextlib.suppress(KeyError):
            x = x + {}["a"]
        return x

    return [f(torch.ones(2), ["a", "b"], b) for b in (False, True, False)], log


@program(graphs=3)
def adversarial(compile):
    m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    o = torch.optim.SGD(m.parameters(), 0.1, weight_decay=1e-3)

    @compile
    def pgd(x, y, eps, alpha, steps):
        d = torch.zeros_like(x).uniform_(-eps, eps)
        for _ in range(steps):
            d = d.detach().requires_grad_()
            (g,) = torch.autograd.grad(F.cross_entropy(m(x + d), y), d)
            d = (d + alpha * g.sign()).clamp(-eps, eps)
        return (x + d).detach()

    out = []
    for i in range(3):
        x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
        a = pgd(x, y, 0.1 + 0.05 * i, 0.02, 2)
        value = F.cross_entropy(m(a), y)
        train(o, value)
        out += [value.item(), a]
    return out


@program(graphs=12)
def curriculum(compile):
    m = nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True, dropout=0.2)
    h = nn.Linear(10, 1)
    o = torch.optim.AdamW([{"params": m.parameters(), "lr": 1e-2}, {"params": h.parameters(), "lr": 1e-1}])
    s = torch.optim.lr_scheduler.OneCycleLR(o, [1e-2, 1e-1], total_steps=6)

    @compile
    def step(x, lens, p):
        pk = nn.utils.rnn.pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
        y, _ = m(pk)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        mask = torch.arange(y.shape[1])[None] < lens[:, None]
        return (h(F.dropout(y, p, True)).squeeze(-1) * mask).sum() / mask.sum()

    out = []
    for i in range(5):
        value = step(torch.randn(3, 4 + i, 3), torch.tensor([4 + i, 2, 3]), 0.1 * i)
        o.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        s.step()
        out.append((value.item(), s.get_last_lr()))
    return out


@program(graphs=6)
def replay_and_target(compile):
    class Sum:
        def __init__(self, n):
            self.t = [0.0] * (2 * n)
            self.n = n
            self.d = [None] * n
            self.i = 0

        def add(self, p, v):
            j = self.i + self.n
            self.d[self.i] = v
            self.i = (self.i + 1) % self.n
            self.t[j] = p
            while j > 1:
                j //= 2
                self.t[j] = self.t[2 * j] + self.t[2 * j + 1]

        def get(self, s):
            j = 1
            while j < self.n:
                j *= 2
                (s := s) if s <= self.t[j] else (j := j + 1, s := s - self.t[j - 1])
            return self.d[j - self.n]

    b = Sum(4)

    @compile
    def push(x, p):
        b.add(p, x * 2)
        return b.t[1]

    out = [push(torch.randn(2), p) for p in (0.5, 1.0, 0.25, 2.0, 0.125, 3.0)]
    return out, b.t, b.d, b.i


@program(graphs=6)
def flow_matching(compile):
    class Coupling(nn.Module):
        def __init__(self, d, flip):
            super().__init__()
            self.f = flip
            self.n = nn.Sequential(nn.Linear(d // 2, 8), nn.Tanh(), nn.Linear(8, d))

        def forward(self, x, rev=False):
            a, b = x.chunk(2, -1)
            if self.f:
                a, b = b, a
            s, t = self.n(a).chunk(2, -1)
            s = s.tanh()
            b = (b - t) * (-s).exp() if rev else b * s.exp() + t
            return torch.cat((b, a) if self.f else (a, b), -1), (-s if rev else s).sum(-1)

    ls = nn.ModuleList(Coupling(4, i % 2 == 1) for i in range(4))

    @compile
    def nll(x):
        ld = x.new_zeros(len(x))
        for layer in ls:
            x, d = layer(x)
            ld = ld + d
        return -(torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(-1) + ld).mean()

    @compile
    def sample(n, temp):
        z = torch.randn(n, 4) * temp
        with torch.no_grad():
            for layer in reversed(ls):
                z, _ = layer(z, rev=True)
        return z

    o = torch.optim.Adamax(ls.parameters())
    out = []
    for i in range(3):
        value = nll(torch.randn(4 + i, 4))
        out.append(train(o, value))
    return out, sample(2, 0.7), sample(3, 1.0), sample(4, 0.5)


@program(graphs=17)
def detection_nms(compile):
    def iou(a, b):
        lt = torch.max(a[:, None, :2], b[None, :, :2])
        rb = torch.min(a[:, None, 2:], b[None, :, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh.prod(-1)

        def area(t):
            return (t[:, 2:] - t[:, :2]).prod(-1)

        return inter / (area(a)[:, None] + area(b)[None] - inter)

    @compile
    def nms(boxes, scores, thr):
        keep = []
        order = scores.argsort(descending=True)
        while order.numel() > 0:
            i = order[0]
            keep.append(int(i))
            if order.numel() == 1:
                break
            order = order[1:][iou(boxes[i][None], boxes[order[1:]])[0] <= thr]
        return keep

    out = []
    for n in (5, 8):
        p = torch.rand(n, 2)
        out.append(nms(torch.cat([p, p + torch.rand(n, 2)], 1), torch.rand(n), 0.3))
    return out


@program(graphs=4)
def warn_and_log(compile):
    lg = logging.getLogger("prog")
    lg.setLevel(logging.INFO)
    lg.propagate = False
    seen = []

    class H(logging.Handler):
        def emit(self, r):
            seen.append((r.levelname, r.getMessage()))

    h = H()
    lg.addHandler(h)

    @compile
    def f(x, k):
        lg.info("shape %s k=%d", tuple(x.shape), k)
        if k > 2:
            warnings.warn(f"large {k}", stacklevel=1)
        lg.debug("never")
        if lg.isEnabledFor(logging.WARNING):
            lg.warning("w %.2f", k / 3)
        return x * k

    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        r = [f(torch.ones(2 + k), k) for k in range(1, 5)]
    lg.removeHandler(h)
    return r, seen, [str(i.message) for i in w]


@program(graphs=6)
def mutating_globals(compile):
    ns = types.SimpleNamespace(step=0, ema=None, hist=collections.deque(maxlen=3), best={"v": None})

    @compile
    def track(x):
        ns.step += 1
        ns.ema = x.mean() if ns.ema is None else 0.9 * ns.ema + 0.1 * x.mean()
        ns.hist.append(ns.step)
        if ns.best["v"] is None or ns.step % 2:
            ns.best = {**ns.best, "v": x.max(), f"s{ns.step}": ns.step}
        return ns.ema * ns.step

    r = [track(torch.randn(3)) for _ in range(6)]
    return r, ns.step, list(ns.hist), ns.best


@program(graphs=3)
def mixed_inplace(compile):
    @compile
    def f(x, buf, i):
        v = buf[i]
        v.add_(x.sum())
        buf[i + 1 :].mul_(2)
        y = buf.t()
        y[0] = 7
        z = x.clone()
        z[z > 0] = 0
        w = z.view(-1)[::2]
        w += 1
        x.data.mul_(1.5)
        return buf, y, z, w, v

    b = torch.zeros(4, 3)
    x = torch.randn(2, 3)
    out = []
    for i in (0, 1, 2):
        out.append([t.clone() for t in f(x, b, i)])
    return out, b, x


@program(graphs=4)
def multi_task(compile):
    class Heads(nn.ModuleDict):
        def forward(self, x, tasks=None, **w):
            return {k: m(x) * w.get(k, 1.0) for k, m in self.items() if tasks is None or k in tasks}

    body = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.PReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    heads = Heads({"cls": nn.Linear(4, 3), "reg": nn.Linear(4, 1)})
    logs = nn.ParameterDict({k: nn.Parameter(torch.zeros(())) for k in heads})
    ps = [*body.parameters(), *heads.parameters(), *logs.parameters()]
    o = torch.optim.RAdam(ps, 0.01)

    @compile
    def loss(x, t, tasks, **w):
        ys = heads(body(x), tasks, **w)
        tot = 0.0
        d = {}
        for k, y in ys.items():
            value = F.cross_entropy(y, t["cls"]) if k == "cls" else F.huber_loss(y.squeeze(-1), t["reg"])
            d[k] = value.detach()
            tot = tot + torch.exp(-logs[k]) * value + logs[k]
        return tot, d

    out = []
    for i, ts in enumerate((None, ("cls",), {"reg"}, None)):
        value, d = loss(
            torch.randn(3, 2, 5 + i), {"cls": torch.randint(0, 3, (3,)), "reg": torch.randn(3)}, ts, reg=0.5
        )
        out.append((train(o, value), d))
    return out


@program(graphs=2)
def swa_and_ema(compile):
    m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    avg = torch.optim.swa_utils.AveragedModel(m)
    o = torch.optim.SGD(m.parameters(), 0.1)
    s = torch.optim.swa_utils.SWALR(o, swa_lr=0.05)
    c = compile(m)
    ca = compile(avg)
    out = []
    for _i in range(4):
        value = c(torch.randn(4, 3)).pow(2).mean()
        train(o, value)
        avg.update_parameters(m)
        s.step()
        out.append(value.item())
    torch.optim.swa_utils.update_bn([torch.randn(4, 3) for _ in range(2)], avg)
    avg.eval()
    out.append(ca(torch.ones(2, 3)))
    out.append(avg.n_averaged)
    return out
