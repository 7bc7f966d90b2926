# SPDX-License-Identifier: BSD-3-Clause
"""Providers that speak the line-JSON protocol are judged like the others, and each fault costs them one case."""

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
SAMPLE = ROOT / "suites/selftest/python/provider.py"
# Run in this order: one case before the fault, the one with the fault (k = 13), and one after it.
THREE_CASES = [
    "--filter=numerics.dequantize/int8_row/noise_n*_f32",
    "--filter=numerics.dequantize/int8_row/torchao_0_18_0_odd_17x64_f32_0",
]
PLAN = {
    "description": "",
    "kinds": ["numerics", "round_trip", "reject"],
    "all_variants": True,
    "all_inputs": True,
    "case_timeout_s": 20,
    "latency_budget_s": 0,
    "latency_m": [],
    "latency_shapes": [],
}


def program(folder, text):
    """Writes an executable that runs `text` with this Python."""
    (folder / "provider_text.py").write_text(text)
    path = folder / "acme.sh"
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}/kernels/abi:$PYTHONPATH" exec "{sys.executable}" "{folder}/provider_text.py"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def sample_with(fault):
    """Returns the sample provider with `fault` added to dequantize for k = 13."""
    text = SAMPLE.read_text().replace("Path(__file__).resolve().parents[3]", f"Path({str(ROOT)!r})")
    text = text.replace("Path(__file__).resolve().parents[2]", f"Path({str(ROOT)!r})")
    marker = "    p.y[...] = narrow(codes * "
    assert text.count(marker) == 1
    return text.replace(marker, "    if p.k == 13:\n" + textwrap.indent(fault, " " * 8) + marker)


