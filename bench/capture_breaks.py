"""How many graphs programs with hard breaks take, and how many operators are in them: cutaway.compile beside Dynamo, as it is by default and
with nested_graph_breaks. The programs are those of tests/programs/area_breaks.py. Counts, not times.
"""

import contextlib
import io
import logging
import os
import pathlib
import sys
import warnings

os.environ.setdefault("CUTAWAY_LOGS", "error")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import cutaway  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402

from tests.support import registry  # noqa: E402
from tests.support.capture_cases import Counter  # noqa: E402


def count(compile_function, program):
    counter = Counter()
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            compile_function(program.make(), backend=counter)(*program.args(0))
        except Exception as error:
            return type(error).__name__, 0, 0
    return f"{counter.frame_count} graphs, {counter.op_count} operators", counter.frame_count, counter.op_count


def main():
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    totals = [[0, 0, 0] for _ in range(3)]
    print(f"{'program':36} {'cutaway':26} {'Dynamo':26} Dynamo, nested breaks")
    for name, program in registry.load(["area_breaks"]).items():
        row = []
        for i, nested in enumerate((None, False, True)):
            torch._dynamo.reset()
            cutaway.reset()
            if nested is None:
                text, graphs, operators = count(cutaway.compile, program)
            else:
                with torch._dynamo.config.patch(nested_graph_breaks=nested):
                    text, graphs, operators = count(torch.compile, program)
            row.append(text)
            totals[i][0] += graphs
            totals[i][1] += operators
            totals[i][2] += not graphs
        print(f"{name:36} {row[0]:26} {row[1]:26} {row[2]}")
    for name, (graphs, operators, without) in zip(("cutaway", "Dynamo", "Dynamo, nested breaks"), totals, strict=True):
        print(f"{name}: {graphs} graphs with {operators} operators; {without} programs without a graph")


if __name__ == "__main__":
    main()
