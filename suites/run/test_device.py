# SPDX-License-Identifier: BSD-3-Clause
"""Protects `qcts run --device cuda`: kernels that compute on a device are judged as on the host, and what goes wrong there is named.

The device is the fake one of kernels/fakecuda, on which provider cudaemu runs the device kernels in the executor."""

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
LIBRARIES = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release")) / "lib"
DRIVER = LIBRARIES / "libqcts_fakecuda.so"
DEQUANTIZE = ["--plan", "nightly", "--filter", "numerics.dequantize/int8_row/noise_n*_f32"]


def run(out, *arguments, driver=DRIVER, **environment):
    command = [QCTS, "run", "--device", "cuda", "--out", str(out), "--no-progress", *map(str, arguments)]
    environment = dict(os.environ, QCTS_CUDA_DRIVER=str(driver), **environment)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def faulty(name):
    return ["--provider", LIBRARIES / "selftest" / f"qcts_device_{name}.so", *DEQUANTIZE]


def report(out):
    return json.loads((out / "report.json").read_text())


def test_device_kernels_pass_on_the_device(tmp_path):
    result = run(tmp_path, "--plan", "quick_cuda", "--scheme", "int8_row", "--scheme", "fp8_sparse24_row")
    assert result.returncode == 0, result.stdout + result.stderr
    device = report(tmp_path)["environment"]["device"]
    assert device["name"] == "fake GPU of qcts" and device["fake"] and len(device["driver_sha256"]) == 64
    assert "--device cuda:0" in report(tmp_path)["run"]["selection"]
    schema = json.loads((ROOT / "reports/report.schema.json").read_text())
    jsonschema.validate(report(tmp_path), schema, cls=jsonschema.Draft202012Validator)
    assert result.stdout.startswith("qcts") and "fake GPU of qcts, " in result.stdout


@pytest.mark.parametrize("kind", ["numerics", "determinism"])
def test_a_right_library_passes(tmp_path, kind):
    result = run(tmp_path, *faulty("none")[:2], "--plan", "nightly", "--filter", f"{kind}.dequantize/int8_row/noise*")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    "fault, text",
    [
        ("wrong", "row 1, column"),
        ("past_end", "wrote outside its buffers: y: 1 byte written after the end, the first at +1000"),
        ("before_start", "wrote outside its buffers: y: 1 byte written before the start, the nearest at -300"),
        ("input", "wrote into its input qdata"),
        ("fails", "run() failed on the device: CUDA_ERROR_LAUNCH_FAILED (an illegal memory access was encountered)"),
        ("status", "device_status is 3 at place 0"),
        ("host_read", "SIGSEGV"),
        ("no_stream", "run() returned 3"),
        ("own_stream", "wrote its outputs before its stream went on: it uses another stream"),
        ("no_work", "not written"),
        ("waits", "run() waits for the device: it returned only once its stream went on"),
        ("kept_problem", "SIGSEGV"),
    ],
)
def test_a_fault_is_named(tmp_path, fault, text):
    result = run(tmp_path, *faulty(fault))
    assert result.returncode == 1, result.stdout + result.stderr
    failures = report(tmp_path)["failures"]
    assert failures and all(text in json.dumps(failure) for failure in failures), failures[0]


@pytest.mark.parametrize("fault, text", [
    ("reads_past_end", "read past the end of qdata, at +0"),
    ("far_past_end", "read or wrote past the end of y, at +8192"),
    ("far_before_start", "read or wrote before the start of y, at -12288"),
])  # fmt: skip
def test_buffers_end_where_nothing_is_mapped(tmp_path, fault, text):
    """Red zones do not show reads, nor what is written beyond them. Each input has such buffers once, some at their beginning."""
    result = run(tmp_path, *faulty(fault)[:2], "--plan", "nightly", "--filter", "numerics.dequantize/int8_row/*_bf16")
    failures = report(tmp_path)["failures"]
    assert result.returncode == 1 and failures, result.stdout + result.stderr
    assert any(text in json.dumps(failure) for failure in failures), failures[0]
    (provider,) = report(tmp_path)["providers"]
    assert provider["device_guards"] == "yes"


def test_where_the_driver_refuses_guards_the_record_says_so(tmp_path):
    result = run(tmp_path, *faulty("reads_past_end"), QCTS_FAKECUDA_FAULTS="cuMemMap:5=800")
    assert result.returncode == 0, result.stdout + result.stderr
    (provider,) = report(tmp_path)["providers"]
    assert provider["device_guards"] == "no: cuMemMap: CUDA_ERROR_NOT_PERMITTED (operation not permitted)"


