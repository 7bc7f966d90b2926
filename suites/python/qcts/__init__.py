# SPDX-License-Identifier: BSD-3-Clause
"""Quantized checkpoints, read, checked and compared bit for bit.

    import qcts

    checkpoint = qcts.open("model.safetensors")     # or a .pt file, or a folder with config.json and shards
    for name in checkpoint:
        tensor = checkpoint[name]
        print(name, tensor.scheme, tensor.shape)
        weight = tensor.dequantize()                 # NumPy; tensor.torch() for torch

    report = qcts.check("model.safetensors")         # report.ok, report.failures

    print(qcts.judge("my_kernels:linear", op="linear", scheme="int8_row"))   # is my kernel right?
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._arrays import from_any, to_numpy, to_torch
from ._errors import Failed, NoDevice, Refused, Unreadable
from ._judge import Judgement, judge
from ._program import program_path, run, run_json

if TYPE_CHECKING:
    import torch

__all__ = [
    "Checkpoint", "Failed", "Judgement", "NoDevice", "Refused", "Report", "Tensor", "Unreadable", "check", "convert", "inspect", "judge",
    "open", "program_path", "quantize", "run", "schemes",
]  # fmt: skip


class Tensor:
    """A tensor of a checkpoint as its producer's class holds it."""

    def __init__(self, held: _native.Tensor) -> None:
        self._held = held

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type} {self.scheme or self.dtype} {tuple(self.shape)}>"

    @property
    def name(self) -> str:
        """The name in the file: "layers.0.weight"."""
        return self._held.name

    @property
    def type(self) -> str:
        """The producer's class without its module: "Int8Tensor", "Tensor"."""
        return self._held.type

    @property
    def scheme(self) -> str:
        """The scheme, one of schemes(); empty for a plain tensor, and for a class that belongs to no scheme."""
        return self._held.scheme

    @property
    def layout(self) -> str:
        """The packing of the codes; empty if the file does not say."""
        return self._held.layout

    @property
    def foreign(self) -> str:
        """The other library's format, if the tensor is in one that qcts cannot read; otherwise empty."""
        return self._held.foreign

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the model sees."""
        return tuple(self._held.shape)

    @property
    def dtype(self) -> str:
        """The dtype that the model sees, under torch's name: "bfloat16"."""
        return self._held.dtype

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """The stored tensors by name: codes, scales, zero points; for a plain tensor, just "data". Contiguous ones view the file."""
        return {name: to_numpy(elements) for name, elements in self._held.parts}

    def dequantize(self, layout: str = "") -> np.ndarray:
        """Returns the dequantized elements, bit for bit as the producer's library does; a plain tensor's elements as they are.

        bfloat16 is returned as float32, which holds its values exactly. `layout` is the CPU layout of packed int4 weights, which files do
        not record: "cpu_avx512", "cpu_avx2" or "cpu_default". Raises ValueError with the reason if no scheme says what the tensor means."""
        return to_numpy(self._held.dequantize(layout))

    def torch(self, layout: str = "") -> torch.Tensor:
        """The same as dequantize(), but as a torch tensor in the dtype that the model sees."""
        return to_torch(self._held.dequantize(layout))


class Checkpoint(Mapping[str, Tensor]):
    """A file or folder as a mapping from names to tensors, in the file's order. Tensors are read only when they are used."""

    def __init__(self, held: _native.Checkpoint) -> None:
        self._held = held
        self._names: list[str] = held.names

    def __getitem__(self, name: str) -> Tensor:
        return Tensor(self._held.tensor(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{self.format} checkpoint of dialect {self.dialect} with {len(self)} tensors>"

    @property
    def format(self) -> str:
        """The container: "safetensors", "torch_zip", "torch_legacy", "torchscript", "gguf", "directory"."""
        return self._held.format

    @property
    def dialect(self) -> str:
        """How the producer stores quantized tensors: "plain", "torchao_v2", ..., or the name of a format that qcts cannot read."""
        return self._held.dialect

    @property
    def file_bytes(self) -> int:
        return self._held.file_bytes

    @property
    def payload_bytes(self) -> int:
        """Size in bytes of all stored tensors; memory that several tensors share counts once."""
        return self._held.payload_bytes

    @property
    def dense_bytes(self) -> int:
        """Size in bytes of the model before quantization."""
        return self._held.dense_bytes

    @property
    def warnings(self) -> list[str]:
        return self._held.warnings

    @property
    def findings(self) -> list[tuple[str, str]]:
        """Problems in a checkpoint that can still be read: (name of a tensor or "", text)."""
        return self._held.findings


def open(path: str | os.PathLike[str], *, lenient: bool = False, dialect: str = "", allow: list[str] | None = None) -> Checkpoint:
    """Opens a checkpoint: a .pt, .pth, .bin, .safetensors or .gguf file, or a folder with config.json and shards. No code of the file runs.

    `lenient` accepts what the formats' own libraries tolerate. `dialect` overrides the detected dialect. `allow` lists globals,
    "module.name", to keep unresolved. Raises Refused if the file is damaged or unsupported, and Unreadable if it does not exist."""
    return Checkpoint(_native.open(os.fspath(path), lenient, dialect, allow or []))


@dataclass(frozen=True)
class Report:
    """The result of check()."""

    ok: bool
    verdicts: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    data: dict[str, Any]  # everything that `qcts check --json` prints

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The verdicts that failed, and the findings."""
        return [verdict for verdict in self.verdicts if verdict["status"] != "pass"] + self.findings


def check(path: str | os.PathLike[str], *options: str) -> Report:
    """Judges what can be judged about a checkpoint without its model: round trip, sizes, values, meaning.

    `options` are those of `qcts check`."""
    code, data = run_json("check", path, *options, codes=(0, 1, 3))
    return Report(code == 0, data["verdicts"], data["findings"], data)


def inspect(path: str | os.PathLike[str], *options: str) -> dict[str, Any]:
    """Returns what `qcts inspect --json` prints: format, dialect, sizes, and each tensor with its scheme, shape and parts."""
    return run_json("inspect", path, *options, codes=(0, 1, 3))[1]


def convert(source: str | os.PathLike[str], target: str | os.PathLike[str], *, to: str = "", options: tuple[str, ...] = ()) -> None:
    """Writes the same tensors as `target` (.safetensors, .pt, or a new folder); `to` is the target, as for `qcts convert --to`.

    Raises Failed, and writes nothing, if the target cannot hold them."""
    ended = run("convert", source, target, *(["--to", to] if to else []), *options)
    if ended.returncode != 0:
        raise Failed(ended.returncode, ended.stderr or ended.stdout)


def quantize(weight: np.ndarray | torch.Tensor, scheme: str) -> dict[str, np.ndarray]:
    """Quantizes a float matrix [n, k] as the scheme's producer does, and returns the planes by name: "qdata", "scale", ..."""
    data, dtype, rows, columns = from_any(weight)
    return {name: to_numpy(elements) for name, elements in _native.quantize(data, dtype, rows, columns, scheme)}


def schemes() -> list[str]:
    """Returns the names of all schemes."""
    return _native.schemes()
