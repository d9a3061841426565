"""Backends that are wrong in one way each, for the tests of the verdict."""

import torch


def _after(change):
    """A backend that changes the list of outputs of a right run; `change` may look at the inputs too."""

    def backend(gm, example_inputs):
        def run(*inputs):
            outputs = gm.forward(*inputs)
            return tuple(change(list(outputs if isinstance(outputs, (list, tuple)) else [outputs]), inputs))

        return run

    return backend


def _each(change):
    return _after(lambda outputs, inputs: [change(o) for o in outputs])


def _at_first(value):
    def change(o):
        o = o.clone()
        o.detach().view(-1)[0] = value
        return o

    return _each(change)


def right(gm, example_inputs):
    return gm.forward


def mutates_input(gm, example_inputs):
    def run(*inputs):
        outputs = gm.forward(*inputs)
        inputs[0].data.mul_(2)
        return outputs

    return run


def works_on_copies(gm, example_inputs):
    return lambda *inputs: gm.forward(*[t.clone() if isinstance(t, torch.Tensor) else t for t in inputs])


def draws_first(gm, example_inputs):
    def run(*inputs):
        torch.rand(1)
        return gm.forward(*inputs)

    return run


class _WrongBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * 1.5


wrong_gradient = _after(lambda outputs, inputs: [_WrongBackward.apply(o) if o.requires_grad else o for o in outputs])
scaled = _each(lambda o: o * 1.5)
slightly_off = _each(lambda o: o * (1 + 1e-7) if o.is_floating_point() else o)
finite_scaled = _each(lambda o: torch.where(o.isinf(), o, o * 100))
first_is_nan = _at_first(float("nan"))
first_is_inf = _at_first(float("inf"))
first_is_seven = _at_first(7.0)
first_is_one = _at_first(1.0)
detached = _each(lambda o: o.detach())
other_strides = _each(lambda o: o.transpose(0, 1).contiguous().transpose(0, 1))
double = _each(lambda o: o.double())
unsqueezed = _each(lambda o: o.unsqueeze(0))
one_more = _after(lambda outputs, inputs: [*outputs, outputs[0].detach() + 1])
one_less = _after(lambda outputs, inputs: outputs[:-1])
plus_one = _each(lambda o: o + 1)
flipped = _each(lambda o: ~o)
copied = _each(lambda o: o.clone())
conjugated = _each(lambda o: o.conj().resolve_conj())
one_far_off = _after(lambda outputs, inputs: [o + 0.05 * (torch.arange(o.numel()) == 5).view(o.shape) for o in outputs])


def in_double(gm, example_inputs):
    def run(*inputs):
        return tuple(o.float() for o in gm.forward(*[t.double() * (1 + 3e-8) for t in inputs]))

    return run
