"""`cutaway sweep`: many graphs, many backends, each failure cut down and told once; a sweep that was killed goes on."""

import json
import random
import signal
import subprocess
import time

import cutaway
import pytest
import torch

from tests.support.bundles import write_bundle
from tests.support.patience import PATIENCE_S

WRONG_RELU = "fault:wrong:aten.relu:by=0.5"


class Small(torch.nn.Module):
    def __init__(self, last):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 5), last

    def forward(self, x):
        return self.last(self.first(x)).sum(1)


@pytest.fixture
def folder(tmp_path):
    """Three bundles; a fault in relu shows in two of them."""
    torch.manual_seed(0)
    for name, last in (
        ("relu", torch.nn.ReLU()),
        ("tanh", torch.nn.Tanh()),
        ("both", torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU())),
    ):
        program = torch.export.export(Small(last), (torch.ones(4, 6),))
        write_bundle(tmp_path / "all" / name, cutaway.Graph.from_export(program), [torch.randn(4, 6)])
    return tmp_path / "all"


def outcomes(answer):
    return {(c["subject"].rsplit("/", 1)[-1], c["backend"]): c["outcome"] for c in answer["cells"]}


def test_a_fault_is_found_where_it_is_and_told_once(ask, folder, tmp_path):
    out = tmp_path / "out"
    answer = ask("sweep", folder, "--backends", f"eager,{WRONG_RELU}", "-o", out, "--json")
    assert answer.code == 1, answer.err
    assert outcomes(answer.json) == {
        ("relu", "eager"): "pass", ("tanh", "eager"): "pass", ("both", "eager"): "pass",
        ("relu", WRONG_RELU): "failure", ("tanh", WRONG_RELU): "pass", ("both", WRONG_RELU): "failure",
    }  # fmt: skip
    (failure,) = answer.json["failures"]
    assert failure["nodes"] == 1 and failure["verified"] and "aten.relu" in failure["graph"]
    assert len(failure["cells"]) == 2
    assert ask("run", failure["bundle"]).code == 1
    page = (out / "sweep.html").read_text()
    assert (
        "1 distinct failure in 2 cells" in page
        and "aten.relu" in page
        and str(tmp_path) not in page.split("<pre>")[1].split("</pre>")[0]
    )
    assert json.loads((out / "sweep.json").read_text())["cells"] == answer.json["cells"]


