"""Removes what a failing program does not need: statements, declarations, branches, then calls and inputs.

The question is asked in a process of its own (a failure may be a crash), and a candidate counts only if it fails in the same way:
the same verdict, and the same kind of place (an exception's type, a result, an argument, a printed line).
"""

import ast
import re


def kind_of(place, eager, compiled):
    """What makes two failures the same one: where they differ, without numbers and data."""
    head = [re.split(r"[\[.:( ]", line, maxsplit=1)[0] for line in (eager, compiled)]
    error = re.search(r"raised: ([\w.]+)", compiled)
    return (re.sub(r"\d+", "", place.split("(")[0]), *head, error[1] if error and "raised" not in eager else "")


def bodies(tree):
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody", "handlers"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], (ast.stmt, ast.ExceptHandler)):
                yield node, field, body


def candidates(text):
    """Smaller programs, the largest removals first."""
    tree = ast.parse(text)
    places = [(id_, node, field) for id_, (node, field, body) in enumerate(bodies(tree))]
    for id_, _, _ in places:
        size = len(list(bodies(tree))[id_][2])
        width = size
        while width:
            for start in range(0, size, width):
                copy = ast.parse(text)
                node, field, body = list(bodies(copy))[id_]
                if isinstance(node, ast.Module) and any(
                    getattr(s, "name", "") in ("fn", "inputs", "between") for s in body[start : start + width]
                ):
                    continue
                del body[start : start + width]
                if not body and field == "body" and not isinstance(node, ast.Module):
                    body.append(ast.Pass())
                yield ast.unparse(ast.fix_missing_locations(copy))
            width //= 2
    for id_, _, _ in places:  # a compound statement becomes its body
        for i, statement in enumerate(list(bodies(tree))[id_][2]):
            if isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
                copy = ast.parse(text)
                _, _, body = list(bodies(copy))[id_]
                body[i : i + 1] = body[i].body
                yield ast.unparse(ast.fix_missing_locations(copy))
    expressions = [
        n
        for n in ast.walk(tree)
        if isinstance(n, (ast.Call, ast.BinOp, ast.IfExp, ast.Subscript, ast.Tuple, ast.List, ast.Dict))
    ]
    for i in range(len(expressions)):  # an expression becomes one of its operands
        for j in range(3):
            copy = ast.parse(text)
            found = [
                n
                for n in ast.walk(copy)
                if isinstance(n, type(expressions[i])) and ast.dump(n) == ast.dump(expressions[i])
            ]
            operands = [n for n in ast.iter_child_nodes(found[0]) if isinstance(n, ast.expr)] if found else []
            if j < len(operands):
                yield ast.unparse(ast.fix_missing_locations(Replace(found[0], operands[j]).visit(copy)))


class Replace(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def minimise(text, fails, limit=400):
    """`fails(text)` tells whether it still fails in the same way. Asks at most `limit` questions."""
    asked = 0
    smaller = True
    while smaller and asked < limit:
        smaller = False
        for candidate in candidates(text):
            if len(candidate) >= len(text) or asked >= limit:
                continue
            asked += 1
            if fails(candidate):
                text, smaller = candidate, True
                break
    return text
