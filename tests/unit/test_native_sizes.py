"""The backend native on graphs with symbolic sizes: eager's numbers at every size, and one run of the compiler for all of them."""

import threading

import cutaway
import pytest
import torch
import torch.nn.functional as F


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """An empty cache: what is in it afterwards is what the compiler made."""
    monkeypatch.setenv("CUTAWAY_CACHE_DIR", str(tmp_path))
    cutaway.reset()
    yield tmp_path
    cutaway.reset()


def compiler_runs(cache):
    return len(list((cache / "native").glob("*.so")))


class Block(torch.nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.first, self.second, self.heads = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width), heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) * 0.3, -1)
        x = self.first(x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width)))
        return self.second(x + self.down(F.gelu(self.up(x))))


class Model(torch.nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.table, self.layers = torch.nn.Embedding(50, 32), torch.nn.ModuleList(Block() for _ in range(layers))

    def forward(self, ids):
        x = self.table(ids)
        for layer in self.layers:
            x = layer(x)
        return x.mean(1)


def check(expected, got, reference, what):
    assert expected.shape == got.shape and expected.dtype == got.dtype and expected.stride() == got.stride(), what
    assert cutaway.same(expected.detach(), got.detach(), reference.detach(), tol=1e-4, equal_nan=True), what


@pytest.mark.parametrize("dynamic", [True, None])
def test_ten_batch_sizes_are_one_run_of_the_compiler(own_cache, dynamic):
    torch.manual_seed(0)
    model = Model().eval()
    wide = Model().double().eval()
    wide.load_state_dict(model.state_dict())
    compiled = cutaway.compile(model, backend="native:wait", dynamic=dynamic)
    with torch.no_grad():
        for batch in (3, 4, 2, 5, 6, 7, 8, 12, 17, 32):
            ids = torch.randint(0, 50, (batch, 9))
            check(model(ids), compiled(ids), wide(ids), batch)
    # The first call of dynamic=None is captured with numbers.
    assert cutaway.counters["frames"]["ok"] == (1 if dynamic else 2)
    assert compiler_runs(own_cache) == (1 if dynamic else 2)


def test_training_at_ten_sizes_of_two_symbols(own_cache):
    torch.manual_seed(0)
    model = Model()
    wide = Model().double()
    wide.load_state_dict(model.state_dict())
    compiled = cutaway.compile(model, backend="native:wait", dynamic=True)

    def step(function, owner, ids):
        owner.zero_grad()
        out = function(ids)
        (out * torch.linspace(-1, 1, out.shape[-1], dtype=out.dtype)).sum().backward()
        return [out, *(p.grad for p in owner.parameters())]

    for batch, length in ((3, 9), (2, 5), (4, 9), (5, 16), (6, 6), (7, 31), (8, 4), (9, 64), (16, 17), (33, 3)):
        ids = torch.randint(0, 50, (batch, length))
        parts = [step(model, model, ids), step(compiled, model, ids), step(wide, wide, ids)]
        for i, (e, g, r) in enumerate(zip(*parts, strict=True)):
            check(e, g, r, (batch, length, i))
    assert compiler_runs(own_cache) == 2  # forward and backward


SYMBOLIC_ROWS = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x * 2, -1),
    "softmax_first": lambda x: torch.softmax(x, 0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "mean": lambda x: x.mean(-1),
    "mean_first": lambda x: x.mean(0),
    "mean_all": lambda x: x.mean(),
    "count": lambda x: x / x.shape[-1] + x.shape[0],
    "power": lambda x: x * x.shape[-1] ** -0.5,
    "centred": lambda x: (x - x.mean(-1, keepdim=True)).square().mean(-1),
    "variance": lambda x: x.var(-1),
    "columns": lambda x: x.sum(0),
    "transposed": lambda x: (x.t() + 1).tanh().contiguous(),
    "slice": lambda x: x[1:, : x.shape[1] // 2].tanh() * 2,
    "last": lambda x: x[-1].exp() + x[:, -1].sum(),
    "outer": lambda x: x[:, None, :] * x[None, :, :],
    "integers": lambda x: (x * 10).to(torch.int64) // x.shape[0] + x.shape[1],
    "returned": lambda x: (x.tanh(), x.shape[0] * 2, x.shape[1] + 1),
    "narrow": lambda x: torch.softmax(x.bfloat16(), -1).float().mean(0),
}


@pytest.mark.parametrize("name", SYMBOLIC_ROWS)
def test_symbolic_inner_sizes(own_cache, name):
    f = SYMBOLIC_ROWS[name]
    compiled = cutaway.compile(f, backend="native:wait", dynamic=True)
    runs = []
    for rows, columns in ((33, 40), (34, 41), (2, 3), (40, 33), (64, 64), (35, 700), (5, 1000), (129, 128), (70, 2)):
        x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows)).requires_grad_(name != "integers")
        again = x.detach().clone().requires_grad_(x.requires_grad)
        wide = x.detach().double().requires_grad_(x.requires_grad)
        expected, got, reference = f(x), compiled(again), f(wide)
        if name == "returned":
            assert expected[1:] == got[1:]
            expected, got, reference = expected[0], got[0], reference[0]
        if name == "integers":
            assert torch.equal(expected, got)
        elif name == "narrow":
            torch.testing.assert_close(expected, got, atol=1e-2, rtol=1e-2)
        else:
            check(expected, got, reference, (rows, columns))
        if x.requires_grad:
            weight = torch.linspace(0.5, 1, expected.numel()).view_as(expected)
            (expected * weight).sum().backward()
            (got * weight).sum().backward()
            (reference * weight).sum().backward()
            scale = x.grad.abs().max() + 1
            limit = 2e-2 if name == "narrow" else 2e-5
            off = (x.grad - wide.grad).abs().max()  # eager's own: a row of two numbers that are near loses most digits
            assert (again.grad - wide.grad).abs().max() <= max(limit * scale, off), (rows, columns)
        runs.append(compiler_runs(own_cache))
    # Another form now and then (few columns, long rows), never one a size.
    assert runs[-1] <= 6 and runs[1] == runs[0], runs


