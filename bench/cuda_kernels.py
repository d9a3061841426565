"""Where a call's time goes on a card: the kernels of one call of native and of Inductor's reduce-overhead, from torch's profiler, as tables.

    python bench/cuda_kernels.py [--models bert+base,resnet+small] [--sides "native,inductor reduce-overhead,graph"] [--order] [--tries]

A side with " flash" behind it runs without cuDNN's attention. `--order` also lists the first kernels of a call in their order. `--tries` times choices that a plan may make (merged products, layouts of convolutions, kinds of
attention), each in a CUDA graph of its own.
"""

# ruff: noqa: B023
from __future__ import annotations

import argparse
import collections
import json
import os
import re
import statistics
import tempfile
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from native_cuda import model_and_inputs, ready

CALLS = 5
GPU_KINDS = ("kernel", "gpu_memcpy", "gpu_memset")


def trace_of(run: Callable[[], Any]) -> list[dict[str, Any]]:
    """What ran on the card in CALLS calls, in order of time."""
    from torch.profiler import ProfilerActivity, profile

    run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(CALLS):
            run()
            torch.cuda.synchronize()
    path = tempfile.mktemp(suffix=".json")
    found.export_chrome_trace(path)
    with open(path) as f:
        events = json.load(f)["traceEvents"]
    os.unlink(path)
    return sorted((e for e in events if e.get("cat") in GPU_KINDS), key=lambda e: e["ts"])


def short(name: str) -> str:
    name = re.sub(r"^void ", "", name)
    name = re.sub(r"at::native::|cutlass::|\(anonymous namespace\)::|<unnamed>::", "", name)
    return name[:110]


