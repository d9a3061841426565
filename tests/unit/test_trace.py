"""Recording from Python: real modules and transformers' models on fake tensors; the graph gives what eager gives."""

import contextlib
import gc
import resource

import cutaway
import pytest
import torch
import torch.nn.functional as F
from cutaway import trace

transformers = pytest.importorskip("transformers")
from tests.support.model_zoo import MODELS, build, tensors  # noqa: E402


def record_model(name, train=False, **options):
    model, kwargs = build(name, train)
    return model, kwargs, trace.record(model, (), kwargs, name=name, **options)


@pytest.mark.parametrize("name", MODELS)
def test_models_record_on_fake_tensors_and_run_as_eager(name):
    model, kwargs, graph = record_model(name)
    text = str(graph)
    print(name, text.count("= aten."), "operators", trace.shape_counters(), trace.dispatcher_operators()[:12])
    assert "modeling_" in text or "model_zoo.py" in text  # locations are the model's, not torch's
    assert str(cutaway.Graph.parse(text)) == text
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(model(**kwargs))
        results = graph.run(*tensors(kwargs))
    assert len(expected) == len(results)
    for e, r in zip(expected, results, strict=True):
        if isinstance(e, torch.Tensor):
            assert torch.equal(e, r), name
            assert e.stride() == r.stride()


@pytest.mark.parametrize("name", MODELS)
def test_models_record_below_autograd(name):
    with torch.no_grad():  # as the run below: attention chooses its kernel by whether gradients are wanted
        model, kwargs, graph = record_model(name, where="below")
        expected = torch.utils._pytree.tree_leaves(model(**kwargs))
        results = graph.run(*tensors(kwargs))
    for e, r in zip(expected, results, strict=True):
        if isinstance(e, torch.Tensor):
            assert torch.equal(e, r), name


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_dropout_draws_the_same_numbers(name):
    model, kwargs, graph = record_model(name, train=True)
    torch.manual_seed(3)
    expected = model(**kwargs)[0]
    torch.manual_seed(3)
    (result, *_) = graph.run(*tensors(kwargs))
    assert torch.equal(expected, result)
    assert result.requires_grad  # recorded above autograd: the graph differentiates


def test_types_are_those_of_eager():
    model, kwargs, graph = record_model("resnet", fake=False)
    _, _, on_fakes = record_model("resnet")
    assert str(graph) == str(on_fakes)


def test_a_large_model_takes_no_memory():
    config = transformers.BertConfig(
        num_hidden_layers=2, hidden_size=8192, num_attention_heads=64, intermediate_size=32768, vocab_size=100_000
    )
    with torch.device("meta"):
        model = transformers.BertModel(config).eval()
    for m in model.modules():
        for state in (m._parameters, m._buffers):
            for k, v in list(state.items()):
                if v is not None:
                    state[k] = trace.make_fake(v, "cpu")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ids = trace.make_fake(torch.empty(4, 512, dtype=torch.long, device="meta"), "cpu")
    graph = trace.record(model, (ids,), name="large")
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert "f32[4, 512, 8192]" in str(graph)
    assert grown_mb < 200
    gc.collect()


def test_locations_name_file_line_function_and_module():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())

        def forward(self, x):
            return self.inner(x) * 2

    text = str(trace.record(Net(), (torch.randn(2, 4),)))
    assert "test_trace.py" in text
    assert "Net.forward" in text
    assert "2" in text.split("aten.mul.Tensor(")[1]  # the number stays a number
    assert "constant" not in text


def test_constants_become_inputs_and_keep_their_data():
    table = torch.arange(4.0)
    graph = trace.record(lambda x: x + table + torch.tensor([1.0, 2.0, 3.0, 4.0]), (torch.ones(4),))
    assert len(graph.lifted) == 2
    assert graph.lifted[0] is table
    (result,) = graph.run(torch.ones(4))
    assert result.tolist() == [2.0, 4.0, 6.0, 8.0]


def test_no_grad_and_autocast_are_kept():
    w = torch.randn(4, 4, requires_grad=True)

    def f(x):
        with torch.no_grad():
            a = x @ w
        with torch.autocast("cpu", dtype=torch.bfloat16):
            b = x @ w
        return a, b

    graph = trace.record(f, (torch.ones(2, 4),))
    a, b = graph.run(torch.ones(2, 4))
    assert not a.requires_grad and b.requires_grad
    assert b.dtype == torch.bfloat16


def test_what_depends_on_data_is_refused_by_name():
    x = torch.ones(4)
    with pytest.raises(NotImplementedError, match="aten::_local_scalar_dense|aten::item|aten::is_nonzero"):
        trace.record(lambda x: x * x.sum().item(), (x,))
    with pytest.raises(NotImplementedError, match="aten::nonzero"):
        trace.record(lambda x: x.nonzero(), (x,))
    with pytest.raises(NotImplementedError, match="aten::index.Tensor"):
        trace.record(lambda x: x[x > 0], (x,))
    with pytest.raises(RuntimeError, match="fake tensor has no data"):
        trace.record(lambda x: x.tolist(), (x,))
    assert torch.equal(torch.ones(2) + 1, torch.full((2,), 2.0))  # nothing stays switched on after a failure


