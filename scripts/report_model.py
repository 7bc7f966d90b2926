# SPDX-License-Identifier: BSD-3-Clause
"""Computes what the page shows from report.json."""

import re
from collections import Counter, defaultdict

# Worst first: a cell of the heat map shows the worst of its cases.
STATUS_ORDER = ("internal", "crash", "timeout", "resource", "fail", "xpass", "inconclusive", "weak_evidence", "waived", "not_supported",
                "pass")
ALARMING = ("internal", "crash", "timeout", "resource", "fail", "xpass")
OPERATIONS = ("quantize", "quantize_activation", "dequantize", "pack", "unpack", "linear")
FILE_KINDS = ("round_trip", "assign", "size")


def worst(statuses):
    return min(statuses, key=STATUS_ORDER.index)


def counts(cases):
    tally = Counter(case["status"] for case in cases)
    return [(status, tally[status]) for status in reversed(STATUS_ORDER) if tally[status]]


def failures(cases, limit=20):
    found = [case for case in cases if case["status"] in ALARMING]
    found.sort(key=lambda case: (STATUS_ORDER.index(case["status"]), case["id"]))
    return found[:limit], len(found)


def reasons(cases):
    """Groups statuses that are neither pass nor failure by their reason."""
    groups = defaultdict(list)
    for case in cases:
        if case["status"] != "pass" and case["status"] not in ALARMING:
            groups[case["status"], case["reason"]].append(case["id"])
    return sorted(((status, reason, ids) for (status, reason), ids in groups.items()), key=lambda g: (STATUS_ORDER.index(g[0]), -len(g[2])))


def heat_map(cases):
    """Rows are (scheme, operation), columns implementations; a cell is (status, passed, total, evidence), or None without cases."""
    cells = defaultdict(list)
    for case in cases:
        if case["kind"] in ("numerics", "determinism") and case["op"] in OPERATIONS:
            cells[case["scheme"], case["op"], f"{case['provider']}_{case['variant']}"].append(case)
    columns = sorted({key[2] for key in cells})
    rows = sorted({key[:2] for key in cells}, key=lambda key: (key[0], OPERATIONS.index(key[1])))
    table = []
    for scheme, operation in rows:
        line = []
        for column in columns:
            group = cells.get((scheme, operation, column))
            line.append(group and cell_of(group))
        table.append((scheme, operation, line))
    return columns, table


def cell_of(group):
    statuses = [case["status"] for case in group]
    passed = statuses.count("pass")
    evidence = sorted({kind for case in group if case["status"] == "pass" for kind in case.get("evidence", [])})
    return {"status": worst(statuses), "passed": passed, "total": len(group), "evidence": evidence,
            "title": "; ".join(f"{count} {status}" for status, count in Counter(statuses).most_common())}


def golden_table(cases):
    """Rows are goldens, columns the kinds that judge files."""
    cells = defaultdict(dict)
    for case in cases:
        if case["kind"] in FILE_KINDS:
            cells[f"{case['scheme']}/{case['input']}"][case["kind"]] = case
    return [(golden, [kinds.get(kind) for kind in FILE_KINDS]) for golden, kinds in sorted(cells.items())]


def rejections(cases):
    return [case for case in cases if case["kind"] == "reject"]


def sizes(cases):
    """One row per golden: payload, expected, dense and container bytes, and the reduction."""
    rows = []
    for case in cases:
        if case["kind"] == "size":
            values = {m["name"]: m["value"] for m in case.get("measures", [])}
            rows.append({"case": case, "name": f"{case['scheme']}/{case['input']}", **values})
    return rows


def latencies(cases):
    rows = []
    for case in cases:
        if case["kind"] == "latency":
            rows.append({"case": case, "operation": case["op"], "scheme": case["scheme"], "input": case["input"],
                         "implementation": f"{case['provider']}_{case['variant']}",
                         "measures": {m["name"]: m for m in case.get("measures", [])}})
    return rows


PREFILL_ROWS = 32
_ROWS_OF_X = re.compile(r"_m(\d+)_n")
TIMED_ELSEWHERE = "timed inside the provider"


def regime(row):
    """decode: few rows of x, bound by memory; prefill: many, bound by arithmetic; operations without rows of x are separate."""
    found = _ROWS_OF_X.search(row["input"])
    if row["operation"] != "linear" or not found:
        return "other operations"
    return "prefill" if int(found.group(1)) >= PREFILL_ROWS else "decode"


