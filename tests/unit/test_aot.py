"""Ahead-of-time autograd from Python: graphs, state, what is refused, and torch.compile on top of it."""

import copy
import importlib
import pathlib
import subprocess
import sys
import tomllib

import cutaway
import pytest
import torch
import torch.nn.functional as F
from cutaway._aot import aot_eager, native


def gradients(f, *inputs):
    """Outputs and gradients of fresh copies of the inputs."""
    own = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
    torch.manual_seed(5)
    out = f(*own)
    out = out if isinstance(out, (tuple, list)) else [out]
    sum((o * (i + 1)).sum() for i, o in enumerate(out) if o.requires_grad).backward()
    return [o.detach() for o in out] + [x.grad for x in own if x.requires_grad] + [x.detach() for x in own]


def check(f, *inputs):
    compiled = cutaway.aot(f, inputs)
    for e, g in zip(gradients(f, *inputs), gradients(compiled, *inputs), strict=True):
        torch.testing.assert_close(g, e, rtol=1e-6, atol=1e-6)
    return compiled


def weight(*shape):
    return torch.randn(*(shape or (8, 8)), requires_grad=True)


def test_graphs_have_names_print_and_read_back():
    compiled = cutaway.aot(lambda x, w: (x @ w).relu().sum(), (torch.ones(2, 8), weight()), name="small")
    number = compiled.joint.name.rsplit("_", 1)[1]
    assert compiled.joint.name == f"small__joint_{number}"
    assert compiled.forward.name == f"small__forward_{number}"
    assert compiled.backward.name == f"small__backward_{number}"
    for graph in (compiled.joint, compiled.forward, compiled.backward):
        assert str(cutaway.Graph.parse(str(graph))) == str(graph)
        assert "test_aot.py" in str(graph)  # backward too tells the user's line
    plain = cutaway.aot(lambda x: x.relu(), (torch.ones(2),), name="small")
    assert plain.backward is None and "__inference_" in plain.forward.name


def test_grad_mode_and_autocast_regions():
    def f(x, w):
        with torch.no_grad():
            a = x @ w
        with torch.autocast("cpu", dtype=torch.bfloat16):
            b = x @ w
        return a * w.sum(), b.float()

    compiled = check(f, torch.randn(4, 8), weight())
    assert "bf16" in str(compiled.forward)
    x, w = torch.randn(4, 8), weight()
    with torch.autocast("cpu", dtype=torch.bfloat16):  # the graph has its casts: it is not cast once more
        out = cutaway.aot(lambda x, w: x @ w, (x, w))(x, w)
    assert out.dtype == torch.bfloat16


def test_dropout_draws_eager_numbers():
    check(lambda x, w: F.dropout(F.dropout(x @ w, 0.4), 0.2) @ w, torch.randn(4, 8), weight())


def test_dropout_draws_eager_numbers_where_memory_is_not_row_major():
    """The mask is drawn in the order in which memory lies."""

    def f(x, w):
        y = F.dropout(x.t(), 0.4) @ w
        return F.dropout(y.view(2, 4, 8).transpose(0, 2), 0.2) + torch.zeros_like(y).t().bernoulli_(0.5).view(8, 4, 2)

    check(f, torch.randn(8, 8), weight())
    image = torch.randn(2, 8, 3, 3).to(memory_format=torch.channels_last)
    check(lambda x, w: (F.dropout(F.conv2d(x, w[:, :, None, None]), 0.5), F.dropout(x, 0.3)), image, weight())


def test_checkpointed_parts_give_the_same_gradients():
    from torch.utils.checkpoint import checkpoint

    def block(x, w):
        return F.dropout(F.gelu(x @ w), 0.3)

    check(
        lambda x, w: checkpoint(block, checkpoint(block, x, w, use_reentrant=False), w, use_reentrant=False),
        torch.randn(4, 8),
        weight(),
    )


def test_tied_weights_and_inputs_given_twice():
    w = weight()
    compiled = cutaway.aot(lambda a, b: (a @ b).sum(), (w, w))
    compiled(w, w).backward()
    expected = torch.autograd.grad((w @ w).sum(), w)[0]
    assert torch.equal(w.grad, expected)
    with pytest.raises(cutaway.Error, match="were one tensor when the program was recorded"):
        compiled(w, weight())
    apart = cutaway.aot(lambda a, b: (a @ b).sum(), (w, weight()))
    w.grad = None
    apart(w, w).backward()  # the same tensor now: each place has its part of the gradient
    assert torch.allclose(w.grad, expected)


def test_metadata_of_an_input_can_change():
    def f(x):
        x.t_().mul_(2)
        return x + 1

    a = torch.arange(6.0).reshape(2, 3)
    b = a.clone()
    compiled = cutaway.aot(f, (a.clone(),))
    assert torch.equal(compiled(a), f(b))
    assert a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b)


def test_a_write_to_what_backward_needs_is_refused_as_in_eager():
    def f(x, w):
        y = x * w
        x.add_(1)
        return y.sum()

    with pytest.raises(cutaway.Error, match="modified by an inplace operation"):
        cutaway.aot(f, (torch.ones(3), weight(3)))

    def g(x, w):
        y = (x + 1) * w
        x.mul_(5)
        return y.sum()

    check(g, torch.ones(3), weight(3))


