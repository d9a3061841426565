# seed 1812, fx: different
import torch.nn.functional as F
import torch.utils.checkpoint

def helper(p, k=2):
    return F.gelu(p, approximate='tanh')

def fn(x1):
    v2 = torch.utils.checkpoint.checkpoint(helper, x1, 2, use_reentrant=False)
    return v2

def inputs(k):
    n, m, dtype = (k, k, torch.float32)
    x1 = torch.randn(n, m, dtype=dtype, requires_grad=k != 2)
    return (x1, {})

def between(k):
    pass
