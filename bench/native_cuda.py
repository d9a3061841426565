"""The backend native on a CUDA card, beside Inductor (default and reduce-overhead), eager and a plain CUDA graph of eager.

    python bench/native_cuda.py [--seconds N] [--only WORD]

Each claim runs in a process of its own with a time limit, so that one failure does not lose the others. Sides of a claim stand ready before anything is timed,
and run in turns; times are medians, from CUDA events and from the wall clock. `--only` picks claims: "inference", "training", "cold", "kernels", "host", "base", "small", a model.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

MODELS = ["bert", "gpt2", "llama", "vit", "resnet"]
Run = Callable[[], Any]


def model_and_inputs(name: str, size: str, training: bool) -> tuple[Any, dict[str, Any]]:
    import torch
    from cuda_models import build

    model, inputs = build(name, size == "base")
    dtype = torch.bfloat16 if size == "base" else torch.float32
    model = model.cuda().to(dtype).train(training)
    moved = {k: (v.to(dtype) if v.is_floating_point() else v).cuda() for k, v in inputs.items()}
    return model, moved


def step(model: Any, f: Any, inputs: dict[str, Any], training: bool) -> Run:
    import torch

    def infer() -> Any:
        with torch.no_grad():
            return f(**inputs)[0]

    def train() -> Any:
        loss = f(**inputs)[0].float().pow(2).mean()
        loss.backward()
        for p in model.parameters():
            p.grad = None
        return loss

    return train if training else infer


def ready(side: str, model: Any, inputs: dict[str, Any], training: bool) -> tuple[Run, float]:
    """A call that has compiled, and seconds of its first call."""
    import torch

    if side == "eager":
        run = step(model, model, inputs, training)
    elif side == "graph":
        eager = step(model, model, inputs, training)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                eager()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            eager()

        def replay(held: Any = (model, inputs)) -> None:
            graph.replay()

        return replay, 0.0
    elif side.startswith("native"):
        import cutaway

        run = step(model, cutaway.compile(model, backend=side.replace("native", "native:wait", 1)), inputs, training)
    else:
        mode = None if side == "inductor" else side.removeprefix("inductor ")
        run = step(model, torch.compile(model, mode=mode), inputs, training)
    begin = time.perf_counter()
    run()
    torch.cuda.synchronize()
    cold = time.perf_counter() - begin
    for _ in range(8):
        run()
    torch.cuda.synchronize()
    return run, cold


def interleaved(sides: dict[str, Run], seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds a call: `gpu` by events over several calls, `wall` of one call with its end, `host` until the call returns."""
    import torch

    found: dict[str, dict[str, list[float]]] = {name: {"gpu": [], "wall": [], "host": []} for name in sides}
    end = time.perf_counter() + seconds * len(sides)
    rounds = 0
    name = ""
    try:
        while rounds < (5 if seconds else 1) or (time.perf_counter() < end and rounds < 100):
            rounds += 1
            for name, run in sides.items():
                run()
                torch.cuda.synchronize()
                begin, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                for _ in range(5):
                    run()
                stop.record()
                torch.cuda.synchronize()
                found[name]["gpu"].append(begin.elapsed_time(stop) / 5)
                t0 = time.perf_counter()
                run()
                t1 = time.perf_counter()
                torch.cuda.synchronize()
                t2 = time.perf_counter()
                found[name]["wall"].append((t2 - t0) * 1e3)
                found[name]["host"].append((t1 - t0) * 1e3)
    except Exception as error:
        raise RuntimeError(f"while {name} ran: {error}") from error
    return {n: {k: statistics.median(v) for k, v in f.items()} for n, f in found.items()}


