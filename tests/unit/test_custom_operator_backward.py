"""Custom operators whose registered backward reads values, as mixture-of-experts models have them: every backend trains as eager does."""

import cutaway
import pytest
import torch


@torch.library.custom_op("cutaway_test::grouped", mutates_args=())
def grouped(x: torch.Tensor, w: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    out, start = torch.empty(x.shape[0], w.shape[2]), 0
    for i, end in enumerate(ends.tolist()):
        out[start:end] = x[start:end] @ w[i]
        start = end
    return out


@grouped.register_fake
def _(x, w, ends):
    return x.new_empty(x.shape[0], w.shape[2])


def keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.ends = inputs[2]


def backward(ctx, g):
    x, w = ctx.saved_tensors
    gx, gw, start = torch.zeros_like(x), torch.zeros_like(w), 0
    for i, end in enumerate(ctx.ends.tolist()):
        gx[start:end] = g[start:end] @ w[i].T
        gw[i] = x[start:end].T @ g[start:end]
        start = end
    return gx, gw, None


grouped.register_autograd(backward, setup_context=keep)


def first_of_data(ctx, g):
    return g * (2 if ctx.first.item() > 0 else 3)


@torch.library.custom_op("cutaway_test::branching", mutates_args=())
def branching(x: torch.Tensor) -> torch.Tensor:
    return x * 2


branching.register_fake(torch.empty_like)
branching.register_autograd(
    first_of_data, setup_context=lambda ctx, inputs, output: setattr(ctx, "first", inputs[0][0].detach())
)

BACKENDS = {"eager": "eager", "aot_eager": "aot_eager", "fx": lambda module, inputs: module.forward}


def gradients(function, compile, *inputs):
    given = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
    loss = compile(function)(*given).sum()
    loss.backward()
    return [loss.detach(), *(t.grad for t in given if t.requires_grad)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sign", [1, -1])
def test_backward_reads_values(backend, sign, fresh_capture):
    torch.manual_seed(0)
    x, w, ends = torch.randn(6, 3), torch.randn(2, 3, 4), torch.tensor([2, 6])

    def f(x, w, ends):
        return grouped(x.sin(), w, ends) * 2

    def g(x):
        return branching(x * sign) + 1

    for function, inputs in ((f, (x, w, ends)), (g, (torch.ones(4),))):
        expected = gradients(function, lambda h: h, *inputs)
        found = gradients(function, lambda h: cutaway.compile(h, backend=BACKENDS[backend]), *inputs)
        assert all(map(torch.equal, expected, found))
    assert cutaway.counters["stats"]["unique_graphs"] > 0
