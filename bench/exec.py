"""Running a graph of 1,000 tiny operators: Program against fx.Interpreter and against the code that fx generates.

The same operators on the same tensors of four elements, so that what is measured is the cost around each operator. The
fx graph exists twice: with the dispatcher's operators (torch.ops.aten.*, as make_fx and torch.export give it) and with
torch's functions (torch.add, as symbolic tracing gives it), whose Python bindings are faster.
"""

import cutaway
import torch
from side_by_side import compare, finish

STEPS = [  # operator, its dispatcher name, torch's function, second argument
    ("aten.add.Tensor", torch.ops.aten.add.Tensor, torch.add, "%x"),
    ("aten.relu", torch.ops.aten.relu.default, torch.relu, None),
    ("aten.mul.Tensor", torch.ops.aten.mul.Tensor, torch.mul, "%x"),
    ("aten.neg", torch.ops.aten.neg.default, torch.neg, None),
]


def build(count: int) -> tuple[cutaway.Graph, torch.fx.GraphModule, torch.fx.GraphModule]:
    lines = ["graph tiny(%x: f32[4]) {"]
    by_ops, by_functions = torch.fx.Graph(), torch.fx.Graph()
    ops_x = ops_last = by_ops.placeholder("x")
    functions_x = functions_last = by_functions.placeholder("x")
    last = "%x"
    for i in range(count):
        name, op, function, second = STEPS[i % len(STEPS)]
        lines.append(f"  %v{i}: f32[4] = {name}({last}{', ' + second if second else ''})")
        last = f"%v{i}"
        ops_last = by_ops.call_function(op, (ops_last, ops_x) if second else (ops_last,))
        functions_last = by_functions.call_function(
            function, (functions_last, functions_x) if second else (functions_last,)
        )
    lines += [f"  return ({last})", "}"]
    by_ops.output((ops_last,))
    by_functions.output((functions_last,))
    module = torch.nn.Module()
    return (
        cutaway.Graph.parse("\n".join(lines)),
        torch.fx.GraphModule(module, by_ops),
        torch.fx.GraphModule(module, by_functions),
    )


def main() -> None:
    torch.set_num_threads(1)
    graph, by_ops, by_functions = build(1000)
    program = cutaway.Program(graph)
    interpreter = torch.fx.Interpreter(by_ops)
    x = torch.tensor([0.5, -0.25, 0.125, 1.0])
    expected = by_ops(x)[0]
    for got in (program(x), interpreter.run(x), by_functions(x)):
        if not torch.equal(got[0], expected):
            raise SystemExit("the sides disagree: nothing to compare")
    compare(
        "1,000 tiny operators, no grad needed",
        lambda: program(x),
        lambda: interpreter.run(x),
        peer_name="fx.Interpreter",
        repeat=15,
        at_least=5,
    )
    compare(
        "1,000 tiny operators against generated code",
        lambda: program(x),
        lambda: by_ops(x),
        peer_name="GraphModule.forward (torch.ops)",
        repeat=15,
        at_least=1,
    )
    compare(
        "1,000 tiny operators against generated code of functions",
        lambda: program(x),
        lambda: by_functions(x),
        peer_name="GraphModule.forward (torch.*)",
        repeat=15,
        at_least=1,
    )
    w = x.clone().requires_grad_()
    compare(
        "1,000 tiny operators with autograd",
        lambda: program(w),
        lambda: interpreter.run(w),
        peer_name="fx.Interpreter",
        repeat=15,
        note="forward only, history recorded",
    )
    compare(
        "preparing 1,000 operators",
        lambda: cutaway.Program(graph),
        lambda: by_ops.recompile(),
        peer_name="GraphModule.recompile",
        repeat=15,
    )
    finish()


if __name__ == "__main__":
    main()
