"""`cutaway import` of files that torch itself wrote, and `cutaway export`."""

import io
import os
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import cutaway
import pytest
import torch
import torch._inductor.config
from torch._dynamo.debug_utils import InputWriter  # noqa: F401  (what the scripts below read again)
from torch._dynamo.repro.after_aot import save_graph_repro
from torch._dynamo.repro.after_dynamo import generate_dynamo_fx_repro_string
from torch.fx.experimental.proxy_tensor import make_fx

from tests.support.bundles import write_bundle


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)).tanh()


def script(folder, stage, save_dir, bug="accuracy"):
    """A repro script, written by torch."""
    torch.manual_seed(0)
    model, x = Model(), torch.randn(2, 4)
    with torch._inductor.config.patch({"cpp.inject_relu_bug_TESTING_ONLY": bug, "epilogue_fusion": False}):
        if stage == "aot":
            inputs = [model.linear.weight.detach(), model.linear.bias.detach(), x]
            gm = make_fx(lambda w, b, x: (torch.relu(torch.addmm(b, x, w.permute(1, 0))).tanh(),))(*inputs)
            text = io.StringIO()
            save_graph_repro(text, gm, inputs, "inductor", save_dir=save_dir, command="minify", accuracy=True)
            text = text.getvalue()
        else:
            seen = []
            torch._dynamo.reset()
            torch.compile(model, backend=lambda gm, inputs: seen.append((gm, inputs)) or gm.forward, fullgraph=True)(x)
            gm, inputs = seen[0]
            text = generate_dynamo_fx_repro_string(gm, inputs, "inductor", save_dir=save_dir, check_accuracy=True)
    file = Path(folder) / f"{stage}.py"
    file.write_text(text)
    return file


def test_what_torch_leaves_in_its_debug_folder(ask, tmp_path):
    """fx_graph_runnable.py of TORCH_COMPILE_DEBUG=1: metadata without data."""
    program = "import torch; torch.compile(lambda x: torch.relu(x @ x))(torch.randn(4, 4))"
    caches = {
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
    }  # a cached graph leaves no trace
    environment = {**os.environ, **caches, "TORCH_COMPILE_DEBUG": "1"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, capture_output=True)
    (file,) = tmp_path.glob("torch_compile_debug/*/torchinductor/*/fx_graph_runnable.py")
    answer = ask("import", file, "-o", tmp_path / "bundle", "--trust", "--json")
    assert answer.code == 0, answer.err
    assert (answer.json["stage"], answer.json["nodes_before"], answer.json["seeded"]) == ("aot", 2, 1)
    assert "random data" not in answer.err  # torch's own warning; the report says it
    assert ask("run", tmp_path / "bundle", "--backend", "aot_eager").code == 0


@pytest.mark.parametrize("stage", ["aot", "capture"])
def test_script_of_torch_becomes_a_bundle_that_fails(ask, tmp_path, stage):
    file = script(tmp_path, stage, str(tmp_path / "checkpoints"))
    refused = ask("import", file, "-o", tmp_path / "bundle")
    assert refused.code == 2 and "--trust" in refused.err and not (tmp_path / "bundle").exists()
    answer = ask("import", file, "-o", tmp_path / "bundle", "--trust", "--json")
    assert answer.code == 0, answer.err
    report = answer.json
    assert "--trust" in answer.err  # what runs is said
    assert (report["stage"], report["backend"], report["accuracy"]) == (stage, "inductor", "accuracy")
    assert report["inputs"] == 3 and report["seeded"] == 0
    manifest = cutaway.load(tmp_path / "bundle").manifest
    assert manifest["options"] == {"cpp.inject_relu_bug_TESTING_ONLY": "accuracy", "epilogue_fusion": False}
    again = ask("run", tmp_path / "bundle", "--json")
    assert again.code == 1 and again.json["kind"] == "accuracy", again.out + again.err


