# SPDX-License-Identifier: BSD-3-Clause
"""Tests only the installed package: qcts finds its files, and providers in C and around oneDNN build against it outside the tree."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))


def command(*words, cwd=None, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("QCTS_", "GTEST_"))}
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=600, cwd=cwd, env=clean | more)
    assert done.returncode == 0, (words, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed")
    command("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def judge(package, folder, *words):
    """Runs the installed program without access to the repository."""
    folder.mkdir(exist_ok=True)
    command(package / "bin/qcts", "run", "--no-progress", "--out", folder / "out", *words, cwd=folder)
    return json.loads((folder / "out/report.json").read_text())


def test_the_header_is_c11(package, tmp_path):
    source = tmp_path / "empty.c"
    source.write_text("#include <qcts_kernel.h>\nint unused(void) { return QCTS_ABI_VERSION; }\n")
    flags = ["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command("cc", *flags, "-I", package / "include/qcts", "-c", source, "-o", tmp_path / "empty.o")


def test_the_installed_program_finds_its_own_things(package, tmp_path):
    report = judge(package, tmp_path / "run", "--plan", "quick", "--scheme", "int8_row", "--provider", "qcts", "--provider", "builtin")
    assert report["counts"]["by_status"]["pass"] > 100
    assert str(package) in run_record.verdicts(tmp_path / "run/out")[0]["rerun"]
    assert "<h1>Passed what was asked</h1>" in (tmp_path / "run/out/report.html").read_text()
    command(package / "bin/qcts", "report", tmp_path / "run/out", cwd=tmp_path)
    known = {golden["id"]: golden["sha256"] for golden in json.loads((ROOT / "fixtures/manifest.json").read_text())["goldens"]}
    judged = {golden["id"]: golden["sha256"] for golden in report["goldens"]}
    assert judged and judged.items() <= known.items(), "a narrowed run reports the goldens that it judged"


def test_the_installed_program_names_its_commit_and_defines_schemes(package, tmp_path):
    """What an installed qcts reports says which qcts judged; definitions need no source."""
    named = command(package / "bin/qcts", "--version", cwd=tmp_path).stdout.strip()
    words = ["--plan", "quick", "--filter", "numerics.dequantize/int8_row/noise_n37*", "--provider", "builtin"]
    report = judge(package, tmp_path / "run", *words)
    assert named == f"qcts {report['suite']['version']} ({report['suite']['commit']})"
    assert (report["suite"]["commit"] == "unknown") == (not (ROOT / ".git").exists())
    assert "qdata: int8 [n, k]" in command(package / "bin/qcts", "schemes", "--define", "int8_row", cwd=tmp_path).stdout


def test_the_installed_program_exports_vectors_with_their_agreement(package, tmp_path):
    words = ["vectors", "export", "--scheme", "mxfp4_even", "--out", tmp_path / "vectors"]
    done = command(package / "bin/qcts", *words, cwd=tmp_path)
    assert "torchao agrees on 84 of 84" in " ".join(done.stdout.split()) and done.stderr == ""
    assert (tmp_path / "vectors/mxfp4_even.json").read_bytes() == (ROOT / "suites/vectors/sample/mxfp4_even.json").read_bytes()
    command(package / "bin/qcts", "vectors", "check", tmp_path / "vectors/mxfp4_even.tsv", cwd=tmp_path)


def test_the_licence_goes_with_the_package(package):
    assert (package / "share/qcts/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def build_sample(package, sample, tmp_path):
    """Builds copies made outside the package, so that they cannot use the repository."""
    source = tmp_path / sample
    shutil.copytree(next((package / "share/qcts/examples").glob(sample)), source)
    command("cmake", "-S", source, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={package}", "-DCMAKE_BUILD_TYPE=Release")
    command("cmake", "--build", tmp_path / "build")
    return next((tmp_path / "build").glob("*.so"))


def without_failures(report, least):
    counts = report["counts"]["by_status"]
    assert set(name for name, count in counts.items() if count) <= {"pass", "not_supported"}, counts
    assert counts["pass"] >= least, counts


def test_the_sample_in_c(package, tmp_path):
    library = build_sample(package, "minimal", tmp_path)
    without_failures(judge(package, tmp_path / "run", "--scheme", "int8_row", "--kind", "numerics", "--provider", library), 5)


def test_one_compiler_call_is_enough(package, tmp_path):
    source = package / "share/qcts/examples/minimal/minimal.c"
    flags = ["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC"]
    command("cc", *flags, "-I", package / "include/qcts", source, "-o", tmp_path / "minimal.so")
    words = ["--provider", tmp_path / "minimal.so", "--filter", "numerics.linear/int8_row/noise_m1_n37_k216_f32"]
    without_failures(judge(package, tmp_path / "run", *words), 1)


@pytest.mark.skipif(not Path("/usr/include/oneapi/dnnl/dnnl.hpp").exists(), reason="no oneDNN (Debian: libdnnl-dev)")
def test_the_sample_around_onednn(package, tmp_path):
    library = build_sample(package, "onednn", tmp_path)
    without_failures(judge(package, tmp_path / "run", "--plan", "quick", "--provider", library), 10)


def test_the_sample_in_python(package, tmp_path):
    sample = tmp_path / "acme.py"
    sample.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{package}/share/qcts/examples/python/provider.py"\n')
    sample.chmod(sample.stat().st_mode | stat.S_IXUSR)
    words = ["--kind", "numerics", "--kind", "determinism", "--plan", "quick", "--provider", sample]
    without_failures(judge(package, tmp_path / "run", *words), 10)
