"""Random strided tensors, alias-keeping clones, casts to fp64, and bundles with inputs."""

import cutaway
import hypothesis.strategies as st
import pytest
import torch
from cutaway._native import Graph
from hypothesis import given, settings

DTYPES = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.complex64,
    torch.bool,
    torch.int8,
    torch.int64,
    torch.uint16,
    torch.float8_e4m3fn,
]


@st.composite
def layouts(draw):
    """Sizes, strides and an offset: permuted, expanded, overlapping and empty ones included."""
    rank = draw(st.integers(0, 4))
    size = draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank))
    stride = draw(st.lists(st.integers(0, 7), min_size=rank, max_size=rank))
    return size, stride, draw(st.integers(0, 5))


def raw(tensor):
    return bytes(tensor.untyped_storage())


@settings(max_examples=150, deadline=None)
@given(layouts(), st.sampled_from(DTYPES), st.integers(0, 2**63 - 1))
def test_random_layouts_survive_a_round_trip(tmp_path_factory, layout, dtype, seed):
    size, stride, offset = layout
    t = cutaway.rand_strided(size, stride, dtype, storage_offset=offset, seed=seed)
    assert (list(t.shape), list(t.stride()), t.storage_offset(), t.dtype) == (size, stride, offset, dtype)
    assert raw(t) == raw(cutaway.rand_strided(size, stride, dtype, storage_offset=offset, seed=seed))
    store = cutaway.Store(tmp_path_factory.mktemp("s"), durable=False)
    store.put_tensor("t", t)
    back = store.get_tensor("t")
    assert (back.shape, back.stride(), back.storage_offset(), back.dtype) == (
        t.shape,
        t.stride(),
        t.storage_offset(),
        t.dtype,
    )
    assert raw(back) == raw(t)


@settings(max_examples=100, deadline=None)
@given(st.lists(layouts(), min_size=1, max_size=5), st.sampled_from([torch.float32, torch.float16, torch.int32]))
def test_clones_and_casts_of_views_on_one_storage(all_layouts, dtype):
    base = cutaway.rand_strided((200,), (1,), dtype)
    views = [base.as_strided(size, stride, offset) for size, stride, offset in all_layouts]
    clones = cutaway.clone_keeping_aliases([base, *views])
    casts = cutaway.cast_to_fp64([base, *views])
    for made in (clones, casts):
        for view, copy in zip(views, made[1:], strict=True):
            assert (copy.shape, copy.stride(), copy.storage_offset()) == (
                view.shape,
                view.stride(),
                view.storage_offset(),
            )
            assert torch.equal(copy, view.to(copy.dtype))
            assert copy.untyped_storage().data_ptr() == made[0].untyped_storage().data_ptr()
    assert clones[0].untyped_storage().data_ptr() != base.untyped_storage().data_ptr()
    if dtype.is_floating_point:
        assert {c.dtype for c in casts} == {torch.float64}
    else:
        assert casts[0] is base


def test_random_numbers_do_not_disturb_torch():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    cutaway.rand_strided((1000,), (1,))
    assert torch.equal(torch.rand(4), expected)


def test_integers_in_a_range():
    t = cutaway.rand_strided((1000,), (1,), torch.int64, range=(-3, 4))
    assert (t.min(), t.max()) == (-3, 3)
    with pytest.raises(cutaway.Error, match="does not fit its dtype"):
        cutaway.rand_strided((4,), (1,), torch.uint8, range=(0, 1000))


def test_clone_keeps_autograd_state():
    leaf = torch.randn(3, requires_grad=True)
    leaf.grad = torch.ones(3)
    inner = leaf * 2
    a, b, (c, d) = cutaway.clone_keeping_aliases([leaf, inner, [leaf, inner]])
    assert a is c and b is d
    assert a.is_leaf and a.requires_grad and torch.equal(a.grad, leaf.grad) and a.grad is not leaf.grad
    assert not b.is_leaf and b.requires_grad
    b.sum().backward()
    assert torch.equal(leaf.grad, torch.ones(3))


GRAPH = """graph g(%w: f32[10, 4] grad, %i: i64[6], %n: int) {
  %y: f32[6, 4] = aten.embedding(%w, %i)
  %z: f32[6, 4] = aten.mul.Scalar(%y, %n)
  return (%z)
}
"""


@pytest.fixture
def graph():
    return Graph.parse(GRAPH)


def test_save_and_load(tmp_path, graph):
    w, i = torch.nn.Parameter(torch.randn(10, 4)), torch.randint(0, 10, (6,))
    cutaway.save(tmp_path / "b", graph, [w, i, 3])
    loaded = cutaway.load(tmp_path / "b")
    assert str(loaded.graph) == str(graph)
    assert isinstance(loaded.inputs[0], torch.nn.Parameter) and torch.equal(loaded.inputs[0], w)
    assert torch.equal(loaded.inputs[1], i) and loaded.inputs[2] == 3
    assert loaded.manifest["versions"]["torch"] == torch.__version__
    assert loaded.path == str(tmp_path / "b")


def test_lost_data_is_an_error_unless_random_inputs_are_asked_for(tmp_path, graph):
    i = torch.randint(0, 10, (6,))
    cutaway.save(tmp_path / "b", graph, [torch.randn(10, 4, requires_grad=True), i, 3])
    digest = cutaway.digest_storage(i)
    (tmp_path / "b" / "blobs" / digest[:2] / digest).unlink()
    with pytest.raises(cutaway.Error, match=digest[:4]):
        cutaway.load(tmp_path / "b")
    loaded = cutaway.load(tmp_path / "b", random_inputs=True)
    assert loaded.manifest["random_inputs"] is True
    assert loaded.inputs[1].min() >= 0 and loaded.inputs[1].max() < 10  # valid indices
    assert torch.equal(loaded.inputs[1], cutaway.load(tmp_path / "b", random_inputs=True).inputs[1])


def test_data_beyond_the_limit_is_seeded(tmp_path, graph):
    cutaway.save(
        tmp_path / "b", graph, [torch.randn(10, 4, requires_grad=True), torch.randint(0, 10, (6,)), 3], max_bytes=100
    )
    loaded = cutaway.load(tmp_path / "b")
    assert loaded.inputs[0].requires_grad and loaded.inputs[0].shape == (10, 4)
    assert "did not fit" in str(loaded.manifest["inputs"][0])


def test_wrong_number_of_inputs(tmp_path, graph):
    with pytest.raises(cutaway.Error, match="wrong number of inputs: 1 given; the graph has 3"):
        cutaway.save(tmp_path / "b", graph, [torch.randn(10, 4)])
    assert not (tmp_path / "b").exists()
