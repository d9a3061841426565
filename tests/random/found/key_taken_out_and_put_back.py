# seed 9615510, fx: different
import torch.utils.checkpoint

def fn(x1, x2, x3, x4):
    for v26 in x2.items():
        del x2['a']
        x2['a'] = x4

def inputs(k):
    x1 = torch.randn
    x2 = {'a': torch.randn}
    x3 = 1
    x4 = torch.randn
    return ([x1, x2, x3, x4], {})

def between(k):
    pass
