"""cutaway.debug and save_repro: what is watched, what is written, and that what is written fails again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import cutaway
import pytest
import torch
from cutaway import _native

PACKAGE = str(Path(cutaway.__file__).parent.parent)


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def backends():
    from cutaway import _backends

    _backends.register_all()


def manifest_of(path) -> dict:
    return json.loads((Path(path) / "manifest.json").read_text())


def trial_of(path, *, accuracy="none", trusted=True, **manifest_changes) -> str:
    manifest = {**manifest_of(path), **manifest_changes}
    return json.dumps(
        {
            "task": "run",
            "graph": (Path(path) / "graph.cut").read_text(),
            "manifest": json.dumps(manifest),
            "store": str(path),
            "accuracy": accuracy,
            "only_forward": False,
            "is_trusted": trusted,
            "tolerance": 1e-3,
            "threads": 1,
        }
    )


def environment(**more) -> dict:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CUTAWAY_", "TORCHDYNAMO_"))}
    return {**kept, "PYTHONPATH": PACKAGE, **more}


def run_repro(path) -> subprocess.CompletedProcess:
    """repro.py with torch alone: Cutaway is not to be found."""
    alone = {k: v for k, v in environment().items() if k != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, str(Path(path) / "repro.py")], capture_output=True, text=True, env=alone, timeout=170
    )


def run_script(folder: Path, text: str, **variables) -> subprocess.CompletedProcess:
    file = folder / "user_script.py"
    file.write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(**variables),
        timeout=170,
    )


class ToyError(Exception):
    pass


def rejects_relu(gm, example_inputs):
    for node in gm.graph.nodes:
        if "relu" in str(node.target):
            raise ToyError("relu is not supported")
    return gm.forward


def adds_to_relu(gm, example_inputs):
    """Miscompiles relu; both after capture and after aot."""
    for node in list(gm.graph.nodes):
        if node.op == "call_function" and "relu" in str(node.target) and "backward" not in str(node.target):
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.add, (node, 0.5))
            node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
    gm.recompile()
    return gm.forward


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x):
        return torch.relu(self.linear(x)).sin()


def notes(error) -> list[str]:
    return getattr(error.value, "__notes__", [])


# ---- errors ----


def test_exception_after_capture(tmp_path, backends):
    net, x = Net(), torch.randn(3, 6)
    watched = cutaway.debug(rejects_relu, base_dir=tmp_path, minify=False)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="relu is not supported") as error:
        torch.compile(net, backend=watched)(x)
    assert isinstance(error.value.inner_exception, ToyError)
    path = error.value.minifier_path
    assert notes(error)[-2:] == [f"cutaway: repro written to {path}", f"cutaway minify {path} --trust"]
    manifest = manifest_of(path)
    assert Path(path).parent == tmp_path / "checkpoints"
    assert (tmp_path / "repro" / "manifest.json").exists()
    assert manifest["failure"]["kind"] == "exception" and manifest["failure"]["type"] == "ToyError"
    assert manifest["stage"] == "capture"
    assert manifest["backend"] == f"python:{__name__}:rejects_relu"
    assert {i["kind"] for i in manifest["inputs"]} == {"data"}
    assert "torch.relu" in (Path(path) / "graph.cut").read_text()
    # Without trust a named Python function does not run; with it the failure is the recorded one.
    assert json.loads(_native.run_trial(trial_of(path, trusted=False)))["outcome"] == "invalid"
    result = json.loads(_native.run_trial(trial_of(path)))
    assert result["outcome"] == "failure", result
    assert (
        result["signature"]["type"] == "ToyError" and result["signature"]["message"] == manifest["failure"]["message"]
    )


def test_exception_after_aot_is_deferred_to_real_inputs(tmp_path):
    calls = []

    def compiler(gm, example_inputs):
        from torch._subclasses.fake_tensor import FakeTensor

        assert any(isinstance(t, FakeTensor) for t in example_inputs)

        def run(*inputs):
            calls.append(len(inputs))
            if len(calls) == 2:
                raise ToyError("second call")
            return gm.forward(*inputs)

        return run

    f = torch.compile(lambda x: torch.relu(x) + 1, backend=cutaway.debug(compiler, after="aot", base_dir=tmp_path))
    first, second = torch.randn(4), torch.randn(4)
    with torch.no_grad():
        f(first)
        with pytest.raises(ToyError, match="second call") as error:
            f(second)
    path = error.value.minifier_path
    assert manifest_of(path)["stage"] == "aot"
    (blob,) = (p for p in (Path(path) / "blobs").rglob("*") if p.is_file())
    assert torch.equal(torch.frombuffer(bytearray(blob.read_bytes()), dtype=torch.float32), second)


def rejects_cos(gm, example_inputs):
    if any("cos" in str(node.target) for node in gm.graph.nodes):  # the derivative of sin
        raise ToyError("no backward here")
    return gm.forward


def test_compile_error_of_a_forward_graph_has_the_data_of_the_captured_one(tmp_path):
    f = torch.compile(Net(), backend=cutaway.debug(rejects_relu, after="aot", base_dir=tmp_path))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        f(torch.randn(3, 6))
    manifest = manifest_of(error.value.minifier_path)
    assert {i["kind"] for i in manifest["inputs"]} == {"data"}
    assert manifest["extra"]["data_from"] == "the inputs of the captured graph"
    assert manifest["failure"]["type"] == "ToyError"


def test_compile_error_of_a_backward_graph_has_metadata_and_a_seed(tmp_path):
    f = torch.compile(Net(), backend=cutaway.debug(rejects_cos, after="aot", base_dir=tmp_path))
    with pytest.raises((ToyError, torch._dynamo.exc.BackendCompilerFailed)) as error:
        f(torch.randn(3, 6)).sum().backward()
    manifest = manifest_of(error.value.minifier_path)
    assert "backward" in manifest["name"]
    assert {i["kind"] for i in manifest["inputs"]} == {"seeded"}
    assert all(i["reason"] for i in manifest["inputs"])
    # Nothing but metadata, and it still fails.
    alone = subprocess.run(
        [sys.executable, str(Path(error.value.minifier_path) / "repro.py")],
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=str(Path(__file__).parent) + os.pathsep + PACKAGE),
        timeout=170,
    )
    assert alone.returncode == 1 and "ToyError" in alone.stderr, alone.stderr


def test_graph_is_copied_before_the_backend_rewrites_it(tmp_path):
    def spoils(gm, example_inputs):
        for node in list(gm.graph.nodes):
            if node.op == "call_function" and "relu" in str(node.target):
                node.target = torch.sigmoid
        raise ToyError("after rewriting")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        torch.compile(lambda x: torch.relu(x), backend=cutaway.debug(spoils, base_dir=tmp_path, minify=False))(
            torch.randn(3)
        )
    text = (Path(error.value.minifier_path) / "graph.cut").read_text()
    assert "relu" in text and "sigmoid" not in text


def test_dynamic_sizes(tmp_path):
    f = torch.compile(
        lambda x: torch.relu(x) * x.size(0),
        dynamic=True,
        backend=cutaway.debug(rejects_relu, base_dir=tmp_path, minify=False),
    )
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        f(torch.randn(5, 3))
    path = error.value.minifier_path
    text, manifest = (Path(path) / "graph.cut").read_text(), manifest_of(path)
    symbols = (
        json.loads(manifest["extra"]["symbols"])
        if isinstance(manifest["extra"]["symbols"], str)
        else manifest["extra"]["symbols"]
    )
    rows = next(name for name, size in symbols.items() if size == 5)
    assert f"f32[{rows}, " in text and f"(%relu, {rows})" in text and manifest["tracing_mode"] == "symbolic"
    assert len(manifest["inputs"]) == 1, "sizes are no inputs of their own"
    g = torch.compile(
        lambda x: torch.relu(x) * x.size(0),
        dynamic=True,
        backend=cutaway.debug(rejects_relu, after="aot", base_dir=tmp_path / "aot"),
    )
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        g(torch.randn(7, 3))
    assert manifest_of(error.value.minifier_path)["tracing_mode"] == "symbolic"


def test_dynamic_sizes_reach_the_backend_again(tmp_path, backends):
    """A backend that fails on symbolic sizes alone: the bundle fails in a worker and in repro.py, which have it captured anew."""

    def needs_numbers(gm, example_inputs):
        for node in gm.graph.nodes:
            value = node.meta.get("example_value")
            if (
                node.target is torch.relu
                and value is not None
                and any(isinstance(n, torch.SymInt) for n in value.size())
            ):
                raise ValueError("relu of a size that is no number")
        return gm.forward

    watched = cutaway.debug(needs_numbers, base_dir=tmp_path, minify=False)
    f = torch.compile(lambda x, y: torch.relu((x @ y).view(x.size(0) * 2, -1)), dynamic=True, backend=watched)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        f(torch.randn(5, 4), torch.randn(4, 6))
    path = error.value.minifier_path
    answer = json.loads(_native.run_trial(trial_of(path)))
    assert answer["outcome"] == "failure" and answer["signature"]["type"] == "ValueError", answer
    assert json.loads(_native.run_trial(trial_of(path, tracing_mode="real")))["outcome"] != "failure"
    script = subprocess.run(
        [sys.executable, str(Path(path) / "repro.py")], capture_output=True, text=True, env=environment(), timeout=100
    )
    assert script.returncode == 1 and "no number" in script.stderr, script.stderr


def test_floats_that_torch_passes_as_tensors(tmp_path):
    """With dynamic=True a float of a module is an input and an item() of it: a number again in the bundle."""

    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 1.5

        def forward(self, x):
            return torch.relu(x) * self.factor

    watched = cutaway.debug(rejects_relu, base_dir=tmp_path, minify=False)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        torch.compile(Scale(), dynamic=True, backend=watched)(torch.randn(5, 3))
    text = (Path(error.value.minifier_path) / "graph.cut").read_text()
    assert "item" not in text and "1.5" in text and len(manifest_of(error.value.minifier_path)["inputs"]) == 1


def test_what_cannot_be_written_does_not_hide_the_error(tmp_path):
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x.relu(), lambda x: x.sin(), (x,))

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="everything") as error:

        def rejects(gm, example_inputs):
            raise ToyError("everything")

        torch.compile(f, backend=cutaway.debug(rejects, base_dir=tmp_path, minify=False))(torch.randn(3))
    assert "no repro was written" in notes(error)[-1]


def test_minify_from_python(tmp_path):
    text = "graph g(%x: f32[4]) {\n  %a: f32[4] = aten.sin(%x)\n  %b: f32[4] = aten.relu(%a)\n  return (%b)\n}\n"
    cutaway.save(tmp_path / "b", cutaway.Graph.parse(text), [torch.ones(4)])
    small = cutaway.minify(tmp_path / "b", backend="fault:exception:aten.relu", output=tmp_path / "small")
    assert [n.target for n in small.graph.nodes] == ["aten.relu"] and small.inputs[0].shape == (1,)
    assert small.certificate["one_minimal"] and str(small).startswith("2 -> 1 nodes, 4 -> 1 elements")
    assert "srcdoc=" in small._repr_html_() and "<script" not in small._repr_html_()
    with pytest.raises(cutaway.Error, match="it does not fail: passed 9 of 9 runs"):
        cutaway.minify(tmp_path / "b", backend="fault:exception:aten.cos", output=tmp_path / "none")
    with pytest.raises(cutaway.Error, match="there is no such bundle"):
        cutaway.minify(tmp_path / "nowhere")


# ---- levels ----


def test_levels_say_what_to_do_next(tmp_path):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        torch.compile(Net(), backend=cutaway.debug(rejects_relu, level=1, base_dir=tmp_path))(torch.randn(3, 6))
    assert notes(error)[-1].startswith("cutaway run ")
    for bad in (0, 5, "2", True):
        with pytest.raises(cutaway.Error, match="level"):
            cutaway.debug("inductor", level=bad)
    with pytest.raises(cutaway.Error, match="watched after"):
        cutaway.debug("inductor", after="lowering")


def test_level_3_writes_before_each_step(tmp_path):
    seen = []

    def inputs_written():
        return [[i["kind"] for i in manifest_of(p)["inputs"]] for p in sorted((tmp_path / "checkpoints").iterdir())]

    def looks(gm, example_inputs):
        seen.append(inputs_written())

        def run(*inputs):
            seen.append(inputs_written())
            return gm.forward(*inputs)

        return run

    torch.compile(lambda x: x.sin() + 1, backend=cutaway.debug(looks, level=3, base_dir=tmp_path))(torch.randn(3))
    assert seen[0] == [["seeded"]] and seen[-1] == [["data"]]


def test_segfault_at_level_3_leaves_a_bundle(tmp_path):
    done = run_script(
        tmp_path,
        """
        import ctypes, torch, cutaway

        def crashes(gm, example_inputs):
            def run(*inputs):
                ctypes.string_at(0)
            return run

        watched = cutaway.debug(crashes, level=3, base_dir="out")
        torch.compile(lambda x: torch.relu(x) + 1, backend=watched)(torch.arange(4.0))
    """,
    )
    assert done.returncode == -signal.SIGSEGV, done.stderr
    manifest = manifest_of(tmp_path / "out" / "repro")
    assert [i["kind"] for i in manifest["inputs"]] == ["data"]
    assert manifest["backend"] == "source:crashes"
    assert run_repro(tmp_path / "out" / "repro").returncode == -signal.SIGSEGV


@pytest.mark.parametrize("after", ["capture", "aot"])
def test_level_4_finds_wrong_numbers(tmp_path, after, backends):
    x = torch.randn(3, 6)
    watched = cutaway.debug(adds_to_relu, after=after, level=4, base_dir=tmp_path, minify=False)
    with pytest.raises((cutaway.AccuracyError, torch._dynamo.exc.BackendCompilerFailed)) as error:
        torch.compile(Net(), backend=watched)(x)
    inner = getattr(error.value, "inner_exception", error.value)
    assert isinstance(inner, cutaway.AccuracyError) and inner.verdict.outcome == "wrong"
    manifest = manifest_of(error.value.minifier_path)
    assert manifest["accuracy"] == "accuracy" and manifest["failure"]["kind"] == "accuracy"
    result = json.loads(_native.run_trial(trial_of(error.value.minifier_path, accuracy="accuracy")))
    assert result["outcome"] == "failure" and result["signature"]["kind"] == "accuracy", result


def test_level_4_is_silent_where_nothing_is_wrong(tmp_path):
    for after in ("capture", "aot"):
        torch._dynamo.reset()
        net, x = Net(), torch.randn(3, 6)
        state = torch.get_rng_state()
        f = torch.compile(net, backend=cutaway.debug("aot_eager", after=after, level=4, base_dir=tmp_path))
        assert torch.equal(f(x), net(x))
        f(x).sum().backward()
        assert torch.equal(state, torch.get_rng_state())
    assert not list(tmp_path.rglob("manifest.json"))


def test_check_calls(tmp_path):
    runs = []

    def counts(gm, example_inputs):
        def run(*inputs):
            runs.append(1)
            return gm.forward(*inputs)

        return run

    f = torch.compile(
        lambda x: x.sin(), backend=cutaway.debug(counts, after="aot", level=4, check_calls=1, base_dir=tmp_path)
    )
    with torch.no_grad():
        for _ in range(3):
            f(torch.randn(3))
    assert len(runs) == 4  # one check, three calls


# ---- Inductor ----


def foobar(x, y):
    z = x + y
    a = torch.ops.aten._foobar(z)
    return torch.add(a, z)


@pytest.mark.parametrize("after", ["capture", "aot"])
def test_backend_error_with_foobar(tmp_path, after, backends):
    x, y = torch.randn(20, 20), torch.randn(20, 20)
    for passes in ("eager", "aot_eager"):
        torch._dynamo.reset()
        torch.compile(foobar, backend=cutaway.debug(passes, base_dir=tmp_path / passes))(x, y)
        assert not (tmp_path / passes).exists()
    torch._dynamo.reset()
    with pytest.raises(Exception, match="_foobar") as error:
        torch.compile(foobar, backend=cutaway.debug("inductor", after=after, base_dir=tmp_path, minify=False))(x, y)
    manifest = manifest_of(error.value.minifier_path)
    assert manifest["backend"] == "inductor" and manifest["failure"]["op"] == "aten._foobar"
    assert "test_debug.py" in manifest["failure"]["user_frame"]
    result = json.loads(_native.run_trial(trial_of(error.value.minifier_path, trusted=False)))
    assert result["outcome"] == "failure", result
    assert result["signature"]["message"] == manifest["failure"]["message"]
    if after == "aot":
        done = run_repro(error.value.minifier_path)
        assert done.returncode == 1 and "_foobar" in done.stderr, done.stderr


@pytest.mark.parametrize("after", ["capture", "aot"])
@pytest.mark.parametrize("bug", ["compile_error", "runtime_error", "accuracy"])
def test_injected_bugs_of_inductor(tmp_path, after, bug, backends):
    torch.manual_seed(0)
    options = {"cpp.inject_relu_bug_TESTING_ONLY": bug}
    level = 4 if bug == "accuracy" else 2
    watched = cutaway.debug("inductor", after=after, level=level, options=options, base_dir=tmp_path, minify=False)
    with torch.no_grad(), pytest.raises(Exception) as error:  # noqa: PT011
        torch.compile(lambda x: torch.relu(x).sin(), backend=watched)(torch.randn(64))
    inner = getattr(error.value, "inner_exception", error.value)
    assert isinstance(inner, cutaway.AccuracyError) == (bug == "accuracy")
    manifest = manifest_of(error.value.minifier_path)
    assert manifest["options"] == options
    accuracy = "accuracy" if bug == "accuracy" else "none"
    result = json.loads(_native.run_trial(trial_of(error.value.minifier_path, accuracy=accuracy, trusted=False)))
    assert result["outcome"] == "failure", result
    assert result["signature"]["kind"] == manifest["failure"]["kind"]
    if (bug, after) in (("accuracy", "capture"), ("accuracy", "aot"), ("runtime_error", "capture")):
        done = run_repro(error.value.minifier_path)
        assert done.returncode == 1, done.stderr
        clean = (Path(error.value.minifier_path) / "repro.py").read_text().replace(f'"{bug}"', "None")
        (Path(error.value.minifier_path) / "repro.py").write_text(clean)
        assert run_repro(error.value.minifier_path).returncode == 0


def test_dropout_is_not_called_wrong(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5))
    f = torch.compile(net, backend=cutaway.debug("inductor", after="aot", level=4, base_dir=tmp_path))
    f(torch.randn(4, 8)).sum().backward()
    assert not list(tmp_path.rglob("manifest.json"))


# ---- a backend that the script defines; the environment ----

TOY = """
    import torch
    import cutaway

    MARK = "relu"

    class ReluCompileError(Exception):
        pass

    def is_rejected(node):
        return MARK in str(node.target)

    def toy_compiler(gm, _):
        for node in gm.graph.nodes:
            if is_rejected(node):
                raise ReluCompileError()
        return gm

    def toy(x):
        for _ in range(4):
            x = torch.sin(x)
        x = torch.relu(x)
        return torch.cos(x)

    torch.compile(toy, backend=@)(torch.randn(10))
