"""What the backend native chooses on a CUDA card: indices in kernels, joined products, channels last, cuDNN's batch norm, device asserts. Skips without a card."""

import subprocess
import sys

import cutaway
import pytest
import torch
import torch.nn.functional as F
from cutaway import _native
from torch import nn

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16
CALLS = 7  # the fourth and later ones are played back


def check(f, args, tolerance, settings="", reference=True):
    """Seven calls of the compiled program beside eager's, by the rules of `same`."""
    cutaway.reset()
    compiled = cutaway.compile(f, backend="native:wait" + settings, fullgraph=True)
    with torch.no_grad():
        expected = f(*args)
        wide = None
        if reference:
            double = [a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
            wide = f(*double)
        for _ in range(CALLS):
            got = compiled(*args)
            pairs = zip(*((x if isinstance(x, (tuple, list)) else (x,)) for x in (expected, got, expected if wide is None else wide)), strict=True)  # fmt: skip
            for i, (e, g, r) in enumerate(pairs):
                strides = [[s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1] for t in (e, g)]
                assert (e.dtype, e.shape) == (g.dtype, g.shape) and strides[0] == strides[1], i
                if not torch.equal(e, g):
                    e, g, r = (t.double().cpu() for t in (e, g, r))
                    assert cutaway.same(e, g, r, tol=tolerance, equal_nan=True), (i, (e - g).abs().max())


def targets(f, *args):
    """Names of the calls and operators of the fused graph."""
    import os
    import pathlib
    import re
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        script = f"import torch\nfrom test_native_cuda_plans import *\nm, a = {f}\nwith torch.no_grad(): cutaway.compile(m, backend='native:wait')(*a)\n"
        environment = {**os.environ, "CUTAWAY_DEBUG": "4", "CUTAWAY_DEBUG_DIR": folder}
        environment["PYTHONPATH"] = f"{pathlib.Path(__file__).parent}:{environment.get('PYTHONPATH', '')}"
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr[-2000:]
        text = "".join(p.read_text() for p in pathlib.Path(folder).rglob("ir_post_fusion.cut"))
    return re.findall(r"^  [^\n=]*= (?:call )?([\w.]+)\(", text, re.M)


@pytest.mark.parametrize("dtype", [F32, BF16, F16], ids=str)
def test_indices_cat_and_pad_are_kernels(dtype):
    def program(ids, table, x, y, where, rows):
        e = F.embedding(ids, table)
        n = e * torch.rsqrt(e.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(e.dtype)
        a, b = x.chunk(2, -1)
        turned = torch.cat((-b, a), -1) * y
        return (
            n, turned, x[:, where], torch.stack((x, y), 1), F.pad(x, (1, 2, 0, 1), value=0.5), torch.tril(y[0]), torch.triu(x[0], 1), torch.gather(x, 2, rows), torch.flip(x, (1,)),
            torch.arange(3, 50, 2, device=x.device).to(x.dtype), torch.index_select(y, 1, where.abs()),
        )  # fmt: skip

    g = torch.Generator("cuda").manual_seed(1)
    ids = torch.randint(0, 100, (6, 8), device="cuda", generator=g)
    table = torch.randn(100, 64, device="cuda", dtype=dtype, generator=g)
    x, y = (torch.randn(4, 13, 128, device="cuda", dtype=dtype, generator=g) for _ in range(2))
    where = torch.tensor([0, -1, 5, 5, -13, 12], device="cuda")
    rows = torch.randint(0, 128, (4, 13, 7), device="cuda", generator=g)
    check(program, (ids, table, x, y, where % 13, rows), {F32: 1e-5, BF16: 2e-2, F16: 4e-3}[dtype])
    check(lambda x, where: x[:, where], (x, where), 0)


@pytest.mark.parametrize("columns", [64, 63, 8, 1])
def test_rows_of_embeddings_at_any_width(columns):
    ids = torch.randint(0, 50, (7, 3), device="cuda")
    table = torch.randn(50, columns, device="cuda")
    check(lambda ids, table: F.embedding(ids, table) * 2, (ids, table), 0)
    check(lambda ids, table: F.embedding(ids, table).sum(-1), (ids, table), 1e-5)
    check(lambda ids, table: F.embedding(ids, table[:, : max(1, columns // 2)]) + 1, (ids, table), 0)


def test_an_index_out_of_range_is_an_error_with_the_line():
    script = """
import cutaway, torch
def program(ids, table):
    return torch.nn.functional.embedding(ids, table) * 2   # here
f = cutaway.compile(program, backend="native:wait")
table = torch.randn(10, 64, device="cuda")
f(torch.tensor([1, 2], device="cuda"), table)
try:
    f(torch.tensor([1, 10], device="cuda"), table)
    torch.cuda.synchronize()
except RuntimeError as error:
    print("raised", str(error)[:100])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "raised" in done.stdout and "device-side assert" in done.stdout, done.stdout + done.stderr
    assert "an index is out of range" in done.stderr + done.stdout


class Attention(nn.Module):
    def __init__(self, width, heads, bias, dtype):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias, device="cuda", dtype=dtype) for _ in range(4))

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (p(x).view(b, s, self.heads, d // self.heads).transpose(1, 2) for p in (self.q, self.k, self.v))
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, d))


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_products_of_the_same_rows_are_joined(dtype, bias):
    torch.manual_seed(0)
    m = Attention(256, 4, bias, dtype)
    x = torch.randn(2, 64, 256, device="cuda", dtype=dtype)
    check(lambda x: m(x), (x,), {F32: 1e-4, BF16: 2e-2}[dtype], reference=False)
    # Weights that change are seen: nothing of them is kept.
    cutaway.reset()
    f = cutaway.compile(m, backend="native:wait")
    with torch.no_grad():
        for i in range(8):
            m.q.weight.data.mul_(1.1)
            m.k.weight.data = m.k.weight.data * (1 + 0.01 * i)
            torch.testing.assert_close(
                f(x), m(x), rtol=3e-2 if dtype == BF16 else 1e-4, atol=3e-2 if dtype == BF16 else 1e-4
            )


def test_joined_products_train():
    torch.manual_seed(0)
    m = Attention(256, 4, True, F32)
    x = torch.randn(2, 64, 256, device="cuda")
    f = cutaway.compile(m, backend="native:wait")
    for _ in range(7):
        m.zero_grad()
        m(x).square().mean().backward()
        expected = [p.grad.clone() for p in m.parameters()]
        m.zero_grad()
        f(x).square().mean().backward()
        for p, e in zip(m.parameters(), expected, strict=True):
            torch.testing.assert_close(p.grad, e, rtol=1e-3, atol=1e-5)


class Images(nn.Module):
    """Convolutions with everything between them that may and may not keep channels last."""

    def __init__(self, dtype):
        super().__init__()
        sizes = [(3, 32, 7, 2), (32, 32, 3, 1), (32, 64, 1, 1), (64, 64, 3, 2), (64, 64, 3, 1), (64, 32, 1, 1)]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, k, s, k // 2, bias=i % 2 == 0) for i, (a, b, k, s) in enumerate(sizes)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in sizes)
        self.to("cuda", dtype)
        for n in self.norms:
            n.running_mean.normal_()
            n.running_var.uniform_(0.5, 2)

    def forward(self, x):
        for i, (c, n) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            y = F.relu(n(c(x)))
            x = y + x if y.shape == x.shape else y
            if i == 1:
                x = F.max_pool2d(x, 3, 2, 1)
            if i == 4:
                x = F.avg_pool2d(x, 2)
        return x, x.mean((2, 3)), x.flatten(1)


@pytest.mark.parametrize("dtype", [F32, BF16, F16], ids=str)
def test_convolutions_with_channels_last(dtype):
    torch.manual_seed(0)
    m = Images(dtype).eval()
    before = _native.cuda_state()["recorded"]
    for x in (
        torch.randn(2, 3, 64, 64, device="cuda", dtype=dtype),
        torch.randn(2, 3, 64, 64, device="cuda", dtype=dtype).to(memory_format=torch.channels_last),
    ):
        check(lambda x: m(x), (x,), {F32: 5e-3, BF16: 4e-2, F16: 1e-2}[dtype], reference=False)
    assert _native.cuda_state()["recorded"] > before


def test_cudnn_batch_norm_is_captured_and_trains():
    torch.manual_seed(0)
    a, b = Images(F32), Images(F32)
    b.load_state_dict(a.state_dict())
    x = torch.randn(2, 3, 64, 64, device="cuda")
    cutaway.reset()
    f = cutaway.compile(b, backend="native:wait", fullgraph=True)
    for _ in range(3):
        a.zero_grad()
        b.zero_grad()
        e, g = a(x)[0], f(x)[0]
        torch.testing.assert_close(g, e, rtol=2e-2, atol=2e-2)
        e.square().mean().backward()
        g.square().mean().backward()
        for n, m in zip(a.norms, b.norms, strict=True):
            torch.testing.assert_close(m.running_mean, n.running_mean, rtol=1e-2, atol=1e-2)
            torch.testing.assert_close(m.running_var, n.running_var, rtol=1e-2, atol=1e-2)


def test_the_plans_are_made():
    found = targets("Attention(256, 4, True, F32), (torch.randn(2, 64, 256, device='cuda'),)")
    assert found.count("aten.addmm") == 2 and any(t.startswith("native.w") for t in found), found
    found = targets("Images(BF16).eval(), (torch.randn(2, 3, 64, 64, device='cuda', dtype=BF16),)")
    assert any(t.startswith("native.w") for t in found), found


@pytest.mark.parametrize("rows", [1, 4, 33, 5000])
def test_layer_norms_of_few_and_many_rows(rows):
    for dtype in (F32, BF16):
        x, w, b = torch.randn(rows, 768, device="cuda", dtype=dtype), torch.randn(768, device="cuda", dtype=dtype), torch.randn(768, device="cuda", dtype=dtype)  # fmt: skip
        check(
            lambda x, r, w, b: F.layer_norm(x + r, (768,), w, b),
            (x, x.flip(0).contiguous(), w, b),
            {F32: 1e-4, BF16: 2e-2}[dtype],
        )


def test_running_out_of_memory_leaves_the_process_usable():
    def program(x):
        return torch.tanh(x).unsqueeze(0).expand(1 << 14, -1).contiguous() * 2

    f = cutaway.compile(program, backend="native:wait")
    small = torch.randn(1 << 10, device="cuda")
    torch.testing.assert_close(f(small), program(small))
    large = torch.randn(1 << 25, device="cuda")
    with pytest.raises(torch.OutOfMemoryError):
        cutaway.compile(program, backend="native:wait")(large)
    torch.testing.assert_close(f(small), program(small))
