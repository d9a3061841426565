"""Kinds of operators through the recorder: each program's graph gives what the program gives, above and below autograd."""

import cutaway
import pytest
import torch
import torch.nn.functional as F
from cutaway import trace

X = torch.arange(12.0).view(3, 4) / 7


def out_variant(x):
    buffer = torch.empty(3, 4)
    torch.add(x, 1, out=buffer)
    values, indices = torch.empty(3), torch.empty(3, dtype=torch.long)
    torch.max(x, 1, out=(values, indices))
    return buffer, values, indices


def write_to_view(x):
    y = x.clone()
    rows = y[1:]
    rows.mul_(2)
    y.view(-1)[::2].fill_(5.0)
    return y, rows


def multiple_outputs(x):
    a, b = torch.topk(x, 2)
    parts = torch.split(x, [1, 3], dim=1)
    return a, b, *parts, *torch.unbind(x), torch.var_mean(x, dim=0)[1], torch.linalg.qr(x).R


def lists_and_optionals(x):
    i = torch.tensor([0, 2])
    return (
        torch.cat([x, x[:1]]),
        torch.stack([x, -x], dim=1),
        x[i],
        x[:, i],
        F.layer_norm(x, (4,)),
        F.layer_norm(x, (4,), torch.ones(4)),
        torch.index_put(x, (i,), torch.zeros(2, 4)),
        *torch._foreach_add([x, x], 1.0),
    )


def factories(x):
    n = x.shape[0]
    return (
        torch.zeros(n, 2) + torch.ones(2),
        torch.arange(n) * 2,
        torch.full_like(x, 3.0),
        x.new_zeros(2),
        torch.eye(n),
        torch.linspace(0, 1, n),
        torch.tril(torch.ones(n, n)),
        torch.tensor([1.0, 2.0]).sum(),
        torch.empty(n, 2).fill_(1.5),
    )


def detached(x):
    y = x * 2
    return y.detach() + 1, y.data * 3, (y - y.detach()).sum()


def conjugated(x):
    z = torch.complex(x, x)
    return torch.view_as_real(z.conj() * 2), z.imag.neg() + 1


PROGRAMS = [out_variant, write_to_view, multiple_outputs, lists_and_optionals, factories, detached, conjugated]


