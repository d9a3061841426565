"""Whole programs, compiled with and without a graph for the backward pass: losses, samples and states are eager's, bit for bit."""

import random

import cutaway
import pytest
import torch

from tests.programs import whole_programs
from tests.support import capture_cases

pytestmark = pytest.mark.skipif(not capture_cases.AVAILABLE, reason="this build has no capture")


def told(value):
    """What the program gave, tensors as their parts, so that == compares all of it."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.requires_grad, value.detach().double().flatten().tolist()
    if isinstance(value, dict):
        return {k: told(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [told(v) for v in value]
    return value


def run(name, compile):
    capture_cases.reset()
    torch.manual_seed(0)
    random.seed(0)
    return told(whole_programs.PROGRAMS[name](compile))


@pytest.mark.parametrize("name", whole_programs.PROGRAMS)
def test_program(name):
    expected = run(name, lambda f: f)
    for backend in ("eager", "aot_eager"):
        assert run(name, lambda f, backend=backend: capture_cases.compile(f, backend=backend)) == expected
        if not capture_cases.PEER:  # a program that runs eagerly proves nothing
            assert 0 < cutaway.counters["stats"]["unique_graphs"] <= whole_programs.PROGRAMS[name].graphs
