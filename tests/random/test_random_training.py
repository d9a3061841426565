"""Random modules in random training steps, called with changing sizes, modes, hooks and parameters: all that can be seen is eager's."""

import random
import sys
import types

import cutaway
import pytest
import torch


def program(seed):
    """A module, a step that trains it, and a driver that calls the step and changes things in between."""
    r, L = random.Random(seed), []
    D = 4
    layers = []
    L += [
        "class M(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        f"        self.emb = nn.Embedding(5, {D})",
    ]
    kinds = ["lin", "lin", "ln", "bn", "drop", "par", "gelu", "tied", "bnfix"]
    makers = {
        "lin": lambda: f"nn.Linear({D}, {D}, bias={r.random() < 0.6})",
        "ln": lambda: f"nn.LayerNorm({D})",
        "bn": lambda: f"nn.BatchNorm1d({D}, momentum={r.choice([0.1, None])}, affine={r.random() < 0.6})",
        "bnfix": lambda: f"nn.BatchNorm1d({D}, track_running_stats=False)",
        "drop": lambda: "nn.Dropout(0.5)",
        "par": lambda: f"nn.Parameter(torch.randn({D}))",
        "gelu": lambda: r.choice(["nn.GELU()", "nn.ReLU()", "nn.Tanh()", "nn.ReLU(inplace=True)"]),
        "tied": lambda: f"nn.Linear({D}, 5, bias=False)",
    }
    n = r.randint(1, 4)
    for i in range(n):
        k = r.choice(kinds)
        layers.append(k)
        L.append(f"        self.l{i} = {makers[k]()}")
        if k == "tied":
            L.append(f"        self.l{i}.weight = self.emb.weight")
    L += [
        "        self.register_buffer('count', torch.zeros(()))",
        "        self.register_buffer('hist', torch.zeros(3))",
        "        self.calls = 0",
    ]
    L += ["    def forward(self, x, ids=None):", "        h = x"]
    L.append("        if ids is not None: h = h + self.emb(ids)")
    for i, k in enumerate(layers):
        a = r.random()
        if k == "par":
            L.append(f"        h = h {r.choice('+*')} self.l{i}")
        elif k == "tied":
            L.append(f"        h = self.l{i}(h) @ self.emb.weight")
        else:
            L.append(f"        h = self.l{i}(h)")
        if a < 0.3:
            L.append(
                "        "
                + r.choice(
                    [
                        "self.count += 1",
                        "self.calls += 1",
                        "self.hist[self.calls % 3] += h.detach().mean()",
                        "self.hist = self.hist * 0.5 + h.detach().sum()",
                        "h = h.detach() + h",
                        "h = h + self.emb.weight[0]",
                        "h = h * self.emb.weight.view(-1)[:4]",
                        "self.count.add_(h.shape[0])",
                        "h.register_hook(lambda g: g * 2) if h.requires_grad else None",
                        "with torch.no_grad(): self.emb.weight.mul_(0.9)",
                        "with torch.no_grad(): self.hist.copy_(h.sum(0)[:3])",
                        "h = h + self.hist.sum() * 0.01",
                        "h = torch.cat([h, h * 2], 1)[:, :4]",
                        "h = F.dropout(h, 0.3, self.training)",
                        "h = h / (h.shape[0])",
                        "h = h.view(-1, 4).t().contiguous().t()",
                        "if h.shape[0] > 3: h = h * 1.5",
                        "h = h + (1 if self.training else 2)",
                        "h = h + (1 if self.emb.weight.requires_grad else 2)",
                        "h = h + (1 if h.requires_grad else 2)",
                        "h = h + (0.0 if self.emb.weight.grad is None else 0.5 * self.emb.weight.grad.sum())",
                        "h.retain_grad() if h.requires_grad else None",
                        "h = h * torch.rand(())",
                        "self.hist = h.detach()[0, :3]",
                        "self.last = h",
                        "h = h + torch.randn_like(h)",
                        "h = h + self.emb.weight.data[1]",
                        "h = h.clone(); h[0] = 0",
                        "h = h.clone(); h[:, 0].mul_(2)",
                        "h = torch.relu_(h.clone())",
                    ]
                )
            )
        if r.random() < 0.2:
            L.append("        brk()")
    L.append("        return h")
    # step
    L.append("def step(m, x, ids, mode):")
    loss = r.choice(
        [
            "(o ** 2).mean()",
            "o.sum()",
            "F.mse_loss(o, x * 2)",
            "F.cross_entropy(o, torch.zeros(o.shape[0], dtype=torch.long))",
        ]
    )
    inside = r.random() < 0.5
    if inside:
        L += ["    o = m(x, ids)"]
        if r.random() < 0.3:
            L.append("    brk()")
        L += [f"    loss = {loss}"]
        back = r.random()
        if back < 0.5:
            L += ["    if loss.requires_grad: loss.backward()"]
            if r.random() < 0.3:
                L += [
                    "    with torch.no_grad():",
                    "        for p in m.parameters():",
                    "            if p.grad is not None: p -= 0.1 * p.grad",
                ]
            if r.random() < 0.2:
                L += ["    for p in m.parameters(): p.grad = None"]
        elif back < 0.65:
            L += ["    if loss.requires_grad: loss.backward(retain_graph=True); loss.backward()"]
        L += ["    return o, loss"]
    else:
        L += ["    o = m(x, ids)", f"    return o, {loss}"]
    L += ["def drive(wrap, desc):", "    log = []", "    m = M()"]
    target = r.random()
    if target < 0.6:
        L += ["    f = wrap(step)"]
    elif target < 0.8:
        L += ["    mm = wrap(m)", "    f = lambda m, x, ids, mode: step(mm, x, ids, mode)"]
    else:
        L += ["    m.forward = wrap(m.forward)", "    f = step"]
    if r.random() < 0.2:
        L += ["    m.register_forward_hook(lambda mod, a, o: o * 1.5)"]
    if r.random() < 0.15:
        L += ["    m.register_forward_pre_hook(lambda mod, a: (a[0] + 1,) + a[1:])"]
    if r.random() < 0.1:
        L += ["    m.emb.weight.register_hook(lambda g: g * 2)"]
    if r.random() < 0.1:
        L += ["    m.emb.weight.register_post_accumulate_grad_hook(lambda p: log.append(('post', desc(p.grad))))"]
    if r.random() < 0.1:
        L += ["    m.emb.register_full_backward_hook(lambda mod, gi, go: log.append(('bw', desc(go))))"]
    usids = r.random() < 0.5
    changes = [
        "m.eval()",
        "m.train()",
        "m.emb.weight.requires_grad_(False)",
        "m.emb.weight.requires_grad_(True)",
        "m.requires_grad_(False)",
        "m.requires_grad_(True)",
        "m.zero_grad()",
        "m.zero_grad(set_to_none=False)",
        "m.emb.weight.data.mul_(0.5)",
        "m.emb = nn.Embedding(5, 4)",
        "m.emb.weight = nn.Parameter(torch.randn(5, 4))",
        "m.hist = torch.zeros(3)",
        "m.count.zero_()",
        "m.l0 = m.l0",
        "m.hist.data = torch.ones(3)",
        "m.register_forward_hook(lambda mod, a, o: o + 1)",
        "m.calls = 5",
        "m.double().float()",
        "m.load_state_dict({k: v * 0.9 if v.is_floating_point() else v for k, v in m.state_dict().items()})",
        "m._forward_hooks.clear()",
        "hooks.append(m.emb.register_forward_hook(lambda mod, a, o: o * 0.5))",
        "hooks and hooks.pop().remove()",
        "m.emb.weight.grad = torch.ones(5, 4)",
        "[setattr(c, 'p', 0.2) for c in m.modules() if isinstance(c, nn.Dropout)]",
        "[setattr(c, 'eps', 0.01) for c in m.modules() if isinstance(c, (nn.LayerNorm, nn.BatchNorm1d))]",
        "[c.reset_running_stats() for c in m.modules() if isinstance(c, nn.BatchNorm1d)]",
        "m.hist.requires_grad_(True)",
        "m.last = None",
        "m.emb.weight.data = m.emb.weight.data.t().contiguous().t()",
        "torch.set_grad_enabled(not torch.is_grad_enabled())",
    ]
    L.append("    hooks = []; keep = []")
    style = r.random()
    for _ in range(r.randint(4, 8)):
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            L.append("    " + r.choice(changes))
        b = r.randint(1, 6) if style < 0.6 else 3
        if r.random() < 0.1:
            L.append(f"    x = torch.randn(4, {b}).t()")
        else:
            L.append(f"    x = torch.randn({b}, 4)")
        if r.random() < 0.4:
            L.append("    x.requires_grad_(True)")
        if r.random() < 0.1:
            L.append("    x = x * 2")
        if r.random() < 0.06:
            L.append("    x = x.double()")
        L.append(f"    ids = {'torch.arange(' + str(b) + ') % 5' if usids and r.random() < 0.9 else 'None'}")
        cm = r.choice(["True"] * 6 + ["False"])
        L += [
            "    try:",
            f"        with torch.set_grad_enabled({cm} and torch.is_grad_enabled()):",
            "            o, loss = f(m, x, ids, 0)",
            "        log.append(desc((o, loss)))",
        ]
        if not inside or back >= 0.65:
            k = r.random()
            if k < 0.5:
                L.append("        if loss.requires_grad: loss.backward()")
            elif k < 0.7:
                L.append("        if loss.requires_grad: loss.backward(retain_graph=True); loss.backward()")
            elif k < 0.8:
                L += [
                    "        if loss.requires_grad:",
                    "            ps = [p for p in list(m.parameters()) + [x] if p.requires_grad]",
                    "            gs = torch.autograd.grad(loss, ps, create_graph=not AOT, allow_unused=True)",
                    "            log.append(desc(gs))",
                    "            s = sum((g ** 2).sum() for g in gs if g is not None)",
                    "            if isinstance(s, torch.Tensor) and s.requires_grad: s.backward()",
                ]
            elif k < 0.9:
                L += [
                    "        keep.append(loss)",
                    "        if len(keep) > 1:",
                    "            q = sum(keep); keep = []",
                    "            if q.requires_grad: q.backward()",
                ]
        L += ["    except Exception as e: log.append(('raised', type(e).__name__, str(e)[:50]))"]
        L += [
            "    log.append(desc(dict(m.named_parameters()))); log.append(desc(dict(m.named_buffers()))); log.append(desc(x)); log.append((m.calls, torch.is_grad_enabled())); log.append(desc(getattr(m, 'last', None)))"
        ]
        if r.random() < 0.2:
            L.append(
                "    with torch.no_grad():\n        for p in m.parameters():\n            if p.grad is not None: p.add_(p.grad, alpha=-0.05)"
            )
    L += ["    torch.set_grad_enabled(True)", "    return log"]
    return "\n".join(L)


