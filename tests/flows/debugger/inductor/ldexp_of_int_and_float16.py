"""ldexp of int16 by float16: float16 in eager, float32 in Inductor."""
# Found by tests/flows/debugger/inductor_search.py, seed 204.

import torch


def program(a, d):
    v1 = torch.ldexp(a, d)
    return (v1,)


def inputs():
    return [
        torch.tensor([-1, 128, -3, -2, 33, 64, 8, 2, 32767, 128, 3, 8, 33, -1, 63], dtype=torch.int16).reshape(3, 5),
        torch.tensor(
            [
                1e20,
                88.8,
                1.5,
                1e20,
                88.8,
                2147483648.0,
                2147483648.0,
                256.0,
                9.3e18,
                float("inf"),
                1e4,
                3.0,
                -0.0,
                -0.5,
                1e-6,
            ],
            dtype=torch.float16,
        ).reshape(3, 5),
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
