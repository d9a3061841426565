"""exception RuntimeError with fault:exception:aten.relu, graph forward

Written by Cutaway; needs torch alone. It shows the graph and its inputs; the failure shows with `cutaway run` on the
folder of this file. Exit status: 2.
"""

import sys

import torch


def graph_under_test(
    linear,  # f32[1, 1]
):
    relu = torch.ops.aten.relu.default(linear)  # tests/old_files/write.py:28 Block.forward
    return (relu,)


def make_inputs():
    linear = torch.empty(0, dtype=torch.float32, device="cpu").set_(torch.full((1,), 0.0).to(torch.float32).to("cpu").untyped_storage(), 0, (1, 1), (1, 1))
    return [linear]


if __name__ == "__main__":
    print("the backend fault:exception:aten.relu is a part of Cutaway, not of torch; run: cutaway run on the folder of this file", file=sys.stderr)
    sys.exit(2)