def run(folder, provider, *words):
    (folder / "plan.json").write_text(json.dumps(PLAN))
    arguments = ["run", "--no-progress", "--jobs", "1", "--plan", folder / "plan.json", "--out", folder / "out"]
    arguments += ["--provider", provider, *words]
    wide = dict(os.environ, COLUMNS="1000")  # messages on one line
    result = subprocess.run([QCTS, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=wide)
    path = folder / "out/report.json"
    if not path.exists():
        return result, None
    return result, json.loads(path.read_text()) | {"cases": run_record.verdicts(folder / "out")}


def test_a_provider_without_a_fault(tmp_path):
    result, report = run(tmp_path, program(tmp_path, sample_with("pass\n")), *THREE_CASES)
    assert result.returncode == 0, result.stdout + result.stderr
    assert [case["status"] for case in report["cases"]] == ["pass"] * 3
    assert report["providers"][0]["name"] == "numpy"


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("p.y[0, 0] += 1\nreturn\n", "fail", "differ"),
        ("p.planes['qdata'][0, 0] += 1\n", "fail", "wrote into its input qdata"),
        ("import os; os.abort()\n", "crash", "SIGABRT"),
        ("import os; os._exit(0)\n", "crash", "exit code 0"),
        ("import time; time.sleep(1000)\n", "timeout", "no verdict within"),
        ("raise RuntimeError('a planted error')\n", "fail", "a planted error"),
        ("np.ndarray((4,), np.uint8, p.y.base, 0)[0] ^= 255\n", "fail", "wrote outside its tensors"),
        ("print('chatter')\nimport os; os.write(1, b'more')\n", "pass", ""),
    ],
    ids=["wrong", "input", "aborts", "leaves", "hangs", "raises", "scribbles", "chatters"],
)
def test_a_fault_costs_one_case(tmp_path, fault, status, reason):
    result, report = run(tmp_path, program(tmp_path, sample_with(fault)), *THREE_CASES)
    assert report is not None, result.stderr
    struck = report["cases"][1]
    assert "k13" in struck["id"] and [case["status"] for case in report["cases"]] == ["pass", status, "pass"]
    assert reason in struck["reason"] + ("differ" if "mismatch" in struck else "")


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("assert p.x.shape == (0, p.k) and p.y.shape == (0, p.n)", "pass", ""),
        ("raise RuntimeError('no blocks')", "fail", "no blocks"),
        ("p.planes['qdata'][0, 0] += 1", "fail", "wrote into its input qdata"),
        ("np.ndarray((4,), np.uint8, p.planes['qdata'].base, 0)[0] ^= 255", "fail", "wrote outside its tensors"),
    ],
    ids=["does nothing", "raises", "input", "scribbles"],
)
def test_a_problem_without_rows(tmp_path, body, status, reason):
    text = "import numpy as np\nfrom qcts_provider import Provider\nprovider = Provider('acme')\n"
    text += "@provider.kernel('linear', 'int8_row', 'x', supports=lambda p: 'rows' if p.m else None)\n"
    text += f"def linear(p):\n    {body}\nprovider.serve()\n"
    _, report = run(tmp_path, program(tmp_path, text), "--filter=numerics.linear/int8_row/batches_m0_*")
    assert len(report["cases"]) == 3
    assert {case["status"] for case in report["cases"]} == {status}
    assert all(reason in case["reason"] for case in report["cases"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print('no json', flush=True)\nimport time; time.sleep(9)", "not a JSON object"),
        ("import json; print(json.dumps({'error': 'not today'}), flush=True)\nimport time; time.sleep(9)", "not today"),
        ("import json; print(json.dumps({'name': 'acme'}), flush=True)\ninput()", "handshake"),
        ("raise SystemExit(3)", "exit code 3"),
        (
            "from qcts_provider import Provider\np = Provider('acme')\n"
            "p.kernel('linear', 'int8_row', 'x', claims=['best'])(print)\np.serve()",
            "unknown claim 'best'",
        ),
        ("from qcts_provider import Provider\nProvider('qcts').serve()", "calls itself 'qcts'"),
        (
            "from qcts_provider import Provider\np = Provider('acme')\np.kernel('multiply', 'int8_row', 'x')(print)\np.serve()",
            "unknown operation 'multiply'",
        ),
    ],
    ids=["no_json", "refuses", "half", "leaves", "claims", "impersonates", "op"],
)
def test_a_handshake_outside_the_protocol_ends_in_a_reason(tmp_path, text, why):
    result, _ = run(tmp_path, program(tmp_path, text))
    assert result.returncode == 5 and why in result.stdout + result.stderr, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import qcts_provider\nqcts_provider.Provder('acme')\n", "AttributeError: module 'qcts_provider' has no attribute 'Provder'"),
        ("import numpie\n", "ModuleNotFoundError: No module named 'numpie'"),
        ("def linear(p)\n    pass\n", "SyntaxError: expected ':'"),
        (
            "import sys\nprint('chatter ' * 9, file=sys.stderr)\n\ndef start():\n    serv()\n\nstart()\n",
            "NameError: name 'serv' is not defined",
        ),
    ],
    ids=["attribute", "import", "syntax", "name"],
)
def test_an_error_before_the_handshake_is_told_with_its_line_and_its_log(tmp_path, text, why):
    result, _ = run(tmp_path, program(tmp_path, text))
    told = result.stdout + result.stderr
    assert result.returncode == 5 and why in told and "provider_text.py" in told, told
    assert ", line " in told and "the provider's process ended: exit code 1" in told and "chatter" not in told, told
    log = tmp_path / "out/logs/acme_1.log"
    assert f"its log: {log}" in told and why in log.read_text()
    assert why in (tmp_path / "out/junit.xml").read_text().replace("&apos;", "'").replace("&#39;", "'")


def test_an_exception_in_a_kernel_names_its_line(tmp_path):
    text = sample_with("raise RuntimeError('a planted error')\n")
    line = 1 + text.splitlines().index("        raise RuntimeError('a planted error')")
    _, report = run(tmp_path, program(tmp_path, text), *THREE_CASES)
    assert f"provider_text.py:{line}: RuntimeError: a planted error" in report["cases"][1]["reason"]
    assert "Traceback" in (tmp_path / "out/logs/acme_1.log").read_text()


def test_a_dead_program_is_told_with_its_last_words(tmp_path):
    fault = "import sys; print('one\\ntwo', file=sys.stderr, flush=True); import os; os.abort()\n"
    _, report = run(tmp_path, program(tmp_path, sample_with(fault)), *THREE_CASES)
    reason = report["cases"][1]["reason"]
    assert "it last wrote: one | two" in reason and "its log: " in reason, reason
    assert "SIGABRT" in report["groups"][0]["title"] and ".log" not in report["groups"][0]["title"]