@pytest.mark.parametrize("where", ["above", "below"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graph_gives_what_the_program_gives(program, where):
    graph = trace.record(program, (X,), where=where)
    expected = torch.utils._pytree.tree_leaves(program(X.clone()))
    results = graph.run(X.clone())
    assert len(results) == len(expected)
    for e, r in zip(expected, results, strict=True):
        assert torch.equal(e, r) and e.stride() == r.stride() and e.dtype == r.dtype


@pytest.mark.parametrize("where", ["above", "below"])
def test_input_that_is_written(where):
    def program(x):
        x.add_(1)
        x[0].zero_()
        return x * 2

    graph = trace.record(program, (X,), where=where)
    mine, theirs = X.clone(), X.clone()
    assert torch.equal(graph.run(mine)[0], program(theirs))
    assert torch.equal(mine, theirs)


@pytest.mark.parametrize("where", ["above", "below"])
def test_random_operators_draw_the_numbers_of_eager(where):
    def program(x):
        noise = torch.rand_like(x) + torch.randn(4) + torch.randint(0, 5, (3, 4))
        return (
            F.dropout(x, 0.5) + noise,
            torch.bernoulli(torch.full((3, 4), 0.5)),
            torch.randperm(5),
            x.clone().normal_(),
        )

    graph = trace.record(program, (X,), where=where)
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected = program(X)
        torch.manual_seed(seed)
        for e, r in zip(expected, graph.run(X), strict=True):
            assert torch.equal(e, r)


def test_a_generator_of_its_own_goes_by_name():
    g = torch.Generator()

    def program(x):
        return x + torch.rand(4, generator=g)

    graph = trace.record(program, (X,))
    assert "generator" in str(graph)
    with pytest.raises(ValueError, match="random state"):
        graph.run(X)


@torch.library.custom_op("cutaway_test::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float, shift: torch.Tensor | None = None) -> torch.Tensor:
    return x * by if shift is None else x * by + shift


scaled.register_fake(lambda x, by, shift=None: torch.empty_like(x))
scaled.register_autograd(
    lambda ctx, g: (g * ctx.by, None, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
)


@torch.library.custom_op("cutaway_test::increase", mutates_args=("x",))
def increase(x: torch.Tensor, by: float) -> None:
    x.add_(by)


def test_custom_operators_stay_operators():
    def program(x):
        y = scaled(x, 2.0)
        increase(y, 1.0)
        return y.relu()

    for where in ("above", "below"):
        graph = trace.record(program, (X,), where=where)
        assert "cutaway_test.scaled" in str(graph) and "cutaway_test.increase" in str(graph)
        assert torch.equal(graph.run(X)[0], program(X))


class Joint(torch.nn.Module):
    """The gradient of a function's sum: backward runs through autograd's engine, and the recorder below sees it."""

    def __init__(self, f):
        super().__init__()
        self.f, self.weight = f, torch.nn.Parameter(X.clone())

    def forward(self, x):
        return torch.autograd.grad(self.f(x * self.weight).sum(), [self.weight])


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.set_materialize_grads(False)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.exp() * 0.5


@pytest.mark.parametrize(
    "f,signs",
    [
        (Halved.apply, ["aten.exp", "0.5"]),  # the user's backward, not that of exp
        (lambda x: scaled(x, 2.0), ["cutaway_test.scaled"]),
        (F.softplus, ["softplus_backward"]),
        (lambda x: torch.utils.checkpoint.checkpoint(torch.tanh, x, use_reentrant=False), ["tanh_backward"]),
    ],
    ids=["autograd_function", "custom_operator", "torch", "checkpoint"],
)
def test_backward_is_recorded_through_the_engine(f, signs):
    module = Joint(f)
    graph = trace.record(module, (X,), where="below")
    for sign in signs:
        assert sign in str(graph)
    assert torch.equal(graph.run(X)[0], module(X)[0])


def test_autograd_function_above_autograd_is_refused_where_its_backward_matters():
    """It has no operator: only the operators of its forward are seen, and their backward is not the user's."""
    x = X.clone().requires_grad_()
    with pytest.raises(cutaway.Error, match="the autograd function HalvedBackward has a backward of its own"):
        trace.record(lambda x: Halved.apply(x * 2) + 1, (x,))
    graph = trace.record(lambda x: Halved.apply(x * 2) + 1, (X,))
    assert torch.equal(graph.run(X)[0], Halved.apply(X * 2) + 1)


SPARSE = torch.eye(3).to_sparse()


@pytest.mark.parametrize(
    "inputs,program,words",
    [
        ((SPARSE,), lambda s: s * 2, "layout Sparse"),
        ((X,), lambda x: x.to_sparse(), "sparse|layout"),
        ((X,), lambda x: torch.sparse.mm(SPARSE, x), "layout Sparse"),
        ((X,), lambda x: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested|layout"),
        (
            (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),),
            lambda n: n + 1,
            "subclass|layout|nested",
        ),
        ((torch.quantize_per_tensor(X, 0.1, 0, torch.quint8),), lambda q: q.dequantize(), "quantized"),
    ],
    ids=["sparse_input", "to_sparse", "sparse_constant", "nested", "nested_input", "quantized"],
)
def test_other_layouts_are_refused_by_name(inputs, program, words):
    with pytest.raises((NotImplementedError, RuntimeError), match=words):
        trace.record(program, inputs)


@pytest.mark.parametrize(
    "program,operator",
    [
        (lambda x: x * x.sum().item(), "item|_local_scalar_dense"),
        (lambda x: x * float(x.sum()), "item|_local_scalar_dense"),
        (lambda x: x if x.sum() > 0 else -x, "is_nonzero|_local_scalar_dense"),
        (lambda x: x.nonzero(), "aten::nonzero"),
        (lambda x: x[x > 0], "aten::index.Tensor"),
        (lambda x: torch.masked_select(x, x > 0), "aten::masked_select"),
        (lambda x: torch.unique(x), "unique"),
        (lambda x: x.repeat_interleave(x[:, 0].long(), dim=0), "repeat_interleave"),
        (lambda x: torch.equal(x, x + 1), "aten::equal"),
    ],
)
@pytest.mark.parametrize("where", ["above", "below"])
def test_questions_about_data_have_one_error_that_names_operator_and_line(program, operator, where):
    with pytest.raises(trace.DataDependentError, match=operator) as caught:
        trace.record(program, (X,), where=where)
    line = program.__code__.co_firstlineno
    assert f"test_trace_kinds.py:{line}" in str(caught.value)
    assert isinstance(caught.value, NotImplementedError)


def test_a_kernel_that_reads_memory_by_itself_is_named():
    with pytest.raises(trace.DataDependentError, match="aten::tensor_split.* reads the data") as caught:
        trace.record(lambda x, i: torch.tensor_split(x, i), (X, torch.tensor([1, 2])))
    assert "test_trace_kinds.py" in str(caught.value)
    graph = trace.record(lambda x: F.max_pool1d(x, 2), (X,))  # another such, for which there is a way
    assert torch.equal(graph.run(X)[0], F.max_pool1d(X, 2))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: x.data_ptr(),
        lambda x: print(x),
        lambda x: repr(x + 1),
        lambda x: bytes(x.untyped_storage()),
    ],
    ids=["numpy", "tolist", "data_ptr", "print", "repr", "storage"],
)
def test_reading_a_fake_tensors_data_is_an_error(read):
    fake = trace.make_fake(X)
    with pytest.raises((RuntimeError, NotImplementedError), match="fake tensor has no"):
        with trace.FakeMode():
            read(fake)


def test_a_device_that_this_build_lacks():
    if torch.cuda.is_available():
        pytest.skip("this build has the device")
    x, w = (trace.make_fake(t, "cuda").requires_grad_() for t in (torch.ones(2, 4), torch.ones(4, 4)))

    def forward(x, w):
        y = F.gelu(x @ w)
        assert y.device == torch.device("cuda:0") and y.shape == (2, 4) and y.requires_grad
        return y

    graph = trace.record(forward, (x, w))
    assert "f32[2, 4] cuda:0 grad = aten.gelu" in str(graph)
    with pytest.raises(
        NotImplementedError, match="backward on fake tensors of cuda:0 is refused: this build of torch lacks the device"
    ):
        trace.record(lambda x, w: torch.autograd.grad(forward(x, w).sum(), [w]), (x, w), where="below")


def rss_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096 / 2**20


def llama_70b():
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=8192,
        intermediate_size=28672,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        vocab_size=128256,
        max_position_embeddings=8192,
    )
    with torch.device("meta"):
        return transformers.LlamaForCausalLM(config).to(torch.bfloat16)


@pytest.mark.parametrize("where", ["above", "joint"])
def test_seventy_billion_parameters_take_megabytes(where):
    model = llama_70b()
    assert sum(p.numel() for p in model.parameters()) > 69e9
    for m in model.modules():
        for state in (m._parameters, m._buffers):
            for k, v in list(state.items()):
                if v is not None:
                    state[k] = (
                        torch.nn.Parameter(trace.make_fake(v, "cpu"))
                        if isinstance(v, torch.nn.Parameter)
                        else trace.make_fake(v, "cpu")
                    )
    ids = trace.make_fake(torch.empty(1, 4096, dtype=torch.long, device="meta"), "cpu")
    before = rss_mb()

    class Training(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            loss = self.model(ids, use_cache=False).logits.float().logsumexp(-1).mean()
            return torch.autograd.grad(loss, list(self.model.parameters()))

    if where == "above":
        graph = trace.record(model, (ids,), {"use_cache": False})
    else:
        graph = trace.record(Training(), (ids,), where="below")
    grown = rss_mb() - before
    text = str(graph)
    print(where, text.count("= aten."), "operators", f"{grown:.1f} MB")
    assert text.count("= aten.") > (2000 if where == "above" else 6000)
    assert grown < 200  # the parameters alone are 141 GB
