"""The remainder of large bfloat16 numbers."""
# Found by tests/flows/debugger/inductor_search.py, seed 0.

import torch


def program(b):
    v2 = b % 255
    return (v2,)


def inputs():
    return [
        torch.tensor(
            [1e-45, 1e-6, 1.5, 65504.0, -1.0, -0.0, -3e38, 7.0, 0.9999999, -1.0, 255.5, -9.3e18, 3e38, 1e-3, 0.9999999],
            dtype=torch.bfloat16,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