def claim_model(kind: str, name: str, size: str, seconds: float) -> dict[str, Any]:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    training = kind == "training"
    sides = ["eager", "native", "native:no_graphs", "inductor reduce-overhead", "inductor"]
    if not training:
        sides.insert(1, "graph")
    runs, cold, errors = {}, {}, {}
    expected = None
    for side in sides:
        torch.manual_seed(0)
        model, inputs = model_and_inputs(name, size, training)
        torch._dynamo.reset()
        try:
            runs[side], cold[side] = ready(side, model, inputs, training)
            if not training and side in ("eager", "native"):
                out = runs[side]().float()
                if expected is None:
                    expected = out.clone()
                else:
                    errors["native beside eager, largest difference"] = f"{(out - expected).abs().max():.3g} of {expected.abs().max():.3g}"  # fmt: skip
        except Exception as error:
            errors[side] = f"{type(error).__name__}: {str(error)[:300]}"
    times = interleaved(runs, seconds)
    result: dict[str, Any] = {"times": times, "cold": cold, "errors": errors}
    if any(s.startswith("native") for s in runs):
        from cutaway import _native

        state = _native.cuda_state()
        result["graphs"] = {k: state[k] for k in ("recorded", "replayed", "reasons")}
    return result


def claim_cold(side: str, name: str, training: bool) -> dict[str, Any]:
    model, inputs = model_and_inputs(name, "base", training)
    step(model, model, inputs, training)()
    _, cold = ready(side, model, inputs, training)
    return {"cold": cold}


def claim_kernels(seconds: float) -> dict[str, Any]:
    """Kernels of about a gigabyte, as shares of what a copy reaches."""
    import cutaway
    import torch
    import torch.nn.functional as F

    def layer_norm(x, w, b):
        return F.layer_norm(x, x.shape[-1:], w, b)

    result: dict[str, Any] = {}
    for dtype in (torch.float32, torch.bfloat16):
        rows = (1 << 28) // 4096 if dtype == torch.float32 else (1 << 29) // 4096
        x = torch.randn(rows // 2, 4096, device="cuda", dtype=dtype)
        w, b = torch.randn(4096, device="cuda", dtype=dtype), torch.randn(4096, device="cuda", dtype=dtype)
        y = torch.empty_like(x)
        bytes_ = x.nbytes
        programs = {
            "gelu": (lambda x, y, w, b: F.gelu(x), 2),
            "gelu backward": (lambda x, y, w, b: torch.ops.aten.gelu_backward(x, x), 2),
            "softmax": (lambda x, y, w, b: torch.softmax(x, -1), 2),
            "layer norm": (lambda x, y, w, b: layer_norm(x, w, b), 2),
            "add + layer norm": (lambda x, y, w, b: layer_norm(x + y, w, b), 3),
            "rms norm": (
                lambda x, y, w, b: x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype) * w,
                2,
            ),
            "sum of columns": (lambda x, y, w, b: x.sum(0), 1),
            "sum of rows": (lambda x, y, w, b: x.sum(1), 1),
            "silu * y": (lambda x, y, w, b: F.silu(x) * y, 3),
        }
        with torch.no_grad():
            for name, (f, passes) in programs.items():
                try:
                    cutaway.reset()
                    torch._dynamo.reset()
                    native = cutaway.compile(f, backend="native:wait:no_graphs")
                    inductor = torch.compile(f)
                    runs = {
                        "copy": partial(y.copy_, x),
                        "eager": partial(f, x, y, w, b),
                        "native": partial(native, x, y, w, b),
                        "inductor": partial(inductor, x, y, w, b),
                    }
                    for run in runs.values():
                        run()
                        run()
                    t = interleaved(runs, seconds)
                    peak = 2 * bytes_ / t["copy"]["gpu"]
                    result[f"{name} {str(dtype)[6:]}"] = {
                        s: f"{passes * bytes_ / v['gpu'] / 1e9:.2f} TB/s {passes * bytes_ / v['gpu'] / peak * 100:.0f} %"
                        if s != "copy"
                        else f"{peak / 1e9:.2f} TB/s"
                        for s, v in t.items()
                    }
                    print(f"    {name} {str(dtype)[6:]}: {result[f'{name} {str(dtype)[6:]}']}", flush=True)
                except Exception as error:
                    result[f"{name} {str(dtype)[6:]}"] = f"{type(error).__name__}: {str(error)[:300]}"
    return result


def child(words: list[str], seconds: float) -> None:
    kind = words[0]
    if kind in ("inference", "training"):
        result = claim_model(kind, words[1], words[2], seconds)
    elif kind == "cold":
        result = claim_cold(words[1], words[2], words[3] == "training")
    else:
        result = claim_kernels(seconds)
    print("RESULT " + json.dumps(result), flush=True)


