"""`run --device`: a bundle as if it had been recorded elsewhere."""

import cutaway
import pytest
import torch

from tests.support.bundles import write_bundle


def program(x, w):
    return torch.softmax(x @ w, -1) + torch.zeros(x.shape[0], w.shape[1], device=x.device)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    torch.manual_seed(0)
    inputs = [torch.randn(8, 16), torch.randn(16, 4)]
    graph = cutaway.aot(program, inputs).forward
    return write_bundle(
        tmp_path_factory.mktemp("device") / "bundle", graph, inputs, stage="aot", accuracy="accuracy", backend="native"
    )


def test_a_bundle_runs_where_it_was_recorded(ask, bundle):
    answer = ask("run", bundle, "--device", "cpu")
    assert answer.code == 0, answer.err + answer.out


def test_a_bundle_moves_to_a_card(ask, bundle):
    answer = ask("run", bundle, "--device", "cuda")
    if torch.cuda.is_available():
        assert answer.code == 0, answer.err + answer.out
    else:
        assert answer.code != 0


def test_what_is_no_device_is_refused(ask, bundle):
    for word in ("xpu", "card", "cuda:x"):
        answer = ask("run", bundle, "--device", word)
        assert answer.code == 2 and word in answer.err, answer.err
