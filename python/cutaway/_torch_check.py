"""Is the torch that is here the one that Cutaway was built for? Asked before anything of ours links against it."""

from __future__ import annotations

import os
from types import ModuleType


def release(version: str) -> str:
    """ "2.13.0" of "2.13.0+cpu": builds of one release for other devices have the same C++ interface."""
    return version.partition("+")[0]


def problem(found: str, built_for: str, where: str) -> str | None:
    """What is wrong, in words; None: nothing."""
    if release(found) == release(built_for):
        return None
    return (
        f"cutaway was built for torch {release(built_for)}, and torch {found} is here ({where})\n"
        "   because: libtorch has no stable C++ interface, so that what was built for one version does not load with another\n"
        f"   try: pip install torch=={release(built_for)}, or build cutaway for this torch: "
        "pip install --no-build-isolation --no-deps --force-reinstall . in its sources; cutaway doctor shows both versions"
    )


def check(torch: ModuleType) -> None:
    try:
        from ._built_for import TORCH
    except ImportError:  # sources that were not built
        return
    text = problem(str(torch.__version__), TORCH, os.path.dirname(str(torch.__file__)))
    if text is not None:
        raise ImportError(text, name="cutaway")
