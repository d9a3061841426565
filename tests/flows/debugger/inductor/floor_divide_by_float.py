"""A number floor-divided by minus infinity: -1 in eager, -0.0 in Inductor."""
# Found by tests/flows/debugger/inductor_search.py, seed 32.

import torch


def program(a):
    v1 = a.to(torch.float32)
    v5 = 7 // v1
    return (v5,)


def inputs():
    return [
        torch.tensor(
            [
                1.5,
                65504.0,
                -1e-40,
                -7.0,
                float("inf"),
                float("-inf"),
                -1.0,
                3e38,
                88.8,
                -3e38,
                0.0,
                -104.0,
                7.0,
                256.0,
                float("nan"),
            ],
            dtype=torch.float64,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