def test_questions_about_constants_have_answers():
    def f(x):
        positions = torch.arange(4)
        t = torch.tensor([1.0, 2.0])
        if (positions[1:] - positions[:-1] == 1).all() and t.sum().item() == 3.0:
            x = x + 1
        t.add_(1)
        with pytest.raises(NotImplementedError, match="_local_scalar_dense|item"):
            t.sum().item()  # written to: while tracing nobody knows its value
        return x * t.sum()

    graph = trace.record(f, (torch.ones(3),))
    for _ in range(2):  # what the program wrote to did not outlive the first run
        assert graph.run(torch.ones(3))[0].tolist() == [10.0] * 3


def test_fake_mode_is_a_context_manager():
    x = trace.make_fake(torch.randn(3, 4))
    assert trace.is_fake(x) and not trace.is_fake(torch.ones(1)) and not trace.is_fake("x")
    with trace.FakeMode():
        y = F.gelu(x @ torch.zeros(4, 2))
        assert trace.is_fake(y) and y.shape == (3, 2)
    assert not trace.is_fake(torch.ones(1))


def test_module_state_comes_back():
    norm = torch.nn.BatchNorm2d(3)
    mean, parameters = norm.running_mean, list(norm.parameters())
    graph = trace.record(norm, (torch.randn(2, 3, 4, 4),))
    assert norm.running_mean is mean and torch.equal(mean, torch.zeros(3))
    assert all(a is b for a, b in zip(norm.parameters(), parameters, strict=True))
    assert norm.num_batches_tracked.item() == 0
    graph.run(torch.randn(2, 3, 4, 4))
    assert norm.num_batches_tracked.item() == 1  # the graph writes to the buffers it was given, as eager does


def _types_of(f, *inputs):
    """What the recorder writes down of each result, in three recordings: the first runs every operator, the others know them."""
    graphs = [trace.record(f, inputs) for _ in range(3)]
    assert str(graphs[0]) == str(graphs[1]) == str(graphs[2])
    return str(graphs[2])


@pytest.mark.parametrize(
    "state", ["plain", "no_grad", "inference", "autocast", "autocast_half", "math_attention", "double"]
)
def test_a_call_that_is_known_gives_what_the_first_gave(state):
    """Whole calls are remembered by everything that decides their results: the same call in another state is another call."""
    linear = torch.nn.Linear(8, 8)

    def f(x):
        y = F.gelu(linear(x))
        y = F.scaled_dot_product_attention(y[:, None], y[:, None], y[:, None] * 2).sum(1)
        z = F.dropout(y, 0.5, training=False)  # is its argument
        z.mul_(2)
        return F.layer_norm(z + y, (8,)), y, torch.cat([x, y]), F.softmax(y.mT, 0), x.new_zeros(3) + torch.arange(3)

    contexts = {
        "no_grad": torch.no_grad,
        "inference": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu"),
        "autocast_half": lambda: torch.autocast("cpu", torch.float16),
        "math_attention": lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
    }
    x = torch.randn(2, 4, 8)
    if state == "double":
        linear, x = linear.double(), x.double()
    for requires_grad in (False, True):
        x = x.detach().clone().requires_grad_(requires_grad)
        with contexts.get(state, contextlib.nullcontext)():
            graph = trace.record(f, (x,))
            assert str(graph) == str(trace.record(f, (x,))) == str(trace.record(f, (x,)))
            expected = f(x)
            fakes = trace.make_fakes([x])
            shown: list[torch.Tensor] = []

            def showing(x, shown=shown):
                shown.extend(f(x))
                return shown

            trace.record(showing, fakes)
        for e, g in zip(expected, shown, strict=True):
            assert (e.shape, e.stride(), e.dtype, e.requires_grad) == (g.shape, g.stride(), g.dtype, g.requires_grad)


def test_backward_in_a_recording_is_refused_when_calls_are_known():
    w = torch.randn(4, 4, requires_grad=True)

    def f(x):
        y = F.linear(x, w).relu()
        return torch.autograd.grad(y.sum(), w, allow_unused=True)

    for _ in range(3):
        with pytest.raises(NotImplementedError, match="backward inside a recording above autograd is refused"):
            trace.record(f, (torch.randn(2, 4),))


def test_known_calls_do_not_hide_values_or_tangents():
    def f(x):
        y = torch.ones(3) * 2
        # Made of constants alone: its value is known, the second time too.
        assert (torch.stack([y, y]).sum() == 12).item()
        return x + y

    assert _types_of(f, torch.ones(3))
    for _ in range(2):
        with pytest.raises(trace.DataDependentError):
            trace.record(lambda x: x[: int(torch.stack([x, x]).sum().item())], (torch.ones(3),))
