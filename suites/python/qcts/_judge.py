# SPDX-License-Identifier: BSD-3-Clause
"""judge(): judges a Python callable by the cases of a plan, in a separate process."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._errors import Failed, NoDevice
from ._program import program_path, run

# The operations, each with the dtypes of a problem that `dtypes` limits.
OPERATIONS = {"quantize": ["w_dtype"], "quantize_activation": ["x_dtype"], "dequantize": ["w_dtype"], "linear": ["x_dtype", "y_dtype"]}


@dataclass(frozen=True)
class Judgement:
    """The result of judge(). `ok`, which is also its truth value, is true if every judged case passed and at least one was judged."""

    ok: bool
    passed: int
    failed: int
    declined: int
    causes: list[dict[str, Any]]  # groups of failures: title, count, reason, example
    report: dict[str, Any] = field(repr=False)  # report.json
    folder: Path = field(repr=False)  # with report.html

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [f"{'right' if self.ok else 'wrong'}: {self.passed} passed, {self.failed} failed, {self.declined} declined"]
        for cause in self.causes:
            lines += [f"  {cause['count']} of {self.failed}: {cause['title']}", f"    {cause['example']}", f"    {cause['reason']}"]
        return "\n".join(lines)


def _importable(function: Callable[..., Any], folder: Path) -> dict[str, str]:
    """Returns how the other process finds the function: by its module and name, or pickled."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module and module != "__main__" and "<" not in name:
        return {"module": module, "name": name}
    try:
        import cloudpickle
    except ImportError:
        raise ValueError(f"{name or function!r} cannot be imported from a module: give it a module, or install cloudpickle") from None
    pickled = folder / "function.pickle"
    pickled.write_bytes(cloudpickle.dumps(function, protocol=pickle.HIGHEST_PROTOCOL))
    return {"pickled": str(pickled)}


def _function(function: Callable[..., Any] | str) -> Callable[..., Any]:
    if not isinstance(function, str):
        return function
    module, colon, name = function.partition(":")
    if not colon:
        raise ValueError(f"a function is named module:name, not {function}")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def judge(
    function: Callable[..., Any] | str,
    op: str,
    scheme: str,
    *,
    name: str = "callable",
    version: str = "",
    plan: str = "default",
    arrays: str = "torch",
    dtypes: Sequence[str] = (),
    policies: Sequence[str] = (),
    claims: Sequence[str] = ("deterministic",),
    numerics: dict[str, Any] | None = None,
    choices: str = "",
    out: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
    model: str | os.PathLike[str] | None = None,
    device: str = "cpu",
) -> Judgement:
    """Judges a Python callable as an implementation of an operation of a scheme's family.

    linear:     function(x, planes, bias, problem) returns y [m, n]
    dequantize: function(planes, problem) returns the weight [n, k]
    quantize, quantize_activation: function(x, problem) returns the planes by name

    `planes` maps names ("qdata", "scale") to tensors; `problem` has m, n, k, group, the dtypes w_dtype, x_dtype and y_dtype, the activation
    policy, and params. With arrays="numpy", tensors are NumPy arrays, in which bfloat16 and float8 are raw bits. `dtypes` are the
    weight's dtypes (x's and y's for linear) that the callable serves, by default all; `policies` are the activation policies of a linear.
    `claims` and `numerics` are explained in kernels/abi/README.md. The callable runs in a separate process that cannot see the judge; it
    must be importable as module:name, or cloudpickle must be installed. `options` are further options of `qcts run`.

    `model` is a transformers config.json: also judges a linear at the sizes of its layers, with 1, 8, 33 and 512 rows of x. On device
    "cuda" (or "cuda:1"), tensors are torch tensors on that GPU. There is no cage then, because the cage keeps programs from GPUs. Raises
    NoDevice if torch finds no such GPU, and Failed for arguments that `qcts run` does not accept, such as an unknown model."""
    if op not in OPERATIONS:
        raise ValueError(f"no operation {op!r}: {', '.join(OPERATIONS)}")
    if arrays not in ("torch", "numpy"):
        raise ValueError(f"arrays are 'torch' or 'numpy', not {arrays!r}")
    if model is not None and op != "linear":
        raise ValueError(f"the layers of a model are linear, not {op}")
    if device != "cpu":
        _check_device(device, arrays)
        options = [*options, *(() if "--isolation" in options else ("--isolation", "off")), "--memory-limit", "0"]
    if model is not None:
        options = [*options, "--model", os.path.abspath(model)]
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="qcts_judge_"))
    folder.mkdir(parents=True, exist_ok=True)
    kept = (folder / "callable").resolve()  # stays, so that the commands that rerun a failure work
    kept.mkdir(exist_ok=True)
    only = {name: list(dtypes) for name in OPERATIONS[op]} if dtypes else {}
    spec = {
        "function": _importable(_function(function), kept),
        "path": [path for path in sys.path if path] + [os.getcwd()],
        "adapter": str(_adapter()),
        "provider": name,
        "version": version,
        "choices": choices,
        "arrays": arrays,
        "op": op,
        "scheme": scheme + (":" + ",".join(policies) if policies else ""),
        "claims": list(claims),
        "numerics": numerics or {},
        "only": only,
        "device": device,
    }
    (kept / "callable.json").write_text(json.dumps(spec))
    program = kept / "callable.py"
    paths = [str(Path(__file__).resolve().parents[1])]
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.path[:0] = {paths!r}\nfrom qcts._judged import main\nmain()\n")
    program.chmod(0o755)
    ended = run("run", "--provider", program, "--plan", plan, "--no-progress", "--out", folder, *options)
    if not (folder / "report.json").exists() or ended.returncode in (2, 5):
        raise Failed(ended.returncode, ended.stderr or ended.stdout)
    return _judgement(json.loads((folder / "report.json").read_text()), folder)


def _check_device(device: str, arrays: str) -> None:
    """Raises NoDevice unless torch, run in a separate process, finds this GPU."""
    if arrays != "torch":
        raise ValueError(f"on device {device!r} arrays are torch's")
    if device != "cuda" and not (device.startswith("cuda:") and device[5:].isdigit()):
        raise ValueError(f"no device {device!r}: 'cpu', 'cuda' or 'cuda:1'")
    asked = f"import torch; torch.cuda.is_available() or exit('torch finds none'); torch.cuda.get_device_properties({device!r})"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
    if found.returncode != 0:
        raise NoDevice(f"no GPU {device}: {(found.stderr.strip().splitlines() or ['torch did not start'])[-1]}")


def _judgement(report: dict[str, Any], folder: Path) -> Judgement:
    counts = report["counts"]["by_status"]
    failed = sum(count for status, count in counts.items() if status not in ("pass", "not_supported", "waived", "robustness"))
    causes = [
        {key: group[key] for key in ("title", "count", "reason", "example", "rerun")}
        for group in report["groups"]
        if group["blocks"] and group["status"] != "not_supported"
    ]
    return Judgement(failed == 0 and counts["pass"] > 0, counts["pass"], failed, counts["not_supported"], causes, report, folder)


def _adapter() -> Path:
    """Returns the folder of qcts_provider.py: in the package, or in the repository whose program is used."""
    installed = Path(__file__).resolve().parent / "share/qcts/python"
    return installed if installed.exists() else program_path().resolve().parents[3] / "kernels/abi"
