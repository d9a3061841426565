"""Graphs of about 300 nodes from real models with random weights, as after capture and after aot."""

import cutaway
import torch
import transformers
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx


def bert():
    config = transformers.BertConfig(
        num_hidden_layers=12, hidden_size=32, num_attention_heads=2, intermediate_size=64, vocab_size=100
    )
    return transformers.BertModel(config), (torch.randint(0, 100, (2, 8)),)


def gpt2():
    config = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=100, n_positions=16, use_cache=False, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config), (torch.randint(0, 100, (2, 8)),)


def resnet():
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[6, 6], layer_type="basic")
    return transformers.ResNetModel(config), (torch.randn(2, 3, 32, 32),)


def first_output(model, inputs):
    return model(*inputs, return_dict=True)[0]


def captured(model, inputs):
    """What Dynamo gives a backend: Python-level calls, parameters among the inputs."""
    met = []

    def backend(graph_module, example_inputs):
        met.append((cutaway.Graph.from_fx(graph_module, example_inputs), list(example_inputs)))
        return graph_module

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(lambda *tensors: first_output(model, tensors), backend=backend, dynamic=False)(*inputs)
    return max(met, key=lambda pair: len(pair[0].nodes))


def joint(model, inputs):
    """Forward and backward in one graph of ATen operators."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    buffers = dict(model.named_buffers())

    def forward_backward(*tensors):
        weights = dict(zip(names, tensors, strict=False))
        out = functional_call(model, {**weights, **buffers}, tensors[len(names) :], {"return_dict": True})[0]
        loss = (out * out).mean()
        return (loss, *torch.autograd.grad(loss, list(weights.values()), allow_unused=True))

    tensors = [*(p.detach().clone().requires_grad_() for p in parameters), *inputs]
    traced = make_fx(forward_backward, tracing_mode="fake", _allow_non_fake_inputs=True)(*tensors)
    plain = [t.detach() for t in tensors]
    graph = cutaway.Graph.from_fx(traced, plain)
    return graph, [*graph.lifted, *plain] if len(graph.inputs) > len(plain) else plain


GRAPHS = {
    "bert_captured": (bert, captured, "capture"),
    "gpt2_joint": (gpt2, joint, "aot"),
    "resnet_joint": (resnet, joint, "aot"),
}


def make(name):
    """(graph, inputs, stage)"""
    model, way, stage = GRAPHS[name]
    torch.manual_seed(0)
    module, inputs = model()
    graph, values = way(module.eval(), inputs)
    return graph, values, stage
