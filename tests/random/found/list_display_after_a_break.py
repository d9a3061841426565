# seed 133: differed at exit status -11
import itertools

import torch
import torch.utils.checkpoint


class Target(torch.nn.Module):
    def forward(self, x1, x2):
        for v3 in [*list(itertools.islice([x2], 3)), *tuple]:
            pass


target = Target()
fn = target


def inputs(k):
    x1 = torch.randn
    x2 = torch.randn
    return ([x1], {"x2": x2})


def between(k):
    pass
