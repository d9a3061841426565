"""The backend native on a CUDA card: kernels against eager and an fp64 run of it, recordings (CUDA graphs), streams, threads. Skips without a card."""

import gc
import threading

import cutaway
import pytest
import torch
import torch.nn.functional as F
from test_native import BINARY, SPECIAL, UNARY, floats, same

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16


def compiled(f, settings=""):
    cutaway.reset()
    return cutaway.compile(f, backend="native:wait" + settings, fullgraph=True)


def close(expected, got, reference, what):
    """By the rules of `same`: not further from fp64 than eager, but for some units of the dtype."""
    assert (expected.dtype, expected.shape, expected.device) == (got.dtype, got.shape, got.device), what
    tolerance = {F32: 1e-4, F64: 1e-10, BF16: 2e-2, F16: 4e-3}.get(expected.dtype, 0)
    if torch.equal(expected, got):
        return
    e, g, r = (t.detach().double().cpu() for t in (expected, got, reference))
    assert cutaway.same(e, g, r, tol=tolerance, equal_nan=True), f"{what}: {(e - g).abs().max()}"


@pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)
def test_every_pointwise_rule_of_one_operand(dtype):
    def all_of_them(x):
        return [f(x) for f in UNARY.values()]

    x = floats(dtype).cuda()
    got = compiled(all_of_them)(x)
    problems = []
    for name, e, g, r in zip(UNARY, all_of_them(x), got, all_of_them(x.double()), strict=True):
        if name == "gelu":  # fp64 loses the digits of 1 + erf(x) below -8; kernels of half and bfloat16 have them
            r = torch.where(x.isinf(), r, x.double() * 0.5 * torch.special.erfc(x.double() * -(0.5**0.5)))
        try:
            same(e, g, r, name)
        except AssertionError as error:
            problems.append(str(error)[:300])
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)
def test_every_pointwise_rule_of_two_operands(dtype):
    def all_of_them(x, y):
        return [f(x, y) for f in BINARY.values()]

    x, y = (t.cuda() for t in torch.cartesian_prod(torch.tensor(SPECIAL), torch.tensor(SPECIAL)).to(dtype).unbind(1))
    x, y = x.contiguous(), y.contiguous()
    got = compiled(all_of_them)(x, y)
    problems = []
    for name, e, g, r in zip(BINARY, all_of_them(x, y), got, all_of_them(x.double(), y.double()), strict=True):
        try:
            same(e, g, r, name)
        except AssertionError as error:
            problems.append(str(error)[:300])
    assert not problems, "\n".join(problems)


def test_integers():
    def program(x, y, z):
        return [x + y, x * y, x - z, x == y, x < y, torch.maximum(x, y), x & y, x | y, ~x, x.abs(), x.float() * 2, x.sum(1), x.amax(1), (x > 0).any(1), (x > 0).all(1), x.bool(), x.clamp(-3, 3)]  # fmt: skip

    for dtype in (torch.int64, torch.int32):
        x = torch.randint(-1000, 1000, (37, 129), dtype=dtype, device="cuda")
        y = torch.randint(-1000, 1000, (37, 129), dtype=dtype, device="cuda")
        z = torch.randint(-10, 10, (129,), dtype=dtype, device="cuda")
        for i, (e, g) in enumerate(zip(program(x, y, z), compiled(program)(x, y, z), strict=True)):
            assert e.dtype == g.dtype and torch.equal(e, g), i


ROWS = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms": lambda x: (
        x * torch.rsqrt((x if x.dtype == F64 else x.float()).pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype)
    ),
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1),
    "any": lambda x: (x > 2).any(-1),
    "columns": lambda x: x.reshape(-1, x.shape[-1]).sum(0),
    "columns_mean": lambda x: (x * 2).reshape(-1, x.shape[-1]).mean(0),
}


@pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)
def test_rows_and_columns(dtype):
    for shape in [(6, 5), (3, 64), (130, 33), (4, 7, 256), (1001, 40), (16, 768), (40, 1000), (8, 4096), (3, 5, 5000), (64, 40000), (2048, 96), (1, 70), (300, 1)]:  # fmt: skip
        x = torch.randn(shape, dtype=F64).to(dtype).cuda()

        def all_of_them(x):
            return [f(x) for f in ROWS.values()]

        got = compiled(all_of_them)(x)
        for name, e, g, r in zip(ROWS, all_of_them(x), got, all_of_them(x.double()), strict=True):
            close(e, g, r, f"{name} {shape}")


