# ruff: noqa
"""Conditions of data where one way does nothing but raise: the graph checks them. Among them the validation of torch.distributions."""

import torch
import torch.distributions as D
from tests.support.registry import built, program, tensor


@program
def raises_where_wrong(x):
    if not (x.abs() < 100).all():
        raise ValueError("too large")
    return x * 2


@program
def raises_where_right(x):
    if x.isnan().any():
        raise ValueError(f"not a number in a tensor of shape {tuple(x.shape)}")
    return x * 2


@program
def asserted(x):
    assert (x * x >= 0).all(), "a square below zero"
    assert x.sum() == x.sum()
    return x + 1


@program(args=lambda i: [tensor(i) if i != 1 else tensor(i) * 1000])
def fails_sometimes(x):
    if not (x.abs() < 100).all():
        raise ValueError(f"too large: {x.abs().max().item():.1f}")
    return x * 2


@program(args=lambda i: [tensor(i) if i != 1 else tensor(i) * 1000], graphs=2)
def fails_in_a_callee(x):
    def checked(t):
        assert t.max() < 100, "too large"
        return t + 1

    return checked(x * 2) - 1


@program(args=lambda i: [tensor(i) if i != 1 else tensor(i) * 1000])
def fails_and_is_caught(x):
    try:
        if not (x.abs() < 100).all():
            raise ValueError("too large")
        return x * 2
    except ValueError as error:
        return x, str(error)


@program(args=lambda i: [tensor(i) if i != 1 else tensor(i) * 1000])
def fails_after_random_numbers(x):
    noise = torch.rand_like(x)
    if not (x.abs() < 100).all():
        raise ValueError("too large")
    return x + noise


@built(args=lambda i: [tensor(i) if i != 1 else tensor(i) * 1000], graphs=2)
def fails_after_effects():
    seen = []

    def f(x):
        seen.append(len(seen))
        if not (x.abs() < 100).all():
            seen.clear()
            raise ValueError("too large")
        return x * 2, list(seen)

    return f


@program(args=lambda i: [tensor(i) if i != 1 else tensor(i) * 1000], graphs=2, breaks=True)
def written_before(x):
    x.add_(1)
    if not (x.abs() < 100).all():
        raise ValueError("too large")
    return x * 2


@program(args=lambda i: [tensor(i) if i != 1 else tensor(i) * 1000], graphs=2)
def written_behind(x):
    if not (x.abs() < 100).all():
        raise ValueError("too large")
    x.add_(1)
    return x * 2


@program(graphs=3, breaks=True)
def both_ways_go_on(x):
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


@program(args=lambda i: [tensor(i), tensor(i + 1).abs() + 0.1, tensor(i + 2)])
def normal(m, s, x):
    d = D.Normal(m, s)
    return d.log_prob(x), d.entropy(), d.cdf(x)


@program(args=lambda i: [tensor(i), tensor(i + 1).abs() + 0.1 if i != 1 else -tensor(i + 1).abs(), tensor(i + 2)])
def normal_of_a_wrong_scale(m, s, x):
    return D.Normal(m, s).log_prob(x)


@program(args=lambda i: [tensor(i), tensor(i + 1).abs() + 0.1])
def normal_sample(m, s):
    return D.Normal(m, s).rsample((2,))


@program(args=lambda i: [tensor(i), tensor(i + 1).abs() + 0.1])
def divergence(m, s):
    return D.kl_divergence(D.Normal(m, s), D.Normal(torch.zeros_like(m), torch.ones_like(s))).sum()


@program(args=lambda i: [tensor(i), torch.tensor([0, 1, 2])])
def categorical(logits, a):
    d = D.Categorical(logits=logits)
    return d.log_prob(a), d.entropy(), d.probs


@program(args=lambda i: [tensor(i)])
def categorical_sample(logits):
    return D.Categorical(logits=logits).sample()


@program(args=lambda i: [tensor(i)])
def bernoulli(logits):
    return D.Bernoulli(logits=logits).log_prob(torch.ones_like(logits))


@program(args=lambda i: [tensor(i)])
def independent(m):
    return D.Independent(D.Normal(m, torch.ones_like(m)), 1).log_prob(m)


@program(args=lambda i: [tensor(i)])
def squashed(m):
    return D.TransformedDistribution(D.Normal(m, torch.ones_like(m)), [D.transforms.TanhTransform()]).log_prob(
        m.tanh() * 0.5
    )


@program(args=lambda i: [tensor(i), tensor(i + 1)])
def mixture(logits, m):
    return D.MixtureSameFamily(D.Categorical(logits=logits), D.Normal(m, torch.ones_like(m))).log_prob(m[:, 0])


@program(args=lambda i: [tensor(i).abs() + 1])
def positive(a):
    return D.Beta(a, a).log_prob(torch.full_like(a, 0.5)), D.Uniform(torch.zeros_like(a), a).log_prob(a / 2)
