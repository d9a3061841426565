#!/usr/bin/env python3
"""Everything that needs a GPU in one call: builds against this Python's torch, runs the tests of the GPU half, times the backend native beside its peers.

    python3 tools/gpu_check.py FOLDER [--parts build,smoke,tests,look,kernels,tries,graphs,op_db,bench,sanitizer,debugger] [--seconds 540] [--bench WORDS]

A part that fails or hangs does not stop the next one. What each says goes to FOLDER/<part>.txt, and its end to the standard output. `.deps` (tools/test_on_gpu_machine
prepare) has headers and Python packages that such a machine may lack.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PARTS = ["build", "smoke", "tests", "look", "kernels", "tries", "graphs", "op_db", "bench", "sanitizer", "debugger"]

SMOKE = r"""
import time, sys, traceback
import torch, cutaway
from cutaway import _native
import torch.nn.functional as F
print(sys.version.split()[0], torch.__version__, torch.version.cuda, torch.cuda.get_device_name(0))
print(_native.cuda_state())
def part(name, f):
    t = time.perf_counter()
    try:
        said = f()
        print(f"ok   {name}: {said} ({time.perf_counter() - t:.2f} s)", flush=True)
    except Exception:
        print(f"FAIL {name}", flush=True); traceback.print_exc(file=sys.stdout)
def pointwise():
    f = cutaway.compile(lambda x: torch.tanh(x) * 2 + 1, backend="native:wait:no_graphs")
    x = torch.randn(1000, 1000, device="cuda")
    torch.testing.assert_close(f(x), torch.tanh(x) * 2 + 1); return "equal"
def rows():
    f = cutaway.compile(lambda x: torch.softmax(x, -1), backend="native:wait:no_graphs")
    x = torch.randn(100, 1000, device="cuda", dtype=torch.bfloat16)
    torch.testing.assert_close(f(x), torch.softmax(x, -1)); return "equal"
def columns():
    f = cutaway.compile(lambda x: (x * 2).sum(0), backend="native:wait:no_graphs")
    x = torch.randn(3000, 768, device="cuda")
    torch.testing.assert_close(f(x), (x * 2).sum(0), rtol=1e-4, atol=1e-3); return "equal"
def graph():
    w = torch.randn(64, 64, device="cuda")
    g = lambda x: torch.softmax(x @ w, -1) + F.dropout(x, 0.5)
    f = cutaway.compile(g, backend="native:wait")
    x = torch.randn(32, 64, device="cuda")
    with torch.no_grad():
        torch.manual_seed(1); es = [g(x) for _ in range(8)]
        torch.manual_seed(1); gs = [f(x) for _ in range(8)]
    for e, y in zip(es, gs): torch.testing.assert_close(y, e)
    return _native.cuda_state()
def training():
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 64)).cuda()
    f = cutaway.compile(m, backend="native:wait")
    x = torch.randn(32, 64, device="cuda")
    for i in range(8):
        m.zero_grad(); m(x).square().mean().backward(); e = [p.grad.clone() for p in m.parameters()]
        m.zero_grad(); f(x).square().mean().backward()
        for p, q in zip(m.parameters(), e): torch.testing.assert_close(p.grad, q, rtol=1e-3, atol=1e-5)
    return _native.cuda_state()
