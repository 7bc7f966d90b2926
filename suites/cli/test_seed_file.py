# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts run --seed-file`: a secret seed always asks the same question of its own, and no file reveals the seed."""

import gzip
import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
MUTANTS = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release")) / "lib/selftest/qcts_mutants.so"
DRAWN = ["--plan", "nightly", "--filter", "numerics.dequantize/int8_row/drawn_*/builtin_scalar", "--provider", "builtin"]
# Each failure of a mutant shows what was asked and what the answer should have been.
FAILING = ["--plan", "nightly", "--filter", "numerics.linear/int8_row/drawn_*", "--provider", str(MUTANTS)]


def run(out, *words, fault=""):
    command = [QCTS, "run", "--no-progress", "--out", str(out), *map(str, words)]
    environment = os.environ | ({"QCTS_MUTANT": fault} if fault else {})
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def record_of(out):
    return [json.loads(line) for line in gzip.decompress((out / "run.jsonl.gz").read_bytes()).splitlines()]


def problems_of(out):
    """Returns what was drawn for each case, without the words that say from what."""
    return {verdict["case_id"]: verdict["problem"].split(": ", 1)[1] for verdict in record_of(out)[1:]}


def seed_of(secret):
    return int.from_bytes(hashlib.sha256(b"qcts seed" + secret).digest()[:8], "little")


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(bytes(range(40)))
    file.chmod(0o600)
    return file


def test_a_secret_seed_asks_the_same_twice_and_another_asks_something_else(secret, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"another secret")

    def problems(name, *words):
        result = run(tmp_path / name, *DRAWN, *words)
        assert result.returncode == 0, result.stdout + result.stderr
        return problems_of(tmp_path / name)

    one, two = problems("one", "--seed-file", secret), problems("two", "--seed-file", secret)
    another = problems("another", "--seed-file", other)
    number = problems("number", "--seed", seed_of(secret.read_bytes()))
    assert len(one) == 16 and one == two and one != another
    assert one == number, "the seed is not the one that the help describes"


def test_no_file_tells_the_seed(secret, tmp_path):
    out = tmp_path / "out"
    result = run(out, *FAILING, "--seed-file", secret, fault="l8_scale_as_bf16")
    assert result.returncode == 1, result.stderr
    head, *verdicts = record_of(out)
    assert head["seed"] == 0 and head["seed_sha256"] == hashlib.sha256(secret.read_bytes()).hexdigest()
    seed = seed_of(secret.read_bytes())
    files = [file for file in out.rglob("*") if file.is_file() and file.suffix != ".gz"]
    texts = [result.stdout, result.stderr] + [file.read_text(errors="replace") for file in files]
    texts.append("\n".join(map(json.dumps, [head, *verdicts])))
    for text in texts:
        assert str(seed) not in text and f"{seed:x}" not in text
    failures = [verdict for verdict in verdicts if verdict["status"] == "fail"]
    assert failures
    for verdict in failures:
        assert verdict["rerun"].endswith(f"--seed-file {secret}"), verdict["rerun"]
        assert verdict["problem"].startswith("secret seed: ")


def test_a_resumed_run_has_the_same_secret(secret, tmp_path):
    out, other = tmp_path / "out", tmp_path / "other"
    other.write_bytes(b"another secret")
    assert run(out, *DRAWN, "--seed-file", secret).returncode == 0
    before = (out / "run.jsonl.gz").read_bytes()
    for words in (["--seed-file", other], ["--seed", "0"], []):
        refused = run(out, *DRAWN, *words, "--resume")
        assert refused.returncode == 2 and "seed_sha256" in refused.stderr, refused.stderr
    assert (out / "run.jsonl.gz").read_bytes() == before
    assert run(out, *DRAWN, "--seed-file", secret, "--resume").returncode == 0


def test_shards_of_other_secrets_are_not_merged(secret, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"another secret")
    for shard, file in (("1/2", secret), ("2/2", other)):
        assert run(tmp_path / shard[0], *DRAWN, "--seed-file", file, "--shard", shard).returncode == 0
    merged = subprocess.run([QCTS, "merge", "--out", tmp_path / "out", tmp_path / "1", tmp_path / "2"], capture_output=True, text=True)
    assert merged.returncode == 2 and "seed_sha256" in merged.stderr, merged.stderr


def test_wrong_seed_files_are_wrong_usage(secret, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    for words, why in (
        (["--seed-file", empty], "is empty"),
        (["--seed-file", tmp_path / "absent"], "cannot be read"),
        (["--seed-file", tmp_path], "cannot be read"),
        (["--seed-file", secret, "--seed", "7"], "excludes"),
    ):
        result = run(tmp_path / "out", *DRAWN, *words)
        assert result.returncode == 2 and why in result.stderr, result.stderr
        assert not (tmp_path / "out" / "run.jsonl").exists()
