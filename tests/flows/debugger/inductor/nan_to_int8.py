"""NaN and infinities of a bfloat16 logarithm to int8."""
# Found by tests/flows/debugger/inductor_search.py, seed 202.

import torch


def program(c):
    v0 = torch.log(c)
    v5 = v0.to(torch.int8)
    v8 = torch.erfc(v5)
    return (v8,)


def inputs():
    return [
        torch.tensor(
            [
                -2.5,
                -1.0,
                float("-inf"),
                -129.0,
                1e-45,
                float("nan"),
                -2.5,
                1e-3,
                3.0,
                0.5,
                255.5,
                -0.5,
                1e-40,
                3.0,
                -9.3e18,
            ],
            dtype=torch.bfloat16,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