for p in (pointwise, rows, columns, graph, training): part(p.__name__, p)
"""

# What is left of each model as torch's operators, and why; warnings of the compiler.
LOOK = r"""
import collections, os, pathlib, re, shutil, sys, tempfile
sys.path.insert(0, "bench")
folder = tempfile.mkdtemp(); os.environ["CUTAWAY_DEBUG"] = "4"; os.environ["CUTAWAY_DEBUG_DIR"] = folder
import torch, cutaway
from cutaway import _native
from cuda_models import MODELS, build
for name in MODELS:
    for base in (True, False):
        for training in (False, True):
            shutil.rmtree(folder, ignore_errors=True); os.makedirs(folder); cutaway.reset()
            try:
                model, inputs = build(name, base)
                dtype = torch.bfloat16 if base else torch.float32
                model = model.cuda().to(dtype).train(training)
                inputs = {k: (v.to(dtype) if v.is_floating_point() else v).cuda() for k, v in inputs.items()}
                f = cutaway.compile(model, backend="native:wait")
                for _ in range(5):
                    with torch.set_grad_enabled(training):
                        out = f(**inputs)[0]
                    if training:
                        out.float().sum().backward()
                torch.cuda.synchronize()
            except Exception as error:
                print(f"{name} base={base} training={training}: {type(error).__name__}: {str(error)[:500]}", flush=True)
            print(f"{name} base={base} training={training}: {_native.cuda_state()}", flush=True)
            for path in sorted(pathlib.Path(folder).rglob("ir_post_fusion.cut")):
                counts = collections.Counter(re.findall(r"^  [^\n=]*= (?:call )?([\w.]+)\(", path.read_text(), re.M))
                kernels = sum(n for t, n in counts.items() if t.startswith("native."))
                rest = {t: n for t, n in counts.items() if not t.startswith("native.")}
                print(f"   {path.parent.name}: {kernels} kernels, {rest}", flush=True)
                why = path.with_name("fusion.txt")
                if why.exists():
                    said = collections.Counter(line.split(": ", 1)[1] for line in why.read_text().splitlines() if line.startswith("call") and ": " in line)
                    print(f"      {dict(said.most_common(12))}", flush=True)
            for path in pathlib.Path(folder).rglob("*.jsonl"):
                lines = [line for line in path.read_text().splitlines() if '"warning"' in line]
                print("\n".join("   " + line[:600] for line in lines[:5]), flush=True)
"""


# Every form of kernel once, for compute-sanitizer: rows shared by a part of a warp, a warp and a block, split columns, indices, masks, products, copies of weights.
KERNELS = r"""
import torch, cutaway
import torch.nn.functional as F
def run(f, *args):
    with torch.no_grad():
        got = cutaway.compile(f, backend="native:wait:no_graphs")(*args)
    torch.cuda.synchronize()
    return got
for dtype in (torch.float32, torch.bfloat16):
    for rows, width in ((37, 9), (37, 200), (5, 5000), (300, 768)):
        x, w = torch.randn(rows, width, device="cuda", dtype=dtype), torch.randn(width, device="cuda", dtype=dtype)
        run(lambda x, w: (F.layer_norm(x * 2, x.shape[-1:], w, w), torch.softmax(x, -1), x.sum(0), F.gelu(x), x.amax(-1)), x, w)
    ids, table = torch.randint(0, 50, (6, 7), device="cuda"), torch.randn(50, 64, device="cuda", dtype=dtype)
    run(lambda ids, table: F.embedding(ids, table).float().pow(2).mean(-1), ids, table)
    x = torch.randn(4, 13, 64, device="cuda", dtype=dtype)
    run(lambda x: (torch.cat((-x[..., 32:], x[..., :32]), -1) * x, F.pad(x, (1, 2, 0, 1)), torch.tril(x[0])), x)
    q, k, b = torch.randn(256, 256, device="cuda", dtype=dtype), torch.randn(128, 256, device="cuda", dtype=dtype), torch.randn(128, device="cuda", dtype=dtype)
    y = torch.randn(130, 256, device="cuda", dtype=dtype)
    run(lambda y, q, k, b: (F.linear(y, q).tanh(), F.linear(y, k).tanh(), F.linear(y, k, b)), y, q, k, b)
    m = torch.nn.Sequential(*(torch.nn.Conv2d(a, c, 3, padding=1) for a, c in ((3, 8), (8, 8), (8, 8), (8, 4)))).to("cuda", dtype)
    run(m, torch.randn(2, 3, 12, 12, device="cuda", dtype=dtype))