TWO_KERNELS = """import numpy as np
from qcts_provider import Provider
provider = Provider('acme')
for op, scheme in %r:
    provider.kernel(op, scheme, 'x', supports=lambda p: 'not today')(lambda p: None)
provider.serve()
"""


@pytest.mark.parametrize(
    ("scheme", "why"),
    [
        ("int8_rows", "linear of x: no scheme 'int8_rows' (did you mean 'int8_row'?)"),
        ("int8_row:dyn_row_sim", "linear of x: int8_row has no policy 'dyn_row_sim' (did you mean 'dyn_row_sym'?)"),
    ],
    ids=["scheme", "policy"],
)
def test_an_unknown_name_of_a_kernel_is_told_when_it_is_loaded(tmp_path, scheme, why):
    """A kernel that no case asks ends the run, even if it is one of several."""
    for number, kernels in enumerate(([("linear", scheme)], [("linear", scheme), ("dequantize", "int8_row")])):
        folder = tmp_path / str(number)
        folder.mkdir()
        result, report = run(folder, program(folder, TWO_KERNELS % kernels), *THREE_CASES)
        assert (result.returncode, report) == (2, None) and why in result.stderr, result.stdout + result.stderr
        assert "provider acme offers what no case of any plan can ask; linear of x: no " in result.stderr


def test_an_operation_that_no_scheme_of_the_family_has_is_refused(tmp_path):
    kernels = [("pack", "int8_row"), ("dequantize", "int8_row")]
    result, report = run(tmp_path, program(tmp_path, TWO_KERNELS % kernels), *THREE_CASES)
    assert (result.returncode, report) == (2, None)
    assert "no case of any plan can ask; pack of x: no case asks this of int8_row" in result.stderr


def test_an_unknown_policy_beside_a_known_one_is_told(tmp_path):
    """In a line of the summary, the record's head and the report."""
    why = "linear of x: int8_row has no policy 'dyn_row_sim' (did you mean 'dyn_row_sym'?)"
    kernels = [("linear", "int8_row:dyn_row_sim,weight_only"), ("dequantize", "int8_row")]
    result, report = run(tmp_path, program(tmp_path, TWO_KERNELS % kernels), *THREE_CASES)
    assert result.returncode == 3 and f"not asked: acme, {why}" in result.stdout, result.stdout + result.stderr
    assert report["providers"][0]["unknown"] == [why]


def test_a_provider_of_abi_0_9_is_asked_again_and_served(tmp_path):
    """Protects: a copy of the 0.9 adapter, which refuses every other version number."""
    of_0_9 = """
import qcts_provider

class Provider(qcts_provider.Provider):
    def _hello_request(self, request):
        if request["abi_version"] != 9:
            return {"error": f"does not serve a host of ABI version {request['abi_version']}"}
        return super()._hello_request({"abi_version": qcts_provider.ABI_VERSION}) | {"abi_version": 9}

qcts_provider.Provider = Provider
"""
    result, report = run(tmp_path, program(tmp_path, of_0_9 + sample_with("pass\n")), *THREE_CASES)
    assert result.returncode == 0, result.stdout + result.stderr
    assert report["cases"] and {case["status"] for case in report["cases"]} == {"pass"}


def test_kernels_see_the_parameters_of_the_scheme(tmp_path):
    fault = "assert (p.params.bits, p.params.granularity, p.params.zero_point) == (8, 'row', 'integer'), p.params\n"
    result, report = run(tmp_path, program(tmp_path, sample_with(fault)), *THREE_CASES)
    assert result.returncode == 0 and {case["status"] for case in report["cases"]} == {"pass"}, result.stdout + result.stderr


