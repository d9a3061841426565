"""`cutaway.same` against torch's, on 256 MB of float32, alone and with an fp64 reference of 512 MB."""

import logging

import cutaway
import torch
from side_by_side import compare, finish
from torch._dynamo.utils import same as torch_same

logging.disable(logging.CRITICAL)  # torch's logs the differences that the bench is about
ELEMENTS = 64 << 20

reference = torch.randn(ELEMENTS)
equal = reference.clone()
near = reference * (1 + 1e-6)
wrong = reference + 1e-2 * torch.randn(ELEMENTS)
fp64 = reference.double() + 1e-8


def claim(name: str, result: torch.Tensor, exact: torch.Tensor | None, expected: bool) -> None:
    assert bool(cutaway.same(reference, result, exact)) == expected == torch_same(reference, result, exact)
    compare(
        name,
        lambda: cutaway.same(reference, result, exact),
        lambda: torch_same(reference, result, exact),
        peer_name="torch._dynamo.utils.same",
        repeat=5,
        at_least=20,
    )


claim("same, 256 MB, equal", equal, None, True)
claim("same, 256 MB, within tolerance", near, None, True)
claim("same, 256 MB, unequal", wrong, None, False)
claim("same, 256 MB + fp64, equal", equal, fp64, True)
claim("same, 256 MB + fp64, unequal", wrong, fp64, False)
finish()
