"""Bundles for tests."""

import json
from pathlib import Path

import cutaway


def write_bundle(path, graph, inputs, **fields):
    cutaway.save(path, graph, inputs)
    file = Path(path) / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest.update(fields)
    file.write_text(json.dumps(manifest))
    return Path(path)
