"""What `same`, `same_two_models` and `run_fwd_maybe_bwd` promise beyond torch's answer."""

import collections
import dataclasses
import json
import random
import subprocess
import sys

import cutaway
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

NAN = float("nan")


def test_verdict_is_a_value_with_evidence():
    a = torch.tensor([1.0, 2.0, 4.0])
    v = cutaway.same({"x": [a, a]}, {"x": [a, torch.tensor([1.0, 2.5, 4.0])]})
    assert not v and v.outcome == "wrong" and v.path == "out['x'][1]"
    assert v.leaves == 2 and len(v.parts) == 1
    assert v.stats.max_abs == 0.5 and v.stats.worst_index == [1] and v.stats.worst_result == 2.5
    assert str(v).splitlines()[:2] == [
        "wrong: out['x'][1] (1 of 2 parts differ)",
        "   because: 1 of 3 elements are off by more than 0.0001 + 0.0001 x |result|",
    ]
    assert json.loads(v.to_json())["parts"][0]["path"] == "out['x'][1]"
    assert 'class="badge bad"' in v._repr_html_() and "out[&#39;x&#39;][1]" in v._repr_html_()
    assert repr(v) == "<Verdict wrong at out['x'][1]>"


def test_path_names_fields_of_output_classes():
    transformers = pytest.importorskip("transformers.modeling_outputs")
    a = torch.ones(2, 3)
    ref = transformers.MaskedLMOutput(loss=torch.tensor(1.0), logits=a, hidden_states=(a, a))
    res = transformers.MaskedLMOutput(loss=torch.tensor(1.0), logits=a, hidden_states=(a, a + 1))
    assert cutaway.same(ref, res).path == "out.hidden_states[1]"
    qa = transformers.QuestionAnsweringModelOutput
    assert cutaway.same(qa(loss=torch.tensor(1.0), start_logits=a), qa(loss=torch.tensor(1.0), start_logits=a + 1))
    assert cutaway.same(qa(loss=torch.tensor(1.0)), qa(loss=torch.tensor(2.0))).path == "out.loss"

    point = collections.namedtuple("point", ["x", "y"])
    assert cutaway.same(point(a, a), point(a, a + 1)).path == "out.y"

    @dataclasses.dataclass
    class Output:
        logits: torch.Tensor

    assert cutaway.same(Output(a), Output(a + 1)).path == "out.logits"
    assert cutaway.same(Output(a), Output(a.clone())).outcome == "equal"


@pytest.mark.parametrize(
    "ref, res, reason",
    [
        ([1], {"a": 1}, "another type: the reference is list, the result dict"),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, "other keys: the result lacks 'a'; the reference lacks 'c'"),
        ({1, 2}, {1, 3}, "the reference is {1, 2}, the result {1, 3}"),
        ([1, 2], [1], "another length: the reference has 2 parts, the result 1"),
        (torch.ones(2), None, "another type: the reference is Tensor, the result NoneType"),
        (torch.ones(2), torch.ones(2).to_sparse(), "another layout: the reference is Strided, the result Sparse"),
        ("a", "b", "the reference is 'a', the result 'b'"),
        (3, torch.ones(2), "another type: the reference is int, the result Tensor"),
    ],
)
def test_mismatch_is_a_verdict(ref, res, reason):
    v = cutaway.same(ref, res)
    assert v.outcome == "wrong" and v.reason == reason


def test_what_cannot_be_compared_is_refused():
    with FakeTensorMode() as mode:
        fake = torch.ones(2)
    real = torch.ones(2)
    del mode
    for ref, res in ((fake, real), (real, fake), (torch.ones(2, device="meta"), torch.ones(2, device="meta"))):
        v = cutaway.same(ref, res)
        assert v.outcome == "refused" and not v
    assert cutaway.same(object(), object()).reason == "there is no rule for values of type object"
    endless: list = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        cutaway.same(endless, endless)


def test_plain_values():
    a = torch.ones(2)
    for value in (
        (), [], {}, set(), None, "s", 3, 2.5, True, 1j, torch.Size([1, 2]), torch.device("cpu"), torch.float32, b"x",
        np.int64(3), np.float64(2.0), np.ones(3), np.ones(4)[::-1], collections.deque([a]), torch.nn.ParameterList([a]),
    ):  # fmt: skip
        assert cutaway.same(value, value).outcome == "equal", value