READS_TILES = """
import numpy as np
from qcts_provider import Provider, narrow, widen

provider = Provider("acme")

def linear(p):
    assert p.layout == "tile_packed_4d" and p.planes["qdata"].dtype == np.int32, (p.layout, p.planes)
    down, across = p.planes["qdata"].shape[:2]
    words = p.planes["qdata"].view(np.uint32).reshape(down, across, 8, 4, 4)  # row, quarter of a row's lanes, word
    codes = np.zeros((down, 8, across, 4, 4, 4, 2))  # ..., word, eighth of it, quarter, odd k
    for nibble in range(8):
        codes[..., nibble % 4, :, nibble // 4] = ((words >> (4 * nibble)) & 15).transpose(0, 2, 1, 4, 3)
    codes = codes.reshape(down * 8, across * 128)[: p.n, : p.k] - 8
    pairs = np.repeat(widen(p.planes["scale_and_zero"], p.w_dtype), p.group, axis=0)[: p.k, : p.n].astype(np.float64)
    y = widen(p.x, p.x_dtype).astype(np.float64) @ (codes * pairs[..., 0].T + pairs[..., 1].T).T
    y += 0 if p.bias is None else widen(p.bias, p.bias_dtype)
    p.y[...] = narrow(y.astype(np.float32), p.y_dtype)

numerics = {"accumulator": "float64", "output_cast": "float32"}
provider.kernel("linear", "int4_tinygemm", "numpy", numerics=numerics, reads_layouts=["tile_packed_4d"])(linear)
provider.serve()
"""


def test_a_linear_gets_the_packed_planes_that_it_declares(tmp_path):
    cases = "--filter=numerics.linear/int4_tinygemm_g32/noise_tile_packed_4d*_m5_n*"
    result, report = run(tmp_path, program(tmp_path, READS_TILES), cases)
    assert result.returncode == 0, result.stdout + result.stderr
    assert [case["status"] for case in report["cases"]] == ["pass"], report["cases"]
    silent = READS_TILES.replace(', reads_layouts=["tile_packed_4d"]', "")
    assert silent != READS_TILES
    result, _ = run(tmp_path, program(tmp_path, silent), cases)
    assert result.returncode == 3, "nothing is asked of a kernel that declares nothing: " + result.stdout + result.stderr


def test_the_adapter_converts_no_float8(monkeypatch):
    """Protects: numpy holds float8 as raw bits, which widen and narrow would treat as numbers."""
    np = pytest.importorskip("numpy")
    monkeypatch.syspath_prepend(str(ROOT / "kernels/abi"))
    from qcts_provider import narrow, widen

    values = np.array([1.5, -2, 0.1], np.float32)
    for dtype in ("float32", "float16", "bfloat16"):
        assert widen(narrow(values, dtype), dtype)[:2].tolist() == [1.5, -2]
    for dtype in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn_x2"):
        with pytest.raises(ValueError, match=dtype):
            widen(np.array([0x38], np.uint8), dtype)
        with pytest.raises(ValueError, match=dtype):
            narrow(values, dtype)


def test_exiting_after_the_handshake_reports_the_exit_code(tmp_path):
    """Protects: a write to a provider that has exited reports its exit code, and is not a SIGPIPE of the worker."""
    kernel = {"op": "dequantize", "scheme": "int8_row", "variant": "x"}
    text = f"""
import json, sys
version = json.loads(input())["abi_version"]
print(json.dumps({{"name": "acme", "abi_version": version, "kernels": [{kernel}]}}), flush=True)
raise SystemExit(3)
"""
    result, report = run(tmp_path, program(tmp_path, text), *THREE_CASES)
    assert result.returncode == 1, result.stdout + result.stderr
    for case in report["cases"]:
        assert case["status"] == "crash" and "the provider's process ended: exit code 3" in case["reason"], case


def test_a_program_that_cannot_be_executed_is_told_by_the_systems_reason(tmp_path):
    path = tmp_path / "acme"
    path.write_text("no program\n")
    path.chmod(0o755)
    result, _ = run(tmp_path, path)
    assert result.returncode == 5 and "Exec format error" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("make", [lambda path: path.write_text("x"), lambda path: path.mkdir()], ids=["text", "folder"])
def test_what_is_no_provider_is_refused_before_anything_starts(tmp_path, make):
    make(tmp_path / "acme")
    result, report = run(tmp_path, tmp_path / "acme")
    assert result.returncode == 2 and "is not a provider" in result.stderr and report is None


