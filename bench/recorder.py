"""What the recorder above autograd costs for each operator, without the Python program around it.

Models of twelve layers are captured once; their graphs are then replayed on fake tensors from C++, with the recorder and without it. The
time without it is the peer: running the operators with torch's autograd, on tensors without data, is what a recording cannot do without
but by not running them. `trace.py` compares recording a Python program, lines of the user included, with make_fx.

The claim is 3 us an operator, of processor time (the fastest of several runs), so that other programs on the machine count little.
Printed as well: the recorder below autograd, and joint graph with its split, for each operator that they see.
"""

import sys
import time

import torch
import transformers
from cutaway import Program, trace
from cutaway._graph import all_inputs
from cutaway._native import AotGraph, _record
from side_by_side import compare, finish, options

LAYERS = 12
GOAL_S = 3e-6


def models():
    torch.manual_seed(0)
    ids = torch.randint(0, 120, (2, 12))
    small = dict(num_hidden_layers=LAYERS, hidden_size=32, num_attention_heads=4, intermediate_size=64, vocab_size=120)
    yield "BERT", transformers.BertForMaskedLM(transformers.BertConfig(**small)), {"input_ids": ids, "labels": ids}
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=2, **small))
    yield "Llama", llama, {"input_ids": ids, "labels": ids, "use_cache": False}
    gpt2 = transformers.GPT2Config(n_layer=LAYERS, n_embd=32, n_head=4, vocab_size=120, n_positions=64)
    yield "GPT-2", transformers.GPT2LMHeadModel(gpt2), {"input_ids": ids, "labels": ids, "use_cache": False}


def recording(program, fakes, where):
    names = [(f"arg{i}", "user", "") for i in range(len(fakes))]
    return lambda: _record(lambda: list(program.run(list(fakes))), fakes, names, where, True, "model", None)


def processor_s(run, repeat=25):
    run()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def measure(name, model, kwargs):
    graph = trace.record(model.train(), (), kwargs)
    given = all_inputs(graph, list(kwargs.values())[:2])
    fakes = trace.make_fakes(given)
    program = Program(graph)

    def replay():
        with trace.FakeMode():
            program.run(list(fakes))

    above, below = recording(program, fakes, "above"), recording(program, fakes, "below")
    best = processor_s(above) / len(graph)
    compare(
        f"record {name}, {LAYERS} layers, {len(graph)} operators",
        above,
        replay,
        peer_name="the same without recording",
        note=f"{best * 1e6:.2f} us of processor time an operator (at most 3 us: {'met' if best <= GOAL_S else 'MISSED'})",
    )
    joint = AotGraph(graph).find(given).joint
    both = processor_s(lambda: AotGraph(graph).find(given), 9)
    count = len(below()[0])
    print(f"  below autograd: {processor_s(below) / count * 1e6:.2f} us for each of {count}")
    print(f"  joint graph and split: {both / len(joint) * 1e6:.2f} us for each of {len(joint)}")
    return best <= GOAL_S


def main():
    torch.set_num_threads(1)
    met = [measure(name, model, kwargs) for name, model, kwargs in models()]
    finish()
    return 1 if options().check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
