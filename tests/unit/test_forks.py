"""Where torch has looked at CUDA devices, children of a fork could not use them: nothing is forked there."""

import os

import pytest
import torch
from cutaway import _forks, _live


@pytest.mark.parametrize("is_bad", [True, False])
def test_child_tells(monkeypatch, is_bad):
    here = os.getpid()
    monkeypatch.setattr(torch._C, "_cuda_isInBadFork", lambda: is_bad and os.getpid() != here, raising=False)
    assert _forks.loses_cuda() is is_bad


@pytest.mark.skipif(hasattr(torch._C, "_cuda_isInBadFork"), reason="torch with CUDA")
def test_nothing_is_lost_without_cuda():
    assert not _forks.loses_cuda()


def test_no_copy_is_kept(monkeypatch):
    monkeypatch.setattr(_forks, "loses_cuda", lambda: True)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a copy was made"))
    assert _live.keep_a_copy(lambda *a: None, lambda: None) is None
