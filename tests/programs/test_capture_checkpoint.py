"""Models of transformers with gradient checkpointing, trained: one graph, numbers and gradients of eager."""

import cutaway
import pytest
import torch

from tests.support import capture_cases

pytestmark = pytest.mark.skipif(
    not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture, or it is the peer's turn"
)
transformers = pytest.importorskip("transformers")


def small(kind):
    sizes = {"vocab_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32}
    torch.manual_seed(0)
    if kind == "bert":
        return transformers.BertForMaskedLM(transformers.BertConfig(**sizes, intermediate_size=64))
    if kind == "t5":
        config = transformers.T5Config(
            vocab_size=64, d_model=32, d_ff=64, num_layers=2, num_heads=4, d_kv=8, decoder_start_token_id=0
        )
        return transformers.T5ForConditionalGeneration(config)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, intermediate_size=64, num_key_value_heads=2))


def step(model, run, ids):
    torch.manual_seed(1)
    model.zero_grad()
    loss = run(input_ids=ids, labels=ids).loss
    loss.backward()
    return loss.detach(), [None if p.grad is None else p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("kind", ["bert", "llama", "t5"])
def test_gradient_checkpointing(kind, reentrant, backend):
    cutaway.reset()
    model = small(kind)
    model.train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    compiled = cutaway.compile(model, backend=backend, fullgraph=True)
    for size in (7, 9):  # another size compiles again
        ids = torch.randint(0, 64, (2, size), generator=torch.Generator().manual_seed(size))
        expected, gradients = step(model, model, ids)
        loss, got = step(model, compiled, ids)
        assert torch.equal(loss, expected)
        for a, b in zip(gradients, got, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