def test_a_rerun_line_holds_in_the_folder_where_the_run_was(tmp_path):
    """Protects: program, plan and provider are named relative to the current folder or absolutely, never relative to the repository."""
    provider = program(tmp_path, sample_with("p.y[0, 0] += 1\nreturn\n"))
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    words = ["run", "--no-progress", "--plan", "./plan.json", "--provider", "./" + provider.name, *THREE_CASES]
    subprocess.run([QCTS, *words], cwd=tmp_path, capture_output=True, timeout=300)
    [struck] = [case for case in run_record.verdicts(tmp_path / "out") if case["status"] == "fail"]
    assert "--provider ./acme.sh" in struck["rerun"] and "--plan ./plan.json" in struck["rerun"]
    again = subprocess.run(struck["rerun"] + " --no-progress --out again", shell=True, cwd=tmp_path, capture_output=True, timeout=300)
    assert again.returncode == 1, again
    assert [case["id"] for case in run_record.verdicts(tmp_path / "again")] == [struck["id"]]


def test_files_go_through_the_providers_own_libraries(tmp_path):
    pytest.importorskip("torchao")
    path = tmp_path / "checkpoints.sh"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SAMPLE.parent}/checkpoints.py"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    words = ["--filter", "round_trip.file/int8_row/torchao_0_18_0_toy_64_32_64*/torchfiles_loadsave"]
    words += ["--filter", "reject.file/any/z01_truncated_500/torchfiles_loadsave"]
    result, report = run(tmp_path, path, *words)
    assert len(report["cases"]) == 4 and {case["status"] for case in report["cases"]} == {"pass"}, result.stdout


TIMING = PLAN | {
    "kinds": ["latency"],
    "latency_budget_s": 1,
    "latency_m": [1, 16],
    "latency_shapes": [[64, 96]],
    "latency_ops": ["dequantize", "linear"],
    "latency_schemes": ["int8_row"],
    "latency_activations": ["weight_only"],
    "latency_cache_states": ["cold"],
    "latency_best_only": True,
}


def time_sample(tmp_path, fault):
    (tmp_path / "plan.json").write_text(json.dumps(TIMING))
    words = ["run", "--no-progress", "--plan", tmp_path / "plan.json", "--out", tmp_path / "out"]
    words += ["--provider", program(tmp_path, sample_with(fault))]
    subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=300)
    return json.loads((tmp_path / "out/report.json").read_text())["latency"]


def test_a_providers_own_clock_times_it_and_the_report_says_so(tmp_path):
    """Protects: the provider's process times itself on its own copies, next to the judge's probes."""
    rows = time_sample(tmp_path, "pass\n")
    assert len(rows) == 3 and {row["status"] for row in rows} == {"pass"}, rows
    for row in rows:
        assert "timed inside the provider's own process" in row["reason"]
        assert row["measures"]["median_us"]["value"] > 0 and row["measures"]["share_of_probe"]["value"] > 0
        assert "ratio_to_itself" in row["measures"]
    assert all(len(verdict["samples_us"]) >= 3 for verdict in run_record.verdicts(tmp_path / "out")), "the record keeps the samples"


def test_what_it_answered_while_it_was_timed_is_judged(tmp_path):
    """Returns a provider that is right in `run` and does nothing once it is timed."""
    text = SAMPLE.read_text().replace("Path(__file__).resolve().parents[3]", f"Path({str(ROOT)!r})")
    text = text.replace("Path(__file__).resolve().parents[2]", f"Path({str(ROOT)!r})")
    marker = "    p.y[...] = narrow(codes * "
    text = text.replace(marker, "    if hasattr(p, 'op'):\n        p.y[...] = 0\n        return\n" + marker)
    (tmp_path / "plan.json").write_text(json.dumps(TIMING | {"latency_ops": ["dequantize"]}))
    words = ["run", "--no-progress", "--plan", tmp_path / "plan.json", "--out", tmp_path / "out", "--provider", program(tmp_path, text)]
    subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=300)
    [row] = json.loads((tmp_path / "out/report.json").read_text())["latency"]
    assert row["status"] == "fail" and "wrong afterwards" in row["reason"], row
