"""Programs: running graphs from Python, hooks, exceptions with notes, types found anew."""

import threading

import cutaway
import pytest
import torch
from cutaway import _native

LINEAR = """graph net(%x: f32[2, 4], %w: f32[4, 3] grad = param "w") {
  %h: f32[2, 3] grad = aten.mm(%x, %w)  # model.py:12 Net.forward
  %y: f32[2, 3] grad = aten.relu(%h)  # model.py:13 Net.forward
  return (%y)
}
"""


def program(text: str) -> cutaway.Program:
    return cutaway.Program(cutaway.Graph.parse(text))


def test_outputs_are_always_a_tuple():
    x, w = torch.randn(2, 4), torch.randn(4, 3)
    p = program(LINEAR)
    for _ in range(2):
        out = p(x, w)
        assert type(out) is tuple
        assert torch.equal(out[0], (x @ w).relu())
    assert torch.equal(p.run([x, w])[0], out[0])


def test_outputs_keep_the_form_of_the_graphs_return():
    out = program(
        'graph g(%x: f32[2]) { %y: f32[2] = aten.neg(%x) return ([%x, %y], (%y, 3, none), {"k": [1, 2.5, "s"]}) }'
    )(torch.ones(2))
    assert isinstance(out[0], list)
    assert isinstance(out[1], tuple)
    assert out[1][1:] == (3, None)
    assert out[2] == {"k": [1, 2.5, "s"]}


def test_graph_run_takes_and_empties_a_boxed_list():
    inputs = [torch.randn(2, 4), torch.randn(4, 3)]
    expected = (inputs[0] @ inputs[1]).relu()
    assert torch.equal(_native.graph_run(cutaway.Graph.parse(LINEAR), inputs, boxed=True)[0], expected)
    assert inputs == []


def test_gradients_flow_through():
    x, w = torch.randn(2, 4), torch.randn(4, 3, requires_grad=True)
    program(LINEAR)(x, w)[0].sum().backward()
    v = w.detach().clone().requires_grad_()
    (x @ v).relu().sum().backward()
    assert torch.equal(w.grad, v.grad)


def test_hooks_see_each_operator_and_may_replace_results():
    calls = []

    def before(position, node, arguments):
        calls.append(("before", position, node.split(" = ")[1], len(arguments)))

    def after(position, node, results):
        calls.append(("after", position, len(results)))
        return [torch.full_like(results[0], -1.0)] if position == 0 else None

    out = program(LINEAR).run([torch.randn(2, 4), torch.randn(4, 3)], before=before, after=after)
    assert torch.equal(out[0], torch.zeros(2, 3))
    assert calls == [
        ("before", 0, "aten.mm(%x, %w)", 2),
        ("after", 0, 1),
        ("before", 1, "aten.relu(%h)", 1),
        ("after", 1, 1),
    ]


def test_an_exception_in_a_hook_comes_out_as_it_is():
    def after(position, node, results):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        program(LINEAR).run([torch.randn(2, 4), torch.randn(4, 3)], after=after)


def test_a_hook_that_gives_too_few_results_is_refused():
    with pytest.raises(ValueError, match=r"a hook gave 0 results for aten\.mm, which has 1"):
        program(LINEAR).run([torch.randn(2, 4), torch.randn(4, 3)], after=lambda position, node, results: [])


def test_torchs_exceptions_keep_their_type_and_name_the_node_and_the_users_line():
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied") as e:
        program(LINEAR)(torch.randn(2, 5), torch.randn(4, 3))
    assert e.value.__notes__ == [
        "raised by op 0 of the graph: %h: f32[2, 3] grad = aten.mm(%x, %w), from model.py:12 in Net.forward"
    ]
    with pytest.raises(IndexError) as e:
        program("graph g(%x: f32[4]) { %y: f32[4] = aten.select.int(%x, 3, 0) return (%y) }")(torch.ones(4))
    assert "aten.select.int" in e.value.__notes__[0]


