"""An exception counts as the program's only when eager raises it: what torch raises on fake tensors alone is never taken for it."""

import contextlib
import functools
import math  # noqa: F401
import operator  # noqa: F401
import warnings

import cutaway
import pytest
import torch
import torch.distributions as D  # noqa: F401
import torch.nn.functional as F  # noqa: F401
from torch import nn
from torch.nn.utils import rnn  # noqa: F401

from tests.support import capture_cases

pytestmark = pytest.mark.skipif(
    not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture, or it is the peer's turn"
)

# Of a tensor x of sizes 2, 3: some raise, some do on fake tensors alone, some do nothing of the kind.
EXPRESSIONS = r"""
nn.init.uniform_(torch.empty(3, 4))
nn.init.uniform_(torch.empty(()))
nn.init.uniform_(torch.empty(2, 2, dtype=torch.int64))
nn.init.uniform_(x)
nn.init.normal_(torch.empty(3, 4))
nn.init.normal_(torch.empty(()))
nn.init.normal_(torch.empty(2, 2, dtype=torch.int64))
nn.init.normal_(x)
nn.init.trunc_normal_(torch.empty(3, 4))
nn.init.trunc_normal_(torch.empty(()))
nn.init.trunc_normal_(torch.empty(2, 2, dtype=torch.int64))
nn.init.trunc_normal_(x)
nn.init.constant_(torch.empty(3, 4), 1.0)
nn.init.constant_(torch.empty(()), 1.0)
nn.init.constant_(torch.empty(2, 2, dtype=torch.int64), 1.0)
nn.init.constant_(x, 1.0)
nn.init.ones_(torch.empty(3, 4))
nn.init.ones_(torch.empty(()))
nn.init.ones_(torch.empty(2, 2, dtype=torch.int64))
nn.init.ones_(x)
nn.init.zeros_(torch.empty(3, 4))
nn.init.zeros_(torch.empty(()))
nn.init.zeros_(torch.empty(2, 2, dtype=torch.int64))
nn.init.zeros_(x)
nn.init.eye_(torch.empty(3, 4))
nn.init.eye_(torch.empty(()))
nn.init.eye_(torch.empty(2, 2, dtype=torch.int64))
nn.init.eye_(x)
nn.init.dirac_(torch.empty(3, 4))
nn.init.dirac_(torch.empty(()))
nn.init.dirac_(torch.empty(2, 2, dtype=torch.int64))
nn.init.dirac_(x)
nn.init.xavier_uniform_(torch.empty(3, 4))
nn.init.xavier_uniform_(torch.empty(()))
nn.init.xavier_uniform_(torch.empty(2, 2, dtype=torch.int64))
nn.init.xavier_uniform_(x)
nn.init.xavier_normal_(torch.empty(3, 4))
nn.init.xavier_normal_(torch.empty(()))
nn.init.xavier_normal_(torch.empty(2, 2, dtype=torch.int64))
nn.init.xavier_normal_(x)
nn.init.kaiming_uniform_(torch.empty(3, 4))
nn.init.kaiming_uniform_(torch.empty(()))
nn.init.kaiming_uniform_(torch.empty(2, 2, dtype=torch.int64))
nn.init.kaiming_uniform_(x)
nn.init.kaiming_normal_(torch.empty(3, 4))
nn.init.kaiming_normal_(torch.empty(()))
nn.init.kaiming_normal_(torch.empty(2, 2, dtype=torch.int64))
nn.init.kaiming_normal_(x)
nn.init.orthogonal_(torch.empty(3, 4))
nn.init.orthogonal_(torch.empty(()))
nn.init.orthogonal_(torch.empty(2, 2, dtype=torch.int64))
nn.init.orthogonal_(x)
nn.init.sparse_(torch.empty(3, 4), 0.5)
nn.init.sparse_(torch.empty(()), 0.5)
nn.init.sparse_(torch.empty(2, 2, dtype=torch.int64), 0.5)
nn.init.sparse_(x, 0.5)
nn.init.calculate_gain("nope")
nn.init.calculate_gain("leaky_relu", "a")
x.new()
x.new(3).fill_(1)
x.new(torch.Size([2])).fill_(2)
x.new([1.0, 2.0])
x.new(x)
x.new("a")
x.new_tensor([1, 2])
x.new_tensor("a")
x.new_full((2,), "a")
x.new_zeros(-1)
torch.Tensor(3).fill_(1)
torch.Tensor([1, 2])
torch.Tensor(x)
torch.Tensor("a")
torch.FloatTensor([1.0])
torch.LongTensor([1, 2])
torch.LongTensor(x)
torch.FloatTensor(2, 3).zero_()
x.type(torch.DoubleTensor)
x.type("torch.FloatTensor")
x.type("nope")
torch.BoolTensor([True])
torch.tensor("a")
torch.tensor([[1], [1, 2]])
torch.tensor([x.sum(), 1.0])
torch.as_tensor([1, "a"])
torch.from_numpy(3)
torch.frombuffer(b"abcd", dtype=torch.uint8)
rnn.pack_padded_sequence(x[None], [2], batch_first=True).data
rnn.pack_padded_sequence(x[None], [5], batch_first=True)
rnn.pack_padded_sequence(x[None], [0], batch_first=True)
rnn.pack_padded_sequence(x[None], torch.tensor([2]), batch_first=True).data
rnn.pad_packed_sequence(rnn.pack_padded_sequence(x[None], [2], batch_first=True))
rnn.pad_sequence([x, x[:1]])
rnn.pad_sequence([x, x[0]])
rnn.pad_sequence([])
rnn.pack_sequence([x, x[:1]]).data
rnn.unpad_sequence(rnn.pad_sequence([x, x[:1]], True), torch.tensor([2, 1]), True)
nn.LSTM(3, 4)(x[None, None])
nn.utils.clip_grad_norm_([x], 1.0)
nn.utils.parameters_to_vector([x, x])
nn.utils.parameters_to_vector([])
D.Normal(x, x.abs()).log_prob(x)
D.Normal(x, -x.abs() - 1)
D.Normal(x, x.abs()).sample().shape
D.Bernoulli(x)
D.Bernoulli(x.sigmoid()).probs
D.Categorical(logits=x).log_prob(torch.tensor([0, 1]))
D.Categorical(x, x)
D.Categorical(-x)
D.Categorical(logits=x).log_prob(torch.tensor([7, 1]))
D.Uniform(x, x)
D.MultivariateNormal(x[0], torch.eye(3)).log_prob(x)
D.MultivariateNormal(x[0], -torch.eye(3))
D.MultivariateNormal(x.sum(), torch.eye(3))
D.Gamma(x, x).mean
D.Beta(x, x).entropy()
D.kl_divergence(D.Normal(x, x), D.Bernoulli(x.sigmoid()))
D.Independent(D.Normal(x, x), 5)
D.Normal(x, -x, validate_args=False).scale
D.Bernoulli(x.sigmoid()).rsample()
F.linear(x, torch.ones(4, 4))
F.linear(x, "w")
F.conv2d(x, torch.ones(1, 1, 3, 3))
F.conv1d(x[None], torch.ones(2, 2, 5))
F.softmax(x, 7)
F.softmax(x, "a")
F.cross_entropy(x, torch.tensor([1]))
F.cross_entropy(x, torch.tensor([1., 0.]))
F.cross_entropy(x, torch.tensor([1, 9]))
F.mse_loss(x, x, reduction="nope")
F.mse_loss(x, x[:, :2])
F.interpolate(x, scale_factor=2)
F.interpolate(x[None], size=4, mode="nope")
F.pad(x, (1, 1, 1, 1, 1, 1))
F.pad(x, (-9, 0))
F.pad(x, (1, 1), mode="nope")
F.dropout(x, 2.0)
F.embedding(x, x)
F.embedding(torch.tensor([9]), x)
F.one_hot(x)
F.one_hot(torch.tensor([3]), 2)
F.layer_norm(x, (7,))
F.batch_norm(x[:1], None, None, training=True)
F.group_norm(x, 2)
F.scaled_dot_product_attention(x, x, x[:, :2])
nn.MultiheadAttention(3, 2)
F.glu(x)
F.pixel_shuffle(x, 2)
F.max_pool2d(x, 2)
F.avg_pool1d(x, 9)
F.grid_sample(x, x)
F.fold(x, 2, 2)
F.ctc_loss(x, x, x, x)
F.nll_loss(x, x)
F.cosine_similarity(x, x[:, :2])
F.gumbel_softmax(x, dim=5)
F.binary_cross_entropy(x, x)
F.rrelu(x, 2, 1)
F.threshold(x, "a", 1)
hasattr(x, "foo")
hasattr(x, "T")
hasattr(x[0][None, None], "H")
hasattr(x[0], "mT")
hasattr(x, "imag")
hasattr(x, "__cuda_array_interface__")
hasattr(x, "grad_fn")
getattr(x, "foo", 5)
getattr(x, "imag", 5)
getattr(x, "__cuda_array_interface__", 5)
x[None].T
x[0].T
len(x.sum())
[r for r in x.sum()]
list(x.sum())
(lambda a, b: a)(*x.sum())
tuple(x)
bool(x)
1 if x else 2
not x
x and 1
bool(x[:0])
int(x)
float(x)
[1, 2][x]
range(x)
list(range(torch.tensor(3)))
divmod(x, 2)
divmod(2, x)
round(x)
round(x, 1)
math.floor(x)
math.trunc(x)
operator.index(x)
x @ [1]
[1] + x
"a" + x
"a" * x
"%s" % x
"%d" % x
x + "a"
x + [1, 2, 3]
x + None
x < "a"
x == "a"
x == None
x == object()
x < object()
1.5 in x
"a" in x
x in [x]
sorted(x)
max(x)
sum(x)
pow(x, 2, 3)
~x
x << 1
x & 1
x[9]
x["a"]
x[1.5]
x[0, 0, 0]
x[torch.tensor([True])]
x.__setitem__(9, 1)
x.__setitem__(0, "a")
x.__setitem__(0, torch.ones(7))
x.__delitem__(0)
x()
isinstance(hash(x), int)
x.item()
x.tolist()
x.numpy().shape
torch.tensor([1]).requires_grad_().requires_grad
torch.ones(2, dtype=torch.int64, requires_grad=True)
setattr(x, "shape", 1)
setattr(x, "grad", torch.ones(9))
x.view(7)
x.t().view(6)
x.sum().backward()
torch.autograd.grad(x.sum(), x)
torch.cond(x.sum() > 0, lambda: x, lambda: x[0])
torch.vmap(lambda a, b: a + b)(x, x[0])
torch.vmap(lambda a: a.item())(x)
torch.func.grad(lambda a: a)(x)
torch.func.jacrev(lambda a: a.view(9))(x)
torch.ops.aten.mm(x, x)
torch.ops.aten.mm.default(x)
torch.ops.aten.no_such(x)
torch.einsum("ij,jk", x, x)
torch.einsum("i!j", x)
x.chunk(0)
x.split([1, 5])
torch.stack([])
x.to("nope")
x.to("cuda:0")
x.to("float32")
torch.device("nope")
torch.finfo(torch.int64)
torch.iinfo(torch.float32)
torch.randn(2, generator=3)
x.to_sparse().to_dense()
torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()
torch.nested.nested_tensor([x, x]).size(0)
x.names
x.refine_names("a", "b").names
x.stride(5)
x.size(5)
torch.from_dlpack(x).shape
complex(x)
f"{x:.2f}"
f"{x.sum():.2f}"
torch.get_default_dtype()
torch.set_default_dtype(torch.int64)
torch.manual_seed("a")
x[:0].argmax()
x.unique()
x.nonzero()
x[x > 1]
x.repeat_interleave(torch.tensor([1, 2]), 0)
torch.linalg.cholesky(x)
torch.linalg.inv(torch.zeros(2, 2))
torch.linalg.solve(x, x)
"""


