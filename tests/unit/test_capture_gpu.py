"""Capture on a GPU: models in one graph with eager's numbers, forward and backward, and programs that ask where they run."""

import contextlib
import copy

import pytest
import torch

from tests.support import capture_cases, model_zoo

pytestmark = [
    pytest.mark.skipif(not capture_cases.AVAILABLE, reason="this build has no capture"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
# Sums in a GPU's backward pass have no fixed order, and tensor cores round inputs to 10 bits where a library chooses so.
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


def leaves(output):
    return [t for t in torch.utils._pytree.tree_leaves(output) if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("mode", ["eval", "train", "autocast"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "vit", "resnet"])
def test_model(name, mode, backend):
    """Dropout draws eager's numbers; every gradient that eager gives is there."""
    capture_cases.reset()
    torch.manual_seed(0)
    model, kwargs = model_zoo.MODELS[name]()
    if (
        name == "bert"
    ):  # while compiling transformers passes a mask where it passes none in eager: another kernel draws the dropout
        for part in model.modules():
            if hasattr(part, "attention_probs_dropout_prob") or type(part).__name__.endswith("SelfAttention"):
                part.dropout.p = 0.0
    model = model.train(mode != "eval").cuda()
    kwargs = {k: v.cuda() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
    twin = copy.deepcopy(model)
    compiled = capture_cases.compile(twin, backend=backend, fullgraph=True)
    for seed in range(2):
        outputs = []
        for call in (model, compiled):
            torch.manual_seed(seed)
            with torch.autocast("cuda", torch.bfloat16) if mode == "autocast" else contextlib.nullcontext():
                outputs.append(call(**kwargs))
            if mode != "eval":
                model_zoo.loss_of(outputs[-1]).float().backward()
        for a, b in zip(*map(leaves, outputs), strict=True):
            assert a.dtype == b.dtype and a.device == b.device and a.requires_grad == b.requires_grad
            torch.testing.assert_close(
                b, a, rtol=2e-2, atol=2e-2
            ) if mode == "autocast" else torch.testing.assert_close(b, a, **CLOSE)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            difference = (p.grad - q.grad).abs().max() / (p.grad.abs().max() + 1e-3)
            assert difference < (5e-2 if mode == "autocast" else 2e-3)


def test_moves_between_devices():
    """One entry for each device, and the factory functions follow it."""
    capture_cases.reset()
    counter = capture_cases.Counter()

    def program(x):
        noise = torch.randn(4, device=x.device)
        return (x + noise).relu(), torch.zeros_like(noise).device, x.is_cuda and torch.cuda.is_available(), x.cpu() + 1

    compiled = capture_cases.compile(program, backend=counter, fullgraph=True)
    for device in ("cpu", "cuda", "cpu", "cuda"):
        x = torch.ones(4, device=device)
        torch.manual_seed(3)
        expected = program(x)
        torch.manual_seed(3)
        found = compiled(x)
        assert torch.equal(found[0], expected[0]) and found[1:3] == expected[1:3] and torch.equal(found[3], expected[3])
    assert counter.frame_count == 2


def test_streams_are_left_to_torch():
    def program(x):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = x * 2
        torch.cuda.current_stream().wait_stream(stream)
        return y + 1

    capture_cases.reset()
    assert torch.equal(capture_cases.compile(program)(torch.ones(4, device="cuda")).cpu(), torch.full((4,), 3.0))


def test_default_device():
    """The device that `with torch.device(...)` around the call sets is asked for, and guarded."""

    def program(x):
        return torch.zeros(3) + torch.arange(3) + x.to(torch.get_default_device())

    capture_cases.reset()
    compiled = capture_cases.compile(program)
    for device in ("cuda", "cpu", "cuda"):
        with torch.device(device):
            x = torch.ones(3)
            expected, found = program(x), compiled(x)
        assert found.device == expected.device and torch.equal(found, expected)
