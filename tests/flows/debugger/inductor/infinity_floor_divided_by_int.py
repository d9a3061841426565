"""An infinity floor-divided by integers: NaN in eager, an infinity in Inductor."""
# Found by tests/flows/debugger/inductor_search.py, seed 12.

import torch


def program(d):
    v3 = float("inf") // d
    return (v3,)


def inputs():
    return [
        torch.tensor(
            [-2147483648, -1, 32, -128, 33, 256, -128, 64, 64, -128, 32, 127, 0, 255, -32768], dtype=torch.int32
        ).reshape(3, 5)
    ]


if __name__ == "__main__":
    torch.compile(program)(*inputs())
