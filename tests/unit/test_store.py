"""cutaway.Store: tensors by name."""

import cutaway
import pytest
import torch

DTYPES = sorted({v for v in vars(torch).values() if isinstance(v, torch.dtype)}, key=str)


@pytest.fixture
def store(tmp_path):
    return cutaway.Store(tmp_path / "store", durable=False)


def raw(tensor):
    """The bytes of a whole storage."""
    return bytes(tensor.untyped_storage())


def check_same(a, b):
    assert (a.dtype, a.shape, a.stride(), a.storage_offset(), a.device) == (
        b.dtype,
        b.shape,
        b.stride(),
        b.storage_offset(),
        b.device,
    )
    assert (a.requires_grad, a.is_leaf, a.is_conj(), a.is_neg(), type(a)) == (
        b.requires_grad,
        b.is_leaf,
        b.is_conj(),
        b.is_neg(),
        type(b),
    )
    assert raw(a) == raw(b)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not str(d).startswith(("torch.qu", "torch.qi"))], ids=str)
def test_every_dtype(store, dtype):
    t = cutaway.rand_strided((3, 4), (4, 1), dtype)
    store.put_tensor("t", t)
    check_same(store.get_tensor("t"), t)
    assert store.metadata("t").dtype is dtype


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8, torch.qint32], ids=str)
def test_quantized_is_refused_by_name(store, dtype):
    t = torch.quantize_per_tensor(torch.randn(3), 0.1, 0, dtype)
    with pytest.raises(cutaway.Error, match=r'tensor "t": a quantized tensor \(Q\w+\) cannot be stored'):
        store.put_tensor("t", t)
    assert store.names() == []


def test_views_of_one_storage_share_again(store):
    base = torch.randn(4, 6)
    tensors = {
        "base": base,
        "columns": base[:, 1:3],
        "transposed": base.t(),
        "expanded": base[:1].expand(5, 6),
        "other/copy": base.clone(),
    }
    for name, tensor in tensors.items():
        store.put_tensor(name, tensor)
    back = store.get_tensors()
    assert set(back) == set(tensors)
    for name, tensor in tensors.items():
        check_same(back[name], tensor)
    back["base"].fill_(7)
    assert (back["expanded"] == 7).all() and (back["columns"] == 7).all()
    assert torch.equal(back["other/copy"], base)


def test_autograd_state(store):
    leaf = torch.randn(3, requires_grad=True)
    store.put_tensor("leaf", leaf)
    store.put_tensor("inner", leaf * 2)
    store.put_tensor("parameter", torch.nn.Parameter(torch.randn(2)))
    store.put_tensor("frozen", torch.nn.Parameter(torch.randn(2), requires_grad=False))
    assert store.get_tensor("leaf").is_leaf
    inner = store.get_tensor("inner")
    assert inner.requires_grad and not inner.is_leaf
    inner.mul_(2)  # as the original could: a leaf could not
    inner.sum().backward()
    assert isinstance(store.get_tensor("parameter"), torch.nn.Parameter)
    assert not store.get_tensor("frozen").requires_grad


def test_conj_and_neg(store):
    c = torch.randn(3, dtype=torch.complex64).conj()
    for name, t in {"conj": c, "neg": c.imag}.items():
        store.put_tensor(name, t)
        check_same(store.get_tensor(name), t)
        assert torch.equal(store.get_tensor(name).resolve_conj().resolve_neg(), t.resolve_conj().resolve_neg())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.eye(2).to_sparse(), r"a tensor of layout sparse \(sparse_coo\) cannot be stored"),
        (lambda: torch.eye(2).to_sparse_csr(), r"a tensor of layout sparse \(sparse_csr\) cannot be stored"),
        (lambda: torch.randn(2, 2).to_mkldnn(), "a tensor of layout mkldnn cannot be stored"),
        (lambda: torch.nested.nested_tensor([torch.randn(2), torch.randn(3)]), "a nested tensor cannot be stored"),
        (lambda: torch.empty(2, device="meta"), "a meta tensor has no data"),
    ],
)
def test_what_has_no_storage_is_refused_in_words(store, make, message):
    with pytest.raises(cutaway.Error, match=message):
        store.put_tensor("t", make())