print("done")
"""


class Check:
    def __init__(self, folder: pathlib.Path, seconds: float) -> None:
        self.folder, self.end = folder, time.monotonic() + seconds
        self.build = ROOT / "build" / "gpu"
        self.environment = dict(os.environ)
        self.environment["PYTHONPATH"] = f"{self.build}/python:{ROOT}/.deps/python"
        self.environment["PATH"] = f"{self.build}/bin:" + self.environment["PATH"]
        self.environment.setdefault("CUTAWAY_CACHE_DIR", str(self.build / "cache"))

    def run(self, name: str, command: list[str], limit: float, tail: int = 60, folder: pathlib.Path = ROOT) -> int:
        """The command's output into the part's file, and its last lines out."""
        limit = min(limit, self.end - time.monotonic())
        path = self.folder / f"{name}.txt"
        if limit < 5:
            print(f"== {name}: no time left", flush=True)
            return -1
        begin = time.monotonic()
        with path.open("a") as out:
            out.write(f"$ {' '.join(command)[:300]}\n")
            out.flush()
            try:
                child = subprocess.Popen(command, cwd=folder, env=self.environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
                status = child.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                status = 124
            except OSError as error:
                out.write(f"{error}\n")
                status = 127
        lines = path.read_text(errors="replace").splitlines()
        print(f"== {name}: exit {status} after {time.monotonic() - begin:.0f} s", flush=True)
        for line in lines[-tail:]:
            print("   " + line[:400], flush=True)
        return status

    def part_build(self) -> None:
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        cmake = shutil.which("cmake") or f"{ROOT}/.deps/python/bin/cmake"
        configure = [cmake, "-S", ".", "-B", str(self.build), *generator, f"-DPython_EXECUTABLE={sys.executable}", "-DCUTAWAY_TESTS=ON"]  # fmt: skip
        if self.run("build", configure, 120, tail=8) == 0:
            targets = ["cutaway_core", "cutaway_torch", "cutaway_command", "_native"]
            self.run("build", [cmake, "--build", str(self.build), "--parallel", "--target", *targets], 420, tail=25)

    def part_smoke(self) -> None:
        self.run("smoke", [sys.executable, "-c", SMOKE], 120, tail=80)

    def part_tests(self) -> None:
        self.run("tests", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "120", "--tb", "short", "tests/unit/test_native_cuda_plans.py", "tests/unit/test_native_cuda.py"], 240, tail=120)  # fmt: skip

    def part_graphs(self) -> None:
        self.run("graphs", [sys.executable, "-m", "tests.random.native_graphs", "--device", "cuda", "--count", "400", "--jobs", "8"], 180, tail=60)  # fmt: skip

    def part_op_db(self) -> None:
        self.run("op_db", [sys.executable, "-m", "tests.operators.op_db", "--native", "--device", "cuda", "--jobs", "12"], 300, tail=60)  # fmt: skip

    def part_bench(self) -> None:
        self.run(
            "bench",
            [
                sys.executable,
                "bench/native_cuda.py",
                "--seconds",
                "0.4",
                "--prepare",
                "150",
                "--limit",
                "120",
                "--only",
                self.bench,
            ],
            600,
            tail=150,
        )

    def part_look(self) -> None:
        self.run("look", [sys.executable, "-c", LOOK], 150, tail=150)

    def part_kernels(self) -> None:
        self.run("kernels", [sys.executable, "bench/cuda_kernels.py", "--order", "60", "--models", self.models, "--sides", self.sides], 260, tail=600)  # fmt: skip

    def part_tries(self) -> None:
        self.run("tries", [sys.executable, "bench/cuda_kernels.py", "--models", "", "--tries"], 120, tail=200)

    def part_sanitizer(self) -> None:
        tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(tool):
            print("== sanitizer: there is no compute-sanitizer here", flush=True)
            return
        for kind in ("memcheck", "racecheck", "initcheck"):
            self.run("sanitizer", [tool, "--tool", kind, "--error-exitcode", "9", sys.executable, "-c", KERNELS], 110, tail=25)  # fmt: skip

    def part_debugger(self) -> None:
        self.run("debugger", ["cutaway", "doctor"], 60, tail=30)

    bench = ""
    sides = "native,inductor reduce-overhead"
    models = "bert+base,llama+base,resnet+base,resnet+small,bert+small"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=570, help="for all of it")
    parser.add_argument("--bench", default="", help="which claims of bench/native_cuda.py")
    parser.add_argument("--models", default=Check.models, help="of the part kernels")
    parser.add_argument("--sides", default=Check.sides, help="of the part kernels")
    options = parser.parse_args()
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    check = Check(folder, options.seconds)
    check.bench = options.bench
    check.models = options.models
    check.sides = options.sides
    for part in options.parts.split(","):
        try:
            getattr(check, f"part_{part}")()
        except Exception as error:
            print(f"== {part}: {type(error).__name__}: {error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
