# ruff: noqa
"""nn.Module: built outside and inside, with hooks, containers, state that changes, loops over parameters and children."""

import collections

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, seeded, tensor
from torch import nn


class Basic(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(4, 4)
        self.scale = 3

    def forward(self, x):
        return F.relu(self.l1(x)) * self.scale


@built
def basic():
    return seeded(Basic)


@built
def basic_eval():
    return seeded(Basic).eval()


@built
def linear_direct():
    return seeded(lambda: nn.Linear(4, 2))


@built
def sequential():
    return seeded(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 2), nn.Sigmoid()))


@built
def sequential_named():
    return seeded(lambda: nn.Sequential(collections.OrderedDict(a=nn.Linear(4, 4), b=nn.Tanh())))


@built
def module_list():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)])

        def forward(self, x):
            for i, layer in enumerate(self.layers):
                x = layer(x) + i
            return x + len(self.layers) + self.layers[0](x) + self.layers[-1](x) + sum(1 for _ in self.layers[:2])

    return seeded(M)


@built
def module_dict():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.d = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})

        def forward(self, x):
            for k, m in self.d.items():
                x = m(x) + len(k)
            for m in self.d.values():
                x = m(x)
            if "a" in self.d:
                x = self.d["a"](x)
            return x + len(self.d) + len(list(self.d.keys()))

    return seeded(M)


@built
def parameter_list():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.ParameterList([nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4) * 2)])
            self.d = nn.ParameterDict({"a": nn.Parameter(torch.ones(4))})

        def forward(self, x):
            for p in self.p:
                x = x + p
            return x * self.p[1] + self.d["a"] + len(self.p) + sum(len(k) for k in self.d)

    return seeded(M)


@built
def module_in_list_attribute():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]

        def forward(self, x):
            for l in self.layers:
                x = l(x)
            return x

    return seeded(M)


@built(graphs=3)
def counter_in_forward():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.counter = 0

        def forward(self, x):
            self.counter += 1
            return x * 2

    return M()


@built
def buffer_in_place():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("buf", torch.zeros(4))

        def forward(self, x):
            self.buf.add_(1)
            return x + self.buf

    return M()


@built
def buffer_reassigned():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("buf", torch.zeros(4))

        def forward(self, x):
            self.buf = self.buf + x.sum(0)
            return x + self.buf

    return M()


@built
def attribute_tensor_stored():
    class M(nn.Module):
        def forward(self, x):
            self.last = x + 1
            return self.last * 2

    return M()


@built
def list_attribute_appended():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = []

        def forward(self, x):
            self.seen.append(x.shape[0])
            return x * 2

    return M()


@built(graphs=2)
def register_buffer_in_forward():
    class M(nn.Module):
        def forward(self, x):
            if not hasattr(self, "cache"):
                self.register_buffer("cache", torch.ones(4))
            return x + self.cache

    return M()


@built
def named_parameters_loop():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)
            self.b = nn.BatchNorm1d(4)

        def forward(self, x):
            n = 0
            for name, p in self.named_parameters():
                if name.endswith("bias"):
                    x = x + p
                n += p.numel()
            for p in self.parameters():
                x = x + p.sum()
            for name, b in self.named_buffers():
                n += len(name)
            for b in self.buffers():
                n += b.dim()
            return x + n

    return seeded(M)


@built
def children_and_modules_loop():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.s = nn.Sequential(nn.ReLU(), nn.Linear(4, 4))

        def forward(self, x):
            for c in self.children():
                x = c(x)
            for name, c in self.named_children():
                x = x + len(name)
            n = 0
            for name, m in self.named_modules():
                n += isinstance(m, nn.Linear) + len(name)
            for m in self.modules():
                n += 1
            return x + n

    return seeded(M)


@built
def state_dict_read():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def forward(self, x):
            sd = self.state_dict()
            return x @ sd["l.weight"]

    return seeded(M)


@built
def get_parameter_submodule():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.s = nn.Sequential(nn.Linear(4, 4))

        def forward(self, x):
            return self.get_submodule("s.0")(x) + self.get_parameter("s.0.bias") + getattr(self.s, "0")(x)

    return seeded(M)


@built
def call_override():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def __call__(self, x, k=2):
            return super().__call__(x) * k

        def forward(self, x):
            return self.l(x)

    return seeded(M)


@built
def methods_called():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def helper(self, x, *, k):
            return self.l(x) * k

        @staticmethod
        def st(x):
            return x + 1

        @classmethod
        def cl(cls, x):
            return x + len(cls.__name__)

        @property
        def weight(self):
            return self.l.weight

        def forward(self, x):
            return self.helper(x, k=2) + self.st(x) + self.cl(x) + self.weight.sum()

    return seeded(M)