def test_fake_tensors_have_metadata_only(store):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3, 4)
    assert cutaway.compute_tensor_metadata(fake).size == (3, 4)
    with pytest.raises(cutaway.Error, match="has no readable storage"):
        store.put_tensor("t", fake)


def test_metadata(store):
    t = torch.randn(4, 6, requires_grad=True).detach()[1:, ::2]
    m = store.put_tensor("a/b", t)
    assert m == store.metadata("a/b")
    assert (m.size, m.stride, m.storage_offset, m.storage_bytes) == (t.shape, t.stride(), 6, 96)
    assert m.storage == cutaway.digest_storage(t)
    assert (m.requires_grad, m.is_leaf, m.is_conj, m.is_neg) == (False, True, False, False)
    assert cutaway.compute_tensor_metadata(t).storage is None


def test_names(store):
    for name in ("a/x", "a/y", "b"):
        store.put_tensor(name, torch.zeros(1))
    assert store.names() == ["a/x", "a/y", "b"]
    assert store.names("a/") == ["a/x", "a/y"]
    with pytest.raises(cutaway.Error, match='there is no record "a/z"'):
        store.get_tensor("a/z")
    with pytest.raises(cutaway.Error, match="is not a name"):
        store.put_tensor("../out", torch.zeros(1))


def test_compare(store):
    x = torch.arange(6.0)
    y = x.clone()
    y[5] = -1
    for name, a, b in (
        ("same", x, x.clone()),
        ("value", x, y),
        ("view", x[:3], y[:3]),
        ("dtype", x, x.double()),
        ("grad", x, x.clone().requires_grad_()),
    ):
        store.put_tensor("a/" + name, a)
        store.put_tensor("b/" + name, b)
    store.put_tensor("a/only", x)
    found = {d.name: d for d in store.compare("a/", "b/")}
    assert set(found) == {"value", "view", "dtype", "grad", "only"}
    assert found["value"].unequal_elements == 1
    assert found["view"].unequal_elements == 0
    assert found["dtype"].unequal_elements is None
    assert found["grad"].unequal_elements == 0 and any("requires_grad" in f for f in found["grad"].fields)
    assert found["only"].fields == ("only in a/",)
    assert str(found["value"]).endswith("1 of 6 elements differ")


def test_damage_is_an_error_that_names_it(store, tmp_path):
    m = store.put_tensor("t", torch.randn(100))
    blob = tmp_path / "store" / "blobs" / m.storage[:2] / m.storage
    data = bytearray(blob.read_bytes())
    data[7] ^= 1
    blob.chmod(0o644)
    blob.write_bytes(data)
    with pytest.raises(cutaway.Error, match=m.storage[:4]):
        store.get_tensor("t")
    with pytest.raises(cutaway.Error):
        store.verify(m.storage)
    blob.unlink()
    with pytest.raises(cutaway.Error, match="missing"):
        store.get_tensor("t")


def test_unknown_device(store):
    store.put_tensor("t", torch.zeros(1))
    assert store.get_tensor("t", "cpu").device.type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(cutaway.Error, match="cannot be made here"):
            store.get_tensor("t", "cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda(store):
    base = torch.randn(4, 5, device="cuda")
    store.put_tensor("base", base)
    store.put_tensor("view", base.t()[1:])
    back = store.get_tensors()
    assert back["view"].is_cuda and torch.equal(back["view"], base.t()[1:])
    back["base"].zero_()
    assert not back["view"].any()
    assert store.get_tensor("base", "cpu").device.type == "cpu"


def test_storage_by_digest(store):
    base = torch.arange(6, dtype=torch.int16)
    digest = store.put_storage(base[2:4])
    again = store.get_storage(digest)
    assert torch.equal(torch.empty(0, dtype=torch.int16).set_(again), base)
    again[0] = 7
    assert store.get_storage(digest)[0] == 0
    with pytest.raises(cutaway.Error, match="is missing"):
        store.get_storage("0" * 31 + "1")
    with pytest.raises(cutaway.Error, match="32 hexadecimal digits"):
        store.get_storage("abc")