def rooflines(cases):
    """Returns [(regime, [(problem, rows)])]: each problem with its implementations, nearest to the roof first."""
    table = {"decode": {}, "prefill": {}, "other operations": {}}
    for row in latencies(cases):
        measures = row["measures"]
        if "share_of_roof" not in measures or measures["share_of_roof"]["value"] is None:
            continue
        peak = next((m for name, m in measures.items() if name.startswith("peak_")), None)
        by_memory = peak is None or measures["share_of_probe"]["value"] >= measures["share_of_peak"]["value"]
        problem = f"{row['operation']} {row['scheme']} {row['input']}"
        table[regime(row)].setdefault(problem, []).append(row | {
            "share": measures["share_of_roof"], "bound": "memory" if by_memory else "arithmetic",
            "reached": measures["bandwidth"] if by_memory else measures["rate"],
            "ceiling": measures["stream"] if by_memory else peak,
            "elsewhere": TIMED_ELSEWHERE in row["case"]["reason"], "doubtful": "not to be trusted" in row["case"]["reason"],
        })
    for problems in table.values():
        for rows in problems.values():
            rows.sort(key=lambda row: -row["share"]["value"])
    return [(name, sorted(problems.items())) for name, problems in table.items() if problems]


def evidence_counts(cases):
    """Counts passes that are confirmed (a real library's file), emulated (an operation of the file was emulated), or
    by qcts's reference.
    """
    tally = Counter()
    for case in cases:
        if case["status"] == "pass":
            evidence = case.get("evidence", [])
            tally[next((kind for kind in ("emulated", "golden", "reference") if kind in evidence), "other")] += 1
    return tally


def coverage_table(entries):
    """One row per scheme and policy: how many values of each kind were hit, and which were not."""

    def cell(hits):
        if hits is None:
            return None
        text = f"{hits['hit']} of {hits['of']}" + (f" {hits['dtype']}" if "dtype" in hits else "")
        return {"text": text, "complete": not hits["holes"], "holes": hits["holes"]}

    rows = []
    for entry in entries or []:
        rows.append(
            {
                "name": entry["scheme"] + (f", x {entry['activation']}" if entry["activation"] else ""),
                "cells": [cell(entry[key]) for key in ("codes_written", "codes_read", "halfway")],
                "exponents": [cell(hits) for hits in entry["scale_exponents"]],
                "specials": [entry["special_inputs"], entry["special_scales"]],
                "tails": [runs(entry[key]) for key in ("k_mod_32", "n_mod_16", "m")],
            }
        )
    return rows


def runs(numbers):
    """Formats [0, 1, 2, 5] as "0-2, 5"."""
    parts, start = [], 0
    for i, number in enumerate(numbers):
        if i + 1 < len(numbers) and numbers[i + 1] == number + 1:
            continue
        parts.append(f"{numbers[start]}-{number}" if start < i else str(number))
        start = i + 1
    return ", ".join(parts)


OUTCOMES = ("wrong", "refuses", "parts", "unsafe", "reads", "dequantizes")


def unconfirmed_layouts(schemes):
    """Lists each layout that no hardware confirmed, with its schemes."""
    found = {}
    for scheme in schemes:
        for layout in scheme["layouts"]:
            if not layout["confirmed"]:
                named = {"name": layout["name"], "source": layout["source"], "schemes": []}
                found.setdefault((layout["name"], layout["source"]), named)["schemes"].append(scheme["name"])
    return list(found.values())


def reader_table(readers):
    """Columns are readers, rows writers; a cell counts the writer's files by outcome. Also lists the files that are not simply read."""
    if not readers:
        return {"columns": [], "rows": [], "files": []}
    columns, tallies = readers["readers"], {}
    for file in readers["files"]:
        row = tallies.setdefault(file["writer"], [Counter() for _ in columns])
        for cell, outcome in zip(row, file["outcomes"], strict=True):
            cell[outcome] += 1
    rows = []
    for writer, cells in tallies.items():
        rows.append((writer, [[(outcome, cell[outcome]) for outcome in reversed(OUTCOMES) if cell[outcome]] for cell in cells]))
    files = []
    for file in readers["files"]:
        said = zip(columns, file["outcomes"], file["why"], strict=True)
        files.append((file["golden"], [one for one in said if one[1] not in ("reads", "dequantizes")]))
    return {"columns": columns, "rows": rows, "files": files}
