"""Infinities of float16 floor-divided by a number: NaN in eager, infinite in Inductor."""
# Found by tests/flows/debugger/inductor_search.py, seed 225.

import torch


def program(c):
    v8 = c // 1.5
    return (v8,)


def inputs():
    return [
        torch.tensor(
            [
                256.0,
                -2.5,
                float("inf"),
                -3e38,
                -2.5,
                1e4,
                1e4,
                4.0,
                256.0,
                -129.0,
                -9.3e18,
                1.0,
                float("nan"),
                1e-40,
                1e-3,
            ],
            dtype=torch.float16,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
