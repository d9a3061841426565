"""Real models through every way in and out (export, make_fx, Dynamo, .pt2, fx, a script), against eager bit for bit."""

import subprocess
import sys

import cutaway
import pytest
import torch
from torch.utils import _pytree as pytree

transformers = pytest.importorskip("transformers")


def small(config_class, **sizes):
    config = config_class(**sizes)
    config.use_cache = False
    config._attn_implementation = "sdpa"
    return config


def bert():
    c = small(
        transformers.BertConfig,
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=2,
        intermediate_size=128,
        vocab_size=200,
    )
    return transformers.BertModel(c), {"input_ids": torch.randint(0, 200, (2, 12))}


def gpt2():
    c = small(transformers.GPT2Config, n_layer=2, n_embd=64, n_head=2, vocab_size=200, n_positions=32)
    return transformers.GPT2LMHeadModel(c), {"input_ids": torch.randint(0, 200, (2, 12))}


def llama():
    c = small(
        transformers.LlamaConfig,
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=128,
        vocab_size=200,
        max_position_embeddings=64,
    )
    return transformers.LlamaForCausalLM(c), {"input_ids": torch.randint(0, 200, (2, 12))}


def resnet():
    c = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic")
    return transformers.ResNetModel(c), {"pixel_values": torch.randn(2, 3, 32, 32)}


def vit():
    c = small(
        transformers.ViTConfig,
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=2,
        intermediate_size=128,
        image_size=32,
        patch_size=8,
    )
    return transformers.ViTModel(c), {"pixel_values": torch.randn(2, 3, 32, 32)}


def t5():
    c = small(
        transformers.T5Config,
        num_layers=2,
        num_decoder_layers=2,
        d_model=64,
        d_kv=32,
        d_ff=128,
        num_heads=2,
        vocab_size=200,
    )
    ids = torch.randint(0, 200, (2, 12))
    return transformers.T5Model(c), {"input_ids": ids, "decoder_input_ids": ids[:, :7].clone()}


MODELS = {f.__name__: f for f in (bert, gpt2, llama, resnet, vit, t5)}


class Tensors(torch.nn.Module):
    """The model with its tensor outputs alone, so that torch.export and make_fx have something plain to return."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors):
        out = self.model(**dict(zip(self.names, tensors, strict=True)), return_dict=True)
        return tuple(v for v in pytree.tree_leaves(dict(out)) if isinstance(v, torch.Tensor))


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    torch.manual_seed(0)
    model, inputs = MODELS[request.param]()
    module = Tensors(model.eval(), list(inputs)).eval()
    tensors = tuple(inputs.values())
    with torch.no_grad():
        expected = module(*tensors)
    return request.param, module, tensors, expected


def check_text(graph):
    text = str(graph)
    again = cutaway.Graph.parse(text)
    assert str(again) == text
    assert again.digest() == graph.digest()


def check_equal(got, expected):
    assert len(got) == len(expected)
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype and torch.equal(g, e)


def run_alone(script, tmp_path, inputs):
    """The script in a process of its own, in which Cutaway cannot be imported."""
    (tmp_path / "script.py").write_text(script)
    torch.save([t.detach() for t in inputs], tmp_path / "inputs.pt")
    (tmp_path / "cutaway.py").write_text("raise ImportError('a script needs torch alone')")
    subprocess.run(
        [sys.executable, "script.py", "--inputs", "inputs.pt", "--save", "out.pt"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    return torch.load(tmp_path / "out.pt", weights_only=True)


def test_export(case, tmp_path):
    name, module, tensors, expected = case
    program = torch.export.export(module, tensors, strict=False)
    graph = cutaway.Graph.from_export(program)
    check_text(graph)
    with torch.no_grad():
        check_equal(graph.run(*tensors), expected)
        check_equal(graph.to_fx()(*tensors), expected)
    names = {i.qualified_name for i in graph.inputs if i.kind == "parameter"}
    assert names == {name for name, _ in module.named_parameters(remove_duplicate=False)} & names and names
    assert "import cutaway" not in graph.to_python()
    with torch.no_grad():
        check_equal([o.detach() for o in run_alone(graph.to_python(), tmp_path, [*graph.lifted, *tensors])], expected)


def test_pt2_file(case, tmp_path):
    name, module, tensors, expected = case
    torch.export.save(torch.export.export(module, tensors, strict=False), tmp_path / "model.pt2")
    graph = cutaway.Graph.from_export(tmp_path / "model.pt2")
    with torch.no_grad():
        check_equal(graph.run(*tensors), expected)


def test_make_fx(case):
    from torch.fx.experimental.proxy_tensor import make_fx

    name, module, tensors, expected = case
    with torch.no_grad():
        graph = cutaway.Graph.from_fx(
            make_fx(module, tracing_mode="fake", _allow_non_fake_inputs=True)(*tensors), tensors
        )
        check_text(graph)
        check_equal(graph.run(*tensors), expected)


def test_dynamo_graphs(case):
    name, module, tensors, expected = case
    met = []

    def backend(graph_module, example_inputs):
        graph = cutaway.Graph.from_fx(graph_module, example_inputs)
        check_text(graph)
        met.append(graph)
        back = graph.to_fx()

        def run(*inputs):
            ours = graph.run(*inputs)
            check_equal(back(*inputs), ours)
            return ours

        return run

    torch._dynamo.reset()
    with torch.no_grad():
        check_equal(torch.compile(module, backend=backend, dynamic=False)(*tensors), expected)
    assert met
    assert any("call" in str(g) for g in met), "Python functions keep their names"


def test_dynamo_gradients_of_bert():
    torch.manual_seed(0)
    model, inputs = bert()
    module = Tensors(model.eval(), list(inputs))
    tensors = tuple(inputs.values())

    def gradients(function):
        module.zero_grad()
        sum(o.sum() for o in function(*tensors)).backward()
        return [p.grad.clone() for p in module.parameters() if p.grad is not None]

    def backend(graph_module, example_inputs):
        return cutaway.Graph.from_fx(graph_module, example_inputs).run

    torch._dynamo.reset()
    expected = gradients(module)
    check_equal(gradients(torch.compile(module, backend=backend, dynamic=False)), expected)


@pytest.mark.parametrize("dynamic", [False, True])
def test_graphs_after_ahead_of_time_autograd(dynamic):
    """What torch gives to a backend: forward and backward as operators, sizes symbolic when they are dynamic."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    torch.manual_seed(0)
    model, inputs = bert()
    module = Tensors(model.eval(), list(inputs))
    graphs = []

    def compiler(graph_module, example_inputs):
        graphs.append(cutaway.Graph.from_fx(graph_module, example_inputs))
        check_text(graphs[-1])
        assert not graphs[-1].verify()
        return make_boxed_func(graphs[-1].run)

    def gradients(function, ids):
        module.zero_grad()
        sum(o.sum() for o in function(ids)).backward()
        return [p.grad.clone() for p in module.parameters() if p.grad is not None]

    torch._dynamo.reset()
    compiled = torch.compile(module, backend=aot_autograd(fw_compiler=compiler, bw_compiler=compiler), dynamic=dynamic)
    sizes = [(2, 12), (3, 9)] if dynamic else [(2, 12)]
    for size in sizes:
        ids = torch.randint(0, 200, size)
        check_equal(gradients(compiled, ids), gradients(module, ids))
    assert len(graphs) == 2, "one forward and one backward serve every size"
