"""Planted failures for the debugger: a script for each, made of a model, a way to misbehave, a form of the backend and a way to start it.

A case says what `cutaway triage` must answer: the kind of failure, the most nodes that may be left, a word that the smallest graph must hold.
`python -m tests.flows.debugger.table` runs them, writes docs/debugger_cases.md, and runs torch's own minifier beside with --peer.
"""

from __future__ import annotations

import dataclasses
import textwrap

HEAD = """
import functools, os, random, signal, sys, threading, time
import torch
import torch.nn as nn
import torch.nn.functional as F
"""

# --- Models. Each defines build() -> (callable module, inputs), and step(f, inputs), which calls the compiled f. -------------------------------
MODELS = {
    "mlp": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm, self.c = nn.Linear(8, 16), nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 4)
    def forward(self, x):
        h = self.norm(torch.sin(F.gelu(self.a(x))))
        h = torch.relu(self.b(h))
        h = h + torch.tanh(h.transpose(0, 1).contiguous().transpose(0, 1))
        h = torch.cos(h * 1.5)
        return self.c(torch.sigmoid(h) * h).softmax(-1)
def build(): return Net(), [torch.randn(5, 8)]
def step(f, inputs): f(*inputs).square().sum().backward()
""",
    "conv": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3), nn.Linear(8, 5)
    def forward(self, x):
        h = F.relu(self.n(self.a(x)))
        h = F.max_pool2d(torch.tanh(self.b(h)), 2)
        return self.c(h.mean((2, 3)))
def build(): return Net(), [torch.randn(2, 3, 10, 10)]
def step(f, inputs): f(*inputs).square().mean().backward()
""",
    "attention": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        w = (q @ k.transpose(-1, -2) / 4).masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf")).softmax(-1)
        return torch.tanh(self.out(w @ v))
def build(): return Net(), [torch.randn(2, 6, 16)]
def step(f, inputs): f(*inputs).sum().backward()
""",
    "two_outputs": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 9)
    def forward(self, x):
        h = torch.tanh(self.a(x)).exp()
        return h.log1p(), h.argmax(-1)
def build(): return Net(), [torch.randn(4, 6)]
def step(f, inputs): f(*inputs)[0].sum().backward()
""",
    "infinite": """
def net(x):
    h = torch.tanh(x).masked_fill(x > 0, float("-inf"))
    return torch.cat([h, x.exp() * 1.5])
def build(): return net, [torch.randn(6, 5)]
def step(f, inputs): f(*inputs)
""",
    "writes": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(4))
    def forward(self, x):
        self.count.add_(torch.tanh(x).sum(0).detach())
        return x.sin() * self.count
def build(): return Net(), [torch.randn(3, 4)]
def step(f, inputs): f(*inputs)
""",
    "clones": """
def net(x): return torch.tanh(x).exp(), x.clone()
def build(): return net, [torch.randn(6, 5)]
def step(f, inputs): f(*inputs)
""",
}
for name, config in {
    "bert": "transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))",
    "gpt2": "transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))",
    "llama": "transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64))",
    "vit": "transformers.ViTForImageClassification(transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=32, patch_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))",
    "resnet": "transformers.ResNetForImageClassification(transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type='basic'))",
}.items():
    words = name not in ("vit", "resnet")
    given = "torch.randint(0, 64, (2, 12))" if words else "torch.randn(2, 3, 32, 32)"
    MODELS[name] = f"""
import transformers
def build(): return {config}.train(), [{given}]
def step(f, inputs): f(*inputs).logits.square().mean().backward()
"""

# --- Ways to misbehave. `bad(gm, examples)` is the backend; OP is the operator that it is about. ----------------------------------------------
COMMON = """
OP = "{op}"
def is_op(node):
    return node.op.startswith("call") and OP in str(getattr(node.target, "__name__", node.target))
