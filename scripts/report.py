# SPDX-License-Identifier: BSD-3-Clause
"""Converts report.json to one self-contained HTML page and a Markdown summary.

    scripts/report.py out/report.json --html out/report.html --summary out/summary.md

In the report's folder, load.json (scripts/bench_load) adds the section on loading and saving, generate.json (scripts/latency) the one on a
model's generate.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import jinja2
import report_model as model
from markupsafe import Markup, escape

SCHEMA = 2  # kReportSchema of reports/report.h
ROOT = Path(__file__).resolve().parent.parent
BACKGROUND = {"pass": "bg-pass", "not_supported": "bg-none", "waived": "bg-warn", "inconclusive": "bg-warn", "weak_evidence": "bg-warn"}
LETTERS = {"golden": "g", "emulated": "e", "reference": "r"}


# Headline of each exit code of `qcts run`, in the words of its own summary.
VERDICTS = {
    0: ("warn", "Passed what was asked"),
    1: ("fail", "Not conformant"),
    3: ("warn", "Nothing proved"),
    4: ("warn", "Inconclusive"),
    5: ("fail", "Could not judge"),
}


def headline(report):
    """Returns (tone, headline, sentence) of report.json's verdict, without judging again."""
    conformance = report["conformance"]
    tone, line = ("pass", "Conformant") if conformance["conformant"] else VERDICTS[conformance["exit_code"]]
    reason = conformance["reason"]
    return tone, line, reason[:1].upper() + reason[1:] + "."


def latency_plot(rows):
    """Plots the ratio to the dense baseline with its interval, one row per case, on a logarithmic axis."""
    points = [(row, row["measures"].get("ratio_to_dense")) for row in rows]
    points = [(row, m) for row, m in points if m and m["value"]]
    if not points:
        return Markup("")
    left, width, step = 420, 420, 20
    spread = max([2.0] + [max(m["value"], 1 / m["value"]) for _, m in points]) * 1.15
    scale = width / (2 * math.log(spread))
    centre = left + width / 2

    def x(value):
        return min(left + width, max(left, centre + scale * math.log(value)))

    height = step * len(points) + 34
    parts = [f'<svg width="{left + width + 20}" height="{height}" role="img" aria-label="speed against the dense baseline">',
             f'<line class="one" x1="{centre}" x2="{centre}" y1="0" y2="{height - 20}"/>',
             f'<text x="{centre + 4}" y="{height - 6}">as fast as dense</text><text x="{left}" y="{height - 6}">slower</text>'
             f'<text x="{left + width - 36}" y="{height - 6}">faster</text>']
    for i, (row, m) in enumerate(points):
        y = step * i + 14
        label = escape(f"{row['scheme']} {row['implementation']} {row['input']}")
        low, high = (m.get("low") or m["value"]), (m.get("high") or m["value"])
        parts.append(f'<text x="0" y="{y + 4}">{label}</text>'
                     f'<line class="interval" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y}" y2="{y}"/>'
                     f'<circle class="mark" cx="{x(m["value"]):.1f}" cy="{y}" r="4"><title>{m["value"]:.3g}×</title></circle>')
    return Markup("".join(parts) + "</svg>")


def microseconds(value):
    return f"{value:,.0f} µs" if value >= 1000 else f"{value:.4g} µs"


def roof_bar(share):
    """Draws a share of a roof with its interval; the line at the end is the roof."""
    width, value = 160, share["value"]

    def x(part):
        return 2 + width * min(1.15, max(0.0, part))

    low, high = share.get("low") or value, share.get("high") or value
    return Markup(
        f'<svg width="{width * 1.15 + 6:.0f}" height="14" role="img" aria-label="{100 * value:.0f} % of the roof">'
        f'<rect class="mark" x="2" y="2" width="{x(value) - 2:.1f}" height="10"/>'
        f'<line class="interval" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="7" y2="7"/>'
        f'<line class="one" x1="{x(1):.1f}" x2="{x(1):.1f}" y1="0" y2="14"/></svg>')


