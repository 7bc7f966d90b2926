# SPDX-License-Identifier: BSD-3-Clause
"""Protects the recipes of this folder: their files follow the schemas of their engines, and their steps are run as the engines run them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pysarif
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "scripts/ci"
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
QUICK = "--plan nightly --filter 'numerics.*/int8_row/*_f32'"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Two builds of the sample provider: right, and with the scale of the previous row."""
    folder = tmp_path_factory.mktemp("acme")
    source = (ROOT / "suites/selftest/minimal/minimal.c").read_text()
    right = "float_at(w.scale, n);"
    assert right in source
    for name, text in [("right", source), ("wrong", source.replace(right, "float_at(w.scale, n > 0 ? n - 1 : 0);"))]:
        (folder / f"{name}.c").write_text(text)
        words = ["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-I", ROOT / "kernels/abi", f"{name}.c", "-o", f"{name}.so"]
        subprocess.run(words, cwd=folder, check=True)
    return lambda name: folder / f"{name}.so"


def a_golden():
    manifest = json.loads((ROOT / "fixtures/manifest.json").read_text())
    return next(ROOT / "fixtures" / entry["file"] for entry in manifest["goldens"] if entry["file"].endswith(".safetensors"))


def a_malformed():
    manifest = json.loads((ROOT / "fixtures/manifest.json").read_text())
    bad = next(entry for entry in manifest["malformed"] if entry["file"].endswith(".safetensors"))
    return ROOT / "fixtures" / bad["file"], bad["refusal"]


@pytest.mark.parametrize(
    "schema, file",
    [("github-actions", "github/action.yml"), ("github-workflows", "github/workflow.yml"), ("gitlab-ci", "gitlab-ci.yml")],
)
def test_the_files_follow_the_schemas_of_their_engines(schema, file):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(CI / file)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def github(tmp_path, judge, arguments=""):
    """Runs the first step of the action as GitHub does. Returns the result, the step's page and its outputs."""
    action = yaml.safe_load((CI / "github/action.yml").read_text())
    step = action["runs"]["steps"][0]
    inputs = {"judge": judge, "arguments": arguments, "out": str(tmp_path / "out")}
    environment = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: inputs[m[1]], value) for name, value in step["env"].items()}
    page, outputs = tmp_path / "page.md", tmp_path / "outputs"
    page.write_text("")
    environment |= {"GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": str(CI / "github"), "GITHUB_STEP_SUMMARY": str(page)}
    environment |= {"GITHUB_OUTPUT": str(outputs), "QCTS": QCTS}
    (tmp_path / "step.sh").write_text(step["run"])
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(tmp_path / "step.sh")]
    result = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    return result, page.read_text(), outputs.read_text()


def test_github_a_right_library(tmp_path, library):
    result, page, outputs = github(tmp_path, f"provider:{library('right')}", QUICK)
    assert result.returncode == 0 and outputs == "exit_code=0\n", result.stdout + result.stderr
    assert "PASSED" in page.upper() and "::error" not in result.stdout
    badge = json.loads((tmp_path / "out/badge.json").read_text())
    assert badge == {"schemaVersion": 1, "label": "qcts", "message": "passed", "color": "green"}


def test_github_a_wrong_library_is_annotated(tmp_path, library):
    result, page, outputs = github(tmp_path, f"provider:{library('wrong')}", QUICK)
    assert result.returncode == 1 and outputs == "exit_code=1\n"
    annotations = [line for line in result.stdout.splitlines() if line.startswith("::error ")]
    assert all(re.fullmatch(r"::error title=minimal%3A [^:]* \(\d+\)::numerics\..*%0A.*", line) for line in annotations), annotations
    assert any("scale of the previous row" in line for line in annotations)
    assert "scale of the previous row" in page
    assert json.loads((tmp_path / "out/badge.json").read_text())["color"] == "red"


def test_github_a_sound_file(tmp_path):
    result, page, _ = github(tmp_path, f"file:{a_golden()}")
    assert result.returncode == 0 and "exit code 0" in page, result.stderr
    sarif = json.loads((tmp_path / "out/check.sarif").read_text())
    assert sarif["version"] == "2.1.0" and sarif["runs"][0]["results"] == []


