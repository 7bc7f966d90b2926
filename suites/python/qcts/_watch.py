# SPDX-License-Identifier: BSD-3-Clause
"""Names what a judged callable does that no kernel has a reason to do: it reads a process's memory, replaces functions of torch or NumPy,
or returns an expectation that it found in its caller's frames or among the objects of the garbage collector.

The expectation there is a bait: the judge is another process, and the cage keeps its memory and files from this one. A callable that
undoes this watch therefore gains nothing but a worse name for what it does."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_MEMORY = re.compile(r"/proc/[^/]+/(task/[^/]+/)?mem")
_TORCH = ("as_tensor", "empty", "empty_like", "equal", "from_numpy", "frombuffer", "full", "ones", "tensor", "zeros", "zeros_like")
_TENSOR = ("clone", "contiguous", "copy_", "cpu", "detach", "double", "float", "numpy", "reshape", "to", "view")
_NUMPY = ("array", "array_equal", "asarray", "ascontiguousarray", "copyto", "empty", "frombuffer", "zeros")


class Cheat(Exception):
    """Says what the callable did."""


class Expectation:
    """The bait: outputs of the right dtypes and shapes with values that nothing computes."""

    def __init__(self, outputs: dict[str, Any]) -> None:
        self.outputs = outputs
        self.y = outputs.get("y")
        self.planes = outputs


class Watch:
    """Calls a callable and raises Cheat for what it did."""

    def __init__(self, give: Callable[[np.ndarray, str], Any]) -> None:
        self._give = give
        self._seen: list[str] = []
        self._kept = [(place, prefix + name, name, getattr(place, name)) for place, prefix, names in _watched() for name in names]
        self._bits: dict[str, np.ndarray] = {}
        self._bait: Expectation | None = None
        sys.addaudithook(self._audit)

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], outputs: dict[str, tuple[np.ndarray, str]]) -> Any:
        """`outputs`: where each output goes, and its dtype."""
        expectation = self._expectation(outputs)
        try:
            answer = function(*arguments)
        except BaseException:
            self._complain()
            raise
        if answer is expectation:
            self._seen.append(_BAIT)
        self._complain()
        return answer

    def check(self, outputs: dict[str, tuple[np.ndarray, str]]) -> None:
        """Raises Cheat if an output, as it was taken, is the bait's."""
        for name, (place, _) in outputs.items():
            if place.nbytes >= 8 and place.tobytes() == self._bits[name].tobytes():
                raise Cheat(_BAIT)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            path = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode(errors="replace")
            if _MEMORY.fullmatch(path):
                self._seen.append(f"it opens the memory of a process ({re.sub(r'[0-9]+', 'N', path)})")

    def _expectation(self, outputs: dict[str, tuple[np.ndarray, str]]) -> Expectation:
        wanted = {name: (place.dtype, place.shape) for name, (place, _) in outputs.items()}
        if self._bait is None or wanted != {name: (bits.dtype, bits.shape) for name, bits in self._bits.items()}:
            random = np.random.default_rng(0x9E3779B97F4A7C15)
            self._bits = {
                name: np.frombuffer(random.bytes(place.nbytes), place.dtype).reshape(place.shape) for name, (place, _) in outputs.items()
            }
            self._bait = Expectation({name: self._give(self._bits[name], dtype) for name, (_, dtype) in outputs.items()})
        return self._bait

    def _complain(self) -> None:
        replaced = []
        for place, shown, name, function in self._kept:
            if getattr(place, name) is not function:
                replaced.append(shown)
                setattr(place, name, function)
        if replaced:
            self._seen.append("it replaces " + ", ".join(replaced))
        if self._seen:
            said, self._seen = "; ".join(dict.fromkeys(self._seen)), []
            raise Cheat(said)


_BAIT = "it returns an expectation that it found in its caller's frames or among the collector's objects, which is bait"


def _watched() -> list[tuple[Any, str, tuple[str, ...]]]:
    watched: list[tuple[Any, str, tuple[str, ...]]] = [(np, "numpy.", _NUMPY)]
    if torch := sys.modules.get("torch"):
        watched += [(torch, "torch.", _TORCH), (torch.Tensor, "torch.Tensor.", _TENSOR)]
    return watched
