"""Small models of the kinds that people train, each with the keyword arguments of one call; the loss is the first output."""

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY = 120


def _ids(batch=2, length=12):
    return torch.randint(0, VOCABULARY, (batch, length))


def bert():
    import transformers

    config = transformers.BertConfig(
        num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64, vocab_size=VOCABULARY
    )
    return transformers.BertForMaskedLM(config), {"input_ids": _ids(), "labels": _ids()}


def gpt2():
    import transformers

    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=VOCABULARY, n_positions=64)
    return transformers.GPT2LMHeadModel(config), {"input_ids": _ids(), "labels": _ids(), "use_cache": False}


def llama():
    import transformers

    config = transformers.LlamaConfig(
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=VOCABULARY,
    )
    return transformers.LlamaForCausalLM(config), {"input_ids": _ids(), "labels": _ids(), "use_cache": False}


def t5():
    import transformers

    config = transformers.T5Config(
        num_layers=2, d_model=32, num_heads=4, d_ff=64, d_kv=8, vocab_size=VOCABULARY, decoder_start_token_id=0
    )
    return transformers.T5ForConditionalGeneration(config), {"input_ids": _ids(), "labels": _ids(), "use_cache": False}


def vit():
    import transformers

    config = transformers.ViTConfig(
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=16,
        patch_size=4,
        num_labels=5,
    )
    return transformers.ViTForImageClassification(config), {
        "pixel_values": torch.randn(2, 3, 16, 16),
        "labels": torch.tensor([1, 3]),
    }


def resnet():
    import transformers

    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], num_labels=5)
    return transformers.ResNetForImageClassification(config), {
        "pixel_values": torch.randn(2, 3, 16, 16),
        "labels": torch.tensor([1, 3]),
    }


def whisper():
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        num_mel_bins=8,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        d_model=16,
        max_source_positions=12,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return transformers.WhisperForConditionalGeneration(config), {
        "input_features": torch.randn(2, 8, 24),
        "labels": _ids(2, 6),
        "use_cache": False,
    }


class _Experts(nn.Module):
    """A mixture of experts: each token goes to its two best ones; the routing has static shapes."""

    def __init__(self, width=16, experts=4):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.1)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.1)

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        weights = weights / weights.sum(-1, keepdim=True)
        share = torch.zeros(*x.shape[:-1], self.up.shape[0]).scatter(-1, chosen, weights)
        hidden = F.silu(torch.einsum("btd,edh->beth", x, self.up))
        return torch.einsum("beth,ehd,bte->btd", hidden, self.down, share)


class _MixtureModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 16)
        self.blocks = nn.ModuleList([_Experts() for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(16) for _ in range(2)])
        self.drop = nn.Dropout(0.1)

    def forward(self, ids, labels):
        x = self.embed(ids)
        for block, norm in zip(self.blocks, self.norms, strict=True):
            x = x + self.drop(block(norm(x)))
        logits = x @ self.embed.weight.t()  # tied
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


def mixture():
    return _MixtureModel(), {"ids": _ids(), "labels": _ids()}


class _Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.norm = nn.GroupNorm(2, a)
        self.conv = nn.Conv2d(a, b, 3, padding=1)
        self.time = nn.Linear(8, b)
        self.skip = nn.Conv2d(a, b, 1)

    def forward(self, x, t):
        h = self.conv(F.silu(self.norm(x))) + self.time(t)[:, :, None, None]
        return self.skip(x) + h


class _UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([_Block(4, 8), _Block(8, 8)])
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.up = nn.ModuleList([_Block(16, 8), _Block(16, 4)])
        self.act = nn.SiLU(inplace=True)

    def forward(self, x, t, noise):
        t = torch.cat([t.sin(), t.cos()], -1)
        kept = []
        for block in self.down:
            x = block(x, t)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        b, c, h, w = x.shape
        y = x.flatten(2).transpose(1, 2)
        x = x + self.attend(y, y, y, need_weights=False)[0].transpose(1, 2).reshape(b, c, h, w)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2.0)
            x = self.act(block(torch.cat([x, kept.pop()], 1), t))
        return F.mse_loss(x, noise), x


def unet():
    return _UNet(), {
        "x": torch.randn(2, 4, 8, 8),
        "t": torch.randn(2, 4),
        "noise": torch.randn(2, 4, 8, 8),
    }


class _Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 16)
        self.rnn = nn.LSTM(16, 16, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, ids, labels):
        logits = self.head(self.rnn(self.embed(ids))[0])
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


def lstm():
    return _Lstm(), {"ids": _ids(), "labels": _ids()}


MODELS = {f.__name__: f for f in (bert, gpt2, llama, t5, vit, resnet, whisper, mixture, unet, lstm)}
