"""The remainder of a large float32 number by a small one."""
# Found by tests/flows/debugger/inductor_search.py, seed 305.

import torch


def program(a):
    v7 = a % 7
    return (v7,)


def inputs():
    return [
        torch.tensor(
            [2147483648.0, 1e4, -104.0, -2.5, 2.5, -2.5, 7.0, 2.0, 65504.0, 3.0, -2.5, 0.0, 0.1, -7.0, 1e-40],
            dtype=torch.float32,
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
