"""The backend native when the compiler, the cache or the process around it misbehaves: results stay eager's, and somebody is told."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import cutaway
import pytest
import torch

PROGRAM = textwrap.dedent("""
    import sys, torch, cutaway
    def f(x):
        return torch.softmax(x.tanh() * 2, -1) + x.sum(0)
    x = torch.linspace(-2, 2, 60).reshape(6, 10)
    g = cutaway.compile(f, backend=sys.argv[1] if len(sys.argv) > 1 else "native:wait")
    for _ in range(3):
        assert torch.allclose(g(x), f(x), atol=1e-6)
    print("right")
""")


def run(tmp_path, backend="native:wait", **environment):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "CUTAWAY_CACHE_DIR": str(tmp_path / "cache"), "CUTAWAY_LOGS": "native", **environment}
    done = subprocess.run(
        [sys.executable, script, backend], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and "right" in done.stdout, done.stderr[-2000:]
    return done.stderr


def compiler(tmp_path, body):
    """A program that says its version and then does something else than compile."""
    path = tmp_path / "fake-g++"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "fake 1.0"; exit 0; fi\n{body}\n')
    path.chmod(0o755)
    return str(path)


def kept(tmp_path, ending):
    return sorted((tmp_path / "cache" / "native").glob(f"*{ending}"))


@pytest.mark.parametrize("backend", ["native", "native:wait"])
def test_it_is_compiled_once_and_then_found(tmp_path, backend):
    run(tmp_path, "native:wait")
    before = [p.stat().st_ino for p in kept(tmp_path, ".so")]
    assert len(before) == 1 and len(kept(tmp_path, ".cpp")) == 1
    run(tmp_path, backend)
    assert [p.stat().st_ino for p in kept(tmp_path, ".so")] == before


def test_without_a_compiler(tmp_path):
    said = run(tmp_path, CUTAWAY_CXX="/nonexistent/g++")
    assert "there is no C++ compiler" in said and "CUTAWAY_CXX" in said


@pytest.mark.parametrize("backend", ["native", "native:wait"])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo 'no such flag' >&2; exit 1", "no such flag"),
        ("kill -9 $$", "SIGKILL"),
        ("sleep 60", "no answer in 1"),
        ("exit 0", ""),
    ],
    ids=["fails", "is killed", "hangs", "writes nothing"],
)
def test_a_compiler_that_misbehaves(tmp_path, body, words, backend):
    said = run(tmp_path, backend, CUTAWAY_CXX=compiler(tmp_path, body), CUTAWAY_COMPILE_SECONDS="1")
    if backend == "native:wait":
        assert words in said


def test_garbage_from_the_compiler_is_not_loaded(tmp_path):
    body = 'while [ $# -gt 1 ]; do shift; done; echo "not a library" > "$1"'
    assert "cannot be opened" in run(tmp_path, CUTAWAY_CXX=compiler(tmp_path, body))


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "no sum"])
def test_damaged_entries_of_the_cache_are_compiled_again(tmp_path, damage):
    run(tmp_path)
    (library,) = kept(tmp_path, ".so")
    if damage == "no sum":
        Path(f"{library}.sum").unlink()
    else:
        data = library.read_bytes()
        library.write_bytes({"cut": data[: len(data) // 2], "changed": data[:-100] + b"x" * 100, "empty": b""}[damage])
    run(tmp_path)
    assert Path(f"{library}.sum").exists() and library.stat().st_size > 1000


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "cache").symlink_to("/proc")  # where not even root makes a file
    run(tmp_path)


def test_processes_that_compile_the_same_graph_at_once(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "CUTAWAY_CACHE_DIR": str(tmp_path / "cache")}
    children = [
        subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert all("right" in child.communicate(timeout=300)[0] and child.returncode == 0 for child in children)
    assert len(kept(tmp_path, ".so")) == 1


def test_threads_share_a_compiled_graph():
    def f(x):
        return torch.softmax(x, -1) @ x.T + x.mean()

    g = cutaway.compile(f, backend="native:wait")
    inputs = [torch.randn(20, 30, generator=torch.Generator().manual_seed(i)) for i in range(8)]
    expected = [f(x) for x in inputs]
    g(inputs[0])
    wrong = []

    def work(i):
        for _ in range(20):
            if not torch.allclose(g(inputs[i]), expected[i], atol=1e-5):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_weight_that_is_written_between_calls_counts():
    layer = torch.nn.Linear(32, 16)
    x = torch.randn(8, 32)
    g = cutaway.compile(layer, backend="native:wait")
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(g(x), layer(x))
            layer.weight.data.mul_(1.5)  # changes no version counter
            layer.bias.data += 1


def test_settings_that_do_not_exist_are_named():
    with pytest.raises(cutaway.Error, match='no setting "wiat"'):
        cutaway.compile(lambda x: x + 1, backend="native:wiat", fullgraph=True)(torch.ones(2))
