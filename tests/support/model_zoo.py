"""Ten small models with random weights, one for each kind of network that the tracer and the compiler must know.

Each function gives (module, keyword arguments). The transformers ones are real architectures with tiny configurations.
Run as a program, it writes their graphs for the tests in C++, which have no Python: tests/golden/models/*.cut.
"""

import pathlib

import torch
import transformers
from torch import nn
from torch.nn import functional as F

TEXT = (2, 16)


def ids(vocabulary=200):
    return torch.randint(0, vocabulary, TEXT)


def bert():
    config = transformers.BertConfig(
        num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=128, vocab_size=200
    )
    return transformers.BertModel(config), {"input_ids": ids()}


def gpt2():
    config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=200, n_positions=64)
    return transformers.GPT2LMHeadModel(config), {"input_ids": ids(), "use_cache": False}


def llama():
    config = transformers.LlamaConfig(
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=128,
        vocab_size=200,
    )
    return transformers.LlamaForCausalLM(config), {"input_ids": ids(), "use_cache": False}


def t5():
    config = transformers.T5Config(num_layers=2, d_model=64, num_heads=4, d_ff=128, d_kv=16, vocab_size=200)
    words = ids()
    return transformers.T5Model(config), {"input_ids": words, "decoder_input_ids": words, "use_cache": False}


def vit():
    config = transformers.ViTConfig(
        num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=128, image_size=32, patch_size=8
    )
    return transformers.ViTModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def resnet():
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=5)
    return transformers.ResNetForImageClassification(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=200,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        num_mel_bins=16,
        max_source_positions=32,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return transformers.WhisperModel(config), {
        "input_features": torch.randn(2, 16, 64),
        "decoder_input_ids": ids(),
        "use_cache": False,
    }


def mixtral():
    # The default implementation of the experts asks the data which of them were chosen; this one gathers their weights.
    config = transformers.MixtralConfig(
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=96,
        num_local_experts=4,
        vocab_size=200,
        experts_implementation="batched_mm",
    )
    return transformers.MixtralForCausalLM(config), {"input_ids": ids(), "use_cache": False}


class ResidualBlock(nn.Module):
    def __init__(self, channels_in, channels_out, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, channels_in), nn.GroupNorm(4, channels_out)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, padding=1)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1)
        self.time = nn.Linear(time, channels_out)
        self.skip = nn.Conv2d(channels_in, channels_out, 1) if channels_in != channels_out else nn.Identity()
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(self.dropout(F.silu(self.norm2(h))))


class UNet(nn.Module):
    """As in diffusion: residual blocks with a time embedding, attention at the bottom, skip connections, upsampling."""

    def __init__(self, width=16, time=32):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.width = width
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([ResidualBlock(width, width, time), ResidualBlock(width, 2 * width, time)])
        self.smaller = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.qkv, self.out = nn.Linear(2 * width, 6 * width), nn.Linear(2 * width, 2 * width)
        self.middle = ResidualBlock(2 * width, 2 * width, time)
        self.larger = nn.ConvTranspose2d(2 * width, 2 * width, 4, stride=2, padding=1)
        self.up = nn.ModuleList([ResidualBlock(4 * width, width, time), ResidualBlock(2 * width, width, time)])
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        half = self.width // 2
        frequencies = torch.exp(-torch.arange(half, dtype=torch.float32) * (9.2 / half))
        angles = t[:, None].float() * frequencies[None]
        t = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        skip1 = self.down[0](self.first(x), t)
        skip2 = self.down[1](F.max_pool2d(self.smaller(skip1), 2), t)
        b, c, h, w = skip2.shape
        flat = skip2.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(flat).view(b, h * w, 3, 4, c // 4).permute(2, 0, 3, 1, 4).unbind(0)
        attended = self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, h * w, c))
        m = self.middle(skip2 + attended.transpose(1, 2).reshape(b, c, h, w), t)
        m = self.up[0](self.larger(torch.cat([m, skip2], dim=1)[:, : 2 * self.width]).repeat(1, 2, 1, 1), t)
        m = F.interpolate(m, scale_factor=2.0, mode="nearest")
        return self.last(self.up[1](torch.cat([m, skip1], dim=1), t))


def unet():
    return UNet(), {"x": torch.randn(2, 3, 32, 32), "t": torch.randint(0, 1000, (2,))}


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(200, 32)
        self.lstm = nn.LSTM(32, 48, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
        self.head = nn.Linear(96, 9)

    def forward(self, words):
        return F.log_softmax(self.head(self.lstm(self.embed(words))[0]), dim=-1)


def lstm():
    return Tagger(), {"words": ids()}


MODELS = {f.__name__: f for f in (bert, gpt2, llama, t5, vit, resnet, whisper, mixtral, unet, lstm)}


def build(name, train=False, seed=0):
    torch.manual_seed(seed)
    model, kwargs = MODELS[name]()
    model.train(train)
    if (
        name == "whisper"
    ):  # whether it drops a layer is a question about a random number: the two stacks stay in eval mode
        model.encoder.training = model.decoder.training = False
    return model, kwargs


def tensors(kwargs):
    return [v for v in kwargs.values() if isinstance(v, torch.Tensor)]


def loss_of(output):
    """A number that depends on every floating-point output."""
    leaves = torch.utils._pytree.tree_leaves(output)
    return sum(t.float().pow(2).mean() for t in leaves if isinstance(t, torch.Tensor) and t.is_floating_point())


def write_graphs():
    from cutaway import trace

    folder = pathlib.Path(__file__).parents[1] / "golden" / "models"
    folder.mkdir(exist_ok=True)
    for name in MODELS:
        model, kwargs = build(name, train=True)
        graph = trace.record(model, (), kwargs, name=name)
        (folder / f"{name}.cut").write_text(graph.text(header=True, locations=False))


if __name__ == "__main__":
    write_graphs()
