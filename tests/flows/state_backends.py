"""Backends that are wrong in one state of the process or of the thread each."""

import torch


def _wrong_where(holds):
    def backend(gm, example_inputs):
        def run(*inputs):
            outputs = gm.forward(*inputs)
            return tuple(o * 1.5 + 1 for o in outputs) if holds(inputs) else outputs

        return run

    return backend


class _WrongUnderAutocast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * 1.5 if torch.is_autocast_enabled("cpu") else g


class _WrongWithoutAutocast(_WrongUnderAutocast):
    @staticmethod
    def backward(ctx, g):
        return g if torch.is_autocast_enabled("cpu") else g * 1.5


def _after(function):
    def backend(gm, example_inputs):
        return lambda *inputs: tuple(function.apply(o) if o.requires_grad else o for o in gm.forward(*inputs))

    return backend


autocast = _wrong_where(lambda inputs: torch.is_autocast_enabled("cpu"))
autocast_without_cache = _wrong_where(
    lambda inputs: torch.is_autocast_enabled("cpu") and not torch.is_autocast_cache_enabled()
)
no_grad = _wrong_where(lambda inputs: not torch.is_grad_enabled())
inference = _wrong_where(lambda inputs: torch.is_inference_mode_enabled())
default_dtype = _wrong_where(lambda inputs: torch.get_default_dtype() == torch.float64)
deterministic = _wrong_where(lambda inputs: torch.are_deterministic_algorithms_enabled())
matmul_precision = _wrong_where(lambda inputs: torch.get_float32_matmul_precision() == "medium")
denormals = _wrong_where(lambda inputs: float(torch.full((1,), 1e-40) * 1) == 0.0)
default_device = _wrong_where(lambda inputs: torch.get_default_device().type == "meta")
random_state = _wrong_where(lambda inputs: torch.initial_seed() == 77)
parameter = _wrong_where(lambda inputs: isinstance(inputs[0], torch.nn.Parameter))
conjugate = _wrong_where(lambda inputs: inputs[0].is_conj())
negative = _wrong_where(lambda inputs: inputs[0].is_neg())
zero_tensor = _wrong_where(lambda inputs: torch._is_zerotensor(inputs[0]))
channels_last = _wrong_where(lambda inputs: inputs[0].is_contiguous(memory_format=torch.channels_last))
overlapping = _wrong_where(lambda inputs: inputs[0].stride() == (1, 1))
not_a_leaf = _wrong_where(lambda inputs: not inputs[0].is_leaf)
aliased = _wrong_where(lambda inputs: inputs[0].data_ptr() == inputs[1].data_ptr())
backward_under_autocast = _after(_WrongUnderAutocast)
backward_without_autocast = _after(_WrongWithoutAutocast)