def show(title: str, events: list[dict[str, Any]], order: int) -> None:
    if not events:
        print(f"{title}: nothing ran on the card", flush=True)
        return
    each = len(events) // CALLS
    calls = [events[i * each : (i + 1) * each] for i in range(CALLS)] if len(events) == each * CALLS else [events]
    span = statistics.median(c[-1]["ts"] + c[-1]["dur"] - c[0]["ts"] for c in calls)
    count: dict[str, list[float]] = collections.defaultdict(list)
    for e in events:
        count[e["name"]].append(e["dur"])
    busy = (
        sum(sum(v) for v in count.values()) / len(calls)
        if len(calls) > 1
        else sum(sum(v) for v in count.values()) / CALLS
    )
    print(
        f"== {title}: {len(events) / CALLS:.1f} kernels a call, busy {busy:.1f} us, from first to last {span:.1f} us",
        flush=True,
    )
    for name, durations in sorted(count.items(), key=lambda x: -sum(x[1]))[:40]:
        total = sum(durations) / CALLS
        print(
            f"   {len(durations) / CALLS:6.1f} x {statistics.median(durations):8.2f} = {total:9.1f} us {100 * total / busy:5.1f} %  {short(name)}",
            flush=True,
        )
    if order:
        first = calls[len(calls) // 2][:order]
        for e, after in zip(first, [*first[1:], None], strict=True):
            gap = f"{after['ts'] - e['ts'] - e['dur']:6.2f}" if after else ""
            args = e.get("args", {})
            print(
                f"      {e['dur']:8.2f} us, gap {gap:6s} {str(args.get('grid', '')):18s} {str(args.get('block', '')):14s} {short(e['name'])[:90]}",
                flush=True,
            )


def in_graph(f: Callable[[], Any], seconds: float = 0.05) -> float:
    """Microseconds of one call, recorded and played back; the median."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            f()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f()
    for _ in range(3):
        graph.replay()
    times = []
    for _ in range(30):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def say(name: str, f: Callable[[], Any], of: int = 1) -> None:
    try:
        print(f"   {name:64s} {in_graph(f) / of:8.2f} us", flush=True)
    except Exception as error:
        print(f"   {name:64s} {type(error).__name__}: {str(error)[:160]}", flush=True)


def beside(parts: list[Callable[[], Any]]) -> Callable[[], Any]:
    """The parts on streams of their own, joined at the end: branches of the recorded graph."""
    streams = [torch.cuda.Stream() for _ in parts[1:]]

    def run() -> None:
        here = torch.cuda.current_stream()
        for s, part in zip(streams, parts[1:], strict=True):
            s.wait_stream(here)
            with torch.cuda.stream(s):
                part()
        parts[0]()
        for s in streams:
            here.wait_stream(s)

    return run


def tries() -> None:
    n = 10  # of each in a graph, with other weights, so that caches help as little as in a model
    for title, rows, width, inner, dtype in (("base bf16", 2048, 768, 3072, torch.bfloat16), ("llama base bf16", 2048, 1024, 2752, torch.bfloat16), ("vit base bf16", 1576, 768, 3072, torch.bfloat16), ("small f32", 128, 256, 1024, torch.float32)):  # fmt: skip
        print(f"== products, {title}: {rows} rows, width {width}, inner {inner}", flush=True)
        x, big = (
            torch.randn(rows, width, device="cuda", dtype=dtype),
            torch.randn(rows, inner, device="cuda", dtype=dtype),
        )
        for name, into, out in (("width to width", width, width), ("width to 3 width", width, 3 * width), ("width to inner", width, inner), ("width to 2 inner", width, 2 * inner), ("inner to width", inner, width)):  # fmt: skip
            a = big if into == inner else x
            weights = [torch.randn(out, into, device="cuda", dtype=dtype) for _ in range(n)]
            bias = torch.randn(out, device="cuda", dtype=dtype)
            say(f"mm, {name}", lambda: [torch.mm(a, w.t()) for w in weights], n)
            say(f"addmm, {name}", lambda: [torch.addmm(bias, a, w.t()) for w in weights], n)
            say(f"mm, {name}, weight the other way", lambda: [torch.mm(a, w.view(into, out)) for w in weights], n)
        qkv = [[torch.randn(width, width, device="cuda", dtype=dtype) for _ in range(3)] for _ in range(n)]
        bias = torch.randn(width, device="cuda", dtype=dtype)
        say(
            "three products, one after the other",
            lambda: [torch.addmm(bias, x, w.t()) for three in qkv for w in three],
            n,
        )
        branch = [beside([lambda w=w: torch.addmm(bias, x, w.t()) for w in three]) for three in qkv]
        say("three products beside each other", lambda: [b() for b in branch], n)
        say(
            "three products, weights joined in the graph",
            lambda: [torch.mm(x, torch.cat(three).t()) for three in qkv],
            n,
        )
        out = [torch.empty(3, rows, width, device="cuda", dtype=dtype) for _ in range(n)]
        three_x = x.expand(3, rows, width)
        stacked = [torch.stack(three).transpose(1, 2) for three in qkv]
        say(
            "three products as a batch",
            lambda: [torch.bmm(three_x, w, out=o) for w, o in zip(stacked, out, strict=True)],
            n,
        )
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for title, shape, dtype, causal in (("base bf16", (8, 12, 256, 64), torch.bfloat16, False), ("llama base bf16", (8, 16, 256, 64), torch.bfloat16, True), ("vit bf16", (8, 12, 197, 64), torch.bfloat16, False), ("small f32", (2, 4, 64, 64), torch.float32, False)):  # fmt: skip
        print(f"== attention, {title}", flush=True)
        b, h, s, d = shape
        q, k, v = (torch.randn(b, s, h, d, device="cuda", dtype=dtype).transpose(1, 2) for _ in range(3))
        for kind in (
            SDPBackend.FLASH_ATTENTION,
            SDPBackend.CUDNN_ATTENTION,
            SDPBackend.EFFICIENT_ATTENTION,
            SDPBackend.MATH,
        ):

            def attend(kind: Any = kind) -> None:
                with sdpa_kernel(kind):
                    for _ in range(n):
                        F.scaled_dot_product_attention(q, k, v, is_causal=causal)

            say(str(kind), attend, n)
    for base in (True, False):
        for tf32 in (False, True) if not base else (False,):
            torch.backends.cudnn.allow_tf32 = tf32
            print(
                f"== ResNet, {'base bf16' if base else f'small f32, TF32 in convolutions {tf32}'}: eager in a graph",
                flush=True,
            )
            for layout in (torch.contiguous_format, torch.channels_last):
                for benchmark in (False, True):
                    torch.backends.cudnn.benchmark = benchmark
                    model, inputs = model_and_inputs("resnet", "base" if base else "small", False)
                    model = model.to(memory_format=layout)
                    x = inputs["pixel_values"].to(memory_format=layout)
                    with torch.no_grad():
                        say(f"{layout}, benchmark {benchmark}", lambda: model(x))
                        only = [m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
                        seen: list[Any] = []
                        hooks = [m.register_forward_hook(lambda m, i, o: seen.append((m, i[0].detach().clone(memory_format=torch.preserve_format)))) for m in only]  # fmt: skip
                        model(x)
                        for hook in hooks:
                            hook.remove()
                        say(f"{layout}, benchmark {benchmark}: convolutions alone", lambda: [m(i) for m, i in seen])
                        if layout == torch.contiguous_format:
                            say("its weights made channels-last, one by one", lambda: [m.weight.to(memory_format=torch.channels_last) for m in only])  # fmt: skip
                            say("channels-last inputs, weights as they are", lambda: [F.conv2d(i.to(memory_format=torch.channels_last), m.weight, None, m.stride, m.padding) for m, i in seen])  # fmt: skip
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = True
    print("== copies", flush=True)
    for size in (1 << 10, 3 << 20, 16 << 20):
        a, b = torch.empty(size, dtype=torch.uint8, device="cuda"), torch.empty(size, dtype=torch.uint8, device="cuda")
        say(f"copy of {size} bytes", lambda: [b.copy_(a) for _ in range(n)], n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="bert+base,llama+base,resnet+base,resnet+small,bert+small")
    parser.add_argument("--sides", default="native,inductor reduce-overhead")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--order", type=int, default=0, help="kernels to list in their order")
    parser.add_argument("--tries", action="store_true")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    for word in [w for w in options.models.split(",") if w]:
        name, size = word.split("+")
        for side in options.sides.split(","):
            title = f"{name} {size} {'training' if options.training else 'inference'}, {side}"
            try:
                torch.manual_seed(0)
                torch._dynamo.reset()
                model, inputs = model_and_inputs(name, size, options.training)
                torch.backends.cuda.enable_cudnn_sdp(not side.endswith(" flash"))
                run, cold = ready(side.removesuffix(" flash"), model, inputs, options.training)
                show(f"{title} (first call {cold:.1f} s)", trace_of(run), options.order)
                if side.startswith("native"):
                    from cutaway import _native

                    state = _native.cuda_state()
                    print(f"   { ({k: state[k] for k in ('recorded', 'replayed', 'reasons')}) }", flush=True)
            except Exception as error:
                print(f"== {title}: {type(error).__name__}: {str(error)[:600]}", flush=True)
    if options.tries:
        with torch.no_grad():
            tries()


if __name__ == "__main__":
    main()
