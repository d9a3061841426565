# ruff: noqa
"""Features of nn.Module that libraries lean on: parametrisations, lazy layers, global hooks, copies, recurrent layers, fast paths."""

import copy

import torch
import torch.nn.functional as F
from tests.support.registry import built, program, seeded, tensor
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)

    def right_inverse(self, w):
        return w.triu()


@built
def parametrized_own():
    m = seeded(lambda: nn.Linear(4, 4))
    parametrize.register_parametrization(m, "weight", Symmetric())
    return m


@built
def parametrized_cached():
    m = seeded(lambda: nn.Linear(4, 4))
    parametrize.register_parametrization(m, "weight", Symmetric())

    def f(x):
        with parametrize.cached():
            return m(m(x))

    return f


@built(graphs=3, breaks=True)
def parametrized_assigned():
    m = seeded(lambda: nn.Linear(4, 4))
    parametrize.register_parametrization(m, "weight", Symmetric())

    def f(x):
        m.weight = torch.eye(4)
        return m(x), parametrize.is_parametrized(m)

    return f


@built
def weight_norm_new():
    return parametrizations.weight_norm(seeded(lambda: nn.Linear(4, 3)))


@built
def weight_norm_old():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.utils.weight_norm(seeded(lambda: nn.Linear(4, 3)))


@built
def spectral_norm_new():
    return seeded(lambda: parametrizations.spectral_norm(nn.Linear(4, 3)))


@built
def spectral_norm_new_eval():
    return seeded(lambda: parametrizations.spectral_norm(nn.Linear(4, 3))).eval()


@built
def spectral_norm_old():
    return seeded(lambda: nn.utils.spectral_norm(nn.Linear(4, 3)))


@built
def orthogonal():
    return seeded(lambda: parametrizations.orthogonal(nn.Linear(4, 4)))


@built
def lazy_convolution():
    torch.manual_seed(0)
    return nn.Sequential(nn.LazyConv1d(2, 2), nn.LazyBatchNorm1d(), nn.ReLU())


@built
def lazy_inside_block():
    torch.manual_seed(0)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.LazyLinear(3)

        def forward(self, x):
            return self.l(x) * 2

    return M()


@built
def stateless_call():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        return torch.nn.utils.stateless._reparametrize_module, torch.func.functional_call(
            m, {"weight": torch.ones(3, 4)}, (x,)
        )[0]

    return lambda x: f(x)[1]


@built
def functional_call_tied():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    m = seeded(M)
    return lambda x: torch.func.functional_call(m, {"a.weight": torch.eye(4)}, x)


@built
def functional_call_two():
    m = seeded(lambda: nn.BatchNorm1d(4))

    def f(x):
        p, b = dict(m.named_parameters()), dict(m.named_buffers())
        return torch.func.functional_call(m, (p, b), (x,)), m.running_mean.clone()

    return f


@built
def stacked_modules():
    models = [seeded(lambda: nn.Linear(4, 3)) for _ in range(2)]
    base = copy.deepcopy(models[0]).to("meta")

    def f(x):
        params, buffers = torch.func.stack_module_state(models)
        return torch.vmap(lambda p, b, t: torch.func.functional_call(base, (p, b), (t,)), in_dims=(0, 0, None))(
            params, buffers, x
        )

    return f


@built(graphs=2)
def parameter_list_grows():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.ParameterList([nn.Parameter(torch.ones(4))])

        def forward(self, x):
            if len(self.p) < 2:
                self.p.append(nn.Parameter(torch.ones(4) * 2))
            return sum(x * p for p in self.p)

    return M()


@built
def parameter_dict():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.ParameterDict({"a": nn.Parameter(torch.ones(4)), "b": nn.Parameter(torch.ones(4) * 2)})

        def forward(self, x):
            out = {k: x * v for k, v in self.p.items()}
            return out, "a" in self.p, list(self.p.keys()), self.p["b"] + self.p.a

    return M()


@built(graphs=3)
def global_forward_hook():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU()))

    def f(x):
        h = torch.nn.modules.module.register_module_forward_hook(lambda mod, args, out: out * 2)
        try:
            return m(x)
        finally:
            h.remove()

    return f


@built(graphs=3)
def forward_hook_inside():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU()))

    def f(x):
        seen = []
        h = m[0].register_forward_hook(lambda mod, args, out: seen.append(out))
        y = m(x)
        h.remove()
        return y, seen

    return f