def in_block(call):
    def program(x):
        try:
            result = call(x)
        except Exception as error:
            return "except", type(error).__name__, str(error)
        return "try", result

    return program


def alone(call):
    def program(x):
        return call(x)

    return program


def outcome(program):
    """Branch, result or exception, and what is left of the argument, as text."""
    torch.manual_seed(3)
    x = torch.arange(6.0).reshape(2, 3) + 0.5
    try:
        return repr((program(x), x))
    except Exception as error:
        return repr(("raises", type(error).__name__, str(error), x))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("form", [in_block, alone])
@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_expression(expression, form, fresh_capture):
    call = eval("lambda x: " + expression)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = outcome(form(call))
        with cutaway.options(strict=True):
            assert outcome(cutaway.compile(form(call), backend="eager")) == expected


@pytest.fixture
def only_on_fakes():
    """An operator whose shape function raises, and which is fine otherwise."""
    with torch.library._scoped_library("cutaway_false_errors", "FRAGMENT") as library:
        library.define("fine(Tensor x) -> Tensor")
        library.impl("fine", functools.partial(torch.add, other=1), "CPU")  # no frame of its own

        def fake(x):
            raise ValueError("only on fakes")

        torch.library.register_fake("cutaway_false_errors::fine", fake, lib=library)
        yield torch.ops.cutaway_false_errors.fine


