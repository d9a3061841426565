"""Tensors by name in a store on disk, and what is known of each without its data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from . import _native


@dataclass(frozen=True)
class TensorMetadata:
    """All that it takes to rebuild a tensor around its storage. `storage` is the digest; None: only metadata."""

    dtype: torch.dtype
    size: torch.Size
    stride: tuple[int, ...]
    storage_offset: int
    device: torch.device
    requires_grad: bool
    is_leaf: bool
    is_conj: bool
    is_neg: bool
    is_parameter: bool
    storage: str | None
    storage_bytes: int


@dataclass(frozen=True)
class Difference:
    """One name that is not the same in two recordings, and in which fields.

    `unequal_elements` counts the elements that differ, as bits, where dtype and size agree; None: they do not.
    """

    name: str
    fields: tuple[str, ...]
    unequal_elements: int | None
    elements: int

    def __str__(self) -> str:
        text = f"{self.name}: " + "; ".join(self.fields)
        if self.unequal_elements is not None:
            text += f"; {self.unequal_elements} of {self.elements} elements differ"
        return text


def _metadata(record: dict[str, Any]) -> TensorMetadata:
    record["size"] = torch.Size(record["size"])
    record["stride"] = tuple(record["stride"])
    record["device"] = torch.device(record["device"])
    return TensorMetadata(**record)


def _as_parameter(tensor: torch.Tensor, is_parameter: bool) -> torch.Tensor:
    if not is_parameter:
        return tensor
    return torch.nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)


def compute_tensor_metadata(tensor: torch.Tensor) -> TensorMetadata:
    """The metadata of a tensor, without reading its data. Meta and fake tensors have metadata too."""
    return _metadata(_native.compute_tensor_metadata(tensor))


def digest_storage(tensor: torch.Tensor) -> str:
    """Digest of the whole storage that a tensor looks at: 32 hexadecimal digits, the same on every machine."""
    return _native.digest_storage(tensor)


class Store:
    """Tensors by name, their storages by content.

    A storage is written once, whatever number of tensors look at it. Names may contain slashes. Tensors that share a
    storage and are put through one Store share one again when `get_tensors` reads them together. Writes are atomic,
    reads are verified, and several processes may use one store at once.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True) -> None:
        """Opens the store at `path`, making it if need be. Without `durable`, a power cut may lose the last puts."""
        self._native = _native.Store(os.fspath(path), durable)

    @property
    def path(self) -> str:
        return self._native.path

    def __repr__(self) -> str:
        return f"cutaway.Store({self.path!r})"

    def put_tensor(self, name: str, tensor: torch.Tensor) -> TensorMetadata:
        """Writes a tensor under a name; the last one put under it counts."""
        return _metadata(self._native.put_tensor(name, tensor, isinstance(tensor, torch.nn.Parameter)))

    def get_tensor(self, name: str, device: str | torch.device | None = None) -> torch.Tensor:
        """The tensor of that name in memory of its own, on its device or on `device`."""
        return self.get_tensors([name], device)[name]

    def get_tensors(
        self, names: Iterable[str] | None = None, device: str | torch.device | None = None
    ) -> dict[str, torch.Tensor]:
        """Several tensors (all: None) that share storages as they did when they were put."""
        wanted = self.names() if names is None else list(names)
        tensors = self._native.get_tensors(wanted, None if device is None else str(device))
        return {
            n: _as_parameter(t, self._native.metadata(n)["is_parameter"]) for n, t in zip(wanted, tensors, strict=True)
        }

    def metadata(self, name: str) -> TensorMetadata:
        """What is known of the tensor without reading its data."""
        return _metadata(self._native.metadata(name))

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with `prefix`, sorted."""
        return self._native.names(prefix)

    def put_storage(self, tensor: torch.Tensor) -> str:
        """Writes the whole storage that a tensor looks at, without a name, and returns its digest."""
        return self._native.put_storage(tensor)

    def get_storage(self, digest: str, device: str | torch.device | None = None) -> torch.UntypedStorage:
        """The storage with that digest, verified, in memory of its own, on the cpu or on `device`."""
        return self._native.get_storage(digest, None if device is None else str(device)).untyped_storage()

    def verify(self, digest: str) -> None:
        """Reads a storage and raises an Error that names it when it is missing, truncated or altered."""
        self._native.verify(digest)

    def compare(self, a: str, b: str) -> list[Difference]:
        """The names under prefix `a` against those under `b`: metadata first, bytes only where the storages differ.

        Empty: the two recordings are the same.
        """
        rows = self._native.compare(a, b)
        return [
            Difference(name, tuple(fields), None if unequal < 0 else unequal, elements)
            for name, fields, unequal, elements in rows
        ]
