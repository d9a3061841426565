"""cutaway completion: the scripts are made from the command's own table, and bash runs the one that is for it."""

import re
import shutil
import subprocess

import pytest

ASK = """
eval "$(%s completion bash)"
COMP_WORDS=(%s)
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_cutaway
printf '%%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(command, tmp_path):
    """What bash offers for the last of these words."""

    def ask(*words):
        line = " ".join(f"'{w}'" for w in ("cutaway", *words))
        done = subprocess.run(
            ["bash", "--norc", "-c", ASK % (command, line)], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout.split()

    return ask


def commands_in_help(command):
    text = subprocess.run([command, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+)  ", text.partition("Subcommands:")[2], re.M)


def test_commands_and_options(complete, command):
    names = commands_in_help(command)
    assert {"triage", "minify", "completion"} <= set(names)
    assert complete("") == [*names, "--help", "--version"]
    assert complete("mi") == ["minify"]
    assert complete("worker") == []  # for our own processes
    for name in names:
        text = subprocess.run([command, name, "--help"], capture_output=True, text=True, check=True).stdout
        lines = re.findall(r"^  (-\S+)", text.partition("Options:")[2], re.M)
        told = {word for line in lines for word in line.split(",") if word.startswith("--")}
        assert set(complete(name, "--")) == told and "--help" in told


def test_values(complete, tmp_path):
    assert complete("explain", "--format", "") == ["text", "json", "sarif", "github"]
    assert "inductor" in complete("run", "--backend", "ind")
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    assert complete("triage", "--timeout", "") == []  # a number
    (tmp_path / "train.py").touch()
    (tmp_path / "a bundle").mkdir()
    assert complete("triage", "tr") == ["train.py"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_the_script(shell, command):
    text = subprocess.run([command, "completion", shell], capture_output=True, text=True, check=True).stdout
    assert all(re.search(rf"\b{name}\b", text) for name in commands_in_help(command))
    assert "torch-report" not in text and "check-calls" in text
    if shutil.which(shell):  # it reads it without a complaint
        done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr


def test_mistakes(command):
    done = subprocess.run([command, "completion", "tcsh"], capture_output=True, text=True)
    assert done.returncode == 2 and "tcsh" in done.stderr
    done = subprocess.run([command, "completion"], capture_output=True, text=True)
    assert done.returncode == 2 and "shell" in done.stderr
