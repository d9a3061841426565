"""Planted wrong operators and the node that `cutaway analyze` names: on a backend of ours, and on Inductor with one lowering spoiled.

    python -m tests.flows.debugger.analyze_table [--only TEXT] [--write docs/analyze_cases.md] [--keep FOLDER]

--write writes the table after every answer; rows of cases that are not run now stay as they are.
A case is a graph, after capture or after ahead-of-time autograd, and an operator that is computed wrongly wherever it stands. Right is: the first node of
the graph that runs the operator is named. Operators whose fault the
outputs do not show are none of the cases: a factor before a norm, a branch that `where` never takes, the exponentials of a softmax, numbers so small that the tolerance holds them, values that nobody uses. Every case is put to the trial runner in a process forked from this one, as the command's worker does it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import cutaway
import torch
import torch.nn.functional as F
from cutaway import _backends
from torch.fx.experimental.proxy_tensor import make_fx

from tests.support import model_graphs
from tests.support.bundles import write_bundle
from tests.support.trials import trial


class Mlp(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.norm, self.b = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.norm(F.gelu(self.a(x))))
        return self.b(torch.sigmoid(h) + torch.sin(h)).softmax(-1)


class Conv(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.n, self.b = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.max_pool2d(torch.relu(self.n(self.a(x))), 2)
        return self.b(torch.cos(h).mean((2, 3))).exp()


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        w = (q @ k.transpose(-1, -2) / 4).masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf")).softmax(-1)
        return torch.erf(self.out(w @ v))


class Numbers(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.log1p(x.abs()) + torch.rsqrt(x * x + 1)
        z = torch.atan2(y, x + 3).cumsum(1)
        return torch.where(z > 0, torch.sinh(z / 8), z.expm1()).amax(1) + z.pow(3).sum(1)


MODELS: dict[str, Callable[[], tuple[Any, tuple[torch.Tensor, ...]]]] = {
    "mlp": lambda: (Mlp(), (torch.randn(5, 8),)),
    "conv": lambda: (Conv().eval(), (torch.randn(2, 3, 10, 10),)),
    "attention": lambda: (Attention(), (torch.randn(2, 6, 16),)),
    "numbers": lambda: (Numbers(), (torch.randn(6, 7),)),
}


def captured(name: str) -> tuple[Any, list[Any], str]:
    """What Dynamo gives a backend, with gradients."""
    model, inputs = MODELS[name]()
    met: list[Any] = []
    torch._dynamo.reset()
    torch.compile(model, backend=lambda gm, given: met.append((gm, list(given))) or gm.forward, dynamic=False)(*inputs)
    return *met[0], "capture"


def lowered(name: str) -> tuple[Any, list[Any], str]:
    """The operators that Inductor gets of ahead-of-time autograd, without gradients."""
    from torch._inductor.decomposition import select_decomp_table

    model, inputs = MODELS[name]()
    with torch.no_grad():
        traced = make_fx(
            model, decomposition_table=select_decomp_table(), tracing_mode="fake", _allow_non_fake_inputs=True
        )(*inputs)
    return traced, list(inputs), "aot"


@dataclasses.dataclass(frozen=True)
class Case:
    backend: str  # "fault" or "inductor"
    model: str  # of MODELS or of model_graphs
    stage: str
    op: str  # that is computed wrongly
    node: str = ""  # the operator of the node that is guilty; empty: the planted one

    @property
    def name(self) -> str:
        return "-".join((self.backend, self.model, self.stage, self.op))


def _cases() -> list[Case]:
    rows = [
        Case("fault", "bert_captured", "capture", f"aten.{op}", node)
        for op, node in {
            "layer_norm": "torch.nn.functional.layer_norm",
            "linear": "torch.nn.functional.linear",
            "scaled_dot_product_attention": "torch.nn.functional.scaled_dot_product_attention",
            "gelu": "torch.nn.functional.gelu",
        }.items()
    ]
    joint = {
        "gpt2_joint": "native_layer_norm addmm mm native_layer_norm_backward tanh_backward embedding_dense_backward _scaled_dot_product_flash_attention_for_cpu",
        "resnet_joint": "convolution native_batch_norm relu max_pool2d_with_indices threshold_backward native_batch_norm_backward convolution_backward",
    }
    rows += [Case("fault", model, "aot", f"aten.{op}") for model, ops in joint.items() for op in ops.split()]
    call = {
        "mlp": {
            "erf": "torch.nn.functional.gelu",
            "rsqrt": "torch.nn.functional.layer_norm",
            "tanh": "torch.tanh",
            "sigmoid": "torch.sigmoid",
            "sin": "torch.sin",
            "div": "Tensor.softmax",
            "addmm": "torch.nn.functional.linear",
        },
        "conv": {"convolution": "torch.conv2d", "relu": "torch.relu", "cos": "torch.cos"},
        "attention": {"bmm": "operator.matmul", "erf": "torch.erf"},
        "numbers": {"log1p": "torch.log1p", "atan2": "torch.atan2", "sinh": "torch.sinh"},
    }
    rows += [
        Case("inductor", model, "capture", f"aten.{op}", node)
        for model, ops in call.items()
        for op, node in ops.items()
    ]
    after = {
        "mlp": "erf rsqrt tanh sigmoid sin sum addmm",
        "conv": "convolution relu cos exp",
        "numbers": "log1p rsqrt atan2 cumsum sum amax",
    }
    rows += [Case("inductor", model, "aot", f"aten.{op}") for model, ops in after.items() for op in ops.split()]
    return rows


CASES = {case.name: case for case in _cases()}
# A fixed part for `make test`.
PART = [
    "fault-bert_captured-capture-aten.gelu",
    "fault-resnet_joint-aot-aten.threshold_backward",
    "inductor-numbers-aot-aten.atan2",
]


def spoil_lowering(op: str) -> None:
    """From now on Inductor computes this operator a quarter too large, in this process."""
    from torch._inductor import lowering

    packet = getattr(torch.ops.aten, op.split(".")[1])
    scale = lowering.lowerings[torch.ops.aten.mul.Tensor]

    def wrong(right: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *a, **k: scale(right(*a, **k), 1.25)

    for overload in [packet, *(getattr(packet, name) for name in packet.overloads())]:
        if overload in lowering.lowerings:
            lowering.lowerings[overload] = wrong(lowering.lowerings[overload])


def make_bundle(case: Case, place: pathlib.Path) -> pathlib.Path:
    """The graph of a case, made once for all operators."""
    folder = place / "graphs" / f"{case.model}-{case.stage}"
    if (folder / "manifest.json").exists():
        return folder
    torch.manual_seed(0)
    if case.model in model_graphs.GRAPHS:
        graph, inputs, stage = model_graphs.make(case.model)
        return write_bundle(folder, graph, inputs, stage=stage)
    gm, inputs, stage = (captured if case.stage == "capture" else lowered)(case.model)
    return pathlib.Path(cutaway.save_repro(gm, inputs, "inductor", after=stage, accuracy="accuracy", path=folder))


def guilty(case: Case, path: pathlib.Path) -> str:
    """The name of the first node that runs the planted operator."""
    wanted = case.node or case.op
    graph = cutaway.Graph.parse((path / "graph.cut").read_text())
    return next(
        getattr(n.results[0], "name", n.results[0])
        for n in graph.nodes
        if n.target == wanted or n.target.startswith(wanted + ".")
    )


def in_a_child(work: Callable[[], dict[str, Any]], file: pathlib.Path) -> dict[str, Any]:
    """What `work` returns; it may change its process as it likes."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            file.write_text(json.dumps(work()))
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(0)
    os.waitpid(child, 0)
    return json.loads(file.read_text()) if file.exists() else {"outcome": "died", "seconds": 0.0}


