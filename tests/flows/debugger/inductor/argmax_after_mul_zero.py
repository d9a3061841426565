"""argmax of values times 0, of which an infinity makes a NaN: its place in eager, 0 in Inductor."""
# Found by tests/flows/debugger/inductor_search.py, seed 27.

import torch


def program(c):
    v3 = torch.cat([c, c])
    v6 = v3 * 0
    v12 = v6.argmax()
    return (v12,)


def inputs():
    return [
        torch.tensor(
            [
                65504.0,
                float("-inf"),
                -104.0,
                1.0,
                2.5,
                0.1,
                1.5,
                1e-45,
                1e-6,
                0.0,
                -2.5,
                float("nan"),
                1e20,
                1.5,
                255.5,
            ],
            dtype=torch.bfloat16,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
