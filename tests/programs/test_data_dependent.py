"""Numbers that were read from tensors, and sizes that data decides, in one graph: compiled with fullgraph=True equals eager, with other data too."""

import cutaway
import pytest
import torch

from tests.programs import survey
from tests.support import capture_cases, registry

pytestmark = pytest.mark.skipif(
    not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture, or it is the peer's turn"
)
PROGRAMS = {n: p for n, p in registry.load().items() if n.startswith("data_dependent.")}
# Reads inside programs of other areas.
READS = """features.item_breaks numbers_drawn.item_as_number numbers_drawn.float_of_tensor numbers_drawn.int_of_tensor numbers_drawn.tolist
numbers_drawn.item_returned numbers_drawn.item_as_size numbers_drawn.nonzero numbers_drawn.boolean_mask numbers_drawn.unique numbers_drawn.masked_select
numbers_drawn.where_one_argument tensors.indexing_mask tensors.item_breaks tensors.int_of_tensor tensors.tolist_breaks tensors.nonzero_breaks
users.moe_sparse users.unique_counts users.boolean_rows""".split()


@pytest.mark.parametrize("backend", ["eager", "native", "counter"])
@pytest.mark.parametrize("name", [n for n, p in PROGRAMS.items() if not p.breaks])
def test_one_graph(name, backend):
    program = PROGRAMS[name]
    counter = capture_cases.Counter()
    function = cutaway.compile(
        program.make(), backend=counter if backend == "counter" else backend, fullgraph=True, dynamic=False
    )
    eager = survey.lines(program.make(), program, program.calls)
    assert not survey.difference(eager, survey.lines(function, program, program.calls))
    assert counter.frame_count <= 1


@pytest.mark.parametrize("name", READS)
def test_reads_elsewhere(name):
    program = registry.load()[name]
    eager = survey.lines(program.make(), program, program.calls)
    function = cutaway.compile(program.make(), backend="eager", fullgraph=True)
    assert not survey.difference(eager, survey.lines(function, program, program.calls))


def compiled(function):
    return cutaway.compile(function, backend="eager", fullgraph=True)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda i: i + 1 if i[0].item() > 2 else i, "decides which branch runs"),
        (lambda i: [i + k for k in range(i[0].item())], "a number (int) that was read from a tensor"),
        (lambda i: str(i[0].item()), "a number (int) that was read from a tensor"),
        (lambda i: {i[0].item(): i}, "a number (int) that was read from a tensor"),
        (lambda i: [0, 1, 2, 3][i[0].item()], "a number (int) that was read from a tensor"),
    ],
)
def test_what_asks_for_the_number(function, says):
    with pytest.raises(Exception) as caught:
        compiled(function)(torch.tensor([3, 1]))
    assert says in str(caught.value)
    assert "test_data_dependent.py" in str(caught.value)


def test_a_slice_is_never_taken_for_the_whole():
    """Every bound that reaches beyond the tensor gives all of it: the length stays unknown."""

    def f(x, n):
        return x[: n.item() + 100].shape[0], x[n.item() :].shape[0] * 2

    g = compiled(f)
    for n in (0, -90, -101, -1000, 5, 1000):
        x = torch.arange(10)
        assert g(x, torch.tensor(n)) == f(x, torch.tensor(n)), n


def test_errors_are_pythons():
    def divide(i):
        return i + 7 // i[0].item()

    def large(i):
        return i[0].item() ** 3

    assert compiled(large)(torch.tensor([2**40])) == 2**120
    with pytest.raises(ZeroDivisionError, match="integer division or modulo by zero"):
        compiled(divide)(torch.tensor([0]))
    with pytest.raises(RuntimeError, match="split_with_sizes expects"):
        compiled(lambda x, i: x.split(i.tolist()))(torch.ones(5), torch.tensor([2, 2]))


def test_a_number_is_not_taken_for_its_stand_in():
    """Tensors made of such a number alone have no value that is known while tracing."""

    def f(i):
        t = torch.ones(3) * i[0].item()
        return torch.full((2,), i[0].item()), t, torch.tensor(i[0].item())

    g = compiled(f)
    for n in (7, 7777777, 2):
        assert all(torch.equal(a, b) for a, b in zip(f(torch.tensor([n])), g(torch.tensor([n])), strict=True))
    with pytest.raises(Exception, match="decides which branch runs"):
        compiled(lambda i: 1 if (torch.ones(3) * i[0].item()).all() else 2)(torch.tensor([1]))


def test_the_reason_is_recorded():
    """A backend that cannot compile such a graph hands it to the interpreter."""
    x = torch.randn(8, 4, requires_grad=True)
    y = x.detach().clone().requires_grad_()

    def f(x):
        k = x[:, 0] > 0
        return (x[k] * x.detach().max().item()).sum()

    for backend in ("aot_eager", "native"):
        x.grad = y.grad = None
        cutaway.compile(f, backend=backend, fullgraph=True)(x).backward()
        f(y).backward()
        assert torch.equal(x.grad, y.grad)
