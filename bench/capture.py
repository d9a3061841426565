"""Capture and calls of compiled functions: cutaway.compile against torch.compile (Dynamo), in one run, taken in turns.

Capture: the first call of a model after a reset, with a backend that runs nothing and gives the right outputs, so that
what is measured is capture itself. Call overhead: later calls with the same backend, so guards, inputs and outputs are
all that there is. `a + b` on 4 floats: whole calls, less the eager call. Recompile: the call with another batch size.
"""

import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("CUTAWAY_LOGS", "error")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import cutaway  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import transformers  # noqa: E402
from side_by_side import compare, finish, options  # noqa: E402


def models():
    """Full depth, narrow: what is measured depends on the number of layers, not on their width."""
    words = torch.randint(0, 200, (2, 16))
    small = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 200}
    t = transformers
    yield "BERT, 12 layers", t.BertForMaskedLM(t.BertConfig(num_hidden_layers=12, **small)), {"input_ids": words}
    gpt2 = t.GPT2Config(n_layer=12, n_embd=64, n_head=4, vocab_size=200, n_positions=64)
    yield "GPT-2, 12 layers", t.GPT2LMHeadModel(gpt2), {"input_ids": words, "use_cache": False}
    llama = t.LlamaConfig(num_hidden_layers=8, num_key_value_heads=2, **small)
    yield "Llama, 8 layers", t.LlamaForCausalLM(llama), {"input_ids": words, "use_cache": False}
    small.pop("vocab_size")
    vit = t.ViTConfig(num_hidden_layers=12, image_size=32, patch_size=8, **small)
    yield "ViT, 12 layers", t.ViTModel(vit), {"pixel_values": torch.randn(2, 3, 32, 32)}
    resnet = t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 32, 64], depths=[2, 2, 2, 2], layer_type="basic")
    yield "ResNet-18-like", t.ResNetForImageClassification(resnet), {"pixel_values": torch.randn(2, 3, 32, 32)}
    t5 = t.T5Config(num_layers=2, d_model=64, num_heads=4, d_ff=128, d_kv=16, vocab_size=200)
    yield "T5, 2 layers", t.T5Model(t5), {"input_ids": words, "decoder_input_ids": words, "use_cache": False}
    whisper = t.WhisperConfig(
        vocab_size=200, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=16, max_source_positions=32, max_target_positions=32,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    inputs = {"input_features": torch.randn(2, 16, 64), "decoder_input_ids": words, "use_cache": False}
    yield "Whisper, 2 layers", t.WhisperModel(whisper), inputs


def nothing(module, examples):
    """A backend that gives the outputs of the first run."""
    outputs = module(*examples)
    return lambda *args: outputs


def reset():
    cutaway.reset()
    torch._dynamo.reset()


def medians_in_turns(sides, samples, calls):
    times = [[] for _ in sides]
    for _ in range(samples):
        for side, found in zip(sides, times, strict=True):
            start = time.perf_counter()
            for _ in range(calls):
                side()
            found.append((time.perf_counter() - start) / calls)
    return [statistics.median(found) for found in times]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    only = options().only
    a, b = torch.ones(4), torch.ones(4)

    def add(x, y):
        return x + y

    ours, peer = cutaway.compile(add, backend="eager"), torch.compile(add, backend="eager")
    if not only or only in "a + b":
        eager_s, ours_s, peer_s = medians_in_turns(
            (lambda: add(a, b), lambda: ours(a, b), lambda: peer(a, b)), 15, 5000
        )
        over, peer_over = ours_s - eager_s, peer_s - eager_s
        print(
            f"a + b: {peer_over / over:.3g}x  over eager: ours {over * 1e6:.2f} us, Dynamo {peer_over * 1e6:.2f} us  (at least 5x)"
        )

    for name, model, inputs in models():
        model.eval()
        compiled = cutaway.compile(model, backend=nothing)
        torch_compiled = torch.compile(model, backend=nothing)
        try:
            cutaway.explain(model)(**inputs)
        except Exception as error:  # a model that does not capture is told, and the others go on
            print(f"{name}: {type(error).__name__}: {error}")
            continue
        run, peer_run = (lambda c=compiled, i=inputs: c(**i)), (lambda c=torch_compiled, i=inputs: c(**i))
        compare(f"capture of {name}", run, peer_run, peer_name="Dynamo", before=reset, repeat=3, at_least=10)
        reset()
        run()
        peer_run()
        compare(f"call overhead of {name}", run, peer_run, peer_name="Dynamo", repeat=9, at_least=5)

    def sized(x):
        return torch.relu(x @ x.t()).sum(0) * x.shape[0]

    sized_ours, sized_peer = cutaway.compile(sized, backend=nothing), torch.compile(sized, backend=nothing)

    def first():
        reset()
        sized_ours(torch.ones(4, 8))
        sized_peer(torch.ones(4, 8))

    other = torch.ones(6, 8)
    compare(
        "recompile after a changed batch size",
        lambda: sized_ours(other),
        lambda: sized_peer(other),
        peer_name="Dynamo",
        before=first,
        repeat=5,
        at_least=10,
    )
    finish()


if __name__ == "__main__":
    main()