def caches(folder: str) -> dict[str, str]:
    names = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUTAWAY_CACHE_DIR": "cutaway"}
    return {**os.environ, **{variable: f"{folder}/{name}" for variable, name in names.items()}}


def prepare(claims: list[list[str]], folder: str, limit: float) -> None:
    """Compiles everything side by side, so that the processes that are timed find it in the caches of this folder."""
    begin = time.perf_counter()
    children = [
        subprocess.Popen(
            [sys.executable, __file__, "--seconds", "0", "--child", *words],
            env=caches(folder) | {"TORCHINDUCTOR_COMPILE_THREADS": "2"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in claims
        if words[0] in ("inference", "training")
    ]
    for c in children:
        try:
            c.wait(max(1.0, limit - (time.perf_counter() - begin)))
        except subprocess.TimeoutExpired:
            c.kill()
            c.wait()
    print(f"compiled {len(children)} claims side by side in {time.perf_counter() - begin:.0f} s", flush=True)


def in_child(words: list[str], seconds: float, limit: float, shared: str) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as folder:
        environment = caches(folder if words[0] == "cold" else shared)
        command = [sys.executable, __file__, "--seconds", str(seconds), "--child", *words]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired as error:
            print(f"{' '.join(words)}: no end after {limit:.0f} s\n{(error.stdout or b'')[-2000:]!r}", flush=True)
            return None
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    print(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}", flush=True)
    return None


def geometric(values: list[float]) -> float:
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


def show_model(words: list[str], r: dict[str, Any]) -> dict[str, float]:
    """Prints a model's line; gives native's ratios beside each side."""
    ours = r["times"].get("native")
    print(f"{' '.join(words)}:", flush=True)
    ratios = {}
    for side, t in r["times"].items():
        ratio = t["gpu"] / ours["gpu"] if ours else float("nan")
        ratios[side] = ratio
        print(f"    {side:26s} {t['gpu']:8.3f} ms by events, {t['wall']:8.3f} wall, host {t['host']:7.3f}; native is {ratio:5.2f}x; first call {r['cold'].get(side, 0):.2f} s", flush=True)  # fmt: skip
    for key in ("errors", "graphs"):
        if r.get(key):
            print(f"    {key}: {json.dumps(r[key])[:1500]}", flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing for each side of a claim")
    parser.add_argument("--limit", type=float, default=240, help="seconds for a claim")
    parser.add_argument(
        "--prepare", type=float, default=0, help="seconds to compile all models side by side before any is timed"
    )
    parser.add_argument("--only", default="", help="claims whose words contain this; several joined by ','")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.seconds)
        return
    claims = [["inference", m, s] for s in ("base", "small") for m in MODELS]
    claims += [["training", m, "base"] for m in ("bert", "gpt2")] + [["training", "bert", "small"]]
    claims += [["kernels"]]
    claims += [["cold", side, m, "inference"] for m in ("bert", "llama") for side in ("native", "inductor")]
    wanted = [w for w in options.only.split(",") if w]
    ratios: dict[str, dict[str, list[float]]] = {}
    claims = [c for c in claims if not wanted or any(all(part in c for part in w.split("+")) for w in wanted)]
    shared = tempfile.mkdtemp(prefix="native_cuda")
    if options.prepare:
        prepare(claims, shared, options.prepare)
    for words in claims:
        r = in_child(words, options.seconds, options.limit, shared)
        if r is None:
            continue
        if words[0] in ("inference", "training"):
            for side, ratio in show_model(words, r).items():
                ratios.setdefault(f"{words[0]} {words[2]}", {}).setdefault(side, []).append(ratio)
        elif words[0] == "cold":
            print(f"{' '.join(words)}: first call {r['cold']:.2f} s", flush=True)
        else:
            for name, t in r.items():
                print(f"kernel {name}: {t}", flush=True)
    shutil.rmtree(shared, ignore_errors=True)
    for kind, sides in ratios.items():
        print(f"{kind}, geometric means of native's ratios: " + ", ".join(f"{s} {geometric(v):.2f}x" for s, v in sides.items()), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
