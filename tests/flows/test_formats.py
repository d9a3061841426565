"""--format sarif and --format github of explain and triage: what editors and CI read, held to the rules of SARIF 2.1.0."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import urllib.parse
from pathlib import Path

import cutaway
import pytest

from tests.support.command import find_command
from tests.support.patience import PATIENCE_S

PACKAGE = Path(cutaway.__file__).parent
BREAKS = """
    import torch

    @torch.compile(dynamic=False)
    def step(x):
        y = torch.sin(x)
        print("seen")
        return y + 1

    for size in (2, 3):
        step(torch.ones(size))
"""
WRONG = """
    import torch

    def wrong_relu(gm, inputs):
        for node in gm.graph.nodes:
            if node.target is torch.relu:
                node.target = torch.nn.functional.gelu
        gm.recompile()
        return gm.forward

    @torch.compile(backend=wrong_relu)
    def f(x):
        return torch.relu(torch.sin(x) + 1).cos()

    f(torch.linspace(-3, 3, 12))
"""


def run(folder: Path, text: str, *words: str, name="my script.py", **environment: str):
    script = folder / name
    script.write_text(textwrap.dedent(text).lstrip())
    paths = os.pathsep.join(p for p in (str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")) if p)
    kept = {k: v for k, v in os.environ.items() if k != "GITHUB_WORKSPACE"}
    env = {**kept, "CUTAWAY_PYTHON": sys.executable, "PYTHONPATH": paths, **environment}
    return subprocess.run(
        [find_command(), *words, str(script)], capture_output=True, text=True, cwd=folder, env=env, timeout=PATIENCE_S
    )


def line_of(text: str, part: str) -> int:
    lines = textwrap.dedent(text).lstrip().splitlines()
    return next(n for n, line in enumerate(lines, 1) if part in line)


# ---- the rules of SARIF 2.1.0 (OASIS, sections in brackets) that concern what we write ----

LEVELS = {"none", "note", "warning", "error"}


def check_only(value: dict, required: set[str], optional: set[str]) -> None:
    assert required <= value.keys() <= required | optional, value.keys()


def check_message(message: dict) -> None:  # [3.11]
    check_only(message, {"text"}, set())
    assert message["text"].strip()


def check_location(location: dict) -> None:  # [3.28]
    check_only(location, {"physicalLocation"}, {"logicalLocations", "id", "message"})
    physical = location["physicalLocation"]
    check_only(physical, {"artifactLocation", "region"}, set())
    artifact = physical["artifactLocation"]  # [3.4]: a URI reference; a relative one says what it is relative to
    check_only(artifact, {"uri"}, {"uriBaseId"})
    assert re.fullmatch(r"[A-Za-z0-9\-._~%/:]+", artifact["uri"]), artifact
    parts = urllib.parse.urlsplit(artifact["uri"])
    if parts.scheme:
        assert parts.scheme == "file" and parts.path.startswith("/") and "uriBaseId" not in artifact
    else:
        assert (
            not parts.path.startswith("/")
            and ".." not in parts.path.split("/")
            and artifact["uriBaseId"] == "%SRCROOT%"
        )
    region = physical["region"]  # [3.30]
    check_only(region, {"startLine"}, {"snippet"})
    assert isinstance(region["startLine"], int) and region["startLine"] >= 1
    if "snippet" in region:
        check_only(region["snippet"], {"text"}, set())
    for logical in location.get("logicalLocations", []):  # [3.33]
        check_only(logical, {"name", "kind"}, set())
    if "message" in location:
        check_message(location["message"])


def check_sarif(text: str) -> list[dict]:
    log = json.loads(text)
    check_only(log, {"version", "runs", "$schema"}, set())  # [3.13]
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    assert len(log["runs"]) == 1
    run_ = log["runs"][0]  # [3.14]
    check_only(run_, {"tool", "results", "invocations"}, set())
    driver = run_["tool"]["driver"]  # [3.19]
    check_only(driver, {"name", "version", "semanticVersion", "rules"}, set())
    assert re.fullmatch(r"\d+\.\d+\.\d+", driver["semanticVersion"])
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))  # [3.19.23]
    for rule in driver["rules"]:  # [3.49]
        check_only(rule, {"id", "shortDescription", "defaultConfiguration"}, set())
        check_message(rule["shortDescription"])
        assert rule["defaultConfiguration"]["level"] in LEVELS
    for invocation in run_["invocations"]:  # [3.20]
        check_only(invocation, {"executionSuccessful"}, {"toolExecutionNotifications"})
        assert isinstance(invocation["executionSuccessful"], bool)
        for notification in invocation.get("toolExecutionNotifications", []):  # [3.58]
            check_only(notification, {"level", "message"}, set())
            assert notification["level"] in LEVELS
            check_message(notification["message"])
    for result in run_["results"]:  # [3.27]
        check_only(
            result,
            {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"},
            {"relatedLocations", "properties"},
        )
        assert ids[result["ruleIndex"]] == result["ruleId"] and result["level"] in LEVELS
        check_message(result["message"])
        assert len(result["locations"]) == 1
        check_location(result["locations"][0])
        related = result.get("relatedLocations", [])
        assert [r["id"] for r in related] == list(range(len(related)))
        for location in related:
            check_location(location)
        assert all(isinstance(v, str) for v in result["partialFingerprints"].values())
    return run_["results"]


def place_of(result: dict) -> tuple[str, int]:
    physical = result["locations"][0]["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_explain_as_sarif(tmp_path):
    done = run(tmp_path, BREAKS, "explain", "--format", "sarif")
    assert done.returncode == 0, done.stderr
    assert "seen" in done.stderr  # what the script prints
    results = check_sarif(done.stdout)
    breaks = [r for r in results if r["ruleId"] == "graph-break/print"]
    assert [place_of(r) for r in breaks] == [("my%20script.py", line_of(BREAKS, "print("))]
    assert breaks[0]["level"] == "warning" and "try: " in breaks[0]["message"]["text"]
    assert "(2 times)" in breaks[0]["message"]["text"]
    region = breaks[0]["locations"][0]["physicalLocation"]["region"]
    assert region["snippet"]["text"] == 'print("seen")'
    again = [r for r in results if r["ruleId"] == "recompile"]
    assert any("`x.shape[0]` was 2, is 3" in r["message"]["text"] for r in again)
    assert all(uri == "my%20script.py" for uri, _ in map(place_of, again))
    assert str(tmp_path) not in done.stdout.replace(json.dumps(str(tmp_path))[1:-1] + "/cutaway_debug", "")


def test_the_same_findings_have_the_same_bytes_and_fingerprints(tmp_path):
    first = run(tmp_path, BREAKS, "explain", "--format", "sarif").stdout
    assert run(tmp_path, BREAKS, "explain", "--format", "sarif").stdout == first
    moved = run(tmp_path, "# a line more\n" + textwrap.dedent(BREAKS), "explain", "--format", "sarif").stdout
    prints = [
        [r["partialFingerprints"] for r in check_sarif(text) if "break" in r["ruleId"]] for text in (first, moved)
    ]
    assert prints[0] == prints[1] and prints[0]


def test_explain_for_github(tmp_path):
    done = run(tmp_path, BREAKS, "explain", "--format", "github", GITHUB_WORKSPACE=str(tmp_path.parent))
    assert done.returncode == 0, done.stderr
    assert "breaks: 2" in done.stdout  # the text is there for who reads the log
    commands = [line for line in done.stdout.splitlines() if line.startswith("::")]
    number = line_of(BREAKS, "print(")
    file = f"{tmp_path.name}/my script.py"
    found = next(c for c in commands if f"line={number}," in c)
    assert found.startswith(f"::warning file={file},line={number},title=Cutaway%3A graph break::")
    assert "%0Atry: " in found
    assert any("title=Cutaway%3A compiled again::" in c for c in commands)


def test_triage_as_sarif(tmp_path):
    done = run(tmp_path, WRONG, "triage", "--format", "sarif", name="script.py")
    assert done.returncode == 1, done.stderr
    (result,) = check_sarif(done.stdout)
    assert (result["ruleId"], result["level"]) == ("wrong-numbers", "error")
    assert place_of(result) == ("script.py", line_of(WRONG, "f(torch.linspace"))
    assert "aten.relu" in result["message"]["text"] and "-> 1 node" in result["message"]["text"]
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["region"]["startLine"] == line_of(WRONG, "return torch.relu")
    properties = result["properties"]
    assert (tmp_path / properties["repro"]).is_file() and properties["stage"] == "backend"


def test_triage_for_github_and_without_a_failure(tmp_path):
    fine = "import torch\ntorch.compile(torch.sin, backend='aot_eager')(torch.ones(2))\n"
    done = run(tmp_path, fine, "triage", "--format", "github", name="script.py")
    assert done.returncode == 0 and "no failure" in done.stdout, done.stdout + done.stderr
    assert "::error" not in done.stdout
    done = run(tmp_path, fine, "triage", "--format", "sarif", name="script.py")
    assert check_sarif(done.stdout) == []
    done = run(tmp_path, "raise ValueError('mine')", "triage", "--format", "github", name="script.py")
    assert done.returncode == 4
    assert re.search(r"^::error title=Cutaway::the script fails without the compiler", done.stdout, re.M), done.stdout


@pytest.mark.parametrize("command", ["explain", "triage"])
def test_mistakes(command, tmp_path):
    done = run(tmp_path, "", command, "--format", "xml")
    assert (
        done.returncode == 2 and "--format" in done.stderr and "xml" in done.stderr and "Traceback" not in done.stderr
    )
    done = run(tmp_path, "", command, "--json", "--format", "sarif")
    assert done.returncode == 2 and "--format" in done.stderr
