"""Bundles from strangers: reading one executes nothing; what would do more than compute is refused, by name."""

import json
import shutil

import cutaway
import pytest
import torch

from tests.support.bundles import write_bundle

GRAPH = "graph g(%x: f32[2, 3]) {\n  %y: f32[2, 3] = aten.relu(%x)\n  return (%y)\n}\n"


@pytest.fixture
def bundle(tmp_path):
    return write_bundle(
        tmp_path / "bundle", cutaway.Graph.parse(GRAPH), [torch.ones(2, 3)], backend="fault:crash:aten.relu"
    )


def change(bundle, **fields):
    file = bundle / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def change_graph(bundle, text):
    """A graph that the manifest vouches for, as a stranger would write it."""
    (bundle / "graph.cut").write_text(text)
    change(bundle, graph={"digest": cutaway.Graph.parse(text).digest()})


FROM_FILE = """graph g(%x: f32[2, 3]) {
  %y: f32[6] = aten.from_file("SECRET", none, 6)
  return (%y)
}
"""


# What needs --trust: the change, and words of the refusal.
RISKS = {
    "compiler": (lambda b: change(b, options={"cpp.cxx": ["/tmp/evil"]}), "cpp.cxx"),
    "command_option": (lambda b: change(b, options={"aot_inductor.compile_wrapper": "/tmp/evil"}), "/tmp/evil"),
    "from_file": (lambda b: change_graph(b, FROM_FILE), "aten.from_file"),
    "import": (lambda b: change(b, libraries=["evil_module"]), "evil_module"),
    "backend": (lambda b: change(b, backend="python:evil_module:compile"), "python:evil_module:compile"),
    "backend_source": (lambda b: change(b, extra={"backend_source": "open('/tmp/x', 'w')"}), "source text"),
    "environment": (lambda b: change(b, environment={"LD_PRELOAD": "/tmp/evil.so"}), "LD_PRELOAD"),
}


@pytest.mark.parametrize("risk", RISKS)
def test_what_is_more_than_arithmetic_needs_trust(ask, bundle, tmp_path, risk):
    edit, words = RISKS[risk]
    edit(bundle)
    shown = ask("show", bundle)
    assert shown.code == 0, shown.err
    for command in ("run", "minify"):
        refused = ask(command, bundle, "--json")
        assert refused.code == 2 and refused.json["outcome"] == "error"
        assert words in refused.err and "--trust" in refused.err
    assert not (tmp_path / "bundle-minimal").exists() and not (tmp_path / "bundle-minimal.work").exists()


def test_trust_says_first_what_will_run(ask, bundle, tmp_path):
    change(bundle, environment={"CUTAWAY_TEST_VARIABLE": "1"}, extra={"python_path": ["/somewhere/of/theirs"]})
    for words in (["run", bundle], ["minify", bundle, "-o", tmp_path / "out"], ["analyze", bundle]):
        answer = ask(*words, "--trust")
        assert answer.code == (1 if words[0] == "run" else 0), answer.err
        first = [line for line in answer.err.splitlines() if line.startswith("--trust: ")]
        assert (
            answer.err.startswith("--trust: ")
            and "CUTAWAY_TEST_VARIABLE" in first[0]
            and "/somewhere/of/theirs" in first[1]
        )


def enlarge(bundle, **tensor):
    file = bundle / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["inputs"][0]["tensor"].update(tensor)
    file.write_text(json.dumps(manifest))


def leave_directory(bundle):
    blob = next((bundle / "blobs").rglob("*.blob"), None) or next(
        p for p in (bundle / "blobs").rglob("*") if p.is_file()
    )
    outside = bundle.parent / "outside"
    shutil.move(blob, outside)
    blob.symlink_to(outside)


def truncate_blob(bundle):
    blob = next(p for p in (bundle / "blobs").rglob("*") if p.is_file())
    blob.write_bytes(blob.read_bytes()[:-5])


# What cannot be read at all: the change, and words of the message.
BROKEN = {
    "link_out_of_the_directory": (leave_directory, "link"),
    "digest_that_is_a_path": (lambda b: enlarge(b, storage="../../../../etc/passwd"), "storage"),
    "sizes_that_overflow": (lambda b: enlarge(b, sizes=[2**62, 2**62]), "sizes"),
    "negative_size": (lambda b: enlarge(b, sizes=[-2, 3]), "sizes"),
    "offset_outside": (lambda b: enlarge(b, storage_offset=10**6), "storage"),
    "too_many_bytes": (lambda b: enlarge(b, storage_bytes=2**60), "storage_bytes"),
    "version": (lambda b: change(b, version=99), "version"),
    "unknown_field": (lambda b: change(b, run_me="rm"), "run_me"),
    "another_graph": (lambda b: change(b, graph={"digest": "0" * 32}), "digest"),
    "truncated_blob": (truncate_blob, "blob"),
    "deep_json": (lambda b: (b / "manifest.json").write_text("[" * 100_000), "deep"),
    "not_json": (lambda b: (b / "manifest.json").write_text("{"), "manifest.json"),
    "deep_graph": (lambda b: (b / "graph.cut").write_text("graph g() {\n  return (" + "[" * 200_000), "graph.cut"),
    "cut_graph": (lambda b: (b / "graph.cut").write_text(GRAPH[:60]), "graph.cut"),
    "billion_values": (lambda b: (b / "graph.cut").write_text(GRAPH.replace("2, 3", f"{10**18}, {10**18}")), "graph"),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_what_cannot_be_read_is_refused_with_its_place(ask, bundle, broken):
    edit, words = BROKEN[broken]
    edit(bundle)
    for command in ("run", "minify", "show"):
        answer = ask(command, bundle, limit=60)
        if command == "show" and broken == "truncated_blob":
            continue  # reads no blob
        assert answer.code == 2, (command, answer.out, answer.err)
        assert words in answer.err and "Traceback" not in answer.err


def test_many_nodes_are_read_in_bounded_time(ask, bundle):
    nodes = "".join(f"  %v{i}: f32[2, 3] = aten.relu(%{'x' if i == 0 else f'v{i - 1}'})\n" for i in range(200_000))
    (bundle / "graph.cut").write_text("graph g(%x: f32[2, 3]) {\n" + nodes + "  return (%v199999)\n}\n")
    answer = ask("diff", bundle / "graph.cut", bundle / "graph.cut", limit=120)
    assert answer.code == 0, answer.err
