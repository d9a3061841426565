"""Without a backend, `cutaway.compile` means native; under `torch.compile`, `backend="cutaway"` does."""

import os
import subprocess
import sys

import cutaway
import pytest
import torch
from cutaway import _aot
from torch.nn import functional as F


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.up, self.down = torch.nn.LayerNorm(24), torch.nn.Linear(24, 48), torch.nn.Linear(48, 24)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def step(model, x):
    loss = model(x).square().mean()
    loss.backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    return [loss.detach(), *gradients]


def test_without_a_name():
    cutaway.reset()
    model, x = Block(), torch.randn(3, 5, 24)
    want = step(model, x)
    compiled = cutaway.compile(model)
    for _ in range(3):  # operators first, kernels when they are there
        for a, b in zip(want, step(compiled, x), strict=True):
            torch.testing.assert_close(a, b)


def test_the_name_is_native(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import cutaway, torch\ncutaway.compile(lambda x: x.sin() * 2)(torch.ones(64))\n")
    environment = {**os.environ, "CUTAWAY_DEBUG": "4", "CUTAWAY_DEBUG_DIR": str(tmp_path)}
    subprocess.run([sys.executable, script], env=environment, check=True, stderr=subprocess.DEVNULL)
    assert [path for path in tmp_path.rglob("output_code.cpp")]


@pytest.mark.parametrize("dynamic", [False, True])
def test_under_torch_compile(dynamic):
    torch._dynamo.reset()
    model = Block()
    compiled = torch.compile(model, backend=_aot.native, dynamic=dynamic)
    for batch in (3, 3, 4, 7):
        x = torch.randn(batch, 5, 24)
        for a, b in zip(step(model, x), step(compiled, x), strict=True):
            torch.testing.assert_close(a, b)
    with torch.no_grad():
        x = torch.randn(2, 24)
        torch.testing.assert_close(model(x), compiled(x))
    torch._dynamo.reset()


def test_options_are_refused():
    with pytest.raises(Exception, match="the backend takes no options: mode"):
        torch.compile(lambda x: x + 1, backend=lambda gm, ex: _aot.native(gm, ex, mode="fast"))(torch.ones(2))
    torch._dynamo.reset()
