# SPDX-License-Identifier: BSD-3-Clause
"""`qcts run` of a provider with a wrong scale, on terminals of 80 and 120 columns and without one: a word at once, one progress line,
failures in groups with the hypothesis whole, verdict and reports last."""

import json
import os
import re
import subprocess

import pytest
from qcts_program import BIN, ROOT, on_terminal, qcts

RIGHT = "const float scale = float_at(w.scale, n);"
WRONG = "const float scale = float_at(w.scale, n > 0 ? n - 1 : 0);"


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    """The sample provider, with the scale of the previous row."""
    folder = tmp_path_factory.mktemp("acme")
    source = (ROOT / "suites/selftest/minimal/minimal.c").read_text().replace('"minimal"', '"acme"')
    assert RIGHT in source
    (folder / "acme.c").write_text(source.replace(RIGHT, WRONG))
    words = ["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-I", ROOT / "kernels/abi", "acme.c", "-o", "acme.so"]
    subprocess.run(words, cwd=folder, check=True, timeout=120)
    return folder


@pytest.fixture(scope="module", params=[80, 120])
def shown(request, acme):
    columns = request.param
    return on_terminal("run", "--provider", "./acme.so", columns=columns, cwd=acme), columns


def test_no_line_is_wider_than_the_terminal(shown):
    done, columns = shown
    assert done.code == 1 and max(map(len, done.lines)) <= columns, max(done.lines, key=len)


def test_a_word_comes_at_once_and_progress_is_one_line(shown):
    done, _ = shown
    before, summary = done.text.rsplit("\r\x1b[K", 1)
    assert summary.startswith("qcts ")
    steps = [step for step in before.split("\r\x1b[K") if step]
    assert steps[:3] == ["reading the fixtures ...", "starting 1 provider ...", "expanding plan default ..."]
    causes = [step for step in steps[3:] if step.endswith("\n")]
    assert all(re.match(r"(\x1b\[31m)?\[\d+/\d+\]", step) for step in steps[3:] if step not in causes)
    assert 0 < len(causes) <= 8 and len(set(causes)) == len(causes)
    assert any(cause.startswith("fail: scale of the previous row") for cause in causes), causes


def test_failures_are_grouped_with_the_hypothesis_whole(shown):
    done, _ = shown
    heads = [i for i, line in enumerate(done.lines) if re.fullmatch(r"  \d+ of \d+: fail of acme in numerics\..*", line)]
    group = done.lines[heads[-1] :]
    assert any(re.fullmatch(r"\d+ failures with (one cause|\d+ causes)", line) for line in group)
    assert re.fullmatch(r"    hypothesis: scale of the previous row \(predicts (\d+) of \1\).*", group[1])
    assert group[2].startswith("    numerics.")


def test_the_last_lines_are_verdict_counts_and_reports(shown):
    done, _ = shown
    verdict, counts, reports = [line for line in done.lines if line][-3:]
    assert re.fullmatch(r"NOT CONFORMANT: \d+ of \d+ judged cases failed", verdict)
    assert re.fullmatch(r"\d+ pass, \d+ fail, (\d+ \w+, )*\d+ not supported", counts)
    assert reports.startswith("out/report.")


def test_counts_are_the_reports(shown, acme):
    done, _ = shown
    counts = json.loads((acme / "out/report.json").read_text())["counts"]["by_status"]
    judged = sum(count for status, count in counts.items() if status != "not_supported")
    assert f"NOT CONFORMANT: {counts['fail']} of {judged} judged cases failed" in done.text
    assert counts["robustness"] > 0  # the wrong scale shows in a hostile input too, and gates nothing there
    rest = f"{counts['robustness']} robustness, {counts['not_supported']} not supported"
    assert f"{counts['pass']} pass, {counts['fail']} fail, {rest}" in done.text


def test_the_rerun_line_of_a_group_can_be_pasted(shown, acme):
    done, _ = shown
    lines = done.lines
    at = next(i for i, line in enumerate(lines) if " run --filter" in line)
    command = [lines[at]]
    while command[-1].endswith("\\"):
        command.append(lines[at + len(command)])
    clean = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    again = subprocess.run("\n".join(command), shell=True, cwd=acme, capture_output=True, text=True, timeout=120, env=clean)
    assert again.returncode == 1 and "1 failure with one cause" in again.stdout, again.stdout + again.stderr


def test_colours_only_where_they_are_wanted(acme):
    words = ["run", "--provider", "./acme.so", "--filter", "numerics.dequantize/int8_row/*"]
    assert "\x1b[31mNOT CONFORMANT" in on_terminal(*words, cwd=acme).text
    plain = on_terminal(*words, cwd=acme, NO_COLOR="1").text
    assert "NOT CONFORMANT" in plain and "\x1b[3" not in plain


def test_without_a_terminal_a_short_run_says_nothing_but_its_summary(acme):
    words = [BIN, "run", "--provider", "./acme.so"]
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "QCTS_ROOT")}
    done = subprocess.run(words, cwd=acme, capture_output=True, text=True, timeout=300, env=clean)
    assert done.returncode == 1 and done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80 and "\x1b" not in done.stdout


def test_no_progress_means_none(acme):
    words = ["run", "--no-progress", "--provider", "./acme.so", "--filter", "numerics.dequantize/int8_row/*"]
    assert on_terminal(*words, cwd=acme).text.startswith("qcts ")


CASE = "numerics.dequantize/int8_row/noise_n37_k216_f32"


def replayed(file, folder):
    words = [BIN, "replay", file, "--provider", "./acme.so", "--json"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    (kernel,) = json.loads(done.stdout)["kernels"]
    return kernel["reason"]


def test_a_shrunk_case_keeps_its_diagnosis_and_a_smaller_one_is_kept_beside_it(acme):
    done = on_terminal("shrink", CASE, "--provider", "./acme.so", "--out", "small.json", cwd=acme)
    assert done.code == 0, done.text
    same, smaller = (json.loads((acme / name).read_text()) for name in ("small.json", "small.smallest.json"))
    assert smaller["n"] * smaller["k"] < same["n"] * same["k"] < 37 * 216
    assert "hypothesis: scale of the previous row" in replayed("small.json", acme)
    assert "hypothesis: scale of the previous row" not in replayed("small.smallest.json", acme)
    text = " ".join(" ".join(done.lines).split())
    assert 'no longer by "scale of the previous row": both are kept' in text
    document = json.loads(qcts("shrink", CASE, "--provider", acme / "acme.so", "--out", acme / "again.json", "--json").stdout)
    assert [file["hypothesis"] == "scale of the previous row" for file in document["files"]] == [True, False]
