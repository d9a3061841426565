"""Backends on torch's Inductor with one thing planted in each: a wrong pattern, a wrong decomposition."""

import torch
from torch._inductor.compile_fx import compile_fx
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.pattern_matcher import Arg, CallFunction, PatternMatcherPass, register_graph_pattern

PATTERNS = PatternMatcherPass(pass_name="planted", subsystem="post_grad_passes")


@register_graph_pattern(CallFunction(torch.ops.aten.tanh.default, Arg()), pass_dict=PATTERNS)
def tanh_to_cos(match, x):
    match.replace_by_example(lambda a: torch.ops.aten.cos.default(a), [x])


def _apply_patterns(graph):
    PATTERNS.apply(graph)


def wrong_pattern(gm, inputs):
    return compile_fx(gm, inputs, config_patches={"post_grad_custom_post_pass": _apply_patterns})


def wrong_decomposition(gm, inputs):
    table = {**select_decomp_table(), torch.ops.aten.sinh.default: lambda x: x.exp() - 1}
    return compile_fx(gm, inputs, decompositions=table)
