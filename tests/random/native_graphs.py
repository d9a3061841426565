"""Random programs of operators through the backend native: `python -m tests.random.native_graphs --count 10000 --jobs 2 [--first SEED] [--device cuda]`.

A program is a list of steps over tensors of related shapes: pointwise functions, broadcasting, views, reductions over any axes, norms, products,
mixed dtypes, empty tensors. It runs eagerly, compiled, and eagerly in fp64; results must agree by the rules of `cutaway.same`, integers and truths
exactly. `--show SEED` prints a program. With `--sizes N` each program is compiled once with symbolic sizes and runs at N more choices of them.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys

DEVICE = os.environ.get("CUTAWAY_TEST_DEVICE", "cpu")

POINTWISE = ["x.tanh()", "x.sin()", "x.cos()", "x.sigmoid()", "x.abs() + 0.1", "(x.abs() + 0.5).rsqrt()", "(x.abs() + 0.5).log()", "x.clamp(-1, 1)", "x.relu()", "F.gelu(x)", "F.silu(x)", "x.exp().clamp(max=5)", "x.erf()", "-x", "x * 0.5", "x + 1", "2 - x", "x / 3", "x ** 2 * 0.1", "(x.square() + 0.1).sqrt()", "torch.where(x > 0, x, 0.1 * x)", "x.masked_fill(x > 1, 0.5)", "x.float()", "x.round() * 0.1", "x.floor() * 0.1", "F.leaky_relu(x, 0.2)", "x.neg().clone()", "F.gelu(x, approximate='tanh')", "torch.zeros_like(x) + x", "x.atan()", "F.elu(x)", "F.softplus(x)", "F.logsigmoid(x)", "F.hardtanh(x)", "x.lerp(x * 2, 0.3)", "x.log1p().nan_to_num() if False else x.abs().log1p()", "F.hardswish(x)", "F.mish(x)", "x.nan_to_num()"]  # fmt: skip
BINARY = ["x + y", "x - y", "x * y", "x / (y.abs() + 1)", "torch.maximum(x, y)", "torch.minimum(x, y)", "torch.where(x > y, x, y * 0.5)", "torch.where((x > 0) & (y > 0), x, -y)", "torch.add(x, y, alpha=0.3)", "torch.addcmul(x, x, y, value=0.2)", "x.lerp(y, 0.3) if x.dtype == y.dtype else x + y", "(x < y).to(x.dtype) + x", "(x.detach() == y).float() + x"]  # fmt: skip
INDEX = ["x[torch.arange(9) * 7 % x.shape[0]] if x.dim() and x.shape[0] else x", "x[torch.arange(6).view(2, 3) % x.shape[0], ..., torch.arange(3) % x.shape[-1]] if x.dim() > 1 and x.numel() else x", "torch.cat([-x, x * 2, x], -1) if x.dim() else x", "torch.cat([x[1:], x[:1]], 0) if x.dim() else x", "F.pad(x, (1, 2))", "F.pad(x + 1, (0, 1, 2, 0), value=0.5) if x.dim() > 1 else x", "x.tril() if x.dim() > 1 else x", "x.triu(1) if x.dim() > 1 else x", "x.flip(0) if x.dim() else x", "torch.stack([x, -x], -1)", "x.roll(1, 0) if x.dim() else x", "x.index_select(-1, torch.arange(x.shape[-1] - 1, -1, -1)) if x.dim() and x.shape[-1] else x", "x * torch.arange(x.shape[-1]) if x.dim() else x", "x.gather(-1, (torch.arange(x.shape[-1]) * 5 % x.shape[-1]).expand(x.shape)) if x.dim() and x.numel() else x", "F.dropout(x, 0.0) + x", "torch.slice_scatter(x, x[:1] * 2, 0, 0, 1) if x.dim() and x.shape[0] else x", "torch.where(torch.arange(x.shape[-1]) < 3, x, y.detach().to(x.dtype).sum() * 0) if x.dim() else x"]  # fmt: skip
VIEWS = ["x.transpose(0, -1)", "x.flatten()", "x.unsqueeze(0)", "x.unsqueeze(-1)", "x.squeeze()", "x.permute(tuple(reversed(range(x.dim()))))", "x[..., : x.shape[-1] // 2 + 1]", "x[1:] if x.dim() and x.shape[0] > 1 else x", "x[..., ::2] if x.dim() else x", "x.select(0, 0) if x.dim() and x.shape[0] else x", "x.reshape(-1, x.shape[-1]) if x.dim() else x", "x.expand(2, *x.shape)", "x.contiguous()", "x.reshape(x.shape[0], -1) if x.dim() and x.numel() else x", "torch.cat([x, x * 2], -1) if x.dim() else x", "torch.stack([x, x + 1])", "x.mT.contiguous().mT if x.dim() > 1 else x", "x.split(2, -1)[0] if x.dim() else x", "x.chunk(2, 0)[-1] if x.dim() else x"]  # fmt: skip
REDUCE = ["x.sum(d, keepdim=k)", "x.mean(d, keepdim=k)", "x.amax(d, keepdim=k) if x.numel() else x.sum(d)", "x.amin(d, keepdim=k) if x.numel() else x.sum(d)", "(x > 0).sum(d, keepdim=k).to(x.dtype)", "(x * x).mean(d, keepdim=k)", "x.sum()", "x.mean()", "x.var(d, keepdim=k, correction=0)", "x.std(d, keepdim=k) if x.numel() > 50 else x.sum(d)", "x.logsumexp(d, keepdim=k) if x.dim() else x", "(x * 0.1 + 1).prod(e, keepdim=k) if x.dim() else x", "x.max(e, keepdim=k).values if x.dim() and x.numel() else x", "F.mse_loss(x, x.detach() * 0.5)", "F.cross_entropy(x, torch.arange(x.shape[0]) % x.shape[1]) if x.dim() == 2 and x.numel() else x.sum()", "F.smooth_l1_loss(x, x.detach() * 0.5)", "F.binary_cross_entropy_with_logits(x, x.detach().sigmoid())", "F.kl_div(x, x.detach().sigmoid(), reduction='sum') * 0.01"]  # fmt: skip
ROWS = ["torch.softmax(x, e)", "torch.log_softmax(x, e)", "F.layer_norm(x, x.shape[-1:])", "x - x.mean(e, keepdim=True)", "x * (x.pow(2).mean(-1, keepdim=True) + 1e-3).rsqrt()", "x - x.amax(e, keepdim=True) if x.numel() else x", "x / (x.abs().sum(e, keepdim=True) + 1)", "x.cumsum(e)", "(x * 0.1 + 1).cumprod(e)", "x.logcumsumexp(e)", "x.flip(-1).cumsum(-1) if x.dim() else x", "F.batch_norm(x, None, None, training=True, eps=0.1) if x.dim() > 1 and x.numel() > x.shape[1] else x", "x.repeat(2, *[1] * (x.dim() - 1)) if x.dim() else x", "F.normalize(x, dim=-1, eps=0.1) if x.dim() else x", "F.group_norm(x, 1, eps=0.1) if x.dim() > 2 and x.numel() else x", "F.max_pool2d(x, 2, 1, 1) if x.dim() in (3, 4) and x.numel() else x", "F.avg_pool2d(x, 3, 1, 1) if x.dim() in (3, 4) and x.numel() else x", "F.interpolate(x, scale_factor=2) if x.dim() == 4 and x.numel() else x", "F.glu(x, -1) if x.dim() and x.shape[-1] % 2 == 0 else x", "x.roll((1, -2), (0, -1)) if x.dim() > 1 else x"]  # fmt: skip
PRODUCTS = ["x @ torch.ones(x.shape[-1], 3, dtype=x.dtype, device=x.device) * 0.1", "x @ x.mT * 0.1 if x.dim() > 1 else x", "F.linear(x, torch.full((5, x.shape[-1]), 0.1, dtype=x.dtype, device=x.device), torch.arange(5, dtype=x.dtype, device=x.device))"]  # fmt: skip
SHAPES = [
    (4, 6),
    (6,),
    (4, 1),
    (1, 6),
    (),
    (3, 4, 6),
    (3, 1, 6),
    (17, 33),
    (33,),
    (17, 1),
    (2, 5, 16),
    (16,),
    (5, 16),
    (64, 40),
    (40,),
    (2, 0, 3),
    (1,),
    (2, 3, 4, 5),
    (128, 70),
    (3000,),
]


def program(seed):
    """The text of a function and the sizes and dtypes of its inputs."""
    dice = random.Random(seed)
    shapes = dice.sample(SHAPES, 3)
    inputs = [
        (f"a{i}", dice.choice(shapes), dice.choice(["float32"] * 6 + ["float64", "bfloat16"]))
        for i in range(dice.randint(2, 4))
    ]
    names, lines = [n for n, _, _ in inputs], []
    for i in range(dice.randint(4, 28)):
        x, y = dice.choice(names[-6:]), dice.choice(names)
        kind = dice.choices(
            ["pointwise", "binary", "view", "index", "reduce", "rows", "product"], [8, 6, 4, 3, 3, 3, 1]
        )[0]
        text = dice.choice(
            {
                "pointwise": POINTWISE,
                "binary": BINARY,
                "view": VIEWS,
                "index": INDEX,
                "reduce": REDUCE,
                "rows": ROWS,
                "product": PRODUCTS,
            }[kind]
        )
        axes, keep, axis = dice.random(), dice.random() < 0.5, dice.choice([-1, -1, 0])
        lines.append((f"v{i}", text, x, y, axes, keep, axis))
        names.append(f"v{i}")
    returned = dice.sample(names[len(inputs) :], min(3, len(lines))) + names[-1:]
    return inputs, lines, list(dict.fromkeys(returned))


def source(seed):
    """A function without choices: it is run eagerly on the way, and what does not fit is left out."""
    import torch
    import torch.nn.functional as F

    inputs, lines, returned = program(seed)
    values = {}
    for n, shape, dtype in inputs:
        values[n] = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(getattr(torch, dtype))
    text = [f"def f({', '.join(n for n, _, _ in inputs)}):"]
    for name, expression, x, y, axes, keep, axis in lines:
        a, b = values[x], values[y]
        rank = a.dim()
        some = [d for d in range(rank) if int(axes * 997 * (d + 1)) % 2] or list(range(rank))[:1]
        env = {"x": a, "y": b, "d": some, "k": keep, "e": axis if rank else 0, "torch": torch, "F": F}
        words = {"x": x, "y": y, "d": some, "k": keep, "e": env["e"]}
        try:
            result = eval(expression, env)  # noqa: S307 (our own words)
            if not isinstance(result, torch.Tensor) or result.numel() > 60000 or not result.is_floating_point():
                raise ValueError
        except Exception:
            result, line = a, f"    {name} = {x}"
        else:
            line = f"    x, y, d, k, e = {words['x']}, {words['y']}, {words['d']}, {words['k']}, {words['e']}\n    {name} = {expression}"
        values[name] = result
        text.append(line)
    return "\n".join([*text, f"    return {', '.join(returned)},"]) + "\n"


def at_turn(seed, turn, shape):
    """The same shape at other sizes: equal ones stay equal. Sizes of 0 and 1 stay what they are."""
    dice = random.Random(seed * 1000 + turn)
    other = {
        n: dice.choice([n + 1, n + 3, 2 * n, max(2, n - 1), n + 17]) for n in sorted({n for s in SHAPES for n in s})
    }
    return tuple(other[n] if turn and n > 1 else n for n in shape)


def check(seed, turns=0):
    """Empty, or what differs."""
    import cutaway
    import torch
    import torch.nn.functional as F

    inputs, _, _ = program(seed)
    space = {"torch": torch, "F": F}
    exec(compile(source(seed), f"<program {seed}>", "exec"), space)  # noqa: S102
    f = space["f"]
    cutaway.reset()
    compiled = cutaway.compile(f, backend="native:wait", dynamic=True if turns else None)
    for turn in range(1 + turns):
        torch.manual_seed(seed)
        given = []
        for i, (_, shape, dtype) in enumerate(inputs):
            t = torch.randn(at_turn(seed, turn, shape)).to(getattr(torch, dtype)).to(DEVICE)
            given.append(t.requires_grad_() if (seed + i) % 3 == 0 else t)
        try:
            f(*given)
        except Exception:
            continue  # sizes that fit by chance no longer do
        if problem := check_at(f, compiled, given):
            return f"{problem} (choice {turn} of sizes)" if turns else problem
    return ""


def check_at(f, compiled, given):
    """The same for these inputs."""
    import cutaway
    import torch

    wide = [t.detach().double().requires_grad_(t.requires_grad) for t in given]

    def run(function, values):
        outputs = list(function(*values))
        ends = [o for o in outputs if o.requires_grad]
        wanted = [v for v in values if v.requires_grad]
        gradients = (
            torch.autograd.grad(
                [o.square().mean() if o.numel() else o.sum() for o in ends],
                wanted,
                [torch.ones((), dtype=o.dtype, device=o.device) for o in ends],
                allow_unused=True,
            )
            if ends and wanted
            else []
        )
        return outputs, list(gradients)

    expected = run(f, given)
    reference = run(f, wide)
    for _ in range(1 if DEVICE == "cpu" else 5):  # on a card later calls are recorded ones
        got = run(compiled, given)
    for part, es, gs, rs in zip(("output", "gradient"), expected, got, reference, strict=True):
        for i, (e, g, r) in enumerate(zip(es, gs, rs, strict=True)):
            if e is None or g is None:
                if (e is None) != (g is None):
                    return f"{part} {i}: one is none"
                continue
            if (e.dtype, e.shape, e.requires_grad) != (g.dtype, g.shape, g.requires_grad) or (
                e.numel() and e.stride() != g.stride() and part == "output"
            ):
                return (
                    f"{part} {i}: {e.dtype} {tuple(e.shape)} {e.stride()} and {g.dtype} {tuple(g.shape)} {g.stride()}"
                )
            if torch.equal(e, g):
                continue
            narrow = torch.bfloat16 in (t.dtype for t in given)
            e, g, r = (t.detach() for t in (e, g, r))
            if not e.double().isfinite().all() and torch.equal(e.isfinite(), g.isfinite()):
                continue
            if cutaway.same(e, g, r.to(torch.float64), tol=2e-2 if narrow else 1e-4, equal_nan=True):
                continue
            # A step (a comparison, a rounding, a cut at 0) may turn a last digit into a whole one: then eager and fp64 differ as much.
            away = (e.double() - r).abs().max()
            if (e.double() - g.double()).abs().max() <= 4 * away:
                continue
            return f"{part} {i}: eager and native differ by {(e.double() - g.double()).abs().max():.3g}, eager and fp64 by {away:.3g}"
    return ""


def main():
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int)
    parser.add_argument("--sizes", type=int, default=0)
    parser.add_argument("--device", default=DEVICE)
    options = parser.parse_args()
    os.environ["CUTAWAY_TEST_DEVICE"] = DEVICE = options.device
    if options.show is not None:
        print(source(options.show))
        return 0
    if options.jobs > 1:
        share = -(-options.count // options.jobs)
        children = [subprocess.Popen([sys.executable, "-m", "tests.random.native_graphs", "--count", str(min(share, options.count - j * share)), "--first", str(options.first + j * share), "--sizes", str(options.sizes)]) for j in range(options.jobs)]  # fmt: skip
        return max(child.wait() for child in children)
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    bad = 0
    for seed in range(options.first, options.first + options.count):
        try:
            problem = check(seed, options.sizes)
        except Exception as error:  # the program itself is at fault only when eager raises, and it does not
            problem = f"{type(error).__name__}: {str(error)[:300]}"
        if problem:
            bad += 1
            print(f"seed {seed}: {problem}", flush=True)
    print(f"{options.count} programs from seed {options.first}: {bad} differ", flush=True)
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
