# inference mode entered behind a grad mode that was left in the same graph
import torch


def fn(x1):
    with torch.no_grad():
        v1 = x1 + 1
        print(torch.is_grad_enabled())
        v2 = x1 * 2
    with torch.inference_mode():
        v3 = (x1 * 3).is_inference()
        print(torch.is_grad_enabled())
        v4 = (x1 * 4).is_inference()
    return v1, v2, v3, v4, torch.is_grad_enabled()


def inputs(k):
    return [torch.randn(3, requires_grad=True)], {}


def between(k):
    pass