def test_empty_and_single_sizes(own_cache):
    def f(x, y):
        return (torch.softmax(x + y, -1) * 2).sum(0), x.tanh() @ y.t()

    compiled = cutaway.compile(f, backend="native:wait", dynamic=True)
    for rows, columns in ((3, 4), (1, 4), (0, 4), (4, 1), (1, 1), (0, 0), (5, 0), (6, 7), (1, 9)):
        x, y = torch.randn(rows, columns), torch.randn(rows, columns)
        for e, g in zip(f(x, y), compiled(x, y), strict=True):
            assert e.shape == g.shape and e.stride() == g.stride()
            torch.testing.assert_close(e, g)


def test_marked_sizes_alone_are_symbols(own_cache):
    def f(x):
        return torch.softmax(x.tanh() * 3, -1)

    compiled = cutaway.compile(f, backend="native:wait", dynamic=None)
    for rows in (4, 5, 6, 19):
        x = torch.randn(rows, 12)
        cutaway.mark_dynamic(x, 0)
        torch.testing.assert_close(compiled(x), f(x))
    assert compiler_runs(own_cache) == 1


def test_without_waiting_operators_run_until_the_kernels_are_there(own_cache):
    def f(x):
        return torch.softmax(x.tanh() * 3, -1)

    compiled = cutaway.compile(f, backend="native", dynamic=True)
    for rows in range(2, 60):
        x = torch.randn(rows, rows + 3)
        torch.testing.assert_close(compiled(x), f(x))


def test_threads_with_sizes_of_their_own(own_cache):
    torch.manual_seed(0)
    model = Block().eval()
    compiled = cutaway.compile(model, backend="native:wait", dynamic=True)
    wrong = []
    with torch.no_grad():
        compiled(torch.randn(2, 3, 32))

    def work(number):
        generator = torch.Generator().manual_seed(number)
        for turn in range(12):
            x = torch.randn(2 + (number + turn) % 9, 3 + turn % 5, 32, generator=generator)
            with torch.no_grad():
                if not torch.allclose(model(x), compiled(x), atol=1e-5):
                    wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert compiler_runs(own_cache) <= 2


def test_many_sizes_are_forgotten_and_made_again(own_cache):
    def f(x):
        return (x * x.shape[0]).tanh().sum(-1)

    compiled = cutaway.compile(f, backend="native:wait", dynamic=True)
    for rows in [*range(2, 90), 2, 3, 89]:
        x = torch.randn(rows, 5)
        torch.testing.assert_close(compiled(x), f(x))
    assert compiler_runs(own_cache) == 1


def test_a_new_process_finds_the_text_at_another_size(own_cache, tmp_path):
    import os
    import subprocess
    import sys

    script = tmp_path / "program.py"
    script.write_text(
        "import sys, torch, cutaway\n"
        "f = lambda x: torch.softmax(x.tanh(), -1)\n"
        "g = cutaway.compile(f, backend='native:wait', dynamic=True)\n"
        "x = torch.randn(int(sys.argv[1]), int(sys.argv[2]))\n"
        "assert torch.allclose(g(x), f(x), atol=1e-6)\n"
    )
    for rows, columns in ((4, 7), (9, 30)):
        subprocess.run(
            [sys.executable, script, str(rows), str(columns)],
            env={**os.environ, "CUTAWAY_CACHE_DIR": str(own_cache)},
            check=True,
            timeout=300,
        )
        assert compiler_runs(own_cache) == 1