def test_data_that_is_gone_is_an_error_and_data_never_written_a_seed(ask, tmp_path):
    file = script(tmp_path, "aot", str(tmp_path / "checkpoints"))
    moved = tmp_path / "elsewhere"
    (tmp_path / "checkpoints").rename(moved)
    gone = ask("import", file, "-o", tmp_path / "gone", "--trust")
    assert gone.code == 2 and "data is missing" in gone.err and "--data" in gone.err
    assert ask("import", file, "-o", tmp_path / "moved", "--trust", "--data", moved, "--json").json["seeded"] == 0
    (tmp_path / "never").mkdir()
    never = script(tmp_path / "never", "aot", None)
    assert ask("import", never, "-o", tmp_path / "b", "--trust", "--json").json["seeded"] == 3


class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.linear.bias.requires_grad_(False)
        self.register_buffer("scale", torch.ones(3))
        self.constant = torch.full((3,), 2.0)

    def forward(self, x, y):
        return self.linear(x) + self.scale * self.constant, y * 2


def test_pt2_keeps_sizes_names_and_gradients(ask, tmp_path):
    """Dynamic sizes, parameters, buffers, constants and requires_grad go there and back; what cannot is named."""
    n = torch.export.Dim("n", min=2, max=64)
    given = (torch.randn(5, 4), torch.randn(5, 3, requires_grad=True))
    program = torch.export.export(Kept(), given, dynamic_shapes=({0: n}, {0: n}))
    torch.export.save(program, tmp_path / "model.pt2")
    assert ask("import", tmp_path / "model.pt2", "-o", tmp_path / "bundle", "--trust").code == 0
    exported = ask("export", tmp_path / "bundle", "-o", tmp_path / "back.pt2")
    assert exported.code == 0, exported.err
    back = torch.export.load(tmp_path / "back.pt2")

    def told(program):
        values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
        specs = program.graph_signature.input_specs
        return [(s.kind, s.target, values[s.arg.name].requires_grad, type(values[s.arg.name].shape[0])) for s in specs]

    assert told(back) == told(program)
    more = (torch.randn(9, 4), torch.randn(9, 3))
    for a, b in zip(back.module()(*more), program.module()(*more), strict=True):
        assert torch.equal(a, b)
    # A size that torch.export would fix to its number.
    text = (tmp_path / "bundle" / "graph.cut").read_text()
    symbol = re.search(r"%x: f32\[(\w+), 4\]", text)[1]
    graph = cutaway.Graph.parse(
        f"graph g(%x: f32[{symbol}, 4]) {{\n  %y: f32[5, 4] = aten.add.Tensor(%x, %x)\n  %z: f32[20] = aten.view(%y, [20])\n  return (%z)\n}}\n"
    )
    fixed = write_bundle(tmp_path / "fixed", graph, [torch.randn(5, 4)])
    refused = ask("export", fixed, "-o", tmp_path / "x.pt2")
    assert refused.code == 2 and symbol in refused.err and not list(tmp_path.glob("x.pt2*")), refused.err


def test_pt2_there_and_back(ask, tmp_path):
    torch.export.save(torch.export.export(Model(), (torch.randn(2, 4),)), tmp_path / "model.pt2")
    refused = ask("import", tmp_path / "model.pt2")
    assert refused.code == 2 and "unpickles" in refused.err
    imported = ask("import", tmp_path / "model.pt2", "-o", tmp_path / "bundle", "--trust", "--json")
    assert imported.code == 0 and imported.json["inputs"] == 3, imported.err
    assert ask("run", tmp_path / "bundle", "--backend", "fault:wrong:aten.tanh", "--accuracy").code == 1
    small = ask("minify", tmp_path / "bundle", "--backend", "fault:crash:aten.relu", "-o", tmp_path / "small", "--json")
    assert small.code == 0 and small.json["nodes_after"] == 1
    exported = ask("export", tmp_path / "bundle", "-o", tmp_path / "back.pt2")
    assert exported.code == 0, exported.err
    bundle = cutaway.load(tmp_path / "bundle")
    users = [v for v, told in zip(bundle.inputs, bundle.graph.inputs, strict=True) if told.kind == "user"]
    got = torch.export.load(tmp_path / "back.pt2").module()(*users)
    want = bundle.graph.run(*bundle.inputs)
    assert torch.equal(got[0] if isinstance(got, tuple) else got, want[0])


