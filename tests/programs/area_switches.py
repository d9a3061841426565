# ruff: noqa
"""Random state, devices and modes of torch: as context, as decorator, as a function, with arguments."""

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, tensor
from torch import nn


@program(breaks=True)
def seed_and_draw(x):
    torch.manual_seed(7)
    return x + torch.rand(4)


@program(graphs=2, breaks=True)
def seed_twice(x):
    torch.manual_seed(7)
    a = torch.rand(4)
    torch.manual_seed(7)
    return a - torch.rand(4), x * 2


@program(breaks=True)
def random_module_seed(x):
    torch.random.manual_seed(3)
    return torch.randn_like(x)


@program(graphs=2, breaks=True)
def state_saved_and_set(x):
    s = torch.get_rng_state()
    a = torch.rand(4)
    torch.set_rng_state(s)
    return a, torch.rand(4), x + 1


@program(graphs=2, breaks=True)
def forked(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        a = torch.rand(4)
    return a, torch.rand(4) + x


@program(graphs=2, breaks=True)
def forked_default(x):
    with torch.random.fork_rng():
        a = torch.rand(4)
    return a, torch.rand(4) + x


@program(args=lambda i: [tensor(i), torch.Generator().manual_seed(i)], breaks=True)
def generator_argument(x, g):
    return x + torch.rand(4, generator=g)


@program(breaks=True)
def generator_inside(x):
    g = torch.Generator()
    g.manual_seed(3)
    return x + torch.rand(4, generator=g)


@built(breaks=True)
def generator_kept():
    g = torch.Generator().manual_seed(0)

    def f(x):
        return x + torch.randn(4, generator=g), torch.randperm(4, generator=g)

    return f


@program(args=lambda i: [tensor(i), torch.Generator().manual_seed(i)], graphs=2, breaks=True)
def generator_in_place(x, g):
    y = torch.empty(3).normal_(generator=g)
    return y, torch.bernoulli(torch.full((3,), 0.5), generator=g), torch.randint(0, 9, (2,), generator=g)


@program(graphs=0, breaks=True)
def seed_asked(x):
    return x, torch.initial_seed()


@program(breaks=True)
def device_as_context(x):
    with torch.device("cpu"):
        return x + torch.ones(4)


@program(graphs=2, breaks=True)
def device_context_meta(x):
    with torch.device("meta"):
        t = torch.ones(4)
    return x + 1, t.device.type


@program(graphs=0, breaks=True)
def default_device_set(x):
    torch.set_default_device("cpu")
    y = x + torch.ones(4)
    torch.set_default_device(None)
    return y


@program
def default_device_asked(x):
    return x.to(torch.get_default_device()), torch.get_default_dtype()


@program
def device_made(x):
    d = torch.device("cpu", 0) if False else torch.device(type="cpu")
    return x.to(d), d.type, d.index, str(d), d == x.device, torch.ones(2, device=d)


@program(breaks=True)
def cudnn_flags_context(x):
    with torch.backends.cudnn.flags(enabled=False):
        return F.conv1d(x[None], torch.ones(1, 3, 2))


@program(breaks=True)
def multithreading_off(x):
    with torch.autograd.set_multithreading_enabled(False):
        return x * 2


@program(breaks=True)
def anomaly_context(x):
    with torch.autograd.detect_anomaly(check_nan=False):
        return x * 2


@program(breaks=True)
def anomaly_set(x):
    with torch.autograd.set_detect_anomaly(False):
        return x * 2


@program
def attention_backend(x):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = x[None, None]
    with sdpa_kernel(SDPBackend.MATH):
        a = F.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        return a + F.scaled_dot_product_attention(q, q, q)


@program
def record_functions(x):
    with torch.autograd.profiler.record_function("a"):
        y = x * 2
    with torch.profiler.record_function("b"):
        y = y + 1
    return y


@torch.profiler.record_function("whole")
def _recorded(x):
    return x * 2


@program
def record_function_decorator(x):
    return _recorded(x)


@program
def autocast_forms(x):
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        a = x @ x.T
    with torch.amp.autocast("cpu"):
        b = x @ x.T
    with torch.amp.autocast("cpu", enabled=False):
        c = x @ x.T
    with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
        d = x @ x.T
    return a, b, c, d


@program(graphs=0)
def autocast_asked(x):
    with torch.autocast("cpu", torch.bfloat16):
        on = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()
    return x, on, torch.is_autocast_enabled("cpu")


@torch.autocast("cpu", torch.bfloat16)
def _cast(x):
    return x @ x.T


@torch.amp.autocast("cpu", enabled=False)
def _uncast(x):
    return x @ x.T


@program
def autocast_decorators(x):
    with torch.autocast("cpu", torch.bfloat16):
        return _cast(x), _uncast(x)


@program
def autocast_object_reused(x):
    c = torch.autocast("cpu", torch.bfloat16)
    with c:
        a = x @ x.T
    with c:
        b = x @ x.T
    return a + b


@program
def autocast_cuda_here(x):
    with torch.autocast("cuda", enabled=False):
        return x @ x.T


@program(graphs=3, breaks=True)
def autocast_custom_forward(x):
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Mul.apply(x)


class AmpFunction(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


@program(args=lambda i: [tensor(i).requires_grad_()])
def autocast_custom_function(x):
    with torch.autocast("cpu", torch.bfloat16):
        return AmpFunction.apply(x @ x.T).sum()


@program(args=lambda i: [tensor(i).requires_grad_()])
def grad_scaler_disabled(x):
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    return scaler.scale((x * 2).sum())


@torch.inference_mode
def _inferred(x):
    return x * 2


@torch.inference_mode(False)
def _not_inferred(x):
    return x * 2


@torch.inference_mode()
def _inferred_called(x):
    return x * 2, torch.is_inference_mode_enabled()


@program(args=lambda i: [tensor(i).requires_grad_()])
def inference_decorators(x):
    return _inferred_called(x)[1], _not_inferred(x)


@program(args=lambda i: [tensor(i)])
def inference_argument(x):
    with torch.inference_mode(mode=False):
        y = x * 2
    with torch.inference_mode(True):
        z = x * 3
        n = z.sum().shape
    return y, n


@program(args=lambda i: [tensor(i).requires_grad_()])
def grad_enabled_function(x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(before)
    return y, x * 3


@torch.set_grad_enabled(False)
def _without(x):
    return x * 2


@torch.enable_grad()
def _with(x):
    return x * 3


@torch.no_grad
def _bare(x):
    return x * 4


@program(args=lambda i: [tensor(i).requires_grad_()])
def grad_mode_decorators(x):
    with torch.no_grad():
        return _without(x), _with(x), _bare(x)


@program(args=lambda i: [tensor(i).requires_grad_()])
def grad_mode_generator(x):
    @torch.no_grad()
    def parts(t):
        yield t * 2
        yield t * 3

    return sum(parts(x)), x * 2


@program
def function_disabled_here(x):
    with torch._C.DisableTorchFunction():
        return x * 2


@program(breaks=True)
def matmul_precision(x):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    y = x @ x.T
    torch.set_float32_matmul_precision(before)
    return y, before


@program(breaks=True)
def threads_asked(x):
    return x * 2, torch.get_num_threads() > 0


@program
def cuda_asked(x):
    return (
        x.cuda() if torch.cuda.is_available() else x * 2,
        torch.cuda.device_count(),
        torch.backends.mps.is_available(),
        torch.backends.cudnn.enabled,
    )


@program(graphs=0, breaks=True)
def flop_counter(x):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as c:
        y = x @ x.T
    return y, c.get_total_flops()


@program(breaks=True)
def view_replay(x):
    with torch.autograd._force_original_view_tracking(True):
        return x.view(-1) * 2


@program(graphs=2, breaks=True)
def unsafe_version(x):
    y = x * 2
    with torch.autograd._unsafe_preserve_version_counter(y):
        y.add_(1)
    return y
