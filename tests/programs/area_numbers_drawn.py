# ruff: noqa
"""Random numbers of Python, numpy and torch, seeds, numpy arrays, numbers read out of tensors."""

import math
import random

import numpy as np
import torch
from tests.support.registry import built, program, tensor

TRIANGLE = np.tril_indices(3)
TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
WEIGHTS = np.linspace(0, 1, 4)


@program(graphs=2, breaks=True)
def random_uniform(x):
    y = x.sin()
    r = random.uniform(0, 1)
    return y + 1 + r


@program(graphs=2, breaks=True)
def random_random(x):
    return x * random.random() + random.random()


@program(graphs=2, breaks=True)
def random_integers(x):
    return x + random.randint(1, 6) + random.randrange(10)


@program(breaks=True)
def random_choice(x):
    return x + random.choice([1, 2, 3])


@program(breaks=True)
def random_shuffle(x):
    l = [1, 2, 3, 4]
    random.shuffle(l)
    return x + l[0], l


@program(breaks=True)
def random_sample(x):
    return x + sum(random.sample(range(10), 3))


@program(graphs=2, breaks=True)
def random_normal(x):
    return x + random.gauss(0, 1) + random.normalvariate(0, 1)


@program(breaks=True)
def random_seeded(x):
    random.seed(5)
    return x + random.random()


@program(graphs=2, breaks=True)
def random_own_generator(x):
    r = random.Random(3)
    return x + r.random() + r.randint(0, 5)


@built(graphs=2, breaks=True)
def random_generator_outside():
    r = random.Random(3)
    return lambda x: x + r.random()


@program(breaks=True)
def random_branch(x):
    if random.random() < 0.5:
        return x + 1
    return x - 1


@program(breaks=True)
def manual_seed(x):
    torch.manual_seed(3)
    return x + torch.rand(3, 4)


@program(breaks=True)
def generator_made(x):
    g = torch.Generator().manual_seed(3)
    return x + torch.rand(3, 4, generator=g)


@program(graphs=2, breaks=True)
def rng_state(x):
    s = torch.get_rng_state()
    a = torch.rand(4)
    torch.set_rng_state(s)
    return x + a - torch.rand(4)


@program
def from_numpy(x):
    return x + torch.from_numpy(TABLE)


@program
def tensor_of_array(x):
    return x + torch.tensor(TABLE) + torch.as_tensor(WEIGHTS, dtype=torch.float32)


@program
def array_shape(x):
    return x + TABLE.shape[0] + TABLE.ndim + TABLE.size, str(TABLE.dtype)


@program(graphs=3, breaks=True)
def array_item(x):
    return x + float(WEIGHTS[1]) + WEIGHTS[2].item()


@program
def array_index(x):
    return x.sin()[TRIANGLE[0], TRIANGLE[1]] + 1


@program
def array_index_set(x):
    y = x.clone()
    y[TRIANGLE[0], TRIANGLE[1]] = 0.0
    return y + 1


@program
def array_made(x):
    a = np.array([1.0, 2.0, 3.0, 4.0])
    return x + torch.from_numpy(a).float()


@program
def array_loop(x):
    for w in np.arange(3):
        x = x + int(w)
    return x


@program
def array_linspace_list(x):
    rates = [float(v) for v in np.linspace(0, 0.1, 3)]
    return x * rates[1] + rates[2]


@program
def numpy_of_tensor(x):
    a = x.detach().numpy()
    return torch.from_numpy(a * 2)


@program
def numpy_functions(x):
    return x + np.sqrt(4.0) + np.prod((2, 3)) + np.ceil(1.5) + np.pi


@program
def numpy_argsort(x):
    order = np.argsort([3, 1, 2])
    return x[:, torch.as_tensor(order)]


@program(breaks=True)
def numpy_random(x):
    np.random.seed(0)
    return x + np.random.rand()


@program
def numpy_cumsum(x):
    ends = np.cumsum([1, 2, 3])
    return x + int(ends[-1]), ends.tolist()


@program
def array_times_tensor(x):
    return x * torch.as_tensor(TABLE * 2 + 1)


@program(graphs=3)
def item_as_number(x):
    return x * x.sum().item()


@program(graphs=3)
def float_of_tensor(x):
    return x * float(x.mean())


@program(graphs=3)
def int_of_tensor(x):
    return x + int(x.abs().sum())


@program(graphs=3)
def tolist(x):
    a, b = x[0, :2].tolist()
    return x + a * b


@program
def item_returned(x):
    return x + 1, x.max().item()


@program
def item_of_constant(x):
    return x + torch.tensor(3).item()


@program(graphs=4, breaks=True)
def item_in_text(x):
    s = f"{x.sum().item():.3f}"
    return x + 1, s


@program(graphs=3)
def item_as_size(x):
    n = (x > 0).sum().item()
    return torch.zeros(n) + 1


@program
def nonzero(x):
    return x.nonzero().float() + 1


@program(graphs=3)
def boolean_mask(x):
    return x[x > 0] * 2


@program(graphs=2)
def unique(x):
    return torch.unique((x * 2).int()) + 1


@program(graphs=3)
def masked_select(x):
    return x.masked_select(x > 0).sum()


@program(graphs=3)
def where_one_argument(x):
    i, j = torch.where(x > 0)
    return x[i, j] + 1


@program
def repeat_interleave(x):
    return x.repeat_interleave(torch.tensor([1, 2, 1]), dim=0) + 1


@program
def split_by_sizes_of_tensor(x):
    sizes = torch.tensor([1, 3])
    return [p + 1 for p in x.split(sizes.tolist(), dim=1)]


@program
def math_of_tensor(x):
    return x + math.sqrt(x.shape[0]) + math.ceil(x.numel() / 5)


@program
def bernoulli_distribution(x):
    return torch.distributions.Bernoulli(torch.sigmoid(x)).sample() + x


@program
def normal_distribution(x):
    return torch.distributions.Normal(x, x.exp()).rsample() + 1


@program
def normal_log_prob(x):
    return torch.distributions.Normal(0.0, 1.0).log_prob(x)


@program
def categorical_distribution(x):
    d = torch.distributions.Categorical(logits=x)
    return d.entropy() + d.log_prob(torch.tensor([0, 1, 2]))


@program
def distribution_not_validated(x):
    return torch.distributions.Normal(x, 1.0, validate_args=False).log_prob(x + 1)
