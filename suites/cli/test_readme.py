# SPDX-License-Identifier: BSD-3-Clause
"""Tests README.md: its commands run as written, its quoted verdict and its table are the program's output, and its links have targets.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from qcts_program import BIN, ROOT, qcts

README = (ROOT / "README.md").read_text()
READMES = [path for path in ROOT.glob("**/*.md") if "build" not in path.relative_to(ROOT).parts]
RIGHT_SCALE = "const float scale = float_at(w.scale, n);"
SCALE_OF_THE_ROW_BEFORE = "const float scale = float_at(w.scale, n > 0 ? n - 1 : 0);"


def commands_after(text):
    """Returns the lines of the first ```sh block after `text`."""
    block = re.search(re.escape(text) + r".*?```sh\n(.*?)```", README, re.DOTALL)
    assert block, text
    return block[1].splitlines()


def run_in(folder, lines):
    """Runs lines of README.md in `folder`, after README.md's own line that puts qcts on the path."""
    program = Path(BIN).resolve().parent
    (export,) = commands_after("Build once with")
    prepared = export.replace("$PWD/build/release/bin", str(program))
    assert prepared != export
    script = "\n".join(["set -e", f"cd '{ROOT}'", prepared, f"cd '{folder}'", *lines])
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("QCTS_", "GTEST_", "COLUMNS"))}
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300, env=clean)


def a_checkpoint():
    return (ROOT / "fixtures/golden/torchao_0_18_0/int8_row/toy_64_32_64/model.pt").read_bytes()


def test_a_sound_checkpoint_passes(tmp_path):
    (tmp_path / "model.pt").write_bytes(a_checkpoint())
    done = run_in(tmp_path, commands_after("Is my checkpoint sound?"))
    assert done.returncode == 0, done.stderr
    *lines, last = filter(None, done.stdout.splitlines())
    verdicts = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert re.match(r"SOUND: model\.pt: \d+ tensors, 2 quantized; \d+ checks passed", last), last
    assert "pass           round_trip.file" in done.stdout and {*verdicts} <= {"pass", "not_supported"}


def test_a_damaged_checkpoint_is_refused(tmp_path):
    damaged = bytearray(a_checkpoint())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "model.pt").write_bytes(damaged)
    done = run_in(tmp_path, commands_after("Is my checkpoint sound?"))
    assert done.returncode == 1 and re.fullmatch(r"qcts: refused: CrcMismatch: record data/.*\n", done.stderr), done.stderr
    assert done.stdout == "NOT SOUND: model.pt: refused (CrcMismatch)\n"


@pytest.mark.parametrize("compiler", [["cc", "-std=c11"], ["c++", "-x", "c++", "-std=c++20"]], ids=["c", "cpp"])
def test_the_sample_compiles_as_c_and_as_cpp(tmp_path, compiler):
    words = ["-Wall", "-Werror", "-shared", "-fPIC", "-I", ROOT / "kernels/abi", ROOT / "suites/selftest/minimal/minimal.c"]
    subprocess.run([*compiler, *words, "-o", tmp_path / "minimal.so"], check=True, timeout=300)


def test_a_right_kernel_passes(tmp_path):
    done = run_in(tmp_path, commands_after("Is my kernel right?"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^PASSED default plan", done.stdout, re.MULTILINE) and " 0 fail," in done.stdout


def with_the_fault(lines):
    """Returns the commands, with the fault planted after the source is created."""
    fault = f"sed -i 's/{RIGHT_SCALE}/{SCALE_OF_THE_ROW_BEFORE}/' acme.c"
    return [lines[0], fault, f"grep -qF '{SCALE_OF_THE_ROW_BEFORE}' acme.c", *lines[1:]]


def test_a_wrong_kernel_fails(tmp_path):
    done = run_in(tmp_path, with_the_fault(commands_after("Is my kernel right?")))
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^NOT CONFORMANT: \d+ of \d+ judged cases failed$", done.stdout, re.MULTILINE)


def comparable(text):
    """The program's path is of any length, so its command may be broken at other places."""
    return " ".join(text.replace("\\\n", " ").split())


def test_the_quoted_verdict_is_what_the_program_prints(tmp_path):
    quoted = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1]
    rerun = re.sub(r"\s*\\\\\n\s*", " ", quoted).rstrip().split(" run ", 1)[1]
    build = with_the_fault(commands_after("Is my kernel right?"))[:-1]
    done = run_in(tmp_path, [*build, "qcts run " + rerun])
    assert done.returncode == 1, done.stderr
    assert comparable(quoted) in comparable(done.stdout.replace(str(Path(BIN).resolve()), "build/release/bin/qcts"))


def test_the_support_table_is_what_the_program_prints():
    table = qcts("schemes", "--markdown").stdout
    assert table.count("\n") > 15 and "\n\n" + table + "\n" in README


def test_the_table_of_schemes_stands_alone():
    assert "excludes" in qcts("schemes", "--markdown", "--json", code=2).stderr


def test_the_planted_faults_are_counted_right():
    """README.md and suites/judge/README.md give the right numbers of planted and equivalent faults."""
    catalogue = ROOT / "suites/selftest/mutants"
    planted = sum(path.read_text().count("\nQCTS_MUTANT(") for path in catalogue.glob("*.inc"))
    equivalent = (catalogue / "equivalent.inc").read_text().count("\nQCTS_EQUIVALENT(")
    assert f"Of {planted} planted faults the judge finds {planted - equivalent}" in README
    assert f"{planted} wrong kernels" in (ROOT / "suites/judge/README.md").read_text() and equivalent == 2


@pytest.mark.parametrize("page", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert "://" in link or (page.parent / link).exists(), link


def test_the_scripts_answer_help_before_they_build(tmp_path):
    """Runs in a tree with only the scripts, so that set-up would fail or leave a trace."""
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    for name in ("run", "test", "nightly", "fuzz", "latency", "bench_load"):
        done = subprocess.run([f"scripts/{name}", "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=20)
        assert done.returncode == 0 and "SPDX" not in done.stdout and len(done.stdout) > 80, name
    assert {path.name for path in tmp_path.iterdir()} == {"scripts"}
