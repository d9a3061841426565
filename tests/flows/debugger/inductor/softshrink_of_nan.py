"""softshrink of NaN (out of a clamp with a NaN bound, tan and mish): NaN in eager, a number in Inductor."""
# Found by tests/flows/debugger/inductor_search.py, seed 207.

import torch
import torch.nn.functional as F


def program(c):
    v0 = c.clamp(max=float("nan"))
    v2 = torch.tan(v0)
    v10 = F.mish(v2)
    v12 = F.softshrink(v10, 0.3)
    return (v12,)


def inputs():
    return [
        torch.tensor(
            [1, 100, 2147483647, 3, 32767, 2, 8, 4294967296, 65535, 4294967296, -9223372036854775808, 256, 7, 64, 255],
            dtype=torch.int64,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