def ask(case: Case, place: pathlib.Path) -> dict[str, Any]:
    """The row of a case; "problem" is empty where the answer is right."""

    def work() -> dict[str, Any]:
        path = make_bundle(case, place)
        began = time.monotonic()
        backend = f"fault:wrong:{case.op}" if case.backend == "fault" else "inductor"
        if case.backend == "inductor":
            spoil_lowering(case.op)
        answer = trial(path, "analyze", budget_s=0, backend=backend)
        analysis = answer["analysis"]
        analysis = json.loads(analysis) if isinstance(analysis, str) else analysis
        row = analysis["nodes"][analysis["first_wrong"]] if analysis["first_wrong"] >= 0 else {}
        found = {"outcome": answer["outcome"], "found": row.get("node", ""), "operator": row.get("op", "")}
        found |= {"guilty": guilty(case, path), "nodes": len(analysis["nodes"]), "kernel": row.get("kernel", "")}
        return found | {"seconds": round(time.monotonic() - began, 1)}

    place.mkdir(parents=True, exist_ok=True)
    return judge(in_a_child(work, place / f"{case.name}.json"))


def judge(row: dict[str, Any]) -> dict[str, Any]:
    is_right = row["outcome"] == "failure" and row["found"] == row["guilty"]
    return row | {"problem": "" if is_right else f"{row['outcome']}, named {row.get('found') or 'nothing'}"}


