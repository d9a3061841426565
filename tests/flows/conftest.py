"""The native command, and bundles of real models, for tests of whole flows."""

import json
import subprocess

import pytest

from tests.support import model_graphs
from tests.support.bundles import write_bundle
from tests.support.command import find_command
from tests.support.patience import PATIENCE_S


@pytest.fixture(scope="session")
def command():
    return find_command()


class Answer:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def ask(command):
    """Runs the command with these words; nothing may be left hanging."""

    def run(*words, limit=PATIENCE_S):
        return Answer(subprocess.run([command, *map(str, words)], capture_output=True, text=True, timeout=limit))

    return run


@pytest.fixture(scope="session")
def model_bundle(tmp_path_factory):
    """By name of model_graphs.GRAPHS; made once."""
    folder = tmp_path_factory.mktemp("models")
    made = {}

    def get(name):
        if name not in made:
            graph, inputs, stage = model_graphs.make(name)
            assert len(graph.nodes) > 250
            made[name] = write_bundle(folder / name, graph, inputs, stage=stage)
        return made[name]

    return get
