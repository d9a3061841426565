"""Memory of the backend native: values share it inside a run, nothing that leaves a run is ever written again, and freed blocks are used again."""

import os
import threading

import cutaway
import pytest
import torch
from torch import nn


def compiled(f, settings=""):
    cutaway.reset()
    return cutaway.compile(f, backend=f"native:wait{settings}")


class Residual(nn.Module):
    """Each layer reads what earlier ones made, some of it much later."""

    def __init__(self, width, layers=3):
        super().__init__()
        self.up = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(layers))
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, x):
        first, kept = x, []
        for up, down, norm in zip(self.up, self.down, self.norm, strict=True):
            x = x + down(torch.nn.functional.gelu(up(norm(x))))
            kept.append(x.transpose(0, 1))
        return x * kept[0].transpose(0, 1) + first, kept[1], x.reshape(-1)


def rows_of(results):
    return [r.detach().clone() for r in results]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(33, 17), (64, 96)])
def test_the_plan_changes_no_bit(shape, threads):
    torch.manual_seed(0)
    model = Residual(shape[1])
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for x in (torch.randn(shape), torch.randn(shape[1], shape[0]).t(), torch.randn(1, shape[1]).expand(shape)):
            results = []
            for settings in ("", ":no_plan"):
                leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
                f = compiled(model, settings)
                out = f(leaf)
                gradients = torch.autograd.grad(
                    sum((o * (i + 1)).sin().sum() for i, o in enumerate(out)), [leaf, *model.parameters()]
                )
                with torch.no_grad():
                    results.append(rows_of([*out, *gradients, *f(leaf)]))
            for planned, apart in zip(*results, strict=True):
                assert planned.stride() == apart.stride()
                assert torch.equal(planned, apart)
    finally:
        torch.set_num_threads(before)


def test_results_of_a_run_are_nobody_elses():
    model = Residual(24)
    f = compiled(model)
    with torch.no_grad():
        xs = [torch.randn(9, 24) for _ in range(4)]
        held = [f(x) for x in xs]
        copies = [rows_of(r) for r in held]
        for x in xs:
            f(x)
        for results, expected in zip(held, copies, strict=True):
            for r, e in zip(results, expected, strict=True):
                assert torch.equal(r, e)
        for o in held[0]:
            o.zero_()  # a caller may write to what it was given
        assert all(torch.equal(a, b) for a, b in zip(f(xs[1]), copies[1], strict=True))


def test_arguments_are_not_written():
    def f(x, w):
        y = x @ w
        z = torch.relu(y)
        return (z @ w) * x + y

    x, w = torch.randn(40, 40), torch.randn(40, 40)
    kept = x.clone(), w.clone()
    g = compiled(f)
    for _ in range(2):
        g(x, w)
    assert torch.equal(x, kept[0]) and torch.equal(w, kept[1])


def test_eight_threads_at_once():
    model = Residual(32)
    f = compiled(model)
    xs = [torch.randn(21, 32) for _ in range(8)]
    with torch.no_grad():
        expected = [rows_of(f(x)) for x in xs]
    wrong = []

    def work(i):
        with torch.no_grad():
            for _ in range(30):
                if not all(torch.equal(a, b) for a, b in zip(f(xs[i]), expected[i], strict=True)):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_child_goes_on_with_the_memory():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # OpenMP's threads do not live on in a child
    try:
        f = compiled(Residual(64))
        x = torch.randn(256, 64)
        with torch.no_grad():
            expected = rows_of(f(x))
            child = os.fork()
            if child == 0:
                same = all(torch.equal(a, b) for a, b in zip(f(x), expected, strict=True))
                os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        torch.set_num_threads(before)


def test_an_operator_that_is_not_known_gets_memory_that_stays():
    def f(x, w):
        y = x @ w
        z = torch.roll(y, 1, 0)
        return torch.roll(z @ w, 1, 1) + torch.fft.fft(y).real

    g = compiled(f)
    x, w = torch.randn(12, 12), torch.randn(12, 12)
    torch.testing.assert_close(g(x, w), f(x, w))


def test_the_debug_directory_has_the_plan(tmp_path):
    cutaway.set_debug_dir(5, str(tmp_path))
    try:
        f = compiled(Residual(16))
        with torch.no_grad():
            f(torch.randn(8, 16))
    finally:
        cutaway.set_debug_dir(0)
    (plan,) = tmp_path.rglob("memory_plan.txt")
    lines = plan.read_text().splitlines()
    numbers = [int(line.rsplit(" ", 1)[1]) for line in lines[:4]]
    assert numbers[2] <= numbers[1] < numbers[3]
    assert lines[4].split() == ["value", "bytes", "offset", "from", "to"]
    live = []
    for line in lines[5:]:
        _, size, offset, begin, end = line.split()
        size, offset, begin, end = int(size), int(offset), int(begin), int(end)
        for other in live:  # two values that are wanted at once lie apart
            if other[3] >= begin and other[2] <= end:
                assert offset >= other[1] + other[0] or other[1] >= offset + size
        live.append((size, offset, begin, end))
    assert len(live) == numbers[0]


def test_results_are_tensors_like_others(tmp_path):
    """Their memory is the pool's: what torch does with memory works on it."""
    f = compiled(lambda x: torch.tanh(x) * 2)
    x = torch.randn(128, 128)  # 64 KB: large enough for the pool
    expected = torch.tanh(x) * 2
    y = f(x)
    torch.save(y, tmp_path / "y.pt")
    assert torch.equal(torch.load(tmp_path / "y.pt"), y)
    assert torch.equal(torch.from_numpy(y.numpy().copy()), y)
    assert torch.equal(f(x).share_memory_(), y)
    grown = f(x).resize_(256, 128)
    assert torch.equal(grown[:128], y)
    smaller = f(x)
    smaller.untyped_storage().resize_(0)
    assert smaller.untyped_storage().size() == 0
    part = f(x)[5:7]  # holds the block by itself
    for _ in range(3):
        f(torch.zeros_like(x))
    assert torch.equal(part, y[5:7])
    torch.testing.assert_close(y, expected)


def test_an_error_in_the_middle_leaves_nothing_behind():
    def f(x, i):
        y = torch.relu(x @ x)
        return (y @ x)[i] + torch.tanh(y @ y)[i]

    g = compiled(f)
    x = torch.randn(24, 24)
    inside, outside = torch.tensor([3, 5]), torch.tensor([3, 500])
    expected = g(x, inside).clone()
    with pytest.raises(IndexError):
        g(x, outside)
    assert torch.equal(g(x, inside), expected)