def read_page(text: str) -> dict[str, dict[str, Any]]:
    """The rows of a table as `page` writes it, of cases that there still are."""
    rows: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] in CASES:
            name, nodes, guilty, named, seconds = cells
            found, _, kernel = named.partition(" in ")
            rows[name] = {"nodes": nodes, "guilty": guilty[1:], "found": found[1:], "kernel": kernel}
            rows[name] |= {"seconds": float(seconds), "problem": named.strip("*") if named.startswith("**") else ""}
    return rows


def page(rows: dict[str, dict[str, Any]]) -> str:
    right = sum(not r["problem"] for r in rows.values())
    inductor = [r for n, r in rows.items() if n.startswith("inductor")]
    lines = "\n".join(
        f"| {n} | {r.get('nodes', '')} | %{r.get('guilty', '')} | "
        + (f"**{r['problem']}**" if r["problem"] else f"%{r['found']}" + (f" in {r['kernel']}" if r["kernel"] else ""))
        + f" | {r['seconds']} |"
        for n, r in rows.items()
    )
    missing = (
        ""
        if len(rows) == len(CASES)
        else f" ({len(CASES) - len(rows)} of the {len(CASES)} cases have not been run for this table.)"
    )
    return f"""# Planted wrong operators and the node that `cutaway analyze` names

Written by `tests/flows/debugger/analyze_table.py`, which `make test-debugger` runs. One operator is computed wrongly wherever it stands: a backend of ours does so
(`fault`), or Inductor with one lowering spoiled. The answer is right when the first node that runs it is named: {right} of {len(rows)}, of these
{sum(not r["problem"] for r in inductor)} of {len(inductor)} on Inductor. `capture`: a node is a call as Python wrote it, gradients included; `aot`: a node is an operator. Seconds are those of a busy machine.{missing}

| case (backend, graph, stage, operator) | nodes | guilty | named | seconds |
|---|---|---|---|---|
{lines}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--keep", type=pathlib.Path, help="bundles and answers stay in this folder, and are not asked for again"
    )
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    load()
    earlier = read_page(options.write.read_text()) if options.write and options.write.exists() else {}
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        place = options.keep or pathlib.Path(scratch)
        for name, case in CASES.items():
            if options.only in name:
                known = place / f"{name}.json"
                row = rows[name] = judge(json.loads(known.read_text())) if known.exists() else ask(case, place)
                print(
                    f"{'WRONG' if row['problem'] else 'ok   '} {row['seconds']:6.1f} s  {name}  {row['problem']}",
                    flush=True,
                )
                if options.write:
                    known_now = earlier | rows
                    options.write.write_text(page({n: known_now[n] for n in CASES if n in known_now}))
    wrong = sum(bool(r["problem"]) for r in rows.values())
    print(f"{len(rows)} cases, {len(rows) - wrong} right")
    return 1 if wrong or not rows else 0


def load() -> None:
    """What every child would load by itself. One thread: a child hangs behind a parallel region of its parent."""
    torch.set_num_threads(1)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    _backends.register_all()
    from torch._inductor import compile_fx, config  # noqa: F401
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    config.compile_threads = 1
    pick_vec_isa()


if __name__ == "__main__":
    sys.exit(main())
