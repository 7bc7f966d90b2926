# SPDX-License-Identifier: BSD-3-Clause
"""Tests that the page repeats report.json, shows every status, escapes the files' content, and needs no network."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
report = pytest.importorskip("report")


def case(name, status, **more):
    kind, _, rest = name.partition(".")
    op, scheme, label = rest.split("/", 2)
    variant = more.get("variant", "scalar")
    return {"id": f"{name}/builtin_{variant}", "case_id": name, "kind": kind, "op": op, "scheme": scheme, "input": label,
            "provider": "builtin", "variant": variant, "status": status, "reason": "" if status == "pass" else f"because {status}",
            "mismatch": None, "measures": [], "evidence": [], "rerun": f"qcts run --filter '{name}'", "wall_us": 1.0} | more


def make(cases, conformant=False, missing=(), exit_code=1, reason="because", infrastructure=()):
    return {"schema": 2, "suite": {"version": "0.1.0", "commit": "abc"}, "cases": cases, "providers": [], "waivers": [],
            "run": {"plan": "default", "started": "2026-01-01T00:00:00Z", "wall_s": 1.5, "infrastructure": list(infrastructure)},
            "environment": {"cpu_model": "a processor", "features": ["avx2"]}, "latency_note": "",
            "conformance": {"conformant": conformant, "mustpass_total": len(cases), "mustpass_missing": list(missing),
                            "exit_code": 0 if conformant else exit_code, "reason": reason, "rule": "the rule"}}


FAILED = case("numerics.linear/int8_row/noise", "fail",
              mismatch={"where": "qdata: row 3, k 7", "want": "0x01", "got": "<script>", "count": 2, "total": 9})


def test_a_failure_is_on_the_first_screen_with_its_element_and_rerun_line():
    page = report.render_html(make([FAILED, case("numerics.linear/int8_row/tails", "pass")]))
    assert "Not conformant" in page
    assert page.index("qdata: row 3, k 7") < page.index("Schemes × operations")
    assert "qcts run --filter &#39;numerics.linear/int8_row/noise&#39;" in page


def test_what_files_contain_is_escaped():
    page = report.render_html(make([FAILED]))
    assert "<code>&lt;script&gt;</code>" in page and page.count("<script>") == 1


@pytest.mark.parametrize("equal, words", [(True, "the same tokens after saving"), (False, "other tokens after saving")])
def test_a_generate_has_its_section_and_its_verdict(equal, words):
    row = {"model": "int4_reloaded", "tokens_per_s": 12.25, "least_tokens_per_s": 11.0, "greatest_tokens_per_s": 13.0, "turns": 5}
    generate = {"new_tokens": 32, "threads": 2, "group_size": 128, "tokens_equal": equal, "tokens_as_dense": 7, "dense_bytes": 100,
                "file_bytes": 50, "rows": [row]}
    page = report.render_html(make([FAILED]), generate=generate)
    assert words in page and "7 of 32" in page and "12.2" in page
    assert "One real generate" not in report.render_html(make([FAILED]))


def test_the_page_needs_no_network():
    page = report.render_html(make([FAILED]))
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page) and "@import" not in page


@pytest.mark.parametrize("status", report.model.STATUS_ORDER)
def test_every_status_is_counted_and_shown(status):
    page = report.render_html(make([case("numerics.pack/int8_row/noise", status)]))
    assert f'<b class="{status}">1</b><span>{status}</span>' in page
    if status != "pass":
        assert f"because {status}" in page


def test_the_heat_map_shows_the_worst_status_and_no_cell_where_nothing_exists():
    cases = [case("numerics.linear/int8_row/noise", "pass", evidence=["golden"]), case("numerics.linear/int8_row/tails", "fail"),
             case("numerics.pack/int8_row/noise", "pass", variant="avx2")]
    columns, rows = report.model.heat_map(cases)
    assert columns == ["builtin_avx2", "builtin_scalar"]
    assert [(scheme, op) for scheme, op, _ in rows] == [("int8_row", "pack"), ("int8_row", "linear")]
    assert rows[1][2][0] is None and rows[1][2][1]["status"] == "fail" and rows[1][2][1]["passed"] == 1


def test_emulated_evidence_is_never_a_confirmation():
    cases = [case("numerics.pack/int8_row/a", "pass", evidence=["golden", "emulated"]),
             case("numerics.pack/int8_row/b", "pass", evidence=["golden"])]
    tally = report.model.evidence_counts(cases)
    assert tally["golden"] == 1 and tally["emulated"] == 1


NO_PROVIDER = "provider ./acme: its greeting: no JSON"


@pytest.mark.parametrize(("given", "tone", "line"), [
    ({"conformant": True}, "pass", "Conformant"),
    ({"exit_code": 0, "missing": ["x"]}, "warn", "Passed what was asked"),
    ({"exit_code": 1}, "fail", "Not conformant"),
    ({"exit_code": 1, "cases": [case("numerics.pack/int8_row/a", "weak_evidence")]}, "fail", "Not conformant"),
    ({"exit_code": 3, "cases": []}, "warn", "Nothing proved"),
    ({"exit_code": 4}, "warn", "Inconclusive"),
    ({"exit_code": 5, "cases": [], "infrastructure": [NO_PROVIDER]}, "fail", "Could not judge"),
    ({"exit_code": 5, "missing": ["x"], "infrastructure": [NO_PROVIDER]}, "fail", "Could not judge"),
])
def test_the_headline_is_the_verdict_of_the_report(given, tone, line):
    """Page and summary agree with the exit code, whatever the cases are, and name providers that could not be judged."""
    made = make(**{"cases": [case("size.file/int8_row/a", "pass")], "reason": "the very reason"} | given)
    assert report.headline(made) == (tone, line, "The very reason.")
    for text in (report.render_html(made), report.render_summary(made)):
        assert line in text and "The very reason." in text
        assert (NO_PROVIDER in text) == ("infrastructure" in given)


@pytest.mark.parametrize(("file", "text"), [
    ("report", "{"), ("report", "[]"), ("report", "{}"), ("report", '{"schema": 2}'), ("load", "{"), ("generate", "[]"), ("load", "\xff"),
])
def test_a_broken_file_is_a_usage_error(tmp_path, capsys, file, text):
    (tmp_path / "report.json").write_text(json.dumps(make([FAILED])))
    (tmp_path / f"{file}.json").write_text(text, encoding="latin-1")
    assert report.main([str(tmp_path / "report.json")]) == 2
    said = capsys.readouterr().err
    assert f"{file}.json" in said and said.count("\n") == 1


def test_the_page_shows_who_reads_whose_files_and_the_choices():
    """Outcomes are counted by writer, files that are not simply read are named, and the choices are on the page."""
    readers = {
        "schema": 1,
        "readers": ["torch alone", "qcts"],
        "files": [
            {"golden": "old/a", "writer": "torchao 0.5.0", "outcomes": ["refuses", "dequantizes"], "why": ["Unsupported global", ""]},
            {"golden": "old/b", "writer": "torchao 0.5.0", "outcomes": ["parts", "dequantizes"], "why": ["plain tensors", ""]},
        ],
    }
    table = report.model.reader_table(readers)
    assert table["rows"] == [("torchao 0.5.0", [[("parts", 1), ("refuses", 1)], [("dequantizes", 2)]])]
    option = {"id": "half_even", "answer": "to the even code", "schemes": ["int8_row"], "others": "", "evidence": "torch.round"}
    ledger = {"choices": [{"id": "r", "question": "where do halves go", "a_provider_may_differ": False, "options": [option]}], "claims": []}
    ledger["kept_layouts"] = [{"name": "Semi", "holds": "int8", "written_by": "x", "why": "no map", "evidence": "e"}]
    page = report.render_html(make([FAILED]) | {"readers": readers, "ledger": ledger})
    assert "not dequantized: no map" in page
    for words in ("Who reads whose files", "Unsupported global", "where do halves go?", "half_even"):
        assert words in page
    assert "Who reads whose files" not in report.render_html(make([FAILED]))


def test_the_page_marks_layouts_by_index_map():
    """Each layout that no hardware confirmed is listed once, with all its schemes."""
    def scheme(name, confirmed):
        layouts = [{"name": "plain", "source": "a", "confirmed": True}, {"name": "tiles", "source": "b", "confirmed": confirmed}]
        return {"name": name, "layouts": layouts}

    schemes = [scheme("int4_g32", False), scheme("int4_g64", False), scheme("int8", True)]
    assert report.model.unconfirmed_layouts(schemes) == [{"name": "tiles", "source": "b", "schemes": ["int4_g32", "int4_g64"]}]
    page = report.render_html(make([FAILED]) | {"schemes": schemes})
    assert "by index map, not confirmed on hardware" in page
    assert "by index map" not in report.render_html(make([FAILED]) | {"schemes": schemes[2:]})


def test_the_page_shows_which_values_were_touched_and_which_were_not():
    """Missing codes, halfway points and scale exponents are named on the page; a complete set is shown as such."""
    entry = {
        "scheme": "int4_x",
        "activation": "",
        "codes_written": {"hit": 14, "of": 16, "holes": ["3", "9"]},
        "codes_read": {"hit": 16, "of": 16, "holes": []},
        "halfway": None,
        "scale_exponents": [{"hit": 3, "of": 40, "holes": ["-24 to 12"], "dtype": "float16"}],
        "special_inputs": ["zero"],
        "special_scales": [],
        "k_mod_32": [0, 1, 2, 7],
        "n_mod_16": [0],
        "m": [],
    }
    page = report.render_html(make([FAILED]) | {"coverage": [entry]})
    for words in ("14 of 16", "holes: 3, 9", '<b class="pass">16 of 16</b>', "3 of 40 float16", "-24 to 12", "0-2, 7"):
        assert words in page, words
    assert "Value coverage" not in report.render_html(make([FAILED]))
    assert report.model.runs([]) == "" and report.model.runs([4]) == "4" and report.model.runs([1, 2, 4, 5, 6]) == "1-2, 4-6"


def timed(name, variant, share, reason="", **more):
    measures = {"share_of_roof": share, "share_of_probe": share, "bandwidth": 9.0, "stream": 10.0, "median_us": 12.5} | more
    units = {"share_of_roof": "x", "bandwidth": "GB/s", "stream": "GB/s", "rate": "GOP/s", "peak_fma_avx2": "GOP/s", "median_us": "us"}
    listed = [{"name": key, "unit": units.get(key, "x"), "value": value} for key, value in measures.items()]
    return case(name, "pass", variant=variant, measures=listed) | {"reason": reason}


def test_rooflines_keep_decode_prefill_and_the_rest_apart_and_peers_together():
    decode, prefill = "latency.linear/int8_row/noise_m1_n64_k64_bf16_cold", "latency.linear/int8_row/noise_m512_n64_k64_bf16_cold"
    cases = [timed(decode, "slow", 0.25), timed(decode, "fast", 0.75, "timed inside the provider's own process"),
             timed(prefill, "fast", 0.5, share_of_probe=0.1, share_of_peak=0.5, rate=40.0, peak_fma_avx2=80.0),
             timed("latency.pack/int8_row/noise_n64_k64_bf16_cold", "fast", 0.9),
             case("latency.linear/int8_row/noise_m16_n64_k64_bf16_cold", "not_supported")]
    tables = dict(report.model.rooflines(cases))
    assert list(tables) == ["decode", "prefill", "other operations"]
    [(problem, rows)] = tables["decode"]
    assert "m1" in problem and [row["implementation"] for row in rows] == ["builtin_fast", "builtin_slow"]
    assert [row["elsewhere"] for row in rows] == [True, False] and {row["bound"] for row in rows} == {"memory"}
    [(_, [row])] = tables["prefill"]
    assert row["bound"] == "arithmetic" and row["reached"]["value"] == 40 and row["ceiling"]["value"] == 80
    trust = {"latency_trust": {"measured": 4, "alarms": 3, "allowed": 1, "suspended": True}}
    page = report.render_html(make(cases) | trust)
    for words in ("75 % of the roof", "builtin_fast †", "no latency verdict of this run counts", "3 of 4 differed"):
        assert words in page, words
    assert "Rooflines" not in report.render_html(make([FAILED]))