def seen(value, versions):
    if isinstance(value, torch.Tensor):
        grad = None if not value.is_leaf or value.grad is None else value.grad.flatten().tolist()
        version = value._version if versions else None
        return (
            tuple(value.shape),
            str(value.dtype),
            value.requires_grad,
            value.is_leaf,
            value.detach().flatten().tolist(),
            grad,
            version,
        )
    if isinstance(value, (list, tuple)):
        return [seen(v, versions) for v in value]
    if isinstance(value, dict):
        return [(k, seen(v, versions)) for k, v in value.items()]
    return value


def is_near(a, b):
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 * (1 + abs(a))
    return a == b


def run(text, seed, backend, wrap):
    module = types.ModuleType("program")
    module.__dict__.update(
        torch=torch, nn=torch.nn, F=torch.nn.functional, AOT=backend == "aot_eager", brk=lambda: sys.getrefcount(None)
    )
    torch.manual_seed(seed)
    exec(compile(text, f"/training_{seed}.py", "exec"), module.__dict__)
    try:
        log = module.drive(
            wrap, lambda value: seen(value, backend == "eager")
        )  # ahead of time a written input is written to once
    finally:
        torch.set_grad_enabled(True)
    return [*log, int(torch.get_rng_state().sum())]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("seed", [27, 58, 103, 117, 120, 150, 155, 172, 201, 202, 203, 204])
def test_training_steps(seed, backend):
    text = program(seed)
    expected = run(text, seed, backend, lambda f: f)
    cutaway.reset()
    found = run(text, seed, backend, lambda f: cutaway.compile(f, backend=backend))
    assert len(found) == len(expected)
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert is_near(a, b), f"item {number} of\n{text}"
