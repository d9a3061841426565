# ruff: noqa
"""Operators that take functions: regions of a graph (cond, while_loop, scan, map), and those whose Python is captured whole (associative scans, flex attention, checkpoints with policies)."""

import contextlib
import functools

import torch
import torch.utils.checkpoint as checkpoints
from tests.support.registry import built, leaf, program, tensor
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


@program
def map_of_rows(x):
    return map_rows(lambda row: row.sin() * 2, x)


def whole_numbers(i):
    """Gradients are added in another order than eager's: these have no rounding."""
    return [(torch.arange(12.0).view(3, 4) + i).requires_grad_()]


@program(args=whole_numbers)
def map_with_gradients(x):
    w = x * 2
    return map_rows(lambda row: row * w.sum() + row * row, x)


@program
def map_of_trees(x):
    return map_rows(lambda rows, k: {"sum": rows[0] + rows[1] * k, "sin": rows[0].sin()}, (x, x * 2), x.sum())


@program
def scan_of_rows(x):
    return scan(lambda c, row: (c + row, c * row), torch.zeros(4), x)


@program
def scan_of_columns_backwards(x):
    return scan(lambda c, column: (c + column, c * column), torch.zeros(3), x, dim=1, reverse=True)


@program
def scan_of_trees(x):
    w = x.sum()
    return scan(lambda c, row: ({"a": c["a"] + row["x"] * w}, [c["a"].sin()]), {"a": torch.zeros(4)}, {"x": x})


@program(args=lambda i: [leaf(i)])
def scan_with_gradients(x):
    w = x[0] * 2

    def step(c, row):
        h = torch.tanh(c * w + row)
        return h, h * 3

    return scan(step, torch.zeros(4), x)


@program(args=lambda i: [tensor(i)[: 2 + i % 2]], calls=4, graphs=2)
def scan_of_another_length(x):
    return scan(lambda c, row: (c + row, c * row), torch.zeros(4), x)


@program
def associative_sum(x):
    return associative_scan(lambda a, b: a + b, x, dim=0, combine_mode="generic")


@program
def associative_pairs_backwards(x):
    combine = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])
    return associative_scan(combine, (x, x.sin()), dim=1, combine_mode="generic", reverse=True)


def heads(x):
    return x[None, None].repeat(1, 2, 1, 4)


@program
def flex_plain(x):
    return flex_attention(heads(x), heads(x) * 2, heads(x) + 1)


@program
def flex_scores(x):
    slope = x.sum()
    return flex_attention(heads(x), heads(x), heads(x), score_mod=lambda s, b, h, i, j: s + (i - j) * slope)


@built
def flex_mask_from_outside():
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 2, 3, 3, device="cpu")
    return lambda x: flex_attention(heads(x), heads(x), heads(x), block_mask=mask)


@program(args=whole_numbers)
def while_with_gradients(x):
    i, a = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2 + x), (torch.tensor(0), x * 1))
    return i + 0, a + 0


@program
def cond_of_a_number(x):
    return torch.cond(x.shape[0] > 2, lambda t: t.sin(), lambda t: t.cos(), (x,))


@program
def cond_with_a_number_among_results(x):
    return torch.cond(x.sum() > 0, lambda t: (t + 1, 3), lambda t: (t * 2, 3), (x,))


@built
def cond_where_one_branch_has_parameters():
    torch.manual_seed(0)
    linear = nn.Linear(4, 2)

    def f(x):
        y = torch.cond(x.sum() > 0, linear, lambda t: t @ torch.ones(4, 2), (x,))
        return y, y.requires_grad

    return f


@program(args=lambda i: [leaf(i)])
def cond_that_cuts_a_gradient(x):
    return torch.cond(x.sum() > 0, lambda t: t.detach() * 2, lambda t: t.sin(), (x,))


@torch.compiler.nested_compile_region
def region(t, k):
    return t.sin() * k, t.cos()


@program(args=lambda i: [leaf(i)])
def nested_regions(x):
    return region(region(x, 2.0)[0], 3.0)


@program
def mapped_lists(x):
    from torch._higher_order_ops.foreach_map import foreach_map

    return foreach_map(torch.add, [x, x * 2], [x * 3, x])


@program(args=lambda i: [leaf(i)])
def checkpoint_with_operators_to_save(x):
    contexts = functools.partial(checkpoints.create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    return checkpoints.checkpoint(lambda a: (a @ a.T).sin().cos(), x, use_reentrant=False, context_fn=contexts)


@program(args=lambda i: [leaf(i)])
def checkpoint_with_a_policy(x):
    def policy(ctx, op, *args, **kwargs):
        if op == torch.ops.aten.mm.default:
            return checkpoints.CheckpointPolicy.MUST_SAVE
        return checkpoints.CheckpointPolicy.PREFER_RECOMPUTE

    contexts = lambda: checkpoints.create_selective_checkpoint_contexts(policy)
    return checkpoints.checkpoint(lambda a: (a @ a.T).sin().cos(), x, use_reentrant=False, context_fn=contexts)


@built(args=lambda i: [leaf(i)], graphs=0, breaks=True)
def checkpoint_with_a_policy_that_counts():
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append(str(op))
        return checkpoints.CheckpointPolicy.PREFER_RECOMPUTE

    def f(x):
        contexts = functools.partial(checkpoints.create_selective_checkpoint_contexts, policy)
        y = checkpoints.checkpoint(lambda a: (a @ a.T).sin(), x, use_reentrant=False, context_fn=contexts)
        return y, list(asked)

    return f


@program(args=lambda i: [leaf(i)])
def checkpoint_with_empty_contexts(x):
    contexts = lambda: (contextlib.nullcontext(), contextlib.nullcontext())
    return checkpoints.checkpoint(lambda a: a.sin().cos(), x, use_reentrant=False, context_fn=contexts)


@program
def dual_level(x):
    import torch.autograd.forward_ad as forward

    with forward.dual_level():
        return forward.unpack_dual(forward.make_dual(x, torch.ones_like(x)).sin()).tangent


class Sine(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@program
def vmapped_function(x):
    return torch.vmap(Sine.apply)(x)