def test_log_error_gets_the_text():
    lines = []
    cutaway.same(1, 2, log_error=lambda form, *values: lines.append(form % values))
    assert lines == ["wrong: out\n   because: the reference is 1, the result 2"]
    assert cutaway.same(1, 1, log_error=lambda *_: lines.append("no")) and len(lines) == 1


class Net(torch.nn.Module):
    def __init__(self, factor=1.0, fails=False, noise=False):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(()))
        self.factor, self.fails, self.noise = factor, fails, noise

    def forward(self, x):
        if self.fails:
            raise ValueError("no kernel for this")
        self.count += 1
        y = torch.nn.functional.dropout(self.linear(x), 0.5) * self.factor
        if self.noise:
            noise = np.random.default_rng().random()  # seeded by the system: differs every time
            y = y + noise
        return y.relu()


@pytest.mark.parametrize("only_fwd", [False, True])
def test_same_two_models(only_fwd):
    torch.manual_seed(0)  # some inputs make every output of relu zero: then nothing differs
    x = torch.randn(5, 4, requires_grad=True)
    model, twin, other, failing, noisy = Net(), Net(), Net(factor=1.5), Net(fails=True), Net(noise=True)
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()

    assert cutaway.same_two_models(model, twin, [x], only_fwd).outcome == "equal"
    wrong = cutaway.same_two_models(model, other, [x], only_fwd)
    assert wrong.outcome == "wrong"
    raised = cutaway.same_two_models(model, failing, [x], only_fwd)
    assert raised.outcome == "raised" and not raised
    assert raised.reason == "the compiled run raised: ValueError: no kernel for this"
    assert isinstance(raised.exception, ValueError)
    assert cutaway.same_two_models(failing, model, [x], only_fwd).outcome == "refused"
    flaky = cutaway.same_two_models(model, noisy, [x], only_fwd)
    assert flaky.outcome == "nondeterministic" and "two runs of the compiled model" in flaky.reason and not flaky

    assert torch.equal(torch.get_rng_state(), states[0]) and random.getstate() == states[1]
    assert (np.random.get_state()[1] == states[2]).all()
    assert x.grad is None and model.linear.weight.grad is None and model.count == 0


def test_same_two_models_names_what_differs():
    class Detached(Net):
        def forward(self, x):
            return super().forward(x) + 0 * x.sum() + (x - x.detach()).sum() * 3  # same numbers, another gradient

    x = torch.randn(5, 4, requires_grad=True)
    v = cutaway.same_two_models(Net(), Detached(), [x])
    assert v.outcome == "wrong" and v.path == "inputs[0].grad"


def test_fp64_reference():
    class Picky(torch.nn.Module):
        def forward(self, x):
            if x.dtype is torch.float64:
                raise TypeError("not in double")
            return x + 1

    x = torch.randn(3)
    v = cutaway.same_two_models(Picky(), Picky(), [x])
    assert v and v.reason.endswith("without an fp64 reference, which raised TypeError: not in double")
    with pytest.raises(cutaway.Error, match="the fp64 reference could not be computed"):
        cutaway.same_two_models(Picky(), Picky(), [x], require_fp64=True)
    assert cutaway.same_two_models(Picky(), Picky(), [x], require_fp64=True, use_fp64=False).outcome == "equal"


def test_fp64_reference_casts_dtypes_inside_a_graph():
    from cutaway._run import cast_to_fp64

    def f(x):
        return (
            x.to(torch.float16).float()
            + torch.zeros(3, dtype=torch.float32)
            + torch.ops.aten._to_copy.default(x, dtype=torch.bfloat16)
        )

    wide, inputs = cast_to_fp64(torch.fx.symbolic_trace(f), [torch.randn(3)])
    out = wide(*inputs)
    assert out.dtype is torch.float64
    assert torch.equal(out, 2 * inputs[0])  # nothing was rounded on the way