def test_github_a_refused_file_says_where(tmp_path):
    path, refusal = a_malformed()
    result, _, _ = github(tmp_path, f"file:{path}")
    assert result.returncode == 1
    run = json.loads((tmp_path / "out/check.sarif").read_text())["runs"][0]
    (found,) = run["results"]
    assert found["ruleId"] == refusal == run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"]
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"file://{path}" and place.get("region", {"byteOffset": 0})["byteOffset"] >= 0


def test_another_reader_takes_the_sarif(tmp_path):
    path, refusal = a_malformed()
    github(tmp_path, f"file:{path}")
    log = pysarif.load_from_file(str(tmp_path / "out/check.sarif"))
    (result,) = log.runs[0].results
    assert log.version == "2.1.0" and log.runs[0].tool.driver.name == "qcts"
    assert result.rule_id == refusal and result.level == "error" and result.message.text


def test_gitlab_and_kubernetes_run_shards_that_merge(tmp_path, library):
    """The commands of both, with the variables that the engines set; then GitLab's merge."""
    gitlab = yaml.safe_load((CI / "gitlab-ci.yml").read_text())
    kubernetes = yaml.safe_load((CI / "kubernetes.yaml").read_text())
    container = kubernetes["spec"]["template"]["spec"]["containers"][0]
    shards = kubernetes["spec"]["completions"]
    assert container["env"] == [{"name": "QCTS_SHARDS", "value": str(shards)}]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/qcts").symlink_to(QCTS)
    path = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "shared").mkdir()
    for folder in (tmp_path, tmp_path / "shared"):
        (folder / "libacme.so").write_bytes(library("right").read_bytes())
    narrow = lambda text: text.replace("--plan nightly", QUICK)  # noqa: E731

    def shell(text, **environment):
        more = {"cwd": tmp_path, "env": os.environ | path | environment, "timeout": 600}
        done = subprocess.run(["bash", "-ec", text], capture_output=True, text=True, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    for index in range(shards):
        (script,) = container["args"]
        shell(narrow(script).replace("/shared", str(tmp_path / "shared")), QCTS_SHARDS=str(shards), JOB_COMPLETION_INDEX=str(index))
        (script,) = gitlab["qcts"]["script"]
        shell(narrow(script), CI_NODE_INDEX=str(index + 1), CI_NODE_TOTAL=str(shards), QCTS_OUT=f"out-{index + 1}")
    shell(f"qcts merge {tmp_path}/shared/out-* --out {tmp_path}/shared/out")
    (script,) = gitlab["qcts_merge"]["script"]
    shell(script)
    counts = [json.loads((folder / "report.json").read_text())["counts"] for folder in (tmp_path / "out", tmp_path / "shared/out")]
    assert counts[0] == counts[1] and counts[0]["total"] > 20


def test_slurm_submits_an_array_and_a_merge_that_waits_for_it(tmp_path, library):
    """A stand-in for sbatch runs what it is given, as Slurm would."""
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(
        """#!/usr/bin/env python3
import os, pathlib, re, subprocess, sys
log = pathlib.Path(os.environ["SBATCH_LOG"])
words, jobs = sys.argv[1:], log.read_text().count("\\n") if log.exists() else 0
log.open("a").write(repr(words) + "\\n")
named = dict(word.split("=", 1) for word in words if word.startswith("--") and "=" in word)
first, last = map(int, named.get("--array", "1-1").split("-"))
for task in range(first, last + 1):
    more = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": str(last), "SLURM_ARRAY_TASK_MIN": "1"}
    more = more if "--array" in named else {}
    code = subprocess.run(["bash", "-c", words[words.index("--wrap") + 1]], env=os.environ | more, stdout=sys.stderr).returncode
    if code: sys.exit(code)
print(jobs + 1)
"""
    )
    sbatch.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "QCTS": QCTS, "SBATCH_LOG": str(tmp_path / "log")}
    for name, code in [("right", 0), ("wrong", 1)]:
        out = tmp_path / name
        words = [str(CI / "slurm"), "3", str(out), str(library(name)), "--plan", "nightly", "--filter", "numerics.*/int8_row/*_f32"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == code, done.stderr
        assert json.loads((out / "report.json").read_text())["conformance"]["exit_code"] == code
    lines = (tmp_path / "log").read_text().splitlines()
    assert "'--array=1-3'" in lines[0] and "'--dependency=afterok:1'" in lines[1]
