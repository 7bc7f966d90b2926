# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for the tests of statements: runs, keys, signed statements of them, and edits of either."""

import base64
import copy
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
sys.path.append(str(ROOT / "suites/run/vendors"))  # vendor.py, for the tests here

TYPE = "application/vnd.in-toto+json"
SEED = bytes(range(32))
DECLINES = "p->w_dtype == QCTS_F16"


def qcts(*words, code=0):
    done = subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def run(out, library, *words, code=0):
    qcts("run", "--no-progress", "--plan", "nightly", "--out", out, "--provider", library, *words, code=code)
    return out


def key_file(folder, seed=SEED):
    file = folder / "key"
    file.write_bytes(seed)
    file.chmod(0o600)
    return file


def state(folder, *words, code=0):
    return qcts("statement", folder, "--vendor", "Acme", "--product", "int8", *words, code=code)


def verified(*words, code=0):
    """Returns what `qcts verify` says."""
    document = json.loads(qcts("verify", *words, "--json", code=code).stdout)
    assert document["accepted"] == (code == 0) and bool(document["faults"]) == (code != 0)
    return document


def pae(payload_type, payload):
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def payload_of(envelope):
    return base64.b64decode(envelope["payload"], validate=True)


def key_id(key):
    """SHA-256 of the SubjectPublicKeyInfo, of which RFC 8410 gives the first 12 bytes."""
    return hashlib.sha256(bytes.fromhex("302a300506032b6570032100") + bytes(key.verify_key)).hexdigest()


def written(tmp_path, envelope):
    file = tmp_path / "statement.json"
    file.write_text(json.dumps(envelope))
    return file


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [*value, "--filter x"]
    return "fail" if value in ("pass", "not_supported") else value + "x" if value else "0" * 64


def tampered(envelope, path, signed):
    statement = json.loads(payload_of(envelope))
    *above, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    place = statement
    for word in above:
        place = place[word]
    place[last] = changed(place[last])
    if not signed:
        statement["predicate"].pop("signer")
        envelope = envelope | {"signatures": []}
    return envelope | {"payload": base64.b64encode(json.dumps(statement).encode()).decode()}


def edited(folder, out, edit):
    """A copy of a run whose record's lines were edited."""
    shutil.copytree(folder, out)
    record = out / "run.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(record.read_bytes()).splitlines()]
    lines = edit(copy.deepcopy(lines)) or lines
    record.write_bytes(gzip.compress("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()))
    return out