@built
def inherits_and_super():
    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def forward(self, x):
            return self.l(x)

    class B(A):
        def forward(self, x):
            return super().forward(x) + 1

    return seeded(B)


@built
def forward_hooks():
    m = seeded(Basic)
    m.register_forward_hook(lambda mod, inp, out: out + 1)
    m.register_forward_pre_hook(lambda mod, inp: (inp[0] * 2,))
    m.l1.register_forward_hook(lambda mod, inp, out: None)
    return m


@built
def forward_hooks_kwargs():
    class M(nn.Module):
        def forward(self, x, k=1):
            return x * k

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.m = M()
            self.m.register_forward_pre_hook(lambda mod, a, kw: (a, {"k": kw["k"] + 1}), with_kwargs=True)
            self.m.register_forward_hook(lambda mod, a, kw, out: out * kw["k"], with_kwargs=True)

        def forward(self, x):
            return self.m(x, k=3)

    return Outer()


@built
def hook_with_state():
    m = seeded(Basic)
    calls = []
    m.register_forward_hook(lambda mod, inp, out: calls.append(out.shape[0]))
    return m


@built
def full_backward_hook():
    m = seeded(Basic)
    m.register_full_backward_hook(lambda mod, gi, go: None)
    return m


@built
def training_flag():
    class M(nn.Module):
        def forward(self, x):
            return x + 1 if self.training else x - 1

    return M().eval()


@built
def train_switch_inside():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.d = nn.Dropout(0.5)

        def forward(self, x):
            self.d.eval()
            y = self.d(x)
            self.d.train()
            return y

    return M()


@built
def batch_norm_train():
    return seeded(lambda: nn.BatchNorm1d(4)).train()


@built
def dropout_train():
    return nn.Dropout(0.5).train()


@built
def lazy_linear():
    return seeded(lambda: nn.LazyLinear(2))


@built
def submodule_replaced():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            self.act = nn.Tanh()
            return self.act(x)

    return M()


@built
def parameter_assigned():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x * self.w + self.w.detach()

    return M()


@built
def shared_parameter():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.a(x) + self.b(x)

    return seeded(M)


@built
def tied_submodule():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a

        def forward(self, x):
            return self.a(x) + self.b(x)

    return seeded(M)


@built
def getattr_by_name():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            for i in range(3):
                setattr(self, f"l{i}", nn.Linear(4, 4))

        def forward(self, x):
            for i in range(3):
                x = getattr(self, f"l{i}")(x)
            return x + hasattr(self, "l0") + hasattr(self, "l9")

    return seeded(M)


@built
def custom_getattr():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.l, name)

        def forward(self, x):
            return self.l(x) + self.in_features

    return seeded(M)


@built
def optional_submodule():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = None
            self.register_parameter("bias", None)

        def forward(self, x):
            if self.proj is not None:
                x = self.proj(x)
            if self.bias is not None:
                x = x + self.bias
            return x + 1

    return M()


@built(args=lambda i: [tensor(i), {"k": 2, "mask": None}])
def dict_argument_module():
    class M(nn.Module):
        def forward(self, x, opts, mask=None):
            if opts["mask"] is None and mask is None:
                return x * opts["k"]
            return x

    return M()


@built
def module_returning_dict():
    class M(nn.Module):
        def forward(self, x):
            return {"out": x + 1, "aux": [x, (x * 2,)]}

    return M()


@program(breaks=True)
def built_inside_linear(x):
    torch.manual_seed(0)
    l = nn.Linear(4, 2)
    return l(x)


@program
def built_inside_activation(x):
    return nn.ReLU()(x) + nn.Softmax(dim=-1)(x) + nn.GELU()(x)


@program
def built_inside_sequential(x):
    return nn.Sequential(nn.ReLU(), nn.Tanh())(x)


@program
def built_inside_loss(x):
    return (
        nn.MSELoss()(x, x + 1)
        + nn.CrossEntropyLoss()(x, torch.tensor([0, 1, 2]))
        + nn.L1Loss(reduction="sum")(x, x * 2)
    )


@program
def built_inside_own_class(x):
    m = Scale(3.0)
    return m(x)


