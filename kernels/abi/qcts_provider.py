# SPDX-License-Identifier: BSD-3-Clause
"""A qcts provider in Python: a decorator hides the line-JSON protocol (README.md in this folder). Needs numpy.

    provider = Provider("acme", version="1.0")

    @provider.kernel("linear", "int8_row", "numpy", numerics={"accumulator": "float64"}, supports=why_not)
    def linear(problem):
        problem.y[...] = ...

    provider.serve()
"""

import json
import mmap
import os
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

import numpy as np

ABI_VERSION = 11  # 0.11
# A dtype that numpy lacks is passed as its bits. widen() and narrow() convert bfloat16; a provider converts float8 and float4 itself.
NUMPY_TYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "float8_e4m3fn": np.uint8,
    "float8_e5m2": np.uint8,
    "float8_e8m0fnu": np.uint8,
    "float4_e2m1fn_x2": np.uint8,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
}


class Refused(Exception):
    """A kernel or load_save raises this to refuse, with the reason."""

    def __init__(self, reason, status="unsupported"):
        super().__init__(reason)
        self.status = status  # "unsupported", "invalid", "failed"


def place_of(error):
    """Returns file:line of the innermost call in the provider's own folder, or of the innermost at all."""
    frames = traceback.extract_tb(error.__traceback__)
    own = Path(sys.argv[0]).resolve().parent
    inside = [frame for frame in frames if Path(frame.filename).resolve().parent == own and frame.filename != __file__]
    frame = (inside or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def check_convertible(dtype):
    if dtype not in ("float32", "float16", "bfloat16"):
        raise ValueError(f"widen and narrow know float32, float16 and bfloat16, not {dtype}")


def widen(array, dtype):
    """Converts an array of float32, float16 or bfloat16 to float32, exactly. Raises ValueError for another dtype."""
    check_convertible(dtype)
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def narrow(values, dtype):
    """Rounds float32 values to float32, float16 or bfloat16, ties to even; NaN stays NaN. Raises ValueError for another dtype."""
    check_convertible(dtype)
    if dtype != "bfloat16":
        return values.astype(NUMPY_TYPES[dtype])
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


class Problem(SimpleNamespace):
    """The fields of qcts_problem by name. x, y, bias and the values of planes and out_planes are numpy arrays in the shared memory; they
    are None if there is no memory yet, and None or absent if the problem lacks them. x_dtype, y_dtype, ... name their types. params has
    the fields of qcts_scheme_params, or is None for a dense layer."""

    def __init__(self, fields, memory=None):
        def array(tensor):
            if memory is None:
                return None
            return np.ndarray(
                tensor["shape"], NUMPY_TYPES[tensor["dtype"]], memory, tensor["offset"], tensor["stride_bytes"]
            )

        plain = {name: value for name, value in fields.items() if not isinstance(value, dict)}
        super().__init__(x=None, y=None, bias=None, **plain)
        self.params = SimpleNamespace(**fields["params"]) if "params" in fields else None
        for name in ("x", "y", "bias"):
            if name in fields:
                setattr(self, name, array(fields[name]))
        self.planes = {name: array(tensor) for name, tensor in fields["planes"].items()}
        self.out_planes = {name: array(tensor) for name, tensor in fields["out_planes"].items()}


class Timed:
    """Calls a kernel while it is timed. This default calls the kernel's own function on `copies` copies of the planes (of x for the
    quantizers). A kernel of a library that prepares something at load passes a function of (problem, copies) instead. That returns an
    object with call(copy); answer(), which fills problem.y or out_planes with the result of the last call; and optionally measures, a
    dict of further figures. Only call() is timed, preparation and conversion are not."""

    def __init__(self, function, problem, copies):
        self._function = function
        self._problem = problem
        moving = problem.op in ("quantize", "quantize_activation")
        self._problems = []
        for _ in range(copies):
            one = Problem.__new__(Problem)
            one.__dict__.update(problem.__dict__)
            one.planes = {name: np.array(plane) for name, plane in problem.planes.items()}
            one.x = np.array(problem.x) if moving else problem.x
            self._problems.append(one)

    def call(self, copy):
        self._function(self._problems[copy])

    def answer(self):
        """The kernel writes to the problem's own outputs."""


class Provider:
    def __init__(self, name, version="", url="", choices="", load_save=None, profile=""):
        """`profile` has the names of the profiles that the provider promises to serve, separated by spaces.
        load_save(input_path, output_path) writes a file, or raises and leaves none."""
        self._greeting = {"name": name, "version": version, "url": url, "choices": choices, "profile": profile}
        self._load_save = load_save
        self._kernels = []
        self._memory = (None, 0, None)
        self._timed = None

    def kernel(
        self,
        op,
        scheme,
        variant,
        *,
        numerics=None,
        fused_sums=None,
        reads_layouts=(),
        claims=(),
        description="",
        supports=None,
        timed=None,
    ):
        """supports(problem) returns None, or a reason to refuse. The function fills problem.y or problem.out_planes.
        reads_layouts: packed layouts that a linear reads as well as "plain". timed: see Timed."""
        entry = {"op": op, "scheme": scheme, "variant": variant, "claims": list(claims)}
        entry |= {"numerics": numerics or {}, "fused_sums": fused_sums or {}, "description": description}
        entry |= {"reads_layouts": list(reads_layouts)}

        def register(function):
            self._kernels.append((entry, supports, function, timed))
            return function

        return register

    def serve(self):
        """Answers requests until the input ends. Redirects print() to standard error, which is the worker's log."""
        answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = getattr(self, "_" + request["request"] + "_request")(request) or {"status": "ok"}
            except Refused as refusal:
                answer = {"status": refusal.status, "reason": str(refusal) or "no reason given"}
            except Exception as error:
                traceback.print_exc()
                answer = {"status": "failed", "reason": f"{place_of(error)}: {type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)

    def _hello_request(self, request):
        if request["abi_version"] < ABI_VERSION:
            return {"error": f"does not serve a host of ABI version {request['abi_version']}"}
        kernels = [kernel[0] for kernel in self._kernels]
        return self._greeting | {
            "abi_version": ABI_VERSION,
            "kernels": kernels,
            "load_save": self._load_save is not None,
        }

    def _supports_request(self, request):
        supports = self._kernels[request["kernel"]][1]
        reason = supports(Problem(request["problem"])) if supports else None
        if reason:
            raise Refused(reason)

    def _problem(self, request):
        path, size = request["memory"], request["memory_bytes"]
        if self._memory[:2] != (path, size):
            with open(path, "r+b") as file:
                self._memory = (path, size, mmap.mmap(file.fileno(), size))
        return Problem(request["problem"], self._memory[2])

    def _run_request(self, request):
        self._kernels[request["kernel"]][2](self._problem(request))

    def _begin_timing_request(self, request):
        entry, _, function, timed = self._kernels[request["kernel"]]
        problem = self._problem(request)
        problem.op = entry["op"]
        self._timed = (timed or (lambda p, copies: Timed(function, p, copies)))(problem, request["copies"])
        self._copies = request["copies"]

    def _time_request(self, request):
        """Times only the calls."""
        copies = [(request["first"] + i) % self._copies if request["rotate"] else request["first"] for i in range(request["calls"])]
        call = self._timed.call
        start = time.perf_counter_ns()
        for copy in copies:
            call(copy)
        spent = time.perf_counter_ns() - start
        return {"status": "ok", "us": max(spent, 1) / 1000 / len(copies)}

    def _end_timing_request(self, request):
        self._timed.answer()
        measures = getattr(self._timed, "measures", {})
        self._timed = None
        return {"status": "ok", "measures": measures}

    def _load_save_request(self, request):
        if self._load_save is None:
            raise Refused("this provider loads no files")
        self._load_save(request["input"], request["output"])