def grows(x):
    """Eager lets addbmm_ change the sizes of what it writes to; shape inference does not."""
    return torch.ones(1).addbmm_(x.reshape(1, 1, 2), x.reshape(1, 2, 1).expand(1, 2, 3))


def graphs_of(program, *args, **options):
    """What the compiled program gives, and the number of graphs."""
    count = 0

    def backend(module, examples):
        nonlocal count
        count += 1
        return module.forward

    return cutaway.compile(program, backend=backend, **options)(*args), count


class Suppresses:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return True


def test_blocks_around_it(only_on_fakes, fresh_capture):
    """Whatever may handle the error, in whichever frame: CPython runs the operator, and what is around it is captured."""
    fine = only_on_fakes

    def inner(x):
        return fine(x * 2)

    def of_caller(x):
        try:
            return inner(x) + 1
        except ValueError:
            return "handled"

    def bare_except(x):
        try:
            y = fine(x * 2)
        except:  # noqa: E722
            return "handled"
        return y + 1

    def of_another_type(x):
        try:
            y = fine(x * 2)
        except KeyError:
            return "handled"
        return y + 1

    def group(x):
        try:
            y = fine(x * 2)
        except* ValueError:
            y = x
        return y + 1

    def suppressed(x):
        y = x
        with contextlib.suppress(ValueError):
            y = fine(x * 2)
        return y + 1

    def of_a_class(x):
        y = x
        with Suppresses():
            y = fine(x * 2)
        return y + 1

    def by_finally(x):
        y = "handled"
        for _ in range(1):
            try:
                y = fine(x * 2) + 1
            finally:
                break  # noqa: B012
        return y

    def in_finally(x):
        try:
            y = fine(x * 2) + 1
        finally:
            for name in ("a", "b"):
                if name == "b":
                    return y if "y" in locals() else "handled"  # noqa: B012
        return y

    def by_generator(x):
        def items():
            try:
                yield fine(x * 2)
            except ValueError:
                yield "handled"

        return [item + 1 for item in items()][0]

    @contextlib.contextmanager
    def manager():
        try:
            yield
        except ValueError:
            pass

    def by_context_manager(x):
        y = "handled"
        with manager():
            y = fine(x * 2) + 1
        return y

    def deep(x):
        def third(x):
            return fine(x * 2)

        def second(x):
            with torch.no_grad():
                try:
                    return third(x)
                finally:
                    pass

        try:
            return second(x) + 1
        except Exception:
            return "handled"

    x = torch.ones(2)
    with cutaway.options(strict=True):
        programs = (of_caller, bare_except, of_another_type, group, suppressed, of_a_class, by_finally, in_finally)
        for program in (*programs, by_generator, by_context_manager, deep):
            for _ in range(2):
                got, count = graphs_of(program, x)
                assert torch.equal(got, torch.full((2,), 4.0)), program.__name__
            # One before the operator and one after it, where the frames can go on there.
            assert count == {in_finally: 0, by_generator: 1}.get(program, 2), (program.__name__, count)


