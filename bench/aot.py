"""Ahead-of-time autograd beside torch's: joint graph and split, a training step, the overhead of a call, memory.

The peer gets the same fx graphs, which Dynamo made; its capture is not timed. Both sides start from that graph: ours from `Graph.from_fx`
of it. The step runs under torch.compile on both sides, so that Dynamo's guards cost both the same.
"""

import sys
from pathlib import Path

import torch
import torch._functorch.config as functorch_config
from functorch.compile import min_cut_rematerialization_partition
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cutaway._aot import _captured, aot_eager
from cutaway._graph import all_inputs
from cutaway._native import AotGraph
from side_by_side import compare, finish, options

from tests.support.aot_models import MODELS

functorch_config.enable_autograd_cache = False
NAMES = ["bert", "gpt2", "llama", "t5", "vit", "resnet", "unet"]


def from_dynamo(model, kwargs):
    """The fx graph that Dynamo hands to a backend, and its inputs; the largest one where the model breaks the graph."""
    seen = []

    def keep(module, inputs):
        seen.append((module, list(inputs)))
        return module.forward

    torch._dynamo.reset()
    torch.compile(model, backend=keep)(**kwargs)
    return max(seen, key=lambda graph: len(graph[0].graph.nodes))


def nothing(module, inputs):
    return make_boxed_func(module.forward)


def their_bytes(module, inputs):
    """Bytes that torch's default split saves: what backward takes that is neither an input of forward nor a tangent."""
    found = []

    def backward(graph, _):
        total = 0
        for node in graph.graph.nodes:
            if node.op == "placeholder" and not node.name.startswith(("primals", "tangents")):
                value = node.meta["val"]
                total += value.numel() * value.element_size()
        found.append(total)
        return make_boxed_func(graph.forward)

    compiled = aot_module_simplified(
        module, inputs, nothing, bw_compiler=backward, partition_fn=min_cut_rematerialization_partition
    )
    out = compiled(*inputs)
    next(o for o in out if o.requires_grad).sum().backward()
    return found[0]


def peak_bytes(step):
    """Most bytes of tensors alive at once during a step, above those alive before it."""
    step()
    with torch.profiler.profile(profile_memory=True) as profile:
        step()
    alive = most = 0
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    for e in sorted(events, key=lambda e: e.start_ns()):
        alive += e.nbytes()
        most = max(most, alive)
    return most


def main():
    torch.manual_seed(0)
    memory = []
    for name in NAMES:
        if options().only not in f"{name}: joint graph + split":
            continue
        model, kwargs = MODELS[name]()
        model.train()
        module, inputs = from_dynamo(model, kwargs)
        graph = _captured(module, inputs)
        given = all_inputs(graph, inputs)
        compare(
            f"{name}: joint graph + split",
            lambda graph=graph, given=given: AotGraph(graph).find(given),
            lambda module=module, inputs=inputs: aot_module_simplified(
                module, inputs, nothing, bw_compiler=nothing, partition_fn=min_cut_rematerialization_partition
            ),
            peer_name="aot_module_simplified",
            at_least=20,
        )
        mine = AotGraph(graph).find(given)
        memory.append((name, mine.saved_bytes, their_bytes(module, inputs)))

    peaks = []
    for name in ("gpt2", "resnet", "unet"):
        model, kwargs = MODELS[name]()
        model.train()
        steps = {}
        for side, backend in (("ours", aot_eager), ("peer", "aot_eager")):
            torch._dynamo.reset()
            compiled = torch.compile(model, backend=backend)

            def step(compiled=compiled, model=model, kwargs=kwargs):
                model.zero_grad()
                out = compiled(**kwargs)
                (out[0] if isinstance(out, tuple) else out.loss).backward()

            step()
            steps[side] = step
        compare(f"{name}: training step", steps["ours"], steps["peer"], peer_name="torch's aot_eager", at_least=1)
        peaks.append((name, peak_bytes(steps["ours"]), peak_bytes(steps["peer"])))

    x, w = torch.randn(4), torch.randn(4, requires_grad=True)
    module, inputs = from_dynamo(lambda x, w: x * w, {"x": x, "w": w})
    graph = _captured(module, inputs)
    ours = AotGraph(graph)
    peer = aot_module_simplified(module, inputs, nothing, bw_compiler=nothing)
    ours(*inputs), peer(*inputs)
    compare(
        "call of one operator, forward",
        lambda: ours(*inputs),
        lambda: peer(*inputs),
        peer_name="aot_module_simplified's",
        at_least=5,
    )
    compare(
        "call of one operator, forward and backward",
        lambda: ours(*inputs)[0].sum().backward(),
        lambda: peer(*inputs)[0].sum().backward(),
        peer_name="aot_module_simplified's",
    )

    print("\nbytes saved for backward (what lives only for it)")
    for name, mine, theirs in memory:
        print(f"  {name:8} ours {mine:10,}   torch's min-cut {theirs:10,}   {mine / max(theirs, 1):.2f}")
    print("most bytes alive in a training step")
    for name, mine, theirs in peaks:
        print(f"  {name:8} ours {mine:10,}   torch's aot_eager {theirs:10,}   {mine / max(theirs, 1):.2f}")
    finish()


if __name__ == "__main__":
    main()
