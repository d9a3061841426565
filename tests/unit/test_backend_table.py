"""The table of backends: every backend that is registered has a complete row, and what asks the table gets what the backend does."""

import subprocess
import sys

import cutaway
import pytest
import torch
from cutaway import _native

FIELDS = set(_native.backend_row("eager"))  # a new capability is a field of the table and nothing here


def test_every_registered_backend_has_a_complete_row():
    rows = _native.list_backends()
    assert {"eager", "aot_eager", "own_aot_eager", "cutaway", "native", "fault", "command"} <= {
        row["name"] for row in rows
    }
    for row in rows:
        assert set(row) == FIELDS, row["name"]
        assert row["summary"] and row["devices"] and row["lives"] in ("C++", "Python", "program"), row["name"]
        assert row == _native.backend_row(row["name"])


def test_a_worker_registers_only_backends_with_rows():
    """With torch's own names in the table: those have the row of a function in Python."""
    program = (
        "import json; from cutaway import _backends, _native; _backends.register_all();"
        "print(json.dumps(_native.list_backends()))"
    )
    import json

    rows = {row["name"]: row for row in json.loads(subprocess.check_output([sys.executable, "-c", program]))}
    assert rows["inductor"]["observes"] and not rows["inductor"]["needs_trust"]
    others = [row for name, row in rows.items() if not _native.has_backend_row(name)]
    assert others and all(row["lives"] == "Python" and row["needs_trust"] for row in others)


NAMES = [row["name"] for row in _native.list_backends() if row["takes_captured_graphs"]]


@pytest.mark.parametrize("name", NAMES)
def test_what_takes_captured_graphs_runs_them(name):
    backend = "fault:wrong:aten.cos" if name == "fault" else name
    x = torch.randn(5, requires_grad=True)
    y = cutaway.compile(lambda x: (x.sin() * 2).sum(), backend=backend)(x)
    assert torch.allclose(y, (x.sin() * 2).sum())
    if _native.backend_row(name)["differentiates"]:
        y.backward()
        assert torch.allclose(x.grad, x.detach().cos() * 2)


@pytest.mark.parametrize("name", ["native", "cutaway", "own_aot_eager"])
def test_a_backend_of_ours_can_be_watched(name, tmp_path):
    """Torch has no name for it, so that the watcher must take it from our table."""
    for after in ("capture", "aot"):
        x = torch.randn(4)
        f = torch.compile(lambda x: x.sin() + 1, backend=cutaway.debug(name, after=after, base_dir=tmp_path))
        assert torch.allclose(f(x), x.sin() + 1)


def test_the_error_for_an_unknown_backend_lists_ours():
    with pytest.raises(cutaway.exc.InvalidBackend, match="cutaway, .*eager, .*fault, .*native"):
        cutaway.compile(lambda x: x, backend="nothing_like_that")(torch.ones(1))
