"""Capture on real models with random weights: one graph, the same numbers as eager, in eval and in training, and whole programs.

CUTAWAY_FULL_DEPTH=1 makes the models as deep as their published sizes have layers (a long run).
"""

import contextlib
import copy
import dataclasses
import os

import pytest
import torch
import transformers
from torch import nn

from tests.support import capture_cases, model_zoo

pytestmark = pytest.mark.skipif(not capture_cases.AVAILABLE, reason="this build has no capture")
FULL_DEPTH = os.environ.get("CUTAWAY_FULL_DEPTH") == "1"


def clip():
    text = {
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 200,
        "projection_dim": 32,
    }
    text |= {"max_position_embeddings": 32, "bos_token_id": 0, "eos_token_id": 199, "pad_token_id": 1}
    vision = {
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "image_size": 32,
        "patch_size": 8,
        "projection_dim": 32,
    }
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=32)
    return transformers.CLIPModel(config), {"input_ids": model_zoo.ids(), "pixel_values": torch.randn(2, 3, 32, 32)}


def mamba():
    config = transformers.MambaConfig(
        vocab_size=200, hidden_size=32, state_size=8, num_hidden_layers=2, expand=2, use_cache=False
    )
    return transformers.MambaForCausalLM(config), {"input_ids": model_zoo.ids(), "use_cache": False}


def wav2vec2():
    config = transformers.Wav2Vec2Config(
        vocab_size=32,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        conv_dim=(32, 32),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        mask_time_prob=0.0,
        layerdrop=0.0,
    )
    return transformers.Wav2Vec2Model(config), {"input_values": torch.randn(2, 400)}


MODELS = {**model_zoo.MODELS, "clip": clip, "mamba": mamba, "wav2vec2": wav2vec2}
ONE_GRAPH = ["bert", "gpt2", "llama", "t5", "vit", "whisper", "resnet"]
DEPTHS = {"num_hidden_layers": 12, "n_layer": 12, "num_layers": 12, "encoder_layers": 6, "decoder_layers": 6}


def build(name, train):
    torch.manual_seed(0)
    if not FULL_DEPTH:
        model, kwargs = MODELS[name]()
    else:
        with deeper():
            model, kwargs = MODELS[name]()
    model.train(train)
    if name == "whisper":  # whether it drops a layer is a question about a random number
        model.encoder.layerdrop = model.decoder.layerdrop = 0.0
    return model, kwargs


@contextlib.contextmanager
def deeper():
    """Configurations made inside ask for the published number of layers."""
    original = transformers.PretrainedConfig.__init_subclass__
    classes = [
        getattr(transformers, n)
        for n in dir(transformers)
        if n
        in (
            "BertConfig",
            "GPT2Config",
            "LlamaConfig",
            "T5Config",
            "ViTConfig",
            "WhisperConfig",
            "MixtralConfig",
            "MambaConfig",
        )
    ]
    with pytest.MonkeyPatch.context() as patch:
        for cls in classes:
            init = cls.__init__

            def deep(self, *args, _init=init, **kwargs):
                _init(self, *args, **{k: DEPTHS.get(k, v) for k, v in kwargs.items()})

            patch.setattr(cls, "__init__", deep)
        yield original


# transformers gives these another algorithm where torch.compiler.is_compiling() is true: equal but for rounding.
OTHER_ALGORITHM = ["mamba", "mixtral"]


def leaves(output):
    return [t for t in torch.utils._pytree.tree_leaves(output) if isinstance(t, torch.Tensor)]


def assert_same(found, expected, tolerance=0.0):
    assert type(found) is type(expected)
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.requires_grad == b.requires_grad and a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("name", MODELS)
def test_forward(name):
    capture_cases.reset()
    counter = capture_cases.Counter()
    model, kwargs = build(name, train=False)
    with torch.no_grad():
        expected = model(**kwargs)
        compiled = capture_cases.compile(model, backend=counter, fullgraph=name in ONE_GRAPH)
        for _ in range(2):
            assert_same(compiled(**kwargs), expected, 1e-5 if name in OTHER_ALGORITHM else 0.0)
    assert counter.frame_count >= 1
    if name in ONE_GRAPH:
        assert counter.frame_count == 1


