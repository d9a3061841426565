"""numpy's numbers are constants: compared by type, sign and value, computed with by numpy, and told by torch from Python's where that shows."""

import cutaway
import numpy as np
import pytest
import torch

from tests.support.capture_cases import Counter, reset


@pytest.fixture(autouse=True)
def clean():
    reset()
    yield
    reset()


@pytest.mark.parametrize("numbers", [[0.0, -0.0], [np.nan, 1.0], [1, 2, 1]])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_argument_is_guarded(kind, numbers):
    def f(x, k):
        return x * k, k

    compiled = cutaway.compile(f)
    x = torch.ones(3)
    for n in numbers:
        got, expected = compiled(x, kind(n)), f(x, kind(n))
        assert np.array_equal(got[0].numpy(), expected[0].numpy(), equal_nan=True)
        assert np.array_equal(np.signbit(got[0].numpy()), np.signbit(expected[0].numpy()))
        assert type(got[1]) is kind and (got[1] == expected[1] or np.isnan(expected[1]))


def test_not_a_number_compiles_once():
    counter = Counter()
    compiled = cutaway.compile(lambda x, k: x * k, backend=counter)
    for _ in range(3):
        compiled(torch.ones(3), np.float32(np.nan))
    assert counter.frame_count == 1


def test_type_counts():
    compiled = cutaway.compile(lambda x, k: (x + 1, type(k).__name__))
    assert [compiled(torch.ones(1), k)[1] for k in (2.0, np.float64(2.0), np.float32(2.0), 2)] == [
        "float",
        "float64",
        "float32",
        "int",
    ]


def test_large_integers_differ():
    compiled = cutaway.compile(lambda x, k: (x + 1, k))
    assert compiled(torch.ones(1), np.int64(2**60))[1] == 2**60
    assert compiled(torch.ones(1), np.int64(2**60 + 1))[1] == 2**60 + 1


@pytest.mark.parametrize("number", [np.float64(2.5), np.float32(2.5), np.int32(2), np.bool_(True)])
def test_made_a_tensor(number):
    def f(x):
        return torch.tensor(number), torch.as_tensor(number), x.new_tensor(number), torch.full((2,), number), x * number

    for a, b in zip(cutaway.compile(f)(torch.ones(2)), f(torch.ones(2)), strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_warning_is_given_each_time():
    def f(x):
        return x * 2, np.float64(1.0) / np.float64(0.0)

    compiled = cutaway.compile(f)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert compiled(torch.ones(2))[1] == np.inf