def test_run_fwd_maybe_bwd():
    model = Net()
    x = torch.randn(5, 4, requires_grad=True)
    y = torch.randn(2)
    out, loss, gradients, parameters, buffers, *inputs = cutaway.run_fwd_maybe_bwd(
        torch.nn.Sequential(collections.OrderedDict(net=model)), [x]
    )
    assert out.shape == (5, 3) and loss is None
    assert set(gradients) == {"net.linear.weight.grad", "net.linear.bias.grad"} and set(buffers) == {"net.count"}
    assert set(parameters) == {"net.linear.weight", "net.linear.bias"}
    assert buffers["net.count"] == 1 and model.count == 0
    assert len(inputs) == 1 and inputs[0].shape == x.shape and x.grad is None

    frozen = cutaway.run_fwd_maybe_bwd(torch.nn.Linear(2, 2).requires_grad_(False), [y])
    assert all((g == 0).all() for g in frozen[2].values())  # no gradient counts as zero

    assert cutaway.run_fwd_maybe_bwd(lambda a: a * 2, [y], only_fwd=True).equal(y * 2)
    assert not cutaway.run_fwd_maybe_bwd(lambda a: a.zero_(), [y], only_fwd=True).any() and y.any()
    cutaway.run_fwd_maybe_bwd(lambda a: a.zero_(), [y], only_fwd=True, disable_clone=True)
    assert not y.any()

    def boxed(values):
        first = values[0]
        values.clear()
        return [first * 3]

    boxed._boxed_call = True
    results = cutaway.run_fwd_maybe_bwd(boxed, [x])
    assert torch.allclose(results[-1], torch.full_like(x, 3 / x.numel()))


def test_inputs_keep_their_strides_and_gradness():
    from cutaway._run import clone_inputs_retaining_gradness

    x = torch.randn(4, 6)[:, ::2].requires_grad_()
    derived = torch.randn(3, requires_grad=True) * 2
    copies = clone_inputs_retaining_gradness([x, (derived, 3), torch.ones(1).expand(5)])
    assert copies[0].stride() == x.stride() and copies[0].requires_grad and copies[0].is_leaf
    assert copies[1][0].requires_grad and copies[1][0].is_leaf and copies[1][1] == 3
    assert torch.equal(copies[2], torch.ones(5))


def test_reduce_to_scalar_loss():
    from cutaway._run import reduce_to_scalar_loss, requires_bwd_pass

    assert reduce_to_scalar_loss(torch.tensor([1, 2])) == 1.5
    assert reduce_to_scalar_loss([torch.ones(2), (torch.zeros(3), torch.zeros(1))]) == 0.5
    assert reduce_to_scalar_loss({"a": torch.ones(2), "b": torch.full((2,), 3.0)}) == 2
    with pytest.raises(cutaway.Error, match="outputs of type str cannot be reduced"):
        reduce_to_scalar_loss("x")
    assert requires_bwd_pass({"a": [torch.ones(1, requires_grad=True)]}) and not requires_bwd_pass(
        [torch.ones(1), 3, None]
    )


def test_same_in_a_forked_child():
    """Comparisons run in forked workers, where OpenMP would hang."""
    program = (
        "import os, torch, cutaway\n"
        "a = torch.randn(1 << 21); b = a.clone()  # torch uses OpenMP here\n"
        "assert cutaway.same(a, b)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if cutaway.same(a, b).outcome == 'equal' else 1)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0", done.stderr


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("reference", "result", "exact", "is_same"),
    [
        ([INF, 1.0, 2.0], [INF, 500.0, NAN], None, False),
        ([INF, 1.0, 2.0], [INF, 500.0, -3.0], None, False),
        ([INF, 1.0, 2.0], [INF, 1.00001, 2.0], None, True),
        ([INF, 1.0, 2.0], [-INF, 1.0, 2.0], None, False),
        ([NAN, 1.0, 2.0], [NAN, 500.0, 2.0], None, False),
        ([NAN, 1.0, 2.0], [NAN, 1.0, 2.0], None, True),
        ([INF, 1.0, 2.0], [7.0, 500.0, 2.0], [7.0, 1.0, 2.0], False),  # the reference overflows, and the rest is off
        ([INF, 1.0, 2.0], [7.0, 1.0, 2.0], [7.0, 1.0, 2.0], True),
        ([INF, 1.0, 2.0], [9.0, 1.0, 2.0], [7.0, 1.0, 2.0], True),  # neither knows
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_an_infinity_does_not_switch_the_comparison_off(reference, result, exact, is_same, dtype):
    ref, res = torch.tensor(reference, dtype=dtype), torch.tensor(result, dtype=dtype)
    fp64 = ref.double() if exact is None else torch.tensor(exact, dtype=torch.float64)
    for rules in ("common", "cutaway"):
        assert bool(cutaway.same(ref, res, fp64, equal_nan=True, tol=1e-3, rules=rules)) == is_same, rules
    assert cutaway.same(ref, res, fp64, equal_nan=True, tol=1e-3, rules="torch") or not is_same
