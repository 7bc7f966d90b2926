# SPDX-License-Identifier: BSD-3-Clause
"""Checks the bounds on reading any file: CPU time <= 1 s + 10 ns per byte, heap <= 64 MiB + 64 B per pickle opcode
+ the header (zip directory and pickle, or JSON), where numpy arrays count twice. A safetensors header grants 15
times its size more, at most 192 MiB, and so do the descriptions of a GGUF file's tensors.

Runs on every malformed file and on generated hostile files that are too big to keep. Release builds only:
sanitizers add to both costs.
"""

import json
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hostile_files import ACCEPTED, HOSTILE, TENSOR_START, header_of, pickled, text
from hostile_gguf import ACCEPTED_GGUF, HOSTILE_GGUF, gguf
from hostile_headers import ACCEPTED_SAFETENSORS, HOSTILE_SAFETENSORS, HOSTILE_SCRIPTS

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))
MALFORMED = json.loads((ROOT / "fixtures/manifest.json").read_text())["malformed"]
SANITIZED = re.search(r"^QCTS_SANITIZE:\w+=\S", (BUILD / "CMakeCache.txt").read_text(), re.M) is not None

pytestmark = pytest.mark.skipif(SANITIZED, reason="the bounds are those of a release build: sanitizers multiply time and heap")


def cpu_bound_s(file_bytes):
    return 1 + 10e-9 * file_bytes


@pytest.fixture(scope="module")
def measure():
    process = subprocess.Popen([BUILD / "bin/qcts_bounds"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(path):
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    # Other load only ever adds to the time, so the minimum of a few runs is closest to the reader's own.
    def measure(path):
        answer, allowed_s = ask(path), cpu_bound_s(path.stat().st_size)
        for _ in range(8):
            if all(cost["cpu_s"] <= allowed_s for cost in answer.values()):
                break
            for mode, cost in ask(path).items():
                answer[mode]["cpu_s"] = min(answer[mode]["cpu_s"], cost["cpu_s"])
        return answer

    yield measure
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def granted_by_names(path):
    """Bytes of memory for the tensors that a safetensors header names, in addition to its own: at most 192 MiB."""
    return min(15 * header_bytes(path), 192 << 20) if path.suffix == ".safetensors" else 0


def hold(answer, file_bytes, opcodes, header_bytes, name):
    for mode, cost in answer.items():
        assert not cost["outcome"].startswith("exception"), (name, mode, cost)
        assert cost["cpu_s"] <= cpu_bound_s(file_bytes), (name, mode, cost, file_bytes)
        limit = (64 << 20) + 64 * opcodes + header_bytes
        assert cost["heap_bytes"] <= limit, (name, mode, cost, opcodes, header_bytes)


def test_every_malformed_file_is_cheap(measure):
    for entry in MALFORMED:
        path = ROOT / "fixtures" / entry["file"]
        hold(measure(path), path.stat().st_size, 0, 0, entry["id"])


def header_bytes(path):
    """Returns the header size: directory and pickle of an archive made here, pickles of a legacy file, JSON of safetensors."""
    if path.suffix == ".safetensors":
        return int.from_bytes(path.open("rb").read(8), "little")
    return header_of(path) if path.open("rb").read(2) == b"PK" else path.stat().st_size


def hold_hostile(make, measure, path, header):
    """Makes the file, checks the cost of reading it, removes it and returns the outcomes."""
    opcodes = make(path) or 0
    answer = measure(path)
    print(make.__name__, path.stat().st_size, opcodes, answer)
    hold(answer, path.stat().st_size, opcodes, header(path) + granted_by_names(path), make.__name__)
    path.unlink()
    return {mode: cost["outcome"] for mode, cost in answer.items()}


@pytest.mark.parametrize("make", HOSTILE, ids=lambda f: f.__name__)
def test_hostile_pickle_or_archive_is_cheap(make, measure, tmp_path):
    outcomes = hold_hostile(make, measure, tmp_path / "hostile.pt", header_bytes)
    if make in ACCEPTED:
        assert outcomes == {"strict": "accepted", "lenient": "accepted"}


@pytest.mark.parametrize("make", HOSTILE_SCRIPTS, ids=lambda f: f.__name__)
def test_hostile_torchscript_is_cheap(make, measure, tmp_path):
    hold_hostile(make, measure, tmp_path / "hostile.pt", lambda path: 4096)


@pytest.mark.parametrize("make", HOSTILE_SAFETENSORS, ids=lambda f: f.__name__)
def test_hostile_safetensors_is_cheap(make, measure, tmp_path):
    outcomes = hold_hostile(make, measure, tmp_path / "hostile.safetensors", header_bytes)
    if make in ACCEPTED_SAFETENSORS:
        assert outcomes["strict"] == "accepted", outcomes


def test_expanded_view_of_a_trillion_elements_is_refused_when_it_has_to_be_written(tmp_path):
    """Four bytes that claim a shape of 2^40: reading is cheap, converting is refused before it allocates."""
    view = b"h\1((h\4h\3" + text("0") + b"h\5K\1tQK\0\x8a\6" + (1 << 40).to_bytes(6, "little") + b"\x85K\0\x85\x89h\2)RtR"
    pickled(
        b"}(" + text("g") + b"(" + TENSOR_START + b"t" + text("x") + view + b"u",
        tmp_path / "x.pt",
        [b"\0\0\0\0"],
    )
    words = [BUILD / "bin/qcts", "dequantize", tmp_path / "x.pt", tmp_path / "out.safetensors"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("qcts: refused: LimitExceeded: "), done
    assert not (tmp_path / "out.safetensors").exists()


def gguf_description_bytes(path):
    """Returns an upper bound of the bytes that describe tensors: all before the data of 32 bytes per tensor."""
    data = path.read_bytes()
    tensors, pairs = struct.unpack_from("<QQ", data, 8)
    return min(len(data), tensors * 64) if pairs == 1 and tensors > 1000 else 0


@pytest.mark.parametrize("make", HOSTILE_GGUF, ids=lambda f: f.__name__)
def test_hostile_gguf_is_cheap(make, measure, tmp_path):
    path = tmp_path / "hostile.gguf"
    make(path)
    answer, described = measure(path), gguf_description_bytes(path)
    print(make.__name__, path.stat().st_size, described, answer)
    hold(answer, path.stat().st_size, 0, described + min(15 * described, 192 << 20), make.__name__)
    outcomes = {cost["outcome"] for cost in answer.values()}
    assert outcomes == {"accepted"} if make in ACCEPTED_GGUF else outcomes <= {"accepted", "LimitExceeded"}


def test_a_large_gguf_is_opened_without_reading_it(measure, tmp_path):
    """Protects: mmap and no copies. 4 GiB of Q4_K in 500 tensors."""
    rows, columns = 60, 256 * 1000
    size, count = rows * columns // 256 * 144, 500
    tensors = [gguf.tensor(f"blk.{i}.weight", (columns, rows), 12, size * i) for i in range(count)]
    path = tmp_path / "large.gguf"
    path.write_bytes(gguf.file_of(tensors=tensors, data=b""))
    os.truncate(path, path.stat().st_size + size * count)
    assert size % 32 == 0 and path.stat().st_size > 4 << 30
    for mode, cost in measure(path).items():
        assert cost["outcome"] == "accepted", mode
        assert cost["cpu_s"] <= 0.05 and cost["heap_bytes"] <= 64 << 20, (mode, cost)
