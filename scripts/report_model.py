"""What the page shows, computed from report.json and nothing else."""

from collections import Counter, defaultdict

# Worst first: a cell of the heat map shows the worst of its cases.
STATUS_ORDER = ("internal", "crash", "timeout", "resource", "fail", "xpass", "inconclusive", "weak_evidence", "waived", "not_supported", "pass")
ALARMING = ("internal", "crash", "timeout", "resource", "fail", "xpass")
OPERATIONS = ("quantize", "quantize_activation", "dequantize", "pack", "unpack", "linear")
FILE_KINDS = ("round_trip", "assign", "size", "reject")


def worst(statuses):
    return min(statuses, key=STATUS_ORDER.index)


def full_id(case):
    return f"{case['case_id']}/{case['provider']}_{case['variant']}" if case.get("variant") else case["case_id"]


def split_id(case_id):
    """"numerics.linear/int8_row/m1" -> ("numerics", "linear", "int8_row", "m1")"""
    head, _, rest = case_id.partition("/")
    kind, _, operation = head.partition(".")
    scheme, _, name = rest.partition("/")
    return kind, operation, scheme, name


def measure(case, name):
    return next((m for m in case.get("measures", []) if m["name"] == name), None)


def counts(cases):
    tally = Counter(case["status"] for case in cases)
    return [(status, tally[status]) for status in reversed(STATUS_ORDER) if tally[status]]


def failures(cases, most=20):
    found = [case for case in cases if case["status"] in ALARMING]
    found.sort(key=lambda case: (STATUS_ORDER.index(case["status"]), full_id(case)))
    return found[:most], len(found)


def reasons(cases):
    """Every status that is neither pass nor alarming, grouped by its reason."""
    groups = defaultdict(list)
    for case in cases:
        if case["status"] != "pass" and case["status"] not in ALARMING:
            groups[case["status"], case["reason"]].append(full_id(case))
    return sorted(((status, reason, ids) for (status, reason), ids in groups.items()), key=lambda g: (STATUS_ORDER.index(g[0]), -len(g[2])))


def heat_map(cases):
    """Rows (scheme, operation), columns implementations; a cell is (status, passed, total, evidence) or None where none exists."""
    cells = defaultdict(list)
    for case in cases:
        kind, operation, scheme, _ = split_id(case["case_id"])
        if kind in ("numerics", "determinism") and operation in OPERATIONS:
            cells[scheme, operation, f"{case['provider']}_{case['variant']}"].append(case)
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
    """Rows goldens, columns the kinds that judge files."""
    cells = defaultdict(dict)
    for case in cases:
        kind, operation, scheme, name = split_id(case["case_id"])
        if kind in FILE_KINDS and kind != "reject":
            cells[f"{scheme}/{name}"][kind] = case
    return [(golden, [kinds.get(kind) for kind in FILE_KINDS[:3]]) for golden, kinds in sorted(cells.items())]


def rejections(cases):
    return [case for case in cases if split_id(case["case_id"])[0] == "reject"]


def sizes(cases):
    """One row a golden: payload, law, dense, container, each in bytes, and the reduction."""
    rows = []
    for case in cases:
        if split_id(case["case_id"])[0] == "size":
            values = {m["name"]: m["value"] for m in case.get("measures", [])}
            rows.append({"case": case, "name": case["case_id"].partition("/")[2], **values})
    return rows


def latencies(cases):
    rows = []
    for case in cases:
        kind, operation, scheme, name = split_id(case["case_id"])
        if kind == "latency":
            rows.append({"case": case, "operation": operation, "scheme": scheme, "input": name,
                         "implementation": f"{case['provider']}_{case['variant']}",
                         "measures": {m["name"]: m for m in case.get("measures", [])}})
    return rows


def evidence_counts(cases):
    """Confirmed (a real library's file), emulated (an operation of it was not run by the real library), reference (our own oracle)."""
    tally = Counter()
    for case in cases:
        if case["status"] == "pass":
            evidence = case.get("evidence", [])
            tally["emulated" if "emulated" in evidence else "golden" if "golden" in evidence else "reference" if "reference" in evidence else "other"] += 1
    return tally