@built(graphs=2)
def feature_extractor():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
    features = {}
    for name, sub in m.named_modules():
        sub.register_forward_hook(lambda mod, args, out, name=name: features.__setitem__(name, out))

    def f(x):
        features.clear()
        m(x)
        return dict(features)

    return f


@built
def pre_hook_with_kwargs():
    m = seeded(lambda: nn.Linear(4, 3))
    m.register_forward_pre_hook(lambda mod, args, kwargs: ((args[0] * 2,), kwargs), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: None, always_call=True)
    return m


@built(graphs=2)
def moved_inside():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        m.to(torch.float32)
        m.eval()
        y = m(x)
        m.train()
        return y, m.training

    return f


@built(graphs=2)
def doubled_inside():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        return m.double()(x.double()), m.weight.dtype

    return f


@built(graphs=3)
def half_and_back():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        m.to(torch.bfloat16)
        y = m(x.bfloat16()).float()
        m.float()
        return y

    return f


@built
def frozen_inside():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        m.requires_grad_(False)
        y = m(x)
        m.requires_grad_(True)
        return y, y.requires_grad

    return f


@built(graphs=2)
def zeroed_inside():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        m.zero_grad(set_to_none=True)
        return m(x).sum(), m.weight.grad is None

    return f


@built
def walks_everything():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 2))))

    def f(x):
        names = (
            [n for n, _ in m.named_parameters()] + [n for n, _ in m.named_buffers()] + [n for n, _ in m.named_modules()]
        )
        total = sum(p.numel() for p in m.parameters()), sum(b.numel() for b in m.buffers())
        norm = torch.stack([p.norm() for p in m.parameters()]).sum()
        return m(x), names, total, norm, [type(c).__name__ for c in m.children()]

    return f


@built
def state_read_and_loaded():
    a, b = seeded(lambda: nn.Linear(4, 3)), nn.Linear(4, 3)

    def f(x):
        s = a.state_dict()
        b.load_state_dict(s)
        return b(x), list(s)

    return f


@built(breaks=True)
def copied_inside():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        n = copy.deepcopy(m)
        return n(x) + m(x)

    return f


@built
def clip_norm():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        for p in m.parameters():
            p.grad = torch.ones_like(p)
        total = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        return total, m.weight.grad.clone(), x

    return f


@built
def clip_norm_not_foreach():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        for p in m.parameters():
            p.grad = torch.ones_like(p)
        total = nn.utils.clip_grad_norm_(list(m.parameters()), 1.0, norm_type="inf", foreach=False)
        return total, nn.utils.get_total_norm([p.grad for p in m.parameters()]), x

    return f


@built
def vector_of_parameters():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x):
        v = nn.utils.parameters_to_vector(m.parameters())
        return v * 2, m(x)

    return f


@built
def lstm_two_layers():
    m = seeded(lambda: nn.LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True))
    return lambda x: m(x[None])


@built
def gru_with_state():
    m = seeded(lambda: nn.GRU(4, 3))
    return lambda x: m(x[:, None], torch.ones(1, 1, 3))


@built
def rnn_cell_loop():
    m = seeded(lambda: nn.LSTMCell(4, 3))

    def f(x):
        h = c = torch.zeros(1, 3)
        for row in x:
            h, c = m(row[None], (h, c))
        return h, c

    return f


@built(graphs=3, breaks=True)
def packed_sequence():
    m = seeded(lambda: nn.GRU(4, 3, batch_first=True))

    def f(x):
        p = nn.utils.rnn.pack_padded_sequence(torch.stack([x, x]), torch.tensor([3, 2]), batch_first=True)
        out, h = m(p)
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0], h

    return f


@program
def padded_sequences(x):
    return nn.utils.rnn.pad_sequence([x[0, :2], x[1], x[2, :3]], batch_first=True, padding_value=-1.0)


@built
def multihead_causal():
    m = seeded(lambda: nn.MultiheadAttention(4, 2, batch_first=True))

    def f(x):
        mask = nn.Transformer.generate_square_subsequent_mask(3)
        return m(x[None], x[None], x[None], attn_mask=mask, is_causal=True)

    return f


@built
def multihead_fast():
    m = seeded(lambda: nn.MultiheadAttention(4, 2, batch_first=True)).eval()

    def f(x):
        with torch.no_grad():
            return m(x[None], x[None], x[None], need_weights=False)[0]

    return f


@built
def encoder_fast():
    m = seeded(
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2, enable_nested_tensor=False
        )
    ).eval()

    def f(x):
        with torch.no_grad():
            return m(x[None])

    return f


