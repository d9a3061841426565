"""Torch's injected Inductor bugs: from a failing bundle to a verified minimal one, ours and torch's minifier.

    python bench/minify_inductor.py [CASE…] [--peer] [--json FILE]

Each case is the same model with the same injected bug for both. Without --peer only ours runs; torch's minifier takes
three to five minutes a case. Both times run from the command that reduces to its end; ours includes the re-runs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODELS = """
import os, sys, torch
import torch._inductor.config as inductor, torch._dynamo.config as dynamo
inductor.cpp.inject_relu_bug_TESTING_ONLY = sys.argv[2]
dynamo.debug_dir_root = os.path.abspath("torch_debug")

class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(32, 32) for _ in range(40)])
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.tanh(layer(x)) * 1.01 + torch.sin(x)
            if i == 23:
                x = torch.relu(x)
        return x

torch.manual_seed(0)
if sys.argv[1] == "resnet":
    import transformers
    config = transformers.ResNetConfig(
        depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 128, 256], layer_type="basic", embedding_size=32)
    model, x = transformers.ResNetModel(config).eval(), torch.randn(2, 3, 64, 64)
else:
    model, x = Layers().eval(), torch.randn(4, 32)
"""
RUN = """
with torch.no_grad():
    try:
        torch.compile(model, **settings)(x)
    except Exception as e:
        print(type(e).__name__, str(e)[-300:])
"""
# case: model, bug, stage, level of torch's settings
CASES = {
    "aot_compile_error": ("resnet", "compile_error", "aot", 2),
    "aot_accuracy": ("layers", "accuracy", "aot", 4),
    "aot_runtime_error": ("layers", "runtime_error", "aot", 2),
    "capture_compile_error": ("layers", "compile_error", "capture", 2),
}


def ours(folder, model, bug, stage, level):
    settings = f"'inductor', after='{stage}', level={level}, base_dir='.', minify=False"
    watch = f"import cutaway\nsettings = {{'backend': cutaway.debug({settings})}}\n"
    (folder / "ours.py").write_text(MODELS + watch + RUN)
    made = subprocess.run([sys.executable, "ours.py", model, bug], cwd=folder, capture_output=True, text=True)
    bundles = sorted(folder.rglob("manifest.json"))
    if not bundles:
        raise SystemExit(made.stdout + made.stderr)
    command = (
        os.environ.get("CUTAWAY_COMMAND") or shutil.which("cutaway") or str(Path(sys.executable).with_name("cutaway"))
    )
    begin = time.monotonic()
    done = subprocess.run(
        [command, "minify", str(bundles[0].parent), "-o", str(folder / "out"), "--json"], capture_output=True, text=True
    )
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        raise SystemExit(done.stderr + done.stdout)
    report = json.loads(done.stdout)
    keys = ("candidates", "new_kernels", "nodes_before", "nodes_after", "elements_after", "one_minimal", "graph")
    return {"seconds": seconds, **{key: report[key] for key in keys}}


def peer(folder, model, bug, stage, level):
    (folder / "peer.py").write_text(MODELS + "settings = {}\n" + RUN)
    after = "dynamo" if stage == "capture" else "aot"
    environment = {**os.environ, "TORCHDYNAMO_REPRO_AFTER": after, "TORCHDYNAMO_REPRO_LEVEL": str(level)}
    begin = time.monotonic()
    subprocess.run([sys.executable, "peer.py", model, bug], cwd=folder, env=environment, capture_output=True)
    launchers = sorted(folder.rglob("minifier_launcher.py"))
    if launchers:
        begin = time.monotonic()
        subprocess.run([sys.executable, str(launchers[0])], cwd=folder, capture_output=True)
    return {"seconds": time.monotonic() - begin}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--peer", action="store_true", help="torch's minifier as well")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    print(
        f"{'case':24} {'seconds':>8} {'candidates':>11} {'new kernels':>12} {'nodes':>11} {'torch, seconds':>15} {'ratio':>6}"
    )
    for name in options.cases or CASES:
        with tempfile.TemporaryDirectory() as folder:
            row = {"case": name, "ours": ours(Path(folder), *CASES[name])}
        if options.peer:
            with tempfile.TemporaryDirectory() as folder:
                row["peer"] = peer(Path(folder), *CASES[name])
        rows.append(row)
        us = row["ours"]
        nodes = f"{us['nodes_before']} -> {us['nodes_after']}"
        theirs = f"{row['peer']['seconds']:.0f}" if options.peer else "not run"
        ratio = f"{us['seconds'] / row['peer']['seconds']:.3f}" if options.peer else ""
        print(
            f"{name:24} {us['seconds']:8.1f} {us['candidates']:11} {us['new_kernels']:12} {nodes:>11} {theirs:>15} {ratio:>6}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