"""


def test_toy_compiler_of_the_script(tmp_path):
    done = run_script(tmp_path, TOY.replace("@", 'cutaway.debug(toy_compiler, base_dir="out", minify=False)'))
    path = tmp_path / "out" / "checkpoints" / "6"
    assert done.returncode == 1
    assert done.stderr.rstrip().splitlines()[-2:] == [
        f"cutaway: repro written to {path}",
        f"cutaway minify {path} --trust",
    ], done.stderr
    manifest = manifest_of(path)
    assert manifest["backend"] == "source:toy_compiler" and "is_rejected" in manifest["extra"]["backend_source"]
    alone = run_repro(path)
    assert alone.returncode == 1 and "ReluCompileError" in alone.stderr, alone.stderr


def test_toy_compiler_is_reduced_without_a_second_command(tmp_path):
    done = run_script(tmp_path, TOY.replace("@", 'cutaway.debug(toy_compiler, base_dir="out")'))
    path = tmp_path / "out" / "checkpoints" / "6-minimal"
    lines = done.stderr.rstrip().splitlines()
    assert lines[-3:] == [
        "cutaway: reduced, 6 -> 1 nodes",
        f"cutaway: repro written to {path}",
        f"python {path / 'repro.py'}",
    ], done.stderr
    text = (path / "graph.cut").read_text()
    assert "torch.relu" in text and "sin" not in text
    alone = run_repro(path)
    assert alone.returncode == 1 and "ReluCompileError" in alone.stderr, alone.stderr


@pytest.mark.parametrize(
    "names", [("CUTAWAY_REPRO_AFTER", "CUTAWAY_REPRO_LEVEL"), ("TORCHDYNAMO_REPRO_AFTER", "TORCHDYNAMO_REPRO_LEVEL")]
)
def test_environment(tmp_path, names):
    variables = {names[0]: "dynamo", names[1]: "1", "CUTAWAY_DEBUG_DIR": str(tmp_path)}
    done = run_script(tmp_path, TOY.replace("@", "toy_compiler"), **variables)
    assert done.returncode == 1
    found = [p for p in tmp_path.rglob("manifest.json") if p.parent.name == "6"]
    assert len(found) == 1, done.stderr
    assert done.stderr.rstrip().splitlines()[-1] == f"cutaway run {found[0].parent} --trust"
    assert not list(tmp_path.rglob("*launcher*")) and not list(tmp_path.rglob("torch_compile_debug*"))


def test_bad_environment_is_named(tmp_path):
    done = run_script(tmp_path, "import cutaway", CUTAWAY_REPRO_AFTER="later")
    assert done.returncode == 1 and "CUTAWAY_REPRO_AFTER is 'later'" in done.stderr


# ---- save_repro, data, and the worker ----


def test_save_repro(tmp_path, backends):
    net, x = Net(), torch.randn(3, 6)
    path = cutaway.save_repro(
        net, (x,), backend=rejects_relu, path=tmp_path / "b", error=ToyError("relu is not supported")
    )
    manifest = manifest_of(path)
    assert manifest["failure"]["type"] == "ToyError" and manifest["versions"]["torch"] == torch.__version__
    assert [i["tensor"].get("is_parameter", False) for i in manifest["inputs"]] == [True, True, False]
    assert json.loads(_native.run_trial(trial_of(path)))["outcome"] == "failure"
    graph = torch.fx.symbolic_trace(net)
    again = cutaway.save_repro(graph, [x], backend="aot_eager", path=tmp_path / "c")
    assert json.loads(_native.run_trial(trial_of(again, accuracy="accuracy")))["outcome"] == "pass"
    assert run_repro(again).returncode == 0


def test_data_above_the_limit_is_metadata_and_a_seed(tmp_path):
    path = cutaway.save_repro(
        lambda x, y: x + y.sum(),
        (torch.randn(4), torch.randn(1000)),
        backend="eager",
        path=tmp_path / "b",
        max_bytes=100,
    )
    kinds = [(i["kind"], i.get("reason", "")) for i in manifest_of(path)["inputs"]]
    assert kinds[0][0] == "data" and kinds[1][0] == "seeded" and kinds[1][1]


class Worker:
    def __init__(self, *arguments, cache):
        import socket

        mine, theirs = socket.socketpair()
        self.socket = mine
        variables = environment(CUTAWAY_WORKER_FD=str(theirs.fileno()), TORCHINDUCTOR_CACHE_DIR=str(cache))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cutaway.worker", *arguments], env=variables, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self.id = 0

    def ask(self, body: str, timeout_ms=120_000) -> dict:
        self.id += 1
        text = json.dumps({"id": self.id, "timeout_ms": timeout_ms, "max_bytes": 0, "body": body}).encode()
        self.socket.sendall(len(text).to_bytes(8, "little") + text)
        size = int.from_bytes(self._take(8), "little")
        return json.loads(self._take(size))

    def _take(self, n: int) -> bytes:
        out = b""
        while len(out) < n:
            part = self.socket.recv(n - len(out))
            assert part, "the worker is gone"
            out += part
        return out

    def close(self):
        self.socket.close()
        assert self.process.wait(timeout=30) == 0


def test_worker(tmp_path):
    net, x = Net(), torch.randn(3, 6)

    def crash(gm, example_inputs):
        def run(*inputs):
            import ctypes

            ctypes.string_at(0)

        return run

    def hang(gm, example_inputs):
        while True:
            pass

    bundles = {f.__name__: cutaway.save_repro(net, (x,), backend=f, path=tmp_path / f.__name__) for f in (crash, hang)}
    good = cutaway.save_repro(net, (x,), backend="inductor", path=tmp_path / "good")
    worker = Worker("--trust", cache=tmp_path / "cache")
    try:
        first = json.loads(worker.ask(trial_of(good, accuracy="accuracy"))["body"])
        assert first["outcome"] == "pass", first
        assert first["new_kernels"] > 0
        again = json.loads(worker.ask(trial_of(good, accuracy="accuracy"))["body"])
        assert again["outcome"] == "pass" and again["new_kernels"] == 0
        crashed = worker.ask(trial_of(bundles["crash"]))
        assert (crashed["ending"], crashed["signal"]) == ("crash", "SIGSEGV")
        assert worker.ask(trial_of(bundles["hang"]), timeout_ms=3000)["ending"] == "hang"
        assert json.loads(worker.ask("{}")["body"])["outcome"] == "invalid"
    finally:
        worker.close()


def test_worker_without_trust_runs_nothing_of_the_bundle(tmp_path):
    path = cutaway.save_repro(lambda x: x + 1, (torch.randn(3),), backend=rejects_relu, path=tmp_path / "b")
    worker = Worker(cache=tmp_path / "cache")
    try:
        answer = json.loads(
            worker.ask(trial_of(path, trusted=True))["body"]
        )  # what the other side says does not matter
        assert answer["outcome"] == "invalid" and "--trust" in answer["message"]
    finally:
        worker.close()