def test_saved_tensors_are_freed_and_double_backward_is_eagers():
    w = weight()
    compiled = cutaway.aot(lambda w: (w * w).exp().sum(), (w,))
    loss = compiled(w)
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    w.grad = None
    (g,) = torch.autograd.grad(compiled(w), w, create_graph=True)
    g.sum().backward()
    (expected,) = torch.autograd.grad((w * w).exp().sum(), w, create_graph=True)
    (second,) = torch.autograd.grad(expected.sum(), w)
    assert torch.equal(w.grad, second)


def test_double_backward_is_refused_for_each_input_that_is_asked_for():
    """Where the operators cannot run again. The engine runs only what lies between: it must not go past the refusal and find that the input was not used."""
    x = torch.randn(3, requires_grad=True)
    compiled = cutaway.aot(lambda x: (torch.dropout(x, 0.5, True) ** 3).sum(), (x,))
    (g,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    for options in ({}, {"allow_unused": True}):
        with pytest.raises(RuntimeError, match="double backward is refused"):
            torch.autograd.grad(g.sum(), x, retain_graph=True, **options)


def test_hooks_outside_are_kept_and_inside_refused():
    w, calls = weight(), []
    compiled = cutaway.aot(lambda w: w.sin().sum(), (w,))
    w.register_hook(lambda g: calls.append("input") or g * 2)
    loss = compiled(w)
    loss.register_hook(lambda g: calls.append("output"))
    loss.backward()
    assert calls == ["output", "input"] and torch.allclose(w.grad, 2 * w.cos())

    def f(w):
        y = w.sin()
        y.register_hook(lambda g: g * 10)
        return y.sum()

    with pytest.raises(cutaway.Error, match="a hook was registered on a tensor"):
        cutaway.aot(f, (weight(),))


def test_inputs_of_another_size_get_a_function_of_their_own():
    w = weight()
    compiled = cutaway.aot(lambda x, w: (x @ w).relu(), (torch.ones(2, 8), w))
    graph = compiled.runner
    assert graph(torch.ones(5, 8), w)[0].shape == (5, 8)
    assert len(graph.functions) == 2


def test_custom_operators_run_and_those_that_write_are_refused():
    with torch.library._scoped_library("aot_tests", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.define("twice_(Tensor(a!) x) -> ()")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.impl("twice_", lambda x: [x.mul_(2), None][1], "CompositeExplicitAutograd")
        torch.library.register_fake("aot_tests::twice", lambda x: torch.empty_like(x), lib=library)
        torch.library.register_autograd("aot_tests::twice", lambda ctx, g: g * 2, lib=library)
        compiled = check(lambda w: torch.ops.aot_tests.twice(w.detach()) * w.sin(), weight())
        assert "aot_tests.twice" in str(compiled.forward)
        with pytest.raises(
            cutaway.Error, match="has a backward in Python"
        ):  # a run would not call it: it may read values
            cutaway.aot(lambda w: torch.ops.aot_tests.twice(w).sin(), (weight(),))
        with pytest.raises((cutaway.Error, NotImplementedError), match="twice_"):
            cutaway.aot(lambda x: torch.ops.aot_tests.twice_(x), (torch.ones(3),))


def test_torch_compile_with_our_backend_trains_as_eager():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4)
    )
    eager = copy.deepcopy(model)
    compiled = torch.compile(model, backend=aot_eager)
    optimizers = [torch.optim.Adam(m.parameters(), 0.01) for m in (model, eager)]
    for step, batch in enumerate((4, 6, 6, 8)):  # sizes change: Dynamo makes them symbolic
        x = torch.randn(batch, 8)
        for m, optimizer in ((compiled, optimizers[0]), (eager, optimizers[1])):
            torch.manual_seed(step)
            optimizer.zero_grad()
            m(x).pow(2).mean().backward()
            optimizer.step()
    for a, b in zip(model.state_dict().values(), eager.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_the_entry_point_for_torch_compile_names_the_backend():
    text = (pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text()
    module, _, name = tomllib.loads(text)["project"]["entry-points"]["torch_dynamo_backends"]["cutaway"].partition(":")
    assert getattr(importlib.import_module(module), name) is native


def test_the_two_halves_can_be_compiled_by_another_backend():
    w = weight()
    compiled = cutaway.aot(lambda w: (w @ w).tanh().sum(), (w,), backend="fault:wrong:aten.tanh:by=1")
    assert torch.allclose(compiled(w), (w @ w).tanh().sum() + 64)


def test_refusals_name_the_operator_and_the_line():
    with pytest.raises(NotImplementedError, match="aten::nonzero"):
        cutaway.aot(lambda x: x.nonzero(), (torch.ones(3),))
    a = torch.ones(4)
    with pytest.raises(cutaway.Error, match="another storage|resizes"):
        cutaway.aot(lambda x, y: x.set_(y), (a, torch.ones(4)))


def test_op_db_part():
    words = [sys.executable, "-m", "tests.operators.op_db", "--aot", "--jobs", "2"]
    done = subprocess.run(words, cwd=pathlib.Path(__file__).parents[2], capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
