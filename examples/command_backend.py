#!/usr/bin/env python3
"""A compiler outside of torch: reads a graph and its inputs, computes the outputs, with Python's standard library alone.

    cutaway run BUNDLE --backend 'command:examples/command_backend.py {bundle}' --accuracy --trust

docs/formats/command_backend.md is the protocol. It knows a few operators on contiguous float tensors and says so when it
meets another. COMMAND_BUG=OPERATOR (aten.relu, say) makes that one wrong, and COMMAND_CRASH=OPERATOR deadly: something to
find with `cutaway minify`.
"""

import json
import math
import os
import re
import signal
import struct
import sys
from pathlib import Path

UNARY = {
    "aten.relu": lambda a: max(a, 0.0),
    "aten.tanh": math.tanh,
    "aten.sin": math.sin,
    "aten.exp": math.exp,
    "aten.neg": lambda a: -a,
}
BINARY = {
    "aten.add.Tensor": lambda a, b: a + b,
    "aten.mul.Tensor": lambda a, b: a * b,
    "aten.sub.Tensor": lambda a, b: a - b,
}
NODE = re.compile(r"%([\w.]+): (\S+) = ([\w.]+)\((.*?)\)\s*(?:#.*)?$")


class Refused(Exception):
    pass


def read_inputs(bundle, names):
    """Name -> (sizes, elements)."""
    values = {}
    for name, entry in zip(names, json.loads((bundle / "manifest.json").read_text())["inputs"], strict=True):
        tensor = entry.get("tensor", {})
        if entry["kind"] != "data" or tensor.get("dtype") != "f32":
            raise Refused(f"input %{name}: only f32 tensors")
        count, expected = math.prod(tensor["sizes"]), 1
        for size, stride in reversed(list(zip(tensor["sizes"], tensor["strides"], strict=True))):
            if size != 1 and stride != expected:
                raise Refused(f"input %{name}: only contiguous tensors")
            expected *= size
        digest = tensor["storage"]
        data = (bundle / "blobs" / digest[:2] / digest).read_bytes()
        at = 4 * tensor.get("storage_offset", 0)
        values[name] = (tensor["sizes"], list(struct.unpack(f"<{count}f", data[at : at + 4 * count])))
    return values


def compute(op, arguments, values):
    operands = [values[a[1:]] for a in arguments if a.startswith("%")]
    if op in UNARY and len(arguments) == 1:
        sizes, elements = operands[0]
        result = [UNARY[op](a) for a in elements]
    elif op in BINARY and len(operands) == 2 and len(arguments) == 2 and operands[0][0] == operands[1][0]:
        sizes = operands[0][0]
        result = [BINARY[op](a, b) for a, b in zip(operands[0][1], operands[1][1], strict=True)]
    else:
        raise Refused(f"cannot lower {op}({', '.join(arguments)})")
    if os.environ.get("COMMAND_CRASH") == op:
        os.kill(os.getpid(), signal.SIGSEGV)
    return sizes, [a + 0.5 for a in result] if os.environ.get("COMMAND_BUG") == op else result


def main():
    bundle, output = Path(sys.argv[1]), Path(os.environ["CUTAWAY_OUTPUT"])
    head, _, body = (bundle / "graph.cut").read_text().partition(") {\n")
    lines = [line.strip() for line in body.splitlines()]
    values = read_inputs(bundle, re.findall(r"%([\w.]+):", head))
    for line in lines:
        if line.startswith("%"):
            node = NODE.match(
                re.sub(
                    r"(: \S+) (?:grad|strides\([^)]*\))",
                    r"\1",
                    re.sub(r"\[([\d, ]*)\]", lambda m: m[0].replace(" ", ""), line),
                )
            )
            if node is None:
                raise Refused(f"cannot read {line}")
            name, _, op, arguments = node.groups()
            values[name] = compute(op, [a.strip() for a in arguments.split(",")], values)
    results = re.findall(r"%([\w.]+)", next(line for line in lines if line.startswith("return")))
    outputs = []
    for i, name in enumerate(results):
        sizes, elements = values[name]
        (output / f"{i}.bin").write_bytes(struct.pack(f"<{len(elements)}f", *elements))
        outputs.append({"dtype": "f32", "sizes": sizes, "file": f"{i}.bin"})
    (output / "outputs.json").write_text(json.dumps({"version": 1, "outputs": outputs}))


if __name__ == "__main__":
    try:
        main()
    except Refused as e:
        print(e, file=sys.stderr)
        sys.exit(1)
