# a tensor made of a size that has become symbolic
import torch


def fn(x1):
    n, m = x1.shape
    v1 = x1.clone()
    v1[:, 0] = torch.tensor(n)
    return v1 + torch.tensor([n, 1]).sum() * m


def inputs(k):
    return [torch.randn([3, 4, 2, 3][k], [4, 4, 6, 3][k])], {}


def between(k):
    pass