GRAPH = "graph g(%x: f32[2, 3]) {\n  %y: f32[2, 3] = aten.relu(%x)\n  return (%y)\n}\n"


def test_script_and_graph(ask, tmp_path):
    bundle = write_bundle(
        tmp_path / "b", cutaway.Graph.parse(GRAPH), [torch.randn(2, 3)], backend="aot_eager", stage="aot"
    )
    answer = ask("export", bundle, "-o", tmp_path / "alone.py", "--json")
    assert answer.code == 0 and answer.json["data"] == str(tmp_path / "alone_data")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # torch alone
    done = subprocess.run([sys.executable, tmp_path / "alone.py"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert ask("export", bundle, "-o", tmp_path / "one.tar").code == 0
    again = ask("import", tmp_path / "one.tar", "-o", tmp_path / "again", "--json")  # executes nothing: no --trust
    assert again.code == 0 and again.json["file_kind"] == "tar" and ask("diff", bundle, tmp_path / "again").code == 0
    assert ask("export", tmp_path / "one.tar", "-o", tmp_path / "g.cut").code == 0
    assert str(cutaway.Graph.parse((tmp_path / "g.cut").read_text())) == str(cutaway.Graph.parse(GRAPH))


class Evil:
    def __reduce__(self):
        return (open, (os.environ["EVIL_FILE"], "w"))


def test_hostile_files_and_wrong_usage(ask, tmp_path, monkeypatch):
    mark = tmp_path / "mark"
    monkeypatch.setenv("EVIL_FILE", str(mark))
    for name in ("evil.pt2", "evil.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("archive/data/weights/model_weights_config.json", "{}")
            archive.writestr("serialized_state_dict.pt", pickle.dumps(Evil()))
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nrun_repro = 1\n")
    mark.unlink(missing_ok=True)
    for name in ("evil.pt2", "evil.zip", "evil.py"):
        refused = ask("import", tmp_path / name)
        assert refused.code == 2 and "--trust" in refused.err and not mark.exists()
    never = ask("import", tmp_path / "evil.py", "-o", tmp_path / "x", "--trust")
    assert never.code == 2 and "never called run_repro" in never.err and "Traceback" not in never.err
    broken = ask("import", tmp_path / "evil.pt2", "-o", tmp_path / "x", "--trust")
    assert broken.code == 2 and "not an exported program" in broken.err and "Traceback" not in broken.err
    (tmp_path / "hang.py").write_text("import time\ntime.sleep(60)  # run_repro\n")
    slow = ask("import", tmp_path / "hang.py", "-o", tmp_path / "x", "--trust", "--timeout", "3")
    assert slow.code == 2 and "no answer in 3" in slow.err
    (tmp_path / "note.txt").write_text("hello")
    assert "neither" in ask("import", tmp_path / "note.txt", "--trust").err
    assert "no such file" in ask("import", tmp_path / "nothing").err
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_text("keep")
    assert "is no bundle" in ask("import", tmp_path / "evil.py", "-o", tmp_path / "taken", "--trust").err
    bundle = write_bundle(tmp_path / "b", cutaway.Graph.parse(GRAPH), [torch.randn(2, 3)], libraries=["evil_module"])
    refused = ask("export", bundle, "-o", tmp_path / "x.pt2")
    assert refused.code == 2 and "evil_module" in refused.err and not (tmp_path / "x.pt2").exists()
    assert ".pt2, .py, .cut, .tar" in ask("export", bundle, "-o", tmp_path / "x.onnx").err
