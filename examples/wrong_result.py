"""An ordinary training step of a small ViT whose compiled model computes other numbers than eager."""

import torch
import torch._inductor.config
from transformers import ViTConfig, ViTForImageClassification

# A fault that torch keeps for its own tests: Inductor's relu adds one.
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"

torch.manual_seed(0)
config = ViTConfig(
    num_hidden_layers=2,
    hidden_size=64,
    num_attention_heads=2,
    intermediate_size=128,
    image_size=32,
    patch_size=8,
    num_labels=10,
    hidden_act="relu",
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    attn_implementation="eager",
)
model = ViTForImageClassification(config)
step = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images, labels = torch.randn(2, 3, 32, 32), torch.tensor([3, 7])
loss = step(images, labels=labels).loss
loss.backward()
optimizer.step()
print("loss", loss.item())
