"""Print + parse of the BERT graph, side by side with torch.fx's own way to write a graph down and get it back.

fx has no reader for what print_readable writes: the peer prints the module and traces the program again with make_fx.
"""

import cutaway
import torch
from side_by_side import compare, finish
from torch.fx.experimental.proxy_tensor import make_fx


def bert(layers: int):
    import transformers

    config = transformers.BertConfig(
        num_hidden_layers=layers, hidden_size=128, num_attention_heads=2, intermediate_size=256, vocab_size=1000
    )
    model = transformers.BertModel(config).eval()
    ids = torch.randint(0, 1000, (2, 16))
    return (lambda ids: model(input_ids=ids).last_hidden_state), ids


with torch.no_grad():
    for layers in (2, 12):
        function, ids = bert(layers)
        traced = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(ids)
        graph = cutaway.Graph.from_fx(traced, (ids,))

        def ours(graph=graph):
            return cutaway.Graph.parse(str(graph))

        def peer(traced=traced, function=function, ids=ids):
            traced.print_readable(print_output=False)
            return make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(ids)

        nodes = len(graph.nodes)
        compare(
            f"print + parse of BERT with {layers} layers ({nodes} nodes)",
            ours,
            peer,
            peer_name="print_readable + make_fx",
        )
finish()
