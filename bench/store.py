"""Tensors into the store: digest and write of 256 MB against torch's content store, in one run.

The digest is also measured against memcpy: it should run at no less than half of its speed.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import cutaway
import torch
from side_by_side import compare, finish
from torch.utils._content_store import ContentStoreReader, ContentStoreWriter, hash_storage

_MB = 256


def main() -> None:
    x = torch.randn(_MB * 1024 * 1024 // 4)
    into = torch.zeros_like(x)
    storage = x.untyped_storage()
    root = Path(tempfile.mkdtemp(prefix="cutaway-bench-"))
    try:
        compare(
            f"digest of {_MB} MB",
            lambda: cutaway.digest_storage(x),
            lambda: hash_storage(storage),
            peer_name="hash_storage",
            at_least=100,
            repeat=3,
        )
        compare(
            f"digest of {_MB} MB, to memcpy",
            lambda: cutaway.digest_storage(x),
            lambda: into.copy_(x),
            peer_name="memcpy",
            at_least=0.5,
            repeat=9,
        )

        # Each write goes into a store of its own: one that has the blob already writes nothing.
        fresh = [0]

        def directory() -> str:
            fresh[0] += 1
            return str(root / str(fresh[0]))

        def empty() -> None:
            shutil.rmtree(root)
            root.mkdir()

        def ours() -> None:
            cutaway.Store(directory()).put_tensor("x", x)

        def ours_fast() -> None:
            cutaway.Store(directory(), durable=False).put_tensor("x", x)

        def peer() -> None:
            ContentStoreWriter(directory()).write_tensor("x", x)

        compare(
            f"write {_MB} MB",
            ours,
            peer,
            peer_name="ContentStoreWriter",
            at_least=10,
            repeat=3,
            before=empty,
            note="ours with fsync, the peer without",
        )
        compare(
            f"write {_MB} MB, not durable",
            ours_fast,
            peer,
            peer_name="ContentStoreWriter",
            at_least=10,
            repeat=3,
            before=empty,
            note="neither with fsync",
        )

        here, there = str(root / "ours"), str(root / "peer")
        cutaway.Store(here, durable=False).put_tensor("x", x)
        ContentStoreWriter(there).write_tensor("x", x)
        ours_store = cutaway.Store(here)
        compare(
            f"read {_MB} MB",
            lambda: ours_store.get_tensor("x"),
            lambda: ContentStoreReader(there, cache=False).read_tensor("x"),
            peer_name="ContentStoreReader",
            repeat=5,
            note="ours verified, the peer not",
        )
    finally:
        shutil.rmtree(root)
    finish()


if __name__ == "__main__":
    main()