@built
def encoder_training():
    return seeded(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), 2))


@built
def decoder():
    m = seeded(lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, dropout=0.1), 1))
    return lambda x: m(x[:, None], x[:, None], tgt_is_causal=False)


@built(breaks=True)
def fused_conv():
    torch.manual_seed(0)
    conv, bn = nn.Conv1d(3, 2, 2).eval(), nn.BatchNorm1d(2).eval()

    def f(x):
        return nn.utils.fusion.fuse_conv_bn_eval(conv, bn)(x[None])

    return f


@built
def quantisation_stubs():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.q = torch.ao.quantization.QuantStub()
                self.l = nn.Linear(4, 2)
                self.d = torch.ao.quantization.DeQuantStub()

            def forward(self, x):
                return self.d(self.l(self.q(x)))

        return seeded(M)


@built
def pruned():
    m = seeded(lambda: nn.Linear(4, 3))
    prune.l1_unstructured(m, "weight", 4)
    return m


@built
def embedding_bag():
    m = seeded(lambda: nn.EmbeddingBag(5, 3, mode="mean"))
    return lambda x: m(torch.tensor([0, 2, 4, 1]), torch.tensor([0, 2])) + x.sum()


@built
def embedding_renormalised():
    m = seeded(lambda: nn.Embedding(5, 3, max_norm=1.0, padding_idx=0))
    return lambda x: m(torch.tensor([0, 2, 4, 1])) + x.sum()


@built
def adaptive_softmax():
    m = seeded(lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6]))
    return lambda x: m.log_prob(x)


@built
def losses():
    ce, kl, tri, ctc = (
        nn.CrossEntropyLoss(label_smoothing=0.1),
        nn.KLDivLoss(reduction="batchmean"),
        nn.TripletMarginLoss(),
        nn.HuberLoss(),
    )

    def f(x):
        t = torch.tensor([0, 1, 2])
        return ce(x, t), kl(x.log_softmax(-1), x.softmax(-1)), tri(x, x + 1, x - 1), ctc(x, x * 2)

    return f


@built
def sync_of_lists():
    m = seeded(lambda: nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)]))

    def f(x):
        for i, layer in enumerate(m):
            x = layer(x) + i
        return x, len(m), m[-1](x), m[:1][0](x), [type(l).__name__ for l in reversed(m)]

    return f


@built
def module_with_slots_of_state():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros((), dtype=torch.long), persistent=False)
            self.register_parameter("missing", None)
            self.last = None

        def forward(self, x):
            self.steps += 1
            self.last = x.detach() * self.steps
            return x if self.missing is None else x * self.missing, self.last

    return M()


@built
def module_getattr_buffers():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            for i in range(2):
                self.register_buffer(f"b{i}", torch.full((4,), float(i)))

        def forward(self, x):
            for i in range(2):
                x = x + getattr(self, f"b{i}")
                setattr(self, f"b{i}", x.sum(0).detach())
            return x

    return M()


@built(graphs=2)
def add_module_inside():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            if not hasattr(self, "extra"):
                self.add_module("extra", nn.Identity())
            return self.extra(x) * 2

    return M()


@built(graphs=8, breaks=True)
def swa_averaged():
    m = seeded(lambda: nn.Linear(4, 3))
    a = torch.optim.swa_utils.AveragedModel(m)

    def f(x):
        a.update_parameters(m)
        return a(x), a.n_averaged.clone()

    return f


@built(graphs=8, breaks=True)
def ema_averaged():
    m = seeded(lambda: nn.Linear(4, 3))
    a = torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))

    def f(x):
        a.update_parameters(m)
        return a(x)

    return f


@built(graphs=2)
def sequential_changed():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 4)))

    def f(x):
        if len(m) < 2:
            m.append(nn.ReLU())
        return m(x)

    return f


@built
def data_parallel_like():
    m = seeded(lambda: nn.Linear(4, 3))

    class Wrap(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = m

        def forward(self, *a, **k):
            return self.module(*a, **k)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

    w = Wrap()
    return lambda x: w(x) + w.in_features + w.bias


@built(graphs=2)
def encoder_with_padding():
    """In eager padded places of an encoder that is not trained are zero."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    mask = torch.tensor([[False, False, True], [False, True, True]])

    def f(x):
        with torch.no_grad():
            return encoder(x.view(1, 3, 4).repeat(2, 1, 2), src_key_padding_mask=mask)

    return f
