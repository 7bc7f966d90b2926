# SPDX-License-Identifier: BSD-3-Clause
"""Reads the record of a run: one verdict a line, after a head that says which run it is."""

import gzip
import json
from pathlib import Path


def lines(folder):
    """Returns the lines of run.jsonl, or of run.jsonl.gz once the run is finished."""
    plain = Path(folder) / "run.jsonl"
    data = plain.read_bytes() if plain.exists() else gzip.decompress((Path(folder) / "run.jsonl.gz").read_bytes())
    return data.decode("utf-8").splitlines()


def head(folder):
    return json.loads(lines(folder)[0])


def verdicts(folder):
    """Returns all verdicts by id, each with its id, kind, op, scheme and input."""
    found = []
    for line in lines(folder)[1:]:
        verdict = json.loads(line)
        kind_op, scheme, label = verdict["case_id"].split("/", 2)
        kind, op = kind_op.split(".")
        suffix = f"/{verdict['provider']}_{verdict['variant']}" if verdict["variant"] else ""
        found.append({"id": verdict["case_id"] + suffix, "kind": kind, "op": op, "scheme": scheme, "input": label} | verdict)
    return sorted(found, key=lambda verdict: verdict["id"])
