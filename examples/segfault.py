"""A GPT-2 with a compiler backend of one's own, whose code for one operator kills the process."""

import ctypes

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def my_compiler(graph_module, example_inputs):
    """Runs the graph as it is, but for tanh, where it reads through a null pointer as a miscompiled kernel would."""

    class Kernels(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.tanh:
                ctypes.string_at(0)
            return super().call_function(target, args, kwargs)

    return Kernels(graph_module).run


torch.manual_seed(0)
config = GPT2Config(n_layer=2, n_embd=64, n_head=2, n_positions=32, vocab_size=500, attn_implementation="eager")
model = torch.compile(GPT2LMHeadModel(config).eval(), backend=my_compiler)
tokens = torch.randint(0, config.vocab_size, (1, 12))
with torch.no_grad():
    print(model(tokens).logits.mean())