def test_answers_of_c(only_on_fakes, fresh_capture):
    """hasattr and getattr take an AttributeError for an answer: one of fake tensors is none."""

    class Lazy:
        def __init__(self, x):
            self.x = x

        @property
        def value(self):
            try:
                return only_on_fakes(self.x)
            except ValueError as error:
                raise AttributeError(str(error)) from None

    class Fallback(Lazy):
        def __getattr__(self, name):
            return "fallback"

    def program(x):
        return hasattr(Lazy(x), "value"), getattr(Lazy(x), "value", None), Fallback(x).value, x + 1

    x = torch.ones(2)
    with cutaway.options(strict=True):
        got, _ = graphs_of(program, x)
    assert got[0] is True and all(torch.equal(t, x + 1) for t in got[1:])


def test_error_of_fakes_alone_ends_the_graph(fresh_capture):
    def program(x):
        return grows(x * 2) + 1

    x = torch.ones(2)
    with pytest.raises(cutaway.exc.Unsupported, match="raised RuntimeError: .* while it was traced, but eager returns"):
        graphs_of(program, x, fullgraph=True)
    cutaway.reset()
    result, count = graphs_of(program, x)
    assert torch.equal(result, torch.full((1, 3), 10.0))
    assert count == 2  # before the operator, and after it