class Scale(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return x * self.k


@program
def built_inside_with_parameter(x):
    m = WithParameter()
    return m(x)


class WithParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("b", torch.zeros(4))

    def forward(self, x):
        return x * self.w + self.b


@program
def built_inside_dropout(x):
    return nn.Dropout(0.5)(x)


@program
def built_inside_layer_norm(x):
    return nn.LayerNorm(4)(x) + nn.LayerNorm(4, elementwise_affine=False)(x)


@program
def built_inside_module_list(x):
    layers = nn.ModuleList([nn.ReLU(), nn.Sigmoid()])
    for l in layers:
        x = l(x)
    return x


@program(breaks=True)
def built_inside_conv(x):
    torch.manual_seed(0)
    return nn.Conv1d(3, 2, 3)(x[None])


@program(breaks=True)
def functional_module_arguments(x):
    m = seeded(lambda: nn.Linear(4, 4))
    return m(x)


OUTSIDE = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
EMBED = seeded(lambda: nn.Embedding(10, 4))
LSTM = seeded(lambda: nn.LSTM(4, 5, batch_first=True))
GRUCELL = seeded(lambda: nn.GRUCell(4, 5))
MHA = seeded(lambda: nn.MultiheadAttention(4, 2, batch_first=True))
ENCODER = seeded(lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)).eval()
CONV = seeded(lambda: nn.Conv2d(1, 2, 2))
BN = seeded(lambda: nn.BatchNorm1d(4)).eval()
WN = seeded(lambda: torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))


@program
def global_module(x):
    return OUTSIDE(x) + OUTSIDE[0].weight.sum()


@program(args=lambda i: [torch.tensor([1, 2, i])])
def embedding(ids):
    return EMBED(ids)


@program
def lstm(x):
    out, (h, c) = LSTM(x[None])
    return out, h, c


@program
def gru_cell(x):
    return GRUCELL(x)


@program
def multihead_attention(x):
    out, w = MHA(x[None], x[None], x[None])
    return out, w


@program
def transformer_encoder_layer(x):
    return ENCODER(x[None])


@program
def conv2d(x):
    return CONV(x[None, None])


@program
def batch_norm_eval(x):
    return BN(x)


@program
def weight_norm_parametrized(x):
    return WN(x)


@program
def module_to_and_requires_grad(x):
    OUTSIDE.requires_grad_(True)
    return OUTSIDE(x)


@program
def module_apply_inside(x):
    n = []
    OUTSIDE.apply(lambda m: n.append(type(m).__name__))
    return x + len(n), n


@program
def module_type_checks(x):
    m = OUTSIDE[0]
    return (
        x + isinstance(m, nn.Linear) + isinstance(m, nn.Module) + (type(m) is nn.Linear) + m.in_features + len(OUTSIDE)
    )


@program
def module_repr_breaks(x):
    s = repr(OUTSIDE[1])
    return x + len(s)


@program
def module_as_dict_key(x):
    d = {OUTSIDE[0]: 1, OUTSIDE[1]: 2}
    return x + d[OUTSIDE[1]]


@program
def module_parameters_zero_grad(x):
    OUTSIDE.zero_grad()
    y = OUTSIDE(x).sum()
    y.backward()
    g = OUTSIDE[0].weight.grad.clone()
    OUTSIDE.zero_grad()
    return g


@program
def functional_call(x):
    params = {k: v * 2 for k, v in OUTSIDE.named_parameters()}
    return torch.func.functional_call(OUTSIDE, params, (x,))


@program
def module_train_eval_outside(x):
    return BN.training, x + 1


@program
def checkpoint_module(x):
    return torch.utils.checkpoint.checkpoint(OUTSIDE, x, use_reentrant=False)


@program
def init_functions(x):
    w = torch.empty(4, 4)
    nn.init.zeros_(w)
    nn.init.constant_(w, 0.5)
    nn.init.eye_(w)
    return x @ w


@program
def init_random(x):
    w = torch.empty(4, 4)
    nn.init.xavier_uniform_(w)
    nn.init.normal_(w)
    return x @ w


@program
def parameter_made_inside(x):
    p = nn.Parameter(torch.ones(4))
    return x + p


@built
def module_list_append_forward():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList()
            for _ in range(2):
                self.layers.append(nn.Linear(4, 4))

        def forward(self, x):
            return sum(l(x) for l in self.layers)

    return seeded(M)


@built
def enumerate_zip_modules():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
            self.b = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

        def forward(self, x):
            for i, (a, b) in enumerate(zip(self.a, self.b)):
                x = a(x) * i + b(x)
            return x

    return seeded(M)


@built
def unused_and_conditional_layers():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)
            self.unused = nn.Linear(4, 100)

        def forward(self, x, flag=True):
            if flag:
                return self.l(x)
            return self.unused(x)

    return seeded(M)


@built
def module_with_config_object():
    class Config:
        hidden = 4
        act = "relu"

    class M(nn.Module):
        def __init__(self, cfg):
            super().__init__()
            self.cfg = cfg
            self.l = nn.Linear(cfg.hidden, cfg.hidden)
            self.act = {"relu": F.relu, "tanh": torch.tanh}[cfg.act]

        def forward(self, x):
            return self.act(self.l(x)) * self.cfg.hidden

    return seeded(lambda: M(Config()))