@pytest.mark.parametrize("name", MODELS)
def test_training(name):
    """Three steps of an optimiser: losses and parameters are eager's, bit for bit, dropout included."""
    capture_cases.reset()
    runs = []
    for compiled in (False, True):
        model, kwargs = build(name, train=True)
        step = capture_cases.compile(model, backend="eager") if compiled else model
        optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        losses = []
        for number in range(3):
            torch.manual_seed(number)
            loss = model_zoo.loss_of(step(**kwargs))
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            losses.append(loss.detach())
        runs.append((losses, dict(model.state_dict())))
    (losses, state), (compiled_losses, compiled_state) = runs
    tolerance = 1e-5 if name in OTHER_ALGORITHM else 0.0
    torch.testing.assert_close(compiled_losses, losses, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(compiled_state, state, rtol=tolerance, atol=tolerance)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 4))

    def forward(self, x, target):
        return nn.functional.cross_entropy(self.layers(x), target)


@pytest.mark.parametrize("whole_step", [False, True])
def test_training_loop(whole_step):
    """Gradient accumulation, clipping, autocast and a scheduler, with the model alone compiled, and with the micro-step compiled."""
    capture_cases.reset()
    runs = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = Classifier()
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=4)
        called = capture_cases.compile(model, backend="eager") if compiled and not whole_step else model

        def micro_step(x, target, called=called):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = called(x, target) / 2
            return loss

        if compiled and whole_step:
            micro_step = capture_cases.compile(micro_step, backend="eager")
        seen = []
        for _ in range(4):
            for _ in range(2):
                x, target = torch.randn(8, 16), torch.randint(0, 4, (8,))
                loss = micro_step(x, target)
                loss.backward()
                seen.append(loss.item())
            seen.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
            optimiser.step()
            scheduler.step()
            optimiser.zero_grad(set_to_none=True)
            seen.append(scheduler.get_last_lr()[0])
        runs.append((seen, [p.detach().clone() for p in model.parameters()]))
    assert runs[0][0] == runs[1][0]
    for a, b in zip(runs[0][1], runs[1][1], strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_generation_with_a_cache(name):
    """Greedy decoding with a key-value cache that grows: the tokens are eager's."""
    capture_cases.reset()
    model, kwargs = build(name, train=False)
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None
    prompt = kwargs["input_ids"][:, :5]
    options = {"max_new_tokens": 8, "do_sample": False, "use_cache": True}
    expected = model.generate(prompt, **options)
    model.forward = capture_cases.compile(model.forward, backend="eager")
    assert torch.equal(model.generate(prompt, **options), expected)


def test_decoding_by_hand():
    """The loop that people write themselves: prefill, then one token at a time with past_key_values."""
    capture_cases.reset()
    model, kwargs = build("llama", train=False)

    def decode(call):
        tokens, cache = kwargs["input_ids"][:, :4], None
        out = []
        with torch.no_grad():
            for _ in range(6):
                result = call(input_ids=tokens, past_key_values=cache, use_cache=True)
                cache = result.past_key_values
                tokens = result.logits[:, -1:].argmax(-1)
                out.append(tokens)
        return torch.cat(out, dim=1)

    assert torch.equal(decode(capture_cases.compile(model, backend="eager")), decode(model))


# --- a class-heavy program


class Registry:
    kinds = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Registry.kinds[cls.__name__.lower()] = cls

    @classmethod
    def make(cls, kind, *args, **kwargs):
        return cls.kinds[kind](*args, **kwargs)


class Transform(Registry):
    def __init__(self, strength=1.0):
        self.strength = strength
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return self.apply(x)

    def __or__(self, other):
        return Chain([self, other])

    @property
    def label(self):
        return f"{type(self).__name__}({self.strength})"


class Scale(Transform):
    def apply(self, x):
        return x * self.strength


class Noise(Transform):
    def apply(self, x):
        return x + torch.randn_like(x) * self.strength


class Gate(Transform):
    def apply(self, x):
        return torch.where(x > 0, x, x * self.strength) if self.strength else x


class Chain(Transform):
    def __init__(self, parts):
        super().__init__()
        self.parts = [q for p in parts for q in (p.parts if isinstance(p, Chain) else [p])]

    def apply(self, x):
        for part in self:
            x = part(x)
        return x

    def __iter__(self):
        return iter(self.parts)

    def __len__(self):
        return len(self.parts)


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    meta: dict = dataclasses.field(default_factory=dict)
    history: list = dataclasses.field(default_factory=list)

    def then(self, x, note):
        self.history.append(note)
        return dataclasses.replace(self, x=x)


def class_heavy(batch, chain):
    for i, part in enumerate(chain):
        batch = batch.then(part(batch.x), f"{i}:{part.label}")
    try:
        extra = Registry.make(batch.meta["extra"], strength=0.25)
    except KeyError as error:
        batch.meta["missing"] = error.args[0]
    else:
        batch = batch.then(extra(batch.x), extra.label)
    return batch, sum(part.calls for part in chain), len(chain)


def test_class_heavy():
    capture_cases.reset()
    counter = capture_cases.Counter()
    compiled = capture_cases.compile(class_heavy, backend=counter)

    def run(function):
        chain = Scale(2.0) | Gate(0.5) | Noise(0.1) | Gate(0.0)
        batches = [Batch(torch.ones(2, 3)), Batch(torch.ones(2, 3)), Batch(-torch.ones(2, 3), {"extra": "gate"})]
        return [capture_cases.shown(function, (batch, chain)) for batch in batches]

    assert run(compiled) == run(class_heavy)
    assert counter.frame_count >= 1


# --- a dictionary-heavy program


def merge(*tables):
    out = {}
    for table in tables:
        for key, value in table.items():
            if isinstance(value, dict):
                out[key] = merge(out.get(key, {}), value)
            elif key in out and isinstance(value, torch.Tensor):
                out[key] = out[key] + value
            else:
                out[key] = value
    return out


def flatten(tree, prefix=""):
    for key in sorted(tree):
        value = tree[key]
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def dictionary_heavy(state, update, *, decay=0.9, skip=()):
    merged = merge(state, update)
    flat = {key: value * decay for key, value in flatten(merged) if key not in skip}
    counts = {}
    for key in flat:
        group = key.split(".")[0]
        counts[group] = counts.get(group, 0) + 1
    state["last"] = {k: v for k, v in flat.items() if k.endswith("w")}
    state.setdefault("steps", {})["n"] = len(flat)
    total = sum(v.sum() for v in flat.values() if isinstance(v, torch.Tensor))
    return flat, counts, total, max(counts, key=counts.get)


def test_dictionary_heavy():
    capture_cases.reset()
    counter = capture_cases.Counter()
    compiled = capture_cases.compile(dictionary_heavy, backend=counter)

    def run(function):
        shown = []
        for size in (2, 2, 3):
            state = {"enc": {"w": torch.ones(size), "b": torch.zeros(size)}, "dec": {"w": torch.ones(size, 2)}}
            update = {"enc": {"w": torch.full((size,), 2.0)}, "head": {"w": torch.ones(1), "k": 3}}
            shown.append(
                capture_cases.shown(function, (state, copy.deepcopy(update)), {"skip": ("dec.w",) if size == 3 else ()})
            )
        return shown

    assert run(compiled) == run(dictionary_heavy)
    assert counter.frame_count >= 1