def test_strides_and_broadcasting():
    def program(a, b, c):
        return (
            a * b + c,
            (a.transpose(0, 1) + 1).contiguous(),
            torch.softmax(a.transpose(0, 2), -1),
            a[1:, ::2] * 2,
            a.sum(1),
            (a + b).permute(2, 0, 1).clone(),
        )

    a, b = torch.randn(6, 10, 64), torch.randn(1, 10, 1)
    for dtype in (F32, BF16):
        given = [t.to(dtype).cuda() for t in (a, b)] + [torch.randn(64, 6, 10).to(dtype).cuda().permute(1, 2, 0)]
        got = compiled(program)(*given)
        for i, (e, g, r) in enumerate(zip(program(*given), got, program(*[t.double() for t in given]), strict=True)):
            assert e.stride() == g.stride(), i
            close(e, g, r, str(i))


def test_addresses_that_are_not_aligned():
    def program(x):
        return torch.tanh(x) * 2 + 1

    whole = torch.randn(4 * 4096 * 8 + 1, device="cuda")
    f = compiled(program)
    for begin in (0, 1):
        x = whole[begin : begin + 4 * 4096 * 8]
        torch.testing.assert_close(f(x), program(x))


class Block(torch.nn.Module):
    def __init__(self, width=64, heads=4, dropout=0.1):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.heads, self.dropout = heads, dropout

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, d)
        x = x + F.dropout(self.out(a), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


def steps(model, f, inputs, target, count, seed=0):
    """Losses and final parameters of so many steps."""
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for i in range(count):
        optimizer.zero_grad()
        loss = (f(inputs[i % len(inputs)]).float() - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    return torch.stack(losses), [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("settings", ["", ":no_graphs"])
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_training_steps_with_dropout(dtype, settings):
    def fresh():
        torch.manual_seed(3)
        return torch.nn.Sequential(Block(), Block()).to(dtype).cuda()

    inputs = [torch.randn(4, 32, 64, device="cuda").to(dtype) for _ in range(3)]
    target = torch.randn(4, 32, 64, device="cuda")
    model = fresh()
    expected, parameters = steps(model, model, inputs, target, 12)
    model = fresh()
    got, others = steps(model, compiled(model, settings), inputs, target, 12)
    torch.testing.assert_close(got, expected, rtol=2e-2 if dtype == BF16 else 1e-4, atol=1e-4)
    for e, g in zip(parameters, others, strict=True):
        torch.testing.assert_close(g, e, rtol=5e-2 if dtype == BF16 else 1e-3, atol=2e-2 if dtype == BF16 else 1e-4)


@pytest.mark.parametrize("settings", ["", ":no_graphs"])
def test_dropout_draws_what_eager_draws(settings):
    def program(x):
        return F.dropout(x, 0.3) + F.dropout(x * 2, 0.5)

    for n in (5, 1024, 100003):
        x = torch.ones(n, device="cuda")
        f = compiled(program, settings)
        for seed in (0, 2**40 + 7):
            torch.manual_seed(seed)
            expected = [program(x) for _ in range(7)]
            torch.manual_seed(seed)
            for i, e in enumerate(expected):
                assert torch.equal(e, f(x)), (n, seed, i)
        torch.manual_seed(1)
        [program(x) for _ in range(5)]
        after = torch.rand(3, device="cuda")
        torch.manual_seed(1)
        [f(x) for _ in range(5)]
        assert torch.equal(after, torch.rand(3, device="cuda"))


def test_results_that_are_held_stay_as_they_are():
    model = torch.nn.Sequential(Block(dropout=0), Block(dropout=0)).cuda()
    f = compiled(model)
    inputs = [torch.randn(2, 16, 64, device="cuda") for _ in range(12)]
    with torch.no_grad():
        held = [f(x) for x in inputs]
        for x, h in zip(inputs, held, strict=True):
            torch.testing.assert_close(h, model(x), rtol=1e-4, atol=1e-4)


def test_two_forwards_before_their_backwards():
    model = torch.nn.Sequential(Block(dropout=0), Block(dropout=0)).cuda()
    f = compiled(model)
    x = [torch.randn(2, 16, 64, device="cuda", requires_grad=True) for _ in range(2)]
    for _ in range(8):
        f(x[0]).sum().backward()
    for t in x:
        t.grad = None
    a, b = f(x[0]), f(x[1])
    a.square().sum().backward()
    b.square().sum().backward()
    got = [t.grad.clone() for t in x]
    for t in x:
        t.grad = None
        model(t).square().sum().backward()
    for t, g in zip(x, got, strict=True):
        torch.testing.assert_close(g, t.grad, rtol=1e-3, atol=1e-3)
    # A graph that is kept runs backward twice.
    y = f(x[0]).square().sum()
    x[0].grad = None
    y.backward(retain_graph=True)
    first = x[0].grad.clone()
    f(x[1]).sum().backward()
    x[0].grad = None
    y.backward()
    torch.testing.assert_close(x[0].grad, first)


def test_weights_that_change_and_move():
    model = torch.nn.Linear(64, 64).cuda()
    f = compiled(model)
    x = torch.randn(8, 64, device="cuda")
    with torch.no_grad():
        for i in range(12):
            model.weight.mul_(1.1)
            if i == 8:
                model.weight.data = torch.randn(64, 64, device="cuda")
            torch.testing.assert_close(f(x), model(x))


def test_sizes_that_change():
    def program(x, w):
        return torch.softmax(x @ w, -1).sum(0)

    f = compiled(program)
    w = torch.randn(32, 40, device="cuda")
    for n in [4, 7, 4, 33, 7, 100, 4, 4, 4, 4]:
        x = torch.randn(n, 32, device="cuda")
        torch.testing.assert_close(f(x, w), program(x, w), rtol=1e-4, atol=1e-5)


def test_streams():
    model = Block(dropout=0).cuda()
    f = compiled(model)
    streams = [torch.cuda.Stream() for _ in range(2)]
    x = torch.randn(2, 64, 64, device="cuda")
    with torch.no_grad():
        expected = model(x)
        for _ in range(8):
            torch.testing.assert_close(f(x), expected, rtol=1e-4, atol=1e-4)
        torch.cuda.synchronize()
        for s in streams * 4:
            with torch.cuda.stream(s):
                got = f(x)
            s.synchronize()
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def test_the_program_records_by_itself():
    model = Block(dropout=0).cuda()
    f = compiled(model)
    x = torch.randn(2, 16, 64, device="cuda")
    with torch.no_grad():
        for _ in range(6):
            f(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = f(x)
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-4)


def test_threads():
    model = Block(dropout=0).cuda()
    f = compiled(model)
    inputs = [torch.randn(2, 16, 64, device="cuda") for _ in range(4)]
    with torch.no_grad():
        expected = [model(x) for x in inputs]
        f(inputs[0])
    problems = []

    def work(i):
        try:
            with torch.no_grad():
                for _ in range(20):
                    torch.testing.assert_close(f(inputs[i]), expected[i], rtol=1e-4, atol=1e-4)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems, problems[0]


def test_what_cannot_be_recorded_is_right_all_the_same():
    def program(x, scale):
        return x[x > 0] * 2, x * scale, x.sum().cpu() + 1

    f = cutaway.compile(program, backend="native:wait")
    for i in range(6):
        x = torch.randn(100, device="cuda")
        scale = torch.tensor(float(i))
        for e, g in zip(program(x, scale), f(x, scale), strict=True):
            torch.testing.assert_close(g, e)
            assert g.device == e.device


def test_out_of_memory_leaves_the_process_usable():
    def program(x):
        return torch.tanh(x.expand(1 << 20, 1 << 20) + 1)

    f = compiled(program)
    with pytest.raises(torch.OutOfMemoryError):
        f(torch.ones(1, device="cuda"))
    gc.collect()
    torch.cuda.empty_cache()
    g = compiled(lambda x: torch.tanh(x) + 1)
    x = torch.randn(1000, device="cuda")
    torch.testing.assert_close(g(x), torch.tanh(x) + 1)


def test_sums_are_the_same_each_time():
    def program(x):
        return x.sum(0), x.sum(1), torch.softmax(x, 1)

    f = compiled(program, ":no_graphs")
    x = torch.randn(4096, 768, device="cuda")
    first = [t.clone() for t in f(x)]
    for _ in range(5):
        for a, b in zip(first, f(x), strict=True):
            assert torch.equal(a, b)


def test_kernels_are_checked_on_a_card(monkeypatch):
    def program(x, w):
        return torch.softmax(x @ w, -1) * 2

    monkeypatch.setenv("CUTAWAY_CHECK", "2")
    x, w = torch.randn(64, 32, device="cuda"), torch.randn(32, 48, device="cuda")
    torch.testing.assert_close(compiled(program)(x, w), program(x, w))


def test_recordings_live_with_freed_workspaces():
    """Torch's own recordings give all workspaces of cuBLAS back; what lay there must not be written to by ours."""
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 1000, bias=False)
    ).cuda()
    f = compiled(model)
    x = torch.randn(128, 256, device="cuda")
    with torch.no_grad():
        for _ in range(8):
            expected = f(x)
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        held = [torch.full((1 << 20,), 7.0, device="cuda") for _ in range(32)]
        for _ in range(8):
            assert torch.equal(f(x), expected)
        torch.cuda.synchronize()
    assert all(bool((t == 7).all()) for t in held)
