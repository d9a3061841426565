"""float32 to int8 where the number does not fit."""
# Found by tests/flows/debugger/inductor_search.py, seed 22.

import torch


def program(c):
    v4 = c.to(torch.int8)
    return (v4,)


def inputs():
    return [
        torch.tensor(
            [65504.0, 88.8, 1.5, 6e-8, 6e-8, -2.5, -9.3e18, 0.0, -3e38, 1e-6, float("-inf"), 9.3e18, 1e-45, 88.8, 1e4],
            dtype=torch.float32,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