@pytest.mark.parametrize("faults, provider", [(None, "hangs"), ("launch:2=hang", "none")])
def test_a_hang_costs_its_case_alone(tmp_path, faults, provider):
    plan = json.loads((ROOT / "suites/plans/nightly.json").read_text()) | {"case_timeout_s": 5}
    (tmp_path / "hasty.json").write_text(json.dumps(plan))
    arguments = [*faulty(provider)[:2], "--plan", tmp_path / "hasty.json", "--filter", "numerics.dequantize/int8_row/columns_n12_k22_f32"]
    result = run(tmp_path / "out", *arguments, **({"QCTS_FAKECUDA_FAULTS": faults} if faults else {}))
    assert result.returncode == 1 and report(tmp_path / "out")["counts"]["by_status"]["timeout"] == 1, result.stdout + result.stderr


@pytest.mark.parametrize(
    "fault, text",
    [
        ("stale_replay", "wrong when a graph is replayed with other data: "),
        ("skips_capture", "run() put no kernel into the graph that its stream captured"),
        ("allocates", "run() did what cannot be captured: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
    ],
)
def test_a_fault_of_capture_is_named(tmp_path, fault, text):
    """It shows only in determinism, where a kernel that claims to be capturable is replayed."""
    provider, where = faulty(fault)[:2], ["--plan", "nightly", "--filter"]
    passed = run(tmp_path / "numerics", *provider, *where, "numerics.dequantize/int8_row/noise_n*_f32")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    result = run(tmp_path / "out", *provider, *where, "determinism.dequantize/int8_row/noise_*")
    failures = report(tmp_path / "out")["failures"]
    assert result.returncode == 1 and failures, result.stdout + result.stderr
    assert all(text in json.dumps(failure) for failure in failures), failures[0]


def test_an_error_of_the_device_is_named_in_each_case_that_has_it(tmp_path):
    """The third launch of each host fails, and a host that has failed computes no more."""
    result = run(tmp_path, *faulty("none"), QCTS_FAKECUDA_FAULTS="launch:3=700")
    failures = report(tmp_path)["failures"]
    assert result.returncode == 1 and failures
    assert all("CUDA_ERROR_ILLEGAL_ADDRESS" in json.dumps(failure) for failure in failures), failures[0]


@pytest.mark.parametrize("arguments, code, text", [
    (["--provider", "builtin"], 2, "no provider 'builtin' for a device"),
    (["--kind", "size"], 2, "--kind size cannot be judged on a device"),
    (["--provider", "/bin/true"], 2, "is a program"),
])  # fmt: skip
def test_what_cannot_be_asked_is_said(tmp_path, arguments, code, text):
    result = run(tmp_path, *arguments)
    assert result.returncode == code and text in result.stderr, result.stdout + result.stderr


@pytest.mark.skipif(not (LIBRARIES / "plugins/cuda/libqcts_cuda.so").exists(), reason="nvcc was not found: no kernels for a GPU are built")
def test_what_a_gpu_would_be_asked_is_listed_without_one():
    def listed(device):
        command = [QCTS, "list", "--device", device, "--plan", "quick_cuda", "--scheme", "fp8_row"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    older, newer = listed("sm80"), listed("sm90")
    assert {case.rsplit("/", 1)[1] for case in newer} == {"cuda_sm80", "cuda_sm90a"}
    assert older == [case for case in newer if case.endswith("/cuda_sm80")]
    assert all(case.split(".")[0] in ("numerics", "determinism") for case in newer)


@pytest.mark.skipif(not (LIBRARIES / "plugins/cuda/libqcts_cuda.so").exists(), reason="nvcc was not found: no kernels for a GPU are built")
def test_what_would_be_timed_is_listed_without_a_gpu():
    command = [QCTS, "list", "--device", "sm90", "--plan", "latency_cuda"]
    cases = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(cases) == 117 and all(case.startswith("latency.linear/") for case in cases)


def test_an_unknown_architecture_is_refused():
    done = subprocess.run([QCTS, "list", "--device", "sm75"], capture_output=True, text=True)
    assert done.returncode == 2 and "no device 'sm75'" in done.stderr


def test_no_driver_proves_nothing(tmp_path):
    result = run(tmp_path, "--plan", "quick", driver="/nonexistent/libcuda.so.1")
    assert result.returncode == 3 and "no device cuda:0: no CUDA driver" in result.stderr


def test_an_older_gpu_is_asked_what_it_can_run(tmp_path):
    result = run(tmp_path, "--plan", "quick_cuda", "--scheme", "fp8_row", QCTS_FAKECUDA_CAPABILITY="80")
    assert result.returncode == 0, result.stdout + result.stderr
    assert {row["variant"] for row in report(tmp_path)["cells"] if row["passes"]} == {"sm80"}


def test_the_driver_may_refuse(tmp_path):
    result = run(tmp_path, "--plan", "quick", QCTS_FAKECUDA_FAULTS="cuMemCreate:1=2,cuMemCreate:2=2")
    assert result.returncode == 5 and "CUDA_ERROR_OUT_OF_MEMORY" in result.stdout + result.stderr


# The times of the clock library come from a stand-in that only passes time (suites/selftest/device_faults/clock.cc).
TIMED = ["--plan", "latency_fake", "--filter", "latency.linear/int8_row/noise_m1_*"]


def timed(out, name, *arguments, clock="qcts_fakeclock.so", **script):
    """Returns the exit code, and the latency row of the only case."""
    provider = ["--provider", LIBRARIES / "selftest" / f"qcts_device_{name}.so"]
    result = run(out, *provider, *TIMED, *arguments, QCTS_CUDA_CLOCK=str(LIBRARIES / "selftest" / clock), **script)
    (row,) = report(out)["latency"]
    return result.returncode, row


def test_a_steady_kernel_is_timed(tmp_path):
    code, row = timed(tmp_path, "none", QCTS_FAKECUDA_LAUNCH_US="400", QCTS_FAKECLOCK_US="300")
    measures = row["measures"]
    assert code == 0 and row["status"] == "pass", row["reason"]
    assert 400 <= measures["fastest_us"]["value"] < 500 and measures["median_us"]["value"] >= 400
    # The memory of the roof takes 300 us per launch, its arithmetic a little of that.
    assert 0.3 < measures["share_of_probe"]["value"] < 2 and measures["share_of_peak"]["value"] < 0.01
    assert measures["launches"]["value"] == 1 and measures["road_us"]["value"] < 100
    # Three times the 50 MiB of L2, or as many copies as are allowed.
    assert measures["working_set_bytes"]["value"] >= min(150 << 20, 4095 * 64 * 64)
    assert measures["drawn_outputs"]["value"] >= 512


def test_a_noisy_kernel_is_not_known_well(tmp_path):
    code, row = timed(tmp_path, "none", QCTS_FAKECUDA_LAUNCH_US="300,900,350,2000,310,5000,400", QCTS_FAKECLOCK_US="200")
    measures = row["measures"]
    assert code == 0 and measures["fastest_us"]["value"] >= 300
    low, high = measures["ratio_to_itself"].get("low"), measures["ratio_to_itself"].get("high")
    assert low is None or high / low > 1.01 or measures["alarm"]["value"] == 1


@pytest.mark.parametrize("fault, text", [
    ("patches_events", "took longer by the judge's clock than by its events"),
    ("late_work", "took longer by the judge's clock than by its events"),
    ("none", "faster than the machine's own roof"),
])  # fmt: skip
def test_a_time_that_cannot_be_is_no_pass(tmp_path, fault, text):
    """The events report wrong times, work goes on after the last of them, or the roof takes longer than the kernel."""
    roof_us = "5" if fault != "none" else "2000"
    code, row = timed(tmp_path, fault, "--gate", "latency", QCTS_FAKECUDA_LAUNCH_US="400", QCTS_FAKECLOCK_US=roof_us)
    assert code == 4 and row["status"] == "inconclusive" and text in row["reason"], row["reason"]


def test_outputs_that_graphs_do_not_write_are_noticed(tmp_path):
    code, row = timed(tmp_path, "stale_replay", QCTS_FAKECUDA_LAUNCH_US="400")
    assert code == 1 and row["reason"].startswith("wrong while timed: y of column"), row["reason"]


def test_without_the_clock_library_nothing_is_timed(tmp_path):
    code, row = timed(tmp_path, "none", clock="no_such_library.so")
    assert code == 4 and row["status"] == "inconclusive", row["reason"]
    assert row["reason"].startswith("not timed: no clock library: ") and "median_us" not in row["measures"]


def test_device_kernels_are_timed_on_the_device(tmp_path):
    result = run(tmp_path, *TIMED, QCTS_CUDA_CLOCK=str(LIBRARIES / "selftest/qcts_fakeclock.so"))
    (row,) = report(tmp_path)["latency"]
    assert result.returncode == 0 and row["measures"]["median_us"]["value"] > 0, row["reason"]
    assert "no target for this machine class fake_gpu_of_qcts" in row["reason"]
