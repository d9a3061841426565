"""Recording a model's forward above autograd, on fake tensors, against make_fx(pre_dispatch=True) on torch's fake tensors.

Both get the same module and the same sizes. Ours makes its fakes anew each time and keeps the user's lines and the module
paths; the peer's fakes are made beforehand, and it is asked for neither.
"""

import pathlib
import sys

import torch
from cutaway import trace
from side_by_side import compare, finish
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from tests.support import model_zoo  # noqa: E402


def peer_of(model, kwargs):
    """make_fx over the module with its state as inputs."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    state = {k: mode.from_tensor(v) for k, v in [*model.named_parameters(), *model.named_buffers()]}
    fakes = {k: mode.from_tensor(v) for k, v in kwargs.items() if isinstance(v, torch.Tensor)}
    rest = {k: v for k, v in kwargs.items() if not isinstance(v, torch.Tensor)}

    def call(state, inputs):
        return torch.utils._pytree.tree_leaves(functional_call(model, state, (), {**inputs, **rest}, tie_weights=False))

    def run():
        with mode:
            return make_fx(call, pre_dispatch=True)(state, fakes)

    return run


for name in model_zoo.MODELS:
    model, kwargs = model_zoo.build(name)
    operators = len(trace.record(model, (), kwargs))
    compare(
        f"record {name}, {operators} operators",
        lambda model=model, kwargs=kwargs: trace.record(model, (), kwargs),
        peer_of(model, kwargs),
        peer_name="make_fx(pre_dispatch=True)",
        at_least=20,
    )
finish()
