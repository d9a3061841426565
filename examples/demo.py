"""What the core does, on a small real model: import, save, run, perturb one operator, compare.

Nothing is downloaded: the model is a 2-layer BERT of transformers, built from a configuration with random weights.
"""

import tempfile
from pathlib import Path

import cutaway
import torch
import transformers


def build_model() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=128, vocab_size=500
    )
    inputs = {"input_ids": torch.randint(0, 500, (2, 16)), "attention_mask": torch.ones(2, 16, dtype=torch.long)}
    return transformers.BertModel(config).eval(), inputs


def main() -> None:
    model, inputs = build_model()
    with torch.no_grad():
        program = torch.export.export(model, (), inputs)
        graph = cutaway.Graph.from_export(program)
        print(f"imported   {graph.name}: {len(graph.nodes)} nodes, {len(graph.inputs)} inputs, digest {graph.digest()}")
        print("           " + str(graph.nodes[20]))

        folder = Path(tempfile.mkdtemp(prefix="cutaway-demo-")) / "bert"
        cutaway.save(folder, graph, list(inputs.values()))
        print(f"saved      {folder}")

        bundle = cutaway.load(folder)
        run = cutaway.Program(bundle.graph)
        outputs = run(*bundle.inputs)
        eager = model(**inputs)
        print(f"run        bit for bit as eager: {torch.equal(outputs[0], eager.last_hidden_state)}")

        gelu = next(i for i, node in enumerate(bundle.graph.nodes) if node.target == "aten.gelu")

        def perturb(position: int, node: object, results: list[object]) -> list[object] | None:
            return [results[0] * 1.001] if position == gelu else None  # type: ignore[operator]

        wrong = run.run(list(bundle.inputs), after=perturb)
        fp64 = cutaway.Program(cutaway.cast_to_fp64(bundle.graph))(*cutaway.cast_to_fp64(bundle.inputs))
        print(f"perturbed  node {gelu}: {bundle.graph.nodes[gelu]}, its result times 1.001\n")
        print(cutaway.same(outputs, wrong, fp64, tol=1e-4))
    print(f"\nnext       cutaway show {folder}")


if __name__ == "__main__":
    main()