def test_an_exception_of_an_operator_written_in_python_keeps_its_type():
    with torch.library._scoped_library("cutaway_test", "DEF") as library:
        library.define("fails(Tensor x) -> Tensor")

        def fails(x):
            raise LookupError("from Python")

        library.impl("fails", fails, "CPU")
        p = program("graph g(%x: f32[4]) { %y: f32[4] = cutaway_test.fails(%x) return (%y) }")
        with pytest.raises(LookupError, match="from Python") as e:
            p(torch.ones(4))
        assert "op 0" in e.value.__notes__[0]


def test_a_wrong_number_of_inputs_is_said():
    with pytest.raises(ValueError, match="the graph takes 2 inputs, not 1"):
        program(LINEAR)(torch.ones(2))


def test_refusals_have_a_place():
    with pytest.raises(cutaway.Error) as e:
        program("graph g(%x: f32[4]) {\n  %y: f32[4] = aten.reluu(%x)\n  return (%y)\n}")
    assert str(e.value).startswith("<graph>:3:16: torch has no operator 'aten.reluu'")
    assert "aten.relu" in str(e.value)
    with pytest.raises(cutaway.Error, match=r"higher_order\.while_loop"):
        program("graph g(%x: f32[4]) { %y: f32[4] = higher_order.while_loop(%x) return (%y) }")


def test_threads_run_one_program_at_once():
    p = program(LINEAR)
    x, w = torch.randn(2, 4), torch.randn(4, 3)
    expected = p(x, w)[0]
    wrong = []

    def work():
        for _ in range(200):
            if not torch.equal(p(x, w)[0], expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_types_are_found_anew():
    text = """graph g(%x: f32[2, 8], %w: f32[8, 3] grad) {
  %y: f32[1] = call torch.f(%x, %w) {
    %h: f32[1] = aten.mm(%x, %w)
    %s: f32[1] = scope no_grad {
      %d: f32[1] = aten.neg(%h)
      %t: f32[1] = aten.t(%d)
      yield (%t)
    }
    yield (%s)
  }
  %n: none = aten.sym_size.int(%y, 0)
  [%a: f32[1], %b: f32[1]] = aten.split.Tensor(%y, 1, 1)
  return (%y, %a, %n)
}
"""
    typed = str(_native.infer_types(cutaway.Graph.parse(text)))
    assert "%h: f32[2, 3] grad = aten.mm" in typed
    assert "%d: f32[2, 3] = aten.neg" in typed
    assert "%t: f32[3, 2] strides(1, 3) = aten.t" in typed
    assert "%y: f32[3, 2] strides(1, 3) = call torch.f" in typed
    assert "%n: int = aten.sym_size.int" in typed
    assert "[%a: f32[3, 1] strides(1, 3), %b: f32[3, 1] strides(1, 3)] = aten.split" in typed


def test_types_that_depend_on_data_are_refused_with_their_place():
    with pytest.raises(cutaway.Error, match=r"<graph>:3:\d+: the types of aten\.nonzero's results cannot be found"):
        _native.infer_types(
            cutaway.Graph.parse("graph g(%x: f32[4]) {\n  %y: i64[4, 1] = aten.nonzero(%x)\n  return (%y)\n}")
        )
    with pytest.raises(cutaway.Error, match="symbolic size s0"):
        _native.infer_types(cutaway.Graph.parse("graph g(%x: f32[s0]) { return (%x) }"))


def test_forward_and_backward_of_a_graph():
    x, w = torch.randn(2, 4, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    graph = cutaway.Graph.parse(LINEAR)
    results = _native.graph_run_fwd_maybe_bwd(graph, [x, w])
    assert x.grad is None
    assert w.grad is None
    outputs, loss, parameter_gradients, parameters, buffers, input_gradients = results
    out = (x @ w).relu()
    (out.sum() / out.numel()).backward()
    assert torch.equal(outputs[0], out)
    assert loss is None
    assert torch.allclose(parameter_gradients[0], w.grad)
    assert torch.equal(parameters[0], w)
    assert buffers == ()
    assert torch.allclose(input_gradients[0], x.grad)
    assert torch.equal(_native.graph_run_fwd_maybe_bwd(graph, [x, w], only_fwd=True)[0], out)
