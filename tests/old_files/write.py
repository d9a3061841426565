"""Writes tests/old_files/VERSION with the Cutaway that is installed: once a release, before it. Files of older versions are never written again.

`python -m tests.old_files.write tests/old_files/0.1`
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys

import cutaway
import torch
from cutaway import trace

from tests.support.bundles import write_bundle
from tests.support.command import find_command


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) * 2


def views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.t()[1:]
    return y.to(torch.bfloat16), (y > 0).any(0), y.to(torch.complex64).sum()


def main(folder: pathlib.Path) -> None:
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    exported = torch.export.export(Block(), (torch.randn(2, 4),))
    graph, x = cutaway.Graph.from_export(exported), torch.randn(2, 4)
    cutaway.save(folder / "passes", graph, [x])
    raises = {
        "kind": "exception",
        "stage": "backend",
        "type": "RuntimeError",
        "op": "aten.relu",
        "message": "fault: cannot lower aten.relu",
    }
    write_bundle(folder / "raises", graph, [x], backend="fault:exception:aten.relu", failure=raises)
    wrong = {"kind": "accuracy", "stage": "backend", "op": "", "message": "values of float32"}
    more = {"backend": "fault:wrong:aten.relu", "failure": wrong, "accuracy": "accuracy", "seed": 7}
    write_bundle(folder / "wrong", graph, [x], **more)
    base = torch.randn(6, 5)
    recorded = trace.record(views, [base[:, :3]])
    cutaway.save(folder / "kinds", recorded, [base[:, :3]])
    cutaway.save(folder / "seeded", recorded, [base[:, :3]], max_bytes=0, seed=3)
    symbolic = trace.record(lambda a: (a.sum(0) + a.shape[0]).relu(), [torch.randn(4, 3)], dynamic={0: {0: "n"}})
    write_bundle(folder / "symbolic", symbolic, [torch.randn(4, 3)])
    shutil.copy(folder / "passes/graph.cut", folder / "graph.cut")  # files are named from their package on there
    command = find_command()
    subprocess.run([command, "export", folder / "raises", "-o", folder / "archive.tar"], check=True)
    subprocess.run([command, "minify", folder / "raises", "-o", folder / "minimal"], check=True)
    answers = {}
    for path in sorted(p for p in folder.iterdir() if (p / "manifest.json").is_file() or p.suffix == ".tar"):
        words = ["--backend", "aot_eager"] if path.is_dir() and not cutaway.load(path).manifest.get("backend") else []
        done = subprocess.run([command, "run", "--json", *words, path], capture_output=True, text=True)
        answer = json.loads(done.stdout)
        answers[path.name] = {"words": words, "status": done.returncode}
        answers[path.name].update({k: answer[k] for k in ("outcome", "kind", "stage")})
        answers[path.name]["graph"] = str(cutaway.load(path).graph) if path.is_dir() else None
        answers[path.name]["sums"] = [sum_of(v) for v in cutaway.load(path).inputs] if path.is_dir() else None
    (folder / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")


def sum_of(value: object) -> float | None:
    return round(float(value.detach().double().sum()), 4) if isinstance(value, torch.Tensor) else None


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