def has_op(gm): return any(map(is_op, gm.graph.nodes))
def spoiled(gm, change):
    class Run(torch.fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            return change(result, n, self) if is_op(n) else result
    return lambda *a: Run(gm).run(*a)
def after(gm, change):
    def run(*a):
        out = gm(*a)
        return type(out)(change(list(out), a)) if isinstance(out, (tuple, list)) else change([out], a)[0]
    return run if has_op(gm) else gm.forward
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    body: str  # of bad(gm, examples)
    expect: str  # the kind of failure that triage names; "pass": exit status 0
    nodes: int = 1
    type: str = ""  # of an exception
    signal: str = ""  # of a crash; "exit 0": the process was ended with that status
    options: tuple[str, ...] = ()


KINDS = {
    "raises": Kind(
        "if has_op(gm): raise NotImplementedError('no ' + OP)\nreturn gm.forward", "exception", 1, "NotImplementedError"
    ),
    "raises_running": Kind(
        "def run(*a): raise ArithmeticError('cannot run ' + OP)\nreturn run if has_op(gm) else gm.forward",
        "exception",
        1,
        "ArithmeticError",
    ),
    "raises_after_two": Kind(
        "found = [n for n in gm.graph.nodes if is_op(n) and any(getattr(i, 'op', '').startswith('call') for i in n.all_input_nodes)]\nif found: raise ValueError('pair')\nreturn gm.forward",
        "exception",
        2,
        "ValueError",
    ),
    "raises_base": Kind(
        "class Odd(BaseException): pass\nif has_op(gm): raise Odd('odd ' + OP)\nreturn gm.forward", "exception"
    ),
    "raises_always": Kind("raise OSError('no graph at all')", "exception", 1, "OSError"),
    "interrupts": Kind("if has_op(gm): raise KeyboardInterrupt\nreturn gm.forward", "exception"),
    "exits": Kind("if has_op(gm): sys.exit(3)\nreturn gm.forward", "exception"),
    "ends_process": Kind(
        "def run(*a): os._exit(0)\nreturn run if has_op(gm) else gm.forward", "crash", signal="exit 0"
    ),
    "crashes": Kind(
        "def run(*a): os.kill(os.getpid(), signal.SIGSEGV)\nreturn run if has_op(gm) else gm.forward", "crash"
    ),
    "aborts": Kind("if has_op(gm): os.abort()\nreturn gm.forward", "crash"),
    "hangs": Kind("if has_op(gm): time.sleep(1e6)\nreturn gm.forward", "hang", 1, options=("--timeout", "6")),
    "hangs_running": Kind(
        "def run(*a): time.sleep(1e6)\nreturn run if has_op(gm) else gm.forward", "hang", 1, options=("--timeout", "6")
    ),
    "wrong": Kind("return spoiled(gm, lambda r, n, i: r * 1.25 + 0.5)", "accuracy"),
    "wrong_little": Kind("return spoiled(gm, lambda r, n, i: r * 1.01)", "accuracy"),
    "wrong_element": Kind(
        "def change(r, n, i):\n    r = r.clone(); r[(0,) * r.dim()] += 1; return r\nreturn spoiled(gm, change)",
        "accuracy",
    ),
    "nan": Kind(
        "def change(r, n, i):\n    r = r.clone(); r[(-1,) * r.dim()] = float('nan'); return r\nreturn spoiled(gm, change)",
        "accuracy",
    ),
    "infinity": Kind("return after(gm, lambda out, a: [torch.where(o.isinf(), -o, o) for o in out])", "accuracy", 3),
    "finite_beside_infinity": Kind("return spoiled(gm, lambda r, n, i: r + 0.5)", "accuracy", 2),
    "rows": Kind("return spoiled(gm, lambda r, n, i: r + 0.5 if r.dim() and r.shape[0] >= 3 else r)", "accuracy"),
    "wrong_dtype": Kind(
        "return after(gm, lambda out, a: [o.double() if o.is_floating_point() else o for o in out])", "accuracy", 2
    ),
    "wrong_strides": Kind(
        "return after(gm, lambda out, a: [o.transpose(0, -1).contiguous().transpose(0, -1) for o in out])",
        "accuracy",
        2,
    ),
    "wrong_shape": Kind("return after(gm, lambda out, a: [o[None] for o in out])", "accuracy", 2),
    "wrong_integer": Kind(
        "return after(gm, lambda out, a: [o + 1 if o.dtype is torch.int64 else o for o in out])", "accuracy", 3
    ),
    "writes_input": Kind(
        "def run(*a):\n    out = gm(*a)\n    for t in a:\n        if isinstance(t, torch.Tensor) and t.is_floating_point() and not t.requires_grad: t.mul_(2)\n    return out\nreturn run if has_op(gm) else gm.forward",
        "accuracy",
        2,
    ),
    "forgets_write": Kind(
        "def run(*a):\n    before = [t.detach().clone() for t in a]\n    out = gm(*a)\n    with torch.no_grad():\n        for t, b in zip(a, before): t.copy_(b)\n    return out\nreturn run if has_op(gm) else gm.forward",
        "accuracy",
        4,
    ),
    "gives_alias": Kind(
        "return after(gm, lambda out, a: [next((i for i in a if isinstance(i, torch.Tensor) and i.shape == o.shape and torch.equal(i, o)), o) for o in out])",
        "accuracy",
        3,
    ),
    "flaky": Kind(
        "def change(out, a): return [o * 1.3 for o in out] if random.SystemRandom().random() < 0.3 else out\nreturn after(gm, change)",
        "accuracy",
        2,
    ),
    "fine": Kind("return gm.forward", "pass"),
}

# --- Forms of a backend --------------------------------------------------------------------------------------------------------------------------
FORMS = {
    "function": "backend = bad",
    "lambda": "backend = lambda gm, examples: bad(gm, examples)",
    "closure": "def make(word):\n    def inner(gm, examples):\n        assert word\n        return bad(gm, examples)\n    return inner\nbackend = make('w')",
    "object": "class Backend:\n    def __init__(self): self.count = 0\n    def __call__(self, gm, examples):\n        self.count += 1\n        return bad(gm, examples)\nbackend = Backend()",
    "method": "class Holder:\n    def compile(self, gm, examples): return bad(gm, examples)\nbackend = Holder().compile",
    "partial": "def extended(gm, examples, flag): return bad(gm, examples)\nbackend = functools.partial(extended, flag=True)",
    "registered": "from torch._dynamo import register_backend\nregister_backend(bad, 'planted')\nbackend = 'planted'",
    "aot": "from torch._dynamo.backends.common import aot_autograd\nfrom functorch.compile import make_boxed_func\nbackend = aot_autograd(fw_compiler=lambda gm, ex: make_boxed_func(bad(gm, ex)))",
    "aot_backward": "from torch._dynamo.backends.common import aot_autograd\nfrom functorch.compile import make_boxed_func\nbackend = aot_autograd(fw_compiler=lambda gm, ex: make_boxed_func(gm.forward), bw_compiler=lambda gm, ex: make_boxed_func(bad(gm, ex)))",
}
STARTS = {
    "script": "torch.compile(model, backend=backend)",
    "module": "torch.compile(model, backend=backend)",  # cutaway triage -m package.train
    "stdin": "torch.compile(model, backend=backend)",  # cutaway triage -
    "cutaway": "cutaway.compile(model, backend=backend)",
    "autocast": "torch.compile(model, backend=backend)",
    "decorated": "torch.compile(backend=backend)(model)",
}


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    kind: str
    op: str = "tanh"
    form: str = "function"
    start: str = "script"
    nodes: int = 0  # 0: as the kind says

    @property
    def name(self) -> str:
        return "-".join((self.model, self.kind, self.op, self.form, self.start))

    @property
    def most_nodes(self) -> int:
        return self.nodes or KINDS[self.kind].nodes

    def script(self) -> str:
        kind = KINDS[self.kind]
        call = "step(f, inputs)"
        steps = 40 if self.kind == "flaky" else 2  # in 12 it would not show once in 70 times
        text = HEAD + ("import cutaway\n" if self.start == "cutaway" else "")
        text += MODELS[self.model] + COMMON.format(op=self.op)
        text += "def bad(gm, examples):\n" + textwrap.indent(kind.body, "    ") + "\n" + FORMS[self.form] + "\n"
        text += "def main():\n    torch.manual_seed(0)\n    model, inputs = build()\n"
        text += f"    f = {STARTS[self.start]}\n    for _ in range({steps}):\n"
        if self.start == "autocast":
            text += f"        with torch.autocast('cpu', dtype=torch.bfloat16):\n            {call}\n"
        else:
            text += f"        {call}\n"
        return text + "if __name__ == '__main__':\n    main()\n"


def _cases() -> list[Case]:
    rows = []
    # Every way to misbehave, on the model that shows it.
    special = {
        "infinity": "infinite",
        "finite_beside_infinity": "infinite",
        "wrong_integer": "two_outputs",
        "forgets_write": "writes",
        "gives_alias": "clones",
        "writes_input": "clones",
    }
    for kind in KINDS:
        rows.append(Case(special.get(kind, "mlp"), kind))
    # Every form of a backend, for what raises, what is wrong and what dies.
    for form in FORMS:
        for kind in ("raises", "wrong", "crashes"):
            if form != "function":
                rows.append(Case("mlp", kind, op="mul" if form == "aot_backward" else "tanh", form=form, nodes=2))
    # Every way to start.
    for start in STARTS:
        for kind in ("raises", "wrong", "hangs_running"):
            if start != "script":
                rows.append(Case("mlp", kind, start=start))
    # Real models in training: an operator of the forward graph, after capture and after aot.
    ops = {
        "bert": ("gelu", "layer_norm", "scaled_dot_product"),
        "gpt2": ("tanh", "layer_norm", "split"),
        "llama": ("silu", "rsqrt", "cos"),
        "vit": ("gelu", "conv2d", "layer_norm"),
        "resnet": ("relu", "batch_norm", "max_pool2d"),
        "conv": ("tanh", "relu", "mean"),
        "attention": ("tanh", "masked_fill", "matmul"),
    }
    aten = {
        "layer_norm": "native_layer_norm",
        "conv2d": "convolution",
        "batch_norm": "batch_norm",
        "max_pool2d": "max_pool2d_with_indices",
        "matmul": "bmm",
    }
    for model, names in ops.items():
        for op in names:
            rows.append(Case(model, "raises", op=op))
            if op not in (
                "layer_norm",
                "split",
                "batch_norm",
                "max_pool2d",
                "scaled_dot_product",
                "masked_fill",
                "matmul",
            ):
                rows.append(Case(model, "wrong", op=op, nodes=2))
            if op not in ("split",):
                rows.append(Case(model, "raises", op=aten.get(op, op), form="aot", nodes=1))
    return list(dict.fromkeys(rows))


CASES = {case.name: case for case in _cases()}


# The fixed third that `make test` runs: every fault, form of a backend, way to start and model of ours, and two real models.
THIRD = [
    *(c.name for c in list(CASES.values())[: len(KINDS)] if c.kind not in ("raises", "wrong", "crashes")),
    "mlp-wrong-tanh-lambda-script",
    "mlp-wrong-tanh-closure-script",
    "mlp-crashes-tanh-object-script",
    "mlp-raises-tanh-method-script",
    "mlp-raises-tanh-partial-script",
    "mlp-crashes-tanh-registered-script",
    "mlp-raises-mul-aot_backward-script",
    "mlp-raises-tanh-function-module",
    "mlp-wrong-tanh-function-stdin",
    "mlp-raises-tanh-function-cutaway",
    "mlp-wrong-tanh-function-autocast",
    "mlp-raises-tanh-function-decorated",
    "llama-raises-silu-function-script",
    "resnet-raises-relu-function-script",
    "conv-wrong-mean-function-script",
    "attention-raises-bmm-aot-script",
]