def test_error_of_fakes_alone_after_a_break(fresh_capture):
    """In a function that goes on behind a break."""

    def program(x):
        y = x * 2
        torch._dynamo.graph_break()
        return grows(y) + 1

    result, count = graphs_of(program, torch.ones(2))
    assert torch.equal(result, torch.full((1, 3), 10.0))
    assert count == 3


def test_fake_implementation_that_raises(only_on_fakes, fresh_capture):
    """It says nothing about the operator: the graph ends before it, in a block or not."""

    def program(x):
        return only_on_fakes(x * 2) + 1

    with cutaway.options(strict=True):
        got, count = graphs_of(program, torch.ones(2))
        assert torch.equal(got, torch.full((2,), 4.0)) and count == 2
        with pytest.raises(cutaway.exc.Unsupported, match="only on fakes"):
            graphs_of(program, torch.ones(2), fullgraph=True)


@pytest.mark.parametrize("fullgraph", [False, True])
def test_what_eager_raises_is_raised(fullgraph, fresh_capture):
    def program(x, other):
        with torch.no_grad():
            return torch.mm(x, other) + 1

    x = torch.ones(2, 3)
    with cutaway.options(strict=True):
        compiled = cutaway.compile(program, backend="eager", fullgraph=fullgraph)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied") as found:
                compiled(x, x)
            assert not isinstance(found.value, cutaway.exc.CompileError)
            assert found.traceback[-1].name == "program"
        assert torch.equal(compiled(x, x.t()), program(x, x.t()))


def test_an_earlier_error_of_real_data_is_no_wrong_belief(fresh_capture):
    def program(x, index):
        y = torch.embedding(x, index)
        return torch.mm(y, y)

    with cutaway.options(strict=True):
        compiled = cutaway.compile(program, backend="eager")
        with pytest.raises(IndexError):
            compiled(torch.ones(2, 3), torch.tensor([9]))


def test_an_operator_that_would_have_written(fresh_capture):
    """It raises on real data alone, before its write: the block handles it."""

    def in_place(x):
        try:
            x.abs_()
        except NotImplementedError as error:
            return str(error), x
        return "fine", x

    def with_out(x, out):
        try:
            torch.aminmax(x, dim=0, out=(out, out.double()))
        except RuntimeError as error:
            return str(error), out
        return "fine", out

    with cutaway.options(strict=True):
        for program, args in ((in_place, (torch.tensor([True]),)), (with_out, (torch.ones(2, 2), torch.ones(2)))):
            expected = program(*(a.clone() for a in args))
            assert repr(cutaway.compile(program, backend="eager")(*args)) == repr(expected)


class Derived(property):
    pass


def test_descriptors_derived_from_those_of_c(fresh_capture):
    class Static(staticmethod):
        pass

    class Of(classmethod):
        pass

    class Module(nn.Module):
        scale = 3

        @Derived
        def doubled(self):
            return self.scale * 2

        @doubled.setter
        def doubled(self, value):
            self.scale = value

        @Static
        def three():
            return 3

        @Of
        def name(cls):
            return cls.__name__

        def forward(self, x):
            self.doubled = 5
            return x * self.doubled, self.three(), self.name()

    with cutaway.options(strict=True):
        got, count = graphs_of(Module(), torch.ones(2), fullgraph=True)
    assert torch.equal(got[0], torch.full((2,), 10.0)) and got[1:] == (3, "Module") and count == 1