def view(report, load=None, generate=None):
    """Returns all variables of the template."""
    cases = report["cases"]
    tone, line, explanation = headline(report)
    columns, rows = model.heat_map(cases)
    for _, _, cells in rows:
        for cell in filter(None, cells):
            cell["background"] = BACKGROUND.get(cell["status"], "bg-bad")
            cell["letters"] = "".join(LETTERS[kind] for kind in cell["evidence"] if kind in LETTERS)
    sizes = model.sizes(cases)
    for row in sizes:
        row["bar"] = round(min(1.0, row["payload_bytes"] / row["dense_bytes"]) * 120) if row.get("dense_bytes") else 0
        row["reduction"] = row["dense_bytes"] / row["payload_bytes"] if row.get("payload_bytes") else None
    latencies = model.latencies(cases)
    names = []
    for row in latencies:
        names += [name for name in row["measures"] if name not in names]
    shown, total = model.failures(cases)
    return {
        "tone": tone, "headline": line, "explanation": explanation, "infrastructure": report["run"]["infrastructure"],
        "suite": report["suite"], "run": report["run"],
        "environment": report["environment"], "environment_rows": flatten(report["environment"]), "providers": report["providers"],
        "counts": model.counts(cases), "evidence": model.evidence_counts(cases), "failures": shown, "failure_count": total,
        "heat": {"columns": columns, "rows": rows}, "goldens": model.golden_table(cases), "sizes": sizes,
        "ledger": report.get("ledger") or {"choices": [], "claims": [], "kept_layouts": []},
        "unconfirmed": model.unconfirmed_layouts(report.get("schemes", [])), "readers": model.reader_table(report.get("readers")),
        "coverage": model.coverage_table(report.get("coverage")), "rejections": model.rejections(cases),
        "latencies": latencies, "latency_columns": names, "latency_plot": latency_plot(latencies),
        "rooflines": model.rooflines(cases), "roof_bar": roof_bar, "microseconds": microseconds,
        "latency_trust": report.get("latency_trust"),
        "latency_note": report.get("latency_note", ""), "reasons": model.reasons(cases), "waivers": report["waivers"],
        "load": load, "generate": generate,
        "conformance_text": report["conformance"]["rule"], "cases": sorted(cases, key=lambda case: case["id"]),
    }


def flatten(environment):
    return [(key, ", ".join(map(str, value)) if isinstance(value, list) else value) for key, value in environment.items()]


def render_html(report, load=None, generate=None):
    loader = jinja2.FileSystemLoader(ROOT / "reports")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.ChainableUndefined, trim_blocks=True)
    environment.tests["none"] = lambda value: value is None or isinstance(value, jinja2.Undefined)
    return environment.get_template("page.html").render(view(report, load, generate))


def render_summary(report):
    """Returns Markdown for a merge request."""
    data = view(report)
    lines = [f"# qcts: {data['headline']}", "", data["explanation"], ""]
    if data["infrastructure"]:
        lines += ["## What could not be judged", "", *(f"- {line}" for line in data["infrastructure"]), ""]
    lines += ["| status | cases |", "|---|---:|"]
    lines += [f"| {status} | {count} |" for status, count in data["counts"]]
    if data["failures"]:
        lines += ["", "## Failures", ""]
        for case in data["failures"]:
            lines.append(f"- `{case['id']}` **{case['status']}**: {case['reason']}\n  `{case['rerun']}`")
    if data["reasons"]:
        lines += ["", "## Neither pass nor failure", "", "| status | cases | reason |", "|---|---:|---|"]
        lines += [f"| {status} | {len(ids)} | {reason} |" for status, reason, ids in data["reasons"]]
    return "\n".join(lines) + "\n"


def read_object(path):
    """Reads a JSON object; raises OSError, or ValueError with one line that names the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path}: no JSON object")
    return value


def read_report(path):
    report = read_object(path)
    if report.get("schema") != SCHEMA:
        raise ValueError(f"{path}: not a report of `qcts run`: schema {report.get('schema')!r}, expected {SCHEMA}")
    missing = [key for key in ("suite", "run", "environment", "providers", "conformance", "waivers", "cases") if key not in report]
    if missing:
        raise ValueError(f"{path}: not a report of `qcts run`: {missing[0]} is missing")
    return report


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--html", type=Path)
    parser.add_argument("--summary", type=Path)
    options = parser.parse_args(arguments)
    try:
        report = read_report(options.report)
        beside = {name: options.report.with_name(f"{name}.json") for name in ("load", "generate")}
        sections = {name: read_object(file) for name, file in beside.items() if file.exists()}
    except (OSError, ValueError) as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    if options.html:
        options.html.write_text(render_html(report, **sections), encoding="utf-8")
    if options.summary:
        options.summary.write_text(render_summary(report), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
