# SPDX-License-Identifier: BSD-3-Clause
"""A golden with one flipped bit must never pass: the container's checksum detects it, and if the checksum is adapted, the numbers do."""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
FIXTURES = ROOT / "fixtures"


def run(*arguments):
    return subprocess.run([QCTS, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def first_golden(scheme):
    """Returns the first pickled golden of a scheme that has the scales and the dequantized weight as separate data."""
    for golden in json.loads((FIXTURES / "manifest.json").read_text())["goldens"]:
        for tensor in golden["tensors"]:
            pickled = golden["file"].endswith((".pt", ".bin")) and golden["producer"] == "torchao 0.18.0"
            if pickled and tensor["scheme"] == scheme and "dequant" in tensor["expected"]:
                return golden, tensor
    pytest.fail(f"no pickled golden of {scheme} with a dequantized weight")


def code_record(path, tensor):
    """Returns the archive name of the record with a tensor's codes, as inspect reports it."""
    listing = json.loads(run("inspect", path, "--json").stdout)
    entry = next(t for t in listing["tensors"] if t["name"] == tensor)
    payload = next(p for p in entry["payload"] if p["name"] in ("qdata", "tensor_impl.packed_weight"))
    return f"data/{payload['storage']}" if not str(payload["storage"]).startswith("data/") else payload["storage"]


def record_offset(path, record):
    """Prefix-free record name -> (ZipInfo, offset of its first data byte)."""
    with zipfile.ZipFile(path) as archive:
        info = next(i for i in archive.infolist() if i.filename.partition("/")[2] == record)
    with open(path, "rb") as file:
        file.seek(info.header_offset + 26)
        name_bytes, extra_bytes = struct.unpack("<HH", file.read(4))
    return info, info.header_offset + 30 + name_bytes + extra_bytes


def flip_bit(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(data)


def refit_crc(path, info, offset):
    """Writes the flipped record's CRC-32 into its data descriptor and its central directory entry."""
    data = bytearray(path.read_bytes())
    crc = struct.pack("<I", zlib.crc32(data[offset : offset + info.file_size]))
    descriptor = offset + info.file_size
    assert data[descriptor : descriptor + 4] == b"PK\x07\x08"
    data[descriptor + 4 : descriptor + 8] = crc
    old = struct.pack("<I", info.CRC)
    directory = data.index(b"PK\x01\x02")
    place = struct.pack("<I", info.header_offset)
    while data[directory + 16 : directory + 20] != old or data[directory + 42 : directory + 46] != place:
        directory = data.index(b"PK\x01\x02", directory + 4)
    data[directory + 16 : directory + 20] = crc
    path.write_bytes(data)


@pytest.mark.parametrize("scheme", ["int8_row", "fp8_row", "int4_tinygemm_g32"])
def test_one_flipped_bit_is_refused_by_record_and_tensor(tmp_path, scheme):
    golden, tensor = first_golden(scheme)
    copy = tmp_path / Path(golden["file"]).name
    shutil.copy(FIXTURES / golden["file"], copy)
    record = code_record(copy, tensor["name"])
    _, offset = record_offset(copy, record)
    flip_bit(copy, offset + 5)

    result = run("inspect", copy, "--json")
    assert result.returncode == 1
    refusal = json.loads(result.stdout)["refusal"]
    assert refusal["class"] == "CrcMismatch"
    assert record in refusal["detail"] and tensor["name"] in refusal["detail"]
    assert result.stderr.startswith("qcts: refused: CrcMismatch: ") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("scheme", ["int8_row", "fp8_row", "int4_tinygemm_g32"])
def test_a_flip_that_fits_every_checksum_fails_numerics_by_element(tmp_path, scheme):
    golden, tensor = first_golden(scheme)
    folder = tmp_path / "fixtures"
    folder.mkdir()
    copy = folder / Path(golden["file"]).name
    shutil.copy(FIXTURES / golden["file"], copy)
    shutil.copy(FIXTURES / golden["expected"], folder / "expected.safetensors")
    info, offset = record_offset(copy, code_record(copy, tensor["name"]))
    flip_bit(copy, offset + 5)
    refit_crc(copy, info, offset)
    entry = dict(golden, id="tampered/" + scheme, file=copy.name, expected="expected.safetensors",
                 sha256=hashlib.sha256(copy.read_bytes()).hexdigest())
    entry.pop("container_pair", None)
    notes = json.loads((FIXTURES / "manifest.json").read_text())["notes"]
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "notes": notes, "goldens": [entry], "malformed": []}))

    chosen = ["--filter", "numerics.dequantize/*tampered*", "--provider", "builtin"]
    result = run("run", "--fixtures", folder, *chosen, "--out", tmp_path / "out")
    assert result.returncode == 1, result.stderr
    cases = run_record.verdicts(tmp_path / "out")
    failed = [case for case in cases if case["status"] == "fail"]
    assert failed and failed[0]["mismatch"]["count"] >= 1
    assert "column" in failed[0]["mismatch"]["where"] or "k " in failed[0]["mismatch"]["where"]
    assert failed[0]["mismatch"]["want"] != failed[0]["mismatch"]["got"]
    assert failed[0]["rerun"]
