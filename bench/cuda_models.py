"""The five models of bench/native_cuda.py in plain torch: the same layers and sizes as their namesakes, for machines without the package that has them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, kv_heads: int, bias: bool, causal: bool, rotary: bool) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size, self.causal = heads, kv_heads, width // heads, causal
        self.q = nn.Linear(width, width, bias)
        self.k = nn.Linear(width, kv_heads * self.size, bias)
        self.v = nn.Linear(width, kv_heads * self.size, bias)
        self.o = nn.Linear(width, width, bias)
        self.rotary = rotary

    def forward(self, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor] | None) -> torch.Tensor:
        b, s, d = x.shape
        q, k, v = (
            p(x).view(b, s, n, self.size).transpose(1, 2)
            for p, n in ((self.q, self.heads), (self.k, self.kv_heads), (self.v, self.kv_heads))
        )
        if turn is not None:
            q, k = (t * turn[0] + self.half_turned(t) * turn[1] for t in (q, k))
        if self.kv_heads != self.heads:
            k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.o(a.transpose(1, 2).reshape(b, s, d))

    @staticmethod
    def half_turned(x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


class Layer(nn.Module):
    """style: bert (norm after), gpt2 and vit (norm before), llama (RMS norm, gated)."""

    def __init__(self, style: str, width: int, heads: int, kv_heads: int, inner: int) -> None:
        super().__init__()
        llama = style == "llama"
        self.style = style
        self.attention = Attention(width, heads, kv_heads, not llama, style in ("gpt2", "llama"), llama)
        norm = RMSNorm if llama else nn.LayerNorm
        self.norm1, self.norm2 = norm(width), norm(width)
        self.up = nn.Linear(width, inner, not llama)
        self.gate = nn.Linear(width, inner, False) if llama else None
        self.down = nn.Linear(inner, width, not llama)
        self.drop = nn.Dropout(0.0 if llama or style == "vit" else 0.1)

    def feed(self, x: torch.Tensor) -> torch.Tensor:
        if self.gate is not None:
            return self.down(F.silu(self.gate(x)) * self.up(x))
        return self.down(F.gelu(self.up(x), approximate="tanh" if self.style == "gpt2" else "none"))

    def forward(self, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor] | None) -> torch.Tensor:
        if self.style == "bert":
            x = self.norm1(x + self.drop(self.attention(x, turn)))
            return self.norm2(x + self.drop(self.feed(x)))
        x = x + self.drop(self.attention(self.norm1(x), turn))
        return x + self.drop(self.feed(self.norm2(x)))


class Transformer(nn.Module):
    def __init__(self, style: str, layers: int, width: int, heads: int, kv_heads: int, inner: int, words: int, positions: int) -> None:  # fmt: skip
        super().__init__()
        self.style, self.size = style, width // heads
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(positions, width) if style != "llama" else None
        self.first = nn.LayerNorm(width) if style == "bert" else None
        self.layers = nn.ModuleList(Layer(style, width, heads, kv_heads, inner) for _ in range(layers))
        self.last = RMSNorm(width) if style == "llama" else nn.LayerNorm(width) if style == "gpt2" else None
        self.head = nn.Linear(width, words, False) if style in ("gpt2", "llama") else None

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor]:
        s = input_ids.shape[1]
        x, turn = self.words(input_ids), None
        place = torch.arange(s, device=input_ids.device)
        if self.positions is not None:
            x = x + self.positions(place)
        else:
            speed = 10000.0 ** (-torch.arange(0, self.size, 2, device=x.device).float() / self.size)
            angle = torch.cat([place[:, None].float() * speed] * 2, -1)
            turn = (angle.cos().to(x.dtype), angle.sin().to(x.dtype))
        if self.first is not None:
            x = self.first(x)
        for layer in self.layers:
            x = layer(x, turn)
        if self.last is not None:
            x = self.last(x)
        return (self.head(x) if self.head is not None else x,)


class Vision(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, inner: int, image: int, patch: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.layers = nn.ModuleList(Layer("vit", width, heads, heads, inner) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor]:
        x = self.patches(pixel_values).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), x), 1) + self.positions
        for layer in self.layers:
            x = layer(x, None)
        return (self.norm(x),)


class Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        middle = after // 4 if bottleneck else after
        sizes = [(before, middle, 1, 1), (middle, middle, 3, stride), (middle, after, 1, 1)] if bottleneck else [(before, after, 3, stride), (after, after, 3, 1)]  # fmt: skip
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, k, s, k // 2, bias=False) for a, b, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in sizes)
        self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)) if before != after or stride != 1 else nn.Identity()  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for i, (c, n) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            y = n(c(y))
            if i + 1 < len(self.convolutions):
                y = F.relu(y)
        return F.relu(y + self.short(x))


class ResNet(nn.Module):
    def __init__(self, depths: list[int], widths: list[int], first: int, bottleneck: bool) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, first, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(first)
        blocks, before = [], first
        for i, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            for j in range(depth):
                blocks.append(Residual(before, width, 2 if j == 0 and i > 0 else 1, bottleneck))
                before = width
        self.blocks = nn.Sequential(*blocks)

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor]:
        x = F.max_pool2d(F.relu(self.norm(self.stem(pixel_values))), 3, 2, 1)
        return (self.blocks(x),)


MODELS = ["bert", "gpt2", "llama", "vit", "resnet"]


def build(name: str, base: bool) -> tuple[nn.Module, dict[str, Any]]:
    """On the processor, in float32; sizes of the study's two rows of models."""
    torch.manual_seed(0)
    ids = {"input_ids": torch.randint(0, 1000, (8, 256) if base else (2, 64))}
    if name in ("bert", "gpt2"):
        width = 768 if base else 256
        return Transformer(name, 12, width, 12 if base else 4, 12 if base else 4, 4 * width, 1000, 1024), ids
    if name == "llama":
        sizes = (8, 1024, 16, 4, 2752) if base else (8, 256, 4, 2, 688)
        return Transformer("llama", *sizes, 1000, 0), ids
    image = {"pixel_values": torch.randn(8, 3, 224, 224) if base else torch.randn(2, 3, 64, 64)}
    if name == "vit":
        return (Vision(12, 768, 12, 3072, 224, 16) if base else Vision(12, 192, 3, 768, 64, 8)), image
    if base:
        return ResNet([3, 4, 6, 3], [256, 512, 1024, 2048], 64, True), image
    return ResNet([2, 2, 2, 2], [32, 64, 128, 256], 32, False), image
