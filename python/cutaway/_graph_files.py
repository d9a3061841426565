"""A captured graph as files of the debug directory: readable as fx prints it, runnable with torch alone."""

from __future__ import annotations

from typing import Any

from ._native import Error, Graph
from ._native import debug as _debug


def keep(graph: Graph, examples: list[Any], name: str) -> None:
    """Writes those files that the debug directory keeps."""
    if _debug.keeps_file("fx_graph_readable"):
        text = graph.to_fx().print_readable(print_output=False)
        _debug.keep_artifact("capture", name, "fx_graph_readable.py", text)
    if _debug.keeps_file("fx_graph_runnable"):
        try:
            text = graph.to_python(examples)
        except Error as error:
            text = "# This graph has no form as a script.\n" + "".join(
                f"# {line}\n" for line in str(error).splitlines()
            )
        _debug.keep_artifact("capture", name, "fx_graph_runnable.py", text)
