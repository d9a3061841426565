"""The remainder of -0.0 by numbers, among them infinities: 0 in eager, NaN in Inductor."""
# Found by tests/flows/debugger/inductor_search.py, seed 200.

import torch


def program(a):
    v5 = -0.0 % a
    return (v5,)


def inputs():
    return [
        torch.tensor(
            [
                float("inf"),
                1.5,
                6e-8,
                float("nan"),
                1e20,
                2.5,
                float("inf"),
                1e20,
                6e-8,
                1e20,
                0.1,
                1e-40,
                3.0,
                0.5,
                65504.0,
            ],
            dtype=torch.float32,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
