"""acosh of a large bfloat16 number: finite in eager, infinite in Inductor."""
# Found by tests/flows/debugger/inductor_search.py, seed 19.

import torch


def program(c):
    v2 = torch.acosh(c)
    return (v2,)


def inputs():
    return [
        torch.tensor(
            [-9.3e18, 2147483648.0, 1e20, 65504.0, 2.0, 88.8, 2.5, 9.3e18, 1e-40, 1e-6, 2.0, -1.0, 1e-3, -129.0, 3.0],
            dtype=torch.bfloat16,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
