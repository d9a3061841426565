"""The backend native beside Inductor and eager on a CPU: steady runs of five models, inference and training, and the first compiled call.

Float32, batch 2, 64 tokens or 64 x 64 pixels, 2 threads. All sides stand ready before anything is timed and run in turns in one process. The first
call is timed in processes of their own with empty caches (`first call` claims; Inductor takes half a minute each). `--only WORD` picks claims:
"inference", "training", "first call", a model's name.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import cutaway
import torch
from side_by_side import Row, compare, finish, options

THREADS = 2


def transformer(kind: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    import transformers as t

    torch.manual_seed(0)
    ids = torch.randint(0, 1000, (2, 64))
    if kind == "bert":
        config = t.BertConfig(
            num_hidden_layers=12, hidden_size=256, num_attention_heads=4, intermediate_size=1024, vocab_size=1000
        )
        return t.BertModel(config), {"input_ids": ids, "attention_mask": torch.ones(2, 64, dtype=torch.long)}
    if kind == "gpt2":
        model = t.GPT2LMHeadModel(t.GPT2Config(n_layer=12, n_embd=256, n_head=4, vocab_size=1000))
        model.config.use_cache = False
        return model, {"input_ids": ids}
    if kind == "llama":
        config = t.LlamaConfig(
            num_hidden_layers=8,
            hidden_size=256,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=688,
            vocab_size=1000,
        )
        model = t.LlamaForCausalLM(config)
        model.config.use_cache = False
        return model, {"input_ids": ids}
    pixels = {"pixel_values": torch.randn(2, 3, 64, 64)}
    if kind == "vit":
        config = t.ViTConfig(
            num_hidden_layers=12,
            hidden_size=192,
            num_attention_heads=3,
            intermediate_size=768,
            image_size=64,
            patch_size=8,
        )
        return t.ViTModel(config), pixels
    config = t.ResNetConfig(depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 128, 256], layer_type="basic", embedding_size=32)
    return t.ResNetModel(config), pixels


MODELS = ["bert", "gpt2", "llama", "vit", "resnet"]


def step(
    model: torch.nn.Module, f: Callable[..., Any], inputs: dict[str, Any], weight: torch.Tensor | None
) -> Callable[[], None]:
    """One call without gradients, or one with a backward pass of a loss that is not symmetric."""

    def infer() -> None:
        with torch.no_grad():
            f(**inputs)

    def train() -> None:
        model.zero_grad()
        out = f(**inputs)[0]
        (out * weight).mean().backward()

    return infer if weight is None else train


def sides(name: str, training: bool) -> dict[str, Callable[[], None]]:
    """Each side has compiled and run."""
    model, inputs = transformer(name)
    model.train(training)
    weight = None
    if training:
        weight = torch.linspace(-1, 1, model(**inputs)[0].shape[-1])
    torch._dynamo.reset()
    cutaway.reset()
    found = {
        "eager": step(model, model, inputs, weight),
        "inductor": step(model, torch.compile(model), inputs, weight),
        "native": step(model, cutaway.compile(model, backend="native:wait"), inputs, weight),
    }
    for run in found.values():
        run()
        run()
    return found


def first_call(side: str, name: str) -> float:
    """Seconds from the model to the end of its first compiled call, in this process, whose caches are empty."""
    torch.set_num_threads(THREADS)
    model, inputs = transformer(name)
    model.eval()
    with torch.no_grad():
        model(**inputs)
        begin = time.perf_counter()
        f = (
            torch.compile(model)
            if side == "inductor"
            else cutaway.compile(model, backend="native:wait" if side == "native" else "native")
        )
        f(**inputs)
        return time.perf_counter() - begin


def in_child(side: str, name: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "CUTAWAY_CACHE_DIR": f"{folder}/cutaway",
        }
        done = subprocess.run(
            [sys.executable, __file__, "--child", side, name],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout.splitlines()[-1])


def main() -> None:
    torch.set_num_threads(THREADS)
    only = options().only
    for kind in ("inference", "training"):
        rows: dict[str, list[Row]] = {"inductor": [], "eager": []}
        for name in MODELS:
            title = f"{kind} {name}"
            if only and not any(only in f"{title} beside {peer}" for peer in rows) and only not in title:
                continue
            ready = sides(name, kind == "training")
            for peer, into in rows.items():
                row = compare(f"{title} beside {peer}", ready["native"], ready[peer], peer_name=peer, at_least=1.0)
                if row is not None:
                    into.append(row)
        for peer, found in rows.items():
            if len(found) > 1:
                mean = math.exp(sum(math.log(r.ratio) for r in found) / len(found))
                print(f"{kind}: {mean:.2f} times as fast as {peer} (geometric mean of {len(found)})")
    for name in MODELS:
        title = f"first call {name}"
        if only and only not in title:
            continue
        ours, at_once, peer = (in_child(side, name) for side in ("native", "at_once", "inductor"))
        print(
            f"{title}: compiled in {ours:.2f} s, first result in {at_once:.2f} s; Inductor {peer:.1f} s: {peer / ours:.0f} times, {peer / at_once:.0f} times"
        )
    finish()


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        print(first_call(sys.argv[2], sys.argv[3]))
    else:
        main()