def test_nothing_fails(ask, folder, tmp_path):
    answer = ask("sweep", folder, "--backends", "eager,aot_eager", "-o", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert "6 pass, 0 fail" in answer.out


def test_exceptions_are_one_failure_by_their_message(ask, folder, tmp_path):
    answer = ask("sweep", folder, "--backends", "fault:exception:aten.linear", "-o", tmp_path / "out", "--json")
    assert answer.code == 1, answer.err
    (failure,) = answer.json["failures"]
    assert len(failure["cells"]) == 3 and failure["nodes"] == 1


def test_dtypes_batch_sizes_and_modes(ask, folder, tmp_path):
    answer = ask(
        "sweep", folder / "relu", "--backends", "aot_eager", "--dtypes", "recorded,bf16,f64", "--batch-sizes", "0,3,9", "--modes", "inference,training",
        "-o", tmp_path / "out", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    cells = answer.json["cells"]
    assert len(cells) == 18 and {c["outcome"] for c in cells} == {"pass"}, cells
    assert {(c["dtype"], c["batch"], c["mode"]) for c in cells} >= {
        ("bf16", 9, "training"),
        ("recorded", 0, "inference"),
    }


def test_a_form_that_a_graph_does_not_have(ask, tmp_path):
    program = torch.export.export(Small(torch.nn.ReLU()).requires_grad_(False), (torch.ones(1, 6),))
    write_bundle(tmp_path / "one", cutaway.Graph.from_export(program), [torch.randn(1, 6)])
    answer = ask(
        "sweep",
        tmp_path / "one",
        "--backends",
        "eager",
        "--batch-sizes",
        "0,4",
        "--modes",
        "training,inference",
        "-o",
        tmp_path / "out",
        "--json",
    )
    assert answer.code == 0, answer.err
    assert {(c["batch"], c["mode"]): c["outcome"] for c in answer.json["cells"]} == {
        (0, "training"): "unfit", (4, "training"): "unfit", (0, "inference"): "pass", (4, "inference"): "unfit",
    }  # fmt: skip
    reasons = {c["message"] for c in answer.json["cells"] if c["outcome"] == "unfit"}
    assert reasons == {"no input asks for gradients", "no user input has a leading size of 2 or more to vary"}


def test_random_graphs_pass_with_our_own_backends(ask, tmp_path):
    answer = ask(
        "sweep",
        "--random",
        40,
        "--seed",
        500,
        "--backends",
        "aot_eager,native",
        "-o",
        tmp_path / "out",
        "--json",
        limit=4 * PATIENCE_S,
    )
    assert answer.code == 0, answer.err + json.dumps(answer.json["failures"], indent=1)
    cells = answer.json["cells"]
    assert len(cells) == 80 and sum(c["outcome"] == "pass" for c in cells) >= 76, [
        c for c in cells if c["outcome"] != "pass"
    ]


def test_random_graphs_find_a_planted_fault(ask, tmp_path):
    answer = ask(
        "sweep", "--random", 30, "--backends", "fault:wrong:aten.sigmoid:by=0.5", "-o", tmp_path / "out", "--json"
    )
    assert answer.code == 1, answer.err
    assert all(f["nodes"] == 1 and "aten.sigmoid" in f["graph"] for f in answer.json["failures"])
    assert sum(len(f["cells"]) for f in answer.json["failures"]) == sum(
        c["outcome"] == "failure" for c in answer.json["cells"]
    )


def test_killed_and_resumed(command, ask, folder, tmp_path):
    """Ten kills at random moments; in the end every cell has the answer that an undisturbed sweep gives."""
    words = ["sweep", str(folder), "--random", "10", "--backends", f"eager,{WRONG_RELU}", "--json"]
    whole = ask(*words, "-o", tmp_path / "whole")
    assert whole.code == 1, whole.err
    moments = random.Random(7)
    out = tmp_path / "killed"
    for _ in range(10):
        run = subprocess.Popen(
            [command, *words, "-o", str(out), *(["--resume"] if (out / "sweep.jsonl").exists() else [])],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moments.uniform(0.02, 1.5))
        run.send_signal(signal.SIGKILL)
        run.wait()
    last = ask(*words, "-o", out, "--resume")
    assert last.code == 1, last.err
    assert outcomes(last.json) == outcomes(whole.json)
    assert [(f["cells"], f["graph"]) for f in last.json["failures"]] == [
        (f["cells"], f["graph"]) for f in whole.json["failures"]
    ]


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "there is nothing to sweep"),
        (["nowhere"], "there is no such file or folder"),
        (["{empty}"], "there is no bundle in this folder"),
        (["--random", "1", "--dtypes", "i64"], 'f32, bf16, f16, f64 or recorded'),
        (["--random", "1", "--modes", "backwards"], '"backwards" is not a mode'),
    ],
)  # fmt: skip
def test_wrong_usage(ask, tmp_path, words, said):
    (tmp_path / "empty").mkdir()
    answer = ask("sweep", *[w.format(empty=tmp_path / "empty") for w in words], "-o", tmp_path / "out")
    assert answer.code == 2 and said in answer.err, answer.err


def test_a_folder_with_another_sweep_is_left_alone(ask, folder, tmp_path):
    words = ["sweep", folder / "tanh", "--backends", "eager", "-o", tmp_path / "out"]
    assert ask(*words).code == 0
    again = ask(*words)
    assert again.code == 2 and "there is a sweep in this folder already" in again.err
    other = ask(*words, "--resume", "--strict-accuracy")
    assert other.code == 2 and "compares in another way" in other.err
    assert "1 cell answered by an earlier run" in ask(*words, "--resume").out


def test_a_script_is_triaged(ask, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import torch, cutaway\nf = cutaway.compile(lambda x: torch.relu(x) + 1, backend='fault:exception:aten.relu')\nf(torch.ones(3))\n"
    )
    answer = ask("sweep", script, "-o", tmp_path / "out", "--json", limit=2 * PATIENCE_S)
    assert answer.code == 1, answer.err
    (failure,) = answer.json["failures"]
    assert failure["nodes"] == 1 and "aten.relu" in failure["graph"]


def test_on_needs_ray_or_a_cluster(ask, folder, tmp_path):
    answer = ask(
        "sweep",
        folder / "tanh",
        "--backends",
        "eager",
        "--on",
        "ray://127.0.0.1:1",
        "-o",
        tmp_path / "out",
        limit=2 * PATIENCE_S,
    )
    try:
        import ray  # noqa: F401
    except ImportError:
        assert "pip install ray" in answer.err
    else:
        assert "there is no Ray cluster at ray://127.0.0.1:1" in answer.err
    assert answer.code == 2 and "1 not run" in answer.out
    assert ask("sweep", folder / "tanh", "--backends", "eager", "--resume", "-o", tmp_path / "out").code == 0
