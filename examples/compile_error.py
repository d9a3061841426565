"""An ordinary inference script whose compiler cannot compile one operator of a BERT."""

import torch
import torch._inductor.config
from transformers import BertConfig, BertModel

# A fault that torch keeps for its own tests: Inductor writes C++ that does not compile for every relu.
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"

torch.manual_seed(0)
config = BertConfig(
    num_hidden_layers=2,
    hidden_size=64,
    num_attention_heads=2,
    intermediate_size=128,
    vocab_size=500,
    hidden_act="relu",
    attn_implementation="eager",
)
model = torch.compile(BertModel(config).eval())
tokens = torch.randint(0, config.vocab_size, (2, 16))
with torch.no_grad():
    print(model(tokens).last_hidden_state.mean())
